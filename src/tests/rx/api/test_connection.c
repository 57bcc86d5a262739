/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections as objects, of servers above all: identity, references, data, errors, closing. */
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/rx/api/harness.h"

#define ID   7
#define CODE 4711

static struct h_bed bed;

/* Data of a connection, and how often its destructor ran. */
struct mark {
	_Atomic(unsigned) ended;
	rxw_connection *release; /* the destructor drops this reference */
};

static void end_mark(void *data)
{
	struct mark *m = data;

	if (m->release)
		rxw_connection_release(m->release);
	atomic_fetch_add(&m->ended, 1);
}

static bool has_ended(void *arg)
{
	return atomic_load(&((struct mark *)arg)->ended);
}

/* The task of the handler, and its observations. */
static struct {
	struct mark *mark;  /* set as data */
	bool hold;	    /* take a reference */
	bool wait;	    /* wait at the gate, then read */
	_Atomic(unsigned) begun, calls; /* order what the two threads store here */
	rxw_connection *connection;
	void *data; /* before it was set */
	uint32_t epoch, cid;
	uint16_t service;
	int index, identity;
	struct sockaddr_storage peer;
	ssize_t read;
	int32_t error;
	enum rxw_origin origin;
} seen;

/* Two handlers may run at a time. */
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;

static void wait_at_gate(void)
{
	pthread_mutex_lock(&bed.gate.lock);
	bed.gate.arrived++;
	pthread_cond_broadcast(&bed.gate.cond);
	while (!bed.gate.open)
		pthread_cond_wait(&bed.gate.cond, &bed.gate.lock);
	pthread_mutex_unlock(&bed.gate.lock);
}

static int32_t look(rxw_call *call, void *context)
{
	rxw_connection *c = rxw_call_connection(call);
	struct rxw_identity identity = {.size = sizeof(identity)};
	socklen_t length;
	char byte;

	(void)context;
	atomic_load(&seen.begun);
	pthread_mutex_lock(&seen_lock);
	seen.connection = c;
	seen.data = rxw_connection_data(c);
	ck_assert_int_eq(rxw_connection_id(c, &seen.epoch, &seen.cid), 0);
	ck_assert_int_eq(rxw_connection_peer(c, &seen.peer, &length), 0);
	seen.service = rxw_call_service_id(call);
	seen.index = rxw_connection_security_index(c);
	seen.identity = rxw_connection_identity(c, &identity);
	if (seen.mark)
		ck_assert_int_eq(rxw_connection_set_data(c, seen.mark, end_mark), 0);
	if (seen.hold)
		ck_assert_ptr_eq(rxw_connection_ref(c), c);
	pthread_mutex_unlock(&seen_lock);
	if (seen.wait) {
		wait_at_gate();
		pthread_mutex_lock(&seen_lock);
		seen.read = rxw_call_read(call, &byte, 1);
		seen.error = rxw_connection_error(c, &seen.origin);
		pthread_mutex_unlock(&seen_lock);
	}
	atomic_fetch_add(&seen.calls, 1);
	return 0;
}

static void open_bed(const char *server)
{
	memset(&seen, 0, sizeof(seen));
	h_open(&bed, &(struct h_options){.server = server});
	h_offer(&bed, (struct rxw_service_options){
			      .size = sizeof(struct rxw_service_options), .id = ID, .handler = look});
}

static rxw_call *begin(rxw_connection *connection)
{
	rxw_call *call;

	atomic_fetch_add(&seen.begun, 1);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	return call;
}

static void make_call(rxw_connection *connection)
{
	unsigned before = atomic_load(&seen.calls);
	rxw_call *call = begin(connection);

	ck_assert_ptr_eq(rxw_call_connection(call), connection);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	ck_assert_uint_eq(atomic_load(&seen.calls), before + 1);
}

/* The object is the same for all calls of a connection, and knows what the client's knows. */
START_TEST(one_object)
{
	struct rxw_identity identity = {.size = sizeof(identity)};
	struct sockaddr_storage own, peer;
	rxw_connection *c, *other, *first;
	uint32_t epoch, cid;
	socklen_t length;

	open_bed(NULL);
	c = h_connect(&bed, ID);
	make_call(c);
	first = seen.connection;
	ck_assert_ptr_nonnull(first);
	make_call(c);
	ck_assert_ptr_eq(seen.connection, first);
	ck_assert_int_eq(rxw_connection_id(c, &epoch, &cid), 0);
	ck_assert_uint_eq(seen.epoch, epoch);
	ck_assert_uint_eq(seen.cid, cid);
	ck_assert_uint_eq(cid & 3, 0);
	ck_assert_uint_eq(seen.service, ID);
	ck_assert_int_eq(seen.index, h_index(&bed));
	ck_assert_int_eq(rxw_connection_security_index(c), h_index(&bed));
	ck_assert_int_eq(seen.identity, 0);
	ck_assert_int_eq(rxw_connection_identity(c, &identity), 0);
	ck_assert_int_eq(rxw_endpoint_address(bed.client, &own, &length), 0);
	ck_assert_uint_eq(((struct sockaddr_in *)&seen.peer)->sin_port,
			  ((struct sockaddr_in *)&own)->sin_port);
	ck_assert_int_eq(rxw_connection_peer(c, &peer, &length), 0);
	ck_assert_uint_eq(length, bed.address_len);
	ck_assert_int_eq(memcmp(&peer, &bed.address, length), 0);
	ck_assert_int_eq(rxw_connection_error(c, NULL), 0);
	other = h_connect(&bed, ID);
	make_call(other);
	ck_assert_ptr_ne(seen.connection, first);
	rxw_connection_release(other);
	rxw_connection_release(c);
	h_close(&bed);
}
END_TEST

/* Data stays from call to call. Replaced data ends at once, the last one with the endpoint. */
START_TEST(data)
{
	struct mark a = {0}, b = {0};
	rxw_connection *c;

	open_bed(NULL);
	c = h_connect(&bed, ID);
	seen.mark = &a;
	make_call(c);
	ck_assert_ptr_null(seen.data);
	make_call(c);
	ck_assert_ptr_eq(seen.data, &a);
	ck_assert_uint_eq(a.ended, 0); /* it was replaced by itself */
	seen.mark = &b;
	make_call(c);
	ck_assert_ptr_eq(seen.data, &a);
	ck_assert_uint_eq(a.ended, 1);
	ck_assert_uint_eq(b.ended, 0);
	rxw_connection_release(c);
	h_close(&bed);
	ck_assert_uint_eq(a.ended, 1);
	ck_assert_uint_eq(b.ended, 1);
}
END_TEST

/* Of a client's connection: the data ends with its last reference. */
START_TEST(data_of_a_client)
{
	struct mark a = {0};
	rxw_connection *c;
	rxw_call *call;

	open_bed(NULL);
	c = h_connect(&bed, ID);
	ck_assert_int_eq(rxw_connection_set_data(c, &a, end_mark), 0);
	ck_assert_ptr_eq(rxw_connection_ref(c), c);
	rxw_connection_release(c);
	make_call(c);
	ck_assert_ptr_eq(rxw_connection_data(c), &a);
	call = begin(c);
	rxw_connection_release(c);
	ck_assert_uint_eq(a.ended, 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	h_wait_for(has_ended, &a, "the destructor");
	h_close(&bed);
	ck_assert_uint_eq(a.ended, 1);
}
END_TEST

/*
 * The server forgets a connection although the application holds a reference: its data ends, and
 * the object still answers.
 */
START_TEST(forgotten)
{
	struct rxw_identity identity = {.size = sizeof(identity)};
	struct mark a = {0}, b = {0};
	rxw_connection *c, *held, *more[40] = {NULL};
	enum rxw_origin origin;
	uint32_t epoch, cid;
	unsigned n = 0;

	open_bed("connections-max=16 listeners=1");
	c = h_connect(&bed, ID);
	seen.mark = &a;
	seen.hold = true;
	make_call(c);
	held = seen.connection;
	epoch = seen.epoch;
	cid = seen.cid;
	seen.mark = NULL;
	seen.hold = false;
	for (; n < 40 && !has_ended(&a); n++) {
		more[n] = h_connect(&bed, ID);
		make_call(more[n]);
		usleep(100000); /* connections are idle after a second */
	}
	h_wait_for(has_ended, &a, "the destructor");
	ck_assert_ptr_null(rxw_connection_data(held));
	ck_assert_int_eq(rxw_connection_set_data(held, &b, end_mark), -RXW_ESTATE);
	ck_assert_int_eq(rxw_connection_error(held, &origin), RXW_CALL_DEAD);
	ck_assert_int_eq(origin, RXW_ORIGIN_LOCAL);
	ck_assert_int_eq(rxw_connection_id(held, &seen.epoch, &seen.cid), 0);
	ck_assert_uint_eq(seen.epoch, epoch);
	ck_assert_uint_eq(seen.cid, cid);
	ck_assert_int_eq(rxw_connection_identity(held, &identity), 0);
	make_call(c); /* the client does not notice; its connection is another object now */
	ck_assert_ptr_ne(seen.connection, held);
	for (unsigned i = 0; i < n; i++)
		rxw_connection_release(more[i]);
	rxw_connection_release(c);
	rxw_connection_release(held);
	h_close(&bed);
	ck_assert_uint_eq(a.ended, 1);
	ck_assert_uint_eq(b.ended, 0);
}
END_TEST

/* The endpoint is not freed before references are; a destructor may drop them. */
START_TEST(references_and_the_endpoint)
{
	struct mark a = {0};
	rxw_connection *c;

	open_bed(NULL);
	c = h_connect(&bed, ID);
	seen.mark = &a;
	seen.hold = true;
	make_call(c);
	seen.mark = NULL;
	make_call(c);
	a.release = seen.connection;
	rxw_connection_release(c);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), -RXW_ESTATE); /* one is left */
	ck_assert_uint_eq(a.ended, 1);
	ck_assert_int_eq(rxw_connection_close(seen.connection, 1), -RXW_ESTATE);
	ck_assert_int_eq(rxw_connection_abort(seen.connection, 1), -RXW_ESTATE);
	rxw_connection_release(seen.connection);
	h_close(&bed);
	ck_assert_uint_eq(a.ended, 1);
}
END_TEST

/* The server closes a connection during a call: both sides see the code, and the data ends. */
START_TEST(closing)
{
	struct rxw_identity identity = {.size = sizeof(identity)};
	struct mark a = {0};
	enum rxw_origin origin;
	rxw_connection *c;
	rxw_call *call;
	char byte = 0;

	open_bed(NULL);
	c = h_connect(&bed, ID);
	ck_assert_int_eq(rxw_connection_close(c, CODE), -RXW_ESTATE); /* a client's */
	seen.mark = &a;
	seen.wait = true;
	call = begin(c);
	ck_assert_int_eq(rxw_call_write(call, &byte, 1), 1);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	h_gate_arrived(&bed, 1);
	ck_assert_int_eq(rxw_connection_close(seen.connection, CODE), 0);
	ck_assert_int_eq(rxw_connection_close(seen.connection, CODE), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), -RXW_ECALL);
	ck_assert_int_eq(rxw_call_end(call, 0, &origin), CODE);
	ck_assert_int_eq(origin, RXW_ORIGIN_PEER);
	ck_assert_int_eq(rxw_connection_error(c, &origin), CODE);
	ck_assert_int_eq(origin, RXW_ORIGIN_PEER);
	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), -RXW_ECALL);
	ck_assert_int_eq(rxw_connection_identity(c, &identity), -RXW_ECALL);
	usleep(1200000);
	ck_assert_uint_eq(a.ended, 0); /* a handler may use it */
	h_gate_open(&bed);
	h_wait_for(has_ended, &a, "the destructor");
	ck_assert_int_eq(seen.read, -RXW_ECALL);
	ck_assert_int_eq(seen.error, CODE);
	ck_assert_int_eq(seen.origin, RXW_ORIGIN_LOCAL);
	rxw_connection_release(c);
	h_close(&bed);
	ck_assert_uint_eq(a.ended, 1);
}
END_TEST

/* A code of one call is none of its connection. */
START_TEST(error_of_a_call)
{
	struct h_ask ask = {.op = H_ABORT, .code = 1700000000};
	rxw_connection *c;

	open_bed(NULL);
	c = h_connect(&bed, H_SERVICE);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(h_call(&bed, c, &ask), ask.code);
	ck_assert_int_eq(rxw_connection_error(c, NULL), 0);
	rxw_connection_release(c);
	h_close(&bed);
}
END_TEST

/* A timeout that is set can be ended again. */
START_TEST(timeouts_off)
{
	rxw_connection *c;
	rxw_call *call;

	open_bed(NULL);
	c = h_connect(&bed, ID);
	ck_assert_int_eq(rxw_connection_set_timeouts(c, 999, 0, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connection_set_timeouts(c, RXW_TIMEOUT_OFF, 0, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connection_set_timeouts(c, 1000, 50, 50), 0);
	seen.wait = true;
	call = begin(c);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_CALL_TIMEOUT);
	ck_assert_int_eq(
		rxw_connection_set_timeouts(c, 12000, RXW_TIMEOUT_OFF, RXW_TIMEOUT_OFF), 0);
	call = begin(c);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	usleep(200000); /* four times the limits that were */
	ck_assert_int_eq(rxw_call_error(call, NULL), 0);
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
	h_close(&bed);
}
END_TEST

/* A socket that answers nothing, and a connection to it. */
static int listen_silently(rxw_connection **connection)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(sa);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &length), 0);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&sa, length, ID, NULL,
					       connection),
			 0);
	return fd;
}

static void expect_pings(int fd, unsigned count)
{
	static const uint8_t expected[29] = {0, 0, 0x03, 0xe7, [20] = 13, 0x04};
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	uint8_t packet[64];

	while (count--) {
		ck_assert_int_eq(poll(&readable, 1, 30000), 1);
		ck_assert_int_eq(recv(fd, packet, sizeof(packet), 0), sizeof(expected));
		ck_assert_mem_eq(packet, expected, sizeof(expected));
	}
}

static bool is_silent(int fd)
{
	uint8_t packet[64];

	return recv(fd, packet, sizeof(packet), MSG_DONTWAIT) < 0;
}

/* Connections without calls: one is pinged until that is switched off, one until its release. */
START_TEST(pings_for_a_nat)
{
	rxw_connection *one, *other;
	int fd, other_fd;

	open_bed(NULL);
	fd = listen_silently(&one);
	other_fd = listen_silently(&other);
	ck_assert_int_eq(rxw_connection_set_nat_ping(one, 3601), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connection_set_nat_ping(one, 1), 0);
	expect_pings(fd, 2);
	ck_assert_int_eq(rxw_connection_set_nat_ping(one, 0), 0);
	while (!is_silent(fd))
		;
	ck_assert_int_eq(rxw_connection_set_nat_ping(other, 1), 0);
	expect_pings(other_fd, 2);
	ck_assert(is_silent(fd));
	rxw_connection_release(other);
	while (!is_silent(other_fd))
		;
	ck_assert_int_eq(rxw_connection_set_nat_ping(one, 1), 0);
	expect_pings(fd, 2);
	ck_assert(is_silent(other_fd));
	rxw_connection_release(one);
	close(fd);
	close(other_fd);
	h_close(&bed);
}
END_TEST

/* The same for the connections of a pool, and by an interface. */
START_TEST(local_address_of_pool)
{
	struct sockaddr_in any = {.sin_family = AF_INET},
			   local = {.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 5)};
	struct sockaddr_in6 other = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&any, .address_len = sizeof(any)};
	rxw_endpoint *client;
	rxw_connpool *pool;
	rxw_call *call;
	uint8_t byte = 1;

	open_bed(NULL);
	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, &options, &client), 0);
	ck_assert_int_eq(rxw_connpool_create(client, (struct sockaddr *)&bed.address,
					     bed.address_len, ID, bed.security, 1, &pool),
			 0);
	ck_assert_int_eq(rxw_connpool_set_local(pool, (void *)&other, sizeof(other), 0),
			 -RXW_EINVAL);
	for (unsigned i = 0; i < 2; i++) {
		unsigned interface = i ? if_nametoindex("lo") : 0;

		if (i && !interface)
			break;
		local.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 5 + i);
		ck_assert_int_eq(
			rxw_connpool_set_local(pool, (void *)&local, sizeof(local), interface), 0);
		ck_assert_int_eq(rxw_connpool_begin(pool, NULL, &call), 0);
		ck_assert_int_eq(rxw_call_write(call, &byte, 1), 1);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
		ck_assert_uint_eq(((struct sockaddr_in *)&seen.peer)->sin_addr.s_addr,
				  local.sin_addr.s_addr);
		rxw_connpool_release(pool);
		ck_assert_int_eq(rxw_connpool_create(client, (struct sockaddr *)&bed.address,
						     bed.address_len, ID, bed.security, 1, &pool),
				 0);
	}
	rxw_connpool_release(pool);
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	h_close(&bed);
}
END_TEST

/* A client on all addresses, whose packets come from the one that was set. */
START_TEST(local_address)
{
	struct sockaddr_in any = {.sin_family = AF_INET},
			   local = {.sin_family = AF_INET,
				    .sin_port = htons(1), /* is ignored */
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 5)};
	struct sockaddr_in6 other = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&any, .address_len = sizeof(any)};
	rxw_endpoint *client;
	rxw_connection *c;

	open_bed(NULL);
	seen.hold = true;
	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, &options, &client), 0);
	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&bed.address,
					       bed.address_len, ID, bed.security, &c),
			 0);
	ck_assert_int_eq(rxw_connection_set_local(c, (void *)&other, sizeof(other)), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connection_set_local(c, (void *)&local, sizeof(local)), 0);
	make_call(c);
	ck_assert_uint_eq(((struct sockaddr_in *)&seen.peer)->sin_addr.s_addr,
			  local.sin_addr.s_addr);
	ck_assert_int_eq(rxw_connection_set_local(c, (void *)&local, sizeof(local)), -RXW_ESTATE);
	ck_assert_int_eq(rxw_connection_set_local(seen.connection, (void *)&local, sizeof(local)),
			 -RXW_EINVAL);
	rxw_connection_release(seen.connection);
	rxw_connection_release(c);
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "connection", one_object, local_address, local_address_of_pool, data,
		 data_of_a_client, forgotten, references_and_the_endpoint, closing, error_of_a_call,
		 timeouts_off, pings_for_a_nat)
