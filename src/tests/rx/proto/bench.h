/* SPDX-License-Identifier: BSD-2-Clause */
/* Test bench for the protocol core: hand-made packets, captured output, a manual clock. */
#ifndef RXW_TESTS_PROTO_BENCH_H
#define RXW_TESTS_PROTO_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/asserts.h"
#include "tests/support/host.h"

#define BENCH_SERVICE 73
#define BENCH_EPOCH   0x80000001u
#define BENCH_CID     0x00004000u

/* A captured packet. */
struct bench_packet {
	uint64_t at;
	struct rxw_header h;
	struct rxw_ack ack; /* of ACKs */
	int32_t code;	    /* of ABORTs */
	uint32_t length, padding;
	unsigned port; /* destination */
	bool burst;    /* DATA sent in a burst */
	uint8_t bytes[2048];
};

struct bench_call {
	HOST_CALL;
	uint32_t events;	 /* all effects since they were last cleared */
	struct bench_call *next; /* in the bench's list of finished calls */
};

struct bench_conn {
	HOST_CONN;
	struct bench_conn *next;
	struct bench_call *over[4]; /* the latest that left its channel */
};

struct bench {
	HOST; /* live_calls, without the finished ones */
	struct rxw_conntable table;
	struct bench_conn *conns;
	/* calls that left their channels, with one reference each for the tests */
	struct bench_call *over;
	struct bench_packet sent[512];
	unsigned count, next; /* packets captured; first one not yet read */
	bool client;
	bool auto_attach, auto_send;
	struct rxw_security *security;
	unsigned drop_auth; /* number of exchange jobs that find no thread */
	/* the application, may be NULL */
	void (*on_events)(struct bench_call *call, uint32_t events);
	uint32_t serial; /* defaults for bench_packet() */
	uint64_t waited; /* ns that packets were in the queue of the socket */
};

void bench_init(struct bench *b, bool client);
void bench_free(struct bench *b); /* checks that nothing leaked */
struct bench_conn *bench_conn(struct bench *b, uint32_t epoch, uint32_t cid, unsigned port);
struct bench_call *bench_begin(struct bench *b, struct bench_conn *c);
/* The call of a channel, or the last one it recorded, or NULL. */
struct rxw_pcall *bench_channel(const struct bench_conn *c, unsigned i);

/* Inputs the bytes as one received burst, then ends the batch. */
void bench_input(struct bench *b, struct bench_conn *c, const void *bytes, uint32_t length,
		 uint32_t segment);
/* The same without the end of the batch. */
void bench_feed(struct bench *b, struct bench_conn *c, const void *bytes, uint32_t length,
		uint32_t segment);
void bench_end(struct bench *b, struct bench_conn *c, bool dry);
void bench_settle(struct bench *b);

/* Packets of the peer, written to `to`. Return the size. The serial is the next one. */
uint32_t bench_data(struct bench *b, uint8_t *to, uint32_t call, uint32_t seq, unsigned flags,
		    uint32_t payload);
uint32_t bench_header(struct bench *b, uint8_t *to, unsigned type, uint32_t call, unsigned flags);
uint32_t bench_ack(struct bench *b, uint8_t *to, uint32_t call, uint32_t first, uint32_t serial,
		   unsigned reason, unsigned flags, const char *acks, uint32_t rwind);
/* Make a packet and input it. */
void bench_get_data(struct bench *b, struct bench_conn *c, uint32_t call, uint32_t seq,
		    unsigned flags, uint32_t payload);
void bench_get_ack(struct bench *b, struct bench_conn *c, uint32_t call, uint32_t first,
		   uint32_t serial, unsigned reason, const char *acks, uint32_t rwind);

/* The application writes `packets` full packets (and with `last` the end). */
void bench_write(struct bench_call *call, unsigned packets, uint32_t payload, bool last);
/* Sends what can be sent. Returns the number of packets. */
unsigned bench_send(struct bench_call *call);
/* Reads and consumes everything. Returns the number of packets. */
unsigned bench_read(struct bench_call *call);

/* Advances the clock and runs the timers. */
void bench_pass(struct bench *b, uint64_t ns);
/* The next captured packet not yet read, or NULL. */
struct bench_packet *bench_next(struct bench *b);
/* The same. It must be of this type. */
struct bench_packet *bench_expect(struct bench *b, unsigned type);
#define bench_nothing(b)                                                 \
	ck_assert_msg((b)->next == (b)->count, "something was sent: %s", \
		      rxw_packet_type_name((b)->sent[(b)->next].h.type))
int bench_main(Suite *suite);

#endif
