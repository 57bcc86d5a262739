/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp: copies files between AFS volumes and local folders, changes volumes, loads file servers.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rxafs/stream.h>

#include "common/clock.h"
#include "program/address.h"
#include "program/endpoints.h"
#include "program/message.h"
#include "program/number.h"
#include "program/options.h"
#include "program/signals.h"
#include "afscp/arguments.h"
#include "afscp/commands.h"
#include "afscp/completion.h"
#include "afscp/output.h"
#include "afscp/pathuse.h"

static int exclude_pattern(void *target, const char *value, char *allowed, size_t size)
{
	snprintf(allowed, size, "a pattern");
	return filter_append(&((struct copy_settings *)target)->filters, value, true);
}

static int include_pattern(void *target, const char *value, char *allowed, size_t size)
{
	snprintf(allowed, size, "a pattern");
	return filter_append(&((struct copy_settings *)target)->filters, value, false);
}

static int limit_rate(void *target, const char *value, char *allowed, size_t size)
{
	snprintf(allowed, size, "KiB per second, or a number with B, K, M or G");
	return pace_parse(value, &((struct copy_settings *)target)->bwlimit) ? 0 : -1;
}

static int count_paths(void *target, const char *value, char *allowed, size_t size)
{
	uint64_t *paths = &((struct copy_settings *)target)->paths;

	snprintf(allowed, size, "1 to %d, or all", RXAFS_PATHS);
	if (strcmp(value, "all") != 0)
		return tools_parse_uint(value, paths) || *paths < 1 || *paths > RXAFS_PATHS ? -1 : 0;
	*paths = RXAFS_PATHS;
	return 0;
}

#define SETTING(member) offsetof(struct copy_settings, member)
static const struct tools_option options[] = {
	TOOLS_OPTION("server", 's', TOOLS_LIST, servers, "[CELL=]HOST[:VLPORT[:FSPORT]]",
		     "volume location server, its port, and the port of the file servers "
		     "($AFSCP_SERVER; otherwise those of the cell, from CellServDB or DNS)"),
	TOOLS_OPTION("recursive", 'r', TOOLS_FLAG, recursive, NULL,
		     "get, put, rm, chmod: directories with everything in them",
		     .commands = "get put rm chmod"),
	TOOLS_OPTION(
		"preserve", 'p', TOOLS_FLAG, preserve, NULL,
		"get, put: keep modes as they are, and times of directories; mkdir: see --parents",
		.commands = "get put mkdir"),
	TOOLS_OPTION("parents", 0, TOOLS_FLAG, preserve, NULL,
		     "mkdir: also make missing parents, and accept existing directories (-p)",
		     .commands = "mkdir"),
	TOOLS_OPTION(
		"continue", 'C', TOOLS_FLAG, resume, NULL,
		"get, put: skip files that exist already with the same length and modification "
		"time; put: continue files that an earlier run has begun",
		.commands = "get put"),
	TOOLS_OPTION("jobs", 'j', TOOLS_UINT, jobs, "N",
		     "get, put, sync: number of files that are copied at the same time (4)",
		     .commands = "get put sync", .min = 1, .max = 256),
	TOOLS_OPTION("paths", 0, TOOLS_CALL, paths, "N|all",
		     "get, put, sync: number of paths that carry a large file at the same time (all)",
		     .set = count_paths, .commands = "get put sync"),
	TOOLS_OPTION(
		"path", 0, TOOLS_LIST, named_paths, "LOCAL[%DEVICE][,REMOTE]",
		"get, put, sync: use only this path, from an address or %interface of this machine to an address of the server; may be repeated",
		.commands = "get put sync"),
	TOOLS_OPTION("keep-going", 0, TOOLS_FLAG, keep_going, NULL,
		     "try the other objects even after an error that concerns them, too",
		     .commands = "get put sync rm mkdir mv chmod"),
	TOOLS_OPTION("force", 'f', TOOLS_FLAG, force, NULL,
		     "rm: accept objects that do not exist; ln -s, --mount: replace a file or link",
		     .commands = "rm ln"),
	TOOLS_OPTION("mode", 'm', TOOLS_STRING, mode, "MODE",
		     "mkdir: mode of the directory (777 less the umask)", .commands = "mkdir"),
	TOOLS_OPTION("symbolic", 0, TOOLS_FLAG, symbolic, NULL,
		     "ln: make a symbolic link (-s after ln)", .commands = "ln"),
	TOOLS_OPTION("mount", 0, TOOLS_STRING, mount, "VOLUME",
		     "ln: make a mount point of this volume, [CELL:]NAME; %NAME: of the read-write "
		     "volume",
		     .commands = "ln"),
	TOOLS_OPTION("dry-run", 0, TOOLS_FLAG, dry_run, NULL,
		     "sync: only show what would be done (-n after sync)", .commands = "sync"),
	TOOLS_OPTION("delete", 0, TOOLS_FLAG, remove, NULL,
		     "sync: remove what the source does not have", .commands = "sync"),
	TOOLS_OPTION("checksum", 'c', TOOLS_FLAG, checksum, NULL,
		     "sync: compare contents instead of sizes and times", .commands = "sync"),
	TOOLS_OPTION("update", 'u', TOOLS_FLAG, update, NULL,
		     "sync: leave files alone that are newer at the destination",
		     .commands = "sync"),
	TOOLS_OPTION("exclude", 0, TOOLS_CALL, filters, "PATTERN",
		     "sync: leave out what matches, on both sides", .set = exclude_pattern,
		     .commands = "sync"),
	TOOLS_OPTION(
		"include", 0, TOOLS_CALL, filters, "PATTERN",
		"sync: take what matches; the first --include or --exclude that matches counts",
		.set = include_pattern, .commands = "sync"),
	TOOLS_OPTION("bwlimit", 0, TOOLS_CALL, bwlimit, "RATE",
		     "sync: KiB per second at most, or with a unit: 1.5M", .set = limit_rate,
		     .commands = "sync"),
	TOOLS_OPTION("cross-mounts", 0, TOOLS_FLAG, cross_mounts, NULL,
		     "sync: copy what is behind mount points, too", .commands = "sync"),
	TOOLS_OPTION("negative", 'n', TOOLS_FLAG, negative, NULL,
		     "acl: set negative entries, which take rights away", .commands = "acl"),
	TOOLS_OPTION("shared", 0, TOOLS_FLAG, shared, NULL,
		     "lock: take a lock that others may share (-s after lock)", .commands = "lock"),
	TOOLS_OPTION("wait", 'w', TOOLS_DURATION, wait_ms, "S",
		     "lock: how long to wait while another client has a lock (0)",
		     .commands = "lock", .max = 86400000),
	TOOLS_OPTION("all-levels", 'R', TOOLS_FLAG, all_levels, NULL,
		     "ls: also what is in the directories below", .commands = "ls"),
	TOOLS_OPTION("one-volume", 0, TOOLS_FLAG, one_volume, NULL,
		     "ls -R, find, du: do not enter mount points (-x after these)",
		     .commands = "ls find du"),
	TOOLS_OPTION("human-readable", 0, TOOLS_FLAG, human, NULL,
		     "du, df, quota: sizes with units (-h after these)", .commands = "du df quota"),
	TOOLS_OPTION("summarize", 0, TOOLS_FLAG, summarize, NULL,
		     "du: only the sum of each place (-s after du)", .commands = "du"),
	TOOLS_OPTION("name", 0, TOOLS_STRING, name, "PATTERN",
		     "find: whose name the pattern matches (also -name)", .commands = "find"),
	TOOLS_OPTION("type", 0, TOOLS_STRING, type, "f|d|l|m",
		     "find: files, directories, symbolic links, mount points (also -type)",
		     .commands = "find"),
	TOOLS_OPTION("mtime", 0, TOOLS_STRING, mtime, "[+-]DAYS",
		     "find: that were changed before or since (also -mtime)", .commands = "find"),
	TOOLS_OPTION("maxdepth", 0, TOOLS_UINT, maxdepth, "N",
		     "find: at most N levels below the place (also -maxdepth)", .commands = "find"),
	TOOLS_OPTION("print0", 0, TOOLS_FLAG, print0, NULL,
		     "find: end each path with a NUL (also -print0)", .commands = "find"),
	TOOLS_OPTION("long", 'l', TOOLS_FLAG, long_list, NULL,
		     "ls: show the mode, link count, owner, length and time of each entry",
		     .commands = "ls"),
	TOOLS_OPTION("quiet", 'q', TOOLS_FLAG, quiet, NULL,
		     "show neither progress nor messages about retries"),
	TOOLS_OPTION("timeout", 0, TOOLS_DURATION, timeout_ms, "S",
		     "time limit without progress, and for finding a server (60)", .min = 1000,
		     .max = 86400000),
	TOOLS_OPTION("retry", 0, TOOLS_DURATION, retry_ms, "S",
		     "how long to retry while a server restarts or does not answer (60); "
		     "0: do not retry",
		     .max = 86400000),
	TOOLS_OPTION(
		"stats", 0, TOOLS_FLAG, stats, NULL,
		"get, put, sync: report the speed and the cost; sync: also the numbers of files",
		.commands = "get put sync"),
	TOOLS_OPTION("clients", 0, TOOLS_UINT, clients, "N",
		     "bench: number of clients, each with its own socket (1)", .commands = "bench",
		     .min = 1, .max = 4096),
	TOOLS_OPTION("seconds", 0, TOOLS_DURATION, seconds_ms, "S", "bench: duration (10)",
		     .commands = "bench", .min = 1, .max = 31536000000),
	TOOLS_OPTION("range", 0, TOOLS_SIZE, range, "BYTES",
		     "bench: bytes per call (the whole file)", .commands = "bench", .min = 1),
	TOOLS_OPTION(
		"mix", 0, TOOLS_STRING, mix, "OPERATION=SHARE,...",
		"bench: operations below a directory, and their shares: read, write, stat, create, "
		"remove",
		.commands = "bench"),
	TOOLS_OPTION(
		"size", 0, TOOLS_STRING, size, "BYTES[-BYTES]",
		"bench --mix: length of the files (4K); find: [+-]N blocks, or with c, k, M or G",
		.commands = "bench find"),
	TOOLS_OPTION("files", 0, TOOLS_UINT, files, "N",
		     "bench --mix: files of each client at the start (16)", .commands = "bench",
		     .min = 1, .max = 10000),
	TOOLS_OPTION("verbose", 'v', TOOLS_FLAG, verbose, NULL,
		     "report the identity that the file server sees, and the protection of calls; "
		     "get, put: name the files that were copied"),
	TOOLS_OPTION("class", 'x', TOOLS_CHOICE, auth.class, TOOLS_CLASSES,
		     "security class (rxkad with a token, otherwise null)"),
	TOOLS_OPTION("level", 0, TOOLS_CHOICE, auth.level, TOOLS_LEVELS,
		     "protection of calls with rxkad and rxgk (crypt)"),
	TOOLS_OPTION("cell", 0, TOOLS_STRING, auth.cell, "CELL",
		     "use a Kerberos ticket for afs/CELL ($AFSCELL)"),
	TOOLS_OPTION("keytab", 0, TOOLS_STRING, auth.keytab, "FILE",
		     "get that ticket with a key of this file instead of the ticket cache"),
	TOOLS_OPTION(
		"key-file", 0, TOOLS_STRING, auth.key_file, "FILE",
		"keys of the cell's servers, to authenticate as the service itself (localauth)"),
	TOOLS_OPTION("json", 0, TOOLS_FLAG, json, NULL,
		     "report as a JSON object, or list one object in each line",
		     .commands = "get put sync ls find du quota stat acl df bench"),
};

static const struct tools_program program = {
	.name = "afscp",
	.usage =
		"usage: afscp [-s SERVER] get [-rpC] VOLUME:PATH... [DEST|-]\n"
		"       afscp [-s SERVER] put [-rpC] SOURCE|-... VOLUME:PATH\n"
		"       afscp [-s SERVER] sync [-ncuv] [--delete] [--exclude PATTERN]... SOURCE DEST\n"
		"       afscp [-s SERVER] cat VOLUME:PATH...\n"
		"       afscp [-s SERVER] ls [-lRx] VOLUME:PATH...\n"
		"       afscp [-s SERVER] find VOLUME:PATH... [-x] [-name PATTERN] [-type f|d|l|m] "
		"[-size [+-]N]\n"
		"                  [-mtime [+-]DAYS] [-maxdepth N] [-print0]\n"
		"       afscp [-s SERVER] du [-shx] VOLUME:PATH...\n"
		"       afscp [-s SERVER] stat VOLUME:PATH...\n"
		"       afscp [-s SERVER] rm [-rf] VOLUME:PATH...\n"
		"       afscp [-s SERVER] mkdir [-p] [-m MODE] VOLUME:PATH...\n"
		"       afscp [-s SERVER] mv VOLUME:PATH... VOLUME:PATH\n"
		"       afscp [-s SERVER] ln VOLUME:PATH VOLUME:PATH\n"
		"       afscp [-s SERVER] ln -s TARGET VOLUME:PATH\n"
		"       afscp [-s SERVER] ln --mount VOLUME VOLUME:PATH\n"
		"       afscp [-s SERVER] chmod [-r] MODE VOLUME:PATH...\n"
		"       afscp [-s SERVER] acl [-n] VOLUME:PATH [NAME RIGHTS]...\n"
		"       afscp [-s SERVER] lock [-s] [-w S] VOLUME:PATH COMMAND...\n"
		"       afscp [-s SERVER] df VOLUME:...\n"
		"       afscp [-s SERVER] quota [-h] VOLUME:...\n"
		"       afscp completion bash|zsh|fish\n"
		"       afscp [-s SERVER] bench VOLUME:PATH --clients N [--seconds S] "
		"[--range BYTES]\n"
		"       afscp [-s SERVER] bench VOLUME:PATH --mix read=70,write=30 [--size BYTES]\n",
	.summary = "Copy files between AFS volumes and local folders, change volumes, or benchmark "
		   "file servers.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static int run_completion(struct run *run);

static const struct command {
	const char *name, *summary;
	enum arguments_shape shape;
	int (*run)(struct run *run);
	bool reports; /* --json is one object, with the list of files */
} commands[] = {
	{"get", "copy files and trees from AFS", ARGUMENTS_TO_LOCAL, .run = run_get,
	 .reports = true},
	{"put", "store files and trees", ARGUMENTS_TO_PLACE, .run = run_put, .reports = true},
	{"sync", "make one tree as another", ARGUMENTS_TWO_TEXTS, .run = run_sync},
	{"cat", "print the contents of files", ARGUMENTS_PLACES, .run = run_cat},
	{"ls", "list directories", ARGUMENTS_PLACES, .run = run_list},
	{"find", "find objects in trees", ARGUMENTS_PLACES, .run = run_find},
	{"du", "sum up the space of directories", ARGUMENTS_PLACES, .run = run_du},
	{"stat", "show the status of objects", ARGUMENTS_PLACES, .run = run_stat},
	{"rm", "remove files and trees", ARGUMENTS_PLACES, .run = run_rm},
	{"mkdir", "make directories", ARGUMENTS_PLACES, .run = run_mkdir},
	{"mv", "rename or move", ARGUMENTS_TWO_PLACES, .run = run_mv},
	{"ln", "make links and mount points", ARGUMENTS_TWO_PLACES, .run = run_ln},
	{"chmod", "change modes", ARGUMENTS_TEXT_PLACES, .run = run_chmod},
	{"acl", "show and set access lists", ARGUMENTS_PLACE_TEXTS, .run = run_acl},
	{"lock", "run a command under a lock", ARGUMENTS_PLACE_COMMAND, .run = run_lock},
	{"df", "show the space of volumes", ARGUMENTS_PLACES, .run = run_df},
	{"quota", "show quotas", ARGUMENTS_PLACES, .run = run_quota},
	{"completion", "print the completion for a shell", ARGUMENTS_TEXTS, .run = run_completion},
	{"bench", "measure a file server", ARGUMENTS_PLACE, .run = run_bench},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

/* "completion place TEXT", which needs servers. */
static int run_completion(struct run *run)
{
	return completion_places(run, run->arguments[1]);
}

/* "completion SHELL"; -1: the command goes on with servers. */
static int print_completion(const struct run *run)
{
	struct completed_command list[COMMAND_COUNT];

	if (run->argument_count == 2 && strcmp(run->arguments[0], "place") == 0)
		return -1;
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		list[i] = (struct completed_command){commands[i].name, commands[i].summary};
	if (run->argument_count == 1 &&
	    completion_print(run->arguments[0], &program, list, COMMAND_COUNT) == 0)
		return 0;
	tools_error("completion takes bash, zsh or fish, or \"place\" and the beginning of one");
	return TOOLS_EXIT_USAGE;
}

/* Terminate by the signal, so that a shell sees the interrupt. Any thread. */
static void die_of(int number)
{
	sigset_t set;

	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	raise(number);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	_exit(128 + number);
}

/* Whether the command goes on after a signal. */
static bool goes_on(struct run *run, int number)
{
	bool on;

	pthread_mutex_lock(&run->lock);
	on = run->on_interrupt && run->on_interrupt(run->on_interrupt_arg, number);
	pthread_mutex_unlock(&run->lock);
	return on;
}

#define HURRY_NS ((uint64_t)NS_PER_S)

/* Changes go on after an interrupt, since their results should be known; but not for long. */
static void *hurry_run(void *arg)
{
	struct run *run = arg;
	uint64_t until = monotonic_ns() + HURRY_NS;

	pthread_mutex_lock(&run->lock);
	while (!run->over && monotonic_ns() < until)
		monotonic_wait(&run->wake, &run->lock, until);
	if (!run->over)
		rxafs_abandon(run->afs);
	pthread_mutex_unlock(&run->lock);
	return NULL;
}

/* The command has ended. */
static void stop_hurrying(struct run *run)
{
	bool hurried;

	pthread_mutex_lock(&run->lock);
	run->over = true;
	hurried = run->hurried;
	pthread_cond_broadcast(&run->wake);
	pthread_mutex_unlock(&run->lock);
	if (hurried)
		pthread_join(run->hurry, NULL);
}

static void interrupt_run(int number, void *arg)
{
	struct run *run = arg;

	if (goes_on(run, number))
		return;
	atomic_store(&run->signal, number);
	if (atomic_exchange(&run->interrupted, true))
		die_of(number);
	pthread_mutex_lock(&run->lock);
	pthread_cond_broadcast(&run->wake);
	if (atomic_load(&run->at_once)) {
		tools_error("interrupted");
		die_of(number);
	}
	session_cancel(run);
	if (!run->over)
		run->hurried = pthread_create(&run->hurry, NULL, hurry_run, run) == 0;
	pthread_mutex_unlock(&run->lock);
}

/* -v: print the identity that the file server sees, by the token. */
static void print_token(const struct run *run)
{
	struct rxw_token_details info = {.size = sizeof(info)};

	if (!run->renewal.token || rxw_token_info(run->renewal.token, &info) < 0)
		tools_error("identity at the file server: anonymous");
	else
		tools_error("identity at the file server: %s (%s, %s)",
			    info.client ? info.client : "the service itself",
			    tools_class_name(info.index), tools_level_name(info.level));
}

static int run_in_session(struct run *run, const struct command *command)
{
	int status = TOOLS_EXIT_FAILURE;

	if (session_open(run) == 0) {
		atomic_store(&run->at_once, false);
		status = command->run(run);
		stop_hurrying(run);
		if (run->set.verbose)
			print_token(run);
	}
	if (run->set.json && !command->reports && command->run != run_bench &&
	    print_json(run, NULL) < 0)
		status = TOOLS_EXIT_FAILURE;
	session_close(run, run_farewell_ms(run));
	return status;
}

/* Signals that are ignored at the start stay ignored: nohup(1), background jobs of a script. */
static size_t signals_to_take(int taken[SIGNAL_COUNT])
{
	struct sigaction now;
	size_t count = 0;

	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		if (sigaction(signals[i], NULL, &now) < 0 || now.sa_handler != SIG_IGN)
			taken[count++] = signals[i];
	return count;
}

static int start_command(struct run *run, const struct command *command)
{
	struct tools_signals *thread = NULL;
	int status, taken[SIGNAL_COUNT];

	/* The signal thread is the first one, so that all have the mask. A KDC may be slow. */
	atomic_store(&run->at_once, true);
	if (tools_signals_start(taken, signals_to_take(taken), interrupt_run, run, &thread) < 0) {
		tools_error("signals: %s", strerror(errno));
		return TOOLS_EXIT_FAILURE;
	}
	status = run_in_session(run, command);
	tools_renewal_close(&run->renewal);
	tools_signals_stop(thread);
	return status;
}

/* The arguments of ln depend on its options. */
static enum arguments_shape shape_of(const struct run *run, const struct command *command)
{
	if (command->run == run_ln && run->set.mount)
		return ARGUMENTS_PLACE;
	if (command->run == run_ln && run->set.symbolic)
		return ARGUMENTS_TEXT_PLACE;
	return command->shape;
}

static bool refuse_pointless_options_of_ln(const struct run *run)
{
	if (tools_place_given("symbolic") && tools_place_given("mount")) {
		tools_error("ln makes a symbolic link with -s, or a mount point with --mount");
		return true;
	}
	if (!tools_place_given("force") || run->set.symbolic || run->set.mount)
		return false;
	tools_error("option -f, --force has an effect only with -s or --mount; to make a hard link, "
		    "remove what has the name first");
	return true;
}

/* Whether the command ignores an option that is its own: a message and true then. */
static bool refuse_pointless_options(const struct run *run, const struct command *command)
{
	static const char *const of_mix[] = {"size", "files"};

	if (command->run == run_ln)
		return refuse_pointless_options_of_ln(run);
	if (command->run != run_bench)
		return false;
	for (size_t i = 0; i < 2; i++)
		if (!run->set.mix && tools_place_given(of_mix[i])) {
			tools_error("option --%s has an effect only with --mix", of_mix[i]);
			return true;
		}
	if (!run->set.mix || !tools_place_given("range"))
		return false;
	tools_error("option --range has no effect with --mix");
	return true;
}

static void note_error(void *arg, const char *text)
{
	struct run *run = arg;

	pthread_mutex_lock(&run->list_lock);
	json_array_append_new(run->errors, tools_json_text(text));
	pthread_mutex_unlock(&run->list_lock);
}

/* --json: keep what is told; of get and put also the files. */
static void keep_lists(struct run *run, const struct command *command)
{
	if (command->reports)
		run->list = json_array();
	run->errors = json_array();
	tools_on_error(note_error, run);
}

/* "get, put, … or bench" */
static void format_commands(char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < COMMAND_COUNT && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s",
					 i == 0			 ? ""
					 : i + 1 < COMMAND_COUNT ? ", "
								 : " or ",
					 commands[i].name);
}

/* The command of that name. NULL after a message. */
static const struct command *find_afscp_command(const char *name)
{
	char all[256];

	for (size_t i = 0; name && i < COMMAND_COUNT; i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	format_commands(all, sizeof(all));
	tools_error("%s%s%s: use %s; see afscp --help", name ? "\"" : "no command",
		    name ? name : "", name ? "\" is unknown" : "", all);
	return NULL;
}

/* How many endpoints the command has. */
static void allow_endpoints(struct run *run, const struct command *command)
{
	if (command->run != run_bench)
		tools_allow_endpoints(&run->config, run->set.jobs + 2);
	else if (run->set.mix)
		tools_allow_endpoints(&run->config, run->set.clients + 1);
	else
		tools_share_listeners(&run->config, run->set.clients + 1);
}

static int choose_command(struct run *run, int count, char **args)
{
	const struct command *command = find_afscp_command(count ? args[0] : NULL);

	if (!command || tools_options_suit(&program, args[0]) < 0 ||
	    refuse_pointless_options(run, command) || run_check_servers(run) < 0 ||
	    arguments_take(run, shape_of(run, command), args[0], count - 1, args + 1) < 0)
		return TOOLS_EXIT_USAGE;
	if (command->run == run_completion) {
		int status = print_completion(run);

		if (status >= 0)
			return status;
	}
	if (run->set.json && command->run != run_bench)
		keep_lists(run, command);
	allow_endpoints(run, command);
	return start_command(run, command);
}

static void init_run_locks(struct run *run)
{
	pthread_mutex_init(&run->lock, NULL);
	pthread_mutex_init(&run->token_lock, NULL);
	pthread_mutex_init(&run->progress_lock, NULL);
	pthread_mutex_init(&run->linked_lock, NULL);
	pthread_mutex_init(&run->list_lock, NULL);
	monotonic_cond_init(&run->wake);
}

static void end_run(struct run *run)
{
	free(run->places);
	tools_list_free(&run->set.servers);
	tools_list_free(&run->set.named_paths);
	for (size_t i = 0; i < run->made_count; i++)
		free(run->made[i]);
	free(run->made);
	tools_on_error(NULL, NULL);
	json_decref(run->list);
	json_decref(run->errors);
	json_decref(run->paths);
	json_decref(run->path_samples);
	pthread_mutex_destroy(&run->list_lock);
	pthread_cond_destroy(&run->wake);
	pthread_mutex_destroy(&run->linked_lock);
	pthread_mutex_destroy(&run->progress_lock);
	pthread_mutex_destroy(&run->token_lock);
	pthread_mutex_destroy(&run->lock);
}

int main(int argc, char **argv)
{
	struct run run = {.set = {.clients = 1,
				  .jobs = 4,
				  .paths = 8,
				  .files = 16,
				  .seconds_ms = 10000,
				  .timeout_ms = 60000,
				  .retry_ms = 60000,
				  .maxdepth = UINT64_MAX,
				  .auth = {.class = -1, .level = -1}}};
	enum tools_parsed parsed;
	int first, status = TOOLS_EXIT_USAGE;
	char **prepared;

	tools_set_program("afscp");
	tools_config_init(&run.config);
	init_run_locks(&run);
	run.began_ns = monotonic_ns();
	run.sample_ns = PATH_SAMPLE_NS;
	run.umask = umask(0);
	umask(run.umask);
	prepared = arguments_prepare(options, sizeof(options) / sizeof(options[0]), &argc, argv);
	if (!prepared) {
		tools_error("no memory");
		return TOOLS_EXIT_FAILURE;
	}
	parsed = tools_options_parse(&program, &run.set, &run.config, argc, prepared, &first);
	if (parsed == TOOLS_RUN) {
		run.progress.on = !run.set.quiet && isatty(STDERR_FILENO);
		status = choose_command(&run, argc - first, prepared + first);
	} else if (parsed == TOOLS_DONE) {
		status = 0;
	}
	filter_free(&run.set.filters);
	end_run(&run);
	free(prepared);
	/* Flush first: termination by a signal would lose buffered output. */
	if (atomic_load(&run.signal)) {
		fflush(stdout);
		die_of(atomic_load(&run.signal));
	}
	/* The reader of standard output may have exited: "afscp ls ... | head". */
	if (fflush(stdout) != 0)
		tools_note_output();
	if (atomic_load(&run.broken_pipe) || tools_output_error() == EPIPE)
		die_of(SIGPIPE);
	return tools_finish(status);
}
