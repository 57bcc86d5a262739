/* SPDX-License-Identifier: BSD-2-Clause */
/* A server and a client on loopback, and what tests of the public layer and the engine ask of them. */
#ifndef TESTS_FACE_HARNESS_H
#define TESTS_FACE_HARNESS_H

#include <pthread.h>
#include <rxwire/rxwire.h>
#include <stdbool.h>

#include "tests/asserts.h"

/* Service ids. */
#define H_SERVICE 100 /* handlers on workers; null and test class */
#define H_INLINE  101 /* handlers on the receiving thread */
#define H_SECOND  102 /* as H_SERVICE, with at most one worker */

/* What a request asks for: its first 32 bytes. */
enum h_op {
	H_ECHO = 1, /* what follows comes back */
	H_SINK,     /* `bytes` of the pattern follow; the reply is empty, or an abort: 4001 */
	H_SOURCE,   /* the reply is `bytes` of the pattern */
	H_BOTH,     /* first H_SINK, then H_SOURCE */
	H_ABORT,    /* ends with `code` */
	H_LATE,     /* writes `bytes` of the pattern, then ends with `code` */
	H_WAIT,     /* waits until h_gate_open(), then H_SINK */
	H_ONCE,     /* as H_SOURCE, in one write, and its figures go to bed->seen */
	H_DESTROY, /* tries to stop and destroy its endpoint and engine; replies with the results */
	H_PING      /* replies at once with 4 bytes */
};
#define H_MISMATCH 4001

/* How the bytes of a stream are moved, on whichever side. */
enum h_how {
	H_PLAIN = 0,
	H_INPLACE = 1, /* reserve and commit; readv */
	H_FILE = 2,    /* sendfile */
	H_SOME = 4,    /* read_some */
	H_FLUSH = 8    /* flush after each chunk */
};

struct h_ask {
	enum h_op op;
	unsigned how;    /* enum h_how */
	uint64_t bytes;
	uint32_t seed;   /* of the pattern */
	uint32_t chunk;  /* bytes of one read or write; 0 = 64 KiB */
	int32_t code;
};
#define H_ASK_SIZE 32

/* A door that handlers of H_WAIT stand before. */
struct h_gate {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool open;
	unsigned arrived;
};

struct h_options {
	/* tunables of both ends, and constants: "window=16 batch=8 spin-us=0" */
	const char *both;
	const char *server;     /* of the server alone */
	const char *client;     /* of the client alone */
	bool ipv6;
	bool secure;            /* connections use the test class */
	/*
	 * Or another: "null", "rxkad-clear", "rxkad-auth", "rxkad-crypt", "rxgk-clear" …; NULL: what
	 * the environment says (RXW_TEST_CLASS), the null class if it says nothing.
	 */
	const char *security;
	bool no_client;
};

struct h_bed {
	rxw_engine *server_engine, *client_engine;
	rxw_endpoint *server, *client;
	struct sockaddr_storage address; /* of the server */
	socklen_t address_len;
	rxw_security *security;  /* of the client's connections */
	rxw_security *offered[4]; /* by the services */
	rxw_keys *keys;          /* of the server, and for tokens that it would take */
	int file;               /* the pattern's table, for sendfile */
	struct h_gate gate;
	pthread_mutex_t lock;
	unsigned warnings;      /* lines of level warning or worse that the library logged; lock */
	struct rxw_call_stats seen; /* of the latest call of H_ONCE; lock */
};

/* Is the test to keep small: sanitizers, or RXW_TEST_SMALL is set? */
bool h_small(void);
/* Is this run of the suites for a class other than null? Says on stdout what is left out then. */
bool h_left_out(const char *what, const char *why);
/* 64 MiB, or 4 MiB where tests are to keep small. */
uint64_t h_bulk_size(void);
bool h_have_ipv6(void);

/* Each fails the test if it does not work out. */
/* A client's side by its name as in h_options; the bed's keys made its token. */
rxw_security *h_class(struct h_bed *bed, const char *name);
void h_open(struct h_bed *bed, const struct h_options *options);
/* Opens the gate, ends everything and checks that it ends in order. */
void h_close(struct h_bed *bed);
rxw_connection *h_connect(struct h_bed *bed, uint16_t service);
/* An endpoint of its own for a further client; the engine is the bed's. */
rxw_endpoint *h_client(struct h_bed *bed, const char *tunables);

/* The pattern: byte at `offset` of the stream `seed`. */
void h_pattern(uint8_t *to, uint64_t offset, size_t length, uint32_t seed);
bool h_pattern_is(const uint8_t *data, uint64_t offset, size_t length, uint32_t seed);

/* Write, or read and compare, a stream: 0, -4001 (bytes or their number differ), a result. */
int h_put(struct h_bed *bed, rxw_call *call, const struct h_ask *ask);
int h_get(rxw_call *call, const struct h_ask *ask);

/* A service of the test's own, with the classes that the others offer. */
void h_offer(struct h_bed *bed, struct rxw_service_options options);
/* securityIndex of the bed's connections. */
uint8_t h_index(const struct h_bed *bed);

/* Begin a call and write its request's first part. */
rxw_call *h_begin(rxw_connection *connection, const struct h_ask *ask);
void h_write_ask(rxw_call *call, const struct h_ask *ask);
/* One call from begin to end; returns its code. */
int32_t h_call(struct h_bed *bed, rxw_connection *connection, const struct h_ask *ask);
/* As h_call(), and the code must be 0. */
void h_good_call(struct h_bed *bed, rxw_connection *connection, const struct h_ask *ask);

/* Wait for handlers of H_WAIT to come to the gate; let them go on. */
void h_gate_arrived(struct h_bed *bed, unsigned count);
void h_gate_open(struct h_bed *bed);

/* Wait until fn(arg) is true; fails the test after a generous while, naming what. */
void h_wait_for(bool (*fn)(void *arg), void *arg, const char *what);
struct rxw_stats h_stats(rxw_endpoint *endpoint);
unsigned h_warnings(struct h_bed *bed);
uint64_t h_now_ms(void);
/* A UDP socket that is connected to the server; its receive times out after 10 seconds. */
int h_raw_socket(struct h_bed *bed);

/* A packet made by hand; the body follows the header. */
struct h_raw {
	uint32_t epoch, cid, call, seq, serial;
	uint8_t type, flags, security;
	uint16_t service;
	const void *body;
	size_t size;
};
/* A whole small call in one packet of a client: call 1, DATA 1, the last. `head` is written. */
struct h_raw h_raw_request(uint8_t head[H_ASK_SIZE], enum h_op op, uint32_t cid);
size_t h_raw_encode(uint8_t packet[2048], const struct h_raw *raw);
void h_raw_send(int fd, const struct h_raw *raw);
/* The next packet of type `type`, others are passed over; -1 after 10 seconds without. */
ssize_t h_raw_receive(int fd, unsigned type, uint8_t packet[2048]);

#endif
