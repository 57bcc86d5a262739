/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp rm, mkdir, mv and ln: changes of names. Links and mount points are removed, not followed. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/admin.h>

#include "afs/rxafs.h"
#include "program/message.h"
#include "afscp/commands.h"
#include "afscp/local.h"
#include "afscp/tasks.h"
#include "afscp/tree.h"

/* ---- single names ---- */

/* Remove a file, a link or an empty directory; with --force it may be gone. */
static enum copy_result remove_named(struct run *run, rxafs_object *directory, const char *name,
				     bool is_directory, const char *label)
{
	struct attempt t = attempt_begin(run, is_directory ? CHANGE_RMDIR : CHANGE_REMOVE, label);

	t.later = true;
	while (attempt_again(&t, is_directory ? rxafs_rmdir(directory, &t.request, name)
					      : rxafs_unlink(directory, &t.request, name)))
		;
	/* ESTALE: the directory is gone as well. */
	if (t.value >= 0 || (run->set.force && (t.value == -ENOENT || t.value == -ESTALE)))
		return COPY_GOOD;
	attempt_complain(&t);
	return attempt_result(&t);
}

/* What a change leads to: the object of a FID, or a link of a text. */
struct outcome {
	rxafs_object *directory;
	const char *name;
	const struct rxafs_fid *fid; /* or NULL: */
	const char *text;
};

static bool has_come_about(struct attempt *t, const struct outcome *o)
{
	struct rxafs_request request = session_request(t->run);
	struct rxafs_attributes a;
	rxafs_object *object;
	char *text = NULL;
	bool same;

	if (rxafs_lookup(o->directory, &request, o->name, &object, &a) < 0)
		return false;
	if (o->fid)
		same = rxafs_fid_same(o->fid, &a.fid);
	else
		same = (a.mount_point ? rxafs_mount_text(object, &text)
				      : rxafs_readlink(object, &request, &text)) == 0 &&
		       strcmp(text, o->text) == 0;
	free(text);
	rxafs_release(object);
	return same;
}

/*
 * The result of a change whose failure was kept back. If an earlier try got no answer, and the last one says that
 * the names are not as they were, that one may have made the change.
 */
static enum copy_result settle_change(struct attempt *t, const struct outcome *outcome)
{
	if (t->value >= 0)
		return COPY_GOOD;
	if (t->unknown && (t->value == -EEXIST || t->value == -ENOENT) &&
	    has_come_about(t, outcome))
		return COPY_GOOD;
	attempt_complain(t);
	return attempt_result(t);
}

static enum copy_result report_absent(const struct spot *spot)
{
	tools_error("%s: no such file or directory", spot->label);
	return COPY_FAILED;
}

/* A name that can be changed: not the root of a volume. */
static bool has_name(const struct spot *spot, const char *what)
{
	if (spot->directory)
		return true;
	tools_error("%s: the root of a volume, \".\" and \"..\" cannot be %s", spot->label, what);
	return false;
}

/* A directory of its volume, not a mount point. */
static bool is_plain_directory(const struct spot *spot)
{
	return spot->object && spot->attributes.kind == RXAFS_DIRECTORY &&
	       !spot->attributes.mount_point;
}

/* ---- rm ---- */

/*
 * A tree that is removed. Threads remove its names; whoever removes the last one of a directory removes that as
 * well.
 */
struct removal {
	struct run *run;
	struct tasks *tasks;
	struct removed_dir **levels; /* those that are walked, by depth; the root is 0 */
	size_t room;
	atomic_int result; /* enum copy_result, the worst */
};

struct removed_dir {
	struct removal *removal;
	struct removed_dir *above; /* NULL: the root, which stays */
	rxafs_object *parent;	   /* a reference */
	char *path;		   /* ends in the name: */
	size_t name;
	atomic_uint left;   /* names that are not removed yet, and 1 while it is walked */
	atomic_bool failed; /* something remains */
};

/* A file or link. */
struct removed_file {
	struct removed_dir *in;
	rxafs_object *directory; /* a reference */
	char *path;		 /* ends in the name: */
	size_t name;
};

static void note_removal(struct removed_dir *in, enum copy_result rc)
{
	int worst = atomic_load(&in->removal->result);

	if (rc == COPY_GOOD)
		return;
	atomic_store(&in->failed, true);
	if (worst == COPY_GOOD || rc == COPY_STOP)
		atomic_store(&in->removal->result, rc == COPY_STOP ? COPY_STOP : COPY_FAILED);
}

static bool is_removal_stopped(struct removal *r)
{
	return atomic_load(&r->result) == COPY_STOP;
}

/* One of the names of the directory is done; after the last one it is removed itself. */
static void finish_removed(struct removed_dir *dir)
{
	while (dir && atomic_fetch_sub(&dir->left, 1) == 1) {
		struct removed_dir *above = dir->above;

		if (above && (atomic_load(&dir->failed) || is_removal_stopped(dir->removal)))
			atomic_store(&above->failed, true);
		else if (above)
			note_removal(above, remove_named(dir->removal->run, dir->parent,
							 dir->path + dir->name, true, dir->path));
		if (dir->parent)
			rxafs_release(dir->parent);
		free(dir->path);
		free(dir);
		dir = above;
	}
}

static void remove_file_of_tree(void *arg)
{
	struct removed_file *file = arg;
	struct removal *r = file->in->removal;

	if (is_removal_stopped(r))
		atomic_store(&file->in->failed, true);
	else
		note_removal(file->in, remove_named(r->run, file->directory,
						    file->path + file->name, false, file->path));
	finish_removed(file->in);
	rxafs_release(file->directory);
	free(file->path);
	free(file);
}

/* A directory that will be walked at this depth; *item: its name, or NULL for the root. False: no memory. */
static bool add_removed_dir(struct removal *r, unsigned depth, const struct tree_item *item)
{
	struct removed_dir **more, *dir = calloc(1, sizeof(*dir));

	if (dir && depth >= r->room) {
		more = realloc(r->levels, (depth + 64) * sizeof(*more));
		if (!more) {
			free(dir);
			return false;
		}
		memset(more + r->room, 0, (depth + 64 - r->room) * sizeof(*more));
		r->levels = more;
		r->room = depth + 64;
	}
	if (!dir || (item && !(dir->path = strdup(item->path)))) {
		free(dir);
		return false;
	}
	dir->removal = r;
	atomic_store(&dir->left, 1);
	if (item) {
		dir->above = r->levels[depth - 1];
		atomic_fetch_add(&dir->above->left, 1);
		dir->parent = rxafs_hold(item->directory);
		dir->name = strlen(item->path) - strlen(item->name->text);
	}
	r->levels[depth] = dir;
	return true;
}

static bool add_removed_file(struct removal *r, const struct tree_item *item)
{
	struct removed_file *file = malloc(sizeof(*file));

	if (!file || !(file->path = strdup(item->path))) {
		free(file);
		return false;
	}
	file->in = r->levels[item->depth - 1];
	file->directory = rxafs_hold(item->directory);
	file->name = strlen(item->path) - strlen(item->name->text);
	atomic_fetch_add(&file->in->left, 1);
	tasks_add(r->tasks, remove_file_of_tree, file);
	return true;
}

/* The walk of what is at this depth and below is over. */
static void end_levels(struct removal *r, unsigned depth, bool failed)
{
	for (size_t i = r->room; i-- > depth;) {
		struct removed_dir *dir = r->levels[i];

		r->levels[i] = NULL;
		if (dir && failed)
			atomic_store(&dir->failed, true);
		finish_removed(dir);
	}
}

static void remove_item(struct removal *r, const struct tree_item *item)
{
	bool good = true;

	switch (item->event) {
	case TREE_ENTRY:
		/* One that was not entered. */
		end_levels(r, item->depth, false);
		/* A directory of the volume has an odd number. */
		good = item->name->fid.vnode & 1 ? add_removed_dir(r, item->depth, item)
						 : add_removed_file(r, item);
		break;
	case TREE_LEAVE:
		end_levels(r, item->depth ? item->depth : 1, false);
		break;
	case TREE_FAILED:
		note_removal(r->levels[item->depth], COPY_FAILED);
		end_levels(r, item->depth ? item->depth : 1, true);
		break;
	case TREE_ENTER:
	default:
		break;
	}
	if (!good) {
		tools_error("no memory");
		note_removal(r->levels[0], COPY_STOP);
	}
}

/* Remove the contents of a directory. COPY_FAILED: something is left. */
static enum copy_result remove_contents(struct run *run, rxafs_object *directory, const char *label)
{
	struct tree_options o = {.names_only = true, .may_go = run->set.force, .depth = UINT_MAX};
	struct removal r = {.run = run, .result = COPY_GOOD};
	struct tree *tree = tree_open(run, directory, label, &o);
	struct tree_item item;

	if (!tree || !add_removed_dir(&r, 0, NULL)) {
		if (tree)
			tree_close(tree);
		return COPY_STOP;
	}
	r.tasks = tasks_open(TASKS_THREADS, TASKS_WAITING);
	while (!is_removal_stopped(&r) && tree_next(tree, &item))
		remove_item(&r, &item);
	end_levels(&r, 0, is_removal_stopped(&r) || atomic_load(&run->interrupted));
	tasks_close(r.tasks);
	tree_close(tree);
	free(r.levels);
	return atomic_load(&run->interrupted) ? COPY_STOP
					      : (enum copy_result)atomic_load(&r.result);
}

enum copy_result remove_spot(struct run *run, const struct spot *spot)
{
	bool directory = is_plain_directory(spot);
	enum copy_result rc = COPY_GOOD;

	if (!spot->object)
		return run->set.force ? COPY_GOOD : report_absent(spot);
	if (!has_name(spot, "removed"))
		return COPY_FAILED;
	if (directory && !run->set.recursive) {
		tools_error("%s is a directory; remove it with -r", spot->label);
		return COPY_FAILED;
	}
	if (directory)
		rc = remove_contents(run, spot->object, spot->label);
	return rc == COPY_GOOD
		       ? remove_named(run, spot->directory, spot->name, directory, spot->label)
		       : rc;
}

static enum copy_result remove_place(struct run *run, const struct place *place)
{
	struct spot spot;
	enum copy_result rc =
		run->set.force ? spot_find_forced(run, place, &spot) : spot_find(run, place, &spot);

	if (rc == COPY_GOOD)
		rc = remove_spot(run, &spot);
	spot_free(&spot);
	return rc;
}

int run_rm(struct run *run)
{
	if (place_expand(run) != COPY_GOOD)
		return TOOLS_EXIT_FAILURE;
	return change_each_place(run, remove_place);
}

/* ---- mkdir ---- */

/* Bits above 0777, which servers keep for administrators. */
static enum copy_result set_special_bits(struct run *run, const struct spot *spot,
					 rxafs_object *made, mode_t mode)
{
	struct rxafs_changes changes = {.set = RXAFS_SET_MODE, .mode = mode};
	struct attempt t = attempt_begin(run, CHANGE_STATUS, spot->label);
	struct rxafs_attributes a;

	while (attempt_again(&t, rxafs_setattr(made, &t.request, &changes, &a)))
		;
	if (t.value < 0 || (a.stat.st_mode & 07777) == mode)
		return attempt_result(&t);
	tools_error(
		"%s: made with the mode %04o, not %04o: servers keep the first digit for administrators",
		spot->label, a.stat.st_mode & 07777, (unsigned)mode);
	return COPY_FAILED;
}

/* Whether an earlier try, whose answer was lost, has made the directory that is there. */
static bool was_directory_made(struct attempt *t, const struct spot *spot, rxafs_object **made,
			       struct rxafs_attributes *a)
{
	struct rxafs_request request = session_request(t->run);

	if (!t->unknown || rxafs_lookup(spot->directory, &request, spot->name, made, a) < 0)
		return false;
	if (a->kind == RXAFS_DIRECTORY && !a->mount_point && a->stat.st_nlink == 2)
		return true;
	rxafs_release(*made);
	return false;
}

enum copy_result make_directory(struct run *run, const struct spot *spot, mode_t mode)
{
	struct attempt t = attempt_begin(run, CHANGE_MKDIR, spot->label);
	enum copy_result rc = COPY_GOOD;
	struct rxafs_attributes a;
	rxafs_object *made;

	t.later = true;
	while (attempt_again(&t,
			     rxafs_mkdir(spot->directory, &t.request, spot->name, mode, &made, &a)))
		;
	if (t.value < 0 && !(t.value == -EEXIST && was_directory_made(&t, spot, &made, &a))) {
		/* Another client may make the same directory, which -p accepts. */
		if (run->set.preserve && t.value == -EEXIST)
			return COPY_GOOD;
		attempt_complain(&t);
		return attempt_result(&t);
	}
	if (mode & 07000)
		rc = set_special_bits(run, spot, made, mode);
	rxafs_release(made);
	return rc;
}

/* Mode of a new directory: --mode, or all rights less the umask. */
static enum copy_result mode_of_directory(const struct run *run, mode_t *mode)
{
	*mode = 0777 & ~run->umask;
	if (!run->set.mode || mode_parse(run->set.mode, 0777, true, run->umask, mode) == 0)
		return COPY_GOOD;
	tools_error("option --mode: invalid value \"%s\"; use an octal number or u=rwx,go=rx",
		    run->set.mode);
	return COPY_STOP;
}

/* One directory of a path. */
static enum copy_result make_one(struct run *run, const struct place *place, bool last)
{
	mode_t mode = 0777 & ~run->umask;
	struct spot spot;
	enum copy_result rc = spot_find(run, place, &spot);
	bool directory;

	if (rc == COPY_GOOD && last)
		rc = mode_of_directory(run, &mode);
	if (rc != COPY_GOOD)
		goto out;
	directory = spot.object && spot.attributes.kind == RXAFS_DIRECTORY;
	if (!spot.object) {
		rc = make_directory(run, &spot, mode);
	} else if (!run->set.preserve ||
		   (!directory && (spot.attributes.kind != RXAFS_SYMLINK || last))) {
		/* A link may lead to a directory: the next step finds out. */
		tools_error("%s: exists already%s", spot.label,
			    directory ? "; -p accepts that" : ", and is no directory");
		rc = COPY_FAILED;
	}
out:
	spot_free(&spot);
	return rc;
}

static enum copy_result make_place(struct run *run, const struct place *place)
{
	char *text = strdup(place->text), *path;
	struct place part = *place;
	enum copy_result rc = COPY_GOOD;

	if (!text) {
		tools_error("no memory");
		return COPY_STOP;
	}
	path = text + (place->path - place->text);
	part.text = text;
	part.path = path;
	/* -p makes each beginning of the path that ends at a slash. */
	for (char *p = path + strspn(path, "/"); rc == COPY_GOOD && run->set.preserve;) {
		char *slash = strchr(p, '/');

		if (!slash || slash[strspn(slash, "/")] == 0)
			break;
		*slash = 0;
		rc = make_one(run, &part, false);
		*slash = '/';
		p = slash + strspn(slash, "/");
	}
	if (rc == COPY_GOOD)
		rc = make_one(run, &part, true);
	free(text);
	return rc;
}

int run_mkdir(struct run *run)
{
	mode_t mode;

	if (mode_of_directory(run, &mode) != COPY_GOOD)
		return TOOLS_EXIT_USAGE;
	return change_each_place(run, make_place);
}

/* ---- mv ---- */

/* The last place of the command line, where a link to a directory is followed. */
static enum copy_result find_destination(struct run *run, struct spot *to)
{
	const struct place *place = &run->places[run->place_count - 1];
	enum copy_result rc = spot_find(run, place, to);
	struct rxafs_attributes a;
	rxafs_object *object;

	if (rc != COPY_GOOD)
		return rc;
	if (to->object && (to->attributes.kind == RXAFS_SYMLINK || to->attributes.mount_point)) {
		struct attempt t = attempt_begin(run, CHANGE_NONE, place->text);

		t.silent = true;
		if (place_try(&t, place, true, &object, &a) == COPY_GOOD) {
			if (a.kind == RXAFS_DIRECTORY) {
				rxafs_release(to->object);
				to->object = rxafs_hold(object);
				to->attributes = a;
			}
			rxafs_release(object);
		}
	}
	if (run->place_count > 2 && (!to->object || to->attributes.kind != RXAFS_DIRECTORY)) {
		tools_error("%s is not a directory, as several sources require", to->label);
		return COPY_FAILED;
	}
	return COPY_GOOD;
}

/* The place of the object `name`: the destination, or its name in the destination directory. */
static enum copy_result find_spot_in(struct run *run, const struct spot *destination,
				     const char *name, struct spot *to, char **label)
{
	*label = NULL;
	if (!destination->object || destination->attributes.kind != RXAFS_DIRECTORY) {
		*to = *destination;
		if (to->directory)
			rxafs_hold(to->directory);
		if (to->object)
			rxafs_hold(to->object);
		return COPY_GOOD;
	}
	*label = place_join(destination->label, name);
	return *label ? spot_look(run, destination->object, name, *label, to) : COPY_STOP;
}

/*
 * A slash at the end says that the place is a directory, or is to become one. Without this check
 * the second of two files that are moved to "DIR/" would replace the first if there is no such
 * directory.
 */
static bool fits_slash(const struct place *place, const struct spot *spot, bool directory)
{
	size_t length = strlen(place->path);

	if (length == 0 || place->path[length - 1] != '/' || !spot->directory)
		return true;
	if (spot->object ? spot->attributes.kind == RXAFS_DIRECTORY : directory)
		return true;
	tools_error("%s is not a directory; make it with mkdir", spot->label);
	return false;
}

static bool same_object(const struct spot *a, const struct spot *b)
{
	return a->object && b->object && rxafs_fid_same(&a->attributes.fid, &b->attributes.fid) &&
	       a->attributes.mount_point == b->attributes.mount_point;
}

/* Whether the directory that something goes into is the object itself. */
static bool goes_into_itself(const struct spot *from, const struct spot *to)
{
	return to->directory == from->object;
}

static enum copy_result report_other_volume(const struct spot *from, const struct spot *to,
					    const char *remedy)
{
	tools_error("%s and %s are in different volumes; %s", from->label, to->label, remedy);
	return COPY_FAILED;
}

static enum copy_result rename_spot(struct run *run, const struct spot *from, const struct spot *to)
{
	const struct outcome outcome = {to->directory, to->name, &from->attributes.fid, NULL};
	struct attempt t = attempt_begin(run, CHANGE_RENAME, NULL);
	char *label;
	enum copy_result rc;

	if (same_object(from, to)) {
		tools_error("%s and %s are the same file", from->label, to->label);
		return COPY_FAILED;
	}
	if (goes_into_itself(from, to)) {
		tools_error("%s cannot be moved into itself", from->label);
		return COPY_FAILED;
	}
	if (asprintf(&label, "%s: cannot rename it to %s", from->label, to->label) < 0)
		return COPY_STOP;
	t.label = label;
	t.later = true;
	while (attempt_again_unless(&t,
				    rxafs_rename(from->directory, &t.request, from->name,
						 to->directory, to->name, false),
				    -EXDEV))
		;
	rc = t.value == -EXDEV
		     ? report_other_volume(from, to, "copy it with get and put, and remove it then")
		     : settle_change(&t, &outcome);
	free(label);
	return rc;
}

static enum copy_result move_place(struct run *run, const struct place *place,
				   const struct spot *destination)
{
	const struct place *last = &run->places[run->place_count - 1];
	struct spot from, to = {.label = NULL};
	enum copy_result rc = spot_find(run, place, &from);
	char *label = NULL;

	if (rc == COPY_GOOD && !from.object)
		rc = report_absent(&from);
	if (rc == COPY_GOOD && (!has_name(&from, "renamed") ||
				!fits_slash(last, destination, is_plain_directory(&from))))
		rc = COPY_FAILED;
	if (rc == COPY_GOOD)
		rc = find_spot_in(run, destination, from.name, &to, &label);
	if (rc == COPY_GOOD && !has_name(&to, "replaced"))
		rc = COPY_FAILED;
	if (rc == COPY_GOOD)
		rc = rename_spot(run, &from, &to);
	spot_free(&from);
	spot_free(&to);
	free(label);
	return rc;
}

int run_mv(struct run *run)
{
	struct spot destination;
	enum copy_result rc = find_destination(run, &destination);
	bool all = rc == COPY_GOOD;
	size_t count = all ? run->place_count - 1 : 0;

	for (size_t i = 0; i < count && rc != COPY_STOP; i++) {
		rc = move_place(run, &run->places[i], &destination);
		all &= rc == COPY_GOOD;
	}
	spot_free(&destination);
	return all ? 0 : TOOLS_EXIT_FAILURE;
}

/* ---- ln ---- */

/* --mount: "#NAME." or, of "%NAME", "%NAME."; NAME may begin with "CELL:". NULL after a message. */
static char *format_mount(const char *volume)
{
	const char *name = *volume == '%' || *volume == '#' ? volume + 1 : volume;
	char *text;

	if (*name == 0 || strlen(name) > 256 || strpbrk(name, "/ \t\n#%")) {
		tools_error("option --mount: invalid value \"%s\"; use [CELL:]VOLUME or "
			    "%%[CELL:]VOLUME",
			    volume);
		return NULL;
	}
	if (asprintf(&text, "%c%s.", *volume == '%' ? '%' : '#', name) < 0) {
		tools_error("no memory");
		return NULL;
	}
	return text;
}

/* Make a link or mount point with a name that nothing has. */
static enum copy_result make_new_link(struct run *run, const struct spot *spot, const char *name,
				      const char *text)
{
	const struct outcome outcome = {spot->directory, name, NULL, text};
	struct attempt t =
		attempt_begin(run, run->set.mount ? CHANGE_MOUNT : CHANGE_SYMLINK, spot->label);
	struct rxafs_attributes a;
	rxafs_object *made = NULL;

	t.later = true;
	while (attempt_again(
		&t, run->set.mount
			    ? rxafs_make_mount(spot->directory, &t.request, name, text)
			    : rxafs_symlink(spot->directory, &t.request, name, text, &made, &a)))
		;
	if (made)
		rxafs_release(made);
	return settle_change(&t, &outcome);
}

/* In place of a file or link that exists: under another name first, so that this remains if that fails. */
static enum copy_result replace_by_link(struct run *run, const struct spot *spot, const char *text)
{
	struct attempt t = attempt_begin(run, CHANGE_RENAME, spot->label);
	struct rxafs_request request;
	char part[PART_NAME];
	enum copy_result rc;

	part_name_once(part, spot->name);
	rc = make_new_link(run, spot, part, text);
	if (rc != COPY_GOOD)
		return rc;
	while (attempt_again(&t, rxafs_rename(spot->directory, &t.request, part, spot->directory,
					      spot->name, false)))
		;
	if (t.value < 0) {
		request = session_request(run);
		rxafs_unlink(spot->directory, &request, part);
	}
	return attempt_result(&t);
}

/* Make a symbolic link or mount point of that text. */
static enum copy_result make_link_of_text(struct run *run, const struct place *place,
					  const char *text)
{
	struct spot spot;
	enum copy_result rc = spot_find(run, place, &spot);

	if (rc == COPY_GOOD && (!has_name(&spot, "replaced") || !fits_slash(place, &spot, false)))
		rc = COPY_FAILED;
	if (rc == COPY_GOOD && (*text == 0 || strlen(text) > AFSPATHMAX)) {
		tools_error("%s: the target of a link has 1 to %d bytes", spot.label, AFSPATHMAX);
		rc = COPY_FAILED;
	}
	if (rc == COPY_GOOD)
		rc = spot.object && run->set.force && !is_plain_directory(&spot)
			     ? replace_by_link(run, &spot, text)
			     : make_new_link(run, &spot, spot.name, text);
	spot_free(&spot);
	return rc;
}

static enum copy_result link_spot(struct run *run, const struct spot *old, const struct spot *to)
{
	const struct outcome outcome = {to->directory, to->name, &old->attributes.fid, NULL};
	struct attempt t = attempt_begin(run, CHANGE_LINK, to->label);
	struct rxafs_attributes a;

	if (!has_name(to, "linked"))
		return COPY_FAILED;
	t.later = true;
	/* The library says so of everything that is no file. */
	while (attempt_again_unless(
		&t, rxafs_link(old->object, &t.request, to->directory, to->name, &a), -EPERM))
		;
	if (t.value != -EPERM)
		return settle_change(&t, &outcome);
	t.later = false;
	attempt_again(&t, old->attributes.kind == RXAFS_FILE ? -EXDEV : -EISDIR);
	return COPY_FAILED;
}

/* Give the first place another name. */
static enum copy_result link_places(struct run *run)
{
	struct spot old, destination = {.label = NULL}, to = {.label = NULL};
	enum copy_result rc = spot_find(run, &run->places[0], &old);
	char *label = NULL;

	if (rc == COPY_GOOD)
		rc = find_destination(run, &destination);
	if (rc == COPY_GOOD && !old.object)
		rc = report_absent(&old);
	if (rc == COPY_GOOD && !fits_slash(&run->places[1], &destination, false))
		rc = COPY_FAILED;
	if (rc == COPY_GOOD)
		rc = find_spot_in(run, &destination, old.name, &to, &label);
	if (rc == COPY_GOOD && old.attributes.fid.volume != destination.attributes.fid.volume &&
	    destination.object)
		rc = report_other_volume(&old, &destination, "use ln -s, or --mount");
	if (rc == COPY_GOOD)
		rc = link_spot(run, &old, &to);
	spot_free(&old);
	spot_free(&destination);
	spot_free(&to);
	free(label);
	return rc;
}

int run_ln(struct run *run)
{
	enum copy_result rc;
	char *text;

	if (run->set.mount) {
		text = format_mount(run->set.mount);
		if (!text)
			return TOOLS_EXIT_USAGE;
		rc = make_link_of_text(run, &run->places[0], text);
		free(text);
	} else if (run->set.symbolic) {
		rc = make_link_of_text(run, &run->places[0], run->arguments[0]);
	} else if (run->place_count != 2) {
		tools_error("ln takes VOLUME:PATH and a second VOLUME:PATH in the same directory");
		return TOOLS_EXIT_USAGE;
	} else {
		rc = link_places(run);
	}
	return rc == COPY_GOOD ? 0 : TOOLS_EXIT_FAILURE;
}
