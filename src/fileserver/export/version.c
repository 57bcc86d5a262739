/* SPDX-License-Identifier: BSD-2-Clause */
/* Versions of objects, their identity, and reporting changes. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "afs/numbers.h"
#include "common/clock.h"
#include "fileserver/export/object_private.h"

int fsd_volume_error(int rc)
{
	switch (rc) {
	case -ENOENT:
	case -ENOTDIR:
	case -ELOOP:
	case -EXDEV:
		return AFS_VNOVNODE;
	case -EAGAIN:
		return AFS_VBUSY; /* the client waits and tries again */
	case -EPERM:
		return -EACCES;
	default:
		return rc;
	}
}

void fsd_volume_changed(struct fsd_volume *volume, uint32_t vnode, uint32_t unique,
			const void *actor)
{
	AFSFid fid = {volume->id, vnode, unique};

	if (volume->on_change)
		volume->on_change(volume->arg, &fid, actor);
}

/*
 * Versions follow the clock, in microseconds. Even if the state is lost or replaced by an old copy,
 * a FID and version that a client has seen never stand for other data.
 */
uint64_t fsd_volume_next_version(uint64_t version)
{
	int64_t now = wall_ns() / 1000;

	return now > 0 && (uint64_t)now > version ? (uint64_t)now : version + 1;
}

int fsd_volume_settle(struct fsd_volume *volume, const char *path, struct fsd_stat *st)
{
	for (int tries = 0;; tries++) {
		int rc = volume->layer->ops->stat_path(volume->layer, path, st);
		int64_t age = wall_ns() - st->ctime_ns;

		if (rc || age < 0 || age >= FSD_TICK_NS || tries == 3)
			return rc;
		struct timespec ts = {.tv_nsec = (long)(FSD_TICK_NS - age)};

		nanosleep(&ts, NULL);
	}
}

bool fsd_volume_is_of(const struct fsd_record *record, const struct fsd_stat *st)
{
	uint32_t birth = fsd_stat_birth(st);

	if (st->kind != record->kind)
		return false;
	if (record->inode == 0 || record->vnode == AFS_ROOT_VNODE)
		return true;
	/* A link cannot change: if it differs, it is another link. */
	if (st->kind == FSD_SYMLINK && record->seen)
		return fsd_stat_stamp(st) == record->seen;
	return st->inode == record->inode && (!birth || !record->birth || birth == record->birth);
}

void fsd_gone_add(void *arg, uint32_t vnode, uint32_t unique)
{
	struct fsd_gone *gone = arg;

	if (gone->count == gone->room) {
		size_t room = gone->room ? gone->room * 2 : 64;
		uint32_t *more = reallocarray(gone->fids, room, 2 * sizeof(*more));

		if (!more)
			return; /* the promises will expire */
		gone->fids = more;
		gone->room = room;
	}
	gone->fids[2 * gone->count] = vnode;
	gone->fids[2 * gone->count++ + 1] = unique;
}

void fsd_gone_report(struct fsd_volume *volume, struct fsd_gone *gone)
{
	for (size_t i = 0; i < gone->count; i++)
		fsd_volume_changed(volume, gone->fids[2 * i], gone->fids[2 * i + 1], NULL);
	free(gone->fids);
}
