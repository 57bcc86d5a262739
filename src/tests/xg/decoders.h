/* SPDX-License-Identifier: BSD-2-Clause */
/* The coders of all types of all interfaces, by name. */
#ifndef RXW_TESTS_XG_DECODERS_H
#define RXW_TESTS_XG_DECODERS_H

#include <rxwire/xdr.h>

struct decoder {
	const char *name;
	size_t size; /* sizeof */
	bool (*put)(struct rxw_xdr *x, const void *v);
	bool (*get)(struct rxw_xdr *x, void *v);
	void (*release)(void *v);
};

extern const struct decoder decoders[];
extern const unsigned decoder_count;

/* NULL if there is no such type. */
const struct decoder *decoder_named(const char *name);

/*
 * A corpus names types and stubs by two bytes, the hash of the name, which remains valid when
 * others are added. A fuzz target takes the item with the next larger hash, cyclically.
 */
uint16_t name_hash(const char *name);
unsigned next_hash(const uint16_t *hashes, unsigned count, uint16_t wanted);

#endif
