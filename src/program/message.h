/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages on stderr: one line that names the problem and the remedy. */
#ifndef TOOLS_MESSAGE_H
#define TOOLS_MESSAGE_H

#include <stdbool.h>

/* Exit statuses of every program. */
#define TOOLS_EXIT_FAILURE 1
#define TOOLS_EXIT_USAGE   2

/*
 * Set the name that begins every line; static storage. Call this first in main(): it opens closed
 * standard files on /dev/null, so that no other file gets their descriptors.
 */
void tools_set_program(const char *name);

/*
 * Whether stderr is a stream of systemd's journal ($JOURNAL_STREAM), where lines begin with
 * "<PRIORITY>".
 */
bool tools_stderr_is_journal(void);

/*
 * Replace control characters of ASCII and of C1 (0x80 to 0x9f), as bytes and as UTF-8, by "?".
 * Names of files and texts of servers end up on terminals, which must not take orders from them.
 * Returns text.
 */
char *tools_harmless(char *text);

/*
 * Write "NAME: text" (in the journal: "<3>text") and a newline to stderr, with one write(). A
 * progress line is ended first. Any thread.
 */
void tools_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* `result`, after such a message. */
#define tools_fail(result, ...) (tools_error(__VA_ARGS__), (result))

/* The text of a failed result of the library; errno has the reason of -RXW_ESYS. */
const char *tools_result_text(int result);

/*
 * From now on also call fn with the text of each error, without the program's name, under the lock
 * of messages: fn must print nothing. NULL: no more.
 */
void tools_on_error(void (*fn)(void *arg, const char *text), void *arg);

/*
 * Replace the progress line by `text`; stderr must be a terminal. NULL: end the line, so that later
 * output begins on a new one. Any thread.
 */
void tools_progress(const char *text);

/*
 * After a failed write to stdout: keep errno, which other calls change. The first one counts. Only
 * on the thread that calls tools_finish().
 */
void tools_note_output(void);
/* The errno of the first failed write to stdout, or 0. */
int tools_output_error(void);

/*
 * Close stdout, and report if it could not be written (for example, disk full). Returns `status`,
 * or TOOLS_EXIT_FAILURE if that failed. Call this last in main().
 */
int tools_finish(int status);

#endif
