/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop of libevent. */
#include <event2/event.h>
#include <signal.h>
#include <stddef.h>

#include "loop.h"

static struct event_base *base;
static void (*on_ready)(void *arg), (*on_tick)(void *arg);

static void polled(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	on_ready(arg);
}

static void ticked(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	on_tick(arg);
}

static void signalled(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	loop_stop();
}

int loop_run(int fd, void (*ready)(void *arg), void (*tick)(void *arg), unsigned tick_ms, void *arg)
{
	struct timeval interval = {.tv_sec = tick_ms / 1000, .tv_usec = tick_ms % 1000 * 1000};
	struct event *of[4];
	int r = -1;

	base = event_base_new();
	if (!base)
		return -1;
	on_ready = ready;
	on_tick = tick;
	of[0] = event_new(base, fd, EV_READ | EV_PERSIST, polled, arg);
	of[1] = event_new(base, -1, EV_PERSIST, ticked, arg);
	of[2] = evsignal_new(base, SIGINT, signalled, NULL);
	of[3] = evsignal_new(base, SIGTERM, signalled, NULL);
	if (of[0] && of[1] && of[2] && of[3] && !event_add(of[0], NULL) &&
	    !event_add(of[1], &interval) && !event_add(of[2], NULL) && !event_add(of[3], NULL))
		r = event_base_dispatch(base) < 0 ? -1 : 0;
	for (int i = 0; i < 4; i++)
		if (of[i])
			event_free(of[i]);
	event_base_free(base);
	return r;
}

void loop_stop(void)
{
	event_base_loopbreak(base);
}
