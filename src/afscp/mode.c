/* SPDX-License-Identifier: BSD-2-Clause */
/* Modes as numbers and as changes of a mode. */
#include <string.h>

#include "afscp/mode.h"

static int parse_octal(const char *text, mode_t *mode)
{
	mode_t value = 0;

	for (; *text; text++) {
		if (*text < '0' || *text > '7')
			return -1;
		value = value << 3 | (mode_t)(*text - '0');
		if (value > 07777)
			return -1;
	}
	*mode = value;
	return 0;
}

/* The classes before an operator: their bits, 0 = none was named. */
static mode_t take_who(const char **text)
{
	mode_t who = 0;

	for (;; (*text)++)
		switch (**text) {
		case 'u':
			who |= 04700;
			break;
		case 'g':
			who |= 02070;
			break;
		case 'o':
			who |= 01007;
			break;
		case 'a':
			who |= 07777;
			break;
		default:
			return who;
		}
}

/* The permissions after an operator, for all classes. 0 or -1. */
static int take_bits(const char **text, mode_t old, bool directory, mode_t *bits)
{
	*bits = 0;
	for (;; (*text)++)
		switch (**text) {
		case 'r':
			*bits |= 0444;
			break;
		case 'w':
			*bits |= 0222;
			break;
		case 'x':
			*bits |= 0111;
			break;
		case 'X':
			*bits |= directory || old & 0111 ? 0111 : 0;
			break;
		case 's':
			*bits |= 06000;
			break;
		case 't':
			*bits |= 01000;
			break;
		case 0:
		case ',':
		case '+':
		case '-':
		case '=':
			return 0;
		default:
			return -1;
		}
}

static mode_t apply_bits(mode_t mode, mode_t who, char sign, mode_t bits)
{
	switch (sign) {
	case '+':
		return mode | (bits & who);
	case '-':
		return mode & ~(bits & who);
	default:
		return (mode & ~(who & 0777)) | (bits & who);
	}
}

int mode_parse(const char *text, mode_t old, bool directory, mode_t umask, mode_t *mode)
{
	mode_t now = old;

	if (*text >= '0' && *text <= '7')
		return parse_octal(text, mode);
	do {
		mode_t who = take_who(&text), bits;
		bool named = who != 0;

		if (*text == 0 || !strchr("+-=", *text))
			return -1;
		while (*text && strchr("+-=", *text)) {
			char sign = *text++;

			if (take_bits(&text, now, directory, &bits) < 0)
				return -1;
			now = apply_bits(now, named ? who : 07777, sign,
					 named ? bits : bits & ~umask);
		}
	} while (*text++ == ',');
	*mode = now;
	return 0;
}
