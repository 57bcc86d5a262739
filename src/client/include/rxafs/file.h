/* SPDX-License-Identifier: BSD-2-Clause */
/* Open files and directories. */
#ifndef RXAFS_FILE_H
#define RXAFS_FILE_H

#include <rxafs/object.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rxafs_file rxafs_file;
typedef struct rxafs_listing rxafs_listing;

/*
 * `flags` are open(2)'s: the access mode, O_TRUNC, O_APPEND, O_SYNC and O_DSYNC; others mean nothing. Give the file back by
 * rxafs_close(). It has references of its own to the object and to the user, with whose tokens its data are written.
 * -EISDIR: for listings see below; -ELOOP: it is a symbolic link; -EROFS: for writing in a read-only volume.
 */
int rxafs_open(rxafs_object *object, struct rxafs_request *request, int flags, rxafs_file **file);
/*
 * A new file, opened; *object is a reference. `mode`: 0 to 0777; there is no umask. O_EXCL: -EEXIST if the name exists; else that
 * file is opened. -ENOTDIR: `directory` is none; -EINVAL, -ENAMETOOLONG: the name; -EROFS; -EFBIG: the directory is full;
 * -EDQUOT, -ENOSPC.
 */
int rxafs_create(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 uint32_t mode, int flags, rxafs_object **object,
		 struct rxafs_attributes *attributes, rxafs_file **file);
/*
 * Fills `buffer` with bytes at `offset`, which begins at 0: their count, less than `length` only at the end of the file. -EBADF: the file is
 * not open for reading.
 */
int64_t rxafs_read(rxafs_file *file, struct rxafs_request *request, void *buffer, size_t length,
		   uint64_t offset);
/*
 * The count of bytes that were taken, which are copied. They are stored by rxafs_flush(), or sooner in the background. Waits
 * while too much is not stored yet. With O_APPEND `offset` is not used. With O_SYNC the bytes are on the server's disk. -EBADF: the file is
 * not open for writing; -EFBIG: the end is beyond 2^63 - 1; -EDQUOT, -ENOSPC and others: an earlier store has failed with it.
 */
int64_t rxafs_write(rxafs_file *file, struct rxafs_request *request, const void *data,
		    size_t length, uint64_t offset);
/*
 * Store what was written to the object, by whichever descriptor. 0: the server has it, and others see it. Errors of earlier writes
 * through this descriptor are told once. `durable`: on the server's disk as well. -EDQUOT: the quota of the volume is used up; -ENOSPC.
 * After -EINTR and -ETIMEDOUT storing goes on.
 */
int rxafs_flush(rxafs_file *file, struct rxafs_request *request, bool durable);
/*
 * The last use; drops its locks. Never waits for a server. What was not flushed is stored in the background, and an error then reaches
 * only the log: call rxafs_flush() first. NULL is allowed.
 */
void rxafs_close(rxafs_file *file);
/* Of which it is; no reference, valid until rxafs_close(). */
rxafs_object *rxafs_file_object(const rxafs_file *file);
/* Sets the length, in bytes; stored by rxafs_flush(). -EINVAL: the file is not open for writing. */
int rxafs_truncate(rxafs_file *file, struct rxafs_request *request, uint64_t size);

/*
 * Locks of ranges, in bytes, with an owner of the caller's choice. `type` is F_RDLCK, F_WRLCK or F_UNLCK.
 * `whole`: a lock of flock(2), which does not conflict with ranges of other owners. Locks of whole files hold among all clients.
 * Other ranges exclude owners of this client, and others with the option `strict_locks`.
 */
struct rxafs_lock {
	uint64_t owner;
	uint64_t start, end; /* both included; end UINT64_MAX: of the file */
	int type;
	int pid; /* the caller's, for rxafs_test_lock() */
	bool whole;
};
/*
 * -EAGAIN: another owner has it. `wait`: until he has not, or until the request is cancelled; -ETIMEDOUT: another client has it
 * for longer than the deadline. A lock is renewed until it is dropped; if that fails, writes through the file give -EIO.
 */
int rxafs_set_lock(rxafs_file *file, struct rxafs_request *request, const struct rxafs_lock *lock,
		   bool wait);
/*
 * -EIO: the server no longer has a lock that was taken through the file: the file is gone, the server has restarted and given the lock to
 * another client, or it did not answer for five minutes. Never waits.
 */
int rxafs_check_locks(const rxafs_file *file);
/* Replaces *lock by the first one of this client that conflicts; type F_UNLCK: there is none. */
int rxafs_test_lock(rxafs_file *file, struct rxafs_request *request, struct rxafs_lock *lock);
/* All locks of an owner on the file, of one of the two kinds; whole ones if they were taken through it. Never waits for a server. */
void rxafs_drop_locks(rxafs_file *file, uint64_t owner, bool whole);

/* An entry of a directory that is read. */
struct rxafs_entry {
	const char *name; /* until the next call with the listing */
	struct rxafs_fid fid;
	uint64_t inode; /* as in attributes.stat.st_ino */
	unsigned type; /* DT_DIR, DT_REG, DT_LNK or DT_UNKNOWN */
	int error; /* of rxafs_read_listing() with an object: why there is none, a negative errno */
	uint64_t next; /* for rxafs_next_entry() */
};
/*
 * Names of a directory. Give the listing back by rxafs_close_listing(); it has a reference of its own to the directory. One thread at a
 * time may use it. -ENOTDIR.
 */
int rxafs_open_listing(rxafs_object *directory, struct rxafs_request *request,
		       rxafs_listing **listing);
/*
 * The next entry, without "." and "..": 1, 0 at the end, or a negative errno. Each name that is there all the time comes once. With
 * `object` and `attributes`, which may both be NULL, also its object, a reference, with its attributes. They come by one call for many
 * entries. Where they cannot be had *object is NULL, and entry->error tells why.
 */
int rxafs_read_listing(rxafs_listing *listing, struct rxafs_request *request,
		       struct rxafs_entry *entry, rxafs_object **object,
		       struct rxafs_attributes *attributes);
/*
 * The entry at an offset, with "." and "..". `offset` 0 is the beginning; entry->next is that of the one behind
 * it, which stays right while other entries come and go. 1, 0 at the end, or a negative errno.
 */
int rxafs_next_entry(rxafs_listing *listing, struct rxafs_request *request, uint64_t offset,
		     struct rxafs_entry *entry);
/*
 * The object of an entry with its attributes, if they are at hand or few calls get them together
 * with those of the entries that follow. -ENODATA: not now.
 */
int rxafs_entry_object(rxafs_listing *listing, struct rxafs_request *request,
		       const struct rxafs_entry *entry, rxafs_object **object,
		       struct rxafs_attributes *attributes);
/* Never waits. NULL is allowed. */
void rxafs_close_listing(rxafs_listing *listing);

#ifdef __cplusplus
}
#endif

#endif
