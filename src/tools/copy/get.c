/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp get: the command. */
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
#include "tools/copy/sink.h"

/* The last component of the path, or the name of the volume for its root; free(). */
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
 * DEST, or DEST/NAME if DEST is a directory; symbolic links are resolved. free(). NULL after a
 * message.
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

static mode_t mode_of(const struct copy *copy, const AFSFetchStatus *status)
{
	return status->UnixModeBits & 0777 & ~copy->umask;
}

static enum copy_result cannot_create(const char *name)
{
	size_t length = strlen(name);

	if (errno == EISDIR && length && name[length - 1] == '/')
		tools_error("cannot create \"%s\": no such directory", name);
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
	/* Opening a pipe blocks until it has a reader. */
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

/* Complete files are kept, even if others fail. */
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
			const struct counters *before)
{
	rxw_endpoint *endpoint = afs_client_endpoint(copy->client);
	struct counters stats;
	struct tools_usage usage;
	json_t *report = json_object();

	tools_usage_now(&usage);
	usage = tools_usage_between(from, &usage);
	counters_read(&stats, endpoint);
	stats = tools_stats_between(before, &stats);
	tools_report_fill(report, copy->bytes, counters_get(&stats, "calls_started"), &usage,
			  &stats, NULL);
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
			    to_stdout ? "; it cannot be written to standard output"
				      : "; copy it with -r");
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
			    rc == COPY_STOP ? ", the rest was not attempted" : "");
	return rc == COPY_GOOD && failed ? COPY_FAILED : rc;
}

/* With several sources the destination must be an existing directory. */
static int check_destination(const struct copy *copy)
{
	struct stat st;

	if (copy->source_count < 2)
		return 0;
	if (stat(copy->destination, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	tools_error("\"%s\" is not a directory, as several sources require", copy->destination);
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
	struct counters before;
	enum copy_result rc = COPY_GOOD;
	struct tools_usage start;

	if (check_destination(copy) < 0)
		return TOOLS_EXIT_FAILURE;
	tools_usage_now(&start);
	counters_read(&before, afs_client_endpoint(copy->client));
	for (size_t i = 0; i < copy->source_count && rc != COPY_STOP; i++) {
		rc = get_source(copy, &copy->sources[i]);
		all &= rc == COPY_GOOD;
	}
	if ((all || copy->files) && (copy->set.stats || copy->set.json) && !to_stdout)
		print_stats(copy, &start, &before);
	return all ? 0 : TOOLS_EXIT_FAILURE;
}
