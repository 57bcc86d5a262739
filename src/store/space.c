/* SPDX-License-Identifier: BSD-2-Clause */
/* Space and quotas. */
#include "store/space.h"

#include <stdatomic.h>

uint64_t space_blocks_of(uint64_t length)
{
	return length ? (length - 1) / 1024 + 1 : 1;
}

uint64_t space_blocks(const struct vnode *v)
{
	return space_blocks_of(v->length);
}

int space_disk(struct core *core, struct store_space *space)
{
	uint64_t available, total, promised = core->promised;
	int result = core->layer->ops->space(core->layer, &available, &total);

	if (result)
		return result;
	space->total_kib = total / 1024;
	space->available_kib = available / 1024;
	space->available_kib -= promised < space->available_kib ? promised : space->available_kib;
	return 0;
}

int space_check(struct core *core, const struct volrec *volume, uint64_t growth, uint64_t spare,
		uint64_t promised)
{
	uint64_t used = volume->used_kib + volumes_promised(&core->volumes, volume->id) + growth;
	struct store_space space;
	int result = space_disk(core, &space);

	if (result || !growth)
		return result;
	used -= promised < used ? promised : used;
	if (space.available_kib + promised + spare < growth)
		return STORE_VDISKFULL;
	/* A full volume does not grow, not even by less than `spare`. */
	if (volume->quota_kib && used > volume->quota_kib + spare)
		return STORE_VOVERQUOTA;
	return 0;
}

void space_promise(struct core *core, uint32_t volume, int64_t kib)
{
	if (!kib)
		return;
	atomic_fetch_add(&core->promised, (uint64_t)kib);
	volumes_promise(&core->volumes, volume, kib);
}
