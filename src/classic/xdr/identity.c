/* SPDX-License-Identifier: BSD-2-Clause */
/* Opaque values, and identities. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rx/rx_identity.h>
#include <rx/rx_opaque.h>
#include <rx/rx_prototypes.h>

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

/* -- Identities ------------------------------------------------------------------------------------- */

static char *copy_display_name(const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		osi_Panic("rx_identity_populate: out of memory\n");
	return copy;
}

void rx_identity_populate(struct rx_identity *identity, rx_identity_kind kind, char *displayName,
			  void *name, size_t length)
{
	memset(identity, 0, sizeof(*identity));
	identity->kind = kind;
	if (displayName)
		identity->displayName = copy_display_name(displayName);
	if (rx_opaque_populate(&identity->exportedName, name, length))
		osi_Panic("rx_identity_populate: out of memory\n");
}

struct rx_identity *rx_identity_new(rx_identity_kind kind, char *displayName, void *name,
				    size_t length)
{
	struct rx_identity *identity = rxi_Alloc(sizeof(*identity));

	rx_identity_populate(identity, kind, displayName, name, length);
	return identity;
}

int rx_identity_match(struct rx_identity *a, struct rx_identity *b)
{
	return a->kind == b->kind && rx_opaque_cmp(&a->exportedName, &b->exportedName) == 0;
}

struct rx_identity *rx_identity_copy(struct rx_identity *from)
{
	return rx_identity_new(from->kind, from->displayName, from->exportedName.val,
			       from->exportedName.len);
}

void rx_identity_copyContents(struct rx_identity *to, struct rx_identity *from)
{
	rx_identity_populate(to, from->kind, from->displayName, from->exportedName.val,
			     from->exportedName.len);
}

void rx_identity_freeContents(struct rx_identity *identity)
{
	free(identity->displayName);
	identity->displayName = NULL;
	rx_opaque_freeContents(&identity->exportedName);
}

void rx_identity_free(struct rx_identity **identity)
{
	struct rx_identity *old = *identity;

	*identity = NULL;
	if (!old)
		return;
	rx_identity_freeContents(old);
	free(old);
}
