/* SPDX-License-Identifier: BSD-2-Clause */
/* Access lists as text (afs-fileserver 1.8). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/acl.h"

/* A decimal number of at least `least` that ends with `end`. Moves *text behind it. 0 or -1. */
static int take_number(const char **text, long least, char end, long *value)
{
	char *rest;

	if (**text != '-' && (**text < '0' || **text > '9'))
		return -1;
	*value = strtol(*text, &rest, 10);
	if (*rest != end || *value < least || *value > UINT32_MAX)
		return -1;
	*text = rest + 1;
	return 0;
}

static int take_acl_entry(const char **text, struct afs_acl_entry *entry)
{
	const char *tab = strchr(*text, '\t');
	size_t length = tab ? (size_t)(tab - *text) : 0;
	long rights;

	if (length == 0 || length >= sizeof(entry->name) || memchr(*text, '\n', length))
		return -1;
	memcpy(entry->name, *text, length);
	entry->name[length] = 0;
	*text = tab + 1;
	if (take_number(text, INT32_MIN, '\n', &rights) < 0)
		return -1;
	entry->rights = (uint32_t)rights;
	return 0;
}

int afs_acl_parse(const char *text, struct afs_acl *acl)
{
	long positive, negative;

	memset(acl, 0, sizeof(*acl));
	if (take_number(&text, 0, '\n', &positive) < 0 ||
	    take_number(&text, 0, '\n', &negative) < 0 || positive > AFS_ACL_ENTRIES ||
	    negative > AFS_ACL_ENTRIES - positive)
		return -1;
	for (; acl->count < (unsigned)(positive + negative); acl->count++) {
		struct afs_acl_entry *entry = &acl->entry[acl->count];

		entry->negative = acl->count >= (unsigned)positive;
		if (take_acl_entry(&text, entry) < 0)
			return -1;
	}
	return 0;
}

/* Append to text; returns the new length, which is `size` or more if it did not fit. */
static size_t append_list(const struct afs_acl *acl, bool negative, char *text, size_t size,
			  size_t used)
{
	for (unsigned i = 0; i < acl->count && used < size; i++) {
		const struct afs_acl_entry *e = &acl->entry[i];

		if (e->negative == negative)
			used += (size_t)snprintf(text + used, size - used, "%s\t%d\n", e->name,
						 (int)e->rights);
	}
	return used;
}

int afs_acl_text(const struct afs_acl *acl, char *text, size_t size)
{
	unsigned negative = 0;
	size_t used;

	for (unsigned i = 0; i < acl->count; i++)
		negative += acl->entry[i].negative;
	used = (size_t)snprintf(text, size, "%u\n%u\n", acl->count - negative, negative);
	used = append_list(acl, false, text, size, used);
	used = append_list(acl, true, text, size, used);
	return used < size ? 0 : -1;
}

static bool good_name(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f)
			return false;
	return length > 0 && length < AFS_ACL_NAME;
}

int afs_acl_set(struct afs_acl *acl, const char *name, bool negative, uint32_t rights)
{
	unsigned at = 0;

	if (!good_name(name))
		return -1;
	while (at < acl->count &&
	       (acl->entry[at].negative != negative || strcmp(acl->entry[at].name, name) != 0))
		at++;
	if (rights == 0) {
		if (at < acl->count)
			memmove(&acl->entry[at], &acl->entry[at + 1],
				(--acl->count - at) * sizeof(acl->entry[0]));
		return 0;
	}
	if (at == AFS_ACL_ENTRIES)
		return -1;
	if (at == acl->count)
		acl->count++;
	strcpy(acl->entry[at].name, name);
	acl->entry[at].negative = negative;
	acl->entry[at].rights = rights;
	return 0;
}
