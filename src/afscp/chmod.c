/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp chmod. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "afscp/change.h"
#include "afscp/mode.h"

#define DEPTH_MAX 256

/* Change the mode of one object. */
static enum copy_result set_mode(struct copy *copy, const AFSFid *fid, const AFSFetchStatus *status,
				 const char *label)
{
	struct change c = {.op = CHANGE_STATUS, .label = label, .fid = *fid};
	enum copy_result rc;
	mode_t mode, now;

	/* The text was checked before. */
	if (mode_parse(copy->run->arguments[0], status->UnixModeBits & 07777,
		       status->FileType == AFS_TYPE_DIR, copy->run->umask, &mode) < 0)
		return COPY_STOP;
	if (mode == (status->UnixModeBits & 07777))
		return COPY_GOOD;
	c.how = (AFSStoreStatus){.Mask = AFS_SETMODE, .UnixModeBits = mode};
	rc = change_make(copy, &c);
	now = c.made.status.UnixModeBits & 07777;
	if (rc != COPY_GOOD || now == mode)
		return rc;
	tools_error(
		"%s: the mode is %04o, not %04o: servers keep the first digit for administrators",
		label, (unsigned)now, (unsigned)mode);
	return COPY_FAILED;
}

static enum copy_result chmod_below(struct copy *copy, const AFSFid *fid, const char *label,
				    unsigned depth);

/* An entry of a directory, and with -r what is below it. Links have no mode of interest. */
static enum copy_result chmod_entry(struct copy *copy, const struct entry *e,
				    const AFSFetchStatus *status, const char *label, unsigned depth)
{
	struct afs_error error;
	enum copy_result rc, down = COPY_GOOD;

	if (status->errorCode != 0) {
		afs_error_code(&error, label, (int32_t)status->errorCode, RXW_ORIGIN_PEER);
		copy_complain(copy, &error);
		return COPY_FAILED;
	}
	if (status->FileType == AFS_TYPE_SYMLINK)
		return COPY_GOOD;
	rc = set_mode(copy, &e->fid, status, label);
	if (rc != COPY_STOP && status->FileType == AFS_TYPE_DIR)
		down = chmod_below(copy, &e->fid, label, depth + 1);
	return rc == COPY_GOOD ? down : rc;
}

static enum copy_result chmod_batch(struct copy *copy, const struct entries *entries, size_t at,
				    const char *label, unsigned depth)
{
	uint32_t count = entries_batch(entries, at);
	AFSFetchStatus statuses[AFSCBMAX];
	enum copy_result all = entries_status(copy, entries, at, count, label, statuses);

	if (all != COPY_GOOD)
		return all;
	for (uint32_t i = 0; i < count; i++) {
		const struct entry *e = &entries->list[at + i];
		char *path = copy_join_label(label, e->name);

		if (!path)
			return COPY_STOP;
		if (chmod_entry(copy, e, &statuses[i], path, depth) != COPY_GOOD)
			all = COPY_FAILED;
		free(path);
		if (copy_interrupted(copy))
			return COPY_STOP;
	}
	return all;
}

static enum copy_result chmod_below(struct copy *copy, const AFSFid *fid, const char *label,
				    unsigned depth)
{
	struct entries entries;
	enum copy_result rc, all = COPY_GOOD;

	if (depth == DEPTH_MAX) {
		tools_error("%s: more than %d directories deep", label, DEPTH_MAX);
		return COPY_FAILED;
	}
	rc = entries_read(copy, fid, label, &entries);
	if (rc != COPY_GOOD)
		return rc;
	for (size_t at = 0; rc != COPY_STOP && at < entries.count; at += AFSCBMAX) {
		rc = chmod_batch(copy, &entries, at, label, depth);
		if (rc != COPY_GOOD)
			all = rc;
	}
	entries_free(&entries);
	return all;
}

static enum copy_result chmod_one(struct copy *copy)
{
	enum copy_result rc, down = COPY_GOOD;
	struct afs_object object;
	char label[COPY_LABEL];

	copy_format_label(copy, label);
	if (copy_walk(copy, true, &object) < 0)
		return COPY_FAILED;
	rc = set_mode(copy, &object.fid, &object.status, label);
	if (rc != COPY_STOP && copy->set->recursive && object.status.FileType == AFS_TYPE_DIR)
		down = chmod_below(copy, &object.fid, label, 0);
	return rc == COPY_GOOD ? down : rc;
}

int copy_chmod(struct copy *copy)
{
	const struct run *run = copy->run;
	mode_t mode;

	if (mode_parse(run->arguments[0], 0, true, run->umask, &mode) < 0) {
		tools_error("\"%s\" is not a mode; use an octal number or changes like u+x,go-w",
			    run->arguments[0]);
		return TOOLS_EXIT_USAGE;
	}
	return copy_each_source(copy, chmod_one);
}
