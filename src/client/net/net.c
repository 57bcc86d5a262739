/* SPDX-License-Identifier: BSD-2-Clause */
/* The instance: its endpoint, and its beginning and end. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "afs/uuid.h"
#include "client/net/netpath.h"
#include "client/net/record.h"
#include "common/failure.h"

#define SOFT_MS	 60000u
#define DEAD_MS	 12000u
#define PAUSE_MS 1000u

/*
 * A random (version 4) UUID, and which of equal sites is the first: promises do not outlive the
 * instance (K-044).
 */
static int draw_uuid(struct cl_net *net)
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	bytes[6] = (bytes[6] & 0x0f) | 0x40;
	bytes[8] = (bytes[8] & 0x3f) | 0x80;
	afs_uuid_from_octets(&net->self, bytes);
	net->spread = bytes[0] % 13u;
	return 0;
}

/* On the given address; else for both families, or for IPv4 where the machine has no other. */
static int open_endpoint(struct cl_net *net, const struct cl_net_options *o)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .address = o->local,
					  .address_len = o->local_len,
					  .config = o->config};
	int rc;

	if (o->local)
		return rxw_endpoint_create(net->engine, &eo, &net->endpoint);
	eo.address = (const struct sockaddr *)&any;
	eo.address_len = sizeof(any);
	eo.dual_stack = 1;
	rc = rxw_endpoint_create(net->engine, &eo, &net->endpoint);
	if (rc == 0)
		return 0;
	eo.address = NULL;
	eo.dual_stack = 0;
	return rxw_endpoint_create(net->engine, &eo, &net->endpoint);
}

static int start_engine(struct cl_net *net, const struct cl_net_options *o)
{
	struct rxw_config config;

	net->engine = o->engine;
	if (net->engine)
		return 0;
	rxw_config_init(&config, sizeof(config));
	net->own_engine = true;
	return rxw_engine_create(o->config ? o->config : &config, &net->engine);
}

static void free_net(struct cl_net *net)
{
	int rc;

	cl_probes_stop(net);
	cl_pulses_stop(net);
	for (size_t i = 0; i < net->server_count; i++)
		cl_server_disconnect(net->servers[i]);
	cl_locations_free(net);
	/* Waits for callbacks in progress, which use what is freed below. */
	rc = rxw_endpoint_destroy(net->endpoint);
	assert(rc == 0);
	(void)rc;
	for (size_t i = 0; i < net->server_count; i++) {
		cl_paths_free(net->servers[i]);
		cl_server_free(net->servers[i]);
	}
	free(net->servers);
	cl_records_free(net);
	if (net->own_engine)
		rxw_engine_destroy(net->engine);
	pthread_cond_destroy(&net->changed);
	pthread_mutex_destroy(&net->wait_lock);
	pthread_mutex_destroy(&net->table_lock);
	free(net);
}

int cl_net_create(const struct cl_net_options *o, struct cl_net **out, char *message, size_t size)
{
	struct cl_net *net = calloc(1, sizeof(*net));
	int rc, result = -ENOMEM;

	if (!net)
		return fail_with(-ENOMEM, message, size, "no memory");
	net->cells = o->cells;
	net->arg = o->arg;
	if (o->ops)
		net->ops = *o->ops;
	net->soft_ms = o->soft_ms ? o->soft_ms : SOFT_MS;
	net->dead_ms = o->dead_ms ? o->dead_ms : DEAD_MS;
	/* Whoever repeats operations himself bounds what one of them takes. */
	if (o->one_round && net->dead_ms > net->soft_ms)
		net->dead_ms = net->soft_ms;
	net->pause_ms = o->pause_ms ? o->pause_ms : PAUSE_MS;
	net->one_round = o->one_round;
	assert(o->pair_count <= CL_PAIRS);
	net->pair_count = o->pair_count;
	if (o->pair_count)
		memcpy(net->pairs, o->pairs, o->pair_count * sizeof(net->pairs[0]));
	pthread_mutex_init(&net->table_lock, NULL);
	pthread_mutex_init(&net->wait_lock, NULL);
	monotonic_cond_init(&net->changed);
	if (draw_uuid(net) < 0 || cl_records_create(net) < 0) {
		snprintf(message, size, "no memory, or no random numbers");
		goto fail;
	}
	rc = start_engine(net, o);
	if (rc == 0)
		rc = open_endpoint(net, o);
	if (rc == 0)
		rc = cl_callbacks_offer(net);
	if (rc < 0) {
		result = rc == -RXW_ESYS ? -errno : rc == -RXW_EADDRINUSE ? -EADDRINUSE : -EIO;
		snprintf(message, size, "cannot open a socket: %s",
			 rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc));
		goto fail;
	}
	result = cl_pulses_start(net);
	if (result == 0)
		result = cl_probes_start(net);
	if (result < 0) {
		snprintf(message, size, "no memory, or no thread");
		goto fail;
	}
	*out = net;
	return 0;
fail:
	free_net(net);
	return result;
}

void cl_net_cancel_all(struct cl_net *net)
{
	struct cl_server *server;

	atomic_store(&net->cancelled, true);
	for (uint32_t n = 1; (server = cl_server_at(net, n)); n++)
		cl_server_abort(server);
	cl_locations_abort(net);
	cl_wake_waiters(net);
}

rxw_endpoint *cl_net_endpoint(struct cl_net *net)
{
	return net->endpoint;
}

void cl_net_close(struct cl_net *net, unsigned limit_ms)
{
	if (!net)
		return;
	if (limit_ms)
		cl_net_farewell(net, limit_ms);
	free_net(net);
}
