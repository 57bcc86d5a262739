/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for keys and tokens: left out of core dumps, wiped when it is given back. */
#ifndef KEYS_SECRET_H
#define KEYS_SECRET_H

#include <stddef.h>

/*
 * size bytes of zeros, aligned to 64, that no core dump has (MADV_DONTDUMP). NULL: no memory. Any thread;
 * a few ten nanoseconds for up to 4 KiB, a system call above that. Not to be resized, and freed by
 * rxw_secret_free() alone, which wipes all of it; NULL is allowed there.
 */
void *rxw_secret_alloc(size_t size);
void rxw_secret_free(void *secret);

/* The pool itself: what the two stand for, but under the address sanitizer, which watches the heap. */
void *rxw_secret_pool_alloc(size_t size);
void rxw_secret_pool_free(void *secret);

#endif
