/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: cutting of received bursts into runs. The first two bytes are the length of a
 * datagram in the burst (0: one datagram), the rest is the burst. The runs must hold exactly the
 * packets found by a simple loop.
 */

#include "fuzz.h"

#include <string.h>

#include "proto/conn/conn.h"

const char fuzz_name[] = "run";
const size_t fuzz_max = 6000;
const unsigned fuzz_cost = 8;

struct walk {
	const uint8_t *burst;
	uint32_t length, segment, at;
	struct rxw_jumbo jumbo;
	struct rxw_header head;
	const uint8_t *payload;
	size_t size; /* of the payload */
};

/* The next valid packet of the burst, one by one. */
static bool walk_next(struct walk *w)
{
	for (;;) {
		uint32_t left, size;

		if (w->jumbo.more &&
		    rxw_jumbo_next(&w->jumbo, &w->head, &w->payload, &w->size) == 1)
			return true;
		if (w->at >= w->length)
			return false;
		left = w->length - w->at;
		size = left < w->segment ? left : w->segment;
		rxw_jumbo_init(&w->jumbo, w->burst + w->at, size); /* shorter than a header: none */
		w->at += size;
	}
}

static void check_packet(const struct rxw_rxrun *run, uint32_t i, struct walk *w)
{
	const uint8_t *p = run->data + (size_t)i * run->stride;
	uint32_t size = i + 1 < run->count ? run->stride : run->last_size;
	struct rxw_header h = run->head;

	FUZZ_CHECK(walk_next(w));
	if (!run->jumbo)
		FUZZ_CHECK(rxw_header_get(p, size, &h));
	FUZZ_CHECK(p + RXW_HEADER_SIZE == w->payload && size == w->size + RXW_HEADER_SIZE);
	FUZZ_CHECK(h.seq == w->head.seq && h.serial == w->head.serial && h.type == w->head.type);
	FUZZ_CHECK(h.call == w->head.call && h.cid == w->head.cid && h.epoch == w->head.epoch);
	FUZZ_CHECK(h.flags == w->head.flags && h.spare == w->head.spare);
	FUZZ_CHECK(h.seq == run->head.seq + i && h.cid == run->head.cid &&
		   h.call == run->head.call);
	FUZZ_CHECK((run->or_flags & h.flags) == h.flags);
	if (i + 1 == run->count)
		FUZZ_CHECK(run->last_flags == h.flags);
	else
		FUZZ_CHECK(!(h.flags & RXW_LAST_PACKET));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rxw_path path;
	struct rxw_pstats stats;
	struct rxw_rxrun run;
	struct rxw_jumbo jumbo;
	struct rxw_buf buf;
	struct walk w;
	uint32_t at = 0;

	if (size < 2 || size > 65536)
		return 0;
	memset(&path, 0, sizeof(path));
	memset(&stats, 0, sizeof(stats));
	memset(&jumbo, 0, sizeof(jumbo));
	memset(&w, 0, sizeof(w));
	memset(&buf, 0, sizeof(buf));
	buf.data = (uint8_t *)(uintptr_t)data + 2; /* is not written to */
	buf.cap = (uint32_t)size - 2;
	w.burst = data + 2;
	w.length = buf.cap;
	w.segment = rxw_get16(data);
	if (!w.segment || w.segment > w.length)
		w.segment = w.length;
	while (rxw_run_next(&buf, &path, buf.cap, rxw_get16(data), &at, &jumbo, &run, &stats)) {
		FUZZ_CHECK(run.count >= 1 && run.buf == &buf && run.path == &path);
		FUZZ_CHECK(run.count == 1 || run.head.type == RXW_DATA);
		for (uint32_t i = 0; i < run.count; i++)
			check_packet(&run, i, &w);
	}
	FUZZ_CHECK(!walk_next(&w)); /* no packet was omitted */
	return 0;
}
