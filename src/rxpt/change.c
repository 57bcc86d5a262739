/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that change the database: all of a command line, or nothing. */
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "rxpt/pt.h"

/* The id that --id asks for, 0 without it. 0, or an exit status after a message. */
static int parse_wanted_id(const struct pt *pt, size_t count, int32_t *id)
{
	*id = 0;
	if (!pt->id)
		return 0;
	if (count != 1)
		return tools_fail(TOOLS_EXIT_USAGE, "--id is for one name, not for %zu", count);
	if (pt_parse_id(pt->id, id) && *id != 0)
		return 0;
	return tools_fail(TOOLS_EXIT_USAGE,
			  "--id %s: not an id; users have positive ones, groups negative ones",
			  pt->id);
}

/* Changes the entry of one of several names. */
typedef int (*one_fn)(struct pt *pt, const char *name, int32_t *id, char *message);

/*
 * Change the entries of all names in one transaction. ids[i] is the id of names[i], which `one` may
 * set.
 */
static int change_in_transaction(struct pt *pt, char **names, size_t count, int32_t *ids,
				 one_fn one)
{
	char message[PROT_MESSAGE_MAX];
	int rc = prot_begin(pt->prot, message);

	if (rc)
		return tools_fail(TOOLS_EXIT_FAILURE, "%s", message);
	for (size_t i = 0; i < count && !rc; i++)
		rc = one(pt, names[i], &ids[i], message);
	if (rc)
		prot_rollback(pt->prot);
	else
		rc = prot_commit(pt->prot, message);
	if (!rc)
		return 0;
	return tools_fail(TOOLS_EXIT_FAILURE, "%s%s", message,
			  count > 1 ? "; nothing was changed" : "");
}

/* The ids of entries that exist. 0, or an exit status after a message. */
static int find_ids(struct pt *pt, char **names, size_t count, int32_t *ids)
{
	for (size_t i = 0; i < count; i++) {
		ids[i] = pt_find_id(pt, names[i]);
		if (!ids[i])
			return TOOLS_EXIT_FAILURE;
	}
	return 0;
}

/* Change the entries of all names or, unless `find`, add them and report them. The exit status. */
static int change_entries(struct pt *pt, char **names, size_t count, one_fn one, bool find)
{
	int32_t *ids = calloc(count, sizeof(*ids));
	int status;

	if (!ids)
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	status = find ? find_ids(pt, names, count, ids) : parse_wanted_id(pt, count, &ids[0]);
	if (status)
		goto out;
	status = change_in_transaction(pt, names, count, ids, one);
	if (!status && !find)
		status = pt_show_added(pt, ids, count);
out:
	free(ids);
	return status;
}

static int add_one_user(struct pt *pt, const char *name, int32_t *id, char *message)
{
	return prot_add_user(pt->prot, name, *id, id, message);
}

int pt_add_user(struct pt *pt, char **names, size_t count)
{
	return change_entries(pt, names, count, add_one_user, false);
}

static int add_one_group(struct pt *pt, const char *name, int32_t *id, char *message)
{
	return prot_add_group(pt->prot, name, *id, pt->other, id, message);
}

int pt_add_group(struct pt *pt, char **names, size_t count)
{
	pt->other = pt->owner ? pt_find_id(pt, pt->owner) : PROT_ADMINISTRATORS;
	return pt->other ? change_entries(pt, names, count, add_one_group, false)
			 : TOOLS_EXIT_FAILURE;
}

static int rename_entry(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_rename(pt->prot, *id, pt->text, message);
}

int pt_rename(struct pt *pt, char **names, size_t count)
{
	(void)count;
	pt->text = names[1];
	return change_entries(pt, names, 1, rename_entry, true);
}

static int remove_entry(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_remove(pt->prot, *id, message);
}

int pt_remove(struct pt *pt, char **names, size_t count)
{
	return change_entries(pt, names, count, remove_entry, true);
}

static int add_one_member(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_add_member(pt->prot, pt->other, *id, message);
}

static int remove_one_member(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_remove_member(pt->prot, pt->other, *id, message);
}

/* add|remove GROUP NAME... */
int pt_member(struct pt *pt, char **names, size_t count)
{
	bool add = strcmp(names[0], "add") == 0;

	if (!add && strcmp(names[0], "remove") != 0)
		return tools_fail(TOOLS_EXIT_USAGE,
				  "member %s: say \"member add GROUP NAME...\" or "
				  "\"member remove GROUP NAME...\"",
				  names[0]);
	pt->other = pt_find_id(pt, names[1]);
	if (!pt->other)
		return TOOLS_EXIT_FAILURE;
	return change_entries(pt, names + 2, count - 2, add ? add_one_member : remove_one_member,
			      true);
}

static int chown_entry(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_chown(pt->prot, *id, pt->other, message);
}

int pt_chown(struct pt *pt, char **names, size_t count)
{
	(void)count;
	pt->other = pt_find_id(pt, names[1]);
	return pt->other ? change_entries(pt, names, 1, chown_entry, true) : TOOLS_EXIT_FAILURE;
}

static int set_entry_access(struct pt *pt, const char *name, int32_t *id, char *message)
{
	(void)name;
	return prot_set_access(pt->prot, *id, pt->access, message);
}

int pt_access(struct pt *pt, char **names, size_t count)
{
	(void)count;
	if (!pt_parse_access(names[1], &pt->access))
		return tools_fail(
			TOOLS_EXIT_USAGE,
			"access %s: give five letters as \"examine\" shows them, S-M-- for "
			"example; see rxpt(8)",
			names[1]);
	return change_entries(pt, names, 1, set_entry_access, true);
}
