/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: volumes, status, promises and changes of the objects of a call. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <rxwire/error.h>

#include "afs/fetchstatus.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"

#define QUIET_NS   (60ull * NS_PER_S)

#define CONSTANT_S 7200 /* promise on what never changes while the server runs */

/* -- volumes -- */

/* The volume of a place; the store of root.afs is not the service's. */
static int look_up_place(const struct fsd_service *service, uint32_t id, struct fs_place *place)
{
	struct store_volume volume;
	int rc;

	if (service->rootafs && id == FSD_ROOTAFS_ID) {
		place->store = fsd_rootafs_store(service->rootafs);
		place->constant = true;
	} else {
		place->store = service->store;
	}
	if (service->exported && id == service->volume.id) {
		place->sync = service->volume.sync;
		place->type = service->volume.type;
		return 0;
	}
	rc = place->store->ops->volume(place->store, id, &volume);
	if (rc)
		return rc;
	if (!volume.online)
		return AFS_VOFFLINE;
	place->sync = volume.sync;
	place->type = volume.type;
	place->whole = volume.type != STORE_RW && !place->constant;
	return 0;
}

int fs_find(struct fs_call *call, const AFSFid *fid, struct fs_place *place)
{
	if (fid->Volume == 0 || fid->Vnode == 0)
		return -EINVAL;
	if (!call->place.store || call->place.fid.volume != fid->Volume) {
		struct fs_place found = {0};
		int rc = look_up_place(call->service, fid->Volume, &found);

		if (rc)
			return rc;
		call->place = found;
	}
	call->place.fid = (struct store_fid){fid->Volume, fid->Vnode, fid->Unique};
	*place = call->place;
	return 0;
}

int fs_find_to_write(struct fs_call *call, const AFSFid *fid, struct fs_place *place)
{
	int rc = fs_find(call, fid, place);

	if (rc)
		return rc;
	fs_touch(call, fid);
	/* OpenAFS says so before it looks at the object. */
	if (place->store->ops->create && place->type == STORE_RW)
		return 0;
	fsd_count(&call->service->counters.refused_writes, 1);
	return -EROFS;
}

int fs_volume(struct fs_call *call, uint32_t id, struct store_volume *volume)
{
	const struct fsd_service *service = call->service;
	struct store *store = service->rootafs && id == FSD_ROOTAFS_ID
				      ? fsd_rootafs_store(service->rootafs)
				      : service->store;

	return id ? store->ops->volume(store, id, volume) : -EINVAL;
}

void fs_sync(const struct fs_call *call, AFSVolSync *sync)
{
	sync->spare1 = call->place.store ? call->place.sync : call->service->volume.sync;
}

/* -- promises -- */

/* The object that a promise is about. */
static AFSFid promise_fid(const struct fs_place *place)
{
	const struct store_fid *fid = &place->fid;

	return place->whole ? (AFSFid){fid->volume, 0, 0}
			    : (AFSFid){fid->volume, fid->vnode, fid->unique};
}

/* Promise and status that the call is about to be given, and that it then tells the client. */
static struct fsd_given prepare_promise(const struct fs_place *place)
{
	struct fsd_given given = {0};

	if (place->store && !place->constant)
		given.fid = promise_fid(place);
	return given;
}

static AFSCallBack tell_promise(const struct fs_call *call, const struct fs_place *place,
				struct fsd_given *given)
{
	uint32_t seconds = given->seconds;

	if (place->constant)
		seconds = call->caller.host ? CONSTANT_S : 0;
	/* One on a whole volume is also about what the client read before: it stays. */
	if (place->whole)
		given->seconds = 0;
	return seconds ? (AFSCallBack){CALLBACK_VERSION, seconds, CB_SHARED} : (AFSCallBack){0};
}

void fs_promise(struct fs_call *call, const struct fs_place *place, AFSCallBack *cb)
{
	call->promised = prepare_promise(place);
	fsd_promise_give_all(call->service->clients, &call->caller, &call->promised, 1, false,
			     fsd_now());
	*cb = tell_promise(call, place, &call->promised);
	call->viewer.promised = cb->ExpirationTime > 0;
}

void fs_unpromise(struct fs_call *call)
{
	fsd_promise_undo(call->service->clients, &call->caller, &call->promised);
	call->promised.seconds = 0;
}

void fs_return_promise(struct fs_call *call, const struct fs_place *place)
{
	AFSFid fid = promise_fid(place);

	if (!place->constant && !place->whole)
		fsd_promise_drop(call->service->clients, &call->caller, &fid);
}

/* -- status -- */

void fs_fill(const struct fs_call *call, const struct store_status *status, AFSFetchStatus *st)
{
	struct fsd_service *service = call->service;

	*st = (AFSFetchStatus){
		.InterfaceVersion = 1,
		.FileType = status->kind,
		.LinkCount = status->links,
		.Author = (uint32_t)status->author,
		.Owner = (uint32_t)status->owner,
		.CallerAccess = status->rights,
		.AnonymousAccess = status->anonymous,
		.UnixModeBits = status->mode,
		.ParentVnode = status->parent,
		.ParentUnique = status->parent_unique,
		.ResidencyMask = 1,
		.ClientModTime = status->client_mtime,
		.ServerModTime = status->server_mtime,
		.Group = status->group,
		.lockCount =
			(uint32_t)fsd_lock_count(service->locks, &status->fid, call->running.since),
	};
	afs_status_set_length(st, status->length);
	afs_status_set_version(st, status->version);
	if (fsd_guard_protects(service->guard, FSD_FS)) /* they are refused whatever the ACL says */
		st->AnonymousAccess = 0;
}

/* Reads the status of an object on which the caller has a promise, if the viewer says so. */
static int read_status(struct fs_call *call, const struct fs_place *place, const AFSFid *fid,
		       AFSFetchStatus *st)
{
	struct store_status status;
	int rc = place->store->ops->status(place->store, &call->self, &place->fid, &status);

	if (!fs_settled(call, fid))
		rc = AFS_VBUSY;
	if (!rc)
		fs_fill(call, &status, st);
	return rc;
}

int fs_status(struct fs_call *call, const AFSFid *fid, AFSFetchStatus *st, AFSCallBack *cb)
{
	struct fs_place place;
	int rc;

	memset(cb, 0, sizeof(*cb));
	if (call->who.refused)
		return -EACCES;
	rc = fs_find(call, fid, &place);
	if (rc)
		return rc;
	fs_promise(call, &place, cb);
	return read_status(call, &place, fid, st);
}

static bool is_together(const struct fs_call *call, const struct fs_place *place)
{
	return place->store == call->service->store && place->store->ops->statuses;
}

/* read_status() for the objects that the service's store reads together. */
static void read_together(struct fs_call *call, const struct fs_place *places, const AFSFid *fids,
			  uint32_t count, AFSFetchStatus *sts, int *results)
{
	struct store *store = call->service->store;
	struct store_status statuses[AFSCBMAX];
	struct store_fid asked[AFSCBMAX];
	uint32_t which[AFSCBMAX], n = 0;
	int read[AFSCBMAX];

	for (uint32_t i = 0; i < count; i++)
		if (!results[i] && is_together(call, &places[i])) {
			which[n] = i;
			asked[n++] = places[i].fid;
		}
	if (n > 0)
		store->ops->statuses(store, &call->self, asked, n, statuses, read);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = which[k];

		results[i] = fs_settled(call, &fids[i]) ? read[k] : AFS_VBUSY;
		if (!results[i])
			fs_fill(call, &statuses[k], &sts[i]);
	}
}

void fs_status_of_all(struct fs_call *call, bool in_line, const AFSFid *fids, uint32_t count,
		      AFSFetchStatus *sts, AFSCallBack *cbs, int *results)
{
	struct fs_place places[AFSCBMAX];
	struct fsd_given given[AFSCBMAX];
	bool failed = false;

	assert(count <= AFSCBMAX);
	for (uint32_t i = 0; i < count; i++) {
		places[i] = (struct fs_place){0};
		results[i] = call->who.refused ? -EACCES : fs_find(call, &fids[i], &places[i]);
		given[i] = prepare_promise(&places[i]);
	}
	fsd_promise_give_all(call->service->clients, &call->caller, given, count, true, fsd_now());
	for (uint32_t i = 0; i < count; i++) {
		if (results[i])
			continue;
		cbs[i] = tell_promise(call, &places[i], &given[i]);
		call->viewer.promised = cbs[i].ExpirationTime > 0;
		if (!is_together(call, &places[i]))
			results[i] = read_status(call, &places[i], &fids[i], &sts[i]);
	}
	read_together(call, places, fids, count, sts, results);
	for (uint32_t i = 0; i < count; i++)
		failed |= results[i] != 0;
	for (uint32_t i = 0; failed && i < count; i++)
		if (places[i].store && (results[i] || !in_line))
			fsd_promise_undo(call->service->clients, &call->caller, &given[i]);
}

int fs_peek(struct fs_call *call, const struct fs_place *place, struct store_acl *acl,
	    struct store_status *status)
{
	struct store_caller all = call->self;

	all.administrator = true;
	return place->store->ops->acl(place->store, &all, &place->fid, acl, status);
}

/* -- changes -- */

void fs_touch(struct fs_call *call, const AFSFid *fid)
{
	if (call->touched_count < sizeof(call->touched) / sizeof(call->touched[0]))
		call->touched[call->touched_count++] = *fid;
}

#define BREAKS_MAX (sizeof(((struct store_changes *)0)->change) / sizeof(struct store_change))

static unsigned to_breaks(const struct store_changes *changes, struct fsd_break breaks[BREAKS_MAX])
{
	assert(changes->count <= BREAKS_MAX);
	for (unsigned i = 0; i < changes->count; i++) {
		const struct store_change *change = &changes->change[i];
		const struct store_fid *fid = &change->fid;

		breaks[i] = (struct fsd_break){.fid = {fid->volume, fid->vnode, fid->unique},
					       .for_all = change->for_all,
					       .gone = change->gone};
	}
	return changes->count;
}

void fs_announce(void *arg, const struct store_changes *changes)
{
	struct fsd_break breaks[BREAKS_MAX];
	struct fs_call *call = arg;

	fsd_change_begin(call->service->clients, &call->announced, breaks,
			 to_breaks(changes, breaks));
}

/* The steps that no client is involved in. Returns the number of breaks. */
static unsigned note_changes(struct fs_call *call, const struct store_changes *changes,
			     struct fsd_break breaks[BREAKS_MAX])
{
	fsd_count(&call->service->counters.changes, 1);
	fsd_volume_count(call->service->volume_counts, call->place.fid.volume, FSD_VOLUME_CHANGES,
			 1);
	for (unsigned i = 0; i < changes->count; i++)
		if (changes->change[i].gone)
			fsd_lock_forget(call->service->locks, &changes->change[i].fid);
	return to_breaks(changes, breaks);
}

static bool tell_holders(struct fs_call *call, const struct store_changes *changes)
{
	struct fsd_clients *clients = call->service->clients;
	struct fsd_break breaks[BREAKS_MAX];
	unsigned count = note_changes(call, changes, breaks);

	assert(!call->breaking);
	if (count)
		call->breaking = fsd_promise_break_begin(clients, breaks, count, call->caller.host);
	if (!call->breaking)
		fsd_change_end(clients, &call->announced);
	return !call->breaking;
}

bool fs_tell(struct fs_call *call)
{
	return tell_holders(call, &call->change.changes);
}

void fs_await_told(struct fs_call *call)
{
	if (call->breaking)
		fsd_promise_break_end(call->service->clients, call->breaking, FSD_BREAK_MS);
	call->breaking = NULL;
	fsd_change_end(call->service->clients, &call->announced);
}

bool fs_settled(struct fs_call *call, const AFSFid *fid)
{
	if (call->hasty)
		return !fsd_change_open(call->service->clients, fid, 1);
	return fsd_change_settled(call->service->clients, fid, 1, FSD_BREAK_MS, &call->patience);
}

bool fs_all_settled(struct fs_call *call)
{
	return !fsd_change_open(call->service->clients, call->touched, call->touched_count);
}

int fs_settle(struct fs_call *call, int result)
{
	bool known = fsd_change_settled(call->service->clients, call->touched, call->touched_count,
					FSD_BREAK_MS, &call->patience);

	return known || !result ? result : AFS_VBUSY;
}

int fs_finish(struct fs_call *call, int result, const struct store_changes *changes)
{
	/* An announced change was made, even if the flush after it failed. */
	if ((!result || call->announced.count) && !tell_holders(call, changes))
		fs_await_told(call);
	return fs_settle(call, result);
}

/* -- failures of the machine -- */

static const struct {
	const char *name, *text;
} kinds[FSD_FAILURES] = {
	[FSD_FAILURE_SPACE] = {"space",
			       "the disk is full; remove files or old clones, or add space"},
	[FSD_FAILURE_READ_ONLY] =
		{"read-only",
		 "the file system is read-only; look for errors of the disk in the kernel's log"},
	[FSD_FAILURE_IO] =
		{"io", "input or output error; look at the kernel's log, then run rxvol check"},
	[FSD_FAILURE_FILES] = {"files",
			       "too many open files; raise LimitNOFILE of the unit, or ulimit -n"},
	[FSD_FAILURE_MEMORY] = {"memory", "no memory"},
};

enum fsd_failure fsd_failure_of(int result)
{
	switch (result) {
	case STORE_VDISKFULL:
	case -ENOSPC:
	case -EDQUOT:
		return FSD_FAILURE_SPACE;
	case -EROFS:
		return FSD_FAILURE_READ_ONLY;
	case -EIO:
		return FSD_FAILURE_IO;
	case -EMFILE:
	case -ENFILE:
		return FSD_FAILURE_FILES;
	case -ENOMEM:
		return FSD_FAILURE_MEMORY;
	default:
		return FSD_FAILURES;
	}
}

const char *fsd_failure_name(enum fsd_failure kind)
{
	return kinds[kind].name;
}

/* Count a call on an object, and log the first failure of its kind in each minute. */
static void log_failure(struct fsd_failures *failures, enum fsd_failure kind,
			const struct store_fid *fid)
{
	uint64_t now = monotonic_ns(), told = atomic_load(&failures->told[kind]), quiet;
	char more[64] = "";

	atomic_fetch_add(&failures->count[kind], 1);
	/* One thread takes the minute, and logs. */
	if ((told && now < told + QUIET_NS) ||
	    !atomic_compare_exchange_strong(&failures->told[kind], &told, now)) {
		atomic_fetch_add(&failures->quiet[kind], 1);
		return;
	}
	quiet = atomic_exchange(&failures->quiet[kind], 0);
	if (quiet)
		snprintf(more, sizeof(more), " (%llu more since the last such line)",
			 (unsigned long long)quiet);
	fsd_log(RXW_LOG_ERROR, "a call on object %u.%u.%u failed: %s%s", fid->volume, fid->vnode,
		fid->unique, kinds[kind].text, more);
}

/* -- codes -- */

/* A call on an object failed for a reason that an administrator has to remove. */
static enum fsd_failure note_failure(const struct fs_call *call, const struct store_fid *fid,
				     int result)
{
	const struct fs_place *place = &call->place;
	enum fsd_failure kind = fsd_failure_of(result);

	/* Volumes that never change, and exported directories, are read-only by intention. */
	if (kind == FSD_FAILURE_READ_ONLY &&
	    (!place->store || !place->store->ops->create || place->type != STORE_RW))
		return FSD_FAILURES;
	/* A file of an exported directory was replaced while it was read: fs_fetch.c logs that. */
	if (kind == FSD_FAILURE_IO && call->service->exported)
		return FSD_FAILURES;
	if (kind != FSD_FAILURES)
		log_failure(&call->service->failures, kind, fid);
	return kind;
}

int32_t fs_code_of(const struct fs_call *call, const struct store_fid *fid, int result)
{
	switch (result ? note_failure(call, fid, result) : FSD_FAILURES) {
	case FSD_FAILURE_FILES:
	case FSD_FAILURE_MEMORY:
		return AFS_VBUSY; /* it may be over soon: clients wait and repeat the call */
	default:
		break;
	}
	if (result >= 0)
		return result;
	if (result == FSD_LOST)
		return RXW_USER_ABORT;
	if (result <= RXW_RPC_CC_MARSHAL)
		return result;

	int err = -result;

	if (call->caller.uae)
		return rxw_code_from_errno(err);
	/* These errno values have another meaning in AFS. */
	return (err >= 101 && err <= 112) || err == 120 ? EIO : err;
}

int32_t fs_code(const struct fs_call *call, int result)
{
	return fs_code_of(call, &call->place.fid, result);
}
