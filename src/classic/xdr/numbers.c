/* SPDX-License-Identifier: BSD-2-Clause */
/* Coders of numbers. Each is a word on the wire, numbers of 64 bits are two. */
#include <stdint.h>
#include <string.h>

#include <rx/xdr.h>

/* A word in or out, as the stream says. */
static bool_t code_word(XDR *xdrs, afs_int32 *word)
{
	switch (xdrs->x_op) {
	case XDR_ENCODE:
		return xdr_putint32(xdrs, word);
	case XDR_DECODE:
		return xdr_getint32(xdrs, word);
	case XDR_FREE:
		return TRUE;
	}
	return FALSE;
}

/* A coder of a number of type `type`: `put` makes a word of `v`, `get` a number of `w`. */
#define NUMBER(name, type, put, get)            \
	bool_t name(XDR *xdrs, type *value)     \
	{                                       \
		afs_int32 w = 0;                \
                                                \
		if (xdrs->x_op == XDR_ENCODE) { \
			type v = *value;        \
                                                \
			w = (put);              \
		}                               \
		if (!code_word(xdrs, &w))       \
			return FALSE;           \
		if (xdrs->x_op == XDR_DECODE)   \
			*value = (get);         \
		return TRUE;                    \
	}

NUMBER(xdr_int, int, v, w)
NUMBER(xdr_enum, enum_t, v, w)
NUMBER(xdr_u_int, u_int, (afs_int32)v, (u_int)w)
NUMBER(xdr_long, long, (afs_int32)v, w)
NUMBER(xdr_u_long, u_long, (afs_int32)v, (afs_uint32)w)
NUMBER(xdr_short, short, v, (short)w)
NUMBER(xdr_u_short, u_short, v, (u_short)w)
NUMBER(xdr_char, char, (signed char)v, (char)w)
NUMBER(xdr_u_char, u_char, v, (u_char)w)
NUMBER(xdr_bool, bool_t, v != 0, w != 0)
NUMBER(xdr_afs_int32, afs_int32, v, w)
NUMBER(xdr_afs_uint32, afs_uint32, (afs_int32)v, (afs_uint32)w)

bool_t xdr_void(void)
{
	return TRUE;
}

/* Two words, the high one first. */
bool_t xdr_afs_uint64(XDR *xdrs, afs_uint64 *value)
{
	afs_uint32 high = 0, low = 0;

	if (xdrs->x_op == XDR_ENCODE) {
		high = (afs_uint32)(*value >> 32);
		low = (afs_uint32)*value;
	}
	if (!xdr_afs_uint32(xdrs, &high) || !xdr_afs_uint32(xdrs, &low))
		return FALSE;
	if (xdrs->x_op == XDR_DECODE)
		*value = (afs_uint64)high << 32 | low;
	return TRUE;
}

bool_t xdr_uint64(XDR *xdrs, afs_uint64 *value)
{
	return xdr_afs_uint64(xdrs, value);
}

bool_t xdr_afs_int64(XDR *xdrs, afs_int64 *value)
{
	return xdr_afs_uint64(xdrs, (afs_uint64 *)value);
}

bool_t xdr_int64(XDR *xdrs, afs_int64 *value)
{
	return xdr_afs_int64(xdrs, value);
}

/* A structure with one number of 64 bits. Older headers of OpenAFS lack it. */
bool_t xdr_afs_time64(XDR *xdrs, struct afs_time64 *value)
{
	return xdr_afs_int64(xdrs, (afs_int64 *)value);
}

bool_t xdr_float(XDR *xdrs, float *value)
{
	afs_uint32 bits = 0;

	if (xdrs->x_op == XDR_ENCODE)
		memcpy(&bits, value, sizeof(bits));
	if (!xdr_afs_uint32(xdrs, &bits))
		return FALSE;
	if (xdrs->x_op == XDR_DECODE)
		memcpy(value, &bits, sizeof(bits));
	return TRUE;
}

bool_t xdr_double(XDR *xdrs, double *value)
{
	afs_uint64 bits = 0;

	if (xdrs->x_op == XDR_ENCODE)
		memcpy(&bits, value, sizeof(bits));
	if (!xdr_afs_uint64(xdrs, &bits))
		return FALSE;
	if (xdrs->x_op == XDR_DECODE)
		memcpy(value, &bits, sizeof(bits));
	return TRUE;
}

int xdr_afsUUID(XDR *xdrs, afsUUID *value)
{
	if (!xdr_afs_uint32(xdrs, &value->time_low) || !xdr_u_short(xdrs, &value->time_mid) ||
	    !xdr_u_short(xdrs, &value->time_hi_and_version) ||
	    !xdr_char(xdrs, &value->clock_seq_hi_and_reserved) ||
	    !xdr_char(xdrs, &value->clock_seq_low))
		return FALSE;
	return xdr_vector(xdrs, value->node, sizeof(value->node), 1, (xdrproc_t)xdr_char);
}
