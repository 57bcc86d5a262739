/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users as plain data, in any security class. Any thread, one at a time for a value. A process that
 * has no memory for a name ends.
 */
#ifndef RXWIRE_CLASSIC_IDENTITY_H
#define RXWIRE_CLASSIC_IDENTITY_H

#include <rx/rx_opaque.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rx_identity_kind {
	RX_ID_SUPERUSER = -1, /* without a name */
	RX_ID_KRB4 = 0,	      /* "name.instance@CELL" */
	RX_ID_GSS = 1	      /* an exported name of GSS-API */
} rx_identity_kind;

struct rx_identity {
	rx_identity_kind kind;
	char *displayName; /* for people; malloc(), or NULL */
	struct rx_opaque exportedName;
};

/* A new one with copies of the arguments, or of another's. Free it with rx_identity_free(). */
extern struct rx_identity *rx_identity_new(rx_identity_kind kind, char *displayName, void *name,
					   size_t length);
extern struct rx_identity *rx_identity_copy(struct rx_identity *from);
/* The same into a structure of the program, whose old contents are not freed. */
extern void rx_identity_populate(struct rx_identity *identity, rx_identity_kind kind,
				 char *displayName, void *name, size_t length);
extern void rx_identity_copyContents(struct rx_identity *to, struct rx_identity *from);
/* 1: kind and exported name are the same; 0. */
extern int rx_identity_match(struct rx_identity *a, struct rx_identity *b);
/* Free what it refers to, or all of it, and set the pointer to NULL. */
extern void rx_identity_freeContents(struct rx_identity *identity);
extern void rx_identity_free(struct rx_identity **identity);

#ifdef __cplusplus
}
#endif
#endif
