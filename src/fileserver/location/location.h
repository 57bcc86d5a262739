/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume location service. */
#ifndef FILESERVER_LOCATION_H
#define FILESERVER_LOCATION_H

#include <stdint.h>

#include <rxwire/types.h>

/* A handler for rxw_service_add(), whose context is the struct fsd_service; it touches memory only, but for the database of a store. */
int32_t fsd_vl_serve(rxw_call *call, void *service);

#endif
