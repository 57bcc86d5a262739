/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a file system of this machine has no place for: owners, groups, modes and access lists, in a file at the top of an exported
 * tree. A line of JSON for each object:
 *   {"path": TEXT, "owner": N, "group": N, "mode": N, "acl": {"positive": [[ID, RIGHTS], ...], "negative": [...]}}
 * with the list for directories only.
 */
#ifndef ADMIN_ATTRIBUTES_H
#define ADMIN_ATTRIBUTES_H

#include <stdio.h>
#include <string.h>

#include "admin/private.h"

#define ADMIN_ATTRIBUTES     ".rxvol-attributes"
#define ADMIN_ATTRIBUTES_NEW ".rxvol-attributes.new" /* its name until it is complete */

/* Whether a path in an exported tree is that of rxvol's own file, which is not of the volume. */
static inline bool admin_is_attributes(const char *path)
{
	return !strcmp(path, ADMIN_ATTRIBUTES) || !strcmp(path, ADMIN_ATTRIBUTES_NEW);
}

/* A new file in the directory. NULL with errno. It gets its name when it is closed: 0 or -errno. */
FILE *admin_attributes_create(int directory);
int admin_attributes_close(FILE *file, int directory);
int admin_attributes_write(FILE *file, const char *path, const struct store_vnode *vnode);

/* The attributes of all objects, by path. */
struct admin_attributes;
struct admin_attribute {
	const char *path;
	int32_t owner;
	uint32_t group, mode;
	bool listed; /* it has an access list */
	struct store_acl acl;
};
/* Loads the attributes of the tree that is read; NULL unless the request has "attributes". 0, or 1 after an error. */
int admin_attributes_load(struct admin_run *run, struct admin_attributes **attributes);
void admin_attributes_free(struct admin_attributes *attributes); /* NULL is allowed */
bool admin_is_same_acl(const struct store_acl *a, const struct store_acl *b);
/* NULL: there is none. */
const struct admin_attribute *admin_attributes_find(const struct admin_attributes *attributes,
						    const char *path);

#endif
