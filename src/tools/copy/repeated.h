/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of the command line that would get the same name. */
#ifndef COPY_REPEATED_H
#define COPY_REPEATED_H

#include <stddef.h>

/*
 * For each of `count` names the index of the first one that is equal, which may be its own. NULL
 * names equal none. free() the list; NULL: there is no memory.
 */
size_t *repeated_names(char *const *names, size_t count);

#endif
