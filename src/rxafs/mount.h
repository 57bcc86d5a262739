/* SPDX-License-Identifier: BSD-2-Clause */
/* A mount: a client of the library, and a session with the kernel. */
#ifndef RXAFS_MOUNT_H
#define RXAFS_MOUNT_H

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxafs/daemon.h>
#include <rxafs/file.h>

struct handle;
struct known;
struct flusher;
struct logins;
struct sessions;
struct tokens;
struct watcher;
struct page_list;

struct mount {
	rxafs_client *client;
	struct fuse_session *_Atomic session;
	rxafs_object *root;
	const char *where;
	const char *source;	     /* as mount(8) shows it; NULL: AFS */
	struct sessions *sessions;   /* of processes with tokens of their own */
	struct tokens *tokens;	     /* of users */
	struct logins *logins;	     /* in progress */
	struct tools_metrics *metrics;
	struct watcher *watcher;     /* of interrupted requests */
	struct flusher *flusher;     /* of the kernel's caches */
	struct page_list *pages;     /* objects of which the kernel has pages */
	pthread_mutex_t handles_lock;
	struct handle *handles;	     /* that the kernel has; under that lock */
	_Atomic uint64_t generation; /* of node ids that are used again */
	atomic_uint changing;	     /* requests for changes that wait for a server */
	atomic_bool stopping;	     /* no more opens */
	bool many_users;	     /* processes of several users or sessions may come */
	bool own_files;		     /* files look like those of the user who has mounted */
	bool foreground;
	int log_level;	     /* the least important priority that is told */
	atomic_bool greeted; /* INIT was answered */
	atomic_bool may_go_through; /* the kernel may read files of the cache, see through.h */
	atomic_uint kernel_files;   /* that it reads so */
	bool parallel_names; /* the kernel can look up several names of a directory at a time */
	bool can_expire;     /* the kernel can be told that a name must be asked again */
	bool keep_names;     /* whether the kernel may keep names and attributes */
	uint64_t limit_ns;   /* after which a request must be answered (K-155); 0: never */
	unsigned readers;    /* threads that read requests */
	struct reader *reader_list;
	unsigned readers_begun;
	atomic_uint reading; /* of them, those that are neither lent nor at their end */
	sem_t ended;	     /* one of them has ended, or shall */
	_Atomic uint32_t connection; /* its number, that of the device; 0: not known */
	int device;	     /* /dev/fuse, also at the end of the session; -1 = none */
};

/* A line for the log, if it is as important as the log level wants; priority is syslog's. */
void mount_log(struct mount *mount, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for struct rxafs_hooks: `mount` is the struct mount. */
void mount_log_line(void *mount, int priority, const char *text);

/* After fuse_session_mount(). 0 or a negative errno. */
int mount_begin_session(struct mount *mount);
/*
 * Serve requests until the file system is unmounted or mount_stop() is called. 0 or a negative
 * errno.
 */
int mount_serve(struct mount *mount);
/* Take the mount away after mount_serve(), and end the connection. */
void mount_end_session(struct mount *mount);
/* End mount_serve(). Any thread. */
void mount_stop(struct mount *mount);

/* The operations; libfuse gets a pointer to the struct mount with each request. */
extern const struct fuse_lowlevel_ops mount_operations;

/*
 * A node id is the address of an object and, in the bits that are zero there, its turn: a file that the kernel reads by itself is
 * another node in another version.
 */
#define NODE_TURNS 16u
static inline unsigned node_turn(fuse_ino_t node)
{
	return (unsigned)(node % NODE_TURNS);
}
static inline rxafs_object *node_object(struct mount *mount, fuse_ino_t node)
{
	return node == FUSE_ROOT_ID ? mount->root
				    : (rxafs_object *)(uintptr_t)(node - node_turn(node));
}
/* The present one. */
fuse_ino_t object_node(struct mount *mount, rxafs_object *object);

/* The user of a process, by what FUSE tells of it; a reference, or NULL: anonymous. */
rxafs_user *find_caller(struct mount *mount, const struct fuse_ctx *context);
/*
 * Whose share of logins and sessions a user id takes: one that is subordinate to a user (subuid(5)) takes that of the first one which is.
 */
uid_t find_accountable(uid_t uid);

#endif
