/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams on a call: x_private is the call. */
#include <limits.h>

#include <rx/rx.h>
#include <rx/xdr.h>

#include "room.h"

static struct rx_call *call_of_stream(XDR *xdrs)
{
	return (struct rx_call *)(void *)xdrs->x_private;
}

static bool_t read_call_int32(XDR *xdrs, afs_int32 *value)
{
	afs_int32 word;

	if (rx_ReadProc32(call_of_stream(xdrs), &word) != sizeof(word))
		return FALSE;
	*value = (afs_int32)ntohl((afs_uint32)word);
	return TRUE;
}

static bool_t write_call_int32(XDR *xdrs, afs_int32 *value)
{
	afs_int32 word = (afs_int32)htonl((afs_uint32)*value);

	return rx_WriteProc32(call_of_stream(xdrs), &word) == sizeof(word);
}

static bool_t read_call_bytes(XDR *xdrs, caddr_t bytes, u_int count)
{
	return count <= INT_MAX &&
	       rx_ReadProc(call_of_stream(xdrs), bytes, (int)count) == (int)count;
}

static bool_t write_call_bytes(XDR *xdrs, caddr_t bytes, u_int count)
{
	return count <= INT_MAX &&
	       rx_WriteProc(call_of_stream(xdrs), bytes, (int)count) == (int)count;
}

static u_int get_call_position(XDR *xdrs)
{
	(void)xdrs;
	return 0;
}

static struct xdr_ops call_ops = {
	.x_getint32 = read_call_int32,
	.x_putint32 = write_call_int32,
	.x_getbytes = read_call_bytes,
	.x_putbytes = write_call_bytes,
	.x_getpostn = get_call_position,
	.x_setpostn = classic_xdr_no_position,
	.x_inline = classic_xdr_no_inline,
};

void xdrrx_create(XDR *xdrs, struct rx_call *call, enum xdr_op op)
{
	xdrs->x_op = op;
	xdrs->x_ops = &call_ops;
	xdrs->x_private = (caddr_t)call;
	xdrs->x_base = NULL;
	xdrs->x_handy = 0;
}
