/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of the command line that would get the same name at the destination. */
#ifndef COPY_SAME_NAMES_H
#define COPY_SAME_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The name of source `i` at the destination, allocated; NULL: it has none. False: no memory. */
typedef bool source_name_fn(const void *arg, size_t i, char **name);

/*
 * For each of `count` sources the index of the first one with the same name, which may be its own.
 * free() the list. NULL, after a message: no memory.
 */
size_t *find_same_names(size_t count, source_name_fn *name, const void *arg);

#endif
