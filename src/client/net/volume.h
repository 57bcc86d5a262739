/* SPDX-License-Identifier: BSD-2-Clause */
/* Volumes: from a name or a number to what serves them. */
#ifndef CLIENT_NET_VOLUME_H
#define CLIENT_NET_VOLUME_H

#include "afs/numbers.h"
#include "afs/vl.h"
#include "client/net/net.h"

/* One volume: a read-write, a read-only or a backup one. Counted references. */
struct cl_volume;

/* Which volume of a record is meant. */
enum cl_wanted {
	CL_WANT_EXACT, /* a plain name: read-write; a suffix or a number: exactly that */
	CL_WANT_RO /* a plain name, or the number of a read-write volume: read-only if it exists (K-013) */
};

/*
 * Look up a volume by name or decimal number, in the cell and then in the linked one. From memory
 * if the record is younger than an hour. -ENODEV: no such volume; -ETIMEDOUT: no location server
 * answers; others as of any call. The caller owns one reference.
 */
int cl_volume_find(struct cl_net *net, struct cl_cell *cell, const char *name,
		   enum cl_wanted wanted, const struct cl_caller *caller, struct cl_volume **volume,
		   struct rxafs_failure *failure);
struct cl_volume *cl_volume_ref(struct cl_volume *volume);
void cl_volume_unref(struct cl_volume *volume);

/* Constant members. */
uint32_t cl_volume_id(const struct cl_volume *volume);
enum afs_vl_type cl_volume_type(const struct cl_volume *volume);
struct cl_cell *cl_volume_cell(const struct cl_volume *volume);
/* Without suffix. */
const char *cl_volume_name(const struct cl_volume *volume);
/* The ids of the record as of now, by enum afs_vl_type; 0: it does not exist. */
void cl_volume_ids(struct cl_volume *volume, uint32_t ids[MAXTYPES]);

/*
 * The numbers of the servers that have it, at most `max`, the one that is used first; their count.
 */
unsigned cl_volume_servers(struct cl_volume *volume, uint32_t *servers, unsigned max);
/*
 * The state of the best server: unless it is CL_SERVER_UP, a call may wait long. Never waits. The
 * server's number in *server (may be NULL; 0: not known yet).
 */
enum cl_server_state cl_volume_state(struct cl_volume *volume, uint32_t *server);
/*
 * Changes when another look-up of the name may give another volume: this one is gone or was replaced, others of its record
 * were made, or a server has said that the volume has changed as a whole. Never waits.
 */
uint32_t cl_volume_standing(const struct cl_volume *volume);
/* The record is refreshed at the next use. */
void cl_volume_forget_record(struct cl_volume *volume);

#endif
