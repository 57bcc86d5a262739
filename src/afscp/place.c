/* SPDX-License-Identifier: BSD-2-Clause */
/* Places: from the text of the command line to objects, names in directories, and patterns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxafs/path.h>
#include <rxafs/stream.h>

#include "program/message.h"
#include "afscp/arguments.h"
#include "afscp/commands.h"

/* ---- texts ---- */

/* Keep an allocated text until the end of the run. NULL after a message. */
static char *keep_run_text(struct run *run, char *text)
{
	char **more = text ? realloc(run->made, (run->made_count + 1) * sizeof(*more)) : NULL;

	if (!more) {
		free(text);
		tools_error("no memory");
		return NULL;
	}
	run->made = more;
	return more[run->made_count++] = text;
}

bool place_parse(struct run *run, const char *text, struct place *place)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');

	*place = (struct place){.text = text};
	if (strncmp(text, "/afs", 4) == 0 && (text[4] == '/' || text[4] == 0)) {
		place->path = text + 4;
		return true;
	}
	if (!colon || colon == text || (slash && slash < colon))
		return false;
	place->volume = keep_run_text(run, strndup(text, (size_t)(colon - text)));
	place->path = colon + 1;
	return place->volume;
}

int place_require(struct run *run, const char *text, struct place *place)
{
	if (place_parse(run, text, place))
		return 0;
	tools_error("\"%s\" is not VOLUME:PATH; the root of a volume is VOLUME:/", text);
	return -1;
}

char *place_join(const char *label, const char *name)
{
	size_t length = strlen(label);
	char end = length ? label[length - 1] : 0, *path;

	if (asprintf(&path, "%s%s%s", label, end == '/' || end == ':' ? "" : "/", name) >= 0)
		return path;
	tools_error("no memory");
	return NULL;
}

const char *find_path_base(const char *path, size_t *length)
{
	const char *end = path + strlen(path), *start;

	while (end > path && end[-1] == '/')
		end--;
	start = end;
	while (start > path && start[-1] != '/')
		start--;
	*length = (size_t)(end - start);
	return start;
}

bool is_path_name(const char *base, size_t length)
{
	return length && !(base[0] == '.' && (length == 1 || (length == 2 && base[1] == '.')));
}

char *place_name(const struct place *place)
{
	size_t length;
	const char *base = find_path_base(place->path, &length);

	return is_path_name(base, length) ? strndup(base, length)
					  : strdup(place->volume ? place->volume : "afs");
}

/* ---- objects ---- */

static bool ends_in_slash(const char *path)
{
	size_t length = strlen(path);

	return length && path[length - 1] == '/';
}

/* Where the path of a place begins. 0 or a negative errno. */
static int open_base(struct attempt *t, const struct place *place, rxafs_object **base)
{
	if (place->volume)
		return rxafs_open_volume(t->run->afs, &t->request, NULL, place->volume, base);
	*base = rxafs_root(t->run->afs);
	return 0;
}

/* The volume behind a mount point is looked for, so that its root is shown. */
static int enter_mount(struct attempt *t, rxafs_object *object, bool follow,
		       struct rxafs_attributes *attributes)
{
	int rc = rxafs_getattr(object, &t->request, attributes);

	if (rc == 0 && attributes->mount_point && follow) {
		rc = rxafs_access(object, &t->request, F_OK);
		if (rc == 0)
			rc = rxafs_getattr(object, &t->request, attributes);
	}
	return rc;
}

/* One try. 0 or a negative errno. */
static int open_once(struct attempt *t, const struct place *place, bool follow,
		     rxafs_object **object, struct rxafs_attributes *attributes)
{
	bool must_be_dir = ends_in_slash(place->path);
	int rc = t->about ? 0 : open_base(t, place, &t->about);

	if (rc < 0)
		return rc;
	rc = rxafs_walk(t->about, &t->request, place->path + strspn(place->path, "/"),
			follow || must_be_dir, object);
	if (rc < 0)
		return rc;
	rc = enter_mount(t, *object, follow || must_be_dir, attributes);
	if (rc == 0 && must_be_dir && attributes->kind != RXAFS_DIRECTORY)
		rc = -ENOTDIR;
	if (rc < 0)
		rxafs_release(*object);
	return rc;
}

/* Whether the error of a path is that of one of its parts. */
static bool is_error_of_part(int64_t value)
{
	return value == -ENOENT || value == -ENOTDIR || value == -ELOOP || value == -EXDEV;
}

/* The length of the shortest path with the error of the whole one, without a slash at its end. */
static size_t find_wrong_part(struct attempt *t, const struct place *place)
{
	struct attempt look = attempt_begin(t->run, CHANGE_NONE, t->label);
	size_t length = strspn(place->path, "/"), whole = strlen(place->path);
	struct rxafs_attributes attributes;
	struct place part = *place;
	rxafs_object *object;
	int rc = 0;

	look.about = t->about;
	while (rc == 0 && (length += strcspn(place->path + length, "/")) < whole) {
		char *path = strndup(place->path, length + 1);

		part.path = path;
		rc = path ? open_once(&look, &part, true, &object, &attributes) : -ENOMEM;
		free(path);
		if (rc == 0) {
			rxafs_release(object);
			length += strspn(place->path + length, "/");
		}
	}
	return rc == 0 || rc == t->value ? length : whole;
}

/* The target of a symbolic link; NULL: it is none. */
static char *read_link_part(struct attempt *t, const char *path)
{
	struct rxafs_request request = session_request(t->run);
	rxafs_object *object;
	char *text = NULL;

	if (rxafs_walk(t->about, &request, path + strspn(path, "/"), false, &object) < 0)
		return NULL;
	if (rxafs_readlink(object, &request, &text) < 0)
		text = NULL;
	rxafs_release(object);
	return text;
}

/*
 * The label of a failure that is due to the first `length` bytes of the path. What does not exist
 * is added to the place: a name on the way, or the target of a link.
 */
static char *label_wrong_part(struct attempt *t, const struct place *place, size_t length)
{
	char *path = strndup(place->path, length), *target = NULL, *label = NULL;
	const char *base = path ? find_path_base(path, &length) : NULL;
	bool absent = t->value == -ENOENT;

	/* What /afs has is a cell, or none. */
	if (absent && path && (place->volume || strchr(path + strspn(path, "/"), '/')))
		target = read_link_part(t, path);
	if (path && !absent) {
		if (asprintf(&label, "%s%s%s", place->volume ? place->volume : "/afs",
			     place->volume ? ":" : "", path) < 0)
			label = NULL;
	} else if (target || (path && place->path[strlen(path)])) {
		if (asprintf(&label, "%s: \"%s\"", place->text, target ? target : base) < 0)
			label = NULL;
	}
	free(target);
	free(path);
	return label;
}

/* Report a failure, and which part of the path is wrong. */
static void complain_of_place(struct attempt *t, const struct place *place)
{
	const char *before = t->label;
	char *label = NULL;

	if (t->about && !t->error.interrupted && is_error_of_part(t->value))
		label = label_wrong_part(t, place, find_wrong_part(t, place));
	if (label)
		attempt_complain_of(t, label);
	else
		attempt_complain(t);
	t->label = before;
	free(label);
}

/* Until it is there, or has failed. */
static void open_object(struct attempt *t, const struct place *place, bool follow,
			rxafs_object **object, struct rxafs_attributes *attributes, int expected)
{
	bool later = t->later;

	t->later = true;
	while (attempt_again_unless(t, open_once(t, place, follow, object, attributes), expected))
		;
	t->later = later;
	if (!later && !t->silent && t->value < 0 && t->value != expected)
		complain_of_place(t, place);
	if (t->about)
		rxafs_release(t->about);
	t->about = NULL;
}

enum copy_result place_try(struct attempt *t, const struct place *place, bool follow,
			   rxafs_object **object, struct rxafs_attributes *attributes)
{
	struct rxafs_attributes own;

	open_object(t, place, follow, object, attributes ? attributes : &own, 1);
	return attempt_result(t);
}

enum copy_result place_open(struct run *run, const struct place *place, bool follow,
			    rxafs_object **object, struct rxafs_attributes *attributes)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, place->text);

	return place_try(&t, place, follow, object, attributes);
}

enum copy_result place_open_tree(struct run *run, const struct place *place, rxafs_object **object,
				 struct rxafs_attributes *attributes)
{
	enum copy_result rc = place_open(run, place, false, object, attributes);

	if (rc != COPY_GOOD || !attributes->mount_point)
		return rc;
	rxafs_release(*object);
	return place_open(run, place, true, object, attributes);
}

/* ---- names in directories ---- */

void spot_free(struct spot *spot)
{
	if (spot->directory)
		rxafs_release(spot->directory);
	if (spot->object)
		rxafs_release(spot->object);
	spot->directory = spot->object = NULL;
}

enum copy_result spot_look(struct run *run, rxafs_object *directory, const char *name,
			   const char *label, struct spot *spot)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, label);

	*spot = (struct spot){.label = label, .directory = rxafs_hold(directory)};
	snprintf(spot->name, sizeof(spot->name), "%s", name);
	while (attempt_again_unless(
		&t,
		rxafs_lookup(directory, &t.request, spot->name, &spot->object, &spot->attributes),
		-ENOENT))
		;
	if (t.value >= 0)
		return COPY_GOOD;
	spot->object = NULL;
	if (t.value == -ENOENT)
		return COPY_GOOD;
	spot_free(spot);
	return attempt_result(&t);
}

/* The directory that contains the last part of a path. *absent, unless it is NULL: there is none. */
static enum copy_result open_place_parent(struct run *run, const struct place *place,
					  const char *base, rxafs_object **directory, bool *absent)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, place->text);
	struct rxafs_attributes attributes;
	struct place parent = *place;
	char *path = strndup(place->path, (size_t)(base - place->path));
	enum copy_result rc;

	if (!path) {
		tools_error("no memory");
		return COPY_STOP;
	}
	parent.path = path;
	open_object(&t, &parent, true, directory, &attributes, absent ? -ENOENT : 1);
	rc = attempt_result(&t);
	if (absent && t.value == -ENOENT) {
		*absent = true;
		rc = COPY_GOOD;
	}
	free(path);
	return rc;
}

static enum copy_result find_spot(struct run *run, const struct place *place, struct spot *spot,
				  bool *absent)
{
	size_t length;
	const char *base = find_path_base(place->path, &length);
	rxafs_object *directory = NULL;
	char name[256];
	enum copy_result rc;

	*spot = (struct spot){.label = place->text};
	if (length > 255) {
		tools_error("%s: the name is too long; it may have 255 bytes", place->text);
		return COPY_FAILED;
	}
	if (!is_path_name(base, length))
		return place_open(run, place, true, &spot->object, &spot->attributes);
	rc = open_place_parent(run, place, base, &directory, absent);
	if (rc != COPY_GOOD || !directory)
		return rc;
	memcpy(name, base, length);
	name[length] = 0;
	rc = spot_look(run, directory, name, place->text, spot);
	rxafs_release(directory);
	return rc;
}

enum copy_result spot_find(struct run *run, const struct place *place, struct spot *spot)
{
	return find_spot(run, place, spot, NULL);
}

enum copy_result spot_find_forced(struct run *run, const struct place *place, struct spot *spot)
{
	bool absent = false;

	return find_spot(run, place, spot, &absent);
}

/* ---- patterns ---- */

#define MATCHES_MAX 1000000

struct globs {
	struct run *run;
	const struct place *from;
	struct place *list; /* the new places */
	size_t count, room;
};

static enum copy_result add_globbed_place(struct globs *g, const struct place *place)
{
	if (g->count == g->room) {
		size_t room = g->room ? 2 * g->room : 16;
		struct place *list =
			room > MATCHES_MAX ? NULL : realloc(g->list, room * sizeof(*list));

		if (!list) {
			tools_error("no memory for so many names");
			return COPY_STOP;
		}
		g->list = list;
		g->room = room;
	}
	g->list[g->count++] = *place;
	return COPY_GOOD;
}

/* Add the place of a path, which is freed or kept. */
static enum copy_result add_path(struct globs *g, char *path)
{
	struct place place = *g->from;
	const char *base;
	size_t length;
	char *text;

	if (asprintf(&text, "%s%s%s", place.volume ? place.volume : "/afs", place.volume ? ":" : "",
		     path) < 0)
		text = NULL;
	free(path);
	text = keep_run_text(g->run, text);
	if (!text)
		return COPY_STOP;
	place.text = text;
	place.path = text + (place.volume ? strlen(place.volume) + 1 : 4);
	base = find_path_base(g->from->path, &length);
	place.shown = glob_is_pattern(g->from->path, (size_t)(base - g->from->path))
			      ? text
			      : find_path_base(text, &length);
	return add_globbed_place(g, &place);
}

static enum copy_result match_path(struct globs *g, const char *done, const char *rest);

static int compare_listed_names(const void *a, const void *b)
{
	return strcmp(((const struct rxafs_name *)a)->text, ((const struct rxafs_name *)b)->text);
}

/* The names of the directory `done`, sorted; none if there is no such directory. */
static enum copy_result list_for_pattern(struct globs *g, const char *done,
					 struct rxafs_names *names)
{
	struct place place = *g->from;
	struct attempt t = attempt_begin(g->run, CHANGE_NONE, g->from->text);
	struct rxafs_attributes attributes;
	rxafs_object *directory;

	*names = (struct rxafs_names){0};
	place.path = done;
	open_object(&t, &place, true, &directory, &attributes, -ENOENT);
	if (t.value == -ENOENT)
		return COPY_GOOD;
	if (t.value < 0)
		return attempt_result(&t);
	t = attempt_begin(g->run, CHANGE_NONE, g->from->text);
	if (attributes.kind == RXAFS_DIRECTORY)
		while (attempt_again(&t, rxafs_list_names(directory, &t.request, names)))
			;
	rxafs_release(directory);
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), compare_listed_names);
	return attempt_result(&t);
}

/* What the first part of `rest`, of `length` bytes, matches in the directory `done`. */
static enum copy_result match_part(struct globs *g, const char *done, const char *rest,
				   size_t length)
{
	const char *tail = rest + length, *more = tail + strspn(tail, "/");
	char pattern[256], *path;
	struct rxafs_names names;
	enum copy_result rc;

	if (length >= sizeof(pattern))
		return COPY_GOOD;
	memcpy(pattern, rest, length);
	pattern[length] = 0;
	rc = list_for_pattern(g, done, &names);
	for (size_t i = 0; rc == COPY_GOOD && i < names.count; i++) {
		if (!glob_matches(pattern, names.list[i].text))
			continue;
		if (asprintf(&path, "%s/%s%s", done, names.list[i].text, *more ? "" : tail) < 0) {
			tools_error("no memory");
			rc = COPY_STOP;
		} else if (*more) {
			rc = match_path(g, path, more);
			free(path);
		} else {
			rc = add_path(g, path);
		}
	}
	rxafs_free_names(&names);
	return rc;
}

/* A part without a pattern at the end: only if it exists. */
static enum copy_result match_plain(struct globs *g, char *path)
{
	struct place place = *g->from;
	struct attempt t = attempt_begin(g->run, CHANGE_NONE, g->from->text);
	rxafs_object *object;

	place.path = path;
	t.silent = true;
	if (place_try(&t, &place, false, &object, NULL) == COPY_GOOD) {
		rxafs_release(object);
		return add_path(g, path);
	}
	free(path);
	return atomic_load(&g->run->interrupted) ? COPY_STOP : COPY_GOOD;
}

/* All paths that `rest` matches below `done`. */
static enum copy_result match_path(struct globs *g, const char *done, const char *rest)
{
	enum copy_result rc;
	size_t length;
	char *path;

	rest += strspn(rest, "/");
	length = strcspn(rest, "/");
	if (glob_is_pattern(rest, length))
		return match_part(g, done, rest, length);
	if (asprintf(&path, "%s/%.*s", done, (int)length, rest) < 0) {
		tools_error("no memory");
		return COPY_STOP;
	}
	if (!rest[length + strspn(rest + length, "/")])
		return match_plain(g, path);
	rc = match_path(g, path, rest + length);
	free(path);
	return rc;
}

enum copy_result place_expand(struct run *run)
{
	struct globs g = {.run = run};
	enum copy_result rc = COPY_GOOD;
	bool any = false;

	for (size_t i = 0; i < run->place_count; i++)
		any |= glob_is_pattern(run->places[i].path, strlen(run->places[i].path));
	if (!any)
		return COPY_GOOD;
	for (size_t i = 0; i < run->place_count && rc == COPY_GOOD; i++) {
		size_t before = g.count;

		g.from = &run->places[i];
		if (glob_is_pattern(g.from->path, strlen(g.from->path)))
			rc = match_path(&g, "", g.from->path);
		if (rc == COPY_GOOD && g.count == before)
			rc = add_globbed_place(&g, g.from);
	}
	if (rc != COPY_GOOD) {
		free(g.list);
		return rc;
	}
	free(run->places);
	run->places = g.list;
	run->place_count = g.count;
	return COPY_GOOD;
}

/* ---- all places ---- */

int change_each_place(struct run *run,
		      enum copy_result (*one)(struct run *run, const struct place *place))
{
	enum copy_result rc = COPY_GOOD;
	bool all = true;

	for (size_t i = 0; i < run->place_count && rc != COPY_STOP; i++) {
		rc = one(run, &run->places[i]);
		if (atomic_load(&run->interrupted))
			rc = COPY_STOP;
		all &= rc == COPY_GOOD;
	}
	return all ? 0 : TOOLS_EXIT_FAILURE;
}

int run_each_place(struct run *run, bool (*one)(struct run *run, const struct place *place))
{
	bool all = true;

	if (place_expand(run) != COPY_GOOD)
		return TOOLS_EXIT_FAILURE;
	for (size_t i = 0;
	     i < run->place_count && !atomic_load(&run->interrupted) && !ferror(stdout); i++)
		all &= one(run, &run->places[i]);
	return all && !atomic_load(&run->interrupted) ? 0 : TOOLS_EXIT_FAILURE;
}
