/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of service keys, and memory for secrets: wiped when it is freed. */
#include <rxwire/error.h>

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "common/sized.h"
#include "keys/keys.h"

#define ALIGNMENT 64

void *rxw_secret_alloc(size_t size)
{
	void *memory = NULL;

	if (size > SIZE_MAX / 2 || posix_memalign(&memory, ALIGNMENT, size ? size : 1) != 0)
		return NULL;
	return memset(memory, 0, size);
}

void rxw_secret_free(void *secret)
{
	if (!secret)
		return;
	explicit_bzero(secret, malloc_usable_size(secret));
	free(secret);
}

void *rxw_secret_map(size_t size)
{
	void *memory;

	if (size == 0 || size > SIZE_MAX / 2)
		return NULL;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	/* Fails on a kernel without it; no other way excludes memory from core dumps. */
	madvise(memory, size, MADV_DONTDUMP);
	return memory;
}

void rxw_secret_unmap(void *secret, size_t size)
{
	if (!secret)
		return;
	explicit_bzero(secret, size);
	munmap(secret, size);
}

/* Key length of an enctype, 0 if unknown. */
static size_t key_length(int32_t enctype)
{
	switch (enctype) {
	case 1:
	case 2:
	case 3:
		return 8;
	case 5:
	case 7:
	case 16:
		return 24;
	case 17:
	case 19:
	case 23:
	case 25:
		return 16;
	case 18:
	case 20:
	case 26:
		return 32;
	default:
		return 0;
	}
}

/* Preference of an enctype for new tokens; higher is better, 0: not usable. */
static int enctype_strength(int32_t enctype)
{
	static const int8_t weakest_first[] = {23, 16, 25, 17, 19, 26, 18, 20};

	for (size_t i = 0; i < sizeof(weakest_first); i++) {
		if (weakest_first[i] == enctype)
			return (int)i + 1;
	}
	return 0;
}

int rxw_key_check(enum rxw_key_type type, int32_t kvno, int32_t enctype, size_t length)
{
	size_t want;

	if (kvno < 0 || length == 0 || length > RXW_KEY_MAX)
		return -RXW_EINVAL;
	switch (type) {
	case RXW_KEY_DES:
		return length == 8 ? 0 : -RXW_EINVAL;
	case RXW_KEY_RXGK:
	case RXW_KEY_KRB5:
		want = key_length(enctype);
		return enctype > 0 && (want == 0 || want == length) ? 0 : -RXW_EINVAL;
	}
	return -RXW_EINVAL;
}

int rxw_key_list_append(struct rxw_key_list *list, const struct rxw_key *key)
{
	struct rxw_key *keys;
	size_t room;

	if (list->count == RXW_KEYS_MAX)
		return -RXW_ELIMIT;
	if (list->count == list->room) {
		room = list->room ? 2 * list->room : 16;
		keys = rxw_secret_map(room * sizeof(*keys));
		if (!keys)
			return -RXW_ENOMEM;
		if (list->count)
			memcpy(keys, list->keys, list->count * sizeof(*keys));
		rxw_secret_unmap(list->keys, list->room * sizeof(*keys));
		list->keys = keys;
		list->room = room;
	}
	list->keys[list->count++] = *key;
	return 0;
}

void rxw_key_list_free(struct rxw_key_list *list)
{
	rxw_secret_unmap(list->keys, list->room * sizeof(*list->keys));
	*list = (struct rxw_key_list){0};
}

struct rxw_key *rxw_key_list_find(const struct rxw_key_list *list, enum rxw_key_type type,
				  int32_t kvno, int32_t enctype)
{
	for (size_t i = 0; i < list->count; i++) {
		struct rxw_key *key = &list->keys[i];

		if (key->type == type && key->kvno == kvno &&
		    (type == RXW_KEY_DES || key->enctype == enctype))
			return key;
	}
	return NULL;
}

int rxw_keys_create(rxw_keys **keys)
{
	pthread_rwlockattr_t kind;
	rxw_keys *made;
	int failed;

	if (!keys)
		return -RXW_EINVAL;
	*keys = NULL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -RXW_ENOMEM;
	/* Prefer writers, if supported, so that loading is not delayed by a stream of readers. */
	pthread_rwlockattr_init(&kind);
#ifdef HAVE_PTHREAD_RWLOCKATTR_SETKIND_NP
	pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
	failed = pthread_rwlock_init(&made->lock, &kind);
	pthread_rwlockattr_destroy(&kind);
	if (failed) {
		free(made);
		return -RXW_ENOMEM;
	}
	pthread_mutex_init(&made->loading, NULL);
	atomic_init(&made->references, 1);
	*keys = made;
	return 0;
}

rxw_keys *rxw_keys_ref(rxw_keys *keys)
{
	if (keys)
		atomic_fetch_add_explicit(&keys->references, 1, memory_order_relaxed);
	return keys;
}

void rxw_key_source_free(struct rxw_key_source *source)
{
	free(source->which);
	free(source);
}

static void free_sources(struct rxw_keys *keys)
{
	struct rxw_key_source *source;

	while ((source = keys->sources)) {
		keys->sources = source->next;
		rxw_key_source_free(source);
	}
}

void rxw_keys_unref(rxw_keys *keys)
{
	if (!keys || atomic_fetch_sub_explicit(&keys->references, 1, memory_order_acq_rel) > 1)
		return;
	rxw_key_list_free(&keys->list);
	free_sources(keys);
	pthread_mutex_destroy(&keys->loading);
	pthread_rwlock_destroy(&keys->lock);
	free(keys);
}

/* Under the lock: insert the key before those of files. */
static int insert_added(struct rxw_key_list *list, const struct rxw_key *key)
{
	struct rxw_key *same = rxw_key_list_find(list, key->type, key->kvno, key->enctype);
	size_t at = 0;
	int result;

	if (same && same->source == 0) {
		*same = *key;
		return 0;
	}
	result = rxw_key_list_append(list, key);
	if (result < 0)
		return result;
	while (at < list->count - 1 && list->keys[at].source == 0)
		at++;
	memmove(&list->keys[at + 1], &list->keys[at], (list->count - 1 - at) * sizeof(*key));
	list->keys[at] = *key;
	return 0;
}

__attribute__((cold)) int rxw_keys_add(rxw_keys *keys, enum rxw_key_type type, int32_t kvno,
				       int32_t enctype, const void *key, size_t length)
{
	struct rxw_key new = {.type = type, .kvno = kvno, .enctype = enctype};
	int result = keys && key ? rxw_key_check(type, kvno, enctype, length) : -RXW_EINVAL;

	if (result < 0)
		return result;
	if (type == RXW_KEY_DES)
		new.enctype = 0;
	new.length = (uint32_t)length;
	memcpy(new.bytes, key, length);
	pthread_rwlock_wrlock(&keys->lock);
	result = insert_added(&keys->list, &new);
	pthread_rwlock_unlock(&keys->lock);
	explicit_bzero(&new, sizeof(new));
	return result;
}

int rxw_keys_generate(rxw_keys *keys, enum rxw_key_type type, int32_t kvno, int32_t enctype)
{
	uint8_t bytes[RXW_KEY_MAX];
	size_t length = key_length(enctype);
	int result;

	/* Only enctypes for which every string of bytes is a key. */
	if (!keys || type == RXW_KEY_DES || enctype < 17 || enctype > 20)
		return -RXW_EINVAL;
	if (rxw_random(bytes, length) < 0)
		return -RXW_ESYS;
	result = rxw_keys_add(keys, type, kvno, enctype, bytes, length);
	explicit_bzero(bytes, sizeof(bytes));
	return result;
}

/* Copy a key to the caller, if it was found and fits. */
static int copy_found(const struct rxw_key *found, void *key, size_t room, size_t *length)
{
	if (!found)
		return -RXW_ENOKEY;
	if (found->length > room)
		return -RXW_ELIMIT;
	memcpy(key, found->bytes, found->length);
	*length = found->length;
	return 0;
}

int rxw_keys_find(rxw_keys *keys, enum rxw_key_type type, int32_t kvno, int32_t enctype, void *key,
		  size_t room, size_t *length)
{
	int result;

	if (!keys || !key || !length)
		return -RXW_EINVAL;
	pthread_rwlock_rdlock(&keys->lock);
	result = copy_found(rxw_key_list_find(&keys->list, type, kvno, enctype), key, room, length);
	pthread_rwlock_unlock(&keys->lock);
	return result;
}

static bool is_better_key(const struct rxw_key *key, const struct rxw_key *than)
{
	if (!than || key->kvno != than->kvno)
		return !than || key->kvno > than->kvno;
	return enctype_strength(key->enctype) > enctype_strength(than->enctype);
}

int rxw_keys_best(rxw_keys *keys, enum rxw_key_type type, int32_t *kvno, int32_t *enctype,
		  void *key, size_t room, size_t *length)
{
	const struct rxw_key *best = NULL;
	int result;

	if (!keys || !key || !length)
		return -RXW_EINVAL;
	pthread_rwlock_rdlock(&keys->lock);
	for (size_t i = 0; i < keys->list.count; i++) {
		if (keys->list.keys[i].type == type && is_better_key(&keys->list.keys[i], best))
			best = &keys->list.keys[i];
	}
	result = copy_found(best, key, room, length);
	if (result)
		goto out;
	if (kvno)
		*kvno = best->kvno;
	if (enctype)
		*enctype = best->enctype;
out:
	pthread_rwlock_unlock(&keys->lock);
	return result;
}

__attribute__((cold)) int rxw_keys_info(rxw_keys *keys, size_t index, struct rxw_key_info *info)
{
	struct rxw_key_info all = {.size = sizeof(all)};
	const struct rxw_key *key;
	int result = -RXW_ENOKEY;

	if (!keys || !sized_valid(info))
		return -RXW_EINVAL;
	pthread_rwlock_rdlock(&keys->lock);
	if (index < keys->list.count) {
		key = &keys->list.keys[index];
		all.type = key->type;
		all.kvno = key->kvno;
		all.enctype = key->enctype;
		all.length = key->length;
		sized_write(info, &all, sizeof(all));
		result = 0;
	}
	pthread_rwlock_unlock(&keys->lock);
	return result;
}
