/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of one file that come in ranges, in any order: a part of the interface of a store. */
#ifndef VOLUME_RANGES_H
#define VOLUME_RANGES_H

#include "volume/interface.h"

/*
 * The whole contents of a file, `length` bytes, become visible in one step, or not at all. Rights and space are those of
 * write_begin(), and are looked at again for each range, and by commit(). All bytes count against the quota until then, those that replace
 * others as well. begin() gives a writer of all of them, to be given to commit(), or to write_abort(), which may be called while ranges are
 * in progress; these then count for nothing.
 */
struct store_ranges_ops {
	int (*begin)(struct store *store, const struct store_caller *caller,
		     const struct store_fid *fid, const struct store_set *set, uint64_t length,
		     struct store_writer **writer);
	/*
	 * A writer of one range, for write(), then end_range() or write_abort(). Any thread, several at the same time. A range consists of
	 * blocks of 64 KiB; the last one of the file may be shorter. -EINVAL; -EFBIG: it is too long, or there are too many. -ESTALE: the
	 * contents of the volume were replaced. After STORE_VOVERQUOTA there is no further range, and no version.
	 */
	int (*range)(struct store_writer *of, const struct store_caller *caller, uint64_t offset,
		     uint64_t length, struct store_writer **writer);
	/*
	 * *taken: how many of the bytes that were written are there now: whole blocks, of which those that were there before stay as they
	 * are. If too many come twice, only these count, up to the first one that was not there. 0: none, or it is too late.
	 */
	int (*end_range)(struct store_writer *writer, uint64_t *taken);
	/*
	 * As write_commit(), at once, for the caller who ends it. No range() runs meanwhile. What has not come are zeros, and -EINVAL:
	 * `bytes` bytes have not come.
	 */
	int (*commit)(struct store_writer *writer, const struct store_caller *caller,
		      uint64_t bytes, struct store_status *status, struct store_changes *changes);
};

#endif
