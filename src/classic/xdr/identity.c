/* SPDX-License-Identifier: BSD-2-Clause */
/* Identities. */
#include <stdlib.h>
#include <string.h>

#include <rx/rx_identity.h>
#include <rx/rx_prototypes.h>

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
