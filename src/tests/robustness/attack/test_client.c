/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client whose port is flooded: with packets of unknown connections, DEBUG and VERSION packets,
 * calls to services that it does not offer, and PINGs that seem to come from its server. Packets
 * that its system drops are retransmitted, so the transfers take longer but complete.
 */
#include <string.h>
#include <unistd.h>

#include "attacker.h"
#include "tests/support/internals.h"

/*
 * Packets of one flood. Without this bound, a sender that is faster than the receiver, as under a
 * sanitizer, would leave no room in the socket for honest packets while it sends.
 */
#define FLOOD_MOST 20000u

enum flood {
	JUNK,	   /* ACKs of unknown connections */
	QUESTIONS, /* DEBUG and VERSION */
	CALLS,
	PINGS, /* from the server's address, for the running call */
	FLOODS
};

static struct h_bed bed;
static struct flooder {
	enum flood flood;
	int fd;
	struct sockaddr_storage to;
	socklen_t to_len;
	rxw_connection *connection;
	uint64_t random;
	_Atomic(uint64_t) sent;
	_Atomic(bool) stop;
	pthread_t thread;
} flooder;

static size_t make(struct flooder *f, uint8_t packet[2048])
{
	uint32_t r = (uint32_t)(rxw_prng(&f->random) >> 16);
	uint8_t body[RXW_ACK_MAX_SIZE];
	struct rxw_ack ack = {.first = 1,
			      .reason = RXW_ACK_PING,
			      .acks = body,
			      .max_mtu = 1444,
			      .if_mtu = 1444,
			      .rwind = 32,
			      .jumbo_max = 1};
	struct h_raw raw = {.epoch = r | 0x80000000u,
			    .cid = r * 4,
			    .call = 1,
			    .serial = r,
			    .type = RXW_ACK,
			    .flags = RXW_REQUEST_ACK,
			    .service = H_SERVICE,
			    .body = body};
	struct internals_header h;

	raw.size = rxw_ack_put(body, &ack);
	switch (f->flood) {
	case QUESTIONS:
		raw.type = r & 64 ? RXW_VERSION : RXW_DEBUG;
		raw.flags = RXW_CLIENT_INITIATED;
		memcpy(body, "\0\0\0\1\0\0\0", 8);
		raw.size = 8;
		break;
	case CALLS:
		raw.type = RXW_DATA;
		raw.seq = 1;
		raw.flags = RXW_CLIENT_INITIATED | RXW_LAST_PACKET;
		break;
	case PINGS:
		h = internals_header(f->connection);
		raw.epoch = h.epoch;
		raw.cid = h.cid;
		raw.call = h.call;
		raw.security = h.security;
		break;
	default:
		break;
	}
	return h_raw_encode(packet, &raw);
}

static void *flooding(void *arg)
{
	static uint8_t bytes[BURST][2048];
	struct flooder *f = arg;
	struct mmsghdr m[BURST];
	struct iovec iov[BURST];
	int n;

	memset(m, 0, sizeof(m));
	while (!atomic_load(&f->stop) && atomic_load(&f->sent) < FLOOD_MOST) {
		for (unsigned i = 0; i < BURST; i++) {
			iov[i] = (struct iovec){bytes[i], make(f, bytes[i])};
			m[i].msg_hdr = (struct msghdr){.msg_name = &f->to,
						       .msg_namelen = f->to_len,
						       .msg_iov = &iov[i],
						       .msg_iovlen = 1};
		}
		n = sendmmsg(f->fd, m, BURST, 0);
		if (n > 0)
			atomic_fetch_add(&f->sent, (uint64_t)n);
	}
	return NULL;
}

static void begin_flood(enum flood flood, rxw_connection *connection)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&flooder.to;

	memset(&flooder, 0, sizeof(flooder));
	flooder.flood = flood;
	flooder.connection = connection;
	flooder.random = 7;
	flooder.to_len = sizeof(flooder.to);
	ck_assert_int_eq(rxw_endpoint_address(bed.client, &flooder.to, &flooder.to_len), 0);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* PINGs carry the server's address. */
	flooder.fd = flood == PINGS ? internals_socket(bed.server)
				    : socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(flooder.fd, 0);
	ck_assert_int_eq(pthread_create(&flooder.thread, NULL, flooding, &flooder), 0);
	/* On a busy machine the calls could otherwise end before the first burst. */
	while (atomic_load(&flooder.sent) < BURST)
		usleep(1000);
}

static void end_flood(void)
{
	atomic_store(&flooder.stop, true);
	pthread_join(flooder.thread, NULL);
	if (flooder.flood != PINGS)
		close(flooder.fd);
	ck_assert_uint_ge(atomic_load(&flooder.sent), BURST);
}

static void transfer_under_flood(enum flood flood, unsigned how)
{
	rxw_connection *connection;

	h_open(&bed, &(struct h_options){.security = "null"});
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	begin_flood(flood, connection);
	for (unsigned i = 0; i < 3; i++)
		h_good_call(&bed, connection,
			    &(struct h_ask){.op = H_BOTH, .how = how, .bytes = 1000000});
	end_flood();
	rxw_connection_release(connection);
	h_close(&bed);
}

START_TEST(transfers_go_on)
{
	transfer_under_flood((enum flood)(_i / 2), _i % 2 ? H_SOME : H_PLAIN);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client");
	TCase *tc = tcase_create("client");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, transfers_go_on, 0, 2 * FLOODS);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
