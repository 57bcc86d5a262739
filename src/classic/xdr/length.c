/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams that count what is encoded: x_handy is the number of bytes. */
#include <limits.h>

#include <rx/xdr.h>

static bool_t add(XDR *xdrs, u_int count)
{
	if (count > (u_int)(INT_MAX - xdrs->x_handy))
		return FALSE;
	xdrs->x_handy += (int)count;
	return TRUE;
}

static bool_t no_int32(XDR *xdrs, afs_int32 *value)
{
	(void)xdrs;
	(void)value;
	return FALSE;
}

static bool_t add_int32(XDR *xdrs, afs_int32 *value)
{
	return add(xdrs, sizeof(*value));
}

static bool_t no_bytes(XDR *xdrs, caddr_t bytes, u_int count)
{
	(void)xdrs;
	(void)bytes;
	(void)count;
	return FALSE;
}

static bool_t add_bytes(XDR *xdrs, caddr_t bytes, u_int count)
{
	(void)bytes;
	return add(xdrs, count);
}

static u_int get_position(XDR *xdrs)
{
	return (u_int)xdrs->x_handy;
}

static bool_t no_position(XDR *xdrs, u_int position)
{
	(void)xdrs;
	(void)position;
	return FALSE;
}

static afs_int32 *not_in_place(XDR *xdrs, u_int count)
{
	(void)xdrs;
	(void)count;
	return NULL;
}

static struct xdr_ops length_ops = {
	.x_getint32 = no_int32,
	.x_putint32 = add_int32,
	.x_getbytes = no_bytes,
	.x_putbytes = add_bytes,
	.x_getpostn = get_position,
	.x_setpostn = no_position,
	.x_inline = not_in_place,
};

void xdrlen_create(XDR *xdrs)
{
	xdrs->x_op = XDR_ENCODE;
	xdrs->x_ops = &length_ops;
	xdrs->x_private = NULL;
	xdrs->x_base = NULL;
	xdrs->x_handy = 0;
}
