/* SPDX-License-Identifier: BSD-2-Clause */
/* The request that a command line asks for. */
#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"
#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/volumes/volumes.h"

#define SEPARATORS " \t\n"

/* Set a member; false after a message. Takes the reference. */
static bool set(struct volumes *volumes, const char *name, json_t *value)
{
	if (value && json_object_set_new(volumes->request, name, value) == 0)
		return true;
	tools_error("no memory");
	return false;
}

/* Text in a request is UTF-8. */
static bool set_text(struct volumes *volumes, const char *name, const char *text)
{
	json_t *value = json_string(text);

	if (value)
		return set(volumes, name, value);
	tools_error("%s: not text in UTF-8", text);
	return false;
}

/* VOLUME or VOLUME:PATH; `path`: whether there may be a path. */
static bool set_place(struct volumes *volumes, const char *text, bool path)
{
	size_t length = strcspn(text, ":");
	char *volume, *encoded;
	bool good;

	if (!length || (!path && text[length] && text[length + 1] &&
			strspn(text + length + 1, "/") != strlen(text + length + 1))) {
		tools_error("%s: %s; see rxvol --help", text,
			    length ? "only a volume can be given here, without a path"
				   : "the name of a volume is missing");
		return false;
	}
	volume = strndup(text, length);
	good = volume && set_text(volumes, "volume", volume);
	free(volume);
	if (!good || !path || !text[length])
		return good;
	encoded = admin_text(text + length + 1);
	good = encoded && set_text(volumes, "path", encoded);
	free(encoded);
	return good;
}

static bool set_size(struct volumes *volumes, const char *text)
{
	uint64_t bytes = 0;

	if (strcmp(text, "none") && tools_parse_size(text, &bytes)) {
		tools_error(
			"quota \"%s\": give a number of bytes, or of K, M, G or T, such as 500M; "
			"or none",
			text);
		return false;
	}
	if (bytes > (uint64_t)1 << 50) {
		tools_error("quota \"%s\": at most 1024T", text);
		return false;
	}
	return set(volumes, "quota", json_integer((json_int_t)bytes));
}

/* -- access lists: NAME RIGHTS NAME RIGHTS ... -- */

static bool add_entry(json_t *list, const char *name, const char *rights, bool negative)
{
	return json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "name", name, "rights",
						     rights, "negative", negative)) == 0;
}

static bool entry_failed(const char *name)
{
	tools_error("access list: \"%s\" has no rights after it; give pairs such as "
		    "'system:anyuser rl'",
		    name);
	return false;
}

/* Entries as words of the command line. */
static bool set_words(struct volumes *volumes, char **words, size_t count)
{
	json_t *list = json_array();

	if (count % 2) {
		json_decref(list);
		return entry_failed(words[count - 1]);
	}
	for (size_t i = 0; i < count; i += 2)
		if (!add_entry(list, words[i], words[i + 1], volumes->negative)) {
			json_decref(list);
			tools_error("access list: %s: not text in UTF-8", words[i]);
			return false;
		}
	return set(volumes, "acl", list);
}

/* Entries as one text of each --acl. */
static bool set_texts(struct volumes *volumes)
{
	json_t *list = json_array();
	bool good = list;

	for (size_t i = 0; good && i < volumes->acl.count; i++) {
		char *text = strdup(volumes->acl.items[i]), *rest = NULL, *name, *rights;

		name = text ? strtok_r(text, SEPARATORS, &rest) : NULL;
		if (!name)
			good = entry_failed(volumes->acl.items[i]);
		for (; good && name; name = strtok_r(NULL, SEPARATORS, &rest)) {
			rights = strtok_r(NULL, SEPARATORS, &rest);
			good = rights ? add_entry(list, name, rights, false) : entry_failed(name);
		}
		free(text);
	}
	if (good)
		return set(volumes, "acl", list);
	json_decref(list);
	return false;
}

/* -- commands: false after a message -- */

static bool no_arguments(struct volumes *volumes, char **arguments, size_t count)
{
	(void)arguments;
	(void)count;
	return !volumes->fast || set(volumes, "fast", json_true());
}

static bool create(struct volumes *volumes, char **arguments, size_t count)
{
	(void)count;
	return set_text(volumes, "name", arguments[0]) &&
	       (!volumes->acl.count || set_texts(volumes)) &&
	       (!volumes->quota || set_size(volumes, volumes->quota)) &&
	       (!volumes->id || set(volumes, "id", json_integer((json_int_t)volumes->id))) &&
	       (!volumes->owner || set_text(volumes, "owner", volumes->owner));
}

static bool volume_only(struct volumes *volumes, char **arguments, size_t count)
{
	(void)count;
	return set_place(volumes, arguments[0], false) &&
	       (!volumes->backup || set(volumes, "backup", json_true())) &&
	       (!volumes->message || set_text(volumes, "message", volumes->message));
}

static bool rename_volume(struct volumes *volumes, char **arguments, size_t count)
{
	(void)count;
	return set_place(volumes, arguments[0], false) && set_text(volumes, "name", arguments[1]);
}

static bool quota(struct volumes *volumes, char **arguments, size_t count)
{
	return set_place(volumes, arguments[0], false) &&
	       (count < 2 || set_size(volumes, arguments[1]));
}

static bool acl(struct volumes *volumes, char **arguments, size_t count)
{
	return set_place(volumes, arguments[0], true) &&
	       (count < 2 || set_words(volumes, arguments + 1, count - 1));
}

static bool mount(struct volumes *volumes, char **arguments, size_t count)
{
	(void)count;
	return set_place(volumes, arguments[0], true) &&
	       set_text(volumes, "target", arguments[1]) &&
	       (!volumes->rw || set(volumes, "rw", json_true()));
}

/* import and export; volumes_session() opens the directory. */
static bool copy(struct volumes *volumes, char **arguments, size_t count)
{
	(void)count;
	volumes->local = arguments[1];
	return set_place(volumes, arguments[0], true) &&
	       (!volumes->owner || set_text(volumes, "owner", volumes->owner));
}

static const struct command {
	const char *name;
	bool (*request)(struct volumes *volumes, char **arguments, size_t count);
	size_t least, most; /* arguments */
	const char *arguments;
} commands[] = {
	{"init", no_arguments, 0, 0, ""},
	{"create", create, 1, 1, " NAME"},
	{"list", no_arguments, 0, 0, ""},
	{"examine", volume_only, 1, 1, " VOLUME"},
	{"remove", volume_only, 1, 1, " VOLUME"},
	{"rename", rename_volume, 2, 2, " VOLUME NEWNAME"},
	{"clone", volume_only, 1, 1, " VOLUME [--backup]"},
	{"mount", mount, 2, 2, " VOLUME:PATH TARGET [--rw]"},
	{"import", copy, 2, 2, " VOLUME[:PATH] DIRECTORY"},
	{"export", copy, 2, 2, " VOLUME[:PATH] DIRECTORY"},
	{"quota", quota, 1, 2, " VOLUME [SIZE|none]"},
	{"acl", acl, 1, SIZE_MAX, " VOLUME[:PATH] [[-n] NAME RIGHTS...]"},
	{"online", volume_only, 1, 1, " VOLUME"},
	{"offline", volume_only, 1, 1, " VOLUME [--message TEXT]"},
	{"check", no_arguments, 0, 0, " [--fast]"},
};

int volumes_request(struct volumes *volumes, char **arguments, size_t count)
{
	const struct command *command = NULL;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, volumes->command))
			command = &commands[i];
	if (!command) {
		tools_error("%s: no such command; see rxvol --help", volumes->command);
		return TOOLS_EXIT_USAGE;
	}
	if (count < command->least || count > command->most) {
		tools_error("usage: rxvol -S DIR %s%s", command->name, command->arguments);
		return TOOLS_EXIT_USAGE;
	}
	volumes->request = json_pack("{s:s}", "command", command->name);
	if (!volumes->request) {
		tools_error("no memory");
		return TOOLS_EXIT_FAILURE;
	}
	return command->request(volumes, arguments, count) ? 0 : TOOLS_EXIT_USAGE;
}
