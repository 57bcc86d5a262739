/* SPDX-License-Identifier: BSD-2-Clause */
/* An open store, which its parts share. */
#ifndef STORE_CORE_H
#define STORE_CORE_H

#include <pthread.h>

#include "volume/store/data/data.h"
#include "volume/store/db/db.h"
#include "volume/store/disk/replica.h"
#include "volume/store/disk/report.h"
#include "volume/store/disk/vfs.h"
#include "volume/store/store.h"
#include "volume/store/txn/cache.h"
#include "volume/store/txn/txn.h"
#include "volume/store/txn/volumes.h"

/* Bytes of a file. Who reads it loads a map for all of them. */
#define STORE_FILE_MAX (1ull << 40)

struct copyplace;
struct keeper;
struct scrubber;
struct copier;
struct revert_op;
struct store_restore;

/* Directories whose pages are being read from the database. */
struct page_loads {
	pthread_mutex_t lock; /* covers `first`, and the items */
	pthread_cond_t done;
	struct page_load *first;
	_Atomic uint64_t count; /* that were read since the start */
};

/* Constant while the store is open, unless stated. */
struct core {
	struct store store; /* first member */
	char name[256];	    /* of the store, for messages: its directory */
	enum store_durability durability;
	struct store_layer *layer;
	bool own_layer;
	struct store_vfs *vfs;
	struct store_data *data;
	struct db *writer;
	struct readers *readers;
	pthread_mutex_t checking; /* one check at a time: each has two of the readers */
	struct cache *cache; /* has locks of its own, as have those below */
	struct volumes volumes;
	struct page_loads loads;
	struct txn *txn;
	struct keeper *keeper;
	struct scrubber *scrubber;
	/* The copy of the metadata; NULL: there is none. */
	struct store_layer *copy_layer;
	bool copy_absent; /* its directory cannot be opened */
	bool copy_shares; /* it is on the disk of the store */
	_Atomic bool copy_yields; /* it is to be removed: nobody makes it */
	struct copyplace *copyplace;
	struct store_replica *replica;
	struct copier *copier;
	int repaired;	  /* result of a repair from it */
	uint32_t unrepaired; /* pages that are damaged in both */
	bool unreadable;  /* the database, when it was opened */
	bool unformatted; /* FORMAT is lost: the database has the identity */
	struct revert_op *reverts; /* that run; revert.c has the lock */
	struct store_restore
		*stuck_restores; /* that could not be given up; restore.c has the lock */
	struct report report;
	uint8_t uuid[16];
	uint32_t incarnation, opened; /* unclean restarts of the machine; openings */
	uint32_t small_max;	      /* bytes of a small file */
	_Atomic uint64_t numbers;     /* the last number of an object or a small content */
	_Atomic uint64_t promised;    /* KiB of the disk that running writers were promised */
	_Atomic uint64_t bytes_read, bytes_written, bytes_copied;
	/* Before the next flush: files of a killed process; one by one, because some could not be flushed. */
	_Atomic bool sync_all, sync_each;
	_Atomic bool recording;	   /* what the disk has lost: commits go on */
	_Atomic bool tight;	   /* the disk was full */
	_Atomic bool reserved;	   /* the file "reserve" has its room, or there is to be none */
	_Atomic unsigned released; /* how often it was given up */
};

/* The number for a new object; for store_run_begin(). */
static inline uint64_t core_next_number(void *core)
{
	return ++((struct core *)core)->numbers;
}

static inline struct core *core_of(struct store *store)
{
	return (struct core *)store;
}

#endif
