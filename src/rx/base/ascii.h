/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Characters of names and numbers, whatever the locale of the program that embeds the library: toupper('i') of a
 * Turkish one is not 'I', so <ctype.h> and strcasecmp() are not for what other machines read.
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

/* Whether two strings are equal but for the case of ASCII letters, as far as their ends or `length`. */
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
