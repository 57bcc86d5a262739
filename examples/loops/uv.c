/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop of libuv. */
#include <signal.h>
#include <stddef.h>
#include <uv.h>

#include "loop.h"

static void (*on_ready)(void *arg), (*on_tick)(void *arg);

static void polled(uv_poll_t *handle, int status, int events)
{
	(void)status;
	(void)events;
	on_ready(handle->data);
}

static void ticked(uv_timer_t *handle)
{
	on_tick(handle->data);
}

static void signalled(uv_signal_t *handle, int number)
{
	(void)number;
	uv_stop(handle->loop);
}

int loop_run(int fd, void (*ready)(void *arg), void (*tick)(void *arg), unsigned tick_ms, void *arg)
{
	static uv_poll_t poll;
	static uv_timer_t timer;
	static uv_signal_t interrupt, terminate;
	uv_loop_t *loop = uv_default_loop();

	on_ready = ready;
	on_tick = tick;
	poll.data = timer.data = arg;
	if (!loop || uv_poll_init(loop, &poll, fd) || uv_timer_init(loop, &timer) ||
	    uv_signal_init(loop, &interrupt) || uv_signal_init(loop, &terminate) ||
	    uv_poll_start(&poll, UV_READABLE, polled) ||
	    uv_timer_start(&timer, ticked, tick_ms, tick_ms) ||
	    uv_signal_start(&interrupt, signalled, SIGINT) ||
	    uv_signal_start(&terminate, signalled, SIGTERM))
		return -1;
	uv_run(loop, UV_RUN_DEFAULT);
	uv_poll_stop(&poll);
	return 0;
}

void loop_stop(void)
{
	uv_stop(uv_default_loop());
}
