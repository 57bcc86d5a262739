/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invalidation of the kernel's caches. Notifications can wait for requests that this program has not answered yet, so threads
 * of their own write them, without locks that a request takes. That attributes are expired waits for nothing, and comes first.
 */
#include <assert.h>
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "rxafs/known.h"
#include "rxafs/lanes.h"

/*
 * Threads. One may wait for a page that is being written or for the lock of a directory, as long as a server does not answer, so few of
 * them work for one server or cell.
 */
#define FLUSHERS 256
/*
 * How long a server waits for the kernel (K-163): as long as requests that wait for a server may be in the way, and if none are. The
 * server gives a client up after 4 s.
 */
#define BLOCKED_NS (100 * NS_PER_MS)
#define SETTLE_NS  (2 * (uint64_t)NS_PER_S)
/* An invalidation that takes so long is begun once more, without the parts that are being read by then. */
#define ATTEMPT_NS    (10 * NS_PER_MS)
#define ATTEMPTS_MOST 4

/* Pages of objects without a promise are looked for so often; trust ends 10 s before the promise. */
#define SWEEP_NS (5 * (uint64_t)NS_PER_S)

/* Expired names of directories are expired once more after this time. */
#define AGAIN_NS (1 * (uint64_t)NS_PER_S)
/* For so long the kernel may not have taken the answer that gave it an object. */
#define TAKEN_NS    (1 * (uint64_t)NS_PER_S)
#define TAKEN_TRIES 5
/* So long answers have to arrive at a process before the kernel is notified. */
#define ARRIVE_NS (4 * NS_PER_MS)

#ifndef FUSE_EXPIRE_ONLY
#	define FUSE_EXPIRE_ONLY 1
#endif

/* A change of an object, until the kernel knows it. One reference is of the list, others are of work. */
struct pending {
	struct pending *next, **at; /* at NULL: it is done */
	rxafs_object *object;
	struct rxafs_awaited server;
	atomic_uint what;
	unsigned references, attempts;
	uint64_t number, since;
};

struct work {
	struct lane_item item;
	rxafs_object *object;
	struct rxafs_awaited server; /* whose requests the kernel may wait for */
	struct pending *pending;     /* or: */
	struct given
		*names; /* of directories that are expired for the second time, when it is `due` */
	uint64_t due;
	struct work *next; /* of those that are due later, or of attributes */
};

struct flusher {
	pthread_t threads[FLUSHERS], expirer;
	unsigned count, idle;
	pthread_mutex_t lock;
	pthread_cond_t some, done, stale;
	struct lanes lanes;
	struct work *later, **last_later; /* in the order of `due` */
	struct pending *first, **last;	  /* in the order of their numbers */
	uint64_t number;
	struct work *expiring, **last_expiring; /* objects whose attributes are no longer right */
	uint64_t expire, expired;		/* how many */
	bool has_expirer, ending;
};

static void free_names(struct given *names)
{
	while (names) {
		struct given *next = names->link;

		free(names);
		names = next;
	}
}

/* libfuse offers it only with protocols that it speaks itself. */
static void expire_name(struct mount *mount, fuse_ino_t node, const struct given *g)
{
	struct fuse_notify_inval_entry_out entry = {
		.parent = node,
		.namelen = (uint32_t)g->length,
#if FUSE_KERNEL_MINOR_VERSION >= 38
		.flags = FUSE_EXPIRE_ONLY
#else
		.padding = FUSE_EXPIRE_ONLY
#endif
	};
	struct fuse_out_header header = {
		.error = FUSE_NOTIFY_INVAL_ENTRY,
		.len = (uint32_t)(sizeof header + sizeof entry + g->length + 1)};
	struct iovec iov[3] = {{&header, sizeof header},
			       {&entry, sizeof entry},
			       {(void *)(uintptr_t)g->name, g->length + 1}};

	/* ENOENT: the kernel knows no such name. */
	if (writev(mount->device, iov, 3) < 0)
		return;
}

static void push_later(struct flusher *f, rxafs_object *object, struct given *names)
{
	struct work *work = malloc(sizeof *work);

	if (!work) {
		free_names(names);
		return;
	}
	*work = (struct work){.object = rxafs_hold(object),
			      .server = rxafs_awaited_of(object),
			      .names = names,
			      .due = monotonic_ns() + AGAIN_NS};
	pthread_mutex_lock(&f->lock);
	*f->last_later = work;
	f->last_later = &work->next;
	pthread_cond_signal(&f->some);
	pthread_mutex_unlock(&f->lock);
}

/*
 * A look-up that asks for an expired name again is not kept out by the directory's lock: the kernel may store its answer, from before the change,
 * after the notification. So names of directories are expired twice. Other names are unhashed, where a late answer does no harm.
 */
static void forget_names(struct mount *mount, struct known *known, rxafs_object *object,
			 fuse_ino_t node)
{
	struct given *again = NULL, *next;
	struct htable names;

	pthread_mutex_lock(&known->lock);
	if (!known->has_names) {
		pthread_mutex_unlock(&known->lock);
		return;
	}
	names = known->names;
	known->has_names = false;
	pthread_mutex_unlock(&known->lock);
	for (size_t i = 0; i < names.size; i++)
		for (struct given *g = *htable_chain(&names, i); g; g = next) {
			next = g->link;
			if (g->directory) {
				expire_name(mount, node, g);
				g->link = again;
				again = g;
			} else {
				fuse_lowlevel_notify_inval_entry(mount->session, node, g->name,
								 g->length);
				free(g);
			}
		}
	htable_fini(&names, NULL);
	if (again)
		push_later(mount->flusher, object, again);
}

/*
 * Of answers that are on their way when it is notified the kernel takes nothing: whoever asked would go on with the size of before. So those
 * of a moment ago are left the time to arrive.
 */
static void let_answers_arrive(const struct known *known)
{
	uint64_t until = atomic_load(&known->given_at) + ARRIVE_NS, now = monotonic_ns();
	struct timespec pause = {.tv_nsec = (long)(until - now)};

	/* Sizes of directories matter to nobody. */
	if (!atomic_load(&known->is_directory) && atomic_load(&known->given) && now < until)
		nanosleep(&pause, NULL);
}

static void flush_pages(struct mount *mount, struct known *known, fuse_ino_t node)
{
	struct part parts[PARTS_MOST];
	unsigned number, count;

	let_answers_arrive(known);
	count = pages_begin_invalidation(known, parts, &number);
	for (unsigned i = 0; i < count; i++)
		fuse_lowlevel_notify_inval_inode(
			mount->session, node, (off_t)parts[i].begin,
			parts[i].end == UINT64_MAX ? 0 : (off_t)(parts[i].end - parts[i].begin));
	pages_end_invalidation(known, number);
}

/* With the lock: the last reference takes it away. */
static void put_pending(struct flusher *f, struct pending *p)
{
	if (--p->references)
		return;
	pthread_mutex_unlock(&f->lock);
	rxafs_release(p->object);
	free(p);
	pthread_mutex_lock(&f->lock);
}

/* With the lock. */
static void end_pending(struct flusher *f, struct pending *p)
{
	if (!p->at)
		return;
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	else
		f->last = p->at;
	p->at = NULL;
	pthread_cond_broadcast(&f->done);
	put_pending(f, p);
}

static void flush_object(struct mount *mount, struct pending *p)
{
	struct known *known = rxafs_own_data(p->object);
	fuse_ino_t node = object_node(mount, p->object);

	if (p->what & RXAFS_CHANGED_DATA && !known->is_directory)
		flush_pages(mount, known, node);
	if (p->what & RXAFS_CHANGED_NAMES)
		forget_names(mount, known, p->object, node);
}

static void do_work(struct mount *mount, struct work *work)
{
	struct known *known = rxafs_own_data(work->object);

	if (work->pending) {
		/* Changes that are told from now on have a pending of their own. */
		atomic_fetch_or(&work->pending->what, atomic_exchange(&known->waiting, 0));
		flush_object(mount, work->pending);
	} else {
		for (struct given *g = work->names; g; g = g->link)
			expire_name(mount, object_node(mount, work->object), g);
	}
}

static void free_work(struct work *work)
{
	rxafs_release(work->object);
	free_names(work->names);
	free(work);
}

static void *flush_loop(void *arg);

/* With the lock: another thread, if there is work that may begin. */
static void wake_flusher(struct mount *mount, struct flusher *f)
{
	if (!lanes_ready(&f->lanes))
		return;
	if (f->idle)
		pthread_cond_signal(&f->some);
	else if (!f->ending && f->count < FLUSHERS &&
		 !pthread_create(&f->threads[f->count], NULL, flush_loop, mount))
		f->count++;
}

/* With the lock. */
static void queue_due_work(struct flusher *f)
{
	while (f->later && (f->ending || f->later->due <= monotonic_ns())) {
		struct work *work = f->later;

		if (!lanes_add(&f->lanes, &work->server, &work->item))
			return;
		f->later = work->next;
		if (!f->later)
			f->last_later = &f->later;
	}
}

/* With the lock. NULL: the end. */
static struct work *take_flush_work(struct mount *mount, struct flusher *f)
{
	for (;;) {
		struct work *work;

		queue_due_work(f);
		work = (struct work *)lanes_take(&f->lanes, f->ending);
		if (work) {
			/* This one may be long. */
			wake_flusher(mount, f);
			return work;
		}
		if (f->ending)
			return NULL;
		f->idle++;
		if (f->later)
			monotonic_wait(&f->some, &f->lock, f->later->due);
		else
			pthread_cond_wait(&f->some, &f->lock);
		f->idle--;
	}
}

static void *flush_loop(void *arg)
{
	struct mount *mount = arg;
	struct flusher *f = mount->flusher;
	struct work *work;

	pthread_mutex_lock(&f->lock);
	while ((work = take_flush_work(mount, f))) {
		struct lane *lane = work->item.lane;
		struct pending *p = work->pending;
		uint64_t started = work->item.started;
		bool needed = !f->ending && (!p || p->at);

		pthread_mutex_unlock(&f->lock);
		if (needed)
			do_work(mount, work);
		free_work(work);
		pthread_mutex_lock(&f->lock);
		lanes_done(&f->lanes, lane, started);
		if (p) {
			end_pending(f, p);
			put_pending(f, p);
		}
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* With the lock. False: no memory. */
static bool queue_flush(struct mount *mount, struct flusher *f, struct pending *p)
{
	struct work *work = malloc(sizeof *work);

	if (!work)
		return false;
	*work = (struct work){.object = p->object, .server = p->server, .pending = p};
	if (!lanes_add(&f->lanes, &work->server, &work->item)) {
		free(work);
		return false;
	}
	rxafs_hold(p->object);
	p->references++;
	p->attempts++;
	wake_flusher(mount, f);
	return true;
}

/* With the lock. */
static struct pending *list_pending(struct flusher *f, rxafs_object *object,
				    const struct rxafs_awaited *server, unsigned what)
{
	struct pending *p = malloc(sizeof *p);

	if (!p)
		return NULL;
	*p = (struct pending){.at = f->last,
			      .object = rxafs_hold(object),
			      .server = *server,
			      .references = 1,
			      .what = what,
			      .number = ++f->number,
			      .since = monotonic_ns()};
	*f->last = p;
	f->last = &p->next;
	return p;
}

/* -- attributes --------------------------------------------------------------------------- */

/* Waits for nothing but the kernel's own short locks, so an operation may do it. */
static int expire_attributes(struct mount *mount, struct known *known, fuse_ino_t node)
{
	uint64_t changes = atomic_load(&known->changes);
	int result;

	atomic_store(&known->given, false);
	/* A negative offset leaves the pages alone. */
	result = fuse_lowlevel_notify_inval_inode(mount->session, node, -1, 0);
	atomic_store(&known->expired, changes);
	return result;
}

void flusher_refresh(struct mount *mount, rxafs_object *object)
{
	struct known *known = rxafs_own_data(object);

	if (known && atomic_load(&known->given) &&
	    atomic_load(&known->expired) != atomic_load(&known->changes))
		expire_attributes(mount, known, object_node(mount, object));
}

/* An answer that has just given the object to the kernel may not have arrived yet. */
static void expire_object(struct mount *mount, rxafs_object *object)
{
	struct known *known = rxafs_own_data(object);
	fuse_ino_t node = object_node(mount, object);
	struct timespec pause = {.tv_nsec = NS_PER_MS};

	atomic_store(&known->expiring, false);
	/* Attributes of before a change are not given after it. */
	if (!atomic_load(&known->given))
		return;
	let_answers_arrive(known);
	for (unsigned tries = 0;
	     expire_attributes(mount, known, node) == -ENOENT && tries < TAKEN_TRIES &&
	     monotonic_ns() < atomic_load(&known->given_at) + TAKEN_NS;
	     tries++) {
		nanosleep(&pause, NULL);
		pause.tv_nsec *= 2;
	}
}

static void *expire_loop(void *arg)
{
	struct mount *mount = arg;
	struct flusher *f = mount->flusher;
	uint64_t sweep = monotonic_ns() + SWEEP_NS;

	pthread_mutex_lock(&f->lock);
	while (!f->ending || f->expiring) {
		struct work *work = f->expiring;
		bool ending = f->ending;

		if (!ending && monotonic_ns() > sweep) {
			pthread_mutex_unlock(&f->lock);
			pages_sweep(mount);
			sweep = monotonic_ns() + SWEEP_NS;
			pthread_mutex_lock(&f->lock);
			continue;
		}
		if (!work) {
			monotonic_wait(&f->stale, &f->lock, sweep);
			continue;
		}
		f->expiring = work->next;
		if (!f->expiring)
			f->last_expiring = &f->expiring;
		pthread_mutex_unlock(&f->lock);
		if (!ending)
			expire_object(mount, work->object);
		free_work(work);
		pthread_mutex_lock(&f->lock);
		f->expired++;
		pthread_cond_broadcast(&f->done);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* With the lock. */
static void queue_expiry(struct flusher *f, struct known *known, rxafs_object *object)
{
	struct work *work;

	if (atomic_exchange(&known->expiring, true))
		return;
	work = malloc(sizeof *work);
	if (!work) {
		atomic_store(&known->expiring, false);
		return;
	}
	*work = (struct work){.object = rxafs_hold(object)};
	*f->last_expiring = work;
	f->last_expiring = &work->next;
	f->expire++;
	pthread_cond_signal(&f->stale);
}

/* -- hooks -------------------------------------------------------------------------------- */

/* What has to be done about a change. */
static unsigned take_change(struct known *known, unsigned what)
{
	unsigned needed = what & RXAFS_CHANGED_NAMES;

	pthread_mutex_lock(&known->lock);
	if (what & RXAFS_CHANGED_NAMES)
		known->name_changes++;
	atomic_fetch_add(&known->changes, 1);
	/* Reads that are not answered yet are done again. */
	if (what & RXAFS_CHANGED_DATA && known->oldest != UINT64_MAX)
		needed |= RXAFS_CHANGED_DATA;
	pthread_mutex_unlock(&known->lock);
	return needed;
}

void flusher_changed(void *arg, rxafs_object *object, unsigned what)
{
	struct mount *mount = arg;
	struct flusher *f = mount->flusher;
	struct known *known = f ? rxafs_own_data(object) : NULL;
	struct rxafs_awaited server;
	struct pending *p;
	unsigned needed;

	/* What the kernel does not know it need not forget. */
	if (!known)
		return;
	server = rxafs_awaited_of(object);
	needed = take_change(known, what);
	pthread_mutex_lock(&f->lock);
	if (what & RXAFS_CHANGED_STATUS && !f->ending)
		queue_expiry(f, known, object);
	if (needed && !f->ending && !atomic_fetch_or(&known->waiting, needed)) {
		p = list_pending(f, object, &server, needed);
		if (!p || !queue_flush(mount, f, p)) {
			atomic_store(&known->waiting, 0);
			if (p)
				end_pending(f, p);
		}
	}
	pthread_mutex_unlock(&f->lock);
}

/* Until when a server waits for it. */
static uint64_t patience_with(const struct mount *mount, const struct pending *p)
{
	const struct known *known = rxafs_own_data(p->object);
	bool blocked = atomic_load(&known->unanswered) ||
		       (p->what & RXAFS_CHANGED_NAMES && atomic_load(&mount->changing));

	return p->since + (blocked ? BLOCKED_NS : SETTLE_NS);
}

/* Names are in the hands of the first attempt. */
static bool may_try_again(const struct pending *p)
{
	const struct known *known = rxafs_own_data(p->object);

	return p->what & RXAFS_CHANGED_DATA && !known->is_directory && p->attempts < ATTEMPTS_MOST;
}

/* With the lock: whether it is worth to wait for changes up to a number. Those that take long are begun once more. */
static bool has_hope(struct mount *mount, struct flusher *f, uint64_t goal)
{
	uint64_t now = monotonic_ns();
	bool hope = false;

	for (struct pending *p = f->first; p && p->number <= goal; p = p->next) {
		hope = hope || now < patience_with(mount, p);
		if (may_try_again(p) && now > p->since + p->attempts * ATTEMPT_NS)
			queue_flush(mount, f, p);
	}
	return hope;
}

void flusher_settle(void *arg)
{
	struct mount *mount = arg;
	struct flusher *f = mount->flusher;
	uint64_t until = monotonic_ns() + SETTLE_NS, expire, goal;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	goal = f->number;
	expire = f->expire;
	while (f->expired < expire && !f->ending)
		if (monotonic_wait(&f->done, &f->lock, until) == ETIMEDOUT)
			break;
	while (f->first && f->first->number <= goal && !f->ending && has_hope(mount, f, goal))
		monotonic_wait(&f->done, &f->lock, monotonic_ns() + ATTEMPT_NS);
	pthread_mutex_unlock(&f->lock);
}

/* With the lock. */
static bool has_pending(const struct flusher *f, const rxafs_object *object)
{
	const struct pending *p = f->first;

	while (p && p->object != object)
		p = p->next;
	return p != NULL;
}

void flusher_await(struct mount *mount, rxafs_object *object)
{
	struct flusher *f = mount->flusher;
	uint64_t until = monotonic_ns() + SETTLE_NS, expire;

	pthread_mutex_lock(&f->lock);
	expire = f->expire;
	while ((f->expired < expire || has_pending(f, object)) && !f->ending)
		if (monotonic_wait(&f->done, &f->lock, until) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&f->lock);
}

int flusher_start(struct mount *mount)
{
	struct flusher *f = calloc(1, sizeof *f);

	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	monotonic_cond_init(&f->done);
	monotonic_cond_init(&f->some);
	monotonic_cond_init(&f->stale);
	f->last_later = &f->later;
	f->last = &f->first;
	f->lanes.most = FLUSHERS;
	f->last_expiring = &f->expiring;
	mount->flusher = f;
	if (pages_start(mount))
		return -ENOMEM;
	if (pthread_create(&f->threads[0], NULL, flush_loop, mount))
		return -EAGAIN;
	f->count = 1;
	if (pthread_create(&f->expirer, NULL, expire_loop, mount))
		return -EAGAIN;
	f->has_expirer = true;
	return 0;
}

void flusher_stop(struct mount *mount)
{
	struct flusher *f = mount->flusher;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->ending = true;
	pthread_cond_broadcast(&f->some);
	pthread_cond_broadcast(&f->done);
	pthread_cond_broadcast(&f->stale);
	pthread_mutex_unlock(&f->lock);
	if (f->has_expirer)
		pthread_join(f->expirer, NULL);
	for (unsigned i = 0; i < f->count; i++)
		pthread_join(f->threads[i], NULL);
}

void flusher_free(struct mount *mount)
{
	struct flusher *f = mount->flusher;

	if (!f)
		return;
	mount->flusher = NULL;
	lanes_free(&f->lanes);
	pages_free(mount);
	pthread_cond_destroy(&f->some);
	pthread_cond_destroy(&f->stale);
	pthread_cond_destroy(&f->done);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
