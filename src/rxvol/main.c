/* SPDX-License-Identifier: BSD-2-Clause */
/* rxvol: the volumes of a file server, for its administrator. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/message.h"
#include "rxvol/volumes.h"

#define MOVES		"move-in balance"
#define MOVE_STATE	"/var/lib/rxwire/moves"
#define SETTING(member) offsetof(struct rxvol, member)
static const struct tools_option options[] = {
	TOOLS_OPTION("store", 'S', TOOLS_STRING, store, "DIR",
		     "the directory of the store; default: $RXWIRE_STORE, or that of rxfsd.conf"),
	TOOLS_OPTION("acl", 0, TOOLS_LIST, acl, "'NAME RIGHTS...'",
		     "create: rights in the root directory, beside those of system:administrators; "
		     "may be repeated"),
	TOOLS_OPTION(
		"quota", 0, TOOLS_STRING, quota, "SIZE",
		"create: the most that the volume may hold, such as 500M or 10G; default: no limit"),
	TOOLS_OPTION(
		"id", 0, TOOLS_UINT, id, "N",
		"create, restore: the number of the volume; default: the next free one, or that of the "
		"dump",
		.min = 1, .max = INT32_MAX),
	TOOLS_OPTION("owner", 0, TOOLS_STRING, owner, "NAME|N",
		     "create, import: the user who owns the root directory or what is imported; "
		     "default: 0, and import removes set-id bits"),
	TOOLS_OPTION("backup", 0, TOOLS_FLAG, backup, NULL,
		     "clone: make or replace the backup volume instead of the read-only one"),
	TOOLS_OPTION("rw", 0, TOOLS_FLAG, rw, NULL, "mount: always lead to the read-write volume"),
	TOOLS_OPTION(
		"set-id", 0, TOOLS_FLAG, set_id, NULL,
		"export: keep set-user-id and set-group-id bits of files whose owner has the number of this user"),
	TOOLS_OPTION("negative", 'n', TOOLS_FLAG, negative, NULL,
		     "acl: change entries that take rights away"),
	TOOLS_OPTION("update", 0, TOOLS_FLAG, update, NULL,
		     "import, export: replace what differs in size, time, mode or owner"),
	TOOLS_OPTION(
		"compare", 0, TOOLS_FLAG, compare, NULL,
		"import --update: read the contents of files with the same size and time, too"),
	TOOLS_OPTION("delete", 0, TOOLS_FLAG, remove, NULL,
		     "import --update, export --update: remove what the source does not have"),
	TOOLS_OPTION(
		"attributes", 0, TOOLS_FLAG, attributes, NULL,
		"export: write owners, modes and access lists to a file in the tree; import, compare: "
		"take them from it"),
	TOOLS_OPTION("since", 0, TOOLS_STRING, since, "CLONE",
		     "dump: only what has changed since this clone of the volume was made"),
	TOOLS_OPTION(
		"damaged", 0, TOOLS_STRING, damaged, "skip|fail",
		"dump: leave out what is damaged, and name it; default: fail, which only names it"),
	TOOLS_OPTION(
		"file", 'f', TOOLS_STRING, file, "FILE",
		"dump: the new file to write, instead of the standard output; restore: the file to read, "
		"instead of the standard input"),
	TOOLS_OPTION(
		"replace", 0, TOOLS_FLAG, replace, NULL,
		"restore: a volume with this name gets the contents of the dump, and loses its own"),
	TOOLS_OPTION("message", 0, TOOLS_STRING, message, "TEXT", "offline: the reason, for users"),
	TOOLS_OPTION("fast", 0, TOOLS_FLAG, fast, NULL,
		     "check: only the records of volumes and the structure of the database"),
	TOOLS_OPTION(
		"copy", 0, TOOLS_STRING, copy, "DIR",
		"the directory with the copy of the metadata, as rxfsd has it; default: that of the "
		"store"),
	TOOLS_OPTION("data", 0, TOOLS_FLAG, data, NULL,
		     "check: read all data as well, and compare them with their checksums"),
	TOOLS_OPTION(
		"cell-config", 0, TOOLS_STRING, move.config, "DIR",
		"the folder of the servers of the cell, with ThisCell, CellServDB and the key; "
		"default: /etc/openafs/server",
		.commands = MOVES),
	TOOLS_OPTION("cell", 0, TOOLS_STRING, move.cell, "NAME",
		     "the cell, instead of that of ThisCell", .commands = MOVES),
	TOOLS_OPTION("location", 0, TOOLS_LIST, move.location, "HOST[:PORT]",
		     "a location server of --cell, instead of those of CellServDB; may be repeated",
		     .commands = MOVES),
	TOOLS_OPTION(
		"keytab", 0, TOOLS_STRING, move.keytab, "FILE",
		"the key of the cell, a keytab, KeyFileExt or KeyFile; default: that of the folder",
		.commands = MOVES),
	TOOLS_OPTION("level", 0, TOOLS_CHOICE, move.level, "clear|auth|crypt",
		     "protection of the calls; default: auth", .commands = MOVES),
	TOOLS_OPTION("to", 0, TOOLS_STRING, move.to, "SERVER[:PARTITION]",
		     "where volumes move; default: the server on this machine",
		     .commands = "move-in"),
	TOOLS_OPTION("only", 0, TOOLS_LIST, move.only, "PATTERN",
		     "only volumes with such names, as 'user.*'; may be repeated",
		     .commands = MOVES),
	TOOLS_OPTION("exclude", 0, TOOLS_LIST, move.exclude, "PATTERN",
		     "no volumes with such names; may be repeated", .commands = MOVES),
	TOOLS_OPTION("parallel", 0, TOOLS_UINT, move.parallel, "N",
		     "volumes that move at the same time; default: 4", .min = 1, .max = 16,
		     .commands = MOVES),
	TOOLS_OPTION("dry-run", 0, TOOLS_FLAG, move.dry_run, NULL, "only show what would move",
		     .commands = "move-in"),
	TOOLS_OPTION("take-over", 0, TOOLS_FLAG, move.take_over, NULL,
		     "also end what a killed vos, or rxvol on another machine, has left of a move",
		     .commands = "move-in"),
	TOOLS_OPTION("state", 0, TOOLS_STRING, move.state, "DIR",
		     "the folder of the logs of unfinished moves; default: " MOVE_STATE,
		     .commands = MOVES),
	TOOLS_OPTION("do", 0, TOOLS_FLAG, move.perform, NULL,
		     "perform the moves, not only show them", .commands = "balance"),
	TOOLS_OPTION("tolerance", 0, TOOLS_UINT, move.tolerance, "PERCENT",
		     "how far partitions may differ from the mean; default: 5", .min = 1, .max = 50,
		     .commands = "balance"),
	TOOLS_OPTION("most", 0, TOOLS_UINT, move.most, "N", "at most so many moves; default: 100",
		     .min = 1, .max = 10000, .commands = "balance"),
	TOOLS_OPTION("load", 0, TOOLS_FLAG, move.load, NULL,
		     "level the accesses of the last day, too", .commands = "balance"),
	TOOLS_OPTION("quiet", 'q', TOOLS_FLAG, quiet, NULL, "show no progress"),
	TOOLS_OPTION("json", 0, TOOLS_FLAG, json, NULL, "show the result as one JSON object"),
};

static const struct tools_program program = {
	.name = "rxvol",
	.usage =
		"usage: rxvol -S DIR init\n"
		"       rxvol -S DIR create NAME [--acl 'NAME RIGHTS...'] [--quota SIZE] [--id N] "
		"[--owner NAME|N]\n"
		"       rxvol -S DIR list\n"
		"       rxvol -S DIR examine VOLUME\n"
		"       rxvol -S DIR remove VOLUME\n"
		"       rxvol -S DIR rename VOLUME NEWNAME\n"
		"       rxvol -S DIR clone VOLUME [--backup]\n"
		"       rxvol -S DIR mount VOLUME:PATH TARGET [--rw]\n"
		"       rxvol -S DIR mounts [VOLUME]\n"
		"       rxvol -S DIR unmount VOLUME:PATH\n"
		"       rxvol -S DIR which VOLUME:PATH | FID | VOLUME VNODE [UNIQUE]\n"
		"       rxvol -S DIR import VOLUME[:PATH] DIRECTORY [--owner NAME|N] "
		"[--update [--compare] [--delete]] [--attributes]\n"
		"       rxvol -S DIR export VOLUME[:PATH] DIRECTORY [--set-id] [--update [--delete]] "
		"[--attributes]\n"
		"       rxvol -S DIR compare VOLUME[:PATH] DIRECTORY [--attributes]\n"
		"       rxvol -S DIR dump VOLUME [--since CLONE] [--damaged skip|fail] [--file FILE]\n"
		"       rxvol -S DIR restore VOLUME [--id N] [--replace] [--file FILE]\n"
		"       rxvol -S DIR restore-from CLONE\n"
		"       rxvol -S DIR quota VOLUME [SIZE|none]\n"
		"       rxvol -S DIR acl VOLUME[:PATH] [[-n] NAME RIGHTS...]\n"
		"       rxvol -S DIR online VOLUME\n"
		"       rxvol -S DIR offline VOLUME [--message TEXT]\n"
		"       rxvol -S DIR check [--fast | --data]\n"
		"       rxvol -S DIR convert\n"
		"       rxvol -S DIR use-copy\n"
		"       rxvol rescue SOURCE TARGET [--copy DIR]\n"
		"       rxvol move-in SERVER[:PARTITION] [--to SERVER[:PARTITION]] [--only PATTERN]... "
		"[--exclude PATTERN]... [--parallel N] [--dry-run] [--take-over]\n"
		"       rxvol balance [SERVER...] [--do] [--load] [--tolerance PERCENT] [--most N]\n",
	.summary = "Manage the volumes of rxfsd, also while it runs.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.no_tunables = true,
};

static int run_volume_command(void *target, char **words, size_t count)
{
	struct rxvol *rxvol = target;
	int status;

	if (tools_options_suit(&program, count ? words[0] : "") < 0)
		return TOOLS_EXIT_USAGE;
	status = rxvol_request(rxvol, &program, words, count);
	if (status)
		return status;
	if (!strcmp(rxvol->command, "move-in"))
		return rxvol_move_in(rxvol, words + 1, count - 1);
	if (!strcmp(rxvol->command, "balance"))
		return rxvol_balance(rxvol, words + 1, count - 1);
	if (!strcmp(rxvol->command, "rescue"))
		return rxvol_rescue(rxvol);
	rxvol->store = tools_store_directory(rxvol->store, "store");
	if (!rxvol->store) {
		tools_report_missing_store("the store");
		return TOOLS_EXIT_USAGE;
	}
	if (!strcmp(rxvol->command, "init"))
		return rxvol_init(rxvol);
	if (!strcmp(rxvol->command, "convert"))
		return rxvol_convert(rxvol);
	if (!strcmp(rxvol->command, "use-copy"))
		return rxvol_use_copy(rxvol);
	return rxvol_session(rxvol);
}

int main(int argc, char **argv)
{
	struct rxvol rxvol = {
		.directory = -1,
		.move = {.state = MOVE_STATE,
			 .parallel = 4,
			 .tolerance = 5,
			 .most = 100,
			 .level = 1},
	};
	int status = tools_run_program(&program, &rxvol, argc, argv, run_volume_command);

	json_decref(rxvol.request);
	json_decref(rxvol.result);
	json_decref(rxvol.faults);
	if (rxvol.directory >= 0)
		close(rxvol.directory);
	tools_list_free(&rxvol.acl);
	tools_list_free(&rxvol.move.location);
	tools_list_free(&rxvol.move.only);
	tools_list_free(&rxvol.move.exclude);
	return tools_finish(status);
}
