/* SPDX-License-Identifier: BSD-2-Clause */
/* The request that a command line asks for. */
#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"
#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/volumes/volumes.h"

#define SEPARATORS " \t\n"
#define PATH_BYTES 4096 /* with the colon before it */

/* Set a member; false after a message. Takes the reference. */
static bool set(struct rxvol *rxvol, const char *name, json_t *value)
{
	if (value && json_object_set_new(rxvol->request, name, value) == 0)
		return true;
	tools_error("no memory");
	return false;
}

/* Text in a request is UTF-8. */
static bool set_text(struct rxvol *rxvol, const char *name, const char *text)
{
	json_t *value = json_string(text);

	if (value)
		return set(rxvol, name, value);
	tools_error("%s: not text in UTF-8", text);
	return false;
}

/* VOLUME or VOLUME:PATH; `path`: whether there may be a path. */
static bool set_place(struct rxvol *rxvol, const char *text, bool path)
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
	good = volume && set_text(rxvol, "volume", volume);
	free(volume);
	if (!good || !path || !text[length])
		return good;
	if (strlen(text + length) > PATH_BYTES) {
		tools_error("the path is longer than %d bytes", PATH_BYTES - 1);
		return false;
	}
	encoded = admin_text(text + length + 1);
	good = encoded && set_text(rxvol, "path", encoded);
	free(encoded);
	return good;
}

static bool set_size(struct rxvol *rxvol, const char *text)
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
	return set(rxvol, "quota", json_integer((json_int_t)bytes));
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
static bool set_words(struct rxvol *rxvol, char **words, size_t count)
{
	json_t *list = json_array();

	if (count % 2) {
		json_decref(list);
		return entry_failed(words[count - 1]);
	}
	for (size_t i = 0; i < count; i += 2)
		if (!add_entry(list, words[i], words[i + 1], rxvol->negative)) {
			json_decref(list);
			tools_error("access list: %s: not text in UTF-8", words[i]);
			return false;
		}
	return set(rxvol, "acl", list);
}

/* Entries as one text of each --acl. */
static bool set_texts(struct rxvol *rxvol)
{
	json_t *list = json_array();
	bool good = list;

	for (size_t i = 0; good && i < rxvol->acl.count; i++) {
		char *text = strdup(rxvol->acl.items[i]), *rest = NULL, *name, *rights;

		name = text ? strtok_r(text, SEPARATORS, &rest) : NULL;
		if (!name)
			good = entry_failed(rxvol->acl.items[i]);
		for (; good && name; name = strtok_r(NULL, SEPARATORS, &rest)) {
			rights = strtok_r(NULL, SEPARATORS, &rest);
			good = rights ? add_entry(list, name, rights, false) : entry_failed(name);
		}
		free(text);
	}
	if (good)
		return set(rxvol, "acl", list);
	json_decref(list);
	return false;
}

/* -- commands: false after a message -- */

static bool no_arguments(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)arguments;
	(void)count;
	return !rxvol->fast || set(rxvol, "fast", json_true());
}

static bool create(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)count;
	return set_text(rxvol, "name", arguments[0]) && (!rxvol->acl.count || set_texts(rxvol)) &&
	       (!rxvol->quota || set_size(rxvol, rxvol->quota)) &&
	       (!rxvol->id || set(rxvol, "id", json_integer((json_int_t)rxvol->id))) &&
	       (!rxvol->owner || set_text(rxvol, "owner", rxvol->owner));
}

static bool volume_only(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)count;
	return set_place(rxvol, arguments[0], false) &&
	       (!rxvol->backup || set(rxvol, "backup", json_true())) &&
	       (!rxvol->message || set_text(rxvol, "message", rxvol->message));
}

static bool rename_volume(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)count;
	return set_place(rxvol, arguments[0], false) && set_text(rxvol, "name", arguments[1]);
}

static bool quota(struct rxvol *rxvol, char **arguments, size_t count)
{
	return set_place(rxvol, arguments[0], false) &&
	       (count < 2 || set_size(rxvol, arguments[1]));
}

static bool acl(struct rxvol *rxvol, char **arguments, size_t count)
{
	return set_place(rxvol, arguments[0], true) &&
	       (count < 2 || set_words(rxvol, arguments + 1, count - 1));
}

static bool mount(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)count;
	return set_place(rxvol, arguments[0], true) && set_text(rxvol, "target", arguments[1]) &&
	       (!rxvol->rw || set(rxvol, "rw", json_true()));
}

/* import and export; rxvol_session() opens the directory. */
static bool copy(struct rxvol *rxvol, char **arguments, size_t count)
{
	(void)count;
	rxvol->local = arguments[1];
	return set_place(rxvol, arguments[0], true) &&
	       (!rxvol->set_id || set(rxvol, "set_id", json_true())) &&
	       (!rxvol->owner || set_text(rxvol, "owner", rxvol->owner));
}

static const struct command {
	const char *name;
	bool (*request)(struct rxvol *rxvol, char **arguments, size_t count);
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
	{"export", copy, 2, 2, " VOLUME[:PATH] DIRECTORY [--set-id]"},
	{"quota", quota, 1, 2, " VOLUME [SIZE|none]"},
	{"acl", acl, 1, SIZE_MAX, " VOLUME[:PATH] [[-n] NAME RIGHTS...]"},
	{"online", volume_only, 1, 1, " VOLUME"},
	{"offline", volume_only, 1, 1, " VOLUME [--message TEXT]"},
	{"check", no_arguments, 0, 0, " [--fast]"},
};

int rxvol_request(struct rxvol *rxvol, char **arguments, size_t count)
{
	const struct command *command = NULL;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, rxvol->command))
			command = &commands[i];
	if (!command) {
		tools_error("%s: no such command; see rxvol --help", rxvol->command);
		return TOOLS_EXIT_USAGE;
	}
	if (count < command->least || count > command->most) {
		tools_error("usage: rxvol -S DIR %s%s", command->name, command->arguments);
		return TOOLS_EXIT_USAGE;
	}
	rxvol->request = json_pack("{s:s}", "command", command->name);
	if (!rxvol->request) {
		tools_error("no memory");
		return TOOLS_EXIT_FAILURE;
	}
	return command->request(rxvol, arguments, count) ? 0 : TOOLS_EXIT_USAGE;
}
