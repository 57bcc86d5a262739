/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Volumes with the contents of another one of this server: read-write clones, and what a read-only copy becomes that takes the place
 * of its volume. One thread dumps while another one restores. Nothing but a buffer is in memory.
 */
#include "fileserver/cell/private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/call.h>

#include "afs/numbers.h"
#include "fileserver/base/base.h"

#define PIPE_BYTES (256 << 10)

/* `lock` covers everything but `cell` and `call`. */
struct dump_pipe {
	const struct fsd_cell *cell;
	const rxw_call *call; /* that waits for the copy; NULL: none that ends early */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	uint64_t put, taken; /* bytes */
	bool ended, broken;  /* nothing is put, or taken, any more */
	uint8_t bytes[PIPE_BYTES];
};

static int put_into_pipe(void *arg, const void *bytes, size_t length)
{
	struct dump_pipe *pipe = arg;
	bool broken;

	/* The server stops, or nobody waits any more: the copy is given up. */
	if (atomic_load(&pipe->cell->stopping) || (pipe->call && rxw_call_error(pipe->call, NULL)))
		return -EINTR;
	pthread_mutex_lock(&pipe->lock);
	while (length && !pipe->broken) {
		size_t at = pipe->put % PIPE_BYTES, n = length;
		size_t room = PIPE_BYTES - (size_t)(pipe->put - pipe->taken);

		n = n < room ? n : room;
		n = n < PIPE_BYTES - at ? n : PIPE_BYTES - at;
		if (!n) {
			pthread_cond_wait(&pipe->wake, &pipe->lock);
			continue;
		}
		memcpy(pipe->bytes + at, bytes, n);
		pipe->put += n;
		bytes = (const char *)bytes + n;
		length -= n;
		pthread_cond_signal(&pipe->wake);
	}
	broken = pipe->broken;
	pthread_mutex_unlock(&pipe->lock);
	return broken ? -EPIPE : 0;
}

static ssize_t take_from_pipe(void *arg, void *bytes, size_t length)
{
	struct dump_pipe *pipe = arg;
	size_t at, n;

	pthread_mutex_lock(&pipe->lock);
	while (pipe->put == pipe->taken && !pipe->ended)
		pthread_cond_wait(&pipe->wake, &pipe->lock);
	at = pipe->taken % PIPE_BYTES;
	n = (size_t)(pipe->put - pipe->taken);
	assert(n <= PIPE_BYTES);
	n = n < length ? n : length;
	n = n < PIPE_BYTES - at ? n : PIPE_BYTES - at;
	memcpy(bytes, pipe->bytes + at, n);
	pipe->taken += n;
	pthread_cond_signal(&pipe->wake);
	pthread_mutex_unlock(&pipe->lock);
	return (ssize_t)n;
}

static void close_pipe(struct dump_pipe *pipe, bool *side)
{
	pthread_mutex_lock(&pipe->lock);
	*side = true;
	pthread_cond_signal(&pipe->wake);
	pthread_mutex_unlock(&pipe->lock);
}

struct copying {
	struct fsd_cell *cell;
	uint32_t from;
	int32_t code; /* of the dump */
	struct dump_pipe pipe;
};

static void *run_copied_dump(void *arg)
{
	struct copying *copying = arg;
	const struct dump_base base = {.dated = true};
	const struct dump_output output = {.write = put_into_pipe, .arg = &copying->pipe};
	struct dump_counts counts;

	copying->code = transfer_dump(copying->cell, copying->from, &base, &output, &counts);
	close_pipe(&copying->pipe, &copying->pipe.ended);
	return NULL;
}

/* The contents of one volume into another, which is temporary and stays so; *as: its name, type and ids. */
static int32_t pipe_contents(struct fsd_cell *cell, uint32_t from, const struct cellvol *as,
			     const rxw_call *call)
{
	struct copying *copying = calloc(1, sizeof(*copying));
	char message[STORE_MESSAGE_MAX] = "";
	struct dump_input input = {.read = take_from_pipe};
	pthread_t thread;
	int result;

	assert(as->temporary && as->id != from);
	if (!copying)
		return AFS_VOL_NO_MEMORY;
	copying->cell = cell;
	copying->pipe.cell = cell;
	copying->pipe.call = call;
	copying->from = from;
	input.arg = &copying->pipe;
	pthread_mutex_init(&copying->pipe.lock, NULL);
	pthread_cond_init(&copying->pipe.wake, NULL);
	result = -pthread_create(&thread, NULL, run_copied_dump, copying);
	if (!result) {
		result = transfer_restore(cell, as->id, &input, as, message);
		close_pipe(&copying->pipe, &copying->pipe.broken);
		pthread_join(thread, NULL);
		/* The reader sees only that the bytes end. */
		if (copying->code && copying->code != EPIPE)
			result = copying->code;
		if (result)
			fsd_log(RXW_LOG_WARNING, "volume %u was not copied: %s", (unsigned)from,
				*message ? message : "the store could not read or take it");
	}
	pthread_cond_destroy(&copying->pipe.wake);
	pthread_mutex_destroy(&copying->pipe.lock);
	free(copying);
	return fsd_volume_code(result);
}

/* A new volume with the contents of another one, in a transaction of its own. */
static int32_t make_volume_copy(struct fsd_cell *cell, uint32_t from, const struct cellvol *as,
				const rxw_call *call, struct fsd_transaction *transaction)
{
	int32_t id;
	int32_t code = fsd_transaction_create(cell, as, false, &id);

	if (!code)
		code = fsd_transaction_enter(cell, id, "Clone", transaction);
	if (code)
		return code;
	code = pipe_contents(cell, from, as, call);
	if (code)
		fsd_transaction_end(cell, transaction); /* with which the volume goes */
	return code;
}

/* -- read-write clones -- */

int32_t fsd_volume_copy(struct fsd_cell *cell, const struct fsd_transaction *transaction,
			const struct cellvol *as, rxw_call *call)
{
	struct cellvol source, copy = *as;
	struct fsd_transaction made;
	uint32_t from = transaction->volume;
	int32_t code;
	int result = cellvol_get(cell->store, from, &source);

	if (result)
		return fsd_volume_code(result);
	copy.type = STORE_RW;
	copy.parent = source.parent;
	copy.quota_kib = source.quota_kib;
	copy.temporary = copy.out = true;
	copy.restored = from;
	if (source.type == STORE_RO)
		copy.clone = from;
	else if (source.type == STORE_BACKUP)
		copy.backup = from;
	transactions_expose(cell, transaction, call);
	code = make_volume_copy(cell, from, &copy, call, &made);
	transactions_expose(cell, transaction, NULL);
	if (code)
		return code;
	/* It stays as it is until the caller says what becomes of it. */
	made.mode = FSD_OFFLINE;
	fsd_transaction_end(cell, &made);
	fsd_transaction_made(cell, copy.id);
	return 0;
}

/* -- a read-only volume becomes the read-write one -- */

static int32_t convert_held(struct fsd_cell *cell, const struct cellvol *ro)
{
	struct cellvol rw = {.id = ro->parent, .type = STORE_RW, .temporary = true, .out = true};
	struct fsd_transaction made;
	int32_t code;

	/* The clone of a volume that has left needs no copy. */
	if (!ro->independent)
		return fsd_volume_code(cellvol_convert(cell->store, ro->id, rw.id));
	memcpy(rw.name, ro->name, sizeof(rw.name));
	code = make_volume_copy(cell, ro->id, &rw, NULL, &made);
	if (code)
		return code;
	code = fsd_volume_code(cellvol_convert(cell->store, ro->id, rw.id));
	made.changed = !code;
	fsd_transaction_end(cell, &made);
	return code;
}

int32_t fsd_volume_convert(struct fsd_cell *cell, uint32_t id)
{
	struct fsd_transaction transaction;
	struct cellvol ro, rw;
	int32_t tid, code;

	if (cellvol_get(cell->store, id, &ro))
		return ENODEV;
	if (ro.type != STORE_RO || ro.parent == id)
		return EINVAL;
	if (cellvol_get(cell->store, ro.parent, &rw) == 0)
		return EXDEV;
	/* It is served until the other one takes its place. */
	code = fsd_transaction_begin(cell, id, FSD_READ_ONLY, &tid);
	if (!code)
		code = fsd_transaction_enter(cell, tid, "ConvertROtoRW", &transaction);
	if (code)
		return code;
	code = convert_held(cell, &ro);
	transaction.changed = transaction.deleted = !code;
	fsd_transaction_end(cell, &transaction);
	return code;
}
