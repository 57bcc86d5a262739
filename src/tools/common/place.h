/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which line of the configuration file set an option. A value may prove wrong long after it was
 * read; the message about it names the line all the same. Of the process, for the thread that
 * parses and starts; no locks.
 */
#ifndef TOOLS_PLACE_H
#define TOOLS_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* What set an option. `name` and `value` are kept by reference, the rest is copied. */
struct tools_place {
	const char *name;    /* of the option, without dashes */
	const char *value;   /* NULL: not a text */
	const char *path;    /* of the file; NULL: the command line */
	const char *section; /* of the file; "" above the first heading */
	int line;
	bool repeat; /* one more item of a list, beside those recorded before */
};

/* Forget everything. */
void tools_place_reset(void);
/* Record what set an option, in place of what did before (unless `repeat`). 0, or -1: no memory. */
int tools_place_record(const struct tools_place *place);
/* The line where `section` of the file set the option; 0 if it did not. */
int tools_place_line(const char *name, const char *section);
/* Whether the file or the command line set the option. */
bool tools_place_given(const char *name);
/*
 * If `message` mentions an option ("--NAME") that the file set, put "FILE:LINE: " before it: of the
 * first such option, and of the item of a list that follows the name.
 */
void tools_place_message(char *message, size_t size);

#endif
