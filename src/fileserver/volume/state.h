/* SPDX-License-Identifier: BSD-2-Clause */
/* The state directory: lock, server UUID, volume stores. */
#ifndef FILESERVER_STATE_H
#define FILESERVER_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <rxwire/xdr.h>

#include "fileserver/volume/store.h"

#define FSD_MESSAGE_MAX 512

struct fsd_state {
	char path[4096];
	int lock_fd;
	struct rxw_uuid uuid;
};

/*
 * The default place: the first of $STATE_DIRECTORY (set by the service manager), /var/lib/rxfsd for
 * root, $XDG_STATE_HOME/rxfsd, ~/.local/state/rxfsd. Returns 0 or -1 with the reason in `message`.
 */
int fsd_state_default(char *path, size_t size, char *message);

/*
 * Make the directory if it is not there, check that it lies outside `export` (a canonical path),
 * lock it against another server, and read or make the UUID. Returns 0 or -1 with one line in
 * message[FSD_MESSAGE_MAX].
 */
int fsd_state_open(struct fsd_state *state, const char *path, const char *export, char *message);
void fsd_state_close(struct fsd_state *state);

/*
 * Open the store of a volume, and draw a random id for it, which is used if the store is new.
 * Returns 0 or -1 with a line in `message`.
 */
int fsd_state_store(struct fsd_state *state, const char *volume, struct fsd_store **store,
		    uint32_t *new_id, char *message);

#endif
