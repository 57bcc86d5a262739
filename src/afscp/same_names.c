/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of the command line that would get the same name. */
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "afscp/same_names.h"

struct named {
	char *name;
	size_t index;
};

/* The order of names; equal names have the order of their indices. */
static int compare_named(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->index < y->index ? -1 : 1;
}

/* The names of all sources that have one. False: no memory. */
static bool list_source_names(size_t count, source_name_fn *name, const void *arg, struct named *list,
		       size_t *n)
{
	for (size_t i = 0; i < count; i++) {
		char *text = NULL;

		if (!name(arg, i, &text))
			return false;
		if (text)
			list[(*n)++] = (struct named){text, i};
	}
	return true;
}

size_t *find_same_names(size_t count, source_name_fn *name, const void *arg)
{
	struct named *list = calloc(count + 1, sizeof(*list));
	size_t *first = calloc(count + 1, sizeof(*first)), n = 0;
	bool good = list && first && list_source_names(count, name, arg, list, &n);

	for (size_t i = 0; good && i < count; i++)
		first[i] = i;
	if (good)
		qsort(list, n, sizeof(*list), compare_named);
	for (size_t i = 1; good && i < n; i++)
		if (strcmp(list[i].name, list[i - 1].name) == 0)
			first[list[i].index] = first[list[i - 1].index];
	while (n)
		free(list[--n].name);
	free(list);
	if (good)
		return first;
	tools_error("no memory");
	free(first);
	return NULL;
}
