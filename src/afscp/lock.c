/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp lock: run a command while a file is locked. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rxafs/file.h>
#include <rxafs/stream.h>

#include "common/clock.h"
#include "common/held.h"
#include "program/message.h"
#include "afscp/commands.h"

#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND	127
#define WATCH_MS	500 /* between two looks at the lock, */
#define LOOK_MS		500 /* each of which may take so long */

extern char **environ;

/* A command that runs while a file is locked; the library extends the lock. */
struct locked {
	struct run *run;
	const struct place *place;
	rxafs_file *file;
	bool lost;	      /* the lock; the command was told */
	pthread_mutex_t lock; /* of what follows */
	pid_t pid;	      /* 0: none */
	bool ended;
};

/* Whether the terminal has sent the signal to the command, too. */
static bool from_terminal(int number)
{
	return number == SIGINT && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Signals go to the command, and end only that. */
static bool forward_signal(void *arg, int number)
{
	struct locked *l = arg;
	bool runs;

	assert(mutex_is_held(&l->run->lock));
	pthread_mutex_lock(&l->lock);
	runs = l->pid && !l->ended;
	/* The process is not reaped before `ended` is set, so the number is still its own. */
	if (runs && !from_terminal(number))
		kill(l->pid, number);
	pthread_mutex_unlock(&l->lock);
	return runs;
}

/* Start the command with the signals as they were before. 0, or an errno value. */
static int spawn_command(char **arguments, pid_t *pid)
{
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigemptyset(&all);
	sigaddset(&all, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawnp(pid, arguments[0], NULL, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

/* Whether another file, or none, has the name. No server is asked under the promises for its directories. */
static bool is_file_replaced(const struct locked *l)
{
	struct attempt t = attempt_begin(l->run, CHANGE_NONE, l->place->text);
	struct rxafs_attributes a;
	struct rxafs_fid locked;
	rxafs_object *object;

	t.silent = true;
	t.request.deadline = rxafs_now() + LOOK_MS * NS_PER_MS;
	if (place_try(&t, l->place, true, &object, &a) != COPY_GOOD)
		return t.value == -ENOENT;
	rxafs_release(object);
	rxafs_get_fid(rxafs_file_object(l->file), &locked);
	return !rxafs_fid_same(&locked, &a.fid);
}

/* What the command does is no longer protected: it is asked to end. */
static void watch_lock(struct locked *l)
{
	if (l->lost || !(rxafs_check_locks(l->file) || is_file_replaced(l)))
		return;
	l->lost = true;
	tools_error("%s: the lock is lost; the command gets SIGTERM", l->place->text);
	kill(l->pid, SIGTERM);
}

/* The process is not reaped before `ended` is set. Its status as of waitpid(). */
static int await_command(struct locked *l, pid_t pid)
{
	/* Without descriptors of processes its end is seen at the next look. */
	struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	siginfo_t info = {0};
	int status = 0;

	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && !info.si_pid) {
		watch_lock(l);
		poll(&end, 1, WATCH_MS);
	}
	if (end.fd >= 0)
		close(end.fd);
	pthread_mutex_lock(&l->lock);
	l->ended = true;
	pthread_mutex_unlock(&l->lock);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Run the command. Its exit status, 128 + the signal that ended it, or 126 or 127; never 0 without the lock. */
static int run_locked(struct locked *l)
{
	char **arguments = l->run->arguments;
	int rc, status;

	pthread_mutex_lock(&l->lock);
	rc = spawn_command(arguments, &l->pid);
	if (rc)
		l->pid = 0;
	pthread_mutex_unlock(&l->lock);
	if (rc) {
		tools_error("cannot run \"%s\": %s", arguments[0], strerror(rc));
		return rc == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	status = await_command(l, l->pid);
	if (l->lost && status == 0)
		return TOOLS_EXIT_FAILURE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Open the file of the place, which is to be locked. NULL after a message. */
static rxafs_file *open_to_lock(struct run *run, const struct place *place)
{
	struct attempt t = attempt_begin(run, CHANGE_LOCK, place->text);
	rxafs_file *file = NULL;
	struct rxafs_attributes a;
	rxafs_object *object;

	if (place_open(run, place, true, &object, &a) != COPY_GOOD)
		return NULL;
	if (a.kind != RXAFS_FILE) {
		tools_error("%s is a directory; lock a file in it", place->text);
		rxafs_release(object);
		return NULL;
	}
	/* In a read-only volume nobody would be kept from anything. */
	while (attempt_again_unless(
		&t, run->set.shared ? 0 : rxafs_access(object, &t.request, W_OK), -EACCES))
		;
	if (t.value >= 0 || t.value == -EACCES)
		while (attempt_again(&t, rxafs_open(object, &t.request, O_RDONLY, &file)))
			;
	rxafs_release(object);
	return t.value < 0 ? NULL : file;
}

/* Take the lock, or give it back. */
static bool change_lock(struct run *run, const char *label, rxafs_file *file, int type)
{
	struct rxafs_lock lock = {.owner = 1, .end = UINT64_MAX, .type = type, .whole = true};
	struct attempt t = attempt_begin(run, CHANGE_LOCK, label);
	uint64_t until = rxafs_now() + run->set.wait_ms * 1000000;
	bool wait = type != F_UNLCK && run->set.wait_ms;
	int result;

	t.later = true;
	do {
		t.request.deadline = wait ? until : 0;
		result = rxafs_set_lock(file, &t.request, &lock, wait);
		/* Once more, to know whether another client has it, or the server is silent. */
		wait &= result != -ETIMEDOUT;
		t.request.deadline = 0;
		if (run->set.wait_ms && result == -ETIMEDOUT)
			result = rxafs_set_lock(file, &t.request, &lock, false);
	} while (attempt_again(&t, result));
	if (t.value < 0 && type != F_UNLCK && !(t.unknown && t.value == -EAGAIN))
		attempt_complain(&t);
	else if (t.value < 0 && type != F_UNLCK)
		tools_error(
			"%s: the file is locked, perhaps by this command, whose first call got no answer; try again in 5 minutes",
			label);
	else if (t.value == -ESTALE)
		tools_error("%s: the file was removed or replaced while it was locked", label);
	else if (t.value < 0)
		tools_error("%s: the lock could not be released; it ends in 5 minutes",
			    t.error.text);
	return t.value >= 0;
}

int run_lock(struct run *run)
{
	const struct place *place = &run->places[0];
	rxafs_file *file = open_to_lock(run, place);
	struct locked l = {.run = run, .place = place, .file = file};
	int status = TOOLS_EXIT_FAILURE;

	if (!file)
		return TOOLS_EXIT_FAILURE;
	pthread_mutex_init(&l.lock, NULL);
	run_set_interrupt(run, forward_signal, &l);
	if (change_lock(run, place->text, file, run->set.shared ? F_RDLCK : F_WRLCK)) {
		/* From now on the library tells if the lock gets lost. */
		atomic_store(&run->tells_log, true);
		status = run_locked(&l);
		if (!rxafs_check_locks(file) && !l.lost)
			change_lock(run, place->text, file, F_UNLCK);
	}
	rxafs_close(file);
	run_set_interrupt(run, NULL, NULL);
	pthread_mutex_destroy(&l.lock);
	return status;
}
