/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp find: the objects of a tree that fulfil conditions. */
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "program/message.h"
#include "afscp/commands.h"
#include "afscp/output.h"
#include "afscp/tree.h"

/* A number that is to be less (-1), more (1) or the same (0). */
struct bound {
	bool given;
	int sign;
	uint64_t number, unit;
};

struct search {
	struct run *run;
	const char *type; /* letters; NULL: all */
	struct bound size, mtime;
	time_t now;
	bool good;
};

/* "+N", "-N" or "N", with one of the letters behind it. 0 or -1. */
static int parse_condition_bound(const char *text, const char *letters, const uint64_t *units,
				 uint64_t unit, struct bound *bound)
{
	const char *letter;
	char *end;

	*bound = (struct bound){.given = true, .unit = unit};
	if (*text == '+' || *text == '-')
		bound->sign = *text++ == '+' ? 1 : -1;
	if (*text < '0' || *text > '9')
		return -1;
	errno = 0;
	bound->number = strtoull(text, &end, 10);
	if (*end && (letter = strchr(letters, *end))) {
		bound->unit = units[letter - letters];
		end++;
	}
	return errno || *end || bound->number > UINT64_MAX / bound->unit ? -1 : 0;
}

/* As find(1): the value is rounded up to units, but age is cut. */
static bool fits_bound(const struct bound *bound, uint64_t units)
{
	return !bound->given || (bound->sign > 0   ? units > bound->number
				 : bound->sign < 0 ? units < bound->number
						   : units == bound->number);
}

static int parse_conditions(struct search *s)
{
	static const uint64_t units[] = {1, 512, 1024, 1048576, 1073741824, 1099511627776u};
	const struct copy_settings *set = &s->run->set;

	if (set->size && parse_condition_bound(set->size, "cbkMGT", units, 512, &s->size) < 0) {
		tools_error(
			"option --size: invalid value \"%s\"; use [+-]N with c, k, M or G behind it",
			set->size);
		return -1;
	}
	if (set->mtime && parse_condition_bound(set->mtime, "", units, 86400, &s->mtime) < 0) {
		tools_error("option --mtime: invalid value \"%s\"; use [+-]DAYS", set->mtime);
		return -1;
	}
	s->type = set->type;
	if (s->type && (!*s->type || s->type[strspn(s->type, "fdlm,")])) {
		tools_error("option --type: invalid value \"%s\"; use f, d, l or m", s->type);
		return -1;
	}
	return 0;
}

static char letter_of(const struct rxafs_attributes *a)
{
	return a->mount_point		    ? 'm'
	       : a->kind == RXAFS_DIRECTORY ? 'd'
	       : a->kind == RXAFS_SYMLINK   ? 'l'
					    : 'f';
}

static bool fulfils_conditions(const struct search *s, const char *name,
			       const struct rxafs_attributes *a)
{
	uint64_t bytes = a->stat.st_size > 0 ? (uint64_t)a->stat.st_size : 0;
	int64_t age = (int64_t)s->now - a->stat.st_mtim.tv_sec;

	if (s->run->set.name && fnmatch(s->run->set.name, name, 0) != 0)
		return false;
	/* A mount point is a directory as well. */
	if (s->type && !strchr(s->type, letter_of(a)) && !(a->mount_point && strchr(s->type, 'd')))
		return false;
	if (s->size.given &&
	    !fits_bound(&s->size, bytes / s->size.unit + (bytes % s->size.unit != 0)))
		return false;
	return fits_bound(&s->mtime, age > 0 ? (uint64_t)age / 86400 : 0);
}

static void print_found(struct search *s, const char *path, const struct rxafs_attributes *a)
{
	json_t *o;

	if (s->run->set.json) {
		o = pack_attributes(a);
		pack_bytes(o, "path", path);
		s->good &= print_json(s->run, o) == 0;
	} else if (s->run->set.print0) {
		fputs(path, stdout);
		putchar(0);
	} else {
		print_name(path);
		putchar('\n');
	}
}

static void use_found(struct search *s, const struct tree_item *item)
{
	if (item->result < 0) {
		session_complain(s->run, item->path, -item->result);
		s->good = false;
	} else if (fulfils_conditions(s, item->name->text, item->attributes)) {
		print_found(s, item->path, item->attributes);
	}
}

static void search_tree(struct search *s, const struct place *place, rxafs_object *root)
{
	struct run *run = s->run;
	struct tree_options o = {
		.enter_mounts = !run->set.one_volume,
		.depth = run->set.maxdepth > UINT_MAX ? UINT_MAX : (unsigned)run->set.maxdepth - 1};
	struct tree *tree = tree_open(run, root, place->text, &o);
	struct tree_item item;

	s->good &= tree != NULL;
	while (tree && tree_next(tree, &item) && !ferror(stdout))
		if (item.event == TREE_ENTRY)
			use_found(s, &item);
		else if (item.event == TREE_FAILED)
			s->good = false;
	if (tree)
		tree_close(tree);
}

static bool find_in_place(struct run *run, const struct place *place)
{
	struct search s = {.run = run, .now = time(NULL), .good = true};
	struct rxafs_attributes a;
	rxafs_object *root;
	char *name;

	/* Checked before. */
	if (parse_conditions(&s) < 0 || place_open_tree(run, place, &root, &a) != COPY_GOOD)
		return false;
	name = place_name(place);
	if (name && fulfils_conditions(&s, name, &a))
		print_found(&s, place->text, &a);
	free(name);
	if (a.kind == RXAFS_DIRECTORY && run->set.maxdepth)
		search_tree(&s, place, root);
	rxafs_release(root);
	return s.good;
}

int run_find(struct run *run)
{
	struct search s = {.run = run};

	if (parse_conditions(&s) < 0)
		return TOOLS_EXIT_USAGE;
	return run_each_place(run, find_in_place);
}
