/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Group commit: operations of all threads that arrive at the same time share a transaction. One of
 * the threads, the leader, applies them.
 */
#ifndef STORE_TXN_H
#define STORE_TXN_H

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "volume/store/store.h"
#include "volume/store/txn/work.h"
#include "volume/interface.h"

/*
 * A part of the operation's own structure, on the stack of the thread that waits for it, or in memory that
 * `end` frees.
 */
struct txn_op {
	/*
	 * Check everything, then change versions. 0, or a result, by which nothing has changed. May be
	 * called again: the changes before were dropped. Another thread may call it.
	 */
	int (*apply)(struct txn_op *op, struct work *work);
	/* After the commit, before others can see what it changed, unless the operation failed. Or NULL. */
	void (*announce)(struct txn_op *op);
	bool alone; /* in a transaction of its own, because it changes rows directly */
	int result;
	struct txn_op *next;
	sem_t wake;
	bool done;
	/* For txn_submit(): `end` sets later->result and frees the operation; then later->done() is called. */
	struct store_later *later;
	void (*end)(struct txn_op *op);
};

struct txn;

struct txn_options {
	struct work_base base;
	bool timed;  /* measure the CPU time */
	bool strict; /* commits are flushed: wait a little for operations that are about to come */
	/* Strict: before a commit that refers to bytes of objects. 0 or -errno. */
	int (*flush_objects)(void *arg);
	/* As store_data_failures(): operations check their bytes before that flush. */
	uint64_t (*failures)(void *arg);
	void *flush_arg;
	/* Before each batch: waits while the store must not take more. */
	void (*admit)(void *arg);
	/* No commit runs, and the last one failed because the disk is full: make room, for another try. */
	void (*full)(void *arg);
	/* After each commit, before its operations return: objects that are new or unused. */
	void (*committed)(void *arg, const struct object_list *made,
			  const struct object_list *dead);
	void *arg;
};

int txn_create(const struct txn_options *options, struct txn **txn); /* 0 or -ENOMEM */
void txn_destroy(struct txn *txn);				     /* NULL is allowed */
/* Returns op->result after the commit. */
int txn_run(struct txn *txn, struct txn_op *op);
/* Whether operations can be submitted: there is a thread for them. */
bool txn_may_submit(struct txn *txn);
/* The operation is done by another thread. */
void txn_submit(struct txn *txn, struct txn_op *op);
/* Keep commits away until txn_resume(): waits for the one that is running. */
void txn_pause(struct txn *txn);
void txn_resume(struct txn *txn);
/* Operations and commits since the start. */
void txn_counts(struct txn *txn, uint64_t *operations, uint64_t *commits);
/* Commits since the start that refer to bytes in objects, which a flush of the log flushes before. */
uint64_t txn_referring(struct txn *txn);
/* The greatest of one commit since the last call. */
void txn_costs(struct txn *txn, struct store_commit_costs *costs);

#endif
