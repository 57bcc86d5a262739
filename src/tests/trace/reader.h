/* SPDX-License-Identifier: BSD-2-Clause */
/* A small reader of pcapng that takes nothing on trust: what a trace has to be, it checks. */
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
	uint64_t received, dropped; /* of the statistics, all sections together */
};

/* Fails the test if the file is no trace, with the place; reader_free(). */
void reader_open(struct reader *r, const char *path);
void reader_free(struct reader *r);
/* Packets whose comments have such text. */
unsigned reader_comments(const struct reader *r, const char *text);

#endif
