/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of one directory: an image as the server has it, checked, with an index. The caller locks. */
#ifndef CLIENT_CACHE_NAMES_H
#define CLIENT_CACHE_NAMES_H

#include <rxafs/types.h>

#define CL_NAME_MAX 255

struct cl_names;

struct cl_entry {
	uint32_t vnode, unique;
	uint64_t next; /* offset for the entry that follows */
	uint16_t length;
	char name[CL_NAME_MAX + 1]; /* with a NUL */
};

/*
 * Check an image and index it. NULL and *fault, a few words, if it is damaged (K-069); NULL and *fault NULL if there is no memory. The image
 * is copied. `key` is that of the index: secret, since other users choose the names.
 */
struct cl_names *cl_names_parse(const uint8_t *image, size_t length, const uint64_t key[2],
				const char **fault);
/* "." and ".." only. NULL: no memory. */
struct cl_names *cl_names_new(uint32_t vnode, uint32_t unique, uint32_t parent_vnode,
			      uint32_t parent_unique, const uint64_t key[2]);
void cl_names_free(struct cl_names *names);

bool cl_names_find(const struct cl_names *names, const char *name, size_t length, uint32_t *vnode,
		   uint32_t *unique);
/* Where a name is: an offset for cl_names_next(), which gives its entry. 0: there is no such name. */
uint64_t cl_names_place(const struct cl_names *names, const char *name, size_t length);
/* The first entry at or after an offset. False: there is none. */
bool cl_names_next(const struct cl_names *names, uint64_t offset, struct cl_entry *entry);
uint32_t cl_names_count(const struct cl_names *names);
/* Memory in bytes. */
size_t cl_names_size(const struct cl_names *names);

/* False: there is no such name. */
bool cl_names_remove(struct cl_names *names, const char *name, size_t length);
/* Replaces a present entry of that name in its place. False: no memory, no room, or no name of AFS; the names must be dropped. */
bool cl_names_add(struct cl_names *names, const char *name, size_t length, uint32_t vnode,
		  uint32_t unique);

#endif
