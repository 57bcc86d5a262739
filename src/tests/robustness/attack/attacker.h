/* SPDX-License-Identifier: BSD-2-Clause */
/* The attackers of rx-protocol 12.3, and the honest clients of the same server. */
#ifndef TESTS_ATTACK_ATTACKER_H
#define TESTS_ATTACK_ATTACKER_H

#include <netinet/in.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "base/wire.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

#define HONEST	  16u
#define ADDRESSES 64u /* of an attacker that does not choose a number */
#define HEADERS	  28u /* IP and UDP headers */
#define BURST	  64u /* packets for each system call */

/*
 * The load of this machine would not slow down a remote attacker. With this flag the attacker's
 * thread runs at real-time priority, where permitted, so that it keeps its rate whatever the
 * target. For measurements. Set it before attacker_start().
 */
extern bool attacker_first;

struct attacker;

/* The latest packet that one address of the attacker received. */
struct seen {
	uint32_t seq, serial, call;
	uint8_t type;
};

/* A packet to send; the memory that `raw` points to must stay valid until the next one. */
struct shot {
	struct h_raw raw;
	unsigned from; /* index of the source address */
	uint8_t head[H_ASK_SIZE], ack[RXW_ACK_MAX_SIZE];
};

struct attack {
	const char *name;  /* one word */
	const char *title; /* human-readable */
	void (*make)(struct attacker *a, uint64_t i, struct shot *shot);
	/*
	 * The number of events counted in the statistics for this attack. NULL: it does only what
	 * any client may do, and only the limits count.
	 */
	uint64_t (*met)(const struct counters *s);
	unsigned harmless;  /* the server serves 1 packet of so many */
	unsigned addresses; /* 0: ADDRESSES */
	unsigned rate;	    /* packets per second, 0: RATE */
	bool silent;	    /* never answers, so that its addresses stay unvalidated */
	bool spoofs;	    /* sends from the address and port of the first honest client */
	const char *security; /* of the honest clients, as in struct h_options; NULL: null */
};
#define RATE 100000u

extern const struct attack attacks[];
extern const unsigned attack_count;
/* Writes a packet that ends the connection of an address with all its calls. */
void attack_goodbye(struct shot *s, unsigned from);
/* Returns NULL if no attack has that name. */
const struct attack *attack_find(const char *name);

struct attacker {
	const struct attack *attack;
	int fd, spoof_fd;
	struct sockaddr_in victim;
	uint32_t base;	     /* first address, in host byte order */
	unsigned addresses;
	uint64_t *in, *out;  /* bytes sent and received, by address */
	struct seen *seen;   /* by address */
	uint64_t random;
	uint64_t most;	     /* packets */
	uint32_t known_epoch, known_cid; /* of a connection of the first honest client */
	uint8_t known_security;		 /* its index */
	_Atomic(uint64_t) sent;
	_Atomic(bool) stop;
	pthread_t thread;
};

/* The honest clients must have their connections and keep them until the attacker has stopped. */
struct honest;
void attacker_start(struct attacker *a, const struct attack *attack,
		    const struct sockaddr_storage *victim, const struct honest *h, uint64_t most);
/*
 * Waits until it has sent `most` packets or, with `stop`, has noticed that. Fails if a silent
 * attacker received more than three times the bytes it sent.
 */
void attacker_end(struct attacker *a, bool stop);
uint32_t attacker_draw(struct attacker *a);

/* A client with an address of its own that makes one call after another. */
struct honest {
	struct h_bed *bed;
	rxw_endpoint *endpoint;
	rxw_connection *connection;
	pthread_t thread;
	unsigned most; /* calls */
	_Atomic(uint64_t) calls;
	_Atomic(bool) stop;
	int32_t bad;
};

void honest_open(struct honest h[HONEST], struct h_bed *bed);
void honest_start(struct honest h[HONEST], unsigned most);
/* With `stop` they finish their current call. Fails if a call had wrong bytes. */
void honest_end(struct honest h[HONEST], bool stop);
uint64_t honest_calls(struct honest h[HONEST]);
void honest_close(struct honest h[HONEST]);
/* The socket of the first honest client. */
int honest_socket(const struct honest h[HONEST]);

#endif
