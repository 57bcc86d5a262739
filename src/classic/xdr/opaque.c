/* SPDX-License-Identifier: BSD-2-Clause */
/* Opaque values. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rx/rx_opaque.h>

int rx_opaque_alloc(struct rx_opaque *opaque, size_t length)
{
	void *value = calloc(1, length ? length : 1);

	if (!value)
		return ENOMEM;
	opaque->len = length;
	opaque->val = value;
	return 0;
}

int rx_opaque_populate(struct rx_opaque *to, const void *data, size_t length)
{
	int result;

	to->len = 0;
	to->val = NULL;
	if (!data || !length)
		return 0;
	result = rx_opaque_alloc(to, length);
	if (!result)
		memcpy(to->val, data, length);
	return result;
}

struct rx_opaque *rx_opaque_new(void *data, size_t length)
{
	struct rx_opaque *opaque = calloc(1, sizeof(*opaque));

	if (opaque && rx_opaque_populate(opaque, data, length)) {
		free(opaque);
		return NULL;
	}
	return opaque;
}

int rx_opaque_copy(struct rx_opaque *to, const struct rx_opaque *from)
{
	return rx_opaque_populate(to, from->val, from->len);
}

void rx_opaque_freeContents(struct rx_opaque *opaque)
{
	free(opaque->val);
	opaque->len = 0;
	opaque->val = NULL;
}

void rx_opaque_zeroFreeContents(struct rx_opaque *opaque)
{
	if (opaque->val)
		explicit_bzero(opaque->val, opaque->len);
	rx_opaque_freeContents(opaque);
}

void rx_opaque_free(struct rx_opaque **opaque)
{
	struct rx_opaque *old = *opaque;

	*opaque = NULL;
	if (!old)
		return;
	rx_opaque_freeContents(old);
	free(old);
}

void rx_opaque_zeroFree(struct rx_opaque **opaque)
{
	if (*opaque)
		rx_opaque_zeroFreeContents(*opaque);
	rx_opaque_free(opaque);
}

int rx_opaque_cmp(const struct rx_opaque *a, const struct rx_opaque *b)
{
	size_t shorter = a->len < b->len ? a->len : b->len;
	int order = shorter ? memcmp(a->val, b->val, shorter) : 0;

	if (!order && a->len != b->len)
		order = a->len < b->len ? -1 : 1;
	return (order > 0) - (order < 0);
}

char *rx_opaque_stringify(const struct rx_opaque *opaque, struct rx_opaque_stringbuf *text)
{
	const unsigned char *bytes = opaque->val;
	size_t size = sizeof(text->sbuf), at;

	at = (size_t)snprintf(text->sbuf, size, "%zu:", opaque->len);
	if (!bytes)
		snprintf(text->sbuf + at, size - at, "(null)");
	for (size_t i = 0; bytes && i < opaque->len && at + 2 < size; i++)
		at += (size_t)snprintf(text->sbuf + at, size - at, "%02x", bytes[i]);
	return text->sbuf;
}
