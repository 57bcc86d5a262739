/* SPDX-License-Identifier: BSD-2-Clause */
/* The coders and kinds of streams. Included by xdr.h. Any thread, one at a time for a stream. */
#ifndef RXWIRE_CLASSIC_XDR_PROTOTYPES_H
#define RXWIRE_CLASSIC_XDR_PROTOTYPES_H

#include <rx/xdr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rx_call;
struct afs_time64;

/* -- Streams -------------------------------------------------------------------------------------- */

/*
 * The data of a call. Nothing is read beyond what a coder needs, so that the program can go on with
 * rx_Read() and rx_Write(). There are no positions, and nothing in place.
 */
extern void xdrrx_create(XDR *xdrs, struct rx_call *call, enum xdr_op op);
/* `size` bytes of memory of the program, at most 2 GiB. */
extern void xdrmem_create(XDR *xdrs, caddr_t memory, u_int size, enum xdr_op op);
/* Counts what is encoded: xdr_getpos(). */
extern void xdrlen_create(XDR *xdrs);

/* -- Numbers: a word each, 64 bits two ----------------------------------------------------------- */

extern bool_t xdr_afs_int32(XDR *xdrs, afs_int32 *value);
extern bool_t xdr_afs_uint32(XDR *xdrs, afs_uint32 *value);
extern bool_t xdr_int64(XDR *xdrs, afs_int64 *value);
extern bool_t xdr_afs_int64(XDR *xdrs, afs_int64 *value);
extern bool_t xdr_uint64(XDR *xdrs, afs_uint64 *value);
extern bool_t xdr_afs_uint64(XDR *xdrs, afs_uint64 *value);

#ifndef XDR_AFS_DECLS_ONLY

extern bool_t xdr_void(void);
extern bool_t xdr_int(XDR *xdrs, int *value);
extern bool_t xdr_u_int(XDR *xdrs, u_int *value);
/* The low 32 bits; decoding extends them by the sign, or by 0. */
extern bool_t xdr_long(XDR *xdrs, long *value);
extern bool_t xdr_u_long(XDR *xdrs, u_long *value);
extern bool_t xdr_short(XDR *xdrs, short *value);
extern bool_t xdr_u_short(XDR *xdrs, u_short *value);
extern bool_t xdr_char(XDR *xdrs, char *value); /* signed */
extern bool_t xdr_u_char(XDR *xdrs, u_char *value);
extern bool_t xdr_bool(XDR *xdrs, bool_t *value); /* each word but 0 is TRUE */
extern bool_t xdr_enum(XDR *xdrs, enum_t *value);
/* IEEE 754, 4 and 8 bytes. */
extern bool_t xdr_float(XDR *xdrs, float *value);
extern bool_t xdr_double(XDR *xdrs, double *value);
extern bool_t xdr_afs_time64(XDR *xdrs, struct afs_time64 *value);

/* -- Bytes and strings ---------------------------------------------------------------------------- */

/* Exactly `count` bytes, and padding to whole words. */
extern bool_t xdr_opaque(XDR *xdrs, caddr_t bytes, u_int count);
/*
 * Counted bytes, at most `most`. Decoding: with *bytes NULL they are allocated, also for 0 bytes;
 * otherwise *bytes has room for *count, and more is a failure. Memory is allocated as data arrives,
 * not for the announced length. A failure leaves *bytes as it was.
 */
extern bool_t xdr_bytes(XDR *xdrs, char **bytes, u_int *count, u_int most);
/*
 * A string, at most `most` bytes without its NUL. Decoding: *text must be NULL; a NUL within is a
 * failure, and *text stays NULL.
 */
extern bool_t xdr_string(XDR *xdrs, char **text, u_int most);
/* The same with at most BUFSIZ bytes, as a coder of an element. */
extern bool_t xdr_wrapstring(XDR *xdrs, char **text);
extern void xdrfree_string(char **text);

/* -- Composed values ------------------------------------------------------------------------------ */

/*
 * A counted array, at most `most` elements and 2 GiB. Decoding: with *array NULL it is allocated,
 * and zeroed before elements are decoded into it; nothing is allocated for 0 elements. Otherwise
 * *array has room for *count elements, and more is a failure. Memory is allocated as data arrives.
 * After a failure *count is the number of elements that XDR_FREE has to visit.
 */
extern bool_t xdr_array(XDR *xdrs, caddr_t *array, u_int *count, u_int most, u_int size,
			xdrproc_t element);
extern bool_t xdr_arrayN(XDR *xdrs, caddr_t *array, u_int *count, u_int most, u_int size,
			 xdrproc_t element);
/* Exactly `count` elements in memory of the program. */
extern bool_t xdr_vector(XDR *xdrs, char *array, u_int count, u_int size, xdrproc_t element);
/*
 * A value behind a pointer, allocated and zeroed where the pointer is NULL. Decoding fails with
 * more than XDR_DEPTH such values within one another, so that the stack suffices.
 */
extern bool_t xdr_reference(XDR *xdrs, caddr_t *pointer, u_int size, xdrproc_t value);
#	define XDR_DEPTH 10240
/* The same after a word that says whether there is one; NULL otherwise. */
extern bool_t xdr_pointer(XDR *xdrs, char **pointer, u_int size, xdrproc_t value);
/*
 * A word, then the arm with that value, or `otherwise`. A value without an arm is a failure if that
 * is NULL.
 */
extern bool_t xdr_union(XDR *xdrs, enum_t *which, caddr_t arm, struct xdr_discrim *arms,
			xdrproc_t otherwise);

/* -- Memory --------------------------------------------------------------------------------------- */

/* malloc(); not NULL for 0 bytes. NULL: no memory, or `size` is negative. */
extern void *xdr_alloc(afs_int32 size);
/* Free what a coder has allocated for this value. */
extern void xdr_free(xdrproc_t coder, void *value);

#endif

/* Eleven words; bytes are extended by the sign. */
extern int xdr_afsUUID(XDR *xdrs, afsUUID *value);

/* See rx_prototypes.h. */
extern char *osi_alloc(afs_int32 size);
extern int osi_free(char *pointer, afs_int32 size);

#ifdef __cplusplus
}
#endif
#endif
