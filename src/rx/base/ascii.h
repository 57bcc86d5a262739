/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Character tests that do not depend on the program's locale. In a Turkish locale toupper('i') is
 * not 'I', so <ctype.h> and strcasecmp() must not be used for protocol data.
 */
#ifndef BASE_ASCII_H
#define BASE_ASCII_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool rxw_ascii_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline char rxw_ascii_upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/*
 * Whether two strings are equal, ignoring the case of ASCII letters, up to their ends or `length`.
 */
static inline bool rxw_ascii_same_n(const char *a, const char *b, size_t length)
{
	for (; length > 0; a++, b++, length--) {
		if (rxw_ascii_upper(*a) != rxw_ascii_upper(*b))
			return false;
		if (!*a)
			break;
	}
	return true;
}

static inline bool rxw_ascii_same(const char *a, const char *b)
{
	return rxw_ascii_same_n(a, b, SIZE_MAX);
}

#endif
