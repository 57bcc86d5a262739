/* SPDX-License-Identifier: BSD-2-Clause */
/* The rxperf service on the wire, and the data that it moves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/xdr.h>

#include "tools/common/number.h"
#include "tools/perf/wire.h"

/* A prime, so that no multiple of a packet's size is a whole period. */
#define PERIOD 65521u

/* Written once by perf_pattern_init(), before threads exist. */
static uint8_t pattern[PERIOD + PERF_MAX_IO];

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

size_t perf_encoded_size(const struct perf_request *r)
{
	switch (r->command) {
	case PERF_RPC:
		return PERF_COMMON_LEN + 8;
	case PERF_FILE:
		return PERF_COMMON_LEN + 4 + 4 * (size_t)r->word_count;
	default:
		return PERF_COMMON_LEN + 4;
	}
}

size_t perf_encode(const struct perf_request *r, void *memory, size_t size)
{
	struct rxw_xdr x;

	rxw_xdr_writer(&x, memory, size);
	rxw_xdr_put_u32(&x, PERF_VERSION);
	rxw_xdr_put_u32(&x, (uint32_t)r->command);
	rxw_xdr_put_u32(&x, r->read_size);
	rxw_xdr_put_u32(&x, r->write_size);
	switch (r->command) {
	case PERF_SEND:
		rxw_xdr_put_u32(&x, r->request);
		break;
	case PERF_RECV:
		rxw_xdr_put_u32(&x, r->reply);
		break;
	case PERF_RPC:
		rxw_xdr_put_u32(&x, r->request);
		rxw_xdr_put_u32(&x, r->reply);
		break;
	case PERF_FILE:
		rxw_xdr_put_u32(&x, r->word_count);
		for (uint32_t i = 0; i < r->word_count; i++)
			rxw_xdr_put_u32(&x, r->words[i]);
		break;
	}
	return rxw_xdr_ok(&x) ? rxw_xdr_used(&x) : 0;
}

int perf_decode_common(struct perf_request *r, const void *words, size_t *more)
{
	struct rxw_xdr x;
	uint32_t version = 0, command = 0;

	memset(r, 0, sizeof(*r));
	rxw_xdr_reader(&x, words, PERF_COMMON_LEN);
	rxw_xdr_get_u32(&x, &version);
	rxw_xdr_get_u32(&x, &command);
	rxw_xdr_get_u32(&x, &r->read_size);
	rxw_xdr_get_u32(&x, &r->write_size);
	if (!rxw_xdr_ok(&x) || version != PERF_VERSION || r->read_size == 0 ||
	    r->read_size > PERF_MAX_IO || r->write_size == 0 || r->write_size > PERF_MAX_IO)
		return -1;
	switch (command) {
	case PERF_SEND:
	case PERF_RECV:
	case PERF_FILE:
		*more = 4;
		break;
	case PERF_RPC:
		*more = 8;
		break;
	default:
		return -1;
	}
	r->command = (enum perf_command)command;
	return 0;
}

int perf_decode_sizes(struct perf_request *r, const void *words)
{
	struct rxw_xdr x;
	uint32_t first = 0, second = 0;

	rxw_xdr_reader(&x, words, r->command == PERF_RPC ? 8 : 4);
	rxw_xdr_get_u32(&x, &first);
	if (r->command == PERF_RPC)
		rxw_xdr_get_u32(&x, &second);
	if (first > PERF_MAX_BYTES || second > PERF_MAX_BYTES)
		return -1;
	switch (r->command) {
	case PERF_SEND:
		r->request = first;
		break;
	case PERF_RECV:
		r->reply = first;
		break;
	case PERF_RPC:
		r->request = first;
		r->reply = second;
		break;
	case PERF_FILE:
		if (first > PERF_MAX_WORDS)
			return -1;
		r->word_count = first;
		break;
	}
	return 0;
}

void perf_totals(const struct perf_request *r, uint64_t *to_server, uint64_t *to_client)
{
	uint64_t sum[2] = { r->request, r->reply };
	unsigned direction = 0;

	for (uint32_t i = 0; r->command == PERF_FILE && i < r->word_count; i++) {
		if (r->words[i] == 0)
			direction ^= 1;
		sum[direction] += 4 * (uint64_t)r->words[i];
	}
	*to_server = sum[0];
	*to_client = sum[1];
}

bool perf_list_is_sane(const struct perf_request *r)
{
	bool replied = false;
	unsigned direction = 0;

	for (uint32_t i = 0; i < r->word_count; i++) {
		if (r->words[i] == 0)
			direction ^= 1;
		else if (direction == 1)
			replied = true;
		else if (replied)
			return false;
	}
	return true;
}

int perf_parse_list(const char *text, struct perf_request *r, char *message, size_t size)
{
	uint32_t *words = malloc(PERF_MAX_WORDS * sizeof(*words)), n = 0;
	uint64_t bytes;

	if (!words) {
		snprintf(message, size, "no memory");
		return -1;
	}
	r->words = words;
	for (;;) {
		char part[24];
		size_t length = strcspn(text, ",");

		if (length < sizeof(part)) {
			memcpy(part, text, length);
			part[length] = 0;
		}
		if (length >= sizeof(part) || tools_parse_size(part, &bytes) < 0 ||
		    bytes % 4 != 0 || bytes / 4 > PERF_MAX_BYTES) {
			snprintf(message, size, "\"%.*s\" is no size in multiples of 4 bytes",
				 (int)(length > 40 ? 40 : length), text);
			break;
		}
		if (n == PERF_MAX_WORDS) {
			snprintf(message, size, "more than %u entries", PERF_MAX_WORDS);
			break;
		}
		words[n++] = (uint32_t)(bytes / 4);
		text += length;
		if (*text++ == ',')
			continue;
		r->word_count = n;
		if (perf_list_is_sane(r))
			return 0;
		snprintf(message, size, "nothing can be sent after the first byte received");
		break;
	}
	free(words);
	r->words = NULL;
	r->word_count = 0;
	return -1;
}
