/* SPDX-License-Identifier: BSD-2-Clause */
/* The volumes that a transaction uses: new ones, names, and the next numbers of their vnodes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/txn/work.h"

#define RESTART_UNIQUES (1u << 20) /* more than can have been used and forgotten */

int work_any_volume(struct work *work, uint32_t id, struct workvol **out)
{
	struct workvol *volume = work->volumes;
	int result;

	while (volume && volume->rec.id != id)
		volume = volume->next;
	if (volume && volume->gone)
		return STORE_VNOVOL;
	if (!volume) {
		volume = calloc(1, sizeof(*volume));
		if (!volume)
			return -ENOMEM;
		result = volumes_get(work->base.volumes, id, &volume->rec);
		if (result) {
			free(volume);
			return result;
		}
		volume->next = work->volumes;
		work->volumes = volume;
	}
	*out = volume;
	return 0;
}

int work_volume(struct work *work, uint32_t id, struct workvol **volume)
{
	int result = work_any_volume(work, id, volume);

	if (!result && (*volume)->rec.cell & VOLUME_GHOST)
		result = STORE_VNOVOL;
	if (!result && (*volume)->rec.hold_write)
		result = (*volume)->rec.hold_write;
	if (!result && (*volume)->rec.offline)
		result = (*volume)->rec.offline & VOLUME_BUSY ? STORE_VBUSY : STORE_VOFFLINE;
	return result;
}

/* Whether another volume has this name, or will have it. */
static bool is_name_taken(struct work *work, const char *name)
{
	struct volrec other;
	const struct workvol *volume = work->volumes;

	for (; volume; volume = volume->next)
		if (!volume->gone && !(volume->rec.cell & VOLUME_NAMELESS) &&
		    strcmp(volume->rec.name, name) == 0)
			return true;
	if (!volumes_has_name(work->base.volumes, name))
		return false;
	if (volumes_by_name(work->base.volumes, name, &other))
		return true;
	for (volume = work->volumes; volume; volume = volume->next)
		if (volume->rec.id == other.id)
			return false; /* it is gone, or has another name by now */
	return true;
}

/* After the commit there must be room for the new volumes of the transaction. */
static int reserve_volume_room(struct work *work)
{
	unsigned count = 1;

	for (const struct workvol *volume = work->volumes; volume; volume = volume->next)
		count++;
	return volumes_reserve(work->base.volumes, count);
}

int work_volume_add(struct work *work, const struct volrec *record)
{
	struct workvol *volume = work->volumes;

	if (!(record->cell & VOLUME_NAMELESS) && is_name_taken(work, record->name))
		return -EEXIST;
	if (reserve_volume_room(work))
		return -ENOMEM;
	while (volume && volume->rec.id != record->id)
		volume = volume->next;
	if (volume ? !volume->gone : volumes_has(work->base.volumes, record->id))
		return STORE_VVOLEXISTS;
	if (!volume) {
		volume = calloc(1, sizeof(*volume));
		if (!volume)
			return -ENOMEM;
		volume->next = work->volumes;
		work->volumes = volume;
	}
	volume->rec = *record;
	volume->changed = volume->named = true;
	volume->gone = false;
	return 0;
}

int work_volume_rename(struct work *work, struct workvol *volume, const char *name)
{
	if (is_name_taken(work, name))
		return -EEXIST;
	snprintf(volume->rec.name, sizeof(volume->rec.name), "%s", name);
	volume->changed = volume->named = true;
	return 0;
}

void work_volume_remove(struct work *work, struct workvol *volume)
{
	(void)work;
	volume->changed = volume->gone = true;
}

uint32_t work_stamp(const struct work *work, const struct workvol *volume)
{
	return work->now > volume->rec.updated ? work->now : volume->rec.updated;
}

void work_volume_changed(struct work *work, struct workvol *volume)
{
	volume->rec.updated = work_stamp(work, volume);
	volume->changed = true;
}

uint32_t work_unique(struct work *work, struct workvol *volume)
{
	struct volrec *rec = &volume->rec;

	/* After a restart of the machine, numbers may have been used that were forgotten. */
	if (rec->incarnation != work->base.incarnation) {
		rec->next_unique += RESTART_UNIQUES;
		rec->incarnation = work->base.incarnation;
	}
	if (rec->next_unique < 2)
		rec->next_unique = 2;
	volume->changed = true;
	return rec->next_unique++;
}
