/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries by what the command line calls them: a name or an id. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "rxpt/pt.h"

bool pt_parse_id(const char *text, int32_t *id)
{
	const char *digits = text + (*text == '-');
	long long value;

	if (!*digits || strspn(digits, "0123456789") != strlen(digits))
		return false;
	errno = 0;
	value = strtoll(text, NULL, 10);
	if (errno || value < INT32_MIN || value > INT32_MAX)
		return false;
	*id = (int32_t)value;
	return true;
}

const struct prot_entry *pt_find(const struct pt *pt, const struct prot_view *view,
				 const char *text)
{
	const struct prot_entry *entry;
	int32_t id;

	/* No name looks like a number. */
	entry = pt_parse_id(text, &id) ? prot_by_id(view, id) : prot_by_name(view, text);
	if (!entry)
		tools_error("%.200s is no user or group of %.200s; \"rxpt -S %.200s list\" shows "
			    "them",
			    text, pt->store, pt->store);
	return entry;
}

int32_t pt_find_id(const struct pt *pt, const char *text)
{
	const struct prot_view *view = prot_view_get(pt->prot);
	const struct prot_entry *entry = pt_find(pt, view, text);
	int32_t id = entry ? entry->id : 0;

	prot_view_put(view);
	return id;
}
