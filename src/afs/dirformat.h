/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of directory pages (afs-fileserver 6), for code that builds, reads or edits them. */
#ifndef AFS_DIRFORMAT_H
#define AFS_DIRFORMAT_H

#include <stddef.h>

#include "common/bytes.h"

#define SLOTS	    64 /* per page */
#define TAG	    1234
#define USED_MAP    5  /* offsets in a page */
#define ALLOC_MAP   32 /* offsets in page 0 */
#define ALLOC_PAGES 128
#define HASH_TABLE  160
#define BUCKETS	    128
#define FIRST_SLOT  13 /* of page 0: header, allocation map, hash table before it */
#define NEXT	    2  /* offsets in an entry */
#define VNODE	    4
#define UNIQUE	    8
#define NAME	    12

/* Slots of an entry whose name has `length` bytes. */
static inline unsigned slots_for(size_t length)
{
	return 1 + (unsigned)((length + 1 + 15) >> 5);
}

#endif
