/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the control socket: the thread that polls (control.c), and requests (request.c). */
#ifndef FILESERVER_CONTROL_CONNECTION_H
#define FILESERVER_CONTROL_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "admin/admin.h"
#include "fileserver/control/control.h"

#define CONTROL_CONNECTIONS 16

enum control_state {
	CONTROL_FREE,
	CONTROL_READING, /* the request is not complete */
	CONTROL_RUNNING	 /* its own thread executes it */
};

/* The polling thread has all members, but for those that say otherwise. */
struct control_connection {
	struct fsd_control *control;
	enum control_state state;
	int fd;
	int directory; /* descriptor that came with the request; -1 */
	uid_t uid;
	pid_t pid;
	uint64_t deadline; /* monotonic time in ns until the request must be complete */
	pthread_t thread;
	_Atomic bool gone; /* the client: by both threads */
	_Atomic bool done; /* set by the request's thread at its end */
	size_t length;
	char line[ADMIN_LINE_MAX]; /* constant while the request runs */
};

struct fsd_control {
	struct admin_options admin;
	char *directory;
	int listener;
	int wake; /* eventfd: a request is done, or the server stops */
	pthread_t thread;
	_Atomic bool stopping;
	uint64_t rest; /* no connections are accepted before this time */
	struct control_connection connection[CONTROL_CONNECTIONS];
};

/* Execute the line of a connection, on its own thread. */
void *control_execute(void *connection);
/* An answer to a connection: an error. Does not wait for the client. */
void control_refuse(struct control_connection *connection, const char *text);

#endif
