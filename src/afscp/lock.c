/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp lock: run a command while a file is locked. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/held.h"
#include "program/message.h"
#include "afscp/change.h"

#define EXTEND_NS	120000000000u /* the server forgets a lock after 300 s */
#define AGAIN_NS	10000000000u  /* after a failed extension */

#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND	127

extern char **environ;

/* A command that runs, and the lock that it runs under. */
struct locked {
	struct copy *copy;
	AFSFid fid;
	char label[COPY_LABEL];
	bool held;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	pid_t pid; /* 0: none */
	bool ended;
	int status; /* of waitpid(); valid when it has ended */
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

	assert(mutex_is_held(&l->copy->run->lock));
	pthread_mutex_lock(&l->lock);
	runs = l->pid && !l->ended;
	/* The process is not reaped before `ended` is set, so the number is still its own. */
	if (runs && !from_terminal(number))
		kill(l->pid, number);
	pthread_mutex_unlock(&l->lock);
	return runs;
}

static void *await_command(void *arg)
{
	struct locked *l = arg;
	siginfo_t info;
	int status = 0;

	assert(l->pid > 0);
	while (waitid(P_PID, (id_t)l->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		continue;
	pthread_mutex_lock(&l->lock);
	while (waitpid(l->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	l->status = status;
	l->ended = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* One call for the lock; the result as of change_try(), without a message. */
static enum copy_result call_for_lock(struct locked *l, enum afs_lock kind, struct afs_error *error)
{
	struct change c = {.op = CHANGE_LOCK, .label = l->label, .fid = l->fid, .lock = kind};

	return change_try(l->copy, &c, error);
}

static enum afs_lock kind_of_lock(const struct locked *l)
{
	return l->copy->set->shared ? AFS_LOCK_READ : AFS_LOCK_WRITE;
}

static int take_lock(struct locked *l)
{
	struct change c = {
		.op = CHANGE_LOCK, .label = l->label, .fid = l->fid, .lock = kind_of_lock(l)};
	struct afs_error error;

	if (change_try(l->copy, &c, &error) == COPY_GOOD) {
		l->held = true;
		return 0;
	}
	if (c.unknown && error.number == EAGAIN)
		tools_error("%s: %s: the file is locked, perhaps by this command, whose first call "
			    "got no answer; try again in 5 minutes",
			    l->label, strerror(error.number));
	else
		change_complain(l->copy, c.op, &error);
	return -1;
}

/* Extend the lock; after a restart of the server take it again. The time of the next extension. */
static uint64_t extend_lock(struct locked *l)
{
	struct afs_error error;
	enum copy_result rc = call_for_lock(l, l->held ? AFS_LOCK_EXTEND : kind_of_lock(l), &error);
	bool held = l->held;

	if (rc != COPY_GOOD && held && error.number == EINVAL) {
		/* The server knows of no lock. */
		l->held = false;
		rc = call_for_lock(l, kind_of_lock(l), &error);
		if (rc == COPY_GOOD)
			tools_error("%s: the server had lost the lock; it is locked again",
				    l->label);
	}
	/* Errors of Rx say nothing about the lock. */
	l->held = rc == COPY_GOOD ||
		  (l->held && (error.origin != RXW_ORIGIN_PEER || afs_error_unknown(&error)));
	if (rc == COPY_GOOD)
		return monotonic_ns() + EXTEND_NS;
	if (held)
		tools_error("%s: %s: the command goes on", error.text,
			    l->held ? "the lock could not be extended" : "the lock is lost");
	return monotonic_ns() + AGAIN_NS;
}

/* Wait for the end of the command, and extend the lock meanwhile. */
static void extend_until_end(struct locked *l)
{
	uint64_t due = monotonic_ns() + EXTEND_NS;

	pthread_mutex_lock(&l->lock);
	while (!l->ended) {
		if (monotonic_ns() < due) {
			monotonic_wait(&l->wake, &l->lock, due);
			continue;
		}
		pthread_mutex_unlock(&l->lock);
		due = extend_lock(l);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
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

/* Run the command. Its exit status, 128 + the signal that ended it, or 126 or 127. */
static int run_locked(struct locked *l)
{
	char **arguments = l->copy->run->arguments;
	pthread_t waiter;
	int rc;

	pthread_mutex_lock(&l->lock);
	rc = spawn_command(arguments, &l->pid);
	if (rc)
		l->pid = 0;
	pthread_mutex_unlock(&l->lock);
	if (rc) {
		tools_error("cannot run \"%s\": %s", arguments[0], strerror(rc));
		return rc == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	if (pthread_create(&waiter, NULL, await_command, l) == 0) {
		extend_until_end(l);
		pthread_join(waiter, NULL);
	} else {
		/* Without a thread the lock is not extended. */
		tools_error("cannot start a thread: the lock ends after 5 minutes");
		await_command(l);
	}
	assert(l->ended);
	return WIFSIGNALED(l->status) ? 128 + WTERMSIG(l->status) : WEXITSTATUS(l->status);
}

int copy_lock(struct copy *copy)
{
	struct locked l = {.copy = copy};
	struct afs_object object;
	struct afs_error error;
	int status = TOOLS_EXIT_FAILURE;

	copy_format_label(copy, l.label);
	if (copy_walk(copy, true, &object) < 0)
		return TOOLS_EXIT_FAILURE;
	l.fid = object.fid;
	pthread_mutex_init(&l.lock, NULL);
	monotonic_cond_init(&l.wake);
	run_set_interrupt(copy->run, forward_signal, &l);
	if (take_lock(&l) == 0) {
		status = run_locked(&l);
		if (l.held && call_for_lock(&l, AFS_LOCK_RELEASE, &error) != COPY_GOOD)
			tools_error("%s: the lock could not be released; it ends in 5 minutes",
				    error.text);
	}
	run_set_interrupt(copy->run, NULL, NULL);
	pthread_cond_destroy(&l.wake);
	pthread_mutex_destroy(&l.lock);
	return status;
}
