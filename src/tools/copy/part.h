/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of files that are not complete yet. */
#ifndef COPY_PART_H
#define COPY_PART_H

#include <stdint.h>

#define PART_NAME 256 /* bytes, with the NUL */

/*
 * ".NAME.afscp-part" or, if there is a version of the contents or the name is long,
 * ".NAME.0123456789abcdef.afscp-part", with a cut name. The same name and version give the same
 * text.
 */
void part_name(char part[PART_NAME], const char *name, uint64_t version);
/* Mix a number into a version, which is 0 at first. The result is never 0. */
uint64_t part_version(uint64_t version, uint64_t number);

#endif
