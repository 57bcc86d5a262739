/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the unit tests of the tools: a main function, temporary folders, captured output. */
#ifndef RXW_TESTS_TOOLS_TESTING_H
#define RXW_TESTS_TOOLS_TESTING_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/asserts.h"
#include "tests/main.h"

/* A new folder, below $TMPDIR or /tmp; the caller removes it. */
static inline char *test_folder(void)
{
	const char *base = getenv("TMPDIR");
	char *path = NULL;

	ck_assert_int_gt(asprintf(&path, "%s/rxwire-test-XXXXXX", base && *base ? base : "/tmp"),
			 0);
	ck_assert_ptr_nonnull(mkdtemp(path));
	return path;
}

/*
 * Replaces descriptor `fd` by a temporary file; test_captured() restores it and returns the output.
 */
struct test_capture {
	int fd, saved;
	FILE *file;
};

static inline void test_capture(struct test_capture *c, int fd)
{
	fflush(NULL);
	c->fd = fd;
	c->saved = dup(fd);
	c->file = tmpfile();
	ck_assert(c->saved >= 0 && c->file);
	ck_assert_int_ge(dup2(fileno(c->file), fd), 0);
}

static inline char *test_captured(struct test_capture *c)
{
	char *text = (char *)calloc(1, 65536);
	size_t n;

	fflush(NULL);
	ck_assert_int_ge(dup2(c->saved, c->fd), 0);
	close(c->saved);
	rewind(c->file);
	n = fread(text, 1, 65535, c->file);
	text[n] = 0;
	fclose(c->file);
	return text;
}

/* One line: not empty, and its only newline is the last byte. */
static inline void test_one_line(const char *text)
{
	const char *newline = strchr(text, '\n');

	ck_assert_msg(newline && newline > text && newline[1] == 0, "not one line: \"%s\"", text);
}

#endif
