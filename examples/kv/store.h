/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of a server, in memory. Any thread may call these functions. */
#ifndef STORE_H
#define STORE_H

#include <stddef.h>
#include <stdint.h>

#include "kv.h"

struct store;

/* Bytes shared by the store and by threads that send them. They never change. */
struct value {
	unsigned users; /* guarded by the lock of the store */
	size_t size;
	char *bytes;
};

/* A store for at most `limit` bytes of keys and values. NULL: no memory. */
struct store *store_create(uint64_t limit);
/* No thread may be using the store or its values. */
void store_destroy(struct store *store);

/*
 * These functions return 0 or a KV_… code. On success they fill *entry, if there is one; the
 * caller frees its key. store_put() always takes ownership of `bytes` (from malloc(), or NULL).
 */
int32_t store_put(struct store *store, const char *key, kv_how how, char *bytes, size_t size,
		  kv_entry *entry);
/* The caller returns *value with store_give_back(). */
int32_t store_get(struct store *store, const char *key, struct value **value, kv_entry *entry);
void store_give_back(struct store *store, struct value *value);
int32_t store_stat(struct store *store, const char *key, kv_entry *entry);
int32_t store_remove(struct store *store, const char *key);
/* Allocates at most KV_PAGE entries after the key `after`. */
int32_t store_list(struct store *store, const char *after, kv_entries *entries);

#endif
