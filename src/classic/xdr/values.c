/* SPDX-License-Identifier: BSD-2-Clause */
/* Coders of composed values, and their memory. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include <rx/xdr.h>

#include "room.h"

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
		char *grown = classic_xdr_grow(*array, &room, coming, size);

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
