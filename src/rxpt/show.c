/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries by name or id, their flags as letters, and commands that show them as text or JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "program/message.h"
#include "program/report.h"
#include "rxpt/pt.h"

#define PT_ACCESS_TEXT 6 /* bytes of flags as letters */

/* ---- entries as the command line names them ---- */

bool pt_parse_id(const char *text, int32_t *id)
{
	const char *digits = text + (*text == '-');
	long long value;

	if (!*digits || strspn(digits, "0123456789") != strlen(digits))
		return false;
	errno = 0;
	value = strtoll(text, NULL, 10);
	if (errno || value < INT32_MIN || value > INT32_MAX)
		return false;
	*id = (int32_t)value;
	return true;
}

/* The entry with a name or an id, or NULL after a message. */
static const struct prot_entry *pt_find(const struct pt *pt, const struct prot_view *view,
					const char *text)
{
	const struct prot_entry *entry;
	int32_t id;

	/* No name looks like a number. */
	entry = pt_parse_id(text, &id) ? prot_by_id(view, id) : prot_by_name(view, text);
	if (!entry)
		tools_error("%.200s is no user or group of %.200s; \"rxpt -S %.200s list\" shows "
			    "them",
			    text, pt->store, pt->store);
	return entry;
}

int32_t pt_find_id(const struct pt *pt, const char *text)
{
	const struct prot_view *view = prot_view_get(pt->prot);
	const struct prot_entry *entry = pt_find(pt, view, text);
	int32_t id = entry ? entry->id : 0;

	prot_view_put(view);
	return id;
}

/* ---- access flags as letters, as pts(1) shows them ---- */

/* One letter for each: for anyone, for members. 0: there is no such flag. */
static const struct {
	char any, members;
	uint32_t any_bit, members_bit;
} places[] = {
	{'S', 's', PROT_STATUS_ANY, PROT_STATUS_MEM},
	{'O', 0, PROT_OWNED_ANY, 0},
	{'M', 'm', PROT_MEMBER_ANY, PROT_MEMBER_MEM},
	{'A', 'a', PROT_ADD_ANY, PROT_ADD_MEM},
	{0, 'r', 0, PROT_REMOVE_MEM},
};

static char *pt_access_text(uint32_t access, char text[PT_ACCESS_TEXT])
{
	for (size_t i = 0; i < PT_ACCESS_TEXT - 1; i++)
		text[i] = access & places[i].any_bit	   ? places[i].any
			  : access & places[i].members_bit ? places[i].members
							   : '-';
	text[PT_ACCESS_TEXT - 1] = 0;
	return text;
}

bool pt_parse_access(const char *text, uint32_t *access)
{
	*access = 0;
	if (strlen(text) != PT_ACCESS_TEXT - 1)
		return false;
	for (size_t i = 0; i < PT_ACCESS_TEXT - 1; i++) {
		if (places[i].any && text[i] == places[i].any)
			*access |= places[i].any_bit;
		else if (places[i].members && text[i] == places[i].members)
			*access |= places[i].members_bit;
		else if (text[i] != '-')
			return false;
	}
	return true;
}

/* ---- names ---- */

/* The name of an id, or its number if there is no such entry. Returns text. */
static const char *name_of_id(const struct prot_view *view, int32_t id, char text[16])
{
	const struct prot_entry *entry = prot_by_id(view, id);

	if (entry)
		return entry->name;
	snprintf(text, 16, "%d", (int)id);
	return text;
}

static const char *kind_of_entry(const struct prot_entry *entry)
{
	uint32_t address;

	if (entry->id < 0)
		return "group";
	return prot_name_is_machine(entry->name, &address) ? "machine" : "user";
}

/* -- JSON; functions return new references, NULL without memory -- */

static json_t *pack_reference(const struct prot_view *view, int32_t id)
{
	char text[16];

	return json_pack("{s:s, s:i}", "name", name_of_id(view, id, text), "id", (int)id);
}

static json_t *pack_references(const struct prot_view *view, const int32_t *ids, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, pack_reference(view, ids[i]));
	return list;
}

static json_t *pack_protection_entry(const struct prot_view *view, const struct prot_entry *entry,
				     bool members)
{
	char access[PT_ACCESS_TEXT];
	json_t *object = json_pack(
		"{s:s, s:i, s:s, s:o, s:o, s:s, s:i}", "name", entry->name, "id", (int)entry->id,
		"kind", kind_of_entry(entry), "owner", pack_reference(view, entry->owner),
		"creator", pack_reference(view, entry->creator), "access",
		pt_access_text(entry->access, access), "quota", (int)entry->quota);

	if (object && members)
		json_object_set_new(object, entry->id < 0 ? "members" : "groups",
				    pack_references(view, entry->members, entry->count));
	if (object && members && entry->id < 0)
		json_object_set_new(object, "groups",
				    pack_references(view, entry->supers, entry->super_count));
	return object;
}

/* Print {"entries": list}; takes the reference. An exit status. */
static int print_entries_json(json_t *list)
{
	json_t *object = json_pack("{s:o}", "entries", list);

	return tools_json_print(object) == 0 ? 0 : TOOLS_EXIT_FAILURE;
}

/* -- text -- */

static void print_names(const struct prot_view *view, const char *what, const int32_t *ids,
			uint32_t count)
{
	char text[16];

	printf("  %-8s", what);
	for (uint32_t i = 0; i < count; i++)
		printf(" %s", name_of_id(view, ids[i], text));
	printf(count ? "\n" : " -\n");
}

static void print_entry(const struct prot_view *view, const struct prot_entry *entry)
{
	char text[16], access[PT_ACCESS_TEXT];

	printf("%s %s\n", kind_of_entry(entry), entry->name);
	printf("  id       %d\n", (int)entry->id);
	printf("  owner    %s (%d)\n", name_of_id(view, entry->owner, text), (int)entry->owner);
	printf("  creator  %s (%d)\n", name_of_id(view, entry->creator, text), (int)entry->creator);
	printf("  access   %s\n", pt_access_text(entry->access, access));
	if (entry->id > 0)
		printf("  quota    %d\n", (int)entry->quota);
	print_names(view, entry->id < 0 ? "members" : "groups", entry->members, entry->count);
	if (entry->super_count)
		print_names(view, "groups", entry->supers, entry->super_count);
}

int pt_show_added(struct pt *pt, const int32_t *ids, size_t count)
{
	const struct prot_view *view = prot_view_get(pt->prot);
	json_t *list = pt->json ? json_array() : NULL;
	int status = 0;

	for (size_t i = 0; i < count; i++) {
		const struct prot_entry *entry = prot_by_id(view, ids[i]);

		if (!entry)
			continue; /* another process has removed it */
		if (pt->json)
			json_array_append_new(list, pack_protection_entry(view, entry, false));
		else
			printf("%s %s has the id %d\n", kind_of_entry(entry), entry->name,
			       (int)entry->id);
	}
	if (pt->json)
		status = print_entries_json(list);
	prot_view_put(view);
	return status;
}

/* The command line without --users and --groups lists both. */
static bool is_kind_listed(const struct pt *pt, const struct prot_entry *entry)
{
	return pt->users == pt->groups || (entry->id > 0 ? pt->users : pt->groups);
}

int pt_list(struct pt *pt, char **names, size_t count)
{
	const struct prot_view *view = prot_view_get(pt->prot);
	json_t *list = pt->json ? json_array() : NULL;
	char text[16];
	int status = 0;

	(void)names, (void)count;
	if (!pt->json)
		printf("%-11s %-31s %s\n", "ID", "NAME", "OWNER");
	for (size_t i = 0; i < prot_count(view); i++) {
		const struct prot_entry *entry = prot_at(view, i);

		if (!is_kind_listed(pt, entry))
			continue;
		if (pt->json)
			json_array_append_new(list, pack_protection_entry(view, entry, false));
		else
			printf("%-11d %-31s %s\n", (int)entry->id, entry->name,
			       name_of_id(view, entry->owner, text));
	}
	if (pt->json)
		status = print_entries_json(list);
	prot_view_put(view);
	return status;
}

int pt_examine(struct pt *pt, char **names, size_t count)
{
	const struct prot_view *view = prot_view_get(pt->prot);
	json_t *list = pt->json ? json_array() : NULL;
	int status = 0;

	for (size_t i = 0; i < count; i++) {
		const struct prot_entry *entry = pt_find(pt, view, names[i]);

		if (!entry)
			status = TOOLS_EXIT_FAILURE;
		else if (pt->json)
			json_array_append_new(list, pack_protection_entry(view, entry, true));
		else
			print_entry(view, entry);
	}
	if (pt->json && print_entries_json(list))
		status = TOOLS_EXIT_FAILURE;
	prot_view_put(view);
	return status;
}

int pt_members(struct pt *pt, char **names, size_t count)
{
	const struct prot_view *view = prot_view_get(pt->prot);
	const struct prot_entry *entry = pt_find(pt, view, names[0]);
	char text[16];
	int status = entry ? 0 : TOOLS_EXIT_FAILURE;

	(void)count;
	if (entry && pt->json)
		status = print_entries_json(pack_references(view, entry->members, entry->count));
	else if (entry)
		for (uint32_t i = 0; i < entry->count; i++)
			printf("%s\n", name_of_id(view, entry->members[i], text));
	prot_view_put(view);
	return status;
}

int pt_copy(struct pt *pt, char **names, size_t count)
{
	char message[PROT_MESSAGE_MAX];

	(void)count;
	if (!prot_copy(pt->prot, names[0], message))
		return 0;
	return tools_fail(TOOLS_EXIT_FAILURE, "%s", message);
}
