/* SPDX-License-Identifier: BSD-2-Clause */
/* What commands print: names that are safe for terminals, modes, times, and lines of JSON. */
#ifndef COPY_OUTPUT_H
#define COPY_OUTPUT_H

#include <jansson.h>
#include <rxafs/object.h>

#include "afscp/run.h"

/* Names come from the server: on a terminal, control characters are replaced. */
void print_name(const char *name);

/* The mode without the type. A link is a mount point because its mode is 0644, which the library does not show. */
static inline unsigned mode_of(const struct rxafs_attributes *attributes)
{
	return attributes->mount_point ? 0644 : attributes->stat.st_mode & 07777;
}

/* "drwxr-xr-x"; a mount point is "m". */
const char *format_mode(char text[11], const struct rxafs_attributes *attributes);
const char *format_mtime(char *text, size_t size, int64_t seconds);
/* Kibibytes, or with --human-readable the size with a unit. */
const char *format_kib(const struct run *run, char *text, size_t size, uint64_t kib);
/* "directory", "mount point" …, for JSON and people. */
const char *name_of_kind(const struct rxafs_attributes *attributes);

/*
 * With --json, print errors that were told so far as objects {"error": TEXT}, and then the object, each in a line. `object`
 * may be NULL: only errors. Takes the reference. 0, or -1: it cannot be written.
 */
int print_json(struct run *run, json_t *object);
/* The members that describe an object: type, length, mode, … */
json_t *pack_attributes(const struct rxafs_attributes *attributes);
/* Set "KEY": a text of any bytes, and if they are no UTF-8 "KEY_hex" as well. */
void pack_bytes(json_t *object, const char *key, const char *text);

#endif
