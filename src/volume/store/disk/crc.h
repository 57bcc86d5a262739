/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32C (Castagnoli), which guards each record of the database and each piece of a file. */
#ifndef STORE_CRC_H
#define STORE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continue with `crc`, the result for the bytes before; 0 at the start. Any thread. */
uint32_t store_crc(uint32_t crc, const void *bytes, size_t length);
/* The same without the instructions of the processor. */
uint32_t store_crc_plain(uint32_t crc, const void *bytes, size_t length);

#endif
