/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that are known, against generated stubs of both sides, over loopback. */
#ifndef TESTS_AFS_KNOWN_H
#define TESTS_AFS_KNOWN_H

#include <rxwire/rpc.h>

#include "tests/asserts.h"

/*
 * Bytes are written as text: hexadecimal digits in pairs, 'text' for its bytes, 0102*3 for three of
 * the same; blanks and '|' are for the reader. One thread.
 */

void known_setup(void);
void known_teardown(void);

/* For the stubs of a client: a peer that keeps each request and answers what it was told. */
rxw_connection *known_peer(void);
void known_answer(const char *reply);
/* Give `code` instead of the next answer. */
void known_refusal(int32_t code);
/* The latest request was exactly this. */
void known_request(const char *request);

/* For the stubs of a server: a dispatcher to try. Once in a test. */
void known_dispatcher(rxw_handler_fn execute, void *service);
/* A call with these bytes gets this reply, or the code. */
void known_exchange(const char *request, const char *reply);
void known_failure(const char *request, int32_t code);

/* main() of a program of such tests. */
int known_main(const char *name, const TTest *const *tests, size_t count);
#define KNOWN_MAIN(name, ...)                                                     \
	int main(void)                                                            \
	{                                                                         \
		const TTest *const tests[] = {__VA_ARGS__};                       \
		return known_main(name, tests, sizeof(tests) / sizeof(tests[0])); \
	}

#endif
