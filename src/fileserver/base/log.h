/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines of the daemon: "<N>text" for the journal, "rxfsd: text" elsewhere, always on stderr. */
#ifndef FILESERVER_LOG_H
#define FILESERVER_LOG_H

#include <stdbool.h>

#include <rxwire/config.h>

/* Find out whether stderr is the journal's stream ($JOURNAL_STREAM). Once, before other threads. */
void fsd_log_start(void);
/* Lines above `level` (less urgent) are left out; default RXW_LOG_INFO. Any thread. */
void fsd_log_level(enum rxw_log_level level);
/* One line, one write. Any thread. */
void fsd_log(enum rxw_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Keep lines back, at most some 4 KiB of them, until it is known whether the server comes up: who
 * cannot start says so in one line. Release with `print` false to forget them.
 */
void fsd_log_hold(void);
void fsd_log_release(bool print);
/* For rxw_config.log. */
void fsd_log_library(void *arg, enum rxw_log_level level, const char *line);

/*
 * Tell the service manager, by $NOTIFY_SOCKET: "READY=1", "STOPPING=1\nSTATUS=...". Returns 1 if
 * told, 0 if there is no manager, -1 with errno. The variable is left as it is.
 */
int fsd_notify(const char *state);

#endif
