/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams on memory, on a call, and those that count what is encoded. */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include <rx/rx.h>
#include <rx/xdr.h>

/* Operations of streams that have no positions, or no memory to be used in place. They fail. */
static bool_t refuse_position(XDR *xdrs, u_int position)
{
	(void)xdrs;
	(void)position;
	return FALSE;
}

static afs_int32 *refuse_inline(XDR *xdrs, u_int count)
{
	(void)xdrs;
	(void)count;
	return NULL;
}

/* -- On memory: x_private is the next byte, x_handy the number of bytes from there ------------------ */

/* The next `count` bytes; NULL: there are fewer. */
static caddr_t take_memory(XDR *xdrs, u_int count)
{
	caddr_t at = xdrs->x_private;

	if (xdrs->x_handy < 0 || count > (u_int)xdrs->x_handy)
		return NULL;
	xdrs->x_private += count;
	xdrs->x_handy -= (int)count;
	return at;
}

static bool_t get_memory_int32(XDR *xdrs, afs_int32 *value)
{
	caddr_t at = take_memory(xdrs, sizeof(*value));
	afs_uint32 word;

	if (!at)
		return FALSE;
	memcpy(&word, at, sizeof(word));
	*value = (afs_int32)ntohl(word);
	return TRUE;
}

static bool_t put_memory_int32(XDR *xdrs, afs_int32 *value)
{
	caddr_t at = take_memory(xdrs, sizeof(*value));
	afs_uint32 word = htonl((afs_uint32)*value);

	if (!at)
		return FALSE;
	memcpy(at, &word, sizeof(word));
	return TRUE;
}

static bool_t get_memory_bytes(XDR *xdrs, caddr_t bytes, u_int count)
{
	caddr_t at = take_memory(xdrs, count);

	if (!at)
		return FALSE;
	memcpy(bytes, at, count);
	return TRUE;
}

static bool_t put_memory_bytes(XDR *xdrs, caddr_t bytes, u_int count)
{
	caddr_t at = take_memory(xdrs, count);

	if (!at)
		return FALSE;
	memcpy(at, bytes, count);
	return TRUE;
}

static u_int get_memory_position(XDR *xdrs)
{
	return (u_int)(xdrs->x_private - xdrs->x_base);
}

static bool_t set_memory_position(XDR *xdrs, u_int position)
{
	u_int size = get_memory_position(xdrs) + (u_int)xdrs->x_handy;

	if (position > size)
		return FALSE;
	xdrs->x_private = xdrs->x_base + position;
	xdrs->x_handy = (int)(size - position);
	return TRUE;
}

static afs_int32 *take_memory_inline(XDR *xdrs, u_int count)
{
	if ((uintptr_t)xdrs->x_private % _Alignof(afs_int32))
		return NULL;
	return (afs_int32 *)(void *)take_memory(xdrs, count);
}

static struct xdr_ops memory_ops = {
	.x_getint32 = get_memory_int32,
	.x_putint32 = put_memory_int32,
	.x_getbytes = get_memory_bytes,
	.x_putbytes = put_memory_bytes,
	.x_getpostn = get_memory_position,
	.x_setpostn = set_memory_position,
	.x_inline = take_memory_inline,
};

void xdrmem_create(XDR *xdrs, caddr_t memory, u_int size, enum xdr_op op)
{
	xdrs->x_op = op;
	xdrs->x_ops = &memory_ops;
	xdrs->x_private = memory;
	xdrs->x_base = memory;
	xdrs->x_handy = size > INT_MAX ? INT_MAX : (int)size;
}

/* -- On a call, which x_private is ------------------------------------------------------------------ */

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
	.x_setpostn = refuse_position,
	.x_inline = refuse_inline,
};

void xdrrx_create(XDR *xdrs, struct rx_call *call, enum xdr_op op)
{
	xdrs->x_op = op;
	xdrs->x_ops = &call_ops;
	xdrs->x_private = (caddr_t)call;
	xdrs->x_base = NULL;
	xdrs->x_handy = 0;
}

/* -- Counting: x_handy is the number of bytes ------------------------------------------------------- */

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
	.x_setpostn = refuse_position,
	.x_inline = refuse_inline,
};

void xdrlen_create(XDR *xdrs)
{
	xdrs->x_op = XDR_ENCODE;
	xdrs->x_ops = &length_ops;
	xdrs->x_private = NULL;
	xdrs->x_base = NULL;
	xdrs->x_handy = 0;
}
