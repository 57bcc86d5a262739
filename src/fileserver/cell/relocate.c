/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of locations that a rescue has lost are made anew, from the volumes that are here. Only what the volumes show is known:
 * sites on other servers come back when an administrator runs vos syncvldb for these.
 */
#include "fileserver/cell/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afs/vl.h"
#include "afs/volname.h"
#include "fileserver/base/base.h"

/* A volume without an entry. */
struct unlisted {
	uint32_t parent, id;
};

struct unlisted_volumes {
	struct unlisted *item;
	size_t count, room;
};

static bool add_unlisted(struct unlisted_volumes *all, const struct cellvol *volume)
{
	if (all->count == all->room) {
		size_t room = all->room ? 2 * all->room : 64;
		struct unlisted *more = realloc(all->item, room * sizeof(*more));

		if (!more)
			return false;
		all->item = more;
		all->room = room;
	}
	all->item[all->count++] = (struct unlisted){volume->parent, volume->id};
	return true;
}

/* Volumes that the location service does not derive, and that are neither remains of a command nor clones for writing. */
static bool find_unlisted_volumes(struct fsd_cell *cell, struct unlisted_volumes *all)
{
	const struct store_ops *ops = cell->store->ops;
	struct store_volume volume = {0};
	struct fsd_location entry;
	struct cellvol found;

	while (ops->volume_next(cell->store, volume.id, &volume) == 0)
		if (volume.cell && cellvol_get(cell->store, volume.id, &found) == 0 &&
		    !found.temporary && (found.type != STORE_RW || found.id == found.parent) &&
		    !fsd_location_by_id(cell, found.id, &entry) &&
		    !fsd_location_by_id(cell, found.parent, &entry) && !add_unlisted(all, &found))
			return false;
	return true;
}

static int compare_unlisted(const void *a, const void *b)
{
	const struct unlisted *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void cut_suffix(char *name, const char *suffix)
{
	size_t length = strlen(name), end = strlen(suffix);

	if (length > end && !strcmp(name + length - end, suffix))
		name[length - end] = '\0';
}

/* What a volume adds to the entry of its group. */
static void add_to_entry(struct fsd_location *entry, const struct cellvol *volume)
{
	static const uint32_t exists[] = {VLF_RWEXISTS, VLF_ROEXISTS, VLF_BACKEXISTS};
	static const uint8_t sites[] = {VLSF_RWVOL, VLSF_ROVOL, 0};
	char name[sizeof(volume->name)];
	unsigned type = volume->type == STORE_RW ? 0 : volume->type == STORE_RO ? 1 : 2;

	if (entry->flags & exists[type])
		return;
	entry->flags |= exists[type];
	entry->id[type] = volume->id;
	if (sites[type])
		entry->site[entry->count++] =
			(struct fsd_site){.address = FSD_HERE, .flags = sites[type]};
	if (*entry->name)
		return;
	memcpy(name, volume->name, sizeof(name));
	cut_suffix(name, type == 1 ? ".readonly" : type == 2 ? ".backup" : "");
	/* One that is too long gets no entry. */
	if (strlen(name) < sizeof(entry->name))
		memcpy(entry->name, name, strlen(name) + 1);
}

/* The entry of volumes with one parent. */
static bool make_entry_anew(struct fsd_cell *cell, const struct unlisted *item, size_t count)
{
	struct fsd_location entry = {.id[0] = item->parent};
	struct cellvol volume;

	for (size_t i = 0; i < count; i++)
		if (cellvol_get(cell->store, item[i].id, &volume) == 0)
			add_to_entry(&entry, &volume);
	return fsd_location_put(cell, 0, &entry) == 0;
}

static void make_entries_anew(struct fsd_cell *cell, const struct unlisted_volumes *all)
{
	unsigned made = 0, refused = 0;

	for (size_t i = 0, next; i < all->count; i = next) {
		for (next = i + 1; next < all->count && all->item[next].parent == all->item[i].parent;)
			next++;
		if (make_entry_anew(cell, &all->item[i], next - i))
			made++;
		else
			refused++;
	}
	if (made)
		fsd_log(RXW_LOG_WARNING,
			"the store was rescued: %u entries of locations are made anew from the volumes "
			"here; \"vos syncvldb\" adds the sites of other servers",
			made);
	if (refused)
		fsd_log(RXW_LOG_WARNING,
			"%u entries of locations could not be made anew, since others have their names "
			"or ids: see \"vos listvol\" and \"vos syncvldb\"",
			refused);
}

int relocate_volumes(struct fsd_cell *cell)
{
	struct unlisted_volumes all = {0};
	bool lost = false, member = false;
	int result = cellvol_locations_lost(cell->store, &lost);

	/* The location service of a member is elsewhere. */
	if (!result)
		result = store_is_member(cell->store, &member);
	if (result || !lost || member)
		return result;
	if (find_unlisted_volumes(cell, &all)) {
		qsort(all.item, all.count, sizeof(*all.item), compare_unlisted);
		make_entries_anew(cell, &all);
		result = cellvol_locations_complete(cell->store);
	} else {
		result = -ENOMEM;
	}
	free(all.item);
	return result;
}
