/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the administration of a store: paths of objects that are known by number. */
#ifndef ADMIN_LOCATE_H
#define ADMIN_LOCATE_H

#include <stdio.h>

#include "admin/private.h"

struct locate_name {
	uint32_t vnode;
	const char *name; /* in the image of the directory */
};

/* A directory with its path and its names in the order of numbers. All zero: none. */
struct locate_directory {
	struct store_fid fid;
	char *path; /* "a/b"; of the root "" */
	char *image;
	struct locate_name *name;
	size_t count;
};

/* Read a directory in place of another one. 0, or a result, and *dir is none. */
int locate_directory(struct store *store, const struct store_fid *fid,
		     struct locate_directory *dir);
void locate_forget(struct locate_directory *dir);
/* The first name of an object; others follow it. NULL: it has none there. */
const struct locate_name *locate_find(const struct locate_directory *dir, uint32_t vnode);
/* mounts.c: whether clients take a link with this mode and text for a mount point. */
bool locate_is_mount(uint32_t mode, const char *text);
/* "VOLUME:/a/b/NAME", to be freed. dir NULL: the root itself, with the name "". NULL: no memory. */
char *locate_join(const struct store_volume *volume, const struct locate_directory *dir,
		  const char *name);

#endif
