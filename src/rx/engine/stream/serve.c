/* SPDX-License-Identifier: BSD-2-Clause */
/* Running the handler of a call, on a worker or on the thread that received its request. */
#include "engine/receive/lifecycle.h"
#include "engine/send/dispatch.h"
#include "engine/sched/jobs.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/stream/serve.h"
#include "engine/receive/verify.h"

static int32_t run_handler(struct rxw_call *call)
{
	const struct rxw_service *service = call->conn->service;
	struct rxw_called called = {call->conn->ep->engine, "handler", service->id};
	int32_t code;

	pthread_cleanup_push(rxw_log_exit, &called);
	code = service->handler(call, service->context);
	pthread_cleanup_pop(0);
	return code;
}

/* Connection's lock held. False: the call has failed, perhaps now, since the endpoint or the service ends. */
static bool may_begin(struct rxw_call *call, struct rxw_out *out)
{
	const struct rxw_service *service = call->conn->service;
	int32_t code = 0;

	if (atomic_load(&call->conn->ep->stopping))
		code = RXW_RESTARTING;
	else if (service && atomic_load(&service->removed))
		code = RXW_INVALID_OPERATION;
	if (code && call->p.state == RXW_CS_PRECALL)
		rxw_pcall_fail(&call->p, code, RXW_ORIGIN_LOCAL, true, out);
	return !call->p.error;
}

static int32_t begin_handler(struct rxw_call *call, enum rxw_server by)
{
	struct rxw_connection *c = call->conn;
	struct rxw_shard *s = rxw_home(c);
	struct rxw_effects a;
	int32_t code;

	rxw_change_begin(&a, c);
	if (may_begin(call, &a.out)) {
		rxw_call_live(call);
		rxw_pcall_attach(&call->p, &a.out);
	}
	code = call->p.error;
	rxw_change_end(&a, c);
	if (!code) {
		rxw_count(by == RXW_BY_RECEIVER ? &s->handlers_inline : &s->handlers_worker, 1);
		code = run_handler(call);
		/* It may have been ended already; the caller of this function holds a reference. */
		if (atomic_load(&call->deferral.deferred))
			return 0;
	}
	if (by == RXW_BY_LISTENER)
		rxw_tx_hold(s);
	rxw_stream_finish(call, code);
	if (by == RXW_BY_LISTENER)
		rxw_tx_hold(NULL);
	return code;
}

static bool deliver_to_queue(struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	struct rxw_effects a;
	bool signal = false;

	assert(!call->p.client && c->service->queue);
	rxw_change_begin(&a, c);
	if (may_begin(call, &a.out)) {
		rxw_pcall_attach(&call->p, &a.out);
		rxw_stream_relax(call);
		rxw_deferral_begin(call);
		atomic_store(&call->events.fresh, true);
		rxw_queue_join(call, c->service->queue, c->service->context);
		signal = rxw_queue_put(call);
	}
	rxw_change_end(&a, c);
	return signal;
}

static void refuse_unserved(struct rxw_call *call, int32_t code)
{
	const struct rxw_service *service = call->conn->service;
	bool removed = service && atomic_load(&service->removed);

	if (!code)
		code = removed ? RXW_INVALID_OPERATION : RXW_RESTARTING;
	rxw_stream_finish(call, code);
}

const struct rxw_upcalls rxw_upcalls = {
	.free_call = rxw_call_free,
	.free_connection = rxw_conn_free,
	.serve = begin_handler,
	.deliver = deliver_to_queue,
	.refuse = refuse_unserved,
	.verify = rxw_verify_job_run,
	.cancel = rxw_verify_job_cancel,
};
