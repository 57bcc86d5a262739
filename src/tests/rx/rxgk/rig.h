/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of a connection as the class sees them: no packets, and a clock and random bytes set by
 * the test.
 */
#ifndef RXW_TESTS_RXGK_RIG_H
#define RXW_TESTS_RXGK_RIG_H

#include "tests/rx/base/testing.h"

#include <rxwire/error.h>

#include "keys/keys.h"
#include "rxgk/rxgk_conn.h"

#define RIG_NOW (INT64_C(1795228021) * RXW_RXGK_SECOND) /* the hour of the recorded exchanges */

/* One side. `random` first returns the bytes put there, then bytes derived from the seed. */
struct rig_side {
	struct rxw_gk_class *klass;
	struct rxw_gk_conn *conn;
	int64_t now;
	uint64_t seed;
	uint8_t chance[64];
	size_t chance_left;
	bool no_chance; /* no random bytes available */
};

/* A connection's identity. */
static inline struct rxw_security_id rig_id(bool client)
{
	return (struct rxw_security_id){.epoch = 0x80123456, .cid = 0x4711abc0 & ~3u,
					.service = 200, .index = 4, .client = client};
}

/* Creates the class and its connection. `index` 4 or 6. */
void rig_server(struct rig_side *s, rxw_keys *keys, uint8_t level_min, uint8_t index,
		const struct rxw_security_id *id);
void rig_client(struct rig_side *s, const struct rxw_rxgk_token *token, uint8_t index,
		const struct rxw_security_id *id);
void rig_end(struct rig_side *s);
/* The next random bytes that this side draws. */
void rig_chance(struct rig_side *s, const void *bytes, size_t length);

/* Exchanges CHALLENGE and RESPONSE; returns the server's result. */
int32_t rig_exchange(struct rig_side *client, struct rig_side *server);

/*
 * Seals `length` bytes at `data` into `out` (64 KiB suffice); *size is the packet's length. Returns
 * the header's word.
 */
uint16_t rig_seal(struct rig_side *s, uint32_t call, uint32_t seq, uint8_t channel,
		  const void *data, size_t length, uint8_t *out, size_t *size);
/*
 * Verifies a copy of the packet; returns the result, and if it is good the data and their length.
 */
int32_t rig_open(struct rig_side *s, uint32_t call, uint32_t seq, uint8_t channel, uint16_t word,
		 const void *packet, size_t size, uint8_t *data, size_t *length);
/* Sends one packet from one side to the other; it must arrive. */
void rig_send(struct rig_side *from, struct rig_side *to, uint32_t seq);

/* Keys with one service key of type rxgk. */
rxw_keys *rig_keys(int32_t kvno, int32_t enctype);

#endif
