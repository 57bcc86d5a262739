/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of an AFS file server. They share an engine, because the threads that poll are counted for
 * each engine. Its memory is enough for all, as if each had a machine of its own.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "afs/bare.h"
#include "afs/fetch.h"
#include "afs/numbers.h"
#include "bench/crowd.h"
#include "bench/site.h"

#define SLICES		    64
#define CALLS_OF_CONNECTION 4
#define FEW		    8 /* clients that have a thread each */

#define MEMORY_EACH ((uint64_t)16 << 20) /* bytes; only what is used is allocated */

struct client {
	struct crowd_client base;
	struct bare_client *afs; /* NULL: it uses that of the first client, by this connection: */
	rxw_connection *shared;
	rxw_call *running; /* with the lock */
	struct afs_fetch fetch; /* by it */
	bool watched;		/* its events are reported */
	uint64_t part;
	uint64_t next_pause;
	unsigned pause_bytes, pause_ms;
};

/* The first client makes the engine and looks the volume up; clients are opened by one thread. */
static struct site *site;
static struct sockaddr_storage server;
static socklen_t server_len;
static rxw_engine *engine;
static unsigned users; /* of the engine */
static struct client *first;
static rxw_connection
	*last; /* of the first client's socket; has room for calls of `room` clients */
static unsigned room;

static int open_engine(const struct crowd_place *place, char *why)
{
	struct rxw_config config;
	int rc;

	rxw_config_init(&config, sizeof(config));
	config.listeners = place->clients > FEW ? RXW_LISTENERS_SHARED : 1;
	config.memory = MEMORY_EACH * (place->clients + 16);
	config.jumbo = place->jumbograms ? RXW_ON : RXW_OFF;
	users++;
	if (engine)
		return 0;
	rc = rxw_engine_create(&config, &engine);
	if (rc < 0)
		return crowd_explain(why, rxw_strerror(rc));
	if (site_open(place->address, place->vl_port, place->fs_port, place->volume, &site, why) <
	    0)
		return -1;
	return site_server(site, &server, &server_len, why);
}

static void close_engine(void)
{
	if (--users || !engine)
		return;
	site_close(site);
	site = NULL;
	rxw_engine_destroy(engine);
	engine = NULL;
}

/* The calls of many clients by one socket, four on a connection. */
static int share_socket(struct client *c, char *why)
{
	int rc = 0;

	if (!room)
		rc = rxw_connection_create(bare_endpoint(first->afs),
					   (const struct sockaddr *)&server, server_len,
					   AFS_SERVICE_FS, NULL, &last);
	else
		rxw_connection_ref(last);
	if (rc < 0)
		return crowd_explain(why, rxw_strerror(rc));
	room = room ? room - 1 : CALLS_OF_CONNECTION - 1;
	c->shared = last;
	return 0;
}

static int open_afs(void *client, const struct crowd_place *place, char *why)
{
	struct client *c = client;
	struct sockaddr_storage local = {0};
	struct sockaddr_in *own = (struct sockaddr_in *)&local;
	struct bare_options o = {.server = &server, .local = place->own ? &local : NULL};
	int rc;

	own->sin_family = AF_INET;
	own->sin_addr.s_addr = htonl(place->own + (place->one_address ? 0 : c->base.number));
	if (open_engine(place, why) < 0)
		return -1;
	o.server_len = server_len;
	c->part = place->part;
	c->pause_bytes = place->pause_bytes;
	c->pause_ms = place->pause_ms;
	if (place->one_socket && first && c->base.number < place->clients)
		return share_socket(c, why);
	first = first ? first : c;
	rc = bare_open(engine, &o, &c->afs);
	return rc < 0 ? crowd_explain(why, rxw_strerror(rc)) : 0;
}

static void close_afs(void *client)
{
	struct client *c = client;

	rxw_connection_release(c->shared);
	bare_close(c->afs);
	close_engine();
}

static int find_afs(void *client, struct crowd_file *file, char *why)
{
	(void)client;
	return site_find(site, file->name, &file->fid, &file->length, why);
}

static int begin_call(struct client *c, uint32_t flags, char *why)
{
	struct rxw_call_options co = {
		.size = sizeof(co), .flags = flags, .deadline_ms = c->base.limit_ms};
	rxw_call *call;
	int rc = c->shared ? rxw_call_begin(c->shared, &co, &call) : bare_begin(c->afs, &co, &call);

	if (rc < 0)
		return crowd_explain(why, rxw_strerror(rc));
	pthread_mutex_lock(&c->base.lock);
	c->running = call;
	if (c->base.interrupted)
		rxw_call_abort(call, RXW_USER_ABORT);
	pthread_mutex_unlock(&c->base.lock);
	return 0;
}

static int end_call(struct client *c, int32_t code, char *why)
{
	rxw_call *call = c->running;
	enum rxw_origin origin;

	pthread_mutex_lock(&c->base.lock);
	c->running = NULL;
	pthread_mutex_unlock(&c->base.lock);
	code = rxw_call_end(call, code, &origin);
	if (code == 0)
		return 0;
	snprintf(why, CROWD_WHY, "%s (code %d)", rxw_code_text_from(code, origin), (int)code);
	return -1;
}

static void compare_slices(const struct crowd_file *file, uint64_t offset, const struct iovec *iov,
			   unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		crowd_compare(file, offset, iov[i].iov_base, iov[i].iov_len);
		offset += iov[i].iov_len;
	}
}

/* A client that is slow. */
static void take_pause(struct client *c)
{
	if (!c->pause_bytes || c->fetch.received < c->next_pause)
		return;
	c->next_pause = c->fetch.received + c->pause_bytes;
	usleep(c->pause_ms * 1000);
}

/* The next part of the file. */
static int begin_part(struct client *c, const struct crowd_file *file, uint32_t flags, char *why)
{
	uint64_t length = file->length - c->base.kept;

	if (begin_call(c, flags, why) < 0)
		return -1;
	length = c->part && c->part < length ? c->part : length;
	afs_fetch_init(&c->fetch, &file->fid, c->base.kept, length);
	c->next_pause = c->pause_bytes;
	c->watched = false;
	return 0;
}

/* The lent data is not copied: as by HTTP, only the kernel copies it. */
static enum afs_fetch_result take_data(struct client *c, const struct crowd_file *file,
				       _Atomic(uint64_t) *bytes)
{
	enum afs_fetch_result result;

	do {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		uint64_t before = c->fetch.received;

		result = afs_fetch_step(&c->fetch, c->running, iov, &count);
		atomic_fetch_add_explicit(bytes, c->fetch.received - before, memory_order_relaxed);
		if (result == AFS_FETCH_LENT)
			compare_slices(file, c->fetch.offset + before, iov, count);
		take_pause(c);
	} while (result == AFS_FETCH_LENT);
	return result;
}

static int end_part(struct client *c, enum afs_fetch_result result, char *why)
{
	if (end_call(c, result == AFS_FETCH_DONE ? 0 : RXW_USER_ABORT, why) < 0)
		return -1;
	if (c->fetch.length != c->fetch.wanted)
		return crowd_explain(why, "a file has another length");
	c->base.kept += c->fetch.length;
	return 0;
}

static int fetch_afs(void *client, const struct crowd_file *file, uint8_t *buffer,
		     _Atomic(uint64_t) *bytes, char *why)
{
	struct client *c = client;

	(void)buffer;
	while (c->base.kept < file->length)
		if (begin_part(c, file, 0, why) < 0 ||
		    end_part(c, take_data(c, file, bytes), why) < 0)
			return -1;
	c->base.kept = 0;
	return 0;
}

/* Few clients receive for themselves; those that pause or share connections have to wait. */
static bool needs_thread(const struct crowd_place *place)
{
	return place->clients <= FEW || place->pause_bytes || place->one_socket;
}

static void report_event(rxw_call *call, unsigned events, void *client)
{
	const struct client *c = client;

	(void)call;
	(void)events;
	c->base.ready(c->base.arg);
}

static enum crowd_step step_afs(void *client, const struct crowd_file *file,
				_Atomic(uint64_t) *bytes, char *why)
{
	struct client *c = client;

	while (c->base.kept < file->length) {
		enum afs_fetch_result result;

		if (!c->running && begin_part(c, file, RXW_CALL_NONBLOCK, why) < 0)
			return CROWD_FAILED;
		result = take_data(c, file, bytes);
		if (result == AFS_FETCH_AGAIN) {
			if (c->watched)
				return CROWD_AGAIN;
			c->watched = true;
			rxw_call_set_callback(c->running, report_event, c);
			return CROWD_AGAIN;
		}
		if (end_part(c, result, why) < 0)
			return CROWD_FAILED;
	}
	c->base.kept = 0;
	return CROWD_DONE;
}

static int ask_afs(void *client, const struct crowd_file *file, char *why)
{
	struct client *c = client;
	AFSFetchStatus status;
	AFSCallBack callback;
	AFSVolSync sync;
	int32_t code;

	if (begin_call(c, 0, why) < 0)
		return -1;
	code = StartRXAFS_FetchStatus(c->running, &file->fid);
	if (code == 0)
		code = EndRXAFS_FetchStatus(c->running, &status, &callback, &sync);
	return end_call(c, code, why);
}

static void interrupt_afs(void *client)
{
	struct client *c = client;

	if (c->running)
		rxw_call_abort(c->running, RXW_USER_ABORT);
}

const struct crowd_way crowd_afs = {.name = "AFS",
				    .client_size = sizeof(struct client),
				    .open = open_afs,
				    .find = find_afs,
				    .fetch = fetch_afs,
				    .needs_thread = needs_thread,
				    .step = step_afs,
				    .ask = ask_afs,
				    .interrupt = interrupt_afs,
				    .close = close_afs};
