/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp get -r: directories. Every name is used relative to an open directory, and no link is
 * followed. Objects that cannot be copied are skipped and counted. A malicious server cannot cause
 * endless work: no directory is entered twice, and depth and number of names are limited. Small files of a directory are
 * fetched together.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rxafs/admin.h>

#include "program/message.h"
#include "afscp/get.h"
#include "afscp/local.h"
#include "afscp/tree.h"

#define NAMES_MAX   1000000 /* in memory at a time, on all levels */
#define SMALL	    65536   /* bytes of files that are fetched with others */
#define BUNCH_BYTES 524288  /* of such files together */

/* One copy of a tree, whose directories are read by one thread. */
struct walk {
	struct run *run;
	struct copyjobs *jobs;
	size_t names; /* in memory, on all levels */
	unsigned depth;
	struct fid_set entered;
};

static void times_of(const struct rxafs_attributes *a, struct timespec times[2])
{
	times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	times[1] = (struct timespec){.tv_sec = a->stat.st_mtim.tv_sec};
}

/* A directory that is being filled. The last of its users sets its mode and times. */
struct level {
	atomic_uint users; /* the thread that reads it, and jobs for its files */
	struct run *run;
	rxafs_object *from; /* a reference */
	int dir;	    /* -1 while a deep directory is entered */
	bool lent;	    /* the caller of get_tree() closes `dir`, and sets mode and times */
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
			write_failed(level->run, level->label, level->dir, ".");
			atomic_fetch_add(&level->run->failed, 1);
		}
		close(level->dir);
	}
	rxafs_release(level->from);
	free(level->label);
	free(level);
}

/* NULL after a message. Takes `dir` unless it is lent. */
static struct level *new_level(struct run *run, rxafs_object *from, int dir, const char *label)
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
	level->run = run;
	level->from = rxafs_hold(from);
	level->dir = dir;
	return level;
}

/* write_failed() for an object that is no job. If the failure ends the copy, this counts it. */
static enum copy_result not_written(struct run *run, const char *label, int dir, const char *name)
{
	enum copy_result rc = write_failed(run, label, dir, name);

	if (rc == COPY_STOP)
		atomic_fetch_add(&run->failed, 1);
	return rc;
}

/* ---- files ---- */

/* A file of a directory. */
struct plain {
	struct rxafs_fid fid;
	struct rxafs_attributes attributes;
	char **names; /* hard links; at least one */
	size_t count;
	char *label;
};

/* A file, or some small ones of a directory, as a job. */
struct bunch {
	struct level *level;
	struct plain *plain[RXAFS_SMALL_MOST];
	bool done[RXAFS_SMALL_MOST]; /* a small file that was fetched */
	unsigned count;
	size_t bytes;
	enum copy_result result; /* COPY_STOP: what is left is not to be copied */
};

static size_t length_of_plain(const struct plain *plain)
{
	return (size_t)plain->attributes.stat.st_size;
}

static void free_plain(struct plain *plain)
{
	for (size_t i = 0; plain->names && i < plain->count; i++)
		free(plain->names[i]);
	free(plain->names);
	free(plain->label);
	free(plain);
}

static void drop_bunch(void *arg)
{
	struct bunch *bunch = arg;

	for (unsigned i = 0; i < bunch->count; i++)
		free_plain(bunch->plain[i]);
	leave_level(bunch->level);
	free(bunch);
}

/* The object of a file. NULL after a message. */
static rxafs_object *take_plain(struct level *level, const struct plain *plain)
{
	const struct rxafs_name name = {.text = plain->names[0], .fid = plain->fid};
	struct attempt t = attempt_begin(level->run, CHANGE_NONE, plain->label);
	rxafs_object *object;

	while (attempt_again(
		&t, rxafs_take_object(level->from, &t.request, &name, &plain->attributes, &object)))
		;
	return t.value ? NULL : object;
}

static enum copy_result get_named(struct level *level, const struct plain *plain, const char *name)
{
	struct get_file file = {.label = plain->label, .attributes = plain->attributes};
	struct run *run = level->run;
	enum copy_result rc;
	struct sink sink;

	if (get_is_there(run, level->dir, name, &plain->attributes)) {
		copy_skip(run, plain->label, length_of_plain(plain));
		return COPY_GOOD;
	}
	file.object = take_plain(level, plain);
	if (!file.object)
		return run_interrupted(run) ? COPY_STOP : COPY_FAILED;
	if (get_open(run, &file, &sink, level->dir, name, true) < 0) {
		rc = write_failed(run, plain->label, level->dir, name);
	} else {
		rc = get_contents(run, &file, &sink);
		rc = get_close(run, &file, &sink, rc);
	}
	rxafs_release(file.object);
	return rc;
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

/* The other names of a file. */
static enum copy_result get_twins(struct level *level, const struct plain *plain)
{
	enum copy_result rc = COPY_GOOD;

	for (size_t i = 1; i < plain->count && rc == COPY_GOOD; i++) {
		if (link_name(level->dir, plain->names[0], plain->names[i]) == 0)
			copy_done(level->run, plain->label, 0);
		else /* some file systems have no hard links */
			rc = get_named(level, plain, plain->names[i]);
	}
	return rc;
}

/* The result of a file of a bunch. */
static void judge_plain(struct bunch *bunch, enum copy_result rc)
{
	if (rc == COPY_FAILED)
		atomic_fetch_add(&bunch->level->run->failed, 1);
	if (rc == COPY_STOP || run_interrupted(bunch->level->run))
		bunch->result = COPY_STOP;
}

/* A small file that arrives beside others of the bunch. */
struct arriving {
	struct bunch *bunch;
	unsigned index; /* in it */
	struct get_file file;
	struct sink sink;
	bool open;
	uint64_t bytes;
	int error; /* errno of what could not be written, or 0 */
};

/* Small files that are fetched together. */
struct together {
	struct rxafs_small files[RXAFS_SMALL_MOST];
	struct rxafs_name names[RXAFS_SMALL_MOST];
	struct arriving arriving[RXAFS_SMALL_MOST];
	unsigned count;
};

static int write_arriving(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct arriving *a = arg;
	struct level *level = a->bunch->level;
	const struct plain *plain = a->bunch->plain[a->index];
	uint64_t bytes = 0;

	if (a->bunch->result == COPY_STOP)
		return -ECANCELED;
	for (unsigned i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	if (!a->open) {
		a->file = (struct get_file){.label = plain->label, .attributes = plain->attributes};
		a->open = get_open(level->run, &a->file, &a->sink, level->dir, plain->names[0],
				   true) == 0;
	}
	if (!a->open || sink_write(&a->sink, iov, count, offset) < 0) {
		a->error = errno;
		return -ECANCELED;
	}
	a->bytes = offset + bytes;
	atomic_fetch_add(&level->run->bytes, bytes);
	return 0;
}

/* Its result, unless it was not all fetched: it is asked for once more then, which tells why. */
static bool end_arriving(struct arriving *a, const struct rxafs_small *small, enum copy_result *rc)
{
	struct run *run = a->bunch->level->run;
	const struct plain *plain = a->bunch->plain[a->index];
	bool good = a->open && !a->error && !small->result;

	*rc = COPY_FAILED;
	if (good) {
		*rc = get_check_small(run, &a->file, a->bytes, &small->attributes);
	} else if (a->error) {
		errno = a->error;
		*rc = write_failed(run, plain->label, a->bunch->level->dir, plain->names[0]);
	} else {
		atomic_fetch_sub(&run->bytes, a->bytes);
	}
	if (a->open)
		*rc = get_close(run, &a->file, &a->sink, *rc);
	return good || a->error;
}

static void end_small_file(void *arg, struct rxafs_small *small)
{
	struct arriving *a = small->arg;
	struct bunch *bunch = a->bunch;
	enum copy_result rc;

	(void)arg;
	bunch->done[a->index] = end_arriving(a, small, &rc);
	if (!bunch->done[a->index])
		return;
	if (rc == COPY_GOOD)
		rc = get_twins(bunch->level, bunch->plain[a->index]);
	judge_plain(bunch, rc);
}

/* Those that are to be fetched. */
static void choose_small_files(struct together *all, struct bunch *bunch)
{
	for (unsigned i = 0; i < bunch->count; i++) {
		const struct plain *plain = bunch->plain[i];
		unsigned n = all->count;

		if (!length_of_plain(plain) || get_is_there(bunch->level->run, bunch->level->dir,
							    plain->names[0], &plain->attributes))
			continue;
		all->names[n] = (struct rxafs_name){.text = plain->names[0], .fid = plain->fid};
		all->arriving[n].bunch = bunch;
		all->arriving[n].index = i;
		all->files[n] = (struct rxafs_small){.name = &all->names[n],
						     .length = length_of_plain(plain),
						     .take = write_arriving,
						     .arg = &all->arriving[n]};
		all->count++;
	}
}

static void get_small_files(struct bunch *bunch)
{
	struct together *all = calloc(1, sizeof(*all));
	struct rxafs_request request = session_request(bunch->level->run);

	if (!all)
		return;
	choose_small_files(all, bunch);
	if (all->count)
		rxafs_fetch_small(bunch->level->from, &request, all->files, all->count,
				  end_small_file, NULL);
	free(all);
}

/* A file that did not arrive with others. */
static enum copy_result get_plain(struct level *level, const struct plain *plain)
{
	enum copy_result rc = get_named(level, plain, plain->names[0]);

	return rc == COPY_GOOD ? get_twins(level, plain) : rc;
}

static enum copy_result get_bunch(struct run *run, void *arg)
{
	struct bunch *bunch = arg;
	enum copy_result rc;

	(void)run;
	if (bunch->count > 1)
		get_small_files(bunch);
	for (unsigned i = 0; i < bunch->count && bunch->result != COPY_STOP; i++)
		if (!bunch->done[i])
			judge_plain(bunch, get_plain(bunch->level, bunch->plain[i]));
	rc = bunch->result;
	drop_bunch(bunch);
	return rc;
}

static const struct job_kind bunch_job = {.work = get_bunch, .drop = drop_bunch};

/*
 * Names of a directory that belong to one file: next[i] is the index of the next one after i,
 * and 0 at the last one. `taken`: an earlier name has it.
 */
struct twins {
	size_t *next;
	bool *taken;
};

static int by_fid(const void *a, const void *b, void *arg)
{
	const struct rxafs_names *names = arg;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const struct rxafs_fid *f = &names->list[x].fid, *g = &names->list[y].fid;

	if (f->vnode != g->vnode)
		return f->vnode < g->vnode ? -1 : 1;
	if (f->unique != g->unique)
		return f->unique < g->unique ? -1 : 1;
	return x < y ? -1 : 1;
}

/* False: no memory, after a message. */
static bool find_twins(struct rxafs_names *names, struct twins *twins)
{
	size_t *order = calloc(names->count + 1, sizeof(*order));

	twins->next = calloc(names->count + 1, sizeof(*twins->next));
	twins->taken = calloc(names->count + 1, sizeof(*twins->taken));
	if (!order || !twins->next || !twins->taken) {
		tools_error("no memory");
		free(order);
		return false;
	}
	for (size_t i = 0; i < names->count; i++)
		order[i] = i;
	qsort_r(order, names->count, sizeof(*order), by_fid, names);
	for (size_t i = 0; i + 1 < names->count; i++)
		if (rxafs_fid_same(&names->list[order[i]].fid, &names->list[order[i + 1]].fid))
			twins->next[order[i]] = order[i + 1];
	free(order);
	return true;
}

static void free_twins(struct twins *twins)
{
	free(twins->next);
	free(twins->taken);
}

/* All names of the file of an entry. */
static bool take_names(struct plain *plain, const struct rxafs_names *names, size_t at,
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
		plain->names[n] = strdup(names->list[i].text);
		if (!plain->names[n])
			return false;
		twins->taken[i] = true;
	}
	return true;
}

/* ---- directories ---- */

/* A directory whose names are gone through. */
struct listing {
	struct walk *walk;
	struct level *level;
	struct rxafs_names names;
	struct twins twins;
	struct bunch *bunch; /* small files, until there are enough of them; or NULL */
};

/* Have the small files copied that wait. */
static enum copy_result send_bunch(struct listing *l)
{
	struct bunch *bunch = l->bunch;

	l->bunch = NULL;
	return bunch ? copyjobs_add(l->walk->jobs, &bunch_job, bunch) : COPY_GOOD;
}

static struct bunch *new_bunch(struct level *level)
{
	struct bunch *bunch = calloc(1, sizeof(*bunch));

	if (bunch) {
		bunch->level = level;
		atomic_fetch_add(&level->users, 1);
	}
	return bunch;
}

/* Takes the file. */
static enum copy_result add_to_bunch(struct listing *l, struct plain *plain)
{
	size_t length = length_of_plain(plain);
	enum copy_result rc = COPY_GOOD;

	if (l->bunch && (length > SMALL || l->bunch->bytes + length > BUNCH_BYTES))
		rc = send_bunch(l);
	if (!l->bunch)
		l->bunch = new_bunch(l->level);
	if (!l->bunch) {
		tools_error("no memory");
		free_plain(plain);
		return COPY_STOP;
	}
	l->bunch->plain[l->bunch->count++] = plain;
	l->bunch->bytes += length;
	if (rc == COPY_GOOD && (length > SMALL || l->bunch->count == RXAFS_SMALL_MOST))
		rc = send_bunch(l);
	return rc;
}

static enum copy_result add_plain(struct listing *l, size_t at, const struct rxafs_attributes *a,
				  const char *label)
{
	struct plain *plain;

	if (l->twins.taken[at])
		return COPY_GOOD;
	plain = calloc(1, sizeof(*plain));
	if (plain)
		plain->label = strdup(label);
	if (!plain || !plain->label || !take_names(plain, &l->names, at, &l->twins)) {
		tools_error("no memory");
		if (plain)
			free_plain(plain);
		return COPY_STOP;
	}
	plain->fid = l->names.list[at].fid;
	plain->attributes = *a;
	return add_to_bunch(l, plain);
}

/* The object of a name. NULL after a message. */
static __attribute__((noinline)) rxafs_object *
take_listed(struct listing *l, size_t at, const struct rxafs_attributes *a, const char *label)
{
	struct attempt t = attempt_begin(l->walk->run, CHANGE_NONE, label);
	rxafs_object *object;

	while (attempt_again(
		&t, rxafs_take_object(l->level->from, &t.request, &l->names.list[at], a, &object)))
		;
	return t.value ? NULL : object;
}

/* This function is not inlined, because its caller's stack is needed at each level. */
static __attribute__((noinline)) enum copy_result
get_link(struct listing *l, size_t at, const struct rxafs_attributes *a, const char *label)
{
	struct run *run = l->walk->run;
	struct attempt t = attempt_begin(run, CHANGE_NONE, label);
	rxafs_object *object = take_listed(l, at, a, label);
	const char *name = l->names.list[at].text;
	struct timespec times[2];
	enum copy_result rc;
	char temp[224], *text;
	int dir = l->level->dir;

	if (!object)
		return run_interrupted(run) ? COPY_STOP : COPY_FAILED;
	while (attempt_again(&t, rxafs_readlink(object, &t.request, &text)))
		;
	rxafs_release(object);
	if (t.value)
		return attempt_result(&t);
	sink_temp_name(temp, sizeof(temp), name);
	times_of(a, times);
	if (symlinkat(text, dir, temp) == 0 &&
	    utimensat(dir, temp, times, AT_SYMLINK_NOFOLLOW) == 0 &&
	    renameat(dir, temp, dir, name) == 0) {
		rc = COPY_GOOD;
	} else {
		rc = not_written(run, label, dir, name);
		unlinkat(dir, temp, 0);
	}
	free(text);
	return rc;
}

static __attribute__((noinline)) enum copy_result
skip_mount(struct listing *l, size_t at, const struct rxafs_attributes *a, const char *label)
{
	rxafs_object *object = take_listed(l, at, a, label);
	char *text = NULL;

	if (!object)
		return run_interrupted(l->walk->run) ? COPY_STOP : COPY_FAILED;
	rxafs_mount_text(object, &text);
	rxafs_release(object);
	if (text && *text)
		text[strlen(text) - 1] = 0;
	tools_error("%s: skipped: mount point of the volume %.64s", label,
		    text && *text ? text + 1 : "?");
	free(text);
	return COPY_GOOD;
}

static enum copy_result get_level(struct walk *w, const struct rxafs_fid *fid, struct level *level);

static enum copy_result get_subdirectory(struct listing *l, size_t at,
					 const struct rxafs_attributes *a, const char *label)
{
	struct walk *w = l->walk;
	struct level *parent = l->level, *level;
	const char *name = l->names.list[at].text;
	rxafs_object *from;
	enum copy_result rc;
	struct stat left;
	mode_t mode;
	bool closed;
	int dir;

	/* Jobs use the descriptor of the directory above, which may be closed. */
	rc = send_bunch(l);
	if (rc != COPY_GOOD)
		return rc;
	if ((mkdirat(parent->dir, name, 0700) < 0 && errno != EEXIST) ||
	    (dir = open_usable_directory(parent->dir, name, O_NOFOLLOW, &mode)) < 0)
		return not_written(w->run, label, parent->dir, name);
	from = take_listed(l, at, a, label);
	level = from ? new_level(w->run, from, dir, label) : NULL;
	rxafs_release(from);
	if (!level) {
		close(dir);
		return COPY_STOP;
	}
	level->mode = get_directory_mode(w->run, a);
	times_of(a, level->times);
	if (!parent->lent && w->depth > CLIMB_OPEN && copyjobs_wait(w->jobs) == COPY_STOP) {
		leave_level(level);
		return COPY_STOP;
	}
	closed = !parent->lent && climb_down(&parent->dir, w->depth, &left);
	rc = get_level(w, &l->names.list[at].fid, level);
	if (closed && climb_up(&parent->dir, level->dir, &left, label) < 0)
		rc = COPY_STOP;
	leave_level(level);
	return rc;
}

static enum copy_result get_tree_entry(struct listing *l, size_t at,
				       const struct rxafs_attributes *a, int result,
				       const char *label)
{
	if (result) {
		session_complain(l->walk->run, label, -result);
		return COPY_FAILED;
	}
	if (a->mount_point)
		return skip_mount(l, at, a, label);
	if (a->kind == RXAFS_DIRECTORY)
		return get_subdirectory(l, at, a, label);
	if (a->kind == RXAFS_SYMLINK)
		return get_link(l, at, a, label);
	return add_plain(l, at, a, label);
}

/* Attributes of some names of a directory. */
struct batch {
	struct rxafs_attributes attributes[RXAFS_BATCH];
	int results[RXAFS_BATCH];
};

static __attribute__((noinline)) enum copy_result fetch_batch(struct listing *l, size_t at,
							      unsigned count, struct batch *batch)
{
	struct attempt t = attempt_begin(l->walk->run, CHANGE_NONE, l->level->label);

	t.about = l->level->from;
	while (attempt_again(&t,
			     rxafs_fetch_attributes(l->level->from, &t.request, &l->names.list[at],
						    count, batch->attributes, batch->results)))
		;
	return attempt_result(&t);
}

/* A part of a directory, whose attributes are one call. */
static enum copy_result get_batch(struct listing *l, size_t at, unsigned count)
{
	struct run *run = l->walk->run;
	struct batch *batch = calloc(1, sizeof(*batch));
	enum copy_result rc;

	if (!batch) {
		tools_error("no memory");
		return COPY_STOP;
	}
	rc = fetch_batch(l, at, count, batch);
	for (unsigned i = 0; rc == COPY_GOOD && i < count; i++) {
		char *path = NULL;

		if (!run_interrupted(run))
			path = copy_join_label(l->level->label, l->names.list[at + i].text);
		if (!path) {
			rc = COPY_STOP;
			break;
		}
		rc = get_tree_entry(l, at + i, &batch->attributes[i], batch->results[i], path);
		free(path);
		/* After an object that failed, continue with the others. */
		if (rc == COPY_FAILED) {
			atomic_fetch_add(&run->failed, 1);
			rc = COPY_GOOD;
		}
	}
	free(batch);
	return rc;
}

static enum copy_result get_entries(struct listing *l)
{
	struct walk *w = l->walk;
	size_t count = l->names.count;
	enum copy_result rc = COPY_FAILED, sent;

	w->names += count;
	if (w->names > NAMES_MAX) {
		tools_error("%s: more than %d names in it and its parent directories",
			    l->level->label, NAMES_MAX);
		goto out;
	}
	rc = find_twins(&l->names, &l->twins) ? COPY_GOOD : COPY_STOP;
	for (size_t at = 0; rc == COPY_GOOD && at < count; at += RXAFS_BATCH)
		rc = get_batch(l, at,
			       count - at < RXAFS_BATCH ? (unsigned)(count - at) : RXAFS_BATCH);
	sent = send_bunch(l);
	rc = rc == COPY_GOOD ? sent : rc;
out:
	free_twins(&l->twins);
	w->names -= count;
	return rc;
}

static int compare_got_names(const void *a, const void *b)
{
	return strcmp(((const struct rxafs_name *)a)->text, ((const struct rxafs_name *)b)->text);
}

enum copy_result get_names(struct attempt *t, rxafs_object *directory, struct rxafs_names *names)
{
	t->about = directory;
	while (attempt_again(t, rxafs_list_names(directory, &t->request, names)))
		;
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), compare_got_names);
	return attempt_result(t);
}

static __attribute__((noinline)) enum copy_result read_level(struct listing *l)
{
	struct attempt t = attempt_begin(l->walk->run, CHANGE_NONE, l->level->label);

	return get_names(&t, l->level->from, &l->names);
}

static enum copy_result get_level(struct walk *w, const struct rxafs_fid *fid, struct level *level)
{
	struct listing l = {.walk = w, .level = level};
	const char *label = level->label;
	int entered = fid_set_add(&w->entered, fid);
	enum copy_result rc;

	assert(w->depth <= CLIMB_DEPTH);
	if (entered != 0) {
		tools_error(entered < 0 ? "%s: memory is exhausted"
					: "%s: skipped: the directory occurs twice, so the volume "
					  "is damaged",
			    label);
		return entered < 0 ? COPY_STOP : COPY_FAILED;
	}
	if (w->depth == CLIMB_DEPTH) {
		tools_error("%s: more than %d directories deep", label, CLIMB_DEPTH);
		return COPY_FAILED;
	}
	rc = read_level(&l);
	if (rc != COPY_GOOD)
		return rc;
	w->depth++;
	rc = get_entries(&l);
	w->depth--;
	rxafs_free_names(&l.names);
	return rc;
}

enum copy_result get_tree(struct run *run, struct copyjobs *jobs, rxafs_object *root, int dir,
			  const char *label)
{
	struct walk walk = {.run = run, .jobs = jobs};
	struct level *level = new_level(run, root, dir, label);
	struct rxafs_fid fid;
	enum copy_result rc;

	if (!level)
		return COPY_STOP;
	level->lent = true;
	rxafs_get_fid(root, &fid);
	rc = get_level(&walk, &fid, level);
	if (rc == COPY_FAILED)
		atomic_fetch_add(&run->failed, 1);
	if (copyjobs_wait(jobs) == COPY_STOP)
		rc = COPY_STOP;
	assert(!walk.depth && !walk.names);
	leave_level(level);
	fid_set_free(&walk.entered);
	return rc;
}
