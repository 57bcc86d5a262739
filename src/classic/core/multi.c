/* SPDX-License-Identifier: BSD-2-Clause */
/* One call to many servers: the library's queue says which replies have come. */
#include "core.h"

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
