/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's constants by name, for tests that set tunables by name as well. */
#ifndef TESTS_SUPPORT_CONSTANTS_H
#define TESTS_SUPPORT_CONSTANTS_H

#include <stdbool.h>

#include "engine/core/constants.h"
#include "tests/support/faults.h"

struct test_constants {
	struct rxw_constants set; /* its `faults` points to this one once it has been set */
	struct rxw_io_faults faults;
};

/* The values that applications get. */
void test_constants_init(struct test_constants *constants);

/* As rxw_config_set(). False: no constant has this name, or the value is malformed. */
bool test_constants_set(struct test_constants *constants, const char *name, const char *value);

#endif
