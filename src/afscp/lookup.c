/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of a volume: places that may not exist yet, directories, beginnings of files. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "afs/dir.h"
#include "program/message.h"
#include "afscp/lookup.h"

/* ---- places ---- */

#define REPLACED_MOST 10

const char *target_base(const char *path, size_t *length)
{
	const char *end = path + strlen(path), *start;

	while (end > path && end[-1] == '/')
		end--;
	start = end;
	while (start > path && start[-1] != '/')
		start--;
	*length = (size_t)(end - start);
	return start;
}

bool target_has_name(const char *base, size_t length)
{
	return length != 0 && !(length == 1 && base[0] == '.') &&
	       !(length == 2 && base[0] == '.' && base[1] == '.');
}

enum copy_result target_look(struct copy *copy, const AFSFid *dir, const char *name,
			     struct target *t)
{
	struct outage outage = {0};
	struct afs_error error;
	unsigned replaced = 0; /* times that the object had gone after it was found */
	int rc;

	assert(strlen(name) < sizeof(t->name));
	t->dir = *dir;
	t->by_link = false;
	/* The name may be in the structure already. */
	memmove(t->name, name, strlen(name) + 1);
	copy_fresh(copy);
	while ((rc = afs_client_lookup(copy->client, dir, name, t->label, &t->object.fid, &error)) <
		       0 ||
	       (rc > 0 && afs_client_status(copy->client, &t->object.fid, t->label,
					    &t->object.status, &error) < 0)) {
		if (rc > 0 && change_is_gone(&error) && replaced++ < REPLACED_MOST)
			continue;
		if (!copy_retry_or_complain(copy, &outage, &error))
			return copy_judge(copy, &error);
	}
	t->exists = rc > 0;
	return COPY_GOOD;
}

/* Walk to the directory that contains the last part. */
static enum copy_result find_parent(struct copy *copy, const char *base, struct target *t)
{
	const char *path = copy->path;
	char *parent = strndup(path, (size_t)(base - path));
	struct afs_object object;
	int rc;

	if (!parent) {
		tools_error("no memory");
		return COPY_STOP;
	}
	copy->path = parent;
	rc = copy_walk(copy, true, &object);
	copy->path = path;
	free(parent);
	if (rc < 0)
		return copy_interrupted(copy) ? COPY_STOP : COPY_FAILED;
	t->dir = object.fid;
	if (object.status.FileType == AFS_TYPE_DIR)
		return COPY_GOOD;
	tools_error("%s: not a directory: %.*s", t->label, (int)(base - path), path);
	return COPY_FAILED;
}

enum copy_result target_find(struct copy *copy, struct target *t)
{
	size_t length;
	const char *base = target_base(copy->path, &length);
	enum copy_result rc;

	memset(t, 0, sizeof(*t));
	copy_format_label(copy, t->label);
	if (length > 255) {
		tools_error("%s: the name is too long; it may have 255 bytes", t->label);
		return COPY_FAILED;
	}
	if (!target_has_name(base, length)) {
		t->exists = true;
		return copy_walk(copy, true, &t->object) == 0 ? COPY_GOOD
		       : copy_interrupted(copy)		      ? COPY_STOP
							      : COPY_FAILED;
	}
	rc = find_parent(copy, base, t);
	if (rc != COPY_GOOD)
		return rc;
	memcpy(t->name, base, length);
	return target_look(copy, &t->dir, t->name, t);
}

/* ---- directories as lists of names ---- */

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

void entries_free(struct entries *entries)
{
	for (size_t i = 0; i < entries->count; i++)
		free(entries->list[i].name);
	free(entries->list);
	memset(entries, 0, sizeof(*entries));
}

static int append_dir_entry(struct entries *entries, size_t *room, uint32_t volume,
			    const struct afs_dir_entry *from)
{
	struct entry *e;

	assert(entries->count <= *room);
	if (entries->count == *room) {
		size_t more = *room ? 2 * *room : 64;
		struct entry *list = realloc(entries->list, more * sizeof(*list));

		if (!list)
			return -1;
		entries->list = list;
		*room = more;
	}
	e = &entries->list[entries->count];
	memset(e, 0, sizeof(*e));
	e->name = strndup(from->name, from->length);
	if (!e->name)
		return -1;
	e->fid = (AFSFid){volume, from->vnode, from->unique};
	entries->count++;
	return 0;
}

/* 0, 1 = invalid, -1 = no memory. */
static int parse_directory(const uint8_t *image, size_t length, uint32_t volume,
			   struct entries *entries)
{
	struct afs_dir_entry one;
	uint32_t cursor = 0;
	size_t room = 0;
	int rc;

	if (afs_dir_check(image, length) < 0)
		return 1;
	while ((rc = afs_dir_next(image, length, &cursor, &one)) > 0) {
		if (one.length == 0 || strcmp(one.name, ".") == 0 || strcmp(one.name, "..") == 0)
			continue;
		if (append_dir_entry(entries, &room, volume, &one) < 0)
			return -1;
	}
	return rc < 0;
}

enum copy_result entries_read(struct copy *copy, const AFSFid *fid, const char *label,
			      struct entries *entries)
{
	struct outage outage = {0};
	struct afs_error error;
	uint8_t *image;
	size_t length;
	int rc;

	memset(entries, 0, sizeof(*entries));
	copy_fresh(copy);
	while (afs_client_contents(copy->client, fid, label,
				   (size_t)AFS_DIR_PAGES_MAX * AFS_DIR_PAGE, &image, &length,
				   &error) < 0)
		if (!copy_retry_or_complain(copy, &outage, &error))
			return copy_judge(copy, &error);
	rc = parse_directory(image, length, fid->Volume, entries);
	free(image);
	if (rc != 0) {
		if (!copy->silent)
			tools_error("%s: %s", label,
				    rc < 0 ? "memory is exhausted by the directory"
					   : "the server sent a malformed directory");
		entries_free(entries);
		return rc < 0 ? COPY_STOP : COPY_FAILED;
	}
	if (entries->count)
		qsort(entries->list, entries->count, sizeof(*entries->list), compare_entries);
	return COPY_GOOD;
}

enum copy_result entries_status(struct copy *copy, const struct entries *entries, size_t at,
				uint32_t count, const char *label,
				AFSFetchStatus statuses[AFSCBMAX])
{
	struct outage outage = {0};
	struct afs_error error;
	AFSFid fids[AFSCBMAX];

	assert(count <= AFSCBMAX && at + count <= entries->count);
	for (uint32_t i = 0; i < count; i++)
		fids[i] = entries->list[at + i].fid;
	copy_fresh(copy);
	while (afs_client_bulk(copy->client, fids, count, label, statuses, &error) < 0)
		if (!copy_retry_or_complain(copy, &outage, &error))
			return copy_judge(copy, &error);
	return COPY_GOOD;
}

/* ---- directories that a walk has entered ---- */

static uint64_t number_of_fid(const AFSFid *fid)
{
	return (uint64_t)fid->Vnode << 32 | fid->Unique;
}

/*
 * The slot of the number, or a free one. A server that chooses bad numbers only slows its own copy.
 */
static size_t slot_of(const uint64_t *list, size_t room, uint64_t number)
{
	size_t at = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (room - 1);

	while (list[at] && list[at] != number)
		at = (at + 1) & (room - 1);
	return at;
}

static int grow_entered(struct entered_dirs *m)
{
	size_t room = m->room ? 2 * m->room : 256;
	uint64_t *list = calloc(room, sizeof(*list));

	if (!list)
		return -1;
	for (size_t i = 0; i < m->room; i++)
		if (m->list[i])
			list[slot_of(list, room, m->list[i])] = m->list[i];
	free(m->list);
	m->list = list;
	m->room = room;
	return 0;
}

int entered_dirs_add(struct entered_dirs *m, const AFSFid *fid)
{
	uint64_t number = number_of_fid(fid);
	size_t at;

	if (2 * m->count >= m->room && grow_entered(m) < 0)
		return -1;
	assert(m->count < m->room);
	at = slot_of(m->list, m->room, number);
	if (m->list[at])
		return 1;
	m->list[at] = number;
	m->count++;
	return 0;
}

void entered_dirs_free(struct entered_dirs *m)
{
	free(m->list);
	*m = (struct entered_dirs){0};
}

/*
 * ---- beginnings ----
 *
 * Before --continue adds to a file, or a part is replaced: neither the time of modification nor the
 * name tells that an earlier run has begun it. All files of an archive or of a reproducible build
 * have the same time, and the user may have given another file that name.
 */

#define COMPARED 65536u /* bytes at the beginning, and at the end */

struct comparison {
	int fd;
	bool differs;
};

/* Whether the local file has the same bytes at `offset`. */
static bool has_same(int fd, const uint8_t *bytes, size_t length, uint64_t offset)
{
	uint8_t local[4096];

	while (length) {
		ssize_t n = pread(fd, local, length < sizeof(local) ? length : sizeof(local),
				  (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || memcmp(local, bytes, (size_t)n) != 0)
			return false;
		bytes += n;
		length -= (size_t)n;
		offset += (uint64_t)n;
	}
	return true;
}

static int compare_slices(void *arg, struct iovec *iov, unsigned count, uint64_t offset)
{
	struct comparison *c = arg;

	for (unsigned i = 0; i < count && !c->differs; i++) {
		c->differs = !has_same(c->fd, iov[i].iov_base, iov[i].iov_len, offset);
		offset += iov[i].iov_len;
	}
	return c->differs;
}

static bool matches_at(struct copy *copy, const struct afs_object *object, int fd,
		       const char *label, uint64_t offset, uint64_t length)
{
	struct comparison c = {.fd = fd};
	struct outage outage = {0};
	struct afs_fetch fetch;
	struct afs_error error;
	int rc;

	do {
		copy_fresh(copy);
		afs_fetch_init(&fetch, &object->fid, offset, length);
		rc = afs_client_read(copy->client, &fetch, label, compare_slices, &c, &error);
	} while (rc < 0 && change_retry(copy, &outage, &error, NULL));
	return rc == 0 && fetch.received == length;
}

bool beginning_matches(struct copy *copy, const struct afs_object *object, uint64_t length, int fd,
		       const char *label)
{
	uint64_t some = length < COMPARED ? length : COMPARED;

	return !length ||
	       (matches_at(copy, object, fd, label, 0, some) &&
		(length == some || matches_at(copy, object, fd, label, length - some, some)));
}
