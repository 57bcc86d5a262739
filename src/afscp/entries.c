/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories as lists of names. */
#include <stdlib.h>
#include <string.h>

#include "afs/dir.h"
#include "program/message.h"
#include "afscp/copy.h"

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

	for (uint32_t i = 0; i < count; i++)
		fids[i] = entries->list[at + i].fid;
	copy_fresh(copy);
	while (afs_client_bulk(copy->client, fids, count, label, statuses, &error) < 0)
		if (!copy_retry_or_complain(copy, &outage, &error))
			return copy_judge(copy, &error);
	return COPY_GOOD;
}
