/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp get: one file, from received slices to its destination. */
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

#define SLICES 256 /* packets lent at a time: one system call writes them */

/* One part of a file: at most AFS_FETCH_MAX bytes. */
struct part {
	struct copy *copy;
	const struct afs_object *object;
	struct sink *sink;
	const char *label;
	struct progress *progress;
	struct afs_fetch fetch;
};

static void write_failed(const char *label, const char *name)
{
	if (errno == ENOSPC || errno == EDQUOT)
		tools_error(
			"%s: no space left for \"%s\"; free some, or choose another destination",
			label, name);
	else
		tools_error("%s: cannot write \"%s\": %s", label, name, strerror(errno));
}

/* Move data until the call is done. 0, 1 = the call failed, -1 = after a message. */
static int transfer(struct part *p, rxw_call *call)
{
	uint64_t total = afs_status_length(&p->object->status);

	for (;;) {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		uint64_t at = p->fetch.offset + p->fetch.received;

		switch (afs_fetch_step(&p->fetch, call, iov, &count)) {
		case AFS_FETCH_DONE:
			return 0;
		case AFS_FETCH_LENT:
			break;
		default:
			return 1;
		}
		if (sink_write(p->sink, iov, count, at) < 0) {
			write_failed(p->label, p->sink->name);
			return -1;
		}
		progress_update(p->progress, p->label, p->fetch.offset + p->fetch.received, total);
	}
}

/*
 * Fetch `length` bytes at `offset`, or less if the server so chooses. 0; 1: the token ended, there
 * is another, and what was received is written; or -1 after a message.
 */
static int get_part(struct part *p, uint64_t offset, uint64_t length)
{
	struct rxw_call_options co = { .size = sizeof(co) };
	enum rxw_origin origin = RXW_ORIGIN_NONE;
	struct afs_error error;
	rxw_call *call;
	int32_t code;
	int rc;

	copy_fresh(p->copy);
	afs_fetch_init(&p->fetch, &p->object->fid, offset, length);
	if (afs_client_call(p->copy->client, &co, &call, &error) < 0) {
		if (copy_again(p->copy, &error))
			return 1;
		tools_error("%s: %s", p->label, error.text);
		return -1;
	}
	copy_running(p->copy, call);
	rc = transfer(p, call);
	copy_running(p->copy, NULL);
	code = rxw_call_end(call, rc ? RXW_USER_ABORT : 0, &origin);
	if (rc < 0)
		return -1;
	if (atomic_load(&p->copy->interrupted)) {
		tools_error("%s: interrupted; nothing is left of it", p->label);
		return -1;
	}
	if (p->fetch.why) {
		tools_error("%s: %s", p->label, p->fetch.why);
		return -1;
	}
	if (code != 0) {
		afs_error_code(&error, p->label, code, origin);
		if (copy_again(p->copy, &error))
			return 1;
		tools_error("%s", error.text);
		return -1;
	}
	return 0;
}

int get_file(struct copy *copy, const struct afs_object *object, struct sink *sink,
	     const char *label)
{
	struct progress progress;
	struct part part = { .copy = copy, .object = object, .sink = sink, .label = label,
			     .progress = &progress };
	uint64_t size = afs_status_length(&object->status), at = 0;
	int rc = 0;

	progress_start(&progress, copy->progress);
	while (rc == 0 && at < size) {
		uint64_t left = size - at;

		rc = get_part(&part, at, left < AFS_FETCH_MAX ? left : AFS_FETCH_MAX);
		if (rc < 0)
			break;
		at += part.fetch.received;
		copy->bytes += part.fetch.received;
		/* The end of all of it wants its status, too. */
		if (rc > 0 && at < size) {
			rc = 0;
			continue;
		}
		if (afs_status_version(&part.fetch.status) != afs_status_version(&object->status) ||
		    afs_status_length(&part.fetch.status) != size) {
			tools_error("%s: the file was changed while it was read; try again", label);
			rc = -1;
		} else if (part.fetch.length == 0) {
			tools_error("%s: the server sends nothing beyond byte %llu of %llu", label,
				    (unsigned long long)at, (unsigned long long)size);
			rc = -1;
		}
	}
	progress_end(&progress);
	copy->files += rc == 0;
	return rc;
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

/* DEST, or DEST/NAME if DEST is a directory; free(). NULL without memory. */
static char *final_name(const struct copy *copy, const char *destination)
{
	struct stat st;
	char *name, *path = NULL;

	if (!destination)
		return default_name(copy);
	if (stat(destination, &st) < 0 || !S_ISDIR(st.st_mode))
		return strdup(destination);
	name = default_name(copy);
	if (name && asprintf(&path, "%s/%s", destination, name) < 0)
		path = NULL;
	free(name);
	return path;
}

static int get_one(struct copy *copy, const struct afs_object *object, const char *destination,
		   const char *label)
{
	struct sink sink;
	struct stat st;
	char *name = NULL;
	int rc = -1;

	if (destination && strcmp(destination, "-") == 0) {
		sink_stdout(&sink);
		atomic_store(&copy->nothing_to_undo, true);
		return get_file(copy, object, &sink, label);
	}
	name = final_name(copy, destination);
	if (!name) {
		tools_error("no memory");
		return -1;
	}
	/* Opening a pipe waits for its reader. */
	if (stat(name, &st) == 0 && !S_ISREG(st.st_mode))
		atomic_store(&copy->nothing_to_undo, true);
	if (sink_open(&sink, AT_FDCWD, name, false) < 0) {
		tools_error("cannot create \"%s\": %s", name, strerror(errno));
	} else {
		rc = get_file(copy, object, &sink, label);
		if (rc == 0 &&
		    sink_commit(&sink, object->status.UnixModeBits & 0777 & ~copy->umask) < 0) {
			write_failed(label, name);
			rc = -1;
		}
		sink_abandon(&sink);
	}
	free(name);
	return rc;
}

/*
 * A new directory is built under a temporary name; into one that is there, files are copied one by
 * one.
 */
static int get_directory(struct copy *copy, const struct afs_object *object,
			 const char *destination, const char *label)
{
	char *name = final_name(copy, destination), *temp = NULL;
	char part[224];
	const char *build = name, *base;
	struct stat st;
	int dir = -1, rc = -1;
	bool is_new;

	if (!name) {
		tools_error("no memory");
		return -1;
	}
	while (strlen(name) > 1 && name[strlen(name) - 1] == '/')
		name[strlen(name) - 1] = 0;
	is_new = stat(name, &st) < 0 && errno == ENOENT;
	if (is_new) {
		base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
		sink_temp_name(part, sizeof(part), base);
		if (asprintf(&temp, "%.*s%s", (int)(base - name), name, part) < 0)
			temp = NULL;
		build = temp;
	}
	if (!build || (is_new && mkdir(build, 0700) < 0) ||
	    (dir = open(build, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		tools_error("cannot create directory \"%s\": %s", name, strerror(errno));
	} else {
		rc = get_tree(copy, &object->fid, dir, label, 0);
		if (rc == 0 && is_new &&
		    (fchmod(dir, (object->status.UnixModeBits & 0777 & ~copy->umask) | 0700) < 0 ||
		     rename(build, name) < 0)) {
			write_failed(label, name);
			rc = -1;
		}
	}
	if (dir >= 0)
		close(dir);
	if (rc < 0 && temp)
		remove_tree(AT_FDCWD, temp);
	free(temp);
	free(name);
	return rc;
}

static void print_stats(struct copy *copy, const struct tools_usage *from,
			const struct rxw_stats *before)
{
	rxw_endpoint *endpoint = afs_client_endpoint(copy->client);
	struct rxw_stats stats = { .size = sizeof(stats) };
	struct tools_usage usage;
	json_t *report = json_object();

	tools_usage_now(&usage);
	usage = tools_usage_between(from, &usage);
	rxw_endpoint_stats(endpoint, &stats);
	stats = tools_stats_between(before, &stats);
	tools_report_fill(report, copy->bytes, stats.calls_started, &usage, &stats, NULL);
	json_object_set_new(report, "files", json_integer((json_int_t)copy->files));
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

int copy_get(struct copy *copy, const char *destination)
{
	struct afs_object object;
	struct afs_error error;
	struct tools_usage start;
	struct rxw_stats before = { .size = sizeof(before) };
	char label[320];
	bool to_stdout = destination && strcmp(destination, "-") == 0;
	int rc;

	snprintf(label, sizeof(label), "%s:%.250s", copy->volume.name, copy->path);
	if (afs_client_walk(copy->client, &copy->volume, copy->path, true, &object, &error) < 0) {
		tools_error("%s", error.text);
		return TOOLS_EXIT_FAILURE;
	}
	if (object.status.FileType == AFS_TYPE_DIR && (!copy->set.recursive || to_stdout)) {
		tools_error("%s is a directory%s", label,
			    to_stdout ? "; it cannot go to standard output" : "; copy it with -r");
		return TOOLS_EXIT_FAILURE;
	}
	tools_usage_now(&start);
	rxw_endpoint_stats(afs_client_endpoint(copy->client), &before);
	if (object.status.FileType == AFS_TYPE_DIR)
		rc = get_directory(copy, &object, destination, label);
	else
		rc = get_one(copy, &object, destination, label);
	if (rc == 0 && (copy->set.stats || copy->set.json) && !to_stdout)
		print_stats(copy, &start, &before);
	return rc < 0 ? TOOLS_EXIT_FAILURE : 0;
}
