/* SPDX-License-Identifier: BSD-2-Clause */
/* Room on the disk for the case that it is full. */
#include "volume/store/txn/reserve.h"

#include <assert.h>
#include <errno.h>

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
