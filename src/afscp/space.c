/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp df, quota and du: the space of volumes and of directories. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/admin.h>

#include "program/message.h"
#include "program/number.h"
#include "program/report.h"
#include "afscp/commands.h"
#include "afscp/output.h"
#include "afscp/tree.h"

/* ---- volumes ---- */

/* The volume of a place. False after a message. */
static bool examine_place(struct run *run, const struct place *place, struct rxafs_volume *volume)
{
	struct attempt t;
	rxafs_object *object;

	if (place_open(run, place, true, &object, NULL) != COPY_GOOD)
		return false;
	t = attempt_begin(run, CHANGE_NONE, place->text);
	while (attempt_again(&t, rxafs_examine(object, &t.request, volume)))
		;
	rxafs_release(object);
	return t.value >= 0;
}

/* The name by which the user knows it. */
static const char *name_of_volume(const struct place *place, const struct rxafs_volume *volume)
{
	return place->volume ? place->volume : volume->name;
}

static json_t *pack_volume(const struct place *place, const struct rxafs_volume *v)
{
	const char *cell = session_is_unnamed(v->cell) ? NULL : v->cell;
	json_t *o = json_pack("{s:s, s:s?, s:I, s:I, s:I}", "volume", name_of_volume(place, v),
			      "cell", cell, "used_kib", (json_int_t)v->used, "free_kib",
			      (json_int_t)v->free, "total_kib", (json_int_t)v->total);

	if (o)
		json_object_set_new(o, "quota_kib",
				    v->quota ? json_integer((json_int_t)v->quota) : json_null());
	return o;
}

static void print_space(const struct place *place, const struct rxafs_volume *v)
{
	char used[32], quota[32] = "no limit", room[32], share[16] = "";

	tools_format_size(used, sizeof(used), v->used * 1024);
	tools_format_size(room, sizeof(room), v->free * 1024);
	if (v->quota) {
		tools_format_size(quota, sizeof(quota), v->quota * 1024);
		snprintf(share, sizeof(share), " (%.0f %%)",
			 (double)v->used * 100 / (double)v->quota);
	}
	printf("%s: %s used, quota %s%s; %s free on the server's partition\n",
	       name_of_volume(place, v), used, quota, share, room);
}

int run_df(struct run *run)
{
	json_t *list = run->set.json ? json_array() : NULL;
	struct rxafs_volume volume;
	bool all = true;

	for (size_t i = 0; i < run->place_count && !atomic_load(&run->interrupted); i++) {
		const struct place *place = &run->places[i];

		if (!examine_place(run, place, &volume))
			all = false;
		else if (list)
			json_array_append_new(list, pack_volume(place, &volume));
		else
			print_space(place, &volume);
	}
	if (list && tools_json_print(json_pack("{s:o}", "volumes", list)) < 0)
		all = false;
	return all && !atomic_load(&run->interrupted) ? 0 : TOOLS_EXIT_FAILURE;
}

static bool show_volume_quota(struct run *run, const struct place *place)
{
	char quota[32] = "no limit", used[32], share[16] = "-", partition[16] = "-";
	struct rxafs_volume v;

	if (!examine_place(run, place, &v))
		return false;
	if (run->set.json)
		return print_json(run, pack_volume(place, &v)) == 0;
	if (v.quota) {
		format_kib(run, quota, sizeof(quota), v.quota);
		snprintf(share, sizeof(share), "%.0f%%", (double)v.used * 100 / (double)v.quota);
	}
	if (v.total)
		snprintf(partition, sizeof(partition), "%.0f%%",
			 (double)(v.total - (v.free < v.total ? v.free : v.total)) * 100 /
				 (double)v.total);
	format_kib(run, used, sizeof(used), v.used);
	printf("%-24s %14s %14s %6s %10s\n", name_of_volume(place, &v), quota, used, share,
	       partition);
	return true;
}

int run_quota(struct run *run)
{
	if (!run->set.json)
		printf("%-24s %14s %14s %6s %10s\n", "Volume",
		       run->set.human ? "Quota" : "Quota (KiB)",
		       run->set.human ? "Used" : "Used (KiB)", "Used", "Partition");
	return run_each_place(run, show_volume_quota);
}

/* ---- du ---- */

/* What is in a directory and below it. */
struct sum {
	uint64_t kib, bytes, files;
};

struct usage {
	struct run *run;
	struct sum *levels; /* by depth */
	size_t room;
	struct fid_set seen; /* files with several names */
	struct sum own;	     /* of the directory that is entered next */
	bool good;
};

static void add_sum(struct sum *to, const struct sum *from)
{
	to->kib += from->kib;
	to->bytes += from->bytes;
	to->files += from->files;
}

static struct sum sum_of(const struct rxafs_attributes *a)
{
	uint64_t bytes = a->stat.st_size > 0 ? (uint64_t)a->stat.st_size : 0;

	return (struct sum){.kib = bytes / 1024 + (bytes % 1024 != 0),
			    .bytes = bytes,
			    .files = a->kind != RXAFS_DIRECTORY};
}

static void print_sum(struct usage *u, const char *path, const struct sum *sum)
{
	char text[32];
	json_t *o;

	if (!u->run->set.json) {
		printf("%s\t", format_kib(u->run, text, sizeof(text), sum->kib));
		print_name(path);
		putchar('\n');
		return;
	}
	o = json_pack("{s:I, s:I, s:I}", "kib", (json_int_t)sum->kib, "bytes",
		      (json_int_t)sum->bytes, "files", (json_int_t)sum->files);
	pack_bytes(o, "path", path);
	u->good &= print_json(u->run, o) == 0;
}

static bool enter_level(struct usage *u, unsigned depth)
{
	struct sum *more;

	if (depth >= u->room) {
		more = realloc(u->levels, (depth + 64) * sizeof(*more));
		if (!more) {
			tools_error("no memory");
			return u->good = false;
		}
		u->levels = more;
		u->room = depth + 64;
	}
	u->levels[depth] = u->own;
	return true;
}

static void count_entry(struct usage *u, const struct tree_item *item)
{
	const struct rxafs_attributes *a = item->attributes;
	struct sum sum;

	if (item->result < 0) {
		session_complain(u->run, item->path, -item->result);
		u->good = false;
		return;
	}
	/* Another name of a file does not count. */
	if (a->kind == RXAFS_FILE && a->stat.st_nlink > 1 && fid_set_add(&u->seen, &a->fid) > 0)
		return;
	sum = sum_of(a);
	/* A directory is a part of itself. */
	if (a->kind == RXAFS_DIRECTORY)
		u->own = sum;
	else
		add_sum(&u->levels[item->depth - 1], &sum);
}

/* False: the end. */
static bool use_item(struct usage *u, const struct tree_item *item)
{
	switch (item->event) {
	case TREE_ENTER:
		return enter_level(u, item->depth);
	case TREE_ENTRY:
		count_entry(u, item);
		break;
	case TREE_LEAVE:
		if (item->depth == 0 || !u->run->set.summarize)
			print_sum(u, item->path, &u->levels[item->depth]);
		if (item->depth)
			add_sum(&u->levels[item->depth - 1], &u->levels[item->depth]);
		break;
	default:
		u->good = false;
	}
	return !ferror(stdout);
}

static bool show_usage(struct run *run, const struct place *place)
{
	struct tree_options o = {.enter_mounts = !run->set.one_volume, .depth = UINT_MAX};
	struct usage u = {.run = run, .good = true};
	struct rxafs_attributes a;
	struct tree_item item;
	rxafs_object *object;
	struct tree *tree;
	struct sum sum;

	if (place_open_tree(run, place, &object, &a) != COPY_GOOD)
		return false;
	if (a.kind != RXAFS_DIRECTORY) {
		sum = sum_of(&a);
		print_sum(&u, place->text, &sum);
		goto out;
	}
	u.own = sum_of(&a);
	if ((tree = tree_open(run, object, place->text, &o))) {
		while (tree_next(tree, &item) && use_item(&u, &item))
			;
		tree_close(tree);
	} else {
		u.good = false;
	}
out:
	rxafs_release(object);
	fid_set_free(&u.seen);
	free(u.levels);
	return u.good;
}

int run_du(struct run *run)
{
	return run_each_place(run, show_usage);
}
