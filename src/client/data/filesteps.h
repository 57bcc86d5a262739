/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder do for each other, from the lowest to the highest. */
#ifndef CLIENT_DATA_FILESTEPS_H
#define CLIENT_DATA_FILESTEPS_H

#include "client/data/filestate.h"

static inline void link_first(struct link *list, struct link *link)
{
	link->next = list->next;
	link->previous = list;
	list->next->previous = link;
	list->next = link;
}

static inline void unlink_item(struct link *link)
{
	link->next->previous = link->previous;
	link->previous->next = link->next;
	link->next = link->previous = link;
}

static inline uint32_t block_size(const struct cl_data *data)
{
	return data->options.block;
}

static inline struct cl_disk_version file_disk_version(const struct cl_data_file *file)
{
	return (struct cl_disk_version){file->version.version, file->version.incarnation};
}

/* Jobs of one volume share a lane. */
static inline uint64_t file_lane(const struct cl_data_file *file)
{
	return (uint64_t)file->fid.cell << 32 | file->fid.volume;
}

/* With the lock held. Bytes from here on are zero, if no change says otherwise. */
static inline uint64_t file_known_end(const struct cl_data_file *file)
{
	uint64_t cut = file->cut < file->next_cut ? file->cut : file->next_cut;

	return file->version.length < cut ? file->version.length : cut;
}

/* -- blocks.c: all with the file's lock held ------------------------------------------------ */

/* NULL: it is not in memory. */
struct block *block_find(struct cl_data_file *file, uint64_t number);
/* Index of the first block of at least this number. */
size_t block_index(const struct cl_data_file *file, uint64_t number);
/* Made if it is not there. NULL: no memory. */
struct block *block_get(struct cl_data_file *file, uint64_t number);
/* A reader that goes on behind the block keeps its bytes: it is the next to be evicted. */
void block_consume(struct block *block);
/* It is not dirty and not busy. */
void block_remove(struct cl_data_file *file, struct block *block);
/* The buffer with a reference for the caller, who may read [0, end) of it without the lock. */
struct buffer *block_lend(struct block *block, uint32_t end);
/* Of no block, with at least `need` bytes. NULL: no memory. */
struct buffer *buffer_make(struct cl_data *data, uint32_t need);
void buffer_put(struct buffer *buffer);
/* At the end: nobody has a buffer. */
void buffers_free_areas(struct cl_data *data);
/* Where bytes come from that are copied: the place of the next one. */
struct places {
	const struct iovec *iov;
	size_t used; /* of the first one */
};
void places_skip(struct places *places, size_t length);
/* Copies a change in. -ENOMEM. */
int block_change(struct block *block, uint32_t start, const void *bytes, uint32_t length);
/* Copies what the server has, where nothing is valid, and passes over the rest. -ENOMEM. */
int block_fill(struct block *block, uint32_t start, struct places *places, uint32_t length);
/* Drops valid bytes in [start, end) that are not dirty. */
void block_drop_clean(struct block *block, uint32_t start, uint32_t end);
/* What was dirty is stored, but for what was changed again meanwhile. */
void block_set_stored(struct block *block, uint32_t start, uint32_t end);
/* Nothing from `start` on remains, changes neither. */
void block_cut(struct block *block, uint32_t start);
/* Bytes that may be shown without a call: valid ones and those that the server has not. */
bool file_covers(struct cl_data_file *file, uint64_t start, uint64_t end);
/* The first bytes in [start, end) that must be fetched; false if there are none. */
bool file_find_missing(struct cl_data_file *file, uint64_t start, uint64_t end, uint64_t *from,
		       uint64_t *to);
/* The first contiguous change from `start` on; false if there is none. */
bool file_find_dirty(struct cl_data_file *file, uint64_t start, uint64_t *from, uint64_t *to);
/* Calls for bytes in [start, end) that are under way bring nothing more: they may lack own stores whose bytes are dropped now. */
void file_end_fetches(struct cl_data_file *file, uint64_t start, uint64_t end);
/* Drops all that is clean, and in [keep, keep_end) nothing. */
void file_drop_clean(struct cl_data_file *file, uint64_t keep, uint64_t keep_end);
/* Makes room for `more` bytes. The caller may hold the lock of `mine`, or NULL. */
void budget_make_room(struct cl_data *data, struct cl_data_file *mine, uint64_t more);

/* -- version.c --------------------------------------------------------------------------------- */

/* With the lock held. */
uint64_t file_length(struct cl_data_file *file);
/* The version that a reply or a status shows. The bytes in [keep, keep_end) are of it in any case. True: others were dropped. */
bool file_take_version(struct cl_data_file *file, const struct cl_data_version *version,
		       uint64_t keep, uint64_t keep_end);
/* -- waiting.c ------------------------------------------------------------------------------ */

/* Wakes waiters whose bytes are there; all: those too that wait for any change. */
void file_wake(struct cl_data_file *file, bool all);
/* Begins to wait; the lock is released meanwhile. 0, -EINTR, -ETIMEDOUT, or the error of the fetch. */
int file_wait(struct cl_data_file *file, const struct cl_data_wait *wait, struct waiter *waiter);
/* Monotonic time at which a wait ends, or must ask again. */
uint64_t wait_until(const struct cl_data_wait *wait);
/* 0, -EINTR or -ETIMEDOUT. */
int wait_is_over(const struct cl_data_wait *wait);
bool wait_is_bounded(const struct cl_data_wait *wait);

/* -- fetching.c ----------------------------------------------------------------------------- */

/* With the lock held, which is released meanwhile. All bytes of [start, end) are there afterwards. */
int file_fetch(struct cl_data_handle *handle, const struct cl_data_wait *wait, uint64_t start,
	       uint64_t end);
bool file_has_on_disk(struct cl_data_file *file, uint64_t number);
void file_read_ahead(struct cl_data_handle *handle, uint64_t start, uint64_t end);
/* Puts whole blocks in [start, end) to disk, in the background. */
void file_save_blocks(struct cl_data_file *file, uint64_t start, uint64_t end);

/* With the lock held: begins to fetch and to check what a whole on disk lacks, if that is not much. */
void file_complete_whole(struct cl_data_handle *handle);

/* -- storing.c ------------------------------------------------------------------------------ */

/* With the lock held: the handle changed something. -ENOMEM. */
int file_note_change(struct cl_data_handle *handle);
bool file_is_dirty(struct cl_data_file *file);
/* Stores in the background. With the lock held. */
void file_store_later(struct cl_data_file *file);
void file_store_if_large(struct cl_data_file *file);
/* Without locks: begins to store changes, of this file or of others. */
void store_for_room(struct cl_data *data, struct cl_data_file *file);
bool error_is_permanent(int error);
/* Gives up all changes. With the lock held; bytes given up. */
uint64_t file_drop_dirty(struct cl_data_file *file);
int ticker_start(struct cl_data *data);
void ticker_stop(struct cl_data *data);

#endif
