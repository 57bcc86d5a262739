/* SPDX-License-Identifier: BSD-2-Clause */
/* The ports: their endpoints, services, keys, metrics and traces. */
#include "fileserver/parts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "afs/numbers.h"
#include "common/failure.h"
#include "fileserver/location/location.h"
#include "fileserver/storage.h"
#include "program/address.h"

static int open_server_endpoint(struct fsd_server *server, const struct rxw_config *config,
				uint16_t port, const char *option, rxw_endpoint **endpoint,
				char *message)
{
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .config = config,
					       .server = 1,
					       .paused = 1,
					       .version_text = "rxfsd " PACKAGE_VERSION};
	struct tools_address address;
	char reason[256], text[TOOLS_ADDRESS_TEXT];
	int rc;

	if (tools_resolve(server->settings.listen, port, 1, &address, reason, sizeof(reason)))
		return fail_with(-1, message, FSD_MESSAGE_MAX, "--listen %.100s: %s",
				 server->settings.listen, reason);
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
static int offer_service(struct fsd_server *server, rxw_endpoint *endpoint,
			 const struct rxw_service_options *options)
{
	rxw_service *service;
	int rc = rxw_service_add(endpoint, options, &service);

	if (rc)
		return rc;
	if (endpoint == server->fs || server->settings.rpc_stats) {
		rc = rxw_endpoint_set_observer(endpoint, &server->observer);
		if (rc)
			return rc;
	}
	if (server->settings.rpc_stats) {
		rc = rxw_rpcstats_serve(server->calls, endpoint);
		if (rc)
			return rc;
	}
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

int fsd_server_open_guard(struct fsd_server *server, char *message)
{
	struct fsd_guard_options options = server->settings.guard;

	options.listen = server->settings.listen;
	if (fsd_guard_open(&options, &server->guard, message))
		return -1;
	count_key_load(server, true);
	return 0;
}

int fsd_server_reload(struct fsd_server *server)
{
	int rc = fsd_guard_reload(server->guard);

	if (server->member && fsd_member_reload(server->member))
		rc = -1;
	fsd_server_note_ids(server);
	count_key_load(server, rc == 0);
	fsd_audit_reopen(server->audit);
	fsd_log(RXW_LOG_INFO, "a reload reads the keys%s%s; every other setting needs a restart",
		server->member ? " and the folder of the cell" : "",
		server->audit ? ", and opens the audit log" : "");
	return rc;
}

/* Anyone may call this service, like that of locations. Callers see what their rights permit. */
static int open_protection_port(struct fsd_server *server, const struct rxw_config *config,
				char *message)
{
	struct rxw_service_options pt = {
		.size = sizeof(pt), .id = AFS_SERVICE_PT, .name = "pt", .handler = fsd_pt_serve};
	int rc;

	if (!server->prot)
		return 0;
	server->pt_service = fsd_pt_create(server->prot, server->guard, server->audit);
	if (!server->pt_service)
		return fail_with(-1, message, FSD_MESSAGE_MAX, "no memory");
	pt.context = server->pt_service;
	guard_service(server, FSD_VL, &pt);
	if (open_server_endpoint(server, config, (uint16_t)server->settings.pt_port, "--pt-port",
				 &server->pt, message))
		return -1;
	rc = offer_service(server, server->pt, &pt);
	if (rc)
		snprintf(message, FSD_MESSAGE_MAX, "cannot offer the protection service: %s",
			 rxw_strerror(rc));
	return rc ? -1 : 0;
}

/* Anyone may call this service, too: the overseer of OpenAFS reports to unauthenticated callers. */
static int open_bos_port(struct fsd_server *server, const struct rxw_config *config, char *message)
{
	struct rxw_service_options bos = {.size = sizeof(bos),
					  .id = AFS_SERVICE_BOS,
					  .name = "bos",
					  .handler = fsd_bos_serve,
					  .flags = RXW_SERVICE_INLINE};
	int rc;

	if (!server->settings.bos)
		return 0;
	server->bos_service = fsd_bos_create(server->vl, server->prot);
	if (!server->bos_service)
		return fail_with(-1, message, FSD_MESSAGE_MAX, "no memory");
	bos.context = server->bos_service;
	guard_service(server, FSD_VL, &bos);
	if (open_server_endpoint(server, config, (uint16_t)server->settings.bos_port, "--bos-port",
				 &server->bos, message))
		return -1;
	rc = offer_service(server, server->bos, &bos);
	return rc ? fail_with(-1, message, FSD_MESSAGE_MAX, "cannot answer bos: %s",
			      rxw_strerror(rc))
		  : 0;
}

/* Offers the services of files, locations and volumes. 0 or a negative result of the library. */
static int offer_services(struct fsd_server *server)
{
	struct rxw_service_options fs = {
		.size = sizeof(fs),
		.id = AFS_SERVICE_FS,
		.name = "fs",
		.handler = fsd_fs_serve,
		.context = server->service,
		.deferred_max = FSD_DEFERRED_MAX,
		/* Clients are called back, but only at addresses that answer. */
		.flags = RXW_SERVICE_REACH};
	struct rxw_service_options vl = {.size = sizeof(vl),
					 .id = AFS_SERVICE_VL,
					 .name = "vl",
					 .handler = fsd_vl_serve,
					 .context = server->service,
					 /* A look-up in a store may wait for its database. */
					 .flags = server->settings.store ? 0 : RXW_SERVICE_INLINE};
	struct rxw_service_options vol = {.size = sizeof(vol),
					  .id = AFS_SERVICE_VOL,
					  .name = "vol",
					  .handler = fsd_vol_serve,
					  .context = server->service};
	int rc;

	guard_service(server, FSD_FS, &fs);
	guard_service(server, FSD_VL, &vl);
	guard_service(server, FSD_VOL, &vol);
	rc = offer_service(server, server->fs, &fs);
	if (rc)
		return rc;
	if (server->vl)
		rc = offer_service(server, server->vl, &vl);
	return rc ? rc : offer_service(server, server->vol, &vol);
}

/* Starts the thread that calls clients. 0 or -RXW_ENOMEM. */
static int start_callbacks(struct fsd_server *server)
{
	struct fsd_callbacks *callbacks =
		fsd_callbacks_start(server->fs, server->clients, &server->state.uuid);

	pthread_mutex_lock(&server->lock);
	assert(!server->callbacks);
	server->callbacks = callbacks;
	pthread_mutex_unlock(&server->lock);
	return callbacks ? 0 : -RXW_ENOMEM;
}

/* Before calls are served, which need to know who makes them. */
static int start_member(struct fsd_server *server, const struct rxw_config *config, char *message)
{
	const struct fsd_member_network network = {
		.engine = server->engine,
		.config = config,
		.guard = server->guard,
		.uuid = server->state.uuid,
		.listen = server->settings.listen,
		.advertise = server->advertise,
		.advertise_count = server->advertise_count,
		.volumes = server->joined ? fsd_storage_volumes : NULL,
		.volumes_arg = server->served,
	};

	return server->member ? fsd_member_start(server->member, &network, message) : 0;
}

int fsd_server_open_network(struct fsd_server *server, const struct rxw_config *config,
			    char *message)
{
	struct rxw_config vl_config = *config;
	int rc;

	assert(server->service && !server->engine);
	rc = rxw_engine_create(config, &server->engine);
	if (rc)
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "cannot start the network engine: %s", rxw_strerror(rc));
	vl_config.listeners = 1;
	if (open_server_endpoint(server, config, (uint16_t)server->settings.port, "--port",
				 &server->fs, message) ||
	    (!server->member &&
	     open_server_endpoint(server, &vl_config, (uint16_t)server->settings.vl_port,
				  "--vl-port", &server->vl, message)) ||
	    open_server_endpoint(server, &vl_config, (uint16_t)server->settings.vol_port,
				 "--vol-port", &server->vol, message))
		return -1;
	fsd_service_set_endpoint(server->service, server->fs);
	fsd_service_set_vol_endpoint(server->service, server->vol);
	fsd_service_set_engine(server->service, server->engine, config->memory);
	if (start_member(server, config, message))
		return -1;
	rc = start_callbacks(server);
	if (!rc)
		rc = offer_services(server);
	if (rc)
		return fail_with(-1, message, FSD_MESSAGE_MAX, "cannot offer the services: %s",
				 rxw_strerror(rc));
	fsd_callbacks_wake(server->callbacks); /* for clients from before a restart */
	if (open_protection_port(server, &vl_config, message))
		return -1;
	return open_bos_port(server, &vl_config, message);
}

static void log_info_line(const char *line)
{
	fsd_log(RXW_LOG_INFO, "%s", line);
}

static char *write_figures(void *arg)
{
	struct fsd_server *server = arg;
	char *text =
		fsd_service_metrics(server->service, &server->key_loads, server->settings.promises);

	return server->settings.store
		       ? fsd_storage_metrics(server->service, server->served, server->member,
					     server->settings.metrics_volumes, text)
		       : text;
}

int fsd_server_open_monitoring(struct fsd_server *server, char *message)
{
	rxw_endpoint *const all[] = {server->fs, server->vol, server->vl, server->pt, server->bos};
	rxw_endpoint *endpoints[sizeof(all) / sizeof(all[0])];
	size_t count = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i])
			endpoints[count++] = all[i];

	server->settings.trace.say = log_info_line;
	server->settings.metrics.more = write_figures;
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
