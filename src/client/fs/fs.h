/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file system of the modules below: what objects, open files and users are. Operations block in calls to
 * servers; no lock of this module is held meanwhile. The lock of a client's tables and those of vnodes are each for
 * microseconds, and not held together.
 */
#ifndef CLIENT_FS_H
#define CLIENT_FS_H

#include <pthread.h>
#include <stdatomic.h>

#include <rxafs/client.h>
#include <rxafs/file.h>
#include <rxafs/daemon.h>
#include <rxafs/object.h>

#include "client/cache/cache.h"
#include "client/cache/changes.h"
#include "client/cache/listing.h"
#include "client/cell/cells.h"
#include "client/data/data.h"
#include "client/net/calls.h"
#include "common/htable.h"

struct fs_executor;
struct fs_locks;
struct fs_listener;

/* What the client knows of an object of a server, beside the cache. It lives as long as the object there. */
struct fs_vnode {
	rxafs_client *client;
	struct cl_object *object; /* counted by those who use the vnode */
	struct cl_volume *volume; /* a reference */
	struct rxafs_fid fid;
	rxafs_object *faces;	   /* objects that show it; lock of the table */
	pthread_mutex_t lock;	   /* of what follows */
	struct cl_data_file *data; /* from the first use on */
	struct fs_locks *locks;	   /* NULL: none were ever taken */
	void (*free_locks)(struct fs_locks *locks);
	atomic_bool forgotten; /* callers were told that it changed, and were given nothing since */
	atomic_bool lock_lost; /* it is locked here, but no longer at the server */
	atomic_bool removed;   /* a directory that this client has removed */
	char *text;	       /* of a link, at text_version */
	uint64_t text_version,
		damaged; /* damaged: the version of a directory that was said to be, plus 1 */
	unsigned opens;
	unsigned leaving; /* calls that take its last name away: whoever opens it waits for them */
	struct fs_hidden *hidden; /* removed while it was open */
	bool told;		  /* `data` knows a version: */
	uint64_t version;
	uint32_t incarnation;
	_Atomic uint64_t contents; /* see rxafs_file_contents() */
	struct fs_listener *listeners; /* see listeners.h */
};

enum fs_what {
	FS_PLAIN, /* an object of a server */
	FS_MOUNT, /* a mount point, and the root of the volume behind it once that was entered */
	FS_ROOT,  /* the dynamic root */
	FS_CELL,  /* a mount point in the dynamic root */
	FS_ALIAS  /* a link in the dynamic root */
};

struct fs_target;

/*
 * What callers hold. A directory that is reached through several mount points is several objects (K-021); a file is one. `parent` of a directory
 * may change; the lock of the table protects it.
 */
struct rxafs_object {
	void *link; /* of the table */
	rxafs_object *next_face;
	rxafs_client *client;
	_Atomic uint64_t references;
	enum fs_what what;
	enum rxafs_kind kind;
	struct rxafs_fid fid; /* key: of the mount point itself */
	rxafs_object *
		passage; /* mount point through which the volume was entered; a reference, or NULL */
	rxafs_object *parent;	/* a reference; NULL: it is the root, or no directory */
	struct fs_vnode *vnode; /* of `fid`; NULL in the dynamic root */
	_Atomic(struct fs_target *) target; /* FS_MOUNT, FS_CELL: once it was entered */
	char *text;	/* of a mount point or alias */
	_Atomic(void *) own_data;
	void (*drop_own_data)(void *data);
};

struct rxafs_client {
	struct cl_cells *cells;
	struct cl_net *net;
	struct cl_cache *cache;
	struct cl_data *data;
	struct fs_executor *executor;
	struct fs_lock_keeper *keeper;
	struct rxafs_hooks hooks;
	void (*log)(void *arg, int priority, const char *text);
	void *log_arg;
	rxafs_object *root;
	char **sysnames;
	char *root_volume;		/* NULL: a dynamic root */
	atomic_bool giving_back;	/* promises of evicted objects */
	_Atomic uint64_t evicted;	/* that were looked at; the net's thread writes it */
	struct fs_leftovers *leftovers; /* see silly.c; NULL: there is no cache folder */
	size_t sysname_count;
	bool ignore_owner, read_write, strict_locks;
	atomic_bool ending; /* nobody waits for locks any more */
	uint64_t limit_ns;
	time_t started;
	uint64_t key[2]; /* of hashes of names, secret */

	/* Servers may call until the net is closed, which comes last. */
	pthread_rwlock_t upcalls;
	bool deaf; /* what they say is no longer heard; lock `upcalls` */

	pthread_mutex_t lock; /* of the tables */
	pthread_cond_t asked; /* a claim was given up: see ask.c */
	struct htable objects;
	struct htable users;
	char *config_dir;	  /* of ThisCell and CellServDB; NULL: the usual folders */
	struct htable numbers;	  /* of volumes, for st_ino */
	struct htable spaces;	  /* of volumes, from the first look on: see space.c */
	struct fs_hidden *hidden; /* see silly.c */
};

struct rxafs_user {
	void *link;
	rxafs_client *client;
	atomic_uint references;
	uint32_t number;
	struct cl_identity *identity;
	/* Of this user with the tokens of former times: see fs_hold_opener(). Lock of the tables. */
	rxafs_user *openers;
	rxafs_user *of,
		*next; /* of such a one: the user, a reference; and the next one in his list */
};

struct rxafs_file {
	rxafs_object *object; /* a reference */
	struct fs_vnode *vnode;
	struct cl_data_handle *handle;
	rxafs_user *user, *opener; /* opener: whose changes are stored */
	int flags;
	bool locked; /* a lock was taken through it */
};

static inline bool fs_is_directory(const rxafs_object *object)
{
	return object->kind == RXAFS_DIRECTORY;
}

/* -- request.c, user.c ----------------------------------------------------------------------- */

/* For the calls of an operation. */
struct cl_caller fs_caller(rxafs_client *client, const struct rxafs_request *request);
uint32_t fs_identity(const struct rxafs_request *request, uint32_t cell);
void fs_log(rxafs_client *client, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The text of a failure that is decided here. Returns `result`. */
int fs_fail(struct rxafs_request *request, int result, const char *text);
void fs_free_users(rxafs_client *client);
/*
 * Who opens a file for writing: the user with the token that he has now, which stores use if he has none later, or that of another
 * principal (K-081). A reference; NULL: no memory.
 */
rxafs_user *fs_hold_opener(rxafs_user *user, uint32_t cell);
/* The user for calls of one who has opened a file; `stores`: for what he has written. */
rxafs_user *fs_present_user(rxafs_user *opener, uint32_t cell, bool stores);

/* -- vnode.c: vnodes and objects --------------------------------------------------------- */

/* A vnode with a reference to its object of the cache, or NULL: no memory. */
struct fs_vnode *fs_get_vnode(rxafs_client *client, struct cl_volume *volume,
			      const struct rxafs_fid *fid);
void fs_put_vnode(struct fs_vnode *vnode);
void fs_drop_vnode(void *vnode);
/* The object of a child of `parent`. `text`: of a mount point, else NULL. */
rxafs_object *fs_get_object(rxafs_object *parent, struct fs_vnode *vnode, enum rxafs_kind kind,
			    const char *text);
/* The object of the root of a volume, as it is without a mount point: nothing is above it. */
rxafs_object *fs_get_root_object(struct fs_vnode *vnode);
/* One that is not of a server. */
rxafs_object *fs_get_special(rxafs_client *client, rxafs_object *parent, enum fs_what what,
			     const struct rxafs_fid *fid, enum rxafs_kind kind, const char *text);
/* Tell the caller of the client that the object has changed; except through one of its faces, or NULL. */
void fs_tell(struct fs_vnode *vnode, unsigned what, const rxafs_object *except);
int fs_open_tables(rxafs_client *client);
void fs_close_tables(rxafs_client *client);
uint64_t fs_inode(rxafs_client *client, const struct rxafs_fid *fid);

/* The net's callbacks. */
extern const struct cl_net_ops fs_net_ops;

#include "client/fs/target.h"

#endif
