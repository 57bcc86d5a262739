/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for data whose announced size comes from the network. */
#ifndef RXWIRE_CLASSIC_XDR_ROOM_H
#define RXWIRE_CLASSIC_XDR_ROOM_H

#include <stddef.h>

/*
 * Enlarge an array of `size` bytes an element, all *room of which are decoded, towards `count`
 * elements: by 64 KiB, or to twice its size if that is more. So a peer that announces a length has
 * to send half of it before it is allocated. New elements are zeroed. NULL: no memory; `array` is
 * unchanged.
 */
void *classic_xdr_grow(void *array, size_t *room, size_t count, size_t size);

#endif
