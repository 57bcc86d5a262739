/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: packet headers, and the answers built from them. */

#include "fuzz.h"

#include <string.h>

#include "base/wire.h"

const char fuzz_name[] = "header";
const size_t fuzz_max = 64;
const unsigned fuzz_cost = 1;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[128];
	struct rxw_header h, back;
	size_t n;

	if (!rxw_header_get(data, size, &h)) {
		FUZZ_CHECK(size < RXW_HEADER_SIZE);
		return 0;
	}
	rxw_header_put(out, &h);
	FUZZ_CHECK(!memcmp(out, data, RXW_HEADER_SIZE));
	FUZZ_CHECK(strlen(rxw_packet_type_name(h.type)) > 0);
	n = rxw_stateless_abort_put(out, &h, (int32_t)h.serial);
	FUZZ_CHECK(n == 32 && rxw_header_get(out, n, &back));
	FUZZ_CHECK(back.type == RXW_ABORT && (back.flags ^ (h.flags & 1)) == RXW_CLIENT_INITIATED);
	n = rxw_version_put(out, &h, "rxwire");
	FUZZ_CHECK(n == 93 && rxw_header_get(out, n, &back));
	FUZZ_CHECK(!(back.flags & RXW_CLIENT_INITIATED));
	return 0;
}
