/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that the unit of a service manager hides from the server, or lets it only read. */
#ifndef FILESERVER_SANDBOX_H
#define FILESERVER_SANDBOX_H

#include <stdbool.h>

/*
 * Look at a path that the server is to use, as the value of an option; `writes`: it has to write there. -1 with one line
 * in message[FSD_MESSAGE_MAX] that names the line of the unit, if a service manager runs this process and its rules
 * forbid that; else 0, also if the path cannot be used for another reason.
 */
int fsd_sandbox_check(const char *option, const char *path, bool writes, char *message);

#endif
