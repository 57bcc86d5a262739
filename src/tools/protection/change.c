/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that change the database: all of a command line, or nothing. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/protection/pt.h"

/* The id that --id asks for, 0 without it. 0, or -1 after a message. */
static int wanted_id(const struct pt *pt, size_t count, int32_t *id)
{
	*id = 0;
	if (!pt->id)
		return 0;
	if (count != 1) {
		tools_error("--id is for one name, not for %zu", count);
		return -1;
	}
	if (pt_parse_id(pt->id, id) && *id != 0)
		return 0;
	tools_error("--id %s: not an id; users have positive ones, groups negative ones", pt->id);
	return -1;
}

/* One of several names. */
typedef int (*one_fn)(struct pt *pt, const char *name, int32_t *id, char *message);

/* All names in one transaction. ids[i] is what the function stores for names[i]. */
static int each(struct pt *pt, char **names, size_t count, int32_t *ids, one_fn one)
{
	char message[PROT_MESSAGE_MAX];
	int rc = prot_begin(pt->prot, message);

	if (rc) {
		tools_error("%s", message);
		return TOOLS_EXIT_FAILURE;
	}
	for (size_t i = 0; i < count && !rc; i++)
		rc = one(pt, names[i], &ids[i], message);
	if (rc)
		prot_rollback(pt->prot);
	else
		rc = prot_commit(pt->prot, message);
	if (!rc)
		return 0;
	tools_error("%s%s", message, count > 1 ? "; nothing was changed" : "");
	return TOOLS_EXIT_FAILURE;
}

/* The ids of entries that exist. 0, or -1 after a message. */
static int find_all(struct pt *pt, char **names, size_t count, int32_t *ids)
{
	for (size_t i = 0; i < count; i++) {
		ids[i] = pt_find_id(pt, names[i]);
		if (!ids[i])
			return -1;
	}
	return 0;
}

/* `find`: the names are those of entries. Otherwise they are added, and reported. */
static int run(struct pt *pt, char **names, size_t count, one_fn one, bool find)
{
	int32_t *ids = calloc(count, sizeof(*ids));
	int status = TOOLS_EXIT_FAILURE;

	if (!ids)
		tools_error("no memory");
	else if (!find && wanted_id(pt, count, &ids[0]) < 0)
		status = TOOLS_EXIT_USAGE;
	else if (!find || find_all(pt, names, count, ids) == 0)
		status = each(pt, names, count, ids, one);
	if (!status && !find)
		status = pt_show_added(pt, ids, count);
	free(ids);
	return status;
}

static int add_user(struct pt *pt, const char *name, int32_t *id, char *message)
{
	return prot_add_user(pt->prot, name, *id, id, message);
}

int pt_add_user(struct pt *pt, char **names, size_t count)
{
	return run(pt, names, count, add_user, false);
}

static int add_group(struct pt *pt, const char *name, int32_t *id, char *message)
{
	return prot_add_group(pt->prot, name, *id, pt->other, id, message);
}

int pt_add_group(struct pt *pt, char **names, size_t count)
{
	pt->other = pt->owner ? pt_find_id(pt, pt->owner) : PROT_ADMINISTRATORS;
	return pt->other ? run(pt, names, count, add_group, false) : TOOLS_EXIT_FAILURE;
}

static int rename_to(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_rename(pt->prot, *id, pt->text, message);
}

int pt_rename(struct pt *pt, char **names, size_t count)
{
	(void)count;
	pt->text = names[1];
	return run(pt, names, 1, rename_to, true);
}

static int remove_one(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_remove(pt->prot, *id, message);
}

int pt_remove(struct pt *pt, char **names, size_t count)
{
	return run(pt, names, count, remove_one, true);
}

static int add_member(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_add_member(pt->prot, pt->other, *id, message);
}

static int remove_member(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_remove_member(pt->prot, pt->other, *id, message);
}

/* add|remove GROUP USER... */
int pt_member(struct pt *pt, char **names, size_t count)
{
	bool add = strcmp(names[0], "add") == 0;

	if (!add && strcmp(names[0], "remove") != 0) {
		tools_error("member %s: say \"member add GROUP USER...\" or "
			    "\"member remove GROUP USER...\"",
			    names[0]);
		return TOOLS_EXIT_USAGE;
	}
	pt->other = pt_find_id(pt, names[1]);
	if (!pt->other)
		return TOOLS_EXIT_FAILURE;
	return run(pt, names + 2, count - 2, add ? add_member : remove_member, true);
}

static int change_owner(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_chown(pt->prot, *id, pt->other, message);
}

int pt_chown(struct pt *pt, char **names, size_t count)
{
	(void)count;
	pt->other = pt_find_id(pt, names[1]);
	return pt->other ? run(pt, names, 1, change_owner, true) : TOOLS_EXIT_FAILURE;
}

static int change_access(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_set_access(pt->prot, *id, pt->access, message);
}

int pt_access(struct pt *pt, char **names, size_t count)
{
	(void)count;
	if (!pt_parse_access(names[1], &pt->access)) {
		tools_error("access %s: give five letters as \"examine\" shows them, S-M-- for "
			    "example; see rxpt(8)",
			    names[1]);
		return TOOLS_EXIT_USAGE;
	}
	return run(pt, names, 1, change_access, true);
}
