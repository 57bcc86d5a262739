/* SPDX-License-Identifier: BSD-2-Clause */
/* rxafsctl login, logout, tokens and session. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program/message.h"
#include "rxafs/ctl/ctl.h"
#include "rxafs/users/tickets.h"

#define SECRET_MOST (64 * 1024)
#define LOOK_S	    10 /* between two looks at the tickets */

static const char *mount_of(const struct settings *s)
{
	return s->mount ? s->mount : "/afs";
}

/* -- login ---------------------------------------------------------------------------------- */

/* The file is read here, by the user himself. */
static int read_secret(const char *path, uint8_t **data, size_t *size)
{
	FILE *f = fopen(path, "rbe");
	int status = 0;

	if (!f)
		return tools_fail(-1, "%s: %s", path, strerror(errno));
	*data = malloc(SECRET_MOST);
	*size = *data ? fread(*data, 1, SECRET_MOST, f) : 0;
	if (!*data || ferror(f) || fgetc(f) != EOF)
		status = tools_fail(-1, "%s: it cannot be read, or has more than %d bytes", path,
				    SECRET_MOST);
	fclose(f);
	if (status) {
		free(*data);
		*data = NULL;
	}
	return status;
}

/* The cell that is named, or the home cell of the mount; free it. NULL after a message. */
static char *cell_of(const struct settings *s)
{
	const char *asked[] = {"cells", NULL};
	json_t *answer = s->cell ? NULL : ask_mount(mount_of(s), asked, NULL, 0);
	const char *home = answer ? text_member(answer, "home") : "";
	char *cell = s->cell ? strdup(s->cell) : *home ? strdup(home) : NULL;

	if (answer && !cell)
		tools_error("the mount has no home cell: name one with --cell");
	json_decref(answer);
	return cell;
}

/* In parts, since a request has a fixed size. */
static int hand_over_secret(int fd, const char *path, const uint8_t *data, size_t size)
{
	for (size_t at = 0, part; at < size; at += part) {
		char offset[24];
		const char *asked[] = {"tickets", offset, NULL};
		json_t *answer;

		part = size - at < CONTROL_DATA ? size - at : CONTROL_DATA;
		snprintf(offset, sizeof offset, "%zu", at);
		answer = ask_open_mount(fd, path, asked, data + at, part);
		if (!answer)
			return -1;
		json_decref(answer);
	}
	return 0;
}

/* The daemon's answer, or NULL after a message. */
static json_t *log_in_by_daemon(const struct settings *s, const char *cell)
{
	const char *asked[] = {"login",
			       cell,
			       s->rxkad == s->rxgk ? "any"
			       : s->rxkad	   ? "rxkad"
						   : "rxgk",
			       s->key_file ? "keys" : "cache",
			       s->principal ? s->principal : " ",
			       s->session ? "session" : NULL,
			       NULL};
	char message[TICKETS_MESSAGE];
	json_t *answer = NULL;
	uint8_t *data = NULL;
	size_t size = 0;
	int fd;

	if (s->key_file) {
		if (read_secret(s->key_file, &data, &size))
			return NULL;
	} else if (tickets_for_cell(s->cache, cell, &data, &size, message)) {
		tools_error("%s", message);
		return NULL;
	}
	fd = open_in_mount(mount_of(s));
	if (fd >= 0 && !hand_over_secret(fd, mount_of(s), data, size))
		answer = ask_open_mount(fd, mount_of(s), asked, NULL, 0);
	if (fd >= 0)
		close(fd);
	explicit_bzero(data, size);
	free(data);
	return answer;
}

/* -- renewal --------------------------------------------------------------------------------------- */

/* What the present token was made from. */
struct kept {
	const struct settings *settings;
	char *cell;
	struct tickets used;
	time_t renew_at, retry_at;
};

/* A renewable ticket in the last quarter of its life is renewed; a new ticket gives a new token. False: the mount is gone. */
static bool keep_token(struct kept *kept)
{
	const char *cache = kept->settings->cache;
	char message[TICKETS_MESSAGE];
	time_t now = time(NULL);
	struct tickets t;
	json_t *answer;

	if (access(mount_of(kept->settings), F_OK))
		return false;
	if (tickets_look(cache, &t, message) || t.ends <= now)
		return true;
	if (now >= tickets_renewal(&t) && now >= kept->renew_at) {
		kept->renew_at = now + tickets_pause(&t);
		if (tickets_renew(cache, message))
			tools_error("%s", message);
		else if (tickets_look(cache, &t, message))
			return true;
	}
	if ((t.begins == kept->used.begins && t.ends == kept->used.ends &&
	     !strcmp(t.principal, kept->used.principal)) ||
	    now < kept->retry_at)
		return true;
	answer = log_in_by_daemon(kept->settings, kept->cell);
	if (answer)
		kept->used = t;
	else
		kept->retry_at = now + TICKETS_AGAIN_S;
	json_decref(answer);
	return true;
}

static void note_tickets(struct kept *kept)
{
	char message[TICKETS_MESSAGE];

	if (tickets_look(kept->settings->cache, &kept->used, message))
		kept->used = (struct tickets){.ends = 0};
}

static unsigned seconds_to_look(const struct kept *kept)
{
	int64_t left = tickets_renewal(&kept->used) - time(NULL);

	return left >= 0 && left < LOOK_S ? (unsigned)left + 1 : LOOK_S;
}

int run_login(const struct settings *s, char **words, size_t count)
{
	struct kept kept = {.settings = s, .cell = cell_of(s)};
	json_t *answer = kept.cell ? log_in_by_daemon(s, kept.cell) : NULL;
	int status;

	(void)count;
	if (!answer) {
		free(kept.cell);
		return TOOLS_EXIT_FAILURE;
	}
	status = show_answer(s, words[0], answer);
	if (s->keep && !s->key_file) {
		fflush(stdout);
		note_tickets(&kept);
		while (keep_token(&kept))
			sleep(seconds_to_look(&kept));
	}
	free(kept.cell);
	return status;
}

/* -- logout and tokens ------------------------------------------------------------------------- */

int run_logout(const struct settings *s, char **words, size_t count)
{
	const char *asked[] = {words[0], s->cell ? s->cell : " ", s->session ? "session" : NULL,
			       NULL};

	(void)count;
	return show_answer(s, words[0], ask_mount(mount_of(s), asked, NULL, 0));
}

int run_tokens(const struct settings *s, char **words, size_t count)
{
	const char *asked[] = {words[0], s->all ? "all" : NULL, NULL};

	(void)count;
	return show_answer(s, words[0], ask_mount(mount_of(s), asked, NULL, 0));
}

/* "CELL CLIENT CLASS,LEVEL uid UID, SESSION, until TIME" */
void print_tokens(const json_t *list)
{
	const json_t *one;
	size_t i;

	if (!json_array_size(list))
		tools_error("no tokens; get one with rxafsctl login");
	json_array_foreach(list, i, one)
	{
		const char *session = text_member(one, "session");

		printf("%s %s %s,%s uid %lld%s%s, ", text_member(one, "cell"),
		       text_member(one, "client"), text_member(one, "class"),
		       text_member(one, "level"), number_member(one, "uid"), *session ? ", " : "",
		       session);
		print_time(json_is_true(json_object_get(one, "expired")) ? "expired " : "until ",
			   number_member(one, "expires"));
	}
}

/* -- session ----------------------------------------------------------------------------------------- */

static pid_t start_in_session(char **words, size_t count, const sigset_t *mask)
{
	const char *shell = getenv("SHELL");
	char *usual[] = {(char *)(uintptr_t)(shell && *shell ? shell : "/bin/sh"), NULL};
	char **command = calloc(count + 1, sizeof *command);
	pid_t child, leader = getpid();

	if (!command)
		return -1;
	if (count)
		memcpy(command, words, count * sizeof *command);
	child = fork();
	if (!child) {
		char **run = count ? command : usual;

		sigprocmask(SIG_SETMASK, mask, NULL);
		/* Without this process it would be outside the session. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != leader)
			_exit(126);
		execvp(run[0], run);
		tools_error("%s: %s", run[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	free(command);
	return child;
}

/* Orphans of the session are children of this process, too. False: the command has ended. */
static bool reap_children(pid_t command, int *ended_as)
{
	bool goes_on = true;
	pid_t child;
	int ended;

	while ((child = waitpid(-1, &ended, WNOHANG)) > 0)
		if (child == command) {
			*ended_as = ended;
			goes_on = false;
		}
	return goes_on;
}

/* Until the command ends. Its terminal sends the signals of keys to it as well. */
static int attend_command(pid_t command, struct kept *kept, const sigset_t *set, bool *killed)
{
	int ended = 0;

	while (reap_children(command, &ended)) {
		const struct timespec step = {.tv_sec = kept ? (time_t)seconds_to_look(kept) : 0};
		int number = kept ? sigtimedwait(set, NULL, &step) : sigwaitinfo(set, NULL);

		if (number == SIGTERM || number == SIGHUP)
			kill(command, number);
		if (kept)
			keep_token(kept);
	}
	*killed = WIFSIGNALED(ended);
	return *killed ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
}

/* A session of this process and those below it. False after a message. */
static bool begin_session(const struct settings *s)
{
	const char *asked[] = {"session", NULL};
	json_t *answer = ask_mount(mount_of(s), asked, NULL, 0);

	if (!answer)
		return false;
	json_decref(answer);
	if (!prctl(PR_SET_CHILD_SUBREAPER, 1))
		return true;
	return tools_fail(false, "cannot hold a session: %s", strerror(errno));
}

/* The process of the session was killed, so those below it are children of this one: without tokens, and about to end. */
static void end_orphans(void)
{
	char path[64];
	int child;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	do {
		FILE *f = fopen(path, "re");

		while (f && fscanf(f, "%d", &child) == 1)
			kill(child, SIGKILL);
		if (f)
			fclose(f);
	} while (waitpid(-1, NULL, 0) > 0);
}

/* The process that has the tokens. */
static int lead_session(const struct settings *s, char **words, size_t count, const sigset_t *set,
			const sigset_t *old)
{
	struct kept kept = {.settings = s};
	json_t *answer;
	pid_t command;
	bool killed;
	int status;

	if (!begin_session(s))
		return TOOLS_EXIT_FAILURE;
	if (s->keep || s->key_file) {
		kept.cell = cell_of(s);
		answer = kept.cell ? log_in_by_daemon(s, kept.cell) : NULL;
		if (!answer) {
			free(kept.cell);
			return TOOLS_EXIT_FAILURE;
		}
		json_decref(answer);
		note_tickets(&kept);
	}
	command = start_in_session(words + 1, count - 1, old);
	status = command < 0 ? tools_fail(TOOLS_EXIT_FAILURE, "cannot start a process: %s",
					  strerror(errno))
			     : attend_command(command, s->keep && !s->key_file ? &kept : NULL, set,
					      &killed);
	free(kept.cell);
	return status;
}

/*
 * This process begins a session, too, which never gets tokens. If the one below it is killed, then the command and all processes
 * below that are in this one, and not outside, where they would have the user's other tokens.
 */
int run_session(const struct settings *s, char **words, size_t count)
{
	static const int numbers[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP};
	pid_t leader, guard = getpid();
	sigset_t set, old;
	bool killed;
	int status;

	if (!begin_session(s))
		return TOOLS_EXIT_FAILURE;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, &old);
	leader = fork();
	if (leader < 0)
		return tools_fail(TOOLS_EXIT_FAILURE, "cannot start a process: %s",
				  strerror(errno));
	if (!leader) {
		if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != guard)
			_exit(TOOLS_EXIT_FAILURE);
		_exit(tools_finish(lead_session(s, words, count, &set, &old)));
	}
	status = attend_command(leader, NULL, &set, &killed);
	if (killed)
		end_orphans();
	return status;
}
