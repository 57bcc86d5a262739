/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: DEBUG requests and answers. */

#include "fuzz.h"

#include <string.h>

#include "base/debugfmt.h"

const char fuzz_name[] = "debug";
const size_t fuzz_max = 320;
const unsigned fuzz_cost = 1;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[284], again[284];
	struct rxw_debug_stats stats;
	struct rxw_debug_conn conn;
	struct rxw_debug_peer peer;
	struct rxw_debug_rxstats rxstats;
	int32_t type = -1, index = -1;

	rxw_debug_request_get(data, size, &type, &index);
	FUZZ_CHECK(size >= 8 || (type == 0 && index == 0));
	FUZZ_CHECK(rxw_debug_stats_get(data, size, &stats) == (size >= 56));
	FUZZ_CHECK(rxw_debug_conn_get(data, size, &conn) == (size >= 176));
	FUZZ_CHECK(rxw_debug_peer_get(data, size, &peer) == (size >= 132));
	FUZZ_CHECK(rxw_debug_rxstats_get(data, size, &rxstats) == (size >= 284));
	/* Encoding the decoded packet is stable. */
	FUZZ_CHECK(rxw_debug_stats_put(out, &stats) == 56 && rxw_debug_stats_get(out, 56, &stats));
	rxw_debug_stats_put(again, &stats);
	FUZZ_CHECK(!memcmp(out, again, 56));
	FUZZ_CHECK(rxw_debug_conn_put(out, &conn) == 176 && rxw_debug_conn_get(out, 176, &conn));
	rxw_debug_conn_put(again, &conn);
	FUZZ_CHECK(!memcmp(out, again, 176));
	FUZZ_CHECK(rxw_debug_peer_put(out, &peer) == 132 && rxw_debug_peer_get(out, 132, &peer));
	rxw_debug_peer_put(again, &peer);
	FUZZ_CHECK(!memcmp(out, again, 132));
	FUZZ_CHECK(rxw_debug_rxstats_put(out, &rxstats) == 284);
	FUZZ_CHECK(size < 284 || !memcmp(out, data, 284));
	return 0;
}
