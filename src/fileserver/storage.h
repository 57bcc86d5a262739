/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's data on the disk: its state directory, and the store of volumes of --store. */
#ifndef FILESERVER_STORAGE_H
#define FILESERVER_STORAGE_H

#include <stddef.h>
#include <stdint.h>

#include <rxwire/coder.h>

#include "volume/export/export.h"
#include "protection/protection.h"
#include "volume/interface.h"

/* -- the state directory: a lock, the server's UUID, the files of exported directories -- */

struct fsd_state {
	char path[4096];
	int lock_fd;
	struct rxw_uuid uuid;
};

/*
 * The default path: the first of $STATE_DIRECTORY (set by the service manager), /var/lib/rxfsd for
 * root, $XDG_STATE_HOME/rxfsd, ~/.local/state/rxfsd. Returns 0, or -1 with the reason in `message`.
 */
int fsd_state_default(char *path, size_t size, char *message);

/*
 * Create the directory if it is missing, check that it is outside `export` (a canonical path, or NULL), lock
 * it against other servers, and read or create the UUID. Returns 0; FSD_STATE_INSIDE if it is
 * inside; or -1. In both cases there is one line in message[FSD_MESSAGE_MAX].
 */
#define FSD_STATE_INSIDE -2
int fsd_state_open(struct fsd_state *state, const char *path, const char *export, char *message);
void fsd_state_close(struct fsd_state *state);

/*
 * Open the file of the FIDs of an exported directory, and choose a random id for the volume, which is used if the file is
 * new. Returns 0, or -1 with one line in `message`.
 */
int fsd_state_fids(struct fsd_state *state, const char *volume, struct fids **fids,
		   uint32_t *new_id, char *message);
/* -- the store of volumes -- */

/* Logs a line of a volume; for the options of the store and of an exported directory. */
void fsd_storage_log(void *arg, int level, const char *line);

#define FSD_STORAGE_STATE "server" /* the state directory, in that of the store */

#define FSD_STORAGE_UNFIT -2

/*
 * Open the store in a directory. `durability`: "strict" or "lazy"; NULL: lazy. `copy`: the directory for the copy of its
 * metadata; NULL: the store. `make`: a new store, if the directory is empty. 0; FSD_STORAGE_UNFIT: there is no store,
 * this user may not use it, or this version cannot; -1: anything else, which another attempt may not meet: both with one
 * line in message[FSD_MESSAGE_MAX].
 */
int fsd_storage_open(const char *path, const char *durability, const char *copy, bool make,
		     struct store **store, char *message);
/*
 * The store remembers that its server is a `member` of a cell; only with `leave` it may be none again. *joined: it is one for the first
 * time. 0, FSD_STORAGE_UNFIT or -1, as above.
 */
int fsd_storage_set_member(struct store *store, bool member, bool leave, bool *joined,
			   char *message);
/* Whether that is a durability: 0, or -1 with one line in `message`. */
int fsd_storage_check(const char *durability, char *message);

/* The function `volumes` of struct fsd_clients_options; the argument is the store. */
size_t fsd_storage_volumes(void *store, uint32_t after, uint32_t *ids, size_t max);

/*
 * Look at the ACLs of the root directories: -1 with one line in `message` if one lets anonymous
 * callers write, else 0.
 */
int fsd_storage_check_anonymous(struct store *store, char *message);
/*
 * Log a line for each root directory whose ACL lets callers on some machine write without a token,
 * because the machine is in a group (afs-fileserver 7.3).
 */
void fsd_storage_report_machines(struct store *store, struct prot *prot);

/*
 * The database of users and groups may be new, or an older copy than the ACLs of the store. Ids that the store knows are not given
 * out again; lines in the log name them, those of ACLs and owners of root directories that nobody has, and a database that was
 * `made` beside a store with volumes. 0, or -1 with one line in `message`.
 */
int fsd_storage_compare_ids(struct store *store, struct prot *prot, char *message);
/* Tell the store which ids were given out by now. */
void fsd_storage_note_ids(struct store *store, struct prot *prot);

/*
 * figures.c: figures of the store in the text format of Prometheus, added to `text`, which is freed; both may be NULL: no
 * memory. To be freed. `volumes`: the most read-write volumes with figures of their own. `member` may be NULL.
 */
struct fsd_service;
struct fsd_member;
char *fsd_storage_metrics(const struct fsd_service *service, struct store *store,
			  struct fsd_member *member, size_t volumes, char *text);

#endif
