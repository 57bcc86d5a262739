/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that may wait for files, and their queue, in which each peer has one place. */
#include <stdbool.h>
#include <stdlib.h>

#include "base/assert.h"
#include "engine/core/engine.h"
#include "engine/core/sys.h"
#include "engine/sched/files.h"
#include "proto/peer/peer.h"

#define THREADS	  8
#define OF_A_PEER 4 /* threads that the files of one peer may keep waiting */

/* The share of a peer that has transfers, or whose latest ones are ending. The lock covers it. */
struct rxw_files_share {
	struct rxw_files_share *next; /* while it is queued, or left */
	struct rxw_file_job *first, **last;
	unsigned entered; /* transfers; with one, peer->files is this share */
	unsigned busy;	  /* threads */
	bool queued;	  /* it has jobs, and may have another thread */
	/* While it is left: the peer, which may be gone by then, so it is only compared. */
	const struct rxw_peer *peer;
};

struct rxw_files {
	const struct rxw_engine *engine;       /* fixed, as the next */
	struct rxw_config config;	       /* of the threads */
	pthread_mutex_t starting;	       /* held while a thread is started; before `lock` */
	pthread_t thread[THREADS];	       /* the lock above covers it, and `lock` does not */
	pthread_mutex_t lock;		       /* covers the rest, and `files` of peers */
	pthread_cond_t work;		       /* a share was queued, or `stop` */
	struct rxw_files_share *first, **last; /* queued ones, one turn each */
	struct rxw_files_share *left; /* not entered, but busy; so at most one for each thread */
	unsigned threads, idle;	      /* also while one is started; idle: it has no job */
	bool begun;		      /* there is a thread */
	bool stop;
};

/* Marks a library thread of no endpoint. */
static const char no_endpoint;

/* With the lock held, as all functions until run_file_jobs(). Queue the share if it can go on. */
__attribute__((cold)) static void queue_share(struct rxw_files *f, struct rxw_files_share *share)
{
	assert(rxw_is_locked(&f->lock));
	if (share->queued || !share->first || share->busy == OF_A_PEER)
		return;
	share->queued = true;
	share->next = NULL;
	*(f->first ? f->last : &f->first) = share;
	f->last = &share->next;
	pthread_cond_signal(&f->work);
}

/* The first job of the peer whose turn it is, which is the last one then. */
__attribute__((cold)) static struct rxw_file_job *take_share_turn(struct rxw_files *f)
{
	struct rxw_files_share *share = f->first;
	struct rxw_file_job *job = share->first;

	assert(share->queued && job);
	f->first = share->next;
	share->queued = false;
	share->first = job->next;
	share->busy++;
	queue_share(f, share);
	return job;
}

__attribute__((cold)) static void unlink_left_share(struct rxw_files *f,
						    struct rxw_files_share *share)
{
	struct rxw_files_share **link = &f->left;

	while (*link != share)
		link = &(*link)->next;
	*link = share->next;
}

static void end_share_turn(struct rxw_files *f, struct rxw_files_share *share)
{
	assert(share->busy > 0 && share->busy <= OF_A_PEER);
	share->busy--;
	queue_share(f, share);
	if (share->entered || share->busy)
		return;
	unlink_left_share(f, share);
	free(share);
}

/*
 * The share of a peer: that of its transfers, also if all have left and the last ones still keep threads; or a new one.
 * NULL: no memory.
 */
__attribute__((cold)) static struct rxw_files_share *enter_share(struct rxw_files *f,
								 struct rxw_peer *peer)
{
	struct rxw_files_share *share = peer->files;

	if (!share) {
		for (share = f->left; share && share->peer != peer; share = share->next)
			;
		if (share)
			unlink_left_share(f, share);
		else
			share = calloc(1, sizeof(*share));
	}
	if (share)
		share->entered++;
	peer->files = share;
	return share;
}

static void *run_file_jobs(void *arg);

/* Without the lock, which listeners take: starts a thread unless one is idle. 0 or a negative result. */
__attribute__((cold)) static int start_file_thread(struct rxw_files *f)
{
	bool needed;
	unsigned i;
	int r = 0;

	pthread_mutex_lock(&f->starting);
	pthread_mutex_lock(&f->lock);
	i = f->threads;
	needed = !f->idle && i < THREADS;
	f->threads += needed;
	f->idle += needed;
	pthread_mutex_unlock(&f->lock);
	if (needed)
		r = rxw_engine_thread_create(&f->thread[i], f->engine, &f->config, i, "rxw-file",
					     run_file_jobs, f);
	pthread_mutex_lock(&f->lock);
	f->threads -= r != 0;
	f->idle -= r != 0;
	f->begun |= r == 0;
	pthread_mutex_unlock(&f->lock);
	pthread_mutex_unlock(&f->starting);
	return r;
}

/* One thread always waits for work, so that listeners need not start any. */
__attribute__((cold)) static void *run_file_jobs(void *arg)
{
	struct rxw_files *f = arg;

	rxw_set_library_thread((const struct rxw_endpoint *)(const void *)&no_endpoint);
	pthread_mutex_lock(&f->lock);
	while (f->first || !f->stop) {
		struct rxw_files_share *share;
		struct rxw_file_job *job;
		bool alone;

		if (!f->first) {
			pthread_cond_wait(&f->work, &f->lock);
			continue;
		}
		assert(f->idle > 0);
		f->idle--;
		job = take_share_turn(f);
		share = job->share;
		alone = !f->idle && f->threads < THREADS;
		pthread_mutex_unlock(&f->lock);
		if (alone)
			start_file_thread(f);
		job->run(job);
		pthread_mutex_lock(&f->lock);
		f->idle++;
		end_share_turn(f, share);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* Engine's lock held. */
__attribute__((cold)) static struct rxw_files *create_files(const struct rxw_engine *e)
{
	struct rxw_files *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->engine = e;
	f->config = e->config;
	pthread_mutex_init(&f->starting, NULL);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	return f;
}

__attribute__((cold)) static struct rxw_files *files_of(struct rxw_engine *e)
{
	struct rxw_files *f;

	pthread_mutex_lock(&e->lock);
	if (!e->files)
		e->files = create_files(e);
	f = e->files;
	pthread_mutex_unlock(&e->lock);
	return f;
}

__attribute__((cold)) int rxw_files_enter(struct rxw_engine *e, struct rxw_file_job *job,
					  struct rxw_peer *peer)
{
	struct rxw_files *f = files_of(e);
	bool begun;
	int r;

	if (!f)
		return -RXW_ENOMEM;
	pthread_mutex_lock(&f->lock);
	begun = f->begun;
	pthread_mutex_unlock(&f->lock);
	r = begun ? 0 : start_file_thread(f);
	if (r)
		return r;
	pthread_mutex_lock(&f->lock);
	job->files = f;
	job->share = enter_share(f, peer);
	pthread_mutex_unlock(&f->lock);
	return job->share ? 0 : -RXW_ENOMEM;
}

__attribute__((cold)) void rxw_files_leave(struct rxw_file_job *job, struct rxw_peer *peer)
{
	struct rxw_files_share *share = job->share;
	struct rxw_files *f = job->files;

	pthread_mutex_lock(&f->lock);
	assert(share == peer->files && share->entered > 0);
	if (--share->entered == 0) {
		/* end_share_turn() frees it, perhaps later than the peer, unless that has a transfer again. */
		assert(share->busy > 0 && !share->first);
		peer->files = NULL;
		share->peer = peer;
		share->next = f->left;
		f->left = share;
	}
	pthread_mutex_unlock(&f->lock);
}

__attribute__((cold)) void rxw_files_post(struct rxw_file_job *job)
{
	struct rxw_files_share *share = job->share;
	struct rxw_files *f = job->files;

	pthread_mutex_lock(&f->lock);
	job->next = NULL;
	*(share->first ? share->last : &share->first) = job;
	share->last = &job->next;
	queue_share(f, share);
	pthread_mutex_unlock(&f->lock);
}

__attribute__((cold)) void rxw_files_destroy(struct rxw_files *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	while (f->threads)
		pthread_join(f->thread[--f->threads], NULL);
	pthread_cond_destroy(&f->work);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->starting);
	free(f);
}
