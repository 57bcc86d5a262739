/* SPDX-License-Identifier: BSD-2-Clause */
/* Merging the extents of files: the files that wait for it, the steps, and the thread that makes them. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/held.h"
#include "volume/store/maint/maint.h"
#include "volume/store/txn/change.h"
#include "volume/store/txn/lookup.h"
#include "volume/store/txn/space.h"

/*
 * Neighbours are merged if that pays: if few bytes are copied for each extent that goes. Bytes that a
 * clone shows as well need space again when they are copied, and count several times.
 */
#define STEP_BYTES   (1u << 20)	     /* of a copy */
#define STEP_EXTENTS STORE_VIEW_OPEN /* of a copy */
#define PIECE_BYTES  (256u << 10)    /* between two looks at `stop` */
#define HOLE_BYTES   (64u << 10)     /* longer ones stay holes */
#define PAYS_BYTES   (128u << 10)    /* that may be copied for each extent that goes */
#define SHARED_COST  4		     /* of bytes that a clone shows */
#define SPARE_SHARE  32		     /* this part of the disk is left to others */

/* Other rows of a vnode: those of two clones, and some that wait to be pruned. */
#define MERGE_CLONES 4

/* A pass over the extents of a file. One thread at a time. */
struct merge_pass {
	struct core *core;
	struct store_fid fid;
	const _Atomic bool *stop;
	uint64_t at;	  /* the next offset to look at */
	uint32_t extents; /* of the last step: by which the list became shorter */
	uint64_t bytes;	  /* of the last step: copied */
	/* The lists of other rows of the vnode, as they were when the pass began. */
	bool begun;
	struct store_content other[MERGE_CLONES];
	unsigned others;
};

/* Extents from which merging does not wait until a file is left alone. */
static uint32_t get_urgent_count(uint64_t length)
{
	return store_extents_limit(length) / 2;
}

/* -- the contents of other rows -- */

struct other_rows {
	struct merge_pass *pass;
	uint32_t epoch;
};

static int note_other_content(void *arg, const struct vnode_key *key, const struct version *version)
{
	const struct other_rows *rows = arg;
	struct merge_pass *pass = rows->pass;

	assert(pass->others <= MERGE_CLONES);
	if (key->epoch == rows->epoch || !version->content.count)
		return 0;
	if (pass->others == MERGE_CLONES)
		return -EBUSY;
	return store_content_copy(&version->content, &pass->other[pass->others++]);
}

static int begin_merge_pass(struct merge_pass *pass, const struct found *found)
{
	struct other_rows rows = {.pass = pass, .epoch = found->version->epoch};
	unsigned damaged = 0;
	struct db *db;
	int result = 0;

	if (found->version->v.flags & VNODE_OLDER) {
		result = readers_get(pass->core->readers, &db);
		if (result)
			return result;
		result = db_vnode_rows(db, found->view.group, found->fid.vnode, &damaged,
				       note_other_content, &rows);
		readers_put(pass->core->readers, db);
	}
	pass->begun = !result;
	return damaged ? -EIO : result;
}

static bool is_extent_shared(const struct merge_pass *pass, const struct store_extent *extent)
{
	for (unsigned i = 0; i < pass->others; i++) {
		const struct store_content *other = &pass->other[i];
		uint32_t at = store_content_behind(other, extent->start);

		for (; at < other->count && other->extent[at].start < extent->end; at++)
			if (other->extent[at].object == extent->object)
				return true;
	}
	return false;
}

/* -- the extents of a step -- */

/* From extent `first` on: how many are merged; 0: that does not pay. */
static uint32_t measure_window(const struct merge_pass *pass, const struct store_content *content,
			       uint32_t first, unsigned shared_cost)
{
	const struct store_extent *extent = content->extent;
	uint64_t cost = 0;
	uint32_t count = 0, best = 0;

	assert(first < content->count);
	for (uint32_t i = first; i < content->count && count < STEP_EXTENTS; i++) {
		uint64_t hole = count ? extent[i].start - extent[i - 1].end : 0;
		uint64_t bytes = extent[i].end - extent[i].start;

		if (hole > HOLE_BYTES || extent[i].end - extent[first].start > STEP_BYTES)
			break;
		cost += hole + bytes * (is_extent_shared(pass, &extent[i]) ? shared_cost : 1);
		count++;
		if (cost <= (uint64_t)(count - 1) * PAYS_BYTES)
			best = count;
	}
	return best > 1 ? best : 0;
}

static int find_merge_window(struct merge_pass *pass, const struct version *version,
			     struct store_content *window)
{
	const struct store_content *content = &version->content;
	/* Calls would copy otherwise. */
	bool is_long = content->count > get_urgent_count(version->v.length) / 2;
	uint32_t at = store_content_behind(content, pass->at), count = 0;

	for (; at + 1 < content->count; at++) {
		count = measure_window(pass, content, at, is_long ? 1 : SHARED_COST);
		if (count)
			break;
	}
	if (!count)
		return -ENODATA;
	*window = (struct store_content){.extent = content->extent + at, .count = count};
	pass->at = content->extent[at].start;
	return 0;
}

/* -- the transaction -- */

struct merge_op {
	struct txn_op txn;
	const struct store_fid *fid;
	const struct store_content *window;
	const struct store_owner *owner;
	struct store_run *run;
	struct store_content patch; /* what the run wrote */
};

/*
 * Whether a version may refer to the object of the copy. -EAGAIN: it is about to be removed, perhaps among many that are not
 * dead yet.
 */
static int check_copy_object(const struct merge_op *op, struct work *work, const struct node *node)
{
	uint64_t id = op->patch.extent->object;
	struct db_object object;
	struct db *db;
	int result = store_run_check(op->run);

	assert(op->patch.count == 1);
	if (result || store_run_made(op->run))
		return result;
	if (node->now->content.tail_object != id && !store_content_has(&node->now->content, id))
		return -EAGAIN;
	result = work_db(work, &db);
	if (!result)
		result = db_object_get(db, id, &object);
	if (!result && object.dead)
		result = -EAGAIN;
	return result == -ENOENT ? -EAGAIN : result;
}

/* Bytes, status and data version do not change, so no callback is broken. */
static int apply_merge(struct txn_op *txn, struct work *work)
{
	struct merge_op *op = (struct merge_op *)txn;
	struct store_content content = {0};
	struct node *node;
	int result = change_find(work, NULL, op->fid, &node);

	if (!result && !store_content_shows(&node->now->content, op->window))
		result = -EAGAIN;
	if (!result)
		result = check_copy_object(op, work, node);
	if (!result)
		result = store_content_copy(&node->now->content, &content);
	if (!result)
		result = store_content_merge(&content, &op->patch);
	if (!result)
		result = work_edit(work, node);
	if (result) {
		store_content_free(&content);
		return result;
	}
	store_content_free(&node->now->content);
	node->now->content = content;
	if (store_run_made(op->run)) {
		struct db_object object = {.id = store_run_made(op->run), .owner = *op->owner};

		work_object_made(work, &object);
	}
	work->refers = true;
	return 0;
}

/* -- the copy -- */

static int copy_extent_pieces(const struct merge_pass *pass, struct store_view *view,
			      const struct store_extent *whole, struct store_run *run)
{
	struct store_extent piece = {.start = whole->start};
	int result = 0;

	for (; !result && piece.start < whole->end; piece.start = piece.end) {
		uint64_t left = whole->end - piece.start;

		if (*pass->stop)
			return -EINTR;
		piece.end = piece.start + (left < PIECE_BYTES ? left : PIECE_BYTES);
		result = store_run_copy(view, &piece, run);
	}
	return result;
}

static int copy_merge_window(const struct merge_pass *pass, const struct found *found,
			     struct merge_op *op)
{
	const struct store_content *window = op->window;
	const struct store_extent whole = {.start = window->extent[0].start,
					   .end = window->extent[window->count - 1].end};
	struct store_view *view;
	int result = store_view_open(pass->core->data, op->owner, window, found->version->v.length,
				     &view);

	if (result)
		return result == -ENOENT ? -EAGAIN : result;
	store_view_ahead(view, whole.start, whole.end - whole.start);
	result = store_run_begin(pass->core->data, op->owner, &found->version->content, whole.start,
				 core_next_number, pass->core, &op->run);
	if (!result)
		result = copy_extent_pieces(pass, view, &whole, op->run);
	store_view_close(view);
	if (!result)
		result = store_run_finish(op->run, &op->patch);
	/* By this thread, so that a flush for which others wait has no more to write. */
	return result ? result : store_run_sync(op->run);
}

static int merge_found_window(struct merge_pass *pass, const struct found *found,
			      const struct store_content *window)
{
	const struct store_owner owner = {found->view.group, pass->fid.vnode, pass->fid.unique};
	struct merge_op op = {.txn = {.apply = apply_merge},
			      .fid = &pass->fid,
			      .window = window,
			      .owner = &owner};
	int result = copy_merge_window(pass, found, &op);

	assert(window->count > 1);
	if (!result)
		result = txn_run(pass->core->txn, &op.txn);
	if (!result) {
		pass->extents = window->count - 1;
		pass->bytes = op.patch.extent->end - op.patch.extent->start;
		pass->at += pass->bytes;
	}
	store_content_free(&op.patch);
	store_run_end(op.run, !result);
	return result;
}

/* -- a step -- */

/* Not a clone, and not a file of which a clone shows all. */
static int check_mergeable_file(const struct merge_pass *pass, const struct found *found)
{
	struct volrec volume;
	int result = volumes_get(&pass->core->volumes, pass->fid.volume, &volume);

	if (result)
		return result;
	if (found->view.type != STORE_RW || found->version->v.kind != STORE_FILE)
		return -EROFS;
	return found->version->epoch > volrec_shared(&volume) ? 0 : -ENODATA;
}

static int check_merge_space(struct core *core)
{
	struct store_space space;
	int result = space_disk(core, &space);

	return !result && space.available_kib < space.total_kib / SPARE_SHARE ? -ENOSPC : result;
}

/* 0; -ENODATA: the pass is at its end; or a result with which it ends. */
static int run_merge_step(struct merge_pass *pass)
{
	struct store_content window;
	struct found found;
	int result = lookup(pass->core, NULL, &pass->fid, &found);

	pass->extents = 0;
	pass->bytes = 0;
	if (result)
		return result;
	result = check_mergeable_file(pass, &found);
	if (!result)
		result = check_merge_space(pass->core);
	if (!result && !pass->begun)
		result = begin_merge_pass(pass, &found);
	if (!result)
		result = find_merge_window(pass, found.version, &window);
	if (!result)
		result = merge_found_window(pass, &found, &window);
	lookup_end(&found);
	return result;
}

static void end_merge_pass(struct merge_pass *pass)
{
	while (pass->others)
		store_content_free(&pass->other[--pass->others]);
	pass->begun = false;
}

/* -- the files, and the thread -- */

#define IDLE_MS	 2000
#define FILES	 64 /* that are noted; others are when they are used again */
#define PAUSE_NS (20 * (uint64_t)NS_PER_MS)  /* after a step, at most: as long as the step took */
#define REST_NS	 (100 * (uint64_t)NS_PER_MS) /* after a pass, before the next one of the file */
#define TRIES	 100 /* of a step, while others replace the extents that it has copied */

struct candidate {
	struct store_fid fid; /* volume 0: unused */
	uint64_t due, rested; /* not before either */
	bool urgent;	      /* its list is long */
	bool running;	      /* a pass is being made */
	bool again;	      /* it was written meanwhile */
};

struct merger {
	struct core *core;
	uint64_t idle_ns; /* UINT64_MAX: the thread does nothing */
	uint32_t least;
	pthread_t thread;
	bool started;
	_Atomic bool stop;

	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t work;
	struct candidate file[FILES];
	uint64_t extents, bytes;
};

int merge_create(struct core *core, unsigned idle_ms, uint32_t least, struct merger **out)
{
	struct merger *merger = calloc(1, sizeof(*merger));

	if (!merger)
		return -ENOMEM;
	merger->core = core;
	merger->idle_ns = (uint64_t)(idle_ms ? idle_ms : IDLE_MS) * NS_PER_MS;
	if (idle_ms == STORE_MERGE_NEVER)
		merger->idle_ns = UINT64_MAX;
	merger->least = least;
	pthread_mutex_init(&merger->lock, NULL);
	monotonic_cond_init(&merger->work);
	*out = merger;
	return 0;
}

void merge_destroy(struct merger *merger)
{
	if (!merger)
		return;
	assert(!merger->started);
	pthread_mutex_destroy(&merger->lock);
	pthread_cond_destroy(&merger->work);
	free(merger);
}

/* -- noting files -- */

static bool is_same_file(const struct store_fid *a, const struct store_fid *b)
{
	return a->volume == b->volume && a->vnode == b->vnode && a->unique == b->unique;
}

/* The entry of a file, or a free one, or NULL. */
static struct candidate *find_candidate(struct merger *merger, const struct store_fid *fid)
{
	struct candidate *spare = NULL;

	assert(mutex_is_held(&merger->lock));
	for (unsigned i = 0; i < FILES; i++) {
		if (is_same_file(&merger->file[i].fid, fid))
			return &merger->file[i];
		if (!merger->file[i].fid.volume)
			spare = &merger->file[i];
	}
	return spare;
}

void merge_note(struct merger *merger, const struct store_fid *fid,
		const struct store_content *content, uint64_t length, bool written)
{
	uint64_t now = monotonic_ns();
	struct candidate *file;
	bool urgent = content->count > get_urgent_count(length), new;

	if (content->count < merger->least)
		return;
	pthread_mutex_lock(&merger->lock);
	file = find_candidate(merger, fid);
	new = file && !file->fid.volume;
	if (new)
		*file = (struct candidate){.fid = *fid};
	if (new || (file && written)) {
		/* The thread waits for the earliest time: a later one needs no signal. */
		if (merger->idle_ns != UINT64_MAX && (new || (urgent && !file->urgent)))
			pthread_cond_signal(&merger->work);
		file->urgent = urgent;
		file->again |= file->running;
		file->due = now + (urgent || merger->idle_ns == UINT64_MAX ? 0 : merger->idle_ns);
	}
	pthread_mutex_unlock(&merger->lock);
}

/* -- passes; the lock is given up during a step -- */

static void pause_after_step(struct merger *merger, const struct candidate *file, uint64_t begun)
{
	uint64_t now = monotonic_ns(), took = now - begun;
	uint64_t until = now + (took < PAUSE_NS ? took : PAUSE_NS);

	assert(mutex_is_held(&merger->lock));
	while (!merger->stop && !file->urgent && monotonic_ns() < until)
		monotonic_wait(&merger->work, &merger->lock, until);
}

/* `gently`: pause between steps and stop when the file is written, unless its list is long. */
static int run_merge_pass(struct merger *merger, struct candidate *file, bool gently)
{
	struct merge_pass pass = {.core = merger->core, .fid = file->fid, .stop = &merger->stop};
	unsigned tries = 0;
	int result = 0;

	assert(mutex_is_held(&merger->lock) && file->fid.volume && !file->running);
	file->running = true;
	file->again = false;
	while (!result && !merger->stop && !(gently && file->again && !file->urgent)) {
		uint64_t begun = monotonic_ns();

		pthread_mutex_unlock(&merger->lock);
		result = run_merge_step(&pass);
		pthread_mutex_lock(&merger->lock);
		merger->extents += pass.extents;
		merger->bytes += pass.bytes;
		if (result == -EAGAIN)
			result = ++tries < TRIES ? 0 : -EAGAIN;
		if (gently && !result)
			pause_after_step(merger, file, begun);
	}
	pthread_mutex_unlock(&merger->lock);
	end_merge_pass(&pass);
	pthread_mutex_lock(&merger->lock);
	file->running = false;
	file->rested = monotonic_ns() + REST_NS;
	/* The pass comes again when the file is left alone. */
	if (!file->again)
		file->fid.volume = 0;
	/*
	 * A file or volume that is gone or off-line is no fault, nor are many rows that wait to be
	 * pruned.
	 */
	return result == -ENODATA || result == -EBUSY || result > 0 ? 0 : result;
}

static uint64_t compute_start_time(const struct candidate *file)
{
	return file->due > file->rested ? file->due : file->rested;
}

static struct candidate *find_earliest_candidate(struct merger *merger)
{
	struct candidate *first = NULL;

	assert(mutex_is_held(&merger->lock));
	for (unsigned i = 0; i < FILES; i++) {
		struct candidate *file = &merger->file[i];

		if (file->fid.volume && !file->running &&
		    (!first || compute_start_time(file) < compute_start_time(first)))
			first = file;
	}
	return first;
}

static void *run_merger(void *arg)
{
	struct merger *merger = arg;

	pthread_setname_np(pthread_self(), "store-merge");
	pthread_mutex_lock(&merger->lock);
	while (!merger->stop) {
		struct candidate *file =
			merger->idle_ns == UINT64_MAX ? NULL : find_earliest_candidate(merger);

		if (!file)
			pthread_cond_wait(&merger->work, &merger->lock);
		else if (compute_start_time(file) > monotonic_ns())
			monotonic_wait(&merger->work, &merger->lock, compute_start_time(file));
		else
			run_merge_pass(merger, file, true);
	}
	pthread_mutex_unlock(&merger->lock);
	return NULL;
}

int merge_start(struct merger *merger)
{
	int result = -pthread_create(&merger->thread, NULL, run_merger, merger);

	merger->started = !result;
	return result;
}

void merge_stop(struct merger *merger)
{
	if (!merger || !merger->started)
		return;
	pthread_mutex_lock(&merger->lock);
	merger->stop = true;
	pthread_cond_signal(&merger->work);
	pthread_mutex_unlock(&merger->lock);
	pthread_join(merger->thread, NULL);
	merger->started = false;
}

int merge_all(struct merger *merger)
{
	struct candidate *file;
	int result = 0, passed;

	pthread_mutex_lock(&merger->lock);
	while ((file = find_earliest_candidate(merger)) != NULL && !merger->stop) {
		passed = run_merge_pass(merger, file, false);
		result = result ? result : passed;
	}
	pthread_mutex_unlock(&merger->lock);
	return result;
}

void merge_counts(struct merger *merger, struct merge_counts *counts)
{
	*counts = (struct merge_counts){0};
	pthread_mutex_lock(&merger->lock);
	for (unsigned i = 0; i < FILES; i++)
		counts->waiting += merger->file[i].fid.volume != 0;
	counts->extents = merger->extents;
	counts->bytes = merger->bytes;
	pthread_mutex_unlock(&merger->lock);
}
