/* SPDX-License-Identifier: BSD-2-Clause */
/* The files whose extents are to be merged, and the thread that does it. */
#include "volume/store/maint/merge.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/held.h"
#include "volume/store/maint/mergestep.h"

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
	bool urgent = content->count > merge_urgent(length), new;

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
		result = merge_step(&pass);
		pthread_mutex_lock(&merger->lock);
		merger->extents += pass.extents;
		merger->bytes += pass.bytes;
		if (result == -EAGAIN)
			result = ++tries < TRIES ? 0 : -EAGAIN;
		if (gently && !result)
			pause_after_step(merger, file, begun);
	}
	pthread_mutex_unlock(&merger->lock);
	merge_pass_end(&pass);
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
