/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XDR with the interface of classic Rx, for the coders that rxgen writes. A coder has the form
 * bool_t xdr_TYPE(XDR *, TYPE *). It encodes, decodes or frees as x_op says, and returns FALSE on
 * failure.
 */
#ifndef RXWIRE_CLASSIC_XDR_H
#define RXWIRE_CLASSIC_XDR_H

#include <stdlib.h>

#include <netinet/in.h>

#include <rx/rx_types.h>

#ifndef bool_t
#	define bool_t int
#	define enum_t int
#endif
#ifndef FALSE
#	define FALSE 0
#endif
#ifndef TRUE
#	define TRUE 1
#endif

#ifndef mem_alloc
#	define mem_alloc(size) malloc(size)
#endif
#ifndef mem_free
#	define mem_free(pointer, size) free(pointer)
#endif

/* The C library has functions of these names. */
#define xdr_alloc	   afs_xdr_alloc
#define xdr_free	   afs_xdr_free
#define xdr_void	   afs_xdr_void
#define xdr_int		   afs_xdr_int
#define xdr_u_int	   afs_xdr_u_int
#define xdr_short	   afs_xdr_short
#define xdr_u_short	   afs_xdr_u_short
#define xdr_long	   afs_xdr_long
#define xdr_u_long	   afs_xdr_u_long
#define xdr_char	   afs_xdr_char
#define xdr_u_char	   afs_xdr_u_char
#define xdr_bool	   afs_xdr_bool
#define xdr_enum	   afs_xdr_enum
#define xdr_array	   afs_xdr_array
#define xdr_arrayN	   afs_xdr_arrayN
#define xdr_bytes	   afs_xdr_bytes
#define xdr_opaque	   afs_xdr_opaque
#define xdr_string	   afs_xdr_string
#define xdr_union	   afs_xdr_union
#define xdr_float	   afs_xdr_float
#define xdr_double	   afs_xdr_double
#define xdr_reference	   afs_xdr_reference
#define xdr_wrapstring	   afs_xdr_wrapstring
#define xdr_vector	   afs_xdr_vector
#define xdr_int64	   afs_xdr_int64
#define xdr_uint64	   afs_xdr_uint64
#define xdr_pointer	   afs_xdr_pointer
#define xdrmem_create	   afs_xdrmem_create

#define BYTES_PER_XDR_UNIT 4

enum xdr_op {
	XDR_ENCODE = 0,
	XDR_DECODE = 1, /* allocates what pointers that are NULL refer to */
	XDR_FREE = 2	/* frees what was decoded, also in part; needs no stream */
};

struct xdr_ops;

/* A stream. One thread at a time. Programs assign x_op, and members when they make their own kind. */
typedef struct __afs_xdr {
	enum xdr_op x_op;
	struct xdr_ops *x_ops;
	caddr_t x_public;  /* of the program */
	caddr_t x_private; /* of the kind of stream, also the next two */
	caddr_t x_base;
	int x_handy;
} XDR;

/* The operations of a kind of stream. FALSE: the data ended, there is no room, or it cannot. */
struct xdr_ops {
	bool_t (*x_getint32)(XDR *xdrs, afs_int32 *value); /* host order */
	bool_t (*x_putint32)(XDR *xdrs, afs_int32 *value);
	bool_t (*x_getbytes)(XDR *xdrs, caddr_t bytes, u_int count); /* without padding */
	bool_t (*x_putbytes)(XDR *xdrs, caddr_t bytes, u_int count);
	u_int (*x_getpostn)(XDR *xdrs); /* bytes from the beginning */
	bool_t (*x_setpostn)(XDR *xdrs, u_int position);
	/* the next bytes in place, words aligned; NULL if the kind has none */
	afs_int32 *(*x_inline)(XDR *xdrs, u_int count);
	void (*x_destroy)(XDR *xdrs); /* NULL: nothing to do */
};

/*
 * A coder of any type, called with the stream, the value, and the largest number for coders with a
 * bound.
 */
typedef bool_t (*xdrproc_t)(void *, ...);
#define NULL_xdrproc_t ((xdrproc_t)0)

/* An arm of a union; the list ends with proc NULL. */
struct xdr_discrim {
	int value;
	xdrproc_t proc;
};

#define xdr_getint32(xdrs, value)	 (*(xdrs)->x_ops->x_getint32)(xdrs, value)
#define xdr_putint32(xdrs, value)	 (*(xdrs)->x_ops->x_putint32)(xdrs, value)
#define xdr_getbytes(xdrs, bytes, count) (*(xdrs)->x_ops->x_getbytes)(xdrs, bytes, count)
#define xdr_putbytes(xdrs, bytes, count) (*(xdrs)->x_ops->x_putbytes)(xdrs, bytes, count)
#define xdr_getpos(xdrs)		 (*(xdrs)->x_ops->x_getpostn)(xdrs)
#define xdr_setpos(xdrs, position)	 (*(xdrs)->x_ops->x_setpostn)(xdrs, position)
#define xdr_inline(xdrs, count)		 (*(xdrs)->x_ops->x_inline)(xdrs, count)
#define xdr_destroy(xdrs)                                  \
	do {                                               \
		if ((xdrs)->x_ops->x_destroy)              \
			(*(xdrs)->x_ops->x_destroy)(xdrs); \
	} while (0)
#define XDR_GETINT32(xdrs, value)	 xdr_getint32(xdrs, value)
#define XDR_PUTINT32(xdrs, value)	 xdr_putint32(xdrs, value)
#define XDR_GETBYTES(xdrs, bytes, count) xdr_getbytes(xdrs, bytes, count)
#define XDR_PUTBYTES(xdrs, bytes, count) xdr_putbytes(xdrs, bytes, count)
#define XDR_GETPOS(xdrs)		 xdr_getpos(xdrs)
#define XDR_SETPOS(xdrs, position)	 xdr_setpos(xdrs, position)
#define XDR_INLINE(xdrs, count)		 xdr_inline(xdrs, count)
#define XDR_DESTROY(xdrs)		 xdr_destroy(xdrs)

/* Words in the result of xdr_inline(), which move the pointer along. */
#define IXDR_GET_INT32(buf)	 ((afs_int32)ntohl((afs_uint32) * (buf)++))
#define IXDR_GET_U_INT32(buf)	 ((afs_uint32)IXDR_GET_INT32(buf))
#define IXDR_GET_BOOL(buf)	 ((bool_t)IXDR_GET_INT32(buf))
#define IXDR_GET_ENUM(buf, type) ((type)IXDR_GET_INT32(buf))
#define IXDR_GET_SHORT(buf)	 ((short)IXDR_GET_INT32(buf))
#define IXDR_GET_U_SHORT(buf)	 ((u_short)IXDR_GET_INT32(buf))
#define IXDR_PUT_INT32(buf, v)	 (*(buf)++ = (afs_int32)htonl((afs_uint32)(v)))
#define IXDR_PUT_U_INT32(buf, v) IXDR_PUT_INT32(buf, v)
#define IXDR_PUT_BOOL(buf, v)	 IXDR_PUT_INT32(buf, v)
#define IXDR_PUT_ENUM(buf, v)	 IXDR_PUT_INT32(buf, v)
#define IXDR_PUT_SHORT(buf, v)	 IXDR_PUT_INT32(buf, v)
#define IXDR_PUT_U_SHORT(buf, v) IXDR_PUT_INT32(buf, v)

#include <rx/xdr_prototypes.h>

#endif
