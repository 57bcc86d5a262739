/* SPDX-License-Identifier: BSD-2-Clause */
/* The store of volumes that the server serves with --store. */
#ifndef FILESERVER_STORAGE_H
#define FILESERVER_STORAGE_H

#include <stddef.h>
#include <stdint.h>

#include "protection/protection.h"
#include "volume/interface.h"

#define FSD_STORAGE_STATE "server" /* the state directory, in that of the store */

#define FSD_STORAGE_UNFIT -2

/*
 * Open the store in a directory. `durability`: "strict" or "lazy"; NULL: lazy. 0; FSD_STORAGE_UNFIT: there is no store,
 * this user may not use it, or this version cannot; -1: anything else, which another attempt may not meet: both with one
 * line in message[FSD_MESSAGE_MAX].
 */
int fsd_storage_open(const char *path, const char *durability, struct store **store, char *message);
/* Whether that is a durability: 0, or -1 with one line in `message`. */
int fsd_storage_check(const char *durability, char *message);

/* As `volumes` of struct fsd_clients_options; the argument is the store. */
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
 * Figures of the store in the text format of Prometheus, added to `text`, which is freed; both may be
 * NULL: no memory. To be freed.
 */
char *fsd_storage_metrics(struct store *store, char *text);

#endif
