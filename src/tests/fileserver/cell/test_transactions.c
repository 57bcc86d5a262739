/* SPDX-License-Identifier: BSD-2-Clause */
/* Transactions: one for a volume at a time, bounded in number, and ended by themselves when nobody uses them. */
#include "tests/fileserver/cell/cell_store.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "afs/numbers.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static uint32_t changed; /* the volume of the last call */

static void note_change(void *arg, uint32_t volume)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	changed = volume;
	pthread_cond_signal(&told);
	pthread_mutex_unlock(&lock);
}

static const struct fsd_cell_options plain = {.changed = note_change};
static const struct fsd_cell_options hasty = {.changed = note_change, .idle_s = 1};
static struct fsd_transaction t;
static uint32_t volume;

static void make_volume_cell(const struct fsd_cell_options *options)
{
	const struct store_new_volume new = {.name = "v"};

	make_cell(options);
	ck_assert_int_eq(store_volume_create(cell_store, &new, &volume), 0);
}

static int state_of(uint32_t id)
{
	static const int32_t ids[] = {STORE_ADMINISTRATORS};
	const struct store_caller all = {.ids = ids, .id_count = 1, .administrator = true};
	const struct store_fid root = {id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	struct store_status status;

	return cell_store->ops->status(cell_store, &all, &root, &status);
}

static void end(int32_t id)
{
	ck_assert_int_eq(fsd_transaction_enter(cell, id, "EndTrans", &t), 0);
	fsd_transaction_end(cell, &t);
}

START_TEST(exclusion)
{
	struct fsd_transaction seen;
	int32_t id, other;

	make_volume_cell(&plain);
	ck_assert_int_eq(fsd_transaction_begin(cell, volume + 100, FSD_OFFLINE, &id), STORE_VNOVOL);
	ck_assert_int_eq(fsd_transaction_begin(cell, 0, FSD_OFFLINE, &id), STORE_VNOVOL);
	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_OFFLINE, &id), 0);
	ck_assert_int_eq(state_of(volume), STORE_VOFFLINE);
	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_BUSY, &other), AFS_VOL_VOLBUSY);
	ck_assert_int_eq(fsd_transaction_enter(cell, id + 1, "x", &t), ENOENT);
	ck_assert_int_eq(fsd_transaction_enter(cell, id, "GetStatus", &t), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, id, "x", &t), AFS_VOL_VOLBUSY);
	ck_assert_int_eq(fsd_transaction_look(cell, id, &t), 0);
	ck_assert(t.running);
	ck_assert_int_eq(fsd_transaction_look(cell, id + 1, &seen), ENOENT);
	t.flags = 3;
	fsd_transaction_leave(cell, &t);
	ck_assert_int_eq(fsd_transaction_look(cell, id, &seen), 0);
	ck_assert(!seen.running);
	ck_assert(fsd_transaction_of(cell, volume, &t));
	ck_assert_int_eq(t.flags, 3);
	ck_assert_str_eq(t.name, "GetStatus");
	end(id);
	ck_assert_int_eq(state_of(volume), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, id, "x", &t), ENOENT);
	/* The mode of a new volume is no way to replace one that is in use. */
	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_CREATE, &other), 0);
	ck_assert_int_eq(state_of(volume), STORE_VOFFLINE);
	end(other);
	ck_assert_int_eq(state_of(volume), 0);
	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_BUSY, &other), 0);
	ck_assert_int_ne(id, other);
	ck_assert_int_eq(state_of(volume), 0);
	remove_cell();
}
END_TEST

/* A new volume that is not ready at the end of its transaction goes. */
START_TEST(new_volumes)
{
	struct cellvol new = {.id = 5000, .type = STORE_RW, .name = "new"};
	int32_t id;

	make_volume_cell(&plain);
	ck_assert_int_eq(fsd_transaction_create(cell, &new, true, &id), 0);
	ck_assert_int_eq(state_of(5000), STORE_VOFFLINE);
	end(id);
	ck_assert_int_eq(state_of(5000), STORE_VNOVOL);
	ck_assert_int_eq(fsd_transaction_create(cell, &new, true, &id), 0);
	new.temporary = new.out = false;
	ck_assert_int_eq(cellvol_set(cell_store, &new, CELLVOL_STATE, NULL, NULL), 0);
	end(id);
	ck_assert_int_eq(state_of(5000), 0);
	ck_assert_int_eq(fsd_transaction_create(cell, &new, true, &id), EIO);
	ck_assert(!fsd_transaction_of(cell, 5000, NULL));
	remove_cell();
}
END_TEST

START_TEST(freezing)
{
	int32_t id;

	make_volume_cell(&plain);
	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_BUSY, &id), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, id, "Dump", &t), 0);
	ck_assert_int_eq(fsd_transaction_freeze(cell, &t), 0);
	ck_assert(t.frozen);
	ck_assert_int_eq(state_of(volume), 0);
	fsd_transaction_leave(cell, &t);
	end(id);
	/* A volume that has moved is not served when the transaction ends. */
	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_OFFLINE, &id), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, id, "SetForwarding", &t), 0);
	ck_assert_int_eq(cellvol_hold(cell_store, volume, STORE_VMOVED, STORE_VMOVED), 0);
	t.moved = t.changed = true;
	fsd_transaction_leave(cell, &t);
	end(id);
	ck_assert_uint_eq(changed, volume);
	ck_assert_int_eq(state_of(volume), STORE_VMOVED);
	remove_cell();
}
END_TEST

/* Nobody ends it; a call that runs keeps one. */
START_TEST(idle_end)
{
	struct cellvol new = {.id = 5000, .type = STORE_RW, .name = "new"};
	int32_t id, running;

	make_volume_cell(&hasty);
	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_OFFLINE, &running), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, running, "Restore", &t), 0);
	ck_assert_int_eq(fsd_transaction_create(cell, &new, true, &id), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, id, "SetFlags", &t), 0);
	t.changed = true;
	fsd_transaction_leave(cell, &t);
	pthread_mutex_lock(&lock);
	while (changed != 5000)
		pthread_cond_wait(&told, &lock);
	pthread_mutex_unlock(&lock);
	while (fsd_transaction_of(cell, 5000, NULL))
		usleep(1000);
	ck_assert_int_eq(state_of(5000), STORE_VNOVOL);
	ck_assert(fsd_transaction_of(cell, volume, &t));
	ck_assert_int_eq(state_of(volume), STORE_VOFFLINE);
	fsd_transaction_leave(cell, &t);
	remove_cell();
}
END_TEST

/* A clone goes with which its maker begins no transaction; not one that is in use. */
START_TEST(unready_clone)
{
	const struct cellvol clone = {.id = 5001, .type = STORE_RO, .name = "clone"};
	const struct cellvol used = {.id = 5002, .type = STORE_RO, .name = "used"};
	int32_t id;

	make_volume_cell(&hasty);
	ck_assert_int_eq(cellvol_clone(cell_store, volume, &used), 0);
	ck_assert_int_eq(fsd_transaction_begin(cell, used.id, FSD_OFFLINE, &id), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, id, "Dump", &t), 0);
	fsd_transaction_made(cell, used.id);
	ck_assert_int_eq(cellvol_clone(cell_store, volume, &clone), 0);
	fsd_transaction_made(cell, clone.id);
	ck_assert_int_eq(state_of(clone.id), STORE_VOFFLINE);
	while (state_of(clone.id) != STORE_VNOVOL)
		usleep(1000);
	ck_assert_int_eq(state_of(used.id), STORE_VOFFLINE);
	fsd_transaction_leave(cell, &t);
	remove_cell();
}
END_TEST

static int32_t copy_volume(const struct cellvol *as)
{
	int32_t id, code;

	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_BUSY, &id), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, id, "Clone", &t), 0);
	code = fsd_volume_copy(cell, &t, as, NULL);
	fsd_transaction_end(cell, &t);
	return code;
}

/* A read-write clone, and a read-only copy in the place of its volume. */
START_TEST(copies)
{
	struct cellvol as = {.id = 6000, .name = "w"}, found;
	struct cellvol ro = {.id = 6002, .parent = 6001, .type = STORE_RO, .name = "x.readonly"};
	int32_t id;

	make_volume_cell(&plain);
	ck_assert_int_eq(copy_volume(&as), 0);
	ck_assert_int_eq(copy_volume(&as), EIO);
	ck_assert(!fsd_transaction_of(cell, 6000, NULL));
	ck_assert_int_eq(cellvol_get(cell_store, 6000, &found), 0);
	ck_assert(found.temporary && found.out && found.type == STORE_RW);
	ck_assert_uint_eq(found.restored, volume);
	ck_assert_uint_eq(found.files, 1);
	/* It stays until its maker says that it is ready, but no longer than this process. */
	close_cell();
	open_cell(&plain);
	ck_assert_int_eq(cellvol_get(cell_store, 6000, &found), STORE_VNOVOL);

	ck_assert_int_eq(fsd_transaction_create(cell, &ro, true, &id), 0);
	ro.temporary = ro.out = false;
	ck_assert_int_eq(cellvol_set(cell_store, &ro, CELLVOL_STATE, NULL, NULL), 0);
	ck_assert_int_eq(fsd_volume_convert(cell, 6002), AFS_VOL_VOLBUSY);
	ck_assert_int_eq(cellvol_get(cell_store, 6001, &found), STORE_VNOVOL);
	end(id);
	ck_assert_int_eq(fsd_volume_convert(cell, 5), ENODEV);
	ck_assert_int_eq(fsd_volume_convert(cell, volume), EINVAL);
	ck_assert_int_eq(fsd_volume_convert(cell, 6002), 0);
	ck_assert_int_eq(state_of(6001), 0);
	ck_assert_int_eq(state_of(6002), STORE_VNOVOL);
	ck_assert_int_eq(cellvol_get(cell_store, 6001, &found), 0);
	ck_assert_str_eq(found.name, "x");
	ck_assert(!fsd_transaction_of(cell, 6001, NULL) && !fsd_transaction_of(cell, 6002, NULL));
	ro.temporary = ro.out = true;
	ck_assert_int_eq(fsd_transaction_create(cell, &ro, true, &id), 0);
	ck_assert_int_eq(fsd_volume_convert(cell, 6002), EXDEV);
	/* The server does not wait for copies when it stops. */
	fsd_cell_settle(cell);
	as.id = 6003;
	ck_assert_int_ne(copy_volume(&as), 0);
	ck_assert_int_eq(cellvol_get(cell_store, 6003, &found), STORE_VNOVOL);
	remove_cell();
}
END_TEST

START_TEST(bound)
{
	static struct fsd_transaction list[FSD_TRANSACTIONS];
	char name[16];
	int32_t id;

	make_volume_cell(&plain);
	for (uint32_t i = 0; i < FSD_TRANSACTIONS; i++) {
		struct cellvol new = {.id = 5000 + i, .type = STORE_RW};

		snprintf(name, sizeof(name), "n%u", i);
		strcpy(new.name, name);
		ck_assert_int_eq(fsd_transaction_create(cell, &new, false, &id), 0);
	}
	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_OFFLINE, &id), AFS_VOL_NO_MEMORY);
	ck_assert_int_eq(state_of(volume), 0);
	ck_assert_uint_eq(fsd_transactions(cell, list, FSD_TRANSACTIONS), FSD_TRANSACTIONS);
	end(list[7].id);
	ck_assert_int_eq(fsd_transaction_begin(cell, volume, FSD_OFFLINE, &id), 0);
	remove_cell();
}
END_TEST

TEST_MAIN("transactions", exclusion, new_volumes, freezing, idle_end, unready_clone, copies, bound)
