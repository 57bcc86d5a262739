/* SPDX-License-Identifier: BSD-2-Clause */
/* rxfsd --reload: reading the keys again, with a result. */
#include "fileserver/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "program/message.h"

#define ANSWER	SIGURG	   /* ignored by default, if the sender does not wait for it */
#define ASKED	0x72786600 /* values of the signals */
#define DONE	0x72786601
#define FAILED	0x72786602
#define STEP_MS 500 /* a SIGHUP may be lost if one is pending already: send it again */

/*
 * Whether the process is not an rxfsd. Where /proc hides the process, as in the systemd unit, the
 * caller is trusted.
 */
static bool is_other(uint64_t pid)
{
	char path[64], name[64] = "";
	bool other = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%llu/comm", (unsigned long long)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(name, sizeof(name), f))
		other = !strstr(name, "rxfsd");
	fclose(f);
	return other;
}

/* Only a process of the same user, or of root, may send the answer to this process. */
static int become_user_of(uint64_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%llu", (unsigned long long)pid);
	if (geteuid() != 0)
		return 0;
	if (stat(path, &st) < 0)
		return -1;
	return st.st_uid == 0 || (setgid(st.st_gid) == 0 && setuid(st.st_uid) == 0) ? 0 : -1;
}

/* The value of the answer; 0 with errno: none came in time. */
static int wait_for_answer(pid_t pid, const sigset_t *set, unsigned limit_ms)
{
	const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
	const union sigval asked = {.sival_int = ASKED};
	siginfo_t info;

	for (unsigned waited = 0; waited < limit_ms; waited += STEP_MS) {
		if (sigqueue(pid, SIGHUP, asked) < 0)
			return 0;
		while (sigtimedwait(set, &info, &step) == ANSWER)
			if (info.si_code == SI_QUEUE && info.si_pid == pid &&
			    (info.si_value.sival_int == DONE || info.si_value.sival_int == FAILED))
				return info.si_value.sival_int;
	}
	errno = ETIMEDOUT;
	return 0;
}

int fsd_reload_ask(uint64_t pid, unsigned limit_ms)
{
	sigset_t set;
	int answer;

	if (is_other(pid))
		return tools_fail(TOOLS_EXIT_FAILURE, "--reload %llu: not a process of rxfsd",
				  (unsigned long long)pid);
	sigemptyset(&set);
	sigaddset(&set, ANSWER);
	sigprocmask(SIG_BLOCK, &set, NULL);
	answer = become_user_of(pid) == 0 ? wait_for_answer((pid_t)pid, &set, limit_ms) : 0;
	if (answer == DONE)
		return 0;
	if (answer == FAILED)
		tools_error(
			"the keys could not be read, see the log of process %llu; "
			"the old ones stay in use",
			(unsigned long long)pid);
	else
		tools_error("--reload %llu: %s", (unsigned long long)pid, strerror(errno));
	return TOOLS_EXIT_FAILURE;
}

void fsd_reload_answer(const siginfo_t *signal, int result)
{
	const union sigval answer = {.sival_int = result ? FAILED : DONE};

	if (signal->si_code == SI_QUEUE && signal->si_value.sival_int == ASKED)
		sigqueue(signal->si_pid, ANSWER, answer);
}
