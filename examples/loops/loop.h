/* SPDX-License-Identifier: BSD-2-Clause */
/* What echo.c needs of an event loop: uv.c and event.c provide it. */
#ifndef LOOP_H
#define LOOP_H

/*
 * Calls ready(arg) while the descriptor is readable, and tick(arg) every tick_ms milliseconds,
 * until loop_stop() or SIGINT or SIGTERM. 0, or -1 if the loop cannot be set up.
 */
int loop_run(int fd, void (*ready)(void *arg), void (*tick)(void *arg), unsigned tick_ms,
	     void *arg);
void loop_stop(void);

#endif
