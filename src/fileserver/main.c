/* SPDX-License-Identifier: BSD-2-Clause */
/* rxfsd: serves a directory tree as a read-only AFS volume, or a store of volumes, over Rx. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <rxwire/rxwire.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/server.h"
#include "program/message.h"
#include "program/metrics.h"
#include "program/number.h"
#include "program/options.h"
#include "program/signals.h"

struct options {
	struct fsd_settings settings;
	struct tools_list advertise, require, allow, administrators;
	uint64_t reload; /* --reload: process id; 0: none */
	bool debug;
};

#define PT_PORT		7002
#define VL_PORT		7003
#define VOL_PORT	7005
#define PORT_UNSET	UINT64_MAX
#define WATCHES		8192
#define WATCHES_UNSET	UINT64_MAX
#define RELOAD_LIMIT	30000 /* ms until --reload gives up */
#define STOP_LIMIT	20000 /* ms that stopping may take beside the drain */
#define STOP_MARGIN	30000 /* the same, as the service manager is told */
#define TICK_S		1     /* between two of fsd_server_tick() */
#define DESCRIPTORS	4096  /* room for them takes 8 bytes each */

#define SETTING(member) offsetof(struct options, settings.member)

static const struct tools_option table[] = {
	{.name = "export",
	 .letter = 'e',
	 .kind = TOOLS_STRING,
	 .offset = SETTING(export),
	 .argument = "DIR",
	 .help = "serve this directory, read-only; it or --store is required"},
	{.name = "store",
	 .letter = 'S',
	 .kind = TOOLS_STRING,
	 .offset = SETTING(store),
	 .argument = "DIR",
	 .help = "serve the volumes of this store, which rxvol(8) makes"},
	{.name = "durability",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(durability),
	 .argument = "lazy|strict",
	 .help = "lazy: a dead machine loses at most the last second; strict: nothing; default "
		 "lazy"},
	{.name = "metadata-copy",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(copy),
	 .argument = "DIR",
	 .help = "the directory, best on another disk, for the copy of the store's metadata; default: "
		 "the store"},
	{.name = "allow-anonymous-writes",
	 .kind = TOOLS_FLAG,
	 .offset = SETTING(anonymous_writes),
	 .help = "let ACLs of the store give anonymous callers of other machines rights to write"},
	{.name = "audit-log",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(audit_log),
	 .argument = "FILE",
	 .help = "append a line of JSON for each call that changes something or is refused; "
		 "reopened on SIGHUP"},
	{.name = "audit",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(audit),
	 .argument = "lossy|strict",
	 .help = "when the audit log cannot keep up: lossy counts what is lost, strict makes calls "
		 "wait; default lossy"},
	{.name = "audit-reads",
	 .kind = TOOLS_FLAG,
	 .offset = SETTING(audit_reads),
	 .help = "the audit log has the calls that only read an object, too"},
	{.name = "volume",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(volume),
	 .argument = "NAME",
	 .help = "name of the volume; default: the last component of DIR"},
	{.name = "cell",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(cell),
	 .argument = "NAME",
	 .help = "cell of the server; selects the keys and is shown in root.afs"},
	{.name = "listen",
	 .letter = 'l',
	 .kind = TOOLS_STRING,
	 .offset = SETTING(listen),
	 .argument = "ADDR",
	 .help = "address to serve on; 0.0.0.0 or :: for all; default 127.0.0.1"},
	{.name = "port",
	 .letter = 'p',
	 .kind = TOOLS_UINT,
	 .offset = SETTING(port),
	 .argument = "PORT",
	 .max = 65535,
	 .help = "UDP port of the file service; default 7000, 0 = a free port"},
	{.name = "vl-port",
	 .kind = TOOLS_UINT,
	 .offset = SETTING(vl_port),
	 .argument = "PORT",
	 .max = 65535,
	 .help = "UDP port of the volume location service; default 7003, 0 = a free port"},
	{.name = "vol-port",
	 .kind = TOOLS_UINT,
	 .offset = SETTING(vol_port),
	 .argument = "PORT",
	 .max = 65535,
	 .help = "UDP port of the volume service; default 7005, or a free port if --vl-port is "
		 "not 7003"},
	{.name = "protection",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(protection),
	 .argument = "DIR|FILE",
	 .help = "users and groups, made with rxpt: serve them, too; default: no such service"},
	{.name = "pt-port",
	 .kind = TOOLS_UINT,
	 .offset = SETTING(pt_port),
	 .argument = "PORT",
	 .max = 65535,
	 .help = "UDP port of the protection service; default 7002, 0 = a free port"},
	{.name = "state",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(state),
	 .argument = "DIR",
	 .help = "directory for identity and file numbers; default: see the manual"},
	{.name = "all-files",
	 .kind = TOOLS_FLAG,
	 .offset = SETTING(all_files),
	 .help = "serve all files that rxfsd can read, not only those that \"other\" may read"},
	{.name = "advertise",
	 .kind = TOOLS_LIST,
	 .offset = offsetof(struct options, advertise),
	 .argument = "ADDR",
	 .help = "additional IPv4 address of the file service; may be repeated"},
	{.name = "readers",
	 .kind = TOOLS_UINT,
	 .offset = SETTING(readers),
	 .argument = "N",
	 .min = 1,
	 .max = 256,
	 .help = "threads that read ahead from the disk; default 16"},
	{.name = "read-ahead",
	 .kind = TOOLS_SIZE,
	 .offset = SETTING(read_ahead),
	 .argument = "BYTES",
	 .min = 1 << 18,
	 .help = "memory for read-ahead of all calls; default 48M"},
	{.name = "timeline",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(timeline),
	 .argument = "FILE",
	 .help = "for benchmarks: write when each piece of a file was read and sent"},
	{.name = "watches",
	 .kind = TOOLS_UINT,
	 .offset = SETTING(watches),
	 .argument = "N",
	 .max = 1 << 20,
	 .help = "maximum directories watched with inotify; default 8192"},
	{.name = "promises",
	 .kind = TOOLS_UINT,
	 .offset = SETTING(promises),
	 .argument = "N",
	 .min = 16,
	 .max = 1 << 24,
	 .help = "maximum number of callback promises; default 262144"},
	{.name = "drain",
	 .kind = TOOLS_DURATION,
	 .offset = SETTING(drain_ms),
	 .argument = "SECONDS",
	 .max = 3600000,
	 .help = "time for running calls to finish after SIGTERM; default 20"},
	{.name = "keytab",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(guard.keytab),
	 .argument = "FILE",
	 .help = "service keys: a keytab, KeyFileExt or KeyFile; reloaded on SIGHUP"},
	{.name = "require",
	 .kind = TOOLS_LIST,
	 .offset = offsetof(struct options, require),
	 .argument = "[fs:|vl:|vol:]none|clear|auth|crypt",
	 .help = "minimum protection of calls; default: none on loopback, otherwise fs:auth"},
	{.name = "allow",
	 .kind = TOOLS_LIST,
	 .offset = offsetof(struct options, allow),
	 .argument = "'WHO PATTERN...'",
	 .help = "allow WHO (user@REALM, anonymous, any-authenticated) to access files; "
		 "default: all files to everyone"},
	{.name = "administrator",
	 .kind = TOOLS_LIST,
	 .offset = offsetof(struct options, administrators),
	 .argument = "user@REALM",
	 .help = "user who may access all files; may be repeated"},
	{.name = "realm",
	 .kind = TOOLS_STRING,
	 .offset = SETTING(guard.realm),
	 .argument = "REALM",
	 .help = "a realm whose principal \"afs\" is the service itself"},
	{.name = "allow-dotted-principals",
	 .kind = TOOLS_FLAG,
	 .offset = SETTING(dotted_principals),
	 .help = "john.doe is the user john.doe of --protection, and john/doe is not; default: the "
		 "reverse"},
	{.name = "allow-single-des",
	 .kind = TOOLS_FLAG,
	 .offset = SETTING(guard.single_des),
	 .help = "accept tickets protected by single DES, which can be broken in hours"},
	{.name = "rpc-stats",
	 .kind = TOOLS_FLAG,
	 .offset = SETTING(rpc_stats),
	 .help = "offer call statistics (RXSTATS) on all ports to this host"},
	{.name = "rpc-stats-open",
	 .kind = TOOLS_FLAG,
	 .offset = SETTING(rpc_stats_open),
	 .help = "offer call statistics to other hosts as well"},
	{.name = "reload",
	 .kind = TOOLS_UINT,
	 .offset = offsetof(struct options, reload),
	 .argument = "PID",
	 .min = 1,
	 .max = INT32_MAX,
	 .once = true,
	 .help = "tell the rxfsd with this process id to reload its keys; the exit status is "
		 "the result"},
	TOOLS_METRICS_OPTIONS(SETTING, metrics),
	{.name = "metrics-volumes",
	 .kind = TOOLS_UINT,
	 .offset = SETTING(metrics_volumes),
	 .argument = "N",
	 .max = 100000,
	 .help = "the most volumes with metrics of their own; default 1000"},
	TOOLS_TRACE_OPTIONS_OF_SERVERS(SETTING, trace),
	{.name = "debug",
	 .kind = TOOLS_FLAG,
	 .offset = offsetof(struct options, debug),
	 .help = "log more"},
};

/*
 * While there is one thread only, the table of descriptors grows at once. Later it would keep all threads that open
 * files waiting for an RCU grace period, which takes tens of milliseconds.
 */
static void reserve_descriptors(rlim_t most)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC,
		       most < DESCRIPTORS ? (int)most - 1 : DESCRIPTORS - 1);

	if (fd >= 0)
		close(fd);
}

/* Each call may use a file descriptor. */
static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		reserve_descriptors(limit.rlim_cur);
}

/* A second signal while calls drain ends the process at once. */
static void allow_kill(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Notify the service manager of `state` (READY=1 ...), with a text for its status line. */
static void tell_manager(const struct fsd_server *server, const char *state, const char *status)
{
	char title[384], text[512];

	fsd_server_title(server, title, sizeof(title));
	snprintf(text, sizeof(text), "%s\nSTATUS=%s%s", state, title, status);
	fsd_notify(text);
}

static void reload_and_tell(struct fsd_server *server, const siginfo_t *signal)
{
	char state[64];
	int rc;

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)monotonic_ns() / 1000);
	tell_manager(server, state, "; reading the keys again");
	rc = fsd_server_reload(server);
	tell_manager(server, "READY=1",
		     rc ? "; the keys could not be read again, the old ones stay in use" : "");
	fsd_reload_answer(signal, rc);
}

/* Serve until SIGTERM or SIGINT, and return its number. */
static int handle_signals(struct fsd_server *server, const int *signals, size_t count)
{
	siginfo_t info;
	int number;

	while ((number = tools_signals_wait_for(signals, count, &info, TICK_S)) != SIGTERM &&
	       number != SIGINT) {
		if (!number)
			fsd_server_tick(server);
		else if (number == SIGHUP)
			reload_and_tell(server, &info);
		else if (number == SIGUSR2)
			fsd_server_trace(server);
		else
			fsd_server_report(server);
	}
	return number;
}

/* Extend the stop timeout of the unit by the time that draining may take. */
static void announce_stop(const struct fsd_server *server, const struct options *options)
{
	char state[96];

	snprintf(state, sizeof(state), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu",
		 ((unsigned long long)options->settings.drain_ms + STOP_MARGIN) * 1000);
	tell_manager(server, state, "; calls in progress may end");
}

static int run_server(struct options *options, const struct rxw_config *config)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP};
	const size_t count = sizeof(signals) / sizeof(signals[0]);
	char message[FSD_MESSAGE_MAX], where[256];
	struct fsd_server *server;
	int number, rc;

	if (tools_signals_block(signals, count)) {
		tools_error("signals: %s", strerror(errno));
		return TOOLS_EXIT_FAILURE;
	}
	fsd_log_hold();
	rc = fsd_server_start(&options->settings, config, &server, message);
	fsd_log_release(rc == 0);
	if (rc) {
		tools_place_message(message, sizeof(message));
		fsd_log(RXW_LOG_ERROR, "%s", message);
		return rc == FSD_WRONG_SETTINGS ? TOOLS_EXIT_USAGE : TOOLS_EXIT_FAILURE;
	}
	fsd_server_where(server, where, sizeof(where));
	dprintf(STDOUT_FILENO, "%s\n", where); /* ignore errors: stdout may be closed */
	tell_manager(server, "READY=1", "");
	number = handle_signals(server, signals, count);
	announce_stop(server, options);
	fsd_log(RXW_LOG_INFO, "%s: calls in progress have %llu s to end", strsignal(number),
		(unsigned long long)options->settings.drain_ms / 1000);
	allow_kill();
	if (fsd_server_drain(server))
		fsd_log(RXW_LOG_WARNING, "some calls did not end in time and were aborted");
	fsd_server_report(server);
	fsd_server_stop(server);
	return 0;
}

/* An option that has no effect with what is served would be a surprise: -1 with a message. */
static int check_use(const struct options *options, char *message)
{
	const struct fsd_settings *settings = &options->settings;
	const char *option = NULL;

	if (settings->store) {
		if (settings->watches == WATCHES_UNSET)
			return 0;
		snprintf(message, FSD_MESSAGE_MAX,
			 "--watches is for --export: nobody changes a store behind its server");
		return -1;
	}
	if (settings->durability)
		option = "--durability";
	else if (settings->copy)
		option = "--metadata-copy";
	else if (settings->anonymous_writes)
		option = "--allow-anonymous-writes";
	if (!option)
		return 0;
	snprintf(message, FSD_MESSAGE_MAX,
		 "%s is for --store: a directory that is exported is read-only", option);
	return -1;
}

/* Derive settings from the options; -1 with a message. */
static int derive_settings(struct options *options, char *message)
{
	if (!options->settings.export && !options->settings.store) {
		snprintf(message, FSD_MESSAGE_MAX,
			 "--export DIR or --store DIR is required: what to serve");
		return -1;
	}
	if (options->settings.export && options->settings.store) {
		snprintf(
			message, FSD_MESSAGE_MAX,
			"--export and --store: give one of them; a second rxfsd can serve the other");
		return -1;
	}
	if (check_use(options, message))
		return -1;
	if (options->settings.watches == WATCHES_UNSET)
		options->settings.watches = WATCHES;
	/* With its own --vl-port, a second server on the machine needs no --vol-port. */
	if (options->settings.vol_port == PORT_UNSET)
		options->settings.vol_port = options->settings.vl_port == VL_PORT ? VOL_PORT : 0;
	if (options->settings.rpc_stats_open)
		options->settings.rpc_stats = true;
	if (options->debug)
		fsd_log_level(RXW_LOG_DEBUG);
	options->settings.advertise = options->advertise.items;
	options->settings.advertise_count = options->advertise.count;
	options->settings.guard.cell = options->settings.cell;
	options->settings.guard.require = options->require.items;
	options->settings.guard.require_count = options->require.count;
	options->settings.guard.allow = options->allow.items;
	options->settings.guard.allow_count = options->allow.count;
	options->settings.guard.administrators = options->administrators.items;
	options->settings.guard.administrator_count = options->administrators.count;
	return 0;
}

/* Check everything that fsd_server_start() checks first. */
static int check_options(void *target, struct rxw_config *config)
{
	struct options *options = target;
	char message[FSD_MESSAGE_MAX];

	(void)config; /* checked already */
	if (derive_settings(options, message) == 0 &&
	    fsd_server_check(&options->settings, message) == 0)
		return 0;
	tools_place_message(message, sizeof(message));
	tools_error("%s", message);
	return -1;
}

static const struct tools_program program = {
	.name = "rxfsd",
	.usage = "usage: rxfsd --export DIR [--volume NAME] [--listen ADDR] [OPTION...]\n"
		 "       rxfsd --store DIR [--listen ADDR] [OPTION...]\n",
	.summary = "Serve a directory tree as a read-only AFS volume, or a store of volumes.",
	.options = table,
	.option_count = sizeof(table) / sizeof(table[0]),
	.check = check_options,
};

/* Parse the command line and do what it says; the exit status. */
static int run_command_line(struct options *options, struct rxw_config *config, int argc,
			    char **argv)
{
	char message[FSD_MESSAGE_MAX];
	int first = 0;

	switch (tools_options_parse(&program, options, config, argc, argv, &first)) {
	case TOOLS_DONE:
		return tools_finish(0);
	case TOOLS_USAGE:
		return TOOLS_EXIT_USAGE;
	case TOOLS_RUN:
		break;
	}
	if (first < argc) {
		tools_error("%s: not an option; the directory is given with --export DIR",
			    argv[first]);
		return TOOLS_EXIT_USAGE;
	}
	if (options->reload)
		return fsd_reload_ask(options->reload, RELOAD_LIMIT);
	if (derive_settings(options, message)) {
		tools_place_message(message, sizeof(message));
		tools_error("%s", message);
		return TOOLS_EXIT_USAGE;
	}
	raise_limits();
	return tools_finish(run_server(options, config));
}

int main(int argc, char **argv)
{
	struct options options = {
		.settings =
			{
				.listen = "127.0.0.1",
				.port = 7000,
				.vl_port = VL_PORT,
				.vol_port = PORT_UNSET,
				.pt_port = PT_PORT,
				.readers = 16,
				.read_ahead = 48 << 20,
				.watches = WATCHES_UNSET,
				.promises = 262144,
				.metrics_volumes = 1000,
				.drain_ms = 20000,
				.stop_ms = STOP_LIMIT,
			},
	};
	struct rxw_config config;
	int status;

	tools_set_program("rxfsd");
	fsd_log_start();
	rxw_config_init(&config, sizeof(config));
	config.workers_max = 128;
	config.log = fsd_log_library;
	status = run_command_line(&options, &config, argc, argv);
	tools_list_free(&options.advertise);
	tools_list_free(&options.require);
	tools_list_free(&options.allow);
	tools_list_free(&options.administrators);
	return status;
}
