/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of a request. */
#include <stdio.h>
#include <string.h>

#include "admin/private.h"

#define TEXT_MAX   4095
#define LIST_MAX   64
#define NUMBER_MAX ((json_int_t)1 << 53)

/* The type that is required of a member; NULL: it has that type. */
static const char *wrong_kind(const json_t *value, enum admin_kind kind)
{
	switch (kind) {
	case ADMIN_TEXT:
	case ADMIN_ANY_TEXT:
		if (!json_is_string(value) || json_string_length(value) > TEXT_MAX ||
		    strlen(json_string_value(value)) != json_string_length(value))
			return "a text of at most 4095 bytes";
		return kind == ADMIN_TEXT && !json_string_length(value) ? "a text that is not empty"
									: NULL;
	case ADMIN_NUMBER:
		return json_is_integer(value) && json_integer_value(value) >= 0 &&
				       json_integer_value(value) <= NUMBER_MAX
			       ? NULL
			       : "a whole number from 0 to 2^53";
	case ADMIN_FLAG:
		return json_is_boolean(value) ? NULL : "true or false";
	case ADMIN_LIST:
		return json_is_array(value) && json_array_size(value) <= LIST_MAX
			       ? NULL
			       : "a list of at most 64 objects";
	}
	return "something else";
}

static const struct admin_member *find_member(const char *name, const struct admin_member *members,
					      size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(members[i].name, name))
			return &members[i];
	return NULL;
}

int admin_members_check(const json_t *object, const struct admin_member *members, size_t count,
			char message[STORE_MESSAGE_MAX])
{
	const char *name, *wrong;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		const struct admin_member *member = find_member(name, members, count);

		if (!member) {
			snprintf(message, STORE_MESSAGE_MAX, "request: unknown member \"%.40s\"",
				 name);
			return -1;
		}
		wrong = wrong_kind(value, member->kind);
		if (wrong) {
			snprintf(message, STORE_MESSAGE_MAX, "request: member \"%s\" must be %s",
				 name, wrong);
			return -1;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (members[i].required && !json_object_get(object, members[i].name)) {
			snprintf(message, STORE_MESSAGE_MAX, "request: member \"%s\" is missing",
				 members[i].name);
			return -1;
		}
	return 0;
}

const char *admin_get_text(const struct admin_run *run, const char *name)
{
	return json_string_value(json_object_get(run->request, name));
}

bool admin_get_flag(const struct admin_run *run, const char *name)
{
	return json_is_true(json_object_get(run->request, name));
}

uint64_t admin_get_number(const struct admin_run *run, const char *name, uint64_t missing)
{
	const json_t *value = json_object_get(run->request, name);

	return value ? (uint64_t)json_integer_value(value) : missing;
}
