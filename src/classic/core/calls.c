/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls: begin, end, and what is known of them. */
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

struct rx_call *classic_begin(struct rx_connection *connection, rxw_queue *queue, void *arg)
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
