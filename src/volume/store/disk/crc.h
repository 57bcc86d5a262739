/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32C (Castagnoli), which guards each record of the database and each piece of a file. */
#ifndef STORE_CRC_H
#define STORE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continue with `crc`, the result for the bytes before; 0 at the start. Any thread. */
uint32_t store_crc(uint32_t crc, const void *bytes, size_t length);
/* The same in one of the ways that the processor has, which are those up to the best one. */
enum store_crc_way {
	STORE_CRC_TABLE,
	STORE_CRC_STREAMS,
	STORE_CRC_LANES
};
enum store_crc_way store_crc_best(void);
uint32_t store_crc_by(enum store_crc_way way, uint32_t crc, const void *bytes, size_t length);

#endif
