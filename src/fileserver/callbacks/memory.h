/* SPDX-License-Identifier: BSD-2-Clause */
/* The state that outlives the server: promises, and the addresses of clients that may hold some. */
#ifndef FILESERVER_CALLBACKS_MEMORY_H
#define FILESERVER_CALLBACKS_MEMORY_H

#include "fileserver/callbacks/callbacks.h"

/* The longest promise, in seconds. */
#define FSD_PROMISE_S (4 * 3600 + 128)

/* -- addresses, in a file that is as durable as the caller wants it -- */

struct fsd_remember;

/*
 * Open or create the file, and call `each` for every address in it, with its number there: at most
 * `max`, without duplicates. `local`: the address of the server that the client has called; family 0: unknown,
 * as for clients over IPv6. *damaged (may be NULL): addresses may be missing. NULL after a line in
 * message[FSD_MESSAGE_MAX].
 */
struct fsd_remember *fsd_remember_open(const char *path, size_t max,
				       void (*each)(void *arg, const struct sockaddr_storage *peer,
						    const struct sockaddr_storage *local,
						    int record),
				       void *arg, bool *damaged, char *message);
void fsd_remember_close(struct fsd_remember *remember);

/*
 * The date of this start in seconds: later than that of every earlier start. NULL: now.
 */
uint32_t fsd_remember_date(const struct fsd_remember *remember);

/*
 * Add a client that may hold promises from now on. Returns its number, or -1: the file cannot be
 * written, or the address cannot be kept (a scope of IPv6). When the table is full, an older address
 * is replaced. `durable`: the address is on the disk before this returns; one flush serves all calls
 * that wait. Any thread; remember may be NULL.
 */
int fsd_remember_add(struct fsd_remember *remember, const struct sockaddr_storage *peer,
		     const struct sockaddr_storage *local, bool durable);
/* The client holds none any more. Not flushed. */
void fsd_remember_drop(struct fsd_remember *remember, int record);

/* -- clients of an earlier server -- */

/*
 * Add a client that may hold promises from before a restart, whose address is kept as `record`. After
 * the clients that call, it is asked to identify itself and told to forget them. Nothing if the table
 * is full.
 */
void fsd_clients_recall(struct fsd_clients *clients, const struct sockaddr_storage *peer,
			const struct sockaddr_storage *local, int record, uint64_t now);
/* Clients in the table (`all`: any) may hold unknown promises: they get none while these last. */
void fsd_clients_doubt(struct fsd_clients *clients, bool all, uint64_t now);

/* -- the ledger of promises -- */

/*
 * Keep the promises of `clients` in a file from now on. It is mapped and never flushed: it outlives
 * the process, not the machine. Promises that an earlier server has left there, and that may be in
 * force, are owed to their clients: those are told of each of them before they are served, and
 * changes wait for that.
 *
 * *complete: those are all. False after a restart of the machine, or if the file was missing or
 * damaged, or comes from elsewhere; then see fsd_clients_doubt(). *restored: their number. On a full
 * disk promises are not kept, and the log says so. 0, or -1 with one line in message[FSD_MESSAGE_MAX].
 */
int fsd_ledger_open(struct fsd_clients *clients, const char *path, size_t max, uint64_t now,
		    bool *complete, size_t *restored, char *message);

/*
 * A promise from before a restart. False: there is no room for it.
 */
bool fsd_promise_restore(struct fsd_clients *clients, const struct sockaddr_storage *peer,
			 const AFSFid *fid, uint64_t expires, uint64_t now);

#endif
