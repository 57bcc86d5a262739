/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Administration of a store of volumes: a request and its answers are JSON objects. rxvol calls
 * this for a store that no server has open, and the file server for its own.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <jansson.h>

#include "volume/interface.h"

#define ADMIN_LINE_MAX 16384 /* bytes of a request as one line of text, its newline included */

/*
 * The socket in the directory of a store at which its server takes requests. A client sends one
 * request as a line, with the descriptor of the directory if the command wants one, and gets each
 * answer as a line.
 */
#define ADMIN_SOCKET "control"
/*
 * Its address, for bind() and connect(). Where the path is too long for an address, that leads
 * through *descriptor, to be closed afterwards; else it is -1. 0, or -1 with errno.
 */
int admin_socket_address(const char *directory, struct sockaddr_un *address, int *descriptor);

/* A store, and what a change of it has to be told to. Constant while requests are executed. */
struct admin_options {
	struct store *store;
	const char *directory; /* of the store: names of users come from its protection database */
	/*
	 * Called after each change, before the answer: the objects whose promises are to be broken.
	 * Any thread. May be NULL.
	 */
	void (*changed)(void *arg, const struct store_changes *changes);
	/*
	 * Whether no volume that is served may have this access list, because it lets anonymous callers of
	 * other machines write. Any thread, also that of a commit: must not wait. May be NULL.
	 */
	bool (*forbids)(void *arg, const struct store_acl *acl);
	void *arg;
};

/* Where the answers go. */
struct admin_output {
	/*
	 * Gets each answer, and does not keep it. Zero or more of
	 *   {"progress": {"path", "bytes", "total", "files"}}  about five a second; total 0: unknown
	 *   {"skipped": PATH, "reason": TEXT}
	 *   {"fault": TEXT}
	 *   {"mount": {"path", "volume", "text", "cell", "target", "target_id", "rw", "state"}}
	 * and at the end one of
	 *   {"result": {...}, "status": 0 or 1}
	 *   {"error": TEXT, "status": 1 or 2}
	 */
	void (*answer)(void *arg, json_t *object);
	/* True once the requester has gone, or the server stops. Any thread. May be NULL. */
	bool (*stopped)(void *arg);
	void *arg;
	/*
	 * Descriptor of the directory that import reads and export writes; or -1. For import also a socket (SOCK_SEQPACKET)
	 * with admin_lend() at its other end. For dump and restore a file, pipe or stream socket.
	 */
	int directory;
};

/*
 * Execute a request, {"command": NAME, ...}. Everything in it is checked, so that it may come from
 * anywhere. Its changes are on stable storage afterwards. Returns the exit status of a program:
 * 0; 1 for a failure, also of a part; 2 for a request that is wrong in itself. Any thread.
 */
int admin_execute(const struct admin_options *options, const json_t *request,
		  const struct admin_output *output);

/*
 * In a process that may read a directory: open what an import asks for at the other end of the socket, until that is
 * closed. It gets descriptors to read files and directories below, never by way of a symbolic link.
 */
void admin_lend(int socket, int directory);

/* Whether the command can change a store: for logs. */
bool admin_changes(const char *command);

/*
 * Bytes of a path as text for JSON: what is not UTF-8, control characters and backslashes become
 * \xNN. admin_bytes() is the way back: NULL if the text has any other backslash, or a byte 0. Both
 * return memory to be freed, NULL also without memory.
 */
char *admin_text(const char *bytes);
char *admin_bytes(const char *text);

#endif
