/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that a store is sound: the database, and the agreement of database and files. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "volume/store/maint/checking.h"

#define LOOK_NS (50ull * NS_PER_MS)

void checking_fault(struct checking *checking, const char *format, ...)
{
	char line[STORE_MESSAGE_MAX];
	va_list args;

	if (checking_stopped(checking))
		return;
	checking->faults++;
	if (!checking->checker->each)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	checking->checker->each(checking->checker->arg, line);
}

#define SOME 256

void checking_progress(const struct checking *checking)
{
	const struct store_checker *checker = checking->checker;

	if (checker->progress && checking->looked_at % SOME == 0)
		checker->progress(checker->arg, checking->looked_at, checking->all);
}

/* -- sets -- */

int number_set_add(struct number_set *set, uint64_t number)
{
	assert(set->count <= set->room);
	if (set->count == set->room) {
		size_t room = set->room ? 2 * set->room : 1024;
		uint64_t *more = realloc(set->number, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		set->number = more;
		set->room = room;
	}
	set->number[set->count++] = number;
	set->sorted = false;
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

bool number_set_has(struct number_set *set, uint64_t number)
{
	if (!set->sorted && set->count)
		qsort(set->number, set->count, sizeof(*set->number), compare_numbers);
	set->sorted = true;
	return set->count &&
	       bsearch(&number, set->number, set->count, sizeof(*set->number), compare_numbers);
}

/* -- all rows of all groups: their records and references -- */

static int note_row_references(void *arg, const struct vnode_key *key,
			       const struct version *version)
{
	struct checking *checking = arg;
	int result = checking_stopped(checking);

	if (result)
		return result;
	if (!version) {
		checking_fault(checking, "volume %u: the record of vnode %u (epoch %u) is damaged",
			       key->group, key->vnode, key->epoch);
		return 0;
	}
	if (version->v.small)
		result = number_set_add(&checking->smalls, version->v.small);
	for (uint32_t i = 0; i < version->content.count && !result; i++)
		result = number_set_add(&checking->objects, version->content.extent[i].object);
	if (!result && version->content.tail_object)
		result = number_set_add(&checking->objects, version->content.tail_object);
	return result;
}

struct group_search {
	uint32_t group;
	bool found;
};

static int match_group(void *arg, const struct volrec *volume, bool damaged)
{
	struct group_search *search = arg;

	if (volume->id == search->group || (!damaged && volume->group == search->group))
		search->found = true;
	return 0;
}

static int check_group(struct checking *checking, uint32_t group)
{
	struct group_search search = {.group = group};
	struct vnode_key from = {.group = group};
	bool removed;
	int result = db_group_rows(checking->db, &from, note_row_references, checking);

	if (!result)
		result = db_volumes(checking->db, match_group, &search);
	if (!result)
		result = db_prune_has(checking->db, group, &removed);
	if (!result && !search.found && !removed)
		checking_fault(checking, "group %u has vnodes but no volume", group);
	return result;
}

static int check_groups(struct checking *checking)
{
	uint32_t group = 0;
	int result;

	while (!(result = db_group_next(checking->db, &group))) {
		result = check_group(checking, group);
		if (result)
			return result;
	}
	return result == -ENOENT ? 0 : result;
}

/* -- contents that nothing refers to -- */

static int check_small_referenced(void *arg, uint64_t id)
{
	struct checking *checking = arg;

	if (!number_set_has(&checking->smalls, id))
		checking_fault(checking, "the contents %llx belong to no vnode",
			       (unsigned long long)id);
	return checking_stopped(checking);
}

/* Objects that the background will remove belong to no version. */
static int add_doomed(void *arg, const struct db_doomed *doomed)
{
	struct checking *checking = arg;
	int result = 0;

	if (!doomed->count)
		checking_fault(checking, "a list of objects that belong to no version is damaged");
	for (unsigned i = 0; i < doomed->count && !result; i++)
		result = number_set_add(&checking->objects, doomed->object[i]);
	return result;
}

static int check_object_referenced(void *arg, const struct db_object *object)
{
	struct checking *checking = arg;

	if (!object->dead && !number_set_has(&checking->objects, object->id))
		checking_fault(
			checking, "object %llx of vnode %u of volume %u belongs to no version",
			(unsigned long long)object->id, object->owner.vnode, object->owner.group);
	return checking_stopped(checking);
}

static int report_unowned_extents(void *arg, uint32_t group, uint32_t vnode)
{
	checking_fault(arg, "volume %u: the list of extents of vnode %u belongs to no version",
		       group, vnode);
	return 0;
}

/* A file without a row in the present database would never be removed. */
static int check_file_known(void *arg, const struct store_owner *owner, uint64_t id)
{
	struct checking *checking = arg;
	struct db_object object;
	int result = db_object_get(checking->fresh, id, &object);

	if (result == -ENOENT && !store_data_stat(checking->core->data, owner, id, &(uint64_t){0}))
		checking_fault(checking,
			       "the file of object %llx of vnode %u of volume %u is unknown",
			       (unsigned long long)id, owner->vnode, owner->group);
	return result == -ENOENT ? checking_stopped(checking) : result;
}

/* -- volumes -- */

static int check_one_volume(void *arg, const struct volrec *volume, bool damaged)
{
	struct checking *checking = arg;

	if (!damaged)
		return checkview(checking, volume);
	checking_fault(checking, "volume %u: its record is damaged", volume->id);
	return 0;
}

static int report_damaged_volume(void *arg, const struct volrec *volume, bool damaged)
{
	if (damaged)
		checking_fault(arg, "volume %u: its record is damaged", volume->id);
	return 0;
}

static int count_objects(void *arg, const struct volrec *volume, bool damaged)
{
	struct checking *checking = arg;

	checking->all += damaged ? 0 : volume->files;
	return 0;
}

static void report_database_fault(void *arg, const char *line)
{
	checking_fault(arg, "the database: %s", line);
}

static int check_whole_store(struct checking *checking, bool fast)
{
	int result = db_volumes(checking->db, count_objects, checking);

	if (!result) {
		checking_progress(checking);
		result = db_integrity(checking->db, fast, report_database_fault, checking);
	}
	if (!result)
		result = checking_stopped(checking);
	if (result || fast)
		return result ? result : db_volumes(checking->db, report_damaged_volume, checking);
	result = db_volumes(checking->db, check_one_volume, checking);
	if (!result)
		result = check_groups(checking);
	if (!result)
		result = db_doomed_each(checking->db, add_doomed, checking);
	if (!result)
		result = db_smalls(checking->db, check_small_referenced, checking);
	if (!result)
		result = db_objects(checking->db, false, check_object_referenced, checking);
	if (!result)
		result = db_pages_lost(checking->db, report_unowned_extents, checking);
	if (!result)
		result = store_data_list(checking->core->data, check_file_known, checking);
	return result;
}

/* -- stopping -- */

/* Interrupts the database repeatedly, since an interrupt between two statements has no effect. */
static void *watch_for_stop(void *arg)
{
	struct checking *checking = arg;
	const struct store_checker *checker = checking->checker;

	pthread_mutex_lock(&checking->lock);
	do {
		if (checker->stopped(checker->arg))
			atomic_store(&checking->stop, true);
		if (checking_stopped(checking))
			db_interrupt(checking->db);
		if (!checking->ended)
			monotonic_wait(&checking->wake, &checking->lock, monotonic_ns() + LOOK_NS);
	} while (!checking->ended);
	pthread_mutex_unlock(&checking->lock);
	return NULL;
}

/* The check, and beside it the thread that asks whether to stop. */
static int check_with_watcher(struct checking *checking)
{
	bool fast = checking->checker->fast;
	pthread_t watcher;
	int result;

	if (!checking->checker->stopped)
		return check_whole_store(checking, fast);
	result = pthread_create(&watcher, NULL, watch_for_stop, checking);
	if (result)
		return -result;
	result = check_whole_store(checking, fast);
	pthread_mutex_lock(&checking->lock);
	checking->ended = true;
	pthread_cond_signal(&checking->wake);
	pthread_mutex_unlock(&checking->lock);
	pthread_join(watcher, NULL);
	return checking_stopped(checking) ? -EINTR : result;
}

static int check_in_one_view(struct checking *checking)
{
	int result = db_begin_read(checking->db);

	if (result)
		return result;
	result = check_with_watcher(checking);
	db_end_read(checking->db);
	/* Parts that SQLite cannot read are a finding. */
	if (result == -EIO) {
		checking_fault(checking, "the database cannot be read completely");
		result = 0;
	}
	return result;
}

static int check_with_readers(struct core *core, const struct store_checker *checker)
{
	struct checking checking = {.core = core, .checker = checker};
	int result = readers_get(core->readers, &checking.db);

	if (result)
		return result > 0 ? -ENOSPC : result;
	pthread_mutex_init(&checking.lock, NULL);
	monotonic_cond_init(&checking.wake);
	result = readers_get(core->readers, &checking.fresh);
	if (!result) {
		result = check_in_one_view(&checking);
		readers_put(core->readers, checking.fresh);
	}
	readers_put(core->readers, checking.db);
	pthread_cond_destroy(&checking.wake);
	pthread_mutex_destroy(&checking.lock);
	free(checking.smalls.number);
	free(checking.objects.number);
	return result ? (result > 0 ? -EIO : result) : checking.faults;
}

/* Several at once would have all readers, or wait for each other's. */
int store_check(struct store *store, const struct store_checker *checker)
{
	struct core *core = core_of(store);
	int result;

	pthread_mutex_lock(&core->checking);
	result = check_with_readers(core, checker);
	pthread_mutex_unlock(&core->checking);
	return result;
}
