/* SPDX-License-Identifier: BSD-2-Clause */
/* The rxperf service on the wire, and the data that it moves. */
#ifndef PERF_WIRE_H
#define PERF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "afs/rxperf.h"

#define PERF_PORT	     7009
#define PERF_SERVICE	     147
#define PERF_FIGURES_SERVICE 30147
#define PERF_MAX_BYTES	     0x7fffffffu /* of one transfer */
#define PERF_FIGURES_MAX     (256u * 1024)
/* Bytes that the words of a request take at most: version, what, sizes, count and list. */
#define PERF_REQUEST_MAX (20 + 4 * RXPERF_LIST_MAX)

/* The sizes of reads and writes, which every command has. */
const rxperf_sizes *perf_sizes(const rxperf_command *command);
/* Whether sizes and lengths are within the limits of the service; a list's are looked at later. */
bool perf_is_sane(const rxperf_command *command);

/*
 * A whole request but for its data, into PERF_REQUEST_MAX bytes: asynchronous calls write it piece
 * by piece, so it is coded once and in memory. Returns the bytes, 0 if the command is none.
 */
size_t perf_encode(const rxperf_command *command, void *memory);

/* Total bytes of data to and from the server. FILE: sums over the list. */
void perf_totals(const rxperf_command *command, uint64_t *to_server, uint64_t *to_client);
/* Whether nothing is sent by the client after its first byte received; what Rx can carry. */
bool perf_list_is_sane(const rxperf_list *list);

/*
 * "64K,0,1M": bytes in multiples of 4, with K, M, G; 0 flips the direction. Fills list->words, to
 * be freed with xdrfree_rxperf_list(); 0, or -1 with the reason in `message`.
 */
int perf_parse_list(const char *text, rxperf_list *list, char *message, size_t size);

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
