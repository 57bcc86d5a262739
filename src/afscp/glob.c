/* SPDX-License-Identifier: BSD-2-Clause */
/* Patterns in the paths of volumes. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "afscp/glob.h"

#define MATCHES_MAX 1000000

bool glob_is_pattern(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (strchr("*?[", text[i]))
			return true;
	return false;
}

bool glob_matches(const char *pattern, const char *name)
{
	return fnmatch(pattern, name, FNM_PERIOD) == 0;
}

struct globbing {
	struct copy *copy;
	const struct copy_source *source;
	struct copy_source *list; /* the new sources */
	size_t count, room;
};

static enum copy_result stop_without_memory(void)
{
	tools_error("no memory");
	return COPY_STOP;
}

/* Add a source with this path, which must live as long as the run. */
static enum copy_result add_source(struct globbing *g, const char *path)
{
	if (g->count == g->room) {
		size_t room = g->room ? 2 * g->room : 16;
		struct copy_source *list =
			room > MATCHES_MAX ? NULL : realloc(g->list, room * sizeof(*list));

		if (!list)
			return stop_without_memory();
		g->list = list;
		g->room = room;
	}
	g->list[g->count++] = (struct copy_source){g->source->volume, path};
	return COPY_GOOD;
}

/* Remember an allocated path until the end of the run. */
static enum copy_result add_matching_path(struct globbing *g, char *path)
{
	struct run *run = g->copy->run;
	char **more = path ? realloc(run->made, (run->made_count + 1) * sizeof(*more)) : NULL;

	if (!more) {
		free(path);
		return stop_without_memory();
	}
	run->made = more;
	more[run->made_count++] = path;
	return add_source(g, path);
}

static enum copy_result expand_pattern(struct globbing *g, const char *done, const char *rest);

/* The names in the directory `done` that the first part of `rest`, of `length` bytes, matches. */
static enum copy_result match_names(struct globbing *g, const char *done, const char *rest,
				    size_t length)
{
	const char *tail = rest + length, *more = tail + strspn(tail, "/");
	char pattern[AFSNAMEMAX + 1], label[320];
	struct entries entries;
	struct afs_object object;
	struct afs_error error;
	enum copy_result rc;

	if (length > AFSNAMEMAX)
		return COPY_GOOD;
	memcpy(pattern, rest, length);
	pattern[length] = 0;
	snprintf(label, sizeof(label), "%s:%.250s", g->source->volume, done);
	g->copy->path = done;
	if (copy_walk_try(g->copy, true, &object, &error) < 0) {
		if (error.number == ENOENT || error.number == ENOTDIR)
			return COPY_GOOD;
		copy_complain(g->copy, &error);
		return copy_interrupted(g->copy) ? COPY_STOP : COPY_FAILED;
	}
	if (object.status.FileType != AFS_TYPE_DIR)
		return COPY_GOOD;
	rc = entries_read(g->copy, &object.fid, label, &entries);
	for (size_t i = 0; rc == COPY_GOOD && i < entries.count; i++) {
		char *path = NULL;

		if (!glob_matches(pattern, entries.list[i].name))
			continue;
		if (asprintf(&path, "%s/%s%s", done, entries.list[i].name, *more ? "" : tail) < 0) {
			rc = stop_without_memory();
		} else if (*more) {
			rc = expand_pattern(g, path, more);
			free(path);
		} else {
			rc = add_matching_path(g, path);
		}
	}
	entries_free(&entries);
	return rc;
}

/* All paths that `rest` matches below `done`. */
static enum copy_result expand_pattern(struct globbing *g, const char *done, const char *rest)
{
	struct afs_object object;
	struct afs_error error;
	enum copy_result rc;
	size_t length;
	char *path;

	rest += strspn(rest, "/");
	length = strcspn(rest, "/");
	if (glob_is_pattern(rest, length))
		return match_names(g, done, rest, length);
	if (asprintf(&path, "%s/%.*s", done, (int)length, rest) < 0)
		return stop_without_memory();
	if (rest[length + strspn(rest + length, "/")]) {
		rc = expand_pattern(g, path, rest + length);
		free(path);
		return rc;
	}
	g->copy->path = path;
	if (copy_walk_try(g->copy, false, &object, &error) == 0)
		return add_matching_path(g, path);
	free(path);
	return copy_interrupted(g->copy) ? COPY_STOP : COPY_GOOD;
}

enum copy_result glob_sources(struct copy *copy)
{
	struct run *run = copy->run;
	struct globbing g = {.copy = copy};
	enum copy_result rc = COPY_GOOD;
	bool any = false;

	for (size_t i = 0; i < run->source_count; i++)
		any |= glob_is_pattern(run->sources[i].path, strlen(run->sources[i].path));
	if (!any)
		return COPY_GOOD;
	for (size_t i = 0; i < run->source_count && rc == COPY_GOOD; i++) {
		const char *path = run->sources[i].path;
		size_t before = g.count;

		g.source = &run->sources[i];
		if (glob_is_pattern(path, strlen(path))) {
			rc = copy_locate(copy, g.source) < 0 ? COPY_FAILED
							     : expand_pattern(&g, "", path);
			if (rc != COPY_GOOD)
				break;
		}
		if (g.count == before)
			rc = add_source(&g, path);
	}
	if (rc != COPY_GOOD) {
		free(g.list);
		return rc;
	}
	free(run->sources);
	run->sources = g.list;
	run->source_count = g.count;
	return COPY_GOOD;
}
