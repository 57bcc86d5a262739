/* SPDX-License-Identifier: BSD-2-Clause */
/* The encoding of the rxperf service, and the test data. */
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
/* Maximal size of an encoded request: version, command, sizes, count and list. */
#define PERF_REQUEST_MAX (20 + 4 * RXPERF_LIST_MAX)

/* The sizes of reads and writes of a command. */
const rxperf_sizes *perf_sizes(const rxperf_command *command);
/* Whether sizes and lengths are within the limits of the service, except those of a list. */
bool perf_is_sane(const rxperf_command *command);

/*
 * Encode a request without its data into PERF_REQUEST_MAX bytes. It is encoded once, because
 * asynchronous calls write it in parts. Returns the size, 0 if the command is invalid.
 */
size_t perf_encode(const rxperf_command *command, void *memory);

/* Total bytes of data to and from the server. FILE: sums over the list. */
void perf_totals(const rxperf_command *command, uint64_t *to_server, uint64_t *to_client);

/*
 * "64K,0,1M": bytes in multiples of 4, with K, M, G; 0 flips the direction. Fills list->words, to
 * be freed with xdrfree_rxperf_list(); 0, or -1 with the reason in `message`.
 */
int perf_parse_list(const char *text, rxperf_list *list, char *message, size_t size);

/*
 * Test data: byte i of a transfer is a fixed function of i, which reveals lost, repeated or
 * misplaced packets. Returns a pointer to the *length <= `want` bytes at `offset`.
 */
const uint8_t *perf_pattern(uint64_t offset, size_t want, size_t *length);
/* Whether these are the bytes at `offset`. */
bool perf_pattern_matches(uint64_t offset, const void *data, size_t length);
/* Create the test data. Once, before the first use. */
void perf_pattern_init(void);

#endif
