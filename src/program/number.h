/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers, sizes and durations as text. */
#ifndef TOOLS_NUMBER_H
#define TOOLS_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/*
 * All parsers return 0, or -1 if the text is not exactly one such number or out of range; *value is
 * then unchanged.
 */

/* A number of decimal digits only. */
int tools_parse_uint(const char *text, uint64_t *value);

/* Digits and at most one of K, M, G, T (powers of two, either case); "64K" = 65536. */
int tools_parse_size(const char *text, uint64_t *value);

/*
 * Seconds, possibly with a fraction, or with a unit: 250ms, 1.5s, 10m, 2h. The result is in
 * milliseconds.
 */
int tools_parse_duration(const char *text, uint64_t *milliseconds);

/* "1.5 GiB", "812 bytes". Returns text. */
char *tools_format_size(char *text, size_t size, uint64_t bytes);

/*
 * A size in the form that tools_parse_size() takes: 65536 -> "64K", 1000 -> "1000". Returns text.
 */
char *tools_format_exact(char *text, size_t size, uint64_t bytes);

/* "850 us", "1.2 ms", "3.4 s" from nanoseconds. Returns text. */
char *tools_format_time(char *text, size_t size, uint64_t nanoseconds);

#endif
