/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the volume service. */
#ifndef FILESERVER_SERVICE_VOL_H
#define FILESERVER_SERVICE_VOL_H

#include "afs/afsvol.h"
#include "afs/numbers.h"
#include "fileserver/audit/audit.h"
#include "fileserver/cell/volumes.h"
#include "fileserver/service/services.h"

#define VOL_PARTITION 0 /* its number, of 26 */

/* A call, which is the context of its handler, and what its record says. */
struct vol_call {
	struct fsd_service *service;
	const char *operation; /* NULL: it changes nothing */
	uint32_t volume;
	bool known; /* its caller */
	char who[FSD_AUDIT_WHO], name[STORE_VOLNAME_MAX + 16], to_name[STORE_VOLNAME_MAX + 16];
	struct fsd_audit_change change;
};

static inline struct fsd_service *service_of(void *context)
{
	return ((struct vol_call *)context)->service;
}

/* -- vol_list.c: handlers -- */

int32_t fsd_vol_list_partition_ids(void *context, rxw_call *call, partEntries *ids);
int32_t fsd_vol_list_partitions(void *context, rxw_call *call, pIDs *ids);
int32_t fsd_vol_partition_info64(void *context, rxw_call *call, const char *name,
				 diskPartition64 *info);
int32_t fsd_vol_partition_info(void *context, rxw_call *call, const char *name,
			       diskPartition *info);
int32_t fsd_vol_list_all_volumes(void *context, rxw_call *call, int32_t part, int32_t flags,
				 volEntries *entries);
int32_t fsd_vol_xlist_volumes(void *context, rxw_call *call, int32_t part, int32_t flags,
			      volXEntries *entries);
int32_t fsd_vol_list_one_volume(void *context, rxw_call *call, int32_t part, uint32_t id,
				volEntries *entries);
int32_t fsd_vol_xlist_one_volume(void *context, rxw_call *call, int32_t part, uint32_t id,
				 volXEntries *entries);
int32_t fsd_vol_list_transactions(void *context, rxw_call *call, transDebugEntries *transactions);

#endif
