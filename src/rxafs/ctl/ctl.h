/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside rxafsctl. */
#ifndef RXAFS_CTL_H
#define RXAFS_CTL_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "rxafs/control.h"

struct settings {
	const char *cell, *cache, *key_file, *principal, *mount;
	bool json, negative, read_write, rxkad, rxgk, session, keep, all;
};

/* ctl.c */

/* A file or directory of the mount, or -1 after a message. */
int open_in_mount(const char *path);
/* The answer of the daemon, or NULL after a message. `path` is what `fd` was opened by. */
json_t *ask_open_mount(int fd, const char *path, const char *const *words, const void *data,
		       size_t size);
json_t *ask_mount(const char *path, const char *const *words, const void *data, size_t size);
/* Prints the answer and frees it. The exit status. */
int show_answer(const struct settings *s, const char *command, json_t *answer);
const char *text_member(const json_t *from, const char *name);
long long number_member(const json_t *from, const char *name);
void print_time(const char *what, long long when);

/* ctl_login.c: the commands; words[0] is the command. The exit status. */
int run_login(const struct settings *s, char **words, size_t count);
int run_logout(const struct settings *s, char **words, size_t count);
int run_tokens(const struct settings *s, char **words, size_t count);
int run_session(const struct settings *s, char **words, size_t count);
void print_tokens(const json_t *list);

#endif
