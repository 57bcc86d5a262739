/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp get: the command, and the copy of one file. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/message.h"
#include "program/report.h"
#include "afscp/arguments.h"
#include "afscp/commands.h"
#include "afscp/contents.h"
#include "afscp/get.h"
#include "afscp/local.h"
#include "afscp/pathuse.h"
#include "afscp/tree.h"

/* ---- one file, from the slices that the library lends to its destination ---- */

#define PART_LEAST (16u << 20) /* bytes of files that later runs can continue */
#define RESTARTS   3	       /* of a file that has another version at another server */
#define PATHS_LEAST (8u << 20)	/* bytes of files that come over several paths */

/* A file whose bytes arrive. */
struct fetching {
	struct run *run;
	struct get_file *file;
	struct sink *sink;
	uint64_t at;	/* bytes of it that are written */
	uint64_t begun; /* of them by an earlier run */
	unsigned restarts;
	int error;	/* errno of the write that failed, or 0 */
	bool scattered; /* bytes are written that are not the next ones */
	struct path_watch watch; /* of the present version */
};

static uint64_t length_of(const struct rxafs_attributes *a)
{
	return (uint64_t)a->stat.st_size;
}

/* "FOLDER/NAME" of a name in an open directory, as far as its path is known. */
static const char *whole_name(int dir, const char *name, char *text, size_t size)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = dir == AT_FDCWD || *name == '/' ? -1 : readlink(link, text, size);
	if (n <= 0 || (size_t)n + strlen(name) + 2 > size)
		return name;
	snprintf(text + n, size - (size_t)n, "/%s", name);
	return text;
}

enum copy_result write_failed(struct run *run, const char *label, int dir, const char *base)
{
	int number = errno;
	char text[PATH_MAX];
	const char *name = whole_name(dir, base, text, sizeof(text));

	errno = number;
	switch (errno) {
	case ENOSPC:
	case EDQUOT:
		tools_error(
			"%s: no space left for \"%s\"; free space or choose another destination",
			label, name);
		break;
	case EPIPE:
		/* The reader has exited: not an error. */
		atomic_store(&run->broken_pipe, true);
		return COPY_STOP;
	default:
		tools_error("%s: cannot write \"%s\": %s", label, name, strerror(errno));
		if (number != EIO && number != EROFS)
			return COPY_FAILED;
	}
	/* The other objects would fail as well. */
	return run->set.keep_going ? COPY_FAILED : COPY_STOP;
}

static int write_fetched(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct fetching *f = arg;
	uint64_t bytes = 0;

	if (offset != f->at && !f->scattered) {
		f->scattered = true;
		if (sink_scatter(f->sink) < 0) {
			f->error = errno;
			return -ECANCELED;
		}
	}
	for (unsigned i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	if (sink_write(f->sink, iov, count, offset) < 0) {
		f->error = errno;
		return -ECANCELED;
	}
	f->at += bytes;
	atomic_fetch_add(&f->run->bytes, bytes);
	copy_progress(f->run, f->file->label);
	return 0;
}

static enum copy_result report_other_version(const struct get_file *file)
{
	tools_error("%s: the file changed during the copy; try again", file->label);
	return COPY_FAILED;
}

/* The server that goes on has another version: start again with that. */
static enum copy_result restart_fetch(struct fetching *f, const struct rxafs_attributes *now)
{
	if (++f->restarts > RESTARTS || (f->at > 0 && sink_restart(f->sink) < 0))
		return report_other_version(f->file);
	path_uses_drop(f->run, &f->watch);
	assert(f->begun <= f->at);
	f->file->attributes = *now;
	atomic_fetch_sub(&f->run->bytes, f->at - f->begun);
	atomic_fetch_sub(&f->run->left_out, f->begun);
	f->at = f->begun = 0;
	return COPY_GOOD;
}

/* Check version and length of what has arrived from `offset` on. */
static enum copy_result check_answer(const struct get_file *file,
				     const struct rxafs_attributes *answer, uint64_t offset,
				     uint64_t wanted, uint64_t fetched)
{
	if (answer->version != file->attributes.version ||
	    length_of(answer) != length_of(&file->attributes))
		return report_other_version(file);
	if (fetched == wanted)
		return COPY_GOOD;
	tools_error("%s: the server sent %llu bytes at offset %llu instead of %llu; the file has "
		    "%llu",
		    file->label, (unsigned long long)fetched, (unsigned long long)offset,
		    (unsigned long long)wanted, (unsigned long long)length_of(answer));
	return COPY_FAILED;
}

/* Whether the file may come over several paths, so that its bytes arrive in any order. */
static bool is_for_paths(const struct fetching *f)
{
	const struct run *run = f->run;

	/* If versions differ again and again, an address may lead to another server. */
	return f->sink->seekable && !run->set.resume && run->set.paths != 1 && f->restarts < 2 &&
	       length_of(&f->file->attributes) - f->at >= PATHS_LEAST;
}

static void see_fetch_paths(void *arg, const struct rxafs_path_use *uses, unsigned count)
{
	struct fetching *f = arg;

	path_uses_see(f->run, &f->watch, uses, count);
}

/* Fetch what is left of the file. After COPY_GOOD the rest may have become more. */
static enum copy_result fetch_rest(struct fetching *f)
{
	struct get_file *file = f->file;
	uint64_t length = length_of(&file->attributes), from;
	struct attempt t = attempt_begin(f->run, CHANGE_NONE, file->label);
	struct rxafs_scatter scatter = {.version = file->attributes.version,
					.take = write_fetched,
					.arg = f,
					.see = see_fetch_paths,
					.paths = is_for_paths(f) ? (unsigned)f->run->set.paths : 1,
					.missing = {{f->at, length}},
					.missing_count = 1};
	struct rxafs_attributes answer;
	int result;

	t.about = file->object;
	do {
		from = f->at;
		result = rxafs_fetch_scattered(file->object, &t.request, &scatter, &answer);
		if (f->at > from)
			t.outage = (struct outage){0};
	} while (attempt_again_unless(&t, result, f->error ? -ECANCELED : -EAGAIN));
	path_uses_add(f->run, &f->watch, scatter.uses, scatter.use_count);
	if (f->error) {
		errno = f->error;
		return write_failed(f->run, file->label, f->sink->dir, f->sink->name);
	}
	if (t.value == -EAGAIN)
		return restart_fetch(f, &answer);
	if (t.value)
		return attempt_result(&t);
	return check_answer(file, &answer, from, length - from, f->at - from);
}

enum copy_result get_contents(struct run *run, struct get_file *file, struct sink *sink)
{
	struct fetching f = {
		.run = run, .file = file, .sink = sink, .at = sink->begun, .begun = sink->begun};
	enum copy_result rc = COPY_GOOD;

	atomic_fetch_add(&run->left_out, f.begun);
	while (rc == COPY_GOOD && f.at < length_of(&file->attributes))
		rc = fetch_rest(&f);
	if (rc == COPY_GOOD)
		copy_done(run, file->label, length_of(&file->attributes));
	return rc;
}

enum copy_result get_check_small(struct run *run, const struct get_file *file, uint64_t fetched,
				 const struct rxafs_attributes *answer)
{
	enum copy_result rc = check_answer(file, answer, 0, length_of(&file->attributes), fetched);

	copy_progress(run, file->label);
	if (rc == COPY_GOOD)
		copy_done(run, file->label, fetched);
	return rc;
}

/* A file of which a part may exist. */
struct parted {
	struct run *run;
	const struct get_file *file;
	int dir;
};

/* A file of the user may have the name of the part. */
static bool is_part_of_file(void *arg, int fd, uint64_t length, const char *name)
{
	struct parted *p = arg;
	const struct get_file *file = p->file;
	char text[PATH_MAX];

	if (length <= length_of(&file->attributes) &&
	    is_beginning_of(p->run, file->object, length, fd, file->label))
		return true;
	if (!run_interrupted(p->run))
		tools_error("%s: \"%s\" is not its beginning: not used, and left as it is",
			    file->label, whole_name(p->dir, name, text, sizeof(text)));
	return false;
}

/* Mode of the copy of an object. */
static mode_t get_mode(const struct run *run, const struct rxafs_attributes *a)
{
	mode_t mode = a->stat.st_mode & 0777;

	return run->set.preserve ? mode : mode & ~run->umask;
}

int get_open(struct run *run, struct get_file *file, struct sink *sink, int dir, const char *name,
	     bool inside)
{
	struct parted parted = {.run = run, .file = file, .dir = dir};
	struct sink_part part = {
		.resume = run->set.resume, .is_ours = is_part_of_file, .arg = &parted};
	const struct rxafs_attributes *a = &file->attributes;
	const struct rxafs_fid *fid = &a->fid;

	if (length_of(a) < PART_LEAST)
		return sink_open(sink, dir, name, inside, get_mode(run, a));
	part.version = part_version(0, (uint64_t)fid->volume << 32 | fid->vnode);
	part.version = part_version(part.version,
				    (uint64_t)fid->unique << 32 | (uint32_t)a->stat.st_mtim.tv_sec);
	part.version = part_version(part.version, a->version);
	part.version = part_version(part.version, length_of(a));
	return sink_open_part(sink, dir, name, inside, &part);
}

enum copy_result get_close(struct run *run, const struct get_file *file, struct sink *sink,
			   enum copy_result rc)
{
	const struct rxafs_attributes *a = &file->attributes;

	if (rc == COPY_GOOD &&
	    sink_commit(sink, get_mode(run, a), (uint32_t)a->stat.st_mtim.tv_sec) < 0)
		rc = write_failed(run, file->label, sink->dir, sink->name);
	/* The cause that stops the command may be over at the next run. */
	sink->keep = run->set.resume && (rc == COPY_STOP || run_interrupted(run));
	sink_abandon(sink);
	return rc;
}

bool get_is_there(const struct run *run, int dir, const char *name,
		  const struct rxafs_attributes *a)
{
	struct stat st;

	return run->set.resume && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && st.st_size == a->stat.st_size &&
	       st.st_mtime == a->stat.st_mtim.tv_sec;
}

mode_t get_directory_mode(const struct run *run, const struct rxafs_attributes *a)
{
	return get_mode(run, a) | (run->set.preserve ? 0 : 0700);
}

/*
 * ---- totals ----
 *
 * The number of files and bytes that get -r will copy, counted by a thread beside the copying. A malicious
 * server cannot cause endless work: no directory is entered twice, and the number of directories that wait
 * is limited.
 */

#define WAITING_MAX (1u << 20) /* directories that were found and not yet read */

struct counting {
	pthread_t thread;
	struct run *run;
	atomic_bool ending;
	_Atomic(rxafs_cancel *) cancel; /* of the thread's calls */
	uint64_t files, bytes;
	struct fid_set entered;
	rxafs_object **waiting; /* directories */
	size_t count, room;
};

/* A call of the count, which is neither repeated nor reported. */
static struct attempt attempt_to_count(struct counting *c)
{
	struct attempt t = attempt_begin(c->run, CHANGE_NONE, "");

	t.silent = true;
	atomic_store(&c->cancel, t.request.cancel);
	/* count_end() sets `ending` before it looks for the cancel. */
	if (atomic_load(&c->ending) && t.request.cancel)
		rxafs_raise_cancel(t.request.cancel);
	return t;
}

/* Takes the reference. */
static bool queue_directory(struct counting *c, rxafs_object *directory)
{
	assert(c->count <= c->room);
	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		rxafs_object **list = room > WAITING_MAX
					      ? NULL
					      : realloc(c->waiting, room * sizeof(rxafs_object *));

		if (!list) {
			rxafs_release(directory);
			return false;
		}
		c->waiting = list;
		c->room = room;
	}
	c->waiting[c->count++] = directory;
	return true;
}

/* Count a name that get would copy. False: the count is given up. */
static bool count_name(struct counting *c, rxafs_object *directory, const struct rxafs_name *name,
		       const struct rxafs_attributes *a)
{
	struct attempt t;
	rxafs_object *object;

	if (a->mount_point || a->kind == RXAFS_SYMLINK)
		return true;
	if (a->kind == RXAFS_DIRECTORY) {
		t = attempt_to_count(c);
		return rxafs_take_object(directory, &t.request, name, a, &object) == 0 &&
		       queue_directory(c, object);
	}
	c->files++;
	c->bytes += length_of(a);
	return true;
}

static bool count_directory(struct counting *c, rxafs_object *directory)
{
	struct rxafs_attributes attributes[RXAFS_BATCH];
	struct attempt t = attempt_to_count(c);
	int results[RXAFS_BATCH];
	struct rxafs_names names;
	bool good = get_names(&t, directory, &names) == COPY_GOOD;

	for (size_t at = 0; good && at < names.count; at += RXAFS_BATCH) {
		unsigned n =
			names.count - at < RXAFS_BATCH ? (unsigned)(names.count - at) : RXAFS_BATCH;

		t = attempt_to_count(c);
		good = rxafs_fetch_attributes(directory, &t.request, &names.list[at], n, attributes,
					      results) == 0;
		/* get reports the others, and goes on. */
		for (unsigned i = 0; good && i < n; i++)
			good = results[i] ||
			       count_name(c, directory, &names.list[at + i], &attributes[i]);
	}
	rxafs_free_names(&names);
	return good;
}

static bool count_waiting(struct counting *c)
{
	rxafs_object *directory = c->waiting[--c->count];
	struct rxafs_fid fid;
	int entered;
	bool good;

	rxafs_get_fid(directory, &fid);
	entered = fid_set_add(&c->entered, &fid);
	good = entered >= 0 && (entered > 0 || count_directory(c, directory));
	rxafs_release(directory);
	return good;
}

static bool count_place(struct counting *c, const struct place *place)
{
	struct attempt t = attempt_to_count(c);
	struct rxafs_attributes a;
	rxafs_object *object;
	bool good = place_try(&t, place, true, &object, &a) == COPY_GOOD;

	if (good && a.kind == RXAFS_DIRECTORY) {
		good = queue_directory(c, object);
	} else if (good) {
		c->files++;
		c->bytes += length_of(&a);
		rxafs_release(object);
	}
	while (good && c->count)
		good = count_waiting(c);
	fid_set_free(&c->entered);
	return good;
}

static void *count_all_places(void *arg)
{
	struct counting *c = arg;
	struct run *run = c->run;
	bool good = true;

	for (size_t i = 0; i < run->place_count && good; i++)
		good = count_place(c, &run->places[i]);
	while (c->count)
		rxafs_release(c->waiting[--c->count]);
	if (good) {
		atomic_store(&run->total_files, c->files);
		atomic_store(&run->total, c->bytes);
	}
	return NULL;
}

/*
 * Start a thread that counts the files and bytes of all sources, and then sets the totals of the run. It reports nothing; after a
 * failure the totals stay unknown. NULL: it could not be started.
 */
static struct counting *count_start(struct run *run)
{
	struct counting *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->run = run;
	if (pthread_create(&c->thread, NULL, count_all_places, c) == 0)
		return c;
	free(c);
	return NULL;
}

/* End it at once, complete or not. NULL is allowed. */
static void count_end(struct counting *c)
{
	rxafs_cancel *cancel;

	if (!c)
		return;
	atomic_store(&c->ending, true);
	cancel = atomic_load(&c->cancel);
	if (cancel)
		rxafs_raise_cancel(cancel);
	pthread_join(c->thread, NULL);
	free(c->waiting);
	free(c);
}

/* ---- the command ---- */

/* Whether the path of a directory, DIR/ or DIR/., names what is in it. */
static bool names_contents(const char *path)
{
	size_t length = strlen(path);

	return (length >= 1 && path[length - 1] == '/') || strcmp(path, ".") == 0 ||
	       (length >= 2 && strcmp(path + length - 2, "/.") == 0);
}

/*
 * DEST, or DEST/NAME if DEST is a directory; symbolic links are resolved. What is in a directory
 * (`contents`) goes to DEST itself. free(). NULL after a message.
 */
static char *final_name(const struct place *place, const char *destination, bool contents)
{
	const char *from = place->path;
	struct stat st;
	char *name, *path;

	if (contents && (destination || from[strlen(from) - 1] == '.')) {
		path = strdup(destination ? destination : ".");
	} else if (!destination) {
		path = place_name(place);
	} else if (stat(destination, &st) < 0 || !S_ISDIR(st.st_mode)) {
		path = strdup(destination);
	} else {
		name = place_name(place);
		if (!name || asprintf(&path, "%s/%s", destination, name) < 0)
			path = NULL;
		free(name);
	}
	/* Links to pipes and devices, such as /dev/fd/5, may have no path. */
	if (path && stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return path;
	if (path && lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
		name = realpath(path, NULL);
		if (!name) {
			tools_error("\"%s\" is a dangling symbolic link: %s", path,
				    strerror(errno));
			free(path);
			return NULL;
		}
		free(path);
		path = name;
	}
	if (!path)
		tools_error("no memory");
	return path;
}

static enum copy_result report_create_error(const char *name)
{
	size_t length = strlen(name);

	if (errno == EISDIR && length && name[length - 1] == '/')
		tools_error("cannot create \"%s\": no such directory", name);
	else
		tools_error("cannot create \"%s\": %s", name, strerror(errno));
	return COPY_FAILED;
}

/* One file to copy, as a job. */
struct one {
	struct get_file file;
	char *name; /* of the copy; NULL: standard output */
	char *label;
};

static void drop_get_job(void *arg)
{
	struct one *one = arg;

	rxafs_release(one->file.object);
	free(one->name);
	free(one->label);
	free(one);
}

static enum copy_result get_to_file(struct run *run, struct one *one)
{
	enum copy_result rc;
	struct sink sink;
	struct stat st;

	if (get_is_there(run, AT_FDCWD, one->name, &one->file.attributes)) {
		copy_skip(run, one->label, length_of(&one->file.attributes));
		return COPY_GOOD;
	}
	/* Opening a pipe blocks until it has a reader. */
	if (stat(one->name, &st) == 0 && !S_ISREG(st.st_mode))
		atomic_store(&run->at_once, true);
	if (get_open(run, &one->file, &sink, AT_FDCWD, one->name, false) < 0) {
		rc = report_create_error(one->name);
	} else {
		rc = get_contents(run, &one->file, &sink);
		rc = get_close(run, &one->file, &sink, rc);
	}
	atomic_store(&run->at_once, false);
	return rc;
}

static enum copy_result do_get_job(struct run *run, void *arg)
{
	struct one *one = arg;
	enum copy_result rc;
	struct sink sink;

	if (one->name) {
		rc = get_to_file(run, one);
	} else {
		sink_stdout(&sink);
		atomic_store(&run->at_once, true);
		rc = get_contents(run, &one->file, &sink);
	}
	drop_get_job(one);
	return rc;
}

static const struct job_kind get_job = {.work = do_get_job, .drop = drop_get_job};

static enum copy_result add_get_job(struct run *run, struct copyjobs *jobs,
				    const struct place *place, rxafs_object *object,
				    const struct rxafs_attributes *a, bool to_stdout)
{
	struct one *one = calloc(1, sizeof(*one));

	if (!one || !(one->label = strdup(place->text))) {
		tools_error("no memory");
		free(one);
		atomic_fetch_add(&run->failed, 1);
		return COPY_FAILED;
	}
	one->file = (struct get_file){
		.object = rxafs_hold(object), .label = one->label, .attributes = *a};
	if (!to_stdout) {
		one->name = final_name(place, run->destination, false);
		if (!one->name) {
			drop_get_job(one);
			atomic_fetch_add(&run->failed, 1);
			return COPY_FAILED;
		}
	}
	return copyjobs_add(jobs, &get_job, one);
}

/* Complete files are kept, even if others fail. */
static enum copy_result get_tree_into(struct run *run, struct copyjobs *jobs,
				      const struct place *place, rxafs_object *root,
				      const struct rxafs_attributes *a)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = a->stat.st_mtim.tv_sec}};
	char *name = final_name(place, run->destination, names_contents(place->path));
	enum copy_result rc = COPY_FAILED;
	mode_t mode = (mode_t)-1;
	bool is_new;
	int dir = -1;

	if (!name)
		return COPY_FAILED;
	is_new = mkdir(name, 0700) == 0;
	if ((!is_new && errno != EEXIST) ||
	    (dir = open_usable_directory(AT_FDCWD, name, 0, &mode)) < 0) {
		tools_error("cannot create directory \"%s\": %s", name, strerror(errno));
		atomic_fetch_add(&run->failed, 1);
	} else {
		rc = get_tree(run, jobs, root, dir, place->text);
		if ((is_new || run->set.preserve) &&
		    (fchmod(dir, get_directory_mode(run, a)) < 0 || futimens(dir, times) < 0) &&
		    rc == COPY_GOOD)
			rc = write_failed(run, place->text, AT_FDCWD, name);
		if (!is_new && !run->set.preserve && mode != (mode_t)-1)
			fchmod(dir, mode);
	}
	if (dir >= 0)
		close(dir);
	free(name);
	return rc;
}

/* A tree, with a message about its parts that failed. */
static enum copy_result get_tree_of(struct run *run, struct copyjobs *jobs,
				    const struct place *place, rxafs_object *root,
				    const struct rxafs_attributes *a)
{
	uint64_t files, failed;

	if (copyjobs_wait(jobs) == COPY_STOP)
		return COPY_STOP;
	files = atomic_load(&run->files);
	failed = atomic_load(&run->failed);
	return copy_report_tree(run, place->text, files, failed,
				get_tree_into(run, jobs, place, root, a));
}

/* `twin`: the first source of this name, or NULL. */
static enum copy_result get_object(struct run *run, struct copyjobs *jobs,
				   const struct place *place, rxafs_object *object,
				   const struct rxafs_attributes *a, const struct place *twin)
{
	bool is_dir = a->kind == RXAFS_DIRECTORY;
	bool to_stdout = run->destination && strcmp(run->destination, "-") == 0;

	if (is_dir && (!run->set.recursive || to_stdout)) {
		tools_error("%s is a directory%s", place->text,
			    to_stdout ? "; it cannot be written to standard output"
				      : "; copy it with -r");
		return COPY_FAILED;
	}
	if (is_dir)
		return get_tree_of(run, jobs, place, object, a);
	if (twin) {
		tools_error("%s: not copied: %s gets the same name; copy it with another get",
			    place->text, twin->text);
		return COPY_FAILED;
	}
	if (run->place_count == 1)
		atomic_store(&run->total, length_of(a));
	return add_get_job(run, jobs, place, object, a, to_stdout);
}

/* Several sources need an existing directory as their destination. 0, or -1 after a message. */
static int check_local_destination(const struct run *run)
{
	struct stat st;

	if (run->place_count < 2 || !run->destination)
		return 0;
	if (strcmp(run->destination, "-") == 0) {
		tools_error("several sources cannot be written to standard output");
		return -1;
	}
	if (stat(run->destination, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	tools_error("\"%s\" is not a directory, as several sources require", run->destination);
	return -1;
}

static enum copy_result get_place(struct run *run, struct copyjobs *jobs, const struct place *place,
				  const struct place *twin)
{
	struct rxafs_attributes a;
	rxafs_object *object;
	enum copy_result rc;

	if (place_open(run, place, true, &object, &a) != COPY_GOOD)
		return run_interrupted(run) ? COPY_STOP : COPY_FAILED;
	rc = get_object(run, jobs, place, object, &a, twin == place ? NULL : twin);
	rxafs_release(object);
	return rc;
}

static bool name_of_get_source(const void *arg, size_t i, char **name)
{
	const struct run *run = arg;

	/* The contents of directories are merged. */
	*name = NULL;
	if (run->set.recursive && names_contents(run->places[i].path))
		return true;
	*name = place_name(&run->places[i]);
	return *name;
}

/* All sources. False: something failed, after a message. */
static bool get_all(struct run *run, struct copyjobs *jobs)
{
	enum copy_result rc = COPY_GOOD;
	struct counting *counting = NULL;
	size_t *twins = find_same_names(run->place_count, name_of_get_source, run);
	bool all = true;

	if (!twins)
		return false;
	progress_start(&run->progress, run->progress.on,
		       run->set.recursive || run->place_count > 1);
	if (run->progress.on && run->set.recursive)
		counting = count_start(run);
	for (size_t i = 0; i < run->place_count && rc != COPY_STOP; i++) {
		rc = get_place(run, jobs, &run->places[i], &run->places[twins[i]]);
		all &= rc == COPY_GOOD;
	}
	free(twins);
	all &= copyjobs_wait(jobs) == COPY_GOOD && atomic_load(&run->failed) == 0;
	count_end(counting);
	progress_end(&run->progress, run->place_count > 1 ? "total" : run->places[0].path,
		     atomic_load(&run->bytes), all && atomic_load(&run->bytes),
		     atomic_load(&run->files));
	return all;
}

int run_get(struct run *run)
{
	bool to_stdout = run->destination && strcmp(run->destination, "-") == 0, all;
	struct counters before;
	struct tools_usage start;
	struct copyjobs *jobs;

	signal(SIGXFSZ, SIG_IGN); /* a write fails instead */
	if (place_expand(run) != COPY_GOOD || check_local_destination(run) < 0 ||
	    copyjobs_open(run, run->place_count, &jobs) < 0)
		return TOOLS_EXIT_FAILURE;
	tools_usage_now(&start);
	run_counters(run, &before);
	all = get_all(run, jobs);
	if ((run->set.json || (run->set.stats && (all || run->files))) && !to_stdout)
		copy_report(run, &start, &before);
	copyjobs_close(jobs);
	return all ? 0 : TOOLS_EXIT_FAILURE;
}
