/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume service: what anybody may ask: the partition, the volumes, the transactions. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rxwire/call.h>

#include "fileserver/service/vol.h"

#define PARTITION_NAME "/vicepa"
#define NO_LOCK	       (-1)
#define STATUS_OK      2
#define DAY	       86400
#define STATUS_BROKEN  0     /* it cannot be attached */
#define COUNT_WAIT_MS  1000  /* how long a request for the size of a volume waits for a new count */
#define LIST_MAX       16384 /* volumes of one reply */

/* -- the partition -- */

int32_t fsd_vol_list_partition_ids(void *context, rxw_call *call, partEntries *ids)
{
	(void)context, (void)call;
	ids->val = malloc(sizeof(ids->val[0]));
	if (!ids->val)
		return AFS_VOL_NO_MEMORY;
	ids->len = 1;
	ids->val[0] = VOL_PARTITION;
	return 0;
}

int32_t fsd_vol_list_partitions(void *context, rxw_call *call, pIDs *ids)
{
	(void)context, (void)call;
	for (size_t i = 0; i < sizeof(ids->partIds) / sizeof(ids->partIds[0]); i++)
		ids->partIds[i] = -1;
	ids->partIds[0] = VOL_PARTITION;
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
int32_t fsd_vol_partition_info64(void *context, rxw_call *call, const char *name,
				 diskPartition64 *info)
{
	struct store_space space;
	int32_t code = space_of(service_of(context), name, &space);

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

int32_t fsd_vol_partition_info(void *context, rxw_call *call, const char *name, diskPartition *info)
{
	diskPartition64 wide = {0};
	int32_t code = fsd_vol_partition_info64(context, call, name, &wide);

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

/* Requests per day: the average since the start of the server. An exported directory is the only volume. */
static int32_t day_use(const struct fsd_service *service, uint32_t id)
{
	const struct fsd_counters *c = &service->counters;
	uint64_t uses =
		service->exported
			? atomic_load_explicit(&c->fetches, memory_order_relaxed) +
				  atomic_load_explicit(&c->statuses, memory_order_relaxed)
			: fsd_volume_counted(service->volume_counts, id, FSD_VOLUME_FETCHES) +
				  fsd_volume_counted(service->volume_counts, id,
						     FSD_VOLUME_CHANGES);
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

/* Volumes that are not ready. */
static bool is_temporary(const struct fsd_service *service, uint32_t id)
{
	struct cellvol volume;

	return service->cell && cellvol_get(service->store, id, &volume) == 0 && volume.temporary;
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
		if (is_temporary(service, id))
			continue;
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

/* Being changed, off-line, or damaged. */
static int32_t find_list_status(const struct fsd_service *service, const struct store_volume *v)
{
	struct cellvol volume;

	if (v->online)
		return service->cell && fsd_transaction_of(service->cell, v->id, NULL) ? AFS_VBUSY
										       : STATUS_OK;
	if (!service->cell || cellvol_get(service->store, v->id, &volume))
		return STATUS_BROKEN;
	return fsd_transaction_of(service->cell, v->id, NULL) ? AFS_VBUSY : STATUS_OK;
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
	info->status = find_list_status(service, v);
	info->inUse = v->online;
	info->destroyMe = is_temporary(service, v->id);
	info->creationDate = (int32_t)v->created;
	info->copyDate = (int32_t)v->copied;
	info->accessDate = info->updateDate = (int32_t)v->updated;
	info->backupDate = v->backup ? (int32_t)v->cloned : 0;
	info->dayUse = v->id == FSD_ROOTAFS_ID ? 0 : day_use(service, v->id);
	info->filecount = fsd_clip(v->files);
	info->maxquota = fsd_clip(v->quota_kib);
	info->spare0 = v->minimum;
	info->size = fsd_clip(v->used_kib);
}

static void extend_info(const volintInfo *info, volintXInfo *x)
{
	memcpy(x->name, info->name, sizeof(x->name));
	x->volid = info->volid;
	x->cloneID = info->cloneID;
	x->backupID = info->backupID;
	x->parentID = info->parentID;
	x->type = info->type;
	x->status = info->status;
	x->inUse = info->inUse;
	x->creationDate = info->creationDate;
	x->copyDate = info->copyDate;
	x->accessDate = info->accessDate;
	x->updateDate = info->updateDate;
	x->backupDate = info->backupDate;
	x->dayUse = info->dayUse;
	x->filecount = info->filecount;
	x->maxquota = info->maxquota;
	x->size = info->size;
	/* The network of readers is not recorded. */
	x->stat_reads[0] = info->dayUse;
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
	volEntries plain = {0};
	int32_t code = list_infos(service, id, all, &plain);

	if (code)
		return code;
	entries->val = calloc(plain.len ? plain.len : 1, sizeof(entries->val[0]));
	entries->len = entries->val ? plain.len : 0;
	for (uint32_t i = 0; i < entries->len; i++)
		extend_info(&plain.val[i], &entries->val[i]);
	free(plain.val);
	return entries->val ? 0 : AFS_VOL_NO_MEMORY;
}

int32_t fsd_vol_list_all_volumes(void *context, rxw_call *call, int32_t part, int32_t flags,
				 volEntries *entries)
{
	if (part != VOL_PARTITION)
		return AFS_VOL_ILLEGAL_PARTITION;
	return fsd_may_list(service_of(context), call)
		       ? list_infos(service_of(context), 0, flags != 0, entries)
		       : AFS_VBUSY;
}

int32_t fsd_vol_xlist_volumes(void *context, rxw_call *call, int32_t part, int32_t flags,
			      volXEntries *entries)
{
	if (part != VOL_PARTITION)
		return AFS_VOL_ILLEGAL_PARTITION;
	return fsd_may_list(service_of(context), call)
		       ? list_extended(service_of(context), 0, flags != 0, entries)
		       : AFS_VBUSY;
}

int32_t fsd_vol_list_one_volume(void *context, rxw_call *call, int32_t part, uint32_t id,
				volEntries *entries)
{
	(void)call;
	if (part != VOL_PARTITION)
		return AFS_VOL_ILLEGAL_PARTITION;
	return id ? list_infos(service_of(context), id, true, entries) : ENODEV;
}

int32_t fsd_vol_xlist_one_volume(void *context, rxw_call *call, int32_t part, uint32_t id,
				 volXEntries *entries)
{
	(void)call;
	if (part != VOL_PARTITION)
		return AFS_VOL_ILLEGAL_PARTITION;
	return id ? list_extended(service_of(context), id, true, entries) : ENODEV;
}

/* -- transactions -- */

/* The name of the call that used it last. */
static void fill_transaction(const struct fsd_transaction *transaction, transDebugInfo *info)
{
	info->tid = transaction->id;
	info->time = (int32_t)transaction->used;
	info->creationTime = (int32_t)transaction->created;
	info->volid = transaction->volume;
	info->partition = VOL_PARTITION;
	info->iflags = (int16_t)transaction->mode;
	info->vflags = (int8_t)transaction->flags;
	memcpy(info->lastProcName, transaction->name, sizeof(info->lastProcName));
	info->callValid = transaction->running;
}

int32_t fsd_vol_list_transactions(void *context, rxw_call *call, transDebugEntries *transactions)
{
	const struct fsd_service *service = service_of(context);
	struct fsd_transaction *list;
	uint32_t count;

	(void)call;
	if (!service->cell)
		return 0;
	list = calloc(FSD_TRANSACTIONS, sizeof(*list));
	transactions->val = list ? calloc(FSD_TRANSACTIONS, sizeof(transactions->val[0])) : NULL;
	if (!transactions->val) {
		free(list);
		return AFS_VOL_NO_MEMORY;
	}
	count = fsd_transactions(service->cell, list, FSD_TRANSACTIONS);
	for (uint32_t i = 0; i < count; i++)
		fill_transaction(&list[i], &transactions->val[i]);
	transactions->len = count;
	free(list);
	return 0;
}
