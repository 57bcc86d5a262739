/* SPDX-License-Identifier: BSD-2-Clause */
/* First packets of calls, from source addresses that a test cannot bind. */
#include <arpa/inet.h>

#include "arrival.h"
#include "engine/receive/batch.h"

static void set_address(struct rxw_addr *to, const char *host, uint16_t port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};

	ck_assert_int_eq(inet_pton(AF_INET, host, &sa.sin_addr), 1);
	ck_assert(rxw_addr_set(to, (struct sockaddr *)&sa, sizeof(sa)));
}

struct rxw_connection *arrival_from(struct h_bed *bed, const char *host, const char *local,
				    uint32_t cid)
{
	uint8_t head[H_ASK_SIZE], packet[2048];
	struct rxw_shard *s = &bed->server->shard[0];
	struct h_raw raw = h_raw_request(head, H_PING, cid);
	struct rxw_path path = {.ifindex = 0};
	struct rxw_rxrun run = {.data = packet, .count = 1, .path = &path};
	struct rxw_connection *c;
	struct rxw_effects a;

	set_address(&path.peer, host, 7001);
	set_address(&path.local, local, 0);
	run.size = run.stride = run.last_size = (uint16_t)h_raw_encode(packet, &raw);
	ck_assert(rxw_header_get(packet, run.size, &run.head));
	rxw_effects_init(&a, s, false);
	c = rxw_find_connection(s, &run, &a);
	ck_assert_uint_le(a.out.ctl_count, !c); /* a cookie for one that was not admitted */
	return c;
}
