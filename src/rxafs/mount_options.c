/* SPDX-License-Identifier: BSD-2-Clause */
/* Options as mount(8) and fstab give them. */
#include "rxafs/mount_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The vector that is made, and what is left for the kernel. */
struct vector {
	char **items;
	int count;
	char *rest;
};

static bool is_of_mount_program(const char *option)
{
	static const char *const names[] = {"auto", "noauto", "defaults", "nofail", "_netdev",
					    "user", "nouser", "users",	  "owner",  "group"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(option, names[i]))
			return true;
	return !strncmp(option, "x-", 2);
}

/* "cache_size" and "cache-size" are the same. */
static bool is_of_program(const struct tools_program *program, const char *option)
{
	size_t length = strcspn(option, "=");

	for (size_t i = 0; i < program->option_count; i++) {
		const char *name = program->options[i].name;
		size_t at = 0;

		while (at < length &&
		       (name[at] == option[at] || (name[at] == '-' && option[at] == '_')))
			at++;
		if (at == length && !name[at] && strcmp(name, "mount-options"))
			return true;
	}
	return false;
}

static int add_long(struct vector *v, const char *option)
{
	size_t room = strlen(option) + 3;
	char *text = malloc(room);

	if (!text)
		return -1;
	snprintf(text, room, "--%s", option);
	for (char *c = text; *c && *c != '='; c++)
		if (*c == '_')
			*c = '-';
	v->items[v->count++] = text;
	return 0;
}

static int add_rest(struct vector *v, const char *option)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", v->rest ? v->rest : "", v->rest ? "," : "", option) < 0)
		return -1;
	free(v->rest);
	v->rest = joined;
	return 0;
}

static int split_options(const struct tools_program *program, struct vector *v, char *options)
{
	int result = 0;

	for (char *one, *left = options; !result && (one = strsep(&left, ","));) {
		if (!*one || is_of_mount_program(one))
			continue;
		result = is_of_program(program, one) ? add_long(v, one) : add_rest(v, one);
	}
	return result;
}

static size_t count_options(int argc, char **argv)
{
	size_t count = (size_t)argc + 3;

	for (int i = 1; i < argc; i++)
		for (const char *c = argv[i]; *c; c++)
			count += *c == ',';
	return count;
}

int options_of_mount(const struct tools_program *program, int *argc, char ***argv)
{
	/* The arguments live as long as the program. */
	static struct vector v;
	int result = 0;

	v.items = calloc(count_options(*argc, *argv), sizeof(char *));
	if (!v.items)
		return -1;
	for (int i = 0; !result && i < *argc; i++) {
		char *arg = (*argv)[i];

		if (i && !strcmp(arg, "-o") && i + 1 < *argc)
			result = split_options(program, &v, (*argv)[++i]);
		else if (i && !strncmp(arg, "-o", 2) && arg[2])
			result = split_options(program, &v, arg + 2);
		else
			v.items[v.count++] = arg;
	}
	if (!result && v.rest) {
		v.items[v.count++] = "-o";
		v.items[v.count++] = v.rest;
	}
	*argc = v.count;
	*argv = v.items;
	return result;
}
