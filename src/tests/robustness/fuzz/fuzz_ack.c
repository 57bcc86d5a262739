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

/* An ACK with the fifth word survives decoding and encoding. */
static void check_marks(const struct rxw_ack *a)
{
	uint8_t out[RXW_ACK_MAX_SIZE];
	struct rxw_ack again = *a, back;
	size_t n;

	FUZZ_CHECK(a->ecn ? a->extended : a->marks.ce == 0 && a->marks.ect0 == 0);
	if (!a->ecn || a->tail > 0 || a->tables > RXW_ACK_TABLES)
		return;
	n = rxw_ack_put(out, &again);
	FUZZ_CHECK(n <= sizeof(out) - RXW_HEADER_SIZE);
	FUZZ_CHECK(rxw_ack_get(out, n, RXW_EXTENDED_ACK, &back) && back.ecn);
	FUZZ_CHECK(back.marks.ce == a->marks.ce && back.marks.ect0 == a->marks.ect0);
	FUZZ_CHECK(back.part == a->part && back.count == a->count);
}

/* All that is described lies within the packet. */
static void check_extended(const uint8_t *data, size_t size)
{
	uint32_t begin, received = 0;
	struct rxw_ack a;

	if (!rxw_ack_get(data, size, RXW_EXTENDED_ACK, &a))
		return;
	FUZZ_CHECK((uint64_t)a.count + a.tail <= RXW_WINDOW_MAX && a.base >= 1);
	FUZZ_CHECK(a.part == 0 || a.tail == 0);
	FUZZ_CHECK(a.rwind <= (a.extended ? RXW_WINDOW_MAX : RXW_MAX_ACKS));
	for (uint32_t i = 0; i < a.count; i++)
		received += rxw_ack_has(&a, i);
	check_marks(&a);
	begin = a.base * RXW_TABLE_PACKETS;
	for (uint32_t i = begin; i < begin + a.part; i++)
		received += rxw_ack_has(&a, i);
	FUZZ_CHECK(received <= a.count + a.part);
	FUZZ_CHECK(a.count + a.part + a.tail <= RXW_MAX_ACKS || a.previous - a.first < RXW_WINDOW_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[RXW_ACK_MAX_SIZE];
	struct rxw_ack a, back;
	unsigned received = 0;
	size_t n;

	check_extended(data, size);
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
