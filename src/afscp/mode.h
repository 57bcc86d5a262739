/* SPDX-License-Identifier: BSD-2-Clause */
/* Modes on the command line. */
#ifndef COPY_MODE_H
#define COPY_MODE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * An octal number of at most 07777, or changes of `old` as chmod(1) takes them: "u+x,go-w", "a=r",
 * "+X". Without a letter before it, a change leaves out the bits of the umask. 0 and *mode, or -1.
 */
int mode_parse(const char *text, mode_t old, bool directory, mode_t umask, mode_t *mode);

#endif
