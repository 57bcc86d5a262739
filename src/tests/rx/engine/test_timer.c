/* SPDX-License-Identifier: BSD-2-Clause */
/* Silent peers: the dead time ends calls on both sides, and all resources are released. */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "engine/objects.h"
#include "engine/lock.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

static struct h_bed bed;

/* A port that accepts packets and never answers. */
static int silent_port(struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	ck_assert_int_eq(bind(fd, (struct sockaddr *)address, length), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)address, &length), 0);
	return fd;
}

static rxw_connection *connect_to(const struct sockaddr_in *address)
{
	rxw_connection *c;

	ck_assert_int_eq(rxw_connection_create(bed.client, (const struct sockaddr *)address,
					       sizeof(*address), H_SERVICE, NULL, &c), 0);
	return c;
}

/* Long enough for a delayed thread to have retransmitted before the call times out. */
#define SILENCE "dead-ms=4000"

START_TEST(peer_never_answers)
{
	struct sockaddr_in address;
	int fd = silent_port(&address);
	rxw_connection *connection;
	enum rxw_origin origin;
	rxw_call *call;
	uint8_t byte;

	h_open(&bed, &(struct h_options){ .client = SILENCE });
	connection = connect_to(&address);
	call = h_begin(connection, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), -RXW_ECALL);
	ck_assert_int_eq(rxw_call_end(call, 0, &origin), RXW_CALL_DEAD);
	ck_assert_int_eq(origin, RXW_ORIGIN_LOCAL);
	ck_assert_uint_eq(counter_of(bed.client, "calls_timed_out"), 1);
	/* It was retransmitted before the call timed out. */
	ck_assert_uint_ge(counter_of(bed.client, "retransmitted") +
				  counter_of(bed.client, "packets.sent.ack"),
			  1);
	rxw_connection_release(connection);
	h_close(&bed);
	close(fd);
}
END_TEST

/* The peer acknowledges the request and then falls silent. */
START_TEST(peer_stops_answering)
{
	struct sockaddr_in address, from;
	socklen_t length = sizeof(from);
	int fd = silent_port(&address);
	rxw_connection *connection;
	uint8_t packet[2048], byte;
	struct rxw_header h;
	uint8_t ack[64] = { 0 };
	struct rxw_ack a = { .first = 2, .reason = RXW_ACK_DELAY, .acks = ack, .max_mtu = 1444,
			     .if_mtu = 1444, .rwind = 32, .jumbo_max = 1 };
	uint8_t answer[RXW_ACK_MAX_SIZE];
	rxw_call *call;
	size_t size;

	h_open(&bed, &(struct h_options){ .client = SILENCE });
	connection = connect_to(&address);
	call = h_begin(connection, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	ck_assert_int_ge(recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &length),
			 RXW_HEADER_SIZE);
	ck_assert(rxw_header_get(packet, RXW_HEADER_SIZE, &h));
	a.serial = h.serial;
	h.type = RXW_ACK;
	h.flags = RXW_SLOW_START_OK;
	h.seq = 0;
	h.serial = 1;
	rxw_header_put(answer, &h);
	size = RXW_HEADER_SIZE + rxw_ack_put(answer + RXW_HEADER_SIZE, &a);
	ck_assert_int_eq(sendto(fd, answer, size, 0, (struct sockaddr *)&from, length),
			 (ssize_t)size);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), -RXW_ECALL);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_CALL_DEAD);
	/* A PING was sent to the silent peer. */
	ck_assert_uint_ge(counter_of(bed.client, "packets.sent.ack"), 1);
	rxw_connection_release(connection);
	h_close(&bed);
	close(fd);
}
END_TEST

static bool server_gave_up(void *arg)
{
	struct counters s = counters_of(bed.server);

	(void)arg;
	return counter_in(&s, "calls_timed_out") >= 1 && !counter_in(&s, "calls_active") &&
	       counter_in(&s, "workers") == counter_in(&s, "workers_idle");
}

/* A client requests much data and disappears. Its call and its worker are freed. */
START_TEST(client_goes_away)
{
	uint8_t head[H_ASK_SIZE], packet[2048];
	struct h_raw raw = h_raw_request(head, H_SOURCE, 0x1000);
	int fd;

	h_open(&bed, &(struct h_options){ .server = "dead-ms=1000" });
	fd = h_raw_socket(&bed);
	head[11] = 0x80; /* bytes = 2^39: never fully received */
	h_raw_send(fd, &raw);
	/* Too much for an unvalidated address, so the server asks it to validate itself. */
	ck_assert_int_gt(h_raw_receive(fd, RXW_ACK, packet), RXW_HEADER_SIZE);
	h_wait_for(server_gave_up, NULL, "the server gives up a silent client");
	close(fd);
	h_close(&bed);
}
END_TEST

/* A call longer than the dead time survives while both ends answer. */
START_TEST(long_calls_live)
{
	uint64_t until;
	rxw_connection *connection;
	uint8_t byte;
	rxw_call *call;

	h_open(&bed, &(struct h_options){ .both = "dead-ms=4000" });
	connection = h_connect(&bed, H_SERVICE);
	call = h_begin(connection, &(struct h_ask){ .op = H_WAIT });
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_gate_arrived(&bed, 1);
	for (until = h_now_ms() + 5000; h_now_ms() < until;)
		usleep(100000);
	ck_assert_int_eq(rxw_call_error(call, NULL), 0);
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* An ICMP port-unreachable report is a hint. The call ends by the dead time or earlier. */
START_TEST(nobody_listens)
{
	struct sockaddr_in address;
	int fd = silent_port(&address);
	rxw_connection *connection;

	/* A socket connected to itself reserves the port. */
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	h_open(&bed, &(struct h_options){ .client = "dead-ms=1000" });
	connection = connect_to(&address);
	ck_assert_int_eq(h_call(&bed, connection, &(struct h_ask){ .op = H_SOURCE, .bytes = 1 }),
			 RXW_CALL_DEAD);
	rxw_connection_release(connection);
	h_close(&bed);
	close(fd);
}
END_TEST

/*
 * Of sockets that share a port, one gets all reports of a peer: connections of the others hear of
 * them, too, and their calls end long before the dead time.
 */
START_TEST(nobody_listens_to_any)
{
	enum { CONNECTIONS = 4, DEAD_MS = 40000 };
	rxw_connection *connection[CONNECTIONS];
	rxw_call *call[CONNECTIONS];
	struct sockaddr_in address;
	int fd = silent_port(&address);
	uint64_t begun = h_now_ms();
	uint8_t byte;

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	h_open(&bed, &(struct h_options){ .client = "listeners=4 dead-ms=40000" });
	for (int i = 0; i < CONNECTIONS; i++) {
		connection[i] = connect_to(&address);
		call[i] = h_begin(connection[i], &(struct h_ask){ .op = H_PING });
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		ck_assert_int_eq(rxw_call_read(call[i], &byte, 1), -RXW_ECALL);
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), RXW_CALL_DEAD);
		rxw_connection_release(connection[i]);
	}
	ck_assert_uint_lt(h_now_ms() - begun, DEAD_MS / 2);
	h_close(&bed);
	close(fd);
}
END_TEST

/* The tick at which the test's own wheel checks a connection due in `ms`. */
static uint64_t looked_at(struct rxw_shard *s, struct rxw_connection *c, uint64_t ms)
{
	uint64_t now = 1000003 * RXW_MS, next;

	s->wheel.tick = now / RXW_MS;
	rxw_conn_ref(c);
	atomic_store(&c->timer.posted, true);
	atomic_store(&c->timer.deadline, now + ms * RXW_MS);
	atomic_store(&c->timer.inbox_next, NULL);
	atomic_store(&s->wheel.inbox, c);
	next = rxw_timer_next(s, now, RXW_WHEEL_SLOTS);
	rxw_timer_forget_all(s);
	return next / RXW_MS - now / RXW_MS;
}

/*
 * Short timers are exact to the tick. Longer ones are coalesced, by at most an eighth of the time.
 */
START_TEST(looks_are_shared)
{
	static struct rxw_shard wheel;
	struct sockaddr_in address;
	int fd = silent_port(&address);
	unsigned looks = 0;
	uint64_t at, before = 0;
	rxw_connection *connection;

	h_open(&bed, &(struct h_options){ 0 });
	connection = connect_to(&address);
	rxw_conn_lock(connection); /* otherwise a check would find nothing due */
	for (uint64_t ms = 1; ms < RXW_WHEEL_SLOTS + 8; ms++) {
		at = looked_at(&wheel, connection, ms);
		if (ms < RXW_WHEEL_SLOTS - 8)
			ck_assert_uint_gt(at, ms);
		ck_assert_uint_le(at, ms + 1 + ms / 8);
		ck_assert_uint_lt(at, RXW_WHEEL_SLOTS);
		if (ms >= 48 && ms < 88 && at != before) {
			before = at;
			looks++;
		}
	}
	ck_assert_uint_ge(looks, 10);
	ck_assert_uint_le(looks, 11);
	rxw_conn_unlock(connection);
	rxw_connection_release(connection);
	h_close(&bed);
	close(fd);
}
END_TEST

/* The listener sleeps, and will for longer than any retransmission takes. */
static bool sleeps_for_long(void *arg)
{
	const struct rxw_role *role = &bed.client->shard[0].role;

	(void)arg;
	return atomic_load(&role->in_wait) &&
	       atomic_load(&role->wait_until) > rxw_now() + 30 * RXW_SEC;
}

/*
 * The first timer of a call is its deadline, after the end of that sleep. The next one, of the
 * retransmission, has to end the sleep.
 */
START_TEST(earlier_timers_end_a_long_sleep)
{
	struct timeval patience = { .tv_sec = 20 };
	struct sockaddr_in address;
	int fd = silent_port(&address);
	rxw_connection *connection;
	uint8_t packet[2048];
	rxw_call *call;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	h_open(&bed, &(struct h_options){ .client = "listeners=1" });
	connection = connect_to(&address);
	h_wait_for(sleeps_for_long, NULL, "the listener sleeps");
	ck_assert_int_eq(rxw_call_begin(connection,
					&(struct rxw_call_options){ .size = sizeof(struct rxw_call_options),
								    .deadline_ms = 300000 },
					&call), 0);
	h_write_ask(call, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	for (unsigned copy = 0; copy < 2; copy++)
		ck_assert_int_ge(recv(fd, packet, sizeof(packet), 0), RXW_HEADER_SIZE);
	ck_assert_uint_ge(counter_of(bed.client, "retransmitted"), 1);
	rxw_call_end(call, RXW_USER_ABORT, NULL);
	rxw_connection_release(connection);
	h_close(&bed);
	close(fd);
}
END_TEST

TEST_MAIN_WITHIN(60, "timer", peer_never_answers, peer_stops_answering, client_goes_away,
	  long_calls_live, nobody_listens, nobody_listens_to_any, looks_are_shared,
	  earlier_timers_end_a_long_sleep)
