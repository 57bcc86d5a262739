/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches. A look compares what is there with what was seen before. The next look comes when a promise was broken or has ended, not
 * while events of the last one are queued.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/object.h>
#include <rxafs/watch.h>

#include "client/fs/events.h"
#include "client/fs/operate.h"
#include "client/fs/listeners.h"
#include "common/clock.h"
#include "common/held.h"
#include "common/sized.h"

#define LOOK_LIMIT_NS  (60 * (uint64_t)NS_PER_S)
#define LOOK_PAUSE_NS  (10 * (uint64_t)NS_PER_MS) /* after one that found something */
#define LOOK_POLL_NS   (5 * (uint64_t)NS_PER_S)	  /* without a promise */
#define LOOK_RETRY_NS  ((uint64_t)NS_PER_S)	  /* after a failure; doubled up to: */
#define LOOK_RETRY_MOST 5

/* What makes a difference. */
struct facts {
	uint64_t version, size;
	int64_t modified;
	uint32_t mode, owner, group, rights;
	int error;
};

struct seen {
	struct rxafs_fid fid;
	struct facts facts;
	struct fs_listener listener;
	char name[];
};

struct view {
	struct facts self;
	struct seen **seen; /* by name */
	size_t count, room;
	uint64_t valid_ns; /* how long the promises hold */
};

enum look {
	IDLE,
	QUEUED, /* for a thread */
	LOOKING
};

/* Counted: by the program, and by the executor. The queue's lock covers what changes. */
struct rxafs_watch {
	rxafs_watch *next, **at; /* of the queue */
	rxafs_queue *queue;
	rxafs_object *object; /* a reference */
	rxafs_user *user;     /* a reference, or NULL */
	void *arg;
	bool attributes;
	struct cl_cancel *cancel;
	struct fs_listener listener, above;
	struct view view; /* of the look that is in progress, else of the lock */
	unsigned references;
	enum look look;
	atomic_bool dirty;
	atomic_bool doubtful; /* it may have been removed */
	bool ended, gone;
	unsigned failures; /* since it was seen */
	unsigned queued;   /* events */
	uint64_t due, rests_until;
};

/* -- listeners ------------------------------------------------------------------------------------ */

static void note_change_of(struct fs_listener *listener)
{
	rxafs_watch *watch = listener->arg;
	rxafs_queue *queue = watch->queue;

	if (listener == &watch->above)
		atomic_store(&watch->doubtful, true);
	if (atomic_exchange(&watch->dirty, true))
		return;
	pthread_mutex_lock(&queue->lock);
	fs_wake_keeper(queue);
	pthread_mutex_unlock(&queue->lock);
}

static void watch_vnode(rxafs_watch *watch, struct fs_listener *listener, struct fs_vnode *v)
{
	listener->changed = note_change_of;
	listener->arg = watch;
	if (v)
		fs_add_listener(listener, v);
}

/* -- what is there now ----------------------------------------------------------------------------- */

static void free_view(struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		fs_drop_listener(&view->seen[i]->listener);
		free(view->seen[i]);
	}
	free(view->seen);
	*view = (struct view){0};
}

static void note_facts(struct facts *facts, const struct rxafs_attributes *a)
{
	*facts = (struct facts){.version = a->version,
				.size = (uint64_t)a->stat.st_size,
				.modified = a->stat.st_mtim.tv_sec,
				.mode = a->stat.st_mode,
				.owner = a->stat.st_uid,
				.group = a->stat.st_gid};
}

static struct seen *add_seen(struct view *view, const struct rxafs_entry *entry)
{
	size_t length = strlen(entry->name) + 1;
	struct seen *seen;

	if (view->count == view->room) {
		size_t room = view->room ? 2 * view->room : 32;
		struct seen **more = realloc(view->seen, room * sizeof *more);

		if (!more)
			return NULL;
		view->seen = more;
		view->room = room;
	}
	seen = calloc(1, sizeof *seen + length);
	if (!seen)
		return NULL;
	memcpy(seen->name, entry->name, length);
	seen->fid = entry->fid;
	view->seen[view->count++] = seen;
	return seen;
}

/* With the listener first, then the attributes: so a change is either in them or told. */
static int see_entry(rxafs_watch *watch, struct rxafs_request *request, struct view *view,
		     const struct rxafs_entry *entry, rxafs_object *object)
{
	struct seen *seen = add_seen(view, entry);
	struct rxafs_attributes attributes;
	struct fs_vnode *v;

	if (!seen)
		return -ENOMEM;
	if (!watch->attributes)
		return 0;
	seen->facts.error = entry->error;
	if (!object)
		return 0;
	v = fs_entered(object);
	watch_vnode(watch, &seen->listener, v ? v : object->vnode);
	seen->facts.error = rxafs_getattr(object, request, &attributes);
	if (seen->facts.error)
		return 0;
	note_facts(&seen->facts, &attributes);
	if (attributes.valid_ns < view->valid_ns)
		view->valid_ns = attributes.valid_ns;
	return 0;
}

static int compare_seen(const void *a, const void *b)
{
	const struct seen *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int see_entries(rxafs_watch *watch, struct rxafs_request *request, struct view *view)
{
	struct rxafs_attributes attributes;
	rxafs_object *object = NULL;
	struct rxafs_entry entry;
	rxafs_listing *listing;
	int result = rxafs_open_listing(watch->object, request, &listing);

	if (result)
		return result;
	while ((result = rxafs_read_listing(listing, request, &entry,
					    watch->attributes ? &object : NULL, &attributes)) ==
	       1) {
		result = see_entry(watch, request, view, &entry, object);
		if (object)
			rxafs_release(object);
		object = NULL;
		if (result)
			break;
	}
	rxafs_close_listing(listing);
	return result;
}

/*
 * A server tells nobody of the end of an object, only of the change of the directory that it was in. So that one is watched as
 * well.
 */
static void watch_above(rxafs_watch *watch, struct rxafs_request *request, struct fs_vnode *v,
			const struct cl_status *status)
{
	struct rxafs_fid fid = v->fid;
	struct cl_status known;
	struct fs_vnode *above = watch->above.vnode;

	fid.vnode = status->parent_vnode;
	fid.unique = status->parent_unique;
	if (!fid.vnode || rxafs_fid_same(&fid, &v->fid))
		return;
	if (!above || !rxafs_fid_same(&fid, &above->fid)) {
		fs_drop_listener(&watch->above);
		above = fs_get_vnode(v->client, v->volume, &fid);
		if (!above)
			return;
		watch_vnode(watch, &watch->above, above);
		fs_put_vnode(above);
	}
	/* For the promise. */
	fs_status(above, request, &known);
}

/* Names and sizes of a directory itself change with its entries. */
static int see_self(rxafs_watch *watch, struct rxafs_request *request, struct view *view)
{
	struct rxafs_attributes attributes;
	struct cl_status status;
	struct fs_vnode *v = NULL;
	int result = 0;

	if (watch->object->what != FS_ROOT)
		result = fs_enter(watch->object, request, &v);
	if (result)
		return result;
	if (!watch->listener.vnode)
		watch_vnode(watch, &watch->listener, v);
	if (v && atomic_exchange(&watch->doubtful, false))
		cl_object_doubt(v->object);
	result = rxafs_getattr(watch->object, request, &attributes);
	if (result)
		return result;
	note_facts(&view->self, &attributes);
	view->valid_ns = attributes.valid_ns;
	if (watch->object->kind == RXAFS_DIRECTORY)
		view->self.version = view->self.size = view->self.modified = 0;
	if (v)
		result = fs_status(v, request, &status);
	if (v && !result)
		result = fs_governing_rights(v, &status, request, &view->self.rights);
	if (v && !result)
		watch_above(watch, request, v, &status);
	return result;
}

/* The state now. On failure *view is empty. */
static int take_view(rxafs_watch *watch, struct rxafs_request *request, struct view *view)
{
	int result = see_self(watch, request, view);

	if (!result && watch->object->kind == RXAFS_DIRECTORY)
		result = see_entries(watch, request, view);
	if (result)
		free_view(view);
	else if (view->count)
		qsort(view->seen, view->count, sizeof view->seen[0], compare_seen);
	return result;
}

/* -- what has changed ------------------------------------------------------------------------------- */

struct news {
	rxafs_watch *watch;
	struct fs_event *first, **last;
	unsigned count;
	bool no_memory;
};

static struct rxafs_event *add_news(struct news *news, enum rxafs_event_kind kind)
{
	struct fs_event *event = calloc(1, sizeof *event);

	if (!event) {
		news->no_memory = true;
		return NULL;
	}
	event->event = (struct rxafs_event){
		.kind = kind, .arg = news->watch->arg, .watch = news->watch};
	*news->last = event;
	news->last = &event->next;
	news->count++;
	return &event->event;
}

static void tell_of_entry(struct news *news, enum rxafs_event_kind kind, const struct seen *seen)
{
	struct rxafs_event *event = add_news(news, kind);

	if (!event)
		return;
	event->fid = seen->fid;
	strncpy(event->name, seen->name, sizeof event->name - 1);
}

static bool facts_same(const struct facts *a, const struct facts *b)
{
	return a->version == b->version && a->size == b->size && a->modified == b->modified &&
	       a->mode == b->mode && a->owner == b->owner && a->group == b->group &&
	       a->rights == b->rights && a->error == b->error;
}

/* The entries of `from` that `in` does not have under their names. */
static void tell_of_missing(struct news *news, enum rxafs_event_kind kind, const struct view *from,
			    const struct view *in)
{
	size_t at = 0;

	for (size_t i = 0; i < from->count; i++) {
		const struct seen *seen = from->seen[i];

		while (at < in->count && strcmp(in->seen[at]->name, seen->name) < 0)
			at++;
		if (at == in->count || strcmp(in->seen[at]->name, seen->name) ||
		    !rxafs_fid_same(&in->seen[at]->fid, &seen->fid))
			tell_of_entry(news, kind, seen);
	}
}

static void tell_of_changed(struct news *news, const struct view *old, const struct view *now)
{
	size_t at = 0;

	for (size_t i = 0; i < now->count; i++) {
		const struct seen *seen = now->seen[i];

		while (at < old->count && strcmp(old->seen[at]->name, seen->name) < 0)
			at++;
		if (at < old->count && !strcmp(old->seen[at]->name, seen->name) &&
		    rxafs_fid_same(&old->seen[at]->fid, &seen->fid) &&
		    !facts_same(&old->seen[at]->facts, &seen->facts))
			tell_of_entry(news, RXAFS_EVENT_CHANGED, seen);
	}
}

static void compare_views(struct news *news, const struct view *old, const struct view *now)
{
	struct rxafs_event *event;

	if (!facts_same(&old->self, &now->self) &&
	    (event = add_news(news, RXAFS_EVENT_CHANGED)))
		event->fid = news->watch->object->fid;
	tell_of_missing(news, RXAFS_EVENT_REMOVED, old, now);
	tell_of_missing(news, RXAFS_EVENT_ADDED, now, old);
	tell_of_changed(news, old, now);
}

/* -- looks ----------------------------------------------------------------------------------------- */

/* When to look again, unless something is told. */
static uint64_t next_look(const rxafs_watch *watch)
{
	unsigned failures = watch->failures < LOOK_RETRY_MOST ? watch->failures : LOOK_RETRY_MOST;
	uint64_t now = cl_net_now();

	if (watch->gone)
		return UINT64_MAX;
	if (failures)
		return now + (LOOK_RETRY_NS << (failures - 1));
	return now + (watch->view.valid_ns ? watch->view.valid_ns : LOOK_POLL_NS);
}

static void judge_failure(rxafs_watch *watch, struct news *news, int result)
{
	struct rxafs_event *event;

	if (result == -ESTALE || result == -ENOENT) {
		watch->gone = true;
		add_news(news, RXAFS_EVENT_GONE);
	} else if (!watch->failures++) {
		event = add_news(news, RXAFS_EVENT_FAILED);
		if (event)
			event->error = result;
	}
}

/* Takes the news over, or drops them if nobody wants them any more. With the lock. */
static void publish_news(rxafs_watch *watch, struct news *news)
{
	struct fs_event *next;

	assert(mutex_is_held(&watch->queue->lock));
	for (struct fs_event *event = news->first; event; event = next) {
		next = event->next;
		if (watch->ended) {
			free(event);
			continue;
		}
		watch->queued++;
		fs_queue_event(watch->queue, event);
	}
}

/* Without memory for the news the old view stays, and the next look finds them again. */
static void drop_news(struct news *news)
{
	while (news->first) {
		struct fs_event *event = news->first;

		news->first = event->next;
		free(event);
	}
	news->last = &news->first;
}

static void look_again_at(rxafs_watch *watch, struct news *news)
{
	struct rxafs_request request = {.user = watch->user,
					.deadline = cl_net_now() + LOOK_LIMIT_NS,
					.cancel = watch->cancel};
	struct view now = {0};
	int result = take_view(watch, &request, &now);

	if (result) {
		judge_failure(watch, news, result);
		return;
	}
	if (watch->failures)
		add_news(news, RXAFS_EVENT_RECOVERED);
	compare_views(news, &watch->view, &now);
	if (news->no_memory) {
		drop_news(news);
		free_view(&now);
		watch->failures++;
		return;
	}
	watch->failures = 0;
	free_view(&watch->view);
	watch->view = now;
}

static void free_watch_memory(rxafs_watch *watch)
{
	fs_drop_listener(&watch->above);
	fs_drop_listener(&watch->listener);
	free_view(&watch->view);
	cl_cancel_free(watch->cancel);
	rxafs_put_user(watch->user);
	if (watch->object)
		rxafs_release(watch->object);
	fs_put_queue(watch->queue);
	free(watch);
}

/* Without the lock. */
static void put_watch(rxafs_watch *watch)
{
	rxafs_queue *queue = watch->queue;
	bool last;

	pthread_mutex_lock(&queue->lock);
	last = !--watch->references;
	pthread_mutex_unlock(&queue->lock);
	if (last)
		free_watch_memory(watch);
}

/* On a thread of the executor. */
static void run_look(void *arg)
{
	rxafs_watch *watch = arg;
	rxafs_queue *queue = watch->queue;
	struct news news = {.watch = watch};
	bool ended;

	news.last = &news.first;
	pthread_mutex_lock(&queue->lock);
	ended = watch->ended;
	if (!ended)
		watch->look = LOOKING;
	pthread_mutex_unlock(&queue->lock);
	if (!ended) {
		look_again_at(watch, &news);
		pthread_mutex_lock(&queue->lock);
		watch->look = IDLE;
		watch->due = next_look(watch);
		watch->rests_until = cl_net_now() + LOOK_PAUSE_NS;
		publish_news(watch, &news);
		fs_wake_keeper(queue);
		pthread_cond_broadcast(&queue->ended);
		pthread_mutex_unlock(&queue->lock);
	}
	put_watch(watch);
}

static void begin_look(rxafs_watch *watch)
{
	struct rxafs_awaited awaited = fs_awaited(watch->object);

	watch->look = QUEUED;
	watch->references++;
	atomic_store(&watch->dirty, false);
	if (!fs_execute(watch->queue->client->executor, awaited.cell, awaited.server, run_look,
			watch))
		return;
	watch->references--;
	watch->look = IDLE;
	watch->due = cl_net_now() + LOOK_RETRY_NS;
}

uint64_t fs_begin_looks(rxafs_queue *queue, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	assert(mutex_is_held(&queue->lock));
	for (rxafs_watch *w = queue->watches; w; w = w->next) {
		uint64_t at = atomic_load(&w->dirty) ? w->rests_until : w->due;

		if (w->look != IDLE || w->queued || w->gone)
			continue;
		if (at <= now) {
			begin_look(w);
			at = w->look == IDLE ? w->due : UINT64_MAX;
		}
		if (at < next)
			next = at;
	}
	return next;
}

void fs_note_taken(rxafs_watch *watch)
{
	assert(mutex_is_held(&watch->queue->lock) && watch->queued);
	if (!--watch->queued)
		fs_wake_keeper(watch->queue);
}

/* -- watches ------------------------------------------------------------------------------------------ */

static rxafs_watch *make_watch(rxafs_queue *queue, rxafs_object *object,
			       const struct rxafs_watch_options *options)
{
	rxafs_watch *watch = calloc(1, sizeof *watch);

	if (!watch)
		return NULL;
	fs_hold_queue(queue);
	watch->queue = queue;
	watch->object = rxafs_hold(object);
	watch->user = options->user;
	if (watch->user)
		atomic_fetch_add(&watch->user->references, 1);
	watch->attributes = options->attributes;
	watch->arg = options->arg;
	watch->references = 1;
	watch->cancel = cl_cancel_create();
	if (watch->cancel)
		return watch;
	free_watch_memory(watch);
	return NULL;
}

/* With the lock. */
static int list_watch(rxafs_watch *watch)
{
	rxafs_queue *queue = watch->queue;

	watch->due = next_look(watch);
	watch->next = queue->watches;
	watch->at = &queue->watches;
	if (watch->next)
		watch->next->at = &watch->next;
	queue->watches = watch;
	return fs_wake_keeper(queue);
}

static void unlist_watch(rxafs_watch *watch)
{
	*watch->at = watch->next;
	if (watch->next)
		watch->next->at = watch->at;
}

int rxafs_create_watch(rxafs_queue *queue, rxafs_object *object, struct rxafs_request *request,
		       const struct rxafs_watch_options *given, rxafs_watch **out)
{
	struct rxafs_watch_options options = {.size = sizeof options};
	struct rxafs_request first = *request;
	rxafs_watch *watch;
	int result;

	if (given && !sized_read(&options, sizeof options, given))
		return -EINVAL;
	watch = make_watch(queue, object, &options);
	if (!watch)
		return -ENOMEM;
	first.user = options.user;
	first.quick = first.moves = false;
	result = take_view(watch, &first, &watch->view);
	request->failure = first.failure;
	if (!result) {
		pthread_mutex_lock(&queue->lock);
		result = list_watch(watch);
		if (result)
			unlist_watch(watch);
		pthread_mutex_unlock(&queue->lock);
	}
	if (result) {
		put_watch(watch);
		return result;
	}
	*out = watch;
	return 0;
}

void rxafs_free_watch(rxafs_watch *watch)
{
	rxafs_queue *queue;

	if (!watch)
		return;
	queue = watch->queue;
	pthread_mutex_lock(&queue->lock);
	watch->ended = true;
	unlist_watch(watch);
	fs_drop_events(queue, watch);
	if (watch->look == LOOKING)
		cl_cancel_raise(watch->cancel);
	while (watch->look == LOOKING)
		pthread_cond_wait(&queue->ended, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
	put_watch(watch);
}
