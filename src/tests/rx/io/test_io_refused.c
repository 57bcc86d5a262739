/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of destinations that refuse bursts: look-up, limit, expiry after a minute. */
#include "io_test.h"

static struct rxw_addr host(unsigned i)
{
	char text[32];

	snprintf(text, sizeof(text), "10.0.%u.%u", i / 250, i % 250 + 1);
	return address(text, (uint16_t)(1000 + i));
}

START_TEST(found_by_host_and_forgotten)
{
	struct lines lines = { 0 };
	struct rxw_io_sock s = { .log = collect_line, .log_arg = &lines };
	struct rxw_addr a = host(1), b = host(2), other_port = address("10.0.0.2", 9);

	s.warned = &s.warned_here;
	pthread_mutex_init(&s.lock, NULL);
	ck_assert(!rxw_io_refused(&s, &a));
	rxw_io_refuse(&s, &a, EIO);
	ck_assert(rxw_io_refused(&s, &a));
	ck_assert(rxw_io_refused(&s, &other_port));
	ck_assert(!rxw_io_refused(&s, &b));
	ck_assert_uint_eq(stat_of(&s.stats.gso_fallbacks), 1);
	rxw_io_refuse(&s, &b, EINVAL);
	ck_assert_uint_eq(lines.count, 1);
	ck_assert_ptr_nonnull(strstr(lines.all, "10.0.0.2"));
	/* Its minute has passed. */
	s.refused[0].until_ms -= RXW_IO_REFUSED_MS + 1;
	ck_assert(!rxw_io_refused(&s, &a));
	ck_assert(rxw_io_refused(&s, &b));
	ck_assert_uint_eq(s.refused_count, 1);
}
END_TEST

START_TEST(the_memory_is_bounded)
{
	struct rxw_io_sock s = { 0 };
	struct rxw_addr a;

	s.warned = &s.warned_here;
	pthread_mutex_init(&s.lock, NULL);
	for (unsigned i = 0; i < 1000; i++) {
		a = host(i);
		rxw_io_refuse(&s, &a, EIO);
		ck_assert(rxw_io_refused(&s, &a));
	}
	ck_assert_uint_eq(s.refused_count, RXW_IO_REFUSED);
}
END_TEST

RUN("io_refused", found_by_host_and_forgotten, the_memory_is_bounded)
