/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams that count what is encoded: x_handy is the number of bytes. */
#include <limits.h>

#include <rx/xdr.h>

#include "room.h"

static bool_t add_length(XDR *xdrs, u_int count)
{
	if (count > (u_int)(INT_MAX - xdrs->x_handy))
		return FALSE;
	xdrs->x_handy += (int)count;
	return TRUE;
}

static bool_t refuse_length_int32(XDR *xdrs, afs_int32 *value)
{
	(void)xdrs;
	(void)value;
	return FALSE;
}

static bool_t add_int32_length(XDR *xdrs, afs_int32 *value)
{
	return add_length(xdrs, sizeof(*value));
}

static bool_t refuse_length_bytes(XDR *xdrs, caddr_t bytes, u_int count)
{
	(void)xdrs;
	(void)bytes;
	(void)count;
	return FALSE;
}

static bool_t add_bytes_length(XDR *xdrs, caddr_t bytes, u_int count)
{
	(void)bytes;
	return add_length(xdrs, count);
}

static u_int get_length_position(XDR *xdrs)
{
	return (u_int)xdrs->x_handy;
}

static struct xdr_ops length_ops = {
	.x_getint32 = refuse_length_int32,
	.x_putint32 = add_int32_length,
	.x_getbytes = refuse_length_bytes,
	.x_putbytes = add_bytes_length,
	.x_getpostn = get_length_position,
	.x_setpostn = classic_xdr_no_position,
	.x_inline = classic_xdr_no_inline,
};

void xdrlen_create(XDR *xdrs)
{
	xdrs->x_op = XDR_ENCODE;
	xdrs->x_ops = &length_ops;
	xdrs->x_private = NULL;
	xdrs->x_base = NULL;
	xdrs->x_handy = 0;
}
