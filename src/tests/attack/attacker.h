/* SPDX-License-Identifier: BSD-2-Clause */
/* Attackers of rx-protocol 12.3, and the honest clients beside them. */
#ifndef TESTS_ATTACK_ATTACKER_H
#define TESTS_ATTACK_ATTACKER_H

#include <netinet/in.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "base/wire.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

#define HONEST	  16u
#define ADDRESSES 64u /* of an attacker that needs no more */
#define HEADERS	  28u /* of IP and UDP */
#define BURST	  64u /* packets of one system call */

/*
 * An attacker who is not on this machine would not become slower because its processors are busy:
 * with this, its thread goes before all others, where that is allowed, so that it keeps its rate
 * whatever it sends to. For measurements; set before attacker_start().
 */
extern bool attacker_first;

struct attacker;

/* What an attacker knows of the latest packet that came back to one of its addresses. */
struct seen {
	uint32_t seq, serial, call;
	uint8_t type;
};

/* One packet to be: what `raw` points to need only live until the next one. */
struct shot {
	struct h_raw raw;
	unsigned from; /* which of the addresses */
	uint8_t head[H_ASK_SIZE], ack[RXW_ACK_MAX_SIZE];
};

struct attack {
	const char *name;  /* one word */
	const char *title; /* for people */
	void (*make)(struct attacker *a, uint64_t i, struct shot *shot);
	/*
	 * How often the statistics say that they met it. NULL: what it does is no more than a client
	 * may do, and only the bounds count.
	 */
	uint64_t (*met)(const struct rxw_stats *s);
	unsigned harmless;  /* of what it sends, so many packets are served as any client's are */
	unsigned addresses; /* 0: ADDRESSES */
	unsigned rate;	    /* packets a second, 0: RATE */
	bool silent;	    /* never answers, so that its addresses stay unproven */
	bool spoofs;	    /* sends from the address and port of the first honest client */
	const char *security; /* of the honest clients, as in struct h_options; NULL: null */
};
#define RATE 100000u

extern const struct attack attacks[];
extern const unsigned attack_count;
/* The packet that ends the connection that an address had for all its calls. */
void attack_goodbye(struct shot *s, unsigned from);
/* NULL: there is none of that name. */
const struct attack *attack_find(const char *name);

struct attacker {
	const struct attack *attack;
	int fd, spoof_fd;
	struct sockaddr_in victim;
	uint32_t base;	     /* first address, in the host's order */
	unsigned addresses;
	uint64_t *in, *out;  /* bytes sent and received back, of each address */
	struct seen *seen;   /* of each address */
	uint64_t random;
	uint64_t most;	     /* packets */
	uint32_t known_epoch, known_cid; /* of a connection of the first honest client */
	uint8_t known_security;		 /* its index */
	_Atomic(uint64_t) sent;
	_Atomic(bool) stop;
	pthread_t thread;
};

/* The honest ones must have their connections, and stay until it has ended. */
struct honest;
void attacker_start(struct attacker *a, const struct attack *attack,
		    const struct sockaddr_storage *victim, const struct honest *h, uint64_t most);
/* Waits until it sent `most` packets or, with `stop`, has noticed; fails if a silent one was sent
 * more than three bytes for one. */
void attacker_end(struct attacker *a, bool stop);
uint32_t attacker_draw(struct attacker *a);

/* A client of its own address that calls as fast as it is answered. */
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
/* With `stop` they end their call and no more. Each call's bytes were what they should. */
void honest_end(struct honest h[HONEST], bool stop);
uint64_t honest_calls(struct honest h[HONEST]);
void honest_close(struct honest h[HONEST]);
/* A socket of the first one. */
int honest_socket(const struct honest h[HONEST]);

#endif
