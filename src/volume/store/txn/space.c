/* SPDX-License-Identifier: BSD-2-Clause */
/* Space and quotas, and room on the disk for the case that it is full. */
#include "volume/store/txn/space.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "volume/store/disk/vfs.h"

/*
 * Space that stores leave free. Every commit writes to the log, which is moved to the database later, so removals
 * need space as well.
 */
#define KEPT_KIB   4096
#define KEPT_SHARE 8 /* but at most this part of the disk */

uint64_t space_blocks_of(uint64_t length)
{
	return length ? (length - 1) / 1024 + 1 : 1;
}

uint64_t space_blocks(const struct vnode *v)
{
	return space_blocks_of(v->length);
}

static uint64_t subtract_kib(uint64_t from, uint64_t kib)
{
	return kib < from ? from - kib : 0;
}

static uint64_t compute_kept_kib(struct core *core, uint64_t total_kib)
{
	uint64_t kib = KEPT_KIB + store_vfs_log_size(core->vfs) / 1024;

	return kib < total_kib / KEPT_SHARE ? kib : total_kib / KEPT_SHARE;
}

/* Measure the space as space_disk() does, without promises. */
static int measure_disk_space(struct core *core, struct store_space *space)
{
	uint64_t available, total;
	int result = core->layer->ops->space(core->layer, &available, &total);

	if (result)
		return result;
	space->total_kib = total / 1024;
	space->available_kib =
		subtract_kib(available / 1024, compute_kept_kib(core, space->total_kib));
	return 0;
}

int space_disk(struct core *core, struct store_space *space)
{
	int result = measure_disk_space(core, space);

	if (!result)
		space->available_kib = subtract_kib(space->available_kib, core->promised);
	return result;
}

static int check_disk_space(struct core *core, uint64_t kib)
{
	struct store_space space;
	int result = kib ? space_disk(core, &space) : 0;

	if (result || !kib || space.available_kib >= kib)
		return result;
	core->tight = true;
	return STORE_VDISKFULL;
}

int space_check(struct core *core, const struct volrec *volume, const struct space_need *need)
{
	uint64_t used = volume->used_kib + volumes_promised(&core->volumes, volume->id);
	uint64_t quota = volrec_quota(volume);
	int result = check_disk_space(core, need->disk);

	if (result || !need->growth)
		return result;
	used = subtract_kib(used + need->growth, need->promised);
	/* A full volume does not grow, not even by less than `spare`. */
	if (quota && used > quota + need->spare)
		return STORE_VOVERQUOTA;
	return 0;
}

static uint64_t get_copy_log_size(struct core *core)
{
	const struct store_layer_ops *ops = core->copy_layer->ops;
	struct store_file *file;
	uint64_t length = 0;

	if (ops->open(core->copy_layer, STORE_COPY "/db-wal", 0, &file))
		return 0;
	if (ops->size(file, &length))
		length = 0;
	ops->close(file);
	return length;
}

int space_check_rows(struct core *core, uint64_t kib)
{
	uint64_t log = store_vfs_log_size(core->vfs) / 1024;
	bool copied = core->replica && core->copy_shares;

	assert(kib);
	/* The copy follows: its log gets the same bytes, then its database. */
	if (copied)
		kib = 4 * kib + 3 * log + get_copy_log_size(core) / 1024;
	else
		kib = 2 * kib + log;
	return check_disk_space(core, kib);
}

int space_promise(struct core *core, uint64_t kib, uint64_t held)
{
	uint64_t promised = core->promised;
	struct store_space space;
	bool fits;
	int result = kib ? measure_disk_space(core, &space) : 0;

	if (result || !kib)
		return result;
	do {
		fits = promised + kib <= space.available_kib;
	} while (!atomic_compare_exchange_weak(&core->promised, &promised,
					       fits ? promised + kib : promised - held));
	if (!fits)
		core->tight = true;
	return fits ? 0 : STORE_VDISKFULL;
}

void space_give_back(struct core *core, uint64_t kib)
{
	assert(core->promised >= kib);
	if (kib)
		atomic_fetch_sub(&core->promised, kib);
}

/* -- the file "reserve" -- */

#define NAME   "reserve"
#define BYTES  (1u << 20)
#define SPARE  65536u /* bytes that stay free beside it */
#define PIECE  65536
#define PIECES (BYTES / PIECE)

static uint64_t get_free_bytes(struct core *core)
{
	uint64_t available = 0, total;

	return core->layer->ops->space(core->layer, &available, &total) ? 0 : available;
}

void reserve_release(struct core *core)
{
	const struct store_layer_ops *ops = core->layer->ops;
	struct store_file *file;

	core->released++;
	if (ops->open(core->layer, NAME, STORE_OPEN_WRITE, &file))
		return;
	core->reserved = false;
	ops->truncate(file, 0);
	ops->close(file);
}

void reserve_begin(struct core *core)
{
	if (get_free_bytes(core) >= BYTES)
		return;
	core->tight = true;
	reserve_release(core);
}

/*
 * Make it longer, as far as the disk allows. The bytes are there, so that the file has the room also where the file system would only
 * promise it.
 */
static int fill_reserve(struct core *core, struct store_file *file, uint64_t length)
{
	static const uint8_t zeros[PIECE];
	const struct store_layer_ops *ops = file->layer->ops;
	uint64_t room = get_free_bytes(core), pieces = room > SPARE ? (room - SPARE) / PIECE : 0;
	struct iovec iov[PIECES];
	ssize_t n;

	if (length % PIECE || length >= BYTES)
		length = 0;
	if (pieces > (BYTES - length) / PIECE)
		pieces = (BYTES - length) / PIECE;
	if (!pieces)
		return -ENOSPC;
	for (size_t i = 0; i < pieces; i++)
		iov[i] = (struct iovec){(void *)zeros, PIECE};
	assert(pieces <= PIECES);
	n = ops->pwritev(file, iov, (int)pieces, length);
	if (n < 0)
		return (int)n;
	return length + pieces * PIECE < BYTES ? -ENOSPC : ops->sync(file);
}

void reserve_make(struct core *core)
{
	const struct store_layer_ops *ops = core->layer->ops;
	struct store_file *file;
	unsigned released = core->released;
	uint64_t length;

	if (core->reserved ||
	    ops->open(core->layer, NAME, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file))
		return;
	if (!ops->size(file, &length))
		core->reserved = length == BYTES || !fill_reserve(core, file, length);
	/* A commit needs the room and may have cut the file before it was full: it must not stay half taken. */
	if (core->released != released) {
		core->reserved = false;
		ops->truncate(file, 0);
	}
	ops->close(file);
}
