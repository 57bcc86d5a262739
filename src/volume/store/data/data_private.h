/* SPDX-License-Identifier: BSD-2-Clause */
/* Open objects, which runs and views share: between the files data_*.c. */
#ifndef STORE_DATA_PRIVATE_H
#define STORE_DATA_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/clock.h"
#include "common/htable.h"
#include "volume/store/data/data_lost.h"

#define DATA_PATH    96		  /* bytes of a path of an object, its NUL included */
#define DATA_GATHER  (256u << 10) /* bytes of a write, if the buffers allow it */
#define DATA_ALIGN   4096u	  /* writes end at multiples of it, except for the last one */
#define DATA_BUFFERS 16 /* buffers that are kept for the next run */
#define DATA_RUNS    96 /* runs that gather so much; further ones gather less */
#define DATA_LESS    (16u << 10)
#define DATA_REMOVED 16 /* directories that are flushed singly */
#define DATA_VIEWS    256    /* lists of views */
#define DATA_VERIFIED	 65536u /* blocks that are remembered, */
#define DATA_VERIFIED_NS (600 * (uint64_t)NS_PER_S) /* for so long, at most */

/*
 * An object that is open, or waits to be used again. store_data.lock covers all members that are
 * neither constant nor atomic. `file` is constant while the object is not busy and has references.
 */
struct data_object {
	void *link; /* in store_data.objects, if `known` */
	uint64_t number;
	struct store_owner owner; /* constant while the object has a file */
	unsigned refs; /* the list of dirty objects has one */
	struct store_file *file;
	struct data_object *newer, *older; /* in the list of idle ones, if there is no reference */
	bool known;			   /* it is found by its number */
	bool busy;    /* a thread opens, renames or removes its file: wait for `changed` */
	bool settled; /* it has its name; else it lies in "files/new" */
	bool sealed;  /* nothing may be added: it is read-only, or could not be cut */
	bool writing; /* a run has it, or blocks of it are given back */
	unsigned readers;
	_Atomic uint64_t opened; /* a number that no other opening of a file has; for marks */
	bool removed;
	bool syncing; /* a thread flushes its file: wait for `changed` */

	/* Not on stable storage. */
	bool dirty;	 /* in the list of dirty objects */
	/* And its file was closed, since many wait. A new one may not know of an error. */
	bool closed;
	bool unflushed;	 /* bytes up to `end` */
	bool name_dirty; /* it was made, and its directory was not flushed since */
	uint64_t end;	 /* of what finished runs wrote */
	struct data_object *next_dirty;
	/* The members that follow belong to the thread that flushes. */
	struct data_object *next_flushed;
	bool flushed_data, flushed_closed, flushed_failed;
	uint64_t flushed_end; /* with the lock: a run that is given up lowers it */
	int flushed;
	bool flushed_settled, flushed_name;

	/* A flush failed: what lies behind `safe` may be lost, whatever later flushes say. */
	atomic_int failed;
	_Atomic uint64_t safe;
	bool recorded; /* the user has a record of that, with `recorded_safe` */
	uint64_t recorded_safe;
};

struct data_round;

struct store_data {
	struct store_layer *layer;
	unsigned files;
	pthread_mutex_t lock;
	/* An object is no longer busy, its file was flushed, or a round of flushing has ended. */
	pthread_cond_t changed;
	/* The lock covers everything below. */
	struct htable objects;
	struct data_object *newest, *oldest; /* idle */
	unsigned idle;
	struct data_object *dirty;
	unsigned dirty_count;
	struct data_round *next_round; /* begins when the current one ends */
	bool flushing;
	struct data_round *round; /* while `flushing`: the current one */
	int unreported; /* error of a flush that no caller asked for */
	uint64_t failures; /* rounds that failed */
	bool unrecorded;   /* objects may have failed without a record */
	atomic_bool any_lost;
	/* Directories that objects were removed from, and that were not flushed since. */
	char removed[DATA_REMOVED][DATA_PATH];
	unsigned removed_count; /* DATA_REMOVED + 1: more than these */
	void *buffer[DATA_BUFFERS];
	unsigned buffers;
	unsigned gathering; /* runs that have a buffer */
	uint64_t opened;    /* numbers so far */
	struct store_view *views[DATA_VIEWS];	  /* by vnode */
	_Atomic uint64_t verified[DATA_VERIFIED]; /* without the lock */
	uint64_t ahead;				  /* constant; tests let time pass */
};

/* -- data_objects.c: paths -- */

void data_path_new(uint64_t number, char path[DATA_PATH]);
void data_path_named(const struct store_owner *owner, uint64_t number, char path[DATA_PATH]);
/* The directory in which data_path_named() lies. */
void data_path_block(const struct store_owner *owner, char path[DATA_PATH]);

/* -- data_objects.c: open objects -- */

/* Get an object that exists: -ENOENT, ... To be given to data_release(). */
int data_acquire(struct store_data *data, const struct store_owner *owner, uint64_t number,
		 struct data_object **object);
/* Make an object in "files/new", for a run, which has it. */
int data_create(struct store_data *data, const struct store_owner *owner, uint64_t number,
		struct data_object **object);
void data_release(struct store_data *data, struct data_object *object);
/*
 * The same for a reader: it is not removed meanwhile, so that its last close never falls to a reader. `cached`: -EAGAIN if
 * it is not open.
 */
int data_read(struct store_data *data, const struct store_owner *owner, uint64_t number,
	      bool cached, struct data_object **object);
void data_read_end(struct store_data *data, struct data_object *object);
/* The caller holds the lock. Returns a file to close without it, or NULL. */
struct store_file *data_put(struct store_data *data, struct data_object *object);
/* Take a reference. The caller holds the lock. */
void data_hold(struct store_data *data, struct data_object *object);
/* A run wrote bytes that end at `end`: to be flushed. */
void data_dirty(struct store_data *data, struct data_object *object, uint64_t end);
/* Note that a flush of the object has failed. The caller holds the lock. */
void data_fail(struct store_data *data, struct data_object *object, int error);
/* As store_data_set_lost(); `recorded`: the user has a record. */
int data_set_lost(struct store_data *data, const struct store_lost *lost, bool recorded);
/* 0, or the error of a flush by which bytes in front of `end` may have been lost. */
int data_lost(const struct data_object *object, uint64_t end);

/*
 * Blocks that were verified since their object was opened, and not too long ago: a table of marks, which later ones replace. A
 * block that is given back loses its marks.
 */
bool data_is_verified(struct store_data *data, const struct data_object *object, uint64_t number,
		      uint32_t crc);
void data_note_verified(struct store_data *data, const struct data_object *object, uint64_t number,
			uint32_t crc);
/* The marks of an object are void: bytes of it were cut off. The caller holds the lock. */
void data_renew_marks(struct store_data *data, struct data_object *object);

/* -- data_sync.c -- */

/* Flush the file of an object, and note an error, which the kernel tells once. 0 or -errno. */
int data_flush(struct store_data *data, struct data_object *object);
/* As store_data_sync(); the error is for the next one who calls that. */
void data_sync_unasked(struct store_data *data);

#endif
