/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket of a store: a Unix socket in its directory at which rxvol has its requests
 * executed while the server runs. Only the user of the server and root may use it.
 */
#ifndef FILESERVER_CONTROL_H
#define FILESERVER_CONTROL_H

#include "volume/interface.h"

struct fsd_control;

struct fsd_control_options {
	struct store *store;
	const char *directory; /* of the store; copied */
	/*
	 * Objects have changed: break the promises on them. Vnode 0: on everything in the volume.
	 * Called by any thread, before the one who asked is answered.
	 */
	void (*changed)(void *arg, const struct store_changes *changes);
	bool (*forbids)(void *arg, const struct store_acl *acl); /* as in struct admin_options */
	void *arg;
};

/*
 * Start to take requests, and replace a socket that an earlier process left behind. 0, or -1 with
 * one line in message[FSD_MESSAGE_MAX].
 */
int fsd_control_start(const struct fsd_control_options *options, struct fsd_control **control,
		      char *message);

/*
 * Interrupt the requests that run, wait for them, and remove the socket. A check cannot be
 * interrupted. Before the store is closed. NULL is allowed.
 */
void fsd_control_stop(struct fsd_control *control);

#endif
