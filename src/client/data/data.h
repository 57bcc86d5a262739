/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of files: blocks in memory and on disk, reads that join one fetch, read-ahead, changes that are kept in memory and
 * stored later, errors kept for fsync and close.
 *
 * This module knows one object at a time, and neither status nor promise: its user says which version of a file is valid now
 * (cl_data_update()), and does the calls (struct cl_data_ops). No lock is held over them.
 */
#ifndef CLIENT_DATA_H
#define CLIENT_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "rxafs/types.h"

struct cl_data;	       /* all contents of an instance, with its budgets and threads */
struct cl_data_file;   /* the contents of one file */
struct cl_data_handle; /* a file opened by somebody */

/* What is known of an object's contents: members of cl_status of the cache. */
struct cl_data_version {
	uint64_t version;
	uint64_t
		clean_from; /* contents of these versions are the same, but for own stores (K-061) */
	uint64_t length;
	uint64_t
		order; /* rises with each status that the object took: tells late updates from versions that went back */
	uint32_t incarnation;
};

/* As cl_take_fn and cl_give_fn of net. `offset` counts from the start of the file. */
typedef int cl_data_take_fn(void *to, uint64_t offset, struct iovec *iov, unsigned count);
typedef int cl_data_give_fn(void *from, uint64_t offset, const struct iovec *iov, unsigned count);

#define CL_DATA_NO_CUT INT64_MAX

struct cl_data_store {
	uint64_t offset, length;
	uint64_t file_length;  /* the file is cut to it; CL_DATA_NO_CUT */
	uint64_t known_length; /* as this client sees it */
	int64_t mtime;	       /* seconds since 1970 */
	bool durable;
};

/*
 * Functions of the user. They block; threads of this module call them, and threads that read and flush. `owner` is that of the
 * file, `who` that of the handle. Results are 0 or negative errno values.
 */
struct cl_data_ops {
	/*
	 * FetchData64: gives the bytes to take() in order. *read is the version that the file had before, or 0, and then the data version in
	 * the reply; *known is what the cache knows afterwards. May begin again at the first byte after a failure. A nonzero result of
	 * take() ends it.
	 */
	int (*fetch)(void *owner, void *who, uint64_t offset, uint64_t length,
		     cl_data_take_fn *take, void *to, uint64_t *read,
		     struct cl_data_version *known);
	/* How many paths share long fetches of the file, and bytes of one of these, 0: any; see cl_net_paths(). May be NULL: one. */
	unsigned (*paths)(void *owner, uint64_t *share);
	/*
	 * StoreData64: gets the bytes by give(). *known is what the cache knows after the end of this change. Stores of one file do not
	 * overlap.
	 */
	int (*store)(void *owner, void *who, const struct cl_data_store *store,
		     cl_data_give_fn *give, void *from, struct cl_data_version *known);
	/*
	 * A file has handles, changes or calls in flight: owner must live until drop(). hold() only counts: it is called with locks held. drop()
	 * is called without.
	 */
	void (*hold)(void *owner);
	void (*drop)(void *owner);
	/* References to an identity, which stores may need after the handle is closed. May be NULL. */
	void (*hold_who)(void *who);
	void (*drop_who)(void *who);
	/* Bytes were given to readers early that are not those of the version: the kernel's pages must go (K-066). May be NULL. */
	void (*changed)(void *owner);
	/* Changes are given up after the last close: `bytes` of them, with the errno value. May be NULL. */
	void (*lost)(void *owner, int error, uint64_t bytes);
};

/* Zero: the default. */
struct cl_data_options {
	uint64_t memory_most;	  /* bytes of blocks in memory; 64 MiB */
	uint64_t dirty_most;	  /* of them not yet stored; half of the above */
	uint64_t dirty_file_most; /* of one file; 64 MiB */
	uint64_t ahead_most;	  /* read-ahead of one handle; 16 MiB */
	uint32_t block;		  /* 256 KiB */
	uint32_t store_after_s;	  /* changes older than this are stored in the background; 30 s */
	uint32_t threads_most;	  /* for background fetches and stores, at most 512; 512 */
	const char *folder;	  /* of the disk cache; NULL = none */
	uint64_t disk_most;	  /* bytes; 1 GiB */
};

/* How long a function may wait. NULL: without limit. */
struct cl_data_wait {
	uint64_t deadline; /* nanoseconds of CLOCK_BOOTTIME; 0 = none. Result -ETIMEDOUT */
	bool only_try;	   /* return -EAGAIN instead of any wait for the network or the disk */
	/* Asked after each wake-up, and every 100 ms: result -EINTR. What was begun goes on. NULL = never. */
	bool (*cancelled)(const void *arg);
	const void *cancel;
};

int cl_data_create(const struct cl_data_options *options, const struct cl_data_ops *ops,
		   struct cl_data **data, char *message, size_t size);
/*
 * The end of background fetches and stores: waits for the calls in flight, which the user has cancelled. No operation may begin
 * afterwards, nor may be in progress.
 */
void cl_data_stop(struct cl_data *data);
/* All files must have been freed. */
void cl_data_free(struct cl_data *data);
/*
 * Stores the changes of all files, or of one volume if it is not 0 (cell and volume). The first error, a permanent one before others. For
 * syncfs and the end: until `wait` is over, failures that may pass are tried again. Then the rest is left dirty.
 */
int cl_data_flush_all(struct cl_data *data, uint32_t cell, uint32_t volume, bool durable,
		      const struct cl_data_wait *wait);
/* Gives up all changes, with lost() for each file; for the end, after cl_data_flush_all(). */
void cl_data_give_up(struct cl_data *data);

/* `cell_name` is for the disk cache. `owner` is for ops. */
int cl_data_file_create(struct cl_data *data, const struct rxafs_fid *fid, const char *cell_name,
			void *owner, struct cl_data_file **file);
/* No handles, and not held (ops.hold). The blocks on disk stay. */
void cl_data_file_free(struct cl_data_file *file);

/*
 * The server has this version, says a status that is valid now. Clean bytes of another one are dropped, changes are kept (K-077). What
 * has a lower order than the last one is late, and is ignored.
 */
void cl_data_update(struct cl_data_file *file, const struct cl_data_version *version);
/* Drops what is clean, in memory and on disk. */
void cl_data_forget(struct cl_data_file *file);
/* What programs see: with changes that are not yet stored. The functions return at once. */
uint64_t cl_data_length(struct cl_data_file *file);
/* Whether something is to be stored. *mtime then is the time that will be stored (seconds). */
bool cl_data_is_dirty(struct cl_data_file *file, int64_t *mtime);
/* utimes: true if the next store will carry the time, false if nothing is to be stored: then the caller sends it. */
bool cl_data_set_mtime(struct cl_data_file *file, int64_t mtime);
/* Wakes all that wait at this file, to ask cancelled() again. */
void cl_data_wake(struct cl_data_file *file);

/* Large ones are to be kept as a whole on the disk, for cl_data_lend_whole(). Before the first version is told. */
void cl_data_keep_whole(struct cl_data_file *file);

/* `who` is for calls on behalf of the handle. */
int cl_data_open(struct cl_data_file *file, void *who, struct cl_data_handle **handle);
/* Stores nothing: call cl_data_flush() before. Changes that could not be stored are tried again for 10 minutes, or given up (K-078). */
void cl_data_close(struct cl_data_handle *handle);

/* Bytes read, 0 at the end of the file, or a negative errno value. cl_data_update() must have been called with a valid status. */
ssize_t cl_data_read(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		     uint64_t offset, void *bytes, size_t length);
/*
 * Lends bytes instead of copying them: fills iov[0..*count), which stay as they are until cl_data_give_back(). The result is that of
 * cl_data_read(), or -E2BIG: they are in more than *count places, so read them. *loan is NULL unless the result is above 0.
 */
struct cl_data_loan;
ssize_t cl_data_lend(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		     uint64_t offset, size_t length, struct iovec *iov, unsigned *count,
		     struct cl_data_loan **loan);
void cl_data_give_back(struct cl_data_loan *loan);

/*
 * A descriptor for reading of the contents as they are now, *version, if they are on the disk as a whole; -ENOENT. What lacks is then
 * fetched in the background, if it is not much. The descriptor keeps them as long as it is open; `lent` is given back after it. Never waits.
 */
struct cl_disk_whole;
int cl_data_lend_whole(struct cl_data_handle *handle, uint64_t *version,
		       struct cl_disk_whole **lent);
void cl_data_return_whole(struct cl_disk_whole *lent);

/*
 * Bytes written: all or none. Waits only while too much is dirty (K-071). An error of an earlier store of this handle that is
 * permanent is returned (K-078).
 */
ssize_t cl_data_write(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		      uint64_t offset, const void *bytes, size_t length);
/* At the end of the file as it is known here: *offset says where (K-076). */
ssize_t cl_data_append(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		       const void *bytes, size_t length, uint64_t *offset);
/* Locally at once; the server is told with the next store. A handle may be opened for it alone, then flushed (K-074). */
int cl_data_truncate(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		     uint64_t length);
/*
 * Stores the changes of the file, of all handles (fsync, close, unlock). Each error is returned once for each handle that wrote. 0 at once if
 * nothing is dirty. After -EINTR or -ETIMEDOUT of `wait` the store goes on.
 */
int cl_data_flush(struct cl_data_handle *handle, const struct cl_data_wait *wait, bool durable);

#endif
