/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reloading with a result. SIGHUP alone has no result, and the service manager would report success
 * in any case. `rxfsd --reload PID` therefore queues SIGHUP with a value, and the server answers
 * with a queued signal, which is ignored by a sender that does not wait for it.
 */
#ifndef FILESERVER_RELOAD_H
#define FILESERVER_RELOAD_H

#include <signal.h>
#include <stdint.h>

/*
 * Make the rxfsd with this process id read its keys again, and wait for the result for at most
 * limit_ms. Returns the exit status, after one line if it is not 0. If the calling process is root,
 * it changes to the user of that process. No other threads may run.
 */
int fsd_reload_ask(uint64_t pid, unsigned limit_ms);

/* In the server: send the result (0 or -1) to the sender of this SIGHUP, if it waits for one. */
void fsd_reload_answer(const siginfo_t *signal, int result);

#endif
