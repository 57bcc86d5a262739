/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of clients that may hold promises, in a file: after a restart they are told to forget. */
#ifndef FILESERVER_REMEMBER_H
#define FILESERVER_REMEMBER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct fsd_remember;

/*
 * Open or make the file, and call `each` for every address in it, at most `max` and none twice. NULL
 * after a line in message[FSD_MESSAGE_MAX].
 */
struct fsd_remember *fsd_remember_open(const char *path, size_t max,
				       void (*each)(void *arg, const struct sockaddr_storage *peer),
				       void *arg, char *message);
void fsd_remember_close(struct fsd_remember *remember);

/*
 * When this start was, in seconds: later than any start before, however short the time between. NULL:
 * now.
 */
uint32_t fsd_remember_date(const struct fsd_remember *remember);

/*
 * A client may hold promises from now on. Any thread; remember may be NULL. The file is not flushed to the disk: it is there
 * for restarts of the program, and a client that is forgotten with the machine finds out by its own
 * probes. What does not fit, or cannot be written, is left out.
 */
void fsd_remember_add(struct fsd_remember *remember, const struct sockaddr_storage *peer);

#endif
