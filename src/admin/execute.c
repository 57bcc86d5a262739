/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands, how a request becomes one, and where the server of a store takes requests. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "admin/private.h"

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
static const struct admin_member check_members[] = {
	{"fast", ADMIN_FLAG, false},
	{"data", ADMIN_FLAG, false},
	{"progress", ADMIN_FLAG, false},
};
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
static const struct admin_member mounts_members[] = {{"volume", ADMIN_TEXT, false}};
static const struct admin_member unmount_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"path", ADMIN_ANY_TEXT, false},
};
static const struct admin_member which_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"path", ADMIN_ANY_TEXT, false},
	{"vnode", ADMIN_NUMBER, false},
	{"unique", ADMIN_NUMBER, false},
};
static const struct admin_member import_members[] = {
	{"volume", ADMIN_TEXT, true},	   {"path", ADMIN_ANY_TEXT, false},
	{"owner", ADMIN_TEXT, false},	   {"update", ADMIN_FLAG, false},
	{"compare", ADMIN_FLAG, false},	   {"delete", ADMIN_FLAG, false},
	{"attributes", ADMIN_FLAG, false}, {"progress", ADMIN_FLAG, false},
};
static const struct admin_member export_members[] = {
	{"volume", ADMIN_TEXT, true},	 {"path", ADMIN_ANY_TEXT, false},
	{"set_id", ADMIN_FLAG, false},	 {"update", ADMIN_FLAG, false},
	{"delete", ADMIN_FLAG, false},	 {"attributes", ADMIN_FLAG, false},
	{"progress", ADMIN_FLAG, false},
};

static const struct admin_member compare_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"path", ADMIN_ANY_TEXT, false},
	{"attributes", ADMIN_FLAG, false},
	{"progress", ADMIN_FLAG, false},
};
static const struct admin_member dump_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"since", ADMIN_TEXT, false},
	{"damaged", ADMIN_TEXT, false},
	{"progress", ADMIN_FLAG, false},
};
static const struct admin_member restore_members[] = {
	{"volume", ADMIN_TEXT, true},
	{"id", ADMIN_NUMBER, false},
	{"replace", ADMIN_FLAG, false},
	{"progress", ADMIN_FLAG, false},
};

/* The descriptor that a command needs. */
enum wanted {
	WANTS_NOTHING,
	WANTS_DIRECTORY,
	WANTS_STREAM
};

enum effect {
	CHANGES_NOTHING,
	CHANGES_CONTENTS,
	CHANGES_VOLUMES /* which there are, or their names */
};

#define MEMBERS(array) array, sizeof(array) / sizeof((array)[0])
static const struct command {
	const char *name;
	int (*execute)(struct admin_run *run);
	const struct admin_member *members;
	size_t count;
	enum effect changes;
	enum wanted wants;
} commands[] = {
	{"create", admin_create, MEMBERS(create_members), CHANGES_VOLUMES, WANTS_NOTHING},
	{"list", admin_list, no_members, 0, CHANGES_NOTHING, WANTS_NOTHING},
	{"examine", admin_examine, MEMBERS(volume_only), CHANGES_NOTHING, WANTS_NOTHING},
	{"remove", admin_remove, MEMBERS(volume_only), CHANGES_VOLUMES, WANTS_NOTHING},
	{"rename", admin_rename, MEMBERS(rename_members), CHANGES_VOLUMES, WANTS_NOTHING},
	{"clone", admin_clone, MEMBERS(clone_members), CHANGES_VOLUMES, WANTS_NOTHING},
	{"quota", admin_quota, MEMBERS(quota_members), CHANGES_CONTENTS, WANTS_NOTHING},
	{"online", admin_online, MEMBERS(volume_only), CHANGES_CONTENTS, WANTS_NOTHING},
	{"offline", admin_offline, MEMBERS(offline_members), CHANGES_CONTENTS, WANTS_NOTHING},
	{"check", admin_check, MEMBERS(check_members), CHANGES_NOTHING, WANTS_NOTHING},
	{"acl", admin_acl, MEMBERS(acl_members), CHANGES_CONTENTS, WANTS_NOTHING},
	{"mount", admin_mount, MEMBERS(mount_members), CHANGES_CONTENTS, WANTS_NOTHING},
	{"mounts", admin_mounts, MEMBERS(mounts_members), CHANGES_NOTHING, WANTS_NOTHING},
	{"unmount", admin_unmount, MEMBERS(unmount_members), CHANGES_CONTENTS, WANTS_NOTHING},
	{"which", admin_which, MEMBERS(which_members), CHANGES_NOTHING, WANTS_NOTHING},
	{"import", admin_import, MEMBERS(import_members), CHANGES_CONTENTS, WANTS_DIRECTORY},
	{"export", admin_export, MEMBERS(export_members), CHANGES_NOTHING, WANTS_DIRECTORY},
	{"compare", admin_compare, MEMBERS(compare_members), CHANGES_NOTHING, WANTS_DIRECTORY},
	{"dump", admin_dump, MEMBERS(dump_members), CHANGES_NOTHING, WANTS_STREAM},
	{"restore", admin_restore, MEMBERS(restore_members), CHANGES_VOLUMES, WANTS_STREAM},
	{"restore-from", admin_restore_from, MEMBERS(volume_only), CHANGES_CONTENTS, WANTS_NOTHING},
};

static const struct command *find_request_command(const char *name)
{
	for (size_t i = 0; name && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

bool admin_changes(const char *command)
{
	const struct command *found = find_request_command(command);

	return found && found->changes;
}

static bool has_wanted(const struct admin_run *run, enum wanted wants)
{
	struct stat st;

	if (wants == WANTS_NOTHING)
		return true;
	if (run->output->directory < 0 || fstat(run->output->directory, &st))
		return false;
	/* import has a socket in place of its directory. */
	return S_ISSOCK(st.st_mode) ||
	       (wants == WANTS_STREAM ? S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)
				      : S_ISDIR(st.st_mode));
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
	*command = find_request_command(json_string_value(name));
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
	if (!has_wanted(run, (*command)->wants))
		return admin_fail(
			run, 2, "request: %s needs the descriptor of a %s", (*command)->name,
			(*command)->wants == WANTS_STREAM ? "file, pipe or socket" : "directory");
	return 0;
}

/* Ids and names of a member's volumes are given out by the location service of its cell. */
static int check_membership(struct admin_run *run, const struct command *command)
{
	bool member = false;
	int rc = command->changes == CHANGES_VOLUMES ? store_is_member(run->store, &member) : 0;

	if (rc)
		return admin_fail_code(run, rc, "%s", command->name);
	if (!member)
		return 0;
	return admin_fail(run, 1,
			  "%s: the volumes of this store belong to a cell, whose location service "
			  "gives out their ids and names: use vos",
			  command->name);
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

	if (!rc)
		rc = check_membership(&run, command);
	return rc ? rc : command->execute(&run);
}

int admin_socket_address(const char *directory, struct sockaddr_un *address, int *descriptor)
{
	size_t room = sizeof(address->sun_path);
	int n = snprintf(address->sun_path, room, "%s/" ADMIN_SOCKET, directory);

	address->sun_family = AF_UNIX;
	*descriptor = -1;
	if (n > 0 && (size_t)n < room)
		return 0;
	*descriptor = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(address->sun_path, room, "/proc/self/fd/%d/" ADMIN_SOCKET, *descriptor);
	return *descriptor < 0 ? -1 : 0;
}
