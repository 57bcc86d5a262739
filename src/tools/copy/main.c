/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp: copies files out of AFS volumes, lists them, and loads file servers. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "tools/common/many.h"
#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/common/signals.h"
#include "tools/copy/copy.h"

#define AT(field) .offset = offsetof(struct copy_settings, field)
static const struct tools_option options[] = {
	{ .name = "server", .letter = 's', .kind = TOOLS_STRING, AT(server),
	  .argument = "HOST[:VLPORT[:FSPORT]]",
	  .help = "volume location server, its port, and the port of the file servers "
		  "(127.0.0.1:7003:7000)" },
	{ .name = "recursive", .letter = 'r', .kind = TOOLS_FLAG, AT(recursive),
	  .help = "get: copy directories recursively" },
	{ .name = "long", .letter = 'l', .kind = TOOLS_FLAG, AT(long_list),
	  .help = "ls: show the mode, link count, owner, length and time of each entry" },
	{ .name = "quiet", .letter = 'q', .kind = TOOLS_FLAG, AT(quiet),
	  .help = "show neither progress nor messages about retries" },
	{ .name = "continue", .letter = 'C', .kind = TOOLS_FLAG, AT(resume),
	  .help = "get: skip files that exist already with the same length and modification time" },
	{ .name = "timeout", .kind = TOOLS_DURATION, AT(timeout_ms), .argument = "S",
	  .help = "time limit without progress, and for finding a server (60)", .min = 1000,
	  .max = 86400000 },
	{ .name = "retry", .kind = TOOLS_DURATION, AT(retry_ms), .argument = "S",
	  .help = "how long to retry while a server restarts or does not answer (60); "
		  "0: do not retry",
	  .max = 86400000 },
	{ .name = "stats", .kind = TOOLS_FLAG, AT(stats),
	  .help = "get: report the speed and the cost" },
	{ .name = "clients", .kind = TOOLS_UINT, AT(clients), .argument = "N",
	  .help = "bench: number of clients, each with its own socket (1)", .min = 1, .max = 4096 },
	{ .name = "seconds", .kind = TOOLS_DURATION, AT(seconds_ms), .argument = "S",
	  .help = "bench: duration (10)", .min = 1, .max = 31536000000 },
	{ .name = "range", .kind = TOOLS_SIZE, AT(range), .argument = "BYTES",
	  .help = "bench: bytes per call (the whole file)", .min = 1 },
	{ .name = "verbose", .letter = 'v', .kind = TOOLS_FLAG, AT(verbose),
	  .help = "report the identity that the file server sees, and the protection of calls" },
	{ .name = "class", .letter = 'x', .kind = TOOLS_CHOICE, AT(auth.class),
	  .argument = TOOLS_CLASSES,
	  .help = "security class (rxkad with a token, otherwise null)" },
	{ .name = "level", .kind = TOOLS_CHOICE, AT(auth.level), .argument = TOOLS_LEVELS,
	  .help = "protection of calls with rxkad and rxgk (crypt)" },
	{ .name = "cell", .kind = TOOLS_STRING, AT(auth.cell), .argument = "CELL",
	  .help = "use a Kerberos ticket for afs/CELL ($AFSCELL)" },
	{ .name = "keytab", .kind = TOOLS_STRING, AT(auth.keytab), .argument = "FILE",
	  .help = "get that ticket with a key of this file instead of the ticket cache" },
	{ .name = "key-file", .kind = TOOLS_STRING, AT(auth.key_file), .argument = "FILE",
	  .help = "keys of the cell's servers, to authenticate as the service itself (localauth)" },
	{ .name = "json", .kind = TOOLS_FLAG, AT(json),
	  .help = "report or list as one JSON object" },
};

static const struct tools_program program = {
	.name = "afscp",
	.usage =
		"usage: afscp [-s SERVER] get [-r] VOLUME:PATH... [DEST|-]\n"
		"       afscp [-s SERVER] ls [-l] VOLUME:PATH\n"
		"       afscp [-s SERVER] stat VOLUME:PATH\n"
		"       afscp [-s SERVER] bench VOLUME:PATH --clients N [--seconds S] "
		"[--range BYTES]\n",
	.summary = "Copy and list files of AFS volumes, or benchmark file servers.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

#define GIVE_UP_MS 2000 /* limit for returning promises to the file servers */
#define HASTE_MS   500	/* the same after an interrupt */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

enum command {
	GET,
	LS,
	STAT,
	BENCH
};
static const struct {
	const char *name;
	bool many; /* takes several sources, and a destination after them */
} commands[] = {{"get", true}, {"ls", false}, {"stat", false}, {"bench", false}};

static void log_line(void *arg, enum rxw_log_level level, const char *line)
{
	(void)arg;
	if (level <= RXW_LOG_WARNING)
		tools_error("%s", line);
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

static void give_up_promises(struct copy *copy, unsigned ms)
{
	if (copy->client)
		afs_client_give_up(&copy->client, 1, ms);
}

static void on_signal(int number, void *arg)
{
	struct copy *copy = arg;
	bool second = atomic_exchange(&copy->interrupted, true);

	atomic_store(&copy->signal, number);
	if (second)
		die_of(number);
	pthread_mutex_lock(&copy->lock);
	pthread_cond_broadcast(&copy->wake);
	if (atomic_load(&copy->at_once)) {
		tools_error("interrupted");
		give_up_promises(copy, HASTE_MS);
		die_of(number);
	}
	if (copy->client)
		afs_client_cancel(copy->client);
	if (copy->on_interrupt)
		copy->on_interrupt(copy->on_interrupt_arg);
	pthread_mutex_unlock(&copy->lock);
}

/* 0, or an exit status after a message. */
static int parse_server(struct copy *copy)
{
	uint16_t ports[2] = {AFS_PORT_VL, AFS_PORT_FS};
	char host[256], message[320];
	const char *text = copy->set.server ? copy->set.server : "127.0.0.1";

	if (tools_split_host(text, host, sizeof(host), ports, 2) < 0) {
		tools_error(
			"option --server: invalid value \"%s\"; use HOST[:VLPORT[:FSPORT]]",
			text);
		return TOOLS_EXIT_USAGE;
	}
	if (tools_resolve(host, ports[0], 0, &copy->vl, message, sizeof(message)) < 0) {
		tools_error("-s: %s", message);
		return TOOLS_EXIT_FAILURE;
	}
	copy->fs_port = ports[1];
	return 0;
}

/* Authentication according to command line and environment. */
static struct tools_auth auth_of(const struct copy *copy)
{
	struct tools_auth auth = copy->set.auth;

	if (!auth.cell)
		auth.cell = getenv("AFSCELL");
	if (auth.class < 0)
		auth.class = TOOLS_RXKAD;
	return auth;
}

/* Use a new token for the calls of get, ls and stat. */
static bool use_token(void *arg, rxw_token *token)
{
	struct copy *copy = arg;
	struct afs_error error;

	return afs_client_renew(copy->client, rxw_token_security(token), &error) == 0;
}

/*
 * Get the token. If none was requested explicitly, continue without one, after a message. 0, or -1
 * after a message.
 */
static int get_token(struct copy *copy)
{
	const struct tools_auth *set = &copy->set.auth, auth = auth_of(copy);
	char message[TOOLS_AUTH_MESSAGE];
	bool asked =
		set->class >= 0 || set->level >= 0 || set->key_file || set->keytab || set->cell;

	if (!asked && !auth.cell)
		return 0;
	if (tools_renewal_open(&copy->renewal, &auth, &copy->vl, use_token, copy, message,
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

/* The engine and the client. */
static int open_client(struct copy *copy)
{
	struct afs_client_options o = {.vl = &copy->vl.sa,
				       .vl_len = copy->vl.len,
				       .fs_port = copy->fs_port,
				       .limit_ms = (unsigned)copy->set.timeout_ms,
				       .security = tools_renewal_security(&copy->renewal)};
	struct afs_client *client;
	struct afs_error error;
	int rc = rxw_engine_create(&copy->config, &copy->engine);

	if (rc < 0) {
		tools_error("cannot start: %s",
			    rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc));
		return -1;
	}
	if (afs_client_open(copy->engine, &o, &client, &error) < 0) {
		tools_error("%s", error.text);
		return -1;
	}
	pthread_mutex_lock(&copy->lock);
	copy->client = client;
	if (atomic_load(&copy->interrupted))
		afs_client_cancel(client);
	pthread_mutex_unlock(&copy->lock);
	return 0;
}

static int run_command(struct copy *copy, enum command command)
{
	if (command == GET)
		return copy_get(copy);
	if (copy_locate(copy, &copy->sources[0]) < 0)
		return TOOLS_EXIT_FAILURE;
	switch (command) {
	case LS:
		return copy_list(copy);
	case STAT:
		return copy_stat(copy);
	default:
		return copy_bench(copy);
	}
}

/* Return promises and free everything. */
static void close_client(struct copy *copy)
{
	struct afs_client *client = copy->client;

	if (copy->set.verbose)
		print_identity(copy);
	give_up_promises(copy, atomic_load(&copy->interrupted) ? HASTE_MS : GIVE_UP_MS);
	pthread_mutex_lock(&copy->lock);
	copy->client = NULL;
	pthread_mutex_unlock(&copy->lock);
	afs_client_close(client);
	if (copy->engine)
		rxw_engine_destroy(copy->engine);
	tools_renewal_close(&copy->renewal);
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

static int run(struct copy *copy, enum command command)
{
	struct tools_signals *thread = NULL;
	int status = TOOLS_EXIT_FAILURE, taken[SIGNAL_COUNT];

	/* Before any other thread, so that all have the mask. A KDC may be slow. */
	atomic_store(&copy->at_once, true);
	if (tools_signals_start(taken, signals_to_take(taken), on_signal, copy, &thread) < 0) {
		tools_error("signals: %s", strerror(errno));
		return TOOLS_EXIT_FAILURE;
	}
	if (get_token(copy) == 0 && open_client(copy) == 0) {
		atomic_store(&copy->at_once, false);
		status = run_command(copy, command);
	}
	close_client(copy);
	tools_signals_stop(thread);
	return status;
}

/* "VOLUME:PATH"; the volume's name ends at the first colon. 0, or -1 after a message. */
static int parse_source(char *text, struct copy_source *source)
{
	char *colon = strchr(text, ':');

	if (!colon || colon == text) {
		tools_error("\"%s\" is not VOLUME:PATH; the root of a volume is VOLUME:/", text);
		return -1;
	}
	*colon = 0;
	*source = (struct copy_source){.volume = text, .path = colon + 1};
	return 0;
}

/* "get VOLUME:PATH... [DEST]": the last of several is the destination. 0, or -1 after a message. */
static int parse_sources(struct copy *copy, int count, char **args)
{
	if (count > 1) {
		copy->destination = args[--count];
		if (count > 1 && strcmp(copy->destination, "-") == 0) {
			tools_error("several sources cannot be written to standard output");
			return -1;
		}
	}
	copy->sources = calloc((size_t)count, sizeof(*copy->sources));
	if (!copy->sources) {
		tools_error("no memory");
		return -1;
	}
	copy->source_count = (size_t)count;
	for (int i = 0; i < count; i++)
		if (parse_source(args[i], &copy->sources[i]) < 0)
			return -1;
	return 0;
}

static int start(struct copy *copy, int count, char **args)
{
	size_t command = 0, known = sizeof(commands) / sizeof(commands[0]);
	int status;

	while (count > 0 && command < known && strcmp(args[0], commands[command].name) != 0)
		command++;
	if (count == 0 || command == known) {
		tools_error("%s%s%s: use get, ls, stat or bench; see afscp --help",
			    count ? "\"" : "no command", count ? args[0] : "",
			    count ? "\" is unknown" : "");
		return TOOLS_EXIT_USAGE;
	}
	if (count < 2 || (count > 2 && !commands[command].many)) {
		tools_error("%s takes VOLUME:PATH%s; see afscp --help", args[0],
			    command == GET ? " and a destination" : "");
		return TOOLS_EXIT_USAGE;
	}
	if (parse_sources(copy, count - 1, args + 1) < 0)
		return TOOLS_EXIT_USAGE;
	status = parse_server(copy);
	if (command == BENCH)
		tools_allow_endpoints(&copy->config, copy->set.clients + 1);
	return status == 0 ? run(copy, (enum command)command) : status;
}

static void init_locks(struct copy *copy)
{
	pthread_mutex_init(&copy->lock, NULL);
	monotonic_cond_init(&copy->wake);
}

int main(int argc, char **argv)
{
	struct copy copy = {.set = {.clients = 1,
				    .seconds_ms = 10000,
				    .timeout_ms = 60000,
				    .retry_ms = 60000,
				    .auth = {.class = -1, .level = -1}}};
	enum tools_parsed parsed;
	int first, status = TOOLS_EXIT_USAGE;

	tools_set_program("afscp");
	rxw_config_init(&copy.config, sizeof(copy.config));
	copy.config.log = log_line;
	init_locks(&copy);
	copy.umask = umask(0);
	umask(copy.umask);
	parsed = tools_options_parse(&program, &copy.set, &copy.config, argc, argv, &first);
	if (parsed == TOOLS_RUN) {
		copy.progress.on = !copy.set.quiet && isatty(STDERR_FILENO);
		status = start(&copy, argc - first, argv + first);
	} else if (parsed == TOOLS_DONE) {
		status = 0;
	}
	free(copy.sources);
	pthread_cond_destroy(&copy.wake);
	pthread_mutex_destroy(&copy.lock);
	/* Flush first: termination by a signal would lose buffered output. */
	if (atomic_load(&copy.signal)) {
		fflush(stdout);
		die_of(atomic_load(&copy.signal));
	}
	/* The reader of standard output may have exited: "afscp ls ... | head". */
	if (copy.broken_pipe || (fflush(stdout) != 0 && errno == EPIPE))
		die_of(SIGPIPE);
	return tools_finish(status);
}
