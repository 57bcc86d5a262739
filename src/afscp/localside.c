/* SPDX-License-Identifier: BSD-2-Clause */
/* Local directories of a sync. Names are used relative to open directories, and no link is followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "afscp/folder.h"
#include "afscp/local.h"
#include "program/message.h"

void items_free(struct items *items)
{
	free(items->list);
	free(items->storage);
	*items = (struct items){0};
}

int compare_items(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

int64_t time_in_afs(time_t seconds)
{
	return seconds < 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : seconds;
}

enum copy_result local_failed(struct run *run, const char *label, const char *what)
{
	bool full = errno == ENOSPC || errno == EDQUOT || errno == EROFS || errno == EIO;

	tools_error("%s: cannot %s: %s", label, what, strerror(errno));
	return full && !run->set.keep_going ? COPY_STOP : COPY_FAILED;
}

int open_local_folder(struct run *run, const char *path, struct folder *folder)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*folder = (struct folder){.ops = &local_folder, .run = run, .fd = fd, .former = (mode_t)-1};
	return fd < 0 ? -1 : 0;
}

/* ---- listing ---- */

static enum item_kind item_kind_of(mode_t mode)
{
	return S_ISREG(mode)   ? ITEM_FILE
	       : S_ISDIR(mode) ? ITEM_FOLDER
	       : S_ISLNK(mode) ? ITEM_LINK
			       : ITEM_SPECIAL;
}

/* 1: the item is gone again. */
static int look_at_item(struct folder *f, struct item *item, const char *label)
{
	struct stat st;

	if (fstatat(f->fd, item->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 1;
		tools_error("%s/%s: cannot read its status: %s", label, item->name,
			    strerror(errno));
		item->unknown = true;
		return 0;
	}
	item->kind = item_kind_of(st.st_mode);
	item->mode = st.st_mode & 0777;
	item->size = (uint64_t)st.st_size;
	item->mtime = time_in_afs(st.st_mtim.tv_sec);
	return 0;
}

static enum copy_result look_local(struct folder *f, const char *name, const char *label,
				   struct item *item, bool *exists)
{
	*item = (struct item){.name = (char *)name};
	*exists = look_at_item(f, item, label) == 0;
	return item->unknown ? COPY_FAILED : COPY_GOOD;
}

/* The names: offsets in *bytes until all are there. -1 with errno. */
static int read_local_names(DIR *dir, struct items *items, char **bytes)
{
	size_t room = 0, used = 0, size = 0;
	struct dirent *e;

	for (errno = 0; (e = readdir(dir)); errno = 0) {
		size_t length = strlen(e->d_name) + 1;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (items->count == room) {
			struct item *list = reallocarray(items->list, 2 * room + 64, sizeof(*list));

			if (!list)
				return -1;
			items->list = list;
			room = 2 * room + 64;
		}
		if (size - used < length) {
			char *more = realloc(*bytes, 2 * size + 4096);

			if (!more)
				return -1;
			*bytes = more;
			size = 2 * size + 4096;
		}
		memcpy(*bytes + used, e->d_name, length);
		items->list[items->count++] = (struct item){.name = (char *)used};
		used += length;
	}
	return errno ? -1 : 0;
}

/* A directory stream that leaves the folder's descriptor alone. */
static DIR *open_folder_stream(struct folder *f)
{
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static enum copy_result list_local(struct folder *f, const char *label, struct items *items)
{
	DIR *dir = open_folder_stream(f);
	char *bytes = NULL;
	size_t kept = 0;

	*items = (struct items){0};
	if (!dir)
		return local_failed(f->run, label, "read the directory");
	if (read_local_names(dir, items, &bytes) < 0) {
		enum copy_result rc = local_failed(f->run, label, "read the directory");

		closedir(dir);
		free(bytes);
		items_free(items);
		return rc;
	}
	closedir(dir);
	items->storage = bytes;
	for (size_t i = 0; i < items->count; i++) {
		struct item *item = &items->list[kept];

		*item = items->list[i];
		item->name = bytes + (size_t)item->name;
		kept += look_at_item(f, item, label) == 0;
	}
	items->count = kept;
	if (kept)
		qsort(items->list, kept, sizeof(*items->list), compare_items);
	return COPY_GOOD;
}

/* ---- directories ---- */

static enum copy_result enter_local(struct folder *f, const struct item *item, const char *label,
				    struct folder *child)
{
	*child = (struct folder){.ops = f->ops, .run = f->run, .former = (mode_t)-1};
	child->fd = open_usable_directory(f->fd, item->name, O_NOFOLLOW, &child->former);
	return child->fd < 0 ? local_failed(f->run, label, "open the directory") : COPY_GOOD;
}

static enum copy_result make_local(struct folder *f, const char *name, const char *label,
				   struct folder *child)
{
	struct item item = {.name = (char *)name};

	if (mkdirat(f->fd, name, 0700) < 0 && errno != EEXIST)
		return local_failed(f->run, label, "make the directory");
	return enter_local(f, &item, label, child);
}

static void leave_local(struct folder *f)
{
	if (f->former != (mode_t)-1)
		fchmod(f->fd, f->former);
	close(f->fd);
	f->ops = NULL;
}

/* ---- links and removals ---- */

static enum copy_result read_local_link(struct folder *f, const struct item *item,
					const char *label, char **text)
{
	char buffer[PATH_MAX + 1];
	ssize_t n = readlinkat(f->fd, item->name, buffer, sizeof(buffer));

	if (n < 0 || (size_t)n == sizeof(buffer))
		return local_failed(f->run, label, "read the link");
	*text = strndup(buffer, (size_t)n);
	return *text ? COPY_GOOD : local_failed(f->run, label, "read the link");
}

static enum copy_result make_local_link(struct folder *f, const char *name, const char *text,
					int64_t mtime, const char *label)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)mtime}};
	char temp[224];

	sink_temp_name(temp, sizeof(temp), name);
	if (symlinkat(text, f->fd, temp) == 0 &&
	    utimensat(f->fd, temp, times, AT_SYMLINK_NOFOLLOW) == 0 &&
	    renameat(f->fd, temp, f->fd, name) == 0)
		return COPY_GOOD;
	int number = errno;
	unlinkat(f->fd, temp, 0);
	errno = number;
	return local_failed(f->run, label, "make the link");
}

static enum copy_result remove_local_name(struct folder *f, const char *name, bool folder,
					  const char *label)
{
	if (unlinkat(f->fd, name, folder ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
		return COPY_GOOD;
	return local_failed(f->run, label, "remove it");
}

static enum copy_result set_local(struct folder *f, const struct item *item,
				  const struct looks *looks, const char *label)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)looks->mtime}};
	int rc = 0;

	if (looks->set_mode)
		rc = item ? fchmodat(f->fd, item->name, looks->mode, AT_SYMLINK_NOFOLLOW)
			  : fchmod(f->fd, looks->mode);
	if (looks->set_mode && !item)
		f->former = (mode_t)-1;
	if (rc == 0 && looks->set_time)
		rc = item ? utimensat(f->fd, item->name, times, AT_SYMLINK_NOFOLLOW)
			  : futimens(f->fd, times);
	return rc < 0 ? local_failed(f->run, label, "set its mode and time") : COPY_GOOD;
}

const struct folder_ops local_folder = {
	.list = list_local,
	.look = look_local,
	.enter = enter_local,
	.make = make_local,
	.read_link = read_local_link,
	.make_link = make_local_link,
	.remove = remove_local_name,
	.set_looks = set_local,
	.leave = leave_local,
	.local = true,
};
