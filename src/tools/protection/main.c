/* SPDX-License-Identifier: BSD-2-Clause */
/* rxpt: users and groups of a file server, for its administrator. */
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/protection/pt.h"

#define AT(field) .offset = offsetof(struct pt, field)
static const struct tools_option options[] = {
	{.name = "store",
	 .letter = 'S',
	 .kind = TOOLS_STRING,
	 AT(store),
	 .argument = "DIR|FILE",
	 .help = "the directory of protection.db, or the file; required"},
	{.name = "id",
	 .kind = TOOLS_STRING,
	 AT(id),
	 .argument = "N",
	 .help = "adduser, addgroup: this id instead of the next one"},
	{.name = "owner",
	 .kind = TOOLS_STRING,
	 AT(owner),
	 .argument = "NAME",
	 .help = "addgroup: the owner, a user or group; default: system:administrators"},
	{.name = "users", .kind = TOOLS_FLAG, AT(users), .help = "list: only users"},
	{.name = "groups", .kind = TOOLS_FLAG, AT(groups), .help = "list: only groups"},
	{.name = "json", .kind = TOOLS_FLAG, AT(json), .help = "show entries as one JSON object"},
};

static const struct tools_program program = {
	.name = "rxpt",
	.usage = "usage: rxpt -S DIR adduser NAME... [--id N]\n"
		 "       rxpt -S DIR addgroup NAME... [--id -N] [--owner NAME]\n"
		 "       rxpt -S DIR rename NAME NEWNAME\n"
		 "       rxpt -S DIR remove NAME...\n"
		 "       rxpt -S DIR member add|remove GROUP USER...\n"
		 "       rxpt -S DIR chown GROUP OWNER\n"
		 "       rxpt -S DIR access NAME LETTERS\n"
		 "       rxpt -S DIR list [--users] [--groups] [--json]\n"
		 "       rxpt -S DIR examine NAME... [--json]\n"
		 "       rxpt -S DIR members NAME [--json]\n",
	.summary = "Manage the users and groups of rxfsd, also while it runs.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.no_tunables = true,
};

#define MANY SIZE_MAX
static const struct command {
	const char *name;
	pt_command_fn run;
	size_t least, most; /* arguments */
	bool creates;	    /* makes the database if it does not exist */
	const char *arguments;
} commands[] = {
	{"adduser", pt_add_user, 1, MANY, true, "NAME..."},
	{"addgroup", pt_add_group, 1, MANY, true, "NAME..."},
	{"rename", pt_rename, 2, 2, false, "NAME NEWNAME"},
	{"remove", pt_remove, 1, MANY, false, "NAME..."},
	{"member", pt_member, 3, MANY, false, "add|remove GROUP USER..."},
	{"chown", pt_chown, 2, 2, false, "GROUP OWNER"},
	{"access", pt_access, 2, 2, false, "NAME LETTERS"},
	{"list", pt_list, 0, 0, false, ""},
	{"examine", pt_examine, 1, MANY, false, "NAME..."},
	{"members", pt_members, 1, 1, false, "NAME"},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* Whether options are given that the command ignores would surprise: a message and true then. */
static bool misplaced(const struct pt *pt, const struct command *command)
{
	bool group = command->run == pt_add_group;

	if (pt->id && !group && command->run != pt_add_user)
		tools_error("--id is an option of adduser and addgroup");
	else if (pt->owner && !group)
		tools_error("--owner is an option of addgroup");
	else if ((pt->users || pt->groups) && command->run != pt_list)
		tools_error("--users and --groups are options of list");
	else
		return false;
	return true;
}

static void warn(void *arg, const char *line)
{
	(void)arg;
	tools_error("%s", line);
}

static int run(struct pt *pt, char **arguments, size_t count)
{
	const struct command *command = count ? find_command(arguments[0]) : NULL;
	struct prot_options open = {.path = pt->store, .warn = warn};
	char message[PROT_MESSAGE_MAX];
	int status;

	if (!command) {
		tools_error("%s%s; see rxpt --help", count ? arguments[0] : "no command",
			    count ? ": no such command" : "");
		return TOOLS_EXIT_USAGE;
	}
	if (count - 1 < command->least || count - 1 > command->most) {
		tools_error("usage: rxpt -S DIR %s%s%s", command->name,
			    *command->arguments ? " " : "", command->arguments);
		return TOOLS_EXIT_USAGE;
	}
	if (misplaced(pt, command))
		return TOOLS_EXIT_USAGE;
	if (!pt->store) {
		tools_error("-S DIR is required: the directory of the users and groups");
		return TOOLS_EXIT_USAGE;
	}
	open.create = command->creates;
	if (prot_open(&open, &pt->prot, message)) {
		tools_error("%s", message);
		return TOOLS_EXIT_FAILURE;
	}
	/* A wrong -S would otherwise go unnoticed. */
	if (prot_made(pt->prot) && !pt->json)
		printf("made the database %s\n", prot_made(pt->prot));
	status = command->run(pt, arguments + 1, count - 1);
	prot_close(pt->prot);
	return status;
}

int main(int argc, char **argv)
{
	struct pt pt = {0};
	struct rxw_config config;
	int first = 0, status;

	tools_set_program("rxpt");
	rxw_config_init(&config, sizeof(config));
	switch (tools_options_parse(&program, &pt, &config, argc, argv, &first)) {
	case TOOLS_RUN:
		status = run(&pt, argv + first, (size_t)(argc - first));
		break;
	case TOOLS_DONE:
		status = 0;
		break;
	default:
		status = TOOLS_EXIT_USAGE;
	}
	return tools_finish(status);
}
