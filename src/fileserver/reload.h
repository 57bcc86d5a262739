/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reloading with a result. SIGHUP alone tells nobody what came of it, and the service manager
 * reports success whatever happens. So `rxfsd --reload PID` queues SIGHUP with a value, and the
 * server queues a signal with the result back, one that is ignored by whoever does not wait for it.
 */
#ifndef FILESERVER_RELOAD_H
#define FILESERVER_RELOAD_H

#include <signal.h>
#include <stdint.h>

/*
 * Have the rxfsd with this process id read its keys again, and wait for it: at most limit_ms.
 * Returns the exit status, after one line if it is not 0. The calling process becomes the user of
 * that one, if it is root. No other threads.
 */
int fsd_reload_ask(uint64_t pid, unsigned limit_ms);

/* The server: tell whoever sent this SIGHUP what came of it (0 or -1), if it waits for that. */
void fsd_reload_answer(const siginfo_t *signal, int result);

#endif
