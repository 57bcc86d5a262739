/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls to a service: any of its calls with arguments of the right form, which mostly name what exists, and now and then are
 * changed, cut off or given up on. RXW_TEST_SEED makes another run, RXW_FUZZ_SECONDS a longer one.
 */
#ifndef RXW_TESTS_FILESERVER_ANYCALL_H
#define RXW_TESTS_FILESERVER_ANYCALL_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rxwire/call.h>
#include <rxwire/coder.h>

#include "tests/main.h"

/*
 * Arguments: i an id, w a small number, b a bit, s a string, N or P the 65 or 64 words of a name, l or L a list of ids or names. Each may
 * follow a count.
 */
struct anycall_form {
	uint32_t opcode;
	const char *arguments;
};

struct anycall {
	const struct anycall_form *forms;
	size_t form_count;
	const uint32_t *ids;
	size_t id_count;
	const char *const *names;
	size_t name_count;
	rxw_connection *connection[4]; /* of callers */
	/* What follows is set by anycall_run(). */
	uint64_t state;
	uint8_t request[65536];
	size_t at;
	unsigned done, succeeded;
};

static inline uint32_t anycall_random(struct anycall *any, size_t below)
{
	any->state ^= any->state << 13;
	any->state ^= any->state >> 7;
	any->state ^= any->state << 17;
	return (uint32_t)((any->state >> 16) % below);
}

static inline void anycall_word(struct anycall *any, uint32_t word)
{
	ck_assert_uint_le(any->at + 4, sizeof(any->request));
	rxw_xdr_store32(any->request + any->at,
			anycall_random(any, 300) ? word : anycall_random(any, UINT32_MAX));
	any->at += 4;
}

static inline const char *anycall_name(struct anycall *any)
{
	return any->names[anycall_random(any, any->name_count)];
}

static inline void anycall_string(struct anycall *any)
{
	const char *name = anycall_name(any);
	size_t length = strlen(name), room = (length + 3) & ~(size_t)3;

	anycall_word(any, (uint32_t)length);
	ck_assert_uint_le(any->at + room, sizeof(any->request));
	memset(any->request + any->at, 0, room);
	memcpy(any->request + any->at, name, length);
	any->at += room;
}

static inline void anycall_letters(struct anycall *any, unsigned words)
{
	char name[65] = {0};

	snprintf(name, words, "%s", anycall_name(any));
	for (unsigned i = 0; i < words; i++)
		anycall_word(any, (uint8_t)name[i]);
}

static inline void anycall_argument(struct anycall *any, char letter)
{
	uint32_t count;

	switch (letter) {
	case 'i':
		anycall_word(any, any->ids[anycall_random(any, any->id_count)]);
		break;
	case 'b':
		anycall_word(any, 1u << anycall_random(any, 32));
		break;
	case 's':
		anycall_string(any);
		break;
	case 'N':
	case 'P':
		anycall_letters(any, letter == 'N' ? 65 : 64);
		break;
	case 'l':
	case 'L':
		count = anycall_random(any, 5);
		anycall_word(any, count);
		while (count--)
			anycall_argument(any, letter == 'l' ? 'i' : 'P');
		break;
	default:
		anycall_word(any, anycall_random(any, 3) ? anycall_random(any, 4) : UINT32_MAX);
	}
}

static inline void anycall_arguments(struct anycall *any, const char *arguments)
{
	while (*arguments) {
		char *end = NULL;
		unsigned long count = isdigit(*arguments) ? strtoul(arguments, &end, 10) : 1;

		arguments = end ? end : arguments;
		while (count--)
			anycall_argument(any, *arguments);
		arguments++;
	}
}

static inline void anycall_make(struct anycall *any)
{
	const struct anycall_form *form = &any->forms[anycall_random(any, any->form_count)];
	rxw_connection *connection = any->connection[anycall_random(any, 4)];
	uint8_t reply[4096];
	rxw_call *call;
	ssize_t n;

	any->at = 0;
	anycall_word(any, form->opcode);
	anycall_arguments(any, form->arguments);
	if (!anycall_random(any, 30))
		any->at = anycall_random(any, any->at + 1);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	n = any->at ? rxw_call_write(call, any->request, any->at) : 0;
	ck_assert(n == (ssize_t)any->at || n == -RXW_ECALL);
	if (!anycall_random(any, 25)) {
		rxw_call_flush(call);
		rxw_call_abort(call, 1);
	} else {
		while (rxw_call_read(call, reply, sizeof(reply)) == (ssize_t)sizeof(reply))
			;
	}
	any->done++;
	any->succeeded += rxw_call_end(call, 0, NULL) == 0;
}

/* At least a twentieth of them succeeds. */
static inline void anycall_run(struct anycall *any, unsigned calls)
{
	const char *seed = getenv("RXW_TEST_SEED"), *seconds = getenv("RXW_FUZZ_SECONDS");
	time_t until = time(NULL) + (seconds ? atoi(seconds) : 0);

	any->state = (seed ? strtoull(seed, NULL, 0) : 1) * 0x9e3779b97f4a7c15u + 1;
	while (seconds ? time(NULL) < until : any->done < calls)
		anycall_make(any);
	printf("%u calls, %u succeeded\n", any->done, any->succeeded);
	ck_assert_uint_gt(any->succeeded, any->done / 20);
}

#endif
