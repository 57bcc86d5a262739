/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One packet of each kind that draws an answer, from an address that never answers. The live server
 * sends it at most three bytes for each of its own, IP and UDP headers included, until its last
 * timer has expired (rx-protocol 6.7).
 */
#include <string.h>
#include <unistd.h>

#include "attacker.h"

#define MOST 400u

static struct h_bed bed;
static struct {
	int fd;
	struct h_raw raw;
	uint64_t in, out;
} shots[MOST];
static unsigned count;
static uint8_t head[MOST][200];

static struct h_raw *shoot(enum h_op op, unsigned flags, size_t size)
{
	struct h_raw *raw = &shots[count].raw;

	ck_assert_uint_lt(count, MOST);
	*raw = h_raw_request(head[count], op, 0x100000 + 4 * count);
	h_encode_ask(head[count], &(struct h_ask){.op = op, .bytes = 1000000, .code = 7});
	raw->flags = RXW_CLIENT_INITIATED | (uint8_t)flags;
	raw->size = size;
	count++;
	return raw;
}

/* Possible first packets of a call, for existing and missing services and classes. */
static void aim_data(void)
{
	static const enum h_op ops[] = {H_PING, H_ABORT, H_SOURCE, H_LATE};
	static const size_t sizes[] = {0, 4, H_ASK_SIZE, 200};
	static const uint16_t services[] = {H_SERVICE, H_INLINE, 103, 999};
	static const uint8_t flags[] = {0, RXW_LAST_PACKET, RXW_REQUEST_ACK,
					RXW_LAST_PACKET | RXW_REQUEST_ACK};

	for (unsigned k = 0; k < 4; k++)
		for (unsigned i = 0; i < 4; i++)
			for (unsigned j = 0; j < 4; j++) {
				struct h_raw *raw = shoot(ops[i], flags[j], sizes[k]);

				raw->service = services[(i + k) % 4];
				raw = shoot(ops[j], flags[i], sizes[k]);
				raw->service = services[k];
				raw->security = h_index(&bed);
			}
	shoot(H_PING, RXW_REQUEST_ACK, 4)->seq = 9;
	shoot(H_PING, RXW_REQUEST_ACK, 4)->seq = 0;
	shoot(H_PING, RXW_REQUEST_ACK, 4)->call = 0;
	shoot(H_PING, RXW_REQUEST_ACK, 4)->security = 5;
	shoot(H_PING, RXW_REQUEST_ACK | RXW_JUMBO_PACKET, 200);
}

/* Without DEBUG, which is not limited for this host (test_inspect tests other hosts). */
static void aim_others(void)
{
	for (unsigned type = 0; type < 32; type++)
		for (unsigned call = 0; call < 2; call++) {
			struct h_raw *raw;

			if (type % 16 == RXW_DEBUG || type % 16 == RXW_DATA)
				continue;
			raw = shoot(H_PING, RXW_REQUEST_ACK, type & 16 ? 0 : 50);
			raw->type = (uint8_t)(type % 16);
			raw->call = call;
			raw->seq = 0;
		}
}

static bool all_over(void *arg)
{
	struct counters s = counters_of(bed.server);

	(void)arg;
	return counter_in(&s, "datagrams.received") + counter_in(&s, "kernel_drops") >= count &&
	       !counter_in(&s, "calls_active");
}

static void fire(void)
{
	uint8_t packet[2048];

	for (unsigned i = 0; i < count; i++) {
		shots[i].fd = h_raw_socket(&bed);
		shots[i].in = h_raw_encode(packet, &shots[i].raw) + HEADERS;
		h_raw_send(shots[i].fd, &shots[i].raw);
	}
	h_wait_for(all_over, NULL, "all calls to have ended");
	h_close(&bed);
	for (unsigned i = 0; i < count; i++) {
		const struct h_raw *raw = &shots[i].raw;
		ssize_t n;

		while ((n = recv(shots[i].fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC)) >
		       0)
			shots[i].out += (uint64_t)n + HEADERS;
		ck_assert_msg(
			shots[i].out <= 3 * shots[i].in,
			"type %u, flags %u, %zu bytes, service %u, class %u: %llu bytes for %llu",
			raw->type, raw->flags, raw->size, raw->service, raw->security,
			(unsigned long long)shots[i].out, (unsigned long long)shots[i].in);
		close(shots[i].fd);
	}
}

START_TEST(three_bytes_for_one)
{
	static const char *const classes[] = {"null", "rxkad-auth", "rxgk-crypt"};
	struct rxw_service_options reach = {.size = sizeof(reach), .id = 103, .name = "reach",
					    .handler = h_serve, .context = &bed,
					    .flags = RXW_SERVICE_REACH};

	h_open(&bed, &(struct h_options){.server = "dead-ms=1500",
					 .security = classes[_i]});
	h_offer(&bed, reach);
	count = 0;
	aim_data();
	aim_others();
	fire();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("silent");
	TCase *tc = tcase_create("silent");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 100);
	tcase_add_loop_test(tc, three_bytes_for_one, 0, 3);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
