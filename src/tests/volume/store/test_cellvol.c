/* SPDX-License-Identifier: BSD-2-Clause */
/* Volumes with ids, types and states of a cell: clones in any number and order, volumes without those they were made of, holds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/volume/store/store_fixture.h"
#include "volume/store/cellvol.h"
#include "volume/store/transfer.h"

static struct cellvol cell;

static int try_clone(uint32_t source, uint32_t id, enum store_type type, const char *name)
{
	struct cellvol clone = {.id = id, .type = type};

	snprintf(clone.name, sizeof(clone.name), "%s", name);
	return cellvol_clone(store, source, &clone);
}

/* Temporary no longer, and on-line. */
static int try_ready(uint32_t id)
{
	ck_assert_int_eq(cellvol_get(store, id, &cell), 0);
	ck_assert(cell.temporary);
	cell.temporary = cell.out = false;
	return cellvol_set(store, &cell, CELLVOL_STATE, NULL, NULL);
}

static struct store_fid in(uint32_t id, struct store_fid fid)
{
	fid.volume = id;
	return fid;
}

static void same_in(uint32_t id, struct store_fid fid, const char *text)
{
	fid = in(id, fid);
	fixture_same(&fid, text, strlen(text));
}

/* Each of ten clones shows another content, and goes on to, whichever of the others are removed. */
START_TEST(many_clones)
{
	static const unsigned order[] = {4, 0, 9, 5, 1, 8, 2, 7, 3, 6};
	struct store_fid file;
	char text[16], name[16];

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	for (unsigned i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "content %u", i);
		snprintf(name, sizeof(name), "clone-%u", i);
		ck_assert_int_eq(try_write(&admin, &file, 0, text, strlen(text), 0), 0);
		ck_assert_int_eq(try_clone(volume, 1000 + i, i % 2 ? STORE_RO : STORE_BACKUP, name),
				 0);
		ck_assert_int_eq(try_ready(1000 + i), 0);
	}
	ck_assert_int_eq(try_clone(volume, 1000, STORE_RO, "again"), STORE_VVOLEXISTS);
	ck_assert_int_eq(try_clone(volume, 2000, STORE_RO, "too-many"), -ENOSPC);
	fixture_reopen();
	for (unsigned i = 0; i < 10; i++) {
		for (unsigned k = i; k < 10; k++) {
			snprintf(text, sizeof(text), "content %u", order[k]);
			same_in(1000 + order[k], file, text);
		}
		ck_assert_int_eq(cellvol_delete(store, 1000 + order[i]), 0);
		fixture_pruned();
	}
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM vnode"), 2);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM small"), 1);
}
END_TEST

/* A clone of a clone shows the same, also when that is gone, or shows something else. */
START_TEST(clones_of_clones)
{
	struct store_fid file;

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, "one", 3, 0), 0);
	ck_assert_int_eq(try_clone(volume, 1000, STORE_RO, "a"), 0);
	ck_assert_int_eq(try_write(&admin, &file, 0, "two", 3, 0), 0);
	ck_assert_int_eq(try_clone(1000, 1001, STORE_RO, "b"), 0);
	ck_assert_int_eq(try_clone(1001, 1002, STORE_RO, "c"), 0);
	ck_assert_int_eq(try_ready(1000), 0);
	ck_assert_int_eq(try_ready(1001), 0);
	ck_assert_int_eq(try_ready(1002), 0);
	ck_assert_int_eq(cellvol_delete(store, 1001), 0);
	fixture_pruned();
	same_in(1000, file, "one");
	same_in(1002, file, "one");
	ck_assert_int_eq(cellvol_reclone(store, volume, 1000), 0);
	fixture_pruned();
	same_in(1000, file, "two");
	same_in(1002, file, "one");
	ck_assert_int_eq(cellvol_reclone(store, 1000, 1002), 0);
	fixture_pruned();
	same_in(1002, file, "two");
	ck_assert_int_eq(cellvol_reclone(store, volume, volume), -EXDEV);
	ck_assert_int_eq(cellvol_reclone(store, volume, 5), STORE_VNOVOL);
}
END_TEST

/* A clone outlives its volume; the volume may come back, with other contents. */
START_TEST(clone_without_volume)
{
	const struct cellvol back = {.id = volume, .type = STORE_RW, .name = "v"};
	struct store_fid file;

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, "kept", 4, 0), 0);
	ck_assert_int_eq(try_clone(volume, 1000, STORE_RO, "v.readonly"), 0);
	ck_assert_int_eq(try_ready(1000), 0);
	ck_assert_int_eq(try_write(&admin, &file, 0, "lost", 4, 0), 0);
	ck_assert_int_eq(cellvol_delete(store, volume), 0);
	ck_assert_int_eq(try_status(&admin, &file), STORE_VNOVOL);
	ck_assert_int_eq(try_create(&admin, &root, "g", STORE_FILE), STORE_VNOVOL);
	ck_assert_int_eq(cellvol_get(store, volume, &cell), STORE_VNOVOL);
	ck_assert_int_eq(cellvol_delete(store, volume), STORE_VNOVOL);
	ck_assert_int_eq(store->ops->volume_by_name(store, "v", &about), STORE_VNOVOL);
	same_in(1000, file, "kept");
	fixture_reopen();
	same_in(1000, file, "kept");

	cell = back;
	cell.id = volume;
	ck_assert_int_eq(cellvol_create(store, &cell, true), STORE_VVOLEXISTS);
	ck_assert_int_eq(cellvol_create(store, &cell, false), 0);
	ck_assert_int_eq(try_status(&admin, &file), STORE_VOFFLINE);
	ck_assert_int_eq(try_ready(volume), 0);
	ck_assert_int_eq(try_write(&admin, &file, 0, "new", 3, 0), 0);
	same_in(1000, file, "kept");
	ck_assert_int_eq(cellvol_delete(store, volume), 0);
	ck_assert_int_eq(cellvol_delete(store, 1000), 0);
	fixture_pruned();
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM vnode"), 0);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM volume"), 0);
}
END_TEST

/* What is not ready when the store is closed, or the process dies, goes. */
START_TEST(temporary_volumes)
{
	struct cellvol new = {.id = 3000, .type = STORE_RW, .name = "new"};

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(cellvol_create(store, &new, true), 0);
	ck_assert_int_eq(cellvol_create(store, &new, true), STORE_VVOLEXISTS);
	new.id = 3001;
	ck_assert_int_eq(cellvol_create(store, &new, false), 0);
	ck_assert_int_eq(try_ready(3001), -EINVAL);
	ck_assert_int_eq(try_clone(volume, 3002, STORE_BACKUP, "new"), 0);
	ck_assert_int_eq(cellvol_get(store, 3001, &cell), 0);
	ck_assert_str_eq(cell.name, "new");
	/* The first one has the name. */
	ck_assert_int_eq(store->ops->volume_by_name(store, "new", &about), 0);
	ck_assert_uint_eq(about.id, 3000);
	ck_assert_int_eq(try_ready(3000), 0);
	ck_assert_int_eq(fixture_check(), 0);
	fixture_reopen();
	ck_assert_int_eq(cellvol_get(store, 3000, &cell), 0);
	ck_assert_int_eq(cellvol_get(store, 3001, &cell), STORE_VNOVOL);
	ck_assert_int_eq(cellvol_get(store, 3002, &cell), STORE_VNOVOL);
	fixture_pruned();
}
END_TEST

/* The process dies while a new volume gets its first contents. */
static void die_restoring(const struct cellvol *new, bool dir)
{
	static const uint8_t zeros[8000];
	const struct store_vnode file = {.vnode = 4,
					 .unique = 9,
					 .kind = STORE_FILE,
					 .links = 1,
					 .parent = STORE_ROOT_VNODE,
					 .length = sizeof(zeros)};
	struct store_restore *restore;
	int ended;
	pid_t pid;

	fixture_close();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		fixture_open_again();
		ck_assert_int_eq(cellvol_create(store, new, dir), 0);
		ck_assert_int_eq(cellvol_restore_onto(store, new->id, &restore), 0);
		ck_assert_int_eq(store_restore_keep(restore, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE),
				 0);
		ck_assert_int_eq(store_restore_put(restore, &file, zeros), 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &ended, 0), pid);
	ck_assert_int_eq(ended, 0);
	fixture_open_again();
}

START_TEST(killed_restore)
{
	struct cellvol new = {.id = 3000, .type = STORE_RW, .name = "new"};
	struct store_fid file;

	fixture_open(STORE_STRICT);
	die_restoring(&new, true);
	ck_assert_int_eq(cellvol_get(store, 3000, &cell), STORE_VNOVOL);
	fixture_pruned();
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM volume"), 1);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM vnode"), 1);
	/* The same again, as vos does it. */
	ck_assert_int_eq(cellvol_create(store, &new, true), 0);
	ck_assert_int_eq(cellvol_delete(store, 3000), 0);

	/* The volume has come back to its clone, which stays as it is. */
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, "kept", 4, 0), 0);
	ck_assert_int_eq(try_clone(volume, 1000, STORE_RO, "v.readonly"), 0);
	ck_assert_int_eq(try_ready(1000), 0);
	ck_assert_int_eq(cellvol_delete(store, volume), 0);
	new.id = volume;
	die_restoring(&new, false);
	ck_assert_int_eq(cellvol_get(store, volume, &cell), STORE_VNOVOL);
	same_in(1000, file, "kept");
	ck_assert_int_eq(cellvol_create(store, &new, false), 0);
	ck_assert_int_eq(cellvol_delete(store, volume), 0);
	ck_assert_int_eq(cellvol_delete(store, 1000), 0);
	fixture_pruned();
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM vnode"), 0);
}
END_TEST

/* The quota from before the contents does not bound them, and that which comes with them is set after them. */
START_TEST(restored_beyond_quota)
{
	struct cellvol new = {.id = 3000, .type = STORE_RW, .name = "new", .quota_kib = 5000};
	const struct store_header header = {.volume.quota_kib = 7000, .next_unique = 50};
	const struct store_vnode file = {.vnode = 4,
					 .unique = 9,
					 .kind = STORE_FILE,
					 .links = 1,
					 .parent = STORE_ROOT_VNODE,
					 .length = 9000 * 1024};
	static char kib[1024];
	struct iovec iov = {.iov_base = kib, .iov_len = sizeof(kib)};
	struct store_restore *restore;
	struct store_writer *writer;
	uint64_t lost;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(cellvol_create(store, &new, true), 0);
	ck_assert_int_eq(cellvol_restore_onto(store, 3000, &restore), 0);
	ck_assert_int_eq(store_restore_keep(restore, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE), 0);
	ck_assert_int_eq(store_restore_put(restore, &file, NULL), 0);
	ck_assert_int_eq(store_restore_write(restore, &file, &writer), 0);
	for (int i = 0; i < 9000; i++)
		ck_assert_int_eq(store->ops->write(writer, &iov, 1), 0);
	ck_assert_int_eq(store->ops->write_commit(writer, &status, &changes), 0);
	ck_assert_int_eq(store_restore_stamp(restore, &file), 0);
	ck_assert_int_eq(store_restore_finish(restore, &header, &lost, message), 0);
	ck_assert_int_eq(store_restore_end(restore), 0);
	ck_assert_int_eq(try_ready(3000), 0);
	fixture_volume(3000);
	ck_assert_uint_eq(about.quota_kib, 7000);
	fixture_pruned();
}
END_TEST

/* A copy of another server's volume: clients cannot write, and see its parent and type. */
START_TEST(replica)
{
	struct cellvol new = {.id = 3000, .parent = 2999, .type = STORE_RO, .name = "x.readonly"};
	struct store_fid file;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(cellvol_create(store, &new, true), 0);
	ck_assert_int_eq(try_ready(3000), 0);
	fixture_reopen();
	fixture_volume(3000);
	ck_assert_int_eq(about.type, STORE_RO);
	ck_assert_uint_eq(about.rw, 2999);
	file = in(3000, root);
	ck_assert_int_eq(try_status(&admin, &file), 0);
	ck_assert_int_eq(try_create(&admin, &file, "f", STORE_FILE), -EROFS);
	ck_assert_int_eq(try_set(&admin, &file, STORE_SET_MODE, 0700), -EROFS);

	ck_assert_int_eq(cellvol_get(store, 3000, &cell), 0);
	cell.type = STORE_RW;
	cell.parent = 3000;
	cell.clone = 7;
	cell.creation = 1234567;
	cell.quota_kib = 99;
	snprintf(cell.name, sizeof(cell.name), "v");
	ck_assert_int_eq(cellvol_set(store, &cell,
				     CELLVOL_TYPE | CELLVOL_IDS | CELLVOL_CREATION | CELLVOL_QUOTA |
					     CELLVOL_NAMED,
				     NULL, NULL),
			 0);
	fixture_reopen();
	fixture_volume(3000);
	ck_assert_int_eq(about.type, STORE_RW);
	ck_assert_uint_eq(about.rw, 3000);
	ck_assert_uint_eq(about.ro, 7);
	ck_assert_uint_eq(about.created, 1234567);
	ck_assert_uint_eq(about.quota_kib, 99);
	ck_assert_str_eq(about.name, "v");
	ck_assert_int_eq(store->ops->volume_by_name(store, "v", &about), 0);
	ck_assert_uint_eq(about.id, volume);
	ck_assert_int_eq(try_create(&admin, &file, "f", STORE_FILE), 0);
}
END_TEST

/* A restore with nothing but the root, of a release of this date. The date that clients see. */
static uint32_t restore_dated(uint32_t id, uint32_t date)
{
	const struct store_header header = {.volume.created = date, .next_unique = 50};
	struct store_restore *restore;
	uint64_t lost;

	ck_assert_int_eq(cellvol_restore_onto(store, id, &restore), 0);
	ck_assert_int_eq(store_restore_keep(restore, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE), 0);
	ck_assert_int_eq(store_restore_finish(restore, &header, &lost, message), 0);
	ck_assert_int_eq(store_restore_end(restore), 0);
	ck_assert_int_eq(cellvol_restored(store, id, date), 0);
	if (cellvol_get(store, id, &cell) == 0 && cell.temporary)
		ck_assert_int_eq(try_ready(id), 0);
	fixture_volume(id);
	return about.sync;
}

/* Copies have the date of their release on each server, whenever it came there. It never goes back. */
START_TEST(dates_of_copies)
{
	const struct cellvol new = {
		.id = 3000, .parent = 2999, .type = STORE_RO, .name = "x.readonly"};
	uint32_t date;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(cellvol_create(store, &new, true), 0);
	ck_assert_uint_eq(restore_dated(3000, 1000000), 1000000);
	ck_assert_uint_eq(restore_dated(3000, 1000007), 1000007);
	ck_assert_uint_eq(restore_dated(3000, 1000007), 1000007);
	ck_assert_uint_gt(restore_dated(3000, 1000001), 1000007);

	/* A clone whose volume has left. */
	ck_assert_int_eq(try_clone(volume, 1000, STORE_RO, "v.readonly"), 0);
	ck_assert_int_eq(try_ready(1000), 0);
	ck_assert_uint_eq(cell.creation, (fixture_volume(1000), about.sync));
	ck_assert_int_eq(cellvol_reclone(store, volume, 1000), 0);
	ck_assert_int_eq(cellvol_get(store, 1000, &cell), 0);
	fixture_volume(1000);
	date = about.sync;
	ck_assert_uint_eq(cell.creation, date);
	ck_assert_int_eq(cellvol_delete(store, volume), 0);
	ck_assert_uint_eq(restore_dated(1000, date + 70), date + 70);
	ck_assert_uint_gt(restore_dated(1000, date + 7), date + 70);
}
END_TEST

/* A volume comes to the server that has a copy of it: the copy becomes a clone. */
START_TEST(adopted_replica)
{
	struct cellvol copy = {
		.id = 3000, .parent = volume, .type = STORE_RO, .name = "v.readonly"};
	struct store_fid file;

	fixture_open(STORE_LAZY);
	copy.parent = volume;
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, "new", 3, 0), 0);
	ck_assert_int_eq(cellvol_create(store, &copy, true), 0);
	ck_assert_int_eq(try_ready(3000), 0);
	ck_assert_int_eq(cellvol_reclone(store, volume, 3000), 0);
	same_in(3000, file, "new");
	fixture_pruned();
	fixture_reopen();
	same_in(3000, file, "new");
	fixture_volume(3000);
	ck_assert_int_eq(about.type, STORE_RO);
	ck_assert_uint_eq(about.rw, volume);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM vnode WHERE grp=3000"), 0);
	ck_assert_int_eq(try_write(&admin, &file, 0, "newer", 5, 0), 0);
	ck_assert_int_eq(cellvol_reclone(store, volume, 3000), 0);
	same_in(3000, file, "newer");
	/* Its id may be that of a volume again, which shows nothing of the old one. */
	ck_assert_int_eq(cellvol_delete(store, 3000), 0);
	ck_assert_int_eq(cellvol_create(store, &copy, true), 0);
	ck_assert_int_eq(try_ready(3000), 0);
	file = in(3000, file);
	ck_assert_int_eq(try_status(&admin, &file), STORE_VNOVNODE);
	copy.id = 3001;
	copy.parent = 77;
	ck_assert_int_eq(cellvol_create(store, &copy, true), 0);
	ck_assert_int_eq(cellvol_reclone(store, volume, 3001), -EXDEV);
	ck_assert_int_eq(cellvol_delete(store, 3001), 0);
}
END_TEST

/* A clone whose volume has left gets other contents; a restore that is given up changes nothing. */
START_TEST(restored_clone)
{
	const struct store_header header = {.volume.quota_kib = 7, .next_unique = 50};
	struct store_vnode vnode = {.vnode = STORE_ROOT_VNODE, .unique = STORE_ROOT_UNIQUE};
	struct store_restore *restore;
	struct store_fid file;
	uint64_t lost;

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, "shown", 5, 0), 0);
	ck_assert_int_eq(try_clone(volume, 1000, STORE_RO, "v.readonly"), 0);
	ck_assert_int_eq(try_ready(1000), 0);
	ck_assert_int_eq(cellvol_restore_onto(store, 1000, &restore), -EINVAL);
	ck_assert_int_eq(try_write(&admin, &file, 0, "later", 5, 0), 0);
	make(&root, "g", STORE_FILE);
	ck_assert_int_eq(cellvol_delete(store, volume), 0);

	ck_assert_int_eq(cellvol_restore_onto(store, 1000, &restore), 0);
	ck_assert_int_eq(store_restore_keep(restore, 1, 1), 0);
	ck_assert_int_eq(store_restore_end(restore), 0);
	same_in(1000, file, "shown");
	fixture_reopen();
	same_in(1000, file, "shown");
	ck_assert_int_eq(cellvol_get(store, volume, &cell), STORE_VNOVOL);

	/* All stays as the clone shows it, although the volume had more. */
	ck_assert_int_eq(cellvol_restore_onto(store, 1000, &restore), 0);
	ck_assert_int_eq(store_restore_keep(restore, vnode.vnode, vnode.unique), 0);
	ck_assert_int_eq(store_restore_keep(restore, file.vnode, file.unique), 0);
	ck_assert_int_eq(store_restore_finish(restore, &header, &lost, message), 0);
	ck_assert_int_eq(store_restore_end(restore), 0);
	same_in(1000, file, "shown");
	ck_assert_int_eq(cellvol_restored(store, 1000, 0), 0);
	same_in(1000, file, "shown");
	fixture_volume(1000);
	ck_assert_uint_eq(about.quota_kib, 7);
	ck_assert_uint_eq(about.files, 2);
	ck_assert_int_eq(cellvol_get(store, volume, &cell), STORE_VNOVOL);
	fixture_pruned();
	fixture_reopen();
	same_in(1000, file, "shown");
	ck_assert_int_eq(cellvol_delete(store, 1000), 0);
	fixture_pruned();
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM vnode"), 0);
}
END_TEST

/* A clone takes the place of its volume, which has left: what that had later is gone. */
START_TEST(converted_clone)
{
	struct store_fid file, later;

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, "shown", 5, 0), 0);
	ck_assert_int_eq(try_clone(volume, 1000, STORE_RO, "v.readonly"), 0);
	ck_assert_int_eq(try_ready(1000), 0);
	ck_assert_int_eq(try_clone(volume, 1001, STORE_BACKUP, "other"), 0);
	ck_assert_int_eq(try_ready(1001), 0);
	ck_assert_int_eq(try_write(&admin, &file, 0, "later", 5, 0), 0);
	later = make(&root, "g", STORE_FILE);
	ck_assert_int_eq(cellvol_convert(store, 1000, volume), -EXDEV);
	ck_assert_int_eq(cellvol_convert(store, volume, volume), -EINVAL);
	ck_assert_int_eq(cellvol_convert(store, 5, volume), STORE_VNOVOL);
	ck_assert_int_eq(cellvol_delete(store, volume), 0);
	ck_assert_int_eq(cellvol_convert(store, 1001, volume), -EINVAL);
	ck_assert_int_eq(cellvol_convert(store, 1000, 77), -EXDEV);
	ck_assert_int_eq(cellvol_convert(store, 1000, volume), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(cellvol_get(store, 1000, &cell), STORE_VNOVOL);
		same_in(volume, file, "shown");
		same_in(1001, file, "shown");
		ck_assert_int_eq(try_status(&admin, &later), STORE_VNOVNODE);
		fixture_volume(volume);
		ck_assert_int_eq(about.type, STORE_RW);
		ck_assert_uint_eq(about.rw, volume);
		ck_assert_uint_eq(about.ro, 1000);
		ck_assert(about.online && about.cell);
		ck_assert_int_eq(store->ops->volume_by_name(store, "v", &about), 0);
		ck_assert_uint_eq(about.id, volume);
		fixture_reopen();
	}
	/* No uniquifier is given twice. */
	ck_assert_uint_gt(make(&root, "h", STORE_FILE).unique, later.unique);
	ck_assert_int_eq(try_write(&admin, &file, 0, "new", 3, 0), 0);
	same_in(1001, file, "shown");
	ck_assert_int_eq(try_clone(volume, 1000, STORE_RO, "v.readonly"), 0);
	ck_assert_int_eq(try_ready(1000), 0);
	same_in(1000, file, "new");
	fixture_pruned();
}
END_TEST

/* A copy that another server has sent goes when a copy of it takes the place of its volume. */
START_TEST(converted_replica)
{
	struct cellvol ro = {.id = 3000, .parent = 2999, .type = STORE_RO, .name = "x.readonly"};
	struct cellvol rw = {.id = 2999, .type = STORE_RW, .name = "y"};

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(cellvol_create(store, &ro, true), 0);
	ck_assert_int_eq(try_ready(3000), 0);
	ck_assert_int_eq(cellvol_convert(store, 3000, 2999), STORE_VNOVOL);
	ck_assert_int_eq(cellvol_create(store, &rw, true), 0);
	ck_assert_int_eq(cellvol_convert(store, 3000, 2999), 0);
	fixture_reopen();
	ck_assert_int_eq(cellvol_get(store, 3000, &cell), STORE_VNOVOL);
	ck_assert_int_eq(cellvol_get(store, 2999, &cell), 0);
	ck_assert_str_eq(cell.name, "x");
	ck_assert_uint_eq(cell.restored, 3000);
	ck_assert_uint_eq(cell.clone, 3000);
	ck_assert_uint_ge(cell.next_unique, 5000);
	ck_assert(!cell.temporary && !cell.out);
	ck_assert_int_eq(try_status(&admin, &(struct store_fid){2999, 1, 1}), 0);
	/* One that is ready is not replaced. */
	ck_assert_int_eq(cellvol_create(store, &ro, true), 0);
	ck_assert_int_eq(cellvol_convert(store, 3000, 2999), -EXDEV);
	/* The name goes from one to the other. */
	ro.id = 4000;
	rw.id = ro.parent = 4001;
	snprintf(ro.name, sizeof(ro.name), "z");
	ck_assert_int_eq(cellvol_create(store, &ro, true), 0);
	ck_assert_int_eq(cellvol_create(store, &rw, true), 0);
	ck_assert_int_eq(cellvol_convert(store, 4000, 4001), 0);
	fixture_volume(4001);
	ck_assert_str_eq(about.name, "z");
	fixture_pruned();
}
END_TEST

START_TEST(holds)
{
	struct store_fid file;

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(cellvol_hold(store, volume, 0, STORE_VBUSY), 0);
	ck_assert_int_eq(try_status(&admin, &file), 0);
	ck_assert_int_eq(try_write(&admin, &file, 0, "x", 1, 0), STORE_VBUSY);
	ck_assert_int_eq(try_create(&admin, &root, "g", STORE_FILE), STORE_VBUSY);
	/* A change of the record keeps it. */
	ck_assert_int_eq(try_clone(volume, 1000, STORE_BACKUP, "v.backup"), 0);
	ck_assert_int_eq(try_create(&admin, &root, "g", STORE_FILE), STORE_VBUSY);
	ck_assert_int_eq(cellvol_hold(store, volume, STORE_VMOVED, STORE_VMOVED), 0);
	ck_assert_int_eq(try_status(&admin, &file), STORE_VMOVED);
	ck_assert_int_eq(cellvol_hold(store, volume, 0, 0), 0);
	ck_assert_int_eq(try_write(&admin, &file, 0, "x", 1, 0), 0);
	ck_assert_int_eq(cellvol_hold(store, 5, 0, STORE_VBUSY), STORE_VNOVOL);
	ck_assert_int_eq(try_ready(1000), 0);
}
END_TEST

static int note_location(void *arg, uint32_t id, const void *entry, size_t length)
{
	char *text = arg;

	snprintf(text + strlen(text), 100, "%u=%.*s ", id, (int)length, (const char *)entry);
	return 0;
}

START_TEST(ids_and_locations)
{
	char text[1000] = "";
	uint32_t first, next, last;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(cellvol_locations(store, note_location, text), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(cellvol_put_location(store, 9, NULL, 0), 0);
	ck_assert_int_eq(cellvol_put_location(store, 9, "nine", 4), 0);
	ck_assert_int_eq(cellvol_put_location(store, 7, "seven", 5), 0);
	ck_assert_int_eq(cellvol_put_location(store, 9, "nine!", 5), 0);
	fixture_reopen();
	ck_assert_int_eq(cellvol_locations(store, note_location, text), 0);
	ck_assert_str_eq(text, "7=seven 9=nine! ");
	ck_assert_int_eq(cellvol_put_location(store, 7, NULL, 0), 0);
	text[0] = '\0';
	ck_assert_int_eq(cellvol_locations(store, note_location, text), 0);
	ck_assert_str_eq(text, "9=nine! ");

	/* A volume that a cell has taken over is in no list of the others. */
	ck_assert_int_eq(store->ops->volume_at(store, 0, &about), 0);
	ck_assert_uint_eq(about.id, volume);
	cell = (struct cellvol){.id = volume};
	ck_assert_int_eq(cellvol_set(store, &cell, CELLVOL_OWNED, NULL, NULL), 0);
	ck_assert_int_eq(store->ops->volume_at(store, 0, &about), STORE_VNOVOL);
	fixture_reopen();
	ck_assert_int_eq(store->ops->volume_at(store, 0, &about), STORE_VNOVOL);
	fixture_volume(volume);
	ck_assert(about.cell && about.online);

	ck_assert_int_eq(cellvol_ids(store, 3, &first), 0);
	ck_assert_int_eq(cellvol_ids(store, 0, &last), 0);
	ck_assert_uint_eq(last, first + 2);
	ck_assert_int_eq(cellvol_ids(store, 1, &next), 0);
	ck_assert_uint_eq(next, first + 3);
	ck_assert_int_eq(try_clone(volume, next + 1, STORE_BACKUP, "b"), 0);
	ck_assert_int_eq(cellvol_ids(store, 1, &next), 0);
	ck_assert_uint_eq(next, first + 5);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {many_clones,
				      clones_of_clones,
				      clone_without_volume,
				      temporary_volumes,
				      killed_restore,
				      restored_beyond_quota,
				      replica,
				      dates_of_copies,
				      adopted_replica,
				      restored_clone,
				      converted_clone,
				      converted_replica,
				      holds,
				      ids_and_locations};
	Suite *suite = suite_create("volumes of a cell");
	TCase *tcase = tcase_create("volumes of a cell");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 240);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
