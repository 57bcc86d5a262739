/* SPDX-License-Identifier: BSD-2-Clause */
/* What an overseer reports about the servers of this process, for `bos status`. */
#ifndef FILESERVER_BOS_H
#define FILESERVER_BOS_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/types.h>

struct fsd_bos;

/*
 * The instance "fs" stands for the file and volume services, "vlserver" and "ptserver" for those of locations, users and
 * groups, if they are here. They start now. NULL: no memory.
 */
struct fsd_bos *fsd_bos_create(bool vlserver, bool ptserver);
void fsd_bos_stop(struct fsd_bos *bos);	   /* reports from now on that the process stops */
void fsd_bos_destroy(struct fsd_bos *bos); /* NULL is allowed */

/* A handler for rxw_service_add(), whose context is the struct fsd_bos. It never waits. */
int32_t fsd_bos_serve(rxw_call *call, void *bos);

#endif
