/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoding of DEBUG answers (rx-protocol 8.2); decoding for our own inspection tool. */
#ifndef RXW_BASE_DEBUGFMT_H
#define RXW_BASE_DEBUGFMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RXW_DEBUG_STATS = 1,
	RXW_DEBUG_CONN = 2,
	RXW_DEBUG_ALLCONN = 3,
	RXW_DEBUG_RXSTATS = 4,
	RXW_DEBUG_PEER = 5
};

struct rxw_debug_stats {
	uint32_t free_packets, reclaims, calls_executed;
	uint8_t waiting_for_packets, used_fds;
	uint32_t waiting, idle_threads, waited, packets;
};
struct rxw_debug_conn {
	uint8_t host[4]; /* address order; IPv6 peers show as 0 */
	uint16_t port;
	uint32_t cid, serial, call[4];
	int32_t error;
	uint8_t flags, type /* 0 client, 1 server */, security;
	uint8_t call_state[4], call_mode[4], call_flags[4], call_other[4];
	uint8_t sec_type, sec_level;
	uint32_t sec_flags, sec_expires, sec_packets_received, sec_packets_sent, sec_bytes_received,
		sec_bytes_sent;
	uint32_t epoch, nat_mtu;
};
struct rxw_debug_peer {
	uint8_t host[4];
	uint16_t port, if_mtu, refs, nat_mtu, max_mtu, max_dgram_packets, if_dgram_packets, mtu,
		cwind, dgram_packets, congest_seq;
	uint32_t idle_when, rtt /* 1/8 ms */, rtt_dev /* 1/4 ms */, sent, resent;
	uint64_t bytes_sent, bytes_received;
};
/* Words 0..70 of rx_statistics by position. */
struct rxw_debug_rxstats {
	uint32_t word[71];
};

/* Each returns the number of bytes written: 56, 176, 132, 284, 8. */
size_t rxw_debug_stats_put(uint8_t *out, const struct rxw_debug_stats *v);
size_t rxw_debug_conn_put(uint8_t *out, const struct rxw_debug_conn *v);
size_t rxw_debug_conn_end_put(uint8_t *out); /* cid 0xffffffff */
size_t rxw_debug_peer_put(uint8_t *out, const struct rxw_debug_peer *v);
size_t rxw_debug_peer_end_put(uint8_t *out); /* host 0xffffffff */
size_t rxw_debug_rxstats_put(uint8_t *out, const struct rxw_debug_rxstats *v);
size_t rxw_debug_bad_put(uint8_t *out); /* two words of -8 */
/* The 8 bytes of a request; a short one reads as type 0. */
void rxw_debug_request_get(const uint8_t *body, size_t size, int32_t *type, int32_t *index);
bool rxw_debug_stats_get(const uint8_t *in, size_t size, struct rxw_debug_stats *v);
bool rxw_debug_conn_get(const uint8_t *in, size_t size, struct rxw_debug_conn *v);
bool rxw_debug_peer_get(const uint8_t *in, size_t size, struct rxw_debug_peer *v);
bool rxw_debug_rxstats_get(const uint8_t *in, size_t size, struct rxw_debug_rxstats *v);

#endif
