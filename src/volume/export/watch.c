/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread watches the tree for changes. */
#include "volume/export/object.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/held.h"
#include "common/htable.h"

#define SWEEP_MAX 256
#define MASK                                                                              \
	(IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | \
	 IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
#define NAMES_MASK \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

/* A watched directory, in two tables: by watch number and by vnode. */
struct watched {
	int wd;
	uint32_t vnode, unique;
	void *wd_chain, *vnode_chain;
};

struct export_watch {
	struct export *export;
	pthread_t thread;
	int inotify; /* -1: none */
	int stop_pipe[2];
	unsigned max;
	pthread_mutex_t lock; /* covers the tables and full */
	struct htable by_wd, by_vnode;
	bool full; /* the warning has been logged */
};

/* Both numbers are the server's own: clients do not choose them. */
static uint64_t hash_wd(const void *item, const uint64_t key[2])
{
	(void)key;
	return (uint64_t)((const struct watched *)item)->wd;
}

static uint64_t hash_vnode(const void *item, const uint64_t key[2])
{
	(void)key;
	return ((const struct watched *)item)->vnode / 2;
}

static struct watched *find_vnode(struct export_watch *watch, uint32_t vnode)
{
	struct watched *w = htable_first(&watch->by_vnode, vnode / 2);

	while (w && w->vnode != vnode)
		w = w->vnode_chain;
	return w;
}

static void remove_watched(struct export_watch *watch, struct watched *w)
{
	assert(mutex_is_held(&watch->lock));
	htable_remove(&watch->by_wd, w);
	htable_remove(&watch->by_vnode, w);
	free(w);
}

static struct watched *find_wd(struct export_watch *watch, int wd)
{
	struct watched *w = htable_first(&watch->by_wd, (uint64_t)wd);

	while (w && w->wd != wd)
		w = w->wd_chain;
	return w;
}

void export_watch_add(struct export_watch *watch, const struct export_record *record,
		      const char *path)
{
	bool self = record->kind == STORE_DIR;
	uint32_t vnode = self ? record->vnode : record->parent;
	uint32_t unique = self ? record->unique : record->parent_unique;
	struct export_layer *layer = watch->export->layer;
	char directory[EXPORT_PATH_MAX];
	struct watched *w;
	int wd;

	if (watch->inotify < 0 || !layer->ops->watch)
		return;
	pthread_mutex_lock(&watch->lock);
	w = find_vnode(watch, vnode);
	if (w && w->unique != unique) {
		inotify_rm_watch(watch->inotify, w->wd);
		remove_watched(watch, w);
		w = NULL;
	}
	if (!w && watch->by_wd.count < watch->max) {
		const char *end = self ? path + strlen(path) : strrchr(path, '/');
		size_t n = end ? (size_t)(end - path) : 0;

		memcpy(directory, path, n);
		directory[n] = 0;
		wd = layer->ops->watch(layer, directory, watch->inotify, MASK);
		w = wd < 0 ? NULL : find_wd(watch, wd);
		if (w) /* the same directory, under an older vnode */
			remove_watched(watch, w);
		w = wd < 0 ? NULL : calloc(1, sizeof(*w));
		if (w) {
			*w = (struct watched){.wd = wd, .vnode = vnode, .unique = unique};
			htable_add(&watch->by_wd, w);
			htable_add(&watch->by_vnode, w);
		} else if (wd == -ENOSPC && !watch->full) {
			watch->full = true;
			export_log_line(
				&watch->export->log, EXPORT_WARNING,
				"no more inotify watches: changes in other directories are "
				"noticed later; raise fs.inotify.max_user_watches (sysctl)");
		}
	}
	pthread_mutex_unlock(&watch->lock);
}

size_t export_watch_count(struct export_watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	size_t count = watch->by_wd.count;
	pthread_mutex_unlock(&watch->lock);
	return count;
}

/*
 * Check an object that a client holds a promise on. Others are checked when they are requested.
 */
static void check_held(struct export_watch *watch, const struct store_fid *fid)
{
	const struct export_hooks *hooks = &watch->export->hooks;

	if (hooks->is_promised && hooks->is_promised(hooks->arg, fid))
		export_check_object(watch->export, fid);
}

static void handle_event(struct export_watch *watch, const struct inotify_event *event)
{
	struct store_fid directory = {.volume = watch->export->id}, child;
	struct watched *w;

	if (event->mask & IN_Q_OVERFLOW) {
		export_forget_access(watch->export);
		return; /* the sweep finds the changes */
	}
	pthread_mutex_lock(&watch->lock);
	w = find_wd(watch, event->wd);
	if (w) {
		directory.vnode = w->vnode;
		directory.unique = w->unique;
		/* Moved away: another directory may take its path. */
		if (event->mask & IN_MOVE_SELF)
			inotify_rm_watch(watch->inotify, w->wd);
		if (event->mask & (IN_IGNORED | IN_MOVE_SELF))
			remove_watched(watch, w);
	}
	pthread_mutex_unlock(&watch->lock);
	if (!w)
		return;
	if (event->mask & (IN_ATTRIB | IN_MOVE_SELF | IN_MOVED_FROM | IN_MOVED_TO))
		export_forget_access(watch->export);
	/*
	 * The directory first, so that a renamed object is found under its new name and keeps its
	 * FID.
	 */
	if (!event->len || (event->mask & NAMES_MASK))
		check_held(watch, &directory);
	if (event->len && export_find_child(watch->export, &directory, event->name, &child) == 0)
		check_held(watch, &child);
}

static void read_events(struct export_watch *watch)
{
	_Alignas(struct inotify_event) char buffer[16384];
	const struct inotify_event *event, *before = NULL;
	ssize_t n = read(watch->inotify, buffer, sizeof(buffer));

	for (char *at = buffer; n > 0 && at < buffer + n; at += sizeof(*event) + event->len) {
		event = (const struct inotify_event *)(void *)at;
		/* Writing a file causes many equal events. */
		if (!before || before->wd != event->wd || before->mask != event->mask ||
		    before->len != event->len || memcmp(before->name, event->name, event->len))
			handle_event(watch, event);
		before = event;
	}
}

static void check_held_objects(struct export_watch *watch, size_t *cursor)
{
	const struct export_hooks *hooks = &watch->export->hooks;
	struct store_fid fids[SWEEP_MAX];
	size_t n = hooks->next_promised ? hooks->next_promised(hooks->arg, cursor, fids, SWEEP_MAX)
					: 0;

	for (size_t i = 0; i < n; i++)
		check_held(watch, &fids[i]);
}

static void *watch_main(void *arg)
{
	struct export_watch *watch = arg;
	uint64_t swept = monotonic_ns() / NS_PER_S;
	size_t cursor = 0;

	for (;;) {
		struct pollfd fds[2] = {
			{.fd = watch->stop_pipe[0], .events = POLLIN},
			{.fd = watch->inotify, .events = POLLIN},
		};

		/* poll() may fail for lack of memory; the sweep continues. */
		if (poll(fds, 2, 1000) < 0) {
			nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
			fds[0].revents = fds[1].revents = 0;
		}
		if (fds[0].revents)
			break;
		if (fds[1].revents)
			read_events(watch);
		if (monotonic_ns() / NS_PER_S != swept) {
			swept = monotonic_ns() / NS_PER_S;
			check_held_objects(watch, &cursor);
		}
	}
	return NULL;
}

static void free_watch(struct export_watch *watch)
{
	if (watch->inotify >= 0)
		close(watch->inotify);
	htable_fini(&watch->by_vnode, NULL);
	htable_fini(&watch->by_wd, free);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}

struct export_watch *export_watch_start(struct export *export, unsigned max)
{
	struct export_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->export = export;
	watch->max = max;
	pthread_mutex_init(&watch->lock, NULL);
	watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch->inotify < 0)
		export_log_line(&watch->export->log, EXPORT_WARNING,
				"no inotify (%s): changes are noticed later; raise "
				"fs.inotify.max_user_instances (sysctl)",
				strerror(errno));
	if (htable_init(&watch->by_wd, offsetof(struct watched, wd_chain), hash_wd, NULL, 0) &&
	    htable_init(&watch->by_vnode, offsetof(struct watched, vnode_chain), hash_vnode, NULL,
			0) &&
	    pipe2(watch->stop_pipe, O_CLOEXEC) == 0) {
		if (pthread_create(&watch->thread, NULL, watch_main, watch) == 0)
			return watch;
		close(watch->stop_pipe[0]);
		close(watch->stop_pipe[1]);
	}
	free_watch(watch);
	return NULL;
}

void export_watch_stop(struct export_watch *watch)
{
	if (!watch)
		return;
	close(watch->stop_pipe[1]);
	pthread_join(watch->thread, NULL);
	close(watch->stop_pipe[0]);
	free_watch(watch);
}
