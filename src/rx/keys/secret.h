/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for keys and tokens: wiped when it is freed. */
#ifndef KEYS_SECRET_H
#define KEYS_SECRET_H

#include <stddef.h>

/*
 * `size` bytes of zeros on the heap, aligned to 64. NULL: no memory. Not to be resized. Freed by
 * rxw_secret_free() alone, which wipes all of it; NULL is allowed there. Any thread.
 */
void *rxw_secret_alloc(size_t size);
void rxw_secret_free(void *secret);

/*
 * A mapping of its own, of at least `size` bytes of zeros, which is excluded from core dumps
 * (MADV_DONTDUMP): for the table of service keys, which lives as long as the server. NULL: no memory.
 * Unmapped by rxw_secret_unmap() with the same size, which wipes it; NULL is allowed there. Any thread.
 */
void *rxw_secret_map(size_t size);
void rxw_secret_unmap(void *secret, size_t size);

#endif
