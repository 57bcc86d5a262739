/* SPDX-License-Identifier: BSD-2-Clause */
/* Status of one object, and of a volume. */
#ifndef AFS_STATUS_H
#define AFS_STATUS_H

#include "afs/types.h"

/* AFSFetchStatus, 21 words on the wire; lengths and versions are joined from their halves. */
struct afs_status {
	uint32_t interface_version; /* 1 */
	uint32_t type;		    /* enum afs_file_type; 0 in a failed bulk entry */
	uint32_t links;
	uint64_t length; /* bytes; of a directory: of its image */
	uint64_t data_version;
	uint32_t author;
	uint32_t owner;
	uint32_t caller_access; /* enum afs_right */
	uint32_t anonymous_access;
	uint32_t mode;	       /* 12 bits, no type bits */
	uint32_t parent_vnode; /* of a directory: its own */
	uint32_t parent_unique;
	uint32_t residency;    /* 1 */
	uint32_t client_mtime; /* seconds */
	uint32_t server_mtime;
	uint32_t group;
	uint32_t sync_counter;
	int32_t lock_count;
	int32_t error; /* InlineBulkStatus: why this entry failed */
};
#define AFS_STATUS_BYTES 84

bool afs_status_put(struct rxw_xdr *x, const struct afs_status *status);
bool afs_status_get(struct rxw_xdr *x, struct afs_status *status);
/* True if a client may use it: version 1, a known type, no error. */
bool afs_status_valid(const struct afs_status *status);
/* The entry of InlineBulkStatus for an object that failed with `code`. */
void afs_status_failed(struct afs_status *status, int32_t code);

/* GetVolumeStatus: 12 words and three strings, of which two are empty. */
struct afs_volume_status {
	uint32_t id;
	uint32_t parent_id;
	uint32_t online, in_service, blessed, needs_salvage;
	uint32_t type;				/* 0 read-only, 1 read-write */
	int32_t min_quota, max_quota;		/* KiB, 0 = none */
	int32_t blocks_in_use;			/* KiB */
	int32_t blocks_available, blocks_total; /* KiB of the partition */
	char name[AFS_NAME_MAX + 1];
};
#define AFS_VOLUME_STATUS_MAX (48 + 4 + AFS_NAME_MAX + 8)

bool afs_volume_status_put(struct rxw_xdr *x, const struct afs_volume_status *status);
bool afs_volume_status_get(struct rxw_xdr *x, struct afs_volume_status *status);

#endif
