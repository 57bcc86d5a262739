/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads that read requests of the kernel. */
#ifndef RXAFS_READERS_H
#define RXAFS_READERS_H

#include "rxafs/mount.h"

/* 0 or -EAGAIN: there is none. */
int readers_start(struct mount *mount);
/* The session has ended: they read no more. Those that are lent go on. */
void readers_end(struct mount *mount);
/* Wait for all of them, once nothing is left that a lent one waits for. */
void readers_join(struct mount *mount);

/*
 * For the thread of a request, which may do what waits for a server if another one is left that reads: true, and it is given back
 * afterwards.
 */
bool reader_lend(struct mount *mount);
void reader_give_back(struct mount *mount);

#endif
