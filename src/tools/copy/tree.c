/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp get -r: directories. Every name is used relative to an open directory, and no link is
 * followed. Objects that cannot be copied are skipped and counted. A malicious server cannot cause
 * endless work: no directory is entered twice, and depth and number of names are limited.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/copy/copy.h"
#include "tools/copy/sink.h"

#define DEPTH_MAX 128	  /* each level keeps a directory open */
#define NAMES_MAX 1000000 /* in memory at a time, on all levels */

/* One copy of a tree. */
struct tree {
	struct copy *copy;
	size_t names; /* in memory, on all levels */
	unsigned depth;
	uint64_t *met; /* directories entered, by vnode and uniquifier: open addressing, 0 = free */
	size_t room, count;
};

static uint64_t number_of(const AFSFid *fid)
{
	return (uint64_t)fid->Vnode << 32 | fid->Unique;
}

/*
 * The slot of the number, or a free one. A server that chooses bad numbers only slows its own copy.
 */
static size_t slot_of(const uint64_t *met, size_t room, uint64_t number)
{
	size_t at = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (room - 1);

	while (met[at] && met[at] != number)
		at = (at + 1) & (room - 1);
	return at;
}

static int grow(struct tree *t)
{
	size_t room = t->room ? 2 * t->room : 256;
	uint64_t *met = calloc(room, sizeof(*met));

	if (!met)
		return -1;
	for (size_t i = 0; i < t->room; i++)
		if (t->met[i])
			met[slot_of(met, room, t->met[i])] = t->met[i];
	free(t->met);
	t->met = met;
	t->room = room;
	return 0;
}

/* 0: the directory is new. 1: it was entered before. -1: no memory. */
static int meet(struct tree *t, const AFSFid *fid)
{
	uint64_t number = number_of(fid);
	size_t at;

	if (2 * t->count >= t->room && grow(t) < 0)
		return -1;
	at = slot_of(t->met, t->room, number);
	if (t->met[at])
		return 1;
	t->met[at] = number;
	t->count++;
	return 0;
}

static mode_t mode_of(const struct copy *copy, const AFSFetchStatus *status)
{
	return status->UnixModeBits & 0777 & ~copy->umask;
}

static void times_of(const AFSFetchStatus *status, struct timespec times[2])
{
	times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	times[1] = (struct timespec){.tv_sec = (time_t)status->ClientModTime};
}

static enum copy_result get_link(struct copy *copy, const struct entry *e,
				 const AFSFetchStatus *status, int dir, const char *label)
{
	char text[AFSPATHMAX + 1], temp[224];
	struct outage outage = {0};
	struct timespec times[2];
	struct afs_error error;

	copy_fresh(copy);
	while (afs_client_readlink(copy->client, &e->fid, label, text, &error) < 0) {
		if (copy_retry(copy, &outage, &error, NULL))
			continue;
		tools_error("%s", error.text);
		return copy_judge(copy, &error);
	}
	if (afs_is_mount_point(status->UnixModeBits, text)) {
		tools_error("%s: skipped: mount point of the volume %.64s", label, text + 1);
		return COPY_GOOD;
	}
	sink_temp_name(temp, sizeof(temp), e->name);
	times_of(status, times);
	if (symlinkat(text, dir, temp) == 0 &&
	    utimensat(dir, temp, times, AT_SYMLINK_NOFOLLOW) == 0 &&
	    renameat(dir, temp, dir, e->name) == 0)
		return COPY_GOOD;
	write_failed(copy, label, e->name);
	unlinkat(dir, temp, 0);
	return COPY_FAILED;
}

static enum copy_result get_plain(struct copy *copy, const struct entry *e,
				  const AFSFetchStatus *status, int dir, const char *label)
{
	struct afs_object object = {.fid = e->fid, .status = *status};
	enum copy_result rc;
	struct sink sink;

	if (get_is_there(copy, dir, e->name, status)) {
		copy->skipped++;
		return COPY_GOOD;
	}
	if (sink_open(&sink, dir, e->name, true) < 0)
		return write_failed(copy, label, e->name);
	rc = get_file(copy, &object, &sink, label);
	if (rc == COPY_GOOD &&
	    sink_commit(&sink, mode_of(copy, &object.status), object.status.ClientModTime) < 0)
		rc = write_failed(copy, label, e->name);
	sink_abandon(&sink);
	return rc;
}

static enum copy_result get_level(struct tree *t, const AFSFid *fid, int dir, const char *label);

static enum copy_result get_subdirectory(struct tree *t, const struct entry *e,
					 const AFSFetchStatus *status, int dir, const char *label)
{
	enum copy_result rc;
	struct timespec times[2];
	int below;

	if ((mkdirat(dir, e->name, 0700) < 0 && errno != EEXIST) ||
	    (below = openat(dir, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
		tools_error("%s: cannot create the directory: %s", label, strerror(errno));
		return errno == ENOSPC || errno == EDQUOT || errno == EROFS ? COPY_STOP
									    : COPY_FAILED;
	}
	rc = get_level(t, &e->fid, below, label);
	times_of(status, times);
	if ((fchmod(below, mode_of(t->copy, status) | 0700) < 0 || futimens(below, times) < 0) &&
	    rc == COPY_GOOD)
		rc = write_failed(t->copy, label, e->name);
	close(below);
	return rc;
}

static enum copy_result get_entry(struct tree *t, const struct entry *e,
				  const AFSFetchStatus *status, int dir, const char *label)
{
	struct afs_error error;

	if (status->errorCode != 0) {
		afs_error_code(&error, label, (int32_t)status->errorCode, RXW_ORIGIN_PEER);
		tools_error("%s", error.text);
		return COPY_FAILED;
	}
	if (!afs_status_usable(status)) {
		tools_error("%s: the server sent a malformed status", label);
		return COPY_FAILED;
	}
	switch (status->FileType) {
	case AFS_TYPE_DIR:
		return get_subdirectory(t, e, status, dir, label);
	case AFS_TYPE_SYMLINK:
		return get_link(t->copy, e, status, dir, label);
	default:
		return get_plain(t->copy, e, status, dir, label);
	}
}

/* A part of a directory, whose status is one call. */
static enum copy_result get_batch(struct tree *t, const struct entries *entries, size_t at,
				  uint32_t count, int dir, const char *label)
{
	AFSFetchStatus statuses[AFSCBMAX];
	enum copy_result rc = entries_status(t->copy, entries, at, count, label, statuses);
	size_t length = strlen(label);

	for (uint32_t i = 0; rc == COPY_GOOD && i < count; i++) {
		const struct entry *e = &entries->list[at + i];
		char *path = NULL;

		if (atomic_load(&t->copy->interrupted))
			return COPY_STOP;
		if (asprintf(&path, "%s%s%s", label, length && label[length - 1] == '/' ? "" : "/",
			     e->name) < 0) {
			tools_error("no memory");
			return COPY_STOP;
		}
		rc = get_entry(t, e, &statuses[i], dir, path);
		free(path);
		/* After an object that failed, continue with the others. */
		if (rc == COPY_FAILED) {
			t->copy->failed++;
			rc = COPY_GOOD;
		}
	}
	return rc;
}

static enum copy_result get_entries(struct tree *t, const struct entries *entries, int dir,
				    const char *label)
{
	enum copy_result rc = COPY_GOOD;

	t->names += entries->count;
	if (t->names > NAMES_MAX) {
		tools_error("%s: more than %d names in it and its parent directories", label,
			    NAMES_MAX);
		rc = COPY_FAILED;
	}
	for (size_t at = 0; rc == COPY_GOOD && at < entries->count; at += AFSCBMAX) {
		size_t left = entries->count - at;

		rc = get_batch(t, entries, at, left < AFSCBMAX ? (uint32_t)left : AFSCBMAX, dir,
			       label);
	}
	t->names -= entries->count;
	return rc;
}

static enum copy_result get_level(struct tree *t, const AFSFid *fid, int dir, const char *label)
{
	struct entries entries;
	enum copy_result rc;
	int met = meet(t, fid);

	if (met != 0) {
		tools_error(met < 0 ? "%s: memory is exhausted"
				    : "%s: skipped: the directory occurs twice, so the volume "
				      "is damaged",
			    label);
		return met < 0 ? COPY_STOP : COPY_FAILED;
	}
	if (t->depth == DEPTH_MAX) {
		tools_error("%s: more than %d directories deep", label, DEPTH_MAX);
		return COPY_FAILED;
	}
	rc = entries_read(t->copy, fid, label, &entries);
	if (rc != COPY_GOOD)
		return rc;
	t->depth++;
	rc = get_entries(t, &entries, dir, label);
	t->depth--;
	entries_free(&entries);
	return rc;
}

enum copy_result get_tree(struct copy *copy, const AFSFid *fid, int dir, const char *label)
{
	struct tree tree = {.copy = copy};
	enum copy_result rc = get_level(&tree, fid, dir, label);

	copy->failed += rc == COPY_FAILED;
	free(tree.met);
	return rc;
}
