/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp ls and stat. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/admin.h>

#include "afs/rights.h"
#include "program/message.h"
#include "program/report.h"
#include "afscp/commands.h"
#include "afscp/output.h"
#include "afscp/place.h"
#include "afscp/tasks.h"
#include "afscp/tree.h"

/* The target of a link, or the text of a mount point; free(). NULL after a message. */
static char *read_target(struct run *run, rxafs_object *object, const struct rxafs_attributes *a,
			 const char *label)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, label);
	char *text = NULL;

	while (attempt_again(&t, a->mount_point ? rxafs_mount_text(object, &text)
						: rxafs_readlink(object, &t.request, &text)))
		;
	return t.value < 0 ? NULL : text;
}

static bool has_target(const struct rxafs_attributes *a)
{
	return a->mount_point || a->kind == RXAFS_SYMLINK;
}

/* The same of a name in a directory. */
static char *read_named_target(struct run *run, rxafs_object *directory,
			       const struct rxafs_name *name, const struct rxafs_attributes *a,
			       const char *label)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, label);
	rxafs_object *object;
	char *text;

	while (attempt_again(&t, rxafs_take_object(directory, &t.request, name, a, &object)))
		;
	if (t.value < 0)
		return NULL;
	text = read_target(run, object, a, label);
	rxafs_release(object);
	return text;
}

/* ---- ls ---- */

/* One line of ls -l. */
static void print_long(const char *name, const struct rxafs_attributes *a, const char *target)
{
	char mode[11], when[32];

	printf("%s %3lu %8u %14lld %s ", format_mode(mode, a), (unsigned long)a->stat.st_nlink,
	       a->stat.st_uid, (long long)a->stat.st_size,
	       format_mtime(when, sizeof(when), a->stat.st_mtim.tv_sec));
	print_name(name);
	if (target) {
		printf(" -> ");
		print_name(target);
	}
	putchar('\n');
}

static json_t *pack_listed(const char *name, const struct rxafs_attributes *a, int result,
			   const char *target)
{
	json_t *o = result < 0 ? json_pack("{s:i}", "error", -result) : pack_attributes(a);

	if (!o)
		return NULL;
	pack_bytes(o, "name", name);
	if (target)
		pack_bytes(o, "target", target);
	return o;
}

/* A link of a directory that is listed, whose target a thread reads. */
struct sought {
	struct run *run;
	const struct tree_item *dir;
	size_t at;     /* its index there */
	char **target; /* the result; NULL after a message */
};

static void read_sought_target(void *arg)
{
	struct sought *s = arg;
	const struct rxafs_name *name = &s->dir->list->names.list[s->at];
	char *label = place_join(s->dir->path, name->text);

	if (label)
		*s->target = read_named_target(s->run, s->dir->directory, name,
					       &s->dir->list->attributes[s->at], label);
	free(label);
	free(s);
}

static bool is_target_wanted(const struct tree_item *dir, size_t i)
{
	return dir->list->results[i] == 0 && has_target(&dir->list->attributes[i]);
}

/* The targets of all links of a directory, several at a time; free() each. NULL after a message. */
static char **read_targets(struct run *run, const struct tree_item *dir)
{
	size_t count = dir->list->names.count;
	char **targets = calloc(count + 1, sizeof(*targets));
	struct tasks *tasks = NULL;

	if (!targets) {
		tools_error("no memory");
		return NULL;
	}
	for (size_t i = 0; i < count && !atomic_load(&run->interrupted); i++) {
		struct sought *s = is_target_wanted(dir, i) ? malloc(sizeof(*s)) : NULL;

		if (!s)
			continue;
		*s = (struct sought){run, dir, i, &targets[i]};
		tasks = tasks ? tasks : tasks_open(TASKS_THREADS, TASKS_WAITING);
		tasks_add(tasks, read_sought_target, s);
	}
	tasks_close(tasks);
	return targets;
}

/* A directory in a list: its names. False: some failed. */
static bool show_listed(struct run *run, const struct tree_item *dir, json_t *list)
{
	bool wanted = run->set.long_list || list, good = true;
	char **targets = wanted ? read_targets(run, dir) : NULL;

	if (wanted && !targets)
		return false;

	for (size_t i = 0; i < dir->list->names.count && !ferror(stdout); i++) {
		const struct rxafs_name *name = &dir->list->names.list[i];
		const struct rxafs_attributes *a = &dir->list->attributes[i];
		int result = dir->list->results[i];
		const char *target = wanted ? targets[i] : NULL;

		good &= !wanted || target || !is_target_wanted(dir, i);
		if (list) {
			json_array_append_new(list, pack_listed(name->text, a, result, target));
		} else if (run->set.long_list && result < 0) {
			session_complain(run, name->text, -result);
			good = false;
		} else if (run->set.long_list) {
			print_long(name->text, a, target);
		} else {
			print_name(name->text);
			putchar('\n');
		}
	}
	for (size_t i = 0; wanted && i < dir->list->names.count; i++)
		free(targets[i]);
	free(targets);
	return good;
}

/* A directory that is entered, with its heading if there are several. */
static bool show_directory(struct run *run, const struct place *place, const struct tree_item *dir)
{
	static bool later;
	json_t *list = run->set.json ? json_array() : NULL, *o;
	bool good;

	if (!list && (run->set.all_levels || run->place_count > 1)) {
		if (later)
			putchar('\n');
		print_name(dir->path);
		puts(":");
		later = true;
	}
	good = show_listed(run, dir, list);
	if (!list)
		return good;
	o = json_pack("{s:s, s:o}", "volume", place->volume ? place->volume : "", "entries", list);
	pack_bytes(o, "path", dir->depth == 0 ? place->path : dir->path);
	return print_json(run, o) == 0 && good;
}

static bool list_tree(struct run *run, const struct place *place, rxafs_object *directory)
{
	struct tree_options o = {.names_only = !run->set.long_list && !run->set.json,
				 .enter_mounts = run->set.all_levels && !run->set.one_volume,
				 .depth = run->set.all_levels ? UINT_MAX : 0};
	struct tree *tree = tree_open(run, directory, place->text, &o);
	struct tree_item item;
	bool good = tree;

	while (tree && tree_next(tree, &item) && !ferror(stdout))
		switch (item.event) {
		case TREE_ENTER:
			good &= show_directory(run, place, &item);
			break;
		case TREE_FAILED:
			good = false;
			break;
		default:
			break;
		}
	if (tree)
		tree_close(tree);
	return good;
}

/* One object by itself. */
static bool list_object(struct run *run, const struct place *place, rxafs_object *object,
			const struct rxafs_attributes *a)
{
	const char *name = place->shown ? place->shown : place->path;
	char *target = NULL;
	bool good = true;

	if ((run->set.long_list || run->set.json) && has_target(a)) {
		target = read_target(run, object, a, place->text);
		good = target;
	}
	if (run->set.json) {
		json_t *o = json_pack("{s:s, s:[o]}", "volume", place->volume ? place->volume : "",
				      "entries", pack_listed(name, a, 0, target));

		pack_bytes(o, "path", place->path);
		good &= print_json(run, o) == 0;
	} else if (run->set.long_list) {
		print_long(name, a, target);
	} else {
		print_name(name);
		putchar('\n');
	}
	free(target);
	return good;
}

static bool list_place(struct run *run, const struct place *place)
{
	struct rxafs_attributes a;
	rxafs_object *object;
	bool good;

	/* What a pattern matches is shown, not what is in it. */
	if (place_open(run, place, false, &object, &a) != COPY_GOOD)
		return false;
	good = a.kind == RXAFS_DIRECTORY && !place->shown ? list_tree(run, place, object)
							  : list_object(run, place, object, &a);
	rxafs_release(object);
	return good;
}

int run_list(struct run *run)
{
	bool good = true;

	if (place_expand(run) != COPY_GOOD)
		return TOOLS_EXIT_FAILURE;
	for (size_t i = 0;
	     i < run->place_count && !atomic_load(&run->interrupted) && !ferror(stdout); i++)
		good &= list_place(run, &run->places[i]);
	return good && !atomic_load(&run->interrupted) ? 0 : TOOLS_EXIT_FAILURE;
}

/* ---- stat ---- */

/* What is asked for beside the attributes. */
struct details {
	char *target; /* of a link or mount point */
	char *volume;
	uint32_t own, anonymous; /* rights */
	char server[TOOLS_ADDRESS_TEXT];
};

static void free_details(struct details *d)
{
	free(d->target);
	free(d->volume);
}

static bool learn_details(struct run *run, const struct place *place, rxafs_object *object,
			  const struct rxafs_attributes *a, struct details *d)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, place->text);
	struct rxafs_server server;
	size_t length;

	if (has_target(a) && !(d->target = read_target(run, object, a, place->text)))
		return false;
	/* The volume behind it may be away. */
	if (a->mount_point)
		return true;
	while (attempt_again(&t, rxafs_get_rights(object, &t.request, &d->own, &d->anonymous)))
		;
	if (t.value < 0)
		return false;
	if (rxafs_where(object, &t.request, &server, 1) == 1)
		tools_address_text(&server.address, d->server, sizeof(d->server));
	if (rxafs_getxattr(object, &t.request, "afs.volume", &d->volume, &length) < 0)
		d->volume = NULL;
	return true;
}

static json_t *pack_status(const struct place *place, const struct rxafs_attributes *a,
			   const struct details *d)
{
	json_t *o = pack_attributes(a);

	if (!o)
		return NULL;
	json_object_set_new(o, "volume",
			    json_string(place->volume ? place->volume
					: d->volume   ? d->volume
						      : ""));
	pack_bytes(o, "path", place->path);
	json_object_set_new(o, "author", json_integer(a->author));
	json_object_set_new(o, "data_version", json_integer((json_int_t)a->version));
	json_object_set_new(o, "server_mtime", json_integer((json_int_t)a->stat.st_ctim.tv_sec));
	json_object_set_new(o, "caller_access", json_integer(d->own));
	json_object_set_new(o, "anonymous_access", json_integer(d->anonymous));
	json_object_set_new(o, "server", json_string(d->server));
	if (d->target)
		pack_bytes(o, "link", d->target);
	return o;
}

static void print_status(const struct place *place, const struct rxafs_attributes *a,
			 const struct details *d)
{
	char mode[11], when[2][32], rights[2][AFS_ACL_RIGHTS];
	const struct stat *s = &a->stat;

	print_name(place->text);
	printf("\n  type         %s", a->mount_point ? "symbolic link" : name_of_kind(a));
	if (d->target) {
		printf(a->mount_point ? ", mount point " : " to ");
		print_name(d->target);
	}
	printf("\n  length       %lld\n  mode         %04o (%s)\n  links        %lu\n"
	       "  owner        %u, group %u, last writer %u\n"
	       "  modified     %s, stored %s\n  data version %llu\n"
	       "  rights       %s of the caller, %s of anyone\n"
	       "  FID          %u.%u.%u\n  server       %s\n",
	       (long long)(a->mount_point ? (off_t)strlen(d->target) : s->st_size), mode_of(a),
	       format_mode(mode, a), a->mount_point ? 1ul : (unsigned long)s->st_nlink, s->st_uid, s->st_gid, a->author,
	       format_mtime(when[0], sizeof(when[0]), s->st_mtim.tv_sec),
	       format_mtime(when[1], sizeof(when[1]), s->st_ctim.tv_sec),
	       (unsigned long long)a->version, afs_rights_text(d->own, rights[0]),
	       afs_rights_text(d->anonymous, rights[1]), a->fid.volume, a->fid.vnode, a->fid.unique,
	       d->server);
}

static bool show_status(struct run *run, const struct place *place)
{
	struct details d = {.target = NULL};
	struct rxafs_attributes a;
	rxafs_object *object;
	bool good;

	if (place_open(run, place, false, &object, &a) != COPY_GOOD)
		return false;
	good = learn_details(run, place, object, &a, &d);
	if (good && run->set.json)
		good = tools_json_print(pack_status(place, &a, &d)) == 0;
	else if (good)
		print_status(place, &a, &d);
	free_details(&d);
	rxafs_release(object);
	return good;
}

int run_stat(struct run *run)
{
	return run_each_place(run, show_status);
}
