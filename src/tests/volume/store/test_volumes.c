/* SPDX-License-Identifier: BSD-2-Clause */
/* The store by its interface: clones, volumes, restarts, damage, threads. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/volume/store/crashdisk.h"
#include "tests/volume/store/store_fixture.h"
#include "volume/store/txn/cache.h"
#include "volume/store/upkeep.h"

/* -- volumes -- */

static int count_change(void *arg, uint32_t vnode, bool gone)
{
	unsigned *seen = arg;

	ck_assert_uint_lt(vnode, 16);
	seen[vnode] += gone ? 100 : 1;
	return 0;
}

START_TEST(clones)
{
	struct store_fid dir, file, gone, old;
	uint32_t ro, again, backup, seen[16] = {0};

	fixture_open(STORE_LAZY);
	dir = make(&root, "d", STORE_DIR);
	file = make(&dir, "f", STORE_FILE);
	gone = make(&dir, "g", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, "before", 6, 0), 0);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &ro), 0);
	fixture_volume(ro);
	ck_assert_str_eq(about.name, "v.readonly");
	ck_assert_int_eq(about.type, STORE_RO);
	ck_assert_uint_eq(about.rw, volume);
	ck_assert_uint_eq(about.files, 4);
	ck_assert_int_eq(try_write(&admin, &file, 0, "after", 5, 0), 0);
	make(&root, "new", STORE_FILE);
	ck_assert_int_eq(try_remove(&admin, &dir, "g", STORE_FILE), 0);
	ck_assert_int_eq(try_rename(&admin, &dir, "f", &root, "f"), 0);
	old = file;
	old.volume = ro;
	fixture_same(&old, "before", 6);
	fixture_same(&file, "after", 5);
	ck_assert_int_eq(try_status(&admin, &old), 0);
	ck_assert_uint_eq(status.parent, dir.vnode);
	old = gone;
	old.volume = ro;
	ck_assert_int_eq(try_status(&admin, &old), 0);
	ck_assert_int_eq(try_status(&admin, &gone), STORE_VNOVNODE);

	ck_assert_int_eq(store_volume_changes(store, ro, count_change, seen), 0);
	ck_assert_uint_eq(seen[1], 1);
	ck_assert_uint_eq(seen[dir.vnode], 1);
	ck_assert_uint_eq(seen[file.vnode], 1);
	ck_assert_uint_eq(seen[gone.vnode], 100);
	ck_assert_int_eq(store_volume_changes(store, volume, count_change, seen), -EINVAL);
	ck_assert_int_eq(fixture_check(), 0);

	/* A new one in its place, with the same id and another date. */
	fixture_volume(ro);
	again = about.sync;
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_BACKUP, &backup), 0);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &old.volume), 0);
	ck_assert_uint_eq(old.volume, ro);
	fixture_volume(ro);
	ck_assert_uint_ne(about.sync, again);
	ck_assert_int_eq(try_status(&admin, &old), STORE_VNOVNODE);
	old = file;
	old.volume = ro;
	fixture_same(&old, "after", 5);
	fixture_pruned();
	fixture_volume(volume);
	ck_assert_uint_eq(about.ro, ro);
	ck_assert_uint_eq(about.backup, backup);
	ck_assert_int_eq(store_volume_remove(store, volume), -ENOTEMPTY);
	ck_assert_int_eq(store_volume_clone(store, ro, STORE_BACKUP, &again), -EINVAL);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RW, &again), -EINVAL);

	ck_assert_int_eq(store_volume_rename(store, volume, "other"), 0);
	ck_assert_int_eq(store->ops->volume_by_name(store, "other.readonly", &about), 0);
	ck_assert_uint_eq(about.id, ro);
	ck_assert_int_eq(store->ops->volume_by_name(store, "v.backup", &about), STORE_VNOVOL);
	fixture_reopen();
	ck_assert_int_eq(store->ops->volume_by_name(store, "other.backup", &about), 0);
	ck_assert_int_eq(store_volume_remove(store, backup), 0);
	ck_assert_int_eq(store_volume_remove(store, ro), 0);
	ck_assert_int_eq(try_status(&admin, &old), STORE_VNOVOL);
	fixture_pruned();
	ck_assert_int_eq(
		fixture_rows("SELECT count(*) FROM vnode WHERE epoch IN"
			     " (SELECT epoch FROM vnode GROUP BY vnode HAVING count(*)>1)"),
		0);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM vnode"), 4);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM small"), 1);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM page"), 2);
}
END_TEST

/*
 * A directory has the vnode of one that a clone still shows. When that clone is gone, the pages that the
 * new one has in common with its own former versions stay.
 */
START_TEST(reused_directory)
{
	struct store_fid old, dir;
	uint32_t ro, backup;
	char name[100];

	fixture_open(STORE_LAZY);
	old = make(&root, "old", STORE_DIR);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &ro), 0);
	ck_assert_int_eq(try_remove(&admin, &root, "old", STORE_DIR), 0);
	for (int i = 0;; i++) {
		snprintf(name, sizeof(name), "new%d", i);
		dir = make(&root, name, STORE_DIR);
		if (dir.vnode == old.vnode)
			break;
		ck_assert_int_lt(i, 1000);
	}
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "a name that is long enough to fill pages soon %d", i);
		make(&dir, name, STORE_FILE);
	}
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_BACKUP, &backup), 0);
	make(&dir, "another", STORE_FILE);
	ck_assert_int_eq(store_volume_remove(store, backup), 0);
	fixture_pruned();
	ck_assert_int_eq(store_volume_remove(store, ro), 0);
	fixture_pruned();
	fixture_reopen();
	ck_assert_int_eq(try_read(&admin, &dir), 0);
	ck_assert_int_eq(try_remove(&admin, &dir, name, STORE_FILE), 0);
	ck_assert_int_eq(lines, 0);
}
END_TEST

/* A clone that an administrator took off-line stays so when it is made again. */
START_TEST(offline_clone)
{
	uint32_t id, again;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	ck_assert_int_eq(store_volume_offline(store, id, "broken data"), 0);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &again), 0);
	ck_assert_uint_eq(again, id);
	fixture_volume(id);
	ck_assert(!about.online);
	ck_assert_str_eq(about.offline_message, "broken data");
	fixture_close();
}
END_TEST

/* Names leave room for those of clones. A volume of an earlier version with a longer one gets no clone. */
START_TEST(long_names)
{
	char name[STORE_VOLNAME_MAX + 1];
	struct store_new_volume new = {.name = name};
	uint32_t id, clone;

	fixture_open(STORE_LAZY);
	memset(name, 'n', sizeof(name));
	name[56] = 0;
	ck_assert_int_eq(store_volume_create(store, &new, &id), -EINVAL);
	ck_assert_int_eq(store_volume_rename(store, volume, name), -EINVAL);
	name[55] = 0;
	ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	ck_assert_int_eq(store_volume_clone(store, id, STORE_RO, &clone), 0);
	fixture_volume(clone);
	ck_assert_uint_eq(strlen(about.name), 64);
	fixture_close();
}
END_TEST

/* The members of a group that owns a volume, and nobody if it belongs to strangers. */
START_TEST(owners)
{
	const struct store_set group = {.mask = STORE_SET_OWNER, .owner = -300};
	const struct store_set strangers = {.mask = STORE_SET_OWNER, .owner = STORE_ANONYMOUS};
	static const int32_t ids[] = {-300, STORE_AUTHUSER, STORE_ANYUSER, 700};
	const struct store_caller member = {.id = 700, .ids = ids, .id_count = 4};
	const struct store_acl none = {0};
	struct store_fid dir;

	fixture_open(STORE_LAZY);
	dir = make(&root, "dir", STORE_DIR);
	ck_assert_int_eq(store->ops->set_acl(store, &admin, &dir, &none, &status, &changes), 0);
	ck_assert_int_eq(try_acl(&member, &dir), -EACCES);
	ck_assert_int_eq(store->ops->set_status(store, &admin, &root, &group, &status, &changes),
			 0);
	ck_assert_int_eq(try_acl(&member, &dir), 0);
	ck_assert_int_eq(try_acl(&user, &dir), -EACCES);
	ck_assert_int_eq(
		store->ops->set_status(store, &admin, &root, &strangers, &status, &changes), 0);
	ck_assert_int_eq(try_acl(&anonymous, &dir), -EACCES);
	ck_assert_int_eq(try_acl(&member, &dir), -EACCES);
	fixture_close();
}
END_TEST

START_TEST(volumes)
{
	struct store_new_volume new = {.name = "w", .quota_kib = 50, .owner = 3, .mode = 0700};
	struct store_fid top = {0, 1, 1};
	uint32_t id, third;
	static uint8_t large[100000];
	struct store_fid file;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	ck_assert_uint_eq(id, volume + 3);
	ck_assert_int_eq(store_volume_create(store, &new, &third), -EEXIST);
	new.name = "not/valid";
	ck_assert_int_eq(store_volume_create(store, &new, &third), -EINVAL);
	new.name = "x";
	new.id = volume;
	ck_assert_int_eq(store_volume_create(store, &new, &third), STORE_VVOLEXISTS);
	new.id = volume + 1; /* kept for a clone */
	ck_assert_int_eq(store_volume_create(store, &new, &third), STORE_VVOLEXISTS);
	new.id = 5;
	ck_assert_int_eq(store_volume_create(store, &new, &third), 0);
	ck_assert_uint_eq(third, 5);
	ck_assert_int_eq(store_volume_rename(store, 5, "w"), -EEXIST);
	ck_assert_int_eq(store->ops->volume_next(store, 0, &about), 0);
	ck_assert_uint_eq(about.id, 5);
	ck_assert_uint_eq(about.quota_kib, 50);
	ck_assert_int_eq(store->ops->volume_next(store, 5, &about), 0);
	ck_assert_uint_eq(about.id, volume);
	ck_assert_int_eq(store->ops->volume_next(store, id, &about), STORE_VNOVOL);
	top.volume = id;
	ck_assert_int_eq(try_status(&admin, &top), 0);
	ck_assert_uint_eq(status.mode, 0700);
	ck_assert_int_eq(status.owner, 3);
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, large, sizeof(large), 0), 0);
	for (int i = 0; i < 700; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		make(&root, name, i % 10 ? STORE_FILE : STORE_DIR);
	}
	ck_assert_int_eq(store_volume_remove(store, volume), 0);
	ck_assert_int_eq(try_status(&admin, &root), STORE_VNOVOL);
	fixture_pruned();
	ck_assert_int_eq(store_volume_remove(store, 5), 0);
	fixture_pruned();
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM vnode"), 1);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM page"), 1);
	/* The id may be used again, and nothing of the old volume is left. */
	fixture_reopen();
	new.name = "v";
	new.id = volume;
	ck_assert_int_eq(store_volume_create(store, &new, &third), 0);
	ck_assert_int_eq(try_status(&admin, &file), STORE_VNOVNODE);
	ck_assert_int_eq(try_status(&admin, &root), 0);
	ck_assert_uint_eq(status.length, 2048);
}
END_TEST

/* -- restarts -- */

static struct store *open_disk(struct crashdisk *disk, struct store_layer **layer, bool make_it)
{
	struct store_options options = {0};
	struct store *opened;

	*layer = crashdisk_layer(disk);
	options.layer = *layer;
	if (make_it) {
		ck_assert_msg(store_make(&options, message) == 0, "%s", message);
		(*layer)->ops->destroy(*layer);
		options.layer = *layer = crashdisk_layer(disk);
	}
	ck_assert_msg(store_open(&options, &opened, message) == 0, "%s", message);
	return opened;
}

/* A reader that began before a volume was removed does not put its version back into the cache. */
START_TEST(dropped_from_cache)
{
	const struct cache_key key = {.group = 77, .epoch = CACHE_HEAD, .vnode = 2};
	struct cache *cache = cache_create(1 << 20);
	struct version *version = version_new();
	uint64_t ticket;

	ck_assert(cache && version);
	ck_assert_int_eq(cache_reserve(cache, &key, &ticket), 0);
	cache_drop(cache, key.group);
	ck_assert(!cache_fill(cache, &key, ticket, &version));
	ck_assert_ptr_null(cache_find(cache, &key));
	version_unref(version);
	cache_destroy(cache);
}
END_TEST

/* Numbers that clients may have seen in forgotten changes are not used again. */
/* A volume with the id of a removed one: what clients remember of that is never taken for the new one. */
START_TEST(same_id_again)
{
	const struct store_new_volume new = {.name = "again", .id = 77};
	uint64_t version;
	uint32_t id, unique;
	struct store_fid top, file;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	top = (struct store_fid){id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	make(&top, "a", STORE_FILE);
	file = make(&top, "b", STORE_FILE);
	unique = file.unique;
	ck_assert_int_eq(try_status(&admin, &top), 0);
	version = status.version;
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	fixture_pruned();
	fixture_reopen();
	ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	ck_assert_uint_eq(id, 77);
	ck_assert_int_eq(try_status(&admin, &top), 0);
	ck_assert_uint_gt(status.version, version);
	file = make(&top, "other", STORE_FILE);
	ck_assert_uint_gt(file.unique, unique);
}
END_TEST

/* A writer of a removed volume does not change the space that is promised in the next volume with that id. */
START_TEST(same_id_and_quota)
{
	const struct store_new_volume new = {.name = "again", .id = 77, .quota_kib = 100};
	const struct store_fid top = {77, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	struct store_writer *old, *one, *two;
	struct store_fid file;
	uint32_t id;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	file = make(&top, "a", STORE_FILE);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 1100 << 10, 0, &old), 0);
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	fixture_pruned();
	ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	file = make(&top, "a", STORE_FILE);
	store->ops->write_abort(old);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 1100 << 10, 0, &one), 0);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 1100 << 10, 0, &two), STORE_VOVERQUOTA);
	store->ops->write_abort(one);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 1100 << 10, 0, &two), 0);
	store->ops->write_abort(two);
}
END_TEST

START_TEST(restarted_machine)
{
	struct store_new_volume new = {.name = "v"};
	struct crashdisk *disk = crashdisk_new();
	struct store_fid file, next;
	struct store_layer *layer;
	uint64_t version;

	store = open_disk(disk, &layer, true);
	ck_assert_int_eq(store_volume_create(store, &new, &volume), 0);
	root = (struct store_fid){volume, 1, 1};
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, "x", 1, 0), 0);
	ck_assert_int_eq(store_flush(store), 0);
	version = status.version;
	crashdisk_stop_at(disk, crashdisk_calls(disk), 1);
	store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_crashed(disk, 0, false, 1);

	crashdisk_stop_at(disk, UINT64_MAX, 1);
	store = open_disk(disk, &layer, false);
	ck_assert_int_eq(try_status(&admin, &file), 0);
	ck_assert_uint_eq(status.version, version);
	ck_assert_int_eq(try_set(&admin, &file, STORE_SET_MODE, 0600), 0);
	ck_assert_uint_eq(status.version, version);
	ck_assert_int_eq(try_write(&admin, &file, 0, "y", 1, 0), 0);
	ck_assert_uint_eq(status.version, version + 131072);
	ck_assert_int_eq(try_write(&admin, &file, 0, "z", 1, 0), 0);
	ck_assert_uint_eq(status.version, version + 131073);
	next = make(&root, "g", STORE_FILE);
	ck_assert_uint_ge(next.unique, file.unique + (1 << 20));
	ck_assert_int_eq(fixture_check(), 0);
	store->ops->close(store);
	layer->ops->destroy(layer);
	/* A clean end changes nothing. */
	store = open_disk(disk, &layer, false);
	ck_assert_int_eq(try_write(&admin, &file, 0, "z", 1, 0), 0);
	ck_assert_uint_eq(status.version, version + 131074);
	store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_free(disk);
	store = NULL;
}
END_TEST

/* -- damage -- */

START_TEST(damaged_records)
{
	struct store_fid bad, good, small, dir, below;
	static uint8_t bytes[3000];

	fixture_open(STORE_LAZY);
	bad = make(&root, "bad", STORE_FILE);
	good = make(&root, "good", STORE_FILE);
	small = make(&root, "small", STORE_FILE);
	dir = make(&root, "dir", STORE_DIR);
	below = make(&dir, "below", STORE_FILE);
	memset(bytes, 5, sizeof(bytes));
	ck_assert_int_eq(try_write(&admin, &small, 0, bytes, sizeof(bytes), 0), 0);
	ck_assert_int_eq(try_write(&admin, &good, 0, "good", 4, 0), 0);
	fixture_sql("UPDATE vnode SET record=zeroblob(80) WHERE vnode=2");
	fixture_sql("UPDATE small SET data=CAST(substr(data,1,2990)||'0123456789' AS BLOB)"
		    " WHERE length(data)>2000");
	fixture_sql("UPDATE page SET data=CAST(substr(data,1,300)||'x'||substr(data,302) AS BLOB)"
		    " WHERE vnode=3");
	lines = 0;
	ck_assert_int_eq(try_status(&admin, &bad), -EIO);
	ck_assert_int_eq(try_status(&admin, &bad), -EIO);
	ck_assert_int_eq(lines, 1);
	ck_assert_int_eq(try_write(&admin, &bad, 0, "x", 1, 0), -EIO);
	ck_assert_int_eq(try_read(&admin, &small), -EIO);
	ck_assert_int_eq(try_status(&admin, &small), 0);
	ck_assert_int_eq(lines, 2);
	ck_assert_int_eq(try_read(&admin, &dir), -EIO);
	ck_assert_int_eq(try_create(&admin, &dir, "x", STORE_FILE), -EIO);
	/* Everything else goes on. */
	fixture_same(&good, "good", 4);
	ck_assert_int_eq(try_status(&admin, &below), 0);
	ck_assert_int_eq(try_write(&admin, &small, 0, "again", 5, 0), 0);
	fixture_same(&small, "again", 5);
	ck_assert_int_eq(try_create(&admin, &root, "new", STORE_FILE), 0);
	faults_expected = true;
	ck_assert_int_gt(fixture_check(), 0);
	store_stats(store, &stats);
	ck_assert_uint_ge(stats.damaged, 3);
}
END_TEST

START_TEST(damaged_volume)
{
	struct store_new_volume new = {.name = "w"};
	uint32_t id;
	struct store_fid top = {0, 1, 1};

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	fixture_sql("UPDATE volume SET record=zeroblob(120) WHERE name='v'");
	ck_assert_int_eq(try_status(&admin, &root), STORE_VSALVAGE);
	ck_assert_int_eq(try_create(&admin, &root, "x", STORE_FILE), STORE_VSALVAGE);
	ck_assert_int_eq(store->ops->volume_next(store, 0, &about), 0);
	ck_assert_str_eq(about.name, "v");
	ck_assert(!about.online);
	top.volume = id;
	ck_assert_int_eq(try_create(&admin, &top, "x", STORE_FILE), 0);
	ck_assert_int_eq(store_check(store, &(struct store_checker){.fast = true}), 1);
	faults_expected = true;
}
END_TEST

/* A check that is to stop once it has found the first fault. */
struct stopping {
	atomic_bool wanted;
	atomic_uint asked; /* since then */
	int faults;
};

static void stop_at_fault(void *arg, const char *line)
{
	struct stopping *stopping = arg;

	(void)line;
	stopping->faults++;
	atomic_store(&stopping->wanted, true);
	while (atomic_load(&stopping->asked) < 2)
		usleep(1000);
}

static bool is_wanted(void *arg)
{
	struct stopping *stopping = arg;

	if (!atomic_load(&stopping->wanted))
		return false;
	atomic_fetch_add(&stopping->asked, 1);
	return true;
}

/* It ends in the middle, reports nothing that it has not seen, and the store can be used and checked. */
START_TEST(stopped_check)
{
	struct stopping at_once = {.wanted = true}, later = {0};
	const struct store_checker never = {.stopped = is_wanted, .arg = &(struct stopping){0}};

	fixture_open(STORE_LAZY);
	for (int i = 0; i < 50; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%d", i);
		make(&root, name, STORE_FILE);
	}
	ck_assert_int_eq(store_check(store, &(struct store_checker){.stopped = is_wanted,
								    .each = stop_at_fault,
								    .arg = &at_once}),
			 -EINTR);
	ck_assert_int_eq(at_once.faults, 0);
	ck_assert_int_eq(store_check(store, &never), 0);
	faults_expected = true;
	fixture_sql("UPDATE vnode SET record=zeroblob(80) WHERE vnode>2");
	ck_assert_int_gt(fixture_check(), 10);
	ck_assert_int_eq(store_check(store, &(struct store_checker){.stopped = is_wanted,
								    .each = stop_at_fault,
								    .arg = &later}),
			 -EINTR);
	ck_assert_int_eq(later.faults, 1);
	ck_assert_int_gt(store_check(store, &never), 10);
	make(&root, "after", STORE_FILE);
}
END_TEST

#define CHECKS 4 /* they would have all readers */

struct checks {
	struct store_checker checker;
	_Atomic unsigned begun, inside, most;
};

/* Of the first: the others come meanwhile, if they can. */
static void meet_others(void *arg, uint64_t looked_at, uint64_t all)
{
	struct checks *checks = arg;
	unsigned inside = ++checks->inside;

	(void)all;
	while (looked_at == 0 && checks->begun < CHECKS)
		sched_yield();
	for (int i = 0; i < 100 && !checks->most && checks->inside == 1; i++)
		usleep(1000);
	if (inside > checks->most)
		checks->most = inside;
	checks->inside--;
}

static void *check_main(void *arg)
{
	struct checks *checks = arg;

	checks->begun++;
	return (void *)(intptr_t)store_check(store, &checks->checker);
}

/* The second one begins when the first has ended, so that readers are left for calls. */
START_TEST(checks_take_turns)
{
	struct checks checks = {.checker = {.progress = meet_others, .arg = &checks}};
	pthread_t thread[CHECKS];
	void *faults;

	fixture_open(STORE_LAZY);
	make(&root, "f", STORE_FILE);
	for (int i = 0; i < CHECKS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, check_main, &checks), 0);
	for (int i = 0; i < CHECKS; i++) {
		pthread_join(thread[i], &faults);
		ck_assert_ptr_null(faults);
	}
	ck_assert_uint_eq(checks.most, 1);
}
END_TEST

START_TEST(missing_object)
{
	struct store_fid file, other;
	static uint8_t bytes[100000];
	char command[600];

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	other = make(&root, "o", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, bytes, sizeof(bytes), 0), 0);
	ck_assert_int_eq(try_write(&admin, &other, 0, "here", 4, 0), 0);
	fixture_close();
	snprintf(command, sizeof(command), "find '%s/files' -type f -delete", fixture_path());
	ck_assert_int_eq(system(command), 0);
	fixture_open_again();
	ck_assert_int_eq(try_read(&admin, &file), -EIO);
	ck_assert_int_eq(try_status(&admin, &file), 0);
	fixture_same(&other, "here", 4);
	faults_expected = true;
	ck_assert_int_eq(fixture_check(), 1);
	faults_expected = false;
	ck_assert_int_eq(try_write(&admin, &file, 0, bytes, 50000, 0), 0);
	fixture_same(&file, bytes, 50000);
	ck_assert_int_eq(fixture_check(), 0);
}
END_TEST

/* -- threads -- */

#define THREADS 8
#define ROUNDS	150

struct thread {
	pthread_t id;
	unsigned number;
	struct store_fid shared, own;
};

/* In a directory of its own, and in one of all threads. */
static void *churn(void *arg)
{
	const struct thread *thread = arg;
	const struct store_fid *dirs[2] = {&thread->shared, &thread->own};
	struct store_status st, ds, ds2;
	struct store_changes ch;
	struct store_writer *writer;
	uint8_t bytes[9000];
	char name[32], to[32];

	memset(bytes, (int)thread->number, sizeof(bytes));
	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct store_fid *dir = dirs[i & 1];
		size_t length = i % 3 ? 100 + i : sizeof(bytes);
		struct iovec iov = {.iov_base = bytes, .iov_len = length};

		snprintf(name, sizeof(name), "t%u.%u", thread->number, i);
		snprintf(to, sizeof(to), "m%u.%u", thread->number, i);
		ck_assert_int_eq(store->ops->create(store, &admin, dir, name, STORE_FILE, NULL,
						    &nothing, &st, &ds, &ch),
				 0);
		ck_assert_int_eq(store->ops->write_begin(store, &admin, &st.fid, &nothing, 0,
							 length, 0, &writer),
				 0);
		ck_assert_int_eq(store->ops->write(writer, &iov, 1), 0);
		ck_assert_int_eq(store->ops->write_commit(writer, &st, &ch), 0);
		ck_assert_uint_eq(st.version, 1);
		if (i % 4 == 0)
			ck_assert_int_eq(store->ops->rename(store, &admin, dir, name,
							    dirs[!(i & 1)], to, &ds, &ds2, &ch),
					 0);
		else if (i % 4 != 3)
			ck_assert_int_eq(
				store->ops->remove(store, &admin, dir, name, STORE_FILE, &ds, &ch),
				0);
	}
	return NULL;
}

START_TEST(many_threads)
{
	struct thread thread[THREADS];
	struct store_fid shared;
	uint32_t clone;
	char name[8];

	fixture_open(_i ? STORE_STRICT : STORE_LAZY);
	shared = make(&root, "shared", STORE_DIR);
	for (unsigned i = 0; i < THREADS; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		thread[i] = (struct thread){.number = i, .shared = shared};
		thread[i].own = make(&root, name, STORE_DIR);
		ck_assert_int_eq(pthread_create(&thread[i].id, NULL, churn, &thread[i]), 0);
	}
	/* Meanwhile. */
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_int_eq(
			store_volume_clone(store, volume, i & 1 ? STORE_RO : STORE_BACKUP, &clone),
			0);
		ck_assert_int_eq(fixture_check(), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i].id, NULL);
	store_stats(store, &stats);
	ck_assert_uint_lt(stats.commits, stats.operations);
	fixture_volume(volume);
	/* Of four files, one was moved and one stays. */
	ck_assert_uint_eq(about.files, 2 + THREADS + THREADS * (ROUNDS / 4 + 1 + ROUNDS / 4));
	fixture_pruned();
	fixture_reopen();
}
END_TEST

/* -- volumes that go while they are used -- */

#define CHURNED	      3 /* volumes, with the ids from FIRST_CHURNED on */
#define FIRST_CHURNED 7000

static _Atomic bool stop_churn;

/* The volume, or the object in it, may be gone, or not be there yet, or be off-line. */
static bool is_gone(int result)
{
	return result == STORE_VNOVOL || result == STORE_VNOVNODE || result == STORE_VOFFLINE;
}

/* Small files and large ones, which are added to and read. */
static void *churn_volumes(void *arg)
{
	const unsigned number = *(const unsigned *)arg;
	static _Thread_local uint8_t bytes[40000];
	struct store_status st, ds;
	struct store_changes ch;
	unsigned done = 0;

	for (unsigned i = 0; !stop_churn; i++) {
		const struct store_fid top = {FIRST_CHURNED + (i + number) % CHURNED, 1, 1};
		struct iovec iov = {.iov_base = bytes, .iov_len = i % 3 ? sizeof(bytes) : 100};
		struct store_writer *writer;
		struct store_reader *reader;
		char name[32];
		int result;

		snprintf(name, sizeof(name), "f%u.%u", number, i % 40);
		result = store->ops->remove(store, &admin, &top, name, STORE_FILE, &ds, &ch);
		ck_assert_msg(!result || result == -ENOENT || is_gone(result), "%d", result);
		if (is_gone(result))
			continue;
		result = store->ops->create(store, &admin, &top, name, STORE_FILE, NULL, &nothing,
					    &st, &ds, &ch);
		ck_assert_msg(!result || is_gone(result), "%d", result);
		for (unsigned k = 0; k < 3 && !result; k++) {
			result = store->ops->write_begin(store, &admin, &st.fid, &nothing,
							 k * iov.iov_len, iov.iov_len,
							 k * iov.iov_len, &writer);
			if (result)
				break;
			ck_assert_int_eq(store->ops->write(writer, &iov, 1), 0);
			if (i % 11 == 0)
				store->ops->write_abort(writer);
			else
				result = store->ops->write_commit(writer, &st, &ch);
			done += !result;
		}
		ck_assert_msg(!result || is_gone(result), "%d", result);
		if (!result)
			result = store->ops->read_begin(store, &admin, &st.fid, &reader, &st);
		ck_assert_msg(!result || is_gone(result), "%d", result);
		if (result)
			continue;
		ck_assert_int_ge(store->ops->read(reader, &iov, 1, 0, 0), 0);
		store->ops->read_end(reader);
	}
	return (void *)(uintptr_t)done;
}

/* One step of an administrator; a volume whose rows are not all gone yet cannot be made again. */
static void change_volume(unsigned step)
{
	const struct store_new_volume new = {
		.name = step % CHURNED == 0   ? "ca"
			: step % CHURNED == 1 ? "cb"
					      : "cc",
		.id = FIRST_CHURNED + step % CHURNED,
	};
	uint32_t id = new.id, clone;
	int result;

	switch (step / CHURNED % 7) {
	case 0:
		do
			result = store_volume_create(store, &new, &id);
		while (result == STORE_VBUSY && usleep(1000) == 0);
		break;
	case 1:
	case 3:
		result = store_volume_clone(store, id, step % 2 ? STORE_RO : STORE_BACKUP, &clone);
		break;
	case 2:
		result = store_volume_offline(store, id, "moves");
		break;
	case 4:
		result = store_volume_online(store, id, NULL, NULL);
		break;
	case 5:
		result = 0;
		fixture_volume(id);
		if (about.ro)
			result = store_volume_remove(store, about.ro);
		if (about.backup && !result)
			result = store_volume_remove(store, about.backup);
		break;
	default:
		result = store_volume_remove(store, id);
		break;
	}
	ck_assert_int_eq(result, 0);
}

/* Stores and readers of volumes that are cloned, removed and made again with the same id leave nothing behind. */
START_TEST(churned_volumes)
{
	unsigned number[6];
	pthread_t thread[6];
	uintptr_t done = 0;
	void *result;

	fixture_open(_i ? STORE_STRICT : STORE_LAZY);
	stop_churn = false;
	for (unsigned i = 0; i < 6; i++) {
		number[i] = i;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, churn_volumes, &number[i]), 0);
	}
	for (unsigned step = 0; step < 7 * CHURNED * 3; step++) {
		change_volume(step);
		usleep(20000);
	}
	stop_churn = true;
	for (unsigned i = 0; i < 6; i++) {
		pthread_join(thread[i], &result);
		done += (uintptr_t)result;
	}
	ck_assert_uint_gt(done, 100);
	fixture_pruned();
	fixture_reopen();
	ck_assert_int_eq(fixture_check(), 0);
}
END_TEST

static _Atomic bool stop_reading;

/* Each version has its number in all of its bytes. */
static void *read_versions(void *arg)
{
	const struct store_fid *fid = arg;
	uint64_t *bytes = malloc(20000);
	struct iovec iov = {.iov_base = bytes, .iov_len = 20000};
	uint64_t last = 0;

	while (!stop_reading) {
		struct store_reader *reader;
		struct store_status st;
		ssize_t got;

		ck_assert_int_eq(store->ops->read_begin(store, &admin, fid, &reader, &st), 0);
		got = store->ops->read(reader, &iov, 1, 0, 0);
		ck_assert_uint_eq((uint64_t)got, st.length);
		for (size_t i = 0; i < st.length / 8; i++)
			if (bytes[i] != st.version)
				ck_abort_msg("version %llu has bytes of %llu",
					     (unsigned long long)st.version,
					     (unsigned long long)bytes[i]);
		ck_assert_uint_ge(st.version, last);
		last = st.version;
		store->ops->read_end(reader);
	}
	free(bytes);
	return NULL;
}

START_TEST(readers_and_a_writer)
{
	static uint64_t bytes[2500];
	struct store_fid file;
	pthread_t reader[4];

	fixture_memory(64 << 10); /* so that versions are read from the database, too */
	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	stop_reading = false;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&reader[i], NULL, read_versions, &file), 0);
	for (uint64_t version = 1; version <= 600; version++) {
		size_t length = version % 2 ? 8 * (version % 400) : sizeof(bytes);

		for (size_t i = 0; i < length / 8; i++)
			bytes[i] = version;
		ck_assert_int_eq(try_write(&admin, &file, 0, bytes, length, 0), 0);
	}
	stop_reading = true;
	for (int i = 0; i < 4; i++)
		pthread_join(reader[i], NULL);
}
END_TEST

/* A bounded cache, whatever is used. */
START_TEST(memory)
{
	struct store_fid file;
	char name[16];

	fixture_memory(256 << 10);
	fixture_open(STORE_LAZY);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		file = make(&root, name, STORE_FILE);
		ck_assert_int_eq(try_write(&admin, &file, 0, name, strlen(name), 0), 0);
	}
	store_stats(store, &stats);
	/* The directory itself is kept although it is larger than a shard. */
	ck_assert_uint_lt(stats.memory, (256 << 10) + (400 << 10));
	fixture_same(&file, name, strlen(name));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {clones,
				      volumes,
				      same_id_again,
				      same_id_and_quota,
				      dropped_from_cache,
				      restarted_machine,
				      damaged_records,
				      damaged_volume,
				      stopped_check,
				      checks_take_turns,
				      missing_object,
				      readers_and_a_writer,
				      memory,
				      reused_directory,
				      offline_clone,
				      long_names,
				      owners};
	Suite *suite = suite_create("volumes");
	TCase *tcase = tcase_create("volumes");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 240);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, many_threads, 0, 2);
	tcase_add_loop_test(tcase, churned_volumes, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
