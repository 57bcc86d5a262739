/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of struct store_ops, as the store has them; store.h has the other ones on volumes. */
#ifndef STORE_OP_H
#define STORE_OP_H

#include "volume/interface.h"

/* -- volumes -- */

int admin_volume(struct store *store, uint32_t id, struct store_volume *volume);
int admin_by_name(struct store *store, const char *name, struct store_volume *volume);
int admin_next(struct store *store, uint32_t id, struct store_volume *volume);
int admin_at(struct store *store, uint32_t at, struct store_volume *volume);
void admin_totals(struct store *store, struct store_totals *totals);
int admin_set(struct store *store, const struct store_caller *caller, uint32_t id, unsigned mask,
	      const struct store_volume *volume);
int admin_space(struct store *store, struct store_space *space);

struct core;
struct db;
struct store_new_volume;
struct volrec;
struct work;
struct workvol;
/* In a transaction: a read-write volume whose contents are not being replaced. -EINVAL, STORE_VBUSY. */
int admin_find_rw(struct work *work, uint32_t id, struct workvol **volume);
/*
 * In a transaction: whether a volume may be served, by the list of its root. One whose root is damaged may: all calls to it fail. 0,
 * -EACCES or an error of the store. permits: NULL: each may.
 */
int admin_check_root(struct work *work, struct workvol *volume,
		     bool (*permits)(void *arg, const struct store_acl *root), void *arg);
/* A group that was removed, and that a new volume takes. */
struct admin_used_id {
	uint32_t group;
	uint64_t unique,
		version; /* that the new one begins with, which tell one removal from the next */
};
/* A result of the transaction: the cache may have versions of the group. The caller drops them, and tries again. */
#define ADMIN_USED_ID 1103
/*
 * In a transaction of its own: add a volume with the id of the record, or a free one if that is 0. The ids for clones and
 * what counts are set; clients have not seen a root directory of it with this version or a higher one.
 */
int admin_add_volume(struct work *work, struct core *core, struct volrec *rec,
		     struct admin_used_id *used, uint64_t *root_version);
/* `count` new ids of volumes in a row. */
int admin_allocate_ids(struct core *core, struct db *db, unsigned count, uint32_t *id);
/* All rows of the group of a read-write volume go, although the volume stays, in another group. */
int admin_leave_group(struct db *db, const struct volrec *rec);
/* The root directory of a new volume. */
int admin_make_root(const struct store_new_volume *new, struct work *work, struct workvol *volume,
		    uint64_t version);
void admin_compose_name(char name[STORE_VOLNAME_MAX + 16], const char *base, enum store_type type);
/* The place of a clone that exists in the record of its read-write volume, or VOLREC_CLONES. */
int admin_clone_place(const struct volrec *rw, uint32_t clone);
/* An epoch that a clone had goes: so do the rows that only that clone has shown. Another one with the same epoch keeps them. */
int admin_prune_clone(struct db *db, const struct volrec *rw, uint32_t epoch);
/* `hidden`: also one that is being restored. `cell`: a read-write volume goes before its clones. */
int admin_apply_removal(struct work *work, uint32_t id, bool hidden, bool cell);
/* Remove a volume that is being restored. */
int admin_remove_hidden(struct store *store, uint32_t id);

/* -- statuses and access lists -- */

int status_get(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_status *status);
void status_get_all(struct store *store, const struct store_caller *caller,
		    const struct store_fid *fids, size_t count, struct store_status *statuses,
		    int *results);
int status_acl(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_acl *acl, struct store_status *status);
int status_set(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       const struct store_set *set, struct store_status *status,
	       struct store_changes *changes);
int status_set_acl(struct store *store, const struct store_caller *caller,
		   const struct store_fid *dir, const struct store_acl *acl,
		   struct store_status *status, struct store_changes *changes);
int status_change_acl(struct store *store, const struct store_caller *caller,
		      const struct store_fid *dir, const struct store_acl *old,
		      const struct store_acl *acl, struct store_status *status,
		      struct store_changes *changes);

/* -- reading one version -- */

int read_begin(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_reader **reader, struct store_status *status);
ssize_t read_bytes(struct store_reader *reader, const struct iovec *iov, int count, uint64_t offset,
		   unsigned flags);
void read_ahead(struct store_reader *reader, uint64_t offset, uint64_t length);
int read_end(struct store_reader *reader);

/* -- names -- */

int names_create(struct store *store, const struct store_caller *caller,
		 const struct store_fid *dir, const char *name, enum store_kind kind,
		 const char *text, const struct store_set *set, struct store_status *status,
		 struct store_status *dir_status, struct store_changes *changes);
int names_link(struct store *store, const struct store_caller *caller, const struct store_fid *dir,
	       const char *name, const struct store_fid *existing, struct store_status *status,
	       struct store_status *dir_status, struct store_changes *changes);
int names_remove(struct store *store, const struct store_caller *caller,
		 const struct store_fid *dir, const char *name, enum store_kind kind,
		 struct store_status *dir_status, struct store_changes *changes);
int names_rename(struct store *store, const struct store_caller *caller,
		 const struct store_fid *old_dir, const char *old_name,
		 const struct store_fid *new_dir, const char *new_name,
		 struct store_status *old_status, struct store_status *new_status,
		 struct store_changes *changes);

/* -- the data of a file -- */

int write_begin(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
		const struct store_set *set, uint64_t offset, uint64_t length, uint64_t file_length,
		struct store_writer **writer);
int write_bytes(struct store_writer *writer, const struct iovec *iov, int count);
int write_commit(struct store_writer *writer, struct store_status *status,
		 struct store_changes *changes);
void write_abort(struct store_writer *writer);
int write_gather(struct store *store, const struct store_caller *caller,
		 const struct store_fid *fid, const struct store_set *set, uint64_t length,
		 struct store_writer **writer);
int write_range(struct store_writer *of, const struct store_caller *caller, uint64_t offset,
		uint64_t length, struct store_writer **writer);
int write_range_end(struct store_writer *writer, uint64_t *taken);
int write_gathered(struct store_writer *writer, const struct store_caller *caller, uint64_t bytes,
		   struct store_status *status, struct store_changes *changes);

#endif
