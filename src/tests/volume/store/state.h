/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the store: its whole state as a text, and operations on names. */
#ifndef TESTS_STORE_STATE_H
#define TESTS_STORE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "volume/store/store.h"

/* An administrator, who may do everything. */
extern const struct store_caller state_admin;

/*
 * Everything that users of the store can see: volumes, trees, status but the server's times, contents,
 * rights. To be freed. NULL: something failed; `why` (of STORE_MESSAGE_MAX bytes) says what.
 */
char *state_dump(struct store *store, char *why);

/* Walk a path of names separated by '/', "" for the root. 0 or a result of the store. */
int state_walk(struct store *store, uint32_t volume, const char *path, struct store_fid *fid);
/* Walk to the directory of a path; *name points to its last part. */
int state_parent(struct store *store, uint32_t volume, const char *path, struct store_fid *dir,
		 const char **name);
/* Operations as an administrator on paths; results of the store. Times and modes are fixed. */
int state_create(struct store *store, uint32_t volume, const char *path, enum store_kind kind,
		 const char *text);
/* `length` bytes that depend on `seed`, at `offset`; the file becomes `file_length` bytes or longer. */
int state_write(struct store *store, uint32_t volume, const char *path, uint64_t offset,
		uint64_t length, uint64_t file_length, uint32_t seed);
int state_remove(struct store *store, uint32_t volume, const char *path, enum store_kind kind);
int state_rename(struct store *store, uint32_t volume, const char *from, const char *to);
int state_link(struct store *store, uint32_t volume, const char *name, const char *existing);
int state_chmod(struct store *store, uint32_t volume, const char *path, uint32_t mode);
int state_acl(struct store *store, uint32_t volume, const char *path, int32_t id, uint32_t rights);
/* The bytes that state_write() writes. */
void state_bytes(uint8_t *data, uint64_t offset, uint64_t length, uint32_t seed);

#endif
