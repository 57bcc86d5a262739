/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of an endpoint: a structure with the sums over its shards, and the one table that
 * names its members.
 */
#ifndef API_COUNTERS_H
#define API_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include <rxwire/stats.h>

#include "base/measure.h"
#include "proto/peer/event.h"

enum {
	RXW_RECEIVED,
	RXW_SENT,
	RXW_WAYS
};

/* Every member consists of 64-bit words, and each word is a counter. */
struct rxw_sums {
	uint64_t datagrams[RXW_WAYS], bytes[RXW_WAYS], packets[RXW_WAYS][RXW_PACKET_NAMES];
	uint64_t retransmitted, duplicates;
	uint64_t syscalls[3]; /* send, receive, other */
	uint64_t gso_messages, gro_messages, gso_fallbacks, gro_fallbacks;
	uint64_t send_errors, send_retries;
	uint64_t windows[2]; /* by the writer, by the receiver */
	uint64_t wakeups, wrong_shard;
	uint64_t handlers[2]; /* on the receiver, on a worker */
	uint64_t calls_started, calls_ended, calls_aborted, calls_timed_out, calls_refused,
		calls_given_up;
	uint64_t drops[RXW_DROP_COUNT], kernel_drops;
	uint64_t stateless_aborts, version_answers, debug_answers;
	uint64_t loss_events, spurious_losses, rto_events, probes;
	uint64_t marks_sent, marks_received, mark_events, ecn_failures;
	uint64_t lock_contended[RXW_LOCK_COUNT];
	uint64_t unvalidated_connections, connections_evicted;
	uint64_t cookies_sent, cookies_returned;
	uint64_t move_pings, moves[RXW_MOVE_OUTCOMES];
	/* current values */
	uint64_t connections_client, connections_server, calls_active, calls_waiting, peers;
	uint64_t workers, workers_idle, workers_parked;
	uint64_t pinned_bytes;
	uint64_t memory_bytes, memory_limit_bytes; /* of the engine */
};
#define RXW_COUNTERS (sizeof(struct rxw_sums) / sizeof(uint64_t))

/*
 * One row of the table: a member of struct rxw_sums, which has a counter for each pair of values of
 * its labels. `name` and the values, separated by dots, are the name of a counter.
 */
struct rxw_family {
	const char *name, *help;
	enum rxw_counter_kind kind;
	size_t first; /* its first word in struct rxw_sums */
	struct {
		const char *name; /* NULL: no label */
		const char *const *value;
		unsigned count; /* 0 without a label */
	} label[2];
};
extern const struct rxw_family rxw_families[];
extern const size_t rxw_family_count;

/* Number of counters of a family. */
static inline size_t rxw_family_size(const struct rxw_family *f)
{
	return (size_t)(f->label[0].count ? f->label[0].count : 1) *
	       (f->label[1].count ? f->label[1].count : 1);
}

/* The text of label `i` of counter `k`. */
static inline const char *rxw_family_label(const struct rxw_family *f, unsigned i, size_t k)
{
	unsigned inner = f->label[1].count ? f->label[1].count : 1;

	return f->label[i].value[i ? k % inner : k / inner];
}

/* The index of a counter; -RXW_EINVAL: NULL, or no counter has this name. */
int rxw_counter_index(const char *name);

/* The values in the order of rxw_counter_at(); zeros beyond the last. */
void rxw_sums_list(const struct rxw_sums *sums, uint64_t *values, size_t room);

/* The counters of an endpoint. Takes the locks of tables, workers and peers. Any thread. */
void rxw_sums_read(rxw_endpoint *endpoint, struct rxw_sums *sums);

#endif
