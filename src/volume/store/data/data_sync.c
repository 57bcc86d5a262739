/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flushing of objects. Rounds follow each other; each takes all that is dirty when it begins. A
 * caller waits for a round that begins after its call, and shares it with all others that wait. It
 * is told of an error of the round before, too, if that had begun and not ended when it came.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/held.h"
#include "volume/store/data/data_private.h"

#define PLACES 64 /* directories that a round remembers to have flushed */
#define SINGLY 16 /* objects; more are flushed together with everything else of the disk */

struct data_round {
	unsigned callers;
	bool asked; /* a caller wants to know the result */
	bool ended;
	int result;
};

/* Directories that a pass has flushed, with their results. */
struct places {
	unsigned count;
	struct place {
		char path[DATA_PATH];
		int result;
	} place[PLACES];
};

/*
 * The flush of a file costs a write to the journal of the file system. For many files, one flush of
 * the whole file system is cheaper, whatever else it has to write. A file that was closed has no other.
 */
static bool prefers_whole_flush(const struct data_object *list)
{
	unsigned count = 0;

	for (; list && count <= SINGLY; list = list->next_flushed)
		if (list->flushed_data)
			count += list->flushed_closed ? SINGLY + 1 : 1;
	return count > SINGLY;
}

static bool is_resource_shortage(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM;
}

/* Flushes of an object take turns: a thread without an error knows of those of other threads. */
int data_flush(struct store_data *data, struct data_object *object)
{
	int rc;

	pthread_mutex_lock(&data->lock);
	while (object->syncing)
		pthread_cond_wait(&data->changed, &data->lock);
	object->syncing = true;
	pthread_mutex_unlock(&data->lock);
	rc = data->layer->ops->sync(object->file);
	pthread_mutex_lock(&data->lock);
	if (rc)
		data_fail(data, object, rc);
	object->syncing = false;
	pthread_cond_broadcast(&data->changed);
	pthread_mutex_unlock(&data->lock);
	return rc;
}

/* Unless another thread has it by now, beside us and the round. */
static void close_reopened_file(struct store_data *data, struct data_object *object)
{
	struct store_file *file = NULL, *other;

	pthread_mutex_lock(&data->lock);
	if (object->refs == 2) {
		file = object->file;
		object->file = NULL;
	}
	other = data_put(data, object);
	pthread_mutex_unlock(&data->lock);
	if (file)
		data->layer->ops->close(file);
	if (other)
		data->layer->ops->close(other);
}

/* It was closed. A new file learns of an error that no other has told. A removed object has no name to be opened by. */
static int flush_closed_object(struct store_data *data, struct data_object *object)
{
	struct data_object *same;
	bool removed;
	int rc;

	pthread_mutex_lock(&data->lock);
	removed = object->removed;
	pthread_mutex_unlock(&data->lock);
	rc = removed ? 0 : data_acquire(data, &object->owner, object->number, &same);
	if (rc || removed)
		return rc;
	rc = data_flush(data, same);
	close_reopened_file(data, same);
	return rc;
}

static int flush_listed_object(struct store_data *data, struct data_object *object)
{
	if (!object->flushed_closed)
		return data_flush(data, object);
	return flush_closed_object(data, object);
}

/* The error of a flush of everything may be that of another file, so each one is asked. */
static void flush_listed_data(struct store_data *data, struct data_object *list)
{
	bool together = prefers_whole_flush(list);

	if (together && !data->layer->ops->sync_all(data->layer))
		return;
	for (struct data_object *object = list; object; object = object->next_flushed)
		if (object->flushed_data)
			object->flushed = flush_listed_object(data, object);
}

static int flush_directory_once(struct store_data *data, struct places *places, const char *path)
{
	for (unsigned i = 0; i < places->count; i++)
		if (strcmp(places->place[i].path, path) == 0)
			return places->place[i].result;

	int rc = data->layer->ops->sync_dir(data->layer, path);
	struct place *place = &places->place[places->count < PLACES ? places->count++ : 0];

	memcpy(place->path, path, sizeof(place->path));
	place->result = rc;
	return rc;
}

static void flush_object_name(struct store_data *data, struct places *places,
			      struct data_object *object)
{
	char path[DATA_PATH] = "files/new";
	struct store_owner owner;

	/* A thread that opens the object sets it. */
	pthread_mutex_lock(&data->lock);
	owner = object->owner;
	pthread_mutex_unlock(&data->lock);
	if (object->flushed_settled)
		data_path_block(&owner, path);
	object->flushed = flush_directory_once(data, places, path);
}

/* Mark the objects whose names have to be flushed. True: there are some. */
static bool plan_name_flushes(struct store_data *data, struct data_object *list)
{
	bool some = false;

	assert(mutex_is_held(&data->lock));
	for (struct data_object *object = list; object; object = object->next_flushed) {
		while (object->busy)
			pthread_cond_wait(&data->changed, &data->lock);
		object->flushed_name =
			object->name_dirty && !object->removed && object->flushed == 0;
		object->flushed_settled = object->settled;
		some |= object->flushed_name;
	}
	return some;
}

/*
 * A name that stayed where it was is on stable storage now. An object without one is lost as
 * a whole, even if its writer has flushed the bytes.
 */
static void conclude_name_flushes(struct data_object *list)
{
	for (struct data_object *object = list; object; object = object->next_flushed) {
		if (!object->flushed_name)
			continue;
		if (object->flushed && !is_resource_shortage(object->flushed))
			atomic_store(&object->safe, 0);
		else if (!object->flushed && !object->busy &&
			 object->settled == object->flushed_settled)
			object->name_dirty = false;
	}
}

/* An object that gets its name meanwhile needs a second pass. */
static void flush_listed_names(struct store_data *data, struct data_object *list)
{
	pthread_mutex_lock(&data->lock);
	while (plan_name_flushes(data, list)) {
		struct places places;

		places.count = 0;
		pthread_mutex_unlock(&data->lock);
		for (struct data_object *object = list; object; object = object->next_flushed)
			if (object->flushed_name)
				flush_object_name(data, &places, object);
		pthread_mutex_lock(&data->lock);
		conclude_name_flushes(list);
	}
	pthread_mutex_unlock(&data->lock);
}

/* Take all dirty objects, with the references of the list. */
static struct data_object *take_dirty_list(struct store_data *data)
{
	struct data_object *list = data->dirty;

	assert(mutex_is_held(&data->lock));
	for (struct data_object *object = list; object; object = object->next_flushed) {
		object->next_flushed = object->next_dirty;
		object->flushed_end = object->end;
		object->flushed_data = object->unflushed;
		object->flushed_closed = object->closed;
		object->flushed_failed = atomic_load(&object->failed) != 0;
		object->flushed = 0;
		object->closed = false;
		object->unflushed = false;
		object->dirty = false;
	}
	data->dirty = NULL;
	data->dirty_count = 0;
	return list;
}

/* Nothing was lost: there was no descriptor or memory to begin with. */
static void requeue_dirty_object(struct store_data *data, struct data_object *object)
{
	object->unflushed |= object->flushed_data;
	object->closed |= object->flushed_closed && !object->file;
	if (object->dirty)
		return;
	object->dirty = true;
	data_hold(data, object);
	object->next_dirty = data->dirty;
	data->dirty = object;
	data->dirty_count++;
}

/* Apply the result of an object's flush to its readers and to the callers. */
static int conclude_object_flush(struct store_data *data, struct data_object *object)
{
	assert(mutex_is_held(&data->lock));
	/* Errors of a removed object do not matter. Its directory may be gone as well. */
	if (object->removed) {
		object->flushed_closed = false;
		return 0;
	}
	if (is_resource_shortage(object->flushed))
		requeue_dirty_object(data, object);
	else if (object->flushed)
		data_fail(data, object, object->flushed);
	else if (!atomic_load(&object->failed))
		atomic_store(&object->safe, object->flushed_end);
	object->flushed_closed = false;
	/* A writer that flushed its own bytes meanwhile may have been told that these are lost. */
	if (!object->flushed && !object->flushed_failed)
		return data_lost(object, object->flushed_end);
	return object->flushed;
}

static int flush_object_list(struct store_data *data, struct data_object *list)
{
	struct data_object *next;
	int result = 0;

	flush_listed_data(data, list);
	flush_listed_names(data, list);
	for (struct data_object *object = list; object; object = next) {
		struct store_file *file;
		int rc;

		next = object->next_flushed;
		pthread_mutex_lock(&data->lock);
		rc = conclude_object_flush(data, object);
		file = data_put(data, object);
		pthread_mutex_unlock(&data->lock);
		if (file)
			data->layer->ops->close(file);
		if (!result)
			result = rc;
	}
	return result;
}

/* Run the round that waits to begin. The lock is given up meanwhile. */
static void run_flush_round(struct store_data *data)
{
	struct data_round *round = data->next_round;
	struct data_object *list = take_dirty_list(data);
	int result = data->unreported;

	assert(mutex_is_held(&data->lock) && round && !data->flushing);
	data->next_round = NULL;
	data->round = round;
	data->flushing = true;
	data->unreported = 0;
	pthread_mutex_unlock(&data->lock);

	int rc = flush_object_list(data, list);

	pthread_mutex_lock(&data->lock);
	round->result = rc ? rc : result;
	data->failures += rc != 0;
	if (round->result && !round->asked)
		data->unreported = round->result;
	round->ended = true;
	data->flushing = false;
	pthread_cond_broadcast(&data->changed);
}

static int leave_flush_round(struct data_round *round)
{
	int result = round->result;

	assert(round->ended && round->callers > 0);
	if (--round->callers == 0)
		free(round);
	return result;
}

static int sync_objects(struct store_data *data, bool asks)
{
	struct data_round *round, *before;
	int result;

	pthread_mutex_lock(&data->lock);
	if (!data->next_round)
		data->next_round = calloc(1, sizeof(*data->next_round));
	round = data->next_round;
	if (!round) {
		pthread_mutex_unlock(&data->lock);
		return -ENOMEM;
	}
	round->callers++;
	round->asked |= asks;
	before = data->flushing ? data->round : NULL;
	if (before)
		before->callers++;
	while (!round->ended) {
		if (data->flushing)
			pthread_cond_wait(&data->changed, &data->lock);
		else
			run_flush_round(data);
	}
	result = leave_flush_round(round);
	if (before) {
		int earlier = leave_flush_round(before);

		result = result ? result : earlier;
	}
	pthread_mutex_unlock(&data->lock);
	return result;
}

struct each {
	struct store_data *data;
	int result;
};

static int sync_object_path(struct each *each, const char *path, const struct store_owner *owner,
			    uint64_t number)
{
	const struct store_layer_ops *ops = each->data->layer->ops;
	const struct store_lost lost = {.owner = *owner, .object = number};
	struct store_file *file;
	int rc = ops->open(each->data->layer, path, 0, &file);

	/* It may have been removed since. */
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = ops->sync(file);
	ops->close(file);
	if (!rc)
		return 0;
	each->result = rc;
	return data_set_lost(each->data, &lost, false);
}

static int sync_named_object(void *arg, const struct store_owner *owner, uint64_t number)
{
	char path[DATA_PATH];

	data_path_named(owner, number, path);
	return sync_object_path(arg, path, owner, number);
}

/* The owner of a new object is known when it is used. */
static int sync_new_object(void *arg, uint64_t number)
{
	char path[DATA_PATH];

	data_path_new(number, path);
	return sync_object_path(arg, path, &(struct store_owner){0}, number);
}

int store_data_sync_each(struct store_data *data)
{
	struct each each = {.data = data};
	int result = store_data_list_new(data, sync_new_object, &each);

	if (!result)
		result = store_data_list(data, sync_named_object, &each);
	return result ? result : each.result;
}

int store_data_sync(struct store_data *data)
{
	return sync_objects(data, true);
}

void data_sync_unasked(struct store_data *data)
{
	sync_objects(data, false);
}

uint64_t store_data_failures(struct store_data *data)
{
	uint64_t failures;

	pthread_mutex_lock(&data->lock);
	failures = data->failures;
	pthread_mutex_unlock(&data->lock);
	return failures;
}
