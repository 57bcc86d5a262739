/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares known bytes with generated stubs of both sides, over loopback. */
#ifndef TESTS_AFS_KNOWN_H
#define TESTS_AFS_KNOWN_H

#include <rxwire/rpc.h>

#include "tests/asserts.h"

/*
 * Bytes are written as text: hexadecimal digits in pairs, 'text' for its bytes, 0102*3 for three
 * repetitions; blanks and '|' are ignored. For use by one thread.
 */

void known_setup(void);
void known_teardown(void);

/* For client stubs: a peer that keeps each request and sends the given answer. */
rxw_connection *known_peer(void);
void known_answer(const char *reply);
/* Returns `code` instead of the next answer. */
void known_refusal(int32_t code);
/* Asserts that the latest request had exactly these bytes. */
void known_request(const char *request);

/* For server stubs: the dispatcher to test. Once in a test. */
void known_dispatcher(rxw_handler_fn execute, void *service);
/* Asserts that a call with these bytes gets this reply, or the code. */
void known_exchange(const char *request, const char *reply);
void known_failure(const char *request, int32_t code);

/* main() of a test program. */
int known_main(const char *name, const TTest *const *tests, size_t count);
#define KNOWN_MAIN(name, ...)                                                     \
	int main(void)                                                            \
	{                                                                         \
		const TTest *const tests[] = {__VA_ARGS__};                       \
		return known_main(name, tests, sizeof(tests) / sizeof(tests[0])); \
	}

#endif
