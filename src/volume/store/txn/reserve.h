/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file "reserve" takes room on the disk that is given up when other programs have filled it: a store can be opened then, and
 * files can be removed.
 */
#ifndef STORE_RESERVE_H
#define STORE_RESERVE_H

#include "volume/store/txn/core.h"

/* Before the database is opened: give the reserve up if the disk is full. */
void reserve_begin(struct core *core);
/* A commit failed for want of space. */
void reserve_release(struct core *core);
/* Take the room again, if it was given up and the disk has it. By one thread at a time. */
void reserve_make(struct core *core);

#endif
