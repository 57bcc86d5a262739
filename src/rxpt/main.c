/* SPDX-License-Identifier: BSD-2-Clause */
/* rxpt: users and groups of a file server, for its administrator. */
#include <stdio.h>
#include <string.h>

#include "program/options.h"
#include "program/message.h"
#include "rxpt/pt.h"

#define SETTING(member) offsetof(struct pt, member)
static const struct tools_option options[] = {
	TOOLS_OPTION(
		"store", 'S', TOOLS_STRING, store, "DIR|FILE",
		"the directory of protection.db, or the file; default: $RXWIRE_STORE, or that of "
		"rxfsd.conf"),
	TOOLS_OPTION("id", 0, TOOLS_STRING, id, "N",
		     "adduser, addgroup: this id instead of the next one"),
	TOOLS_OPTION("owner", 0, TOOLS_STRING, owner, "NAME",
		     "addgroup: the owner, a user or group; default: system:administrators"),
	TOOLS_OPTION("users", 0, TOOLS_FLAG, users, NULL, "list: only users"),
	TOOLS_OPTION("groups", 0, TOOLS_FLAG, groups, NULL, "list: only groups"),
	TOOLS_OPTION("json", 0, TOOLS_FLAG, json, NULL, "show entries as one JSON object"),
};

static const struct tools_program program = {
	.name = "rxpt",
	.usage = "usage: rxpt -S DIR adduser NAME... [--id N]\n"
		 "       rxpt -S DIR addgroup NAME... [--id -N] [--owner NAME]\n"
		 "       rxpt -S DIR rename NAME NEWNAME\n"
		 "       rxpt -S DIR remove NAME...\n"
		 "       rxpt -S DIR member add|remove GROUP NAME...\n"
		 "       rxpt -S DIR chown GROUP OWNER\n"
		 "       rxpt -S DIR access NAME LETTERS\n"
		 "       rxpt -S DIR list [--users] [--groups] [--json]\n"
		 "       rxpt -S DIR examine NAME... [--json]\n"
		 "       rxpt -S DIR members NAME [--json]\n"
		 "       rxpt -S DIR copy FILE\n",
	.summary = "Manage the users and groups of rxfsd, also while it runs.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.no_tunables = true,
};

#define MANY SIZE_MAX
static const struct command {
	struct tools_command base;
	pt_command_fn run;
	bool creates; /* makes the database if it does not exist */
} commands[] = {
	{{"adduser", 1, MANY, "NAME..."}, pt_add_user, true},
	{{"addgroup", 1, MANY, "NAME..."}, pt_add_group, true},
	{{"rename", 2, 2, "NAME NEWNAME"}, pt_rename, false},
	{{"remove", 1, MANY, "NAME..."}, pt_remove, false},
	{{"member", 3, MANY, "add|remove GROUP NAME..."}, pt_member, false},
	{{"chown", 2, 2, "GROUP OWNER"}, pt_chown, false},
	{{"access", 2, 2, "NAME LETTERS"}, pt_access, false},
	{{"list", 0, 0, ""}, pt_list, false},
	{{"examine", 1, MANY, "NAME..."}, pt_examine, false},
	{{"members", 1, 1, "NAME"}, pt_members, false},
	{{"copy", 1, 1, "FILE"}, pt_copy, false},
};

/* An option that the command ignores would surprise the user. True after a message about one. */
static bool refuse_misplaced_option(const struct pt *pt, const struct command *command)
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

static void print_database_warning(void *arg, const char *line)
{
	(void)arg;
	tools_error("%s", line);
}

static int run_pt_command(void *target, char **words, size_t count)
{
	struct pt *pt = target;
	const struct command *command =
		tools_find_command(&program, commands, sizeof(commands) / sizeof(commands[0]),
				   sizeof(commands[0]), words, count);
	struct prot_options open = {.warn = print_database_warning};
	char message[PROT_MESSAGE_MAX];
	int status;

	if (!command || refuse_misplaced_option(pt, command))
		return TOOLS_EXIT_USAGE;
	pt->store = tools_store_directory(pt->store, "protection");
	if (!pt->store)
		pt->store = tools_store_directory(NULL, "store");
	if (!pt->store) {
		tools_report_missing_store("the users and groups");
		return TOOLS_EXIT_USAGE;
	}
	open.path = pt->store;
	open.create = command->creates;
	if (prot_open(&open, &pt->prot, message))
		return tools_fail(TOOLS_EXIT_FAILURE, "%s", message);
	/* A wrong -S would otherwise go unnoticed. */
	if (prot_made(pt->prot) && !pt->json)
		printf("made the database %s\n", prot_made(pt->prot));
	status = command->run(pt, words + 1, count - 1);
	prot_close(pt->prot);
	return status;
}

int main(int argc, char **argv)
{
	struct pt pt = {0};

	return tools_finish(tools_run_program(&program, &pt, argc, argv, run_pt_command));
}
