/* SPDX-License-Identifier: BSD-2-Clause */
/* The table, of the types.h that the build makes from the generated headers. */
#include "decoders.h"

#include <string.h>

#include "types.h"

#define TYPE(T)                                               \
	static bool put_##T(struct rxw_xdr *x, const void *v) \
	{                                                     \
		return xdr_put_##T(x, v);                     \
	}                                                     \
	static bool get_##T(struct rxw_xdr *x, void *v)       \
	{                                                     \
		return xdr_get_##T(x, v);                     \
	}                                                     \
	static void free_##T(void *v)                         \
	{                                                     \
		xdrfree_##T(v);                               \
	}
XG_TYPES(TYPE)
#undef TYPE

#define TYPE(T) {#T, sizeof(T), put_##T, get_##T, free_##T},
const struct decoder decoders[] = {XG_TYPES(TYPE)};
#undef TYPE
const unsigned decoder_count = sizeof(decoders) / sizeof(decoders[0]);

const struct decoder *decoder_named(const char *name)
{
	for (unsigned i = 0; i < decoder_count; i++)
		if (!strcmp(decoders[i].name, name))
			return &decoders[i];
	return NULL;
}
