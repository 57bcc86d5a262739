/* SPDX-License-Identifier: BSD-2-Clause */
/* Tasks: tried at once, handed over, and answered by whoever comes first, their thread or the watcher. */
#include "rxafs/task.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/held.h"

/* Between two looks at a process that was interrupted and went on. */
#define LOOK_NS (250 * NS_PER_MS)

/* A task that has left the thread that read it. */
struct waiting {
	struct task task;
	pid_t thread; /* that waits for it; 0 = unknown */
	atomic_uint references;
	atomic_bool answered; /* the kernel has been, or is being, answered */
	bool listed;	      /* by the watcher; under its lock */
	struct waiting *next;
	char *name_copy, *new_name_copy, *data_copy;
};

struct watcher {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct waiting *list; /* each has a reference */
	bool ending;
};

struct handle *handle_create(struct mount *mount, rxafs_file *file, rxafs_listing *listing)
{
	struct handle *h = calloc(1, sizeof *h);

	if (!h)
		return NULL;
	atomic_init(&h->references, 1);
	pthread_mutex_init(&h->reading, NULL);
	h->mount = mount;
	h->file = file;
	h->listing = listing;
	pthread_mutex_lock(&mount->handles_lock);
	h->next = mount->handles;
	h->at = &mount->handles;
	if (h->next)
		h->next->at = &h->next;
	mount->handles = h;
	pthread_mutex_unlock(&mount->handles_lock);
	return h;
}

/* With the lock of the list. */
static void unlist_handle(struct handle *h)
{
	assert(mutex_is_held(&h->mount->handles_lock));
	*h->at = h->next;
	if (h->next)
		h->next->at = h->at;
}

void handle_put(struct handle *h)
{
	if (!h || atomic_fetch_sub(&h->references, 1) != 1)
		return;
	if (h->file)
		rxafs_close(h->file);
	if (h->listing)
		rxafs_close_listing(h->listing);
	pthread_mutex_destroy(&h->reading);
	free(h);
}

void handle_release(struct handle *h)
{
	pthread_mutex_lock(&h->mount->handles_lock);
	unlist_handle(h);
	pthread_mutex_unlock(&h->mount->handles_lock);
	handle_put(h);
}

void handles_end(struct mount *mount)
{
	struct handle *h;

	pthread_mutex_lock(&mount->handles_lock);
	while ((h = mount->handles)) {
		unlist_handle(h);
		pthread_mutex_unlock(&mount->handles_lock);
		handle_put(h);
		pthread_mutex_lock(&mount->handles_lock);
	}
	pthread_mutex_unlock(&mount->handles_lock);
}

struct task task_of(fuse_req_t req, const struct task_kind *kind, fuse_ino_t node)
{
	struct mount *mount = fuse_req_userdata(req);

	return (struct task){.kind = kind,
			     .mount = mount,
			     .req = req,
			     .object = node ? node_object(mount, node) : NULL};
}

static void answer_task(struct task *t, int result)
{
	if (result)
		fuse_reply_err(t->req, -result);
	else
		t->kind->reply(t);
}

static void free_waiting(struct waiting *w)
{
	struct task *t = &w->task;

	if (atomic_fetch_sub(&w->references, 1) != 1)
		return;
	if (t->object)
		rxafs_release(t->object);
	if (t->other)
		rxafs_release(t->other);
	handle_put(t->handle);
	rxafs_put_user(t->request.user);
	rxafs_free_cancel(t->request.cancel);
	free(w->name_copy);
	free(w->new_name_copy);
	free(w->data_copy);
	free(w);
}

/* Only one of those who want to answer may. */
static bool claim_answer(struct waiting *w)
{
	if (atomic_exchange(&w->answered, true))
		return false;
	/* Waits until note_interrupt() has returned, if it runs: libfuse frees the request with the reply. */
	fuse_req_interrupt_func(w->task.req, NULL, NULL);
	return true;
}

static void run_waiting(void *arg);

/* To the threads that may wait for the servers it needs. The request may be answered before this returns. */
static void hand_over_task(struct waiting *w)
{
	if (!rxafs_run(w->task.mount->client, w->task.object, &w->task.request, run_waiting, w))
		return;
	if (claim_answer(w))
		fuse_reply_err(w->task.req, ENOMEM);
	free_waiting(w);
}

/* On a thread of the library. */
static void run_waiting(void *arg)
{
	struct waiting *w = arg;
	struct task *t = &w->task;
	int result = t->kind->run(t);

	if (result == RXAFS_WOULD_WAIT && t->request.moves) {
		hand_over_task(w);
		return;
	}
	if (claim_answer(w))
		answer_task(t, result);
	else if (!result && t->kind->undo)
		t->kind->undo(t);
	free_waiting(w);
}

/* libfuse calls it, with the lock of the request, when the kernel wants the request to end. */
static void note_interrupt(fuse_req_t req, void *arg)
{
	struct waiting *w = arg;
	struct watcher *watcher = w->task.mount->watcher;

	(void)req;
	pthread_mutex_lock(&watcher->lock);
	if (!w->listed) {
		w->listed = true;
		atomic_fetch_add(&w->references, 1);
		w->next = watcher->list;
		watcher->list = w;
		pthread_cond_signal(&watcher->work);
	}
	pthread_mutex_unlock(&watcher->lock);
}

static bool copy_text(const char **text, char **copy)
{
	if (!*text)
		return true;
	*text = *copy = strdup(*text);
	return *copy != NULL;
}

static bool copy_arguments(struct waiting *w)
{
	struct task *t = &w->task;

	if (t->data) {
		w->data_copy = malloc(t->size ? t->size : 1);
		if (!w->data_copy)
			return false;
		memcpy(w->data_copy, t->data, t->size);
		t->data = w->data_copy;
	}
	return copy_text(&t->name, &w->name_copy) && copy_text(&t->new_name, &w->new_name_copy);
}

/* What the task uses must live until its end, which may come after the request's. */
static struct waiting *keep_task(const struct task *t)
{
	struct waiting *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->task = *t;
	atomic_init(&w->references, 1);
	w->thread = fuse_req_ctx(t->req)->pid;
	w->task.request.quick = false;
	w->task.request.moves = !t->kind->never_quick;
	if (t->object)
		rxafs_hold(t->object);
	if (t->other)
		rxafs_hold(t->other);
	if (t->handle)
		atomic_fetch_add(&t->handle->references, 1);
	w->task.request.cancel = rxafs_create_cancel();
	if (copy_arguments(w) && w->task.request.cancel)
		return w;
	w->task.request.user = NULL; /* still the caller's */
	free_waiting(w);
	return NULL;
}

void task_start(struct task *t)
{
	struct waiting *w;
	int result = RXAFS_WOULD_WAIT;

	t->request.user = find_caller(t->mount, fuse_req_ctx(t->req));
	t->request.quick = true;
	if (!t->kind->never_quick)
		result = t->kind->run(t);
	if (result != RXAFS_WOULD_WAIT) {
		answer_task(t, result);
		rxafs_put_user(t->request.user);
		return;
	}
	w = keep_task(t);
	if (!w) {
		fuse_reply_err(t->req, ENOMEM);
		rxafs_put_user(t->request.user);
		return;
	}
	fuse_req_interrupt_func(t->req, note_interrupt, w);
	hand_over_task(w);
}

/* -- interrupted requests ----------------------------------------------------------------- */

/* Whether it is off the list: answered, by the watcher or by its own thread. */
static bool look_after(struct waiting *w)
{
	if (atomic_load(&w->answered))
		return true;
	if (!w->task.kind->any_signal && w->thread && !thread_is_dying(w->thread))
		return false;
	if (w->task.kind->cancels)
		rxafs_raise_cancel(w->task.request.cancel);
	if (claim_answer(w))
		fuse_reply_err(w->task.req, EINTR);
	return true;
}

static void look_at_all(struct waiting *list, struct waiting **left)
{
	while (list) {
		struct waiting *next = list->next;

		if (look_after(list)) {
			free_waiting(list);
		} else {
			list->next = *left;
			*left = list;
		}
		list = next;
	}
}

static void *watch_interrupted(void *arg)
{
	struct watcher *watcher = arg;
	struct waiting *left = NULL;

	pthread_mutex_lock(&watcher->lock);
	while (!watcher->ending) {
		struct waiting *fresh = watcher->list;

		if (!fresh && left)
			monotonic_wait(&watcher->work, &watcher->lock, monotonic_ns() + LOOK_NS);
		else if (!fresh)
			pthread_cond_wait(&watcher->work, &watcher->lock);
		fresh = watcher->list;
		watcher->list = NULL;
		pthread_mutex_unlock(&watcher->lock);
		struct waiting *old = left;
		left = NULL;
		look_at_all(old, &left);
		look_at_all(fresh, &left);
		pthread_mutex_lock(&watcher->lock);
	}
	while (left) {
		struct waiting *next = left->next;

		left->next = watcher->list;
		watcher->list = left;
		left = next;
	}
	pthread_mutex_unlock(&watcher->lock);
	return NULL;
}

int watcher_start(struct mount *mount)
{
	struct watcher *watcher = calloc(1, sizeof *watcher);
	int error;

	if (!watcher)
		return -ENOMEM;
	pthread_mutex_init(&watcher->lock, NULL);
	monotonic_cond_init(&watcher->work);
	error = pthread_create(&watcher->thread, NULL, watch_interrupted, watcher);
	if (error) {
		free(watcher);
		return -error;
	}
	mount->watcher = watcher;
	return 0;
}

void watcher_stop(struct mount *mount)
{
	struct watcher *watcher = mount->watcher;

	if (!watcher)
		return;
	pthread_mutex_lock(&watcher->lock);
	watcher->ending = true;
	pthread_cond_signal(&watcher->work);
	pthread_mutex_unlock(&watcher->lock);
	pthread_join(watcher->thread, NULL);
	while (watcher->list) {
		struct waiting *w = watcher->list;

		watcher->list = w->next;
		free_waiting(w);
	}
	pthread_cond_destroy(&watcher->work);
	pthread_mutex_destroy(&watcher->lock);
	free(watcher);
	mount->watcher = NULL;
}
