/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp put -r: folders. Every name is used relative to an open folder, and no link is followed.
 * Objects that cannot be stored are skipped and counted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/message.h"
#include "afscp/climb.h"
#include "afscp/put.h"

#define SUM_DEPTH 100 /* levels that the progress counts: each keeps a folder open */

/* A directory that is being filled. With --preserve the last of its users sets mode and time. */
struct put_level {
	atomic_uint users; /* the thread that reads the folder, and jobs for its files */
	AFSFid fid;
	bool is_new; /* it was made for this copy: nothing is in it */
	atomic_uint full; /* names that it has no room for */
	struct entries there;
	struct stat st; /* of the folder */
	char *label;
};

struct tree {
	struct copy *copy;
	struct pool *pool;
	unsigned depth;
};

void put_level_full(struct put_level *level)
{
	atomic_fetch_add(&level->full, 1);
}

void put_level_leave(struct copy *copy, struct put_level *level)
{
	unsigned full;

	if (atomic_fetch_sub(&level->users, 1) != 1)
		return;
	full = atomic_load(&level->full);
	if (full)
		tools_error(
			"%s: the directory is full: %u more name%s not fit; use another one, or "
			"shorter names",
			level->label, full, full == 1 ? " does" : "s do");
	if (copy && copy->set->preserve && !copy_interrupted(copy)) {
		struct change c = {.op = CHANGE_STATUS,
				   .label = level->label,
				   .fid = level->fid,
				   .how = change_status(put_time(level->st.st_mtime),
							put_mode(copy, level->st.st_mode))};

		if (change_make(copy, &c) != COPY_GOOD)
			atomic_fetch_add(&copy->run->failed, 1);
	}
	entries_free(&level->there);
	free(level->label);
	free(level);
}

/* ---- local folders ---- */

static int compare_local_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void put_names_free(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

/* Add a name. 0 or -1. */
static int append_name(char ***names, size_t *count, size_t *room, const char *name)
{
	if (*count == *room) {
		size_t more = *room ? 2 * *room : 64;
		char **list = realloc(*names, more * sizeof(char *));

		if (!list)
			return -1;
		*names = list;
		*room = more;
	}
	(*names)[*count] = strdup(name);
	return (*names)[(*count)++] ? 0 : -1;
}

ssize_t put_names(int fd, char ***names)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	size_t count = 0, room = 0;
	const struct dirent *e;
	int saved = 0;

	*names = NULL;
	if (!dir) {
		if (copy >= 0)
			close(copy);
		return -1;
	}
	while ((errno = 0, e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (append_name(names, &count, &room, e->d_name) < 0)
			break;
	}
	saved = errno;
	closedir(dir);
	if (saved) {
		put_names_free(*names, count);
		errno = saved;
		return -1;
	}
	if (count)
		qsort(*names, count, sizeof(char *), compare_local_names);
	return (ssize_t)count;
}

static void sum_below(int fd, struct put_sum *sum, unsigned depth)
{
	struct stat st;
	char **names;
	ssize_t count = put_names(fd, &names);

	for (ssize_t i = 0; i < count; i++) {
		int below;

		if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode)) {
			sum->files++;
			sum->bytes += (uint64_t)st.st_size;
		}
		if (!S_ISDIR(st.st_mode) || depth == SUM_DEPTH)
			continue;
		below = openat(fd, names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			continue;
		sum_below(below, sum, depth + 1);
		close(below);
	}
	if (count >= 0)
		put_names_free(names, (size_t)count);
}

void put_sum_below(int fd, struct put_sum *sum)
{
	sum_below(fd, sum, 0);
}

/* ---- their counterparts ---- */

static int compare_name_with_entry(const void *name, const void *entry)
{
	return strcmp(name, ((const struct entry *)entry)->name);
}

static const struct entry *entry_of(const struct put_level *level, const char *name)
{
	if (level->there.count == 0)
		return NULL;
	return bsearch(name, level->there.list, level->there.count, sizeof(struct entry),
		       compare_name_with_entry);
}

/* A directory of the volume has an odd number. */
static bool is_directory(const struct entry *e)
{
	return e && e->fid.Vnode & 1;
}

/* change_make() in a level, or above all levels; a full directory is told once. */
static enum copy_result make_in_level(struct copy *copy, struct put_level *level, struct change *c)
{
	struct afs_error error;
	enum copy_result rc = change_try(copy, c, &error);

	if (rc != COPY_GOOD && level && error.number == EFBIG)
		put_level_full(level);
	else if (rc != COPY_GOOD)
		change_complain(copy, c->op, &error);
	return rc;
}

/* Begin a level: the directory exists, as `existing`, or is made. */
static enum copy_result begin_level(struct copy *copy, int fd, struct put_level *above,
				    const AFSFid *parent, const char *name, const AFSFid *existing,
				    const char *label, struct put_level **out)
{
	struct put_level *level = calloc(1, sizeof(*level));
	struct change c = {.op = CHANGE_MKDIR, .label = label, .name = name};
	enum copy_result rc = COPY_GOOD;

	if (level)
		level->label = strdup(label);
	if (!level || !level->label || fstat(fd, &level->st) < 0) {
		tools_error("%s: no memory", label);
		rc = COPY_STOP;
	} else if (existing) {
		level->fid = *existing;
		rc = entries_read(copy, existing, label, &level->there);
	} else {
		c.dir = *parent;
		/* It must be writable until it is complete. */
		c.how = change_status(put_time(level->st.st_mtime),
				      put_mode(copy, level->st.st_mode) | 0700);
		rc = make_in_level(copy, above, &c);
		level->fid = c.made.fid;
		level->is_new = true;
	}
	if (rc == COPY_GOOD) {
		atomic_init(&level->users, 1);
		*out = level;
		return rc;
	}
	if (level)
		free(level->label);
	free(level);
	return rc;
}

static enum copy_result report_unreadable(const char *label, const char *name)
{
	tools_error("%s: cannot read \"%s\": %s", label, name, strerror(errno));
	return COPY_FAILED;
}

/*
 * Above CLIMB_OPEN levels *fd is closed meanwhile. -1 then: it cannot be opened again, after a
 * message.
 */
static enum copy_result put_level(struct tree *t, int *fd, struct put_level *level);

static enum copy_result put_subfolder(struct tree *t, int *fd, const char *name,
				      struct put_level *parent, const char *label)
{
	const struct entry *e = entry_of(parent, name);
	struct put_level *level;
	enum copy_result rc;
	struct stat left;
	bool closed;
	int below;

	if (e && !is_directory(e)) {
		tools_error("%s: something that is no directory has this name; remove it first",
			    label);
		return COPY_FAILED;
	}
	below = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return report_unreadable(label, name);
	rc = begin_level(t->copy, below, parent, &parent->fid, name, e ? &e->fid : NULL, label,
			 &level);
	if (rc == COPY_GOOD) {
		closed = climb_down(fd, t->depth, &left);
		rc = put_level(t, &below, level);
		put_level_leave(t->copy, level);
		if (closed && climb_up(fd, below, &left, label) < 0)
			rc = COPY_STOP;
	}
	if (below >= 0)
		close(below);
	return rc;
}

static enum copy_result put_regular(struct tree *t, int fd, const char *name,
				    struct put_level *level, const char *label)
{
	const struct entry *e = entry_of(level, name);
	int file = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct put_file *f;

	if (file < 0)
		return report_unreadable(label, name);
	f = put_file_new(file, &level->fid, name, label, level);
	if (!f)
		return COPY_STOP;
	if (e) {
		f->exists = true;
		f->existing = e->fid;
	}
	atomic_fetch_add(&level->users, 1);
	return pool_add(t->pool, put_file_work, put_file_drop, f);
}

/* Whether the volume has the same link already. */
static bool same_link(struct copy *copy, const struct entry *e, const char *label, const char *text)
{
	char there[AFSPATHMAX + 1];
	struct afs_error error;

	return e && !is_directory(e) &&
	       afs_client_readlink(copy->client, &e->fid, label, there, &error) == 0 &&
	       strcmp(there, text) == 0;
}

/* This function is not inlined, because its caller's stack is needed at each level. */
static __attribute__((noinline)) enum copy_result
put_link(struct tree *t, int fd, const char *name, const struct stat *st,
	 struct put_level *level, const char *label)
{
	const struct entry *e = entry_of(level, name);
	char text[AFSPATHMAX + 1];
	ssize_t length = readlinkat(fd, name, text, sizeof(text));
	struct change c = {.label = label, .dir = level->fid, .name = name, .text = text};
	enum copy_result rc = COPY_GOOD;

	if (length < 0)
		return report_unreadable(label, name);
	if (length == 0 || (size_t)length == sizeof(text)) {
		tools_error("%s: the target of the link is longer than %d bytes", label,
			    AFSPATHMAX);
		return COPY_FAILED;
	}
	text[length] = 0;
	/* A status would tell a link from a file. */
	if (e && t->copy->set->resume && same_link(t->copy, e, label, text))
		return COPY_GOOD;
	if (e && is_directory(e)) {
		c.op = CHANGE_RMDIR;
		rc = change_make(t->copy, &c);
	}
	c.op = CHANGE_SYMLINK;
	c.unknown = false;
	c.how = change_status(put_time(st->st_mtime), 0777);
	if (rc == COPY_GOOD && e && !is_directory(e))
		rc = put_spare_mount(t->copy, &e->fid, label);
	if (rc != COPY_GOOD)
		return rc;
	return e && !is_directory(e) ? change_replace(t->copy, &c)
				     : make_in_level(t->copy, level, &c);
}

static enum copy_result put_local_entry(struct tree *t, int *fd, const char *name,
					struct put_level *level, const char *label)
{
	struct stat st;

	if (fstatat(*fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return report_unreadable(label, name);
	if (S_ISDIR(st.st_mode))
		return put_subfolder(t, fd, name, level, label);
	if (S_ISREG(st.st_mode))
		return put_regular(t, *fd, name, level, label);
	if (S_ISLNK(st.st_mode))
		return put_link(t, *fd, name, &st, level, label);
	tools_error("%s: skipped: neither a file, a folder nor a symbolic link", label);
	return COPY_GOOD;
}

static enum copy_result put_level(struct tree *t, int *fd, struct put_level *level)
{
	enum copy_result rc = COPY_GOOD;
	size_t length = strlen(level->label);
	char **names;
	ssize_t count;

	if (t->depth == CLIMB_DEPTH) {
		tools_error("%s: more than %d folders deep", level->label, CLIMB_DEPTH);
		return COPY_FAILED;
	}
	count = put_names(*fd, &names);
	if (count < 0)
		return report_unreadable(level->label, ".");
	t->depth++;
	for (ssize_t i = 0; i < count && rc != COPY_STOP; i++) {
		bool slash = length &&
			     (level->label[length - 1] == '/' || level->label[length - 1] == ':');
		char *label;

		if (asprintf(&label, "%s%s%s", level->label, slash ? "" : "/", names[i]) < 0) {
			tools_error("no memory");
			rc = COPY_STOP;
			break;
		}
		rc = copy_interrupted(t->copy) ? COPY_STOP
					       : put_local_entry(t, fd, names[i], level, label);
		if (rc == COPY_FAILED)
			atomic_fetch_add(&t->copy->run->failed, 1);
		free(label);
	}
	t->depth--;
	put_names_free(names, (size_t)count);
	return rc == COPY_STOP ? rc : COPY_GOOD;
}

enum copy_result put_tree(struct copy *copy, struct pool *pool, int fd, const struct target *target)
{
	struct tree tree = {.copy = copy, .pool = pool};
	struct put_level *level;
	enum copy_result rc =
		begin_level(copy, fd, NULL, &target->dir, target->name,
			    target->exists ? &target->object.fid : NULL, target->label, &level);

	if (rc != COPY_GOOD) {
		atomic_fetch_add(&copy->run->failed, 1);
	} else {
		rc = put_level(&tree, &fd, level);
		if (pool_wait(pool) == COPY_STOP)
			rc = COPY_STOP;
		put_level_leave(copy, level);
	}
	close(fd);
	return rc;
}
