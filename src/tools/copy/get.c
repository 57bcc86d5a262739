/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp get: one file, from received slices to its destination; and the command. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/common/report.h"
#include "tools/copy/copy.h"

#define RESTARTS 3 /* of a file whose version differs at another server */

/* A file under way. */
struct file {
	struct copy *copy;
	struct afs_object *object;
	struct sink *sink;
	const char *label;
	uint64_t at; /* bytes of it that are written */
	unsigned restarts;
	struct outage outage;
	struct afs_fetch fetch;
	int error; /* errno of the write that failed, or 0 */
};

enum copy_result write_failed(struct copy *copy, const char *label, const char *name)
{
	switch (errno) {
	case ENOSPC:
	case EDQUOT:
		tools_error(
			"%s: no space left for \"%s\"; free some, or choose another destination",
			label, name);
		return COPY_STOP;
	case EPIPE:
		/* Whoever read it has seen enough. */
		copy->broken_pipe = true;
		return COPY_STOP;
	default:
		tools_error("%s: cannot write \"%s\": %s", label, name, strerror(errno));
		return errno == EIO || errno == EROFS ? COPY_STOP : COPY_FAILED;
	}
}

static int take(void *arg, struct iovec *iov, unsigned count, uint64_t offset)
{
	struct file *f = arg;
	struct copy *copy = f->copy;

	if (sink_write(f->sink, iov, count, offset) < 0) {
		f->error = errno;
		return -1;
	}
	if (copy->progress.many)
		progress_update(&copy->progress, f->label, copy->bytes + f->fetch.received, 0,
				copy->files);
	else
		progress_update(&copy->progress, f->label, f->fetch.offset + f->fetch.received,
				afs_status_length(&f->object->status), copy->files);
	return 0;
}

/*
 * After a pause the server may be another one: go on where it stood if that one has the same
 * version, else from the beginning.
 */
static enum copy_result look_again(struct file *f)
{
	AFSFetchStatus status;
	struct afs_error error;

	while (afs_client_status(f->copy->client, &f->object->fid, f->label, &status, &error) < 0) {
		if (copy_retry(f->copy, &f->outage, &error, NULL))
			continue;
		tools_error("%s", error.text);
		return copy_judge(f->copy, &error);
	}
	if (afs_status_version(&status) == afs_status_version(&f->object->status) &&
	    afs_status_length(&status) == afs_status_length(&f->object->status))
		return COPY_GOOD;
	if (++f->restarts > RESTARTS || (f->at > 0 && sink_restart(f->sink) < 0)) {
		tools_error("%s: the file was changed while it was read; try again", f->label);
		return COPY_FAILED;
	}
	f->object->status = status;
	f->copy->bytes -= f->at;
	f->at = 0;
	return COPY_GOOD;
}

/* After a fetch that failed. COPY_GOOD: go on. */
static enum copy_result fetch_failed(struct file *f, struct afs_error *error)
{
	bool moved = false;

	if (f->fetch.received > 0)
		f->outage = (struct outage){0};
	if (copy_retry(f->copy, &f->outage, error, &moved))
		return moved ? look_again(f) : COPY_GOOD;
	tools_error("%s", error->text);
	return copy_judge(f->copy, error);
}

/* The data came whole: of the version that was asked for, and all of it? */
static enum copy_result check_answer(struct file *f)
{
	const AFSFetchStatus *status = &f->object->status;

	if (afs_status_version(&f->fetch.status) != afs_status_version(status) ||
	    afs_status_length(&f->fetch.status) != afs_status_length(status)) {
		tools_error("%s: the file was changed while it was read; try again", f->label);
		return COPY_FAILED;
	}
	if (f->fetch.length != f->fetch.wanted) {
		tools_error("%s: the server sent %llu bytes from %llu on, not %llu as it should of "
			    "a file of %llu",
			    f->label, (unsigned long long)f->fetch.length,
			    (unsigned long long)f->fetch.offset,
			    (unsigned long long)f->fetch.wanted,
			    (unsigned long long)afs_status_length(status));
		return COPY_FAILED;
	}
	return COPY_GOOD;
}

/* Fetch what comes next, or as much of it as comes. */
static enum copy_result get_part(struct file *f)
{
	uint64_t left = afs_status_length(&f->object->status) - f->at;
	struct afs_error error;
	int rc;

	copy_fresh(f->copy);
	afs_fetch_init(&f->fetch, &f->object->fid, f->at,
		       left < AFS_FETCH_MAX ? left : AFS_FETCH_MAX);
	rc = afs_client_read(f->copy->client, &f->fetch, f->label, take, f, &error);
	if (rc > 0) {
		errno = f->error;
		return write_failed(f->copy, f->label, f->sink->name);
	}
	f->at += f->fetch.received;
	f->copy->bytes += f->fetch.received;
	if (rc < 0)
		return fetch_failed(f, &error);
	f->outage = (struct outage){0};
	return check_answer(f);
}

enum copy_result get_file(struct copy *copy, struct afs_object *object, struct sink *sink,
			  const char *label)
{
	struct file file = {.copy = copy, .object = object, .sink = sink, .label = label};
	enum copy_result rc = COPY_GOOD;

	while (rc == COPY_GOOD && file.at < afs_status_length(&object->status))
		rc = get_part(&file);
	copy->files += rc == COPY_GOOD;
	return rc;
}

bool get_is_there(const struct copy *copy, int dir, const char *name, const AFSFetchStatus *status)
{
	struct stat st;

	return copy->set.resume && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && (uint64_t)st.st_size == afs_status_length(status) &&
	       st.st_mtime == (time_t)status->ClientModTime;
}

/* ---- the command ---- */

/* Last name of a path, or the volume's for its root; free(). */
static char *default_name(const struct copy *copy)
{
	const char *end = copy->path + strlen(copy->path), *start;

	while (end > copy->path && end[-1] == '/')
		end--;
	start = end;
	while (start > copy->path && start[-1] != '/')
		start--;
	if (end == start || (end - start == 1 && *start == '.') ||
	    (end - start == 2 && start[0] == '.' && start[1] == '.'))
		return strdup(copy->volume.name);
	return strndup(start, (size_t)(end - start));
}

/*
 * DEST, or DEST/NAME if DEST is a directory; of a symbolic link what it leads to. free(). NULL after
 * a message.
 */
static char *final_name(const struct copy *copy, const char *destination)
{
	struct stat st;
	char *name, *path;

	if (!destination) {
		path = default_name(copy);
	} else if (stat(destination, &st) < 0 || !S_ISDIR(st.st_mode)) {
		path = strdup(destination);
	} else {
		name = default_name(copy);
		if (!name || asprintf(&path, "%s/%s", destination, name) < 0)
			path = NULL;
		free(name);
	}
	if (path && lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
		name = realpath(path, NULL);
		if (!name) {
			tools_error("\"%s\" is a symbolic link that leads nowhere: %s", path,
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

static mode_t mode_of(const struct copy *copy, const AFSFetchStatus *status)
{
	return status->UnixModeBits & 0777 & ~copy->umask;
}

static enum copy_result cannot_create(const char *name)
{
	size_t length = strlen(name);

	if (errno == EISDIR && length && name[length - 1] == '/')
		tools_error("cannot create \"%s\": there is no such directory", name);
	else
		tools_error("cannot create \"%s\": %s", name, strerror(errno));
	return COPY_FAILED;
}

static enum copy_result get_one(struct copy *copy, struct afs_object *object,
				const char *destination, const char *label)
{
	enum copy_result rc = COPY_FAILED;
	struct sink sink;
	struct stat st;
	char *name = NULL;

	if (destination && strcmp(destination, "-") == 0) {
		sink_stdout(&sink);
		atomic_store(&copy->at_once, true);
		return get_file(copy, object, &sink, label);
	}
	name = final_name(copy, destination);
	if (!name)
		return COPY_FAILED;
	if (get_is_there(copy, AT_FDCWD, name, &object->status)) {
		copy->skipped++;
		free(name);
		return COPY_GOOD;
	}
	/* Opening a pipe waits for its reader. */
	if (stat(name, &st) == 0 && !S_ISREG(st.st_mode))
		atomic_store(&copy->at_once, true);
	if (sink_open(&sink, AT_FDCWD, name, false) < 0) {
		rc = cannot_create(name);
	} else {
		rc = get_file(copy, object, &sink, label);
		if (rc == COPY_GOOD && sink_commit(&sink, mode_of(copy, &object->status),
						   object->status.ClientModTime) < 0)
			rc = write_failed(copy, label, name);
		sink_abandon(&sink);
	}
	atomic_store(&copy->at_once, false);
	free(name);
	return rc;
}

/* What is complete stays, whatever becomes of the rest. */
static enum copy_result get_directory(struct copy *copy, const struct afs_object *object,
				      const char *destination, const char *label)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
				    {.tv_sec = (time_t)object->status.ClientModTime}};
	char *name = final_name(copy, destination);
	enum copy_result rc = COPY_FAILED;
	bool is_new;
	int dir = -1;

	if (!name)
		return COPY_FAILED;
	is_new = mkdir(name, 0700) == 0;
	if ((!is_new && errno != EEXIST) ||
	    (dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		tools_error("cannot create directory \"%s\": %s", name, strerror(errno));
	} else {
		rc = get_tree(copy, &object->fid, dir, label);
		if (is_new &&
		    (fchmod(dir, mode_of(copy, &object->status) | 0700) < 0 ||
		     futimens(dir, times) < 0) &&
		    rc == COPY_GOOD)
			rc = write_failed(copy, label, name);
	}
	if (dir >= 0)
		close(dir);
	free(name);
	return rc;
}

static void print_stats(struct copy *copy, const struct tools_usage *from,
			const struct rxw_stats *before)
{
	rxw_endpoint *endpoint = afs_client_endpoint(copy->client);
	struct rxw_stats stats = {.size = sizeof(stats)};
	struct tools_usage usage;
	json_t *report = json_object();

	tools_usage_now(&usage);
	usage = tools_usage_between(from, &usage);
	rxw_endpoint_stats(endpoint, &stats);
	stats = tools_stats_between(before, &stats);
	tools_report_fill(report, copy->bytes, stats.calls_started, &usage, &stats, NULL);
	json_object_set_new(report, "files", json_integer((json_int_t)copy->files));
	json_object_set_new(report, "skipped", json_integer((json_int_t)copy->skipped));
	json_object_set_new(report, "failed", json_integer((json_int_t)copy->failed));
	json_object_set_new(report, "effective", tools_effective_json(endpoint));
	json_object_set_new(report, "transport", tools_stats_json(&stats));
	json_object_set_new(report, "machine", tools_facts_json());
	if (copy->set.json) {
		tools_json_print(report);
		return;
	}
	tools_report_print("copied", report);
	json_decref(report);
}

static enum copy_result get_object(struct copy *copy, struct afs_object *object,
				   const char *destination, const char *label)
{
	bool is_dir = object->status.FileType == AFS_TYPE_DIR;
	bool to_stdout = destination && strcmp(destination, "-") == 0;
	uint64_t bytes = copy->bytes, files = copy->files, failed = copy->failed;
	enum copy_result rc;

	if (is_dir && (!copy->set.recursive || to_stdout)) {
		tools_error("%s is a directory%s", label,
			    to_stdout ? "; it cannot go to standard output" : "; copy it with -r");
		return COPY_FAILED;
	}
	progress_start(&copy->progress, copy->progress.on, is_dir);
	rc = is_dir ? get_directory(copy, object, destination, label)
		    : get_one(copy, object, destination, label);
	progress_end(&copy->progress, label, copy->bytes - bytes,
		     rc == COPY_GOOD && copy->bytes > bytes, copy->files);
	failed = copy->failed - failed;
	if (is_dir && (rc != COPY_GOOD || failed))
		tools_error("%s: %llu files copied, %llu objects failed%s", label,
			    (unsigned long long)(copy->files - files), (unsigned long long)failed,
			    rc == COPY_STOP ? ", the rest was not tried" : "");
	return rc == COPY_GOOD && failed ? COPY_FAILED : rc;
}

/* With several sources the destination is a directory that is there. */
static int check_destination(const struct copy *copy)
{
	struct stat st;

	if (copy->source_count < 2)
		return 0;
	if (stat(copy->destination, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	tools_error("\"%s\" is no directory: several sources need one", copy->destination);
	return -1;
}

static enum copy_result get_source(struct copy *copy, const struct copy_source *source)
{
	struct afs_object object;
	char label[320];

	if (copy_locate(copy, source) < 0 || copy_walk(copy, true, &object) < 0)
		return atomic_load(&copy->interrupted) ? COPY_STOP : COPY_FAILED;
	snprintf(label, sizeof(label), "%s:%.250s", copy->volume.name, copy->path);
	return get_object(copy, &object, copy->destination, label);
}

int copy_get(struct copy *copy)
{
	bool to_stdout = copy->destination && strcmp(copy->destination, "-") == 0, all = true;
	struct rxw_stats before = {.size = sizeof(before)};
	enum copy_result rc = COPY_GOOD;
	struct tools_usage start;

	if (check_destination(copy) < 0)
		return TOOLS_EXIT_FAILURE;
	tools_usage_now(&start);
	rxw_endpoint_stats(afs_client_endpoint(copy->client), &before);
	for (size_t i = 0; i < copy->source_count && rc != COPY_STOP; i++) {
		rc = get_source(copy, &copy->sources[i]);
		all &= rc == COPY_GOOD;
	}
	if ((all || copy->files) && (copy->set.stats || copy->set.json) && !to_stdout)
		print_stats(copy, &start, &before);
	return all ? 0 : TOOLS_EXIT_FAILURE;
}
