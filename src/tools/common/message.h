/* SPDX-License-Identifier: BSD-2-Clause */
/* One line on stderr that names the thing and says what to do. */
#ifndef TOOLS_MESSAGE_H
#define TOOLS_MESSAGE_H

/* Exit statuses of every program. */
#define TOOLS_EXIT_FAILURE 1
#define TOOLS_EXIT_USAGE   2

/* Name put before every line; static storage expected. Call first in main(). */
void tools_set_program(const char *name);
const char *tools_program_name(void);

/*
 * "NAME: text" and a newline on stderr, in one write; a progress line that stands there is ended
 * first. Any thread.
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
