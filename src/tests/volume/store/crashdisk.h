/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A disk in memory for tests of the store: it knows what was flushed, can stop at any call, and loses,
 * tears and reorders the rest when the machine "restarts".
 */
#ifndef TESTS_STORE_CRASHDISK_H
#define TESTS_STORE_CRASHDISK_H

#include <stdbool.h>
#include <stdint.h>

#include "volume/store/disk/layer.h"

struct crashdisk;

/* Ends the test if there is no memory, as all functions here do. */
struct crashdisk *crashdisk_new(void);
void crashdisk_free(struct crashdisk *disk);
/* The disk as one process uses it. layer->ops->destroy() ends that process. */
struct store_layer *crashdisk_layer(struct crashdisk *disk);

/* Calls that change the disk or flush it, since the disk was made. */
uint64_t crashdisk_calls(struct crashdisk *disk);
/*
 * The process dies in that call, counted as above: of a write a part is done, of other calls all or
 * nothing, as `seed` says. From then on every call fails with -EIO. UINT64_MAX: never.
 */
void crashdisk_stop_at(struct crashdisk *disk, uint64_t call, uint64_t seed);
bool crashdisk_stopped(struct crashdisk *disk);
/* That call and the `more` following ones fail with `err`, a positive errno, and do nothing. */
void crashdisk_fail_at(struct crashdisk *disk, uint64_t call, uint64_t more, int err);
/*
 * The next flushes, `times` of them, that find something to flush in the file `path` fail with
 * -EIO ("files/": in all files below; "": in any). What they were to flush is lost, although it is
 * read as before until the machine restarts; `memory`: not even that.
 */
void crashdisk_lose(struct crashdisk *disk, const char *path, unsigned times, bool memory);
/* How many of them have failed. */
unsigned crashdisk_lost(struct crashdisk *disk);
/* How many files were written again and flushed after that. */
unsigned crashdisk_regained(struct crashdisk *disk);
/*
 * After that many reads, one fails with -EIO; UINT64_MAX: none does. Returns whether one that was asked
 * for before has not failed yet.
 */
bool crashdisk_fail_read(struct crashdisk *disk, uint64_t after);
/* Writes that would make all files together longer than this fail with -ENOSPC. */
void crashdisk_limit(struct crashdisk *disk, uint64_t bytes);
/* The length of all files together. */
uint64_t crashdisk_used(struct crashdisk *disk);

/*
 * After all layers are destroyed. The process was killed: what it did is there.
 */
void crashdisk_killed(struct crashdisk *disk);
/* Writes, cuts and names that were not flushed: the items of a crash. */
unsigned crashdisk_pending(struct crashdisk *disk);
/*
 * The machine restarted: of each item that was not flushed, bit i % 64 of `keep` says
 * whether it is there; torn: those that are, are whole or not, as `seed` says.
 */
void crashdisk_crashed(struct crashdisk *disk, uint64_t keep, bool torn, uint64_t seed);

/* A copy in the same state. */
struct crashdisk *crashdisk_copy(const struct crashdisk *disk);
/* Invert one bit of a file. False: the file is missing or shorter. */
bool crashdisk_flip(struct crashdisk *disk, const char *path, uint64_t bit);
/* Length of a file; UINT64_MAX: it is missing. */
uint64_t crashdisk_length(const struct crashdisk *disk, const char *path);
/* Call for every file. */
void crashdisk_list(const struct crashdisk *disk,
		    void (*each)(void *arg, const char *path, uint64_t length), void *arg);

/* Set while this thread allocates for the disk, whose memory must not run out. */
extern _Thread_local volatile bool crashdisk_allocates;

/* A sequence of pseudo-random numbers. */
uint64_t crashdisk_random(uint64_t *state);
/* The items to keep in a crash: few, about half, nearly all, or all but one. */
uint64_t crashdisk_random_keep(uint64_t *state);

#endif
