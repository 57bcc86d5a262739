/* SPDX-License-Identifier: BSD-2-Clause */
/* Access by permission bits: those for "other", from the root of the export down. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "afs/numbers.h"
#include "common/clock.h"
#include "fileserver/export/object_private.h"

#define CACHE_NS 1000000000ull /* how long a result is used again */

/* Every directory on the way to `path` must let "other" pass. 1, 0 or -errno. */
static int walk_allowed(struct fsd_volume *volume, const char *path)
{
	char prefix[FSD_PATH_MAX];
	size_t length = 0;

	for (;;) {
		struct fsd_stat st;
		int rc;

		memcpy(prefix, path, length);
		prefix[length] = 0;
		rc = volume->layer->ops->stat_path(volume->layer, prefix, &st);
		if (rc)
			return rc;
		if (st.kind != FSD_DIR)
			return -ENOTDIR;
		if (!(st.mode & S_IXOTH))
			return 0;

		const char *from = path + length + (length > 0);
		const char *slash = strchr(from, '/');

		if (!slash)
			return 1;
		length = (size_t)(slash - path);
	}
}

int fsd_access_path(struct fsd_volume *volume, const struct fsd_object *object)
{
	const struct fsd_record *r = &object->record;
	uint64_t now = (uint64_t)read_clock_ns(CLOCK_MONOTONIC_COARSE);
	struct access_slot *slot;
	int allowed = -1;

	if (volume->all_files || r->vnode == AFS_ROOT_VNODE)
		return 0;
	slot = &volume->access[r->parent % ACCESS_SLOTS];
	pthread_mutex_lock(&volume->access_lock);
	if (slot->vnode == r->parent && slot->unique == r->parent_unique && now < slot->until_ns)
		allowed = slot->allowed;
	pthread_mutex_unlock(&volume->access_lock);
	if (allowed < 0) {
		allowed = walk_allowed(volume, object->path);
		if (allowed < 0)
			return allowed;
		pthread_mutex_lock(&volume->access_lock);
		*slot = (struct access_slot){.vnode = r->parent,
					     .unique = r->parent_unique,
					     .allowed = allowed,
					     .until_ns = now + CACHE_NS};
		pthread_mutex_unlock(&volume->access_lock);
	}
	return allowed ? 0 : -EACCES;
}

void fsd_volume_forget_access(struct fsd_volume *volume)
{
	pthread_mutex_lock(&volume->access_lock);
	memset(volume->access, 0, sizeof(volume->access));
	pthread_mutex_unlock(&volume->access_lock);
}

/* Rights on the object itself; the directories above it have been checked. */
uint32_t fsd_access_rights(const struct fsd_volume *volume, const struct fsd_stat *st)
{
	uint32_t rights = 0;

	/*
	 * Read permission includes read locks: clients check these rights before they ask for one.
	 */
	if (volume->all_files || st->kind == FSD_SYMLINK)
		return AFS_RIGHT_READ | AFS_RIGHT_LOOKUP | AFS_RIGHT_LOCK;
	/* The status of a file that may not be read is available, as it is in the export itself. */
	if (st->kind == FSD_FILE)
		return st->mode & S_IROTH ? AFS_RIGHT_READ | AFS_RIGHT_LOOKUP | AFS_RIGHT_LOCK
					  : AFS_RIGHT_LOOKUP;
	/*
	 * In AFS the rights of a directory apply to its names (l) and to the files in it (r, k).
	 */
	if (st->mode & S_IROTH)
		rights |= AFS_RIGHT_LOOKUP;
	if (st->mode & S_IXOTH)
		rights |= AFS_RIGHT_READ | AFS_RIGHT_LOCK;
	return rights;
}
