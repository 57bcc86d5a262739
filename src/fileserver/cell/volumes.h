/* SPDX-License-Identifier: BSD-2-Clause */
/* The volumes of a cell's server: transactions, volumes as streams, copies (doc/notes/cell.md). Results: codes of AFS. */
#ifndef FILESERVER_CELL_VOLUMES_H
#define FILESERVER_CELL_VOLUMES_H

#include "fileserver/cell/cell.h"

/*
 * Run a function on a thread that may wait, for a call that was deferred. `call`: that of a caller who determines how long it takes:
 * each has a share of these threads. NULL: it does not take long. False: too many run, or there is no memory. The store outlives it.
 */
bool fsd_cell_run(struct fsd_cell *cell, rxw_call *call, void (*run)(void *arg), void *arg);

/* -- transactions -- */

#define FSD_TRANSACTIONS 1024
enum fsd_transaction_mode {
	FSD_OFFLINE = 1,
	FSD_BUSY = 2,
	FSD_READ_ONLY = 8,
	FSD_CREATE = 0x10
};

struct fsd_transaction {
	int32_t id;
	uint32_t volume;
	int32_t mode;		/* the word that began it */
	int32_t flags;		/* of the last SetFlags */
	uint32_t created, used; /* seconds since 1970 */
	uint64_t touched;	/* `used` by the monotonic clock, s */
	char name[30];		/* of the last call */
	bool running;		/* a call is */
	bool ending;		/* it ends as soon as that call does; no other one begins */
	rxw_call *call;		/* that call, while another one may abort it; only in the table */
	bool deleted;		/* the volume is */
	bool moved;		/* callers are told that it is elsewhere, also after the end */
	bool frozen;		/* nobody may change the volume */
	bool changed;		/* clients are told at the end */
	uint32_t recloned;	/* a clone about which they are, too; 0: none */
};

/* The volume must be there, and in no other transaction. */
int32_t fsd_transaction_begin(struct fsd_cell *cell, uint32_t volume, int32_t mode, int32_t *id);
/* Make a volume, and begin a transaction with it. */
int32_t fsd_transaction_create(struct fsd_cell *cell, const struct cellvol *volume, bool root,
			       int32_t *id);
/*
 * For the time of one call; it is then in no other one. *transaction: a copy, which fsd_transaction_leave() takes over: volume, id, and
 * mode stay. ENOENT.
 */
int32_t fsd_transaction_enter(struct fsd_cell *cell, int32_t id, const char *name,
			      struct fsd_transaction *transaction);
void fsd_transaction_leave(struct fsd_cell *cell, const struct fsd_transaction *transaction);
/*
 * The same for its end. A call that carries a volume in it, or copies one, is aborted, and any call is waited for: AFS_VOL_VOLBUSY after
 * 30 seconds. Not on a thread that must not wait.
 */
int32_t fsd_transaction_seize(struct fsd_cell *cell, int32_t id, const char *name,
			      struct fsd_transaction *transaction);
/* A copy of it as it is now. Hinders no call in it, and is no use of it. ENOENT. */
int32_t fsd_transaction_look(struct fsd_cell *cell, int32_t id,
			     struct fsd_transaction *transaction);
/* The volume is served again, if it may be; a new one that is still temporary goes. After fsd_transaction_enter(). May wait for clients. */
void fsd_transaction_end(struct fsd_cell *cell, struct fsd_transaction *transaction);
/* A clone was made that is not ready. It goes, too, if nobody begins a transaction with it for as long. */
void fsd_transaction_made(struct fsd_cell *cell, uint32_t volume);
/* No changes come between what the transaction has read, and its end. */
int32_t fsd_transaction_freeze(struct fsd_cell *cell, struct fsd_transaction *transaction);
/* Whether a volume is in one; *transaction may be NULL. */
bool fsd_transaction_of(struct fsd_cell *cell, uint32_t volume,
			struct fsd_transaction *transaction);
/* All of them, at most `max`. */
uint32_t fsd_transactions(struct fsd_cell *cell, struct fsd_transaction *list, uint32_t max);

/* The code for a caller of the volume service. */
int32_t fsd_volume_code(int result);

/* -- volumes as streams; these wait for their caller -- */

struct fsd_dump {
	uint32_t from;
	bool sparse; /* directories that have not changed are only named */
};
/* The dump of a volume goes to a call. */
int32_t fsd_dump_send(struct fsd_cell *cell, const struct fsd_transaction *transaction,
		      const struct fsd_dump *dump, rxw_call *call);
int32_t fsd_dump_size(struct fsd_cell *cell, const struct fsd_transaction *transaction,
		      const struct fsd_dump *dump, rxw_call *call, uint64_t *bytes);
#define FSD_FORWARDS FSD_SITES
/* A dump goes to transactions of several servers. */
struct fsd_forward {
	uint32_t host; /* IPv4 */
	uint16_t port;
	int32_t transaction;
	int32_t code; /* the result */
};
/*
 * `cookie`: what they put into the header. The result is not 0 if the volume cannot be dumped, or all of them failed. It
 * ends early if `call`, which is deferred and waits for it, fails.
 */
int32_t fsd_dump_forward(struct fsd_cell *cell, const struct fsd_transaction *transaction,
			 const struct fsd_dump *dump, const struct cellvol *cookie, uint8_t level,
			 struct fsd_forward *to, unsigned count, rxw_call *call);
/* A call's dump becomes the contents; name and type: of the cookie. The volume is as before if that fails. */
int32_t fsd_dump_receive(struct fsd_cell *cell, struct fsd_transaction *transaction,
			 const struct cellvol *cookie, rxw_call *call);

/*
 * A new volume with the contents of the transaction's, temporary and for writing; *as: id and name. It ends early if `call`, which
 * is deferred and waits for it, fails.
 */
int32_t fsd_volume_copy(struct fsd_cell *cell, const struct fsd_transaction *transaction,
			const struct cellvol *as, rxw_call *call);
/*
 * A read-only volume takes the place of its read-write one, which is not here. A copy that another server has sent is copied once
 * more, unless its volume has left this server. Clients are told, which may wait for them.
 */
int32_t fsd_volume_convert(struct fsd_cell *cell, uint32_t id);

#endif
