/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume location service of one server with one volume. */
#include <ctype.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/call.h>
#include <rxwire/error.h>

#include "afs/numbers.h"
#include "afs/uuid.h"
#include "afs/vl.h"
#include "afs/volname.h"
#include "fileserver/service.h"

#define FIRST_INDEX	   1
#define ADDRESS_BY_INDEX   0xff000000u /* GetAddrs: a server that has a UUID, base 0 */
#define ADDRESS_GENERATION 1	       /* the list of a server is made once */
#define SUFFIX_MAX	   9	       /* of ".readonly" */

/* Mask of a VldbListByAttributes. */
enum {
	BY_SERVER = 1,
	BY_PARTITION = 2,
	BY_ID = 8,
	BY_FLAG = 0x10,
};

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
 * The address that was asked comes first: it is the one that surely can be reached. If it is one of
 * IPv6, there is no way to tell it.
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

static bool is_ours(const struct fsd_service *service, rxw_call *rx, uint32_t address)
{
	struct addresses list;

	find_addresses(service, rx, &list);
	for (unsigned i = 0; i < list.count; i++)
		if (list.address[i] == address)
			return true;
	return false;
}

/* -- the one entry, in three forms -- */

static void fill_entry(const struct fsd_service *service, rxw_call *rx, const char *name,
		       nvldbentry *e)
{
	struct addresses list;

	find_addresses(service, rx, &list);
	memset(e, 0, sizeof(*e));
	strncpy(e->name, name, sizeof(e->name) - 1);
	e->nServers = 1;
	e->serverNumber[0] = list.count ? (int32_t)list.address[0] : 0;
	e->serverFlags[0] = VLSF_RWVOL;
	e->volumeId[AFS_VL_RW] = fsd_volume_id(service->volume);
	e->flags = VLF_RWEXISTS;
}

static void old_form(const nvldbentry *e, vldbentry *old)
{
	memset(old, 0, sizeof(*old));
	memcpy(old->name, e->name, sizeof(old->name));
	old->nServers = e->nServers;
	memcpy(old->serverNumber, e->serverNumber, sizeof(old->serverNumber));
	memcpy(old->serverPartition, e->serverPartition, sizeof(old->serverPartition));
	memcpy(old->serverFlags, e->serverFlags, sizeof(old->serverFlags));
	memcpy(old->volumeId, e->volumeId, sizeof(old->volumeId));
	old->flags = e->flags;
}

static void uuid_form(const struct fsd_service *service, const nvldbentry *e, uvldbentry *u)
{
	memset(u, 0, sizeof(*u));
	memcpy(u->name, e->name, sizeof(u->name));
	u->nServers = e->nServers;
	u->serverNumber[0] = service->uuid;
	u->serverUnique[0] = ADDRESS_GENERATION;
	u->serverFlags[0] = e->serverFlags[0] | VLSF_UUID;
	memcpy(u->volumeId, e->volumeId, sizeof(u->volumeId));
	u->flags = e->flags;
}

/* -- look-ups -- */

static bool all_digits(const char *name)
{
	return strspn(name, "0123456789") == strlen(name);
}

static void strip(char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	if (n > s && strcmp(name + n - s, suffix) == 0)
		name[n - s] = 0;
}

/* The entry that a client's name means: 0 and the entry, or a code. */
static int32_t by_name(const struct fsd_service *service, rxw_call *rx, const char *asked,
		       nvldbentry *e)
{
	const char *volume = fsd_volume_name(service->volume);
	char name[VL_MAXNAMELEN + SUFFIX_MAX + 1];
	size_t before = strlen(asked);

	if (all_digits(asked)) { /* "" is id 0, which nobody has */
		if (strtoull(asked, NULL, 10) != fsd_volume_id(service->volume))
			return AFS_VL_NOENT;
		fill_entry(service, rx, volume, e);
		return 0;
	}
	if (before >= sizeof(name))
		return AFS_VL_BADNAME;
	memcpy(name, asked, before + 1);
	strip(name, ".readonly");
	if (strlen(name) == before)
		strip(name, ".backup");
	if (strlen(name) >= VL_MAXNAMELEN || (!all_digits(name) && !afs_volume_name_valid(name)))
		return AFS_VL_BADNAME;
	if (strcmp(name, volume) && strcmp(name, "root.cell") && strcmp(name, "root.afs"))
		return AFS_VL_NOENT;
	fill_entry(service, rx, name, e);
	return 0;
}

static int32_t get_by_name_u(void *context, rxw_call *rx, const char *name, uvldbentry *e)
{
	nvldbentry found;
	int32_t code = by_name(context, rx, name, &found);

	if (!code)
		uuid_form(context, &found, e);
	return code;
}

static int32_t get_by_name_n(void *context, rxw_call *rx, const char *name, nvldbentry *e)
{
	return by_name(context, rx, name, e);
}

static int32_t get_by_name_o(void *context, rxw_call *rx, const char *name, vldbentry *e)
{
	nvldbentry found;
	int32_t code = by_name(context, rx, name, &found);

	if (!code)
		old_form(&found, e);
	return code;
}

static int32_t get_by_id_n(void *context, rxw_call *rx, uint32_t id, int32_t type, nvldbentry *e)
{
	const struct fsd_service *service = context;

	if (type < -1 || type > AFS_VL_BACKUP)
		return AFS_VL_BADVOLTYPE;
	if (id != fsd_volume_id(service->volume) || type > AFS_VL_RW)
		return AFS_VL_NOENT;
	fill_entry(service, rx, fsd_volume_name(service->volume), e);
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

static int32_t get_addrs_u(void *context, rxw_call *rx, const ListAddrByAttributes *attr,
			   struct rxw_uuid *uuid, int32_t *uniquifier, int32_t *nentries,
			   bulkaddrs *addrs)
{
	const struct fsd_service *service = context;
	struct addresses list;
	bool found;

	switch (attr->Mask) {
	case AFS_VL_BY_ADDRESS:
		found = is_ours(service, rx, attr->ipaddr);
		break;
	case AFS_VL_BY_INDEX:
		if (attr->index == 0)
			return AFS_VL_INDEXERANGE;
		found = attr->index == FIRST_INDEX;
		break;
	case AFS_VL_BY_UUID:
		found = afs_uuid_same(&attr->uuid, &service->uuid);
		break;
	default:
		return AFS_VL_BADMASK;
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
	const uint32_t ours = ADDRESS_BY_INDEX + FIRST_INDEX;

	(void)context, (void)rx, (void)handle, (void)spare, (void)spare3;
	return reply_addresses(&ours, 1, nentries, addrs);
}

/* -- lists -- */

/* Does our one entry fit? */
static bool fits(const struct fsd_service *service, rxw_call *rx, const VldbListByAttributes *attr)
{
	uint32_t mask = attr->Mask;

	return (!(mask & BY_SERVER) || is_ours(service, rx, (uint32_t)attr->server)) &&
	       (!(mask & BY_PARTITION) || attr->partition == 0) &&
	       (!(mask & BY_ID) || attr->volumeid == fsd_volume_id(service->volume)) &&
	       (!(mask & BY_FLAG) || (attr->flag & VLF_RWEXISTS));
}

/*
 * A pattern that means our volume, or all? Expressions are for administrators, of whom there are
 * none.
 */
static int32_t match_pattern(const struct fsd_service *service, const char *pattern, bool *match)
{
	const char *volume = fsd_volume_name(service->volume);
	size_t n = strlen(pattern);

	if (n == 0 || strcmp(pattern, ".*") == 0)
		return 0;
	if (*pattern == '^')
		pattern++, n--;
	if (n && pattern[n - 1] == '$')
		n--;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)pattern[i]) && !strchr("._-", pattern[i]))
			return AFS_VL_PERM;
	*match = *match && n == strlen(volume) && memcmp(pattern, volume, n) == 0;
	return 0;
}

static void fill_ours(const struct fsd_service *service, rxw_call *rx, nvldbentry *e)
{
	fill_entry(service, rx, fsd_volume_name(service->volume), e);
}

/* A list of our entry, or of none. */
static int32_t reply_entries(const struct fsd_service *service, rxw_call *rx, bool match,
			     int32_t *n, nbulkentries *es)
{
	*n = match;
	if (!match)
		return 0;
	es->val = malloc(sizeof(*es->val));
	if (!es->val)
		return RXW_RPC_SS_MARSHAL;
	fill_ours(service, rx, es->val);
	es->len = 1;
	return 0;
}

static int32_t list_attributes_n2(void *context, rxw_call *rx, const VldbListByAttributes *attr,
				  const char *name, int32_t start, int32_t *n, nbulkentries *es,
				  int32_t *next)
{
	bool match = fits(context, rx, attr) && start == 0;
	int32_t code = match_pattern(context, name, &match);

	*next = -1;
	return code ? code : reply_entries(context, rx, match, n, es);
}

static int32_t list_attributes_n(void *context, rxw_call *rx, const VldbListByAttributes *attr,
				 int32_t *n, nbulkentries *es)
{
	return reply_entries(context, rx, fits(context, rx, attr), n, es);
}

static int32_t list_attributes(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			       int32_t *n, bulkentries *es)
{
	nvldbentry ours;

	*n = fits(context, rx, attr);
	if (!*n)
		return 0;
	es->val = malloc(sizeof(*es->val));
	if (!es->val)
		return RXW_RPC_SS_MARSHAL;
	fill_ours(context, rx, &ours);
	old_form(&ours, es->val);
	es->len = 1;
	return 0;
}

static int32_t linked_list_n(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			     int32_t *n, nvldb_list *es)
{
	*n = fits(context, rx, attr);
	if (!*n)
		return 0;
	es->node = calloc(1, sizeof(*es->node));
	if (!es->node)
		return RXW_RPC_SS_MARSHAL;
	fill_ours(context, rx, &es->node->VldbEntry);
	return 0;
}

static int32_t linked_list(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			   int32_t *n, vldb_list *es)
{
	nvldbentry ours;

	*n = fits(context, rx, attr);
	if (!*n)
		return 0;
	es->node = calloc(1, sizeof(*es->node));
	if (!es->node)
		return RXW_RPC_SS_MARSHAL;
	fill_ours(context, rx, &ours);
	old_form(&ours, &es->node->VldbEntry);
	return 0;
}

/* No entry remains after ours; behind it comes a zero one. */
static int32_t list_entry_n(void *context, rxw_call *rx, int32_t previous, int32_t *count,
			    int32_t *next, nvldbentry *e)
{
	*count = 0;
	*next = previous == 0;
	if (previous == 0)
		fill_ours(context, rx, e);
	return 0;
}

static int32_t list_entry(void *context, rxw_call *rx, int32_t previous, int32_t *count,
			  int32_t *next, vldbentry *e)
{
	nvldbentry ours = {0};

	list_entry_n(context, rx, previous, count, next, &ours);
	old_form(&ours, e);
	return 0;
}

/* -- the rest -- */

static int32_t probe(void *context, rxw_call *rx)
{
	(void)context, (void)rx;
	return 0;
}

static int32_t get_stats(void *context, rxw_call *rx, vldstats *stats, vital_vlheader *header)
{
	const struct fsd_service *service = context;

	(void)rx;
	stats->start_time = service->start_time;
	header->MaxVolumeId = fsd_volume_id(service->volume);
	header->totalEntries[AFS_VL_RW] = 1;
	return 0;
}

/* -- what would change the database: for administrators, and nobody can show that he is one -- */

static int32_t register_addrs(void *context, rxw_call *rx, const struct rxw_uuid *uuid,
			      int32_t spare, const bulkaddrs *addrs)
{
	(void)context, (void)rx, (void)uuid, (void)spare, (void)addrs;
	return AFS_VL_PERM;
}

static int32_t change_addr(void *context, rxw_call *rx, uint32_t old_addr, uint32_t new_addr)
{
	(void)context, (void)rx, (void)old_addr, (void)new_addr;
	return AFS_VL_PERM;
}

static int32_t new_volume_id(void *context, rxw_call *rx, uint32_t bump, uint32_t *id)
{
	(void)context, (void)rx, (void)bump, (void)id;
	return AFS_VL_PERM;
}

static int32_t create_entry(void *context, rxw_call *rx, const vldbentry *e)
{
	(void)context, (void)rx, (void)e;
	return AFS_VL_PERM;
}

static int32_t create_entry_n(void *context, rxw_call *rx, const nvldbentry *e)
{
	(void)context, (void)rx, (void)e;
	return AFS_VL_PERM;
}

static int32_t delete_entry(void *context, rxw_call *rx, uint32_t id, int32_t type)
{
	(void)context, (void)rx, (void)id, (void)type;
	return AFS_VL_PERM;
}

static int32_t replace_entry(void *context, rxw_call *rx, uint32_t id, int32_t type,
			     const vldbentry *e, int32_t release)
{
	(void)context, (void)rx, (void)id, (void)type, (void)e, (void)release;
	return AFS_VL_PERM;
}

static int32_t replace_entry_n(void *context, rxw_call *rx, uint32_t id, int32_t type,
			       const nvldbentry *e, int32_t release)
{
	(void)context, (void)rx, (void)id, (void)type, (void)e, (void)release;
	return AFS_VL_PERM;
}

static int32_t update_entry(void *context, rxw_call *rx, uint32_t id, int32_t type,
			    const VldbUpdateEntry *ue, int32_t release)
{
	(void)context, (void)rx, (void)id, (void)type, (void)ue, (void)release;
	return AFS_VL_PERM;
}

static int32_t update_by_name(void *context, rxw_call *rx, const char *name,
			      const VldbUpdateEntry *ue, int32_t release)
{
	(void)context, (void)rx, (void)name, (void)ue, (void)release;
	return AFS_VL_PERM;
}

/* Both locks: the third number is the operation, or what is to be released. */
static int32_t lock_entry(void *context, rxw_call *rx, uint32_t id, int32_t type, int32_t what)
{
	(void)context, (void)rx, (void)id, (void)type, (void)what;
	return AFS_VL_PERM;
}

static const struct VL_handlers handlers = {
	.ProbeServer = probe,
	.GetEntryByID = get_by_id,
	.GetEntryByNameO = get_by_name_o,
	.GetEntryByIDN = get_by_id_n,
	.GetEntryByNameN = get_by_name_n,
	.GetEntryByNameU = get_by_name_u,
	.GetAddrsU = get_addrs_u,
	.GetAddrs = get_addrs,
	.ListEntry = list_entry,
	.ListEntryN = list_entry_n,
	.ListAttributes = list_attributes,
	.ListAttributesN = list_attributes_n,
	.ListAttributesN2 = list_attributes_n2,
	.LinkedList = linked_list,
	.LinkedListN = linked_list_n,
	.GetStats = get_stats,
	.RegisterAddrs = register_addrs,
	.ChangeAddr = change_addr,
	.GetNewVolumeId = new_volume_id,
	.CreateEntry = create_entry,
	.CreateEntryN = create_entry_n,
	.DeleteEntry = delete_entry,
	.ReplaceEntry = replace_entry,
	.ReplaceEntryN = replace_entry_n,
	.UpdateEntry = update_entry,
	.UpdateEntryByName = update_by_name,
	.SetLock = lock_entry,
	.ReleaseLock = lock_entry,
};

int32_t fsd_vl_serve(rxw_call *rx, void *service)
{
	struct VL_service vl = {.base.context = service, .handlers = &handlers};
	struct fsd_service *ours = service;
	int32_t code;

	/* Who calls is for the log: all are told the same. */
	if (fsd_guard_asks(ours->guard))
		fsd_guard_enter(ours->guard, rx, &(struct fsd_who){0});
	code = VL_ExecuteRequest(rx, &vl);
	fsd_count(&ours->counters.vl_calls, 1);
	return code;
}
