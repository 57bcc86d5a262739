/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages of a directory as clients fetch them (afs-fileserver 6): versions that share pages.
 * A version that was published never changes. One thread edits a version; any number reads it.
 */
#ifndef STORE_PAGES_H
#define STORE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STORE_PAGE	2048
#define STORE_PAGES_MAX 1023

struct store_pages;

/* A new directory with "." and "..". NULL: no memory. */
struct store_pages *store_pages_new(uint32_t vnode, uint32_t unique, uint32_t parent,
				    uint32_t parent_unique);
/* From `count` pages of storage, which are checked completely: -EBADMSG if they are damaged. */
int store_pages_load(uint8_t (*page)[STORE_PAGE], unsigned count, struct store_pages **pages);
/* All pages count as changed: for pages that are not in the database yet. Before others see the version. */
void store_pages_mark(struct store_pages *pages);
/* A version to edit, which shares all pages with `pages`. NULL: no memory. */
struct store_pages *store_pages_fork(const struct store_pages *pages);
struct store_pages *store_pages_ref(struct store_pages *pages);
void store_pages_unref(struct store_pages *pages);

unsigned store_pages_count(const struct store_pages *pages);
/* "." and ".." included. */
uint32_t store_pages_entries(const struct store_pages *pages);
/* Bytes of memory, for limits: shared pages are charged to every version. */
size_t store_pages_memory(const struct store_pages *pages);
const uint8_t *store_pages_page(const struct store_pages *pages, unsigned page);
/* Whether a page was changed or added since the version was forked. */
bool store_pages_changed(const struct store_pages *pages, unsigned page);

/* Names have 1..255 bytes without NUL and '/'. 0 or -ENOENT. */
int store_pages_find(const struct store_pages *pages, const char *name, uint32_t *vnode,
		     uint32_t *unique);
/* -EEXIST, -EFBIG (no room for more), -ENOMEM. The placement is that of OpenAFS. */
int store_pages_add(struct store_pages *pages, const char *name, uint32_t vnode, uint32_t unique);
/* The freed slots are zeroed. -ENOENT, -ENOMEM. */
int store_pages_remove(struct store_pages *pages, const char *name);
/* Whether `name` would have room in the page of `gone` without that. False if there is no such name. */
bool store_pages_fits_after(const struct store_pages *pages, const char *gone, const char *name);
/* Change what a name (also "..") refers to. -ENOENT, -ENOMEM. */
int store_pages_set(struct store_pages *pages, const char *name, uint32_t vnode, uint32_t unique);
/* Entries in the order of their slots. *cursor starts at 0. Returns 1, or 0 at the end. */
int store_pages_next(const struct store_pages *pages, uint32_t *cursor, const char **name,
		     uint32_t *vnode, uint32_t *unique);
/*
 * Entries of one page of a damaged directory, without its other pages. `number`: of the page; *slot starts at 0. False at
 * the end.
 */
bool store_page_next(const uint8_t page[STORE_PAGE], unsigned number, unsigned *slot,
		     const char **name, uint32_t *vnode, uint32_t *unique);

#endif
