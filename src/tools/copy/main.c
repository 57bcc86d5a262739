/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp: copies files out of AFS volumes, lists them, and loads file servers. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/many.h"
#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/common/signals.h"
#include "tools/copy/copy.h"

#define AT(field) .offset = offsetof(struct copy_settings, field)
static const struct tools_option options[] = {
	{ .name = "server", .letter = 's', .kind = TOOLS_STRING, AT(server),
	  .argument = "HOST[:VLPORT[:FSPORT]]",
	  .help = "location server, its port, and the file servers' (127.0.0.1:7003:7000)" },
	{ .name = "recursive", .letter = 'r', .kind = TOOLS_FLAG, AT(recursive),
	  .help = "get: copy directories with all that is below" },
	{ .name = "long", .letter = 'l', .kind = TOOLS_FLAG, AT(long_list),
	  .help = "ls: mode, links, owner, length and time of each" },
	{ .name = "quiet", .letter = 'q', .kind = TOOLS_FLAG, AT(quiet),
	  .help = "get: no progress on the terminal" },
	{ .name = "stats", .kind = TOOLS_FLAG, AT(stats), .help = "get: report speed and cost" },
	{ .name = "clients", .kind = TOOLS_UINT, AT(clients), .argument = "N",
	  .help = "bench: clients, each with a socket of its own (1)", .min = 1, .max = 4096 },
	{ .name = "seconds", .kind = TOOLS_DURATION, AT(seconds_ms), .argument = "S",
	  .help = "bench: how long (10)", .min = 1, .max = 31536000000 },
	{ .name = "range", .kind = TOOLS_SIZE, AT(range), .argument = "BYTES",
	  .help = "bench: bytes of each call (the whole file)", .min = 1 },
	{ .name = "verbose", .letter = 'v', .kind = TOOLS_FLAG, AT(verbose),
	  .help = "say who the file server takes us for, and how calls are protected" },
	{ .name = "class", .letter = 'x', .kind = TOOLS_CHOICE, AT(auth.class), .argument = TOOLS_CLASSES,
	  .help = "security class (rxkad if there is a token, else null)" },
	{ .name = "level", .kind = TOOLS_CHOICE, AT(auth.level), .argument = TOOLS_LEVELS,
	  .help = "how calls are protected, with rxkad and rxgk (crypt)" },
	{ .name = "cell", .kind = TOOLS_STRING, AT(auth.cell), .argument = "CELL",
	  .help = "use a Kerberos ticket for afs/CELL ($AFSCELL)" },
	{ .name = "keytab", .kind = TOOLS_STRING, AT(auth.keytab), .argument = "FILE",
	  .help = "got with the key there, not with tickets that kinit left" },
	{ .name = "key-file", .kind = TOOLS_STRING, AT(auth.key_file), .argument = "FILE",
	  .help = "keys of the cell's servers: be the service itself (localauth)" },
	{ .name = "json", .kind = TOOLS_FLAG, AT(json), .help = "report as one JSON object" },
};

static const struct tools_program program = {
	.name = "afscp",
	.usage =
		"usage: afscp [-s SERVER] get [-r] VOLUME:PATH [DEST|-]\n"
		"       afscp [-s SERVER] ls [-l] VOLUME:PATH\n"
		"       afscp [-s SERVER] stat VOLUME:PATH\n"
		"       afscp [-s SERVER] bench VOLUME:PATH --clients N [--seconds S] [--range BYTES]\n",
	.summary = "Copy from AFS volumes, look at them, or load their file servers.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

enum command { GET, LS, STAT, BENCH };
static const struct {
	const char *name;
	int most; /* arguments, the volume's path included */
} commands[] = { { "get", 2 }, { "ls", 1 }, { "stat", 1 }, { "bench", 1 } };

static void log_line(void *arg, enum rxw_log_level level, const char *line)
{
	(void)arg;
	if (level <= RXW_LOG_WARNING)
		tools_error("%s", line);
}

void copy_running(struct copy *copy, rxw_call *call)
{
	pthread_mutex_lock(&copy->lock);
	copy->running = call;
	if (call && atomic_load(&copy->interrupted))
		rxw_call_abort(call, RXW_USER_ABORT);
	pthread_mutex_unlock(&copy->lock);
}

static void on_signal(int number, void *arg)
{
	struct copy *copy = arg;

	(void)number;
	if (atomic_load(&copy->nothing_to_undo)) {
		tools_error("interrupted");
		_exit(TOOLS_EXIT_FAILURE);
	}
	pthread_mutex_lock(&copy->lock);
	atomic_store(&copy->interrupted, true);
	if (copy->running)
		rxw_call_abort(copy->running, RXW_USER_ABORT);
	if (copy->on_interrupt)
		copy->on_interrupt(copy->on_interrupt_arg);
	pthread_mutex_unlock(&copy->lock);
}

/* 0, or an exit status after a message. */
static int parse_server(struct copy *copy)
{
	uint16_t ports[2] = { AFS_PORT_VL, AFS_PORT_FS };
	char host[256], message[320];
	const char *text = copy->set.server ? copy->set.server : "127.0.0.1";

	if (tools_split_host(text, host, sizeof(host), ports, 2) < 0) {
		tools_error(
			"option --server: \"%s\" is not allowed; it takes HOST[:VLPORT[:FSPORT]]",
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

/* What the command line and the environment ask for. */
static struct tools_auth auth_of(const struct copy *copy)
{
	struct tools_auth auth = copy->set.auth;

	if (!auth.cell)
		auth.cell = getenv("AFSCELL");
	if (auth.class < 0)
		auth.class = TOOLS_RXKAD;
	return auth;
}

/* The calls of get, ls and stat. */
static bool use_token(void *arg, rxw_token *token)
{
	struct copy *copy = arg;
	struct afs_error error;

	return afs_client_renew(copy->client, rxw_token_security(token), &error) == 0;
}

void copy_fresh(struct copy *copy)
{
	tools_renewal_fresh(&copy->renewal);
}

bool copy_again(struct copy *copy, const struct afs_error *error)
{
	return (tools_renewal_expired(error->code, error->origin) ||
		tools_renewal_refused(&copy->renewal, error->result)) &&
	       tools_renewal_again(&copy->renewal);
}

/*
 * The token that we are to have, or the one that there is: who names no class goes on without one, and is told
 * so. 0, or -1 after a message.
 */
static int get_token(struct copy *copy)
{
	const struct tools_auth *set = &copy->set.auth, auth = auth_of(copy);
	char message[TOOLS_AUTH_MESSAGE];
	bool asked = set->class >= 0 || set->level >= 0 || set->key_file || set->keytab || set->cell;

	if (!asked && !auth.cell)
		return 0;
	if (tools_renewal_open(&copy->renewal, &auth, &copy->vl, use_token, copy, message,
			       sizeof(message)) == 0)
		return 0;
	if (asked) {
		tools_error("%s", message);
		return -1;
	}
	tools_error("going on as anonymous: %s", message);
	return 0;
}

/* -v: who we are to the file server. */
static void tell_identity(const struct copy *copy)
{
	struct rxw_identity identity = { .size = sizeof(identity) };
	char text[TOOLS_IDENTITY];

	if (copy->client && afs_client_identity(copy->client, &identity) == 0)
		tools_error("the file server takes us for %s", tools_identity_text(&identity, text, sizeof(text)));
}

/* Open the client and find the volume. */
static int connect_to(struct copy *copy, const char *volume)
{
	struct afs_client_options o = { .vl = &copy->vl.sa, .vl_len = copy->vl.len,
					.fs_port = copy->fs_port,
					.security = tools_renewal_security(&copy->renewal) };
	struct afs_error error;
	char text[TOOLS_ADDRESS_TEXT];
	int rc = rxw_engine_create(&copy->config, &copy->engine);

	if (rc < 0) {
		tools_error("cannot start: %s",
			    rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc));
		return -1;
	}
	if (afs_client_open(copy->engine, &o, &copy->client, &error) < 0 ||
	    afs_client_volume(copy->client, volume, &copy->volume, &error) < 0) {
		tools_error("%s: %s", tools_address_text(&copy->vl.sa, text, sizeof(text)),
			    error.text);
		return -1;
	}
	return 0;
}

static int run(struct copy *copy, enum command command, const char *volume, const char *destination)
{
	struct tools_signals *thread = NULL;
	int status = TOOLS_EXIT_FAILURE;

	/* First of all, so that every thread has the mask. */
	if (tools_signals_start(signals, SIGNAL_COUNT, on_signal, copy, &thread) < 0) {
		tools_error("signals: %s", strerror(errno));
		return TOOLS_EXIT_FAILURE;
	}
	if (get_token(copy) == 0 && connect_to(copy, volume) == 0) {
		switch (command) {
		case GET:
			status = copy_get(copy, destination);
			break;
		case LS:
			status = copy_list(copy);
			break;
		case STAT:
			status = copy_stat(copy);
			break;
		case BENCH:
			status = copy_bench(copy);
			break;
		}
	}
	tools_signals_stop(thread);
	if (copy->set.verbose)
		tell_identity(copy);
	afs_client_close(copy->client);
	if (copy->engine)
		rxw_engine_destroy(copy->engine);
	tools_renewal_close(&copy->renewal);
	return status;
}

/* "get VOLUME:PATH [DEST]"; the volume's name ends at the first colon. */
static int start(struct copy *copy, int count, char **args)
{
	size_t command = 0, known = sizeof(commands) / sizeof(commands[0]);
	char *colon;
	int status;

	while (count > 0 && command < known && strcmp(args[0], commands[command].name) != 0)
		command++;
	if (count == 0 || command == known) {
		tools_error("%s%s%s: say get, ls, stat or bench; see afscp --help",
			    count ? "\"" : "no command", count ? args[0] : "",
			    count ? "\" is unknown" : "");
		return TOOLS_EXIT_USAGE;
	}
	if (count < 2 || count - 1 > commands[command].most) {
		tools_error("%s takes VOLUME:PATH%s; see afscp --help", args[0],
			    command == GET ? " and a destination" : "");
		return TOOLS_EXIT_USAGE;
	}
	colon = strchr(args[1], ':');
	if (!colon || colon == args[1]) {
		tools_error("\"%s\" is no VOLUME:PATH; the root of a volume is VOLUME:/", args[1]);
		return TOOLS_EXIT_USAGE;
	}
	*colon = 0;
	copy->path = colon + 1;
	status = parse_server(copy);
	if (command == BENCH)
		tools_allow_endpoints(&copy->config, copy->set.clients + 1);
	if (status == 0)
		status = run(copy, (enum command)command, args[1], count > 2 ? args[2] : NULL);
	return status;
}

int main(int argc, char **argv)
{
	struct copy copy = { .set = { .clients = 1, .seconds_ms = 10000, .auth = { .class = -1, .level = -1 } } };
	enum tools_parsed parsed;
	int first, status = TOOLS_EXIT_USAGE;

	tools_set_program("afscp");
	rxw_config_init(&copy.config, sizeof(copy.config));
	copy.config.log = log_line;
	pthread_mutex_init(&copy.lock, NULL);
	copy.umask = umask(0);
	umask(copy.umask);
	parsed = tools_options_parse(&program, &copy.set, &copy.config, argc, argv, &first);
	if (parsed == TOOLS_RUN) {
		copy.progress = !copy.set.quiet && isatty(STDERR_FILENO);
		status = start(&copy, argc - first, argv + first);
	} else if (parsed == TOOLS_DONE) {
		status = 0;
	}
	pthread_mutex_destroy(&copy.lock);
	return tools_finish(status);
}
