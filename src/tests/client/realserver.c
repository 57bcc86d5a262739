/* SPDX-License-Identifier: BSD-2-Clause */
/* A real rxfsd with a store, for tests of the client library. */
#include "tests/client/realserver.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/asserts.h"
#include "tests/support/ports.h"

#define ARGUMENTS 16

static const char *program_path(const char *path, char *text, size_t size)
{
	const char *top = getenv("top_builddir");

	snprintf(text, size, "%s/%s", top ? top : ".", path);
	return text;
}

int realserver_rxvol(struct realserver *s, const char *first, ...)
{
	char program[512], store[80];
	const char *argv[ARGUMENTS] = {"rxvol", "-S", store};
	unsigned n = 3;
	va_list args;
	int status;
	pid_t pid;

	program_path("src/rxvol/rxvol", program, sizeof(program));
	snprintf(store, sizeof(store), "%s/store", s->folder);
	va_start(args, first);
	for (const char *a = first; a && n < ARGUMENTS - 1; a = va_arg(args, const char *))
		argv[n++] = a;
	va_end(args);
	pid = fork();
	if (pid == 0) { /* asserts nothing: see asserts.h */
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		execv(program, (char **)argv);
		_exit(127);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void realserver_start(struct realserver *s)
{
	char program[512], store[80], fs[16], vl[16], line[512] = "";
	int out[2];
	FILE *f;

	program_path("src/fileserver/rxfsd", program, sizeof(program));
	snprintf(store, sizeof(store), "%s/store", s->folder);
	if (!s->fs_port) {
		s->fs_port = choose_port();
		s->vl_port = choose_port();
	}
	snprintf(fs, sizeof(fs), "%u", s->fs_port);
	snprintf(vl, sizeof(vl), "%u", s->vl_port);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	s->pid = fork();
	if (s->pid == 0) { /* asserts nothing: see asserts.h */
		/* A test that fails leaves no server behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		execl(program, "rxfsd", "--store", store, "--listen", "127.0.0.1", "--port", fs,
		      "--vl-port", vl, "--vol-port", "0", NULL);
		_exit(127);
	}
	ck_assert_int_gt(s->pid, 0);
	close(out[1]);
	f = fdopen(out[0], "r");
	ck_assert(f && fgets(line, sizeof(line), f));
	ck_assert_msg(sscanf(line, "listening fs 127.0.0.1:%u vl 127.0.0.1:%u", &s->fs_port,
			     &s->vl_port) == 2,
		      "%s", line);
	fclose(f);
}

void realserver_open(struct realserver *s, const char *const *volumes)
{
	memset(s, 0, sizeof(*s));
	strcpy(s->folder, "/tmp/rxafs-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(s->folder));
	ck_assert_int_eq(realserver_rxvol(s, "init", NULL), 0);
	for (; *volumes; volumes++)
		ck_assert_int_eq(realserver_rxvol(s, "create", *volumes, "--acl",
						  "system:anyuser all", NULL),
				 0);
	realserver_start(s);
}

void realserver_end(struct realserver *s, int number)
{
	int status;

	ck_assert_int_gt(s->pid, 0);
	ck_assert_int_eq(kill(s->pid, number), 0);
	ck_assert_int_eq(waitpid(s->pid, &status, 0), s->pid);
	s->pid = 0;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

void realserver_close(struct realserver *s)
{
	if (s->pid)
		realserver_end(s, SIGTERM);
	nftw(s->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *realserver_cell(const struct realserver *s, const char *cell)
{
	static char text[160];

	snprintf(text, sizeof(text), "%s=127.0.0.1:%u:%u", cell, s->vl_port, s->fs_port);
	return text;
}
