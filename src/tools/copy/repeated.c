/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of the command line that would get the same name. */
#include <stdlib.h>
#include <string.h>

#include "tools/copy/repeated.h"

struct named {
	const char *name;
	size_t index;
};

/* By name, equal ones by index. */
static int compare(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->index < y->index ? -1 : 1;
}

size_t *repeated_names(char *const *names, size_t count)
{
	struct named *list = calloc(count + 1, sizeof(*list));
	size_t *first = calloc(count + 1, sizeof(*first)), n = 0;

	if (!list || !first) {
		free(list);
		free(first);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		first[i] = i;
		if (names[i])
			list[n++] = (struct named){names[i], i};
	}
	qsort(list, n, sizeof(*list), compare);
	for (size_t i = 1; i < n; i++)
		if (strcmp(list[i].name, list[i - 1].name) == 0)
			first[list[i].index] = first[list[i - 1].index];
	free(list);
	return first;
}
