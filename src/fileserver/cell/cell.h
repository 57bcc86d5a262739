/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store as part of a cell: the database of locations, and the transactions in which volumes are made, copied and replaced
 * (doc/notes/cell.md). Results are those of the store (volume/interface.h) or, where stated, codes of AFS.
 */
#ifndef FILESERVER_CELL_H
#define FILESERVER_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/types.h>
#include <rxwire/coder.h>

#include "volume/store/cellvol.h"

struct fsd_cell;

struct fsd_cell_options {
	struct store *store;
	/* Volumes were replaced, or cannot be read any more: clients are told, which may wait for them. */
	void (*changed)(void *arg, uint32_t volume);
	/* Whether a volume may be served whose directory has this list. NULL: each may. */
	bool (*permits)(void *arg, const struct store_acl *acl);
	void *arg;
	uint32_t idle_s; /* after which a transaction ends; 0: ten minutes */
};
/* NULL after a line in message[FSD_MESSAGE_MAX]. */
struct fsd_cell *fsd_cell_open(const struct fsd_cell_options *options, char *message);
/*
 * Where dumps to other servers leave from: the endpoint of the volume service. `security` gives a class by which they know this server as
 * the cell itself, of at least this level (enum rxw_level), and a reference; NULL: it has no key. Before the first call.
 */
void fsd_cell_set_network(struct fsd_cell *cell, rxw_endpoint *endpoint,
			  rxw_security *(*security)(void *arg, uint8_t level), void *arg);
/* Wait until no thread of the cell answers a call any more. No new ones come. NULL is allowed, as below. */
void fsd_cell_settle(struct fsd_cell *cell);
void fsd_cell_close(struct fsd_cell *cell);

/*
 * Run a function on a thread that may wait, for a call that was deferred. False: too many run, or there is no memory. The
 * store outlives it.
 */
bool fsd_cell_run(struct fsd_cell *cell, void (*run)(void *arg), void *arg);

/* -- the database of locations -- */

#define FSD_SITES    13
#define FSD_FORWARDS FSD_SITES
/* The address of this server in entries, wherever it is. */
#define FSD_HERE 0

/* The entry of a volume and its clones, in the numbers of the protocol (afs-location 2.1). */
struct fsd_location {
	char name[65];
	uint32_t id[3]; /* by enum afs_vl_type; 0: none was assigned */
	uint32_t clone;
	uint32_t flags; /* volumes that exist; locks */
	unsigned count;
	struct fsd_site {
		uint32_t address; /* FSD_HERE, or an IPv4 address */
		uint8_t partition, flags;
	} site[FSD_SITES];
};
#define FSD_LOCKS 0x1f0u /* of the flags */

/* Any thread; do not wait. */
bool fsd_location_by_id(struct fsd_cell *cell, uint32_t id, struct fsd_location *location);
bool fsd_location_by_name(struct fsd_cell *cell, const char *name, struct fsd_location *location);
/* The entry that has `at` others before it. */
bool fsd_location_at(struct fsd_cell *cell, uint32_t at, struct fsd_location *location);
uint32_t fsd_location_count(struct fsd_cell *cell);

/*
 * Change the database, durably as the store. Codes of AFS. `old`: an id of the entry that is replaced; 0: a new one.
 * The name and the ids must be free.
 */
int32_t fsd_location_put(struct fsd_cell *cell, uint32_t old, const struct fsd_location *location);
int32_t fsd_location_delete(struct fsd_cell *cell, uint32_t id);
/* Set one of FSD_LOCKS, if none is; or, with 0, clear all. */
int32_t fsd_location_lock(struct fsd_cell *cell, uint32_t id, uint32_t lock);

/* Other servers, by their UUID. */
#define FSD_SERVER_ADDRESSES 15
struct fsd_cell_server {
	struct rxw_uuid uuid;
	uint32_t unique; /* number of the list of addresses */
	uint32_t count, address[FSD_SERVER_ADDRESSES];
};
int32_t fsd_cell_register(struct fsd_cell *cell, const struct fsd_cell_server *server);
/* By its place, from 0 on. */
bool fsd_cell_server_at(struct fsd_cell *cell, uint32_t at, struct fsd_cell_server *server);
bool fsd_cell_server_of(struct fsd_cell *cell, uint32_t address, struct fsd_cell_server *server);

/* -- transactions: codes of AFS -- */

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
/* A copy of it as it is now. Hinders no call in it, and is no use of it. ENOENT. */
int32_t fsd_transaction_look(struct fsd_cell *cell, int32_t id,
			     struct fsd_transaction *transaction);
/* The volume is served again, if it may be; a new one that is still temporary goes. After fsd_transaction_enter(). May wait for clients. */
void fsd_transaction_end(struct fsd_cell *cell, struct fsd_transaction *transaction);
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
		      const struct fsd_dump *dump, uint64_t *bytes);
/* A dump goes to transactions of several servers. */
struct fsd_forward {
	uint32_t host; /* IPv4 */
	uint16_t port;
	int32_t transaction;
	int32_t code; /* the result */
};
/* `cookie`: what they put into the header. The result is not 0 if the volume cannot be dumped, or all of them failed. */
int32_t fsd_dump_forward(struct fsd_cell *cell, const struct fsd_transaction *transaction,
			 const struct fsd_dump *dump, const struct cellvol *cookie, uint8_t level,
			 struct fsd_forward *to, unsigned count);
/* A call's dump becomes the contents; name and type: of the cookie. The volume is as before if that fails. */
int32_t fsd_dump_receive(struct fsd_cell *cell, struct fsd_transaction *transaction,
			 const struct cellvol *cookie, rxw_call *call);

/* -- the volume root.afs, which holds the mount points of the cell: CELL and .CELL -- */

/* This id is below those that cells assign to volumes. */
#define FSD_ROOTAFS_ID	 0x1fffffffu
#define FSD_ROOTAFS_NAME "root.afs"

/* Constant; any thread. */
struct fsd_rootafs;

/* `writable`: .CELL leads to the read-write volume. `date`: seconds since 1970. NULL: no memory, or too long a name. */
struct fsd_rootafs *fsd_rootafs_create(const char *cell, bool writable, uint32_t date);
void fsd_rootafs_destroy(struct fsd_rootafs *root);

/* The same as a store, which lives as long. The rights in a status are those of all users. */
struct store *fsd_rootafs_store(struct fsd_rootafs *root);

/* -- the protection service: a handler for rxw_service_add(), whose context is a struct prot -- */
int32_t fsd_pt_serve(rxw_call *call, void *prot);

#endif
