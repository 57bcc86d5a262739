/* SPDX-License-Identifier: BSD-2-Clause */
/* --exclude and --include: patterns for paths below the root of a copy, with rsync's meaning. */
#ifndef COPY_FILTER_H
#define COPY_FILTER_H

#include <stdbool.h>
#include <stddef.h>

/* In the order of the command line: the first one that matches decides. All zeros: none. */
struct filters {
	struct filter *list;
	size_t count;
};

/* 0; -1: no memory, or the pattern is empty. The pattern must stay. */
int filter_append(struct filters *filters, const char *pattern, bool exclude);
void filter_free(struct filters *filters);
/*
 * Whether a path, "a/b/c", is left out. A pattern that begins with "/" is for paths from the root, another one
 * for their last parts; one that ends in "/" for directories only. "*" matches anything but "/", "**" also that,
 * and "DIR" followed by "/" and three stars the directory with everything in it.
 */
bool filter_excludes(const struct filters *filters, const char *path, bool directory);

#endif
