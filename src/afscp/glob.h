/* SPDX-License-Identifier: BSD-2-Clause */
/* Patterns in the paths of volumes. */
#ifndef COPY_GLOB_H
#define COPY_GLOB_H

#include "afscp/copy.h"

/* Whether a text has a character of patterns: * ? [ */
bool glob_is_pattern(const char *text, size_t length);
/* As fnmatch(3): a "." at the begin is matched only by itself. */
bool glob_matches(const char *pattern, const char *name);
/*
 * Replace the sources of the run that are patterns by the paths that they match, in the order of
 * names. One that matches nothing stays as it is. COPY_GOOD, or another result after a message.
 */
enum copy_result glob_sources(struct copy *copy);

#endif
