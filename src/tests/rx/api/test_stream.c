/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of a call: every way to write and to read, boundaries, invalid order of calls. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

static struct h_bed bed;
static rxw_connection *connection;

static void set_up(void)
{
	h_open(&bed, NULL);
	connection = h_connect(&bed, H_SERVICE);
}

static void tear_down(void)
{
	rxw_connection_release(connection);
	h_close(&bed);
}

static void echo(size_t length)
{
	struct h_ask ask = { .op = H_ECHO };
	uint8_t *data = malloc(length + 1), *back = malloc(length + 1);
	rxw_call *call = h_begin(connection, &ask);

	h_pattern(data, 0, length, 3);
	ck_assert_int_eq(rxw_call_write(call, data, length), (ssize_t)length);
	ck_assert_int_eq(rxw_call_read(call, back, length + 1), (ssize_t)length);
	ck_assert(!memcmp(data, back, length));
	ck_assert_int_eq(rxw_call_read(call, back, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	free(data);
	free(back);
}

START_TEST(small_echo)
{
	echo(5);
}
END_TEST

START_TEST(receive_a_mebibyte)
{
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_SOURCE, .bytes = 1 << 20 });
}
END_TEST

START_TEST(send_a_mebibyte)
{
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_SINK, .bytes = 1 << 20 });
}
END_TEST

/* Sizes around packet boundaries; 0 is an empty stream. */
START_TEST(sizes)
{
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_ECHO });
	size_t packet = rxw_call_packet_size(call);
	const size_t around[] = { 0, 1, 2, packet - H_ASK_SIZE, packet, 2 * packet };

	ck_assert_uint_ge(packet, 500);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
		echo(around[i]);
		echo(around[i] + 1);
		if (around[i])
			echo(around[i] - 1);
	}
}
END_TEST

/* Each way to write with each way to read, in chunks that fit no packet. */
START_TEST(every_way)
{
	static const unsigned hows[] = { H_PLAIN, H_INPLACE, H_FILE, H_SOME, H_FLUSH,
					 H_INPLACE | H_FLUSH, H_FILE | H_FLUSH };
	static const uint32_t chunks[] = { 1, 7, 1415, 1416, 1417, 5000, 65536 };

	for (size_t h = 0; h < sizeof(hows) / sizeof(hows[0]); h++)
		for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++) {
			struct h_ask ask = { .op = H_BOTH, .how = hows[h], .chunk = chunks[c],
					     .seed = (uint32_t)(h + c) };

			ask.bytes =
				chunks[c] < 1000 ? 20000u * (chunks[c] > 1 ? 7 : 1) + 3 : 700001;
			h_good_call(&bed, connection, &ask);
		}
}
END_TEST

START_TEST(sendfile_stops_at_the_end_of_the_file)
{
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_SINK, .bytes = 1000 });
	off_t size = lseek(bed.file, 0, SEEK_END);
	int directory = open("/", O_RDONLY | O_CLOEXEC);
	uint8_t byte;

	ck_assert_int_eq(rxw_call_sendfile(call, bed.file, 0, 1000), 1000);
	ck_assert_int_eq(rxw_call_sendfile(call, bed.file, size, 1000), 0);
	ck_assert_int_eq(rxw_call_sendfile(call, bed.file, size + 5, 1000), 0);
	ck_assert_int_eq(rxw_call_sendfile(call, directory, 0, 1000), -RXW_ESYS);
	ck_assert_int_eq(errno, EISDIR);
	close(directory);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

/* A reservation may be released. Committed bytes stay. */
START_TEST(reserve_and_give_back)
{
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_SINK, .bytes = 3000 });
	uint8_t data[3000], byte;
	struct iovec iov[4];
	unsigned count = 4;
	size_t part;
	ssize_t n;

	h_pattern(data, 0, sizeof(data), 0);
	ck_assert_int_eq(rxw_call_write(call, data, 100), 100);
	n = rxw_call_reserve(call, 1000, iov, &count);
	ck_assert_int_gt(n, 0);
	ck_assert_uint_ge(count, 1);
	memset(iov[0].iov_base, 0xee, iov[0].iov_len);
	ck_assert_int_eq(rxw_call_commit(call, 0), 0);
	ck_assert_int_eq(rxw_call_write(call, data + 100, 900), 900);
	count = 1;
	n = rxw_call_reserve(call, 1000, iov, &count);
	ck_assert_int_gt(n, 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(iov[0].iov_len, (size_t)n);
	part = (size_t)n / 2 ? (size_t)n / 2 : 1;
	memcpy(iov[0].iov_base, data + 1000, part);
	ck_assert_int_eq(rxw_call_commit(call, part), 0);
	ck_assert_int_eq(rxw_call_write(call, data + 1000 + part, 2000 - part),
			 (ssize_t)(2000 - part));
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

/* The slices of a reservation are the application's: no other bytes take their place. */
START_TEST(nothing_else_while_reserved)
{
	rxw_call *call = h_begin(connection, &(struct h_ask){.op = H_SINK, .bytes = 1000});
	uint8_t data[1000], byte;
	struct iovec iov;
	unsigned count = 1;

	h_pattern(data, 0, sizeof(data), 0);
	ck_assert_int_eq(rxw_call_reserve(call, 1000, &iov, &count), 1000);
	memcpy(iov.iov_base, data, 1000);
	ck_assert_int_eq(rxw_call_write(call, data, 1), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_write(call, data, 0), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_reserve(call, 1, &iov, &count), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_sendfile(call, bed.file, 0, 1), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_flush(call), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_send_end(call), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_read_some(call, &byte, 1), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_readv(call, 1, &iov, &count), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_commit(call, 1001), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_commit(call, 1000), 0);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

START_TEST(the_end_cancels_a_reservation)
{
	rxw_call *call = h_begin(connection, &(struct h_ask){.op = H_SINK, .bytes = 100});
	uint8_t data[100];
	struct iovec iov;
	unsigned count = 1;

	h_pattern(data, 0, sizeof(data), 0);
	ck_assert_int_eq(rxw_call_write(call, data, 100), 100);
	ck_assert_int_eq(rxw_call_reserve(call, 1000, &iov, &count), 1000);
	memset(iov.iov_base, 0xee, 1000);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

/* A read error after a part was accepted: the application cannot know how much, so the call fails. */
START_TEST(sendfile_that_fails_in_the_middle)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), good = 50 * page;
	rxw_call *call = h_begin(connection, &(struct h_ask){.op = H_ECHO});
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char *memory =
		mmap(NULL, good + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(munmap(memory + good, page), 0);
	if (fd < 0) {
		printf("skipped: /proc/self/mem cannot be read\n");
		rxw_call_end(call, 1, NULL);
		return;
	}
	ck_assert_int_eq(rxw_call_sendfile(call, fd, (off_t)(uintptr_t)memory, good + page),
			 -RXW_ESYS);
	ck_assert_int_eq(errno, EIO);
	ck_assert_int_eq(rxw_call_error(call, NULL), -6);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), -6);
	/* If nothing was accepted, the call goes on. */
	call = h_begin(connection, &(struct h_ask){.op = H_SINK, .bytes = 0});
	ck_assert_int_eq(rxw_call_sendfile(call, fd, (off_t)(uintptr_t)(memory + good), 10),
			 -RXW_ESYS);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	close(fd);
	munmap(memory, good);
}
END_TEST

START_TEST(no_commit_without_reserve)
{
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_ECHO });

	ck_assert_int_lt(rxw_call_commit(call, 10), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

/* The request has ended once its end was sent or the reply read. */
START_TEST(no_write_after_the_request)
{
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_PING });
	char reply[8];

	ck_assert_int_eq(rxw_call_send_end(call), 0);
	ck_assert_int_eq(rxw_call_write(call, "x", 1), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_read(call, reply, sizeof(reply)), 4);
	ck_assert(!memcmp(reply, "pong", 4));
	ck_assert_int_eq(rxw_call_write(call, "x", 1), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

/* Flushed bytes reach the handler before the end of the request. */
START_TEST(flush_moves_bytes_at_once)
{
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_WAIT });

	ck_assert_int_eq(rxw_call_flush(call), 0);
	h_gate_arrived(&bed, 1); /* the handler has read its 32 bytes */
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

/*
 * The only call's writer waits for room, and may meanwhile take the endpoint's receive role. Other
 * calls are still served, inline ones too, while it waits and afterwards.
 */
static const char *const receivers[] = {
	"listeners=1 writer-receives=1 coalesce-us=0", "listeners=1 writer-receives=1",
	"listeners=1 writer-receives=0 coalesce-us=1000"
};

START_TEST(calls_during_blocked_write)
{
	const struct h_ask bulk = { .op = H_SOURCE, .bytes = 8 << 20, .seed = 5 };
	const struct h_ask small = { .op = H_SOURCE, .bytes = 1000, .seed = 6 };
	const size_t part = 2 << 20;
	uint8_t *data = malloc(part);
	rxw_connection *other;
	rxw_call *call;

	tear_down();
	h_open(&bed, &(struct h_options){ .both = receivers[_i] });
	connection = h_connect(&bed, H_SERVICE);
	other = h_connect(&bed, H_INLINE);
	call = h_begin(connection, &bulk);
	for (uint64_t at = 0; at < bulk.bytes; at += part) {
		ck_assert_int_eq(rxw_call_read(call, data, part), (ssize_t)part);
		ck_assert(h_pattern_is(data, at, part, bulk.seed));
		h_good_call(&bed, connection, &small);
		h_good_call(&bed, other, &small);
	}
	ck_assert_int_eq(rxw_call_read(call, data, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	h_good_call(&bed, connection, &bulk);
	h_good_call(&bed, other, &small);
	rxw_connection_release(other);
	free(data);
}
END_TEST

/* The end of the call reads and discards the rest of the reply. */
START_TEST(end_discards_the_rest)
{
	struct h_ask ask = { .op = H_SOURCE, .bytes = 300000 };
	rxw_call *call = h_begin(connection, &ask);
	uint8_t some[10];

	ck_assert_int_eq(rxw_call_read(call, some, sizeof(some)), 10);
	ck_assert(h_pattern_is(some, 0, sizeof(some), 0));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	h_good_call(&bed, connection, &ask); /* the connection can be used again */
}
END_TEST

/* Ending with a code aborts; the channel serves the next call. */
/* Replies before it has read the request, and refuses it once the gate is open. */
static int32_t answer_early(rxw_call *call, void *context)
{
	struct h_gate *gate = context;

	ck_assert_int_eq(rxw_call_write(call, "soon", 4), 4);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	pthread_mutex_lock(&gate->lock);
	while (!gate->open)
		pthread_cond_wait(&gate->cond, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
	return 77;
}

static void *open_soon(void *arg)
{
	usleep(20000);
	h_gate_open(arg);
	return NULL;
}

/* A request cut short by an early reply: ending the call still waits for the end of the reply. */
START_TEST(end_after_an_early_reply)
{
	static uint8_t data[1 << 16];
	rxw_connection *other;
	pthread_t opener;
	rxw_call *call;
	ssize_t n;

	h_offer(&bed, (struct rxw_service_options){ .size = sizeof(struct rxw_service_options),
						    .id = 200, .name = "early",
						    .handler = answer_early,
						    .context = &bed.gate });
	other = h_connect(&bed, 200);
	ck_assert_int_eq(rxw_call_begin(other, NULL, &call), 0);
	do
		n = rxw_call_write(call, data, sizeof(data));
	while (n > 0);
	ck_assert_int_eq(n, -RXW_ECALL);
	ck_assert_int_eq(rxw_call_error(call, NULL), 0);
	ck_assert_int_eq(pthread_create(&opener, NULL, open_soon, &bed), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 77);
	pthread_join(opener, NULL);
	rxw_connection_release(other);
}
END_TEST

START_TEST(end_with_a_code)
{
	enum rxw_origin origin = RXW_ORIGIN_NONE;

	for (int i = 0; i < 8; i++) {
		rxw_call *call = h_begin(connection,
					 &(struct h_ask){ .op = H_SOURCE, .bytes = 3000000 });
		uint8_t some[5000];

		ck_assert_int_eq(rxw_call_read(call, some, sizeof(some)), sizeof(some));
		ck_assert_int_eq(rxw_call_end(call, 77, &origin), 77);
		ck_assert_int_eq(origin, RXW_ORIGIN_LOCAL);
	}
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 10000 });
}
END_TEST

START_TEST(statistics_of_a_call)
{
	struct h_ask ask = { .op = H_BOTH, .bytes = 200000 }, reply = { .bytes = 200000 };
	struct rxw_call_statistics s = { .size = sizeof(s) };
	rxw_call *call = h_begin(connection, &ask);

	ck_assert_int_eq(h_put(&bed, call, &ask), 0);
	ck_assert_int_eq(h_get(call, &reply), 0);
	ck_assert_int_eq(rxw_call_stats(call, &s), 0);
	/* The padding of the last packet may be included. */
	ck_assert_uint_ge(s.bytes_sent, 200000 + H_ASK_SIZE);
	ck_assert_uint_le(s.bytes_sent, 200000 + H_ASK_SIZE + 15 * s.packets_sent);
	ck_assert_uint_eq(s.bytes_received, 200000);
	ck_assert_uint_ge(s.packets_sent, 200000 / rxw_call_packet_size(call));
	ck_assert_uint_ge(s.packets_received, 200000 / 9000);
	ck_assert_uint_gt(s.acks_received, 0);
	ck_assert_uint_gt(s.started_ns, 0);
	ck_assert_uint_gt(s.peer_window, 0);
	/* The request is acknowledged by the reply. */
	ck_assert_uint_eq(s.in_flight, 0);
	ck_assert_uint_gt(s.rtt_min_ns, 0);
	ck_assert_uint_gt(s.ssthresh, 0);
	ck_assert_uint_ge(s.lost, s.loss_events);
	ck_assert_str_eq(s.controller, "reno");
	ck_assert(!strcmp(s.phase, "slow-start") || !strcmp(s.phase, "avoidance") ||
		  !strcmp(s.phase, "recovery"));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

START_TEST(accessors)
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);
	rxw_call *call = h_begin(connection, &(struct h_ask){.op = H_PING});

	ck_assert_int_eq(rxw_call_peer(call, &peer, &length), 0);
	ck_assert_uint_eq(length, bed.address_len);
	ck_assert(!memcmp(&peer, &bed.address, length));
	ck_assert_uint_eq(rxw_call_service_id(call), H_SERVICE);
	ck_assert_int_eq(rxw_call_error(call, NULL), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

START_TEST(bad_arguments)
{
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_PING });
	struct iovec iov[1];
	unsigned none = 0;

	ck_assert_int_eq(rxw_call_write(NULL, "x", 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_write(call, NULL, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_read(call, NULL, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_reserve(call, 10, iov, &none), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_readv(call, 10, NULL, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_begin(NULL, NULL, &call), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stream");
	TCase *tc = tcase_create("loopback");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, small_echo);
	tcase_add_test(tc, receive_a_mebibyte);
	tcase_add_test(tc, send_a_mebibyte);
	tcase_add_test(tc, sizes);
	tcase_add_test(tc, every_way);
	tcase_add_test(tc, sendfile_stops_at_the_end_of_the_file);
	tcase_add_test(tc, reserve_and_give_back);
	tcase_add_test(tc, nothing_else_while_reserved);
	tcase_add_test(tc, the_end_cancels_a_reservation);
	tcase_add_test(tc, sendfile_that_fails_in_the_middle);
	tcase_add_test(tc, no_commit_without_reserve);
	tcase_add_test(tc, no_write_after_the_request);
	tcase_add_test(tc, flush_moves_bytes_at_once);
	tcase_add_loop_test(tc, calls_during_blocked_write, 0,
			    sizeof(receivers) / sizeof(receivers[0]));
	tcase_add_test(tc, end_discards_the_rest);
	tcase_add_test(tc, end_after_an_early_reply);
	tcase_add_test(tc, end_with_a_code);
	tcase_add_test(tc, statistics_of_a_call);
	tcase_add_test(tc, accessors);
	tcase_add_test(tc, bad_arguments);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
