/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoding and decoding of DEBUG answers (rx-protocol 8.2). */

#include "base/debugfmt.h"

#include <string.h>

#include "base/wire.h"

#define STATS_SIZE   56u
#define CONN_SIZE    176u
#define PEER_SIZE    132u
#define RXSTATS_SIZE 284u
#define LETTER       'S' /* version of these layouts: 8.2 */

size_t rxw_debug_stats_put(uint8_t *out, const struct rxw_debug_stats *v)
{
	memset(out, 0, STATS_SIZE);
	rxw_put32(out, v->free_packets);
	rxw_put32(out + 4, v->reclaims);
	rxw_put32(out + 8, v->calls_executed);
	out[12] = v->waiting_for_packets;
	out[13] = v->used_fds;
	out[14] = LETTER;
	rxw_put32(out + 16, v->waiting);
	rxw_put32(out + 20, v->idle_threads);
	rxw_put32(out + 24, v->waited);
	rxw_put32(out + 28, v->packets);
	return STATS_SIZE;
}

size_t rxw_debug_conn_put(uint8_t *out, const struct rxw_debug_conn *v)
{
	memset(out, 0, CONN_SIZE);
	memcpy(out, v->host, 4);
	rxw_put32(out + 4, v->cid);
	rxw_put32(out + 8, v->serial);
	for (unsigned i = 0; i < 4; i++)
		rxw_put32(out + 12 + 4 * i, v->call[i]);
	rxw_put32(out + 28, (uint32_t)v->error);
	rxw_put16(out + 32, v->port);
	out[34] = v->flags;
	out[35] = v->type;
	out[36] = v->security;
	memcpy(out + 40, v->call_state, 4);
	memcpy(out + 44, v->call_mode, 4);
	memcpy(out + 48, v->call_flags, 4);
	memcpy(out + 52, v->call_other, 4);
	out[56] = v->sec_type;
	out[57] = v->sec_level;
	rxw_put32(out + 68, v->sec_flags);
	rxw_put32(out + 72, v->sec_expires);
	rxw_put32(out + 76, v->sec_packets_received);
	rxw_put32(out + 80, v->sec_packets_sent);
	rxw_put32(out + 84, v->sec_bytes_received);
	rxw_put32(out + 88, v->sec_bytes_sent);
	rxw_put32(out + 132, v->epoch);
	rxw_put32(out + 136, v->nat_mtu);
	return CONN_SIZE;
}

size_t rxw_debug_conn_end_put(uint8_t *out)
{
	memset(out, 0, CONN_SIZE);
	rxw_put32(out + 4, 0xffffffffu);
	return CONN_SIZE;
}

size_t rxw_debug_peer_put(uint8_t *out, const struct rxw_debug_peer *v)
{
	memset(out, 0, PEER_SIZE);
	memcpy(out, v->host, 4);
	rxw_put16(out + 4, v->port);
	rxw_put16(out + 6, v->if_mtu);
	rxw_put32(out + 8, v->idle_when);
	rxw_put16(out + 12, v->refs);
	rxw_put32(out + 24, v->rtt);
	rxw_put32(out + 28, v->rtt_dev);
	rxw_put32(out + 40, v->sent);
	rxw_put32(out + 44, v->resent);
	rxw_put16(out + 60, v->nat_mtu);
	rxw_put16(out + 62, v->max_mtu);
	rxw_put16(out + 64, v->max_dgram_packets);
	rxw_put16(out + 66, v->if_dgram_packets);
	rxw_put16(out + 68, v->mtu);
	rxw_put16(out + 70, v->cwind);
	rxw_put16(out + 72, v->dgram_packets);
	rxw_put16(out + 74, v->congest_seq);
	rxw_put32(out + 76, (uint32_t)(v->bytes_sent >> 32));
	rxw_put32(out + 80, (uint32_t)v->bytes_sent);
	rxw_put32(out + 84, (uint32_t)(v->bytes_received >> 32));
	rxw_put32(out + 88, (uint32_t)v->bytes_received);
	return PEER_SIZE;
}

size_t rxw_debug_peer_end_put(uint8_t *out)
{
	memset(out, 0, PEER_SIZE);
	memset(out, 0xff, 4);
	return PEER_SIZE;
}

size_t rxw_debug_rxstats_put(uint8_t *out, const struct rxw_debug_rxstats *v)
{
	for (unsigned i = 0; i < RXSTATS_SIZE / 4; i++)
		rxw_put32(out + 4 * i, v->word[i]);
	return RXSTATS_SIZE;
}

size_t rxw_debug_bad_put(uint8_t *out)
{
	rxw_put32(out, (uint32_t)-8);
	rxw_put32(out + 4, (uint32_t)-8);
	return 8;
}

void rxw_debug_request_get(const uint8_t *body, size_t size, int32_t *type, int32_t *index)
{
	*type = 0;
	*index = 0;
	if (size < 8)
		return;
	*type = (int32_t)rxw_get32(body);
	*index = (int32_t)rxw_get32(body + 4);
}

bool rxw_debug_stats_get(const uint8_t *in, size_t size, struct rxw_debug_stats *v)
{
	memset(v, 0, sizeof(*v));
	if (size < STATS_SIZE)
		return false;
	v->free_packets = rxw_get32(in);
	v->reclaims = rxw_get32(in + 4);
	v->calls_executed = rxw_get32(in + 8);
	v->waiting_for_packets = in[12];
	v->used_fds = in[13];
	v->waiting = rxw_get32(in + 16);
	v->idle_threads = rxw_get32(in + 20);
	v->waited = rxw_get32(in + 24);
	v->packets = rxw_get32(in + 28);
	return true;
}

bool rxw_debug_conn_get(const uint8_t *in, size_t size, struct rxw_debug_conn *v)
{
	memset(v, 0, sizeof(*v));
	if (size < CONN_SIZE)
		return false;
	memcpy(v->host, in, 4);
	v->cid = rxw_get32(in + 4);
	v->serial = rxw_get32(in + 8);
	for (unsigned i = 0; i < 4; i++)
		v->call[i] = rxw_get32(in + 12 + 4 * i);
	v->error = (int32_t)rxw_get32(in + 28);
	v->port = rxw_get16(in + 32);
	v->flags = in[34];
	v->type = in[35];
	v->security = in[36];
	memcpy(v->call_state, in + 40, 4);
	memcpy(v->call_mode, in + 44, 4);
	memcpy(v->call_flags, in + 48, 4);
	memcpy(v->call_other, in + 52, 4);
	v->sec_type = in[56];
	v->sec_level = in[57];
	v->sec_flags = rxw_get32(in + 68);
	v->sec_expires = rxw_get32(in + 72);
	v->sec_packets_received = rxw_get32(in + 76);
	v->sec_packets_sent = rxw_get32(in + 80);
	v->sec_bytes_received = rxw_get32(in + 84);
	v->sec_bytes_sent = rxw_get32(in + 88);
	v->epoch = rxw_get32(in + 132);
	v->nat_mtu = rxw_get32(in + 136);
	return true;
}

bool rxw_debug_peer_get(const uint8_t *in, size_t size, struct rxw_debug_peer *v)
{
	memset(v, 0, sizeof(*v));
	if (size < PEER_SIZE)
		return false;
	memcpy(v->host, in, 4);
	v->port = rxw_get16(in + 4);
	v->if_mtu = rxw_get16(in + 6);
	v->idle_when = rxw_get32(in + 8);
	v->refs = rxw_get16(in + 12);
	v->rtt = rxw_get32(in + 24);
	v->rtt_dev = rxw_get32(in + 28);
	v->sent = rxw_get32(in + 40);
	v->resent = rxw_get32(in + 44);
	v->nat_mtu = rxw_get16(in + 60);
	v->max_mtu = rxw_get16(in + 62);
	v->max_dgram_packets = rxw_get16(in + 64);
	v->if_dgram_packets = rxw_get16(in + 66);
	v->mtu = rxw_get16(in + 68);
	v->cwind = rxw_get16(in + 70);
	v->dgram_packets = rxw_get16(in + 72);
	v->congest_seq = rxw_get16(in + 74);
	v->bytes_sent = (uint64_t)rxw_get32(in + 76) << 32 | rxw_get32(in + 80);
	v->bytes_received = (uint64_t)rxw_get32(in + 84) << 32 | rxw_get32(in + 88);
	return true;
}

bool rxw_debug_rxstats_get(const uint8_t *in, size_t size, struct rxw_debug_rxstats *v)
{
	memset(v, 0, sizeof(*v));
	if (size < RXSTATS_SIZE)
		return false;
	for (unsigned i = 0; i < RXSTATS_SIZE / 4; i++)
		v->word[i] = rxw_get32(in + 4 * i);
	return true;
}
