/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp get: the command. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/message.h"
#include "program/report.h"
#include "afscp/change.h"
#include "afscp/getcount.h"
#include "afscp/glob.h"
#include "afscp/pool.h"
#include "afscp/same_names.h"
#include "afscp/sink.h"

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
		copy_skip(copy, one->label, afs_status_length(&one->object.status));
		return COPY_GOOD;
	}
	/* Opening a pipe blocks until it has a reader. */
	if (stat(one->name, &st) == 0 && !S_ISREG(st.st_mode))
		atomic_store(&copy->run->at_once, true);
	if (get_open(copy, &one->object, &sink, AT_FDCWD, one->name, false, one->label) < 0) {
		rc = report_create_error(one->name);
	} else {
		rc = get_file(copy, &one->object, &sink, one->label);
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
		rc = get_file(copy, &one->object, &sink, one->label);
	}
	drop_get_job(one);
	return rc;
}

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
	return pool_add(pool, do_get_job, drop_get_job, one);
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
	return copy_report_tree(copy, label, files, failed,
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

	if (glob_sources(copy) != COPY_GOOD || check_local_destination(copy) < 0 ||
	    pool_open(copy, copy->run->source_count, &pool) < 0)
		return TOOLS_EXIT_FAILURE;
	tools_usage_now(&start);
	run_counters(copy->run, &before);
	all = get_all(copy, pool);
	if ((copy->set->json || (copy->set->stats && (all || copy->run->files))) && !to_stdout)
		copy_report(copy, &start, &before);
	pool_close(pool);
	return all ? 0 : TOOLS_EXIT_FAILURE;
}
