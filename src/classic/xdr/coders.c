/* SPDX-License-Identifier: BSD-2-Clause */
/* Coders of numbers, bytes, strings and composed values, and their memory. */
#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rx/xdr.h>

/* -- Numbers: each is a word on the wire, numbers of 64 bits are two -------------------------------- */

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

/* -- Memory for data whose size comes from the network ---------------------------------------------- */

#define STEP_BYTES (64 * 1024)

/*
 * Enlarge an array of `size` bytes an element, all *room of which are decoded, towards `count`
 * elements: by 64 KiB, or to twice its size if that is more. So a peer that announces a length has
 * to send half of it before it is allocated. New elements are zeroed. NULL: no memory; `array` is
 * unchanged.
 */
static void *grow_array(void *array, size_t *room, size_t count, size_t size)
{
	size_t step = STEP_BYTES / size, wanted; /* an element has at least one byte */
	char *grown;

	assert(*room < count);
	if (step < *room)
		step = *room;
	if (!step)
		step = 1;
	wanted = step < count - *room ? *room + step : count;
	if (wanted > SIZE_MAX / size)
		return NULL;
	grown = realloc(array, wanted * size);
	if (!grown)
		return NULL;
	memset(grown + *room * size, 0, (wanted - *room) * size);
	*room = wanted;
	return grown;
}

/* -- Bytes and strings ------------------------------------------------------------------------------ */

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
		char *grown = grow_array(bytes, &room, size, 1);
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

/* -- Composed values -------------------------------------------------------------------------------- */

/* The bound of an element that has one. */
#define UNBOUNDED UINT_MAX

/* Values within one another that this thread is decoding. */
static _Thread_local unsigned depth;

bool_t xdr_vector(XDR *xdrs, char *array, u_int count, u_int size, xdrproc_t element)
{
	for (u_int i = 0; i < count; i++)
		if (!(*element)(xdrs, array + (size_t)i * size, UNBOUNDED))
			return FALSE;
	return TRUE;
}

/* Decode into an array that grows; *count is the number of elements that are allocated. */
static bool_t decode_growing(XDR *xdrs, caddr_t *array, u_int *count, u_int coming, u_int size,
			     xdrproc_t element)
{
	size_t room = 0, at = 0;

	*count = 0;
	while (at < coming) {
		char *grown = grow_array(*array, &room, coming, size);

		if (!grown)
			return FALSE;
		*array = grown;
		*count = (u_int)room;
		if (!xdr_vector(xdrs, grown + at * size, (u_int)(room - at), size, element))
			return FALSE;
		at = room;
	}
	return TRUE;
}

static bool_t decode_array(XDR *xdrs, caddr_t *array, u_int *count, u_int most, u_int size,
			   xdrproc_t element)
{
	u_int coming;

	if (!xdr_u_int(xdrs, &coming) || coming > most || coming > INT_MAX / size) {
		if (!*array)
			*count = 0;
		return FALSE;
	}
	if (!*array)
		return decode_growing(xdrs, array, count, coming, size, element);
	if (coming > *count)
		return FALSE;
	*count = coming;
	return xdr_vector(xdrs, *array, coming, size, element);
}

bool_t xdr_array(XDR *xdrs, caddr_t *array, u_int *count, u_int most, u_int size, xdrproc_t element)
{
	bool_t done;

	if (!size)
		return FALSE;
	switch (xdrs->x_op) {
	case XDR_ENCODE:
		if (*count > most || (*count && !*array))
			return FALSE;
		return xdr_u_int(xdrs, count) && xdr_vector(xdrs, *array, *count, size, element);
	case XDR_DECODE:
		return decode_array(xdrs, array, count, most, size, element);
	case XDR_FREE:
		if (!*array)
			return TRUE;
		done = xdr_vector(xdrs, *array, *count, size, element);
		free(*array);
		*array = NULL;
		return done;
	}
	return FALSE;
}

bool_t xdr_arrayN(XDR *xdrs, caddr_t *array, u_int *count, u_int most, u_int size,
		  xdrproc_t element)
{
	return xdr_array(xdrs, array, count, most, size, element);
}

static bool_t decode_reference(XDR *xdrs, caddr_t *pointer, u_int size, xdrproc_t value)
{
	bool_t done;

	if (depth >= XDR_DEPTH)
		return FALSE;
	if (!*pointer)
		*pointer = calloc(1, size ? size : 1);
	if (!*pointer)
		return FALSE;
	depth++;
	done = (*value)(xdrs, *pointer, UNBOUNDED);
	depth--;
	return done;
}

bool_t xdr_reference(XDR *xdrs, caddr_t *pointer, u_int size, xdrproc_t value)
{
	bool_t done;

	switch (xdrs->x_op) {
	case XDR_ENCODE:
		return *pointer && (*value)(xdrs, *pointer, UNBOUNDED);
	case XDR_DECODE:
		return decode_reference(xdrs, pointer, size, value);
	case XDR_FREE:
		if (!*pointer)
			return TRUE;
		done = (*value)(xdrs, *pointer, UNBOUNDED);
		free(*pointer);
		*pointer = NULL;
		return done;
	}
	return FALSE;
}

bool_t xdr_pointer(XDR *xdrs, char **pointer, u_int size, xdrproc_t value)
{
	bool_t present = *pointer != NULL;

	if (!xdr_bool(xdrs, &present))
		return FALSE;
	if (present)
		return xdr_reference(xdrs, pointer, size, value);
	*pointer = NULL;
	return TRUE;
}

bool_t xdr_union(XDR *xdrs, enum_t *which, caddr_t arm, struct xdr_discrim *arms,
		 xdrproc_t otherwise)
{
	if (!xdr_enum(xdrs, which))
		return FALSE;
	while (arms->proc && arms->value != *which)
		arms++;
	if (arms->proc)
		otherwise = arms->proc;
	return otherwise && (*otherwise)(xdrs, arm, UNBOUNDED);
}

void *xdr_alloc(afs_int32 size)
{
	if (size < 0)
		return NULL;
	return malloc(size ? (size_t)size : 1);
}

void xdr_free(xdrproc_t coder, void *value)
{
	XDR xdrs = {.x_op = XDR_FREE};

	(*coder)(&xdrs, value);
}
