/* SPDX-License-Identifier: BSD-2-Clause */
/* The file server: its parts are created, connected and destroyed here. */
#include "fileserver/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <rxwire/rxwire.h>

#include "afs/afs-common.h"
#include "afs/numbers.h"
#include "afs/volname.h"
#include "common/clock.h"
#include "common/counters.h"
#include "fileserver/acl/acl.h"
#include "fileserver/audit/audit.h"
#include "fileserver/base/base.h"
#include "fileserver/callbacks/callbacks.h"
#include "fileserver/callbacks/memory.h"
#include "fileserver/control/control.h"
#include "fileserver/export/export.h"
#include "fileserver/io/io.h"
#include "fileserver/sandbox.h"
#include "fileserver/service/service.h"
#include "fileserver/storage.h"
#include "fileserver/volume/volume.h"
#include "protection/protection.h"
#include "tools/common/address.h"

#define HOSTS_MAX 16384
#define BREAK_MS  5000 /* for clients to answer before an administrator's change is complete */
#define STOP_BREAKS_MS 3000u /* of a stop, for breaking promises */
#define STOP_BREAK_MS  500u  /* for clients to answer some of these breaks */
#define TRIM_TICKS     10u   /* seconds between looks at memory that was freed */

struct fsd_server {
	struct fsd_settings settings;
	char export[PATH_MAX]; /* what is served: the directory, or that of the store */
	struct fsd_state state;
	struct store *served; /* the store, or the exported directory as one */
	/* Only of an exported directory: layer, store, volume, watch, usage. */
	struct fsd_layer *layer;
	bool own_layer;
	struct fsd_store *store;
	struct fsd_callbacks *callbacks;
	struct fsd_remember *remember;
	pthread_mutex_t lock; /* covers `callbacks` for fsd_wake(), `service` for explain_limit() */
	struct fsd_volume *volume;
	struct fsd_clients *clients;
	struct fsd_readers *readers;
	struct fsd_watch *watch;
	struct fsd_usage *usage;
	struct fsd_guard *guard;
	struct fsd_timeline *timeline;
	struct fsd_audit *audit;
	rxw_rpcstats *calls;
	uint32_t advertise[FSD_ADDRS_MAX];
	unsigned advertise_count;
	struct fsd_service *service;
	rxw_engine *engine;
	rxw_endpoint *fs, *vl, *vol, *pt; /* pt: NULL without `prot` */
	struct prot *prot;		  /* NULL: users are not known */
	struct tools_metrics *metrics;
	struct tools_trace *trace;
	struct rxw_rpc_observer observer; /* of the calls on all endpoints */
	struct fsd_key_loads key_loads;
	struct fsd_control *control;
	struct fsd_limit *limit; /* on stopping; NULL: there is none */
	bool drained, aborted;
	/* Of the thread that calls fsd_server_tick(): */
	struct fsd_trim trim;
	unsigned ticks;
};

static void on_change(void *arg, const AFSFid *fid, const void *actor)
{
	struct fsd_server *server = arg;

	if (server->clients)
		fsd_promise_break(server->clients, fid, actor);
}

/* A store's clients may write: their addresses are on the disk before they hold promises. */
static int on_keep(void *arg, const struct sockaddr_storage *peer,
		   const struct sockaddr_storage *local)
{
	struct fsd_server *server = arg;

	return fsd_remember_add(server->remember, peer, local, !server->volume);
}

static void on_drop(void *arg, int record)
{
	fsd_remember_drop(((struct fsd_server *)arg)->remember, record);
}

static void recall(void *arg, const struct sockaddr_storage *peer,
		   const struct sockaddr_storage *local, int record)
{
	fsd_clients_recall(((struct fsd_server *)arg)->clients, peer, local, record, fsd_now());
}

/* The promises of a store, as the last server left them. `damaged`: not all clients are known. */
static int open_ledger(struct fsd_server *server, bool damaged, char *message)
{
	char path[sizeof(server->state.path) + 16];
	bool complete = false;
	size_t restored = 0;

	snprintf(path, sizeof(path), "%s/promises", server->state.path);
	if (fsd_ledger_open(server->clients, path, server->settings.promises, fsd_now(), &complete,
			    &restored, message))
		return -1;
	if (!complete)
		fsd_clients_doubt(server->clients, damaged, fsd_now());
	if (restored)
		fsd_log(RXW_LOG_INFO,
			"clients will be told that %zu promises from before the start are void",
			restored);
	return 0;
}

/*
 * Open the files about the clients of earlier servers. An exported directory can do without: its clients
 * detect a restart by their own probes, within minutes.
 */
static int open_memory(struct fsd_server *server, char *message)
{
	char path[sizeof(server->state.path) + 16];
	bool damaged = false;

	snprintf(path, sizeof(path), "%s/clients", server->state.path);
	server->remember =
		fsd_remember_open(path, HOSTS_MAX, recall, server, &damaged, message);
	if (damaged)
		fsd_log(RXW_LOG_WARNING,
			"%s is damaged: not all clients of the last server are known", path);
	if (!server->remember && !server->volume && errno != ENOSPC && errno != EDQUOT)
		return -1;
	/* On a full disk files can be read and removed nevertheless; clients get no promises. */
	if (!server->remember)
		fsd_log(RXW_LOG_WARNING, "%s", message);
	return server->volume ? 0 : open_ledger(server, damaged, message);
}

static void on_work(void *arg)
{
	struct fsd_server *server = arg;

	pthread_mutex_lock(&server->lock);
	if (server->callbacks)
		fsd_callbacks_wake(server->callbacks);
	pthread_mutex_unlock(&server->lock);
}

/* -- files -- */

static int open_export(struct fsd_server *server, char *message)
{
	const char *export = server->settings.export;
	struct fsd_stat st;
	int rc;

	server->layer = server->settings.layer;
	if (server->layer) {
		snprintf(server->export, sizeof(server->export), "%s", export);
		return 0;
	}
	rc = realpath(export, server->export) ? 0 : -errno;
	if (!rc)
		rc = fsd_layer_posix(server->export, 0, &server->layer);
	server->own_layer = !rc;
	if (!rc)
		rc = server->layer->ops->stat_path(server->layer, "", &st);
	if (rc) {
		snprintf(message, FSD_MESSAGE_MAX,
			 "--export %.300s: %s; give a directory that exists and "
			 "that this user may read",
			 export, strerror(-rc));
		return -1;
	}
	if (!server->settings.all_files && (st.mode & 05) != 05)
		fsd_log(RXW_LOG_WARNING,
			"%s may not be read by \"other\": clients will be refused; chmod o+rx "
			"it, or use --all-files",
			server->export);
	return 0;
}

/* Without --volume: the name of the directory, if that is a valid name. */
static const char *volume_name(const struct fsd_server *server)
{
	const char *last = strrchr(server->export, '/');

	if (server->settings.volume)
		return server->settings.volume;
	return last && afs_volume_name_valid(last + 1) ? last + 1 : "export";
}

static int open_volume(struct fsd_server *server, char *message)
{
	struct fsd_volume_options options = {
		.name = volume_name(server),
		.root = server->export,
		.layer = server->layer,
		.all_files = server->settings.all_files,
		.on_change = on_change,
		.arg = server,
	};
	char place[PATH_MAX];
	const char *state = server->settings.state;
	int rc;

	if (!state && fsd_state_default(place, sizeof(place), message))
		return -1;
	rc = fsd_state_open(&server->state, state ? state : place, server->export, message);
	if (rc)
		return rc == FSD_STATE_INSIDE ? FSD_WRONG_SETTINGS : -1;
	if (fsd_state_store(&server->state, options.name, &server->store, &options.new_id, message))
		return -1;
	options.store = server->store;
	rc = fsd_volume_open(&options, &server->volume);
	if (rc) {
		snprintf(message, FSD_MESSAGE_MAX,
			 "volume %s in %.300s: %s; move its file away to make a new one",
			 options.name, server->state.path, strerror(-rc));
		return -1;
	}
	return 0;
}

/* Its state directory lies in it, and moves with it. */
static int open_store(struct fsd_server *server, char *message)
{
	const struct fsd_settings *settings = &server->settings;
	char place[PATH_MAX + sizeof(FSD_STORAGE_STATE) + 1];

	int rc = fsd_storage_open(settings->store, settings->durability, &server->served, message);

	if (rc)
		return rc == FSD_STORAGE_UNFIT ? FSD_WRONG_SETTINGS : -1;
	if (!settings->anonymous_writes && !fsd_guard_near(server->guard) &&
	    fsd_storage_check_anonymous(server->served, message))
		return -1;
	snprintf(place, sizeof(place), "%s/" FSD_STORAGE_STATE, server->export);
	return fsd_state_open(&server->state, place, NULL, message) ? -1 : 0;
}

/* An administrator has changed something: no client is told by a reply. */
static void on_control(void *arg, const struct store_changes *changes)
{
	struct fsd_server *server = arg;
	struct fsd_break breaks[sizeof(changes->change) / sizeof(changes->change[0])];

	for (unsigned i = 0; i < changes->count; i++) {
		const struct store_fid *fid = &changes->change[i].fid;

		breaks[i] = (struct fsd_break){.fid = {fid->volume, fid->vnode, fid->unique},
					       .for_all = true,
					       .gone = changes->change[i].gone};
	}
	fsd_promise_break_all(server->clients, breaks, changes->count, NULL, BREAK_MS);
}

/* Callers without an identity must not write, unless only this machine can call, or the server was told so. */
static bool no_anonymous_writes(const struct fsd_server *server)
{
	return !server->settings.anonymous_writes && !fsd_guard_near(server->guard);
}

static bool forbids(void *arg, const struct store_acl *acl)
{
	return no_anonymous_writes(arg) && fsd_acl_lets_anyone_write(acl);
}

/* rxvol's requests, if a store is served. */
static int open_control(struct fsd_server *server, char *message)
{
	const struct fsd_control_options options = {
		.store = server->served,
		.directory = server->export,
		.changed = on_control,
		.forbids = forbids,
		.arg = server,
	};

	return server->settings.store ? fsd_control_start(&options, &server->control, message) : 0;
}

static int add_advertise(struct fsd_server *server, const char *text, char *message)
{
	struct in_addr address;
	char part[64];

	while (*text) {
		size_t n = strcspn(text, ",");

		snprintf(part, sizeof(part), "%.*s", (int)(n < 63 ? n : 63), text);
		if (inet_pton(AF_INET, part, &address) != 1) {
			snprintf(message, FSD_MESSAGE_MAX,
				 "--advertise %.60s: not an IPv4 address; location entries "
				 "can hold no other",
				 part);
			return -1;
		}
		if (server->advertise_count == FSD_ADDRS_MAX) {
			snprintf(message, FSD_MESSAGE_MAX, "--advertise: more than %d addresses",
				 FSD_ADDRS_MAX);
			return -1;
		}
		server->advertise[server->advertise_count++] = ntohl(address.s_addr);
		text += n + (text[n] == ',');
	}
	return 0;
}

static size_t clients_volumes(void *arg, uint32_t after, uint32_t *ids, size_t max)
{
	return fsd_storage_volumes(((struct fsd_server *)arg)->served, after, ids, max);
}

/* The parts that only an exported directory needs. False: no memory. */
static bool start_export(struct fsd_server *server)
{
	struct fsd_export_options options = {
		.volume = server->volume,
		.guard = server->guard,
		.released = fsd_remember_date(server->remember),
	};

	server->watch = fsd_watch_start(server->volume, server->clients,
					(unsigned)server->settings.watches);
	server->usage = fsd_usage_start(server->layer);
	options.watch = server->watch;
	options.usage = server->usage;
	if (server->watch && server->usage)
		server->served = fsd_export_open(&options);
	return server->served != NULL;
}

/* The parts that the services use. */
static int start_parts(struct fsd_server *server, char *message)
{
	struct fsd_clients_options options = {
		.volume = server->volume ? fsd_volume_id(server->volume) : 0,
		.volumes = server->volume ? NULL : clients_volumes,
		.strict = !server->volume,
		.hosts_max = HOSTS_MAX,
		.promises_max = server->settings.promises,
		.wake = on_work,
		.keep = on_keep,
		.drop = on_drop,
		.arg = server,
	};
	/* The process is always counted: GetXStats reports the times of procedures. */
	struct rxw_rpcstats_options counted = {.size = sizeof(counted),
					       .process = true,
					       .peers = server->settings.rpc_stats,
					       .open = server->settings.rpc_stats_open};

	if (rxw_rpcstats_create(&counted, &server->calls))
		server->calls = NULL;
	server->clients = fsd_clients_create(&options);
	if (server->clients && open_memory(server, message))
		return -1;
	if (server->settings.timeline) {
		server->timeline = fsd_timeline_open(server->settings.timeline);
		if (!server->timeline) {
			snprintf(message, FSD_MESSAGE_MAX, "--timeline %.300s: %s",
				 server->settings.timeline, strerror(errno));
			return -1;
		}
	}
	server->readers = fsd_readers_start((unsigned)server->settings.readers,
					    server->settings.read_ahead, server->timeline);
	if (server->settings.audit_log) {
		bool strict =
			server->settings.audit && strcmp(server->settings.audit, "strict") == 0;

		server->audit = fsd_audit_open(server->settings.audit_log, strict, message);
		if (!server->audit)
			return -1;
	}
	if (server->clients && server->readers && server->calls &&
	    (!server->volume || start_export(server)))
		return 0;
	snprintf(message, FSD_MESSAGE_MAX,
		 "no memory or threads to start with; lower --promises, or raise the limits");
	return -1;
}

static int make_service(struct fsd_server *server, char *message)
{
	const struct fsd_service_options options = {
		.store = server->served,
		.exported = server->volume != NULL,
		.clients = server->clients,
		.readers = server->readers,
		.watch = server->watch,
		.usage = server->usage,
		.guard = server->guard,
		.prot = server->prot,
		.audit = server->audit,
		.audit_reads = server->settings.audit_reads,
		.calls = server->calls,
		.no_anonymous_writes = no_anonymous_writes(server),
		.uuid = server->state.uuid,
		.cell = server->settings.cell,
		.advertise = server->advertise,
		.advertise_count = server->advertise_count,
	};

	server->service = fsd_service_create(&options, message);
	if (!server->service)
		return -1;
	server->observer = (struct rxw_rpc_observer){fsd_service_observe, server->service};
	return 0;
}

static void warn_protection(void *arg, const char *line)
{
	(void)arg;
	fsd_log(RXW_LOG_ERROR, "--protection: %s", line);
}

static int open_protection(struct fsd_server *server, char *message)
{
	const struct prot_options options = {
		.path = server->settings.protection,
		.create = true,
		.cell = server->settings.cell,
		.realms = &server->settings.guard.realm,
		.realm_count = server->settings.guard.realm != NULL,
		.dots = server->settings.dotted_principals,
		.warn = warn_protection,
	};
	char why[PROT_MESSAGE_MAX];

	if (!server->settings.protection || prot_open(&options, &server->prot, why) == 0)
		return 0;
	snprintf(message, FSD_MESSAGE_MAX, "--protection: %.490s", why);
	return -1;
}

/* -- network -- */

static int open_endpoint(struct fsd_server *server, const struct rxw_config *config, uint16_t port,
			 const char *option, rxw_endpoint **endpoint, char *message)
{
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .config = config,
					       .server = 1,
					       .paused = 1,
					       .version_text = "rxfsd " PACKAGE_VERSION};
	struct tools_address address;
	char reason[256], text[TOOLS_ADDRESS_TEXT];
	int rc;

	if (tools_resolve(server->settings.listen, port, 1, &address, reason, sizeof(reason))) {
		snprintf(message, FSD_MESSAGE_MAX, "--listen %.100s: %s", server->settings.listen,
			 reason);
		return -1;
	}
	options.address = (const struct sockaddr *)&address.sa;
	options.address_len = address.len;
	rc = rxw_endpoint_create(server->engine, &options, endpoint);
	if (!rc)
		return 0;
	tools_address_text(&address.sa, text, sizeof(text));
	if (rc == -RXW_EADDRINUSE)
		snprintf(message, FSD_MESSAGE_MAX,
			 "%s is in use by another program: stop it, or choose another "
			 "with %s",
			 text, option);
	else
		snprintf(message, FSD_MESSAGE_MAX, "cannot listen on %s: %s; see --listen and %s",
			 text, rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc), option);
	return -1;
}

/* The classes of a service, as the guard has them. */
static void guard_service(struct fsd_server *server, enum fsd_service_kind kind,
			  struct rxw_service_options *options)
{
	options->security = fsd_guard_classes(server->guard, kind, &options->security_count);
}

/* Offer a service, and statistics if they are wanted; then the endpoint receives. */
static int offer(struct fsd_server *server, rxw_endpoint *endpoint,
		 const struct rxw_service_options *options)
{
	rxw_service *service;
	int rc = rxw_service_add(endpoint, options, &service);

	if (!rc && (endpoint == server->fs || server->settings.rpc_stats))
		rc = rxw_endpoint_set_observer(endpoint, &server->observer);
	if (!rc && server->settings.rpc_stats)
		rc = rxw_rpcstats_serve(server->calls, endpoint);
	if (!rc)
		rc = fsd_guard_offer(server->guard, endpoint);
	return rc ? rc : rxw_endpoint_start(endpoint);
}

static void count_key_load(struct fsd_server *server, bool good)
{
	struct fsd_key_loads *loads = &server->key_loads;

	if (!server->settings.guard.keytab)
		return;
	atomic_fetch_add_explicit(good ? &loads->good : &loads->bad, 1, memory_order_relaxed);
	if (good)
		atomic_store_explicit(&loads->time, (int64_t)time(NULL), memory_order_relaxed);
}

static int open_guard(struct fsd_server *server, char *message)
{
	struct fsd_guard_options options = server->settings.guard;

	options.listen = server->settings.listen;
	if (fsd_guard_open(&options, &server->guard, message))
		return -1;
	count_key_load(server, true);
	return 0;
}

static void note_ids(struct fsd_server *server)
{
	if (server->settings.store && server->served && server->prot)
		fsd_storage_note_ids(server->served, server->prot);
}

int fsd_server_reload(struct fsd_server *server)
{
	int rc = fsd_guard_reload(server->guard);

	note_ids(server);
	count_key_load(server, rc == 0);
	fsd_audit_reopen(server->audit);
	fsd_log(RXW_LOG_INFO, "a reload reads the keys%s; every other setting needs a restart",
		server->audit ? ", and opens the audit log" : "");
	return rc;
}

/* Read by anyone, like locations; what callers see depends on who they are. */
static int open_pt(struct fsd_server *server, const struct rxw_config *config, char *message)
{
	struct rxw_service_options pt = {.size = sizeof(pt),
					 .id = AFS_SERVICE_PT,
					 .name = "pt",
					 .handler = fsd_pt_serve,
					 .context = server->prot};
	int rc;

	if (!server->prot)
		return 0;
	guard_service(server, FSD_VL, &pt);
	if (open_endpoint(server, config, (uint16_t)server->settings.pt_port, "--pt-port",
			  &server->pt, message))
		return -1;
	rc = offer(server, server->pt, &pt);
	if (rc)
		snprintf(message, FSD_MESSAGE_MAX, "cannot offer the protection service: %s",
			 rxw_strerror(rc));
	return rc ? -1 : 0;
}

static int open_network(struct fsd_server *server, const struct rxw_config *config, char *message)
{
	struct rxw_service_options fs = {
		.size = sizeof(fs),
		.id = AFS_SERVICE_FS,
		.name = "fs",
		.handler = fsd_fs_serve,
		.context = server->service,
		.deferred_max = FSD_DEFERRED_MAX,
		/* clients are called back: only at addresses that answer */
		.flags = RXW_SERVICE_REACH};
	struct rxw_service_options vl = {.size = sizeof(vl),
					 .id = AFS_SERVICE_VL,
					 .name = "vl",
					 .handler = fsd_vl_serve,
					 .context = server->service,
					 .flags = RXW_SERVICE_INLINE};
	struct rxw_service_options vol = {.size = sizeof(vol),
					  .id = AFS_SERVICE_VOL,
					  .name = "vol",
					  .handler = fsd_vol_serve,
					  .context = server->service};
	struct rxw_config vl_config = *config;
	struct fsd_callbacks *callbacks;
	int rc;

	if (!server->volume) /* a look-up in a store may wait for its database */
		vl.flags = 0;
	guard_service(server, FSD_FS, &fs);
	guard_service(server, FSD_VL, &vl);
	guard_service(server, FSD_VOL, &vol);
	rc = rxw_engine_create(config, &server->engine);

	if (rc) {
		snprintf(message, FSD_MESSAGE_MAX, "cannot start the network engine: %s",
			 rxw_strerror(rc));
		return -1;
	}
	vl_config.listeners = 1;
	if (open_endpoint(server, config, (uint16_t)server->settings.port, "--port", &server->fs,
			  message) ||
	    open_endpoint(server, &vl_config, (uint16_t)server->settings.vl_port, "--vl-port",
			  &server->vl, message) ||
	    open_endpoint(server, &vl_config, (uint16_t)server->settings.vol_port, "--vol-port",
			  &server->vol, message))
		return -1;
	fsd_service_set_endpoint(server->service, server->fs);
	fsd_service_set_engine(server->service, server->engine, config->memory);
	callbacks = fsd_callbacks_start(server->fs, server->clients, &server->state.uuid);
	pthread_mutex_lock(&server->lock);
	server->callbacks = callbacks;
	pthread_mutex_unlock(&server->lock);
	rc = callbacks ? offer(server, server->fs, &fs) : -RXW_ENOMEM;
	if (!rc)
		rc = offer(server, server->vl, &vl);
	if (!rc)
		rc = offer(server, server->vol, &vol);
	if (!rc)
		fsd_callbacks_wake(callbacks); /* for clients from before a restart */
	else
		snprintf(message, FSD_MESSAGE_MAX, "cannot offer the services: %s",
			 rxw_strerror(rc));
	return rc ? -1 : open_pt(server, &vl_config, message);
}

static void say(const char *line)
{
	fsd_log(RXW_LOG_INFO, "%s", line);
}

static char *figures(void *arg)
{
	struct fsd_server *server = arg;
	char *text =
		fsd_service_metrics(server->service, &server->key_loads, server->settings.promises);

	return server->volume ? text : fsd_storage_metrics(server->served, text);
}

/* Metrics and packet traces. */
static int open_monitoring(struct fsd_server *server, char *message)
{
	rxw_endpoint *const endpoints[] = {server->fs, server->vl, server->vol, server->pt};
	const size_t count = server->pt ? 4 : 3;

	server->settings.trace.say = say;
	server->settings.metrics.more = figures;
	server->settings.metrics.arg = server;
	if (tools_trace_open(&server->settings.trace, endpoints, count, &server->trace, message,
			     FSD_MESSAGE_MAX))
		return -1;
	return tools_metrics_start(&server->settings.metrics, endpoints, count, &server->metrics,
				   message, FSD_MESSAGE_MAX);
}

void fsd_server_trace(struct fsd_server *server)
{
	tools_trace_switch(server->trace);
}

static struct fsd_server *create(const struct fsd_settings *settings, char *message)
{
	struct fsd_server *server = calloc(1, sizeof(*server));

	if (!server) {
		snprintf(message, FSD_MESSAGE_MAX, "no memory");
		return NULL;
	}
	server->settings = *settings;
	server->state.lock_fd = -1;
	pthread_mutex_init(&server->lock, NULL);
	return server;
}

/* -- settings -- */

static int check_volume_name(struct fsd_server *server, char *message)
{
	const char *name = volume_name(server);

	if (afs_volume_name_valid(name))
		return 0;
	snprintf(message, FSD_MESSAGE_MAX,
		 "--volume %.100s: not a volume name; use up to 64 letters, digits, "
		 "'.', '_' and '-', not only digits, "
		 "without \".readonly\" or \".backup\" at the end",
		 name);
	return -1;
}

static int check_ports(struct fsd_server *server, char *message)
{
	static const char *const names[] = {"--port", "--vl-port", "--vol-port", "--pt-port"};
	const uint64_t ports[] = {server->settings.port, server->settings.vl_port,
				  server->settings.vol_port, server->settings.pt_port};

	for (int i = 1; i < (server->settings.protection ? 4 : 3); i++)
		for (int k = 0; k < i; k++) {
			if (!ports[i] || ports[i] != ports[k])
				continue;
			snprintf(message, FSD_MESSAGE_MAX,
				 "%s %u is also the port of %s: each service needs its own",
				 names[i], (unsigned)ports[i], names[k]);
			return -1;
		}
	return 0;
}

/* The volumes that are served, and the place of the server's state. */
static int check_served(struct fsd_server *server, char *message)
{
	const struct fsd_settings *settings = &server->settings;

	if (settings->audit && strcmp(settings->audit, "strict") != 0 &&
	    strcmp(settings->audit, "lossy") != 0) {
		snprintf(message, FSD_MESSAGE_MAX, "--audit %.100s: give strict or lossy",
			 settings->audit);
		return -1;
	}
	if ((settings->audit_reads || settings->audit) && !settings->audit_log) {
		snprintf(message, FSD_MESSAGE_MAX,
			 "--audit%s without a log: give --audit-log FILE",
			 settings->audit_reads ? "-reads" : "");
		return -1;
	}
	if (settings->metrics.interval_ms && !settings->metrics.file) {
		snprintf(message, FSD_MESSAGE_MAX,
			 "--metrics-interval without a file: give --metrics-file FILE");
		return -1;
	}
	if (!settings->store)
		return open_export(server, message) ? -1 : check_volume_name(server, message);
	if (settings->state) {
		snprintf(message, FSD_MESSAGE_MAX,
			 "--state: with --store the state is in the store's directory");
		return -1;
	}
	if (settings->guard.allow_count || settings->volume || settings->all_files) {
		snprintf(
			message, FSD_MESSAGE_MAX,
			"--allow, --volume and --all-files are for --export: rights in a store are "
			"those of its ACLs (rxvol acl)");
		return -1;
	}
	if (!realpath(settings->store, server->export)) {
		snprintf(message, FSD_MESSAGE_MAX,
			 "--store %.300s: %s; make a store with rxvol -S DIR create NAME",
			 settings->store, strerror(errno));
		return -1;
	}
	return fsd_storage_check(settings->durability, message);
}

/* Not an address: a name server that has no answer today may have one later, when it was told the name. */
static bool is_host_name(const char *text)
{
	static const char digits[] = "0123456789.", others[] = "-_"
							       "abcdefghijklmnopqrstuvwxyz"
							       "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t numeric = strspn(text, digits), length = strlen(text), i;

	for (i = numeric; text[i] && (strchr(digits, text[i]) || strchr(others, text[i])); i++)
		;
	return numeric < length && i == length;
}

/* A failure of the name service may be temporary. */
static int check_listen(struct fsd_server *server, char *message)
{
	struct tools_address address;
	char reason[256];
	int rc;

	if (tools_resolve(server->settings.listen, 0, 1, &address, reason, sizeof(reason)) == 0)
		return 0;
	rc = errno == EAGAIN || is_host_name(server->settings.listen) ? -1 : FSD_WRONG_SETTINGS;
	snprintf(message, FSD_MESSAGE_MAX, "--listen %.100s: %s%s", server->settings.listen, reason,
		 rc == FSD_WRONG_SETTINGS
			 ? "; give an address without brackets and port, which is that of --port"
			 : "");
	return rc;
}

/* What the rules of a unit keep from the server does not change by itself either. */
static int check_sandbox(const struct fsd_server *server, char *message)
{
	const struct fsd_settings *settings = &server->settings;
	/* A store that is missing is no matter of the unit. */
	bool missing = settings->store && access(settings->store, F_OK) < 0 && errno == ENOENT;
	const struct {
		const char *option, *path;
		bool writes;
	} uses[] = {
		{"--export", settings->layer ? NULL : settings->export, false},
		{"--store", missing ? NULL : settings->store, true},
		{"--state", settings->state, true},
		{"--protection", settings->protection, true},
		{"--keytab", settings->guard.keytab, false},
		{"--audit-log", settings->audit_log, true},
		{"--timeline", settings->timeline, true},
		{"--trace-dir", settings->trace.dir, true},
		{"--metrics-file", settings->metrics.file, true},
		{"--metrics-socket", settings->metrics.socket, true},
	};

	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		if (fsd_sandbox_check(uses[i].option, uses[i].path, uses[i].writes, message))
			return -1;
	return 0;
}

/* Everything that needs neither the network nor the state. */
static int check_settings(struct fsd_server *server, char *message)
{
	int rc = check_listen(server, message);

	if (rc)
		return rc;
	if (check_ports(server, message) || check_sandbox(server, message) ||
	    open_guard(server, message) || check_served(server, message) ||
	    tools_trace_check(&server->settings.trace, message, FSD_MESSAGE_MAX))
		return FSD_WRONG_SETTINGS;
	for (size_t i = 0; i < server->settings.advertise_count; i++)
		if (add_advertise(server, server->settings.advertise[i], message))
			return FSD_WRONG_SETTINGS;
	return 0;
}

int fsd_server_check(const struct fsd_settings *settings, char *message)
{
	struct fsd_server *server = create(settings, message);
	int rc;

	if (!server)
		return -1;
	rc = check_settings(server, message);
	server->settings.drain_ms = 0;
	fsd_server_stop(server);
	return rc;
}

/* -- start and stop -- */

static char *endpoint_text(rxw_endpoint *endpoint, char *text, size_t size)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	if (rxw_endpoint_address(endpoint, &sa, &length))
		snprintf(text, size, "?");
	else
		tools_address_text(&sa, text, size);
	return text;
}

/* Log the effective settings. */
static void log_endpoint(struct fsd_server *server, const char *name, enum fsd_service_kind kind,
			 rxw_endpoint *endpoint)
{
	struct rxw_effective e = {.size = sizeof(e)};
	char where[TOOLS_ADDRESS_TEXT];

	if (!endpoint || rxw_endpoint_effective(endpoint, &e))
		return;
	fsd_log(RXW_LOG_INFO,
		"%s on %s: protection %s; %u listener%s, "
		"back-end %s, GSO %s, GRO %s, window %u, packets of %u bytes, "
		"buffers of %zu and %zu KiB",
		name, endpoint_text(endpoint, where, sizeof(where)),
		fsd_guard_level(server->guard, kind), e.listeners, e.listeners == 1 ? "" : "s",
		e.io, e.gso ? "on" : "off", e.gro ? "on" : "off", e.window, e.mtu, e.rcvbuf / 1024,
		e.sndbuf / 1024);
}

static void log_beginning(struct fsd_server *server)
{
	const struct fsd_settings *settings = &server->settings;

	fsd_log(RXW_LOG_INFO, "version %s, library %s", PACKAGE_VERSION, rxw_version());
	if (server->volume)
		fsd_log(RXW_LOG_INFO, "volume %s (%u) of %s%s%s, from %s",
			fsd_volume_name(server->volume), (unsigned)fsd_volume_id(server->volume),
			settings->cell ? "cell " : "this server",
			settings->cell ? settings->cell : "",
			settings->all_files ? ", all files" : "", server->export);
	else
		fsd_log(RXW_LOG_INFO, "volumes of %s%s, from the store %s, durability %s",
			settings->cell ? "cell " : "this server",
			settings->cell ? settings->cell : "", server->export,
			settings->durability ? settings->durability : "lazy");
	log_endpoint(server, "fs", FSD_FS, server->fs);
	log_endpoint(server, "vl", FSD_VL, server->vl);
	log_endpoint(server, "vol", FSD_VOL, server->vol);
	log_endpoint(server, "pt", FSD_VL, server->pt);
	fsd_guard_log_keys(server->guard);
}

int fsd_server_start(const struct fsd_settings *settings, const struct rxw_config *config,
		     struct fsd_server **out, char *message)
{
	struct fsd_server *server = create(settings, message);
	int rc;

	if (!server)
		return -1;
	rc = check_settings(server, message);
	if (!rc)
		rc = open_protection(server, message);
	if (!rc)
		rc = settings->store ? open_store(server, message) : open_volume(server, message);
	if (!rc && settings->store && server->prot)
		rc = fsd_storage_compare_ids(server->served, server->prot, message);
	if (!rc && (start_parts(server, message) || make_service(server, message) ||
		    open_network(server, config, message) || open_monitoring(server, message) ||
		    open_control(server, message)))
		rc = -1;
	if (rc) {
		server->settings.drain_ms = 0;
		fsd_server_stop(server);
		return rc;
	}
	log_beginning(server);
	if (server->served && server->prot)
		fsd_storage_report_machines(server->served, server->prot);
	*out = server;
	return 0;
}

/* A handler that waits for a disk or file server which does not answer cannot be ended. */
static void explain_limit(void *arg)
{
	struct fsd_server *server = arg;

	fsd_log(RXW_LOG_ERROR,
		"stopping took longer than %llu ms after the drain and is cut short; "
		"does the file system of %s answer?",
		(unsigned long long)server->settings.stop_ms, server->export);
	pthread_mutex_lock(&server->lock);
	if (server->service)
		fsd_service_log_running(server->service);
	pthread_mutex_unlock(&server->lock);
}

/* From now on explain_limit() does without it. */
static void destroy_service(struct fsd_server *server)
{
	struct fsd_service *service;

	pthread_mutex_lock(&server->lock);
	service = server->service;
	server->service = NULL;
	pthread_mutex_unlock(&server->lock);
	fsd_service_destroy(service);
}

/*
 * Tell clients that the promises of this server end. Linux 6.8 and later forgets a promise in a read-write volume only
 * if that is broken by itself. Promises that are left stay in the ledger for the next start.
 */
static void break_promises(struct fsd_server *server)
{
	uint64_t until = monotonic_ns() + STOP_BREAKS_MS * NS_PER_MS;
	struct fsd_break breaks[AFSCBMAX];
	struct fsd_clients_stats stats;
	AFSFid fids[AFSCBMAX];
	size_t cursor = 0, count;

	rxw_endpoint_refuse(server->fs, -100);
	for (;;) {
		fsd_clients_stats(server->clients, &stats);
		if (!stats.promises || monotonic_ns() >= until)
			return;
		count = fsd_promise_sweep(server->clients, &cursor, fids, AFSCBMAX, fsd_now());
		for (size_t i = 0; i < count; i++)
			breaks[i] = (struct fsd_break){.fid = fids[i], .for_all = true};
		fsd_promise_break_all(server->clients, breaks, count, NULL, STOP_BREAK_MS);
	}
}

int fsd_server_drain(struct fsd_server *server)
{
	if (server->drained)
		return server->aborted;
	server->drained = true;
	if (server->settings.stop_ms && server->fs)
		server->limit =
			fsd_limit_start(server->settings.drain_ms + server->settings.stop_ms,
					explain_limit, server);
	fsd_control_stop(server->control);
	server->control = NULL;
	if (server->callbacks && !server->volume)
		break_promises(server);
	if (server->fs)
		server->aborted =
			rxw_endpoint_stop(server->fs, (unsigned)server->settings.drain_ms) ==
			-RXW_ETIMEDOUT;
	fsd_audit_release(server->audit);
	if (server->vl)
		rxw_endpoint_stop(server->vl, 0);
	if (server->vol)
		rxw_endpoint_stop(server->vol, 0);
	if (server->pt)
		rxw_endpoint_stop(server->pt, 0);
	return server->aborted;
}

int fsd_server_stop(struct fsd_server *server)
{
	struct fsd_callbacks *callbacks;
	int aborted = fsd_server_drain(server);

	/* The watcher and late calls may still queue work; it is ignored from here on. */
	pthread_mutex_lock(&server->lock);
	callbacks = server->callbacks;
	server->callbacks = NULL;
	pthread_mutex_unlock(&server->lock);
	fsd_callbacks_stop(callbacks);
	tools_metrics_stop(server->metrics);
	tools_trace_close(server->trace);
	if (server->service)
		fsd_service_settle(server->service);
	if (server->fs)
		rxw_endpoint_destroy(server->fs);
	if (server->vl)
		rxw_endpoint_destroy(server->vl);
	if (server->vol)
		rxw_endpoint_destroy(server->vol);
	if (server->pt)
		rxw_endpoint_destroy(server->pt);
	if (server->engine)
		rxw_engine_destroy(server->engine);
	destroy_service(server);
	fsd_watch_stop(server->watch);
	fsd_usage_stop(server->usage);
	fsd_readers_stop(server->readers);
	if (fsd_timeline_close(server->timeline))
		fsd_log(RXW_LOG_ERROR, "--timeline %s: %s; lines are missing",
			server->settings.timeline, strerror(errno));
	note_ids(server);
	if (server->served)
		server->served->ops->close(server->served);
	fsd_audit_close(server->audit);
	fsd_volume_close(server->volume);
	fsd_clients_destroy(server->clients);
	fsd_remember_close(server->remember);
	fsd_guard_close(server->guard);
	prot_close(server->prot);
	fsd_store_close(server->store);
	fsd_state_close(&server->state);
	if (server->own_layer)
		server->layer->ops->destroy(server->layer);
	rxw_rpcstats_destroy(server->calls);
	fsd_limit_end(server->limit);
	pthread_mutex_destroy(&server->lock);
	free(server);
	return aborted;
}

/* -- reports -- */

static uint16_t endpoint_port(rxw_endpoint *endpoint)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	return rxw_endpoint_address(endpoint, &sa, &length) ? 0 : tools_address_port(&sa);
}

void fsd_server_where(const struct fsd_server *server, char *text, size_t size)
{
	char fs[TOOLS_ADDRESS_TEXT], vl[TOOLS_ADDRESS_TEXT], vol[TOOLS_ADDRESS_TEXT],
		pt[TOOLS_ADDRESS_TEXT] = "";

	if (server->pt)
		endpoint_text(server->pt, pt, sizeof(pt));
	snprintf(text, size, "listening fs %s vl %s vol %s%s%s",
		 endpoint_text(server->fs, fs, sizeof(fs)),
		 endpoint_text(server->vl, vl, sizeof(vl)),
		 endpoint_text(server->vol, vol, sizeof(vol)), *pt ? " pt " : "", pt);
}

void fsd_server_title(const struct fsd_server *server, char *text, size_t size)
{
	char fs[TOOLS_ADDRESS_TEXT];

	endpoint_text(server->fs, fs, sizeof(fs));
	if (server->volume)
		snprintf(text, size, "volume %s of %.200s on %s", fsd_volume_name(server->volume),
			 server->export, fs);
	else
		snprintf(text, size, "store %.200s on %s", server->export, fs);
}

uint16_t fsd_server_fs_port(const struct fsd_server *server)
{
	return endpoint_port(server->fs);
}

uint16_t fsd_server_vl_port(const struct fsd_server *server)
{
	return endpoint_port(server->vl);
}

uint16_t fsd_server_vol_port(const struct fsd_server *server)
{
	return endpoint_port(server->vol);
}

uint32_t fsd_server_volume_id(const struct fsd_server *server)
{
	struct store_volume first;

	return server->served->ops->volume_next(server->served, 0, &first) ? 0 : first.id;
}

/* Contended acquisitions of locks. */
static void report_locks(const struct counters *stats)
{
	static const char lock[] = "lock_contended.";
	uint64_t packets = counters_sum(stats, "packets.");
	const struct rxw_counter *c;
	char text[512] = "";
	size_t n = 0;

	for (size_t i = 0; (c = rxw_counter_at(i)) && packets && n < sizeof(text); i++)
		if (stats->value[i] && !strncmp(c->name, lock, strlen(lock)))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s %.1f",
					      n ? "," : "", c->name + strlen(lock),
					      (double)stats->value[i] * 1e6 / (double)packets);
	fsd_log(RXW_LOG_INFO, "contended locks per million packets:%s", n ? text : " none");
}

void fsd_server_tick(struct fsd_server *server)
{
	struct fsd_reader_stats readers;
	size_t peak = 0, packets = rxw_engine_memory(server->engine, &peak);

	fsd_service_look(server->service);
	if (++server->ticks % TRIM_TICKS)
		return;
	fsd_readers_stats(server->readers, &readers);
	fsd_trim(&server->trim, packets + readers.memory, peak);
}

void fsd_server_report(struct fsd_server *server)
{
	struct counters c;
	size_t peak = 0, memory = rxw_engine_memory(server->engine, &peak);

	fsd_service_log(server->service);
	if (counters_read(&c, server->fs) == 0) {
#define COUNT(name) (unsigned long long)counters_get(&c, name)
		fsd_log(RXW_LOG_INFO,
			"datagrams sent %llu, received %llu, in %llu and %llu system calls; "
			"packets retransmitted %llu; connections %llu, calls active %llu, "
			"workers %llu",
			COUNT("datagrams.sent"), COUNT("datagrams.received"),
			COUNT("syscalls.send"), COUNT("syscalls.receive"), COUNT("retransmitted"),
			COUNT("connections_server"), COUNT("calls_active"), COUNT("workers"));
#undef COUNT
		report_locks(&c);
	}
	fsd_log(RXW_LOG_INFO, "packet memory %zu KiB, at most %zu KiB", memory / 1024, peak / 1024);
}
