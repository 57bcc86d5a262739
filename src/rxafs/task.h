/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of the kernel. Each is tried on the thread that has read it, without a wait for servers.
 * If that does not do, it becomes a task of the library's threads, and its process can be killed
 * meanwhile.
 */
#ifndef RXAFS_TASK_H
#define RXAFS_TASK_H

#include "rxafs/kernel.h"
#include "rxafs/mount.h"

/* An open file or directory of the kernel. Counted, since a task may outlive the descriptor. */
struct handle {
	struct mount *mount;
	struct handle *next, **at; /* in the mount's list */
	atomic_uint references;
	rxafs_file *file;
	rxafs_listing *listing;
	pthread_mutex_t reading; /* of the listing */
	atomic_bool hands_over;	 /* something was handed over for a login */
	bool writable;
	bool direct; /* past the kernel's pages */
	bool paged;  /* by them, and counted so; or: */
	struct through *through;
};

#define READ_PLACES 10u /* in which the bytes of a read may lie */

struct task;
struct through;

struct task_kind {
	/* 0 or a negative errno; RXAFS_WOULD_WAIT if t->request.quick. */
	int (*run)(struct task *t);
	/* After 0. Gives the results to the kernel. */
	void (*reply)(struct task *t);
	/* After 0, instead of reply(): nobody waits for the results any more. NULL: nothing to do. */
	void (*undo)(struct task *t);
	bool never_quick; /* it changes something at a server */
	bool cancels;	  /* a killed process ends the operation, too: it only reads or waits */
	bool any_signal;  /* ends the wait with EINTR, also one that the process handles */
	bool holds; /* the kernel holds a lock of the object meanwhile, for which others cannot be killed */
};

struct task {
	const struct task_kind *kind;
	struct mount *mount;
	fuse_req_t req;
	struct rxafs_request request;
	struct fuse_ctx caller; /* the process */

	/* Arguments. What they point to lives as long as the task. */
	rxafs_object *object, *other;
	fuse_ino_t node; /* of `object` */
	struct handle *handle;
	const char *name, *new_name;
	const void *data;
	size_t size;
	uint64_t offset;
	int flags;
	uint32_t mode;
	struct rxafs_changes changes;
	struct rxafs_lock lock;

	/* Results. */
	uint64_t look; /* of kernel_begin_look() */
	rxafs_object *made;
	struct rxafs_attributes attributes;
	rxafs_file *file;
	rxafs_listing *listing;
	char *bytes; /* to be freed */
	int64_t count;
	rxafs_loan *loan; /* of a read */
	bool fills_pages;
	struct kernel_read *reading; /* of pages, once it waits */
	struct iovec iov[READ_PLACES];
	unsigned places;
	struct rxafs_space space;
	rxafs_object **listed; /* in `bytes` */
	size_t listed_count;
};

/*
 * A task for a request, with its mount and object; the caller sets the other arguments, and then
 * calls task_start(), after which nothing of the task may be used.
 */
struct task task_of(fuse_req_t req, const struct task_kind *kind, fuse_ino_t node);
void task_start(struct task *t);

/* For the kernel, which has a reference until handle_release(). NULL: no memory. */
struct handle *handle_create(struct mount *mount, rxafs_file *file, rxafs_listing *listing);
/* The kernel has it no longer. */
void handle_release(struct handle *handle);
/* Nor any other: after an end of the mount with requests in progress it does not tell. */
void handles_end(struct mount *mount);
/* Between the thread that makes a handle and those that get it from the kernel. */
extern atomic_uint handles_made;
static inline uint64_t handle_number(struct handle *handle)
{
	atomic_fetch_add_explicit(&handles_made, 1, memory_order_release);
	return (uint64_t)(uintptr_t)handle;
}
static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
	atomic_load_explicit(&handles_made, memory_order_acquire);
	return fi ? (struct handle *)(uintptr_t)fi->fh : NULL;
}
void handle_put(struct handle *handle);

/* The thread that looks after processes whose requests were interrupted. */
int watcher_start(struct mount *mount);
void watcher_stop(struct mount *mount);
/* After the client, whose threads end requests until then. */
void watcher_free(struct mount *mount);

/* Whether a signal that ends the thread is pending, or the thread is gone. */
bool thread_is_dying(pid_t thread);
/*
 * Processes that are to end, but wait in the kernel. One that was seen before counts for a short time: if it is there still, then its
 * wait is for something else.
 */
#define DYING_MOST 32
struct dying {
	struct {
		pid_t process;
		bool seen;
		uint64_t since; /* monotonic_ns() */
	} list[DYING_MOST];
	unsigned count;
};
/* Look for those that may use the mount with that connection (0: any). Whether there is one that counts. */
bool any_waits_dying(struct dying *dying, uint32_t connection, uint64_t now);

/* Operations of one file each, for the table. */
void serve_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void serve_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void serve_setattr(fuse_req_t req, fuse_ino_t node, struct stat *attr, int to_set,
		   struct fuse_file_info *fi);
void serve_readlink(fuse_req_t req, fuse_ino_t node);
void serve_access(fuse_req_t req, fuse_ino_t node, int mask);
void serve_statfs(fuse_req_t req, fuse_ino_t node);
void serve_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t size);
void serve_setxattr(fuse_req_t req, fuse_ino_t node, const char *name, const char *value,
		    size_t size, int flags);
void serve_listxattr(fuse_req_t req, fuse_ino_t node, size_t size);
void serve_removexattr(fuse_req_t req, fuse_ino_t node, const char *name);

void serve_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void serve_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void serve_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void serve_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void serve_symlink(fuse_req_t req, const char *text, fuse_ino_t parent, const char *name);
void serve_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		  const char *new_name, unsigned flags);
void serve_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t new_parent, const char *new_name);

void serve_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		  struct fuse_file_info *fi);
void serve_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void serve_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		struct fuse_file_info *fi);
void serve_write(fuse_req_t req, fuse_ino_t node, const char *data, size_t size, off_t offset,
		 struct fuse_file_info *fi);
void serve_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void serve_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void serve_fsync(fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi);
void serve_getlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi, struct flock *lock);
void serve_setlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi, struct flock *lock,
		 int sleep);
void serve_flock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi, int op);

void serve_ioctl(fuse_req_t req, fuse_ino_t node, unsigned command, void *arg,
		 struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
		 size_t out_size);

void serve_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void serve_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		   struct fuse_file_info *fi);
void serve_readdirplus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		       struct fuse_file_info *fi);
void serve_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void serve_fsyncdir(fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi);

#endif
