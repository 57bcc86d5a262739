/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume location service: look-ups and addresses; which function handles which call. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/call.h>
#include <rxwire/error.h>

#include "afs/numbers.h"
#include "afs/uuid.h"
#include "afs/volname.h"
#include "fileserver/location/entries.h"
#include "fileserver/location/location.h"

#define FIRST_INDEX	   1
#define ADDRESS_BY_INDEX   0xff000000u /* GetAddrs: a server that has a UUID, base 0 */
#define ADDRESS_GENERATION 1	       /* the list of a server is made once */
#define SUFFIX_MAX	   9	       /* of ".readonly" */

/* The UUID of a site. Of a server that never registered only the address is known. */
static void fill_site_uuid(const struct fsd_service *service, rxw_call *rx, uint32_t address,
			   uvldbentry *u, int i)
{
	struct fsd_cell_server server;

	u->serverFlags[i] |= VLSF_UUID;
	u->serverUnique[i] = ADDRESS_GENERATION;
	if (fsd_vl_is_own(service, rx, address)) {
		u->serverNumber[i] = service->uuid;
	} else if (service->cell && fsd_cell_server_of(service->cell, address, &server)) {
		u->serverNumber[i] = server.uuid;
		u->serverUnique[i] = (int32_t)server.unique;
	} else {
		u->serverNumber[i].time_low = address;
		u->serverFlags[i] &= ~VLSF_UUID;
	}
}

static void uuid_form(const struct fsd_service *service, rxw_call *rx, const nvldbentry *e,
		      uvldbentry *u)
{
	memset(u, 0, sizeof(*u));
	memcpy(u->name, e->name, sizeof(u->name));
	u->nServers = e->nServers;
	for (int i = 0; i < e->nServers; i++) {
		u->serverFlags[i] = e->serverFlags[i];
		u->serverPartition[i] = e->serverPartition[i];
		fill_site_uuid(service, rx, (uint32_t)e->serverNumber[i], u, i);
	}
	memcpy(u->volumeId, e->volumeId, sizeof(u->volumeId));
	u->cloneId = e->cloneId;
	u->flags = e->flags;
}

/* -- lookups -- */

static bool all_digits(const char *name)
{
	return strspn(name, "0123456789") == strlen(name);
}

static void strip_suffix(char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	if (n > s && strcmp(name + n - s, suffix) == 0)
		name[n - s] = 0;
}

/* The entry of the name in a request: 0 and the entry, or a code. */
static int32_t find_entry_by_name(const struct fsd_service *service, rxw_call *rx,
				  const char *asked, nvldbentry *e)
{
	char name[VL_MAXNAMELEN + SUFFIX_MAX + 1];
	size_t before = strlen(asked);
	struct fsd_vl_set set;

	if (all_digits(asked)) { /* "" is id 0, which no volume has */
		unsigned long long id = strtoull(asked, NULL, 10);

		if (id > UINT32_MAX || !fsd_vl_find_id(service, (uint32_t)id, &set))
			return AFS_VL_NOENT;
		fsd_vl_fill_entry(service, rx, &set, e);
		return 0;
	}
	if (before >= sizeof(name))
		return AFS_VL_BADNAME;
	memcpy(name, asked, before + 1);
	strip_suffix(name, ".readonly");
	if (strlen(name) == before)
		strip_suffix(name, ".backup");
	if (strlen(name) >= VL_MAXNAMELEN || (!all_digits(name) && !afs_volume_name_valid(name)))
		return AFS_VL_BADNAME;
	if (!fsd_vl_find_name(service, name, &set))
		return AFS_VL_NOENT;
	fsd_vl_fill_entry(service, rx, &set, e);
	return 0;
}

static int32_t get_by_name_u(void *context, rxw_call *rx, const char *name, uvldbentry *e)
{
	nvldbentry found;
	int32_t code = find_entry_by_name(context, rx, name, &found);

	if (!code)
		uuid_form(context, rx, &found, e);
	return code;
}

static int32_t get_by_name_n(void *context, rxw_call *rx, const char *name, nvldbentry *e)
{
	return find_entry_by_name(context, rx, name, e);
}

static int32_t get_by_name_o(void *context, rxw_call *rx, const char *name, vldbentry *e)
{
	nvldbentry found;
	int32_t code = find_entry_by_name(context, rx, name, &found);

	if (!code)
		fsd_vl_old_form(&found, e);
	return code;
}

static int32_t get_by_id_n(void *context, rxw_call *rx, uint32_t id, int32_t type, nvldbentry *e)
{
	const struct fsd_service *service = context;
	struct fsd_vl_set set;

	if (type < -1 || type > AFS_VL_BACKUP)
		return AFS_VL_BADVOLTYPE;
	if (!fsd_vl_find_id(service, id, &set) || (type >= 0 && id != set.id[type]))
		return AFS_VL_NOENT;
	fsd_vl_fill_entry(service, rx, &set, e);
	return 0;
}

static int32_t get_by_id(void *context, rxw_call *rx, uint32_t id, int32_t type, vldbentry *e)
{
	nvldbentry found;
	int32_t code = get_by_id_n(context, rx, id, type, &found);

	if (!code)
		fsd_vl_old_form(&found, e);
	return code;
}

/* -- addresses -- */

static int32_t reply_addresses(const uint32_t *address, unsigned count, int32_t *nentries,
			       bulkaddrs *addrs)
{
	*nentries = (int32_t)count;
	if (count == 0)
		return 0;
	addrs->val = malloc(count * sizeof(*addrs->val));
	if (!addrs->val)
		return RXW_RPC_SS_MARSHAL;
	memcpy(addrs->val, address, count * sizeof(*addrs->val));
	addrs->len = count;
	return 0;
}

static bool find_server_of_uuid(const struct fsd_service *service, const struct rxw_uuid *uuid,
				struct fsd_cell_server *server)
{
	for (uint32_t i = 0; service->cell && fsd_cell_server_at(service->cell, i, server); i++)
		if (server->count && afs_uuid_same(&server->uuid, uuid))
			return true;
	return false;
}

static int32_t get_addrs_u(void *context, rxw_call *rx, const ListAddrByAttributes *attr,
			   struct rxw_uuid *uuid, int32_t *uniquifier, int32_t *nentries,
			   bulkaddrs *addrs)
{
	const struct fsd_service *service = context;
	struct fsd_cell_server server;
	struct fsd_vl_addresses list;
	bool found, other = false;

	switch (attr->Mask) {
	case AFS_VL_BY_ADDRESS:
		found = fsd_vl_is_own(service, rx, attr->ipaddr);
		other = !found && service->cell &&
			fsd_cell_server_of(service->cell, attr->ipaddr, &server);
		break;
	case AFS_VL_BY_INDEX:
		if (attr->index == 0)
			return AFS_VL_INDEXERANGE;
		found = attr->index == FIRST_INDEX;
		other = !found && service->cell &&
			fsd_cell_server_at(service->cell, (uint32_t)attr->index - FIRST_INDEX - 1,
					   &server) &&
			server.count;
		break;
	case AFS_VL_BY_UUID:
		found = afs_uuid_same(&attr->uuid, &service->uuid);
		other = !found && find_server_of_uuid(service, &attr->uuid, &server);
		break;
	default:
		return AFS_VL_BADMASK;
	}
	if (other) {
		*uuid = server.uuid;
		*uniquifier = (int32_t)server.unique;
		return reply_addresses(server.address, server.count, nentries, addrs);
	}
	if (!found)
		return AFS_VL_NOENT;
	*uuid = service->uuid;
	*uniquifier = ADDRESS_GENERATION;
	fsd_vl_addresses(service, rx, &list);
	return reply_addresses(list.address, list.count, nentries, addrs);
}

static int32_t get_addrs(void *context, rxw_call *rx, int32_t handle, int32_t spare,
			 VLCallBack *spare3, int32_t *nentries, bulkaddrs *addrs)
{
	const struct fsd_service *service = context;
	struct fsd_cell_server server;
	uint32_t index[256];
	unsigned count = 0;

	(void)rx, (void)handle, (void)spare, (void)spare3;
	index[count++] = ADDRESS_BY_INDEX + FIRST_INDEX;
	for (uint32_t i = 0; service->cell && i < 254; i++)
		if (fsd_cell_server_at(service->cell, i, &server) && server.count)
			index[count++] = ADDRESS_BY_INDEX + FIRST_INDEX + 1 + i;
	return reply_addresses(index, count, nentries, addrs);
}

/* -- the rest -- */

static int32_t probe_server(void *context, rxw_call *rx)
{
	(void)context, (void)rx;
	return 0;
}

/* Volumes of each enum afs_vl_type, and the greatest id. */
struct volume_totals {
	uint32_t exist[3], last;
};

static void count_volumes(const struct fsd_service *service, struct volume_totals *totals)
{
	static const enum store_type types[] = {STORE_RW, STORE_RO, STORE_BACKUP};
	struct store *store = service->store;
	struct fsd_vl_walk walk = {.service = service};
	struct store_totals all;
	struct fsd_vl_set set;

	*totals = (struct volume_totals){0};
	if (store->ops->totals) {
		store->ops->totals(store, &all);
		for (int i = 0; i < 3; i++)
			totals->exist[i] = all.of_type[types[i]];
		totals->last = all.last;
		totals->exist[AFS_VL_RO] += service->rootafs != NULL;
		return;
	}
	/* The one volume of a store that does not count, and root.afs. */
	while (fsd_vl_next(&walk, &set))
		for (int i = 0; i < 3; i++) {
			totals->exist[i] += set.exists[i];
			if (set.exists[i] && set.id[i] > totals->last)
				totals->last = set.id[i];
		}
}

static int32_t get_stats(void *context, rxw_call *rx, vldstats *stats, vital_vlheader *header)
{
	const struct fsd_service *service = context;
	struct volume_totals totals;

	(void)rx;
	stats->start_time = service->start_time;
	for (int i = 0; i < FSD_VL_OPCODES; i++)
		stats->requests[i] = (int32_t)fsd_counted(&service->counters.vl_requests[i]);
	count_volumes(service, &totals);
	for (int i = 0; i < 3; i++)
		header->totalEntries[i] = (int32_t)totals.exist[i];
	header->MaxVolumeId = totals.last;
	return 0;
}

static const struct VL_handlers handlers = {
	.ProbeServer = probe_server,
	.GetEntryByID = get_by_id,
	.GetEntryByNameO = get_by_name_o,
	.GetEntryByIDN = get_by_id_n,
	.GetEntryByNameN = get_by_name_n,
	.GetEntryByNameU = get_by_name_u,
	.GetAddrsU = get_addrs_u,
	.GetAddrs = get_addrs,
	.ListEntry = fsd_vl_list_entry,
	.ListEntryN = fsd_vl_list_entry_n,
	.ListAttributes = fsd_vl_list_attributes,
	.ListAttributesN = fsd_vl_list_attributes_n,
	.ListAttributesN2 = fsd_vl_list_attributes_n2,
	.LinkedList = fsd_vl_linked_list,
	.LinkedListN = fsd_vl_linked_list_n,
	.GetStats = get_stats,
	.RegisterAddrs = fsd_vl_register,
	.ChangeAddr = fsd_vl_change_addr,
	.GetNewVolumeId = fsd_vl_new_id,
	.CreateEntry = fsd_vl_create_old,
	.CreateEntryN = fsd_vl_create,
	.DeleteEntry = fsd_vl_delete,
	.ReplaceEntry = fsd_vl_replace_old,
	.ReplaceEntryN = fsd_vl_replace,
	.UpdateEntry = fsd_vl_update,
	.UpdateEntryByName = fsd_vl_update_name,
	.SetLock = fsd_vl_lock,
	.ReleaseLock = fsd_vl_unlock,
};

/* Check the protection of the call. A probe and unknown calls reveal nothing. */
static int32_t enter_vl_call(void *context, rxw_call *rx, int32_t opcode, int function)
{
	struct fsd_service *service = context;
	struct fsd_who who = {0};

	if (function >= 0 && opcode - FSD_VL_FIRST < FSD_VL_OPCODES)
		fsd_count(&service->counters.vl_requests[opcode - FSD_VL_FIRST], 1);
	if (fsd_guard_asks(service->guard))
		fsd_guard_enter(service->guard, FSD_VL, rx, &who);
	if (!who.refused || function < 0 || opcode == VL_OP_ProbeServer)
		return 0;
	return who.weak ? who.weak : AFS_VL_PERM;
}

int32_t fsd_vl_serve(rxw_call *rx, void *service)
{
	struct VL_service vl = {.base = {.context = service, .enter = enter_vl_call},
				.handlers = &handlers};
	struct fsd_service *ours = service;
	int32_t code = VL_ExecuteRequest(rx, &vl);

	fsd_permit_return(&ours->lists, rx);
	fsd_count(&ours->counters.vl_calls, 1);
	return code;
}
