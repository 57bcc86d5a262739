/* SPDX-License-Identifier: BSD-2-Clause */
/* Users and groups by name, rights, and access lists. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/private.h"
#include "afs/afs-common.h"
#include "afs/rights.h"
#include "protection/protection.h"

/* These exist even without a database. */
static const struct {
	const char *name;
	int32_t id;
} predefined[] = {
	{"anonymous", PROT_ANONYMOUS},
	{"system:anyuser", PROT_ANYUSER},
	{"system:authuser", PROT_AUTHUSER},
	{"system:administrators", PROT_ADMINISTRATORS},
};
#define PREDEFINED (sizeof(predefined) / sizeof(predefined[0]))

int admin_names_open(struct admin_run *run, struct admin_names *names)
{
	struct prot_options options = {.create = false};
	char path[PATH_MAX], message[PROT_MESSAGE_MAX];

	*names = (struct admin_names){NULL, NULL};
	if (!run->options->directory)
		return 0;
	if ((size_t)snprintf(path, sizeof(path), "%s/" PROT_FILE, run->options->directory) >=
	    sizeof(path))
		return admin_fail(run, 1, "%.100s...: the path is too long", path);
	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	options.path = path;
	if (prot_open(&options, &names->prot, message))
		return admin_fail(run, 1, "%s", message);
	names->view = prot_view_get(names->prot);
	return 0;
}

void admin_names_close(struct admin_names *names)
{
	if (names->view)
		prot_view_put(names->view);
	prot_close(names->prot);
	*names = (struct admin_names){NULL, NULL};
}

static int parse_id(const char *text, int32_t *id)
{
	char *end;
	long n;

	if (!(*text >= '0' && *text <= '9') && *text != '-')
		return -1;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || end == text || n > INT32_MAX || n < INT32_MIN)
		return -1;
	*id = (int32_t)n;
	return 0;
}

/* A name or number. -1: there is none. */
static int admin_id(const struct admin_names *names, const char *text, int32_t *id)
{
	const struct prot_entry *entry;

	if (parse_id(text, id) == 0)
		return 0;
	entry = names->view ? prot_by_name(names->view, text) : NULL;
	if (entry) {
		*id = entry->id;
		return 0;
	}
	for (size_t i = 0; i < PREDEFINED; i++)
		if (!strcmp(predefined[i].name, text)) {
			*id = predefined[i].id;
			return 0;
		}
	return -1;
}

/* Returns `text`. */
static const char *admin_name(const struct admin_names *names, int32_t id, char text[64])
{
	const struct prot_entry *entry = names->view ? prot_by_id(names->view, id) : NULL;

	snprintf(text, 64, "%d", id);
	if (entry)
		snprintf(text, 64, "%s", entry->name);
	else
		for (size_t i = 0; i < PREDEFINED; i++)
			if (predefined[i].id == id)
				snprintf(text, 64, "%s", predefined[i].name);
	return text;
}

/* Whether a cell has the users and groups; false also if that cannot be read. */
static bool is_of_cell(const struct admin_run *run)
{
	bool member = false;

	return store_is_member(run->store, &member) == 0 && member;
}

static int refuse_name(struct admin_run *run, const char *name)
{
	return admin_fail(run, 2, "%.100s: no such user or group; %s", name,
			  is_of_cell(run) ? "the cell has others: give the number that pts shows, "
					    "or use \"fs setacl\" on a client"
					  : "add it with rxpt, or give its number");
}

/* -- access lists -- */

/* The entry for `id` becomes `rights`; 0 removes it. 0 or -E2BIG. */
static int set_entry(struct store_acl *acl, bool negative, int32_t id, uint32_t rights)
{
	unsigned from = negative ? acl->positive : 0u, total = acl->positive + acl->negative;
	unsigned to = negative ? total : acl->positive;

	assert(total <= STORE_ACL_MAX);
	for (unsigned i = from; i < to; i++) {
		if (acl->entry[i].id != id)
			continue;
		memmove(&acl->entry[i], &acl->entry[i + 1],
			(total - i - 1) * sizeof(acl->entry[0]));
		if (negative)
			acl->negative--;
		else
			acl->positive--;
		break;
	}
	return rights ? store_acl_add(acl, negative, id, rights) : 0;
}

static const struct admin_member entry_members[] = {
	{"name", ADMIN_TEXT, true},
	{"rights", ADMIN_TEXT, true},
	{"negative", ADMIN_FLAG, false},
};

static int change_entry(struct admin_run *run, const struct admin_names *names,
			const json_t *object, struct store_acl *acl)
{
	char message[STORE_MESSAGE_MAX];
	const char *name, *text;
	uint32_t rights, address;
	int32_t id;

	if (!json_is_object(object))
		return admin_fail(run, 2, "request: an entry of an access list must be an object");
	if (admin_members_check(object, entry_members, 3, message))
		return admin_fail(run, 2, "%s", message);
	name = json_string_value(json_object_get(object, "name"));
	text = json_string_value(json_object_get(object, "rights"));
	if (afs_rights_parse(text, &rights))
		return admin_fail(
			run, 2,
			"rights \"%.100s\": use letters of rlidwka and A to H, or one of read, "
			"write, all, none",
			text);
	/* It is compared with the groups of machines only. */
	if (rights && prot_name_is_machine(name, &address))
		return admin_fail(run, 2,
				  "%.100s: an access list cannot name a machine; add it to a group "
				  "with %s, and name the group",
				  name, is_of_cell(run) ? "pts" : "rxpt");
	if (admin_id(names, name, &id))
		return refuse_name(run, name);
	if (set_entry(acl, json_is_true(json_object_get(object, "negative")), id, rights))
		return admin_fail(run, 1,
				  "%.100s: an access list has room for %d entries; remove one "
				  "with the rights \"none\"",
				  name, STORE_ACL_MAX);
	return 0;
}

/* Bytes of the text that clients get, with its NUL. */
static size_t text_length(const struct admin_names *names, const struct store_acl *acl)
{
	size_t length = (size_t)snprintf(NULL, 0, "%u\n%u\n", acl->positive, acl->negative) + 1;
	char name[64];

	assert((unsigned)acl->positive + acl->negative <= STORE_ACL_MAX);
	for (unsigned i = 0; i < (unsigned)acl->positive + acl->negative; i++)
		length += (size_t)snprintf(NULL, 0, "%s\t%d\n",
					   admin_name(names, acl->entry[i].id, name),
					   (int)acl->entry[i].rights);
	return length;
}

int admin_acl_change(struct admin_run *run, const char *what, struct store_acl *acl)
{
	const json_t *list = json_object_get(run->request, "acl");
	struct admin_names names;
	size_t before, length;
	int rc = admin_names_open(run, &names);

	if (rc)
		goto out;
	before = text_length(&names, acl);
	for (size_t i = 0; i < json_array_size(list); i++) {
		rc = change_entry(run, &names, json_array_get(list, i), acl);
		if (rc)
			goto out;
	}
	length = text_length(&names, acl);
	if (length > before && length > AFSOPAQUEMAX)
		rc = admin_fail(
			run, 1,
			"%s: the text of the access list would have %zu bytes, and clients can "
			"fetch %d at most: give rights to groups in place of users",
			what, length, AFSOPAQUEMAX);
out:
	admin_names_close(&names);
	return rc;
}

int admin_acl_permit(struct admin_run *run, const struct store_acl *acl, const char *what)
{
	if (!run->options->forbids || !run->options->forbids(run->options->arg, acl))
		return 0;
	return admin_fail(
		run, 1,
		"%s: anonymous callers of other machines could write: take the rights w, i, "
		"d, k and a of system:anyuser away, or start rxfsd with "
		"--allow-anonymous-writes",
		what);
}

static json_t *entries_json(const struct admin_names *names, const struct store_ace *entry,
			    unsigned count)
{
	json_t *list = json_array();
	char name[64], rights[AFS_ACL_RIGHTS];

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(
			list,
			json_pack("{s:o, s:i, s:s}", "name",
				  admin_show(admin_name(names, entry[i].id, name)), "id",
				  (int)entry[i].id, "rights",
				  entry[i].rights ? afs_rights_text(entry[i].rights, rights) : ""));
	return list;
}

json_t *admin_acl_json(const struct admin_names *names, const struct store_acl *acl)
{
	return json_pack("{s:o, s:o}", "positive", entries_json(names, acl->entry, acl->positive),
			 "negative",
			 entries_json(names, acl->entry + acl->positive, acl->negative));
}

int admin_owner(struct admin_run *run, int32_t missing, int32_t *owner)
{
	const char *text = admin_get_text(run, "owner");
	struct admin_names names;
	int rc;

	*owner = missing;
	if (!text)
		return 0;
	rc = admin_names_open(run, &names);
	if (!rc && admin_id(&names, text, owner))
		rc = refuse_name(run, text);
	admin_names_close(&names);
	return rc;
}
