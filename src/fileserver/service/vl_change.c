/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume location service: calls of superusers that change its database. */
#include <errno.h>
#include <string.h>
#include <rxwire/call.h>

#include "afs/numbers.h"
#include "fileserver/service/vl.h"

#define BUMP_MAX 1000 /* ids of volumes at once */
/* What a release of a lock clears. */
#define RELEASE_OPERATION 2
#define RELEASE_ALL	  7

/* An administrator shall not look for a fault of the key: rxvol changes what is served. */
static int32_t refuse_change(const struct fsd_service *service, const rxw_call *rx)
{
	struct fsd_who who = {0};

	if (fsd_guard_asks(service->guard))
		fsd_guard_enter(service->guard, FSD_VL, rx, &who);
	return who.administrator ? EROFS : AFS_VL_PERM;
}

static bool may_change_locations(const struct fsd_service *service, const rxw_call *rx)
{
	return service->cell && fsd_is_superuser(service, FSD_VL, rx);
}

int32_t fsd_vl_register(void *context, rxw_call *rx, const struct rxw_uuid *uuid, int32_t spare,
			const bulkaddrs *addrs)
{
	const struct fsd_service *service = context;
	struct fsd_cell_server server = {.uuid = *uuid, .count = addrs->len};

	(void)spare;
	if (!may_change_locations(service, rx))
		return refuse_change(service, rx);
	if (addrs->len > FSD_SERVER_ADDRESSES)
		return AFS_VL_SIZEEXCEEDED;
	for (uint32_t i = 0; i < addrs->len; i++) {
		server.address[i] = addrs->val[i];
		if (fsd_vl_is_own(service, rx, addrs->val[i]))
			return AFS_VL_MULTIPADDR;
	}
	return fsd_cell_register(service->cell, &server);
}

int32_t fsd_vl_change_addr(void *context, rxw_call *rx, uint32_t old_addr, uint32_t new_addr)
{
	(void)old_addr, (void)new_addr;
	return refuse_change(context, rx);
}

int32_t fsd_vl_new_id(void *context, rxw_call *rx, uint32_t bump, uint32_t *id)
{
	const struct fsd_service *service = context;

	if (!may_change_locations(service, rx))
		return refuse_change(service, rx);
	if (bump > BUMP_MAX)
		return AFS_VL_BADVOLIDBUMP;
	return cellvol_ids(service->store, bump, id) ? AFS_VL_IO : 0;
}

/* The entry of a request; locks are not a caller's. */
static int32_t take_requested_entry(const struct fsd_service *service, rxw_call *rx,
				    const nvldbentry *e, struct fsd_location *entry)
{
	*entry = (struct fsd_location){.clone = e->cloneId,
				       .flags = (uint32_t)e->flags &
						(VLF_RWEXISTS | VLF_ROEXISTS | VLF_BACKEXISTS),
				       .count = (unsigned)e->nServers};
	if (!memchr(e->name, 0, sizeof(e->name)))
		return AFS_VL_BADNAME;
	if (e->nServers < 0 || e->nServers > FSD_SITES)
		return AFS_VL_BADENTRY;
	memcpy(entry->name, e->name, sizeof(entry->name));
	memcpy(entry->id, e->volumeId, sizeof(entry->id));
	for (unsigned i = 0; i < entry->count; i++) {
		uint32_t address = (uint32_t)e->serverNumber[i];

		if (e->serverPartition[i] < 0 || e->serverPartition[i] > UINT8_MAX)
			return AFS_VL_BADPARTITION;
		entry->site[i] = (struct fsd_site){
			.address = fsd_vl_is_own(service, rx, address) ? FSD_HERE : address,
			.partition = (uint8_t)e->serverPartition[i],
			.flags = (uint8_t)e->serverFlags[i]};
	}
	return 0;
}

/* Volumes of the store that nobody has recorded may have the name or one of the ids. */
static int32_t check_unrecorded(const struct fsd_service *service, const struct fsd_location *entry,
				const struct fsd_vl_set *but)
{
	struct fsd_vl_set other;

	if (fsd_vl_find_name(service, entry->name, &other) && !other.recorded &&
	    !(but && !strcmp(other.name, but->name)))
		return AFS_VL_NAMEEXIST;
	for (int i = 0; i < 3; i++)
		if (entry->id[i] && fsd_vl_find_id(service, entry->id[i], &other) &&
		    !other.recorded && !(but && !strcmp(other.name, but->name)))
			return AFS_VL_IDEXIST;
	return 0;
}

int32_t fsd_vl_create(void *context, rxw_call *rx, const nvldbentry *e)
{
	const struct fsd_service *service = context;
	struct fsd_location entry;
	int32_t code;

	if (!may_change_locations(service, rx))
		return refuse_change(service, rx);
	code = take_requested_entry(service, rx, e, &entry);
	if (!code)
		code = check_unrecorded(service, &entry, NULL);
	return code ? code : fsd_location_put(service->cell, 0, &entry);
}

static void new_form(const vldbentry *old, nvldbentry *e)
{
	memset(e, 0, sizeof(*e));
	memcpy(e->name, old->name, sizeof(e->name));
	e->nServers = old->nServers > OMAXNSERVERS ? -1 : old->nServers;
	memcpy(e->serverNumber, old->serverNumber, sizeof(old->serverNumber));
	memcpy(e->serverPartition, old->serverPartition, sizeof(old->serverPartition));
	memcpy(e->serverFlags, old->serverFlags, sizeof(old->serverFlags));
	memcpy(e->volumeId, old->volumeId, sizeof(e->volumeId));
	e->cloneId = old->cloneId;
	e->flags = old->flags;
}

int32_t fsd_vl_create_old(void *context, rxw_call *rx, const vldbentry *e)
{
	nvldbentry now;

	new_form(e, &now);
	return fsd_vl_create(context, rx, &now);
}

/* The set of a request, by one of its ids; it is in the database afterwards. */
static int32_t record_set(const struct fsd_service *service, rxw_call *rx, uint32_t id,
			  int32_t type, struct fsd_vl_set *set)
{
	struct fsd_location entry;
	nvldbentry e;
	int32_t code;

	if (type < -1 || type > AFS_VL_BACKUP)
		return AFS_VL_BADVOLTYPE;
	if (!fsd_vl_find_id(service, id, set) || (type >= 0 && id != set->id[type]))
		return AFS_VL_NOENT;
	if (set->recorded)
		return 0;
	if (id == FSD_ROOTAFS_ID || id == FSD_ROOTAFS_ID - 1)
		return EROFS;
	fsd_vl_fill_entry(service, rx, set, &e);
	code = take_requested_entry(service, rx, &e, &entry);
	if (!code)
		code = fsd_location_put(service->cell, 0, &entry);
	/* From now on only the record counts. */
	for (int i = 0; i < 3 && !code; i++) {
		const struct cellvol volume = {.id = set->id[i]};

		if (set->exists[i])
			cellvol_set(service->store, &volume, CELLVOL_OWNED, NULL, NULL);
	}
	return code;
}

int32_t fsd_vl_delete(void *context, rxw_call *rx, uint32_t id, int32_t type)
{
	const struct fsd_service *service = context;
	struct fsd_vl_set set;
	int32_t code;

	if (!may_change_locations(service, rx))
		return refuse_change(service, rx);
	code = record_set(service, rx, id, type, &set);
	return code ? code : fsd_location_delete(service->cell, id);
}

int32_t fsd_vl_replace(void *context, rxw_call *rx, uint32_t id, int32_t type, const nvldbentry *e,
		       int32_t release)
{
	const struct fsd_service *service = context;
	struct fsd_location entry;
	struct fsd_vl_set set;
	int32_t code;

	if (!may_change_locations(service, rx))
		return refuse_change(service, rx);
	if (release & ~RELEASE_ALL)
		return AFS_VL_BADRELLOCKTYPE;
	code = take_requested_entry(service, rx, e, &entry);
	if (!code)
		code = record_set(service, rx, id, type, &set);
	if (!code)
		code = check_unrecorded(service, &entry, &set);
	if (code)
		return code;
	if (!(release & RELEASE_OPERATION))
		entry.flags |= set.entry.flags & FSD_LOCKS;
	return fsd_location_put(service->cell, id, &entry);
}

int32_t fsd_vl_replace_old(void *context, rxw_call *rx, uint32_t id, int32_t type,
			   const vldbentry *e, int32_t release)
{
	nvldbentry now;

	new_form(e, &now);
	return fsd_vl_replace(context, rx, id, type, &now, release);
}

int32_t fsd_vl_update(void *context, rxw_call *rx, uint32_t id, int32_t type,
		      const VldbUpdateEntry *ue, int32_t release)
{
	(void)id, (void)type, (void)ue, (void)release;
	return refuse_change(context, rx);
}

int32_t fsd_vl_update_name(void *context, rxw_call *rx, const char *name, const VldbUpdateEntry *ue,
			   int32_t release)
{
	(void)name, (void)ue, (void)release;
	return refuse_change(context, rx);
}

int32_t fsd_vl_lock(void *context, rxw_call *rx, uint32_t id, int32_t type, int32_t operation)
{
	const struct fsd_service *service = context;
	uint32_t lock = (uint32_t)operation;
	struct fsd_vl_set set;
	int32_t code;

	if (!may_change_locations(service, rx))
		return refuse_change(service, rx);
	if (!lock || lock & ~FSD_LOCKS || lock & (lock - 1))
		return AFS_VL_BADVOLOPER;
	code = record_set(service, rx, id, type, &set);
	return code ? code : fsd_location_lock(service->cell, id, lock);
}

int32_t fsd_vl_unlock(void *context, rxw_call *rx, uint32_t id, int32_t type, int32_t release)
{
	const struct fsd_service *service = context;
	struct fsd_vl_set set;
	int32_t code;

	if (!may_change_locations(service, rx))
		return refuse_change(service, rx);
	if (release & ~RELEASE_ALL)
		return AFS_VL_BADRELLOCKTYPE;
	code = record_set(service, rx, id, type, &set);
	if (code || !(release & RELEASE_OPERATION))
		return code;
	return fsd_location_lock(service->cell, id, 0);
}
