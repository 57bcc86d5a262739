/* SPDX-License-Identifier: BSD-2-Clause */
/* A server and a client on loopback, for tests of the API and the engine. */
#ifndef TESTS_FACE_HARNESS_H
#define TESTS_FACE_HARNESS_H

#include <pthread.h>
#include <rxwire/afs.h>
#include <rxwire/rxwire.h>
#include <rxwire/stub.h>
#include <stdbool.h>

#include "tests/asserts.h"
#include "tests/support/counters.h"

/* Service ids. */
#define H_SERVICE 100 /* handlers on workers; null and test class */
#define H_INLINE  101 /* inline handlers, on the receiving thread */
#define H_SECOND  102 /* as H_SERVICE, with at most one worker */

/* The first 32 bytes of a request: the handler's command. */
enum h_op {
	H_ECHO = 1, /* returns the bytes that follow */
	H_SINK,     /* `bytes` of the pattern follow; the reply is empty, or an abort: 4001 */
	H_SOURCE,   /* the reply is `bytes` of the pattern */
	H_BOTH,     /* first H_SINK, then H_SOURCE */
	H_ABORT,    /* ends with `code` */
	H_LATE,     /* writes `bytes` of the pattern, then ends with `code` */
	H_WAIT,     /* waits until h_gate_open(), then H_SINK */
	H_ONCE,     /* as H_SOURCE, in one write, and its statistics go to bed->seen */
	H_DESTROY, /* tries to stop and destroy its endpoint and engine; replies with the results */
	H_PING      /* replies at once with 4 bytes */
};
#define H_MISMATCH 4001

/* The functions that move the bytes of a stream, on either side. */
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

/* A gate that blocks handlers of H_WAIT. */
struct h_gate {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool open;
	unsigned arrived;
};

struct h_options {
	/* tunables of both ends, and constants: "window=16 batch=8 spin-us=0" */
	const char *both;
	const char *server;     /* of the server only */
	const char *client;     /* of the client only */
	bool ipv6;
	bool secure;            /* connections use the test class */
	/*
	 * Or another: "null", "rxkad-clear", "rxkad-auth", "rxkad-crypt", "rxgk-clear" …. NULL:
	 * RXW_TEST_CLASS of the environment, by default the null class.
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
	rxw_keys *keys;          /* of the server, and for tokens that it accepts */
	int file;               /* the pattern's table, for sendfile */
	struct h_gate gate;
	pthread_mutex_t lock;
	unsigned warnings;      /* logged lines of level warning or worse; lock */
	unsigned refusals; /* logged lines about clients of 127.0.0.1 that a class refused; lock */
	char refusal[256]; /* the latest of them; lock */
	struct rxw_call_statistics seen; /* of the latest call of H_ONCE; lock */
};

/* True under sanitizers or if RXW_TEST_SMALL is set: keep the test small. */
bool h_small(void);
/* True in a run of the suites for a class other than null; prints the omitted part. */
bool h_left_out(const char *what, const char *why);
/* 64 MiB, RXW_TEST_BULK MiB, or 4 MiB if tests are kept small. */
uint64_t h_bulk_size(void);
bool h_have_ipv6(void);

/* Each of these fails the test if it does not succeed. */
/* A client's class by its name as in h_options; its token is made with the bed's keys. */
rxw_security *h_class(struct h_bed *bed, const char *name);
void h_open(struct h_bed *bed, const struct h_options *options);
/* Opens the gate, ends everything and checks that it ends in order. */
void h_close(struct h_bed *bed);
rxw_connection *h_connect(struct h_bed *bed, uint16_t service);
/* Another client's endpoint on the bed's engine. */
rxw_endpoint *h_client(struct h_bed *bed, const char *tunables);

/* Bytes of the pattern: byte at `offset` of the stream `seed`. */
void h_pattern(uint8_t *to, uint64_t offset, size_t length, uint32_t seed);
bool h_pattern_is(const uint8_t *data, uint64_t offset, size_t length, uint32_t seed);

/* Writes a stream, or reads and compares it: 0, -4001 (wrong bytes or length), or a result. */
int h_put(struct h_bed *bed, rxw_call *call, const struct h_ask *ask);
int h_get(rxw_call *call, const struct h_ask *ask);

/* Adds a service of the test's own, with the classes of the others. */
void h_offer(struct h_bed *bed, struct rxw_service_options options);
/* securityIndex of the bed's connections. */
uint8_t h_index(const struct h_bed *bed);

/* Begins a call and writes the first part of its request. */
rxw_call *h_begin(rxw_connection *connection, const struct h_ask *ask);
void h_write_ask(rxw_call *call, const struct h_ask *ask);
/* The same; false: the call is over. */
bool h_try_write_ask(rxw_call *call, const struct h_ask *ask);
/* Makes one call; returns its code. */
int32_t h_call(struct h_bed *bed, rxw_connection *connection, const struct h_ask *ask);
/* h_call(); the code must be 0. */
void h_good_call(struct h_bed *bed, rxw_connection *connection, const struct h_ask *ask);

/* Waits until handlers of H_WAIT have reached the gate; opens it. */
void h_gate_arrived(struct h_bed *bed, unsigned count);
void h_gate_open(struct h_bed *bed);

/* Waits until fn(arg) is true. Fails the test with `what` after a generous time. */
void h_wait_for(bool (*fn)(void *arg), void *arg, const char *what);
unsigned h_warnings(struct h_bed *bed);
uint64_t h_now_ms(void);
/* A UDP socket connected to the server; its receive times out after 10 seconds. */
int h_raw_socket(struct h_bed *bed);

/* A hand-made packet; the body follows the header. */
struct h_raw {
	uint32_t epoch, cid, call, seq, serial;
	uint8_t type, flags, security;
	uint16_t service;
	const void *body;
	size_t size;
};
/* A complete small call in one client packet: call 1, DATA 1, last. `head` is written. */
struct h_raw h_raw_request(uint8_t head[H_ASK_SIZE], enum h_op op, uint32_t cid);
size_t h_raw_encode(uint8_t packet[2048], const struct h_raw *raw);
void h_raw_send(int fd, const struct h_raw *raw);
/* The next packet of type `type`, ignoring others; -1 after 10 seconds. */
ssize_t h_raw_receive(int fd, unsigned type, uint8_t packet[2048]);

#endif
