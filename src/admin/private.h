/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the administration of a store. */
#ifndef ADMIN_PRIVATE_H
#define ADMIN_PRIVATE_H

#include "admin/admin.h"
#include "volume/store/transfer.h"

#define ADMIN_PATH_MAX 4096 /* bytes of a path in a volume, its NUL included */

/* One request that is executed. One thread. */
struct admin_run {
	const struct admin_options *options;
	const struct admin_output *output;
	const json_t *request;
	struct store *store;
	uint64_t shown_ns; /* when progress was reported */
};

/* The administrator, to whom rights do not apply. */
extern const struct store_caller admin_caller;

/* -- request.c: members of the request; admin_execute() has checked them -- */

enum admin_kind {
	ADMIN_TEXT,	/* 1 to 4095 bytes */
	ADMIN_ANY_TEXT, /* 0 to 4095 bytes */
	ADMIN_NUMBER,	/* 0 to 2^53 */
	ADMIN_FLAG,
	ADMIN_LIST /* up to 64 objects */
};
struct admin_member {
	const char *name;
	enum admin_kind kind;
	bool required;
};

/* Whether an object has all it needs and nothing else. 0, or -1 with a line. */
int admin_members_check(const json_t *object, const struct admin_member *members, size_t count,
			char message[STORE_MESSAGE_MAX]);
const char *admin_get_text(const struct admin_run *run, const char *name); /* or NULL */
bool admin_get_flag(const struct admin_run *run, const char *name);
/* Or `missing`. */
uint64_t admin_get_number(const struct admin_run *run, const char *name, uint64_t missing);

/* -- request.c: its answer -- */

/* The error that ends a request; returns `status`. */
int admin_fail(struct admin_run *run, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same after a result of the store that is not 0; `what` names the object. Returns 1. */
int admin_fail_code(struct admin_run *run, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The text for a result of the store. */
const char *admin_code_text(int code);
/* The result that ends a request; takes the reference. Flushes the store if that was changed. */
int admin_done(struct admin_run *run, json_t *result, bool changed, int status);
void admin_skipped(struct admin_run *run, const char *path, const char *reason);
void admin_fault(struct admin_run *run, const char *line);
/* Sends one of many parts of a result and takes the reference. */
void admin_part(struct admin_run *run, const char *name, json_t *part);
/* About five times a second. */
void admin_progress(struct admin_run *run, const char *path, uint64_t bytes, uint64_t total,
		    uint64_t files);
/* The same of a request that counts objects. */
void admin_count(struct admin_run *run, uint64_t done, uint64_t total);
bool admin_stopped(const struct admin_run *run);
void admin_changed(const struct admin_run *run, const struct store_changes *changes);
/* All of a volume. */
void admin_changed_volume(const struct admin_run *run, uint32_t id);
/* Text for people as JSON: what is not UTF-8 and control characters become \xNN. */
json_t *admin_show(const char *bytes);

/* -- walk.c: volumes and paths -- */

/* The volume of member "volume", a name or a number. 0, or 1 after an error. */
int admin_find_volume(struct admin_run *run, struct store_volume *volume);
/* The volume of a name or number: 0 or 1 after an error; and without an error, a result of the store. */
int admin_find_named(struct admin_run *run, const char *name, struct store_volume *volume);
int admin_seek_volume(struct admin_run *run, const char *name, struct store_volume *volume);
/* Whether a new volume may have this name. 0, or 2 after an error. */
int admin_check_name(struct admin_run *run, const char *name);
/* An object that a path of a volume leads to. */
struct admin_place {
	struct store_volume volume;
	struct store_fid fid;
	struct store_status status;
	char name[ADMIN_PATH_MAX + 96]; /* "VOLUME:PATH" for messages */
	char *path;			/* without slashes at both ends; to be freed */
};
/* Members "volume" and "path". 0, or the status after an error; place->path is NULL then. */
int admin_find_place(struct admin_run *run, struct admin_place *place);
/* The directory of the path's last name, which *last points to. The object may be missing. */
int admin_find_parent(struct admin_run *run, struct admin_place *place, const char **last);

/* A directory or link as bytes: to be freed; *length may be NULL. The bytes end with a NUL. */
int admin_contents(struct store *store, const struct store_fid *fid, char **bytes, size_t *length,
		   struct store_status *status);
/* The same of the vnode that a snapshot gave last. */
int admin_snapshot_contents(struct store *store, struct store_snapshot *snapshot,
			    const struct store_vnode *vnode, char **bytes);
/* A name in a directory: 0, -ENOENT, or another result of the store. */
int admin_lookup(struct store *store, const struct store_fid *dir, const char *name,
		 struct store_fid *fid);

/* -- walk.c: directories of a tree that are still to be visited, as a stack -- */

struct admin_pending {
	struct admin_pending *next;
	char *path;
	struct store_fid fid;
	bool existed; /* in the volume */
};
/* 0, or -1 after an error. */
int admin_push_pending(struct admin_run *run, struct admin_pending **stack, const char *path,
		       const struct store_fid *fid, bool existed);
/* Visits all, also those that a visit pushes, and frees them. After a result that is not 0, or if `rc` is one, only that. */
int admin_visit_pending(struct admin_pending **stack, int rc,
			int (*visit)(void *arg, const struct admin_pending *dir), void *arg);

/* -- names.c: users, groups and rights -- */

struct prot;
struct prot_view;
struct admin_names {
	struct prot *prot; /* NULL: the store has no protection database */
	const struct prot_view *view;
};
/* 0, or 1 after an error. */
int admin_names_open(struct admin_run *run, struct admin_names *names);
void admin_names_close(struct admin_names *names);

/*
 * Replace entries of *acl by those of member "acl", if there is one. 0, or the status after an error. A list that is too
 * long for clients is refused, unless it becomes shorter. `what` names the object.
 */
int admin_acl_change(struct admin_run *run, const char *what, struct store_acl *acl);
/* Whether a volume that is served may have the list; `what` names the object. 0, or 1 after an error. */
int admin_acl_permit(struct admin_run *run, const struct store_acl *acl, const char *what);
json_t *admin_acl_json(const struct admin_names *names, const struct store_acl *acl);
/* Member "owner", or `missing`. 0, or the status after an error. */
int admin_owner(struct admin_run *run, int32_t missing, int32_t *owner);

/* -- walk.c: the directory that import reads and export writes -- */

/* Open a path below a directory without following any symbolic link. A descriptor, or -errno. */
int admin_open_beneath(int directory, const char *path, int flags, unsigned mode);
/* "a/b", or "b" if `dir` is "". NULL: no memory, or longer than ADMIN_PATH_MAX (errno). */
char *admin_join(const char *dir, const char *name);

/* -- source.c: the tree that import reads: output->directory, or what another process lends of it -- */

enum admin_source_kind {
	ADMIN_SOURCE_LOOK,	/* for fstat(), and readlinkat() with the path "" */
	ADMIN_SOURCE_FILE,	/* to be read; does not wait for a writer of a FIFO */
	ADMIN_SOURCE_DIRECTORY, /* for fdopendir(); what is in it may be out of reach by it */
	ADMIN_SOURCE_TOTAL	/* no descriptor: the sum of lengths */
};
/* Open a path below the directory without following any symbolic link. A descriptor, or -errno. */
int admin_source_open(const struct admin_run *run, const char *path, enum admin_source_kind kind);
/* The lengths of all files; 0: not known. */
uint64_t admin_source_bytes(const struct admin_run *run);

/* Reports a result of store_snapshot_take() or store_snapshot_end() for that volume. Returns 1. */
int admin_fail_snapshot(struct admin_run *run, int rc, const char *name);

/* -- the commands: the exit status -- */

int admin_create(struct admin_run *run);
int admin_list(struct admin_run *run);
int admin_examine(struct admin_run *run);
int admin_remove(struct admin_run *run);
int admin_rename(struct admin_run *run);
int admin_clone(struct admin_run *run);
int admin_quota(struct admin_run *run);
int admin_online(struct admin_run *run);
int admin_offline(struct admin_run *run);
int admin_check(struct admin_run *run);
int admin_acl(struct admin_run *run);
int admin_mount(struct admin_run *run);
int admin_mounts(struct admin_run *run);
int admin_unmount(struct admin_run *run);
int admin_which(struct admin_run *run);
int admin_import(struct admin_run *run);
int admin_export(struct admin_run *run);
int admin_compare(struct admin_run *run);
int admin_dump(struct admin_run *run);
int admin_restore(struct admin_run *run);
int admin_restore_from(struct admin_run *run);

#endif
