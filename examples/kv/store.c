/* SPDX-License-Identifier: BSD-2-Clause */
/* A sorted table of named values. Its lock is never held during network I/O. */
#include <pthread.h>

#include "store.h"

struct item {
	char *key;
	uint32_t version;
	struct value *value;
};

/* Invariant: items are sorted by key; used is the total length of keys and values. */
struct store {
	pthread_mutex_t lock;
	struct item *items;
	size_t count, room;
	uint64_t used, limit;
};

struct store *store_create(uint64_t limit)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	pthread_mutex_init(&store->lock, NULL);
	store->limit = limit;
	return store;
}

/* Lock held, or no other thread knows the value. */
static void drop(struct value *value)
{
	if (--value->users)
		return;
	free(value->bytes);
	free(value);
}

void store_destroy(struct store *store)
{
	for (size_t i = 0; i < store->count; i++) {
		free(store->items[i].key);
		drop(store->items[i].value);
	}
	free(store->items);
	pthread_mutex_destroy(&store->lock);
	free(store);
}

/* Index of the first item whose key is not less than `key`; *found: it is equal. */
static size_t find(const struct store *store, const char *key, bool *found)
{
	size_t low = 0, high = store->count;

	*found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(store->items[middle].key, key);

		if (!order)
			*found = true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int32_t describe(const struct item *item, kv_entry *entry)
{
	entry->key = strdup(item->key);
	entry->size = item->value->size;
	entry->version = item->version;
	return entry->key ? 0 : KV_FULL;
}

/* Inserts an item at `at`, without a value. Returns false if there is no memory. */
static bool insert(struct store *store, size_t at, const char *key)
{
	struct item item = {.key = strdup(key)};

	if (item.key && store->count == store->room) {
		size_t room = store->room ? 2 * store->room : 64;
		struct item *more = reallocarray(store->items, room, sizeof(*more));

		if (more) {
			store->items = more;
			store->room = room;
		}
	}
	if (!item.key || store->count == store->room) {
		free(item.key);
		return false;
	}
	memmove(&store->items[at + 1], &store->items[at],
		(store->count - at) * sizeof(*store->items));
	store->items[at] = item;
	store->count++;
	store->used += strlen(key);
	return true;
}

/* Lock held. Takes ownership of `value` if it returns 0. */
static int32_t put(struct store *store, const char *key, kv_how how, struct value *value,
		   kv_entry *entry)
{
	bool found;
	size_t at = find(store, key, &found);
	uint64_t old = found ? store->items[at].value->size : 0;
	uint64_t more = value->size + (found ? 0 : strlen(key));

	if (found && how == KV_CREATE)
		return KV_EXISTS;
	if (!found && how == KV_REPLACE)
		return KV_NOTFOUND;
	if (more > store->limit || store->used - old > store->limit - more)
		return KV_FULL;
	if (!found && !insert(store, at, key))
		return KV_FULL;
	if (found)
		drop(store->items[at].value);
	store->items[at].value = value;
	entry->version = ++store->items[at].version;
	store->used = store->used - old + value->size;
	return 0;
}

int32_t store_put(struct store *store, const char *key, kv_how how, char *bytes, size_t size,
		  kv_entry *entry)
{
	struct value *value = malloc(sizeof(*value));
	int32_t code = KV_FULL;

	entry->key = strdup(key);
	entry->size = size;
	if (value && entry->key) {
		*value = (struct value){.users = 1, .size = size, .bytes = bytes};
		pthread_mutex_lock(&store->lock);
		code = put(store, key, how, value, entry);
		pthread_mutex_unlock(&store->lock);
	}
	if (code) {
		free(value);
		free(bytes);
	}
	return code;
}

int32_t store_get(struct store *store, const char *key, struct value **value, kv_entry *entry)
{
	int32_t code = KV_NOTFOUND;
	bool found;
	size_t at;

	pthread_mutex_lock(&store->lock);
	at = find(store, key, &found);
	if (found)
		code = describe(&store->items[at], entry);
	if (!code) {
		*value = store->items[at].value;
		(*value)->users++;
	}
	pthread_mutex_unlock(&store->lock);
	return code;
}

void store_give_back(struct store *store, struct value *value)
{
	pthread_mutex_lock(&store->lock);
	drop(value);
	pthread_mutex_unlock(&store->lock);
}

int32_t store_stat(struct store *store, const char *key, kv_entry *entry)
{
	int32_t code = KV_NOTFOUND;
	bool found;
	size_t at;

	pthread_mutex_lock(&store->lock);
	at = find(store, key, &found);
	if (found)
		code = describe(&store->items[at], entry);
	pthread_mutex_unlock(&store->lock);
	return code;
}

int32_t store_remove(struct store *store, const char *key)
{
	bool found;
	size_t at;

	pthread_mutex_lock(&store->lock);
	at = find(store, key, &found);
	if (found) {
		store->used -= strlen(key) + store->items[at].value->size;
		free(store->items[at].key);
		drop(store->items[at].value);
		store->count--;
		memmove(&store->items[at], &store->items[at + 1],
			(store->count - at) * sizeof(*store->items));
	}
	pthread_mutex_unlock(&store->lock);
	return found ? 0 : KV_NOTFOUND;
}

int32_t store_list(struct store *store, const char *after, kv_entries *entries)
{
	int32_t code = 0;
	bool found;
	size_t at;

	entries->val = calloc(KV_PAGE, sizeof(*entries->val));
	if (!entries->val)
		return KV_FULL;
	pthread_mutex_lock(&store->lock);
	for (at = find(store, after, &found) + found; at < store->count && !code; at++) {
		if (entries->len == KV_PAGE)
			break;
		code = describe(&store->items[at], &entries->val[entries->len]);
		if (!code)
			entries->len++;
	}
	pthread_mutex_unlock(&store->lock);
	return code;
}
