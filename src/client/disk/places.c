/* SPDX-License-Identifier: BSD-2-Clause */
/* Places in the file of blocks: which are free, how much of the disk they take, and which block must go. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/disk/folder.h"
#include "common/clock.h"
#include "common/grow.h"
#include "common/held.h"

#define LOOK_AGAIN_NS ((uint64_t)NS_PER_S) /* at the file system */
#define FULL_NS	      (10ull * NS_PER_S)   /* without growth after the disk was full */
#define TRIES_FULL    8u  /* blocks that may go for one, if the file system is full */
#define SHRINK_SHARE  16u /* of the cache goes if the file system is too full */

uint32_t place_bytes(const struct cl_disk *disk, uint32_t length)
{
	/* Where nothing can be given back, each place counts as a whole. */
	return disk->cannot_punch ? disk->options.block : (length + PAGE - 1) & ~(PAGE - 1);
}

/* Free places of a class have allocated at least so many pages: 1 << (rank - 1). */
static unsigned rank_of(uint32_t allocated)
{
	uint32_t pages = allocated / PAGE;

	return pages ? 32u - (unsigned)__builtin_clz(pages) : 0;
}

/* The first class all of whose places have room for so many bytes without growing. */
static unsigned rank_for(uint32_t bytes)
{
	unsigned rank = rank_of(bytes);

	return bytes == (PAGE << (rank - 1)) ? rank : rank + 1;
}

void place_free(struct cl_disk *disk, uint32_t place)
{
	struct place *at = &disk->places[place];
	unsigned rank = rank_of(at->allocated);

	assert(mutex_is_held(&disk->lock));
	assert(place < disk->place_count && rank <= RANK_MOST);
	at->kept = NULL;
	at->whole = NULL;
	at->next = disk->free[rank];
	disk->free[rank] = place;
}

static uint32_t pop_free(struct cl_disk *disk, unsigned rank)
{
	uint32_t place = disk->free[rank];

	if (place != NO_PLACE)
		disk->free[rank] = disk->places[place].next;
	return place;
}

/* A place beyond all others. NO_PLACE: no memory. */
static uint32_t add_place(struct cl_disk *disk)
{
	size_t room = disk->place_room;

	if (disk->place_count == NO_PLACE ||
	    !grow_array(&disk->places, &room, disk->place_count, sizeof(struct place)))
		return NO_PLACE;
	disk->place_room = (uint32_t)room;
	disk->places[disk->place_count] = (struct place){.next = NO_PLACE};
	return disk->place_count++;
}

/* Gives the bytes of a place back to the file system, from `keep` on. With the lock held, which is released meanwhile; the place is nobody's. */
static void punch_place(struct cl_disk *disk, uint32_t place, uint32_t keep)
{
	struct place *at = &disk->places[place];
	uint32_t had = at->allocated;
	off_t start = ((off_t)place << disk->shift) + keep;
	int result;

	assert(keep < had && keep % PAGE == 0);
	pthread_mutex_unlock(&disk->lock);
	result = fallocate(disk->blocks_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start,
			   (off_t)disk->options.block - keep);
	pthread_mutex_lock(&disk->lock);
	if (result && errno != EINTR) {
		disk->cannot_punch = true;
		return;
	}
	disk->places[place].allocated = keep;
	disk->allocated -= had - keep;
}

void place_bury(struct cl_disk *disk)
{
	char name[WHOLE_NAME];

	assert(mutex_is_held(&disk->lock));
	while (disk->dead) {
		struct cl_disk_whole *whole = disk->dead;

		disk->dead = whole->next;
		pthread_mutex_unlock(&disk->lock);
		format_whole(whole->number, name);
		unlinkat(disk->folder, name, 0);
		pthread_mutex_lock(&disk->lock);
		disk->allocated -= whole->bytes;
		free(whole);
	}
}

/* False: it is in use, or was. The lock is released meanwhile. */
static bool evict_whole(struct cl_disk *disk, uint32_t place)
{
	struct cl_disk_whole *whole = disk->places[place].whole;
	bool used = whole->used;

	whole->used = false;
	if (used || whole->references > 1)
		return false;
	disk->places[place].whole = NULL;
	whole->place = NO_PLACE;
	disk->statistics.evicted += whole->file->count;
	log_version(disk, whole->file);
	table_forget_whole(whole);
	place_bury(disk);
	return true;
}

/* Takes the place of the next block that was not used for long; NO_PLACE: there is none. The lock may be released meanwhile. */
static uint32_t evict_next(struct cl_disk *disk)
{
	for (uint64_t looks = 2ull * disk->place_count; looks > 0; looks--) {
		uint32_t place = disk->hand++;
		struct kept *kept;

		if (disk->hand >= disk->place_count)
			disk->hand = 0;
		if (place < disk->place_count && disk->places[place].whole) {
			if (!evict_whole(disk, place))
				continue;
			return place;
		}
		kept = place < disk->place_count ? disk->places[place].kept : NULL;
		if (!kept)
			continue;
		if (kept->used) {
			kept->used = false;
			continue;
		}
		log_drop(disk, kept);
		table_remove(kept);
		disk->places[place].kept = NULL;
		disk->statistics.evicted++;
		return place;
	}
	return NO_PLACE;
}

/* A place with nothing on disk, or whose bytes can go. */
static uint32_t pop_from_rank(struct cl_disk *disk, unsigned first)
{
	for (unsigned rank = first; rank <= RANK_MOST; rank++)
		if (disk->free[rank] != NO_PLACE)
			return pop_free(disk, rank);
	return NO_PLACE;
}

/* Whether more of the file system may be used; if it is too full, gives a part back. The lock is released meanwhile. */
static bool may_grow(struct cl_disk *disk)
{
	uint64_t now = monotonic_ns(), target;
	struct statvfs fs;
	uint32_t place;

	if (now < disk->looked_at + LOOK_AGAIN_NS)
		return now >= disk->full_until;
	disk->looked_at = now;
	pthread_mutex_unlock(&disk->lock);
	if (fstatvfs(disk->blocks_fd, &fs) || !fs.f_blocks)
		fs.f_blocks = fs.f_bfree = 1;
	pthread_mutex_lock(&disk->lock);
	if ((fs.f_blocks - fs.f_bfree) * 100 <= (uint64_t)fs.f_blocks * disk->options.fill_most)
		return now >= disk->full_until;
	if (disk->full_until < now + LOOK_AGAIN_NS)
		disk->full_until = now + LOOK_AGAIN_NS;
	target = disk->allocated - disk->allocated / SHRINK_SHARE;
	while (disk->allocated > target && !disk->cannot_punch) {
		place = pop_from_rank(disk, 1);
		if (place == NO_PLACE)
			place = evict_next(disk);
		if (place == NO_PLACE)
			break;
		if (disk->places[place].allocated)
			punch_place(disk, place, 0);
		place_free(disk, place);
	}
	return false;
}

/* A place that grows to so many bytes, if the limit permits it. */
static uint32_t take_growing(struct cl_disk *disk, uint32_t bytes)
{
	uint32_t place;

	if (disk->allocated + bytes + log_bytes(disk) > disk->options.bytes_most)
		return NO_PLACE;
	place = pop_free(disk, 0);
	if (place == NO_PLACE)
		place = add_place(disk);
	if (place != NO_PLACE) {
		disk->places[place].allocated = bytes;
		disk->allocated += bytes;
	}
	return place;
}

/* A place whose bytes on disk suffice. */
static uint32_t take_free(struct cl_disk *disk, uint32_t bytes)
{
	unsigned rank = rank_for(bytes);
	uint32_t place = pop_from_rank(disk, rank);
	uint32_t exact = rank > 1 ? disk->free[rank - 1] : NO_PLACE;

	/* The class below has some that are large enough. */
	if (place == NO_PLACE && exact != NO_PLACE && disk->places[exact].allocated >= bytes)
		place = pop_free(disk, rank - 1);
	return place;
}

uint32_t place_take(struct cl_disk *disk, uint32_t length)
{
	uint32_t bytes = place_bytes(disk, length), place;
	bool grow = may_grow(disk);

	assert(mutex_is_held(&disk->lock));
	for (uint32_t tries = grow ? disk->place_count + 2 : TRIES_FULL; tries > 0; tries--) {
		place = take_free(disk, bytes);
		if (place == NO_PLACE && grow)
			place = take_growing(disk, bytes);
		if (place != NO_PLACE)
			break;
		/* Something must go: first what is free, then the oldest block. */
		place = pop_from_rank(disk, 1);
		if (place == NO_PLACE || !grow || disk->cannot_punch) {
			if (place != NO_PLACE)
				place_free(disk, place);
			place = evict_next(disk);
		}
		if (place == NO_PLACE)
			return NO_PLACE;
		if (disk->places[place].allocated >= bytes)
			break;
		if (disk->cannot_punch) {
			disk->allocated += bytes - disk->places[place].allocated;
			disk->places[place].allocated = bytes;
			break;
		}
		if (grow && disk->places[place].allocated)
			punch_place(disk, place, 0);
		place_free(disk, place);
		place = NO_PLACE;
	}
	/* A small block does not keep the room of a large one. */
	if (place != NO_PLACE && disk->places[place].allocated >= 2 * bytes && !disk->cannot_punch)
		punch_place(disk, place, bytes);
	return place;
}

bool place_make_room(struct cl_disk *disk, uint32_t bytes)
{
	bool grow = may_grow(disk);

	assert(mutex_is_held(&disk->lock));
	while (grow && disk->allocated + bytes + log_bytes(disk) > disk->options.bytes_most) {
		uint32_t place = disk->cannot_punch ? NO_PLACE : pop_from_rank(disk, 1);

		if (place == NO_PLACE && !disk->cannot_punch)
			place = evict_next(disk);
		if (place == NO_PLACE)
			return false;
		if (disk->places[place].allocated)
			punch_place(disk, place, 0);
		place_free(disk, place);
	}
	disk->allocated += grow ? bytes : 0;
	return grow;
}

bool place_claim_whole(struct cl_disk *disk, struct cl_disk_whole *whole)
{
	uint32_t place = pop_free(disk, 0);

	assert(mutex_is_held(&disk->lock));
	if (place == NO_PLACE)
		place = add_place(disk);
	if (place == NO_PLACE)
		return false;
	disk->places[place].whole = whole;
	whole->place = place;
	return true;
}

void place_free_whole(struct cl_disk *disk, struct cl_disk_whole *whole)
{
	if (whole->place != NO_PLACE)
		place_free(disk, whole->place);
	whole->place = NO_PLACE;
}

void place_fail(struct cl_disk *disk, int error)
{
	assert(mutex_is_held(&disk->lock));
	disk->full_until = monotonic_ns() + (error == -ENOSPC ? FULL_NS : LOOK_AGAIN_NS);
}

bool place_claim(struct cl_disk *disk, uint32_t place, uint32_t length, struct kept *kept)
{
	uint32_t bytes = place_bytes(disk, length);

	while (disk->place_count <= place)
		if (add_place(disk) == NO_PLACE)
			return false;
	if (disk->places[place].kept)
		return false;
	disk->places[place].kept = kept;
	disk->places[place].allocated = bytes;
	disk->allocated += bytes;
	return true;
}

/* Punches the free places [from, to). */
static void punch_run(struct cl_disk *disk, uint32_t from, uint32_t to)
{
	if (fallocate(disk->blocks_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)from << disk->shift, (off_t)(to - from) << disk->shift))
		disk->cannot_punch = true;
}

/* What a killed program wrote, and did not enter. */
static void punch_unknown(struct cl_disk *disk)
{
	uint32_t from = 0;

	for (uint32_t place = 0; place <= disk->place_count && !disk->cannot_punch; place++) {
		if (place < disk->place_count && !disk->places[place].kept)
			continue;
		if (place > from)
			punch_run(disk, from, place);
		from = place + 1;
	}
}

void places_tidy(struct cl_disk *disk)
{
	struct stat st;

	if (ftruncate(disk->blocks_fd, (off_t)disk->place_count << disk->shift))
		disk->cannot_punch = true;
	if (!fstat(disk->blocks_fd, &st) && (uint64_t)st.st_blocks * 512 > disk->allocated)
		punch_unknown(disk);
	pthread_mutex_lock(&disk->lock);
	for (uint32_t place = disk->place_count; place-- > 0;)
		if (!disk->places[place].kept && !disk->places[place].whole)
			place_free(disk, place);
	while (disk->allocated + log_bytes(disk) > disk->options.bytes_most) {
		uint32_t place = evict_next(disk);

		if (place == NO_PLACE)
			break;
		if (!disk->cannot_punch && disk->places[place].allocated)
			punch_place(disk, place, 0);
		place_free(disk, place);
		if (disk->cannot_punch)
			break;
	}
	pthread_mutex_unlock(&disk->lock);
}
