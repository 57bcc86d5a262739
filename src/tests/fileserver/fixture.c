/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests of the file server. */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <time.h>

#include "afs/dir.h"
#include "afs/numbers.h"
#include "fileserver/callbacks/callbacks.h"
#include "volume/export/object.h"

const char *tree_path(const char *root, const char *path)
{
	static char buffers[4][4096];
	static unsigned turn;
	char *at = buffers[turn++ % 4];

	snprintf(at, sizeof(buffers[0]), "%s%s%s", root, *path ? "/" : "", path);
	return at;
}

char *tree_make(void)
{
	char *root = test_folder();

	ck_assert_int_eq(chmod(root, 0755), 0);
	return root;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_D || type == FTW_DNR)
		chmod(path, 0700);
	(void)st;
	return remove(path);
}

void tree_remove(char *root)
{
	if (root)
		nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(root);
}

void tree_file(const char *root, const char *path, const void *data, size_t length, unsigned mode)
{
	const char *name = tree_path(root, path);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_msg(fd >= 0, "%s: %s", name, strerror(errno));
	ck_assert_int_eq(write(fd, data, length), (ssize_t)length);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

void tree_text(const char *root, const char *path, const char *text)
{
	tree_file(root, path, text, strlen(text), 0644);
}

void tree_dir(const char *root, const char *path, unsigned mode)
{
	const char *name = tree_path(root, path);

	ck_assert_int_eq(mkdir(name, 0700), 0);
	ck_assert_int_eq(chmod(name, mode), 0);
}

void tree_link(const char *root, const char *path, const char *text)
{
	ck_assert_int_eq(symlink(text, tree_path(root, path)), 0);
}

void tree_tick(void)
{
	struct timespec ts = {.tv_nsec = 25000000};

	nanosleep(&ts, NULL);
}

/* -- worlds -- */

static void note_change(void *arg, const struct store_fid *fid, const void *actor)
{
	struct world *world = arg;
	const AFSFid its = {fid->volume, fid->vnode, fid->unique};

	world->changes++;
	if (world->clients)
		fsd_promise_break(world->clients, &its, actor);
}

static bool is_world_promised(void *arg, const struct store_fid *fid)
{
	const AFSFid its = {fid->volume, fid->vnode, fid->unique};

	return fsd_promise_held(((struct world *)arg)->clients, &its);
}

static size_t next_world_promised(void *arg, size_t *cursor, struct store_fid *fids, size_t max)
{
	AFSFid *its = calloc(max, sizeof(*its));
	size_t n = fsd_promise_sweep(((struct world *)arg)->clients, cursor, its, max, fsd_now());

	for (size_t i = 0; i < n; i++)
		fids[i] = (struct store_fid){its[i].Volume, its[i].Vnode, its[i].Unique};
	free(its);
	return n;
}

static void start(struct world *world, bool all_files, unsigned flags)
{
	struct export_options options = {.name = "data",
					 .root = world->root,
					 .new_id = 0x20000001,
					 .all_files = all_files,
					 .hooks = {.changed = note_change,
						   .is_promised = is_world_promised,
						   .next_promised = next_world_promised,
						   .arg = world}};
	struct fsd_clients_options clients = {
		.volume = 0x20000001, .hosts_max = 100, .promises_max = 1000};
	struct fsd_service_options services = {0};
	char path[4200], message[FSD_MESSAGE_MAX];

	snprintf(path, sizeof(path), "%s/store", world->state);
	ck_assert_int_eq(export_layer_posix(world->root, flags, &world->layer), 0);
	ck_assert_int_eq(fids_open(path, &options.log, &options.fids), 0);
	options.layer = world->layer;
	ck_assert_int_eq(export_open(&options, &world->served), 0);
	world->export = (struct export *)world->served;
	world->export->usage = export_usage_start(world->layer);
	ck_assert_ptr_nonnull(world->export->usage);
	world->clients = fsd_clients_create(&clients);
	world->readers = fsd_readers_start(4, 8 << 20, NULL);
	ck_assert(world->clients && world->readers);
	services.store = world->served;
	services.exported = true;
	services.clients = world->clients;
	services.readers = world->readers;
	memset(&services.uuid, 0x42, sizeof(services.uuid));
	world->service = fsd_service_create(&services, message);
	ck_assert_ptr_nonnull(world->service);
}

static void stop(struct world *world)
{
	fsd_service_destroy(world->service);
	world->served->ops->close(world->served);
	fsd_readers_stop(world->readers);
	fsd_clients_destroy(world->clients);
	world->clients = NULL; /* note_change() while the volume is opened again */
	world->layer->ops->destroy(world->layer);
}

void world_open(struct world *world, char *root, bool all_files, unsigned flags)
{
	memset(world, 0, sizeof(*world));
	world->root = root;
	world->state = test_folder();
	start(world, all_files, flags);
}

void world_reopen(struct world *world, bool all_files)
{
	stop(world);
	start(world, all_files, 0);
}

void world_lose_state(struct world *world)
{
	stop(world);
	tree_remove(world->state);
	world->state = test_folder();
	start(world, false, 0);
}

void world_close(struct world *world)
{
	stop(world);
	tree_remove(world->root);
	tree_remove(world->state);
}

struct store_fid world_find(struct world *world, const char *path)
{
	struct export *export = world->export;
	struct store_fid fid = {export->id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	char *copy = strdup(path), *save = NULL;

	for (char *name = strtok_r(copy, "/", &save); name && fid.vnode;
	     name = strtok_r(NULL, "/", &save)) {
		struct export_object object;
		struct export_image *image;

		ck_assert_int_eq(export_get_object(export, &fid, NULL, &object), 0);
		ck_assert_int_eq(export_get_image(export, &object, NULL, &image), 0);
		if (afs_dir_lookup(image->bytes, image->length, name, &fid.vnode, &fid.unique) != 1)
			fid.vnode = fid.unique = 0;
		export_release_image(export, image);
	}
	free(copy);
	return fid;
}

AFSFid world_fid(struct world *world, const char *path)
{
	struct store_fid fid = world_find(world, path);

	return (AFSFid){fid.volume, fid.vnode, fid.unique};
}

/* -- services on loopback -- */

static void address_of(const char *text, uint16_t port, struct sockaddr_storage *sa,
		       socklen_t *length)
{
	struct sockaddr_in *four = (struct sockaddr_in *)sa;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)sa;

	memset(sa, 0, sizeof(*sa));
	if (strchr(text, ':')) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		ck_assert_int_eq(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
		*length = sizeof(*six);
	} else {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		ck_assert_int_eq(inet_pton(AF_INET, text, &four->sin_addr), 1);
		*length = sizeof(*four);
	}
}

static int32_t wire_handler(rxw_call *call, void *context)
{
	struct wire *wire = context;
	int32_t code = wire->handler(call, wire->context);
	uint64_t unread = 0;
	uint8_t rest[4096];
	ssize_t n;

	while (wire->measure && (n = rxw_call_read(call, rest, sizeof(rest))) > 0)
		unread += (uint64_t)n;
	pthread_mutex_lock(&wire->lock);
	wire->served++;
	wire->last_code = code;
	wire->unread = unread;
	pthread_cond_broadcast(&wire->ended);
	pthread_mutex_unlock(&wire->lock);
	return code;
}

bool wire_open(struct wire *wire, uint16_t service, rxw_handler_fn handler, void *context,
	       const char *listen)
{
	struct rxw_endpoint_options options = {.size = sizeof(options), .server = 1};
	struct rxw_service_options offer = {.size = sizeof(offer),
					    .id = service,
					    .name = "test",
					    .handler = wire_handler,
					    .context = wire};
	struct sockaddr_storage sa;
	struct rxw_config config;
	rxw_service *added;
	socklen_t length;
	int rc;

	memset(wire, 0, sizeof(*wire));
	wire->handler = handler;
	wire->context = context;
	wire->service = service;
	wire->to = "127.0.0.1";
	pthread_mutex_init(&wire->lock, NULL);
	pthread_cond_init(&wire->ended, NULL);
	rxw_config_init(&config, sizeof(config));
	config.listeners = 1;
	ck_assert_int_eq(rxw_engine_create(&config, &wire->engine), 0);
	address_of(listen, 0, &sa, &length);
	options.address = (struct sockaddr *)&sa;
	options.address_len = length;
	rc = rxw_endpoint_create(wire->engine, &options, &wire->server);
	if (rc == -RXW_ESYS && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
		ck_assert_int_eq(rxw_engine_destroy(wire->engine), 0);
		return false;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(rxw_service_add(wire->server, &offer, &added), 0);
	length = sizeof(sa);
	ck_assert_int_eq(rxw_endpoint_address(wire->server, &sa, &length), 0);
	/* At the same offset in both kinds of address. */
	wire->port = ntohs(((struct sockaddr_in *)&sa)->sin_port);
	return true;
}

static struct wire_client *find_client(struct wire *wire, unsigned number)
{
	for (int i = 0; i < WIRE_CLIENTS; i++)
		if (wire->clients[i].number == number)
			return &wire->clients[i];
	return NULL;
}

rxw_connection *wire_client(struct wire *wire, unsigned number)
{
	struct rxw_endpoint_options options = {.size = sizeof(options)};
	struct wire_client *client = find_client(wire, number);
	struct sockaddr_storage sa;
	socklen_t length;

	if (client)
		return client->connection;
	client = find_client(wire, 0);
	ck_assert_ptr_nonnull(client);
	client->number = number;
	address_of(strchr(wire->to, ':') ? "::" : "0.0.0.0", 0, &sa, &length);
	options.address = (struct sockaddr *)&sa;
	options.address_len = length;
	ck_assert_int_eq(rxw_endpoint_create(wire->engine, &options, &client->endpoint), 0);
	address_of(wire->to, wire->port, &sa, &length);
	ck_assert_int_eq(rxw_connection_create(client->endpoint, (struct sockaddr *)&sa, length,
					       wire->service, NULL, &client->connection),
			 0);
	return client->connection;
}

static void close_client(struct wire_client *client)
{
	if (!client || !client->number)
		return;
	rxw_connection_release(client->connection);
	ck_assert_int_eq(rxw_endpoint_destroy(client->endpoint), 0);
	client->number = 0;
}

void wire_forget(struct wire *wire, unsigned number)
{
	close_client(find_client(wire, number));
}

void wire_close(struct wire *wire)
{
	for (int i = 0; i < WIRE_CLIENTS; i++)
		close_client(&wire->clients[i]);
	ck_assert_int_eq(rxw_endpoint_destroy(wire->server), 0);
	ck_assert_int_eq(rxw_engine_destroy(wire->engine), 0);
	pthread_cond_destroy(&wire->ended);
	pthread_mutex_destroy(&wire->lock);
	free(wire->reply);
}

int32_t wire_call(struct wire *wire, unsigned number, const void *request, size_t length)
{
	size_t room = 8192;
	rxw_call *call;
	ssize_t n;

	ck_assert_int_eq(rxw_call_begin(wire_client(wire, number), NULL, &call), 0);
	/* It may be refused before all of it is written. */
	n = length ? rxw_call_write(call, request, length) : 0;
	ck_assert(n == (ssize_t)length || n == -RXW_ECALL);
	rxw_call_send_end(call);
	wire->reply_length = 0;
	do {
		wire->reply = realloc(wire->reply, wire->reply_length + room);
		ck_assert_ptr_nonnull(wire->reply);
		n = rxw_call_read(call, wire->reply + wire->reply_length, room);
		if (n > 0)
			wire->reply_length += (size_t)n;
	} while (n > 0);
	return rxw_call_end(call, 0, NULL);
}

int32_t wire_served(struct wire *wire, unsigned count)
{
	int32_t code;

	pthread_mutex_lock(&wire->lock);
	while (wire->served < count)
		pthread_cond_wait(&wire->ended, &wire->lock);
	code = wire->last_code;
	pthread_mutex_unlock(&wire->lock);
	return code;
}

/* -- streams in memory -- */

static ssize_t memory_write(struct fsd_stream *stream, const void *data, size_t length)
{
	struct memory_stream *m = (struct memory_stream *)stream;

	ck_assert_uint_eq(m->offered, 0);
	if (m->on_write)
		m->on_write(m->arg, m->reply_length, length);
	if (m->fail_at && m->reply_length + length > m->fail_at)
		return FSD_LOST;
	if (m->has_window && !m->offer) {
		size_t room = atomic_load(&m->window) - m->reply_length;

		if (!room)
			return -EAGAIN;
		length = length < room ? length : room;
	}
	if (m->discard) {
		m->reply_length += length;
		return (ssize_t)length;
	}
	if (m->reply_length + length > m->reply_capacity) {
		m->reply_capacity = (m->reply_length + length) * 2;
		m->reply = realloc(m->reply, m->reply_capacity);
		ck_assert_ptr_nonnull(m->reply);
	}
	memcpy(m->reply + m->reply_length, data, length);
	m->reply_length += length;
	return (ssize_t)length;
}

/* As the library provides it: slots of a packet's size. */
static ssize_t memory_reserve(struct fsd_stream *stream, size_t length, struct iovec *iov,
			      unsigned *count)
{
	struct memory_stream *m = (struct memory_stream *)stream;
	const size_t slot = 1416;
	unsigned n = 0;

	ck_assert_uint_eq(m->offered, 0);
	if (m->fail_at && m->reply_length >= m->fail_at)
		return FSD_LOST;
	if (m->has_window && atomic_load(&m->window) - m->reply_length < length)
		length = atomic_load(&m->window) - m->reply_length;
	if (!length)
		return -EAGAIN;
	if (length > 40 * slot)
		length = 40 * slot;
	if (length > *count * slot)
		length = *count * slot;
	m->offer = malloc(length);
	m->offered = length;
	for (size_t at = 0; at < length; at += slot, n++) {
		iov[n].iov_base = m->offer + at;
		iov[n].iov_len = length - at < slot ? length - at : slot;
	}
	*count = n;
	return (ssize_t)length;
}

static int memory_commit(struct fsd_stream *stream, size_t length)
{
	struct memory_stream *m = (struct memory_stream *)stream;
	uint8_t *offer = m->offer;

	ck_assert_uint_le(length, m->offered);
	m->offered = 0;
	ssize_t n = length ? memory_write(stream, offer, length) : 0;

	m->offer = NULL;
	free(offer);
	return n < 0 ? FSD_LOST : 0;
}

static int memory_watch(struct fsd_stream *stream, void (*visit)(void *arg), void *arg)
{
	struct memory_stream *m = (struct memory_stream *)stream;

	m->visit = visit;
	m->visited = arg;
	return 0;
}

static int memory_again(struct fsd_stream *stream)
{
	return ((struct memory_stream *)stream)->asks ? 0 : -1;
}

static const struct fsd_stream_ops memory_ops = {
	.watch = memory_watch,
	.again = memory_again,
	.write = memory_write,
	.reserve = memory_reserve,
	.commit = memory_commit,
};

void memory_stream_init(struct memory_stream *m)
{
	memset(m, 0, sizeof(*m));
	m->stream.ops = &memory_ops;
}

void memory_stream_free(struct memory_stream *m)
{
	free(m->reply);
	free(m->offer);
}

/* -- the slow disk -- */

/*
 * The pattern repeats after a prime, so that no shift by a power of two matches. Copying it is
 * cheap.
 */
#define PERIOD 65521

static uint8_t pattern[PERIOD];

static void make_pattern(void)
{
	for (uint32_t i = 0; i < PERIOD; i++)
		pattern[i] = (uint8_t)((i * 2654435761u) >> 13);
}

uint8_t slow_layer_byte(uint64_t offset)
{
	return pattern[offset % PERIOD];
}

static int slow_open(struct export_layer *layer, const char *path, struct export_file **file)
{
	(void)path;
	*file = malloc(sizeof(**file));
	(*file)->layer = layer;
	return 0;
}

static void slow_close(struct export_file *file)
{
	free(file);
}

static int slow_stat_file(struct export_file *file, struct export_stat *st)
{
	struct slow_layer *slow = (struct slow_layer *)file->layer;

	memset(st, 0, sizeof(*st));
	st->kind = STORE_FILE;
	st->inode = 7;
	st->links = 1;
	st->mode = 0644;
	pthread_mutex_lock(&slow->lock);
	st->size = slow->size;
	st->mtime_ns = st->ctime_ns = slow->mtime_ns;
	pthread_mutex_unlock(&slow->lock);
	return 0;
}

static ssize_t slow_fill(const struct iovec *iov, int count, uint64_t offset, uint64_t end)
{
	ssize_t total = 0;

	for (int i = 0; i < count; i++) {
		for (size_t j = 0; j < iov[i].iov_len && offset < end;) {
			size_t n = iov[i].iov_len - j;

			if (n > PERIOD - offset % PERIOD)
				n = PERIOD - offset % PERIOD;
			if (n > end - offset)
				n = (size_t)(end - offset);
			memcpy((uint8_t *)iov[i].iov_base + j, pattern + offset % PERIOD, n);
			j += n;
			offset += n;
			total += (ssize_t)n;
		}
	}
	return total;
}

static ssize_t slow_preadv(struct export_file *file, const struct iovec *iov, int count,
			   uint64_t offset, unsigned flags)
{
	struct slow_layer *slow = (struct slow_layer *)file->layer;
	uint64_t end = slow->real_size ? slow->real_size : slow->size;
	struct timespec ts = {.tv_nsec = (long)slow->read_ms * 1000000};
	ssize_t n;

	if (flags & STORE_CACHED) {
		if (offset >= slow->cached_below)
			return -EAGAIN;
		return slow_fill(iov, count, offset,
				 end < slow->cached_below ? end : slow->cached_below);
	}
	pthread_mutex_lock(&slow->lock);
	if (slow->reads < 4096) {
		slow->started[slow->reads] = monotonic_ns();
		slow->offset[slow->reads] = offset;
	}
	slow->reads++;
	if (slow->running++ == 0)
		slow->busy_since = monotonic_ns();
	if (slow->running > slow->most_running)
		slow->most_running = slow->running;
	pthread_mutex_unlock(&slow->lock);
	nanosleep(&ts, NULL);
	n = slow->fail && offset >= slow->fail_from ? -slow->fail
						    : slow_fill(iov, count, offset, end);
	pthread_mutex_lock(&slow->lock);
	slow->last_end = monotonic_ns();
	if (--slow->running == 0)
		slow->busy_ns += slow->last_end - slow->busy_since;
	pthread_mutex_unlock(&slow->lock);
	return n;
}

static int slow_stat_path(struct export_layer *layer, const char *path, struct export_stat *st)
{
	struct export_file file = {.layer = layer};

	if (*path)
		return slow_stat_file(&file, st);
	memset(st, 0, sizeof(*st));
	st->kind = STORE_DIR;
	st->inode = 2;
	st->mode = 0755;
	st->links = 2;
	st->mtime_ns = st->ctime_ns = 1000000000;
	return 0;
}

static int slow_list(struct export_layer *layer, const char *path, export_list_fn fn, void *arg)
{
	(void)layer;
	(void)path;
	return fn(arg, "slow", 4, STORE_FILE, 3);
}

static int slow_space(struct export_layer *layer, struct store_space *space)
{
	(void)layer;
	*space = (struct store_space){1 << 20, 1 << 19};
	return 0;
}

static void slow_destroy(struct export_layer *layer)
{
	free(layer);
}

static const struct export_layer_ops slow_ops = {
	.open = slow_open,
	.close = slow_close,
	.stat_path = slow_stat_path,
	.stat_file = slow_stat_file,
	.preadv = slow_preadv,
	.list = slow_list,
	.space = slow_space,
	.destroy = slow_destroy,
};

struct slow_layer *slow_layer_make(uint64_t size, unsigned read_ms)
{
	struct slow_layer *slow = calloc(1, sizeof(*slow));

	ck_assert_ptr_nonnull(slow);
	slow->base.ops = &slow_ops;
	slow->size = size;
	slow->read_ms = read_ms;
	slow->mtime_ns = 1000000000000;
	pthread_mutex_init(&slow->lock, NULL);
	make_pattern();
	return slow;
}

struct export_file *slow_layer_open(struct slow_layer *slow, struct export_stat *st)
{
	struct export_file *file;

	ck_assert_int_eq(slow_open(&slow->base, "slow", &file), 0);
	slow_stat_file(file, st);
	return file;
}

/* -- files of a tree -- */

struct file_source {
	struct fsd_source base;
	struct export_file *file;
	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t ended;
	bool over;
	int result;
};

static ssize_t file_read(struct fsd_source *source, const struct iovec *iov, int count,
			 uint64_t offset, bool cached)
{
	struct export_file *file = ((struct file_source *)source)->file;

	return file->layer->ops->preadv(file, iov, count, offset, cached ? STORE_CACHED : 0);
}

static const struct fsd_source_ops file_ops = {.read = file_read};

static void note_sent(struct fsd_source *source, int result)
{
	struct file_source *file = (struct file_source *)source;

	pthread_mutex_lock(&file->lock);
	ck_assert(!file->over);
	file->over = true;
	file->result = result;
	pthread_cond_signal(&file->ended);
	pthread_mutex_unlock(&file->lock);
}

int send_file(struct fsd_readers *readers, struct export_file *file, uint64_t offset,
	      uint64_t length, struct fsd_stream *stream)
{
	struct file_source source = {.base.ops = &file_ops, .file = file};

	pthread_mutex_init(&source.lock, NULL);
	pthread_cond_init(&source.ended, NULL);
	ck_assert_int_eq(fsd_flow_start(readers, &source.base, offset, length, stream, note_sent), 0);
	pthread_mutex_lock(&source.lock);
	while (!source.over)
		pthread_cond_wait(&source.ended, &source.lock);
	pthread_mutex_unlock(&source.lock);
	return source.result;
}

rxw_security *token_for_rxkad(rxw_keys *keys, const char *name, uint8_t level)
{
	const struct rxw_rxkad_print_options options = {
		.size = sizeof(options), .name = name, .lifetime_s = 3600};
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	rxw_security *security = NULL;

	ck_assert_int_eq(rxw_rxkad_print_token(keys, &options, &token), 0);
	ck_assert_int_eq(rxw_rxkad_client(&token, level, &security), 0);
	rxw_rxkad_token_free(&token);
	return security;
}

rxw_security *token_for_rxgk(rxw_keys *keys, const char *name)
{
	const struct rxw_token_options options = {.size = sizeof(options),
						  .source = RXW_TOKEN_LOCAL,
						  .index = RXW_RXGK_INDEX,
						  .level = RXW_LEVEL_CRYPT,
						  .keys = keys,
						  .lifetime_s = 3600,
						  .client = name};
	rxw_security *security;
	rxw_token *token;
	char why[256];

	ck_assert_msg(!rxw_token_create(&options, &token, why, sizeof(why)), "%s", why);
	security = rxw_security_ref(rxw_token_security(token));
	rxw_token_unref(token);
	return security;
}
