/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of files that are not complete yet. */
#ifndef COPY_PARTNAME_H
#define COPY_PARTNAME_H

#include <stdint.h>

#define PART_NAME 256 /* bytes, with the NUL */

/*
 * ".NAME.0123456789abcdef.afscp-part" of a version of the contents, which is not 0; a long name is
 * cut. The same name and version give the same text.
 */
void part_name(char part[PART_NAME], const char *name, uint64_t version);
/* The name of a random version, which nothing else has and no later run finds. */
void part_name_once(char part[PART_NAME], const char *name);
/* Mix a number into a version, which is 0 at first. The result is never 0. */
uint64_t part_version(uint64_t version, uint64_t number);

/*
 * A claim to the part of that version, which one process of this machine can have at a time. It
 * ends with close(), or with the process, however that ends. -1: another process has it, or claims
 * are not possible here.
 */
int part_claim(uint64_t version);

#endif
