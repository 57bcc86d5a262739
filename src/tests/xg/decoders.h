/* SPDX-License-Identifier: BSD-2-Clause */
/* All types of all interfaces, by name: their coders in one form. */
#ifndef RXW_TESTS_XG_DECODERS_H
#define RXW_TESTS_XG_DECODERS_H

#include <rxwire/xdr.h>

struct decoder {
	const char *name;
	size_t size; /* in C */
	bool (*put)(struct rxw_xdr *x, const void *v);
	bool (*get)(struct rxw_xdr *x, void *v);
	void (*release)(void *v);
};

extern const struct decoder decoders[];
extern const unsigned decoder_count;

/* NULL if there is none of this name. */
const struct decoder *decoder_named(const char *name);

/*
 * A corpus names things by two bytes that stay the same while others come and go: a hash of each.
 * The fuzz targets take the thing whose hash is the next one, around the circle.
 */
uint16_t name_hash(const char *name);
unsigned next_hash(const uint16_t *hashes, unsigned count, uint16_t wanted);

#endif
