/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs through a security class: sealed by the writer, verified by any thread (7.1). The null class (7.2). */
#include "base/assert.h"
#include "proto/state.h"

/* No protection, no exchange. */
struct rxw_security rxw_security_null_class = {
	.class = {.size = sizeof(struct rxw_security_class), .name = "null"},
};

static uint8_t *payload(const struct rxw_rxrun *run, uint16_t i)
{
	return run->data + (size_t)i * run->stride + RXW_HEADER_SIZE;
}

static uint32_t payload_size(const struct rxw_rxrun *run, uint16_t i)
{
	return (i + 1 == run->count ? run->last_size : run->stride) - RXW_HEADER_SIZE;
}

int rxw_run_seal(const struct rxw_pconn *c, uint8_t channel, uint32_t call, uint32_t seq,
		 uint8_t *data, uint16_t stride, uint16_t count, uint32_t length, uint32_t last)
{
	const struct rxw_security_class *k = &c->auth.security->class;
	struct rxw_security_packet packet[RXW_VERIFY_MOST];

	for (uint16_t at = 0; at < count;) {
		uint16_t n = 0;

		for (; n < RXW_VERIFY_MOST && at + n < count; n++)
			packet[n] = (struct rxw_security_packet){
				.data = data + (size_t)(at + n) * stride + RXW_HEADER_SIZE,
				.call = call,
				.seq = seq + at + n,
				.channel = channel,
				.length = at + n + 1 == count ? last : length,
			};
		if (k->seal != NULL && k->seal(c->auth.sec, packet, n) != 0)
			return -RXW_ECALL;
		for (uint16_t i = 0; i < n; i++)
			rxw_put16(packet[i].data - RXW_HEADER_SIZE + 24, packet[i].spare);
		at += n;
	}
	return 0;
}

/* Packets of a sealed run, from packet `at` on. Returns how many. */
static uint16_t sealed_packets(struct rxw_security_packet packet[RXW_VERIFY_MOST], uint8_t channel,
			       uint32_t call, uint32_t seq, uint8_t *data, uint16_t stride,
			       uint16_t count, uint16_t last_size, uint16_t at)
{
	uint16_t n = 0;

	for (; n < RXW_VERIFY_MOST && at + n < count; n++) {
		uint8_t *d = data + (size_t)(at + n) * stride;

		packet[n] = (struct rxw_security_packet){
			.data = d + RXW_HEADER_SIZE,
			.call = call,
			.seq = seq + at + n,
			.channel = channel,
			.spare = rxw_get16(d + 24),
			.length = (at + n + 1 == count ? last_size : stride) -
				  (uint32_t)RXW_HEADER_SIZE,
		};
	}
	return n;
}

int rxw_run_reseal(const struct rxw_pconn *c, uint8_t channel, uint32_t call, uint32_t seq,
		   uint8_t *data, uint16_t stride, uint16_t count, uint16_t last_size)
{
	const struct rxw_security_class *k = &c->auth.security->class;
	struct rxw_security_packet packet[RXW_VERIFY_MOST];

	for (uint16_t at = 0; k->renew != NULL && at < count;) {
		uint16_t n = sealed_packets(packet, channel, call, seq, data, stride, count,
					    last_size, at);

		if (k->renew(c->auth.sec, packet, n) != 0)
			return -RXW_ECALL;
		for (uint16_t i = 0; i < n; i++)
			rxw_put16(packet[i].data - RXW_HEADER_SIZE + 24, packet[i].spare);
		at += n;
	}
	return 0;
}

int rxw_run_unseal(const struct rxw_pconn *c, uint8_t channel, uint32_t call, uint32_t seq,
		   uint8_t *data, uint16_t stride, uint16_t count, uint16_t last_size,
		   uint16_t *length)
{
	const struct rxw_security_class *k = &c->auth.security->class;
	struct rxw_security_packet packet[RXW_VERIFY_MOST];

	for (uint16_t at = 0; at < count;) {
		uint16_t n = sealed_packets(packet, channel, call, seq, data, stride, count,
					    last_size, at);

		if (k->unseal(c->auth.sec, packet, n) != 0)
			return -RXW_ECALL;
		for (uint16_t i = 0; i < n; i++) {
			/* A faulty class must not make us read beyond the packet. */
			uint32_t size = (at + i + 1 == count ? last_size : stride) - RXW_HEADER_SIZE;

			if ((uint64_t)c->auth.room.head + packet[i].length > size)
				return -RXW_ECALL;
			length[at + i] = (uint16_t)packet[i].length;
		}
		at += n;
	}
	return 0;
}

void rxw_run_verify(const struct rxw_pconn *c, const struct rxw_rxrun *run,
		    struct rxw_security_packet *packet)
{
	assert(run->count <= RXW_VERIFY_MOST);
	for (uint16_t i = 0; i < run->count; i++)
		packet[i] = (struct rxw_security_packet){
			.data = payload(run, i),
			.call = run->head.call,
			.seq = run->head.seq + i,
			.channel = run->head.cid & 3,
			.spare = run->jumbo ? run->head.spare : rxw_get16(payload(run, i) - 4),
			.length = payload_size(run, i),
			.result = -1,
		};
	c->auth.security->class.verify(c->auth.sec, packet, run->count);
	/* A faulty class must not make us read beyond the packet. */
	for (uint16_t i = 0; i < run->count; i++)
		if (packet[i].result == 0 &&
		    ((uint64_t)c->auth.room.head + packet[i].length > payload_size(run, i)))
			packet[i].result = -1;
}
