/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated call: two streams in memory, which src/rx/rpc/window.c and generated stubs read and
 * write. It replaces the calls of the library.
 */
#ifndef RXW_TESTS_XG_STREAM_H
#define RXW_TESTS_XG_STREAM_H

#include <rxwire/stub.h>

struct rxw_call {
	const uint8_t *in; /* input, and the position in it */
	size_t in_size, in_at;
	size_t chunk; /* maximum that rxw_call_read_some() returns; 0 = all */
	uint8_t *out; /* output; free it */
	size_t out_size, out_room;
};

#endif
