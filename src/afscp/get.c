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
#include "afscp/local.h"
#include "afscp/lookup.h"

/* ---- one file, from the slices that the library lends to its destination ---- */

#define PART_LEAST (16u << 20) /* bytes of files that later runs can continue */
#define RESTARTS   3	       /* of a file that has another version at another server */

/* A file that is being copied. */
struct file {
	struct copy *copy;
	struct afs_object *object;
	struct sink *sink;
	const char *label;
	uint64_t at;	/* bytes of it that are written */
	uint64_t begun; /* of them by an earlier run */
	unsigned restarts;
	struct outage outage;
	struct afs_fetch fetch;
	int error; /* errno of the write that failed, or 0 */
};

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

enum copy_result write_failed(struct copy *copy, const char *label, int dir, const char *base)
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
		atomic_store(&copy->run->broken_pipe, true);
		return COPY_STOP;
	default:
		tools_error("%s: cannot write \"%s\": %s", label, name, strerror(errno));
		if (number != EIO && number != EROFS)
			return COPY_FAILED;
	}
	/* The other objects would fail as well. */
	return copy->set->keep_going ? COPY_FAILED : COPY_STOP;
}

static int write_fetched(void *arg, struct iovec *iov, unsigned count, uint64_t offset)
{
	struct file *f = arg;
	struct copy *copy = f->copy;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	if (sink_write(f->sink, iov, count, offset) < 0) {
		f->error = errno;
		return -1;
	}
	atomic_fetch_add(&copy->run->bytes, bytes);
	copy_progress(copy->run, f->label);
	return 0;
}

/* Continue at another server if it has the same version. Otherwise start again. */
static enum copy_result check_same_version(struct file *f)
{
	AFSFetchStatus status;
	struct afs_error error;

	while (afs_client_status(f->copy->client, &f->object->fid, f->label, &status, &error) < 0)
		if (!copy_retry_or_complain(f->copy, &f->outage, &error))
			return copy_judge(f->copy, &error);
	if (afs_status_version(&status) == afs_status_version(&f->object->status) &&
	    afs_status_length(&status) == afs_status_length(&f->object->status))
		return COPY_GOOD;
	if (++f->restarts > RESTARTS || (f->at > 0 && sink_restart(f->sink) < 0)) {
		tools_error("%s: the file changed during the copy; try again", f->label);
		return COPY_FAILED;
	}
	assert(f->begun <= f->at);
	f->object->status = status;
	atomic_fetch_sub(&f->copy->run->bytes, f->at - f->begun);
	atomic_fetch_sub(&f->copy->run->left_out, f->begun);
	f->at = f->begun = 0;
	return COPY_GOOD;
}

/* Decide what follows a failed fetch. COPY_GOOD: the next one. */
static enum copy_result handle_failed_fetch(struct file *f, struct afs_error *error)
{
	bool moved = false;

	if (f->fetch.received > 0)
		f->outage = (struct outage){0};
	if (copy_retry(f->copy, &f->outage, error, &moved))
		return moved ? check_same_version(f) : COPY_GOOD;
	copy_complain(f->copy, error);
	return copy_judge(f->copy, error);
}

/* Check version and length of a successful fetch. */
static enum copy_result check_answer(struct file *f)
{
	const AFSFetchStatus *status = &f->object->status;

	if (afs_status_version(&f->fetch.status) != afs_status_version(status) ||
	    afs_status_length(&f->fetch.status) != afs_status_length(status)) {
		tools_error("%s: the file changed during the copy; try again", f->label);
		return COPY_FAILED;
	}
	if (f->fetch.length != f->fetch.wanted) {
		tools_error("%s: the server sent %llu bytes at offset %llu instead of %llu; the "
			    "file has %llu",
			    f->label, (unsigned long long)f->fetch.length,
			    (unsigned long long)f->fetch.offset,
			    (unsigned long long)f->fetch.wanted,
			    (unsigned long long)afs_status_length(status));
		return COPY_FAILED;
	}
	return COPY_GOOD;
}

/* Fetch the next part of the file. */
static enum copy_result fetch_part(struct file *f)
{
	uint64_t left = afs_status_length(&f->object->status) - f->at;
	struct afs_error error;
	int rc;

	if (!f->fetch.call) {
		copy_fresh(f->copy);
		afs_fetch_init(&f->fetch, &f->object->fid, f->at,
			       left < AFS_FETCH_MAX ? left : AFS_FETCH_MAX);
	}
	rc = afs_client_read(f->copy->client, &f->fetch, f->label, write_fetched, f, &error);
	if (rc > 0) {
		errno = f->error;
		return write_failed(f->copy, f->label, f->sink->dir, f->sink->name);
	}
	f->at += f->fetch.received;
	if (rc < 0)
		return handle_failed_fetch(f, &error);
	f->outage = (struct outage){0};
	return check_answer(f);
}

enum copy_result get_file(struct copy *copy, struct afs_object *object, struct sink *sink,
			  const char *label, struct afs_fetch *ahead)
{
	struct file file = {.copy = copy,
			    .object = object,
			    .sink = sink,
			    .label = label,
			    .at = sink->begun,
			    .begun = sink->begun};

	if (ahead && ahead->call) {
		assert(file.begun == 0 && ahead->offset == 0);
		file.fetch = *ahead;
		ahead->call = NULL;
	}
	atomic_fetch_add(&copy->run->left_out, file.begun);
	while (file.at < afs_status_length(&object->status)) {
		enum copy_result rc = fetch_part(&file);

		if (rc != COPY_GOOD)
			return rc;
	}
	copy_done(copy->run, label, afs_status_length(&object->status));
	return COPY_GOOD;
}

/* A file of which a part may exist. */
struct parted {
	struct copy *copy;
	const struct afs_object *object;
	int dir;
	const char *label;
};

/* A file of the user may have the name of the part. */
static bool is_part_of_object(void *arg, int fd, uint64_t length, const char *name)
{
	struct parted *p = arg;
	char text[PATH_MAX];

	if (length <= afs_status_length(&p->object->status) &&
	    beginning_matches(p->copy, p->object, length, fd, p->label))
		return true;
	if (!copy_interrupted(p->copy))
		tools_error("%s: \"%s\" is not its beginning: not used, and left as it is",
			    p->label, whole_name(p->dir, name, text, sizeof(text)));
	return false;
}

/* Mode of the copy of an object. */
static mode_t get_mode(const struct copy *copy, const AFSFetchStatus *status)
{
	mode_t mode = status->UnixModeBits & 0777;

	return copy->set->preserve ? mode : mode & ~copy->run->umask;
}

int get_open(struct copy *copy, const struct afs_object *object, struct sink *sink, int dir,
	     const char *name, bool inside, const char *label)
{
	struct parted parted = {.copy = copy, .object = object, .dir = dir, .label = label};
	struct sink_part part = {
		.resume = copy->set->resume, .is_ours = is_part_of_object, .arg = &parted};
	const AFSFetchStatus *status = &object->status;
	const AFSFid *fid = &object->fid;
	uint64_t length = afs_status_length(status), version = 0;

	if (length < PART_LEAST)
		return sink_open(sink, dir, name, inside, get_mode(copy, status));
	version = part_version(version, (uint64_t)fid->Volume << 32 | fid->Vnode);
	version = part_version(version, (uint64_t)fid->Unique << 32 | status->ClientModTime);
	version = part_version(version, afs_status_version(status));
	part.version = part_version(version, length);
	return sink_open_part(sink, dir, name, inside, &part);
}

enum copy_result get_close(struct copy *copy, const struct afs_object *object, struct sink *sink,
			   enum copy_result rc, const char *label)
{
	if (rc == COPY_GOOD &&
	    sink_commit(sink, get_mode(copy, &object->status), object->status.ClientModTime) < 0)
		rc = write_failed(copy, label, sink->dir, sink->name);
	/* The cause that stops the command may be over at the next run. */
	sink->keep = copy->set->resume && (rc == COPY_STOP || copy_interrupted(copy));
	sink_abandon(sink);
	return rc;
}

bool get_is_there(const struct copy *copy, int dir, const char *name, const AFSFetchStatus *status)
{
	struct stat st;

	return copy->set->resume && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && (uint64_t)st.st_size == afs_status_length(status) &&
	       st.st_mtime == (time_t)status->ClientModTime;
}

mode_t get_directory_mode(const struct copy *copy, const AFSFetchStatus *status)
{
	return get_mode(copy, status) | (copy->set->preserve ? 0 : 0700);
}

/*
 * ---- totals ----
 *
 * The number of files and bytes that get -r will copy, counted by a thread beside the copying. A malicious
 * server cannot cause endless work: no directory is entered twice, and the number of directories that wait
 * is limited.
 */

#define WAITING_MAX 1000000 /* directories that were found and not yet read: 12 MB */

struct counting {
	pthread_t thread;
	struct copy copy;
	atomic_bool ending;
	uint64_t files, bytes;
	struct entered_dirs entered; /* of the source at hand */
	AFSFid *waiting;	     /* its directories */
	size_t count, room;
};

static bool queue_directory(struct counting *c, const AFSFid *fid)
{
	assert(c->count <= c->room);
	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		AFSFid *list =
			room > WAITING_MAX ? NULL : realloc(c->waiting, room * sizeof(*list));

		if (!list)
			return false;
		c->waiting = list;
		c->room = room;
	}
	c->waiting[c->count++] = *fid;
	return true;
}

/* Count an object that get would copy. False: the count is given up. */
static bool count_object(struct counting *c, const AFSFid *fid, const AFSFetchStatus *status)
{
	/* get reports these, and goes on. */
	if (status->errorCode || !afs_status_usable(status))
		return true;
	if (status->FileType == AFS_TYPE_DIR)
		return queue_directory(c, fid);
	if (status->FileType == AFS_TYPE_FILE) {
		c->files++;
		c->bytes += afs_status_length(status);
	}
	return true;
}

static bool count_directory(struct counting *c, const AFSFid *fid)
{
	AFSFetchStatus statuses[AFSCBMAX];
	struct entries entries;
	bool good = true;

	if (entries_read(&c->copy, fid, "", &entries) != COPY_GOOD)
		return false;
	for (size_t at = 0; good && at < entries.count; at += AFSCBMAX) {
		uint32_t n = entries_batch(&entries, at);

		good = !atomic_load(&c->ending) &&
		       entries_status(&c->copy, &entries, at, n, "", statuses) == COPY_GOOD;
		for (uint32_t i = 0; good && i < n; i++)
			good = count_object(c, &entries.list[at + i].fid, &statuses[i]);
	}
	entries_free(&entries);
	return good;
}

static bool count_source(struct counting *c, const struct copy_source *source)
{
	struct afs_object object;
	bool good = copy_locate(&c->copy, source) == 0 && copy_walk(&c->copy, true, &object) == 0 &&
		    count_object(c, &object.fid, &object.status);

	while (good && c->count) {
		AFSFid fid = c->waiting[--c->count];
		int entered = entered_dirs_add(&c->entered, &fid);

		good = entered >= 0 && (entered > 0 || count_directory(c, &fid));
	}
	entered_dirs_free(&c->entered);
	return good;
}

static void *count_all_sources(void *arg)
{
	struct counting *c = arg;
	struct run *run = c->copy.run;
	bool good = true;

	for (size_t i = 0; i < run->source_count && good; i++)
		good = count_source(c, &run->sources[i]);
	if (good) {
		atomic_store(&run->total_files, c->files);
		atomic_store(&run->total, c->bytes);
	}
	return NULL;
}

/*
 * Start a thread that counts the files and bytes of all sources, with a client of its own, and then
 * sets the totals of the run. It reports nothing; after a failure the totals stay unknown. NULL: it
 * could not be started.
 */
static struct counting *count_start(struct run *run)
{
	struct counting *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (copy_open(run, &c->copy) < 0) {
		free(c);
		return NULL;
	}
	c->copy.silent = true;
	if (pthread_create(&c->thread, NULL, count_all_sources, c) == 0)
		return c;
	copy_close(&c->copy);
	free(c);
	return NULL;
}

/* End it at once, complete or not. NULL is allowed. */
static void count_end(struct counting *c)
{
	if (!c)
		return;
	atomic_store(&c->ending, true);
	afs_client_cancel(c->copy.client);
	pthread_join(c->thread, NULL);
	copy_close(&c->copy);
	free(c->waiting);
	free(c);
}

/* ---- the command ---- */

/* The last component of the path, or the name of the volume for its root; free(). */
static char *default_name(const char *volume, const char *path)
{
	size_t length;
	const char *base = target_base(path, &length);

	return target_has_name(base, length) ? strndup(base, length) : strdup(volume);
}

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
static char *final_name(const char *volume, const char *from, const char *destination,
			bool contents)
{
	struct stat st;
	char *name, *path;

	if (contents && (destination || from[strlen(from) - 1] == '.')) {
		path = strdup(destination ? destination : ".");
	} else if (!destination) {
		path = default_name(volume, from);
	} else if (stat(destination, &st) < 0 || !S_ISDIR(st.st_mode)) {
		path = strdup(destination);
	} else {
		name = default_name(volume, from);
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
	struct afs_object object;
	char *name; /* of the copy; NULL: standard output */
	char *label;
};

static void drop_get_job(void *arg)
{
	struct one *one = arg;

	free(one->name);
	free(one->label);
	free(one);
}

static enum copy_result get_to_file(struct copy *copy, struct one *one)
{
	enum copy_result rc;
	struct sink sink;
	struct stat st;

	if (get_is_there(copy, AT_FDCWD, one->name, &one->object.status)) {
		copy_skip(copy->run, one->label, afs_status_length(&one->object.status));
		return COPY_GOOD;
	}
	/* Opening a pipe blocks until it has a reader. */
	if (stat(one->name, &st) == 0 && !S_ISREG(st.st_mode))
		atomic_store(&copy->run->at_once, true);
	if (get_open(copy, &one->object, &sink, AT_FDCWD, one->name, false, one->label) < 0) {
		rc = report_create_error(one->name);
	} else {
		rc = get_file(copy, &one->object, &sink, one->label, NULL);
		rc = get_close(copy, &one->object, &sink, rc, one->label);
	}
	atomic_store(&copy->run->at_once, false);
	return rc;
}

static enum copy_result do_get_job(struct copy *copy, void *arg)
{
	struct one *one = arg;
	enum copy_result rc;
	struct sink sink;

	if (one->name) {
		rc = get_to_file(copy, one);
	} else {
		sink_stdout(&sink);
		atomic_store(&copy->run->at_once, true);
		rc = get_file(copy, &one->object, &sink, one->label, NULL);
	}
	drop_get_job(one);
	return rc;
}

static const struct pool_kind get_job = {.work = do_get_job, .drop = drop_get_job};

static enum copy_result add_get_job(struct copy *copy, struct pool *pool,
				    const struct afs_object *object, bool to_stdout,
				    const char *label)
{
	struct one *one = calloc(1, sizeof(*one));

	if (!one || !(one->label = strdup(label))) {
		tools_error("no memory");
		goto fail;
	}
	one->object = *object;
	if (!to_stdout) {
		one->name =
			final_name(copy->volume.name, copy->path, copy->run->destination, false);
		if (!one->name)
			goto fail;
	}
	return pool_add(pool, &get_job, one);
fail:
	if (one)
		drop_get_job(one);
	atomic_fetch_add(&copy->run->failed, 1);
	return COPY_FAILED;
}

/* Complete files are kept, even if others fail. */
static enum copy_result get_tree_into(struct copy *copy, struct pool *pool,
				      const struct afs_object *object, const char *label)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
				    {.tv_sec = (time_t)object->status.ClientModTime}};
	char *name = final_name(copy->volume.name, copy->path, copy->run->destination,
				names_contents(copy->path));
	enum copy_result rc = COPY_FAILED;
	mode_t mode = (mode_t)-1;
	bool is_new;
	int dir = -1;

	if (!name)
		return COPY_FAILED;
	is_new = mkdir(name, 0700) == 0;
	if ((!is_new && errno != EEXIST) ||
	    (dir = get_open_directory(AT_FDCWD, name, 0, &mode)) < 0) {
		tools_error("cannot create directory \"%s\": %s", name, strerror(errno));
		atomic_fetch_add(&copy->run->failed, 1);
	} else {
		rc = get_tree(copy, pool, &object->fid, dir, label);
		if ((is_new || copy->set->preserve) &&
		    (fchmod(dir, get_directory_mode(copy, &object->status)) < 0 ||
		     futimens(dir, times) < 0) &&
		    rc == COPY_GOOD)
			rc = write_failed(copy, label, AT_FDCWD, name);
		if (!is_new && !copy->set->preserve && mode != (mode_t)-1)
			fchmod(dir, mode);
	}
	if (dir >= 0)
		close(dir);
	free(name);
	return rc;
}

/* A tree, with a message about its parts that failed. */
static enum copy_result get_tree_of(struct copy *copy, struct pool *pool,
				    const struct afs_object *object, const char *label)
{
	struct run *run = copy->run;
	uint64_t files, failed;

	if (pool_wait(pool) == COPY_STOP)
		return COPY_STOP;
	files = atomic_load(&run->files);
	failed = atomic_load(&run->failed);
	return copy_report_tree(copy->run, label, files, failed,
				get_tree_into(copy, pool, object, label));
}

/* `twin`: the first source of this name, or NULL. */
static enum copy_result get_object(struct copy *copy, struct pool *pool,
				   const struct afs_object *object, const char *label,
				   const struct copy_source *twin)
{
	const char *destination = copy->run->destination;
	bool is_dir = object->status.FileType == AFS_TYPE_DIR;
	bool to_stdout = destination && strcmp(destination, "-") == 0;

	if (is_dir && (!copy->set->recursive || to_stdout)) {
		tools_error("%s is a directory%s", label,
			    to_stdout ? "; it cannot be written to standard output"
				      : "; copy it with -r");
		return COPY_FAILED;
	}
	if (is_dir)
		return get_tree_of(copy, pool, object, label);
	if (twin) {
		tools_error("%s: not copied: %s:%s gets the same name; copy it with another get",
			    label, twin->volume, twin->path);
		return COPY_FAILED;
	}
	if (copy->run->source_count == 1)
		atomic_store(&copy->run->total, afs_status_length(&object->status));
	return add_get_job(copy, pool, object, to_stdout, label);
}

/* Several sources need an existing directory as their destination. 0, or -1 after a message. */
static int check_local_destination(const struct copy *copy)
{
	struct stat st;

	if (copy->run->source_count < 2 || !copy->run->destination)
		return 0;
	if (strcmp(copy->run->destination, "-") == 0) {
		tools_error("several sources cannot be written to standard output");
		return -1;
	}
	if (stat(copy->run->destination, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	tools_error("\"%s\" is not a directory, as several sources require",
		    copy->run->destination);
	return -1;
}

static enum copy_result get_source(struct copy *copy, struct pool *pool,
				   const struct copy_source *source, const struct copy_source *twin)
{
	struct afs_object object;
	char label[COPY_LABEL];

	if (copy_locate(copy, source) < 0 || copy_walk(copy, true, &object) < 0)
		return copy_interrupted(copy) ? COPY_STOP : COPY_FAILED;
	copy_format_label(copy, label);
	return get_object(copy, pool, &object, label, twin == source ? NULL : twin);
}

static bool name_of_get_source(const void *arg, size_t i, char **name)
{
	const struct run *run = arg;

	/* The contents of directories are merged. */
	*name = NULL;
	if (run->set.recursive && names_contents(run->sources[i].path))
		return true;
	*name = default_name(run->sources[i].volume, run->sources[i].path);
	return *name;
}

/* All sources. False: something failed, after a message. */
static bool get_all(struct copy *copy, struct pool *pool)
{
	struct run *run = copy->run;
	enum copy_result rc = COPY_GOOD;
	struct counting *counting = NULL;
	size_t *twins = find_same_names(run->source_count, name_of_get_source, run);
	bool all = true;

	if (!twins)
		return false;
	progress_start(&run->progress, run->progress.on,
		       copy->set->recursive || run->source_count > 1);
	if (run->progress.on && copy->set->recursive)
		counting = count_start(run);
	for (size_t i = 0; i < run->source_count && rc != COPY_STOP; i++) {
		rc = get_source(copy, pool, &run->sources[i], &run->sources[twins[i]]);
		all &= rc == COPY_GOOD;
	}
	free(twins);
	all &= pool_wait(pool) == COPY_GOOD && atomic_load(&run->failed) == 0;
	count_end(counting);
	progress_end(&run->progress, run->source_count > 1 ? "total" : run->sources[0].path,
		     atomic_load(&run->bytes), all && atomic_load(&run->bytes),
		     atomic_load(&run->files));
	return all;
}

int copy_get(struct copy *copy)
{
	const char *destination = copy->run->destination;
	bool to_stdout = destination && strcmp(destination, "-") == 0, all;
	struct counters before;
	struct tools_usage start;
	struct pool *pool;

	signal(SIGXFSZ, SIG_IGN); /* a write fails instead */
	if (glob_sources(copy) != COPY_GOOD || check_local_destination(copy) < 0 ||
	    pool_open(copy, copy->run->source_count, &pool) < 0)
		return TOOLS_EXIT_FAILURE;
	tools_usage_now(&start);
	run_counters(copy->run, &before);
	all = get_all(copy, pool);
	if ((copy->set->json || (copy->set->stats && (all || copy->run->files))) && !to_stdout)
		copy_report(copy->run, &start, &before);
	pool_close(pool);
	return all ? 0 : TOOLS_EXIT_FAILURE;
}
