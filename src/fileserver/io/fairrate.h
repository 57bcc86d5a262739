/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rate that an address has at least while the server is saturated: a decision from times and bytes, without a
 * clock, a lock or a list.
 */
#ifndef FILESERVER_IO_FAIRRATE_H
#define FILESERVER_IO_FAIRRATE_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes of one address. Zeroed at first. */
struct fair_account {
	uint64_t debt;	 /* bytes that are ahead of the clock, at `seen` */
	uint64_t seen;	 /* on the clock */
	uint64_t period; /* in which it has sent last */
};

/*
 * The clock counts bytes: an address that sends without a pause may have sent as many since the beginning. It runs at
 * the mean rate of the addresses that send, and faster while flows wait although the server has time left, or sends less
 * than it can. Hence addresses that need less than the mean leave the rest to the others in equal parts. The rate that
 * the server can reach is measured in 10 ms of every 5 s, in which no flow waits. Zeroed at first.
 */
struct fair_rate {
	uint64_t clock;
	uint64_t mean;	/* bytes in a ms of an address that sends; 0: not known yet */
	unsigned times; /* rate of the clock in 1/256 of the mean */
	unsigned idle;	/* share of the latest looks at which the server had time left, 1/65536 */
	uint64_t now;	/* of the latest look, ns */
	uint64_t capacity; /* bytes in a ms that the server sends while no flow waits */
	uint64_t recent;   /* bytes in a ms, of the latest looks */
	uint64_t all, looked,
		opened;	  /* bytes ever, at the latest look, and when the open time began */
	uint64_t open_ns; /* when it begins, or began */
	bool open;	  /* nobody waits */
	uint64_t period, began_ns, sent; /* number, beginning and bytes of this period */
	unsigned senders,
		senders_before; /* addresses that have sent in this period, and in the one before */
};

/* The server is saturated from now on. */
void fair_rate_begin(struct fair_rate *rate, uint64_t now);
/*
 * A look at the server, about each ms while flows wait, else each 10 ms. `idle`: it has time left. `waiting`: flows wait.
 * False: it is not saturated any more.
 */
bool fair_rate_look(struct fair_rate *rate, bool idle, bool waiting, uint64_t now);
/* Bytes that the address may send now; 0: it has to wait. */
uint64_t fair_rate_permits(const struct fair_rate *rate, struct fair_account *account);
/* It sends so many bytes now, or before long. */
void fair_rate_charge(const struct fair_rate *rate, struct fair_account *account, uint64_t bytes);
/* They were sent. */
void fair_rate_count(struct fair_rate *rate, struct fair_account *account, uint64_t bytes);

#endif
