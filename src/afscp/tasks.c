/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue of pieces of work, and the threads that do them. */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "afscp/tasks.h"

struct piece {
	void (*work)(void *arg);
	void *arg;
};

struct tasks {
	pthread_mutex_t lock;	      /* of all that follows */
	pthread_cond_t more, less;    /* pieces wait, or it ends; one is done */
	struct piece *pieces;	      /* a ring */
	unsigned room, first, count, busy;
	bool ending;
	pthread_t *threads;
	unsigned thread_count;
};

static void *do_pieces(void *arg)
{
	struct tasks *tasks = arg;

	pthread_mutex_lock(&tasks->lock);
	for (;;) {
		struct piece piece;

		while (!tasks->count && !tasks->ending)
			pthread_cond_wait(&tasks->more, &tasks->lock);
		if (!tasks->count)
			break;
		piece = tasks->pieces[tasks->first];
		tasks->first = (tasks->first + 1) % tasks->room;
		tasks->count--;
		tasks->busy++;
		pthread_mutex_unlock(&tasks->lock);
		piece.work(piece.arg);
		pthread_mutex_lock(&tasks->lock);
		tasks->busy--;
		pthread_cond_broadcast(&tasks->less);
	}
	pthread_mutex_unlock(&tasks->lock);
	return NULL;
}

struct tasks *tasks_open(unsigned threads, unsigned waiting)
{
	struct tasks *tasks = calloc(1, sizeof(*tasks));

	if (!tasks)
		return NULL;
	tasks->room = waiting;
	tasks->pieces = calloc(waiting, sizeof(*tasks->pieces));
	tasks->threads = calloc(threads, sizeof(*tasks->threads));
	if (!tasks->pieces || !tasks->threads)
		threads = 0;
	pthread_mutex_init(&tasks->lock, NULL);
	pthread_cond_init(&tasks->more, NULL);
	pthread_cond_init(&tasks->less, NULL);
	while (tasks->thread_count < threads &&
	       pthread_create(&tasks->threads[tasks->thread_count], NULL, do_pieces, tasks) == 0)
		tasks->thread_count++;
	return tasks;
}

void tasks_add(struct tasks *tasks, void (*work)(void *arg), void *arg)
{
	if (!tasks || !tasks->thread_count) {
		work(arg);
		return;
	}
	pthread_mutex_lock(&tasks->lock);
	while (tasks->count == tasks->room)
		pthread_cond_wait(&tasks->less, &tasks->lock);
	tasks->pieces[(tasks->first + tasks->count++) % tasks->room] = (struct piece){work, arg};
	pthread_cond_signal(&tasks->more);
	pthread_mutex_unlock(&tasks->lock);
}

void tasks_wait(struct tasks *tasks)
{
	if (!tasks)
		return;
	pthread_mutex_lock(&tasks->lock);
	while (tasks->count || tasks->busy)
		pthread_cond_wait(&tasks->less, &tasks->lock);
	pthread_mutex_unlock(&tasks->lock);
}

void tasks_close(struct tasks *tasks)
{
	if (!tasks)
		return;
	tasks_wait(tasks);
	pthread_mutex_lock(&tasks->lock);
	tasks->ending = true;
	pthread_cond_broadcast(&tasks->more);
	pthread_mutex_unlock(&tasks->lock);
	for (unsigned i = 0; i < tasks->thread_count; i++)
		pthread_join(tasks->threads[i], NULL);
	assert(!tasks->count && !tasks->busy);
	pthread_cond_destroy(&tasks->less);
	pthread_cond_destroy(&tasks->more);
	pthread_mutex_destroy(&tasks->lock);
	free(tasks->threads);
	free(tasks->pieces);
	free(tasks);
}
