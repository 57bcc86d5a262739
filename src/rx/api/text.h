/* SPDX-License-Identifier: BSD-2-Clause */
/* A growing text, and the parts of it that the metrics and the list of calls share. */
#ifndef API_TEXT_H
#define API_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initially zero; the owner frees `at`. */
struct rxw_text {
	char *at;
	size_t used, room;
	bool failed; /* no memory: the text is incomplete */
};

void rxw_put(struct rxw_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Nanoseconds as exact seconds, with a point in every locale. Returns `text`. */
const char *rxw_seconds(uint64_t ns, char text[32]);

#endif
