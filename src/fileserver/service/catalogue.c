/* SPDX-License-Identifier: BSD-2-Clause */
/* The volumes of this server, as the location service has them: grouped by name. */
#include <string.h>
#include <rxwire/call.h>

#include "fileserver/service/services.h"

static const char *const suffixes[] = {"", ".readonly", ".backup"};

static bool is_volume(struct store *store, uint32_t id)
{
	struct store_volume volume;

	return id && store->ops->volume(store, id, &volume) == 0;
}

/* A volume's name without the suffix of its type. */
static void base_name(const struct store_volume *volume, char name[STORE_VOLNAME_MAX + 16])
{
	const char *suffix = suffixes[volume->type == STORE_RO	     ? 1
				      : volume->type == STORE_BACKUP ? 2
								     : 0];
	size_t n = strlen(volume->name), s = strlen(suffix);

	memcpy(name, volume->name, n + 1);
	if (s && n > s && strcmp(name + n - s, suffix) == 0)
		name[n - s] = '\0';
}

static void fill_set(struct store *store, const struct store_volume *volume, struct fsd_set *set)
{
	memset(set, 0, sizeof(*set));
	base_name(volume, set->name);
	set->id[AFS_VL_RW] = volume->rw;
	set->id[AFS_VL_RO] = volume->ro;
	set->id[AFS_VL_BACKUP] = volume->backup;
	for (int i = 0; i < 3; i++)
		set->exists[i] = set->id[i] == volume->id || is_volume(store, set->id[i]);
}

static void rootafs_set(const struct fsd_service *service, struct fsd_set *set)
{
	struct store *store = fsd_rootafs_store(service->rootafs);
	struct store_volume volume;

	store->ops->volume(store, FSD_ROOTAFS_ID, &volume);
	fill_set(store, &volume, set);
}

/* 0; STORE_VNOVOL, with the number of volumes in *count. */
static int volume_at(const struct fsd_service *service, uint32_t at, struct store_volume *volume,
		     uint32_t *count)
{
	struct store *store = service->store;
	struct store_totals totals = {.count = 1};
	int result;

	if (store->ops->volume_at)
		result = store->ops->volume_at(store, at, volume);
	else
		result = at ? STORE_VNOVOL : store->ops->volume_next(store, 0, volume);
	if (result && store->ops->totals)
		store->ops->totals(store, &totals);
	*count = totals.count;
	return result;
}

bool fsd_walk_next(struct fsd_walk *walk, struct fsd_set *set)
{
	struct store *store = walk->service->store;
	struct store_volume volume;
	uint32_t count;

	while (volume_at(walk->service, walk->at, &volume, &count) == 0) {
		walk->at++;
		/* Clones come with the volume that they were made of, if it exists. */
		if (volume.type != STORE_RW && is_volume(store, volume.rw))
			continue;
		fill_set(store, &volume, set);
		return true;
	}
	if (walk->at > count || !walk->service->rootafs)
		return false;
	walk->at = count + 1;
	rootafs_set(walk->service, set);
	return true;
}

void fsd_totals(const struct fsd_service *service, struct fsd_totals *totals)
{
	static const enum store_type types[] = {STORE_RW, STORE_RO, STORE_BACKUP};
	struct store *store = service->store;
	struct fsd_walk walk = {.service = service};
	struct store_totals all;
	struct fsd_set set;

	*totals = (struct fsd_totals){0};
	if (store->ops->totals) {
		store->ops->totals(store, &all);
		for (int i = 0; i < 3; i++)
			totals->exist[i] = all.of_type[types[i]];
		totals->last = all.last;
		walk.at = all.count;
	}
	/* The one volume of a store that does not count, and root.afs. */
	while (fsd_walk_next(&walk, &set))
		for (int i = 0; i < 3; i++) {
			totals->exist[i] += set.exists[i];
			if (set.exists[i] && set.id[i] > totals->last)
				totals->last = set.id[i];
		}
}

/* All volumes are few, or the call has a permit for a long list until fsd_permit_return(). */
bool fsd_may_list(struct fsd_service *service, rxw_call *rx)
{
	struct store *store = service->store;
	struct sockaddr_storage peer = {0};
	struct store_totals totals = {0};
	socklen_t length = sizeof(peer);

	if (store->ops->totals)
		store->ops->totals(store, &totals);
	if (totals.count <= FSD_LIST_FEW)
		return true;
	rxw_call_peer(rx, &peer, &length);
	return fsd_permit_take(&service->lists, rx, &peer);
}

bool fsd_set_by_id(const struct fsd_service *service, uint32_t id, struct fsd_set *set)
{
	struct store *store = service->store;
	struct store_volume volume;

	if (service->rootafs && (id == FSD_ROOTAFS_ID || id == FSD_ROOTAFS_ID - 1)) {
		rootafs_set(service, set);
		return true;
	}
	if (service->exported && id == service->volume.rw)
		id = service->volume.id;
	if (service->exported && id == service->volume.id) /* counts nothing */
		volume = service->volume;
	else if (!id || store->ops->volume(store, id, &volume))
		return false;
	fill_set(store, &volume, set);
	return true;
}

bool fsd_set_by_name(const struct fsd_service *service, const char *name, struct fsd_set *set)
{
	struct store *store = service->store;
	char full[sizeof(set->name) + 16];
	struct store_volume volume;

	if (strlen(name) >= STORE_VOLNAME_MAX + 1)
		return false;
	for (int i = 0; i < 3; i++) {
		strcpy(full, name);
		strcat(full, suffixes[i]);
		if (store->ops->volume_by_name(store, full, &volume) == 0) {
			fill_set(store, &volume, set);
			return true;
		}
	}
	if (service->rootafs && strcmp(name, FSD_ROOTAFS_NAME) == 0) {
		rootafs_set(service, set);
		return true;
	}
	if (!service->exported || (strcmp(name, "root.cell") && strcmp(name, FSD_ROOTAFS_NAME)))
		return false;
	fill_set(store, &service->volume, set);
	strcpy(set->name, name);
	return true;
}
