/* SPDX-License-Identifier: BSD-2-Clause */
/* A procedure call from begin to end, on the client and on the server; notifying observers. */
#include <errno.h>

#include <rxwire/rpc.h>
#include <rxwire/stub.h>

#include "engine/stream/observer.h"
#include "common/clock.h"
#include "rpc/refusal.h"

/* errno values that a package with dense opcodes sends as other codes (rx-protocol 9.4). */
#define LINUX_ENOSPC 28
#define LINUX_EDQUOT 122
#define WIRE_ENOSPC  108
#define WIRE_EDQUOT  109

/* All of a report except its times and its code. */
static void describe_call(struct rxw_rpc_report *r, rxw_call *call, const struct rxw_observed *seen,
			  struct sockaddr_storage *peer)
{
	r->size = sizeof(*r);
	r->bytes_sent = seen->written;
	r->bytes_received = seen->taken;
	rxw_call_peer(call, peer, &r->peer_len);
	r->peer = (const struct sockaddr *)peer;
}

/* -- client --------------------------------------------------------------------------------- */

static _Thread_local enum rxw_origin latest_origin;

enum rxw_origin rxw_rpc_origin(void)
{
	return latest_origin;
}

/* Undo the translation of ENOSPC and EDQUOT by a server (rx-protocol 9.4). */
static int32_t swap_back(int32_t code)
{
	switch (code) {
	case WIRE_ENOSPC:
		return LINUX_ENOSPC;
	case WIRE_EDQUOT:
		return LINUX_EDQUOT;
	default:
		return code;
	}
}

int32_t rxw_rpc_refusal(int result, int32_t code)
{
	switch (-result) {
	case RXW_ETIMEDOUT:
		return RXW_CALL_TIMEOUT;
	case RXW_EINVAL:
		return rxw_code_from_errno(EINVAL);
	case RXW_ENOMEM:
		return rxw_code_from_errno(ENOMEM);
	case RXW_EAGAIN:
		return rxw_code_from_errno(EAGAIN);
	case RXW_EDEADLK:
		return rxw_code_from_errno(EDEADLK);
	case RXW_ESTOPPED:
	case RXW_ESTATE: /* the connection was released */
		return rxw_code_from_errno(ESHUTDOWN);
	default:
		return code ? code : RXW_CALL_DEAD;
	}
}

/* 0, or why a stub must not begin a call, since it waits for the reply. */
static int check_stub_waits(const struct rxw_call_options *options, rxw_call **call)
{
	if (call)
		*call = NULL;
	if (options && (options->flags & RXW_CALL_NONBLOCK))
		return -RXW_EINVAL;
	return rxw_must_not_wait() ? -RXW_EDEADLK : 0;
}

static int32_t note_beginning(int result, int32_t code)
{
	latest_origin = result ? RXW_ORIGIN_LOCAL : RXW_ORIGIN_NONE;
	return result ? rxw_rpc_refusal(result, code) : 0;
}

int32_t rxw_rpc_begin(rxw_connection *connection, const struct rxw_call_options *options,
		      rxw_call **call)
{
	int r = check_stub_waits(options, call);
	int32_t code = 0;

	if (!r)
		r = rxw_call_try_begin(connection, options, call, &code);
	return note_beginning(r, code);
}

int32_t rxw_rpc_begin_pool(rxw_connpool *pool, const struct rxw_call_options *options,
			   rxw_call **call)
{
	int r = check_stub_waits(options, call);
	int32_t code = 0;

	if (!r)
		r = rxw_connpool_try_begin(pool, options, call, &code);
	return note_beginning(r, code);
}

int32_t rxw_rpc_end(rxw_call *call, int32_t code, const struct rxw_rpc_interface *interface,
		    unsigned function)
{
	struct rxw_rpc_report r = {.interface = interface, .function = function, .client = true};
	struct sockaddr_storage peer;
	struct rxw_observed seen;
	bool observed = call && rxw_call_observed(call, &seen);

	if (observed)
		describe_call(&r, call, &seen, &peer);
	/* An error that the call already has takes precedence over this abort. */
	code = rxw_call_end(call, code, &latest_origin);
	if (latest_origin == RXW_ORIGIN_PEER && interface && interface->swap_errno)
		code = swap_back(code);
	if (observed) {
		r.code = code;
		r.run_ns = monotonic_ns() - seen.started_ns;
		seen.observer->report(seen.observer->arg, &r);
	}
	return code;
}

/* -- server --------------------------------------------------------------------------------- */

static const struct rxw_rpc_entry *find_entry(const struct rxw_rpc_table *table, int32_t opcode)
{
	const struct rxw_rpc_entry *base = table->entries;
	unsigned count = table->count;

	while (count) {
		const struct rxw_rpc_entry *middle = base + count / 2;

		if (middle->opcode == opcode)
			return middle;
		if (middle->opcode < opcode) {
			base = middle + 1;
			count -= count / 2 + 1;
		} else {
			count /= 2;
		}
	}
	return NULL;
}

static int32_t swap_errno(int32_t code)
{
	switch (code) {
	case LINUX_ENOSPC:
		return WIRE_ENOSPC;
	case LINUX_EDQUOT:
		return WIRE_EDQUOT;
	default:
		return code;
	}
}

/* If the call has an error, the stub's result is a consequence of it. */
static int32_t prefer_call_error(const rxw_call *call, int32_t code)
{
	int32_t own = code ? rxw_call_error(call, NULL) : 0;

	return own ? own : code;
}

/*
 * The client requested opcode `entry`; NULL: an unknown one. `queued`: a queue delivered the call,
 * which the caller ends. *kept: the function has kept the call, which may have been freed already
 * if it was queued.
 */
static int32_t run_stub(rxw_call *call, const struct rxw_rpc_table *table,
			const struct rxw_rpc_service *base, const void *service,
			const struct rxw_rpc_entry *entry, int32_t opcode, bool queued, bool *kept)
{
	int32_t code = 0;

	if (base && base->enter)
		code = base->enter(base->context, call, opcode, entry ? (int)entry->function : -1);
	if (!code)
		code = entry ? entry->stub(call, service) : RXW_RPC_OPCODE;
	*kept = queued ? code == RXW_RPC_DEFERRED : rxw_call_is_deferred(call);
	if (*kept)
		return queued ? code : 0;
	if (table->swap_errno)
		code = swap_errno(code);
	return prefer_call_error(call, code);
}

static void report_served(rxw_call *call, const struct rxw_observed *seen,
			  const struct rxw_rpc_interface *interface, unsigned function,
			  int32_t code)
{
	struct rxw_rpc_report r = {.interface = interface,
				   .function = function,
				   .code = code,
				   .queue_ns = seen->served_ns - seen->started_ns,
				   .run_ns = monotonic_ns() - seen->served_ns};
	struct sockaddr_storage peer;

	describe_call(&r, call, seen, &peer);
	seen->observer->report(seen->observer->arg, &r);
}

int32_t rxw_rpc_serve(rxw_call *call, const struct rxw_rpc_table *table,
		      const struct rxw_rpc_service *base, const void *service)
{
	const struct rxw_rpc_entry *entry;
	struct rxw_observed seen;
	uint64_t entered = 0;
	uint8_t word[4];
	int32_t opcode, code;
	bool queued, kept;

	if (!call || !table || (table->count && !table->entries))
		return RXW_INVALID_OPERATION;
	queued = rxw_call_is_deferred(call);
	if (rxw_call_observed(call, &seen)) {
		entered = monotonic_ns();
		rxw_call_note_served(call, entered);
	}
	if (rxw_call_read(call, word, sizeof(word)) != sizeof(word))
		return prefer_call_error(call, RXW_RPC_DECODE);
	opcode = (int32_t)rxw_xdr_load32(word);
	entry = find_entry(table, opcode);
	code = run_stub(call, table, base, service, entry, opcode, queued, &kept);
	if (kept)
		return code;
	/* An observer added while the stub ran is skipped, since no start time was taken. */
	if (entry && entered && rxw_call_observed(call, &seen))
		report_served(call, &seen, table->interface, entry->function, code);
	return code;
}

int32_t rxw_rpc_answer(rxw_call *call, int32_t code, const struct rxw_rpc_interface *interface,
		       unsigned function)
{
	struct rxw_observed seen;

	if (!call || !interface || !rxw_call_is_deferred(call))
		return RXW_INVALID_OPERATION;
	if (interface->swap_errno)
		code = swap_errno(code);
	if (rxw_call_observed(call, &seen) && seen.served_ns)
		report_served(call, &seen, interface, function, prefer_call_error(call, code));
	return rxw_call_end(call, code, NULL);
}
