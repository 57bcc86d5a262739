/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for data whose announced size comes from the network, and operations that streams lack. */
#ifndef RXWIRE_CLASSIC_XDR_ROOM_H
#define RXWIRE_CLASSIC_XDR_ROOM_H

#include <stddef.h>

#include <rx/xdr.h>

/*
 * Enlarge an array of `size` bytes an element, all *room of which are decoded, towards `count`
 * elements: by 64 KiB, or to twice its size if that is more. So a peer that announces a length has
 * to send half of it before it is allocated. New elements are zeroed. NULL: no memory; `array` is
 * unchanged.
 */
void *classic_xdr_grow(void *array, size_t *room, size_t count, size_t size);

/* Operations of streams that have no positions, or no memory to be used in place. They fail. */
bool_t classic_xdr_no_position(XDR *xdrs, u_int position);
afs_int32 *classic_xdr_no_inline(XDR *xdrs, u_int count);

#endif
