/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of names as UTF-8 text, and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/private.h"
#include "common/utf8.h"

/* \xNN in place of what has no text; with `reversible` also of backslashes. */
static char *escape_text(const char *bytes, bool reversible)
{
	const unsigned char *at = (const unsigned char *)bytes;
	char *text = malloc(strlen(bytes) * 4 + 1), *to = text;

	while (text && *at) {
		size_t length = utf8_character_bytes(at);

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
