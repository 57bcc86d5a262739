/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the dump format. */
#ifndef DUMP_FORMAT_H
#define DUMP_FORMAT_H

#include "volume/store/transfer.h"

#define DUMP_HEADER	 0x01
#define DUMP_VOLUME	 0x02
#define DUMP_VNODE	 0x03
#define DUMP_END	 0x04
#define DUMP_MARKS	 0x14 /* tags up to this one begin something else than a member */
#define DUMP_BEGIN_MAGIC 0xb3a11322u
#define DUMP_END_MAGIC	 0x3a214b6eu
#define DUMP_VERSION	 1
/*
 * A member of the first header that only we write: the date of the last change in the base of the dump. Other readers pass over
 * members with this tag and 4 bytes.
 */
#define DUMP_BASE     'z'
/*
 * A member of the volume header behind the vnodes, which only incremental dumps of ours have: a checksum of the vnodes that are only
 * named, as they are to be in the volume that gets the dump.
 */
#define DUMP_STATE    'y'
#define DUMP_ACL      192 /* bytes */
#define DUMP_ACL_MOST 21  /* entries in them */

/* The checksum `state` with one vnode more; the first one is 0. FNV-1a. */
static inline uint32_t dump_add_state(uint32_t state, const struct store_vnode *vnode)
{
	const uint32_t words[] = {
		vnode->vnode,	     vnode->unique, (uint32_t)vnode->version, vnode->client_mtime,
		vnode->server_mtime, vnode->mode,   (uint32_t)vnode->owner};

	state = state ? state : 0x811c9dc5u;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (unsigned shift = 0; shift < 32; shift += 8)
			state = (state ^ (words[i] >> shift & 0xff)) * 0x01000193u;
	return state;
}

/* Types of volumes. */
#define DUMP_RW	    0
#define DUMP_RO	    1
#define DUMP_BACKUP 2

#endif
