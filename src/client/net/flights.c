/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls on one volume that are in progress at the same time: their requests leave together. */
#include <assert.h>
#include <errno.h>

#include <rxwire/queue.h>

#include "client/net/tries.h"

/* Send the requests of all that can begin at the site of the first one now. Returns which: a bit each. */
static uint32_t send_requests(struct cl_tries *tries, unsigned count,
			      const struct cl_flight *flight)
{
	uint32_t begun = 0;

	rxw_batch_begin();
	for (unsigned i = 0; i < count; i++)
		if (i == 0 || cl_tries_ahead(&tries[i], &tries[0])) {
			begun |= 1u << i;
			flight->send(flight->arg, i, tries[i].sent.call);
		}
	rxw_batch_end();
	return begun;
}

/* The call that is in progress. */
static void take_flight_reply(struct cl_tries *t, unsigned i, const struct cl_flight *flight)
{
	rxw_code code = RXW_USER_ABORT;

	t->alternative = flight->missing;
	if (i == 0 || cl_tries_attach(t))
		code = flight->receive(flight->arg, i, t);
	else
		cl_tries_stop(t, -EINTR);
	cl_tries_judge(t, code, flight->function);
}

void cl_tries_together(struct cl_tries *tries, unsigned count, const struct cl_flight *flight)
{
	uint32_t begun = 0;

	assert(count && count <= CL_MANY);
	if (cl_tries_next(&tries[0]) &&
	    !(flight->missing && cl_tries_lacks(&tries[0], flight->missing)))
		begun = send_requests(tries, count, flight);
	for (unsigned i = 0; i < count; i++) {
		struct cl_tries *t = &tries[i];

		if (begun & 1u << i)
			take_flight_reply(t, i, flight);
		else if (t->sent.call)
			cl_tries_judge(t, RXW_USER_ABORT, flight->function);
		if (!t->over)
			cl_tries_stop(t, -EAGAIN);
		flight->ended(flight->arg, i, cl_tries_result(t));
	}
}
