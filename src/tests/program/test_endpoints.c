/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of common/endpoints.c: limits of programs with many endpoints. */
#include <sys/resource.h>

#include "tests/tools/testing.h"

#include "program/endpoints.h"

START_TEST(memory)
{
	struct rxw_config config;
	size_t before;

	rxw_config_init(&config, sizeof(config));
	before = config.memory;
	ck_assert_uint_gt(before, 0);
	tools_allow_endpoints(&config, 0);
	tools_allow_endpoints(&config, 1);
	ck_assert_uint_eq(config.memory, before);
	tools_allow_endpoints(&config, 1001);
	ck_assert_uint_eq(config.memory, before + ((size_t)1000 << 20));
	/* Explicit settings stay. */
	ck_assert_int_eq(rxw_config_set(&config, "memory", "64M", NULL, 0), 0);
	tools_allow_endpoints(&config, 1001);
	ck_assert_uint_eq(config.memory, (size_t)64 << 20);
}
END_TEST

START_TEST(descriptors)
{
	struct rxw_config config;
	struct rlimit l;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &l), 0);
	l.rlim_cur = l.rlim_max < 64 ? l.rlim_max : 64;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
	rxw_config_init(&config, sizeof(config));
	tools_allow_endpoints(&config, 100);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &l), 0);
	ck_assert(l.rlim_cur == l.rlim_max);
}
END_TEST

TEST_MAIN("endpoints", memory, descriptors)
