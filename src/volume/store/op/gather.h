/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of one file that come in ranges, in any order, before a version shows them. */
#ifndef STORE_GATHER_H
#define STORE_GATHER_H

#include "volume/store/data/data.h"
#include "volume/store/txn/core.h"
#include "volume/store/txn/work.h"

#define GATHER_RANGE   (64u << 20) /* bytes of a range, at most */
#define GATHER_OBJECTS 1024	   /* files of one content: the commit has a row for each, */
#define GATHER_MOST    ((uint64_t)16 << 30) /* and one for each slot of so many bytes */

/* Counted. Any thread. */
struct gather;
/* `length` bytes in all. NULL: no memory. */
struct gather *gather_new(struct core *core, const struct store_owner *owner, uint64_t length);
struct gather *gather_ref(struct gather *gather);
/* The last user removes the objects, unless gather_keep() was called. NULL is allowed. */
void gather_unref(struct gather *gather);

/* Covers what its user has in common for all ranges. */
void gather_lock(struct gather *gather);
void gather_unlock(struct gather *gather);

/* 0; -EINVAL: a range does not consist of whole blocks, or of the last one; -EFBIG; -ESTALE: it is closed. */
int gather_check(struct gather *gather, uint64_t offset, uint64_t length);
/* What is there by now, as a base of the next run. The content is to be freed. */
void gather_base(struct gather *gather, struct store_content *content);
/*
 * The first `bytes` bytes of a finished run, whose whole blocks count. 0 or -ENOMEM. *taken: how many are there now, by this run or others
 * before; those of others only if too much comes twice; 0: it is closed. False in *used: the run is of no use.
 */
int gather_add(struct gather *gather, const struct store_run *run, struct store_patch *patch,
	       uint64_t bytes, uint64_t *taken, bool *used);
/* No range is added any more. 0; -EINVAL: there are not `bytes` bytes; -EIO: some may be lost. Once. */
int gather_close(struct gather *gather, uint64_t bytes);

/* For the transaction that makes a version of it, once it is closed: the contents, and the objects that it is the first to mention. */
void gather_content(struct gather *gather, struct store_content *content);
void gather_note_objects(struct gather *gather, struct work *work);
/* A version has the objects. */
void gather_keep(struct gather *gather);

#endif
