/* SPDX-License-Identifier: BSD-2-Clause */
/* Running the handler of a call, on a worker or on the thread that received its request. */
#include "engine/conn/conn.h"
#include "engine/dispatch/dispatch.h"
#include "engine/jobs/jobs.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/serve/serve.h"
#include "engine/verify/verify.h"

static int32_t serve(struct rxw_call *call, bool on_receiver)
{
	struct rxw_connection *c = call->conn;
	struct rxw_shard *s = rxw_home(c);
	struct rxw_effects a;
	bool stopping = atomic_load(&c->ep->stopping);
	int32_t code;

	rxw_effects_init(&a, s, false);
	rxw_conn_lock(c);
	if (stopping && call->p.state == RXW_CS_PRECALL)
		rxw_pcall_fail(&call->p, RXW_RESTARTING, RXW_ORIGIN_LOCAL, true, &a.out);
	else if (c->service && atomic_load(&c->service->removed) && call->p.state == RXW_CS_PRECALL)
		rxw_pcall_fail(&call->p, RXW_INVALID_OPERATION, RXW_ORIGIN_LOCAL, true, &a.out);
	else if (!call->p.error) {
		rxw_call_live(call);
		rxw_pcall_attach(&call->p, &a.out);
	}
	code = call->p.error;
	rxw_effects_collect(&a, false);
	rxw_conn_unlock(c);
	rxw_dispatch(&a);
	if (!code) {
		rxw_count(on_receiver ? &s->handlers_inline : &s->handlers_worker, 1);
		code = c->service->handler(call, c->service->context);
	}
	rxw_stream_finish(call, code);
	return code;
}

static void refuse(struct rxw_call *call)
{
	rxw_stream_finish(call, RXW_RESTARTING);
}

const struct rxw_upcalls rxw_upcalls = {
	.free_call = rxw_call_free,
	.free_connection = rxw_conn_free,
	.serve = serve,
	.refuse = refuse,
	.verify = rxw_verify_job_run,
	.cancel = rxw_verify_job_cancel,
};
