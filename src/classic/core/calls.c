/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls: begin, end, and what is known of them; and one call to many servers. */
#include <time.h>

#include "common/clock.h"
#include "core.h"

/* 1 while calls are counted (watch/rpcstats.c); programs may assign it as well. */
int rx_enable_stats;

/*
 * Calls that have ended rest in the order of their ends; the oldest is used again when more than
 * this rest. Until then stubs may look at it.
 */
#define REST 256

static struct {
	pthread_mutex_t lock; /* of the rest */
	struct rx_call *first, **last;
	unsigned count;
} resting = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &resting.first};

static struct rx_call *obtain_call(void)
{
	struct rx_call *call = NULL;

	pthread_mutex_lock(&resting.lock);
	if (resting.count > REST) {
		call = resting.first;
		assert(call && call->next);
		resting.first = call->next;
		resting.count--;
	}
	pthread_mutex_unlock(&resting.lock);
	if (!call)
		call = malloc(sizeof(*call));
	if (!call)
		osi_Panic("rx_NewCall: no memory\n");
	memset(call, 0, offsetof(struct rx_call, writes));
	return call;
}

static void rest_ended_call(struct rx_call *call)
{
	call->next = NULL;
	pthread_mutex_lock(&resting.lock);
	*resting.last = call;
	resting.last = &call->next;
	resting.count++;
	pthread_mutex_unlock(&resting.lock);
}

/* The code of a call that could not begin. */
static afs_int32 code_of_failed_begin(struct rx_connection *connection, int rc)
{
	afs_int32 code = rc == -RXW_ECALL ? rx_ConnError(connection) : 0;

	if (code)
		return code;
	return rc == -RXW_ETIMEDOUT ? RX_CALL_TIMEOUT : RX_CALL_DEAD;
}

/* Begin a call whose events a queue reports with `arg`; NULL: none. */
static struct rx_call *classic_begin(struct rx_connection *connection, rxw_queue *queue, void *arg)
{
	struct rxw_call_options options = {
		.size = sizeof(options),
		.queue = queue,
		.arg = arg,
		.events = queue ? RXW_EVENT_READ | RXW_EVENT_DONE : 0,
	};
	struct rx_call *call = obtain_call();
	rxw_connection *used;
	int rc;

	classic_connection_ref(connection);
	call->connection = connection;
	call->begun_ns = monotonic_ns();
	call->sent_s = call->received_s = (int)time(NULL);
	if (!connection->connection) {
		call->error = connection->error;
		return call;
	}
	used = connection->connection;
	rc = rxw_call_begin(used, &options, &call->call);
	if (rc == -RXW_ELIMIT && !connection->server) {
		classic_reconnect(connection, used);
		rc = rxw_call_begin(connection->connection, &options, &call->call);
	}
	if (rc) {
		call->call = NULL;
		call->error = code_of_failed_begin(connection, rc);
	}
	return call;
}

struct rx_call *rx_NewCall(struct rx_connection *connection)
{
	return classic_begin(connection, NULL, NULL);
}

afs_int32 rx_EndCall(struct rx_call *call, afs_int32 code)
{
	struct rx_connection *connection = call->connection;
	rxw_call *library_call = call->call;

	/* The call of a service ends when its procedure returns. */
	if (connection->server)
		return code ? code : rx_Error(call);
	if (!library_call) {
		code = call->error;
	} else {
		if (call->reserved)
			(void)rxw_call_commit(library_call, 0);
		if (!code)
			(void)classic_write_out(call);
		if (rx_enable_stats)
			classic_usage(call, &call->usage);
		code = rxw_call_end(library_call, code, NULL);
		call->call = NULL;
		call->error = code;
	}
	rest_ended_call(call);
	classic_connection_unref(connection);
	return ntoh_syserr_conv(code);
}

struct rx_connection *rx_ConnectionOf(struct rx_call *call)
{
	return call->connection;
}

int rx_Error(struct rx_call *call)
{
	return call->call ? rxw_call_error(call->call, NULL) : call->error;
}

int rx_GetRemoteStatus(struct rx_call *call)
{
	return call->call ? rxw_call_peer_status(call->call) : 0;
}

int rx_GetLocalStatus(struct rx_call *call)
{
	return call->status;
}

void rx_SetLocalStatus(struct rx_call *call, int status)
{
	call->status = status;
	if (call->call)
		rxw_call_set_status(call->call, (uint8_t)status);
}

int rx_GetCallAbortCode(struct rx_call *call)
{
	(void)call;
	return 0;
}

void rx_SetCallAbortCode(struct rx_call *call, int code)
{
	(void)call;
	(void)code;
}

void rx_InterruptCall(struct rx_call *call, afs_int32 code)
{
	if (call->call)
		rxw_call_abort(call->call, code);
}

void rxi_CallError(struct rx_call *call, afs_int32 code)
{
	rx_InterruptCall(call, code);
}

void rx_GetCallStatus(struct rx_call *call, afs_int32 *read_next, afs_int32 *transmit_next,
		      int *last_send, int *last_receive)
{
	struct rxw_call_statistics s = {.size = sizeof(s)};

	if (call->call)
		(void)rxw_call_stats(call->call, &s);
	if (read_next)
		*read_next = (afs_int32)s.packets_received + 1;
	if (transmit_next)
		*transmit_next = (afs_int32)s.packets_sent + 1;
	if (last_send)
		*last_send = call->sent_s;
	if (last_receive)
		*last_receive = call->received_s;
}

void classic_usage(struct rx_call *call, struct classic_usage *usage)
{
	struct rx_connection *connection = call->connection;
	struct rxw_call_statistics s = {.size = sizeof(s)};
	uint64_t now;

	if (!call->call) {
		if (usage != &call->usage)
			*usage = call->usage;
		return;
	}
	(void)rxw_call_stats(call->call, &s);
	now = monotonic_ns();
	*usage = (struct classic_usage){
		.server = connection->server,
		.host = connection->peer.host,
		.port = connection->peer.port,
		.sent = call->sent,
		.received = call->received,
		.run_ns = now - call->begun_ns,
	};
	if (connection->server && s.started_ns && s.started_ns < call->begun_ns)
		usage->queue_ns = call->begun_ns - s.started_ns;
}

/* -- One call to many servers: the library's queue says which replies have come ---------------------- */

/*
 * The private half of a struct multi_handle. One thread. The public half has indices and a count
 * that are too small for many connections: its pointers count positions, and the indices are here.
 */
struct internal {
	rxw_queue *queue; /* NULL: there is none, and all calls count as ready at once */
	int count;	  /* calls that are ready, or were returned */
	int *index;	  /* of the connections, by position in mh->ready */
	bool seen[];	  /* by index: among `index` */
};

static void mark_ready(struct multi_handle *mh, int i)
{
	struct internal *in = mh->internal;

	if (in->seen[i])
		return;
	in->seen[i] = true;
	in->index[in->count++] = i;
	*mh->firstNotReady++ = (short)i;
	mh->nReady = (short)in->count;
}

struct multi_handle *multi_Init(struct rx_connection **conns, int n)
{
	size_t places = n > 0 ? (size_t)n : 1;
	struct multi_handle *mh = calloc(1, sizeof(*mh));
	struct internal *in = calloc(1, sizeof(*in) + places * sizeof(in->seen[0]));
	rxw_engine *engine = classic_engine();

	if (!mh || !in)
		osi_Panic("multi_Init: no memory\n");
	mh->calls = calloc(places, sizeof(mh->calls[0]));
	mh->ready = calloc(places, sizeof(mh->ready[0]));
	in->index = calloc(places, sizeof(in->index[0]));
	if (!mh->calls || !mh->ready || !in->index)
		osi_Panic("multi_Init: no memory\n");
	mh->nConns = n;
	mh->nextReady = mh->firstNotReady = mh->ready;
	mh->internal = in;
	if (!engine || rxw_queue_create(engine, NULL, &in->queue))
		in->queue = NULL;
	for (int i = 0; i < n; i++)
		mh->calls[i] = classic_begin(conns[i], in->queue, (void *)(intptr_t)i);
	return mh;
}

/* Calls that could not begin, or that no queue reports, are not waited for. */
static void mark_ready_without_events(struct multi_handle *mh)
{
	struct internal *in = mh->internal;

	for (int i = 0; i < mh->nConns; i++)
		if (mh->calls[i] && (!in->queue || !mh->calls[i]->call))
			mark_ready(mh, i);
}

int multi_Select(struct multi_handle *mh)
{
	struct internal *in = mh->internal;
	struct rxw_queue_event events[16];
	int n;

	mark_ready_without_events(mh);
	while (mh->nextReady == mh->firstNotReady) {
		if (in->count == mh->nConns)
			return -1;
		n = rxw_queue_next(in->queue, events, 16, -1);
		if (n < 0)
			return -1;
		for (int i = 0; i < n; i++)
			if (events[i].call)
				mark_ready(mh, (int)(intptr_t)events[i].arg);
	}
	return in->index[mh->nextReady++ - mh->ready];
}

void multi_Finalize(struct multi_handle *mh)
{
	struct internal *in = mh->internal;

	for (int i = 0; i < mh->nConns; i++)
		if (mh->calls[i])
			(void)rx_EndCall(mh->calls[i], RX_USER_ABORT);
	(void)rxw_queue_destroy(in->queue);
	free(in->index);
	free(in);
	free(mh->calls);
	free(mh->ready);
	free(mh);
}
