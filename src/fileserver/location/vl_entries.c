/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of locations: for the volumes of the store, and what the database has of others. */
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <rxwire/call.h>

#include "afs/numbers.h"
#include "fileserver/location/entries.h"

/* -- the volumes of this server, grouped by name -- */

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

/* An entry of the database. */
static void recorded_set(const struct fsd_location *entry, struct fsd_vl_set *set)
{
	static const uint32_t flags[] = {VLF_RWEXISTS, VLF_ROEXISTS, VLF_BACKEXISTS};

	memset(set, 0, sizeof(*set));
	snprintf(set->name, sizeof(set->name), "%s", entry->name);
	for (int i = 0; i < 3; i++) {
		set->id[i] = entry->id[i];
		set->exists[i] = entry->flags & flags[i];
	}
	set->recorded = true;
	set->entry = *entry;
}

static void fill_set(struct store *store, const struct store_volume *volume, struct fsd_vl_set *set)
{
	memset(set, 0, sizeof(*set));
	base_name(volume, set->name);
	set->id[AFS_VL_RW] = volume->rw;
	set->id[AFS_VL_RO] = volume->ro;
	set->id[AFS_VL_BACKUP] = volume->backup;
	for (int i = 0; i < 3; i++)
		set->exists[i] = set->id[i] == volume->id || is_volume(store, set->id[i]);
}

static void rootafs_set(const struct fsd_service *service, struct fsd_vl_set *set)
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
	struct store_totals totals = {.plain = 1};
	int result;

	if (store->ops->volume_at)
		result = store->ops->volume_at(store, at, volume);
	else
		result = at ? STORE_VNOVOL : store->ops->volume_next(store, 0, volume);
	if (result && store->ops->totals)
		store->ops->totals(store, &totals);
	*count = totals.plain;
	return result;
}

/* Whether a volume is listed, with its clones: nobody has recorded them. */
static bool stands_for_set(const struct fsd_service *service, const struct store_volume *volume)
{
	struct fsd_location entry;

	if (volume->type != STORE_RW && is_volume(service->store, volume->rw))
		return false;
	return !service->cell ||
	       (!volume->cell && !fsd_location_by_id(service->cell, volume->id, &entry));
}

/* root.afs comes before the entries of the database. */
bool fsd_vl_next(struct fsd_vl_walk *walk, struct fsd_vl_set *set)
{
	struct store *store = walk->service->store;
	struct store_volume volume;
	struct fsd_location entry;
	uint32_t count;

	while (volume_at(walk->service, walk->at, &volume, &count) == 0) {
		walk->at++;
		/* Clones come with the volume that they were made of, if it exists. */
		if (!stands_for_set(walk->service, &volume))
			continue;
		fill_set(store, &volume, set);
		return true;
	}
	/* Then root.afs, and the entries of the database. */
	if (walk->at <= count && walk->service->rootafs) {
		walk->at = count + 1;
		rootafs_set(walk->service, set);
		return true;
	}
	walk->at = walk->at <= count ? count + 1 : walk->at;
	if (!walk->service->cell ||
	    !fsd_location_at(walk->service->cell, walk->at - count - 1, &entry))
		return false;
	walk->at++;
	recorded_set(&entry, set);
	return true;
}

bool fsd_vl_find_id(const struct fsd_service *service, uint32_t id, struct fsd_vl_set *set)
{
	struct store *store = service->store;
	struct store_volume volume;
	struct fsd_location entry;

	if (service->rootafs && (id == FSD_ROOTAFS_ID || id == FSD_ROOTAFS_ID - 1)) {
		rootafs_set(service, set);
		return true;
	}
	if (service->cell && fsd_location_by_id(service->cell, id, &entry)) {
		recorded_set(&entry, set);
		return true;
	}
	if (service->exported && id == service->volume.rw)
		id = service->volume.id;
	if (service->exported && id == service->volume.id) /* counts nothing */
		volume = service->volume;
	else if (!id || store->ops->volume(store, id, &volume) || volume.cell)
		return false;
	fill_set(store, &volume, set);
	return true;
}

/* Finds the volumes of a name that has no suffix. */
bool fsd_vl_find_name(const struct fsd_service *service, const char *name, struct fsd_vl_set *set)
{
	struct store *store = service->store;
	char full[sizeof(set->name) + 16];
	struct store_volume volume;
	struct fsd_location entry;

	if (strlen(name) >= STORE_VOLNAME_MAX + 1)
		return false;
	if (service->cell && fsd_location_by_name(service->cell, name, &entry)) {
		recorded_set(&entry, set);
		return true;
	}
	for (int i = 0; i < 3; i++) {
		strcpy(full, name);
		strcat(full, suffixes[i]);
		if (store->ops->volume_by_name(store, full, &volume) == 0 &&
		    (!service->cell || stands_for_set(service, &volume))) {
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

/* -- addresses -- */

static void add_address(struct fsd_vl_addresses *list, uint32_t address)
{
	for (unsigned i = 0; i < list->count; i++)
		if (list->address[i] == address)
			return;
	if (address && list->count < FSD_ADDRS_MAX)
		list->address[list->count++] = address;
}

/*
 * The address that the client called comes first, because the client can reach it. IPv6 addresses
 * cannot be sent.
 */
void fsd_vl_addresses(const struct fsd_service *service, rxw_call *rx,
		      struct fsd_vl_addresses *list)
{
	struct sockaddr_storage local;
	socklen_t length = sizeof(local);

	list->count = 0;
	if (rxw_call_local(rx, &local, &length) == 0 && length && local.ss_family == AF_INET)
		add_address(list, ntohl(((const struct sockaddr_in *)&local)->sin_addr.s_addr));
	for (unsigned i = 0; i < service->advertise_count; i++)
		add_address(list, service->advertise[i]);
}

/* One address stands for all of a server: FSD_HERE, the first of its addresses, or the only one that is known. */
uint32_t fsd_vl_server_of(const struct fsd_service *service, rxw_call *rx, uint32_t address)
{
	struct fsd_cell_server server;

	if (fsd_vl_is_own(service, rx, address))
		return FSD_HERE;
	return service->cell && fsd_cell_server_of(service->cell, address, &server)
		       ? server.address[0]
		       : address;
}

bool fsd_vl_is_own(const struct fsd_service *service, rxw_call *rx, uint32_t address)
{
	struct fsd_vl_addresses list;

	fsd_vl_addresses(service, rx, &list);
	for (unsigned i = 0; i < list.count; i++)
		if (list.address[i] == address)
			return true;
	return false;
}

/* -- the volumes, and their entries in three forms -- */

/* One site for the read-write volume and its backup, one for the read-only volume. */
static void add_site(const struct fsd_vl_addresses *list, int32_t flag, nvldbentry *e)
{
	assert(e->nServers < NMAXNSERVERS);
	e->serverNumber[e->nServers] = list->count ? (int32_t)list->address[0] : 0;
	e->serverFlags[e->nServers++] = flag;
}

static void fill_recorded_entry(const struct fsd_location *from,
				const struct fsd_vl_addresses *list, nvldbentry *e)
{
	uint32_t here = list->count ? list->address[0] : 0;

	memcpy(e->volumeId, from->id, sizeof(e->volumeId));
	e->cloneId = from->clone;
	e->flags = (int32_t)from->flags;
	e->nServers = (int32_t)from->count;
	for (unsigned i = 0; i < from->count; i++) {
		const struct fsd_site *site = &from->site[i];

		e->serverNumber[i] = (int32_t)(site->address == FSD_HERE ? here : site->address);
		e->serverPartition[i] = site->partition;
		e->serverFlags[i] = site->flags;
	}
}

/*
 * As in any cell a read-only volume belongs to a read-write one, which has an id even if it does not
 * exist: cache managers identify the set of volumes by it.
 */
void fsd_vl_fill_entry(const struct fsd_service *service, rxw_call *rx,
		       const struct fsd_vl_set *set, nvldbentry *e)
{
	static const int32_t flags[] = {VLF_RWEXISTS, VLF_ROEXISTS, VLF_BACKEXISTS};
	struct fsd_vl_addresses list;

	fsd_vl_addresses(service, rx, &list);
	memset(e, 0, sizeof(*e));
	memcpy(e->name, set->name, strnlen(set->name, sizeof(e->name) - 1));
	if (set->recorded) {
		fill_recorded_entry(&set->entry, &list, e);
		return;
	}
	for (int i = 0; i < 3; i++) {
		e->volumeId[i] = set->id[i];
		if (set->exists[i])
			e->flags |= flags[i];
	}
	if (set->exists[AFS_VL_RW] || set->exists[AFS_VL_BACKUP])
		add_site(&list, VLSF_RWVOL, e);
	if (set->exists[AFS_VL_RO])
		add_site(&list, VLSF_ROVOL, e);
}

void fsd_vl_old_form(const nvldbentry *e, vldbentry *old)
{
	memset(old, 0, sizeof(*old));
	memcpy(old->name, e->name, sizeof(old->name));
	old->nServers = e->nServers > OMAXNSERVERS ? OMAXNSERVERS : e->nServers;
	memcpy(old->serverNumber, e->serverNumber, sizeof(old->serverNumber));
	memcpy(old->serverPartition, e->serverPartition, sizeof(old->serverPartition));
	memcpy(old->serverFlags, e->serverFlags, sizeof(old->serverFlags));
	memcpy(old->volumeId, e->volumeId, sizeof(old->volumeId));
	old->cloneId = e->cloneId;
	old->flags = e->flags;
}
