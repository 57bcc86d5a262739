/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp get -r: directories. Every name is used relative to an open directory, and no link is
 * followed. Objects that cannot be copied are skipped and counted. A malicious server cannot cause
 * endless work: no directory is entered twice, and depth and number of names are limited.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/message.h"
#include "afscp/local.h"
#include "afscp/lookup.h"

#define NAMES_MAX 1000000 /* in memory at a time, on all levels */

/* One copy of a tree, whose directories are read by one thread. */
struct tree {
	struct copy *copy;
	struct pool *pool;
	size_t names; /* in memory, on all levels */
	unsigned depth;
	struct entered_dirs entered;
};

static void times_of(const AFSFetchStatus *status, struct timespec times[2])
{
	times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	times[1] = (struct timespec){.tv_sec = (time_t)status->ClientModTime};
}

/* A directory that is being filled. The last of its users sets its mode and times. */
struct level {
	atomic_uint users; /* the thread that reads it, and jobs for its files */
	struct copy *copy; /* of that thread; jobs use only its run */
	int dir;   /* -1 while a deep directory is entered */
	bool lent; /* the caller of get_tree() closes `dir`, and sets mode and times */
	mode_t mode;
	struct timespec times[2];
	char *label;
};

static void leave_level(struct level *level)
{
	unsigned users = atomic_fetch_sub(&level->users, 1);

	assert(users > 0);
	if (users > 1)
		return;
	if (!level->lent && level->dir >= 0) {
		if (fchmod(level->dir, level->mode) < 0 || futimens(level->dir, level->times) < 0) {
			write_failed(level->copy, level->label, level->dir, ".");
			atomic_fetch_add(&level->copy->run->failed, 1);
		}
		close(level->dir);
	}
	free(level->label);
	free(level);
}

/* NULL after a message. Takes `dir` unless it is lent. */
static struct level *new_level(struct copy *copy, int dir, const char *label)
{
	struct level *level = calloc(1, sizeof(*level));

	if (level)
		level->label = strdup(label);
	if (!level || !level->label) {
		tools_error("no memory");
		free(level);
		return NULL;
	}
	atomic_init(&level->users, 1);
	level->copy = copy;
	level->dir = dir;
	return level;
}

/* write_failed() for an object that is no job. If the failure ends the copy, this counts it. */
static enum copy_result not_written(struct copy *copy, const char *label, int dir, const char *name)
{
	enum copy_result rc = write_failed(copy, label, dir, name);

	if (rc == COPY_STOP)
		atomic_fetch_add(&copy->run->failed, 1);
	return rc;
}

/* Let the owner of a directory use it. 0 and its old mode in *mode, or -1 with errno. */
static int permit_owner(int dir, const char *name, int flags, mode_t *mode)
{
	int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags), rc = -1, saved;
	char path[32];
	struct stat st;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) == 0)
		rc = chmod(path, (st.st_mode & 07777) | 0700);
	saved = errno;
	close(fd);
	errno = saved;
	if (rc == 0)
		*mode = st.st_mode & 07777;
	return rc;
}

int get_open_directory(int dir, const char *name, int flags, mode_t *mode)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	struct stat st;

	if (fd < 0 && errno == EACCES && permit_owner(dir, name, flags, mode) == 0)
		return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 0700) == 0700)
		return fd;
	if (fchmod(fd, (st.st_mode & 07777) | 0700) == 0)
		*mode = st.st_mode & 07777;
	return fd;
}

/* This function is not inlined, because its caller's stack is needed at each level. */
static __attribute__((noinline)) enum copy_result get_link(struct copy *copy, const struct entry *e,
				 const AFSFetchStatus *status, int dir, const char *label)
{
	char text[AFSPATHMAX + 1], temp[224];
	struct outage outage = {0};
	struct timespec times[2];
	struct afs_error error;
	enum copy_result rc;

	copy_fresh(copy);
	while (afs_client_readlink(copy->client, &e->fid, label, text, &error) < 0)
		if (!copy_retry_or_complain(copy, &outage, &error))
			return copy_judge(copy, &error);
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
	rc = not_written(copy, label, dir, e->name);
	unlinkat(dir, temp, 0);
	return rc;
}

/* A file of a directory, as a job. */
struct plain {
	struct level *level;
	struct afs_object object;
	char **names; /* hard links; at least one */
	size_t count;
	char *label;
	struct afs_fetch ahead; /* of a small file */
};

static void free_plain(struct plain *plain)
{
	afs_client_drop_read(&plain->ahead);
	for (size_t i = 0; plain->names && i < plain->count; i++)
		free(plain->names[i]);
	free(plain->names);
	free(plain->label);
	free(plain);
}

static void drop_plain(void *arg)
{
	struct plain *plain = arg;

	leave_level(plain->level);
	free_plain(plain);
}

static enum copy_result get_named(struct copy *copy, struct plain *plain, const char *name)
{
	int dir = plain->level->dir;
	enum copy_result rc;
	struct sink sink;

	if (get_is_there(copy, dir, name, &plain->object.status)) {
		copy_skip(copy->run, plain->label, afs_status_length(&plain->object.status));
		return COPY_GOOD;
	}
	if (get_open(copy, &plain->object, &sink, dir, name, true, plain->label) < 0)
		return write_failed(copy, plain->label, dir, name);
	rc = get_file(copy, &plain->object, &sink, plain->label, &plain->ahead);
	return get_close(copy, &plain->object, &sink, rc, plain->label);
}

/* Give the first name's file another name. 0, or -1 with errno. */
static int link_name(int dir, const char *first, const char *name)
{
	char temp[224];
	int rc, saved;

	sink_temp_name(temp, sizeof(temp), name);
	if (linkat(dir, first, dir, temp, 0) < 0)
		return -1;
	rc = renameat(dir, temp, dir, name);
	saved = errno;
	/* It stays if both were names of one file already. */
	unlinkat(dir, temp, 0);
	errno = saved;
	return rc;
}

static enum copy_result get_plain(struct copy *copy, void *arg)
{
	struct plain *plain = arg;
	enum copy_result rc = get_named(copy, plain, plain->names[0]);

	for (size_t i = 1; i < plain->count && rc == COPY_GOOD; i++) {
		if (link_name(plain->level->dir, plain->names[0], plain->names[i]) == 0)
			copy_done(copy->run, plain->label, 0);
		else /* some file systems have no hard links */
			rc = get_named(copy, plain, plain->names[i]);
	}
	drop_plain(plain);
	return rc;
}

static void begin_plain(struct copy *copy, void *arg)
{
	struct plain *plain = arg;
	const AFSFetchStatus *status = &plain->object.status;

	assert(!plain->ahead.call);
	if (!afs_status_length(status) ||
	    get_is_there(copy, plain->level->dir, plain->names[0], status))
		return;
	copy_fresh(copy);
	afs_fetch_init(&plain->ahead, &plain->object.fid, 0, afs_status_length(status));
	afs_client_read_ahead(copy->client, &plain->ahead);
}

#define SMALL 65536 /* bytes: this times AFS_AHEAD may wait in the memory of a client */

static const struct pool_kind small_file = {
	.work = get_plain, .drop = drop_plain, .begin = begin_plain};
static const struct pool_kind large_file = {.work = get_plain, .drop = drop_plain};

/*
 * Entries of a directory that are names of one file: next[i] is the index of the next one after i,
 * and 0 at the last one. `taken`: an earlier name has it.
 */
struct twins {
	size_t *next;
	bool *taken;
};

static int by_fid(const void *a, const void *b, void *arg)
{
	const struct entries *entries = arg;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const AFSFid *f = &entries->list[x].fid, *g = &entries->list[y].fid;

	if (f->Vnode != g->Vnode)
		return f->Vnode < g->Vnode ? -1 : 1;
	if (f->Unique != g->Unique)
		return f->Unique < g->Unique ? -1 : 1;
	return x < y ? -1 : 1;
}

/* False: no memory, after a message. */
static bool find_twins(struct entries *entries, struct twins *twins)
{
	size_t *order = calloc(entries->count + 1, sizeof(*order));

	twins->next = calloc(entries->count + 1, sizeof(*twins->next));
	twins->taken = calloc(entries->count + 1, sizeof(*twins->taken));
	if (!order || !twins->next || !twins->taken) {
		tools_error("no memory");
		free(order);
		return false;
	}
	for (size_t i = 0; i < entries->count; i++)
		order[i] = i;
	qsort_r(order, entries->count, sizeof(*order), by_fid, entries);
	for (size_t i = 0; i + 1 < entries->count; i++) {
		const AFSFid *f = &entries->list[order[i]].fid;
		const AFSFid *g = &entries->list[order[i + 1]].fid;

		if (f->Vnode == g->Vnode && f->Unique == g->Unique)
			twins->next[order[i]] = order[i + 1];
	}
	free(order);
	return true;
}

static void free_twins(struct twins *twins)
{
	free(twins->next);
	free(twins->taken);
}

/* All names of the file of an entry. */
static bool take_names(struct plain *plain, const struct entries *entries, size_t at,
		       struct twins *twins)
{
	size_t count = 1;

	assert(!twins->taken[at]);
	for (size_t i = twins->next[at]; i; i = twins->next[i])
		count++;
	plain->names = calloc(count, sizeof(*plain->names));
	if (!plain->names)
		return false;
	plain->count = count;
	for (size_t i = at, n = 0; n < count; i = twins->next[i], n++) {
		plain->names[n] = strdup(entries->list[i].name);
		if (!plain->names[n])
			return false;
		twins->taken[i] = true;
	}
	return true;
}

static enum copy_result add_plain(struct tree *t, const struct entries *entries, size_t at,
				  struct twins *twins, const AFSFetchStatus *status,
				  struct level *level, const char *label)
{
	struct plain *plain;

	if (twins->taken[at])
		return COPY_GOOD;
	plain = calloc(1, sizeof(*plain));
	if (plain)
		plain->label = strdup(label);
	if (!plain || !plain->label || !take_names(plain, entries, at, twins)) {
		tools_error("no memory");
		if (plain)
			free_plain(plain);
		return COPY_STOP;
	}
	plain->object = (struct afs_object){.fid = entries->list[at].fid, .status = *status};
	plain->level = level;
	atomic_fetch_add(&level->users, 1);
	return pool_add(t->pool, afs_status_length(status) <= SMALL ? &small_file : &large_file,
			plain);
}

static enum copy_result get_level(struct tree *t, const AFSFid *fid, struct level *level);

static enum copy_result get_subdirectory(struct tree *t, const struct entry *e,
					 const AFSFetchStatus *status, struct level *parent,
					 const char *label)
{
	struct level *level;
	enum copy_result rc;
	struct stat left;
	mode_t mode;
	bool closed;
	int dir;

	if ((mkdirat(parent->dir, e->name, 0700) < 0 && errno != EEXIST) ||
	    (dir = get_open_directory(parent->dir, e->name, O_NOFOLLOW, &mode)) < 0) {
		return not_written(t->copy, label, parent->dir, e->name);
	}
	level = new_level(t->copy, dir, label);
	if (!level) {
		close(dir);
		return COPY_STOP;
	}
	level->mode = get_directory_mode(t->copy, status);
	times_of(status, level->times);
	/* Jobs use the descriptor. */
	if (!parent->lent && t->depth > CLIMB_OPEN && pool_wait(t->pool) == COPY_STOP) {
		leave_level(level);
		return COPY_STOP;
	}
	closed = !parent->lent && climb_down(&parent->dir, t->depth, &left);
	rc = get_level(t, &e->fid, level);
	if (closed && climb_up(&parent->dir, level->dir, &left, label) < 0)
		rc = COPY_STOP;
	leave_level(level);
	return rc;
}

static __attribute__((noinline)) enum copy_result tell_code(struct copy *copy, const char *label,
							    int32_t code)
{
	struct afs_error error;

	afs_error_code(&error, label, code, RXW_ORIGIN_PEER);
	copy_complain(copy, &error);
	return COPY_FAILED;
}

static enum copy_result get_tree_entry(struct tree *t, const struct entries *entries, size_t at,
				  struct twins *twins, const AFSFetchStatus *status,
				  struct level *level, const char *label)
{
	const struct entry *e = &entries->list[at];

	if (status->errorCode != 0)
		return tell_code(t->copy, label, (int32_t)status->errorCode);
	if (!afs_status_usable(status)) {
		tools_error("%s: the server sent a malformed status", label);
		return COPY_FAILED;
	}
	switch (status->FileType) {
	case AFS_TYPE_DIR:
		return get_subdirectory(t, e, status, level, label);
	case AFS_TYPE_SYMLINK:
		return get_link(t->copy, e, status, level->dir, label);
	default:
		return add_plain(t, entries, at, twins, status, level, label);
	}
}

/* A part of a directory, whose status is one call. */
static enum copy_result get_batch(struct tree *t, const struct entries *entries, size_t at,
				  uint32_t count, struct twins *twins, struct level *level)
{
	AFSFetchStatus *statuses = calloc(AFSCBMAX, sizeof(*statuses));
	enum copy_result rc;

	if (!statuses) {
		tools_error("no memory");
		return COPY_STOP;
	}
	rc = entries_status(t->copy, entries, at, count, level->label, statuses);
	for (uint32_t i = 0; rc == COPY_GOOD && i < count; i++) {
		char *path = NULL;

		if (!copy_interrupted(t->copy))
			path = copy_join_label(level->label, entries->list[at + i].name);
		if (!path) {
			rc = COPY_STOP;
			break;
		}
		rc = get_tree_entry(t, entries, at + i, twins, &statuses[i], level, path);
		free(path);
		/* After an object that failed, continue with the others. */
		if (rc == COPY_FAILED) {
			atomic_fetch_add(&t->copy->run->failed, 1);
			rc = COPY_GOOD;
		}
	}
	free(statuses);
	return rc;
}

static enum copy_result get_entries(struct tree *t, struct entries *entries, struct level *level)
{
	enum copy_result rc = COPY_FAILED;
	struct twins twins = {0};

	t->names += entries->count;
	if (t->names > NAMES_MAX) {
		tools_error("%s: more than %d names in it and its parent directories", level->label,
			    NAMES_MAX);
		goto out;
	}
	rc = find_twins(entries, &twins) ? COPY_GOOD : COPY_STOP;
	for (size_t at = 0; rc == COPY_GOOD && at < entries->count; at += AFSCBMAX)
		rc = get_batch(t, entries, at, entries_batch(entries, at), &twins, level);
out:
	free_twins(&twins);
	t->names -= entries->count;
	return rc;
}

static enum copy_result get_level(struct tree *t, const AFSFid *fid, struct level *level)
{
	const char *label = level->label;
	struct entries entries;
	enum copy_result rc;
	int entered = entered_dirs_add(&t->entered, fid);

	assert(t->depth <= CLIMB_DEPTH);
	if (entered != 0) {
		tools_error(entered < 0 ? "%s: memory is exhausted"
					: "%s: skipped: the directory occurs twice, so the volume "
					  "is damaged",
			    label);
		return entered < 0 ? COPY_STOP : COPY_FAILED;
	}
	if (t->depth == CLIMB_DEPTH) {
		tools_error("%s: more than %d directories deep", label, CLIMB_DEPTH);
		return COPY_FAILED;
	}
	rc = entries_read(t->copy, fid, label, &entries);
	if (rc != COPY_GOOD)
		return rc;
	t->depth++;
	rc = get_entries(t, &entries, level);
	t->depth--;
	entries_free(&entries);
	return rc;
}

enum copy_result get_tree(struct copy *copy, struct pool *pool, const AFSFid *fid, int dir,
			  const char *label)
{
	struct tree tree = {.copy = copy, .pool = pool};
	struct level *level = new_level(copy, dir, label);
	enum copy_result rc;

	if (!level)
		return COPY_STOP;
	level->lent = true;
	rc = get_level(&tree, fid, level);
	if (rc == COPY_FAILED)
		atomic_fetch_add(&copy->run->failed, 1);
	if (pool_wait(pool) == COPY_STOP)
		rc = COPY_STOP;
	assert(!tree.depth && !tree.names);
	leave_level(level);
	entered_dirs_free(&tree.entered);
	return rc;
}
