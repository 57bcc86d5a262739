/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Effects of a token's expiry on calls in progress (rx-protocol 7.1, 7.3.7): data from the server
 * continue, data to the server end the call with the class's code, and a renewed token serves other
 * connections meanwhile. The test sets the server's clock, so it does not wait for time to pass.
 */
#include "tests/rx/base/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rxwire/rxwire.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#define SERVICE	 77
#define LONG	 (4u << 20) /* bytes: more than a call's queues hold */
#define FIRST	 65536
#define LIFETIME 600 /* seconds */

enum what {
	SEND_ME = 1,
	TAKE = 2
};

struct bed {
	rxw_engine *engine;
	rxw_endpoint *server, *client;
	struct sockaddr_storage address;
	socklen_t address_len;
	rxw_keys *keys;
	rxw_security *class;
	sem_t taken; /* the server has read the first bytes of a call */
};

static atomic_llong ahead; /* seconds that the server's clock is ahead */
static uint8_t zeros[FIRST];

static int64_t seconds(void *unused)
{
	(void)unused;
	return (int64_t)time(NULL) + atomic_load(&ahead);
}

static int64_t ticks(void *unused)
{
	return seconds(unused) * RXW_RXGK_SECOND;
}

static int32_t give(rxw_call *call)
{
	for (size_t done = 0; done < LONG; done += FIRST)
		if (rxw_call_write(call, zeros, FIRST) != FIRST)
			return RXW_USER_ABORT;
	return 0;
}

static int32_t take(struct bed *b, rxw_call *call)
{
	uint8_t in[FIRST];
	bool posted = false;
	ssize_t n;

	while ((n = rxw_call_read(call, in, sizeof(in))) > 0) {
		if (!posted)
			sem_post(&b->taken);
		posted = true;
	}
	return n < 0 ? RXW_USER_ABORT : 0;
}

static int32_t serve(rxw_call *call, void *context)
{
	uint8_t what;

	if (rxw_call_read(call, &what, 1) != 1)
		return RXW_USER_ABORT;
	return what == SEND_ME ? give(call) : take(context, call);
}

static void begin(struct bed *b, uint8_t index)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .address = (struct sockaddr *)&loopback,
					  .address_len = sizeof(loopback)};
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = SERVICE,
					 .name = "renewal",
					 .handler = serve,
					 .context = b,
					 .security = &b->class,
					 .security_count = 1};
	struct rxw_rxkad_server_options kad = {.size = sizeof(kad), .time = seconds};
	struct rxw_rxgk_server_options gk = {.size = sizeof(gk), .time = ticks};
	rxw_service *service;

	memset(b, 0, sizeof(*b));
	atomic_store(&ahead, 0);
	sem_init(&b->taken, 0, 0);
	ck_assert_int_eq(rxw_keys_create(&b->keys), 0);
	ck_assert_int_eq(rxw_keys_generate(b->keys, RXW_KEY_KRB5, 1, 18), 0);
	ck_assert_int_eq(rxw_keys_generate(b->keys, RXW_KEY_RXGK, 1, 18), 0);
	kad.keys = gk.keys = b->keys;
	ck_assert_int_eq(index == RXW_RXKAD_INDEX ? rxw_rxkad_server(&kad, &b->class)
						  : rxw_rxgk_server(&gk, &b->class),
			 0);
	ck_assert_int_eq(rxw_engine_create(NULL, &b->engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(b->engine, &eo, &b->client), 0);
	eo.server = eo.paused = 1;
	ck_assert_int_eq(rxw_endpoint_create(b->engine, &eo, &b->server), 0);
	ck_assert_int_eq(rxw_service_add(b->server, &so, &service), 0);
	ck_assert_int_eq(rxw_endpoint_start(b->server), 0);
	b->address_len = sizeof(b->address);
	ck_assert_int_eq(rxw_endpoint_address(b->server, &b->address, &b->address_len), 0);
}

static void end(struct bed *b)
{
	ck_assert_int_eq(rxw_endpoint_destroy(b->client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(b->server), 0);
	rxw_engine_destroy(b->engine);
	rxw_security_unref(b->class);
	rxw_keys_unref(b->keys);
	sem_destroy(&b->taken);
}

/* A token that expires in so many seconds by our clock. */
static rxw_token *token(struct bed *b, uint8_t index, uint8_t level, uint32_t lifetime_s)
{
	struct rxw_token_options o = {.size = sizeof(o),
				      .source = RXW_TOKEN_LOCAL,
				      .index = index,
				      .level = level,
				      .client = "alice@EXAMPLE.ORG",
				      .keys = b->keys,
				      .lifetime_s = lifetime_s};
	rxw_token *t;
	char why[200];

	ck_assert_msg(rxw_token_create(&o, &t, why, sizeof(why)) == 0, "%s", why);
	return t;
}

static rxw_connection *join(struct bed *b, const rxw_token *t)
{
	rxw_connection *c;

	ck_assert_int_eq(rxw_connection_create(b->client, (struct sockaddr *)&b->address,
					       b->address_len, SERVICE, rxw_token_security(t), &c),
			 0);
	return c;
}

static rxw_call *start(rxw_connection *connection, uint8_t what)
{
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, &what, 1), 1);
	return call;
}

/* Reads up to so many bytes; returns the number read. */
static size_t read_some(rxw_call *call, size_t want)
{
	uint8_t in[FIRST];
	size_t done = 0;

	while (done < want) {
		size_t n = want - done < sizeof(in) ? want - done : sizeof(in);
		ssize_t got = rxw_call_read(call, in, n);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

/* A call that only sends. */
static int32_t small(rxw_connection *connection, enum rxw_origin *origin)
{
	rxw_call *call = start(connection, TAKE);

	return rxw_call_end(call, 0, origin);
}

static void expiry(uint8_t index, uint8_t level)
{
	int32_t expired = index == RXW_RXKAD_INDEX ? RXW_RXKAD_EXPIRED : RXW_RXGK_EXPIRED;
	enum rxw_origin origin;
	rxw_connection *down, *up, *renewed, *late;
	rxw_call *receiving, *sending;
	rxw_token *old, *new;
	struct bed b;

	begin(&b, index);
	old = token(&b, index, level, LIFETIME);
	new = token(&b, index, level, 10 * LIFETIME);
	down = join(&b, old);
	up = join(&b, old);
	receiving = start(down, SEND_ME);
	ck_assert_int_eq(rxw_call_send_end(receiving), 0);
	ck_assert_uint_eq(read_some(receiving, FIRST), FIRST);
	sending = start(up, TAKE);
	ck_assert_int_eq(rxw_call_write(sending, zeros, FIRST), FIRST);
	ck_assert_int_eq(rxw_call_flush(sending), 0);
	while (sem_wait(&b.taken) < 0)
		;

	atomic_store(&ahead, 2 * LIFETIME);
	renewed = join(&b, new);
	ck_assert_int_eq(small(renewed, &origin), 0);
	late = join(&b, old);
	ck_assert_int_eq(small(late, &origin), expired);
	ck_assert_int_eq(origin, RXW_ORIGIN_PEER);

	/*
	 * Data that the server had begun to send arrive completely; the next call on that
	 * connection does not begin.
	 */
	ck_assert_uint_eq(read_some(receiving, LONG), LONG - FIRST);
	ck_assert_int_eq(rxw_call_end(receiving, 0, NULL), 0);
	ck_assert_int_eq(small(down, &origin), expired);
	ck_assert_int_eq(origin, RXW_ORIGIN_PEER);

	/* Data to the server are refused with a code, not with silence. */
	while (rxw_call_write(sending, zeros, FIRST) == FIRST)
		;
	ck_assert_int_eq(rxw_call_end(sending, 0, &origin), expired);
	ck_assert_int_eq(origin, RXW_ORIGIN_PEER);
	ck_assert_int_eq(small(renewed, &origin), 0);

	rxw_connection_release(down);
	rxw_connection_release(up);
	rxw_connection_release(renewed);
	rxw_connection_release(late);
	rxw_token_unref(old);
	rxw_token_unref(new);
	end(&b);
}

START_TEST(rxkad_ticket_ends_within_calls)
{
	for (uint8_t level = 0; level <= RXW_LEVEL_CRYPT; level++)
		expiry(RXW_RXKAD_INDEX, level);
}
END_TEST

START_TEST(rxgk_token_ends_within_calls)
{
	for (uint8_t level = 0; level <= RXW_LEVEL_CRYPT; level++)
		expiry(RXW_RXGK_INDEX, level);
}
END_TEST

TEST_MAIN("renewal", rxkad_ticket_ends_within_calls, rxgk_token_ends_within_calls)
