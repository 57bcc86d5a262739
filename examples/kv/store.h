/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of a server in memory. Every function may be called by any thread. */
#ifndef STORE_H
#define STORE_H

#include <stddef.h>
#include <stdint.h>

#include "kv.h"

struct store;

/* Bytes that are shared by the store and those who are sending them; they never change. */
struct value {
	unsigned users; /* guarded by the lock of the store */
	size_t size;
	char *bytes;
};

/* A store for at most `limit` bytes of keys and values; NULL without memory. */
struct store *store_create(uint64_t limit);
/* Nobody may use it or one of its values any more. */
void store_destroy(struct store *store);

/*
 * These return 0 or a KV_… code, and fill *entry (its key is to be freed) where there is one.
 * store_put() takes over `bytes`, from malloc() or NULL, whatever it returns.
 */
int32_t store_put(struct store *store, const char *key, kv_how how, char *bytes, size_t size,
		  kv_entry *entry);
/* *value is to be given back. */
int32_t store_get(struct store *store, const char *key, struct value **value, kv_entry *entry);
void store_give_back(struct store *store, struct value *value);
int32_t store_stat(struct store *store, const char *key, kv_entry *entry);
int32_t store_remove(struct store *store, const char *key);
/* At most KV_PAGE entries behind `after`, allocated. */
int32_t store_list(struct store *store, const char *after, kv_entries *entries);

#endif
