/* SPDX-License-Identifier: BSD-2-Clause */
/* rxafs: mounts AFS. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <syslog.h>
#include <unistd.h>

#include <rxafs/admin.h>
#include <rxafs/daemon.h>

#include "common/clock.h"
#include "program/manager.h"
#include "program/message.h"
#include "program/metrics.h"
#include "program/options.h"
#include "program/signals.h"
#include "rxafs/figures.h"
#include "rxafs/kernel.h"
#include "rxafs/mount_options.h"
#include "rxafs/users/sessions.h"
#include "rxafs/task.h"
#include "rxafs/readers.h"
#include "rxafs/users/logins.h"
#include "rxafs/users/tokens.h"
#include "rxafs/watchdog.h"

/* What the library takes as it is, then what else the mount needs. */
struct settings {
	struct rxafs_options client;
	struct tools_metrics_options metrics;
	const char *mount_options;
	struct tools_list cells, sysnames, login_cells;
	uint64_t readers;
	int log_level;
	bool allow_other, foreground, no_names, numeric_owner, sessions, no_login;
};

static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO};
#define LOG_LEVELS	"error|warning|notice|info"
#define LOG_LEVEL_USUAL 2

#define SETTING(member) offsetof(struct settings, member)
static const struct tools_option options[] = {
	TOOLS_OPTION("cell", 'c', TOOLS_STRING, client.cell, "CELL",
		     "home cell (that of ThisCell)"),
	TOOLS_OPTION("servers", 's', TOOLS_LIST, cells, "CELL=HOST[:VLPORT[:FSPORT]]",
		     "location servers of a cell, instead of CellServDB and DNS; may be repeated"),
	TOOLS_OPTION("config-dir", 0, TOOLS_STRING, client.config_dir, "DIR",
		     "folder of ThisCell and CellServDB"),
	TOOLS_OPTION("root-volume", 0, TOOLS_STRING, client.root_volume, "VOLUME",
		     "mount this volume of the home cell instead of a list of cells"),
	TOOLS_OPTION("cache", 0, TOOLS_STRING, client.cache_dir, "DIR",
		     "folder of the disk cache (contents are kept in memory only)"),
	TOOLS_OPTION("cache-size", 0, TOOLS_SIZE, client.cache_bytes, "SIZE",
		     "of the disk cache (1G)", .min = 1 << 20),
	TOOLS_OPTION("memory", 0, TOOLS_SIZE, client.memory_bytes, "SIZE",
		     "for contents of files in memory (64M)", .min = 1 << 20),
	TOOLS_OPTION("objects", 0, TOOLS_UINT, client.objects, "N",
		     "files and directories whose status is kept (100000)", .min = 1000),
	TOOLS_OPTION("sysname", 0, TOOLS_LIST, sysnames, "NAME",
		     "what @sys stands for; may be repeated"),
	TOOLS_OPTION("timeout", 0, TOOLS_DURATION, client.limit_ms, "S",
		     "how long an operation waits for a server that is away (60)", .min = 1000,
		     .max = 86400000),
	TOOLS_OPTION("allow-other", 0, TOOLS_FLAG, allow_other, NULL,
		     "all users of this machine may use the mount"),
	TOOLS_OPTION(
		"sessions", 0, TOOLS_FLAG, sessions, NULL,
		"sessions of one user may have tokens of their own, as always with --allow-other"),
	TOOLS_OPTION(
		"login", 0, TOOLS_LIST, login_cells, "CELL",
		"a cell, besides the home cell, for which the user's Kerberos tickets give tokens; may be repeated"),
	TOOLS_OPTION("no-login", 0, TOOLS_FLAG, no_login, NULL,
		     "no tokens without rxafsctl login, as always with --allow-other"),
	TOOLS_OPTION("ignore-owner", 0, TOOLS_FLAG, client.ignore_owner, NULL,
		     "changes of owner and group succeed without effect"),
	TOOLS_OPTION("read-write", 0, TOOLS_FLAG, client.read_write, NULL,
		     "prefer read-write volumes in other cells as well"),
	TOOLS_OPTION("strict-locks", 0, TOOLS_FLAG, client.strict_locks, NULL,
		     "locks of ranges exclude other clients, too, by locks of whole files"),
	TOOLS_OPTION("numeric-owner", 0, TOOLS_FLAG, numeric_owner, NULL,
		     "show the owners' numbers in AFS, as always for root and with --allow-other"),
	TOOLS_OPTION("no-name-cache", 0, TOOLS_FLAG, no_names, NULL,
		     "the kernel keeps neither names nor attributes"),
	TOOLS_OPTION("readers", 0, TOOLS_UINT, readers, "N",
		     "threads that read requests of the kernel (4 to 8, by processors)", .min = 1,
		     .max = 16),
	TOOLS_OPTION("mount-options", 'o', TOOLS_STRING, mount_options, "OPTIONS",
		     "options of the mount, and those above without dashes, as in fstab"),
	TOOLS_OPTION("foreground", 'f', TOOLS_FLAG, foreground, NULL,
		     "do not go to the background"),
	TOOLS_OPTION("log-level", 0, TOOLS_CHOICE, log_level, LOG_LEVELS,
		     "the least important lines of the log (notice)"),
	TOOLS_METRICS_OPTIONS(SETTING, metrics),
};

static const struct tools_program program = {
	.name = "rxafs",
	.usage = "rxafs [OPTION]... [SOURCE] MOUNTPOINT\n",
	.summary = "Mounts AFS at a directory.",
	.options = options,
	.option_count = sizeof options / sizeof options[0],
	.no_tunables = true,
};

static bool renew_for_client(void *arg, rxafs_user *user, const char *cell)
{
	struct mount *mount = arg;

	(void)user;
	return mount->tokens && tokens_renew(mount->tokens, cell);
}

/* Sessions hold files open, at most a part of what is permitted. */
static void allow_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int open_client(struct settings *s, struct mount *mount)
{
	const struct rxafs_hooks hooks = {.changed = flusher_changed,
					  .settle = flusher_settle,
					  .renew = renew_for_client,
					  .keep_whole = atomic_load(&mount->may_go_through),
					  .arg = mount};
	struct rxafs_options *o = &s->client;
	struct rxafs_failure failure = {0};

	o->cells = s->cells.items;
	o->cell_count = s->cells.count;
	o->sysnames = s->sysnames.items;
	o->sysname_count = s->sysnames.count;
	o->hooks = &hooks;
	o->log = mount_log_line;
	o->log_arg = mount;
	if (rxafs_open_client(o, &mount->client, &failure))
		return tools_fail(-1, "%s", failure.text);
	mount->root = rxafs_root(mount->client);
	allow_files();
	mount->sessions = sessions_create(mount->client);
	if (mount->sessions)
		mount->tokens = tokens_start(
			&(struct tokens_options){.client = mount->client,
						 .sessions = mount->sessions,
						 .own = !s->no_login && !mount->many_users,
						 .cells = s->login_cells.items,
						 .cell_count = s->login_cells.count,
						 .where = mount->where,
						 .log = mount_log_line,
						 .log_arg = mount});
	mount->logins = logins_start();
	if (mount->tokens && mount->logins)
		return 0;
	return tools_fail(-1, "cannot start a thread");
}

static int open_session(const struct settings *s, struct mount *mount, const char *where,
			struct watchdog *watchdog)
{
	char *path = realpath(where, NULL);
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	char text[512];
	int result = -1;

	if (snprintf(text, sizeof text, "-osubtype=rxafs,fsname=%s%s%s%s",
		     mount->source && !strpbrk(mount->source, ",\\") ? mount->source : "AFS",
		     s->allow_other ? ",allow_other" : "", s->mount_options ? "," : "",
		     s->mount_options ? s->mount_options : "") >= (int)sizeof text ||
	    fuse_opt_add_arg(&args, "rxafs") || fuse_opt_add_arg(&args, text))
		goto out;
	mount->session = fuse_session_new(&args, &mount_operations, sizeof mount_operations, mount);
	if (!mount->session)
		goto out;
	result = fuse_session_mount(mount->session, where);
	if (result) {
		fuse_session_destroy(mount->session);
		mount->session = NULL;
	} else if (path) {
		uint32_t number;

		watchdog_watch(watchdog, path);
		if (find_connection(path, &number))
			mount->connection = number;
	}
out:
	free(path);
	fuse_opt_free_args(&args);
	return result;
}

static void reload_cells(struct mount *mount)
{
	char state[64];
	int result;

	snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)monotonic_ns() / 1000);
	tools_tell_manager(state);
	result = rxafs_reload_cells(mount->client);
	mount_log(mount, result < 0 ? LOG_WARNING : LOG_NOTICE, "CellServDB was read again: %s",
		  result < 0 ? strerror(-result) : "cells that it no longer lists are kept");
	tools_tell_manager("READY=1");
}

/* The hangup of a terminal that the program runs in ends it; elsewhere it asks for a reload, as of other daemons. */
static void obey_signal(int number, void *arg)
{
	struct mount *mount = arg;

	if (number == SIGHUP && !(mount->foreground && isatty(STDIN_FILENO)))
		reload_cells(mount);
	else
		mount_stop(mount);
}

/* Whoever started the program waits until the mount serves requests. */
static int go_to_background(int ready[2])
{
	char byte;

	if (pipe(ready))
		return -1;
	switch (fork()) {
	case -1:
		return -1;
	case 0:
		close(ready[0]);
		setsid();
		return 0;
	default:
		close(ready[1]);
		_exit(read(ready[0], &byte, 1) == 1 ? 0 : TOOLS_EXIT_FAILURE);
	}
}

/* A program that reads the output of its starter must not wait for the end of the mount. */
static void leave_output(void)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && nothing >= 0; fd++)
		dup2(nothing, fd);
	if (nothing > STDERR_FILENO)
		close(nothing);
}

static void tell_ready(int ready[2])
{
	if (ready[1] < 0)
		return;
	leave_output();
	if (write(ready[1], "", 1) != 1)
		tools_error("cannot tell the parent process: %s", strerror(errno));
	close(ready[1]);
}

/* On the socket there is a request only after the mount, so it may be anywhere but in it. */
static int start_metrics(struct settings *s, struct mount *mount)
{
	rxw_endpoint *endpoint = rxafs_endpoint(mount->client);
	char message[256] = "";

	s->metrics.more = figures_text;
	s->metrics.arg = mount;
	if (tools_metrics_start(&s->metrics, &endpoint, 1, &mount->metrics, message,
				sizeof message))
		return tools_fail(-1, "%s", message);
	return 0;
}

static int serve_mount(struct settings *s, struct mount *mount, const char *where, int ready[2])
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct watchdog watchdog = {.process = 0};
	struct tools_signals *signals;
	int result = TOOLS_EXIT_FAILURE;

	if (watchdog_start(&watchdog))
		return tools_fail(result, "cannot start a process: %s", strerror(errno));
	if (tools_signals_start(numbers, 3, obey_signal, mount, &signals))
		goto out_watchdog;
	if (open_client(s, mount) || start_metrics(s, mount))
		goto out;
	if (watcher_start(mount) || flusher_start(mount) ||
	    open_session(s, mount, where, &watchdog) || mount_begin_session(mount)) {
		tools_error("cannot mount %s", where);
		goto out;
	}
	tell_ready(ready);
	tools_tell_manager("READY=1");
	result = mount_serve(mount) ? TOOLS_EXIT_FAILURE : 0;
	tools_tell_manager("STOPPING=1");
out:
	/* From here on a signal finds nothing to stop. */
	tools_signals_stop(signals);
	if (mount->session)
		mount_end_session(mount);
	/* A thread that notifies the kernel may wait for a request that nobody answers now. */
	watchdog_stop(&watchdog);
	watcher_stop(mount);
	flusher_stop(mount);
	handles_end(mount);
	tools_metrics_stop(mount->metrics);
	tokens_stop(mount->tokens);
	sessions_stop(mount->sessions);
	if (mount->client && rxafs_close_client(mount->client, 30000))
		result = TOOLS_EXIT_FAILURE;
	readers_join(mount);
	watcher_free(mount);
	flusher_free(mount);
	tokens_free(mount->tokens);
	logins_stop(mount->logins);
	sessions_free(mount->sessions);
	if (mount->session)
		fuse_session_destroy(mount->session);
	if (mount->device >= 0)
		close(mount->device);
	return result;
out_watchdog:
	watchdog_stop(&watchdog);
	return tools_fail(result, "cannot start a thread: %s", strerror(errno));
}

/* Root of the machine: in a user namespace root is an ordinary user, who sees most numbers of owners as nobody's. */
static bool is_root_of_machine(void)
{
	unsigned long inside, outside, count = UINT32_MAX;
	FILE *map = getuid() ? NULL : fopen("/proc/self/uid_map", "re");

	if (map) {
		if (fscanf(map, "%lu %lu %lu", &inside, &outside, &count) != 3)
			count = UINT32_MAX;
		fclose(map);
	}
	return !getuid() && count >= UINT32_MAX;
}

/* What a daemon that was killed has left. Root can take it away without fusermount3, so that a service can start again. */
static bool remove_dead_mount(const char *where)
{
	if (geteuid() || umount2(where, MNT_DETACH))
		return false;
	tools_error("%s: the mount of a daemon that has ended was taken away", where);
	return true;
}

/* Whether rxafs is mounted there. What is above it is asked, since it may be another user's, or dead. */
static bool is_mounted(const char *where)
{
	char *above = strdup(where), *name = strdup(where), folder[PATH_MAX], at[2 * PATH_MAX];
	uint32_t number;
	bool mounted = false;

	if (realpath(where, at)) {
		mounted = find_connection(at, &number);
	} else if (above && name && realpath(dirname(above), folder)) {
		snprintf(at, sizeof at, "%s/%s", strcmp(folder, "/") ? folder : "", basename(name));
		mounted = find_connection(at, &number);
	}
	free(above);
	free(name);
	return mounted;
}

/* The kernel may still have attributes, and answers stat() with them. */
static bool is_dead_mount(const char *where)
{
	struct statfs space;

	return statfs(where, &space) && errno == ENOTCONN;
}

/* The kernel would mount on a file as well, and then all uses of it would fail; and over a mount that is in use. */
static bool can_mount_at(const char *where)
{
	struct stat stat_of;
	bool dead = is_dead_mount(where), mounted = is_mounted(where);

	if (dead && mounted && remove_dead_mount(where))
		return can_mount_at(where);
	if (dead)
		tools_error("%s: the daemon of this mount has ended: fusermount3 -uz %s", where,
			    where);
	else if (mounted)
		tools_error("%s: rxafs is mounted there already%s", where,
			    stat(where, &stat_of) ? ", by another user" : "");
	else if (stat(where, &stat_of))
		tools_error("%s: %s", where, strerror(errno));
	else if (!S_ISDIR(stat_of.st_mode))
		tools_error("%s is not a directory", where);
	else
		return true;
	return false;
}

int main(int argc, char **argv)
{
	struct settings settings = {.client = {.size = sizeof settings.client, .limit_ms = 60000},
				    .log_level = LOG_LEVEL_USUAL};
	struct mount mount = {
		.keep_names = true, .handles_lock = PTHREAD_MUTEX_INITIALIZER, .device = -1};
	struct rxw_config config;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int first, result, ready[2] = {-1, -1};

	tools_set_program("rxafs");
	if (options_of_mount(&program, &argc, &argv))
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	tools_config_init(&config);
	switch (tools_options_parse(&program, &settings, &config, argc, argv, &first)) {
	case TOOLS_DONE:
		return tools_finish(0);
	case TOOLS_USAGE:
		return tools_finish(TOOLS_EXIT_USAGE);
	default:
		break;
	}
	if (argc - first < 1 || argc - first > 2) {
		tools_error("usage: rxafs [OPTION]... [SOURCE] MOUNTPOINT");
		return tools_finish(TOOLS_EXIT_USAGE);
	}
	/* mount(8) gives what is mounted, which is a cell. */
	if (argc - first == 2 && !settings.client.cell && strcmp(argv[first], "none"))
		settings.client.cell = argv[first];
	mount.where = argv[argc - 1];
	mount.source = argc - first == 2 ? argv[first] : NULL;
	mount.foreground = settings.foreground;
	mount.log_level = priorities[settings.log_level];
	if (!can_mount_at(mount.where))
		return tools_finish(TOOLS_EXIT_FAILURE);
	sem_init(&mount.ended, 0, 0);
	openlog("rxafs", LOG_PID, LOG_DAEMON);
	if (!settings.foreground && go_to_background(ready))
		return tools_fail(TOOLS_EXIT_FAILURE, "cannot start a process: %s",
				  strerror(errno));
	mount.many_users = settings.allow_other || settings.sessions;
	mount.keep_names = !settings.no_names;
	mount.may_go_through = settings.client.cache_dir && is_root_of_machine();
	mount.own_files = !is_root_of_machine() && !settings.allow_other && !settings.numeric_owner;
	mount.readers = settings.readers ? (unsigned)settings.readers
			: processors < 4 ? 4
			: processors > 8 ? 8
					 : (unsigned)processors;
	result = serve_mount(&settings, &mount, mount.where, ready);
	tools_list_free(&settings.cells);
	tools_list_free(&settings.sysnames);
	tools_list_free(&settings.login_cells);
	return tools_finish(result);
}
