/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a printed token. */
#ifndef RXW_RXKAD_PRINTED_H
#define RXW_RXKAD_PRINTED_H

#include <stddef.h>
#include <stdint.h>

/*
 * An EncTicketPart for `name` with a session key of DES, at the front of `out`. -RXW_EINVAL: the
 * name or a time cannot be, or there is no room.
 */
int rxw_rxkad_print_clear(const uint8_t session_key[8], const char *name, int64_t start,
			  int64_t end, uint8_t *out, size_t room, size_t *size);

#endif
