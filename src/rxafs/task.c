/* SPDX-License-Identifier: BSD-2-Clause */
/* Tasks: tried at once, handed over, and answered by whoever comes first, their thread or the watcher. */
#include <rxafs/admin.h>

#include "rxafs/task.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "common/clock.h"
#include "common/held.h"
#include "rxafs/users/logins.h"
#include "rxafs/readers.h"
#include "rxafs/through.h"
#include "rxafs/users/tokens.h"

/* Between two looks at a process that was interrupted and went on. */
#define LOOK_NS (250 * NS_PER_MS)

/*
 * A request that holds a lock of the kernel for so long may keep processes from their end, which the kernel does not tell. Then
 * they are looked for, with at most one part in HOLD_LOOK_PART of a processor.
 */
#define HOLD_NS	     (400 * (uint64_t)NS_PER_MS)
#define HOLD_LOOK_NS (100 * (uint64_t)NS_PER_MS)
/* While there are such processes: several requests may be ahead of them. */
#define URGENT_NS      (NS_PER_S)
#define URGENT_HOLD_NS (20 * (uint64_t)NS_PER_MS)
/* A server that answers not even small questions for so long is silent. One that only takes its time has as much as it needs. */
#define SILENT_NS (500 * (uint64_t)NS_PER_MS)
/* Of a request that waits for no server, but perhaps for the name of a cell. */
#define NAME_NS	       (700 * (uint64_t)NS_PER_MS)
#define HOLD_LOOK_PART 20u

/* A task that has left the thread that read it. */
struct waiting {
	struct task task;
	pid_t thread; /* that waits for it; 0 = unknown */
	atomic_uint references;
	atomic_bool answered; /* the kernel has been, or is being, answered */
	bool listed;	      /* by the watcher; under its lock */
	struct waiting *next;
	/* If its kind holds a lock: among the holders, in the order of `since`; a reference. The watcher's lock. */
	struct waiting *next_holder, **holder_at;
	uint64_t since;
	struct rxafs_awaited awaited;
	struct kernel_read reading;
	char *name_copy, *new_name_copy, *data_copy;
};

struct watcher {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct waiting *list; /* each has a reference */
	struct waiting *holders, **last_holder;
	struct dying dying; /* that they may keep from their end */
	uint64_t next_look, urgent_until;
	uint64_t awake_until; /* further holders are expected */
	bool sleeps;	      /* until it is woken */
	bool ending;
};

atomic_uint handles_made;

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
	if (h->file) {
		through_end(h, rxafs_file_object(h->file));
		rxafs_close(h->file);
	}
	if (h->listing)
		rxafs_close_listing(h->listing);
	pthread_mutex_destroy(&h->reading);
	if (atomic_load(&h->hands_over))
		logins_forget(h->mount->logins, h);
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
			     .node = node,
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

/* While a request waits, the kernel may hold locks and pages. */
static void note_wait(struct waiting *w, bool waits)
{
	struct task *t = &w->task;

	if (t->kind->never_quick)
		atomic_fetch_add(&t->mount->changing, waits ? 1u : -1u);
	if (!t->kind->holds)
		return;
	if (t->object)
		kernel_note_waiting(t->mount, t->object, waits);
	if (t->other)
		kernel_note_waiting(t->mount, t->other, waits);
}

/* Only one of those who want to answer may. */
static bool claim_answer(struct waiting *w)
{
	if (atomic_exchange(&w->answered, true))
		return false;
	if (w->task.fills_pages)
		pages_give_up_read(&w->reading);
	note_wait(w, false);
	/* Waits until note_interrupt() has returned, if it runs: libfuse frees the request with the reply. */
	fuse_req_interrupt_func(w->task.req, NULL, NULL);
	return true;
}

static void list_holder(struct waiting *w)
{
	struct watcher *watcher = w->task.mount->watcher;

	if (!w->task.kind->holds)
		return;
	atomic_fetch_add(&w->references, 1);
	w->since = monotonic_ns();
	pthread_mutex_lock(&watcher->lock);
	watcher->awake_until = w->since + HOLD_NS;
	w->next_holder = NULL;
	w->holder_at = watcher->last_holder;
	*watcher->last_holder = w;
	watcher->last_holder = &w->next_holder;
	if (watcher->sleeps)
		pthread_cond_signal(&watcher->work);
	pthread_mutex_unlock(&watcher->lock);
}

/* With the lock of the watcher. The caller has its reference then. */
static void take_holder(struct watcher *watcher, struct waiting *w)
{
	assert(mutex_is_held(&watcher->lock));
	*w->holder_at = w->next_holder;
	if (w->next_holder)
		w->next_holder->holder_at = w->holder_at;
	else
		watcher->last_holder = w->holder_at;
	w->holder_at = NULL;
}

/* The request is answered: the kernel gives the lock back. */
static void unlist_holder(struct waiting *w)
{
	struct watcher *watcher = w->task.mount->watcher;
	bool listed;

	if (!w->task.kind->holds)
		return;
	pthread_mutex_lock(&watcher->lock);
	listed = w->holder_at != NULL;
	if (listed)
		take_holder(watcher, w);
	pthread_mutex_unlock(&watcher->lock);
	if (listed)
		free_waiting(w);
}

static void run_waiting(void *arg);

static void note_awaited(struct waiting *w)
{
	struct task *t = &w->task;
	struct watcher *watcher = t->mount->watcher;

	if (!t->request.awaited.known && t->object)
		t->request.awaited = rxafs_awaited_of(t->object);
	pthread_mutex_lock(&watcher->lock);
	w->awaited = t->request.awaited;
	pthread_mutex_unlock(&watcher->lock);
}

static bool copy_text(const char **text, char **copy)
{
	if (!*text || *copy)
		return true;
	*text = *copy = strdup(*text);
	return *copy != NULL;
}

/* What the reader's buffer holds, for another thread. */
static bool copy_arguments(struct waiting *w)
{
	struct task *t = &w->task;

	if (t->data && !w->data_copy) {
		w->data_copy = malloc(t->size ? t->size : 1);
		if (!w->data_copy)
			return false;
		memcpy(w->data_copy, t->data, t->size);
		t->data = w->data_copy;
	}
	return copy_text(&t->name, &w->name_copy) && copy_text(&t->new_name, &w->new_name_copy);
}

/*
 * To the threads that may wait for the servers it needs, or with `here` to this one, if it is as good. The request may be answered before
 * this returns.
 */
static void hand_over_task(struct waiting *w, bool here)
{
	struct task *t = &w->task;

	if (t->kind->holds)
		note_awaited(w);
	if (here && !rxafs_run_here(t->mount->client, t->object, &t->request, run_waiting, w))
		return;
	if (copy_arguments(w) &&
	    !rxafs_run(t->mount->client, t->object, &t->request, run_waiting, w))
		return;
	unlist_holder(w);
	if (claim_answer(w))
		fuse_reply_err(w->task.req, ENOMEM);
	free_waiting(w);
}

/* On a thread of the library. */
static void run_waiting(void *arg)
{
	struct waiting *w = arg;
	struct task *t = &w->task;
	int result;

	tokens_catch_up(t->mount->tokens);
	result = t->kind->run(t);

	if (result == RXAFS_WOULD_WAIT && t->request.moves) {
		hand_over_task(w, false);
		return;
	}
	unlist_holder(w);
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

/*
 * The kernel ends the whole mount when a request is open for longer than its administrator has set (K-155). 0: there is no limit.
 */
static uint64_t read_limit(const char *path)
{
	unsigned long seconds = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		return 0;
	if (fscanf(f, "%lu", &seconds) != 1)
		seconds = 0;
	fclose(f);
	return seconds * (uint64_t)NS_PER_S;
}

static void learn_limit(struct mount *mount)
{
	uint64_t given = read_limit("/proc/sys/fs/fuse/default_request_timeout"),
		 most = read_limit("/proc/sys/fs/fuse/max_request_timeout");

	if (most && (!given || given > most))
		given = most;
	mount->limit_ns = given / 2;
	if (given)
		mount_log(
			mount, LOG_NOTICE,
			"the kernel ends mounts with requests of more than %llu s (/proc/sys/fs/fuse), so operations and "
			"waits for locks fail after half of it",
			(unsigned long long)(given / NS_PER_S));
}

static void bound_request(const struct mount *mount, struct rxafs_request *request)
{
	uint64_t until = rxafs_now() + mount->limit_ns;

	if (mount->limit_ns && (!request->deadline || request->deadline > until))
		request->deadline = until;
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
	bound_request(t->mount, &w->task.request);
	if (t->object)
		rxafs_hold(t->object);
	if (t->other)
		rxafs_hold(t->other);
	if (t->handle)
		atomic_fetch_add(&t->handle->references, 1);
	/* An operation that nobody cancels does its calls on the thread that waits for them. */
	if (t->kind->cancels)
		w->task.request.cancel = rxafs_create_cancel();
	if (w->task.request.cancel || !t->kind->cancels) {
		if (t->fills_pages) {
			pages_await_read(t->mount, t->object, t->offset, t->size, &w->reading);
			w->task.reading = &w->reading;
		}
		note_wait(w, true);
		return w;
	}
	w->task.request.user = NULL; /* still the caller's */
	free_waiting(w);
	return NULL;
}

void task_start(struct task *t)
{
	struct waiting *w;
	int result = RXAFS_WOULD_WAIT;
	bool lent;

	t->caller = *fuse_req_ctx(t->req);
	t->request.user = find_caller(t->mount, &t->caller);
	t->request.quick = true;
	/* With new tickets the user may have other rights. A task then waits for them, see run_waiting(). */
	if (!tokens_are_behind(t->mount->tokens) && !t->kind->never_quick)
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
	list_holder(w);
	/* A lock may be waited for without end. */
	lent = !t->kind->any_signal && reader_lend(t->mount);
	hand_over_task(w, lent);
	if (lent)
		reader_give_back(t->mount);
}

/* -- interrupted requests ----------------------------------------------------------------- */

/* Whether nothing tells that the answer will come. */
static bool waits_in_silence(const struct waiting *w, uint64_t now)
{
	uint64_t silence = rxafs_silence(w->task.mount->client, &w->awaited);

	return silence == UINT64_MAX ? w->since + NAME_NS <= now : silence >= SILENT_NS;
}

/*
 * Whether a process that was killed waits for the end of what it changes. Its locks end with it, and who gets them then must find the change
 * done. Nobody waits for a silent server: the operation goes on without its process.
 */
static bool ends_with_its_change(const struct waiting *w)
{
	return w->task.kind->holds && !w->task.kind->cancels &&
	       !waits_in_silence(w, monotonic_ns());
}

/* Whether it is off the list: answered, by the watcher or by its own thread. */
static bool look_after(struct waiting *w)
{
	if (atomic_load(&w->answered))
		return true;
	if (!w->task.kind->any_signal && w->thread && !thread_is_dying(w->thread))
		return false;
	if (ends_with_its_change(w))
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

static uint64_t hold_ns(const struct watcher *watcher, uint64_t now)
{
	return now < watcher->urgent_until ? URGENT_HOLD_NS : HOLD_NS;
}

/* NULL: all have a server that may answer soon. */
static struct waiting *find_silent_holder(struct watcher *watcher)
{
	uint64_t now = monotonic_ns();
	struct waiting *w = watcher->holders;

	assert(mutex_is_held(&watcher->lock));
	while (w && w->since + hold_ns(watcher, now) <= now && !waits_in_silence(w, now))
		w = w->next_holder;
	return w && w->since + hold_ns(watcher, now) <= now ? w : NULL;
}

/*
 * A process that was killed waits for a lock, perhaps for that of a holder: all who have waited for some time are told that the
 * server does not answer. What they change goes on. With the lock, which is released meanwhile.
 */
static void release_locks(struct watcher *watcher)
{
	struct waiting *w;

	while ((w = find_silent_holder(watcher))) {
		take_holder(watcher, w);
		pthread_mutex_unlock(&watcher->lock);
		if (w->task.kind->cancels)
			rxafs_raise_cancel(w->task.request.cancel);
		if (claim_answer(w))
			fuse_reply_err(w->task.req, ETIMEDOUT);
		free_waiting(w);
		pthread_mutex_lock(&watcher->lock);
	}
}

/* With the lock, which is released meanwhile. */
static void look_at_holders(struct watcher *watcher)
{
	uint64_t begun = monotonic_ns(), cost, pause;
	const struct mount *mount;
	struct waiting *w;
	bool found;

	/* Their processes were killed, or another way to answer was found. */
	while ((w = watcher->holders) && atomic_load(&w->answered)) {
		take_holder(watcher, w);
		free_waiting(w);
	}
	if (begun < watcher->urgent_until)
		release_locks(watcher);
	if (!watcher->holders || watcher->holders->since + hold_ns(watcher, begun) > begun ||
	    watcher->next_look > begun)
		return;
	mount = watcher->holders->task.mount;
	pthread_mutex_unlock(&watcher->lock);
	cost = (uint64_t)read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	found = any_waits_dying(&watcher->dying, mount->connection, begun);
	cost = ((uint64_t)read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cost) * HOLD_LOOK_PART;
	pthread_mutex_lock(&watcher->lock);
	if (found)
		watcher->urgent_until = begun + URGENT_NS;
	pause = found ? URGENT_HOLD_NS : HOLD_LOOK_NS;
	watcher->next_look = monotonic_ns() + (cost > pause ? cost : pause);
	if (found)
		release_locks(watcher);
}

/* Until there is something to do. With the lock. */
static void wait_for_interrupt(struct watcher *watcher, bool again)
{
	uint64_t now = monotonic_ns(), until = again ? now + LOOK_NS : 0, due = 0;

	if (watcher->list)
		return;
	if (watcher->holders) {
		due = watcher->holders->since + hold_ns(watcher, now);
		if (now < watcher->urgent_until)
			due = due > now ? due : now + URGENT_HOLD_NS;
		else if (due < watcher->next_look)
			due = watcher->next_look;
	} else if (now < watcher->awake_until) {
		/* Not earlier than a holder that comes meanwhile: so none has to wake this thread. */
		due = now + hold_ns(watcher, now);
	}
	if (due && (!until || due < until))
		until = due;
	watcher->sleeps = !until;
	if (!until)
		pthread_cond_wait(&watcher->work, &watcher->lock);
	else if (until > now)
		monotonic_wait(&watcher->work, &watcher->lock, until);
}

static void *watch_interrupted(void *arg)
{
	struct watcher *watcher = arg;
	struct waiting *left = NULL;

	pthread_mutex_lock(&watcher->lock);
	while (!watcher->ending) {
		struct waiting *fresh;

		wait_for_interrupt(watcher, left != NULL);
		look_at_holders(watcher);
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
	watcher->last_holder = &watcher->holders;
	learn_limit(mount);
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
	while (watcher->holders) {
		struct waiting *w = watcher->holders;

		pthread_mutex_lock(&watcher->lock);
		take_holder(watcher, w);
		pthread_mutex_unlock(&watcher->lock);
		free_waiting(w);
	}
}

void watcher_free(struct mount *mount)
{
	struct watcher *watcher = mount->watcher;

	if (!watcher)
		return;
	assert(!watcher->holders && !watcher->list);
	pthread_cond_destroy(&watcher->work);
	pthread_mutex_destroy(&watcher->lock);
	free(watcher);
	mount->watcher = NULL;
}
