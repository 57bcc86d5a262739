/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: bodies of ACK packets. */

#include "fuzz.h"

#include <string.h>

#include "base/wire.h"

const char fuzz_name[] = "ack";
const size_t fuzz_max = 1500;
const unsigned fuzz_cost = 1;

static void check_trailer(const struct rxw_ack *a)
{
	if (a->trailer_words >= 2) {
		FUZZ_CHECK(a->max_mtu >= RXW_MTU_MIN && a->max_mtu <= RXW_MTU_MAX);
		FUZZ_CHECK(a->if_mtu >= RXW_MTU_MIN && a->if_mtu <= RXW_MTU_MAX);
	}
	if (a->trailer_words >= 3)
		FUZZ_CHECK(a->rwind >= 1 && a->rwind <= RXW_MAX_ACKS);
	if (a->trailer_words >= 4)
		FUZZ_CHECK(a->jumbo_max >= 1 && a->jumbo_max <= RXW_JUMBO_MAX);
	FUZZ_CHECK(a->trailer_words <= 4 && a->trailer_words != 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[RXW_ACK_MAX_SIZE];
	struct rxw_ack a, back;
	unsigned received = 0;
	size_t n;

	if (!rxw_ack_get(data, size, 0, &a))
		return 0;
	FUZZ_CHECK(a.first != 0);
	FUZZ_CHECK(a.reason >= RXW_ACK_REQUESTED && a.reason <= RXW_ACK_IDLE);
	FUZZ_CHECK(a.acks >= data && a.acks + a.count <= data + size);
	for (unsigned i = 0; i < a.count; i++)
		received += a.acks[i] & 1;
	FUZZ_CHECK(received <= a.count);
	check_trailer(&a);
	n = rxw_ack_put(out, &a);
	FUZZ_CHECK(n == 18u + a.count + 19u);
	if (a.trailer_words < 4)
		return 0;
	FUZZ_CHECK(rxw_ack_get(out, n, 0, &back));
	FUZZ_CHECK(back.first == a.first && back.previous == a.previous && back.serial == a.serial);
	FUZZ_CHECK(back.reason == a.reason && back.count == a.count && back.trailer_words == 4);
	FUZZ_CHECK(!a.count || !memcmp(back.acks, a.acks, a.count));
	FUZZ_CHECK(back.max_mtu == a.max_mtu && back.if_mtu == a.if_mtu && back.rwind == a.rwind);
	FUZZ_CHECK(back.jumbo_max == a.jumbo_max);
	return 0;
}
