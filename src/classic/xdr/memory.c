/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams on memory: x_private is the next byte, x_handy the number of bytes from there. */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include <rx/xdr.h>

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
