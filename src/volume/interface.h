/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Volumes of files, directories and links: one interface, implemented by the store (store.h) and by
 * an exported directory (export.h). Knows nothing of Rx.
 */
#ifndef VOLUME_INTERFACE_H
#define VOLUME_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "volume/acl.h"
#include "volume/values.h"

/*
 * Results: 0; a positive volume code of AFS, which is sent as it is (STORE_VNOVNODE ...); or
 * -errno, which is translated for the client. -EIO after damage: the store has logged what is
 * damaged, once for each place. Every function may be called from any thread.
 */
#define STORE_VSALVAGE	 101 /* the volume's own record is damaged */
#define STORE_VNOVNODE	 102
#define STORE_VNOVOL	 103
#define STORE_VVOLEXISTS 104
#define STORE_VOFFLINE	 106
#define STORE_VDISKFULL	 108
#define STORE_VOVERQUOTA 109
#define STORE_VBUSY	 110
#define STORE_VMOVED	  111 /* it is on another server */

#define STORE_MESSAGE_MAX 512 /* bytes of a message, its NUL included */

struct store;

/* -- changes, as the promises of clients need them -- */

/*
 * The objects that an operation changed, beyond what its reply tells the client that called. They
 * are filled before the function returns 0. If it fails after it called store_caller.changed, the
 * change was made, but could not be flushed as the caller wanted. `for_all`: that client is told as
 * well.
 */
struct store_changes {
	unsigned count;
	struct store_change {
		struct store_fid fid; /* vnode 0: the whole volume */
		bool for_all;
		bool gone; /* deleted: promises are dropped without a message */
	} change[6];
};

/* -- operations whose caller does not wait for the commit -- */

/*
 * If the caller of create(), remove() or write_commit() has one of these, and the operation gets as far as the
 * transaction, the function may return STORE_LATER at once. Its arguments and those of the caller must then stay until
 * done(), and the results are filled by then. Before that, leave() is asked. If it returns false, the function waits
 * as without. Both members are set by the caller, and are called without a lock.
 */
#define STORE_LATER 2001
/*
 * The result of an operation that could not be done without waiting. Nothing has changed: it must be called again, on a
 * thread that may wait, without `later`.
 */
#define STORE_AGAIN 2002
struct store_later {
	bool (*leave)(struct store_later *later);
	/*
	 * The operations of a list, linked by `next`, have ended together. On a thread that other operations wait for:
	 * must not call one of these functions, nor wait.
	 */
	void (*done)(struct store_later *list);
	struct store_later *next;
	int result;
};

/* -- reading -- */

/* One version of a file, directory or link: it stays readable whatever happens to the object. */
struct store_reader;
#define STORE_CACHED 1u /* only what needs no disk access; -EAGAIN: nothing */

/* -- writing the data of a file -- */

struct store_writer;
struct store_ranges_ops;

/*
 * The operations of an implementation. An operation that it does not have is NULL: the function of the
 * same name then returns -EROFS.
 */
struct store_ops {
	void (*close)(struct store *store);

	int (*volume)(struct store *store, uint32_t id, struct store_volume *volume);
	int (*volume_by_name)(struct store *store, const char *name, struct store_volume *volume);
	/* The volume with the smallest id greater than `id`: 0 or STORE_VNOVOL. */
	int (*volume_next)(struct store *store, uint32_t id, struct store_volume *volume);
	/*
	 * The volume that has `at` others before it in the order of ids, of those that no cell has: 0 or STORE_VNOVOL; and
	 * how many there are. The cost does not depend on their number. NULL: there is one volume only.
	 */
	int (*volume_at)(struct store *store, uint32_t at, struct store_volume *volume);
	void (*totals)(struct store *store, struct store_totals *totals);
	/* mask: 1 quota_kib, 2 offline_message, 4 minimum. Administrators only. */
	int (*volume_set)(struct store *store, const struct store_caller *caller, uint32_t id,
			  unsigned mask, const struct store_volume *volume);
	int (*space)(struct store *store, struct store_space *space);

	int (*status)(struct store *store, const struct store_caller *caller,
		      const struct store_fid *fid, struct store_status *status);
	/* Several statuses, with a result of each. NULL: the store has no faster way. */
	void (*statuses)(struct store *store, const struct store_caller *caller,
			 const struct store_fid *fids, size_t count, struct store_status *statuses,
			 int *results);
	/* The list of a directory, or that of the directory of a file or link; and the status. */
	int (*acl)(struct store *store, const struct store_caller *caller,
		   const struct store_fid *fid, struct store_acl *acl, struct store_status *status);

	/* Needs the rights of FetchData. 0 and *reader, to be given to read_end(). */
	int (*read_begin)(struct store *store, const struct store_caller *caller,
			  const struct store_fid *fid, struct store_reader **reader,
			  struct store_status *status);
	/*
	 * Fill the buffers with bytes from `offset` on. Returns bytes, fewer than wanted only at
	 * the end or with STORE_CACHED; or -errno.
	 */
	ssize_t (*read)(struct store_reader *reader, const struct iovec *iov, int count,
			uint64_t offset, unsigned flags);
	void (*read_ahead)(struct store_reader *reader, uint64_t offset, uint64_t length);
	/*
	 * Returns 0, or -EIO if what was read may be of several versions, which only an exported
	 * directory can have. `reader` is freed; NULL is allowed.
	 */
	int (*read_end)(struct store_reader *reader);

	/*
	 * The operations of the file service, with its order of checks (afs-fileserver 3.3 to
	 * 3.7). Their changes are as durable as the store was opened for.
	 */
	int (*set_status)(struct store *store, const struct store_caller *caller,
			  const struct store_fid *fid, const struct store_set *set,
			  struct store_status *status, struct store_changes *changes);
	int (*set_acl)(struct store *store, const struct store_caller *caller,
		       const struct store_fid *dir, const struct store_acl *acl,
		       struct store_status *status, struct store_changes *changes);
	/* Set the list if it is still `old`; -EAGAIN: it is not. */
	int (*change_acl)(struct store *store, const struct store_caller *caller,
			  const struct store_fid *dir, const struct store_acl *old,
			  const struct store_acl *acl, struct store_status *status,
			  struct store_changes *changes);
	/* kind: STORE_FILE, STORE_DIR, or STORE_SYMLINK with its text, which else is NULL. */
	int (*create)(struct store *store, const struct store_caller *caller,
		      const struct store_fid *dir, const char *name, enum store_kind kind,
		      const char *text, const struct store_set *set, struct store_status *status,
		      struct store_status *dir_status, struct store_changes *changes);
	int (*link)(struct store *store, const struct store_caller *caller,
		    const struct store_fid *dir, const char *name, const struct store_fid *existing,
		    struct store_status *status, struct store_status *dir_status,
		    struct store_changes *changes);
	/* kind: STORE_DIR for RemoveDir, STORE_FILE for RemoveFile. */
	int (*remove)(struct store *store, const struct store_caller *caller,
		      const struct store_fid *dir, const char *name, enum store_kind kind,
		      struct store_status *dir_status, struct store_changes *changes);
	int (*rename)(struct store *store, const struct store_caller *caller,
		      const struct store_fid *old_dir, const char *old_name,
		      const struct store_fid *new_dir, const char *new_name,
		      struct store_status *old_status, struct store_status *new_status,
		      struct store_changes *changes);

	/*
	 * StoreData: check rights, quota and space, take `length` bytes in order, then make them
	 * visible in one step, or drop them. A long cut in front of them takes several steps. No
	 * lock is held between the calls. Concurrent writers of one file: each commit applies to
	 * the version that it finds. -EFBIG: no file of the store may be so long.
	 */
	int (*write_begin)(struct store *store, const struct store_caller *caller,
			   const struct store_fid *fid, const struct store_set *set,
			   uint64_t offset, uint64_t length, uint64_t file_length,
			   struct store_writer **writer);
	/* All bytes of the buffers, which may be reused afterwards. 0 or a result. */
	int (*write)(struct store_writer *writer, const struct iovec *iov, int count);
	/* Frees the writer, also if it fails. -EINVAL: fewer than `length` bytes were written. */
	int (*write_commit)(struct store_writer *writer, struct store_status *status,
			    struct store_changes *changes);
	void (*write_abort)(struct store_writer *writer); /* NULL is allowed */
	const struct store_ranges_ops *ranges;		  /* NULL: there are none; ranges.h */
};

struct store {
	const struct store_ops *ops;
};

#endif
