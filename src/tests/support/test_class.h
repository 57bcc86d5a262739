/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A security class for tests: index 251; 8 bytes before the data, 12 after, all bytes changed,
 * slow.
 */
#ifndef TESTS_SUPPORT_TEST_CLASS_H
#define TESTS_SUPPORT_TEST_CLASS_H

#include "proto/peer/auth.h"

extern struct rxw_security rxw_security_test_class;

#endif
