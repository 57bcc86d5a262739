/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume service of one partition (afs-location 5), for reading only. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rxwire/error.h>

#include "afs/afsvol.h"
#include "afs/numbers.h"
#include "fileserver/service/private.h"

#define PARTITION      0 /* its number, of 26 */
#define PARTITION_NAME "/vicepa"
#define NO_LOCK	       (-1)
#define STATUS_OK      2
#define DAY	       86400
#define TYPE_READ_ONLY 1
#define COUNT_WAIT_MS  1000 /* how long a request for the size of a volume waits for a new count */
#define VOLUMES_MAX    2

/* -- the partition -- */

static int32_t list_partition_ids(void *context, rxw_call *call, partEntries *ids)
{
	(void)context, (void)call;
	ids->val = malloc(sizeof(ids->val[0]));
	if (!ids->val)
		return AFS_VOL_NO_MEMORY;
	ids->len = 1;
	ids->val[0] = PARTITION;
	return 0;
}

static int32_t list_partitions(void *context, rxw_call *call, pIDs *ids)
{
	(void)context, (void)call;
	for (size_t i = 0; i < sizeof(ids->partIds) / sizeof(ids->partIds[0]); i++)
		ids->partIds[i] = -1;
	ids->partIds[0] = PARTITION;
	return 0;
}

/* The space of the partition that a client names. */
static int32_t space_of(struct fsd_service *service, const char *name, struct fsd_space *space)
{
	struct fsd_layer *layer = fsd_volume_layer(service->volume);

	if (strcmp(name, PARTITION_NAME) != 0)
		return AFS_VOL_ILLEGAL_PARTITION;
	return layer->ops->space(layer, space) ? EIO : 0;
}

/* The device is not revealed. */
static int32_t partition_info64(void *context, rxw_call *call, const char *name,
				diskPartition64 *info)
{
	struct fsd_space space;
	int32_t code = space_of(context, name, &space);

	(void)call;
	if (code)
		return code;
	snprintf(info->name, sizeof(info->name), "%s", PARTITION_NAME);
	snprintf(info->devName, sizeof(info->devName), "%s", PARTITION_NAME);
	info->lock_fd = NO_LOCK;
	info->free = (int64_t)space.available_kib;
	info->minFree = (int64_t)space.total_kib; /* sic */
	return 0;
}

static int32_t clip(uint64_t value)
{
	return value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static int32_t partition_info(void *context, rxw_call *call, const char *name, diskPartition *info)
{
	diskPartition64 wide = {0};
	int32_t code = partition_info64(context, call, name, &wide);

	if (code)
		return code;
	snprintf(info->name, sizeof(info->name), "%s", PARTITION_NAME);
	snprintf(info->devName, sizeof(info->devName), "%s", PARTITION_NAME);
	info->lock_fd = NO_LOCK;
	info->free = clip((uint64_t)wide.free);
	info->minFree = clip((uint64_t)wide.minFree);
	return 0;
}

/* -- the volume -- */

/* The values of both forms of an entry. */
struct entry {
	uint32_t id;
	const char *name;
	int32_t created, updated;
	int32_t used_kib, objects;
	int32_t day_use;
};

/* Requests per day: the average since the start. */
static int32_t day_use(const struct fsd_service *service)
{
	const struct fsd_counters *c = &service->counters;
	uint64_t uses = atomic_load_explicit(&c->fetches, memory_order_relaxed) +
			atomic_load_explicit(&c->statuses, memory_order_relaxed);
	int64_t up = (int64_t)time(NULL) - service->start_time;

	return clip(up <= DAY ? uses : uses * DAY / (uint64_t)up);
}

/* root.afs has a directory and two mount points. */
static void look_rootafs(struct fsd_service *service, struct entry *entry)
{
	*entry = (struct entry){.id = FSD_ROOTAFS_ID,
				.name = FSD_ROOTAFS_NAME,
				.created = (int32_t)fsd_rootafs_date(service->rootafs),
				.updated = (int32_t)fsd_rootafs_date(service->rootafs),
				.used_kib = 4,
				.objects = 3};
}

static void look_export(struct fsd_service *service, struct entry *entry)
{
	struct fsd_layer *layer = fsd_volume_layer(service->volume);
	struct fsd_used used;
	struct fsd_stat root;

	entry->id = fsd_volume_id(service->volume);
	entry->name = fsd_volume_name(service->volume);
	entry->created = entry->updated = (int32_t)fsd_volume_creation(service->volume);
	if (layer->ops->stat_path(layer, "", &root) == 0)
		entry->updated = (int32_t)(root.mtime_ns / 1000000000);
	fsd_usage_get(service->usage, COUNT_WAIT_MS, &used);
	entry->used_kib = clip(used.kib);
	entry->objects = clip(used.objects);
	entry->day_use = day_use(service);
}

/* The requested volumes: one, or all (id 0). Returns their number. */
static uint32_t look(struct fsd_service *service, uint32_t id, struct entry entries[VOLUMES_MAX])
{
	uint32_t n = 0;

	if (!id || id == fsd_volume_id(service->volume))
		look_export(service, &entries[n++]);
	if (service->rootafs && (!id || id == FSD_ROOTAFS_ID))
		look_rootafs(service, &entries[n++]);
	return n;
}

/*
 * The volume was never copied, and accesses are not recorded: creation and last change are reported
 * for both.
 */
static void fill(const struct entry *entry, volintInfo *info)
{
	snprintf(info->name, sizeof(info->name), "%.*s.readonly",
		 (int)(sizeof(info->name) - sizeof(".readonly")), entry->name);
	info->volid = info->cloneID = entry->id;
	info->parentID = FSD_RW_ID(entry->id);
	info->type = TYPE_READ_ONLY;
	info->status = STATUS_OK;
	info->inUse = 1;
	info->creationDate = info->copyDate = entry->created;
	info->accessDate = info->updateDate = entry->updated;
	info->dayUse = entry->day_use;
	info->filecount = entry->objects;
	info->size = entry->used_kib;
}

static void fill_extended(const struct entry *entry, volintXInfo *info)
{
	snprintf(info->name, sizeof(info->name), "%.*s.readonly",
		 (int)(sizeof(info->name) - sizeof(".readonly")), entry->name);
	info->volid = info->cloneID = entry->id;
	info->parentID = FSD_RW_ID(entry->id);
	info->type = TYPE_READ_ONLY;
	info->status = STATUS_OK;
	info->inUse = 1;
	info->creationDate = info->copyDate = entry->created;
	info->accessDate = info->updateDate = entry->updated;
	info->dayUse = entry->day_use;
	info->filecount = entry->objects;
	info->size = entry->used_kib;
	/* The network of readers is not recorded. */
	info->stat_reads[0] = entry->day_use;
}

/* `all`: every field; else only the id. */
static int32_t list(struct fsd_service *service, uint32_t id, bool all, volEntries *entries)
{
	struct entry found[VOLUMES_MAX];
	uint32_t n = look(service, id, found);

	entries->val = calloc(n, sizeof(entries->val[0]));
	if (!entries->val)
		return AFS_VOL_NO_MEMORY;
	entries->len = n;
	for (uint32_t i = 0; i < n; i++) {
		if (all)
			fill(&found[i], &entries->val[i]);
		else
			entries->val[i].volid = found[i].id;
	}
	return 0;
}

static int32_t list_extended(struct fsd_service *service, uint32_t id, bool all,
			     volXEntries *entries)
{
	struct entry found[VOLUMES_MAX];
	uint32_t n = look(service, id, found);

	entries->val = calloc(n, sizeof(entries->val[0]));
	if (!entries->val)
		return AFS_VOL_NO_MEMORY;
	entries->len = n;
	for (uint32_t i = 0; i < n; i++) {
		if (all)
			fill_extended(&found[i], &entries->val[i]);
		else
			entries->val[i].volid = found[i].id;
	}
	return 0;
}

static int32_t list_volumes(void *context, rxw_call *call, int32_t part, int32_t flags,
			    volEntries *entries)
{
	(void)call;
	return part == PARTITION ? list(context, 0, flags != 0, entries)
				 : AFS_VOL_ILLEGAL_PARTITION;
}

static int32_t xlist_volumes(void *context, rxw_call *call, int32_t part, int32_t flags,
			     volXEntries *entries)
{
	(void)call;
	return part == PARTITION ? list_extended(context, 0, flags != 0, entries)
				 : AFS_VOL_ILLEGAL_PARTITION;
}

/* 0 if the volume is on the partition, else a code. */
static int32_t find(struct fsd_service *service, int32_t part, uint32_t id)
{
	if (part != PARTITION)
		return AFS_VOL_ILLEGAL_PARTITION;
	return id == fsd_volume_id(service->volume) || (service->rootafs && id == FSD_ROOTAFS_ID)
		       ? 0
		       : ENODEV;
}

static int32_t list_one_volume(void *context, rxw_call *call, int32_t part, uint32_t id,
			       volEntries *entries)
{
	int32_t code = find(context, part, id);

	(void)call;
	return code ? code : list(context, id, true, entries);
}

static int32_t xlist_one_volume(void *context, rxw_call *call, int32_t part, uint32_t id,
				volXEntries *entries)
{
	int32_t code = find(context, part, id);

	(void)call;
	return code ? code : list_extended(context, id, true, entries);
}

/* -- transactions: there are none -- */

static int32_t monitor(void *context, rxw_call *call, transDebugEntries *transactions)
{
	(void)context, (void)call, (void)transactions;
	return 0;
}

static int32_t get_flags(void *context, rxw_call *call, int32_t id, int32_t *flags)
{
	(void)context, (void)call, (void)id, (void)flags;
	return ENOENT;
}

static int32_t get_name(void *context, rxw_call *call, int32_t id, char **name)
{
	(void)context, (void)call, (void)id, (void)name;
	return ENOENT;
}

static int32_t get_status(void *context, rxw_call *call, int32_t id, volser_status *status)
{
	(void)context, (void)call, (void)id, (void)status;
	return ENOENT;
}

static int32_t get_nth_volume(void *context, rxw_call *call, int32_t index, uint32_t *id,
			      int32_t *part)
{
	(void)context, (void)call, (void)index, (void)id, (void)part;
	return AFS_VOL_NO_OP;
}

static const struct AFSVol_handlers handlers = {
	.XListPartitions = list_partition_ids,
	.ListPartitions = list_partitions,
	.PartitionInfo = partition_info,
	.PartitionInfo64 = partition_info64,
	.ListVolumes = list_volumes,
	.ListOneVolume = list_one_volume,
	.XListVolumes = xlist_volumes,
	.XListOneVolume = xlist_one_volume,
	.Monitor = monitor,
	.GetFlags = get_flags,
	.GetName = get_name,
	.GetStatus = get_status,
	.GetNthVolume = get_nth_volume,
};

/*
 * Everything else changes something. It is refused before its arguments are read, so that a restore
 * does not send its dump in vain.
 */
static int32_t enter(void *context, rxw_call *call, int32_t opcode, int function)
{
	const struct fsd_service *service = context;
	struct fsd_who who = {0};

	if (fsd_guard_asks(service->guard))
		fsd_guard_enter(service->guard, FSD_VOL, call, &who);
	if (who.refused && function >= 0)
		return who.weak ? who.weak : AFS_VOL_BAD_ACCESS;
	switch (opcode) {
	case AFSVol_OP_XListPartitions:
	case AFSVol_OP_ListPartitions:
	case AFSVol_OP_PartitionInfo:
	case AFSVol_OP_PartitionInfo64:
	case AFSVol_OP_ListVolumes:
	case AFSVol_OP_ListOneVolume:
	case AFSVol_OP_XListVolumes:
	case AFSVol_OP_XListOneVolume:
	case AFSVol_OP_Monitor:
	case AFSVol_OP_GetFlags:
	case AFSVol_OP_GetName:
	case AFSVol_OP_GetStatus:
	case AFSVol_OP_GetNthVolume:
		return 0;
	default:
		return function < 0 ? 0 : AFS_VOL_BAD_ACCESS;
	}
}

int32_t fsd_vol_serve(rxw_call *call, void *service)
{
	struct AFSVol_service vol = {.base = {.context = service, .enter = enter},
				     .handlers = &handlers};

	return AFSVolExecuteRequest(call, &vol);
}
