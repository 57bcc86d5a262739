/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of endpoints by name. A name that the library does not have fails the test. */
#ifndef TESTS_SUPPORT_COUNTERS_H
#define TESTS_SUPPORT_COUNTERS_H

#include "common/counters.h"
#include "tests/asserts.h"

/* All counters of an endpoint. */
static inline struct counters counters_of(rxw_endpoint *endpoint)
{
	struct counters c;

	ck_assert_int_eq(counters_read(&c, endpoint), 0);
	return c;
}

/* One of these counters. */
static inline uint64_t counter_in(const struct counters *counters, const char *name)
{
	ck_assert_msg(counters_place(name) < COUNTERS_ROOM, "no counter %s", name);
	return counters_get(counters, name);
}

/* One counter of an endpoint now. */
static inline uint64_t counter_of(rxw_endpoint *endpoint, const char *name)
{
	uint64_t value;

	ck_assert_msg(rxw_endpoint_counter(endpoint, name, &value) == 0, "no counter %s", name);
	return value;
}

#endif
