/* SPDX-License-Identifier: BSD-2-Clause */
/* A real rxfsd with a store, for tests of the client library. */
#ifndef TESTS_CLIENT_REALSERVER_H
#define TESTS_CLIENT_REALSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct realserver {
	char folder[64];	   /* temporary; the store is in it */
	unsigned fs_port, vl_port; /* kept over restarts */
	pid_t pid;		   /* 0: it does not run */
};

/*
 * A store with the volumes of a list that ends with NULL, in which everybody may do everything;
 * then starts the server. Fails the test if that cannot be.
 */
void realserver_open(struct realserver *s, const char *const *volumes);
/* The server is killed when the thread that starts it ends. */
void realserver_start(struct realserver *s);
/* Sends the signal, and waits for the end of the process. */
void realserver_end(struct realserver *s, int number);
/* Ends it, and removes the folder. */
void realserver_close(struct realserver *s);
/* Runs `rxvol -S STORE ARGUMENTS…`, which ends with NULL; its exit status. */
int realserver_rxvol(struct realserver *s, const char *first, ...);
/* "CELL=127.0.0.1:VL:FS", in a static buffer. */
const char *realserver_cell(const struct realserver *s, const char *cell);

#endif
