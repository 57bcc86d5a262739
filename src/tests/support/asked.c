/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting requested bytes. Each pointer is in a table, since some memory is allocated or freed by other libraries. */
#include "tests/support/asked.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **p, size_t alignment, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **p, size_t alignment, size_t size);
void __wrap_free(void *p);

struct piece {
	struct piece *next;
	const void *address;
	size_t size;
};

/* The lock covers the table and the sum. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces[1 << 16];
static size_t sum;

static struct piece **find_list(const void *p)
{
	return &pieces[((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 48];
}

/* The bytes of `p` no longer count; 0 if they did not. */
static size_t forget_piece(const void *p)
{
	struct piece *found, **at;
	size_t size = 0;

	pthread_mutex_lock(&lock);
	for (at = find_list(p); *at && (*at)->address != p;)
		at = &(*at)->next;
	found = *at;
	if (found) {
		*at = found->next;
		size = found->size;
		sum -= size;
	}
	pthread_mutex_unlock(&lock);
	__real_free(found);
	return size;
}

static void *count_piece(void *p, size_t size)
{
	struct piece *piece;

	if (!p)
		return NULL;
	forget_piece(p); /* another library has freed it */
	piece = __real_malloc(sizeof(*piece));
	assert(piece);
	*piece = (struct piece){.address = p, .size = size};
	pthread_mutex_lock(&lock);
	piece->next = *find_list(p);
	*find_list(p) = piece;
	sum += size;
	pthread_mutex_unlock(&lock);
	return p;
}

void *__wrap_malloc(size_t size)
{
	return count_piece(__real_malloc(size), size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return count_piece(__real_calloc(n, size), n * size);
}

void *__wrap_realloc(void *p, size_t size)
{
	/* Before the memory is freed: another thread may get the same address at once. */
	size_t old = p ? forget_piece(p) : 0;
	void *q = __real_realloc(p, size);

	if (!q && size > 0 && p)
		count_piece(p, old);
	return count_piece(q, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return count_piece(__real_aligned_alloc(alignment, size), size);
}

int __wrap_posix_memalign(void **p, size_t alignment, size_t size)
{
	int rc = __real_posix_memalign(p, alignment, size);

	if (rc == 0)
		count_piece(*p, size);
	return rc;
}

void __wrap_free(void *p)
{
	if (p)
		forget_piece(p);
	__real_free(p);
}

size_t asked_bytes(void)
{
	size_t bytes;

	pthread_mutex_lock(&lock);
	bytes = sum;
	pthread_mutex_unlock(&lock);
	return bytes;
}
