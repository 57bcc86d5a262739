/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects by number, and mount points: what the user types and sees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/report.h"
#include "rxvol/volumes.h"

bool rxvol_parse_fid(const char *text, uint64_t numbers[3])
{
	unsigned count = 0;

	for (;; text++) {
		size_t digits = strspn(text, "0123456789");

		if (!digits || digits > 10 || count == 3)
			return false;
		numbers[count] = strtoull(text, NULL, 10);
		if (!numbers[count] || numbers[count++] > UINT32_MAX)
			return false;
		text += digits;
		if (*text != '.')
			return !*text && count >= 2;
	}
}

/* A line for each name. */
void rxvol_show_which(const struct rxvol *rxvol)
{
	const json_t *result = rxvol->result, *paths = json_object_get(result, "paths"), *path;
	bool damaged = json_is_true(json_object_get(result, "damaged"));
	size_t i;

	json_array_foreach((json_t *)paths, i, path)
	{
		printf("%s  %s  %s%s\n", tools_text_of(result, "fid"),
		       tools_text_of(result, "kind"), json_string_value(path),
		       damaged ? "  (damaged: restore it)" : "");
	}
	if (!json_array_size(paths))
		printf("%s  %s  no name leads to it  (damaged)\n", tools_text_of(result, "fid"),
		       tools_text_of(result, "kind"));
}

void rxvol_show_mount(const json_t *mount)
{
	const char *cell = tools_text_of(mount, "cell"), *state = tools_text_of(mount, "state");

	printf("%-30s  %s%s%s%s%s\n", tools_text_of(mount, "path"), cell, *cell ? ":" : "",
	       tools_text_of(mount, "target"),
	       json_is_true(json_object_get(mount, "rw")) ? "  (always read-write)" : "",
	       strcmp(state, "dangling") ? "" : "  DANGLING: no such volume");
}
