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

#include "common/clock.h"
#include "common/failure.h"
#include "fileserver/base/base.h"
#include "fileserver/server.h"
#include "program/manager.h"
#include "program/message.h"
#include "program/metrics.h"
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
#define BOS_PORT	7007
#define PORT_UNSET	UINT64_MAX
#define WATCHES		8192
#define WATCHES_UNSET	UINT64_MAX
#define RELOAD_LIMIT	30000 /* ms until --reload gives up */
#define STOP_LIMIT	20000 /* ms that stopping may take beside the drain */
#define STOP_MARGIN	30000 /* the same, as the service manager is told */
#define TICK_S		1     /* between two of fsd_server_tick() */
#define DESCRIPTORS	4096  /* room for them takes 8 bytes each */

static const char loopback[] = "127.0.0.1"; /* the default of --listen */

#define SETTING(member) offsetof(struct options, settings.member)

static const struct tools_option table[] = {
	TOOLS_OPTION("export", 'e', TOOLS_STRING, export, "DIR",
		     "serve this directory, read-only; it or --store is required"),
	TOOLS_OPTION("store", 'S', TOOLS_STRING, store, "DIR",
		     "serve the volumes of this store, which rxvol(8) makes"),
	TOOLS_OPTION(
		"durability", 0, TOOLS_STRING, durability, "lazy|strict",
		"lazy: a dead machine loses at most the last second; strict: nothing; default lazy"),
	TOOLS_OPTION(
		"metadata-copy", 0, TOOLS_STRING, copy, "DIR",
		"the directory, best on another disk, for the copy of the store's metadata; default: the store"),
	TOOLS_OPTION(
		"allow-anonymous-writes", 0, TOOLS_FLAG, anonymous_writes, NULL,
		"let ACLs of the store give anonymous callers of other machines rights to write"),
	TOOLS_OPTION(
		"audit-log", 0, TOOLS_STRING, audit_log, "FILE",
		"append a line of JSON for each call that changes something or is refused; reopened on SIGHUP"),
	TOOLS_OPTION(
		"audit", 0, TOOLS_STRING, audit, "lossy|strict",
		"when the audit log cannot keep up: lossy counts what is lost, strict makes calls wait; default lossy"),
	TOOLS_OPTION("audit-reads", 0, TOOLS_FLAG, audit_reads, NULL,
		     "the audit log has the calls that only read an object, too"),
	TOOLS_OPTION("volume", 0, TOOLS_STRING, volume, "NAME",
		     "name of the volume; default: the last component of DIR"),
	TOOLS_OPTION("cell", 0, TOOLS_STRING, cell, "NAME",
		     "cell of the server; selects the keys and is shown in root.afs"),
	TOOLS_OPTION(
		"listen", 'l', TOOLS_STRING, listen, "ADDR",
		"address to serve on; 0.0.0.0 or :: for all; default 127.0.0.1, with --cell-config all"),
	TOOLS_OPTION("port", 'p', TOOLS_UINT, port, "PORT",
		     "UDP port of the file service; default 7000, 0 = a free port", .max = 65535),
	TOOLS_OPTION("vl-port", 0, TOOLS_UINT, vl_port, "PORT",
		     "UDP port of the volume location service; default 7003, 0 = a free port",
		     .max = 65535),
	TOOLS_OPTION(
		"vol-port", 0, TOOLS_UINT, vol_port, "PORT",
		"UDP port of the volume service; default 7005, or a free port if --vl-port is not 7003",
		.max = 65535),
	TOOLS_OPTION("protection", 0, TOOLS_STRING, protection, "DIR|FILE",
		     "users and groups, made with rxpt: serve them, too; default: no such service"),
	TOOLS_OPTION("pt-port", 0, TOOLS_UINT, pt_port, "PORT",
		     "UDP port of the protection service; default 7002, 0 = a free port",
		     .max = 65535),
	TOOLS_OPTION("bos", 0, TOOLS_FLAG, bos, NULL,
		     "answer OpenAFS's \"bos status\"; all other commands of bos are refused"),
	TOOLS_OPTION("bos-port", 0, TOOLS_UINT, bos_port, "PORT",
		     "UDP port for --bos; default 7007, 0 = a free port", .max = 65535),
	TOOLS_OPTION(
		"cell-config", 0, TOOLS_STRING, cell_config, "DIR",
		"be a member of the cell of OpenAFS's folder DIR: its servers have locations, users and groups"),
	TOOLS_OPTION("leave-cell", 0, TOOLS_FLAG, leave_cell, NULL,
		     "without --cell-config: serve a store that has belonged to such a cell"),
	TOOLS_OPTION(
		"identity-age", 0, TOOLS_UINT, identity_age, "SECONDS",
		"how long what the cell says about a user is used without asking again; default 300",
		.min = 1, .max = 3600),
	TOOLS_OPTION("state", 0, TOOLS_STRING, state, "DIR",
		     "directory for identity and file numbers; default: see the manual"),
	TOOLS_OPTION("all-files", 0, TOOLS_FLAG, all_files, NULL,
		     "serve all files that rxfsd can read, not only those that \"other\" may read"),
	TOOLS_OPTION_AT("advertise", 0, TOOLS_LIST, offsetof(struct options, advertise), "ADDR",
			"additional IPv4 address of the file service; may be repeated"),
	TOOLS_OPTION("readers", 0, TOOLS_UINT, readers, "N",
		     "threads that read ahead from the disk; default 16", .min = 1, .max = 256),
	TOOLS_OPTION("read-ahead", 0, TOOLS_SIZE, read_ahead, "BYTES",
		     "memory for read-ahead of all calls; default 48M", .min = 1 << 18),
	TOOLS_OPTION("timeline", 0, TOOLS_STRING, timeline, "FILE",
		     "for benchmarks: write when each piece of a file was read and sent"),
	TOOLS_OPTION("watches", 0, TOOLS_UINT, watches, "N",
		     "maximum directories watched with inotify; default 8192", .max = 1 << 20),
	TOOLS_OPTION("promises", 0, TOOLS_UINT, promises, "N",
		     "maximum number of callback promises; default 262144", .min = 16,
		     .max = 1 << 24),
	TOOLS_OPTION("drain", 0, TOOLS_DURATION, drain_ms, "SECONDS",
		     "time for running calls to finish after SIGTERM; default 20", .max = 3600000),
	TOOLS_OPTION("keytab", 0, TOOLS_STRING, guard.keytab, "FILE",
		     "service keys: a keytab, KeyFileExt or KeyFile; reloaded on SIGHUP"),
	TOOLS_OPTION_AT(
		"require", 0, TOOLS_LIST, offsetof(struct options, require),
		"[fs:|vl:|vol:]none|clear|auth|crypt",
		"minimum protection of calls; default: none on loopback, otherwise fs:auth"),
	TOOLS_OPTION_AT(
		"allow", 0, TOOLS_LIST, offsetof(struct options, allow), "'WHO PATTERN...'",
		"allow WHO (user@REALM, anonymous, any-authenticated) to access files; default: all files to everyone"),
	TOOLS_OPTION_AT("administrator", 0, TOOLS_LIST, offsetof(struct options, administrators),
			"user@REALM", "user who may access all files; may be repeated"),
	TOOLS_OPTION("realm", 0, TOOLS_STRING, guard.realm, "REALM",
		     "a realm whose principal \"afs\" is the service itself"),
	TOOLS_OPTION(
		"allow-dotted-principals", 0, TOOLS_FLAG, dotted_principals, NULL,
		"john.doe is the user john.doe of --protection, and john/doe is not; default: the reverse"),
	TOOLS_OPTION("allow-single-des", 0, TOOLS_FLAG, guard.single_des, NULL,
		     "accept tickets protected by single DES, which can be broken in hours"),
	TOOLS_OPTION("rpc-stats", 0, TOOLS_FLAG, rpc_stats, NULL,
		     "offer call statistics (RXSTATS) on all ports to this host"),
	TOOLS_OPTION("rpc-stats-open", 0, TOOLS_FLAG, rpc_stats_open, NULL,
		     "offer call statistics to other hosts as well"),
	TOOLS_OPTION_AT(
		"reload", 0, TOOLS_UINT, offsetof(struct options, reload), "PID",
		"tell the rxfsd with this process id to reload its keys; the exit status is the result",
		.min = 1, .max = INT32_MAX, .once = true),
	TOOLS_METRICS_OPTIONS(SETTING, metrics),
	TOOLS_OPTION("metrics-volumes", 0, TOOLS_UINT, metrics_volumes, "N",
		     "the most volumes with metrics of their own; default 1000", .max = 100000),
	TOOLS_TRACE_OPTIONS_OF_SERVERS(SETTING, trace),
	TOOLS_OPTION_AT("debug", 0, TOOLS_FLAG, offsetof(struct options, debug), NULL, "log more"),
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
	tools_tell_manager(text);
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
	char message[FSD_MESSAGE_MAX], where[400];
	struct fsd_server *server;
	int number, rc;

	if (tools_signals_block(signals, count))
		return tools_fail(TOOLS_EXIT_FAILURE, "signals: %s", strerror(errno));
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
		return fail_with(
			-1, message, FSD_MESSAGE_MAX,
			"--watches is for --export: only the server itself changes a store, so there "
			"is nothing to watch");
	}
	if (settings->durability)
		option = "--durability";
	else if (settings->copy)
		option = "--metadata-copy";
	else if (settings->anonymous_writes)
		option = "--allow-anonymous-writes";
	else if (settings->cell_config)
		option = "--cell-config";
	else if (settings->leave_cell)
		option = "--leave-cell";
	if (!option)
		return 0;
	return fail_with(-1, message, FSD_MESSAGE_MAX,
			 "%s is for --store: a directory that is exported is read-only", option);
}

/* Derive settings from the options; -1 with a message. */
static int derive_settings(struct options *options, char *message)
{
	if (!options->settings.export && !options->settings.store)
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--export DIR or --store DIR is required: what to serve");
	if (options->settings.export && options->settings.store)
		return fail_with(
			-1, message, FSD_MESSAGE_MAX,
			"--export and --store: give one of them; a second rxfsd can serve the other");
	if (check_use(options, message))
		return -1;
	if (options->settings.watches == WATCHES_UNSET)
		options->settings.watches = WATCHES;
	/* Clients of the cell are on other machines. */
	if (options->settings.cell_config && options->settings.listen == loopback)
		options->settings.listen = "0.0.0.0";
	/* A second server on the machine that has its own --vl-port needs no --vol-port. */
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
	return tools_fail(-1, "%s", message);
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
	if (first < argc)
		return tools_fail(TOOLS_EXIT_USAGE,
				  "%s: not an option; the directory is given with --export DIR",
				  argv[first]);
	if (options->reload)
		return fsd_reload_ask(options->reload, RELOAD_LIMIT);
	if (derive_settings(options, message)) {
		tools_place_message(message, sizeof(message));
		return tools_fail(TOOLS_EXIT_USAGE, "%s", message);
	}
	raise_limits();
	return tools_finish(run_server(options, config));
}

int main(int argc, char **argv)
{
	struct options options = {
		.settings =
			{
				.listen = loopback,
				.port = 7000,
				.vl_port = VL_PORT,
				.vol_port = PORT_UNSET,
				.pt_port = PT_PORT,
				.bos_port = BOS_PORT,
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
