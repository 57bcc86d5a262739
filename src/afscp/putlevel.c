/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/admin.h>

#include "program/message.h"
#include "afscp/folder.h"
#include "afscp/putlevel.h"

mode_t put_mode(const struct run *run, mode_t mode)
{
	return run->set.preserve ? mode & 0777 : mode & 0777 & ~run->umask;
}

void put_level_full(struct put_level *level)
{
	atomic_fetch_add(&level->full, 1);
}

static void free_counterparts(struct counterparts *there)
{
	rxafs_free_names(&there->names);
	free(there->attributes);
	free(there->results);
}

static void free_put_level(struct put_level *level)
{
	if (level->object)
		rxafs_release(level->object);
	free_counterparts(&level->there);
	free(level->label);
	free(level);
}

struct put_level *new_put_level(int fd, const char *label)
{
	struct put_level *level = calloc(1, sizeof(*level));

	if (level)
		level->label = strdup(label);
	if (level && level->label && fstat(fd, &level->st) == 0) {
		atomic_init(&level->users, 1);
		return level;
	}
	tools_error("%s: no memory", label);
	if (level)
		free_put_level(level);
	return NULL;
}

/* Mode and time of the folder. */
static enum copy_result preserve_level(struct run *run, struct put_level *level)
{
	const struct rxafs_changes set = {.set = RXAFS_SET_MODE | RXAFS_SET_TIME,
					  .mode = put_mode(run, level->st.st_mode),
					  .time = level->st.st_mtime};
	struct attempt t = attempt_begin(run, CHANGE_STATUS, level->label);
	struct rxafs_attributes now;

	while (attempt_again(&t, rxafs_setattr(level->object, &t.request, &set, &now)))
		;
	return attempt_result(&t);
}

void put_level_leave(struct run *run, struct put_level *level, bool dropped)
{
	unsigned full, users = atomic_fetch_sub(&level->users, 1);

	assert(users > 0);
	if (users > 1)
		return;
	full = atomic_load(&level->full);
	if (full)
		tools_error(
			"%s: the directory is full: %u more name%s not fit; use another one, or "
			"shorter names",
			level->label, full, full == 1 ? " does" : "s do");
	if (!dropped && run->set.preserve && !run_interrupted(run) &&
	    preserve_level(run, level) != COPY_GOOD)
		atomic_fetch_add(&run->failed, 1);
	free_put_level(level);
}

enum copy_result report_mount_in_way(struct run *run, rxafs_object *directory, const char *name,
				     const char *label)
{
	struct rxafs_request request = session_request(run);
	rxafs_object *object;
	char *text = NULL;

	if (rxafs_find_name(directory, &request, name, &object) == 0) {
		rxafs_mount_text(object, &text);
		rxafs_release(object);
	}
	/* "#VOLUME." */
	if (text && strlen(text) > 2)
		tools_error("%s: a mount point of the volume %.*s has this name; remove it first",
			    label, (int)strlen(text) - 2, text + 1);
	else
		tools_error("%s: a mount point has this name; remove it first", label);
	free(text);
	return COPY_FAILED;
}
