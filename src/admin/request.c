/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of a request, and which commands there are. */
#include <string.h>
#include <stdio.h>

#include "admin/private.h"

#define TEXT_MAX   4095
#define LIST_MAX   64
#define NUMBER_MAX ((json_int_t)1 << 53)

static const struct admin_member no_members[1];
static const struct admin_member volume_only[] = {{"volume", ADMIN_TEXT, true}};
static const struct admin_member create_members[] = {
	{"name", ADMIN_ANY_TEXT, true}, {"quota", ADMIN_NUMBER, false}, {"id", ADMIN_NUMBER, false},
	{"owner", ADMIN_TEXT, false},	{"acl", ADMIN_LIST, false},
};
static const struct admin_member rename_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"name", ADMIN_ANY_TEXT, true},
};
static const struct admin_member clone_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"backup", ADMIN_FLAG, false},
};
static const struct admin_member quota_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"quota", ADMIN_NUMBER, false},
};
static const struct admin_member offline_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"message", ADMIN_ANY_TEXT, false},
};
static const struct admin_member check_members[] = {{"fast", ADMIN_FLAG, false}};
static const struct admin_member acl_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"path", ADMIN_ANY_TEXT, false},
	{"acl", ADMIN_LIST, false},
};
static const struct admin_member mount_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"path", ADMIN_ANY_TEXT, false},
	{"target", ADMIN_TEXT, true},
	{"rw", ADMIN_FLAG, false},
};
static const struct admin_member import_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"path", ADMIN_ANY_TEXT, false},
	{"owner", ADMIN_TEXT, false},
	{"progress", ADMIN_FLAG, false},
};
static const struct admin_member export_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"path", ADMIN_ANY_TEXT, false},
	{"progress", ADMIN_FLAG, false},
};

#define MEMBERS(array) array, sizeof(array) / sizeof((array)[0])
static const struct command {
	const char *name;
	int (*execute)(struct admin_run *run);
	const struct admin_member *members;
	size_t count;
	bool changes, directory;
} commands[] = {
	{"create", admin_create, MEMBERS(create_members), true, false},
	{"list", admin_list, no_members, 0, false, false},
	{"examine", admin_examine, MEMBERS(volume_only), false, false},
	{"remove", admin_remove, MEMBERS(volume_only), true, false},
	{"rename", admin_rename, MEMBERS(rename_members), true, false},
	{"clone", admin_clone, MEMBERS(clone_members), true, false},
	{"quota", admin_quota, MEMBERS(quota_members), true, false},
	{"online", admin_online, MEMBERS(volume_only), true, false},
	{"offline", admin_offline, MEMBERS(offline_members), true, false},
	{"check", admin_check, MEMBERS(check_members), false, false},
	{"acl", admin_acl, MEMBERS(acl_members), true, false},
	{"mount", admin_mount, MEMBERS(mount_members), true, false},
	{"import", admin_import, MEMBERS(import_members), true, true},
	{"export", admin_export, MEMBERS(export_members), false, true},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; name && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

bool admin_wants_directory(const char *command)
{
	const struct command *found = find_command(command);

	return found && found->directory;
}

bool admin_changes(const char *command)
{
	const struct command *found = find_command(command);

	return found && found->changes;
}

/* What a member must be; NULL: it is. */
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

/* The request without its command, checked. 0, or 2 after an error. */
static int check_request(struct admin_run *run, const struct command **command)
{
	const json_t *name = json_object_get(run->request, "command");
	char message[STORE_MESSAGE_MAX];
	json_t *rest;
	int rc;

	if (!json_is_object(run->request) || !json_is_string(name))
		return admin_fail(run, 2,
				  "request: it must be an object with a member \"command\"");
	*command = find_command(json_string_value(name));
	if (!*command)
		return admin_fail(run, 2, "request: unknown command \"%.40s\"",
				  json_string_value(name));
	rest = json_copy((json_t *)run->request);
	if (!rest)
		return admin_fail(run, 1, "no memory");
	json_object_del(rest, "command");
	rc = admin_members_check(rest, (*command)->members, (*command)->count, message);
	json_decref(rest);
	if (rc)
		return admin_fail(run, 2, "%s", message);
	if ((*command)->directory && run->output->directory < 0)
		return admin_fail(run, 2, "request: %s needs the descriptor of a directory",
				  (*command)->name);
	return 0;
}

int admin_execute(const struct admin_options *options, const json_t *request,
		  const struct admin_output *output)
{
	struct admin_run run = {
		.options = options,
		.output = output,
		.request = request,
		.store = options->store,
	};
	const struct command *command;
	int rc = check_request(&run, &command);

	return rc ? rc : command->execute(&run);
}
