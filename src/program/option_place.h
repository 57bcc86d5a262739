/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places where options were set: the command line, or a line of the configuration file.
 * Messages about a value, however late, name that line. The records are global to the process and
 * have no lock: they are for the thread that parses the options and starts the program.
 */
#ifndef TOOLS_OPTION_PLACE_H
#define TOOLS_OPTION_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* The place where an option was set. `name` and `value` are not copied. */
struct tools_place {
	const char *name;    /* of the option, without dashes */
	const char *value;   /* NULL: not a string */
	const char *path;    /* of the file; NULL: the command line */
	const char *section; /* of the file; "" above the first heading */
	int line;
	bool repeat; /* another item of a list */
};

/* Forget everything. */
void tools_place_reset(void);
/* Record a place, in place of an earlier record of the option unless `repeat`. 0; -1: no memory. */
int tools_place_record(const struct tools_place *place);
/* Whether the command line set the option. */
bool tools_place_given(const char *name);
/* The line where `section` of the file set the option; 0 if it did not. */
int tools_place_line(const char *name, const char *section);
/*
 * If `message` mentions an option ("--NAME") that the file set, put "FILE:LINE: " in front of the
 * message. If it mentions several, the first one counts; of a list, the item that follows the name.
 */
void tools_place_message(char *message, size_t size);

#endif
