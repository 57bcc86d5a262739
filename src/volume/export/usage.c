/* SPDX-License-Identifier: BSD-2-Clause */
/* Number and size of the objects in the tree, counted in the background on demand. */
#include "volume/export/object.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/background.h"

#define FRESH_NS (600 * (uint64_t)NS_PER_S)

/* A directory that has not been listed yet. */
struct pending {
	struct pending *next;
	char path[];
};

struct export_usage {
	struct export_layer *layer;
	struct background background; /* its lock covers the rest */
	pthread_cond_t counted;
	bool wanted;		 /* a count is wanted or in progress */
	bool known;		 /* a count has finished */
	uint64_t at;		 /* when, monotonic ns */
	struct export_used used; /* result of that count; during the first count the sums so far */
};

/* One count; used by its thread only. */
struct walk {
	struct export_usage *usage;
	struct pending *pending;
	const char *directory;
	struct export_used used;
};

static void push_unlisted_directory(struct walk *walk, const char *path)
{
	struct pending *p = malloc(sizeof(*p) + strlen(path) + 1);

	if (!p)
		return;
	strcpy(p->path, path);
	p->next = walk->pending;
	walk->pending = p;
}

static int count_one(void *arg, const char *name, size_t length, enum store_kind kind,
		     uint64_t inode)
{
	struct walk *walk = arg;
	struct export_usage *usage = walk->usage;
	char path[EXPORT_PATH_MAX];
	struct export_stat st;

	(void)kind, (void)inode;
	if (atomic_load(&usage->background.stop))
		return 1;
	if (snprintf(path, sizeof(path), "%s%s%.*s", walk->directory, *walk->directory ? "/" : "",
		     (int)length, name) >= (int)sizeof(path) ||
	    usage->layer->ops->stat_path(usage->layer, path, &st) || st.kind == EXPORT_OTHER)
		return 0;
	walk->used.objects++;
	walk->used.kib += st.kind == STORE_DIR ? 2 : st.size ? (st.size + 1023) / 1024 : 1;
	if (st.kind == STORE_DIR)
		push_unlisted_directory(walk, path);
	return 0;
}

static void count_all(struct export_usage *usage)
{
	struct walk walk = {.usage = usage, .used = {1, 2}};
	struct pending *p;

	push_unlisted_directory(&walk, "");
	while ((p = walk.pending)) {
		walk.pending = p->next;
		walk.directory = p->path;
		if (!atomic_load(&usage->background.stop))
			usage->layer->ops->list(usage->layer, p->path, count_one, &walk);
		free(p);
		pthread_mutex_lock(&usage->background.lock);
		if (!usage->known)
			usage->used = walk.used;
		pthread_mutex_unlock(&usage->background.lock);
	}
	pthread_mutex_lock(&usage->background.lock);
	assert(usage->wanted);
	usage->used = walk.used;
	usage->known = true;
	usage->at = monotonic_ns();
	usage->wanted = false;
	pthread_cond_broadcast(&usage->counted);
	pthread_mutex_unlock(&usage->background.lock);
}

static void *usage_main(void *arg)
{
	struct export_usage *usage = arg;

	pthread_mutex_lock(&usage->background.lock);
	while (!usage->background.stop) {
		if (!usage->wanted) {
			sleep_in_background(&usage->background, UINT64_MAX);
			continue;
		}
		pthread_mutex_unlock(&usage->background.lock);
		count_all(usage);
		pthread_mutex_lock(&usage->background.lock);
	}
	pthread_mutex_unlock(&usage->background.lock);
	return NULL;
}

struct export_usage *export_usage_start(struct export_layer *layer)
{
	struct export_usage *usage = calloc(1, sizeof(*usage));

	if (!usage)
		return NULL;
	usage->layer = layer;
	monotonic_cond_init(&usage->counted);
	if (start_background(&usage->background, usage_main, usage) == 0)
		return usage;
	pthread_cond_destroy(&usage->counted);
	free(usage);
	return NULL;
}

void export_usage_stop(struct export_usage *usage)
{
	if (!usage)
		return;
	stop_background(&usage->background);
	pthread_cond_destroy(&usage->counted);
	free(usage);
}

void export_usage_get(struct export_usage *usage, unsigned wait_ms, struct export_used *used)
{
	uint64_t until = monotonic_ns() + (uint64_t)wait_ms * NS_PER_MS;
	int rc = 0;

	*used = (struct export_used){0};
	if (!usage)
		return;
	pthread_mutex_lock(&usage->background.lock);
	if (!usage->known || monotonic_ns() - usage->at >= FRESH_NS) {
		usage->wanted = true;
		wake_background(&usage->background);
		while (usage->wanted && rc == 0 && wait_ms)
			rc = monotonic_wait(&usage->counted, &usage->background.lock, until);
	}
	*used = usage->used;
	pthread_mutex_unlock(&usage->background.lock);
}
