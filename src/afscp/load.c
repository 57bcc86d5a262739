/* SPDX-License-Identifier: BSD-2-Clause */
/* The clients of afscp bench. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/address.h"
#include "afs/numbers.h"
#include "common/clock.h"
#include "program/message.h"
#include "afscp/load.h"
#include "afscp/place.h"

#define SERVERS	 16			  /* of a volume */
#define MOVED_NS (5 * (uint64_t)NS_PER_S) /* for finding a volume again */

/* The server of the place: the first that answers. 0 or a negative errno. */
static int ask_where(struct load *load, struct rxafs_request *request)
{
	struct rxafs_server servers[SERVERS];
	int count = rxafs_where(load->object, request, servers, SERVERS), at = 0;

	if (count <= 0)
		return count < 0 ? count : -ENODEV;
	while (at < count - 1 && servers[at].state != RXAFS_SERVER_UP)
		at++;
	if (servers[at].state != RXAFS_SERVER_UP)
		at = 0;
	pthread_mutex_lock(&load->lock);
	load->server = servers[at];
	pthread_mutex_unlock(&load->lock);
	return 0;
}

int load_find(struct load *load, struct run *run)
{
	struct attempt t;

	*load = (struct load){.run = run, .label = run->places[0].text};
	pthread_mutex_init(&load->lock, NULL);
	if (place_open(run, &run->places[0], true, &load->object, &load->attributes) != COPY_GOOD) {
		load->object = NULL;
		return -1;
	}
	load->fid = (AFSFid){load->attributes.fid.volume, load->attributes.fid.vnode,
			     load->attributes.fid.unique};
	t = attempt_begin(run, CHANGE_NONE, load->label);
	while (attempt_again(&t, ask_where(load, &t.request)))
		;
	load->home = strcmp(load->server.cell, run->cell) == 0;
	return t.value < 0 ? -1 : 0;
}

static bool renew_load(void *arg, rxw_token *token)
{
	struct load *load = arg;
	bool good = session_use_token(load->run, token);

	for (size_t i = 0; good && load->home && i < load->count; i++)
		good = bare_renew(load->clients[i], rxw_token_security(token)) == 0;
	return good;
}

static int open_load_client(struct load *load, size_t i)
{
	const struct bare_options o = {
		.server = &load->server.address,
		.server_len = load->server.address_len,
		.config = &load->run->config,
		.security = load->home ? tools_renewal_security(&load->run->renewal) : NULL};
	int rc = bare_open(load->engine, &o, &load->clients[i]);

	if (rc < 0)
		tools_error("client %zu: %s", i + 1, tools_result_text(rc));
	return rc;
}

/* Who uses a new token of the run. */
static void route_tokens(struct run *run, tools_renewal_use *use, void *arg)
{
	pthread_mutex_lock(&run->token_lock);
	run->renewal.use = use;
	run->renewal.arg = arg;
	pthread_mutex_unlock(&run->token_lock);
}

int load_open(struct load *load, size_t clients)
{
	int rc = rxw_engine_create(&load->run->config, &load->engine);

	load->clients = calloc(clients, sizeof(struct bare_client *));
	if (rc < 0 || !load->clients) {
		tools_error("cannot start: %s", tools_result_text(rc < 0 ? rc : -RXW_ENOMEM));
		return -1;
	}
	for (; load->count < clients; load->count++)
		if (open_load_client(load, load->count) < 0)
			return -1;
	route_tokens(load->run, renew_load, load);
	return 0;
}

void load_end(struct load *load)
{
	route_tokens(load->run, session_use_token, load->run);
	bare_give_up(load->clients, load->count, run_farewell_ms(load->run));
	for (size_t i = 0; i < load->count; i++)
		bare_close(load->clients[i]);
	load->count = 0;
}

void load_close(struct load *load)
{
	load_end(load);
	free(load->clients);
	if (load->engine)
		rxw_engine_destroy(load->engine);
	rxafs_release(load->object);
	pthread_mutex_destroy(&load->lock);
}

static struct rxafs_server server_of(struct load *load)
{
	struct rxafs_server server;

	pthread_mutex_lock(&load->lock);
	server = load->server;
	pthread_mutex_unlock(&load->lock);
	return server;
}

void load_name_server(struct load *load, char *text, size_t size)
{
	const struct rxafs_server server = server_of(load);

	afs_server_text(&server.address, "file server", text, size);
}

int load_reconnect(struct load *load, size_t client, int32_t code)
{
	struct rxafs_request request = {.user = load->run->user,
					.deadline = rxafs_now() + MOVED_NS};
	struct rxafs_attributes attributes;
	struct rxafs_server server;

	/* What the library asks leads it to the volume. */
	if ((code == AFS_VMOVED || code == AFS_VNOVOL) &&
	    rxafs_forget(load->object, &request) == 0 &&
	    rxafs_getattr(load->object, &request, &attributes) == 0)
		ask_where(load, &request);
	server = server_of(load);
	return bare_connect(load->clients[client], &server.address, server.address_len);
}

void load_counters(const struct load *load, struct counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (size_t i = 0; i < load->count; i++) {
		struct counters one;

		if (counters_read(&one, bare_endpoint(load->clients[i])) == 0)
			tools_stats_add(sum, &one);
	}
}

void load_describe(const struct load *load, const struct counters *stats, json_t *report)
{
	json_object_set_new(report, "config", tools_config_json(&load->run->config));
	json_object_set_new(report, "effective",
			    tools_effective_json(bare_endpoint(load->clients[0])));
	json_object_set_new(report, "transport", tools_stats_json(stats));
	json_object_set_new(report, "machine", tools_facts_json());
	json_object_set_new(report, "version", json_string(rxw_version()));
}
