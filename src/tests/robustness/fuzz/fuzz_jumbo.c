/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: splitting of jumbograms. */

#include "fuzz.h"

#include "base/wire.h"

const char fuzz_name[] = "jumbo";
const size_t fuzz_max = 8 * 1416;
const unsigned fuzz_cost = 8;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *payload, *end = data;
	struct rxw_header first, h;
	struct rxw_jumbo j;
	size_t length, members = 0;
	unsigned sum = 0;
	int rc;

	if (!rxw_jumbo_init(&j, data, size)) {
		FUZZ_CHECK(size < RXW_HEADER_SIZE);
		return 0;
	}
	FUZZ_CHECK(rxw_header_get(data, size, &first));
	while ((rc = rxw_jumbo_next(&j, &h, &payload, &length)) == 1) {
		FUZZ_CHECK(payload >= data + RXW_HEADER_SIZE && payload + length <= data + size);
		FUZZ_CHECK(payload >= end); /* members do not overlap */
		for (size_t i = 0; i < length; i++)
			sum += payload[i];
		FUZZ_CHECK(h.seq == first.seq + (uint32_t)members &&
			   h.serial == first.serial + (uint32_t)members);
		FUZZ_CHECK(h.epoch == first.epoch && h.cid == first.cid && h.call == first.call);
		FUZZ_CHECK((h.flags & RXW_CLIENT_INITIATED) ==
			   (first.flags & RXW_CLIENT_INITIATED));
		end = payload + length;
		members++;
	}
	FUZZ_CHECK(rc == 0 || rc == -1);
	FUZZ_CHECK(members <= 1 + size / 1416);
	FUZZ_CHECK(sum <= 255 * size); /* each byte is read at most once */
	if (rc == 0)                   /* no byte remains */
		FUZZ_CHECK(members >= 1 && end == data + size);
	FUZZ_CHECK(rxw_jumbo_next(&j, &h, &payload, &length) == 0);
	return 0;
}
