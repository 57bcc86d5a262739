/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp sync: its two sides, and its report. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rxafs/stream.h>

#include "afscp/commands.h"
#include "afscp/output.h"
#include "afscp/sync.h"
#include "program/message.h"

#define EXIT_PARTIAL  23 /* as rsync(1) has them */
#define EXIT_VANISHED 24

/* ---- what is done ---- */

static const char *const act_names[] = {
	[SYNC_COPY] = "copy",	  [SYNC_MAKE] = "mkdir",    [SYNC_LINK] = "link",
	[SYNC_REMOVE] = "delete", [SYNC_ADJUST] = "status",
};

/* A name on a terminal or in a log: one line, which gives no orders. */
static void print_path(enum sync_act act, const char *path, bool folder)
{
	char *text = strdup(*path ? path : ".");

	if (text)
		printf("%s%s%s\n", act == SYNC_REMOVE ? "deleting " : "", tools_harmless(text),
		       folder ? "/" : "");
	free(text);
}

static void print_line(struct sync *s, json_t *object)
{
	pthread_mutex_lock(&s->list_lock);
	print_json(s->run, object);
	pthread_mutex_unlock(&s->list_lock);
}

static void count_act(struct sync *s, enum sync_act act, uint64_t bytes)
{
	atomic_uint_fast64_t *const counters[] = {
		[SYNC_COPY] = &s->run->files, [SYNC_MAKE] = &s->made,
		[SYNC_LINK] = &s->linked,     [SYNC_REMOVE] = &s->removed,
		[SYNC_ADJUST] = &s->adjusted,
	};

	atomic_fetch_add(counters[act], 1);
	atomic_fetch_add(&s->run->bytes, bytes);
}

void sync_note(struct sync *s, enum sync_act act, const char *path, bool folder, uint64_t bytes)
{
	count_act(s, act, bytes);
	if (s->set->json) {
		print_line(s, json_pack("{s:s, s:o, s:b, s:I}", "action", act_names[act], "path",
					tools_json_text(*path ? path : "."), "directory", folder,
					"bytes", (json_int_t)bytes));
	} else if (s->set->verbose || s->dry_run) {
		pthread_mutex_lock(&s->list_lock);
		print_path(act, path, folder);
		pthread_mutex_unlock(&s->list_lock);
	} else {
		copy_progress(s->run, path);
	}
}

static json_t *pack_summary(struct sync *s)
{
	return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "summary", true,
			 "compared", (json_int_t)atomic_load(&s->compared), "copied",
			 (json_int_t)atomic_load(&s->run->files), "bytes",
			 (json_int_t)atomic_load(&s->run->bytes), "directories",
			 (json_int_t)atomic_load(&s->made), "links",
			 (json_int_t)atomic_load(&s->linked), "deleted",
			 (json_int_t)atomic_load(&s->removed), "status",
			 (json_int_t)atomic_load(&s->adjusted), "failed",
			 (json_int_t)atomic_load(&s->run->failed), "vanished",
			 (json_int_t)atomic_load(&s->vanished));
}

static void print_summary(const struct sync *s)
{
	printf("%llu files compared, %llu copied (%llu bytes), %llu directories made, "
	       "%llu deleted%s\n",
	       (unsigned long long)atomic_load(&s->compared),
	       (unsigned long long)atomic_load(&s->run->files),
	       (unsigned long long)atomic_load(&s->run->bytes),
	       (unsigned long long)atomic_load(&s->made),
	       (unsigned long long)atomic_load(&s->removed), s->dry_run ? " (dry run)" : "");
}

/* Numbers of files, and of the transport with --stats and --json. */
static void report_sync(struct sync *s, const struct tools_usage *start,
			const struct counters *before)
{
	bool whole = s->set->stats || s->set->json;
	json_t *report = whole ? copy_make_report(s->run, start, before) : NULL, *summary;

	if (s->set->json) {
		summary = pack_summary(s);
		json_object_update_missing(summary, report);
		json_decref(report);
		print_line(s, summary);
		return;
	}
	if (whole || s->set->verbose)
		print_summary(s);
	if (whole)
		copy_print_report(report);
}

static void report_failures(const struct sync *s)
{
	unsigned long long failed = atomic_load(&s->run->failed);

	if (run_interrupted(s->run))
		tools_error("%s: %llu files compared, %llu copied; the next run goes on",
			    s->from_label, (unsigned long long)atomic_load(&s->compared),
			    (unsigned long long)atomic_load(&s->run->files));
	else if (failed)
		tools_error("%s: %llu objects failed%s", s->from_label, failed,
			    atomic_load(&s->stopped) ? ", the rest was not attempted"
						     : "; the others are synchronised");
}

/* ---- sides ---- */

/* One side as the command line names it. */
struct side {
	const char *text;
	bool in_afs;
	struct place place;
	bool contents; /* what is in the directory, as DIR/ and DIR/. say */
	bool target;   /* the destination: a link to a directory is followed */
	char *name;    /* the last part of the path; owned */
	struct folder folder;
	bool is_folder; /* `folder` is the object itself, else what contains it */
	bool missing;
	struct item item;
};

static bool names_inside(const char *text)
{
	size_t length = strlen(text);

	return !length || text[length - 1] == '/' || text[length - 1] == ':' ||
	       !strcmp(text, ".") || !strcmp(text, "..") ||
	       (length > 1 &&
		(!strcmp(text + length - 2, "/.") || !strcmp(text + length - 2, ":."))) ||
	       (length > 2 && !strcmp(text + length - 3, "/.."));
}

/* Before anything is opened. False: no memory. */
static bool name_side(struct run *run, const char *text, struct side *side)
{
	const char *end = text + strlen(text), *from;

	*side = (struct side){.text = text, .folder.fd = -1};
	side->in_afs = place_parse(run, text, &side->place);
	side->contents = names_inside(text);
	while (end > text && end[-1] == '/')
		end--;
	for (from = end; from > text && from[-1] != '/' && !(side->in_afs && from[-1] == ':');)
		from--;
	side->name = strndup(from, (size_t)(end - from));
	return side->name;
}

static void close_side(struct side *side)
{
	if (side->folder.ops)
		side->folder.ops->leave(&side->folder);
	free(side->name);
}

static enum copy_result open_afs_root(struct run *run, struct side *side)
{
	struct rxafs_attributes a;
	rxafs_object *object;
	enum copy_result rc = place_open(run, &side->place, true, &object, &a);

	if (rc != COPY_GOOD)
		return rc;
	item_of_attributes(&side->item, &a);
	side->is_folder = a.kind == RXAFS_DIRECTORY;
	open_afs_folder(run, object, &side->folder);
	if (side->is_folder)
		return COPY_GOOD;
	tools_error("%s: it is not a directory", side->text);
	return COPY_FAILED;
}

static enum copy_result open_in_afs(struct run *run, struct side *side)
{
	struct spot spot;
	enum copy_result rc;
	bool folder;

	if (side->contents && !side->target)
		return open_afs_root(run, side);
	rc = spot_find(run, &side->place, &spot);
	if (rc != COPY_GOOD)
		return rc;
	if (side->target && spot.object && spot.attributes.kind == RXAFS_SYMLINK) {
		spot_free(&spot);
		return open_afs_root(run, side);
	}
	folder = spot.object && spot.attributes.kind == RXAFS_DIRECTORY;
	side->missing = !spot.object;
	if (spot.object)
		item_of_attributes(&side->item, &spot.attributes);
	if (folder && spot.attributes.mount_point) {
		spot_free(&spot);
		return open_afs_root(run, side);
	}
	side->is_folder = folder;
	open_afs_folder(run, rxafs_hold(folder ? spot.object : spot.directory), &side->folder);
	spot_free(&spot);
	return COPY_GOOD;
}

/* The directory that a path is in. */
static enum copy_result open_local_above(struct run *run, struct side *side)
{
	size_t length = strlen(side->text);
	char *path;
	int rc;

	while (length && side->text[length - 1] == '/')
		length--;
	length -= strlen(side->name);
	path = length ? strndup(side->text, length) : strdup(".");
	rc = path ? open_local_folder(run, path, &side->folder) : -1;
	free(path);
	if (rc == 0)
		return COPY_GOOD;
	side->folder.ops = NULL;
	return local_failed(run, side->text, "open its directory");
}

static enum copy_result open_at_hand(struct run *run, struct side *side)
{
	struct stat st;

	bool follow = side->contents ||
		      (side->target && stat(side->text, &st) == 0 && S_ISDIR(st.st_mode));

	if ((follow ? stat(side->text, &st) : lstat(side->text, &st)) < 0) {
		if (errno != ENOENT)
			return local_failed(run, side->text, "open it");
		side->missing = true;
		return open_local_above(run, side);
	}
	side->is_folder = S_ISDIR(st.st_mode);
	if (side->contents && !side->is_folder) {
		errno = ENOTDIR;
		return local_failed(run, side->text, "open it");
	}
	if (!side->is_folder) {
		enum copy_result rc = open_local_above(run, side);
		bool exists;

		return rc != COPY_GOOD ? rc
				       : side->folder.ops->look(&side->folder, side->name,
								side->text, &side->item, &exists);
	}
	side->item = (struct item){.kind = ITEM_FOLDER,
				   .mode = st.st_mode & 0777,
				   .mtime = time_in_afs(st.st_mtim.tv_sec)};
	if (open_local_folder(run, side->text, &side->folder) == 0)
		return COPY_GOOD;
	side->folder.ops = NULL;
	return local_failed(run, side->text, "open it");
}

static enum copy_result open_side(struct run *run, struct side *side)
{
	return side->in_afs ? open_in_afs(run, side) : open_at_hand(run, side);
}

static enum copy_result open_sync_source(struct run *run, struct side *from)
{
	enum copy_result rc = open_side(run, from);

	from->item.name = from->name;
	if (rc != COPY_GOOD || !from->missing)
		return rc;
	tools_error("%s: there is no such file or directory", from->text);
	return COPY_FAILED;
}

/*
 * The directory at the destination, which is made if it is missing: then side->missing stays true. In a dry run it stays
 * without operations.
 */
static enum copy_result open_target_folder(struct sync *s, struct side *to)
{
	const struct looks usual = {.set_mode = true, .mode = 0777 & ~s->run->umask};
	enum copy_result rc = open_side(s->run, to);
	struct folder made = {.fd = -1};

	if (rc != COPY_GOOD || to->is_folder)
		return rc;
	if (!to->missing) {
		tools_error("%s: it is not a directory", to->text);
		return COPY_FAILED;
	}
	sync_note(s, SYNC_MAKE, "", true, 0);
	if (!s->dry_run)
		rc = to->folder.ops->make(&to->folder, to->name, to->text, &made);
	/* Unless it is the copy, which gets the mode of its source. */
	if (rc == COPY_GOOD && made.ops)
		rc = made.ops->set_looks(&made, NULL, &usual, to->text);
	to->folder.ops->leave(&to->folder);
	to->folder = made;
	to->is_folder = true;
	return rc;
}

/* ---- the command ---- */

static void learn_target(struct sync *s, const struct side *to)
{
	if (to->folder.ops && to->in_afs)
		rxafs_get_fid(to->folder.object, &s->target);
}

/* SOURCE without a slash at its end becomes a directory of that name in DEST. */
static enum copy_result enter_named(struct sync *s, struct side *to, const char *name)
{
	struct folder child = {.fd = -1};
	char *label = copy_join_label(to->text, name);
	enum copy_result rc = label ? COPY_GOOD : COPY_STOP;
	bool exists = false;

	if (rc == COPY_GOOD && to->folder.ops)
		rc = to->folder.ops->look(&to->folder, name, label, &to->item, &exists);
	if (rc == COPY_GOOD && exists && to->item.kind != ITEM_FOLDER) {
		tools_error("%s: it is not a directory", label);
		rc = COPY_FAILED;
	}
	if (rc == COPY_GOOD && exists)
		rc = to->folder.ops->enter(&to->folder, &to->item, label, &child);
	if (rc == COPY_GOOD && !exists) {
		sync_note(s, SYNC_MAKE, "", true, 0);
		if (!s->dry_run)
			rc = to->folder.ops->make(&to->folder, name, label, &child);
	}
	if (to->folder.ops)
		to->folder.ops->leave(&to->folder);
	to->folder = child;
	to->missing = !exists;
	s->to_label = label;
	return rc;
}

static enum copy_result sync_folders(struct sync *s, struct side *from, struct side *to)
{
	enum copy_result rc = open_target_folder(s, to);

	if (rc == COPY_GOOD && !from->contents)
		rc = enter_named(s, to, from->name);
	if (rc == COPY_GOOD && !s->to_label)
		s->to_label = strdup(to->text);
	if (rc != COPY_GOOD)
		return rc;
	learn_target(s, to);
	if (from->in_afs && to->in_afs) {
		struct rxafs_fid fid;

		rxafs_get_fid(from->folder.object, &fid);
		if (rxafs_fid_same(&fid, &s->target)) {
			tools_error("%s and %s are the same directory", from->text, to->text);
			return COPY_FAILED;
		}
	}
	sync_tree(s, &from->folder, &to->folder, &from->item, to->missing ? NULL : &to->item);
	from->folder.ops = to->folder.ops = NULL;
	return COPY_GOOD;
}

/* A file or link: into the directory DEST, or to that name. */
static enum copy_result sync_single(struct sync *s, struct side *from, struct side *to)
{
	enum copy_result rc;
	const char *name = from->name;

	rc = to->contents ? open_target_folder(s, to) : open_side(s->run, to);
	if (rc != COPY_GOOD)
		return rc;
	if (!to->is_folder)
		name = to->name;
	s->to_label = to->is_folder ? copy_join_label(to->text, name) : strdup(to->text);
	if (!s->to_label)
		return COPY_STOP;
	sync_one(s, &from->folder, &to->folder, &from->item, name);
	return COPY_GOOD;
}

static enum copy_result sync_sides(struct sync *s, struct side *from, struct side *to)
{
	enum copy_result rc;

	to->target = true;
	rc = open_sync_source(s->run, from);
	if (rc != COPY_GOOD)
		return rc;
	if (from->item.kind == ITEM_SPECIAL) {
		tools_error("%s: it is neither a file nor a directory nor a link", from->text);
		return COPY_FAILED;
	}
	return from->is_folder ? sync_folders(s, from, to) : sync_single(s, from, to);
}

/* Each directory of the tree that is open needs a descriptor. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int status_of(const struct sync *s, enum copy_result rc)
{
	if (rc != COPY_GOOD || atomic_load(&s->stopped))
		return TOOLS_EXIT_FAILURE;
	if (atomic_load(&s->run->failed))
		return EXIT_PARTIAL;
	return atomic_load(&s->vanished) ? EXIT_VANISHED : 0;
}

static void init_sync(struct sync *s, struct run *run)
{
	*s = (struct sync){.run = run,
			   .set = &run->set,
			   .filters = &run->set.filters,
			   .dry_run = run->set.dry_run};
	pthread_mutex_init(&s->list_lock, NULL);
	pthread_mutex_init(&s->seen_lock, NULL);
	pace_init(&s->pace, run->set.bwlimit);
}

static void end_sync(struct sync *s)
{
	pace_destroy(&s->pace);
	pthread_mutex_destroy(&s->list_lock);
	pthread_mutex_destroy(&s->seen_lock);
	fid_set_free(&s->entered);
	fid_set_free(&s->emptied);
	free(s->from_label);
	free(s->to_label);
}

int run_sync(struct run *run)
{
	struct side from = {.folder.fd = -1}, to = {.folder.fd = -1};
	struct sync s;
	enum copy_result rc = COPY_STOP;
	struct tools_usage start;
	struct counters before;
	int status;

	tools_usage_now(&start);
	run_counters(run, &before);
	signal(SIGXFSZ, SIG_IGN); /* a write fails instead */
	init_sync(&s, run);
	allow_descriptors();
	progress_start(&run->progress,
		       run->progress.on && !run->set.verbose && !s.dry_run && !run->set.json, true);
	s.from_label = strdup(run->arguments[0]);
	if (!name_side(run, run->arguments[0], &from) || !name_side(run, run->arguments[1], &to) ||
	    !s.from_label)
		tools_error("no memory");
	else if (!*from.text || !*to.text)
		tools_error("the name of the %s is empty", *from.text ? "destination" : "source");
	else if (!from.in_afs && !to.in_afs)
		tools_error("neither \"%s\" nor \"%s\" is in AFS: VOLUME:PATH or /afs/CELL/PATH",
			    from.text, to.text);
	else
		rc = sync_sides(&s, &from, &to);
	progress_end(&run->progress, "total", atomic_load(&run->bytes),
		     rc == COPY_GOOD && atomic_load(&run->bytes), atomic_load(&run->files));
	if (rc == COPY_GOOD) {
		report_sync(&s, &start, &before);
		report_failures(&s);
	}
	status = status_of(&s, rc);
	close_side(&from);
	close_side(&to);
	end_sync(&s);
	return status;
}
