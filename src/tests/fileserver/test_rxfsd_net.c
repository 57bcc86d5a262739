/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole server over loopback, asked by a client with a callback service. */
#include "fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rxwire/rxwire.h>

#include "afs/dir.h"
#include "afs/opcodes.h"
#include "afs/vlentry.h"
#include "fileserver/server.h"

#define BIG ((size_t)24 << 20)

static struct fsd_server *server;
static struct fsd_settings settings;
static char *root, *state;
static rxw_engine *engine;

/* A client: a port, connections to both services, and what the server told it. */
struct client {
	rxw_endpoint *endpoint;
	rxw_connection *fs, *vl;
	pthread_mutex_t lock;
	pthread_cond_t told;
	unsigned identified, inits, breaks;
	struct afs_uuid server_uuid;
	struct afs_fid broken[256];
	int refuse; /* abort every callback */
};

static uint8_t pattern(size_t i)
{
	return (uint8_t)((i * 2654435761u) >> 11);
}

static void start_server(void)
{
	struct rxw_config config;
	char message[FSD_MESSAGE_MAX];

	rxw_config_init(&config, sizeof(config));
	config.workers_min = 2;
	config.workers_max = 64;
	if (fsd_server_start(&settings, &config, &server, message))
		ck_abort_msg("%s", message);
}

static void make_tree(void)
{
	uint8_t *big = malloc(BIG);

	root = tree_make();
	state = test_folder();
	for (size_t i = 0; i < BIG; i++)
		big[i] = pattern(i);
	tree_file(root, "big", big, BIG, 0644);
	free(big);
	tree_text(root, "hello.txt", "hello, world\n");
	tree_text(root, "empty", "");
	tree_dir(root, "sub", 0755);
	tree_text(root, "sub/inner", "inner");
	tree_link(root, "link", "sub/inner");
	tree_file(root, "secret", "s", 1, 0600);
	tree_tick();
}

static void setup(void)
{
	make_tree();
	settings = (struct fsd_settings){
		.export = root,
		.volume = "data",
		.listen = "127.0.0.1",
		.state = state,
		.readers = 4,
		.read_ahead = 8 << 20,
		.watches = 100,
		.promises = 1000,
		.drain_ms = 60000,
	};
	start_server();
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	tree_remove(root);
	tree_remove(state);
}

/* -- the client's own service -- */

static int32_t client_service(rxw_call *call, void *context)
{
	struct client *client = context;
	uint8_t request[2048], reply[1024];
	struct afs_interfaces me = {.count = 0};
	struct rxw_xdr in, out;
	uint32_t opcode, count;
	int32_t code = 0;
	ssize_t n = rxw_call_read(call, request, sizeof(request));

	rxw_xdr_reader(&in, request, n > 0 ? (size_t)n : 0);
	if (!rxw_xdr_get_u32(&in, &opcode))
		return RXW_RPC_DECODE;
	rxw_xdr_writer(&out, reply, sizeof(reply));
	pthread_mutex_lock(&client->lock);
	switch (opcode) {
	case AFS_CB_TELL_ME_ABOUT_YOURSELF:
		client->identified++;
		memset(&me.uuid, 7, sizeof(me.uuid));
		afs_interfaces_put(&out, &me);
		afs_caps_put(&out, AFS_CLIENT_CAP_ERRORTRANS);
		break;
	case AFS_CB_INIT_STATE3:
		client->inits++;
		afs_uuid_get(&in, &client->server_uuid);
		break;
	case AFS_CB_CALLBACK: {
		struct afs_fid fids[AFS_BULK_MAX];

		ck_assert(afs_fids_get(&in, fids, &count));
		for (uint32_t i = 0; i < count && client->breaks < 256; i++)
			client->broken[client->breaks++] = fids[i];
		break;
	}
	default:
		code = RXW_RPC_OPCODE;
	}
	if (client->refuse)
		code = 1;
	pthread_cond_broadcast(&client->told);
	pthread_mutex_unlock(&client->lock);
	if (!code && rxw_xdr_used(&out))
		rxw_call_write(call, reply, rxw_xdr_used(&out));
	return code;
}

static rxw_connection *connect_to(struct client *client, uint16_t port, uint16_t service)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	rxw_connection *connection;

	ck_assert_int_eq(rxw_connection_create(client->endpoint, (struct sockaddr *)&sa, sizeof(sa),
					       service, NULL, &connection),
			 0);
	return connection;
}

static void client_open(struct client *client, bool with_service)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&sa, .address_len = sizeof(sa)};
	struct rxw_service_options service = {.size = sizeof(service),
					      .id = AFS_SERVICE_CB,
					      .name = "cb",
					      .handler = client_service,
					      .context = client};
	rxw_service *added;

	memset(client, 0, sizeof(*client));
	pthread_mutex_init(&client->lock, NULL);
	pthread_cond_init(&client->told, NULL);
	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &client->endpoint), 0);
	if (with_service)
		ck_assert_int_eq(rxw_service_add(client->endpoint, &service, &added), 0);
	client->fs = connect_to(client, fsd_server_fs_port(server), AFS_SERVICE_FS);
	client->vl = connect_to(client, fsd_server_vl_port(server), AFS_SERVICE_VL);
}

static void client_close(struct client *client)
{
	rxw_connection_release(client->fs);
	rxw_connection_release(client->vl);
	ck_assert_int_eq(rxw_endpoint_destroy(client->endpoint), 0);
}

/* Wait until `*counter` is at least `want`; the deadline only turns a hang into a failure. */
static bool wait_for(struct client *client, const unsigned *counter, unsigned want)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30;
	pthread_mutex_lock(&client->lock);
	while (*counter < want && rc == 0)
		rc = pthread_cond_timedwait(&client->told, &client->lock, &until);
	bool reached = *counter >= want;

	pthread_mutex_unlock(&client->lock);
	return reached;
}

/* -- calls -- */

struct request {
	uint8_t bytes[2048];
	struct rxw_xdr x;
};

static struct rxw_xdr *begin(struct request *r, uint32_t opcode)
{
	rxw_xdr_writer(&r->x, r->bytes, sizeof(r->bytes));
	rxw_xdr_put_u32(&r->x, opcode);
	return &r->x;
}

/* Make a call; the reply goes to `reply` (of *length bytes, then what came). Returns its code. */
static int32_t rpc(rxw_connection *connection, struct request *r, void *reply, size_t *length)
{
	size_t got = 0, room = length ? *length : 0;
	rxw_call *call;
	ssize_t n;

	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, r->bytes, rxw_xdr_used(&r->x)),
			 (ssize_t)rxw_xdr_used(&r->x));
	rxw_call_send_end(call);
	while (got < room && (n = rxw_call_read(call, (uint8_t *)reply + got, room - got)) > 0)
		got += (size_t)n;
	if (length)
		*length = got;
	return rxw_call_end(call, 0, NULL);
}

static int32_t fetch_status(struct client *client, struct afs_fid fid, struct afs_status *status,
			    struct afs_callback *cb)
{
	uint8_t reply[256];
	size_t length = sizeof(reply);
	struct request r;
	struct rxw_xdr x;
	int32_t code;

	afs_fid_put(begin(&r, AFS_FS_FETCH_STATUS), &fid);
	code = rpc(client->fs, &r, reply, &length);
	if (code)
		return code;
	ck_assert_uint_eq(length, 30 * 4);
	rxw_xdr_reader(&x, reply, length);
	ck_assert(afs_status_get(&x, status) && afs_callback_get(&x, cb));
	return 0;
}

/* Fetch into memory: the data, and the status behind them. */
static int32_t fetch(struct client *client, struct afs_fid fid, uint64_t offset, uint64_t length,
		     uint8_t *data, size_t *got, struct afs_status *status)
{
	size_t total = (size_t)length + 200, n;
	uint8_t *reply = malloc(total);
	uint64_t count;
	struct request r;
	struct rxw_xdr x;
	int32_t code;

	afs_fid_put(begin(&r, AFS_FS_FETCH_DATA64), &fid);
	rxw_xdr_put_u64(&r.x, offset);
	rxw_xdr_put_u64(&r.x, length);
	n = total;
	code = rpc(client->fs, &r, reply, &n);
	if (!code) {
		rxw_xdr_reader(&x, reply, n);
		ck_assert(rxw_xdr_get_u64(&x, &count));
		ck_assert_uint_le(count, length);
		ck_assert_uint_eq(n, 8 + count + 120);
		memcpy(data, reply + 8, (size_t)count);
		*got = (size_t)count;
		rxw_xdr_reader(&x, reply + 8 + count, 120);
		ck_assert(afs_status_get(&x, status));
	}
	free(reply);
	return code;
}

static struct afs_fid fid_of(struct client *client, const char *path)
{
	struct afs_fid fid = {fsd_server_volume_id(server), 1, 1};
	char *copy = strdup(path), *save = NULL;

	for (char *name = strtok_r(copy, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		uint8_t *image = malloc(1 << 20);
		struct afs_status status;
		size_t length;

		ck_assert_int_eq(fetch(client, fid, 0, 1 << 20, image, &length, &status), 0);
		ck_assert_uint_eq(length, status.length);
		ck_assert_int_eq(afs_dir_check(image, length), 0);
		ck_assert_int_eq(afs_dir_lookup(image, length, name, &fid.vnode, &fid.unique), 1);
		free(image);
	}
	free(copy);
	return fid;
}

/* -- the tests -- */

START_TEST(mount_sequence)
{
	uint8_t reply[2048];
	size_t length;
	struct client client;
	struct request r;
	struct rxw_xdr x;
	struct afs_vl_entry entry;
	struct afs_vl_addr_query query = {.mask = AFS_VL_BY_UUID};
	struct afs_vl_addrs addrs;
	struct afs_status status;
	struct afs_callback cb;
	uint32_t caps;

	setup();
	client_open(&client, true);
	begin(&r, 65537); /* a location service's GetCapabilities */
	ck_assert_int_eq(rpc(client.vl, &r, NULL, NULL), RXW_RPC_OPCODE);
	rxw_xdr_put_string(begin(&r, AFS_VL_GET_ENTRY_BY_NAME_U), "root.cell", UINT32_MAX);
	length = sizeof(reply);
	ck_assert_int_eq(rpc(client.vl, &r, reply, &length), 0);
	ck_assert_uint_eq(length, AFS_VL_ENTRY_U_BYTES);
	rxw_xdr_reader(&x, reply, length);
	ck_assert(afs_vl_entry_u_get(&x, &entry));
	ck_assert_uint_eq(entry.sites, 1);
	ck_assert_uint_eq(entry.id[0], fsd_server_volume_id(server));

	query.uuid = entry.site[0].uuid;
	afs_vl_addr_query_put(begin(&r, AFS_VL_GET_ADDRS_U), &query);
	length = sizeof(reply);
	ck_assert_int_eq(rpc(client.vl, &r, reply, &length), 0);
	rxw_xdr_reader(&x, reply, length);
	ck_assert(afs_vl_addrs_get(&x, &addrs));
	ck_assert_uint_eq(addrs.count, 1);
	ck_assert_uint_eq(addrs.address[0], INADDR_LOOPBACK);
	ck_assert_uint_eq(addrs.unique, entry.site[0].unique);

	begin(&r, AFS_FS_GET_CAPABILITIES);
	length = sizeof(reply);
	ck_assert_int_eq(rpc(client.fs, &r, reply, &length), 0);
	rxw_xdr_reader(&x, reply, length);
	ck_assert(afs_caps_get(&x, &caps));
	ck_assert_uint_eq(caps, 7);
	ck_assert(wait_for(&client, &client.inits, 1));
	ck_assert_uint_eq(client.identified, 1);
	ck_assert(afs_uuid_equal(&client.server_uuid, &entry.site[0].uuid));

	struct afs_fid rootfid = {entry.id[0], 1, 1};

	ck_assert_int_eq(fetch_status(&client, rootfid, &status, &cb), 0);
	ck_assert_uint_eq(status.type, AFS_TYPE_DIR);
	client_close(&client);
	teardown();
}
END_TEST

START_TEST(whole_file_intact)
{
	uint8_t *data = malloc(BIG + 200);
	struct client client;
	struct afs_status status;
	struct afs_fid fid;
	size_t got;

	setup();
	client_open(&client, false);
	fid = fid_of(&client, "big");
	ck_assert_int_eq(fetch(&client, fid, 0, BIG + 100, data, &got, &status), 0);
	ck_assert_uint_eq(got, BIG);
	ck_assert_uint_eq(status.length, BIG);
	for (size_t i = 0; i < BIG; i++)
		if (data[i] != pattern(i))
			ck_abort_msg("byte %zu differs", i);
	/* pieces, also at and beyond the end */
	for (uint64_t offset = 1; offset < BIG + 1000000; offset = offset * 5 + 77777) {
		ck_assert_int_eq(fetch(&client, fid, offset, 131072, data, &got, &status), 0);
		ck_assert_uint_eq(got, offset >= BIG	       ? 0
				       : BIG - offset < 131072 ? BIG - offset
							       : 131072);
		for (size_t i = 0; i < got; i++)
			ck_assert_uint_eq(data[i], pattern((size_t)offset + i));
	}
	ck_assert_int_eq(fetch(&client, fid_of(&client, "empty"), 0, 100, data, &got, &status), 0);
	ck_assert_uint_eq(got, 0);
	ck_assert_int_eq(fetch(&client, fid_of(&client, "link"), 0, 100, data, &got, &status), 0);
	ck_assert_uint_eq(got, 9);
	ck_assert_mem_eq(data, "sub/inner", 9);
	client_close(&client);
	teardown();
	free(data);
}
END_TEST

START_TEST(change_is_told)
{
	struct client client;
	struct afs_status status;
	struct afs_callback cb;
	struct afs_fid fid;
	uint64_t version;

	setup();
	client_open(&client, true);
	fid = fid_of(&client, "hello.txt");
	ck_assert(wait_for(&client, &client.inits, 1));
	/* allowed from the moment on that the server has seen our answer */
	do {
		ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), 0);
	} while (cb.expires == 0);
	ck_assert_uint_ge(cb.expires, 60);
	ck_assert_uint_eq(cb.type, AFS_CB_SHARED);
	version = status.data_version;
	tree_text(root, "hello.txt", "hello, other world\n");
	ck_assert(wait_for(&client, &client.breaks, 1));
	ck_assert_mem_eq(&client.broken[0], &fid, sizeof(fid));
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), 0);
	ck_assert_uint_gt(status.data_version, version);
	ck_assert_uint_gt(cb.expires, 0);
	/* what was given up is not told */
	struct request r;

	begin(&r, AFS_FS_GIVE_UP_ALL_CALLBACKS);
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), 0);
	tree_text(root, "hello.txt", "hello, third world\n");
	ck_assert_int_eq(fetch_status(&client, fid_of(&client, "sub"), &status, &cb), 0);
	tree_tick();
	tree_text(root, "sub/new", "");
	ck_assert(wait_for(&client, &client.breaks, 2));
	for (unsigned i = 1; i < client.breaks; i++)
		ck_assert_uint_ne(client.broken[i].vnode, fid.vnode);
	client_close(&client);
	teardown();
}
END_TEST

START_TEST(client_without_callbacks)
{
	struct client client;
	struct afs_status status;
	struct afs_callback cb;

	setup();
	client_open(&client, false);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(fetch_status(&client,
					      (struct afs_fid){fsd_server_volume_id(server), 1, 1},
					      &status, &cb),
				 0);
		ck_assert_uint_eq(cb.expires, 0);
	}
	client_close(&client);
	teardown();
}
END_TEST

START_TEST(errors_on_the_wire)
{
	struct afs_fid fid = {0, 1, 1};
	struct client client;
	struct afs_status status;
	struct afs_callback cb;
	struct request r;

	setup();
	client_open(&client, false);
	begin(&r, AFS_FS_GET_CAPABILITIES);
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), 0);
	begin(&r, 9999);
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), RXW_RPC_OPCODE);
	rxw_xdr_writer(&r.x, r.bytes, sizeof(r.bytes));
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), RXW_RPC_DECODE);
	begin(&r, AFS_FS_FETCH_STATUS);
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), rxw_code_from_errno(EINVAL));
	fid.volume = 77;
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), AFS_VNOVOL);
	fid.volume = fsd_server_volume_id(server);
	fid.vnode = 4444;
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), AFS_VNOVNODE);
	fid = fid_of(&client, "secret");
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), rxw_code_from_errno(EACCES));
	/* a store is refused before its data have come */
	afs_fid_put(begin(&r, AFS_FS_STORE_DATA64), &fid);
	for (int i = 0; i < 6 + 6; i++)
		rxw_xdr_put_u32(&r.x, 0x10000);
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), rxw_code_from_errno(EROFS));
	client_close(&client);
	teardown();
}
END_TEST

/* One byte, without a change of the length. */
static void overwrite(const char *path, off_t offset)
{
	int fd = open(path, O_WRONLY);

	ck_assert_int_eq(pwrite(fd, "!", 1, offset), 1);
	close(fd);
}

/* The file is changed while it is on its way: the call must fail, whatever has come of it. */
START_TEST(change_during_fetch_aborts)
{
	struct client client;
	uint8_t *piece = malloc(65536);
	struct request r;
	struct afs_fid fid;
	rxw_call *call;
	size_t got = 0;
	ssize_t n;

	setup();
	client_open(&client, false);
	fid = fid_of(&client, "big");
	for (int round = 0; round < 3; round++) {
		afs_fid_put(begin(&r, AFS_FS_FETCH_DATA64), &fid);
		rxw_xdr_put_u64(&r.x, 0);
		rxw_xdr_put_u64(&r.x, BIG);
		ck_assert_int_eq(rxw_call_begin(client.fs, NULL, &call), 0);
		ck_assert_int_gt(rxw_call_write(call, r.bytes, rxw_xdr_used(&r.x)), 0);
		rxw_call_send_end(call);
		got = 0;
		while (got < 65536 && (n = rxw_call_read(call, piece, 65536 - got)) > 0)
			got += (size_t)n;
		ck_assert_uint_eq(got, 65536);
		/*
		 * 12 MiB and more do not fit in the queues between the two: it is being read still
		 */
		if (round == 0)
			ck_assert_int_eq(truncate(tree_path(root, "big"), BIG / 2), 0);
		else if (round == 1)
			overwrite(tree_path(root, "big"), BIG / 2 - 1);
		else
			ck_assert_int_eq(unlink(tree_path(root, "big")), 0);
		while ((n = rxw_call_read(call, piece, 65536)) > 0)
			got += (size_t)n;
		ck_assert_int_ne(rxw_call_end(call, 0, NULL), 0);
	}
	client_close(&client);
	teardown();
	free(piece);
}
END_TEST

struct load {
	pthread_t thread;
	struct client *client;
	struct afs_fid fid;
	uint64_t offset;
	bool ok;
};

static void *load_main(void *arg)
{
	struct load *load = arg;
	uint8_t *data = malloc(2 << 20);
	struct afs_status status;
	size_t got = 0;

	load->ok = true;
	for (int i = 0; i < 3 && load->ok; i++) {
		load->ok = fetch(load->client, load->fid, load->offset, 1 << 20, data, &got,
				 &status) == 0 &&
			   got == 1 << 20;
		for (size_t j = 0; load->ok && j < got; j++)
			load->ok = data[j] == pattern((size_t)load->offset + j);
	}
	free(data);
	return NULL;
}

START_TEST(many_at_once)
{
	struct client clients[6];
	struct load loads[24];
	struct afs_fid fid;

	setup();
	for (int i = 0; i < 6; i++)
		client_open(&clients[i], i & 1);
	fid = fid_of(&clients[0], "big");
	for (int i = 0; i < 24; i++) {
		loads[i] = (struct load){
			.client = &clients[i % 6], .fid = fid, .offset = (uint64_t)i * 950000};
		ck_assert_int_eq(pthread_create(&loads[i].thread, NULL, load_main, &loads[i]), 0);
	}
	for (int i = 0; i < 24; i++) {
		pthread_join(loads[i].thread, NULL);
		ck_assert_msg(loads[i].ok, "load %d", i);
	}
	for (int i = 0; i < 6; i++)
		client_close(&clients[i]);
	teardown();
}
END_TEST

START_TEST(restart_keeps_identity)
{
	struct client client;
	struct afs_fid before, after;
	uint32_t volume;
	struct afs_uuid uuid;

	setup();
	client_open(&client, true);
	before = fid_of(&client, "sub/inner");
	volume = fsd_server_volume_id(server);
	ck_assert(wait_for(&client, &client.inits, 1));
	uuid = client.server_uuid;
	client_close(&client);
	ck_assert_int_eq(fsd_server_stop(server), 0);

	start_server();
	ck_assert_uint_eq(fsd_server_volume_id(server), volume);
	client_open(&client, true);
	after = fid_of(&client, "sub/inner");
	ck_assert_mem_eq(&before, &after, sizeof(after));
	ck_assert(wait_for(&client, &client.inits, 1));
	ck_assert(afs_uuid_equal(&uuid, &client.server_uuid));
	client_close(&client);
	teardown();
}
END_TEST

static void *stop_main(void *arg)
{
	int *rc = arg;

	*rc = fsd_server_stop(server);
	return NULL;
}

/* A call in progress when the server is told to stop goes on to its end; new ones are refused. */
START_TEST(drain_lets_calls_end)
{
	struct client client;
	uint8_t *data = malloc(BIG + 200);
	struct request r, r2;
	struct afs_fid fid;
	pthread_t stopper;
	rxw_call *call;
	size_t got = 0;
	int rc = -1;
	int32_t code;
	ssize_t n;

	setup();
	client_open(&client, false);
	fid = fid_of(&client, "big");
	afs_fid_put(begin(&r, AFS_FS_FETCH_DATA64), &fid);
	rxw_xdr_put_u64(&r.x, 0);
	rxw_xdr_put_u64(&r.x, BIG);
	ck_assert_int_eq(rxw_call_begin(client.fs, NULL, &call), 0);
	ck_assert_int_gt(rxw_call_write(call, r.bytes, rxw_xdr_used(&r.x)), 0);
	rxw_call_send_end(call);
	while (got < 65536 && (n = rxw_call_read(call, data + got, 65536 - got)) > 0)
		got += (size_t)n;
	ck_assert_int_eq(pthread_create(&stopper, NULL, stop_main, &rc), 0);
	do {
		begin(&r2, AFS_FS_GET_TIME);
		code = rpc(client.fs, &r2, NULL, NULL);
		ck_assert(code == 0 || code == RXW_RESTARTING);
	} while (code == 0);
	while (got < BIG + 200 && (n = rxw_call_read(call, data + got, BIG + 200 - got)) > 0)
		got += (size_t)n;
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	ck_assert_uint_eq(got, 8 + BIG + 120);
	for (size_t i = 0; i < BIG; i++)
		if (data[8 + i] != pattern(i))
			ck_abort_msg("byte %zu differs", i);
	client_close(&client);
	pthread_join(stopper, NULL);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	tree_remove(root);
	tree_remove(state);
	free(data);
}
END_TEST

START_TEST(bad_settings_are_named)
{
	struct rxw_config config;
	char message[FSD_MESSAGE_MAX];
	struct fsd_settings bad;
	struct fsd_server *none;

	setup();
	rxw_config_init(&config, sizeof(config));
	/* the state directory is in use */
	ck_assert_int_eq(fsd_server_start(&settings, &config, &none, message), -1);
	ck_assert_ptr_nonnull(strstr(message, state));
	ck_assert_ptr_nonnull(strstr(message, "--state"));
	bad = settings;
	bad.state = tree_path(root, "inside");
	ck_assert_int_eq(fsd_server_start(&bad, &config, &none, message), -1);
	ck_assert_ptr_nonnull(strstr(message, "inside the export"));
	bad = settings;
	bad.export = "/nonexistent/place";
	ck_assert_int_eq(fsd_server_start(&bad, &config, &none, message), -1);
	ck_assert_ptr_nonnull(strstr(message, "/nonexistent/place"));
	bad = settings;
	bad.volume = "1234";
	ck_assert_int_eq(fsd_server_start(&bad, &config, &none, message), -1);
	ck_assert_ptr_nonnull(strstr(message, "1234"));

	char *other = test_folder();

	bad = settings;
	bad.state = other;
	bad.port = fsd_server_fs_port(server);
	ck_assert_int_eq(fsd_server_start(&bad, &config, &none, message), -1);
	ck_assert_ptr_nonnull(strstr(message, "in use"));
	ck_assert_ptr_nonnull(strstr(message, "--port"));
	tree_remove(other);
	teardown();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		mount_sequence,	      whole_file_intact,
		change_is_told,	      client_without_callbacks,
		errors_on_the_wire,   change_during_fetch_aborts,
		many_at_once,	      restart_keeps_identity,
		drain_lets_calls_end, bad_settings_are_named,
	};
	Suite *suite = suite_create("rxfsd");
	TCase *tcase = tcase_create("rxfsd");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
