/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients: the endpoint, its connections, blocking calls, and their errors. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rxwire/stats.h>

#include "afs/client/private.h"
#include "afs/uuid.h"

#define LIMIT_MS    60000 /* by default */
#define ERRNO_END   134	  /* above the errno values that servers translate */
#define SURPLUS_MAX 4096  /* extra bytes after an answer that are discarded */

/*
 * Format into `text`. Of a line that is too long the middle is left out: a long path must not hide the
 * reason behind it.
 */
static void put_shortened_text(char *text, size_t size, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));
static void put_shortened_text(char *text, size_t size, const char *format, va_list args)
{
	size_t begin = size / 3, rest = size - begin - 3; /* with the NUL */
	char *whole;
	int length = vasprintf(&whole, format, args);

	if (length < 0) {
		snprintf(text, size, "no memory");
		return;
	}
	if ((size_t)length < size)
		memcpy(text, whole, (size_t)length + 1);
	else
		snprintf(text, size, "%.*s...%s", (int)begin, whole, whole + length + 1 - rest);
	free(whole);
}

int afs_error_text(struct afs_error *error, const char *format, ...)
{
	va_list args;

	memset(error, 0, offsetof(struct afs_error, text));
	error->origin = RXW_ORIGIN_LOCAL;
	va_start(args, format);
	put_shortened_text(error->text, sizeof(error->text), format, args);
	va_end(args);
	return -1;
}

static void format_text(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void format_text(char *text, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_shortened_text(text, size, format, args);
	va_end(args);
}

static enum afs_remedy remedy_of(int32_t code, enum rxw_origin origin)
{
	switch (code) {
	case RXW_RESTARTING:
	case RXW_CALL_DEAD:    /* from the peer: this side was silent, since it was suspended */
	case RXW_CALL_TIMEOUT: /* from the peer: this side was slow to read */
	case RXW_CALL_MSGSIZE: /* packets were too large for the path: the next call has smaller ones */
		return AFS_REMEDY_WAIT;
	case RXW_NETWORK_RESET:
		return origin == RXW_ORIGIN_PEER ? AFS_REMEDY_NONE : AFS_REMEDY_WAIT;
	case AFS_VBUSY:
	case AFS_VOFFLINE:
	case AFS_VSALVAGE:
	case AFS_VSALVAGING:
	case AFS_VNOSERVICE:
		return origin == RXW_ORIGIN_PEER ? AFS_REMEDY_WAIT : AFS_REMEDY_NONE;
	case AFS_VNOVOL:
	case AFS_VMOVED:
		return origin == RXW_ORIGIN_PEER ? AFS_REMEDY_LOCATE : AFS_REMEDY_NONE;
	default:
		return AFS_REMEDY_NONE;
	}
}

/* The errno value that a server's code stands for; 0 for codes of AFS and of Rx. */
static int errno_of(int32_t code, enum rxw_origin origin)
{
	int number = rxw_code_to_errno(code);

	if (origin != RXW_ORIGIN_PEER || number <= 0 || number >= ERRNO_END)
		return 0;
	/* Numbers from 100 on that were not translated are codes of volumes. */
	return number == code && number >= 100 ? 0 : number;
}

void afs_error_code(struct afs_error *error, const char *what, int32_t code, enum rxw_origin origin)
{
	int number = errno_of(code, origin);
	const char *why = number ? strerror(number) : rxw_code_text_from(code, origin);

	if (code == RXW_CALL_DEAD)
		why = origin == RXW_ORIGIN_PEER
			      ? "the server heard nothing from this side, and ended the call"
			      : "no answer; check that a server is running there";
	afs_error_text(error, "%s: %s (code %d)", what, why, code);
	error->code = code;
	error->origin = origin;
	error->number = errno_of(code, origin);
	error->remedy = remedy_of(code, origin);
}

int afs_failed(struct afs_error *error, const char *what, int rc)
{
	afs_error_text(error, "%s: %s", what, rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc));
	error->result = rc;
	/* The connection is in error: a new one may work. */
	error->remedy = rc == -RXW_ECALL ? AFS_REMEDY_WAIT : AFS_REMEDY_NONE;
	return -1;
}

static int fail_as_interrupted(struct afs_error *error, const char *what)
{
	afs_error_text(error, "%s: interrupted", what);
	error->code = RXW_USER_ABORT;
	error->interrupted = true;
	return -1;
}

void afs_adopt_call(struct afs_client *c, rxw_call *call, unsigned deadline_ms)
{
	pthread_mutex_lock(&c->lock);
	assert(!c->running);
	c->running = call;
	c->patience_ms = deadline_ms ? deadline_ms : c->limit_ms;
	c->stalled = false;
	if (c->cancelled)
		rxw_call_abort(call, RXW_USER_ABORT);
	pthread_mutex_unlock(&c->lock);
}

int afs_begin(struct afs_client *c, rxw_connection *connection, const char *what,
	      unsigned deadline_ms, rxw_call **call, struct afs_error *error)
{
	struct rxw_call_options co = {.size = sizeof(co), .deadline_ms = deadline_ms};
	bool cancelled;
	int rc;

	pthread_mutex_lock(&c->lock);
	cancelled = c->cancelled;
	pthread_mutex_unlock(&c->lock);
	if (cancelled)
		return fail_as_interrupted(error, what);
	rc = connection ? rxw_call_begin(connection, &co, call) : -RXW_ESTATE;
	if (rc < 0)
		return afs_failed(error, what, rc);
	afs_adopt_call(c, *call, deadline_ms);
	return 0;
}

/* The service is unknown where the call went, or the class: name both possibilities. */
static void explain_invalid(const struct afs_client *c, const char *server, struct afs_error *error)
{
	size_t used = strlen(error->text);

	snprintf(error->text + used, sizeof(error->text) - used,
		 " at the %s; %scheck the order of the ports, -s HOST:VLPORT:FSPORT", server,
		 c->security ? "" : "it may require a ticket, see --cell, or ");
}

int afs_conclude(struct afs_client *c, rxw_call *call, const char *what, int32_t code,
		 const char *why, struct afs_error *error)
{
	bool location = rxw_call_service_id(call) == AFS_SERVICE_VL, stalled, cancelled;
	enum rxw_origin origin = RXW_ORIGIN_NONE;
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);
	struct rxw_call_statistics stats = {.size = sizeof(stats)};
	char server[96], where[400];
	bool resent;

	rxw_call_peer(call, &peer, &len);
	resent = rxw_call_stats(call, &stats) == 0 && stats.retransmitted;
	pthread_mutex_lock(&c->lock);
	c->running = NULL;
	stalled = c->stalled;
	cancelled = c->cancelled;
	pthread_mutex_unlock(&c->lock);
	/* An error of the call itself is the reason why reading failed. */
	code = rxw_call_end(call, code, &origin);
	if (code == 0 && !why)
		return 0;
	if (cancelled)
		return fail_as_interrupted(error, what);
	afs_server_text(&peer, location ? "location server" : "file server", server,
			sizeof(server));
	format_text(where, sizeof(where), "%s: %s", what, server);
	if (stalled || (origin == RXW_ORIGIN_LOCAL && code == RXW_CALL_TIMEOUT)) {
		afs_error_text(error,
			       stalled ? "%s: no progress for %u s"
				       : "%s: did not finish its answer within %u s",
			       where, (c->patience_ms + 999) / 1000);
		error->code = RXW_CALL_TIMEOUT;
		error->remedy = AFS_REMEDY_OTHER;
	} else if (why && (code == 0 || code == RXW_USER_ABORT || code == RXW_RPC_CC_UNMARSHAL)) {
		afs_error_text(error, "%s: %s", where, why);
		error->code = code == RXW_USER_ABORT ? 0 : code;
	} else {
		afs_error_code(error, origin == RXW_ORIGIN_PEER ? what : where, code, origin);
		if (origin == RXW_ORIGIN_PEER && code == RXW_INVALID_OPERATION)
			explain_invalid(c, server, error);
		if (code == RXW_CALL_DEAD && origin != RXW_ORIGIN_PEER && !location)
			afs_server_silent(c, &peer);
	}
	error->resent = resent;
	return -1;
}

int afs_end(struct afs_client *c, rxw_call *call, const char *what, int32_t code,
	    struct afs_error *error)
{
	const char *why = code == RXW_RPC_CC_UNMARSHAL ? "its answer is malformed" : NULL;
	uint8_t rest[512];
	size_t surplus = 0;
	ssize_t n;

	while (code == 0 && (n = rxw_call_read_some(call, rest, sizeof(rest))) > 0) {
		surplus += (size_t)n;
		if (surplus <= SURPLUS_MAX)
			continue;
		why = "its answer is too long";
		code = RXW_USER_ABORT;
	}
	return afs_conclude(c, call, what, code, why, error);
}

/* A random (version 4) UUID, because the client keeps no state between runs. */
static void make_identity(struct rxw_uuid *self)
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		memset(bytes, 0x5a, sizeof(bytes));
	bytes[6] = (bytes[6] & 0x0f) | 0x40;
	bytes[8] = (bytes[8] & 0x3f) | 0x80;
	afs_uuid_from_octets(self, bytes);
}

/* On any address of the family of the location server, unless one is given, and any port. */
static int open_client_endpoint(rxw_engine *engine, const struct afs_client_options *options,
				rxw_endpoint **endpoint)
{
	struct sockaddr_storage any = {.ss_family = options->vl->ss_family};
	const struct sockaddr_storage *local = options->local ? options->local : &any;
	struct rxw_endpoint_options eo = {
		.size = sizeof(eo),
		.address = (const struct sockaddr *)local,
		.address_len = local->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							    : sizeof(struct sockaddr_in),
		.config = options->config,
	};

	return rxw_endpoint_create(engine, &eo, endpoint);
}

int afs_client_open(rxw_engine *engine, const struct afs_client_options *options,
		    struct afs_client **client, struct afs_error *error)
{
	struct afs_client *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return afs_failed(error, "client", -RXW_ENOMEM);
	memcpy(&c->vl_address, options->vl, options->vl_len);
	c->vl_len = options->vl_len;
	while (c->vl_other_count < options->vl_other_count && c->vl_other_count < AFS_VL_OTHERS) {
		c->vl_others[c->vl_other_count] = options->vl_others[c->vl_other_count];
		c->vl_other_count++;
	}
	c->fs_port = options->fs_port ? options->fs_port : AFS_PORT_FS;
	c->limit_ms = options->limit_ms ? options->limit_ms : LIMIT_MS;
	c->security = options->security ? rxw_security_ref(options->security) : NULL;
	make_identity(&c->self.uuid);
	afs_watch_init(c);
	rc = open_client_endpoint(engine, options, &c->endpoint);
	if (rc == 0)
		rc = afs_client_callbacks(c);
	if (rc == 0)
		rc = rxw_connection_create(c->endpoint, (struct sockaddr *)&c->vl_address,
					   c->vl_len, AFS_SERVICE_VL, c->security, &c->vl);
	if (rc < 0) {
		afs_failed(error, "cannot open a socket", rc);
		afs_client_close(c);
		return -1;
	}
	*client = c;
	return 0;
}

void afs_client_close(struct afs_client *client)
{
	if (!client)
		return;
	afs_watch_end(client);
	if (client->vl)
		rxw_connection_release(client->vl);
	rxw_connpool_release(client->ahead);
	if (client->fs)
		rxw_connection_release(client->fs);
	if (client->endpoint)
		rxw_endpoint_destroy(client->endpoint);
	rxw_security_unref(client->security);
	free(client->sites);
	free(client);
}

/* Fetches that begin ahead from now on need other connections. */
static void forget_pool(struct afs_client *client)
{
	rxw_connpool_release(client->ahead);
	client->ahead = NULL;
}

int afs_client_renew(struct afs_client *client, rxw_security *security, struct afs_error *error)
{
	rxw_connection *vl, *fs = NULL, *old_vl, *old_fs;
	rxw_security *old;
	int rc = rxw_connection_create(client->endpoint, (struct sockaddr *)&client->vl_address,
				       client->vl_len, AFS_SERVICE_VL, security, &vl);

	if (rc == 0 && client->fs) {
		rc = rxw_connection_create(client->endpoint, (struct sockaddr *)&client->fs_address,
					   client->fs_len, AFS_SERVICE_FS, security, &fs);
		if (rc < 0)
			rxw_connection_release(vl);
	}
	if (rc < 0)
		return afs_failed(error, "cannot connect with another token", rc);
	if (security)
		rxw_security_ref(security);
	pthread_mutex_lock(&client->lock);
	old_vl = client->vl;
	old_fs = client->fs;
	old = client->security;
	client->vl = vl;
	client->fs = fs;
	client->security = security;
	pthread_mutex_unlock(&client->lock);
	rxw_connection_release(old_vl);
	rxw_connection_release(old_fs);
	forget_pool(client);
	rxw_security_unref(old);
	return 0;
}

int afs_client_identity(const struct afs_client *client, struct rxw_identity *identity)
{
	return client->fs ? rxw_connection_identity(client->fs, identity) : -RXW_ESTATE;
}

rxw_endpoint *afs_client_endpoint(struct afs_client *client)
{
	return client->endpoint;
}

int afs_client_use(struct afs_client *client, const struct afs_volume *volume,
		   struct afs_error *error)
{
	rxw_connection *connection, *old;
	int rc = rxw_connection_create(client->endpoint, (const struct sockaddr *)&volume->server,
				       volume->server_len, AFS_SERVICE_FS, client->security,
				       &connection);

	if (rc < 0)
		return afs_failed(error, "cannot connect to the file server", rc);
	pthread_mutex_lock(&client->lock);
	old = client->fs;
	client->fs = connection;
	client->fs_address = volume->server;
	client->fs_len = volume->server_len;
	afs_server_asked(client, &volume->server, volume->server_len);
	pthread_mutex_unlock(&client->lock);
	rxw_connection_release(old);
	forget_pool(client);
	return 0;
}

int afs_client_call(struct afs_client *client, const struct rxw_call_options *options,
		    rxw_call **call, struct afs_error *error)
{
	int rc = client->fs ? rxw_call_begin(client->fs, options, call) : -RXW_ESTATE;

	return rc < 0 ? afs_failed(error, "cannot begin a call", rc) : 0;
}
