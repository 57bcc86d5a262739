/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structures of the disk cache, for the files of this folder. The folder has the files
 *
 *     lock     held while a program uses it
 *     blocks   places of one block each; sparse
 *     whole-N  a large file that is kept as a whole (whole.c)
 *     index    a log of records (log.h)
 *
 * Locks, in this order: log_lock, lock. `lock` is held for no system call, `log_lock` while the index is written.
 */
#ifndef CLIENT_DISK_FOLDER_H
#define CLIENT_DISK_FOLDER_H

#include <pthread.h>
#include <stdio.h>

#include "client/disk/disk.h"
#include "common/htable.h"

#define PAGE	  4096u
#define NO_PLACE  UINT32_MAX
#define CELL_MOST 253u
#define RANK_MOST \
	11 /* of free places: powers of two of pages, up to 4 MiB; 0: nothing is allocated */

/* A block that is kept. */
struct kept {
	void *link;		      /* in cl_disk.blocks */
	struct kept *next, *previous; /* of the file */
	struct cl_disk_file *file;
	uint64_t number, sum;
	uint64_t birth; /* differs for each block that was ever in a place */
	uint32_t place, length;
	bool in_whole; /* at its offset in the file of number `place` */
	bool verified; /* in this run: parts of it may be read without a look at the rest */
	bool used;     /* since the evicting hand came by */
};

struct cell {
	struct cell *next;
	uint32_t number;
	bool logged;
	char name[CELL_MOST + 1];
};

struct cl_disk_file {
	void *link; /* in cl_disk.files */
	struct cl_disk *disk;
	struct cell *cell;
	uint32_t volume, vnode, unique;
	uint32_t id; /* in the log; 0: not there yet */
	unsigned references;
	uint64_t ticket;
	struct cl_disk_version version;
	struct kept *blocks;
	size_t count, verified;
	uint64_t whole_length; /* above 0: it is to be kept as a whole */
	struct cl_disk_whole *whole;
};

/* The file of a file that is kept as a whole. One reference is of `file`, others are of who reads or writes it. */
struct cl_disk_whole {
	struct cl_disk *disk;
	struct cl_disk_file *file; /* NULL: it was dropped */
	struct cl_disk_whole *next;
	uint64_t bytes;	 /* on disk at most */
	uint32_t number; /* its name */
	uint32_t place;	 /* by which the evicting hand finds it; nothing is in it */
	unsigned references;
	bool used; /* since the hand came by */
};

/* A place in the file of blocks. */
struct place {
	struct kept *kept;  /* NULL: free, or being written or punched */
	struct cl_disk_whole *whole;
	uint32_t allocated; /* bytes on disk at most */
	uint32_t next;	    /* free place of the rank */
};

/* The index as it grows. */
struct disk_log {
	int fd;
	uint64_t chain;	 /* sum of all records so far */
	uint64_t length; /* bytes, with those that are not written yet */
	unsigned char *buffer;
	size_t used, room;
	bool broken;	   /* records are missing, and no more are added until it is made anew */
	uint64_t retry_at; /* monotonic */
};

struct cl_disk {
	struct cl_disk_options options;
	unsigned shift;
	int folder, lock_fd, blocks_fd;
	uint64_t key[2];

	pthread_mutex_t log_lock;
	pthread_mutex_t lock; /* protects all below, and files and blocks */
	struct disk_log log;
	struct htable files, blocks;
	struct cell *cells;
	uint32_t next_id, next_cell;
	uint64_t births;

	struct place *places;
	uint32_t place_count, place_room;
	uint32_t free[RANK_MOST + 1]; /* NO_PLACE: none */
	uint32_t hand;
	uint64_t allocated; /* bytes of all places */
	bool cannot_punch;
	uint64_t looked_at, full_until; /* monotonic: the file system; no growth before */
	struct cl_disk_whole *dead;	/* to be removed */
	uint32_t last_whole;		/* number */
	struct cl_disk_statistics statistics;
};

static inline bool is_version(const struct cl_disk_file *file,
			      const struct cl_disk_version *version)
{
	return file->version.version == version->version &&
	       file->version.incarnation == version->incarnation;
}

#define WHOLE_PREFIX "whole-"
#define WHOLE_NAME   24
static inline void format_whole(uint32_t number, char name[WHOLE_NAME])
{
	snprintf(name, WHOLE_NAME, WHOLE_PREFIX "%u", number);
}

/* -- places.c ------------------------------------------------------------------------------- */

/*
 * A place for `length` bytes, which is the caller's until place_put() or place_free(). Evicts others. With the lock held, which is released
 * meanwhile. NO_PLACE: none.
 */
uint32_t place_take(struct cl_disk *disk, uint32_t length);
/* With the lock held. */
void place_free(struct cl_disk *disk, uint32_t place);
/* A write to a place has failed. With the lock held. */
void place_fail(struct cl_disk *disk, int error);
/* At the start: the place has bytes. False: no memory. */
bool place_claim(struct cl_disk *disk, uint32_t place, uint32_t length, struct kept *kept);
/* At the start: frees what belongs to no block, and makes the rest available. */
void places_tidy(struct cl_disk *disk);
/* Bytes on disk that are in no place. Evicts others, as above. False: there is no room. */
bool place_make_room(struct cl_disk *disk, uint32_t bytes);
/* A place for the hand. With the lock held. False: no memory. */
bool place_claim_whole(struct cl_disk *disk, struct cl_disk_whole *whole);
void place_free_whole(struct cl_disk *disk, struct cl_disk_whole *whole);
/* Removes the files of wholes that nobody needs. With the lock held, which is released meanwhile. */
void place_bury(struct cl_disk *disk);
/* Bytes on disk for a block. */
uint32_t place_bytes(const struct cl_disk *disk, uint32_t length);

/* -- table.c: with the lock held ------------------------------------------------------------ */

int table_init(struct cl_disk *disk);
void table_fini(struct cl_disk *disk);
struct cell *table_get_cell(struct cl_disk *disk, const char *name);
struct cl_disk_file *table_get_file(struct cl_disk *disk, struct cell *cell, uint32_t volume,
				    uint32_t vnode, uint32_t unique);
struct kept *table_find(struct cl_disk_file *file, uint64_t number);
/* Adds a block that has a place. NULL: no memory. */
struct kept *table_add(struct cl_disk_file *file, uint64_t number, uint32_t length, uint64_t sum);
/* Takes a block out and frees it, but not its place. */
void table_remove(struct kept *kept);
void table_set_verified(struct kept *kept);
/* The whole of a file without blocks. NULL: no memory. */
struct cl_disk_whole *table_add_whole(struct cl_disk_file *file, uint32_t number);
/* Takes it from its file, with all blocks. It has no place any more. */
void table_forget_whole(struct cl_disk_whole *whole);
/* What nobody needs is left to place_bury(). */
void table_put_whole(struct cl_disk_whole *whole);
/* Frees a file that nobody needs. */
void table_drop_file(struct cl_disk_file *file);

/* -- log.c ---------------------------------------------------------------------------------- */

/* On disk, also while the index is made anew. */
uint64_t log_bytes(const struct cl_disk *disk);
/* Adds records to the buffer. With the lock held. */
void log_block(struct cl_disk *disk, const struct kept *kept);
void log_drop(struct cl_disk *disk, const struct kept *kept);
/* All blocks of the file were dropped. */
void log_version(struct cl_disk *disk, const struct cl_disk_file *file);
void log_move(struct cl_disk *disk, const struct cl_disk_file *file);
/* Blocks from now on are in the file's whole. */
void log_whole(struct cl_disk *disk, struct cl_disk_file *file);
/* Writes the buffer if it is large, or `all`. Without locks. */
void log_write(struct cl_disk *disk, bool all);
/* Reads the index into the table; an index that cannot be used is made anew. 0 or a negative errno value. */
int log_open(struct cl_disk *disk);
void log_close(struct cl_disk *disk);

#endif
