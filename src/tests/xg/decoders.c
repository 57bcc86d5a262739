/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of types, from types.h, which the build makes from generated headers. */
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

uint16_t name_hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return (uint16_t)(h ^ h >> 16);
}

unsigned next_hash(const uint16_t *hashes, unsigned count, uint16_t wanted)
{
	unsigned best = 0;

	for (unsigned i = 1; i < count; i++)
		if ((uint16_t)(hashes[i] - wanted) < (uint16_t)(hashes[best] - wanted))
			best = i;
	return best;
}
