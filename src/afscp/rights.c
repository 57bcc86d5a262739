/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp chmod and acl: modes of objects, and access lists of directories. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "afs/acl.h"
#include "afs/rxafs.h"
#include "program/message.h"
#include "program/report.h"
#include "afscp/commands.h"
#include "afscp/output.h"
#include "afscp/tasks.h"
#include "afscp/tree.h"

/* ---- modes ---- */

static int parse_octal(const char *text, mode_t *mode)
{
	mode_t value = 0;

	for (; *text; text++) {
		if (*text < '0' || *text > '7')
			return -1;
		value = value << 3 | (mode_t)(*text - '0');
		if (value > 07777)
			return -1;
	}
	*mode = value;
	return 0;
}

/* The classes before an operator: their bits, 0 = none was named. */
static mode_t take_who(const char **text)
{
	mode_t who = 0;

	for (;; (*text)++)
		switch (**text) {
		case 'u':
			who |= 04700;
			break;
		case 'g':
			who |= 02070;
			break;
		case 'o':
			who |= 01007;
			break;
		case 'a':
			who |= 07777;
			break;
		default:
			return who;
		}
}

/* The permissions after an operator, for all classes. 0 or -1. */
static int take_bits(const char **text, mode_t old, bool directory, mode_t *bits)
{
	*bits = 0;
	for (;; (*text)++)
		switch (**text) {
		case 'r':
			*bits |= 0444;
			break;
		case 'w':
			*bits |= 0222;
			break;
		case 'x':
			*bits |= 0111;
			break;
		case 'X':
			*bits |= directory || old & 0111 ? 0111 : 0;
			break;
		case 's':
			*bits |= 06000;
			break;
		case 't':
			*bits |= 01000;
			break;
		case 0:
		case ',':
		case '+':
		case '-':
		case '=':
			return 0;
		default:
			return -1;
		}
}

static mode_t apply_bits(mode_t mode, mode_t who, char sign, mode_t bits)
{
	switch (sign) {
	case '+':
		return mode | (bits & who);
	case '-':
		return mode & ~(bits & who);
	default:
		return (mode & ~(who & 0777)) | (bits & who);
	}
}

int mode_parse(const char *text, mode_t old, bool directory, mode_t umask, mode_t *mode)
{
	mode_t now = old;

	if (*text >= '0' && *text <= '7')
		return parse_octal(text, mode);
	do {
		mode_t who = take_who(&text), bits;
		bool named = who != 0;

		if (*text == 0 || !strchr("+-=", *text))
			return -1;
		while (*text && strchr("+-=", *text)) {
			char sign = *text++;

			if (take_bits(&text, now, directory, &bits) < 0)
				return -1;
			now = apply_bits(now, named ? who : 07777, sign,
					 named ? bits : bits & ~umask);
		}
	} while (*text++ == ',');
	*mode = now;
	return 0;
}

/* ---- chmod ---- */

/* Change the mode of one object. */
static enum copy_result set_mode(struct run *run, rxafs_object *object,
				 const struct rxafs_attributes *old, const char *label)
{
	struct rxafs_changes changes = {.set = RXAFS_SET_MODE};
	struct attempt t = attempt_begin(run, CHANGE_STATUS, label);
	struct rxafs_attributes a;
	mode_t mode;

	/* The text was checked before. */
	if (mode_parse(run->arguments[0], old->stat.st_mode & 07777, old->kind == RXAFS_DIRECTORY,
		       run->umask, &mode) < 0)
		return COPY_STOP;
	if (mode == (old->stat.st_mode & 07777))
		return COPY_GOOD;
	changes.mode = mode;
	while (attempt_again(&t, rxafs_setattr(object, &t.request, &changes, &a)))
		;
	if (t.value < 0 || (a.stat.st_mode & 07777) == mode)
		return attempt_result(&t);
	tools_error(
		"%s: the mode is %04o, not %04o: servers keep the first digit for administrators",
		label, a.stat.st_mode & 07777, (unsigned)mode);
	return COPY_FAILED;
}

/* The walk of a tree whose modes threads change. */
struct chmod_walk {
	struct run *run;
	atomic_int result; /* enum copy_result, the worst */
};

/* A name in a directory. */
struct chmod_entry {
	struct chmod_walk *walk;
	rxafs_object *directory; /* a reference */
	char *path;		 /* ends in the name: */
	size_t name;
};

static void note_mode_result(struct chmod_walk *walk, enum copy_result rc)
{
	if (rc == COPY_STOP)
		atomic_store(&walk->result, COPY_STOP);
	else if (rc == COPY_FAILED && atomic_load(&walk->result) == COPY_GOOD)
		atomic_store(&walk->result, COPY_FAILED);
}

static void change_entry_mode(void *arg)
{
	struct chmod_entry *e = arg;
	struct run *run = e->walk->run;
	struct attempt t = attempt_begin(run, CHANGE_NONE, e->path);
	struct rxafs_attributes now;
	rxafs_object *object;
	enum copy_result rc;

	if (atomic_load(&e->walk->result) == COPY_STOP)
		goto out;
	/* By its name: that brings the status of its neighbours as well. */
	while (attempt_again(
		&t, rxafs_lookup(e->directory, &t.request, e->path + e->name, &object, &now)))
		;
	rc = attempt_result(&t);
	if (t.value >= 0) {
		rc = set_mode(run, object, &now, e->path);
		rxafs_release(object);
	}
	note_mode_result(e->walk, rc);
out:
	rxafs_release(e->directory);
	free(e->path);
	free(e);
}

/* Links have no mode of interest, and mount points lead to another volume. */
static enum copy_result add_chmod_entry(struct chmod_walk *walk, struct tasks *tasks,
					const struct tree_item *item)
{
	const struct rxafs_attributes *a = item->attributes;
	struct chmod_entry *e;

	if (item->result < 0) {
		session_complain(walk->run, item->path, -item->result);
		return COPY_FAILED;
	}
	if (a->mount_point || a->kind == RXAFS_SYMLINK)
		return COPY_GOOD;
	e = malloc(sizeof(*e));
	if (!e || !(e->path = strdup(item->path))) {
		free(e);
		tools_error("no memory");
		return COPY_STOP;
	}
	e->walk = walk;
	e->directory = rxafs_hold(item->directory);
	e->name = strlen(item->path) - strlen(item->name->text);
	tasks_add(tasks, change_entry_mode, e);
	return COPY_GOOD;
}

static enum copy_result chmod_below(struct run *run, rxafs_object *directory, const char *label)
{
	struct tree_options o = {.depth = UINT_MAX};
	struct chmod_walk walk = {.run = run, .result = COPY_GOOD};
	struct tree *tree = tree_open(run, directory, label, &o);
	struct tasks *tasks = tree ? tasks_open(TASKS_THREADS, TASKS_WAITING) : NULL;
	struct tree_item item;

	if (!tree)
		return COPY_STOP;
	while (atomic_load(&walk.result) != COPY_STOP && tree_next(tree, &item))
		if (item.event == TREE_ENTRY)
			note_mode_result(&walk, add_chmod_entry(&walk, tasks, &item));
		else if (item.event == TREE_FAILED)
			note_mode_result(&walk, COPY_FAILED);
	tasks_close(tasks);
	tree_close(tree);
	return (enum copy_result)atomic_load(&walk.result);
}

static enum copy_result chmod_place(struct run *run, const struct place *place)
{
	enum copy_result rc, down = COPY_GOOD;
	struct rxafs_attributes a;
	rxafs_object *object;

	rc = place_open(run, place, true, &object, &a);
	if (rc != COPY_GOOD)
		return rc;
	rc = set_mode(run, object, &a, place->text);
	if (rc != COPY_STOP && run->set.recursive && a.kind == RXAFS_DIRECTORY)
		down = chmod_below(run, object, place->text);
	rxafs_release(object);
	return rc == COPY_GOOD ? down : rc;
}

int run_chmod(struct run *run)
{
	mode_t mode;

	if (mode_parse(run->arguments[0], 0, true, run->umask, &mode) < 0) {
		tools_error("\"%s\" is not a mode; use an octal number or changes like u+x,go-w",
			    run->arguments[0]);
		return TOOLS_EXIT_USAGE;
	}
	if (place_expand(run) != COPY_GOOD)
		return TOOLS_EXIT_FAILURE;
	return change_each_place(run, chmod_place);
}

/* ---- acl ---- */

/* The access list of an object. False after a message. */
static bool fetch_acl(struct run *run, rxafs_object *object, const char *label, struct afs_acl *acl)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, label);
	size_t length;
	char *text;
	bool good;

	while (attempt_again(&t, rxafs_getxattr(object, &t.request, "afs.acl", &text, &length)))
		;
	if (t.value < 0)
		return false;
	good = afs_acl_parse(text, acl) == 0;
	free(text);
	if (!good)
		tools_error("%s: the server sent a malformed access list", label);
	return good;
}

static void print_acl_entries(const struct afs_acl *acl, bool negative)
{
	char text[AFS_ACL_RIGHTS], name[sizeof(acl->entry[0].name)];

	for (unsigned i = 0; i < acl->count; i++) {
		if (acl->entry[i].negative != negative)
			continue;
		/* Names of the server must not give orders to the terminal. */
		snprintf(name, sizeof(name), "%s", acl->entry[i].name);
		printf("%s%-8s %s\n", negative ? "-" : " ",
		       afs_rights_text(acl->entry[i].rights, text),
		       isatty(STDOUT_FILENO) ? tools_harmless(name) : name);
	}
}

static json_t *pack_acl(const struct afs_acl *acl, bool negative)
{
	json_t *list = json_object();
	char text[AFS_ACL_RIGHTS];

	for (unsigned i = 0; i < acl->count; i++)
		if (acl->entry[i].negative == negative)
			json_object_set_new(
				list, acl->entry[i].name,
				json_string(afs_rights_text(acl->entry[i].rights, text)));
	return list;
}

static int show_access_list(struct run *run, const struct place *place, const struct afs_acl *acl)
{
	json_t *o;

	if (run->set.json) {
		o = json_pack("{s:s, s:o, s:o}", "volume", place->volume ? place->volume : "",
			      "positive", pack_acl(acl, false), "negative", pack_acl(acl, true));
		pack_bytes(o, "path", place->path);
		return tools_json_print(o);
	}
	print_acl_entries(acl, false);
	print_acl_entries(acl, true);
	return 0;
}

/* Check the pairs of the command line before anything is asked. 0, or -1 after a message. */
static int check_acl_pairs(const struct run *run)
{
	uint32_t rights;

	if (run->argument_count % 2) {
		tools_error("\"%s\" has no rights: name pairs of NAME and RIGHTS",
			    run->arguments[run->argument_count - 1]);
		return -1;
	}
	for (size_t i = 1; i < run->argument_count; i += 2)
		if (afs_rights_parse(run->arguments[i], &rights) < 0) {
			tools_error("\"%s\" are no rights; use letters of rlidwka and A to H, or "
				    "read, write, all or none",
				    run->arguments[i]);
			return -1;
		}
	return 0;
}

/* Change entries and store the list. 0, or -1 after a message. */
static int change_acl(struct run *run, rxafs_object *object, const char *label, struct afs_acl *acl)
{
	struct attempt t = attempt_begin(run, CHANGE_ACL, label);
	char text[AFSOPAQUEMAX];
	uint32_t rights;

	for (size_t i = 0; i < run->argument_count; i += 2) {
		afs_rights_parse(run->arguments[i + 1], &rights);
		if (afs_acl_set(acl, run->arguments[i], run->set.negative, rights) < 0) {
			tools_error(
				"%s: \"%.128s\" cannot be added: a list has at most %d entries, "
				"and names have no blanks",
				label, run->arguments[i], AFS_ACL_ENTRIES);
			return -1;
		}
	}
	if (afs_acl_text(acl, text, sizeof(text)) < 0) {
		tools_error("%s: the access list would be too long; use groups", label);
		return -1;
	}
	while (attempt_again(&t, rxafs_setxattr(object, &t.request, "afs.acl", text, strlen(text))))
		;
	return t.value < 0 ? -1 : 0;
}

int run_acl(struct run *run)
{
	const struct place *place = &run->places[0];
	struct rxafs_attributes a;
	rxafs_object *object;
	struct afs_acl acl;
	int rc = -1;

	if (check_acl_pairs(run) < 0)
		return TOOLS_EXIT_USAGE;
	if (place_open(run, place, true, &object, &a) != COPY_GOOD)
		return TOOLS_EXIT_FAILURE;
	if (run->argument_count && a.kind != RXAFS_DIRECTORY)
		tools_error("%s is no directory; a file has the access list of its directory",
			    place->text);
	else if (fetch_acl(run, object, place->text, &acl))
		rc = run->argument_count ? change_acl(run, object, place->text, &acl)
					 : show_access_list(run, place, &acl);
	rxafs_release(object);
	return rc < 0 ? TOOLS_EXIT_FAILURE : 0;
}
