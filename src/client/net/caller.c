/* SPDX-License-Identifier: BSD-2-Clause */
/* Cancelling operations, and their waits. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/net/inside.h"

struct cl_cancel {
	pthread_mutex_t lock; /* covers the members below */
	rxw_call *call;	      /* to be aborted, or NULL */
	struct cl_net *waits; /* the operation is in cl_wait(), or NULL */
	_Atomic bool raised;  /* written with the lock held */
};

struct cl_cancel *cl_cancel_create(void)
{
	struct cl_cancel *cancel = calloc(1, sizeof(*cancel));

	if (cancel)
		pthread_mutex_init(&cancel->lock, NULL);
	return cancel;
}

void cl_cancel_free(struct cl_cancel *cancel)
{
	if (!cancel)
		return;
	assert(!cancel->call && !cancel->waits);
	pthread_mutex_destroy(&cancel->lock);
	free(cancel);
}

void cl_cancel_raise(struct cl_cancel *cancel)
{
	pthread_mutex_lock(&cancel->lock);
	atomic_store(&cancel->raised, true);
	if (cancel->call)
		rxw_call_abort(cancel->call, RXW_USER_ABORT);
	if (cancel->waits)
		cl_wake_waiters(cancel->waits);
	pthread_mutex_unlock(&cancel->lock);
}

bool cl_cancel_raised(const struct cl_cancel *cancel)
{
	return cancel && atomic_load(&cancel->raised);
}

void cl_cancel_reset(struct cl_cancel *cancel)
{
	assert(!cancel->call && !cancel->waits);
	atomic_store(&cancel->raised, false);
}

int cl_cancel_attach(struct cl_cancel *cancel, rxw_call *call)
{
	int rc = 0;

	if (!cancel)
		return 0;
	pthread_mutex_lock(&cancel->lock);
	assert(!cancel->call);
	if (atomic_load(&cancel->raised))
		rc = -EINTR;
	else
		cancel->call = call;
	pthread_mutex_unlock(&cancel->lock);
	return rc;
}

void cl_cancel_detach(struct cl_cancel *cancel)
{
	if (!cancel)
		return;
	pthread_mutex_lock(&cancel->lock);
	cancel->call = NULL;
	pthread_mutex_unlock(&cancel->lock);
}

static void set_waiting(struct cl_cancel *cancel, struct cl_net *net)
{
	if (!cancel)
		return;
	pthread_mutex_lock(&cancel->lock);
	cancel->waits = net;
	pthread_mutex_unlock(&cancel->lock);
}

uint64_t cl_net_now(void)
{
	return (uint64_t)read_clock_ns(CLOCK_BOOTTIME);
}

/* Wait for a change, or until a time of cl_net_now() at most. */
static void wait_for_change(struct cl_net *net, uint64_t until, uint64_t now)
{
	assert(mutex_is_held(&net->wait_lock));
	if (until)
		monotonic_wait(&net->changed, &net->wait_lock, monotonic_ns() + (until - now));
	else
		pthread_cond_wait(&net->changed, &net->wait_lock);
}

int cl_wait(struct cl_net *net, struct cl_cancel *cancel, uint64_t until, bool (*ready)(void *arg),
	    void *arg)
{
	int rc = 0;

	set_waiting(cancel, net);
	pthread_mutex_lock(&net->wait_lock);
	while (!ready(arg)) {
		uint64_t now = cl_net_now();

		if (cl_cancel_raised(cancel) || atomic_load(&net->cancelled))
			rc = -EINTR;
		else if (until && now >= until)
			rc = -ETIMEDOUT;
		if (rc < 0)
			break;
		wait_for_change(net, until, now);
	}
	pthread_mutex_unlock(&net->wait_lock);
	set_waiting(cancel, NULL);
	return rc;
}

void cl_wake_waiters(struct cl_net *net)
{
	pthread_mutex_lock(&net->wait_lock);
	pthread_cond_broadcast(&net->changed);
	pthread_mutex_unlock(&net->wait_lock);
}

void cl_net_note(struct cl_net *net, const char *format, ...)
{
	char text[320];
	va_list args;

	if (!net->ops.note)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	net->ops.note(net->arg, text);
}
