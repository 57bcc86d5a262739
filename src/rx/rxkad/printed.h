/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of a token made with a service key. */
#ifndef RXW_RXKAD_PRINTED_H
#define RXW_RXKAD_PRINTED_H

#include <stddef.h>
#include <stdint.h>

/*
 * Encode an EncTicketPart for `name` with a session key of DES, at the start of `out`. -RXW_EINVAL:
 * invalid name or time, or no room.
 */
int rxw_rxkad_print_clear(const uint8_t session_key[8], const char *name, int64_t start,
			  int64_t end, uint8_t *out, size_t room, size_t *size);

#endif
