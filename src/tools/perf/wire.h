/* SPDX-License-Identifier: BSD-2-Clause */
/* The rxperf service on the wire, and the data that it moves. */
#ifndef PERF_WIRE_H
#define PERF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_PORT       7009
#define PERF_SERVICE    147
#define PERF_VERSION    3
#define PERF_COOKIE     0x00004711u
#define PERF_MAX_IO     524288u     /* read and write size: 1..this */
#define PERF_MAX_BYTES  0x7fffffffu /* of one transfer */
#define PERF_MAX_WORDS  4096u       /* of a FILE list */
#define PERF_COMMON_LEN 16u         /* version, command, read size, write size */

/*
 * Figures of a server of ours, on the same port under another service id: servers of others refuse
 * it with -2 and never see what follows. Request: operation, argument. MARK answers a token (one
 * word) that stands for this moment; FIGURES takes a token and answers a JSON object (text, to the
 * end of the reply) of what happened since; token 0 is the start of the server.
 */
#define PERF_FIGURES_SERVICE 30147
#define PERF_OP_MARK         1u
#define PERF_OP_FIGURES      2u
#define PERF_FIGURES_MAX     (256u * 1024)

enum perf_command { PERF_SEND = 0, PERF_RECV = 1, PERF_RPC = 3, PERF_FILE = 4 };

/* One call as both ends see it. */
struct perf_request {
	enum perf_command command;
	uint32_t read_size, write_size;
	uint32_t request, reply; /* bytes of data from and to the client */
	uint32_t word_count;     /* FILE */
	uint32_t *words;         /* FILE: lengths / 4, 0 = flip; owned by whoever filled it */
};

/* Bytes that the words of `r` take. */
size_t perf_encoded_size(const struct perf_request *r);
/* Write them; `size` is at least perf_encoded_size(). Returns the bytes written. */
size_t perf_encode(const struct perf_request *r, void *memory, size_t size);

/*
 * Judge the four common words. 0, or -1 as the code of the ABORT. *more is set to the bytes to read
 * for the words that follow (FILE: for its count alone).
 */
int perf_decode_common(struct perf_request *r, const void *words, size_t *more);
/* Judge what follows: sizes, or the count of a list. 0 or -1. */
int perf_decode_sizes(struct perf_request *r, const void *words);

/* Total bytes of data to and from the server. FILE: sums over the list. */
void perf_totals(const struct perf_request *r, uint64_t *to_server, uint64_t *to_client);
/* Whether nothing is sent by the client after its first byte received; what Rx can carry. */
bool perf_list_is_sane(const struct perf_request *r);

/*
 * "64K,0,1M": bytes in multiples of 4, with K, M, G; 0 flips the direction. Fills words; 0, or -1
 * with the reason in `message`.
 */
int perf_parse_list(const char *text, struct perf_request *r, char *message, size_t size);

/*
 * Data: byte number i of a transfer is a fixed function of i, so that a lost, repeated or moved
 * packet shows. Lends *length <= `want` bytes that belong at `offset`.
 */
const uint8_t *perf_pattern(uint64_t offset, size_t want, size_t *length);
/* Whether the bytes are those that belong at `offset`. */
bool perf_pattern_matches(uint64_t offset, const void *data, size_t length);
/* Make the pattern; before the first use, once. */
void perf_pattern_init(void);

#endif
