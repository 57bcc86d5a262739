/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store as part of a cell: the database of locations, and root.afs. volumes.h has the transactions in which volumes are made, copied
 * and replaced (doc/notes/cell.md). Results are those of the store (volume/interface.h) or, where stated, codes of AFS.
 */
#ifndef FILESERVER_CELL_H
#define FILESERVER_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/types.h>
#include <rxwire/coder.h>

#include "afs/numbers.h"
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

/* -- the database of locations -- */

#define FSD_SITES 13
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
	} site[FSD_SITES]; /* at one of several addresses of a server: at the first */
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
/*
 * Sites at an address that no server has registered are at another one; AFS_VL_NOENT: there are none. A crash may leave some: the
 * change can be repeated.
 */
int32_t fsd_cell_move_address(struct fsd_cell *cell, uint32_t from, uint32_t to);
/* Forget the server with this address; AFS_VL_IDEXIST: entries name it. */
int32_t fsd_cell_remove_server(struct fsd_cell *cell, uint32_t address);
/* By its place, from 0 on. One without addresses: the place is vacant. */
bool fsd_cell_server_at(struct fsd_cell *cell, uint32_t at, struct fsd_cell_server *server);
bool fsd_cell_server_of(struct fsd_cell *cell, uint32_t address, struct fsd_cell_server *server);

/* -- the volume root.afs, which holds the mount points of the cell: CELL and .CELL -- */

/* This id is below those that cells assign to volumes. */
#define FSD_ROOTAFS_ID	 AFS_RXFSD_ROOTAFS
#define FSD_ROOTAFS_NAME "root.afs"

/* Constant; any thread. */
struct fsd_rootafs;

/* `writable`: .CELL leads to the read-write volume. `date`: seconds since 1970. NULL: no memory, or too long a name. */
struct fsd_rootafs *fsd_rootafs_create(const char *cell, bool writable, uint32_t date);
void fsd_rootafs_destroy(struct fsd_rootafs *root);

/* The same as a store, which lives as long. The rights in a status are those of all users. */
struct store *fsd_rootafs_store(struct fsd_rootafs *root);

#endif
