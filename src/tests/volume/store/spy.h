/* SPDX-License-Identifier: BSD-2-Clause */
/* A layer in a folder of its own that counts what passes, and fails on demand. */
#ifndef TESTS_STORE_SPY_H
#define TESTS_STORE_SPY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "volume/store/disk/layer.h"

#define SPY_WRITES 4096
#define SPY_FILES  1u
#define SPY_DIRS   2u
#define SPY_BYTES  4u

struct spy {
	struct store_layer layer;
	struct store_layer *below;
	char *folder;	      /* to be removed */
	pthread_mutex_t lock; /* covers what follows */
	pthread_cond_t changed;
	unsigned open, most; /* files, now and at most at the same time */
	unsigned opens, syncs, dir_syncs, unlinks;
	unsigned writes;
	struct spy_write {
		uint64_t offset, length;
	} write[SPY_WRITES];
	uint64_t data_read, data_written; /* bytes of objects */
	char synced_dir[64][96];	  /* the first 64 */
	unsigned open_limit;		  /* more files are -EMFILE; 0: no limit */
	int fail_sync; /* result of flushes of files from now on; 0: they happen */
	int fail_sync_dir;
	unsigned all_syncs; /* of the whole file system, which fail as well */
	unsigned hold; /* these wait: flushes of SPY_FILES and SPY_DIRS, writes to objects (SPY_BYTES) */
	unsigned held; /* those that wait */
	bool pass;     /* those that begin now do not */
};

/* Asserts that it works. */
struct spy *spy_new(void);
/* The same with a folder that is there and stays. */
struct spy *spy_on(const char *folder);
/* Removes the folder of spy_new(). */
void spy_free(struct spy *spy);
/* Forget what was counted. */
void spy_reset(struct spy *spy);
/* Let flushes or writes wait; 0: all go on. */
void spy_hold(struct spy *spy, unsigned hold);
/* Wait until one waits. */
void spy_await_held(struct spy *spy);
/* Those that begin from now on do not wait. */
void spy_pass(struct spy *spy);
/* Set the length of a file of the folder; asserts that it is there. */
void spy_truncate(struct spy *spy, const char *path, uint64_t length);
bool spy_exists(struct spy *spy, const char *path);

#endif
