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

#include "common/clock.h"
#include "program/endpoints.h"
#include "program/message.h"
#include "program/options.h"
#include "program/signals.h"
#include "afscp/arguments.h"
#include "afscp/copy.h"

#define SETTING(member) offsetof(struct copy_settings, member)
static const struct tools_option options[] = {
	TOOLS_OPTION("server", 's', TOOLS_STRING, server, "HOST[:VLPORT[:FSPORT]]",
		     "volume location server, its port, and the port of the file servers "
		     "($AFSCP_SERVER, or 127.0.0.1:7003:7000)"),
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
		     "get, put: number of files that are copied at the same time (4)",
		     .commands = "get put", .min = 1, .max = 256),
	TOOLS_OPTION("keep-going", 0, TOOLS_FLAG, keep_going, NULL,
		     "try the other objects even after an error that concerns them, too",
		     .commands = "get put rm mkdir mv chmod"),
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
	TOOLS_OPTION("negative", 'n', TOOLS_FLAG, negative, NULL,
		     "acl: set negative entries, which take rights away", .commands = "acl"),
	TOOLS_OPTION("shared", 0, TOOLS_FLAG, shared, NULL,
		     "lock: take a lock that others may share (-s after lock)", .commands = "lock"),
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
	TOOLS_OPTION("stats", 0, TOOLS_FLAG, stats, NULL, "get, put: report the speed and the cost",
		     .commands = "get put"),
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
	TOOLS_OPTION("size", 0, TOOLS_STRING, size, "BYTES[-BYTES]",
		     "bench --mix: length of the files (4K)", .commands = "bench"),
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
	TOOLS_OPTION("json", 0, TOOLS_FLAG, json, NULL, "report or list as one JSON object",
		     .commands = "get put ls stat acl df bench"),
};

static const struct tools_program program = {
	.name = "afscp",
	.usage =
		"usage: afscp [-s SERVER] get [-rpC] VOLUME:PATH... [DEST|-]\n"
		"       afscp [-s SERVER] put [-rpC] SOURCE|-... VOLUME:PATH\n"
		"       afscp [-s SERVER] ls [-l] VOLUME:PATH\n"
		"       afscp [-s SERVER] stat VOLUME:PATH\n"
		"       afscp [-s SERVER] rm [-rf] VOLUME:PATH...\n"
		"       afscp [-s SERVER] mkdir [-p] [-m MODE] VOLUME:PATH...\n"
		"       afscp [-s SERVER] mv VOLUME:PATH... VOLUME:PATH\n"
		"       afscp [-s SERVER] ln VOLUME:PATH VOLUME:PATH\n"
		"       afscp [-s SERVER] ln -s TARGET VOLUME:PATH\n"
		"       afscp [-s SERVER] ln --mount VOLUME VOLUME:PATH\n"
		"       afscp [-s SERVER] chmod [-r] MODE VOLUME:PATH...\n"
		"       afscp [-s SERVER] acl [-n] VOLUME:PATH [NAME RIGHTS]...\n"
		"       afscp [-s SERVER] lock [-s] VOLUME:PATH COMMAND...\n"
		"       afscp [-s SERVER] df VOLUME:...\n"
		"       afscp [-s SERVER] bench VOLUME:PATH --clients N [--seconds S] "
		"[--range BYTES]\n"
		"       afscp [-s SERVER] bench VOLUME:PATH --mix read=70,write=30 [--size BYTES]\n",
	.summary = "Copy files between AFS volumes and local folders, change volumes, or benchmark "
		   "file servers.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

#define HASTE_MS 500 /* limit for returning promises after an interrupt */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static const struct command {
	const char *name;
	enum arguments_shape shape;
	int (*run)(struct copy *copy);
	bool locates; /* the volume of the first source is looked up before */
} commands[] = {
	{"get", ARGUMENTS_TO_LOCAL, copy_get, false},
	{"put", ARGUMENTS_TO_PLACE, copy_put, true},
	{"ls", ARGUMENTS_PLACE, copy_list, true},
	{"stat", ARGUMENTS_PLACE, copy_stat, true},
	{"rm", ARGUMENTS_PLACES, copy_rm, false},
	{"mkdir", ARGUMENTS_PLACES, copy_mkdir, false},
	{"mv", ARGUMENTS_TWO_PLACES, copy_mv, true},
	{"ln", ARGUMENTS_TWO_PLACES, copy_ln, true},
	{"chmod", ARGUMENTS_TEXT_PLACES, copy_chmod, false},
	{"acl", ARGUMENTS_PLACE_TEXTS, copy_acl, true},
	{"lock", ARGUMENTS_PLACE_COMMAND, copy_lock, true},
	{"df", ARGUMENTS_PLACES, copy_df, false},
	{"bench", ARGUMENTS_PLACE, copy_bench, true},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

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
		run_give_up(run, HASTE_MS);
		die_of(number);
	}
	for (size_t i = 0; i < run->client_count; i++)
		afs_client_cancel(run->clients[i]);
	pthread_mutex_unlock(&run->lock);
}

/* The first address that answers, and those to be asked when it does not any more. */
static void choose_location(struct run *run, const struct tools_address *list, size_t count)
{
	size_t first = tools_find_reachable(&run->config, list, count, AFS_SERVICE_VL);

	run->vl = list[first];
	for (size_t i = 1; i < count; i++) {
		const struct tools_address *other = &list[(first + i) % count];

		if (other->sa.ss_family == run->vl.sa.ss_family)
			run->vl_others[run->vl_other_count++] = other->sa;
	}
}

/* 0, or an exit status after a message. */
static int parse_server(struct run *run)
{
	uint16_t ports[2] = {AFS_PORT_VL, AFS_PORT_FS};
	struct tools_address list[TOOLS_ADDRESSES];
	char host[256], message[320];
	size_t count;
	const char *text = run->set.server ? run->set.server : getenv("AFSCP_SERVER");

	if (!text || !*text)
		text = "127.0.0.1";
	if (tools_split_host(text, host, sizeof(host), ports, 2) < 0) {
		tools_error("%s: invalid value \"%s\"; use HOST[:VLPORT[:FSPORT]]",
			    run->set.server ? "option --server" : "$AFSCP_SERVER", text);
		return TOOLS_EXIT_USAGE;
	}
	count = tools_resolve_all(host, ports[0], list, message, sizeof(message));
	if (count == 0) {
		tools_error("-s: %s", message);
		return TOOLS_EXIT_FAILURE;
	}
	/* Location entries have no IPv6 addresses: see afs_client_volume(). */
	tools_addresses_prefer_ipv4(list, count);
	choose_location(run, list, count);
	run->fs_port = ports[1];
	return 0;
}

/* Authentication according to command line and environment. */
static struct tools_auth auth_of(const struct run *run)
{
	struct tools_auth auth = run->set.auth;

	if (!auth.cell)
		auth.cell = getenv("AFSCELL");
	if (auth.class < 0)
		auth.class = TOOLS_RXKAD;
	return auth;
}

/* Every thread gives its client the new token before the next call. */
static bool accept_new_token(void *arg, rxw_token *token)
{
	(void)arg;
	(void)token;
	return true;
}

/*
 * Get the token. If none was requested explicitly, continue without one, after a message. 0, or -1
 * after a message.
 */
static int get_token(struct run *run)
{
	const struct tools_auth *set = &run->set.auth, auth = auth_of(run);
	char message[TOOLS_AUTH_MESSAGE];
	bool asked =
		set->class >= 0 || set->level >= 0 || set->key_file || set->keytab || set->cell;

	if (!asked && !auth.cell)
		return 0;
	if (tools_renewal_open(&run->renewal, &auth, &run->vl, accept_new_token, NULL, message,
			       sizeof(message)) == 0)
		return 0;
	if (asked) {
		tools_error("%s", message);
		return -1;
	}
	tools_error("continuing as anonymous: %s", message);
	return 0;
}

/* -v: print the identity that the file server sees. */
static void print_identity(const struct copy *copy)
{
	struct rxw_identity identity = {.size = sizeof(identity)};
	char text[TOOLS_IDENTITY];

	if (copy->client && afs_client_identity(copy->client, &identity) == 0)
		tools_error("identity at the file server: %s",
			    tools_identity_text(&identity, text, sizeof(text)));
}

/* The engine and the client of the main thread. 0, or -1 after a message. */
static int open_main_client(struct run *run, struct copy *copy)
{
	int rc = rxw_engine_create(&run->config, &run->engine);

	if (rc < 0) {
		tools_error("cannot start: %s", tools_result_text(rc));
		return -1;
	}
	return copy_open(run, copy);
}

static int run_command(struct copy *copy, const struct command *command)
{
	if (command->locates && copy_locate(copy, &copy->run->sources[0]) < 0)
		return TOOLS_EXIT_FAILURE;
	return command->run(copy);
}

/* Return promises and free everything. */
static void close_main_client(struct run *run, struct copy *copy)
{
	if (run->set.verbose)
		print_identity(copy);
	copy_close(copy);
	if (run->engine)
		rxw_engine_destroy(run->engine);
	tools_renewal_close(&run->renewal);
	free(run->clients);
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
	struct copy copy = {.run = run};
	struct tools_signals *thread = NULL;
	int status = TOOLS_EXIT_FAILURE, taken[SIGNAL_COUNT];

	/* The signal thread is the first one, so that all have the mask. A KDC may be slow. */
	atomic_store(&run->at_once, true);
	if (tools_signals_start(taken, signals_to_take(taken), interrupt_run, run, &thread) < 0) {
		tools_error("signals: %s", strerror(errno));
		return TOOLS_EXIT_FAILURE;
	}
	if (get_token(run) == 0 && open_main_client(run, &copy) == 0) {
		atomic_store(&run->at_once, false);
		status = run_command(&copy, command);
	}
	close_main_client(run, &copy);
	tools_signals_stop(thread);
	return status;
}

/* The arguments of ln depend on its options. */
static enum arguments_shape shape_of(const struct run *run, const struct command *command)
{
	if (command->run == copy_ln && run->set.mount)
		return ARGUMENTS_PLACE;
	if (command->run == copy_ln && run->set.symbolic)
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

	if (command->run == copy_ln)
		return refuse_pointless_options_of_ln(run);
	if (command->run != copy_bench)
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

	json_array_append_new(run->errors, tools_json_text(text));
}

/* --json of get and put: keep what is told. */
static void keep_lists(struct run *run)
{
	run->list = json_array();
	run->errors = json_array();
	tools_on_error(note_error, run);
}

static int choose_command(struct run *run, int count, char **args)
{
	size_t at = 0;
	int status;

	while (count > 0 && at < COMMAND_COUNT && strcmp(args[0], commands[at].name) != 0)
		at++;
	if (count == 0 || at == COMMAND_COUNT) {
		tools_error("%s%s%s: use get, put, ls, stat, rm, mkdir, mv, ln, chmod, acl, lock, df "
			    "or bench; see afscp --help",
			    count ? "\"" : "no command", count ? args[0] : "",
			    count ? "\" is unknown" : "");
		return TOOLS_EXIT_USAGE;
	}
	if (tools_options_suit(&program, args[0]) < 0 ||
	    refuse_pointless_options(run, &commands[at]))
		return TOOLS_EXIT_USAGE;
	if (arguments_take(run, shape_of(run, &commands[at]), args[0], count - 1, args + 1) < 0)
		return TOOLS_EXIT_USAGE;
	if (run->set.json && (commands[at].run == copy_get || commands[at].run == copy_put))
		keep_lists(run);
	status = parse_server(run);
	if (commands[at].run != copy_bench)
		tools_allow_endpoints(&run->config, run->set.jobs + 2);
	else if (run->set.mix)
		tools_allow_endpoints(&run->config, run->set.clients + 1);
	else
		tools_share_listeners(&run->config, run->set.clients + 1);
	return status == 0 ? start_command(run, &commands[at]) : status;
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
	free(run->sources);
	for (size_t i = 0; i < run->made_count; i++)
		free(run->made[i]);
	free(run->made);
	tools_on_error(NULL, NULL);
	json_decref(run->list);
	json_decref(run->errors);
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
				  .files = 16,
				  .seconds_ms = 10000,
				  .timeout_ms = 60000,
				  .retry_ms = 60000,
				  .auth = {.class = -1, .level = -1}}};
	enum tools_parsed parsed;
	int first, status = TOOLS_EXIT_USAGE;
	char **prepared;

	tools_set_program("afscp");
	tools_config_init(&run.config);
	init_run_locks(&run);
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
