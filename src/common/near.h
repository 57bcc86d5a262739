/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that resemble each other: what a user may have meant. */
#ifndef COMMON_NEAR_H
#define COMMON_NEAR_H

#include <string.h>

#define NEAR_MOST 40 /* letters of a name that is compared */

/* How many letters have to be inserted, removed or replaced to make one name of the other (Levenshtein). */
static inline unsigned near_edits(const char *a, const char *b)
{
	unsigned row[NEAR_MOST + 1];
	size_t length = strlen(b);

	if (length > NEAR_MOST || strlen(a) > NEAR_MOST)
		return NEAR_MOST + 1;
	for (unsigned i = 0; i <= length; i++)
		row[i] = i;
	for (; *a; a++) {
		unsigned diagonal = row[0]++;

		for (size_t i = 1; i <= length; i++) {
			unsigned best = diagonal + (*a != b[i - 1]);

			diagonal = row[i];
			if (row[i] + 1 < best)
				best = row[i] + 1;
			if (row[i - 1] + 1 < best)
				best = row[i - 1] + 1;
			row[i] = best;
		}
	}
	return row[length];
}
#endif
