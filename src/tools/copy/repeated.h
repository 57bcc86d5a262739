/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of the command line that would get the same name. */
#ifndef COPY_REPEATED_H
#define COPY_REPEATED_H

#include <stdbool.h>
#include <stddef.h>

/* The name of source `i` at the destination, allocated; NULL: it has none. False: no memory. */
typedef bool repeated_name(const void *arg, size_t i, char **name);

/*
 * For each of `count` sources the index of the first one with the same name, which may be its own.
 * free() the list. NULL, after a message: no memory.
 */
size_t *repeated_names(size_t count, repeated_name *name, const void *arg);

#endif
