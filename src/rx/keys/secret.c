/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for keys and tokens: wiped when it is freed. */

#include "keys/secret.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
