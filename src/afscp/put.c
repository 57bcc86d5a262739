/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp put: the command, and folders. Every name in a folder is used relative to the open folder, and no
 * link is followed. Objects that cannot be stored are skipped and counted.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/message.h"
#include "afscp/arguments.h"
#include "afscp/local.h"
#include "afscp/put.h"

/* ---- folders ---- */

#define SUM_DEPTH 100 /* levels that the progress counts: each keeps a folder open */

/* A directory that is being filled. With --preserve the last of its users sets mode and time. */
struct put_level {
	atomic_uint users; /* the thread that reads the folder, and jobs for its files */
	AFSFid fid;
	bool is_new;	  /* it was made for this copy: nothing is in it */
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

static void put_names_free(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

/* Add a name. 0 or -1. */
static int append_name(char ***names, size_t *count, size_t *room, const char *name)
{
	assert(*count <= *room);
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

/* Sorted names in a folder without "." and ".."; free() each and the list. -1 with errno. */
static ssize_t put_names(int fd, char ***names)
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

/* What a put -r copies, for the progress. */
struct put_sum {
	uint64_t files, bytes;
};

/* Add all files in a folder. */
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

	assert(existing || parent);
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
	return pool_add(t->pool, &put_file_job, f);
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
static __attribute__((noinline)) enum copy_result put_link(struct tree *t, int fd, const char *name,
							   const struct stat *st,
							   struct put_level *level,
							   const char *label)
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

	assert(t->depth <= CLIMB_DEPTH);
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

/*
 * Store the folder `fd` (taken) as the directory that `target` names: it exists, or is made. Waits
 * for all jobs.
 */
static enum copy_result put_tree(struct copy *copy, struct pool *pool, int fd,
				 const struct target *target)
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

/* ---- the command ---- */

static bool is_stdin(const char *source)
{
	return strcmp(source, "-") == 0;
}

/* Follow a symbolic link at a destination, the path of the command line or `name` in it. */
static enum copy_result follow_link(struct copy *copy, const char *name, struct target *to)
{
	const char *path = copy->run->sources[0].path;
	char *whole;
	int rc;

	if (!to->exists || to->object.status.FileType != AFS_TYPE_SYMLINK)
		return COPY_GOOD;
	if (asprintf(&whole, "%s%s%s", path, name ? "/" : "", name ? name : "") < 0) {
		tools_error("no memory");
		return COPY_STOP;
	}
	copy->path = whole;
	rc = copy_walk(copy, true, &to->object);
	copy->path = path;
	free(whole);
	to->by_link = true;
	return rc == 0 ? COPY_GOOD : copy_interrupted(copy) ? COPY_STOP : COPY_FAILED;
}

/* The destination, and whether sources go into it. */
static enum copy_result find_put_destination(struct copy *copy, struct target *to, bool *into)
{
	const struct run *run = copy->run;
	const char *path = run->sources[0].path;
	size_t length = strlen(path);
	enum copy_result rc;

	copy->path = path;
	if ((rc = target_find(copy, to)) != COPY_GOOD ||
	    (rc = follow_link(copy, NULL, to)) != COPY_GOOD)
		return rc;
	*into = to->exists && to->object.status.FileType == AFS_TYPE_DIR;
	if (*into || (run->argument_count == 1 &&
		      (length == 0 || path[length - 1] != '/' || copy->set->recursive)))
		return COPY_GOOD;
	if (run->argument_count > 1)
		tools_error("%s is not a directory, as several sources require; make it with mkdir",
			    to->label);
	else
		tools_error("%s is not a directory; make it with mkdir", to->label);
	return COPY_FAILED;
}

/* The place of one source: DEST, or DEST/NAME if DEST is a directory. */
static enum copy_result find_place_of_source(struct copy *copy, const struct target *destination,
					     bool into, const char *source, struct target *to)
{
	size_t length = strlen(destination->label), base_length;
	const char *base = target_base(source, &base_length);
	bool slash = length && (destination->label[length - 1] == '/' ||
				destination->label[length - 1] == ':');
	char name[AFSNAMEMAX + 1];
	enum copy_result rc;

	*to = *destination;
	/* "put -r . VOLUME:DIR": what is in the folder goes into the directory. */
	if (!into || !target_has_name(base, base_length))
		return COPY_GOOD;
	if (base_length > 255) {
		tools_error("\"%s\": the name is too long; it may have 255 bytes", source);
		return COPY_FAILED;
	}
	memcpy(name, base, base_length);
	name[base_length] = 0;
	if (length < sizeof(to->label))
		snprintf(to->label + length, sizeof(to->label) - length, "%s%s", slash ? "" : "/",
			 name);
	rc = target_look(copy, &destination->object.fid, name, to);
	return rc == COPY_GOOD ? follow_link(copy, name, to) : rc;
}

static enum copy_result put_folder(struct copy *copy, struct pool *pool, int fd, const char *source,
				   const struct target *to)
{
	struct run *run = copy->run;
	enum copy_result rc = COPY_FAILED;
	uint64_t files, failed;

	if (!copy->set->recursive) {
		tools_error("\"%s\" is a directory; copy it with -r", source);
		goto fail;
	}
	if (to->exists && to->object.status.FileType != AFS_TYPE_DIR) {
		tools_error("%s exists and is no directory; \"%s\" cannot replace it", to->label,
			    source);
		goto fail;
	}
	rc = pool_wait(pool);
	if (rc == COPY_STOP)
		goto fail;
	files = atomic_load(&run->files);
	failed = atomic_load(&run->failed);
	return copy_report_tree(copy->run, to->label, files, failed, put_tree(copy, pool, fd, to));
fail:
	close(fd);
	return rc;
}

static enum copy_result add_put_job(struct pool *pool, int fd, const char *source,
				    const struct target *to)
{
	struct put_file *f;

	if (to->exists && to->object.status.FileType == AFS_TYPE_DIR) {
		tools_error("%s is a directory; \"%s\" cannot replace it%s", to->label, source,
			    is_stdin(source) ? ": name a file" : "");
		close(fd);
		return COPY_FAILED;
	}
	f = put_file_new(fd, &to->dir, to->name, to->label, NULL);
	if (!f)
		return COPY_STOP;
	f->exists = to->exists;
	f->existing = to->object.fid;
	f->by_link = to->by_link;
	return pool_add(pool, &put_file_job, f);
}

/* Open a source; a pipe waits for its writer. -1 after a message. */
static int open_source(struct copy *copy, const char *source)
{
	int fd;

	atomic_store(&copy->run->at_once, true);
	fd = is_stdin(source) ? dup(STDIN_FILENO) : open(source, O_RDONLY | O_CLOEXEC);
	atomic_store(&copy->run->at_once, false);
	if (fd < 0)
		tools_error("cannot open \"%s\": %s", source, strerror(errno));
	return fd;
}

/* `twin`: the first source of this name, which may be `source` itself. */
static enum copy_result put_source(struct copy *copy, struct pool *pool, const char *source,
				   const char *twin, const struct target *destination, bool into)
{
	enum copy_result rc;
	struct target to;
	struct stat st;
	int fd = open_source(copy, source);

	if (fd < 0)
		return COPY_FAILED;
	rc = find_place_of_source(copy, destination, into && !is_stdin(source), source, &to);
	if (rc != COPY_GOOD)
		goto fail;
	rc = COPY_FAILED;
	if (fstat(fd, &st) < 0) {
		tools_error("cannot read \"%s\": %s", source, strerror(errno));
		goto fail;
	}
	if (S_ISDIR(st.st_mode))
		return put_folder(copy, pool, fd, source, &to);
	/* Two threads would write to one file. Folders are merged, one after the other. */
	if (twin == source)
		return add_put_job(pool, fd, source, &to);
	tools_error("\"%s\": not stored: \"%s\" gets the same name; store it with another put",
		    source, twin);
fail:
	close(fd);
	return rc;
}

/* The number of files and bytes of all sources. 0 unless all are regular files and folders. */
static struct put_sum sum_of_all(const struct run *run)
{
	const struct put_sum unknown = {0};
	struct put_sum sum = {0};
	struct stat st;

	for (size_t i = 0; i < run->argument_count; i++) {
		const char *source = run->arguments[i];
		int fd;

		if (is_stdin(source) || stat(source, &st) < 0)
			return unknown;
		if (S_ISREG(st.st_mode)) {
			sum.files++;
			sum.bytes += (uint64_t)st.st_size;
		} else if (S_ISDIR(st.st_mode)) {
			fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd < 0)
				return unknown;
			sum_below(fd, &sum, 0);
			close(fd);
		} else {
			return unknown;
		}
	}
	return sum;
}

/* Folders whose contents are stored have no name of their own. */
static bool name_of_put_source(const void *arg, size_t i, char **name)
{
	const struct run *run = arg;
	size_t length;
	const char *base = target_base(run->arguments[i], &length);

	*name = length ? strndup(base, length) : NULL;
	return *name || !length;
}

/* All sources. False: something failed, after a message. */
static bool put_all(struct copy *copy, struct pool *pool)
{
	struct run *run = copy->run;
	struct target destination;
	bool into = false, all = true;
	enum copy_result rc = find_put_destination(copy, &destination, &into);
	size_t *twins = rc == COPY_GOOD
				? find_same_names(run->argument_count, name_of_put_source, run)
				: NULL;

	if (!twins)
		return false;
	progress_start(&run->progress, run->progress.on,
		       copy->set->recursive || run->argument_count > 1);
	if (run->progress.on) {
		const struct put_sum sum = sum_of_all(run);

		atomic_store(&run->total_files, sum.files);
		atomic_store(&run->total, sum.bytes);
	}
	for (size_t i = 0; i < run->argument_count && rc != COPY_STOP; i++) {
		rc = put_source(copy, pool, run->arguments[i], run->arguments[twins[i]],
				&destination, into);
		all &= rc == COPY_GOOD;
	}
	free(twins);
	all &= pool_wait(pool) == COPY_GOOD && atomic_load(&run->failed) == 0;
	progress_end(&run->progress, destination.label, atomic_load(&run->bytes),
		     all && atomic_load(&run->bytes), atomic_load(&run->files));
	return all;
}

int copy_put(struct copy *copy)
{
	struct tools_usage start;
	struct counters before;
	struct pool *pool;
	bool all;

	if (pool_open(copy, copy->run->argument_count, &pool) < 0)
		return TOOLS_EXIT_FAILURE;
	tools_usage_now(&start);
	run_counters(copy->run, &before);
	all = put_all(copy, pool);
	if (copy->set->json || (copy->set->stats && (all || atomic_load(&copy->run->files))))
		copy_report(copy->run, &start, &before);
	pool_close(pool);
	return all ? 0 : TOOLS_EXIT_FAILURE;
}
