/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The disk cache: blocks of files by (cell, FID, data version, number), in a folder of this program alone. It keeps them over
 * crashes and restarts: a block counts once a record of the index, written after its bytes, says so, and its checksum agrees.
 * Nothing here is the user's error: what cannot be kept is fetched again.
 */
#ifndef CLIENT_DISK_H
#define CLIENT_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cl_disk;
/* The blocks of one file that are on disk. Counted references. */
struct cl_disk_file;

/* Which contents of a file: its data version, and the incarnation of its volume (K-052). */
struct cl_disk_version {
	uint64_t version;
	uint32_t incarnation;
};

struct cl_disk_options {
	const char *folder;  /* made with mode 0700 if it is missing; must belong to this user */
	uint64_t bytes_most; /* of the folder, by st_blocks */
	uint32_t
		block; /* bytes of a block: a power of two from 4 KiB to 4 MiB. Another than last time: empties the cache */
	unsigned fill_most; /* per cent of the file system that may be in use; 0 = 90 */
};

struct cl_disk_statistics {
	uint64_t bytes, blocks, files;	   /* now */
	uint64_t hits, misses, torn;	   /* reads; blocks whose checksum did not agree */
	uint64_t written, evicted, failed; /* blocks; failed: the disk was full or had an error */
};

/*
 * Opens a folder, and reads its index. 0, or a negative errno value with a line of text: -EBUSY if another program uses
 * the folder, -EACCES or -EPERM if it belongs to another user or others may write to it.
 */
int cl_disk_open(const struct cl_disk_options *options, struct cl_disk **disk, char *message,
		 size_t size);
/* All references to files must have been given back. Writes what is left of the index. */
void cl_disk_close(struct cl_disk *disk);
void cl_disk_read_statistics(struct cl_disk *disk, struct cl_disk_statistics *statistics);

/* Which file. `cell` is a name in lower case of at most 253 bytes. NULL: no memory. Any thread, as all below. */
struct cl_disk_file *cl_disk_get_file(struct cl_disk *disk, const char *cell, uint32_t volume,
				      uint32_t vnode, uint32_t unique);
void cl_disk_put_file(struct cl_disk_file *file);

/* The file has this version now: blocks of another one are dropped. */
void cl_disk_set_version(struct cl_disk_file *file, const struct cl_disk_version *version);
/* An own change made version `to` of `from`: the blocks that are left belong to it. */
void cl_disk_move_version(struct cl_disk_file *file, const struct cl_disk_version *from,
			  const struct cl_disk_version *to);

/*
 * `number` counts blocks from the start of the file. A block at the end of the file is shorter than others. Read: the bytes read from `offset`
 * in the block on, at most `length`; -ENOENT if the block is not there, is of another version or was damaged; other negative errno values
 * after errors of the disk; -EAGAIN if the disk would be waited for and `now` is true.
 */
int64_t cl_disk_read_block(struct cl_disk_file *file, const struct cl_disk_version *version,
			   uint64_t number, uint32_t offset, void *bytes, uint32_t length,
			   bool now);
bool cl_disk_has_block(struct cl_disk_file *file, const struct cl_disk_version *version,
		       uint64_t number);
/*
 * Keeps a whole block. `ticket` was taken when its bytes were known to be those of the version; -EAGAIN if blocks were dropped or the version
 * changed since. 0; -ENOSPC, -EIO, ...: it is not kept.
 */
uint64_t cl_disk_take_ticket(struct cl_disk_file *file);
int cl_disk_write_block(struct cl_disk_file *file, const struct cl_disk_version *version,
			uint64_t ticket, uint64_t number, const void *bytes, uint32_t length);
/*
 * From the next version on, keep it in a file of its own, if it is of such a length, large and not too large; 0: do not. For files that
 * change seldom: what changes is fetched as a whole.
 */
void cl_disk_keep_whole(struct cl_disk_file *file, uint64_t length);
/*
 * A descriptor of that file for reading, if it is there to its end, of this version, and was seen to be sound in this run; -ENOENT.
 * It keeps these bytes as long as it is open. Room for it is counted until it is returned.
 */
struct cl_disk_whole;
int cl_disk_lend_whole(struct cl_disk_file *file, const struct cl_disk_version *version,
		       uint64_t length, struct cl_disk_whole **lent);
/* How many of its blocks are there, and how many of them were seen to be sound. */
struct cl_disk_share {
	uint64_t present, sound;
};
struct cl_disk_share cl_disk_share_of_whole(struct cl_disk_file *file,
					    const struct cl_disk_version *version);
bool cl_disk_block_is_sound(struct cl_disk_file *file, const struct cl_disk_version *version,
			    uint64_t number);
void cl_disk_return_whole(struct cl_disk_whole *whole);
/* The file's bytes from `number` on, `count` blocks, are about to change. */
void cl_disk_drop_blocks(struct cl_disk_file *file, uint64_t number, uint64_t count);

#endif
