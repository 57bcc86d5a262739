/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume service of one partition (afs-location 5), for reading only. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "afs/afsvol.h"
#include "afs/numbers.h"
#include "fileserver/service/services.h"

#define PARTITION      0 /* its number, of 26 */
#define PARTITION_NAME "/vicepa"
#define NO_LOCK	       (-1)
#define STATUS_OK      2
#define DAY	       86400
#define STATUS_OFFLINE 0
#define COUNT_WAIT_MS  1000  /* how long a request for the size of a volume waits for a new count */
#define LIST_MAX       16384 /* volumes of one reply */

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
static int32_t space_of(struct fsd_service *service, const char *name, struct store_space *space)
{
	if (strcmp(name, PARTITION_NAME) != 0)
		return AFS_VOL_ILLEGAL_PARTITION;
	return service->store->ops->space(service->store, space) ? EIO : 0;
}

/* The device is not revealed. */
static int32_t partition_info64(void *context, rxw_call *call, const char *name,
				diskPartition64 *info)
{
	struct store_space space;
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

static int32_t partition_info(void *context, rxw_call *call, const char *name, diskPartition *info)
{
	diskPartition64 wide = {0};
	int32_t code = partition_info64(context, call, name, &wide);

	if (code)
		return code;
	snprintf(info->name, sizeof(info->name), "%s", PARTITION_NAME);
	snprintf(info->devName, sizeof(info->devName), "%s", PARTITION_NAME);
	info->lock_fd = NO_LOCK;
	info->free = fsd_clip((uint64_t)wide.free);
	info->minFree = fsd_clip((uint64_t)wide.minFree);
	return 0;
}

/* -- the volume -- */

/* The type as it is sent. */
static int32_t type_of(const struct store_volume *volume)
{
	return volume->type == STORE_RW ? 0 : volume->type == STORE_RO ? 1 : 2;
}

/* Requests per day: the average since the start. They are not counted by volume. */
static int32_t day_use(const struct fsd_service *service)
{
	const struct fsd_counters *c = &service->counters;
	uint64_t uses = atomic_load_explicit(&c->fetches, memory_order_relaxed) +
			atomic_load_explicit(&c->statuses, memory_order_relaxed);
	int64_t up = (int64_t)time(NULL) - service->start_time;

	return fsd_clip(up <= DAY ? uses : uses * DAY / (uint64_t)up);
}

/* The requested volumes, in memory that the caller frees. */
struct looked {
	struct store_volume *volumes;
	uint32_t count;
};

static bool add_looked(struct looked *looked, const struct store_volume *volume)
{
	/* The size doubles at powers of two. */
	if ((looked->count & (looked->count - 1)) == 0) {
		size_t room = looked->count ? (size_t)looked->count * 2 : 1;
		struct store_volume *more = realloc(looked->volumes, room * sizeof(*more));

		if (!more)
			return false;
		looked->volumes = more;
	}
	looked->volumes[looked->count++] = *volume;
	return true;
}

static void count_export(struct fsd_service *service)
{
	struct export_used used;

	/* A new count may begin; the volume then has what is known. */
	export_count_used(service->store, COUNT_WAIT_MS, &used);
}

static bool look_all(struct fsd_service *service, struct looked *looked)
{
	struct store *store = service->store;
	struct store_volume volume;
	uint32_t id = 0;

	while (looked->count < LIST_MAX && store->ops->volume_next(store, id, &volume) == 0) {
		id = volume.id;
		if (service->exported) /* with its sizes */
			store->ops->volume(store, id, &volume);
		if (!add_looked(looked, &volume))
			return false;
	}
	if (!service->rootafs)
		return true;
	store = fsd_rootafs_store(service->rootafs);
	return store->ops->volume(store, FSD_ROOTAFS_ID, &volume) == 0 &&
	       add_looked(looked, &volume);
}

/* One volume, or all (id 0). 0 or a code. */
static int32_t look_at_volumes(struct fsd_service *service, uint32_t id, struct looked *looked)
{
	struct store *store = service->store;
	struct store_volume volume;
	bool done;

	*looked = (struct looked){0};
	if (service->rootafs && id == FSD_ROOTAFS_ID)
		store = fsd_rootafs_store(service->rootafs);
	else if (service->exported)
		count_export(service);
	if (id && store->ops->volume(store, id, &volume))
		return ENODEV;
	done = id ? add_looked(looked, &volume) : look_all(service, looked);
	if (done)
		return 0;
	free(looked->volumes);
	return AFS_VOL_NO_MEMORY;
}

/* The suffix of a long name is kept. */
static void put_long_name(const struct store_volume *v, char *name, size_t size)
{
	const char *dot = v->type == STORE_RW ? NULL : strrchr(v->name, '.');
	size_t base = dot ? (size_t)(dot - v->name) : strlen(v->name);
	size_t suffix = dot ? strlen(dot) : 0;

	if (base + suffix >= size && suffix < size)
		base = size - 1 - suffix;
	snprintf(name, size, "%.*s%s", (int)base, v->name, dot ? dot : "");
}

/*
 * Accesses are not recorded: the last change is reported in their place. A volume that is not a clone
 * of another one here has itself as its clone, as OpenAFS has it.
 */
static void fill_volintinfo(const struct fsd_service *service, const struct store_volume *v,
			    volintInfo *info)
{
	put_long_name(v, info->name, sizeof(info->name));
	info->volid = v->id;
	info->cloneID = v->type == STORE_RO ? v->id : v->ro;
	info->backupID = v->backup;
	info->parentID = v->rw;
	info->type = type_of(v);
	info->status = v->online ? STATUS_OK : STATUS_OFFLINE;
	info->inUse = v->online;
	info->creationDate = (int32_t)v->created;
	info->copyDate = (int32_t)v->copied;
	info->accessDate = info->updateDate = (int32_t)v->updated;
	info->backupDate = v->backup ? (int32_t)v->cloned : 0;
	info->dayUse = v->id == FSD_ROOTAFS_ID ? 0 : day_use(service);
	info->filecount = fsd_clip(v->files);
	info->maxquota = fsd_clip(v->quota_kib);
	info->spare0 = v->minimum;
	info->size = fsd_clip(v->used_kib);
}

static void fill_extended(const struct fsd_service *service, const struct store_volume *v,
			  volintXInfo *x)
{
	volintInfo info = {0};

	fill_volintinfo(service, v, &info);
	memcpy(x->name, info.name, sizeof(x->name));
	x->volid = info.volid;
	x->cloneID = info.cloneID;
	x->backupID = info.backupID;
	x->parentID = info.parentID;
	x->type = info.type;
	x->status = info.status;
	x->inUse = info.inUse;
	x->creationDate = info.creationDate;
	x->copyDate = info.copyDate;
	x->accessDate = info.accessDate;
	x->updateDate = info.updateDate;
	x->backupDate = info.backupDate;
	x->dayUse = info.dayUse;
	x->filecount = info.filecount;
	x->maxquota = info.maxquota;
	x->size = info.size;
	/* The network of readers is not recorded. */
	x->stat_reads[0] = info.dayUse;
}

/* `all`: every field; else only the id. */
static int32_t list_infos(struct fsd_service *service, uint32_t id, bool all, volEntries *entries)
{
	struct looked looked;
	int32_t code = look_at_volumes(service, id, &looked);

	if (code)
		return code;
	entries->val = calloc(looked.count ? looked.count : 1, sizeof(entries->val[0]));
	entries->len = entries->val ? looked.count : 0;
	for (uint32_t i = 0; i < entries->len; i++) {
		if (all)
			fill_volintinfo(service, &looked.volumes[i], &entries->val[i]);
		else
			entries->val[i].volid = looked.volumes[i].id;
	}
	free(looked.volumes);
	return entries->val ? 0 : AFS_VOL_NO_MEMORY;
}

static int32_t list_extended(struct fsd_service *service, uint32_t id, bool all,
			     volXEntries *entries)
{
	struct looked looked;
	int32_t code = look_at_volumes(service, id, &looked);

	if (code)
		return code;
	entries->val = calloc(looked.count ? looked.count : 1, sizeof(entries->val[0]));
	entries->len = entries->val ? looked.count : 0;
	for (uint32_t i = 0; i < entries->len; i++) {
		if (all)
			fill_extended(service, &looked.volumes[i], &entries->val[i]);
		else
			entries->val[i].volid = looked.volumes[i].id;
	}
	free(looked.volumes);
	return entries->val ? 0 : AFS_VOL_NO_MEMORY;
}

static int32_t list_all_volumes(void *context, rxw_call *call, int32_t part, int32_t flags,
				volEntries *entries)
{
	if (part != PARTITION)
		return AFS_VOL_ILLEGAL_PARTITION;
	return fsd_may_list(context, call) ? list_infos(context, 0, flags != 0, entries)
					   : AFS_VBUSY;
}

static int32_t xlist_volumes(void *context, rxw_call *call, int32_t part, int32_t flags,
			     volXEntries *entries)
{
	if (part != PARTITION)
		return AFS_VOL_ILLEGAL_PARTITION;
	return fsd_may_list(context, call) ? list_extended(context, 0, flags != 0, entries)
					   : AFS_VBUSY;
}

static int32_t list_one_volume(void *context, rxw_call *call, int32_t part, uint32_t id,
			       volEntries *entries)
{
	(void)call;
	if (part != PARTITION)
		return AFS_VOL_ILLEGAL_PARTITION;
	return id ? list_infos(context, id, true, entries) : ENODEV;
}

static int32_t xlist_one_volume(void *context, rxw_call *call, int32_t part, uint32_t id,
				volXEntries *entries)
{
	(void)call;
	if (part != PARTITION)
		return AFS_VOL_ILLEGAL_PARTITION;
	return id ? list_extended(context, id, true, entries) : ENODEV;
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
	.ListVolumes = list_all_volumes,
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
static int32_t enter_vol_call(void *context, rxw_call *call, int32_t opcode, int function)
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
		if (function < 0)
			return 0;
		/* An administrator shall not look for a fault of the key. */
		return who.administrator ? EROFS : AFS_VOL_BAD_ACCESS;
	}
}

int32_t fsd_vol_serve(rxw_call *call, void *service)
{
	struct AFSVol_service vol = {.base = {.context = service, .enter = enter_vol_call},
				     .handlers = &handlers};
	struct fsd_service *ours = service;
	int32_t code = AFSVolExecuteRequest(call, &vol);

	fsd_permit_return(&ours->lists, call);
	return code;
}
