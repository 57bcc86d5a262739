/* SPDX-License-Identifier: BSD-2-Clause */
/* The encoding of the rxperf service, and the test data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "program/number.h"
#include "rxperf/wire.h"

/* A prime, so that the period is no multiple of the size of a packet. */
#define PERIOD 65521u

/* Written once by perf_pattern_init(), before threads exist. */
static uint8_t pattern[PERIOD + RXPERF_IO_MAX];

void perf_pattern_init(void)
{
	uint32_t x = 0x9e3779b9u;

	for (size_t i = 0; i < PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		pattern[i] = (uint8_t)(x >> 24);
	}
	for (size_t i = PERIOD; i < sizeof(pattern); i++)
		pattern[i] = pattern[i - PERIOD];
}

const uint8_t *perf_pattern(uint64_t offset, size_t want, size_t *length)
{
	size_t start = offset % PERIOD, there = sizeof(pattern) - start;

	*length = want < there ? want : there;
	return pattern + start;
}

bool perf_pattern_matches(uint64_t offset, const void *data, size_t length)
{
	const uint8_t *p = data;

	while (length > 0) {
		size_t n;
		const uint8_t *want = perf_pattern(offset, length, &n);

		if (memcmp(p, want, n) != 0)
			return false;
		p += n;
		offset += n;
		length -= n;
	}
	return true;
}

const rxperf_sizes *perf_sizes(const rxperf_command *command)
{
	switch (command->what) {
	case RXPERF_SEND:
		return &command->u.send.sizes;
	case RXPERF_RECV:
		return &command->u.recv.sizes;
	case RXPERF_RPC:
		return &command->u.rpc.sizes;
	default:
		return &command->u.file.sizes;
	}
}

bool perf_is_sane(const rxperf_command *command)
{
	const rxperf_sizes *s = perf_sizes(command);
	uint64_t to_server, to_client;

	if (s->read_size < 1 || s->read_size > RXPERF_IO_MAX || s->write_size < 1 ||
	    s->write_size > RXPERF_IO_MAX)
		return false;
	if (command->what == RXPERF_FILE)
		return true;
	perf_totals(command, &to_server, &to_client);
	return to_server <= PERF_MAX_BYTES && to_client <= PERF_MAX_BYTES;
}

size_t perf_encode(const rxperf_command *command, void *memory)
{
	struct rxw_xdr x;

	rxw_xdr_writer(&x, memory, PERF_REQUEST_MAX);
	rxw_xdr_put_u32(&x, RXPERF_OP_Run);
	xdr_put_rxperf_command(&x, command);
	return rxw_xdr_ok(&x) ? rxw_xdr_used(&x) : 0;
}

void perf_totals(const rxperf_command *command, uint64_t *to_server, uint64_t *to_client)
{
	const rxperf_list *list = &command->u.file;
	uint64_t sum[2] = {0, 0};
	unsigned direction = 0;

	switch (command->what) {
	case RXPERF_SEND:
		sum[0] = command->u.send.bytes;
		break;
	case RXPERF_RECV:
		sum[1] = command->u.recv.bytes;
		break;
	case RXPERF_RPC:
		sum[0] = command->u.rpc.request;
		sum[1] = command->u.rpc.reply;
		break;
	default:
		for (uint32_t i = 0; i < list->words.len; i++) {
			if (list->words.val[i] == 0)
				direction ^= 1;
			sum[direction] += 4 * (uint64_t)list->words.val[i];
		}
	}
	*to_server = sum[0];
	*to_client = sum[1];
}

/* Whether the client sends nothing after its first received byte, as Rx requires. */
static bool perf_list_is_sane(const rxperf_list *list)
{
	bool replied = false;
	unsigned direction = 0;

	for (uint32_t i = 0; i < list->words.len; i++) {
		if (list->words.val[i] == 0)
			direction ^= 1;
		else if (direction == 1)
			replied = true;
		else if (replied)
			return false;
	}
	return true;
}

int perf_parse_list(const char *text, rxperf_list *list, char *message, size_t size)
{
	uint32_t *words = malloc(RXPERF_LIST_MAX * sizeof(*words)), n = 0;
	uint64_t bytes;

	if (!words)
		return fail_with(-1, message, size, "no memory");
	list->words.val = words;
	for (;;) {
		char part[24];
		size_t length = strcspn(text, ",");

		if (length < sizeof(part)) {
			memcpy(part, text, length);
			part[length] = 0;
		}
		if (length >= sizeof(part) || tools_parse_size(part, &bytes) < 0 ||
		    bytes % 4 != 0 || bytes / 4 > PERF_MAX_BYTES) {
			snprintf(message, size, "\"%.*s\" is not a size in multiples of 4 bytes",
				 (int)(length > 40 ? 40 : length), text);
			break;
		}
		if (n == RXPERF_LIST_MAX) {
			snprintf(message, size, "more than %d entries", RXPERF_LIST_MAX);
			break;
		}
		words[n++] = (uint32_t)(bytes / 4);
		text += length;
		if (*text++ == ',')
			continue;
		list->words.len = n;
		if (perf_list_is_sane(list))
			return 0;
		snprintf(message, size, "nothing can be sent after data was received");
		break;
	}
	xdrfree_rxperf_list(list);
	return -1;
}
