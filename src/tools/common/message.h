/* SPDX-License-Identifier: BSD-2-Clause */
/* One line on stderr that names the thing and says what to do. */
#ifndef TOOLS_MESSAGE_H
#define TOOLS_MESSAGE_H

#include <stdbool.h>

/* Exit statuses of every program. */
#define TOOLS_EXIT_FAILURE 1
#define TOOLS_EXIT_USAGE   2

/*
 * Name put before every line; static storage expected. Call first in main(): standard files that
 * are closed are opened on /dev/null here, so that no other file gets their numbers.
 */
void tools_set_program(const char *name);
const char *tools_program_name(void);

/*
 * Whether stderr is a stream of systemd's journal ($JOURNAL_STREAM), where lines begin with
 * "<PRIORITY>".
 */
bool tools_stderr_is_journal(void);

/*
 * "NAME: text" (in the journal: "<3>text") and a newline on stderr, in one write; a progress line
 * that stands there is ended first. Any thread.
 */
void tools_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Show `text` in place of the line shown before (a progress line; stderr must be a terminal). NULL:
 * end the line, so that later output starts on a fresh one. Any thread.
 */
void tools_progress(const char *text);

/*
 * Close stdout, reporting what could not be written (a full disk, say). Returns `status`, or
 * TOOLS_EXIT_FAILURE if that failed. Last thing in main().
 */
int tools_finish(int status);

#endif
