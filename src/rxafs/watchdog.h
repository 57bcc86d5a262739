/* SPDX-License-Identifier: BSD-2-Clause */
/* A small process that ends the connection with the kernel if the daemon dies. */
#ifndef RXAFS_WATCHDOG_H
#define RXAFS_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct watchdog {
	pid_t process; /* 0 = none */
	int socket;    /* the number of the connection goes to it */
};

/*
 * By the main thread, before other threads exist. It keeps no descriptor of the daemon. 0 or a
 * negative errno.
 */
int watchdog_start(struct watchdog *watchdog);
/* The file system is mounted at this path, which is absolute and has no symbolic links. */
void watchdog_watch(struct watchdog *watchdog, const char *path);
/* Ends the connection, if it still exists, and the process. */
void watchdog_stop(struct watchdog *watchdog);

/*
 * Whether an rxafs is mounted at this path, which is absolute and has no symbolic links. *number: of the connection, the minor number of the
 * device. Without a request to the file system.
 */
bool find_connection(const char *path, uint32_t *number);

#endif
