/* SPDX-License-Identifier: BSD-2-Clause */
/* A growing text. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/text.h"

#define FIRST_ROOM 16384u

void rxw_put(struct rxw_text *t, const char *format, ...)
{
	va_list args;
	int n;

	for (;;) {
		size_t left = t->room - t->used;
		char *more;

		va_start(args, format);
		n = t->at ? vsnprintf(t->at + t->used, left, format, args) : 0;
		va_end(args);
		if (t->at && n >= 0 && (size_t)n < left) {
			t->used += (size_t)n;
			return;
		}
		more = t->failed ? NULL : realloc(t->at, t->room ? 2 * t->room : FIRST_ROOM);
		if (!more) {
			t->failed = true;
			return;
		}
		t->room = t->room ? 2 * t->room : FIRST_ROOM;
		t->at = more;
	}
}

const char *rxw_seconds(uint64_t ns, char text[32])
{
	snprintf(text, 32, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
		 (unsigned long long)(ns % 1000000000u));
	return text;
}
