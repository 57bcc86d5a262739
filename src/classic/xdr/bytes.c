/* SPDX-License-Identifier: BSD-2-Clause */
/* Coders of bytes and strings. */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rx/xdr.h>

#include "room.h"

static bool_t code_padding(XDR *xdrs, u_int count)
{
	char zeros[BYTES_PER_XDR_UNIT] = {0};
	u_int rest = -count % BYTES_PER_XDR_UNIT;

	if (!rest)
		return TRUE;
	if (xdrs->x_op == XDR_ENCODE)
		return xdr_putbytes(xdrs, zeros, rest);
	return xdr_getbytes(xdrs, zeros, rest);
}

bool_t xdr_opaque(XDR *xdrs, caddr_t bytes, u_int count)
{
	switch (xdrs->x_op) {
	case XDR_ENCODE:
		return !count || (xdr_putbytes(xdrs, bytes, count) && code_padding(xdrs, count));
	case XDR_DECODE:
		return !count || (xdr_getbytes(xdrs, bytes, count) && code_padding(xdrs, count));
	case XDR_FREE:
		return TRUE;
	}
	return FALSE;
}

/* Decode `count` bytes and `extra` zeros into allocated memory; NULL on failure. */
static char *get_new_bytes(XDR *xdrs, u_int count, u_int extra)
{
	size_t size = (size_t)count + extra, room = 0, at = 0;
	char *bytes = NULL;

	while (room < size) {
		char *grown = classic_xdr_grow(bytes, &room, size, 1);
		size_t end = room < count ? room : count;

		if (!grown)
			goto failed;
		bytes = grown;
		if (end > at && !xdr_getbytes(xdrs, bytes + at, (u_int)(end - at)))
			goto failed;
		at = end;
	}
	if (code_padding(xdrs, count))
		return bytes;
failed:
	free(bytes);
	return NULL;
}

static bool_t decode_bytes(XDR *xdrs, char **bytes, u_int *count, u_int most)
{
	u_int coming;

	if (!xdr_u_int(xdrs, &coming) || coming > most || coming > INT_MAX)
		return FALSE;
	if (*bytes) {
		if (coming > *count || !xdr_opaque(xdrs, *bytes, coming))
			return FALSE;
	} else {
		*bytes = get_new_bytes(xdrs, coming, coming == 0);
		if (!*bytes)
			return FALSE;
	}
	*count = coming;
	return TRUE;
}

bool_t xdr_bytes(XDR *xdrs, char **bytes, u_int *count, u_int most)
{
	switch (xdrs->x_op) {
	case XDR_ENCODE:
		if (*count > most || (*count && !*bytes))
			return FALSE;
		return xdr_u_int(xdrs, count) && xdr_opaque(xdrs, *bytes, *count);
	case XDR_DECODE:
		return decode_bytes(xdrs, bytes, count, most);
	case XDR_FREE:
		free(*bytes);
		*bytes = NULL;
		return TRUE;
	}
	return FALSE;
}

static bool_t decode_string(XDR *xdrs, char **text, u_int most)
{
	u_int length;
	char *got;

	/* The room of a given text is not known. */
	if (*text)
		return FALSE;
	if (!xdr_u_int(xdrs, &length) || length > most || length >= INT_MAX)
		return FALSE;
	got = get_new_bytes(xdrs, length, 1);
	if (!got)
		return FALSE;
	if (memchr(got, '\0', length)) {
		free(got);
		return FALSE;
	}
	got[length] = '\0';
	*text = got;
	return TRUE;
}

bool_t xdr_string(XDR *xdrs, char **text, u_int most)
{
	switch (xdrs->x_op) {
	case XDR_ENCODE: {
		size_t length = *text ? strlen(*text) : 0;
		u_int count = (u_int)length;

		if (!*text || length > most || length >= INT_MAX)
			return FALSE;
		return xdr_u_int(xdrs, &count) && xdr_opaque(xdrs, *text, count);
	}
	case XDR_DECODE:
		return decode_string(xdrs, text, most);
	case XDR_FREE:
		free(*text);
		*text = NULL;
		return TRUE;
	}
	return FALSE;
}

bool_t xdr_wrapstring(XDR *xdrs, char **text)
{
	return xdr_string(xdrs, text, BUFSIZ);
}

void xdrfree_string(char **text)
{
	free(*text);
	*text = NULL;
}
