/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of names as UTF-8 text, and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/private.h"

/* The bytes of the character of UTF-8 at `at`; 0: it is none. */
static size_t measure_utf8_character(const unsigned char *at)
{
	size_t length = *at < 0x80   ? 1
			: *at < 0xc2 ? 0
			: *at < 0xe0 ? 2
			: *at < 0xf0 ? 3
			: *at < 0xf5 ? 4
				     : 0;

	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than needed, surrogates, beyond the last character. */
	if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
	    (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

/* \xNN in place of what has no text; with `reversible` also of backslashes. */
static char *escape_text(const char *bytes, bool reversible)
{
	const unsigned char *at = (const unsigned char *)bytes;
	char *text = malloc(strlen(bytes) * 4 + 1), *to = text;

	while (text && *at) {
		size_t length = measure_utf8_character(at);

		if (!length || *at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0) ||
		    (reversible && *at == '\\')) {
			to += sprintf(to, "\\x%02x", *at++);
			continue;
		}
		memcpy(to, at, length);
		to += length;
		at += length;
	}
	if (text)
		*to = 0;
	return text;
}

char *admin_text(const char *bytes)
{
	return escape_text(bytes, true);
}

json_t *admin_show(const char *bytes)
{
	char *text = escape_text(bytes, false);
	json_t *json = text ? json_string_nocheck(text) : NULL;

	free(text);
	return json;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *admin_bytes(const char *text)
{
	char *bytes = malloc(strlen(text) + 1), *to = bytes;

	while (bytes && *text) {
		if (*text != '\\') {
			*to++ = *text++;
			continue;
		}
		int high = text[1] == 'x' ? digit(text[2]) : -1;
		int low = high >= 0 ? digit(text[3]) : -1;

		if (low < 0 || (high == 0 && low == 0)) {
			free(bytes);
			return NULL;
		}
		*to++ = (char)(high << 4 | low);
		text += 4;
	}
	if (bytes)
		*to = 0;
	return bytes;
}
