/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for keys and tokens: left out of core dumps, wiped when it is given back. */

#include "keys/secret.h"

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Pieces of one size share a slab of 64 KiB that begins at a multiple of its size, so that a piece leads to
 * its slab. A piece above 4 KiB has a slab of its own, as long as it needs.
 */
#define SLAB	  ((size_t)64 << 10)
#define ALIGNMENT 64
#define SMALLEST  64
#define CLASSES	  7 /* 64, 128, ... 4096 */
#define KEPT	  1 /* empty slabs that a class keeps */

struct piece {
	struct piece *next;
};

/* At the beginning of a slab; the pieces follow at the next multiple of 64. */
struct slab {
	struct slab *next, *previous; /* of the class, those with a free piece only */
	struct piece *free;
	size_t length; /* of the mapping */
	size_t piece;  /* bytes */
	unsigned used, pieces;
	int class; /* -1: one piece of its own */
};
#define HEAD ((sizeof(struct slab) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

/* Slabs of each size that have a free piece; empty counts those that have nothing else. */
static struct {
	pthread_mutex_t lock;
	struct slab *some[CLASSES];
	unsigned empty[CLASSES];
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A mapping that begins at a multiple of 64 KiB and that no core dump has. */
static struct slab *map_slab(size_t length)
{
	struct slab *slab;
	uintptr_t start, at;
	void *memory;

	length = (length + 4095) & ~(size_t)4095;
	memory = mmap(NULL, length + SLAB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	start = (uintptr_t)memory;
	at = (start + SLAB - 1) & ~(uintptr_t)(SLAB - 1);
	if (at > start)
		munmap(memory, at - start);
	if (start + SLAB > at)
		munmap((void *)(at + length), start + SLAB - at);
	slab = (struct slab *)at;
	/* A kernel without it would have no core dump filter either: nothing better can be done. */
	madvise(slab, length, MADV_DONTDUMP);
	slab->length = length;
	return slab;
}

static void link_slab(struct slab *slab)
{
	slab->previous = NULL;
	slab->next = pool.some[slab->class];
	if (slab->next)
		slab->next->previous = slab;
	pool.some[slab->class] = slab;
}

static void unlink_slab(struct slab *slab)
{
	if (slab->previous)
		slab->previous->next = slab->next;
	else
		pool.some[slab->class] = slab->next;
	if (slab->next)
		slab->next->previous = slab->previous;
}

static struct slab *new_slab(int class)
{
	struct slab *slab = map_slab(SLAB);
	uint8_t *at;

	if (!slab)
		return NULL;
	slab->class = class;
	slab->piece = (size_t)SMALLEST << class;
	slab->pieces = (unsigned)((SLAB - HEAD) / slab->piece);
	for (unsigned i = slab->pieces; i-- > 0;) {
		at = (uint8_t *)slab + HEAD + i * slab->piece;
		((struct piece *)at)->next = slab->free;
		slab->free = (struct piece *)at;
	}
	return slab;
}

static void *alloc_own(size_t size)
{
	struct slab *slab;

	if (size > SIZE_MAX / 2)
		return NULL;
	slab = map_slab(HEAD + size);
	if (!slab)
		return NULL;
	slab->class = -1;
	slab->piece = size;
	return (uint8_t *)slab + HEAD;
}

void *rxw_secret_pool_alloc(size_t size)
{
	struct slab *slab;
	struct piece *piece;
	int class = 0;

	while (class < CLASSES && ((size_t)SMALLEST << class) < size)
		class++;
	if (class == CLASSES)
		return alloc_own(size);
	pthread_mutex_lock(&pool.lock);
	slab = pool.some[class];
	if (!slab) {
		slab = new_slab(class);
		if (!slab) {
			pthread_mutex_unlock(&pool.lock);
			return NULL;
		}
		link_slab(slab);
		pool.empty[class]++;
	}
	piece = slab->free;
	slab->free = piece->next;
	if (slab->used++ == 0)
		pool.empty[class]--;
	if (!slab->free)
		unlink_slab(slab);
	pthread_mutex_unlock(&pool.lock);
	piece->next = NULL; /* all else is zero since it was mapped or wiped */
	return piece;
}

void rxw_secret_pool_free(void *secret)
{
	struct slab *slab = (struct slab *)((uintptr_t)secret & ~(uintptr_t)(SLAB - 1));
	struct piece *piece = secret;
	bool unmap = false;

	explicit_bzero(secret, slab->piece);
	if (slab->class < 0) {
		munmap(slab, slab->length);
		return;
	}
	pthread_mutex_lock(&pool.lock);
	if (!slab->free)
		link_slab(slab);
	piece->next = slab->free;
	slab->free = piece;
	if (--slab->used == 0) {
		if (pool.empty[slab->class] >= KEPT) {
			unlink_slab(slab);
			unmap = true;
		} else {
			pool.empty[slab->class]++;
		}
	}
	pthread_mutex_unlock(&pool.lock);
	if (unmap)
		munmap(slab, slab->length);
}

#ifdef __SANITIZE_ADDRESS__
#define CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKED 1
#endif
#endif

#ifdef CHECKED
/* What the sanitizer is to watch must be its own: it then sees leaks, overruns and use after free. */
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
#else
void *rxw_secret_alloc(size_t size)
{
	return rxw_secret_pool_alloc(size);
}

void rxw_secret_free(void *secret)
{
	if (secret)
		rxw_secret_pool_free(secret);
}
#endif
