/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume location service: for the volumes of the store, and what its database has of others. */
#include <assert.h>
#include <ctype.h>
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
#include "fileserver/service/vl.h"

#define FIRST_INDEX	   1
#define ADDRESS_BY_INDEX   0xff000000u /* GetAddrs: a server that has a UUID, base 0 */
#define ADDRESS_GENERATION 1	       /* the list of a server is made once */
#define SUFFIX_MAX	   9	       /* of ".readonly" */
#define PAGE_MAX	   512	       /* entries of a reply that can be continued */
#define LOOKED_MAX	   4096	       /* volumes looked at for it */
#define LIST_MAX	   8192	       /* of one that cannot */

/* Mask of a VldbListByAttributes. */
enum {
	BY_SERVER = 1,
	BY_PARTITION = 2,
	BY_ID = 8,
	BY_FLAG = 0x10,
};

/* -- the volumes of this server, grouped by name -- */

/* A place in the list of all; zeroed but for `service`. */
struct set_walk {
	const struct fsd_service *service;
	uint32_t at; /* volumes before the next one */
};

/* Volumes of each enum afs_vl_type, and the greatest id. */
struct volume_totals {
	uint32_t exist[3], last;
};

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

/*
 * The next one of all. root.afs comes last. False: there are no more. A walk goes on
 * elsewhere with the same `at`. However many volumes there are, a step costs the same.
 */
static bool next_volume_set(struct set_walk *walk, struct fsd_vl_set *set)
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

static void count_volumes(const struct fsd_service *service, struct volume_totals *totals)
{
	static const enum store_type types[] = {STORE_RW, STORE_RO, STORE_BACKUP};
	struct store *store = service->store;
	struct set_walk walk = {.service = service};
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
	while (next_volume_set(&walk, &set))
		for (int i = 0; i < 3; i++) {
			totals->exist[i] += set.exists[i];
			if (set.exists[i] && set.id[i] > totals->last)
				totals->last = set.id[i];
		}
}

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

/* The addresses of this server, for one client. */
struct addresses {
	uint32_t address[FSD_ADDRS_MAX];
	unsigned count;
};

static void add_address(struct addresses *list, uint32_t address)
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
static void find_addresses(const struct fsd_service *service, rxw_call *rx, struct addresses *list)
{
	struct sockaddr_storage local;
	socklen_t length = sizeof(local);

	list->count = 0;
	if (rxw_call_local(rx, &local, &length) == 0 && length && local.ss_family == AF_INET)
		add_address(list, ntohl(((const struct sockaddr_in *)&local)->sin_addr.s_addr));
	for (unsigned i = 0; i < service->advertise_count; i++)
		add_address(list, service->advertise[i]);
}

bool fsd_vl_is_own(const struct fsd_service *service, rxw_call *rx, uint32_t address)
{
	struct addresses list;

	find_addresses(service, rx, &list);
	for (unsigned i = 0; i < list.count; i++)
		if (list.address[i] == address)
			return true;
	return false;
}

/* -- the volumes, and their entries in three forms -- */

/* One site for the read-write volume and its backup, one for the read-only volume. */
static void add_site(const struct addresses *list, int32_t flag, nvldbentry *e)
{
	assert(e->nServers < NMAXNSERVERS);
	e->serverNumber[e->nServers] = list->count ? (int32_t)list->address[0] : 0;
	e->serverFlags[e->nServers++] = flag;
}

static void fill_recorded_entry(const struct fsd_location *from, const struct addresses *list,
				nvldbentry *e)
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
	struct addresses list;

	find_addresses(service, rx, &list);
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

static void old_form(const nvldbentry *e, vldbentry *old)
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
		old_form(&found, e);
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
		old_form(&found, e);
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
		if (afs_uuid_same(&server->uuid, uuid))
			return true;
	return false;
}

static int32_t get_addrs_u(void *context, rxw_call *rx, const ListAddrByAttributes *attr,
			   struct rxw_uuid *uuid, int32_t *uniquifier, int32_t *nentries,
			   bulkaddrs *addrs)
{
	const struct fsd_service *service = context;
	struct fsd_cell_server server;
	struct addresses list;
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
					   &server);
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
	find_addresses(service, rx, &list);
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
	while (service->cell && count < 255 &&
	       fsd_cell_server_at(service->cell, count - 1, &server)) {
		index[count] = ADDRESS_BY_INDEX + FIRST_INDEX + count;
		count++;
	}
	return reply_addresses(index, count, nentries, addrs);
}

/* -- lists -- */

/* The selection that a client wants listed. */
struct wanted {
	const struct fsd_service *service;
	rxw_call *rx;
	const VldbListByAttributes *attr;
	const char *name; /* of `length` bytes; NULL: any */
	size_t length;
	bool here; /* the server, if one was named, is this one */
};

/* Whether the entry has a site on the server and partition that were named. */
static bool has_wanted_site(const struct wanted *wanted, const nvldbentry *e)
{
	const VldbListByAttributes *attr = wanted->attr;

	for (int i = 0; i < e->nServers; i++) {
		uint32_t address = (uint32_t)e->serverNumber[i];
		bool there = address == (uint32_t)attr->server ||
			     (wanted->here && fsd_vl_is_own(wanted->service, wanted->rx, address));

		if ((!(attr->Mask & BY_SERVER) || there) &&
		    (!(attr->Mask & BY_PARTITION) || attr->partition == e->serverPartition[i]))
			return true;
	}
	return !(attr->Mask & (BY_SERVER | BY_PARTITION));
}

static bool fits_selection(const struct wanted *wanted, const struct fsd_vl_set *set,
			   const nvldbentry *e)
{
	const VldbListByAttributes *attr = wanted->attr;
	uint32_t mask = attr->Mask, id = attr->volumeid;

	if (wanted->name && (strlen(set->name) != wanted->length ||
			     memcmp(set->name, wanted->name, wanted->length)))
		return false;
	return has_wanted_site(wanted, e) &&
	       (!(mask & BY_ID) ||
		(id && (id == set->id[0] || id == set->id[1] || id == set->id[2]))) &&
	       (!(mask & BY_FLAG) || (attr->flag & e->flags));
}

/* A name, or everything (*name NULL). Other expressions are only for administrators. */
static int32_t match_pattern(const char *pattern, const char **name, size_t *length)
{
	size_t n = strlen(pattern);

	*name = NULL;
	if (n == 0 || strcmp(pattern, ".*") == 0)
		return 0;
	if (*pattern == '^')
		pattern++, n--;
	if (n && pattern[n - 1] == '$')
		n--;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)pattern[i]) && !strchr("._-", pattern[i]))
			return AFS_VL_PERM;
	*name = pattern;
	*length = n;
	return 0;
}

/* Entries, in memory that the caller frees. */
struct found {
	nvldbentry *entries;
	size_t count, room;
};

static bool append_found_entry(struct found *found, const nvldbentry *e)
{
	if (found->count == found->room) {
		size_t room = found->room ? found->room * 2 : 8;
		nvldbentry *more = realloc(found->entries, room * sizeof(*more));

		if (!more)
			return false;
		found->entries = more;
		found->room = room;
	}
	found->entries[found->count++] = *e;
	return true;
}

/* 0 or a code, which leaves nothing. */
static int32_t add_if_fits(const struct wanted *wanted, const struct fsd_vl_set *set,
			   struct found *found)
{
	nvldbentry e;

	fsd_vl_fill_entry(wanted->service, wanted->rx, set, &e);
	if (!fits_selection(wanted, set, &e) || append_found_entry(found, &e))
		return 0;
	free(found->entries);
	found->entries = NULL;
	return RXW_RPC_SS_MARSHAL;
}

/* The only volume that can fit, if an id or a name is wanted. False: all have to be looked at. */
static bool find_one(const struct wanted *wanted, struct fsd_vl_set *set, bool *there)
{
	char name[VL_MAXNAMELEN];

	if (wanted->attr->Mask & BY_ID) {
		*there = fsd_vl_find_id(wanted->service, wanted->attr->volumeid, set);
		return true;
	}
	/* An exported directory has more names than one. */
	if (!wanted->name || wanted->service->exported)
		return false;
	*there = wanted->length < sizeof(name);
	if (*there) {
		memcpy(name, wanted->name, wanted->length);
		name[wanted->length] = '\0';
		*there = fsd_vl_find_name(wanted->service, name, set);
	}
	return true;
}

/*
 * Find entries that fit, beginning with volume number `start` of all. At most `max`, and of at most `looked_max` volumes:
 * then *next is the number of the first one that was not looked at, else -1. 0 or a code.
 */
static int32_t find_entries(struct wanted *wanted, uint32_t start, size_t max, uint32_t looked_max,
			    struct found *found, int32_t *next)
{
	struct set_walk walk = {.service = wanted->service, .at = start};
	struct fsd_vl_set set;
	int32_t code = 0;
	bool there;

	*next = -1;
	wanted->here = !(wanted->attr->Mask & BY_SERVER) ||
		       fsd_vl_is_own(wanted->service, wanted->rx, (uint32_t)wanted->attr->server);
	if (!wanted->here && !wanted->service->cell)
		return 0;
	if (find_one(wanted, &set, &there))
		return there && !start ? add_if_fits(wanted, &set, found) : 0;
	for (uint32_t at = start; !code && next_volume_set(&walk, &set); at = walk.at) {
		if (found->count == max || at - start >= looked_max) {
			*next = (int32_t)at;
			break;
		}
		code = add_if_fits(wanted, &set, found);
	}
	return code;
}

/* All of them, for replies that cannot be continued. */
static int32_t find_all_entries(struct fsd_service *service, rxw_call *rx,
				const VldbListByAttributes *attr, struct found *found, int32_t *n)
{
	struct wanted wanted = {.service = service, .rx = rx, .attr = attr};
	int32_t next, code;

	if (!(attr->Mask & BY_ID) && !fsd_may_list(service, rx))
		return AFS_VBUSY;
	code = find_entries(&wanted, 0, LIST_MAX, UINT32_MAX, found, &next);
	if (!code && next >= 0) {
		free(found->entries);
		found->entries = NULL;
		code = AFS_VL_SIZEEXCEEDED;
	}
	*n = (int32_t)found->count;
	return code;
}

static int32_t list_attributes_n2(void *context, rxw_call *rx, const VldbListByAttributes *attr,
				  const char *pattern, int32_t start, int32_t *n, nbulkentries *es,
				  int32_t *next)
{
	struct wanted wanted = {.service = context, .rx = rx, .attr = attr};
	int32_t code = match_pattern(pattern, &wanted.name, &wanted.length);
	struct found found = {0};

	*next = -1;
	if (!code && start >= 0)
		code = find_entries(&wanted, (uint32_t)start, PAGE_MAX, LOOKED_MAX, &found, next);
	*n = (int32_t)found.count;
	es->val = found.entries;
	es->len = (uint32_t)found.count;
	return code;
}

static int32_t list_attributes_n(void *context, rxw_call *rx, const VldbListByAttributes *attr,
				 int32_t *n, nbulkentries *es)
{
	struct found found = {0};
	int32_t code = find_all_entries(context, rx, attr, &found, n);

	if (!code) {
		es->val = found.entries;
		es->len = (uint32_t)found.count;
	}
	return code;
}

static int32_t list_attributes(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			       int32_t *n, bulkentries *es)
{
	struct found found = {0};
	int32_t code = find_all_entries(context, rx, attr, &found, n);

	if (!code && found.count) {
		es->val = calloc(found.count, sizeof(*es->val));
		es->len = es->val ? (uint32_t)found.count : 0;
		code = es->val ? 0 : RXW_RPC_SS_MARSHAL;
	}
	for (uint32_t i = 0; i < es->len; i++)
		old_form(&found.entries[i], &es->val[i]);
	free(found.entries);
	return code;
}

static int32_t linked_list_n(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			     int32_t *n, nvldb_list *es)
{
	struct found found = {0};
	int32_t code = find_all_entries(context, rx, attr, &found, n);

	for (int i = *n; !code && i-- > 0;) {
		nvldblist node = calloc(1, sizeof(*node));

		if (!node) {
			code = RXW_RPC_SS_MARSHAL;
			break;
		}
		node->VldbEntry = found.entries[i];
		node->next_vldb = es->node;
		es->node = node;
	}
	free(found.entries);
	return code;
}

static int32_t linked_list(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			   int32_t *n, vldb_list *es)
{
	struct found found = {0};
	int32_t code = find_all_entries(context, rx, attr, &found, n);

	for (int i = *n; !code && i-- > 0;) {
		vldblist node = calloc(1, sizeof(*node));

		if (!node) {
			code = RXW_RPC_SS_MARSHAL;
			break;
		}
		old_form(&found.entries[i], &node->VldbEntry);
		node->next_vldb = es->node;
		es->node = node;
	}
	free(found.entries);
	return code;
}

/*
 * The cursor is the number of volumes that precede, clones included; after the last entry an empty one is returned.
 */
static int32_t list_entry_n(void *context, rxw_call *rx, int32_t previous, int32_t *count,
			    int32_t *next, nvldbentry *e)
{
	struct set_walk walk = {.service = context, .at = (uint32_t)previous};
	struct fsd_vl_set set, more;

	*count = *next = 0;
	if (previous < 0 || !next_volume_set(&walk, &set))
		return 0;
	*next = (int32_t)walk.at;
	*count = next_volume_set(&walk, &more);
	fsd_vl_fill_entry(context, rx, &set, e);
	return 0;
}

static int32_t list_vl_entry(void *context, rxw_call *rx, int32_t previous, int32_t *count,
			     int32_t *next, vldbentry *e)
{
	nvldbentry ours = {0};

	list_entry_n(context, rx, previous, count, next, &ours);
	old_form(&ours, e);
	return 0;
}

/* -- the rest -- */

static int32_t probe_server(void *context, rxw_call *rx)
{
	(void)context, (void)rx;
	return 0;
}

static int32_t get_stats(void *context, rxw_call *rx, vldstats *stats, vital_vlheader *header)
{
	const struct fsd_service *service = context;
	struct volume_totals totals;

	(void)rx;
	stats->start_time = service->start_time;
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
	.ListEntry = list_vl_entry,
	.ListEntryN = list_entry_n,
	.ListAttributes = list_attributes,
	.ListAttributesN = list_attributes_n,
	.ListAttributesN2 = list_attributes_n2,
	.LinkedList = linked_list,
	.LinkedListN = linked_list_n,
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
	const struct fsd_service *service = context;
	struct fsd_who who = {0};

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
