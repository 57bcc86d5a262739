/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash tables with the memory of the library. */
#ifndef RXW_PROTO_PEER_TABLE_H
#define RXW_PROTO_PEER_TABLE_H

#include "base/buf.h"

#define HTABLE_ALLOC(size)     rxw_mem_get(NULL, size)
#define HTABLE_FREE(p, size) rxw_mem_give(NULL, p, size)
#include "common/htable.h"

#endif
