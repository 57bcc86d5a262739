/* SPDX-License-Identifier: BSD-2-Clause */
/* The record of a volume. */
#ifndef STORE_VOLREC_H
#define STORE_VOLREC_H

#include <stddef.h>
#include <stdint.h>

#include "volume/interface.h"

/*
 * A volume and its clones are a group, whose number is the id of the read-write volume. Vnodes have
 * a row for each epoch in which they changed. A clone shows the rows with the greatest epoch up to
 * its own; the read-write volume shows the newest rows and has the epoch of the next change.
 */
struct volrec {
	uint32_t id, group;
	uint8_t type; /* enum store_type */
	uint8_t offline;
	uint32_t epoch;
	/* Read-write volumes: the ids that are kept for clones, and their epochs; 0: there is none. */
	uint32_t clone_id[2], clone_epoch[2]; /* [0]: read-only, [1]: backup */
	uint64_t quota_kib, used_kib, files;
	int32_t minimum;
	uint32_t created, copied, updated, cloned;
	int32_t owner;
	uint32_t next_unique, incarnation;
	/* Files, directories: where the search for a free vnode goes on; the first never used. */
	uint32_t cursor[2], fresh[2];
	char name[STORE_VOLNAME_MAX + 16];
	char message[128];
};

#define VOLREC_MAX 512

size_t volrec_encode(const struct volrec *volume, uint8_t *record);
/* 0 or -EBADMSG. */
int volrec_decode(const uint8_t *bytes, size_t length, uint32_t id, struct volrec *volume);

/* The newest clone's epoch: rows up to it are shared, others belong to the read-write volume. */
static inline uint32_t volrec_shared(const struct volrec *volume)
{
	return volume->clone_epoch[0] > volume->clone_epoch[1] ? volume->clone_epoch[0]
							       : volume->clone_epoch[1];
}

#endif
