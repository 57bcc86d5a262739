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
#include <sys/resource.h>
#include <unistd.h>

#include <rxafs/admin.h>
#include <rxafs/stream.h>

#include "afs/rxafs.h"
#include "program/message.h"
#include "afscp/arguments.h"
#include "afscp/commands.h"
#include "afscp/folder.h"
#include "afscp/local.h"
#include "afscp/put.h"
#include "afscp/putlevel.h"

/* ---- directories ---- */

#define KEPT_OPEN 128 /* descriptors beside those of files that wait */
#define JOBS_EACH 3   /* of a thread: one in progress, and two that wait */
#define SUM_DEPTH 100 /* levels that the progress counts: each keeps a folder open */

/* The walk through one folder of the command line. */
struct put_walk {
	struct run *run;
	struct copyjobs *jobs;
	unsigned depth;
	struct put_group *group; /* files that wait for others of their directory, or NULL */
	unsigned together;	 /* at most so many */
};

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
static void sum_below(const struct run *run, int fd, struct put_sum *sum, unsigned depth)
{
	struct stat st;
	char **names;
	ssize_t count = put_names(fd, &names);

	for (ssize_t i = 0; i < count && !run_interrupted(run); i++) {
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
		sum_below(run, below, sum, depth + 1);
		close(below);
	}
	if (count >= 0)
		put_names_free(names, (size_t)count);
}

/* ---- their counterparts ---- */

static int compare_with_local(const void *name, const void *local)
{
	return strcmp(name, *(char *const *)local);
}

static int compare_counterparts(const void *a, const void *b)
{
	return strcmp(((const struct rxafs_name *)a)->text, ((const struct rxafs_name *)b)->text);
}

/* Keep the names that the folder has, too. */
static void keep_common_names(struct rxafs_names *names, char **local, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; count && i < names->count; i++)
		if (bsearch(names->list[i].text, local, count, sizeof(*local), compare_with_local))
			names->list[kept++] = names->list[i];
	names->count = kept;
	if (kept)
		qsort(names->list, kept, sizeof(*names->list), compare_counterparts);
}

/* The attributes of all of them, some in each call. */
static enum copy_result ask_counterparts(struct run *run, struct put_level *level)
{
	struct counterparts *there = &level->there;
	size_t count = there->names.count;

	there->attributes = calloc(count + 1, sizeof(*there->attributes));
	there->results = calloc(count + 1, sizeof(*there->results));
	if (!there->attributes || !there->results) {
		tools_error("no memory");
		return COPY_STOP;
	}
	for (size_t at = 0; at < count; at += RXAFS_BATCH) {
		struct attempt t = attempt_begin(run, CHANGE_NONE, level->label);
		unsigned some = count - at < RXAFS_BATCH ? (unsigned)(count - at) : RXAFS_BATCH;

		while (attempt_again(&t, rxafs_fetch_attributes(level->object, &t.request,
								&there->names.list[at], some,
								&there->attributes[at],
								&there->results[at])))
			;
		if (t.value < 0)
			return attempt_result(&t);
	}
	return COPY_GOOD;
}

/* What the directory has of the names of the folder. */
static enum copy_result find_counterparts(struct run *run, struct put_level *level, char **local,
					  size_t count)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, level->label);

	if (level->is_new || !count)
		return COPY_GOOD;
	while (attempt_again(&t, rxafs_list_names(level->object, &t.request, &level->there.names)))
		;
	if (t.value < 0)
		return attempt_result(&t);
	keep_common_names(&level->there.names, local, count);
	return ask_counterparts(run, level);
}

/* What has a name in the directory; NULL: nothing. *result: the failure of the question for it, or 0. */
static const struct rxafs_attributes *counterpart_of(const struct put_level *level,
						     const char *name, int *result)
{
	const struct counterparts *there = &level->there;
	const struct rxafs_name key = {.text = name}, *found;

	if (!there->names.count)
		return NULL;
	found = bsearch(&key, there->names.list, there->names.count, sizeof(key),
			compare_counterparts);
	*result = found ? there->results[found - there->names.list] : 0;
	/* It was removed since the directory was read. */
	if (*result == -ENOENT)
		*result = 0, found = NULL;
	return found && !*result ? &there->attributes[found - there->names.list] : NULL;
}

/* One name of a folder. */
struct put_entry {
	const char *name;
	char *label;
	const struct rxafs_attributes *old; /* of what has the name in AFS; NULL: nothing */
};

static bool is_put_folder(const struct rxafs_attributes *old)
{
	return old && old->kind == RXAFS_DIRECTORY && !old->mount_point;
}

/* The object of a counterpart, a reference. NULL after a message. */
static rxafs_object *take_counterpart(struct run *run, struct put_level *level,
				      const struct put_entry *e)
{
	const struct rxafs_name name = {.text = e->name, .fid = e->old->fid};
	struct attempt t = attempt_begin(run, CHANGE_NONE, e->label);
	rxafs_object *object;

	while (attempt_again(&t,
			     rxafs_take_object(level->object, &t.request, &name, e->old, &object)))
		;
	return t.value < 0 ? NULL : object;
}

/* ---- directories from their beginning ---- */

/* Keep back the message about a full directory, which is told once. */
static enum copy_result judge_in_level(struct attempt *t, struct put_level *level)
{
	if (t->value == -EFBIG && level)
		put_level_full(level);
	else if (t->value < 0)
		attempt_complain(t);
	return attempt_result(t);
}

static enum copy_result make_level(struct run *run, struct put_level *level,
				   struct put_level *above, rxafs_object *parent, const char *name)
{
	struct attempt t = attempt_begin(run, CHANGE_MKDIR, level->label);
	/* It must be writable until it is complete. */
	uint32_t mode = put_mode(run, level->st.st_mode) | 0700;
	struct rxafs_attributes made;

	t.later = true;
	while (attempt_again(&t,
			     rxafs_mkdir(parent, &t.request, name, mode, &level->object, &made)))
		;
	if (t.value < 0)
		level->object = NULL;
	level->is_new = true;
	return judge_in_level(&t, above);
}

static enum copy_result put_in_level(struct put_walk *w, int *fd, struct put_level *level);

/* This function is not inlined, because its caller's stack is needed at each level. */
static __attribute__((noinline)) enum copy_result begin_level(struct put_walk *w, int fd,
							      struct put_level *above,
							      const struct put_entry *e,
							      struct put_level **out)
{
	struct put_level *level = new_put_level(fd, e->label);
	enum copy_result rc = COPY_GOOD;

	if (!level)
		return COPY_STOP;
	if (!e->old)
		rc = make_level(w->run, level, above, above->object, e->name);
	else if (!(level->object = take_counterpart(w->run, above, e)))
		rc = run_interrupted(w->run) ? COPY_STOP : COPY_FAILED;
	if (rc == COPY_GOOD)
		*out = level;
	else
		put_level_leave(w->run, level, true);
	return rc;
}

/* ---- names of a folder ---- */

static enum copy_result report_unreadable(const char *label, const char *name)
{
	tools_error("%s: cannot read \"%s\": %s", label, name, strerror(errno));
	return COPY_FAILED;
}

/*
 * Above CLIMB_OPEN levels *fd is closed meanwhile. -1 then: it cannot be opened again, after a
 * message.
 */
static enum copy_result put_subfolder(struct put_walk *w, int *fd, struct put_level *parent,
				      const struct put_entry *e)
{
	struct put_level *level;
	enum copy_result rc;
	struct stat left;
	bool closed;
	int below;

	if (e->old && !is_put_folder(e->old)) {
		tools_error("%s: something that is no directory has this name; remove it first",
			    e->label);
		return COPY_FAILED;
	}
	below = openat(*fd, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return report_unreadable(e->label, e->name);
	rc = begin_level(w, below, parent, e, &level);
	if (rc == COPY_GOOD) {
		closed = climb_down(fd, w->depth, &left);
		rc = put_in_level(w, &below, level);
		put_level_leave(w->run, level, false);
		if (closed && climb_up(fd, below, &left, e->label) < 0)
			rc = COPY_STOP;
	}
	if (below >= 0)
		close(below);
	return rc;
}

/* Have the files that wait stored. */
static enum copy_result flush_group(struct put_walk *w)
{
	struct put_group *group = w->group;

	w->group = NULL;
	return group ? copyjobs_add(w->jobs, &put_group_job, group) : COPY_GOOD;
}

/* The files of a group are in one directory. */
static enum copy_result add_to_group(struct put_walk *w, struct put_file *f)
{
	enum copy_result rc = COPY_GOOD;

	if (w->group && w->group->files[0]->level != f->level)
		rc = flush_group(w);
	if (!w->group)
		w->group = calloc(1, sizeof(*w->group));
	if (!w->group)
		return copyjobs_add(w->jobs, &put_file_job, f);
	w->group->files[w->group->count++] = f;
	return rc == COPY_GOOD && w->group->count == w->together ? flush_group(w) : rc;
}

/* How many files can wait together: each has a descriptor, and each thread some groups. */
static unsigned choose_group_size(const struct run *run)
{
	struct rlimit limit;
	uint64_t each;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= KEPT_OPEN)
		return 1;
	each = (limit.rlim_cur - KEPT_OPEN) / (JOBS_EACH * run->set.jobs + 1);
	return each < PUT_TOGETHER ? (unsigned)each : PUT_TOGETHER;
}

static enum copy_result put_regular(struct put_walk *w, int fd, struct put_level *level,
				    const struct put_entry *e)
{
	int file = openat(fd, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct put_file *f;

	if (file < 0)
		return report_unreadable(e->label, e->name);
	atomic_fetch_add(&level->users, 1);
	f = put_file_new(file, level->object, e->name, e->label, level);
	if (!f) {
		atomic_fetch_sub(&level->users, 1);
		return COPY_STOP;
	}
	if (e->old) {
		f->attributes = *e->old;
		f->existing = take_counterpart(w->run, level, e);
		if (!f->existing) {
			put_file_job.drop(f);
			return COPY_FAILED;
		}
	}
	if (w->together > 1 && put_file_is_small(f))
		return add_to_group(w, f);
	return copyjobs_add(w->jobs, &put_file_job, f);
}

/* Whether the volume has the same link already. */
static bool has_same_target(struct run *run, struct put_level *level, const struct put_entry *e,
			    const char *text)
{
	struct rxafs_request request = session_request(run);
	char *there = NULL;
	rxafs_object *object;
	bool same = false;

	if (!e->old || e->old->kind != RXAFS_SYMLINK)
		return false;
	object = take_counterpart(run, level, e);
	if (!object)
		return false;
	same = rxafs_readlink(object, &request, &there) == 0 && strcmp(there, text) == 0;
	free(there);
	rxafs_release(object);
	return same;
}

/* A link that is new in its directory. */
static enum copy_result make_level_link(struct run *run, struct put_level *level,
					const struct put_entry *e, const char *text, time_t mtime)
{
	struct attempt t = attempt_begin(run, CHANGE_SYMLINK, e->label);
	struct rxafs_changes set = {.set = RXAFS_SET_TIME, .time = mtime};
	struct rxafs_attributes made;
	rxafs_object *object;

	t.later = true;
	while (attempt_again(&t, rxafs_make_link(level->object, &t.request, e->name, text, &set,
						 &object, &made)))
		;
	if (t.value == 0)
		rxafs_release(object);
	return judge_in_level(&t, level);
}

/* A directory that has the name of a link goes if it is empty. */
static enum copy_result remove_level_folder(struct run *run, struct put_level *level,
					    const struct put_entry *e)
{
	struct attempt t = attempt_begin(run, CHANGE_RMDIR, e->label);

	while (attempt_again(&t, rxafs_rmdir(level->object, &t.request, e->name)))
		;
	return attempt_result(&t);
}

/* This function is not inlined, because its caller's stack is needed at each level. */
static __attribute__((noinline)) enum copy_result put_link(struct run *run, int fd,
							   struct put_level *level,
							   const struct put_entry *e,
							   const struct stat *st)
{
	char text[AFSPATHMAX + 1];
	ssize_t length = readlinkat(fd, e->name, text, sizeof(text));
	struct folder folder;
	enum copy_result rc;

	if (length < 0)
		return report_unreadable(e->label, e->name);
	if (length == 0 || (size_t)length == sizeof(text)) {
		tools_error("%s: the target of the link is longer than %d bytes", e->label,
			    AFSPATHMAX);
		return COPY_FAILED;
	}
	text[length] = 0;
	if (run->set.resume && has_same_target(run, level, e, text))
		return COPY_GOOD;
	if (e->old && e->old->mount_point)
		return report_mount_in_way(run, level->object, e->name, e->label);
	if (is_put_folder(e->old)) {
		rc = remove_level_folder(run, level, e);
		if (rc != COPY_GOOD)
			return rc;
	} else if (e->old) {
		open_afs_folder(run, level->object, &folder);
		return folder.ops->make_link(&folder, e->name, text, st->st_mtime, e->label);
	}
	return make_level_link(run, level, e, text, st->st_mtime);
}

static enum copy_result put_local_entry(struct put_walk *w, int *fd, struct put_level *level,
					struct put_entry *e)
{
	struct stat st;
	int result = 0;

	if (fstatat(*fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return report_unreadable(e->label, e->name);
	e->old = counterpart_of(level, e->name, &result);
	if (result) {
		session_complain(w->run, e->label, -result);
		return COPY_FAILED;
	}
	if (S_ISDIR(st.st_mode))
		return put_subfolder(w, fd, level, e);
	if (S_ISREG(st.st_mode))
		return put_regular(w, *fd, level, e);
	if (S_ISLNK(st.st_mode))
		return put_link(w->run, *fd, level, e, &st);
	tools_error("%s: skipped: neither a file, a folder nor a symbolic link", e->label);
	return COPY_GOOD;
}

/* All names of a folder. After a failure the others are tried. */
static enum copy_result put_all_names(struct put_walk *w, int *fd, struct put_level *level,
				      char **names, size_t count)
{
	enum copy_result rc = COPY_GOOD;

	for (size_t i = 0; i < count && rc != COPY_STOP; i++) {
		struct put_entry e = {.name = names[i],
				      .label = place_join(level->label, names[i])};

		rc = !e.label || run_interrupted(w->run) ? COPY_STOP
							 : put_local_entry(w, fd, level, &e);
		if (rc == COPY_FAILED)
			atomic_fetch_add(&w->run->failed, 1);
		free(e.label);
	}
	return rc == COPY_STOP ? rc : COPY_GOOD;
}

static enum copy_result put_in_level(struct put_walk *w, int *fd, struct put_level *level)
{
	enum copy_result rc;
	char **names;
	ssize_t count;

	assert(w->depth <= CLIMB_DEPTH);
	if (w->depth == CLIMB_DEPTH) {
		tools_error("%s: more than %d folders deep", level->label, CLIMB_DEPTH);
		return COPY_FAILED;
	}
	count = put_names(*fd, &names);
	if (count < 0)
		return report_unreadable(level->label, ".");
	rc = find_counterparts(w->run, level, names, (size_t)count);
	if (rc == COPY_GOOD) {
		w->depth++;
		rc = put_all_names(w, fd, level, names, (size_t)count);
		w->depth--;
	}
	put_names_free(names, (size_t)count);
	return rc;
}

/* ---- sources of the command line ---- */

/* Where a source goes. */
struct destination {
	struct spot spot;
	bool by_link; /* a link has the name, and leads to the object */
	char *label;  /* of the spot, owned; NULL: that of the command line */
};

static void free_destination(struct destination *to)
{
	spot_free(&to->spot);
	free(to->label);
}

static bool is_destination_folder(const struct destination *to)
{
	return to->spot.object && to->spot.attributes.kind == RXAFS_DIRECTORY;
}

/* A link or mount point at the end of the path: what it leads to. */
static enum copy_result follow_destination(struct run *run, const char *path,
					   struct destination *to)
{
	struct spot *spot = &to->spot;
	struct place place = run->places[0];
	struct rxafs_attributes attributes;
	rxafs_object *object;
	enum copy_result rc;

	if (!spot->object ||
	    (spot->attributes.kind != RXAFS_SYMLINK && !spot->attributes.mount_point))
		return COPY_GOOD;
	place.text = spot->label;
	place.path = path;
	rc = place_open(run, &place, true, &object, &attributes);
	if (rc != COPY_GOOD)
		return run_interrupted(run) ? COPY_STOP : COPY_FAILED;
	rxafs_release(spot->object);
	spot->object = object;
	spot->attributes = attributes;
	to->by_link = true;
	return COPY_GOOD;
}

/* The destination, and whether sources go into it. */
static enum copy_result find_put_destination(struct run *run, struct destination *to, bool *into)
{
	const char *path = run->places[0].path;
	size_t length = strlen(path);
	enum copy_result rc = spot_find(run, &run->places[0], &to->spot);

	if (rc == COPY_GOOD)
		rc = follow_destination(run, path, to);
	if (rc != COPY_GOOD)
		return rc;
	*into = is_destination_folder(to);
	if (*into || (run->argument_count == 1 &&
		      (length == 0 || path[length - 1] != '/' || run->set.recursive)))
		return COPY_GOOD;
	if (run->argument_count > 1)
		tools_error("%s is not a directory, as several sources require; make it with mkdir",
			    to->spot.label);
	else
		tools_error("%s is not a directory; make it with mkdir", to->spot.label);
	return COPY_FAILED;
}

/* A name in the destination, which is a directory. */
static enum copy_result find_in_destination(struct run *run, const struct destination *destination,
					    const char *name, struct destination *to)
{
	const char *above = run->places[0].path;
	enum copy_result rc;
	char *path;

	to->label = place_join(destination->spot.label, name);
	path = to->label ? place_join(above, name) : NULL;
	if (!path)
		return COPY_STOP;
	rc = spot_look(run, destination->spot.object, name, to->label, &to->spot);
	if (rc == COPY_GOOD)
		rc = follow_destination(run, path, to);
	free(path);
	return rc;
}

/* The place of one source: DEST, or DEST/NAME if DEST is a directory. */
static enum copy_result find_place_of_source(struct run *run, const struct destination *destination,
					     bool into, const char *source, struct destination *to)
{
	size_t length;
	const char *base = find_path_base(source, &length);
	char name[256];

	*to = (struct destination){0};
	/* "put -r . VOLUME:DIR": what is in the folder goes into the directory. */
	if (!into || !is_path_name(base, length)) {
		to->spot = destination->spot;
		to->by_link = destination->by_link;
		if (to->spot.directory)
			rxafs_hold(to->spot.directory);
		if (to->spot.object)
			rxafs_hold(to->spot.object);
		return COPY_GOOD;
	}
	if (length > 255) {
		tools_error("\"%s\": the name is too long; it may have 255 bytes", source);
		return COPY_FAILED;
	}
	memcpy(name, base, length);
	name[length] = 0;
	return find_in_destination(run, destination, name, to);
}

/* The directory that a folder goes into: it exists, or is made. */
static enum copy_result begin_tree(struct run *run, struct put_level *level,
				   const struct destination *to)
{
	if (!to->spot.object)
		return make_level(run, level, NULL, to->spot.directory, to->spot.name);
	level->object = rxafs_hold(to->spot.object);
	return COPY_GOOD;
}

/* Store the folder `fd` (taken) at its place. Waits for all jobs. */
static enum copy_result put_tree(struct run *run, struct copyjobs *jobs, int fd,
				 const struct destination *to)
{
	struct put_walk walk = {.run = run, .jobs = jobs, .together = choose_group_size(run)};
	struct put_level *level = new_put_level(fd, to->spot.label);
	enum copy_result rc = level ? begin_tree(run, level, to) : COPY_STOP;

	if (rc == COPY_GOOD)
		rc = put_in_level(&walk, &fd, level);
	if (rc != COPY_GOOD)
		atomic_fetch_add(&run->failed, 1);
	if (flush_group(&walk) == COPY_STOP)
		rc = COPY_STOP;
	if (copyjobs_wait(jobs) == COPY_STOP)
		rc = COPY_STOP;
	if (level)
		put_level_leave(run, level, !level->object);
	close(fd);
	return rc;
}

static bool is_stdin(const char *source)
{
	return strcmp(source, "-") == 0;
}

static enum copy_result put_folder(struct run *run, struct copyjobs *jobs, int fd,
				   const char *source, const struct destination *to)
{
	enum copy_result rc = COPY_FAILED;
	uint64_t files, failed;

	if (!run->set.recursive) {
		tools_error("\"%s\" is a directory; copy it with -r", source);
		goto fail;
	}
	if (to->spot.object && !is_destination_folder(to)) {
		tools_error("%s exists and is no directory; \"%s\" cannot replace it",
			    to->spot.label, source);
		goto fail;
	}
	rc = copyjobs_wait(jobs);
	if (rc == COPY_STOP)
		goto fail;
	files = atomic_load(&run->files);
	failed = atomic_load(&run->failed);
	return copy_report_tree(run, to->spot.label, files, failed, put_tree(run, jobs, fd, to));
fail:
	close(fd);
	return rc;
}

static enum copy_result add_put_job(struct copyjobs *jobs, int fd, const char *source,
				    const struct destination *to)
{
	const struct spot *spot = &to->spot;
	struct put_file *f;

	if (is_destination_folder(to)) {
		tools_error("%s is a directory; \"%s\" cannot replace it%s", spot->label, source,
			    is_stdin(source) ? ": name a file" : "");
		close(fd);
		return COPY_FAILED;
	}
	f = put_file_new(fd, spot->directory, spot->name, spot->label, NULL);
	if (!f)
		return COPY_STOP;
	f->existing = spot->object ? rxafs_hold(spot->object) : NULL;
	f->attributes = spot->attributes;
	f->by_link = to->by_link;
	return copyjobs_add(jobs, &put_file_job, f);
}

/* Open a source; a pipe waits for its writer. -1 after a message. */
static int open_source(struct run *run, const char *source)
{
	int fd;

	atomic_store(&run->at_once, true);
	fd = is_stdin(source) ? dup(STDIN_FILENO) : open(source, O_RDONLY | O_CLOEXEC);
	atomic_store(&run->at_once, false);
	if (fd < 0)
		tools_error("cannot open \"%s\": %s", source, strerror(errno));
	return fd;
}

/* `twin`: the first source of this name, which may be `source` itself. */
static enum copy_result put_source(struct run *run, struct copyjobs *jobs, const char *source,
				   const char *twin, const struct destination *destination,
				   bool into)
{
	int fd = open_source(run, source);
	struct destination to;
	enum copy_result rc;
	struct stat st;

	if (fd < 0)
		return COPY_FAILED;
	rc = find_place_of_source(run, destination, into && !is_stdin(source), source, &to);
	if (rc != COPY_GOOD)
		goto out;
	rc = COPY_FAILED;
	if (fstat(fd, &st) < 0) {
		tools_error("cannot read \"%s\": %s", source, strerror(errno));
		goto out;
	}
	if (S_ISDIR(st.st_mode)) {
		rc = put_folder(run, jobs, fd, source, &to);
		fd = -1;
	} else if (twin == source) {
		rc = add_put_job(jobs, fd, source, &to);
		fd = -1;
	} else {
		/* Two threads would write to one file. Folders are merged, one after the other. */
		tools_error("\"%s\": not stored: \"%s\" gets the same name; store it with another "
			    "put",
			    source, twin);
	}
out:
	free_destination(&to);
	if (fd >= 0)
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
			sum_below(run, fd, &sum, 0);
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
	const char *base = find_path_base(run->arguments[i], &length);

	*name = length ? strndup(base, length) : NULL;
	return *name || !length;
}

/* Each source in its turn. False: something failed, after a message. */
static bool put_each_source(struct run *run, struct copyjobs *jobs, const size_t *twins,
			    const struct destination *destination, bool into)
{
	enum copy_result rc = COPY_GOOD;
	bool all = true;

	progress_start(&run->progress, run->progress.on,
		       run->set.recursive || run->argument_count > 1);
	if (run->progress.on) {
		const struct put_sum sum = sum_of_all(run);

		atomic_store(&run->total_files, sum.files);
		atomic_store(&run->total, sum.bytes);
	}
	for (size_t i = 0; i < run->argument_count && rc != COPY_STOP; i++) {
		rc = put_source(run, jobs, run->arguments[i], run->arguments[twins[i]], destination,
				into);
		all &= rc == COPY_GOOD;
	}
	all &= copyjobs_wait(jobs) == COPY_GOOD && atomic_load(&run->failed) == 0;
	progress_end(&run->progress, destination->spot.label, atomic_load(&run->bytes),
		     all && atomic_load(&run->bytes), atomic_load(&run->files));
	return all;
}

static bool put_all_sources(struct run *run, struct copyjobs *jobs)
{
	struct destination destination = {0};
	bool into = false, all = false;
	size_t *twins = NULL;

	if (find_put_destination(run, &destination, &into) == COPY_GOOD)
		twins = find_same_names(run->argument_count, name_of_put_source, run);
	if (twins)
		all = put_each_source(run, jobs, twins, &destination, into);
	free(twins);
	free_destination(&destination);
	return all;
}

int run_put(struct run *run)
{
	struct tools_usage start;
	struct counters before;
	struct copyjobs *jobs;
	bool all;

	if (copyjobs_open(run, run->argument_count, &jobs) < 0)
		return TOOLS_EXIT_FAILURE;
	tools_usage_now(&start);
	run_counters(run, &before);
	all = put_all_sources(run, jobs);
	if (run->set.json || (run->set.stats && (all || atomic_load(&run->files))))
		copy_report(run, &start, &before);
	copyjobs_close(jobs);
	return all ? 0 : TOOLS_EXIT_FAILURE;
}
