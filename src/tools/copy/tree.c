/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp get -r: directories. Every name is used relative to a directory that is held open, and no
 * link is followed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/copy/copy.h"

#define DEPTH_MAX 128 /* each level holds a directory open */

/* The longest label that is shown; what is longer keeps its end. */
static void join(char *label, size_t size, const char *parent, const char *name)
{
	size_t length = strlen(parent);

	snprintf(label, size, "%s%s%s", parent, length && parent[length - 1] == '/' ? "" : "/",
		 name);
}

static int get_link(struct copy *copy, const struct entry *e, int dir, const char *label)
{
	char text[AFSPATHMAX + 1], temp[224];
	struct afs_error error;

	copy_fresh(copy);
	while (afs_client_readlink(copy->client, &e->fid, label, text, &error) < 0) {
		if (copy_again(copy, &error))
			continue;
		tools_error("%s", error.text);
		return -1;
	}
	if (afs_is_mount_point(e->status.UnixModeBits, text)) {
		tools_error("%s: passed over: it is the mount point of another volume, %.64s",
			    label, text + 1);
		return 0;
	}
	sink_temp_name(temp, sizeof(temp), e->name);
	if (symlinkat(text, dir, temp) < 0 || renameat(dir, temp, dir, e->name) < 0) {
		tools_error("%s: cannot create the link: %s", label, strerror(errno));
		unlinkat(dir, temp, 0);
		return -1;
	}
	return 0;
}

static int get_plain(struct copy *copy, const struct entry *e, int dir, const char *label)
{
	struct afs_object object = { .fid = e->fid, .status = e->status };
	struct sink sink;
	int rc;

	if (sink_open(&sink, dir, e->name, true) < 0) {
		tools_error("%s: cannot create the file: %s", label, strerror(errno));
		return -1;
	}
	rc = get_file(copy, &object, &sink, label);
	if (rc == 0 && sink_commit(&sink, e->status.UnixModeBits & 0777 & ~copy->umask) < 0) {
		tools_error("%s: cannot write: %s", label, strerror(errno));
		rc = -1;
	}
	sink_abandon(&sink);
	return rc;
}

static int get_subdirectory(struct copy *copy, const struct entry *e, int dir, const char *label,
			    unsigned depth)
{
	int below, rc;

	if (mkdirat(dir, e->name, 0700) < 0 && errno != EEXIST) {
		tools_error("%s: cannot create the directory: %s", label, strerror(errno));
		return -1;
	}
	below = openat(dir, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0) {
		tools_error("%s: cannot open the directory: %s", label, strerror(errno));
		return -1;
	}
	rc = get_tree(copy, &e->fid, below, label, depth + 1);
	if (rc == 0 && fchmod(below, (e->status.UnixModeBits & 0777 & ~copy->umask) | 0700) < 0) {
		tools_error("%s: cannot set the mode: %s", label, strerror(errno));
		rc = -1;
	}
	close(below);
	return rc;
}

static int get_entry(struct copy *copy, const struct entry *e, int dir, const char *label,
		     unsigned depth)
{
	struct afs_error error;

	if (e->status.errorCode != 0 || !afs_status_usable(&e->status)) {
		afs_error_code(&error, label, (int32_t)e->status.errorCode, RXW_ORIGIN_PEER);
		tools_error("%s", error.text);
		return -1;
	}
	switch (e->status.FileType) {
	case AFS_TYPE_DIR:
		return get_subdirectory(copy, e, dir, label, depth);
	case AFS_TYPE_SYMLINK:
		return get_link(copy, e, dir, label);
	default:
		return get_plain(copy, e, dir, label);
	}
}

int get_tree(struct copy *copy, const AFSFid *fid, int dir, const char *label, unsigned depth)
{
	struct entries entries;
	int rc;

	if (depth == DEPTH_MAX) {
		tools_error("%s: more than %d directories deep", label, DEPTH_MAX);
		return -1;
	}
	if (entries_read(copy, fid, label, &entries) < 0)
		return -1;
	rc = entries_status(copy, &entries);
	for (size_t i = 0; rc == 0 && i < entries.count; i++) {
		size_t size = strlen(label) + strlen(entries.list[i].name) + 2;
		char *path;

		if (atomic_load(&copy->interrupted)) {
			tools_error("%s: interrupted", label);
			rc = -1;
			break;
		}
		path = malloc(size);
		if (!path) {
			tools_error("no memory");
			rc = -1;
			break;
		}
		join(path, size, label, entries.list[i].name);
		rc = get_entry(copy, &entries.list[i], dir, path, depth);
		free(path);
	}
	entries_free(&entries);
	return rc;
}

/* Remove what is in the directory; takes over the descriptor. */
static void empty(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		close(fd);
		return;
	}
	while ((e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), e->d_name, 0) < 0)
			remove_tree(dirfd(dir), e->d_name);
	}
	closedir(dir);
}

void remove_tree(int dir, const char *name)
{
	int saved = errno;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		empty(fd);
	unlinkat(dir, name, AT_REMOVEDIR);
	errno = saved;
}
