/* SPDX-License-Identifier: BSD-2-Clause */
/* AFSFetchStatus: 64-bit values in two members, and validity. */
#ifndef AFS_FETCHSTATUS_H
#define AFS_FETCHSTATUS_H

#include "afs/rxafs.h"

/* Bytes; of a directory: of its image. */
static inline uint64_t afs_status_length(const AFSFetchStatus *s)
{
	return (uint64_t)s->Length_hi << 32 | s->Length;
}

static inline void afs_status_set_length(AFSFetchStatus *s, uint64_t length)
{
	s->Length = (uint32_t)length;
	s->Length_hi = (uint32_t)(length >> 32);
}

static inline uint64_t afs_status_version(const AFSFetchStatus *s)
{
	return (uint64_t)s->dataVersionHigh << 32 | s->DataVersion;
}

static inline void afs_status_set_version(AFSFetchStatus *s, uint64_t version)
{
	s->DataVersion = (uint32_t)version;
	s->dataVersionHigh = (uint32_t)(version >> 32);
}

/* True if a client may use it: version 1, a known type, no error. */
bool afs_status_usable(const AFSFetchStatus *s);
/* Make it the entry of InlineBulkStatus for an object that failed with `code`. */
void afs_status_refuse(AFSFetchStatus *s, int32_t code);

#endif
