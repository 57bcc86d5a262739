/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams on a call: x_private is the call. */
#include <limits.h>

#include <rx/rx.h>
#include <rx/xdr.h>

static struct rx_call *call_of(XDR *xdrs)
{
	return (struct rx_call *)(void *)xdrs->x_private;
}

static bool_t get_int32(XDR *xdrs, afs_int32 *value)
{
	afs_int32 word;

	if (rx_ReadProc32(call_of(xdrs), &word) != sizeof(word))
		return FALSE;
	*value = (afs_int32)ntohl((afs_uint32)word);
	return TRUE;
}

static bool_t put_int32(XDR *xdrs, afs_int32 *value)
{
	afs_int32 word = (afs_int32)htonl((afs_uint32)*value);

	return rx_WriteProc32(call_of(xdrs), &word) == sizeof(word);
}

static bool_t get_bytes(XDR *xdrs, caddr_t bytes, u_int count)
{
	return count <= INT_MAX && rx_ReadProc(call_of(xdrs), bytes, (int)count) == (int)count;
}

static bool_t put_bytes(XDR *xdrs, caddr_t bytes, u_int count)
{
	return count <= INT_MAX && rx_WriteProc(call_of(xdrs), bytes, (int)count) == (int)count;
}

static u_int get_position(XDR *xdrs)
{
	(void)xdrs;
	return 0;
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

static struct xdr_ops call_ops = {
	.x_getint32 = get_int32,
	.x_putint32 = put_int32,
	.x_getbytes = get_bytes,
	.x_putbytes = put_bytes,
	.x_getpostn = get_position,
	.x_setpostn = no_position,
	.x_inline = not_in_place,
};

void xdrrx_create(XDR *xdrs, struct rx_call *call, enum xdr_op op)
{
	xdrs->x_op = op;
	xdrs->x_ops = &call_ops;
	xdrs->x_private = (caddr_t)call;
	xdrs->x_base = NULL;
	xdrs->x_handy = 0;
}
