/* SPDX-License-Identifier: BSD-2-Clause */
/* A small record in a file, in two places that are written in turn: a torn write leaves the record before. */
#ifndef STORE_TWIN_H
#define STORE_TWIN_H

#include "volume/store/disk/layer.h"

#define STORE_TWIN_END 8192 /* bytes that both places take */

/* The first members of a record. Its last one is a uint64_t, the checksum; it has no padding. */
struct store_twin {
	uint64_t magic;
	uint64_t sequence; /* of writes */
};

void store_twin_seal(void *record, size_t size);
bool store_twin_is_sound(const void *record, size_t size, uint64_t magic);
/* Read the newest record; all zeros: there is none. 0 or -errno, which only follows if there is none. */
int store_twin_read(struct store_file *file, void *record, size_t size, uint64_t magic);
/* Write the record that follows the one with its sequence, without a flush. 0 or -errno. */
int store_twin_write(struct store_file *file, void *record, size_t size);

#endif
