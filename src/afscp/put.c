/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp put: the command. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/message.h"
#include "afscp/put.h"
#include "afscp/same_names.h"

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
	return copy_report_tree(copy, to->label, files, failed, put_tree(copy, pool, fd, to));
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
	return pool_add(pool, put_file_work, put_file_drop, f);
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
			put_sum_below(fd, &sum);
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
		copy_report(copy, &start, &before);
	pool_close(pool);
	return all ? 0 : TOOLS_EXIT_FAILURE;
}
