/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp rm, mkdir, mv and ln: changes of names. Links and mount points are removed, not followed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "program/message.h"
#include "afscp/arguments.h"
#include "afscp/lookup.h"

#define DEPTH_MAX 1536 /* directories below the one that is removed */

/* Remove a file, a link or an empty directory; with --force it may be gone. After a message. */
static enum copy_result remove_one(struct copy *copy, const AFSFid *dir, const char *name,
				   bool directory, const char *label)
{
	struct change c = {.op = directory ? CHANGE_RMDIR : CHANGE_REMOVE,
			   .label = label,
			   .dir = *dir,
			   .name = name};
	struct afs_error error;
	enum copy_result rc = change_try(copy, &c, &error);

	/* Another client has removed it meanwhile. */
	if (rc != COPY_GOOD && copy->set->force && error.number == ENOENT)
		return COPY_GOOD;
	if (rc != COPY_GOOD)
		change_complain(copy, c.op, &error);
	return rc;
}

static enum copy_result remove_directory(struct copy *copy, const AFSFid *dir, const char *name,
					 const AFSFid *fid, const char *label, unsigned depth);

/* Remove the contents of a directory. COPY_FAILED: something is left. */
static enum copy_result remove_below(struct copy *copy, const AFSFid *fid, const char *label,
				     unsigned depth)
{
	enum copy_result rc, all = COPY_GOOD;
	struct entries entries;

	if (depth == DEPTH_MAX) {
		tools_error("%s: more than %d directories deep", label, DEPTH_MAX);
		return COPY_FAILED;
	}
	rc = entries_read(copy, fid, label, &entries);
	for (size_t i = 0; rc == COPY_GOOD && i < entries.count; i++) {
		const struct entry *e = &entries.list[i];
		char *path = copy_join_label(label, e->name);

		/* A directory of the volume has an odd number. */
		if (!path)
			rc = COPY_STOP;
		else if (e->fid.Vnode & 1)
			rc = remove_directory(copy, fid, e->name, &e->fid, path, depth + 1);
		else
			rc = remove_one(copy, fid, e->name, false, path);
		free(path);
		if (rc == COPY_FAILED) {
			all = rc;
			rc = COPY_GOOD;
		}
	}
	entries_free(&entries);
	return rc == COPY_GOOD ? all : rc;
}

static enum copy_result remove_directory(struct copy *copy, const AFSFid *dir, const char *name,
					 const AFSFid *fid, const char *label, unsigned depth)
{
	enum copy_result rc = remove_below(copy, fid, label, depth);

	return rc == COPY_GOOD ? remove_one(copy, dir, name, true, label) : rc;
}

enum copy_result remove_tree(struct copy *copy, const AFSFid *dir, const char *name,
			     const AFSFid *fid, const char *label)
{
	return remove_directory(copy, dir, name, fid, label, 0);
}

static enum copy_result report_absent(const struct target *t)
{
	tools_error("%s: no such file or directory", t->label);
	return COPY_FAILED;
}

/* A name that can be changed: not the root of a volume. */
static bool has_name(const struct target *t, const char *what)
{
	if (t->name[0])
		return true;
	tools_error("%s: the root of a volume, \".\" and \"..\" cannot be %s", t->label, what);
	return false;
}

/* ---- rm ---- */

static enum copy_result rm_one(struct copy *copy)
{
	struct target t;
	enum copy_result rc =
		copy->set->force ? target_find_forced(copy, &t) : target_find(copy, &t);
	bool directory;

	if (rc != COPY_GOOD)
		return rc;
	if (!t.exists)
		return copy->set->force ? COPY_GOOD : report_absent(&t);
	if (!has_name(&t, "removed"))
		return COPY_FAILED;
	directory = t.object.status.FileType == AFS_TYPE_DIR;
	if (!directory)
		return remove_one(copy, &t.dir, t.name, false, t.label);
	if (!copy->set->recursive) {
		tools_error("%s is a directory; remove it with -r", t.label);
		return COPY_FAILED;
	}
	return remove_tree(copy, &t.dir, t.name, &t.object.fid, t.label);
}

int copy_rm(struct copy *copy)
{
	if (glob_sources(copy) != COPY_GOOD)
		return TOOLS_EXIT_FAILURE;
	return copy_each_source(copy, rm_one);
}

/* ---- mkdir ---- */

static enum copy_result make_directory(struct copy *copy, const struct target *t, mode_t mode)
{
	struct change c = {.op = CHANGE_MKDIR,
			   .label = t->label,
			   .dir = t->dir,
			   .name = t->name,
			   .how = change_status((uint32_t)time(NULL), mode)};
	struct afs_error error;
	enum copy_result rc = change_try(copy, &c, &error);

	/* Another client may make the same directory, which -p accepts. */
	if (rc != COPY_GOOD && copy->set->preserve && error.number == EEXIST)
		return COPY_GOOD;
	if (rc != COPY_GOOD) {
		change_complain(copy, c.op, &error);
		return rc;
	}
	if (!(mode & ~c.made.status.UnixModeBits & 07000))
		return COPY_GOOD;
	tools_error("%s: made with the mode %04o, not %04o: servers keep the first digit for "
		    "administrators",
		    t->label, c.made.status.UnixModeBits & 07777, (unsigned)mode);
	return COPY_FAILED;
}

/* Mode of a new directory: --mode, or all rights less the umask. */
static enum copy_result mode_of_directory(struct copy *copy, mode_t *mode)
{
	*mode = 0777 & ~copy->run->umask;
	if (!copy->set->mode ||
	    mode_parse(copy->set->mode, 0777, true, copy->run->umask, mode) == 0)
		return COPY_GOOD;
	tools_error("option --mode: invalid value \"%s\"; use an octal number or u=rwx,go=rx",
		    copy->set->mode);
	return COPY_STOP;
}

/* One directory of a path; *t becomes the place. */
static enum copy_result mkdir_step(struct copy *copy, bool last, struct target *t)
{
	mode_t mode = 0777 & ~copy->run->umask;
	enum copy_result rc;

	if ((rc = target_find(copy, t)) != COPY_GOOD ||
	    (last && (rc = mode_of_directory(copy, &mode)) != COPY_GOOD))
		return rc;
	if (!t->exists)
		return make_directory(copy, t, mode);
	/* A link may lead to a directory: the next step finds out. */
	if (copy->set->preserve && (t->object.status.FileType == AFS_TYPE_DIR ||
				    (t->object.status.FileType == AFS_TYPE_SYMLINK && !last)))
		return COPY_GOOD;
	tools_error("%s: exists already%s", t->label,
		    t->object.status.FileType == AFS_TYPE_DIR ? "; -p accepts that"
							      : ", and is no directory");
	return COPY_FAILED;
}

static enum copy_result mkdir_one(struct copy *copy)
{
	const char *whole = copy->path;
	enum copy_result rc = COPY_GOOD;
	struct target t;
	char *path = strdup(whole);

	if (!path) {
		tools_error("no memory");
		return COPY_STOP;
	}
	copy->path = path;
	/* -p makes each beginning of the path that ends at a slash. */
	for (char *p = path + strspn(path, "/"); rc == COPY_GOOD && copy->set->preserve;) {
		char *slash = strchr(p, '/');

		if (!slash || slash[strspn(slash, "/")] == 0)
			break;
		*slash = 0;
		rc = mkdir_step(copy, false, &t);
		*slash = '/';
		p = slash + strspn(slash, "/");
	}
	if (rc == COPY_GOOD)
		rc = mkdir_step(copy, true, &t);
	copy->path = whole;
	free(path);
	return rc;
}

int copy_mkdir(struct copy *copy)
{
	mode_t mode;

	if (mode_of_directory(copy, &mode) != COPY_GOOD)
		return TOOLS_EXIT_USAGE;
	return copy_each_source(copy, mkdir_one);
}

/* ---- mv ---- */

/* All places must be in one volume. 0, or -1 after a message. */
static int check_volumes(const struct copy *copy, const char *remedy)
{
	const struct run *run = copy->run;

	for (size_t i = 1; i < run->source_count; i++)
		if (strcmp(run->sources[i].volume, run->sources[0].volume) != 0) {
			tools_error("%s:%s and %s:%s are in different volumes; %s",
				    run->sources[0].volume, run->sources[0].path,
				    run->sources[i].volume, run->sources[i].path, remedy);
			return -1;
		}
	return 0;
}

/*
 * Find the place of the object `name`: the destination, or its name in the destination directory.
 */
static enum copy_result place_in(struct copy *copy, const struct target *destination,
				 const char *name, struct target *to)
{
	size_t length = strlen(destination->label);
	AFSFid dir = destination->object.fid;

	*to = *destination;
	if (!destination->exists || destination->object.status.FileType != AFS_TYPE_DIR)
		return COPY_GOOD;
	if (length < sizeof(to->label))
		snprintf(to->label + length, sizeof(to->label) - length, "%s%s",
			 length && destination->label[length - 1] == '/' ? "" : "/", name);
	return target_look(copy, &dir, name, to);
}

/* The last place of the command line, where a link to a directory is followed. */
static enum copy_result destination_of(struct copy *copy, struct target *t)
{
	const struct run *run = copy->run;
	struct afs_object object;
	struct afs_error error;
	enum copy_result rc;

	copy->path = run->sources[run->source_count - 1].path;
	rc = target_find(copy, t);
	if (rc != COPY_GOOD)
		return rc;
	if (t->exists && t->object.status.FileType == AFS_TYPE_SYMLINK &&
	    afs_client_walk(copy->client, &copy->volume, copy->path, true, &object, &error) == 0 &&
	    object.status.FileType == AFS_TYPE_DIR)
		t->object = object;
	if (run->source_count > 2 && (!t->exists || t->object.status.FileType != AFS_TYPE_DIR)) {
		tools_error("%s is not a directory, as several sources require", t->label);
		return COPY_FAILED;
	}
	return COPY_GOOD;
}

/*
 * A slash at the end says that the place is a directory, or is to become one. Without this check
 * the second of two files that are moved to "DIR/" would replace the first if there is no such
 * directory.
 */
static bool fits_slash(const char *path, const struct target *t, uint32_t type)
{
	size_t length = strlen(path);

	if (length == 0 || path[length - 1] != '/' || !t->name[0])
		return true;
	if (t->exists ? t->object.status.FileType == AFS_TYPE_DIR : type == AFS_TYPE_DIR)
		return true;
	tools_error("%s is not a directory; make it with mkdir", t->label);
	return false;
}

static bool same_object(const struct target *a, const struct target *b)
{
	return a->exists && b->exists && a->object.fid.Vnode == b->object.fid.Vnode &&
	       a->object.fid.Unique == b->object.fid.Unique;
}

static enum copy_result mv_one(struct copy *copy, const struct target *destination)
{
	const struct run *run = copy->run;
	struct target from, to;
	enum copy_result rc = target_find(copy, &from);
	struct change c = {.op = CHANGE_RENAME};
	char label[700];

	if (rc != COPY_GOOD)
		return rc;
	if (!from.exists)
		return report_absent(&from);
	if (!has_name(&from, "renamed") || !fits_slash(run->sources[run->source_count - 1].path,
						       destination, from.object.status.FileType))
		return COPY_FAILED;
	rc = place_in(copy, destination, from.name, &to);
	if (rc != COPY_GOOD)
		return rc;
	if (same_object(&from, &to)) {
		tools_error("%s and %s are the same file", from.label, to.label);
		return COPY_FAILED;
	}
	if (to.dir.Vnode == from.object.fid.Vnode && to.dir.Unique == from.object.fid.Unique) {
		tools_error("%s cannot be moved into itself", from.label);
		return COPY_FAILED;
	}
	snprintf(label, sizeof(label), "%s: cannot rename it to %s", from.label, to.label);
	c.label = label;
	c.dir = from.dir;
	c.name = from.name;
	c.new_dir = to.dir;
	c.new_name = to.name;
	c.fid = from.object.fid;
	return change_make(copy, &c);
}

int copy_mv(struct copy *copy)
{
	const struct run *run = copy->run;
	enum copy_result rc = COPY_GOOD;
	struct target destination;
	bool all = true;

	if (check_volumes(copy, "copy it with get and put, and remove it then") < 0 ||
	    destination_of(copy, &destination) != COPY_GOOD)
		return TOOLS_EXIT_FAILURE;
	for (size_t i = 0; i + 1 < run->source_count && rc != COPY_STOP; i++) {
		copy->path = run->sources[i].path;
		rc = mv_one(copy, &destination);
		all &= rc == COPY_GOOD;
	}
	return all ? 0 : TOOLS_EXIT_FAILURE;
}

/* ---- ln ---- */

/* --mount: "#NAME." or, of "%NAME", "%NAME."; NAME may begin with "CELL:". NULL after a message. */
static char *mount_text(const char *volume)
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

/* Make a symbolic link of that text and mode at copy->path. */
static enum copy_result make_symlink(struct copy *copy, const char *text, enum change_op op)
{
	struct target t;
	enum copy_result rc = target_find(copy, &t);
	struct change c = {
		.op = op,
		.text = text,
		.how = change_status((uint32_t)time(NULL), op == CHANGE_MOUNT ? 0644 : 0777)};

	if (rc != COPY_GOOD)
		return rc;
	if (!has_name(&t, "replaced") || !fits_slash(copy->path, &t, AFS_TYPE_SYMLINK))
		return COPY_FAILED;
	if (*text == 0 || strlen(text) > AFSPATHMAX) {
		tools_error("%s: the target of a link has 1 to %d bytes", t.label, AFSPATHMAX);
		return COPY_FAILED;
	}
	c.label = t.label;
	c.dir = t.dir;
	c.name = t.name;
	if (t.exists && copy->set->force && t.object.status.FileType != AFS_TYPE_DIR)
		return change_replace(copy, &c);
	return change_make(copy, &c);
}

/* Give the first place another name. */
static enum copy_result make_link(struct copy *copy)
{
	const struct run *run = copy->run;
	struct target old, destination, t;
	struct change c = {.op = CHANGE_LINK};
	enum copy_result rc;

	copy->path = run->sources[0].path;
	if ((rc = target_find(copy, &old)) != COPY_GOOD ||
	    (rc = destination_of(copy, &destination)) != COPY_GOOD)
		return rc;
	if (!old.exists)
		return report_absent(&old);
	if (!fits_slash(run->sources[1].path, &destination, AFS_TYPE_FILE))
		return COPY_FAILED;
	rc = place_in(copy, &destination, old.name, &t);
	if (rc != COPY_GOOD)
		return rc;
	if (!has_name(&t, "linked"))
		return COPY_FAILED;
	c.label = t.label;
	c.dir = t.dir;
	c.name = t.name;
	c.fid = old.object.fid;
	return change_make(copy, &c);
}

int copy_ln(struct copy *copy)
{
	struct run *run = copy->run;
	enum copy_result rc = COPY_FAILED;
	char *text;

	copy->path = run->sources[0].path;
	if (copy->set->mount) {
		text = mount_text(copy->set->mount);
		if (!text)
			return TOOLS_EXIT_USAGE;
		rc = make_symlink(copy, text, CHANGE_MOUNT);
		free(text);
	} else if (copy->set->symbolic) {
		rc = make_symlink(copy, run->arguments[0], CHANGE_SYMLINK);
	} else if (run->source_count != 2) {
		tools_error("ln takes VOLUME:PATH and a second VOLUME:PATH in the same directory");
		return TOOLS_EXIT_USAGE;
	} else if (check_volumes(copy, "use ln -s, or --mount") == 0) {
		rc = make_link(copy);
	}
	return rc == COPY_GOOD ? 0 : TOOLS_EXIT_FAILURE;
}
