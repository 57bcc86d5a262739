/* SPDX-License-Identifier: BSD-2-Clause */
/* rxafsctl: asks a mount about volumes, servers, access lists and tokens, and changes them. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "afs/rights.h"
#include "program/message.h"
#include "program/options.h"
#include "rxafs/ctl/ctl.h"

#define SETTING(member) offsetof(struct settings, member)
static const struct tools_option options[] = {
	TOOLS_OPTION("json", 'j', TOOLS_FLAG, json, NULL, "print JSON"),
	TOOLS_OPTION("negative", 'n', TOOLS_FLAG, negative, NULL,
		     "acl: entries that take rights away", .commands = "acl"),
	TOOLS_OPTION("rw", 0, TOOLS_FLAG, read_write, NULL,
		     "mkmount: always lead to the read-write volume", .commands = "mkmount"),
	TOOLS_OPTION(
		"cell", 'c', TOOLS_STRING, cell, "CELL",
		"login, logout, session: of this cell (the home cell; logout: all); mkmount: a volume there",
		.commands = "login logout session mkmount"),
	TOOLS_OPTION("cache", 0, TOOLS_STRING, cache, "CACHE",
		     "login, session: Kerberos tickets ($KRB5CCNAME, or the default cache)",
		     .commands = "login session"),
	TOOLS_OPTION("rxkad", 0, TOOLS_FLAG, rxkad, NULL, "login, session: only for rxkad",
		     .commands = "login session"),
	TOOLS_OPTION("rxgk", 0, TOOLS_FLAG, rxgk, NULL, "login, session: only for rxgk",
		     .commands = "login session"),
	TOOLS_OPTION("key-file", 0, TOOLS_STRING, key_file, "FILE",
		     "login, session: make a token with the keys of the service",
		     .commands = "login session"),
	TOOLS_OPTION("principal", 0, TOOLS_STRING, principal, "NAME@REALM",
		     "login, session --key-file: for this user (the service itself)",
		     .commands = "login session"),
	TOOLS_OPTION("session", 0, TOOLS_FLAG, session, NULL,
		     "login: only for this login session; logout: end that, too",
		     .commands = "login logout"),
	TOOLS_OPTION("keep", 'k', TOOLS_FLAG, keep, NULL,
		     "login: go on, and renew the token; session: log in, and renew",
		     .commands = "login session"),
	TOOLS_OPTION("all", 'a', TOOLS_FLAG, all, NULL, "tokens: of all users, as root",
		     .commands = "tokens"),
	TOOLS_OPTION("mount", 'm', TOOLS_STRING, mount, "DIR",
		     "the mount, for commands without a path (/afs)"),
};

static const struct tools_program program = {
	.name = "rxafsctl",
	.usage = "rxafsctl acl PATH [NAME RIGHTS]...\n"
		 "rxafsctl examine|quota|whereis|flush PATH\n"
		 "rxafsctl quota PATH KIB\n"
		 "rxafsctl lsmount|rmmount PATH\n"
		 "rxafsctl mkmount PATH VOLUME\n"
		 "rxafsctl checkservers|paths|cells\n"
		 "rxafsctl login|logout|tokens\n"
		 "rxafsctl session [COMMAND [ARGUMENT]...]\n",
	.summary =
		"Asks a mount of rxafs, and changes access lists, quotas, mount points and tokens.",
	.options = options,
	.option_count = sizeof options / sizeof options[0],
	.no_tunables = true,
};

/* -- requests ------------------------------------------------------------------------------------ */

static const char *why_not_asked(const char *path)
{
	static char text[200];

	if (errno == ENOTTY || errno == EINVAL)
		return "this is not in a mount of rxafs";
	if (errno == ENOTCONN)
		return "the daemon of this mount has ended; take it away with fusermount3 -uz";
	if (errno == ENOENT && !strcmp(path, "/afs"))
		return "nothing is mounted there; name the mount with --mount DIR";
	snprintf(text, sizeof text, "%s", strerror(errno));
	return text;
}

int open_in_mount(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		tools_error("%s: %s", path, why_not_asked(path));
	return fd;
}

/* False: they are too long. */
static bool put_words(struct control *c, const char *const *words)
{
	size_t at = 0;

	for (; *words; words++) {
		size_t length = strlen(*words) + 1;

		if (at + length + 1 > sizeof c->text)
			return false;
		memcpy(c->text + at, *words, length);
		at += length;
	}
	return true;
}

/* NULL after a message. */
static json_t *read_json_reply(struct control *c, const char *path)
{
	json_error_t error;
	json_t *answer;

	c->text[sizeof c->text - 1] = '\0';
	answer = json_loads(c->text, 0, &error);
	if (!answer)
		tools_error("%s: the answer of the daemon is no JSON", path);
	if (!json_object_get(answer, "error"))
		return answer;
	tools_error("%s: %s", path, json_string_value(json_object_get(answer, "text")));
	json_decref(answer);
	return NULL;
}

json_t *ask_open_mount(int fd, const char *path, const char *const *words, const void *data,
		       size_t size)
{
	struct control *c = calloc(1, sizeof *c);
	json_t *answer = NULL;

	if (!c || size > sizeof c->data || !put_words(c, words)) {
		tools_error("%s", c ? "the arguments are too long" : "no memory");
		free(c);
		return NULL;
	}
	if (size)
		memcpy(c->data, data, size);
	c->size = (uint32_t)size;
	if (ioctl(fd, CONTROL_IOCTL, c))
		tools_error("%s: %s", path, why_not_asked(path));
	else
		answer = read_json_reply(c, path);
	explicit_bzero(c->data, sizeof c->data);
	free(c);
	return answer;
}

json_t *ask_mount(const char *path, const char *const *words, const void *data, size_t size)
{
	int fd = open_in_mount(path);
	json_t *answer = fd < 0 ? NULL : ask_open_mount(fd, path, words, data, size);

	if (fd >= 0)
		close(fd);
	return answer;
}

/* The same with messages about another path. */
static json_t *ask_mount_about(const char *path, const char *about, const char *const *words)
{
	int fd = open_in_mount(path);
	json_t *answer = fd < 0 ? NULL : ask_open_mount(fd, about, words, NULL, 0);

	if (fd >= 0)
		close(fd);
	return answer;
}

const char *text_member(const json_t *from, const char *name)
{
	const char *text = json_string_value(json_object_get(from, name));

	return text ? text : "";
}

long long number_member(const json_t *from, const char *name)
{
	return json_integer_value(json_object_get(from, name));
}

/* -- what is printed ----------------------------------------------------------------------------- */

void print_time(const char *what, long long when)
{
	time_t t = (time_t)when;
	char text[64];

	if (when >= INT64_MAX)
		snprintf(text, sizeof text, "never");
	else
		strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", localtime(&t));
	printf("%s%s\n", what, text);
}

static const char *quota_text(const json_t *a, char text[60])
{
	long long quota = number_member(a, "quota"), used = number_member(a, "used");

	if (!quota)
		return "no quota";
	snprintf(text, 60, "quota %lld KiB (%.0f %% used)", quota,
		 100.0 * (double)used / (double)quota);
	return text;
}

static void print_volume(const json_t *a)
{
	char quota[60];

	printf("%s in cell %s, volume %s, %lld, %s\n", text_member(a, "fid"),
	       text_member(a, "cell"), text_member(a, "volume"), number_member(a, "id"),
	       json_is_true(json_object_get(a, "writable")) ? "read-write" : "read-only");
	printf("read-write %lld, read-only %lld, backup %lld\n", number_member(a, "readWrite"),
	       number_member(a, "readOnly"), number_member(a, "backup"));
	printf("%lld KiB used, %s, partition %lld of %lld KiB free\n", number_member(a, "used"),
	       quota_text(a, quota), number_member(a, "free"), number_member(a, "total"));
	if (!json_is_true(json_object_get(a, "online")))
		printf("off-line: %s\n", *text_member(a, "message") ? text_member(a, "message")
								    : "no reason is given");
}

static void print_servers(const json_t *list)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		printf("%s %s %s\n", text_member(one, "address"), text_member(one, "cell"),
		       text_member(one, "state"));
}

/* Rates are of paths that have carried large files. */
static void print_mount_paths(const json_t *list)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *device = text_member(one, "device");

		printf("%s %s from %s%s%s: %s, RTT %.1f ms, %.1f MB/s, %.1f MB, lost %lld times\n",
		       text_member(one, "server"), text_member(one, "cell"),
		       text_member(one, "local"), *device ? " by " : "", device,
		       text_member(one, "state"),
		       (double)number_member(one, "roundTripMicroseconds") / 1e3,
		       (double)number_member(one, "bytesPerSecond") / 1e6,
		       (double)number_member(one, "bytes") / 1e6, number_member(one, "losses"));
	}
}

static void print_answer(const char *command, const json_t *a)
{
	const json_t *one;
	char quota[60];
	size_t i;

	if (!strcmp(command, "examine")) {
		print_volume(a);
	} else if (!strcmp(command, "quota")) {
		printf("%s: %lld KiB used, %s\n", text_member(a, "volume"),
		       number_member(a, "used"), quota_text(a, quota));
	} else if (json_object_get(a, "servers")) {
		print_servers(json_object_get(a, "servers"));
	} else if (!strcmp(command, "lsmount")) {
		printf("%s\n", text_member(a, "target"));
	}
	json_array_foreach(json_object_get(a, "cells"), i, one)
		printf("%s\n", json_string_value(one));
	print_mount_paths(json_object_get(a, "paths"));
	if (json_object_get(a, "tokens"))
		print_tokens(json_object_get(a, "tokens"));
}

/* Servers gave parts of it. In JSON all but ASCII is escaped. */
static void print_ascii_json(const json_t *answer)
{
	json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	printf("\n");
}

/* For a terminal: no text has control characters. */
static void make_texts_harmless(json_t *in)
{
	const char *key;
	json_t *one;
	size_t i;

	if (json_is_string(in)) {
		char *copy = strdup(json_string_value(in));

		json_string_set_nocheck(in, copy ? tools_harmless(copy) : "?");
		free(copy);
	}
	json_array_foreach(in, i, one) make_texts_harmless(one);
	json_object_foreach(in, key, one) make_texts_harmless(one);
}

int show_answer(const struct settings *s, const char *command, json_t *answer)
{
	if (!answer)
		return TOOLS_EXIT_FAILURE;
	if (s->json) {
		print_ascii_json(answer);
	} else {
		make_texts_harmless(answer);
		print_answer(command, answer);
	}
	json_decref(answer);
	return 0;
}

static int run_plain(const struct settings *s, char **words, size_t count)
{
	const char *asked[] = {words[0], NULL};

	(void)count;
	return show_answer(s, words[0], ask_mount(s->mount ? s->mount : "/afs", asked, NULL, 0));
}

/* -- mount points -------------------------------------------------------------------------------- */

/* Of a path: the directory, and the name in it. */
static char *split_path(char *path, const char **name)
{
	char *slash;

	for (size_t length = strlen(path); length > 1 && path[length - 1] == '/';)
		path[--length] = '\0';
	slash = strrchr(path, '/');
	*name = slash ? slash + 1 : path;
	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static bool is_afs_directory(const char *directory)
{
	char volume[256];

	return getxattr(directory, "afs.volume", volume, sizeof volume) >= 0 || errno == ENODATA;
}

/* Without a look at what is behind a mount point. */
static bool is_link(const char *path)
{
	char text[2];

	return readlink(path, text, sizeof text) >= 0;
}

/*
 * About a path. To open the mount point of a volume that is off-line is to wait for it, so the question goes to its directory.
 * Not where that is outside the mount, or the name is not one of the directory, as ".." and a link.
 */
static int run_about_path(const struct settings *s, char **words, size_t count)
{
	char *path = strdup(words[1]), *directory;
	const char *asked[] = {"at", NULL, words[0], count > 2 ? words[2] : NULL, NULL}, *name;
	int status;

	directory = path ? split_path(path, &name) : NULL;
	if (!directory) {
		free(path);
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	}
	asked[1] = name;
	if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || !is_afs_directory(directory) ||
	    is_link(words[1]))
		status = show_answer(s, words[0], ask_mount(words[1], asked + 2, NULL, 0));
	else
		status = show_answer(s, words[0], ask_mount_about(directory, words[1], asked));
	free(directory);
	free(path);
	return status;
}

static int run_mount_point(const struct settings *s, char **words, size_t count)
{
	const char *name, *asked[] = {words[0], NULL, NULL, NULL};
	char *path = strdup(words[1]), *directory = split_path(words[1], &name), text[600];
	int status;

	if (!directory)
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	asked[1] = name;
	if (count > 2 && strlen(words[2]) > 74)
		return tools_fail(TOOLS_EXIT_FAILURE, "%s: a name of a volume is shorter",
				  words[2]);
	if (count > 2) {
		snprintf(text, sizeof text, "%c%s%s%.80s.", s->read_write ? '%' : '#',
			 s->cell ? s->cell : "", s->cell ? ":" : "", words[2]);
		asked[2] = text;
	}
	status = show_answer(s, words[0], ask_mount_about(directory, path ? path : name, asked));
	free(path);
	free(directory);
	return status;
}

/* -- access lists --------------------------------------------------------------------------------- */

#define ACL_MOST     1024
#define ENTRIES_MOST 64

struct entry {
	char name[256];
	unsigned rights;
};
struct acl {
	struct entry entries[2][ENTRIES_MOST]; /* negative ones last */
	unsigned counts[2];
};

/* "POSITIVE\nNEGATIVE\nNAME\tRIGHTS\n…" */
static bool parse_acl(const char *text, struct acl *acl)
{
	unsigned counts[2];
	int used;

	if (sscanf(text, "%u\n%u\n%n", &counts[0], &counts[1], &used) != 2)
		return false;
	text += used;
	for (unsigned sign = 0; sign < 2; sign++)
		for (unsigned i = 0; i < counts[sign]; i++) {
			struct entry *e = &acl->entries[sign][acl->counts[sign]];

			if (acl->counts[sign] == ENTRIES_MOST ||
			    sscanf(text, "%255[^\t\n]%*[\t ]%u%n", e->name, &e->rights, &used) != 2)
				return false;
			acl->counts[sign]++;
			text += used;
			text += strspn(text, "\n");
		}
	return true;
}

static void print_acl(struct acl *acl)
{
	char letters[AFS_ACL_RIGHTS];

	for (unsigned sign = 0; sign < 2; sign++)
		for (unsigned i = 0; i < acl->counts[sign]; i++)
			printf("%s%s %s\n", sign ? "-" : "",
			       tools_harmless(acl->entries[sign][i].name),
			       afs_rights_text(acl->entries[sign][i].rights, letters));
}

/* A name that is not UTF-8 is no key of JSON. */
static void add_acl_entry(json_t *list, struct entry *e)
{
	char letters[AFS_ACL_RIGHTS], *name = e->name;

	for (char *at = name; !json_object_get(list, name); at = name) {
		json_t *rights = json_string(afs_rights_text(e->rights, letters));

		if (!json_object_set_new(list, name, rights))
			return;
		for (; *at; at++)
			if ((unsigned char)*at > 0x7e)
				*at = '?';
	}
}

static void print_acl_json(struct acl *acl)
{
	json_t *lists = json_object();

	for (unsigned sign = 0; sign < 2; sign++) {
		json_t *list = json_object();

		for (unsigned i = 0; i < acl->counts[sign]; i++)
			add_acl_entry(list, &acl->entries[sign][i]);
		json_object_set_new(lists, sign ? "negative" : "positive", list);
	}
	print_ascii_json(lists);
	json_decref(lists);
}

/* Rights 0 take the entry out. */
static bool set_acl_entry(struct acl *acl, unsigned sign, const char *name, unsigned rights)
{
	unsigned i = 0;

	while (i < acl->counts[sign] && strcmp(acl->entries[sign][i].name, name))
		i++;
	if (i == ENTRIES_MOST || strlen(name) >= sizeof acl->entries[0][0].name)
		return false;
	if (!rights) {
		if (i < acl->counts[sign])
			acl->entries[sign][i] = acl->entries[sign][--acl->counts[sign]];
		return true;
	}
	strcpy(acl->entries[sign][i].name, name);
	acl->entries[sign][i].rights = rights;
	acl->counts[sign] += i == acl->counts[sign];
	return true;
}

/* By errno of an access to the attribute. */
static const char *why_no_acl(void)
{
	switch (errno) {
	case EINVAL:
		return "the server refuses the access list; does it know all names in it?";
	case EACCES:
	case EPERM:
		return "not permitted; right a of the directory is needed to change its access list";
	case ENOTDIR:
		return "only directories have access lists; a file has that of its directory";
	case EROFS:
		return "the volume is read-only; use the read-write path, /afs/.CELL";
	case EOPNOTSUPP:
	case ENODATA:
		return "this has no access list; is it in a volume of AFS?";
	default:
		return strerror(errno);
	}
}

static int write_acl(const char *path, const struct acl *acl)
{
	char text[ACL_MOST + 1];
	size_t used =
		(size_t)snprintf(text, sizeof text, "%u\n%u\n", acl->counts[0], acl->counts[1]);

	for (unsigned sign = 0; sign < 2; sign++)
		for (unsigned i = 0; i < acl->counts[sign]; i++) {
			const struct entry *e = &acl->entries[sign][i];

			used += (size_t)snprintf(text + used, sizeof text - used, "%s\t%u\n",
						 e->name, e->rights);
			if (used >= sizeof text)
				return tools_fail(TOOLS_EXIT_FAILURE,
						  "%s: the access list is too long", path);
		}
	if (setxattr(path, "afs.acl", text, used, 0))
		return tools_fail(TOOLS_EXIT_FAILURE, "%s: %s", path, why_no_acl());
	return 0;
}

static int run_access_list(const struct settings *s, char **words, size_t count)
{
	char text[ACL_MOST + 1];
	struct acl acl = {.counts = {0}};
	ssize_t length = getxattr(words[1], "afs.acl", text, sizeof text - 1);

	if (length < 0)
		return tools_fail(TOOLS_EXIT_FAILURE, "%s: %s", words[1], why_no_acl());
	text[length] = '\0';
	if (!parse_acl(text, &acl))
		return tools_fail(TOOLS_EXIT_FAILURE,
				  "%s: the access list has a form that is not known", words[1]);
	if (count % 2)
		return tools_fail(TOOLS_EXIT_USAGE, "acl: NAME without RIGHTS");
	for (size_t i = 2; i < count; i += 2) {
		uint32_t rights;

		if (afs_rights_parse(words[i + 1], &rights))
			return tools_fail(
				TOOLS_EXIT_USAGE,
				"%s: no rights; use letters of rlidwka, read, write, all or none",
				words[i + 1]);
		if (!set_acl_entry(&acl, s->negative, words[i], rights))
			return tools_fail(TOOLS_EXIT_FAILURE, "%s: the access list is too long",
					  words[1]);
	}
	if (count > 2)
		return write_acl(words[1], &acl);
	if (s->json)
		print_acl_json(&acl);
	else
		print_acl(&acl);
	return 0;
}

/* -- commands ---------------------------------------------------------------------------------------- */

struct command {
	struct tools_command command;
	int (*run)(const struct settings *s, char **words, size_t count);
};

static const struct command commands[] = {
	{{"acl", 1, 64, "PATH [NAME RIGHTS]..."}, run_access_list},
	{{"examine", 1, 1, "PATH"}, run_about_path},
	{{"quota", 1, 2, "PATH [KIB]"}, run_about_path},
	{{"whereis", 1, 1, "PATH"}, run_about_path},
	{{"flush", 1, 1, "PATH"}, run_about_path},
	{{"checkservers", 0, 0, ""}, run_plain},
	{{"paths", 0, 0, ""}, run_plain},
	{{"cells", 0, 0, ""}, run_plain},
	{{"tokens", 0, 0, ""}, run_tokens},
	{{"lsmount", 1, 1, "PATH"}, run_mount_point},
	{{"mkmount", 2, 2, "PATH VOLUME"}, run_mount_point},
	{{"rmmount", 1, 1, "PATH"}, run_mount_point},
	{{"login", 0, 0, ""}, run_login},
	{{"logout", 0, 0, ""}, run_logout},
	{{"session", 0, 4096, "[COMMAND [ARGUMENT]...]"}, run_session},
};

static int run_ctl_command(void *target, char **words, size_t count)
{
	const struct command *command;

	if (!count)
		return tools_fail(TOOLS_EXIT_USAGE, "no command; see rxafsctl --help");
	command = tools_find_command(&program, commands, sizeof commands / sizeof commands[0],
				     sizeof commands[0], words, count);
	if (!command || tools_options_suit(&program, words[0]))
		return TOOLS_EXIT_USAGE;
	return command->run(target, words, count);
}

int main(int argc, char **argv)
{
	struct settings settings = {.json = false};

	return tools_finish(tools_run_program(&program, &settings, argc, argv, run_ctl_command));
}
