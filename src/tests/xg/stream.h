/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call that is only its two streams, in place of the library's: what src/rx/rpc/window.c and
 * generated stubs write to it and read from it stays in memory.
 */
#ifndef RXW_TESTS_XG_STREAM_H
#define RXW_TESTS_XG_STREAM_H

#include <rxwire/rpc.h>

struct rxw_call {
	const uint8_t *in; /* what is read, and how far that has come */
	size_t in_size, in_at;
	size_t chunk; /* rxw_call_read_some() gives at most so many bytes; 0 = all */
	uint8_t *out; /* what was written; free it */
	size_t out_size, out_room;
};

#endif
