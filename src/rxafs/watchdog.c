/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that notifies the kernel may wait there for a request that the daemon has not answered. SIGKILL does not end this wait.
 * The thread keeps /dev/fuse open, so the kernel does not end the connection, and the request is never answered. Therefore
 * another process ends the connection when the daemon's main thread dies.
 */
#include "rxafs/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel sends it when the main thread dies; the daemon sends it at its end. Service managers do not send it. */
#define END_SIGNAL SIGUSR2

/* Of linux/mount.h, which cannot be included beside sys/mount.h of older libraries. */
#define CREATE_CONFIG 6

/*
 * The control file system where nothing is mounted at its usual place: root can open it without a mount point. A descriptor of its
 * root or -1.
 */
static int open_control_tree(void)
{
#if defined SYS_fsopen && defined SYS_fsconfig && defined SYS_fsmount
	int tree = -1, context = (int)syscall(SYS_fsopen, "fusectl", 0);

	if (context < 0)
		return -1;
	if (!syscall(SYS_fsconfig, context, CREATE_CONFIG, NULL, NULL, 0))
		tree = (int)syscall(SYS_fsmount, context, 0, 0);
	close(context);
	return tree;
#else
	return -1;
#endif
}

/*
 * The file that ends a connection, or -1. The descriptor belongs to this connection, and does nothing once it is gone. Its number
 * may be used again.
 */
static int open_abort_file(uint32_t number)
{
	char name[64];
	int tree, file;

	snprintf(name, sizeof name, "/sys/fs/fuse/connections/%u/abort", number);
	file = open(name, O_WRONLY | O_CLOEXEC);
	if (file >= 0)
		return file;
	tree = open_control_tree();
	if (tree < 0)
		return -1;
	snprintf(name, sizeof name, "%u/abort", number);
	file = openat(tree, name, O_WRONLY | O_CLOEXEC);
	close(tree);
	return file;
}

/* The process itself. */
static _Noreturn void watch_daemon(int from, pid_t daemon)
{
	siginfo_t info = {.si_pid = 0};
	uint32_t number;
	sigset_t end;
	int file;

	sigemptyset(&end);
	sigaddset(&end, END_SIGNAL);
	prctl(PR_SET_PDEATHSIG, END_SIGNAL);
	/* It died before. */
	if (getppid() != daemon || read(from, &number, sizeof number) != sizeof number)
		_exit(0);
	file = open_abort_file(number);
	close(from);
	if (file < 0)
		_exit(0);
	/* Its death and its own signal both have its number. */
	while (sigwaitinfo(&end, &info) < 0 || info.si_pid != daemon)
		continue;
	_exit(write(file, "1", 1) == 1 ? 0 : 1);
}

/* Descriptors of the daemon would outlive it, and /dev/fuse or the output of its starter may be among them. */
static void close_all_but(int kept)
{
	int nothing;

	if (dup2(kept, STDERR_FILENO + 1) < 0)
		_exit(1);
	nothing = open("/dev/null", O_RDWR);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && nothing >= 0; fd++)
		dup2(nothing, fd);
	if (syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0))
		for (int fd = STDERR_FILENO + 2; fd < 1024; fd++)
			close(fd);
}

int watchdog_start(struct watchdog *watchdog)
{
	pid_t daemon = getpid();
	sigset_t all, old;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	/* A signal to all processes of a terminal or a unit is for the daemon. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	watchdog->process = fork();
	if (!watchdog->process) {
		prctl(PR_SET_NAME, "rxafs-watchdog");
		close(ends[1]);
		if (chdir("/"))
			_exit(1);
		close_all_but(ends[0]);
		watch_daemon(STDERR_FILENO + 1, daemon);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(ends[0]);
	watchdog->socket = ends[1];
	if (watchdog->process > 0)
		return 0;
	close(ends[1]);
	watchdog->process = 0;
	return -EAGAIN;
}

/* mountinfo writes spaces, tabs, line ends and backslashes as octal numbers. */
static void decode_mount_path(char *text)
{
	char *to = text;

	while (*text) {
		unsigned value;

		if (*text == '\\' && sscanf(text + 1, "%3o", &value) == 1) {
			*to++ = (char)value;
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

bool find_connection(const char *path, uint32_t *number)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	if (!f)
		return false;
	while (getline(&line, &room, f) > 0) {
		char at[PATH_MAX * 4];
		unsigned minor;

		if (strlen(line) < sizeof at &&
		    sscanf(line, "%*u %*u %*u:%u %*s %s", &minor, at) == 2 &&
		    strstr(line, " fuse.rxafs ")) {
			decode_mount_path(at);
			if (strcmp(at, path))
				continue;
			*number = minor;
			found = true;
		}
	}
	free(line);
	fclose(f);
	return found;
}

void watchdog_watch(struct watchdog *watchdog, const char *path)
{
	uint32_t number;

	if (!watchdog->process)
		return;
	/* Without a number the process ends at once, and nothing is lost but its help. */
	if (find_connection(path, &number))
		(void)send(watchdog->socket, &number, sizeof number, MSG_NOSIGNAL);
	close(watchdog->socket);
	watchdog->socket = -1;
}

void watchdog_stop(struct watchdog *watchdog)
{
	if (!watchdog->process)
		return;
	if (watchdog->socket >= 0)
		close(watchdog->socket);
	kill(watchdog->process, END_SIGNAL);
	while (waitpid(watchdog->process, NULL, 0) < 0 && errno == EINTR)
		continue;
	watchdog->process = 0;
}
