/* SPDX-License-Identifier: BSD-2-Clause */
/* Who wants to know when a vnode changes. */
#ifndef CLIENT_FS_LISTENERS_H
#define CLIENT_FS_LISTENERS_H

#include "client/fs/fs.h"

/* In the list of those who want to know when a vnode changes; its lock. */
struct fs_listener {
	struct fs_listener *next, **at;
	struct fs_vnode *vnode;			 /* a reference; NULL: it is in no list */
	void (*changed)(struct fs_listener *listener); /* with that lock */
	void *arg;
};

void fs_add_listener(struct fs_listener *listener, struct fs_vnode *vnode);
/* It need not be in a list. Afterwards `changed` is not running for it. */
void fs_drop_listener(struct fs_listener *listener);
void fs_note_change(struct fs_vnode *vnode);

#endif
