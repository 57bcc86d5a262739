/* SPDX-License-Identifier: BSD-2-Clause */
/* Space and quotas. */
#include "volume/store/txn/space.h"

#include <assert.h>
#include <stdatomic.h>

#include "volume/store/disk/vfs.h"

/*
 * Space that stores leave free. Every commit writes to the log, which is moved to the database later, so removals
 * need space as well.
 */
#define KEPT_KIB   4096
#define KEPT_SHARE 8 /* but at most this part of the disk */

uint64_t space_blocks_of(uint64_t length)
{
	return length ? (length - 1) / 1024 + 1 : 1;
}

uint64_t space_blocks(const struct vnode *v)
{
	return space_blocks_of(v->length);
}

static uint64_t subtract_kib(uint64_t from, uint64_t kib)
{
	return kib < from ? from - kib : 0;
}

static uint64_t compute_kept_kib(struct core *core, uint64_t total_kib)
{
	uint64_t kib = KEPT_KIB + store_vfs_log_size(core->vfs) / 1024;

	return kib < total_kib / KEPT_SHARE ? kib : total_kib / KEPT_SHARE;
}

/* Measure the space as space_disk() does, without promises. */
static int measure_disk_space(struct core *core, struct store_space *space)
{
	uint64_t available, total;
	int result = core->layer->ops->space(core->layer, &available, &total);

	if (result)
		return result;
	space->total_kib = total / 1024;
	space->available_kib =
		subtract_kib(available / 1024, compute_kept_kib(core, space->total_kib));
	return 0;
}

int space_disk(struct core *core, struct store_space *space)
{
	int result = measure_disk_space(core, space);

	if (!result)
		space->available_kib = subtract_kib(space->available_kib, core->promised);
	return result;
}

static int check_disk_space(struct core *core, uint64_t kib)
{
	struct store_space space;
	int result = kib ? space_disk(core, &space) : 0;

	if (result || !kib || space.available_kib >= kib)
		return result;
	core->tight = true;
	return STORE_VDISKFULL;
}

int space_check(struct core *core, const struct volrec *volume, const struct space_need *need)
{
	uint64_t used = volume->used_kib + volumes_promised(&core->volumes, volume->id);
	int result = check_disk_space(core, need->disk);

	if (result || !need->growth)
		return result;
	used = subtract_kib(used + need->growth, need->promised);
	/* A full volume does not grow, not even by less than `spare`. */
	if (volume->quota_kib && used > volume->quota_kib + need->spare)
		return STORE_VOVERQUOTA;
	return 0;
}

int space_promise(struct core *core, uint64_t kib, uint64_t held)
{
	uint64_t promised = core->promised;
	struct store_space space;
	bool fits;
	int result = kib ? measure_disk_space(core, &space) : 0;

	if (result || !kib)
		return result;
	do {
		fits = promised + kib <= space.available_kib;
	} while (!atomic_compare_exchange_weak(&core->promised, &promised,
					       fits ? promised + kib : promised - held));
	if (!fits)
		core->tight = true;
	return fits ? 0 : STORE_VDISKFULL;
}

void space_give_back(struct core *core, uint64_t kib)
{
	assert(core->promised >= kib);
	if (kib)
		atomic_fetch_sub(&core->promised, kib);
}
