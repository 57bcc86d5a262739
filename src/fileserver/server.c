/* SPDX-License-Identifier: BSD-2-Clause */
/* The file server: its parts are created, connected and destroyed here. */
#include "fileserver/parts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"

static struct fsd_server *create_server(const struct fsd_settings *settings, char *message)
{
	struct fsd_server *server = calloc(1, sizeof(*server));

	if (!server)
		return fail_with(NULL, message, FSD_MESSAGE_MAX, "no memory");
	server->settings = *settings;
	server->state.lock_fd = -1;
	pthread_mutex_init(&server->lock, NULL);
	return server;
}

static int open_timeline(struct fsd_server *server, char *message)
{
	const char *path = server->settings.timeline;

	server->timeline = path ? fsd_timeline_open(path) : NULL;
	if (server->timeline || !path)
		return 0;
	return fail_with(-1, message, FSD_MESSAGE_MAX, "--timeline %.300s: %s", path,
			 strerror(errno));
}

static int open_audit(struct fsd_server *server, char *message)
{
	const char *path = server->settings.audit_log;
	bool strict = server->settings.audit && strcmp(server->settings.audit, "strict") == 0;

	server->audit = path ? fsd_audit_open(path, strict, message) : NULL;
	return server->audit || !path ? 0 : -1;
}

/* Starts the parts that the services use. */
static int start_parts(struct fsd_server *server, char *message)
{
	/* The process is always counted: GetXStats reports the times of procedures. */
	struct rxw_rpcstats_options counted = {.size = sizeof(counted),
					       .process = true,
					       .peers = server->settings.rpc_stats,
					       .open = server->settings.rpc_stats_open};

	if (rxw_rpcstats_create(&counted, &server->calls))
		server->calls = NULL;
	if (fsd_server_create_clients(server, message) || open_timeline(server, message) ||
	    open_audit(server, message))
		return -1;
	server->readers = fsd_readers_start((unsigned)server->settings.readers,
					    server->settings.read_ahead, server->timeline);
	if (server->clients && server->readers && server->calls &&
	    (server->settings.store || fsd_server_start_export(server)))
		return 0;
	return fail_with(
		-1, message, FSD_MESSAGE_MAX,
		"no memory or threads to start with; lower --promises, or raise the limits");
}

static int make_service(struct fsd_server *server, char *message)
{
	const struct fsd_service_options options = {
		.store = server->served,
		.exported = !server->settings.store,
		.clients = server->clients,
		.readers = server->readers,
		.guard = server->guard,
		.prot = server->prot,
		.people = server->member ? fsd_member_people(server->member) : NULL,
		.audit = server->audit,
		.audit_reads = server->settings.audit_reads,
		.calls = server->calls,
		.no_anonymous_writes = fsd_server_no_anonymous_writes(server),
		.uuid = server->state.uuid,
		/* The cell has a root.afs of its own. */
		.cell = server->member ? NULL : server->settings.cell,
		.advertise = server->advertise,
		.advertise_count = server->advertise_count,
	};

	server->service = fsd_service_create(&options, message);
	if (!server->service)
		return -1;
	server->observer = (struct rxw_rpc_observer){fsd_service_observe, server->service};
	return 0;
}

int fsd_server_check(const struct fsd_settings *settings, char *message)
{
	struct fsd_server *server = create_server(settings, message);
	int rc;

	if (!server)
		return -1;
	rc = fsd_server_check_settings(server, message);
	server->settings.drain_ms = 0;
	fsd_server_stop(server);
	return rc;
}

/* Opens the parts in their order: each one uses those before it. Returns as fsd_server_start() does. */
static int open_parts(struct fsd_server *server, const struct rxw_config *config, char *message)
{
	int rc;

	if (fsd_server_open_protection(server, message))
		return -1;
	rc = fsd_server_open_volumes(server, message);
	if (rc)
		return rc;
	if (server->settings.store && server->prot &&
	    fsd_storage_compare_ids(server->served, server->prot, message))
		return -1;
	if (start_parts(server, message) || make_service(server, message) ||
	    fsd_server_open_network(server, config, message) ||
	    fsd_server_open_monitoring(server, message) || fsd_server_open_control(server, message))
		return -1;
	return 0;
}

int fsd_server_start(const struct fsd_settings *settings, const struct rxw_config *config,
		     struct fsd_server **out, char *message)
{
	struct fsd_server *server = create_server(settings, message);
	int rc;

	if (!server)
		return -1;
	rc = fsd_server_check_settings(server, message);
	if (rc)
		goto fail;
	rc = open_parts(server, config, message);
	if (rc)
		goto fail;
	fsd_server_log_beginning(server);
	if (server->served && server->prot)
		fsd_storage_report_machines(server->served, server->prot);
	*out = server;
	return 0;
fail:
	server->settings.drain_ms = 0;
	fsd_server_stop(server);
	return rc;
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

/* explain_limit() does without the service from now on. */
static void destroy_service(struct fsd_server *server)
{
	struct fsd_service *service;

	pthread_mutex_lock(&server->lock);
	service = server->service;
	server->service = NULL;
	pthread_mutex_unlock(&server->lock);
	fsd_service_destroy(service);
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
	if (server->bos)
		fsd_bos_stop(server->bos_service);
	fsd_control_stop(server->control);
	server->control = NULL;
	if (server->callbacks && server->settings.store)
		fsd_server_break_promises(server);
	if (server->fs)
		server->aborted =
			rxw_endpoint_stop(server->fs, (unsigned)server->settings.drain_ms) ==
			-RXW_ETIMEDOUT;
	fsd_audit_release(server->audit);
	if (server->vl)
		rxw_endpoint_stop(server->vl, 0);
	if (server->vol)
		rxw_endpoint_stop(server->vol, 0);
	if (server->pt) {
		fsd_pt_stop(server->pt_service);
		rxw_endpoint_stop(server->pt, 0);
	}
	if (server->bos)
		rxw_endpoint_stop(server->bos, 0);
	return server->aborted;
}

int fsd_server_stop(struct fsd_server *server)
{
	struct fsd_callbacks *callbacks;
	int aborted = fsd_server_drain(server);

	assert(!server->control);
	/* The watcher and late calls may still queue work; it is ignored from here on. */
	pthread_mutex_lock(&server->lock);
	callbacks = server->callbacks;
	server->callbacks = NULL;
	pthread_mutex_unlock(&server->lock);
	fsd_callbacks_stop(callbacks);
	tools_metrics_stop(server->metrics);
	tools_trace_close(server->trace);
	fsd_member_stop(server->member);
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
	if (server->bos)
		rxw_endpoint_destroy(server->bos);
	fsd_pt_destroy(server->pt_service);
	fsd_bos_destroy(server->bos_service);
	if (server->engine)
		rxw_engine_destroy(server->engine);
	destroy_service(server);
	fsd_readers_stop(server->readers);
	if (fsd_timeline_close(server->timeline))
		fsd_log(RXW_LOG_ERROR, "--timeline %s: %s; lines are missing",
			server->settings.timeline, strerror(errno));
	fsd_server_note_ids(server);
	if (server->served)
		server->served->ops->close(server->served);
	fsd_audit_close(server->audit);
	fsd_clients_destroy(server->clients);
	fsd_remember_close(server->remember);
	fsd_guard_close(server->guard);
	fsd_member_close(server->member);
	prot_close(server->prot);
	fsd_state_close(&server->state);
	if (server->own_layer)
		server->layer->ops->destroy(server->layer);
	rxw_rpcstats_destroy(server->calls);
	fsd_limit_end(server->limit);
	pthread_mutex_destroy(&server->lock);
	free(server);
	return aborted;
}
