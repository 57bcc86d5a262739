/* SPDX-License-Identifier: BSD-2-Clause */
/* A client from its options to its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include <rxafs/admin.h>
#include <rxafs/daemon.h>

#include "client/fs/leftover.h"
#include "client/fs/operate.h"
#include "client/fs/serverlock.h"
#include "common/clock.h"
#include "common/failure.h"
#include "common/sized.h"

/* How long servers may take to answer when promises are given back. */
#define FAREWELL_MS 200u
/* Whether names that were given at the start exist is looked at for so long. */
#define CHECK_NS (3 * (uint64_t)NS_PER_S)

static void warn_of_cells(void *arg, const char *text)
{
	fs_log(arg, LOG_WARNING, "%s", text);
}

static int open_cells(rxafs_client *client, const struct rxafs_options *options, char *text,
		      size_t size)
{
	struct cl_cells_options o = {.home = options->cell,
				     .given = options->cells,
				     .given_count = options->cell_count,
				     .warn = warn_of_cells,
				     .warn_arg = client};

	if (options->config_dir) {
		client->config_dir = strdup(options->config_dir);
		if (!client->config_dir)
			return -ENOMEM;
		o.folders = (const char *const *)&client->config_dir;
		o.folder_count = 1;
	}
	return cl_cells_create(&o, &client->cells, text, size);
}

int rxafs_reload_cells(rxafs_client *client)
{
	struct cl_cells_options o = {
		.folders = client->config_dir ? (const char *const *)&client->config_dir : NULL,
		.folder_count = client->config_dir != NULL,
		.warn = warn_of_cells,
		.warn_arg = client};

	return cl_cells_reload(client->cells, &o);
}

static int parse_pairs(const struct rxafs_options *options, struct cl_pair pairs[CL_PAIRS],
		       char *text, size_t size)
{
	if (options->path_count > CL_PAIRS)
		return fail_with(-EINVAL, text, size, "more than %d paths are named", CL_PAIRS);
	for (size_t i = 0; i < options->path_count; i++) {
		const char *path = options->paths[i];
		char why[128];
		int result = cl_pair_parse(path, &pairs[i], why, sizeof why);

		if (result)
			return fail_with(result, text, size, "path \"%.50s\": %s", path, why);
	}
	return 0;
}

static int open_net(rxafs_client *client, const struct rxafs_options *options, char *text,
		    size_t size)
{
	struct cl_pair pairs[CL_PAIRS];
	struct cl_net_options o = {.pairs = pairs,
				   .pair_count = (unsigned)options->path_count,
				   .cells = client->cells,
				   .ops = &fs_net_ops,
				   .arg = client,
				   .config = options->transport,
				   .soft_ms = (unsigned)options->limit_ms,
				   .one_round = options->one_round};
	int result;

	if (options->transport)
		o.dead_ms = options->transport->dead_ms;
	result = parse_pairs(options, pairs, text, size);
	return result ? result : cl_net_create(&o, &client->net, text, size);
}

static int open_caches(rxafs_client *client, const struct rxafs_options *options, char *text,
		       size_t size)
{
	struct cl_cache_limits limits = {.objects = options->objects, .drop = fs_drop_vnode};
	struct cl_data_options o = {.memory_most = options->memory_bytes,
				    .folder = options->cache_dir,
				    .disk_most = options->cache_bytes};
	int result;

	client->cache = cl_cache_create(&limits);
	client->executor = fs_executor_create();
	client->keeper = fs_lock_keeper_create();
	if (!client->cache || !client->executor || !client->keeper)
		return -ENOMEM;
	result = cl_data_create(&o, &fs_data_ops, &client->data, text, size);
	return result || !options->cache_dir ? result
					     : fs_open_leftovers(client, options->cache_dir);
}

static int copy_sysnames(rxafs_client *client, const struct rxafs_options *options)
{
	/* CM's name and kAFS's (K-023). */
#if defined __aarch64__
	static const char *const usual[] = {"arm64_linux26", "aarch64_linux26"};
#elif defined __x86_64__
	static const char *const usual[] = {"amd64_linux26"};
#else
	static const char *const usual[] = {"linux26"};
#endif
	const char *const *names = options->sysname_count ? options->sysnames : usual;
	size_t count =
		options->sysname_count ? options->sysname_count : sizeof usual / sizeof usual[0];

	client->sysnames = calloc(count, sizeof *client->sysnames);
	if (!client->sysnames)
		return -ENOMEM;
	for (; client->sysname_count < count; client->sysname_count++) {
		char *name = strdup(names[client->sysname_count]);

		if (!name)
			return -ENOMEM;
		client->sysnames[client->sysname_count] = name;
	}
	return 0;
}

/* A root volume is a mount point of the home cell at the place of the dynamic root. */
static int make_root(rxafs_client *client, const struct rxafs_options *options, char *text,
		     size_t size)
{
	static const struct rxafs_fid fid = {0, 0, 1, 1};
	char mount[CL_CELL_NAME + 80];

	if (!options->root_volume) {
		client->root = fs_get_special(client, NULL, FS_ROOT, &fid, RXAFS_DIRECTORY, NULL);
	} else if (!cl_cells_home(client->cells)) {
		snprintf(text, size,
			 "a root volume needs a home cell: name one with --cell or in ThisCell");
		return -EDESTADDRREQ;
	} else {
		snprintf(mount, sizeof mount, "%c%s:%s.", client->read_write ? '%' : '#',
			 cl_cell_name(cl_cells_home(client->cells)), options->root_volume);
		client->root = fs_get_special(client, NULL, FS_CELL, &fid, RXAFS_DIRECTORY, mount);
	}
	return client->root ? 0 : -ENOMEM;
}

static int open_modules(rxafs_client *client, const struct rxafs_options *options, char *text,
			size_t size)
{
	int result = fs_open_tables(client);

	if (!result)
		result = copy_sysnames(client, options);
	if (!result)
		result = open_cells(client, options, text, size);
	if (!result)
		result = open_caches(client, options, text, size);
	if (!result)
		result = open_net(client, options, text, size);
	return result;
}

static void free_client(rxafs_client *client, unsigned limit_ms)
{
	pthread_rwlock_wrlock(&client->upcalls);
	client->deaf = true;
	pthread_rwlock_unlock(&client->upcalls);
	fs_executor_free(client->executor);
	fs_lock_keeper_free(client->keeper);
	if (client->data) {
		cl_data_give_up(client->data);
		cl_data_stop(client->data);
	}
	fs_close_tables(client);
	if (client->cache)
		cl_cache_destroy(client->cache);
	if (client->data)
		cl_data_free(client->data);
	if (client->net)
		cl_net_close(client->net, limit_ms);
	if (client->cells)
		cl_cells_free(client->cells);
	for (size_t i = 0; i < client->sysname_count; i++)
		free(client->sysnames[i]);
	free(client->sysnames);
	free(client->config_dir);
	free(client->root_volume);
	fs_close_leftovers(client);
	pthread_cond_destroy(&client->asked);
	pthread_rwlock_destroy(&client->upcalls);
	pthread_mutex_destroy(&client->lock);
	free(client);
}

static rxafs_client *make_client(const struct rxafs_options *options)
{
	rxafs_client *client = calloc(1, sizeof *client);

	if (!client)
		return NULL;
	if (options->hooks)
		client->hooks = *options->hooks;
	client->log = options->log;
	client->log_arg = options->log_arg;
	client->ignore_owner = options->ignore_owner;
	client->read_write = options->read_write;
	client->strict_locks = options->strict_locks;
	client->limit_ns = (options->limit_ms ? options->limit_ms : 60000) * NS_PER_MS;
	client->started = time(NULL);
	if (getentropy(client->key, sizeof client->key))
		client->key[0] = (uint64_t)(uintptr_t)client;
	pthread_mutex_init(&client->lock, NULL);
	pthread_rwlock_init(&client->upcalls, NULL);
	monotonic_cond_init(&client->asked);
	return client;
}

static int fail_open(struct rxafs_failure *failure, int result, const char *text)
{
	if (failure) {
		*failure = (struct rxafs_failure){.number = -result};
		snprintf(failure->text, sizeof failure->text, "%s",
			 text[0] ? text : strerror(-result));
	}
	return result;
}

/* What a client that was told a wrong name would show as a missing directory, when somebody comes there. */
static void check_names_of_start(void *arg)
{
	rxafs_client *client = arg;
	struct cl_cell *home = cl_cells_home(client->cells);
	struct cl_caller caller = {.deadline = cl_net_now() + CHECK_NS};
	struct cl_cell_server servers[CL_CELL_SERVERS];
	struct rxafs_failure failure = {0};
	struct cl_volume *volume;
	int result = cl_cell_servers(home, caller.deadline, servers);

	if (result <= 0) {
		fs_log(client, LOG_WARNING,
		       "home cell %s: neither CellServDB nor DNS has location servers: correct the name, or give them "
		       "with --servers",
		       cl_cell_name(home));
		return;
	}
	if (!client->root_volume)
		return;
	result = cl_volume_find(client->net, home, client->root_volume, CL_WANT_RO, &caller,
				&volume, &failure);
	if (!result)
		cl_volume_unref(volume);
	else if (result == -ENODEV)
		fs_log(client, LOG_WARNING,
		       "root volume %s of cell %s does not exist: correct --root-volume",
		       client->root_volume, cl_cell_name(home));
}

int rxafs_open_client(const struct rxafs_options *given, rxafs_client **out,
		      struct rxafs_failure *failure)
{
	struct rxafs_options options = {.size = sizeof options};
	rxafs_client *client;
	char text[200] = "";
	int result;

	if (given && !sized_read(&options, sizeof options, given))
		return fail_open(failure, -EINVAL, "the size of the options is wrong");
	client = make_client(&options);
	if (!client)
		return fail_open(failure, -ENOMEM, text);
	result = open_modules(client, &options, text, sizeof text);
	if (!result)
		result = make_root(client, &options, text, sizeof text);
	if (!result && options.root_volume && !(client->root_volume = strdup(options.root_volume)))
		result = -ENOMEM;
	if (result) {
		free_client(client, 0);
		return fail_open(failure, result, text);
	}
	*out = client;
	/* Without a thread there is no warning. */
	fs_remove_leftovers(client, NULL);
	if (client->log && cl_cells_home(client->cells))
		fs_execute(client->executor, 0, 0, check_names_of_start, client);
	return 0;
}

int rxafs_close_client(rxafs_client *client, uint64_t limit_ms)
{
	struct cl_data_wait wait = {.deadline = cl_net_now() + limit_ms * NS_PER_MS};
	int result;

	if (!client)
		return 0;
	atomic_store(&client->ending, true);
	result = cl_data_flush_all(client->data, 0, 0, true, &wait);
	fs_lock_keeper_end(client->keeper);
	/* What still waits for servers ends now. */
	cl_net_cancel_all(client->net);
	free_client(client, limit_ms < FAREWELL_MS ? (unsigned)limit_ms : FAREWELL_MS);
	return result;
}

void rxafs_abandon(rxafs_client *client)
{
	atomic_store(&client->ending, true);
	cl_net_cancel_all(client->net);
}

rxafs_object *rxafs_root(rxafs_client *client)
{
	return rxafs_hold(client->root);
}

struct rxafs_awaited rxafs_awaited_of(rxafs_object *object)
{
	return fs_awaited(object);
}

static struct rxafs_awaited awaited_by(rxafs_object *about, struct rxafs_request *request)
{
	struct rxafs_awaited *awaited = &request->awaited;

	if (!awaited->known)
		*awaited = about ? fs_awaited(about) : (struct rxafs_awaited){.known = true};
	return *awaited;
}

int rxafs_run(rxafs_client *client, rxafs_object *about, struct rxafs_request *request,
	      void (*run)(void *arg), void *arg)
{
	struct rxafs_awaited awaited = awaited_by(about, request);

	/* From here on the request may be over. */
	return fs_execute(client->executor, awaited.cell, awaited.server, run, arg);
}

int rxafs_run_here(rxafs_client *client, rxafs_object *about, struct rxafs_request *request,
		   void (*run)(void *arg), void *arg)
{
	struct rxafs_awaited awaited = awaited_by(about, request);

	return fs_execute_here(client->executor, awaited.cell, awaited.server, run, arg);
}

uint64_t rxafs_silence(rxafs_client *client, const struct rxafs_awaited *awaited)
{
	return cl_net_silence(client->net, awaited->cell, awaited->server);
}

static int put_token(rxafs_user *user, const char *cell, rxw_security *security, int64_t expires,
		     bool same)
{
	struct cl_cell *of;
	int result = cl_cells_find(user->client->cells, cell, 0, &of);

	if (!result)
		result = cl_identity_set_token(user->identity, of, security, expires, same);
	if (!result && security)
		fs_remove_leftovers(user->client, user);
	return result;
}

int rxafs_set_token(rxafs_user *user, const char *cell, rxw_security *security, int64_t expires)
{
	return put_token(user, cell, security, expires, false);
}

int rxafs_renew_token(rxafs_user *user, const char *cell, rxw_security *security, int64_t expires)
{
	return put_token(user, cell, security, expires, true);
}
