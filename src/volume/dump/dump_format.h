/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the dump format. */
#ifndef DUMP_FORMAT_H
#define DUMP_FORMAT_H

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
#define DUMP_ACL      192 /* bytes */
#define DUMP_ACL_MOST 21  /* entries in them */

/* Types of volumes. */
#define DUMP_RW	    0
#define DUMP_RO	    1
#define DUMP_BACKUP 2

#endif
