/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For the tests of the I/O layer: two ends on loopback, bursts of numbered datagrams, and a record
 * of arrivals.
 */
#ifndef RXW_TESTS_RX_IO_IO_TEST_H
#define RXW_TESTS_RX_IO_IO_TEST_H

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/io_sock.h"
#include "tests/asserts.h"
#include "tests/kernel.h"
#include "tests/support/faults.h"

#define LOST_US 20000000u /* loopback never takes that long: the datagram is lost */

/* Options with these faults, one at a time. */
static inline void set_faults(struct rxw_io_options *o, const char *text)
{
	static struct rxw_io_faults faults;

	ck_assert(test_faults_parse(&faults, text));
	o->faults = &faults;
}

/* Collected log lines: warnings, and notes for a server's log. */
struct lines {
	unsigned count, notes;
	char last[256];
	char all[2048];
};

static inline void collect_line(void *arg, int level, const char *line)
{
	struct lines *l = arg;

	ck_assert(level == 4 || level == 6);
	l->count += level == 4;
	l->notes += level == 6;
	snprintf(l->last, sizeof(l->last), "%s", line);
	strncat(l->all, line, sizeof(l->all) - strlen(l->all) - 2);
	strcat(l->all, "\n");
}

static inline struct rxw_addr address(const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct rxw_addr a;

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
		ck_assert(rxw_addr_set(&a, (struct sockaddr *)&in, sizeof(in)));
	} else {
		ck_assert(inet_pton(AF_INET6, text, &in6.sin6_addr) == 1);
		ck_assert(rxw_addr_set(&a, (struct sockaddr *)&in6, sizeof(in6)));
	}
	return a;
}

static inline bool have_ipv6(void)
{
	struct rxw_addr a = address("::1", 0);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool have = fd >= 0 && bind(fd, &a.u.sa, a.len) == 0;

	if (fd >= 0)
		close(fd);
	if (!have)
		printf("SKIP: no IPv6 on loopback\n");
	return have;
}

static inline struct rxw_io_options options_for(const char *host, struct lines *lines)
{
	struct rxw_io_options o = { .bind = address(host, 0), .sockets = 1, .batch = 32, .gso = 1,
				    .gro = 1, .log = lines ? collect_line : NULL,
				    .log_arg = lines };

	return o;
}

static inline void open_group(struct rxw_io_group *g, const struct rxw_io_options *o)
{
	int rc = rxw_io_open(g, o);

	ck_assert_msg(rc == 0, "rxw_io_open: %s", strerror(-rc));
}

static inline uint64_t stat_of(const _Atomic(uint64_t) *counter)
{
	return atomic_load_explicit((_Atomic(uint64_t) *)counter, memory_order_relaxed);
}

/* Numbered datagrams: number, connection id, length, then bytes derived from the number. */
static inline uint8_t pattern(uint32_t number, uint32_t at)
{
	return (uint8_t)((number * 2654435761u + at * 40503u) >> 11);
}

static inline void fill_datagram(uint8_t *d, uint32_t number, uint32_t cid, uint32_t length)
{
	uint32_t word[3] = { htonl(number), htonl(cid), htonl(length) };

	ck_assert_uint_ge(length, sizeof(word));
	for (uint32_t i = sizeof(word); i < length; i++)
		d[i] = pattern(number, i);
	memcpy(d, word, sizeof(word));
}

/* Which of `count` numbered datagrams have arrived. */
struct seen {
	uint32_t count, total, twice, wrong;
	uint8_t *times;
};

static inline void seen_init(struct seen *s, uint32_t count)
{
	memset(s, 0, sizeof(*s));
	s->count = count;
	s->times = calloc(count, 1);
	ck_assert_ptr_nonnull(s->times);
}

static inline void seen_datagram(struct seen *s, const uint8_t *d, uint32_t length)
{
	uint32_t word[3];
	uint32_t number;

	ck_assert_uint_ge(length, sizeof(word));
	memcpy(word, d, sizeof(word));
	number = ntohl(word[0]);
	ck_assert_uint_lt(number, s->count);
	s->total++;
	s->twice += s->times[number]++ != 0;
	s->wrong += ntohl(word[2]) != length;
	for (uint32_t i = sizeof(word); i < length; i++)
		if (d[i] != pattern(number, i)) {
			s->wrong++;
			break;
		}
}

static inline void seen_rx(struct seen *s, const struct rxw_io_rx *rx)
{
	uint32_t at = 0;

	ck_assert(!rx->truncated);
	do {
		uint32_t n = rx->length - at < rx->segment ? rx->length - at : rx->segment;

		seen_datagram(s, rx->buf->data + at, n);
		at += n;
	} while (at < rx->length);
}

/* A receiving end; its buffers are reused for each batch. */
struct sink {
	struct rxw_budget budget;
	struct rxw_pool *pool;
	struct rxw_io_rx rx[RXW_IO_BATCH];
};

static inline void sink_init(struct sink *k)
{
	memset(k, 0, sizeof(*k));
	rxw_budget_init(&k->budget, 64 << 20);
	k->pool = rxw_pool_create(&k->budget, 1 << 20, RXW_IO_BATCH);
	for (unsigned i = 0; i < RXW_IO_BATCH; i++) {
		k->rx[i].buf = rxw_buf_get(k->pool);
		ck_assert_ptr_nonnull(k->rx[i].buf);
	}
}

static inline void sink_free(struct sink *k)
{
	for (unsigned i = 0; i < RXW_IO_BATCH; i++)
		rxw_buf_unref(k->rx[i].buf);
	rxw_pool_destroy(k->pool);
}

/* Receives pending datagrams, waiting for the first. Returns the number of datagrams or bursts. */
static inline int sink_take(struct sink *k, struct rxw_io_sock *s, struct seen *seen,
			    uint32_t timeout_us)
{
	int n = rxw_io_recv(s, k->rx, RXW_IO_BATCH, timeout_us);

	ck_assert_int_ge(n, 0);
	for (int i = 0; i < n && seen; i++)
		seen_rx(seen, &k->rx[i]);
	return n;
}

/* Until `total` datagrams have arrived. */
static inline void sink_until(struct sink *k, struct rxw_io_sock *s, struct seen *seen,
			      uint32_t total)
{
	while (seen->total < total)
		ck_assert_msg(sink_take(k, s, seen, LOST_US) > 0, "%u of %u datagrams arrived",
			      seen->total, total);
}

static inline void seen_all_once(struct seen *s)
{
	ck_assert_uint_eq(s->wrong, 0);
	ck_assert_uint_eq(s->twice, 0);
	ck_assert_uint_eq(s->total, s->count);
	free(s->times);
	s->times = NULL;
}

/* A burst of numbered datagrams, the last one shorter. */
struct burst {
	struct rxw_path path;
	struct iovec iov[4];
	uint8_t *bytes;
};

/* `pieces` iovecs divide the bytes at other places than the datagrams' borders. */
static inline struct rxw_io_tx burst_make(struct burst *t, const struct rxw_addr *to,
					  uint32_t number, unsigned datagrams, uint32_t segment,
					  uint32_t last, unsigned pieces)
{
	uint32_t length = (datagrams - 1) * segment + last;
	struct rxw_io_tx tx = { .path = &t->path, .iov = t->iov, .iov_count = pieces,
				.length = length, .segment = (uint16_t)segment };
	uint32_t at = 0;

	memset(&t->path, 0, sizeof(t->path));
	t->path.peer = *to;
	t->bytes = malloc(length);
	ck_assert_ptr_nonnull(t->bytes);
	for (unsigned i = 0; i < datagrams; i++)
		fill_datagram(t->bytes + i * segment, number + i, 0x1234 << 2,
			      i + 1 < datagrams ? segment : last);
	for (unsigned i = 0; i < pieces; i++) {
		uint32_t n = i + 1 < pieces ? length / pieces : length - at;

		t->iov[i].iov_base = t->bytes + at;
		t->iov[i].iov_len = n;
		at += n;
	}
	return tx;
}

static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline Suite *suite_of(const char *name, const TTest *const *tests, size_t count)
{
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create(name);

	for (size_t i = 0; i < count; i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite;
}

#define RUN(name, ...)                                                                        \
	int main(void)                                                                        \
	{                                                                                     \
		const TTest *const tests[] = { __VA_ARGS__ };                                 \
		return run_suite(suite_of(name, tests, sizeof(tests) / sizeof(tests[0])));    \
	}

#endif
