/* SPDX-License-Identifier: BSD-2-Clause */
/* A small reader of pcapng that checks everything it reads. */
#ifndef TESTS_TRACE_READER_H
#define TESTS_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define READER_COMMENTS 40

struct reader_packet {
	uint64_t at; /* ns since 1970 */
	bool sent, six;
	uint16_t from, to; /* ports */
	uint8_t source[16], target[16];
	const uint8_t *data; /* of UDP */
	uint32_t kept, length;
	unsigned comments;
	char comment[READER_COMMENTS][256];
};

struct reader {
	uint8_t *bytes;
	size_t size;
	unsigned sections, count, room;
	struct reader_packet *packet;
	uint64_t received, dropped; /* from the statistics, all sections together */
};

/*
 * Fails the test at the faulty place if the file is not a valid trace. Free the result with
 * reader_free().
 */
void reader_open(struct reader *r, const char *path);
void reader_free(struct reader *r);
/* The number of packets whose comments contain that text. */
unsigned reader_comments(const struct reader *r, const char *text);

#endif
