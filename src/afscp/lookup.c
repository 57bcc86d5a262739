/* SPDX-License-Identifier: BSD-2-Clause */
/* Places in a volume that may not exist yet. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "afscp/change.h"

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

/*
 * Walk to the directory that contains the last part. *absent, unless it is NULL: there is none,
 * which is no error then.
 */
static enum copy_result find_parent(struct copy *copy, const char *base, struct target *t,
				    bool *absent)
{
	struct afs_error error;
	const char *path = copy->path;
	char *parent = strndup(path, (size_t)(base - path));
	struct afs_object object;
	int rc;

	if (!parent) {
		tools_error("no memory");
		return COPY_STOP;
	}
	copy->path = parent;
	rc = copy_walk_try(copy, true, &object, &error);
	copy->path = path;
	free(parent);
	if (rc < 0 && absent && error.number == ENOENT) {
		*absent = true;
		return COPY_GOOD;
	}
	if (rc < 0) {
		copy_complain(copy, &error);
		return copy_interrupted(copy) ? COPY_STOP : COPY_FAILED;
	}
	t->dir = object.fid;
	if (object.status.FileType == AFS_TYPE_DIR)
		return COPY_GOOD;
	tools_error("%s: not a directory: %.*s", t->label, (int)(base - path), path);
	return COPY_FAILED;
}

/*
 * target_find(); with `force` an object without a parent does not exist, like one without a name.
 */
static enum copy_result find_target(struct copy *copy, struct target *t, bool force)
{
	bool absent = false;
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
	rc = find_parent(copy, base, t, force ? &absent : NULL);
	if (rc != COPY_GOOD || absent)
		return rc;
	memcpy(t->name, base, length);
	return target_look(copy, &t->dir, t->name, t);
}

enum copy_result target_find(struct copy *copy, struct target *t)
{
	return find_target(copy, t, false);
}

enum copy_result target_find_forced(struct copy *copy, struct target *t)
{
	return find_target(copy, t, true);
}
