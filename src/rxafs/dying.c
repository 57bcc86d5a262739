/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the signal that interrupted a thread will end it. The kernel interrupts a request once, at the first
 * signal of any kind, and then waits for the answer: a SIGKILL that comes later is not told. Nor is one to a process that
 * waits for a lock behind a request of another process: such processes are looked for.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <signal.h>

#include "common/clock.h"
#include "rxafs/task.h"

#define DYING_PATH	   96
#define COUNTS_FROM_NS	   (100 * (uint64_t)NS_PER_MS)
#define COUNTS_UNTIL_NS	   (10 * (uint64_t)NS_PER_S)

#define SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))

/* Signals whose default action writes a core; they stay pending for the process. */
#define CORE_SIGNALS                                                                            \
	(SIGNAL_BIT(SIGQUIT) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGABRT) | \
	 SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGSYS) |   \
	 SIGNAL_BIT(SIGXCPU) | SIGNAL_BIT(SIGXFSZ))

static uint64_t signal_set(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? strtoull(line + strlen(name), NULL, 16) : 0;
}

/* The state letter of a thread, and the threads of its process. 0: it is gone, or not to be seen. */
static char thread_state(const char *path, unsigned *threads)
{
	char text[512], *end;
	ssize_t length;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof text - 1);
	close(fd);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	/* Behind the name, which may contain anything. */
	end = strrchr(text, ')');
	if (!end || sscanf(end,
			   ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
			   "%*d %u",
			   threads) != 1)
		return 0;
	return end[2];
}

/*
 * Whether it is for a lock of a file or directory that a thread waits, by the name of the kernel's function. Without a name it may
 * be. A process can also wait for a disk while it ends.
 */
static bool waits_for_lock(const char *path)
{
	static const char *const parts[] = {
		"lookup", "walk_component", "path_",   "filename_create", "open",
		"link",	  "rmdir",	    "rename",  "chmod",		  "chown",
		"utimes", "truncate",	    "iterate", "xattr",		  "d_alloc",
		"fuse",	  "vfs_fsync",	    "dirop"};
	char name[128];
	ssize_t length;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	length = fd < 0 ? 0 : read(fd, name, sizeof name - 1);
	if (fd >= 0)
		close(fd);
	if (length <= 0 || (length == 1 && name[0] == '0'))
		return true;
	name[length] = '\0';
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

/* After a fatal signal the first thread may have ended, while another one waits, whose folder in /proc is written to `waiting`. */
static bool some_thread_waits(const char *process, char waiting[DYING_PATH])
{
	char path[DYING_PATH + 16];
	struct dirent *entry;
	unsigned threads;
	bool found = false;
	DIR *tasks;

	snprintf(path, sizeof path, "/proc/%.32s/task", process);
	tasks = opendir(path);
	if (!tasks)
		return false;
	while (!found && (entry = readdir(tasks))) {
		snprintf(waiting, DYING_PATH, "/proc/%.32s/task/%.32s", process, entry->d_name);
		snprintf(path, sizeof path, "%s/stat", waiting);
		found = isdigit((unsigned char)entry->d_name[0]) &&
			thread_state(path, &threads) == 'D';
		snprintf(path, sizeof path, "%s/wchan", waiting);
		found = found && waits_for_lock(path);
	}
	closedir(tasks);
	return found;
}

/* Whether the mount is in the namespace of a process or thread. If that is not to be seen, it may be. */
static bool may_use_connection(const char *folder, uint32_t connection)
{
	char path[DYING_PATH + 16], *line = NULL;
	bool found = false, read = false;
	unsigned minor;
	size_t room = 0;
	FILE *f;

	if (!connection)
		return true;
	snprintf(path, sizeof path, "%s/mountinfo", folder);
	f = fopen(path, "re");
	if (!f)
		return true;
	while (!found && getline(&line, &room, f) > 0) {
		read = true;
		found = sscanf(line, "%*u %*u 0:%u", &minor) == 1 && minor == connection;
	}
	free(line);
	fclose(f);
	return found || !read;
}

/* waiting: the folder in /proc of the process or of the thread that waits. An ended first thread has no namespace any more. */
static bool process_waits_dying(const char *process, char waiting[DYING_PATH])
{
	unsigned threads = 0;
	char path[64], state;

	snprintf(waiting, DYING_PATH, "/proc/%.32s", process);
	snprintf(path, sizeof path, "/proc/%.32s/stat", process);
	state = thread_state(path, &threads);
	snprintf(path, sizeof path, "/proc/%.32s/wchan", process);
	if (state == 'D')
		return waits_for_lock(path) && thread_is_dying((pid_t)atoi(process));
	return state == 'Z' && threads > 1 && some_thread_waits(process, waiting);
}

/* Whether it counts. */
static bool note_dying(struct dying *dying, pid_t process, uint64_t now)
{
	unsigned i = 0;

	while (i < dying->count && dying->list[i].process != process)
		i++;
	if (i == DYING_MOST)
		return false;
	if (i == dying->count) {
		dying->list[dying->count++].process = process;
		dying->list[i].since = now;
	}
	dying->list[i].seen = true;
	return now >= dying->list[i].since + COUNTS_FROM_NS &&
	       now < dying->list[i].since + COUNTS_UNTIL_NS;
}

static void forget_ended(struct dying *dying)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < dying->count; i++)
		if (dying->list[i].seen) {
			dying->list[kept] = dying->list[i];
			dying->list[kept++].seen = false;
		}
	dying->count = kept;
}

bool any_waits_dying(struct dying *dying, uint32_t connection, uint64_t now)
{
	DIR *processes = opendir("/proc");
	char waiting[DYING_PATH];
	struct dirent *entry;
	bool found = false;

	if (!processes)
		return false;
	while ((entry = readdir(processes)))
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    process_waits_dying(entry->d_name, waiting) &&
		    may_use_connection(waiting, connection))
			found |= note_dying(dying, (pid_t)atoi(entry->d_name), now);
	closedir(processes);
	forget_ended(dying);
	return found;
}

bool thread_is_dying(pid_t thread)
{
	char path[64], status[8192];
	ssize_t length;
	uint64_t open_core;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	length = read(fd, status, sizeof status - 1);
	close(fd);
	if (length <= 0)
		return true;
	status[length] = '\0';
	/* After the choice of a fatal signal each thread of the process gets SIGKILL. */
	if ((signal_set(status, "\nSigPnd:") | signal_set(status, "\nShdPnd:")) &
	    SIGNAL_BIT(SIGKILL))
		return true;
	open_core =
		(signal_set(status, "\nShdPnd:") | signal_set(status, "\nSigPnd:")) & CORE_SIGNALS;
	return open_core & ~signal_set(status, "\nSigCgt:") & ~signal_set(status, "\nSigBlk:") &
	       ~signal_set(status, "\nSigIgn:");
}
