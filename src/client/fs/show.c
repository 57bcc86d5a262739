/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes as programs see them (K-053). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "client/fs/operate.h"
#include "client/fs/show.h"

static void set_times(struct stat *stat, time_t modified, time_t changed)
{
	stat->st_mtim.tv_sec = stat->st_atim.tv_sec = modified;
	stat->st_ctim.tv_sec = changed > modified ? changed : modified;
}

static mode_t mode_of_kind(enum rxafs_kind kind)
{
	return kind == RXAFS_DIRECTORY ? S_IFDIR : kind == RXAFS_SYMLINK ? S_IFLNK : S_IFREG;
}

/* Links have the mode 0777 on Linux, and rsync(1) compares it. */
static mode_t shown_mode(enum rxafs_kind kind, mode_t mode)
{
	return mode_of_kind(kind) | (kind == RXAFS_SYMLINK ? 0777 : mode);
}

/* A server may tell any length. */
static off_t shown_length(uint64_t length)
{
	return length < INT64_MAX ? (off_t)length : INT64_MAX;
}

/* What this client has changed and not stored yet. */
static void show_own_changes(struct fs_vnode *v, struct stat *stat)
{
	int64_t mtime;

	pthread_mutex_lock(&v->lock);
	if (v->data) {
		if (cl_data_is_dirty(v->data, &mtime)) {
			stat->st_size = shown_length(cl_data_length(v->data));
			set_times(stat, mtime, stat->st_ctim.tv_sec);
		}
	}
	if (v->hidden && stat->st_nlink)
		stat->st_nlink--;
	pthread_mutex_unlock(&v->lock);
}

/* Whether someone who is not known may see names and attributes there (K-161). */
static bool anonymous_sees(struct fs_vnode *v, const struct cl_status *status)
{
	struct rxafs_fid fid = v->fid;
	struct cl_status above = {0};
	struct cl_object *directory;

	if (status->kind == RXAFS_DIRECTORY)
		return status->anonymous & RXAFS_LIST;
	fid.vnode = status->parent_vnode;
	fid.unique = status->parent_unique;
	directory = cl_cache_find(v->client->cache, &fid);
	if (!directory)
		return false;
	cl_object_status(directory, cl_net_now(), &above);
	cl_object_put(directory);
	return above.anonymous & RXAFS_LIST;
}

/* A directory that the dynamic root has, or a mount point that was not entered (K-017). */
static void show_unentered(rxafs_object *object, const struct cl_status *status,
			   struct rxafs_attributes *a)
{
	struct stat *stat = &a->stat;

	stat->st_mode = object->what == FS_ALIAS ? S_IFLNK | 0777 : S_IFDIR | 0755;
	stat->st_nlink = object->what == FS_ALIAS ? 1 : 2;
	stat->st_size = object->what == FS_ALIAS ? (off_t)strlen(object->text) : 2048;
	set_times(stat, status ? status->modified : object->client->started, 0);
	a->mount_point = object->what == FS_MOUNT || object->what == FS_CELL;
	a->for_all = !object->vnode;
	/* A mount point looks different once it is entered. */
	a->valid_ns = a->mount_point ? 0 : UINT64_C(3600000000000);
}

static void show_entered(rxafs_object *object, struct fs_vnode *v, const struct cl_status *status,
			 struct rxafs_attributes *a)
{
	struct stat *stat = &a->stat;
	uint64_t now = cl_net_now();

	atomic_store(&v->forgotten, false);
	stat->st_mode = shown_mode(status->kind, status->mode);
	stat->st_nlink = status->links;
	stat->st_uid = status->owner;
	stat->st_gid = status->group;
	stat->st_size = shown_length(status->size);
	set_times(stat, status->modified, status->changed);
	show_own_changes(v, stat);
	a->version = status->version;
	a->author = status->author;
	a->locks = status->locks;
	a->stamp = status->order;
	a->for_all = anonymous_sees(v, status);
	a->valid_ns = status->valid_until > now ? status->valid_until - now : 0;
	(void)object;
}

/* With what is behind it, or NULL. */
static void show_as(rxafs_object *object, struct fs_vnode *v, const struct cl_status *status,
		    struct rxafs_attributes *a)
{
	*a = (struct rxafs_attributes){.fid = v ? v->fid : object->fid, .kind = object->kind};
	if (v && status)
		show_entered(object, v, status, a);
	else
		show_unentered(object, status, a);
	/* The same before and after a mount point is entered: programs that walk trees compare. */
	a->stat.st_ino = fs_inode(object->client, &object->fid);
	a->stat.st_blksize = 65536;
	a->stat.st_blocks = a->stat.st_size / 512 + (a->stat.st_size % 512 != 0);
}

int64_t fs_nearest_time(int64_t time)
{
	return time < 0 ? 0 : time > UINT32_MAX ? UINT32_MAX : time;
}

void fs_show_status(rxafs_client *client, const struct rxafs_fid *fid, const AFSFetchStatus *answer,
		    struct rxafs_attributes *a)
{
	enum rxafs_kind kind = answer->FileType == AFS_TYPE_DIR	      ? RXAFS_DIRECTORY
			       : answer->FileType == AFS_TYPE_SYMLINK ? RXAFS_SYMLINK
								      : RXAFS_FILE;
	struct stat *stat = &a->stat;

	*a = (struct rxafs_attributes){.fid = *fid,
				       .kind = kind,
				       .version = afs_status_version(answer),
				       .author = answer->Author,
				       .locks = (int32_t)answer->lockCount};
	stat->st_mode = shown_mode(kind, answer->UnixModeBits & 07777);
	stat->st_nlink = answer->LinkCount;
	stat->st_uid = answer->Owner;
	stat->st_gid = answer->Group;
	stat->st_size = shown_length(afs_status_length(answer));
	set_times(stat, answer->ClientModTime, answer->ServerModTime);
	stat->st_ino = fs_inode(client, fid);
	stat->st_blksize = 65536;
	stat->st_blocks = stat->st_size / 512 + (stat->st_size % 512 != 0);
}

void fs_show(rxafs_object *object, struct rxafs_request *request, const struct cl_status *status,
	     struct rxafs_attributes *attributes)
{
	(void)request;
	show_as(object, fs_entered(object), status, attributes);
}

/* What is behind an object that was entered. NULL: it was not, or the volume is gone, and the mount point is shown. */
static int look_behind(rxafs_object *object, struct rxafs_request *request, struct fs_vnode **v)
{
	int result;

	*v = fs_entered(object);
	if (!*v || object->what == FS_PLAIN)
		return 0;
	result = fs_enter(object, request, v);
	if (result == -ENODEV)
		*v = NULL;
	return result == -ENODEV ? 0 : result;
}

static int show_mount_point(rxafs_object *object, struct rxafs_request *request,
			    struct rxafs_attributes *attributes)
{
	struct cl_status status;
	int result = object->vnode ? fs_status(object->vnode, request, &status) : 0;

	if (!result)
		show_as(object, NULL, object->vnode ? &status : NULL, attributes);
	return result;
}

/* Whether changes of this client are not stored yet. */
static bool is_unstored(struct fs_vnode *v)
{
	int64_t mtime;
	bool dirty;

	pthread_mutex_lock(&v->lock);
	dirty = v->data && cl_data_is_dirty(v->data, &mtime);
	pthread_mutex_unlock(&v->lock);
	return dirty;
}

static int ask_behind(rxafs_object *object, struct rxafs_request *request, struct fs_vnode **v,
		      struct cl_status *status)
{
	int result = look_behind(object, request, v);
	bool dirty;

	if (result || !*v)
		return result;
	/* A store that ends between the look at the status and that at own changes would leave the old size. */
	do {
		dirty = is_unstored(*v);
		result = fs_status(*v, request, status);
	} while (!result && dirty && !is_unstored(*v));
	return result;
}

int fs_show_now(rxafs_object *object, struct rxafs_request *request,
		struct rxafs_attributes *attributes)
{
	struct cl_status status;
	struct fs_vnode *v;
	uint32_t rights;
	int result = ask_behind(object, request, &v, &status);

	/* The volume is gone: another one may have its name. */
	if (result == -ENODEV && object->what != FS_PLAIN)
		result = ask_behind(object, request, &v, &status);
	if (!result && !v)
		return show_mount_point(object, request, attributes);
	if (result == -ESTALE && v && atomic_load(&v->removed) && status.kind == RXAFS_DIRECTORY) {
		status.links = 0;
		result = 0;
	}
	if (!result && status.kind != RXAFS_DIRECTORY) {
		/* Another identity may have asked for it (K-126). */
		result = fs_governing_rights(v, &status, request, &rights);
		if (!result && !(rights & (RXAFS_LIST | RXAFS_READ)))
			result = fs_refuse(v, request);
	}
	if (!result)
		show_as(object, v, &status, attributes);
	return result;
}

int rxafs_getattr(rxafs_object *object, struct rxafs_request *request,
		  struct rxafs_attributes *attributes)
{
	return fs_show_now(object, request, attributes);
}

bool rxafs_attributes_hold(rxafs_object *object, const struct rxafs_attributes *attributes)
{
	struct fs_vnode *v = fs_entered(object);
	struct cl_status status;

	if (!v)
		v = object->vnode;
	return !v || (!cl_object_status(v->object, cl_net_now(), &status) &&
		      status.order == attributes->stamp);
}

bool rxafs_is_promised(rxafs_object *object)
{
	struct fs_vnode *v = fs_entered(object);
	struct cl_status status;

	return v && !cl_object_status(v->object, cl_net_now(), &status);
}

int rxafs_readlink(rxafs_object *object, struct rxafs_request *request, char **text)
{
	struct fs_vnode *v = object->vnode;
	struct cl_status status;
	int result;

	if (object->what == FS_ALIAS) {
		*text = strdup(object->text);
		return *text ? 0 : -ENOMEM;
	}
	if (object->kind != RXAFS_SYMLINK)
		return -EINVAL;
	result = fs_status(v, request, &status);
	return result ? result : fs_link_text(v, request, &status, text);
}

/* Only the owner's bits of a file count, for everybody (K-111). */
static int check_file_rights(struct fs_vnode *v, const struct cl_status *status, uint32_t rights,
			     int mask)
{
	(void)v;
	if (mask & R_OK && !(rights & RXAFS_READ && status->mode & 0400))
		return -EACCES;
	if (mask & W_OK && !(rights & RXAFS_WRITE && status->mode & 0200))
		return -EACCES;
	if (mask & X_OK && !(rights & RXAFS_READ && status->mode & 0100))
		return -EACCES;
	return 0;
}

static int check_directory_rights(uint32_t rights, int mask)
{
	if (mask & (R_OK | X_OK) && !(rights & RXAFS_LIST))
		return -EACCES;
	if (mask & W_OK && !(rights & (RXAFS_INSERT | RXAFS_DELETE)))
		return -EACCES;
	return 0;
}

int rxafs_get_rights(rxafs_object *object, struct rxafs_request *request, uint32_t *own,
		     uint32_t *anonymous)
{
	struct cl_status status;
	struct fs_vnode *v;
	uint32_t rights = 0;
	int result;

	if (object->what == FS_ROOT || object->what == FS_ALIAS) {
		status.anonymous = rights = RXAFS_READ | RXAFS_LIST;
		result = 0;
	} else {
		result = fs_enter(object, request, &v);
		if (!result)
			result = fs_status(v, request, &status);
		if (!result && own)
			result = fs_governing_rights(v, &status, request, &rights);
	}
	if (!result && own)
		*own = rights;
	if (!result && anonymous)
		*anonymous = status.anonymous;
	return result;
}

int rxafs_access(rxafs_object *object, struct rxafs_request *request, int mask)
{
	struct cl_status status;
	struct fs_vnode *v;
	uint32_t rights;
	int result;

	if (object->what == FS_ROOT || object->what == FS_ALIAS)
		return mask & W_OK ? -EROFS : 0;
	result = fs_enter(object, request, &v);
	if (!result)
		result = fs_status(v, request, &status);
	if (!result)
		result = fs_governing_rights(v, &status, request, &rights);
	if (result)
		return result;
	if (mask & W_OK && cl_volume_type(v->volume) != AFS_VL_RW)
		return -EROFS;
	if (status.kind == RXAFS_DIRECTORY)
		result = check_directory_rights(rights, mask);
	else if (status.kind != RXAFS_SYMLINK)
		result = check_file_rights(v, &status, rights, mask);
	return result == -EACCES ? fs_refuse(v, request) : result;
}
