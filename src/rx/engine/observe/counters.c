/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of counters, and the iterator. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rxwire/error.h>

#include "engine/observe/counters.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define WORD(member)  (offsetof(struct rxw_sums, member) / sizeof(uint64_t))

#define TOTAL(member, text)                                           \
	{                                                             \
		#member, text, RXW_COUNTER_TOTAL, WORD(member), {{0}} \
	}
#define CURRENT(member, text)                                           \
	{                                                               \
		#member, text, RXW_COUNTER_CURRENT, WORD(member), {{0}} \
	}
#define BY(member, text, label, values)                 \
	{                                               \
		#member, text, RXW_COUNTER_TOTAL,       \
		WORD(member),                           \
		{{label, values, LENGTH(values)}, {0}}, \
	}

static const char *const ways[RXW_WAYS] = {[RXW_RECEIVED] = "received", [RXW_SENT] = "sent"};
static const char *const operations[] = {"send", "receive", "other"};
static const char *const senders[] = {"writer", "receiver"};
static const char *const outcomes[RXW_MOVE_OUTCOMES] = {
	[RXW_MOVE_DONE] = "done", [RXW_MOVE_REFUSED] = "refused", [RXW_MOVE_EXPIRED] = "expired"};
static const char *const threads[] = {"receiver", "worker"};

/* Names never change: programs and dashboards use them. */
const struct rxw_family rxw_families[] = {
	CURRENT(connections_client, "Client connections."),
	CURRENT(connections_server, "Server connections."),
	CURRENT(calls_active, "Calls in progress."),
	CURRENT(calls_waiting, "Calls waiting for a worker."),
	CURRENT(peers, "Peers (address and port) in memory."),
	CURRENT(workers, "Worker threads."),
	CURRENT(workers_idle, "Idle workers."),
	CURRENT(workers_parked, "Workers blocked on their clients."),
	CURRENT(pinned_bytes, "Receive buffers held by queues."),
	CURRENT(memory_bytes, "Packet memory in use by the engine of the endpoint."),
	CURRENT(memory_limit_bytes, "Limit of the packet memory of that engine."),
	BY(datagrams, "UDP datagrams.", "direction", ways),
	BY(bytes, "Bytes of UDP payload.", "direction", ways),
	{"packets",
	 "Rx packets by type.",
	 RXW_COUNTER_TOTAL,
	 WORD(packets),
	 {{"direction", ways, RXW_WAYS}, {"type", rxw_packet_names, RXW_PACKET_NAMES}}},
	TOTAL(retransmitted, "DATA packets retransmitted."),
	TOTAL(duplicates, "DATA packets received more than once."),
	BY(drops, "Datagrams and packets dropped, by cause.", "cause", rxw_drop_names),
	TOTAL(kernel_drops, "Datagrams dropped by the kernel because the socket buffer was full."),
	BY(syscalls, "System calls on sockets, by operation.", "operation", operations),
	TOTAL(gso_messages, "Messages of several datagrams passed to the kernel (GSO)."),
	TOTAL(gro_messages, "Messages of several datagrams received from the kernel (GRO)."),
	TOTAL(gso_fallbacks, "Times that the kernel refused GSO."),
	TOTAL(gro_fallbacks, "Times that the kernel refused GRO."),
	TOTAL(send_errors, "Messages that the kernel refused to send."),
	TOTAL(send_retries, "Messages sent again after a temporary error."),
	BY(windows, "Windows opened by an acknowledgement, by the thread that sent the data.",
	   "sent_by", senders),
	TOTAL(wakeups, "Threads woken to read, write or serve."),
	TOTAL(wrong_shard, "Packets that arrived at another socket than that of their connection."),
	BY(lock_contended, "Contended lock acquisitions.", "lock", rxw_lock_names),
	BY(handlers, "Calls served, by the thread that ran the handler.", "on", threads),
	TOTAL(calls_started, "Calls begun in both directions."),
	TOTAL(calls_ended, "Calls that ended successfully."),
	TOTAL(calls_aborted, "Calls that failed."),
	TOTAL(calls_timed_out, "Calls that timed out."),
	TOTAL(calls_refused, "Calls refused because the server is busy."),
	TOTAL(calls_given_up,
	      "Calls aborted because they made too little progress while others waited."),
	TOTAL(loss_events, "Loss events: reactions of congestion control to lost packets."),
	TOTAL(spurious_losses, "False losses, whose reactions were undone."),
	TOTAL(marks_sent, "DATA packets sent with the mark ECT(0)."),
	TOTAL(marks_received, "DATA packets that arrived with the mark CE."),
	TOTAL(mark_events, "Reactions of congestion control to packets that were marked with CE."),
	TOTAL(ecn_failures,
	      "Calls that ceased to mark packets, because the path changes or loses marks."),
	TOTAL(rto_events, "Retransmission timeouts."),
	TOTAL(probes, "Tail loss probes."),
	TOTAL(stateless_aborts, "ABORT packets sent without a connection."),
	TOTAL(version_answers, "VERSION packets answered."),
	TOTAL(debug_answers, "DEBUG packets answered."),
	TOTAL(unvalidated_connections, "Connections created for unvalidated addresses."),
	TOTAL(connections_evicted, "Idle connections removed because of connections-max."),
	TOTAL(cookies_sent, "Clients asked to validate their address because no room was left."),
	TOTAL(cookies_returned, "Clients that validated their address when asked."),
	TOTAL(move_pings, "PINGs that asked another address of a client for proof."),
	BY(moves, "Clients that were asked for proof of another address, by outcome.", "outcome",
	   outcomes),
};
const size_t rxw_family_count = LENGTH(rxw_families);

#define NAME_ROOM 40u

/* Made from the table when a counter is first asked for. */
static struct rxw_counter counters[RXW_COUNTERS];
static char names[RXW_COUNTERS][NAME_ROOM];
static size_t words[RXW_COUNTERS]; /* of the counters, in struct rxw_sums */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_names(void)
{
	size_t at = 0;

	for (const struct rxw_family *f = rxw_families; f < rxw_families + rxw_family_count; f++)
		for (size_t k = 0; k < rxw_family_size(f) && at < RXW_COUNTERS; k++, at++) {
			int n = snprintf(names[at], NAME_ROOM, "%s", f->name);

			for (unsigned i = 0; i < 2 && f->label[i].count; i++)
				n += snprintf(names[at] + n, NAME_ROOM - (size_t)n, ".%s",
					      rxw_family_label(f, i, k));
			counters[at] = (struct rxw_counter){
				names[at], f->help, f->kind, {f->label[0].name, f->label[1].name}};
			words[at] = f->first + k;
		}
}

const struct rxw_counter *rxw_counter_at(size_t index)
{
	pthread_once(&once, make_names);
	return index < RXW_COUNTERS ? &counters[index] : NULL;
}

int rxw_counter_index(const char *name)
{
	if (!name)
		return -RXW_EINVAL;
	pthread_once(&once, make_names);
	for (size_t i = 0; i < RXW_COUNTERS; i++)
		if (!strcmp(names[i], name))
			return (int)i;
	return -RXW_EINVAL;
}

void rxw_sums_list(const struct rxw_sums *sums, uint64_t *values, size_t room)
{
	pthread_once(&once, make_names);
	for (size_t i = 0; i < room; i++)
		values[i] = i < RXW_COUNTERS ? ((const uint64_t *)sums)[words[i]] : 0;
}
