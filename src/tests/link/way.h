/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of an emulated link: a queue in front of a line with a rate, losses, and a delay.
 * There is no I/O, no clock and no randomness beside the seed: the caller states the time in
 * nanoseconds, and equal calls have equal results. One thread at a time may use an object.
 */
#ifndef RXW_TESTS_LINK_WAY_H
#define RXW_TESTS_LINK_WAY_H

#include <stdbool.h>
#include <stdint.h>

enum link_discipline {
	LINK_DROP_TAIL,
	LINK_CODEL, /* RFC 8289 */
	LINK_STEP   /* marks each packet that has waited for longer than `step` */
};

enum link_jitter {
	LINK_UNIFORM, /* each packet draws its own */
	LINK_WALK     /* it moves in small steps, as on mobile networks */
};

/* Properties of a direction. Probabilities are from 0 to 1, times in ns. Zeros: none. */
struct link_options {
	uint64_t rate; /* bits per second of IP packets; 0: no limit, hence no queue */
	/* A packet that would exceed one of these limits is dropped; 0: no such limit. */
	uint64_t queue_bytes, queue_packets;
	uint64_t discipline;	   /* enum link_discipline */
	uint64_t target, interval; /* of CoDel */
	uint64_t step;
	uint64_t ecn; /* mark ECN-capable packets where the discipline would drop them */
	uint64_t delay;
	/* Further delay, up to this. The order of packets is kept. */
	uint64_t jitter, jitter_shape;
	/* Packets that are held back by up to reorder_by, so that later ones overtake them. */
	double reorder;
	uint64_t reorder_by;
	double duplicate;
	/*
	 * Loss on the line, behind the queue. `loss` applies to each packet alone. With burst > 1
	 * it is the mean loss, and losses come in runs with this mean length. bad_enter, bad_leave
	 * and bad_loss are the Gilbert-Elliott model: the chances, for each packet, of entering and
	 * leaving the bad state, and the loss in it; `loss` then applies in the good state.
	 */
	double loss, burst, bad_enter, bad_leave, bad_loss;
	uint64_t burst_limit; /* the latest end of a bad state; 0: none */
	double corrupt;
	uint64_t hole; /* everything is lost */
};

struct link_packet {
	void *data;    /* the owner's */
	uint32_t part; /* the owner's */
	uint32_t length;
	bool ect;	/* ECN-capable */
	bool ce;	/* marked on the way */
	uint64_t spoil; /* not 0: to be corrupted, by these random bits */
	uint64_t at;	/* when it entered the queue, later when it leaves the link */
};

struct link_counters {
	uint64_t entered, entered_bytes, left, left_bytes;
	uint64_t lost, overflowed, dropped; /* on the line; by the full queue; by CoDel */
	uint64_t marked, reordered, duplicated, corrupted;
	uint64_t queue_most; /* bytes that have waited at a time */
};

/* Of the packets that are in the link. */
struct link_owner {
	void (*drop)(void *arg, const struct link_packet *packet);
	/* A copy is made: `data` will leave, or be dropped, once more. */
	void (*copy)(void *arg, const struct link_packet *packet);
	void *arg;
};

struct link_way;

/* Returns NULL without memory. */
struct link_way *link_way_new(const struct link_options *options, uint64_t seed,
			      const struct link_owner *owner);
/* Drops all packets. */
void link_way_free(struct link_way *way);

/* From now on, for the packets in the queue too. */
void link_way_change(struct link_way *way, const struct link_options *options, uint64_t now);

/* A packet enters, at a time not before that of the last call. The owner's functions may be called. */
void link_way_enter(struct link_way *way, const struct link_packet *packet, uint64_t now);

/*
 * When link_way_leave() should be called next. It may be too early, but never too late, as long as
 * no packet enters. UINT64_MAX: nothing is in the link.
 */
uint64_t link_way_next(const struct link_way *way);

/* The next packet that has left by `now`. Its `at` is the exact time. */
bool link_way_leave(struct link_way *way, struct link_packet *packet, uint64_t now);

const struct link_counters *link_way_counters(const struct link_way *way);

#endif
