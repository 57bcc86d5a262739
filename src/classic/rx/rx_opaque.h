/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of any length in allocated memory. Any thread, one at a time for a value. */
#ifndef RXWIRE_CLASSIC_OPAQUE_H
#define RXWIRE_CLASSIC_OPAQUE_H

#include <rx/rx_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rx_opaque {
	size_t len;
	void *val; /* malloc(); NULL if empty */
};
#define RX_EMPTY_OPAQUE \
	{               \
		0, NULL \
	}

/* The result of rx_opaque_stringify(). */
struct rx_opaque_stringbuf {
	char sbuf[100];
};

/* A copy of `length` bytes; NULL: no memory. Free it with rx_opaque_free(). */
extern struct rx_opaque *rx_opaque_new(void *data, size_t length);
/*
 * Room for `length` zeros, a copy of `length` bytes, a copy of another value; nothing for 0 bytes
 * of the last two. The old contents are not freed. 0, or ENOMEM.
 */
extern int rx_opaque_alloc(struct rx_opaque *opaque, size_t length);
extern int rx_opaque_populate(struct rx_opaque *to, const void *data, size_t length);
extern int rx_opaque_copy(struct rx_opaque *to, const struct rx_opaque *from);
/* Free the bytes, or all of it, and set the pointer to NULL; after wiping them. */
extern void rx_opaque_freeContents(struct rx_opaque *opaque);
extern void rx_opaque_zeroFreeContents(struct rx_opaque *opaque);
extern void rx_opaque_free(struct rx_opaque **opaque);
extern void rx_opaque_zeroFree(struct rx_opaque **opaque);
/* -1, 0, 1: by bytes, then by length. */
extern int rx_opaque_cmp(const struct rx_opaque *a, const struct rx_opaque *b);
/* "LENGTH:" and the first bytes in hexadecimal, for logs. */
extern char *rx_opaque_stringify(const struct rx_opaque *opaque, struct rx_opaque_stringbuf *text);

#ifdef __cplusplus
}
#endif
#endif
