/* SPDX-License-Identifier: BSD-2-Clause */
/* The request that a command line asks for. */
#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"
#include "program/message.h"
#include "program/number.h"
#include "rxvol/volumes.h"

#define SEPARATORS " \t\n"
#define PATH_BYTES 4096 /* with the colon before it */

/* Set a member; false after a message. Takes the reference. */
static bool set_request_member(struct rxvol *rxvol, const char *name, json_t *value)
{
	if (value && json_object_set_new(rxvol->request, name, value) == 0)
		return true;
	return tools_fail(false, "no memory");
}

/* Text in a request is UTF-8. */
static bool set_request_text(struct rxvol *rxvol, const char *name, const char *text)
{
	json_t *value = json_string(text);

	if (value)
		return set_request_member(rxvol, name, value);
	return tools_fail(false, "%s: not text in UTF-8", text);
}

/* VOLUME or VOLUME:PATH; `path`: whether there may be a path. */
static bool set_volume_path(struct rxvol *rxvol, const char *text, bool path)
{
	size_t length = strcspn(text, ":");
	char *volume, *encoded;
	bool good;

	if (!length || (!path && text[length] && text[length + 1] &&
			strspn(text + length + 1, "/") != strlen(text + length + 1))) {
		return tools_fail(false, "%s: %s; see rxvol --help", text,
				  length ? "only a volume can be given here, without a path"
					 : "the name of a volume is missing");
	}
	volume = strndup(text, length);
	good = volume && set_request_text(rxvol, "volume", volume);
	free(volume);
	if (!good || !path || !text[length])
		return good;
	if (strlen(text + length) > PATH_BYTES)
		return tools_fail(false, "the path is longer than %d bytes", PATH_BYTES - 1);
	encoded = admin_text(text + length + 1);
	good = encoded && set_request_text(rxvol, "path", encoded);
	free(encoded);
	return good;
}

static bool set_quota(struct rxvol *rxvol, const char *text)
{
	uint64_t bytes = 0;

	if (strcmp(text, "none") && tools_parse_size(text, &bytes))
		return tools_fail(
			false,
			"quota \"%s\": give a number of bytes, or of K, M, G or T, such as 500M; "
			"or none",
			text);
	if (bytes > (uint64_t)1 << 50)
		return tools_fail(false, "quota \"%s\": at most 1024T", text);
	return set_request_member(rxvol, "quota", json_integer((json_int_t)bytes));
}

/* -- access lists: NAME RIGHTS NAME RIGHTS ... -- */

static bool append_acl_entry(json_t *list, const char *name, const char *rights, bool negative)
{
	return json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "name", name, "rights",
						     rights, "negative", negative)) == 0;
}

static bool report_missing_rights(const char *name)
{
	return tools_fail(false,
			  "access list: \"%s\" has no rights after it; give pairs such as "
			  "'system:anyuser rl'",
			  name);
}

/* Entries as words of the command line. */
static bool set_acl_of_words(struct rxvol *rxvol, char **words, size_t count)
{
	json_t *list = json_array();

	if (count % 2) {
		json_decref(list);
		return report_missing_rights(words[count - 1]);
	}
	for (size_t i = 0; i < count; i += 2)
		if (!append_acl_entry(list, words[i], words[i + 1], rxvol->negative)) {
			json_decref(list);
			return tools_fail(false, "access list: %s: not text in UTF-8", words[i]);
		}
	return set_request_member(rxvol, "acl", list);
}

/* Entries as one text of each --acl. */
static bool set_acl_of_options(struct rxvol *rxvol)
{
	json_t *list = json_array();
	bool good = list;

	for (size_t i = 0; good && i < rxvol->acl.count; i++) {
		char *text = strdup(rxvol->acl.items[i]), *rest = NULL, *name, *rights;

		name = text ? strtok_r(text, SEPARATORS, &rest) : NULL;
		if (!name)
			good = report_missing_rights(rxvol->acl.items[i]);
		for (; good && name; name = strtok_r(NULL, SEPARATORS, &rest)) {
			rights = strtok_r(NULL, SEPARATORS, &rest);
			good = rights ? append_acl_entry(list, name, rights, false)
				      : report_missing_rights(name);
		}
		free(text);
	}
	if (good)
		return set_request_member(rxvol, "acl", list);
	json_decref(list);
	return false;
}

/* -- options -- */

static bool set_value_members(struct rxvol *v)
{
	return (!v->acl.count || set_acl_of_options(v)) && (!v->quota || set_quota(v, v->quota)) &&
	       (!v->id || set_request_member(v, "id", json_integer((json_int_t)v->id)));
}

/* The members of all options. One that the command ignores would surprise the user. False after a message. */
static bool set_option_members(struct rxvol *v)
{
	/* A member without a text is a flag. */
	const struct {
		bool given;
		const char *option, *commands[3], *member, *text;
	} uses[] = {
		{v->acl.count > 0, "--acl", {"create"}, .member = NULL},
		{v->quota, "--quota", {"create"}, .member = NULL},
		{v->id, "--id", {"create", "restore"}, .member = NULL},
		{v->owner, "--owner", {"create", "import"}, .member = "owner", .text = v->owner},
		{v->backup, "--backup", {"clone"}, .member = "backup"},
		{v->rw, "--rw", {"mount"}, .member = "rw"},
		{v->set_id, "--set-id", {"export"}, .member = "set_id"},
		{v->negative, "--negative", {"acl"}, .member = NULL},
		{v->update, "--update", {"import", "export"}, .member = "update"},
		{v->compare, "--compare", {"import"}, .member = "compare"},
		{v->remove, "--delete", {"import", "export"}, .member = "delete"},
		{v->attributes,
		 "--attributes",
		 {"import", "export", "compare"},
		 .member = "attributes"},
		{v->since, "--since", {"dump"}, .member = "since", .text = v->since},
		{v->damaged, "--damaged", {"dump"}, .member = "damaged", .text = v->damaged},
		{v->file, "--file", {"dump", "restore"}, .member = NULL},
		{v->replace, "--replace", {"restore"}, .member = "replace"},
		{v->message, "--message", {"offline"}, .member = "message", .text = v->message},
		{v->fast, "--fast", {"check"}, .member = "fast"},
		{v->data, "--data", {"check"}, .member = "data"},
	};
	const size_t count = sizeof(uses) / sizeof(uses[0]);
	bool good = true;

	for (size_t i = 0; i < count; i++) {
		const char *const *commands = uses[i].commands;
		size_t at = 0;

		while (at < 3 && commands[at] && strcmp(v->command, commands[at]) != 0)
			at++;
		if (uses[i].given && (at == 3 || !commands[at]))
			return tools_fail(
				false, "%s is an option of %s%s%s%s%s", uses[i].option, commands[0],
				commands[1] ? commands[2] ? ", " : " and " : "",
				commands[1] ? commands[1] : "", commands[2] ? " and " : "",
				commands[2] ? commands[2] : "");
	}
	for (size_t i = 0; good && i < count; i++)
		if (uses[i].given && uses[i].text)
			good = set_request_text(v, uses[i].member, uses[i].text);
		else if (uses[i].given && uses[i].member)
			good = set_request_member(v, uses[i].member, json_true());
	return good && set_value_members(v);
}

/* -- commands: false after a message -- */

static bool request_nothing(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)rxvol, (void)arguments, (void)count;
	return true;
}

static bool request_create(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)count;
	return set_request_text(rxvol, "name", arguments[0]);
}

static bool request_volume(struct rxvol *rxvol, char **arguments, size_t count)
{
	return !count || set_volume_path(rxvol, arguments[0], false);
}

static bool request_rename(struct rxvol *rxvol, char **arguments, size_t count)
{
	return request_volume(rxvol, arguments, count) &&
	       set_request_text(rxvol, "name", arguments[1]);
}

static bool request_quota(struct rxvol *rxvol, char **arguments, size_t count)
{
	return request_volume(rxvol, arguments, count) &&
	       (count < 2 || set_quota(rxvol, arguments[1]));
}

static bool request_path(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)count;
	return set_volume_path(rxvol, arguments[0], true);
}

static bool request_acl(struct rxvol *rxvol, char **arguments, size_t count)
{
	return request_path(rxvol, arguments, count) &&
	       (count < 2 || set_acl_of_words(rxvol, arguments + 1, count - 1));
}

static bool request_mount(struct rxvol *rxvol, char **arguments, size_t count)
{
	return request_path(rxvol, arguments, count) &&
	       set_request_text(rxvol, "target", arguments[1]);
}

/* import, export and compare; rxvol_session() opens the directory. */
static bool request_copy(struct rxvol *rxvol, char **arguments, size_t count)
{
	rxvol->local = arguments[1];
	return request_path(rxvol, arguments, count);
}

/* rescue; no store is open. */
static bool request_rescue(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)count;
	rxvol->store = arguments[0];
	rxvol->target = arguments[1];
	return true;
}

/* dump and restore; rxvol_session() opens the stream. */
static bool request_stream(struct rxvol *rxvol, char **arguments, size_t count)
{
	rxvol->stream = true;
	return request_volume(rxvol, arguments, count);
}

/* VOLUME:PATH; a FID as logs have it, 536870912.2.5, maybe without its last number; VOLUME VNODE [UNIQUE]. */
static bool request_which(struct rxvol *rxvol, char **arguments, size_t count)
{
	uint64_t numbers[3] = {0};
	const char *volume = arguments[0];
	char id[24];

	if (count == 1 && strchr(volume, ':'))
		return set_volume_path(rxvol, volume, true);
	if (count == 1 && !rxvol_parse_fid(volume, numbers))
		return tools_fail(
			false, "%s: give VOLUME:PATH, a FID such as 536870912.2.5, or VOLUME VNODE",
			volume);
	for (size_t i = 1; i < count; i++)
		if (tools_parse_uint(arguments[i], &numbers[i]) || !numbers[i])
			return tools_fail(
				false,
				"%s: give the number of a vnode, and maybe its unique number",
				arguments[i]);
	if (count == 1) {
		snprintf(id, sizeof(id), "%llu", (unsigned long long)numbers[0]);
		volume = id;
	}
	return set_volume_path(rxvol, volume, false) &&
	       set_request_member(rxvol, "vnode", json_integer((json_int_t)numbers[1])) &&
	       (!numbers[2] ||
		set_request_member(rxvol, "unique", json_integer((json_int_t)numbers[2])));
}

static const struct command {
	struct tools_command base;
	bool (*request)(struct rxvol *rxvol, char **arguments, size_t count);
} commands[] = {
	{{"init", 0, 0, ""}, request_nothing},
	{{"create", 1, 1, "NAME [--acl 'NAME RIGHTS...'] [--quota SIZE] [--id N] [--owner NAME|N]"},
	 request_create},
	{{"list", 0, 0, ""}, request_nothing},
	{{"examine", 1, 1, "VOLUME"}, request_volume},
	{{"remove", 1, 1, "VOLUME"}, request_volume},
	{{"rename", 2, 2, "VOLUME NEWNAME"}, request_rename},
	{{"clone", 1, 1, "VOLUME [--backup]"}, request_volume},
	{{"mount", 2, 2, "VOLUME:PATH TARGET [--rw]"}, request_mount},
	{{"mounts", 0, 1, "[VOLUME]"}, request_volume},
	{{"unmount", 1, 1, "VOLUME:PATH"}, request_path},
	{{"which", 1, 3, "VOLUME:PATH | FID | VOLUME VNODE [UNIQUE]"}, request_which},
	{{"import", 2, 2, "VOLUME[:PATH] DIRECTORY [--update]"}, request_copy},
	{{"export", 2, 2, "VOLUME[:PATH] DIRECTORY [--update]"}, request_copy},
	{{"compare", 2, 2, "VOLUME[:PATH] DIRECTORY [--attributes]"}, request_copy},
	{{"dump", 1, 1, "VOLUME [--since CLONE] [--damaged skip|fail] [--file FILE]"},
	 request_stream},
	{{"restore", 1, 1, "VOLUME [--id N] [--replace] [--file FILE]"}, request_stream},
	{{"restore-from", 1, 1, "CLONE"}, request_volume},
	{{"quota", 1, 2, "VOLUME [SIZE|none]"}, request_quota},
	{{"acl", 1, SIZE_MAX, "VOLUME[:PATH] [[-n] NAME RIGHTS...]"}, request_acl},
	{{"online", 1, 1, "VOLUME"}, request_volume},
	{{"offline", 1, 1, "VOLUME [--message TEXT]"}, request_volume},
	{{"check", 0, 0, "[--fast | --data]"}, request_nothing},
	{{"convert", 0, 0, ""}, request_nothing},
	{{"use-copy", 0, 0, "[--copy DIR]"}, request_nothing},
	{{"rescue", 2, 2, "SOURCE TARGET [--copy DIR]"}, request_rescue},
	{{"move-in", 1, 1, "SERVER[:PARTITION] [--to SERVER[:PARTITION]]"}, request_nothing},
	{{"balance", 0, SIZE_MAX, "[SERVER...] [--do]"}, request_nothing},
};

int rxvol_request(struct rxvol *rxvol, const struct tools_program *program, char **words,
		  size_t count)
{
	const struct command *command =
		tools_find_command(program, commands, sizeof(commands) / sizeof(commands[0]),
				   sizeof(commands[0]), words, count);

	if (!command)
		return TOOLS_EXIT_USAGE;
	rxvol->command = command->base.name;
	rxvol->request = json_pack("{s:s}", "command", rxvol->command);
	if (!rxvol->request)
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	return command->request(rxvol, words + 1, count - 1) && set_option_members(rxvol)
		       ? 0
		       : TOOLS_EXIT_USAGE;
}
