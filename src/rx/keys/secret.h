/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for keys and tokens: wiped when it is freed. */
#ifndef KEYS_SECRET_H
#define KEYS_SECRET_H

#include <stddef.h>

/*
 * `size` bytes of zeros on the heap, aligned to 64. NULL: no memory. Must not be resized. Freed
 * only by rxw_secret_free(), which wipes it; NULL is allowed there. Any thread.
 */
void *rxw_secret_alloc(size_t size);
void rxw_secret_free(void *secret);

/*
 * A separate mapping of at least `size` zero bytes that is excluded from core dumps
 * (MADV_DONTDUMP), for the long-lived table of service keys. NULL: no memory. Unmapped by
 * rxw_secret_unmap() with the same size, which wipes it; NULL is allowed there. Any thread.
 */
void *rxw_secret_map(size_t size);
void rxw_secret_unmap(void *secret, size_t size);

#endif
