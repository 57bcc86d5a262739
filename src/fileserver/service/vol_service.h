/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume service: what vos examine, listvol, listpart, partinfo and status ask. */
#ifndef FILESERVER_VOL_SERVICE_H
#define FILESERVER_VOL_SERVICE_H

#include "afs/afsvol.h"
#include "fileserver/service/service.h"

#define FSD_SERVICE_VOL 4

/* Codes of the service: 1492325120 and (afs-location 5.3). */
enum fsd_vol_code {
	FSD_VOL_NO_OP = 1492325121,
	FSD_VOL_ILLEGAL_PARTITION = 1492325125,
	FSD_VOL_BAD_ACCESS = 1492325127,
	FSD_VOL_NO_MEMORY = 1492325134,
};

/*
 * Fill what AFSVolExecuteRequest() takes as its context: one volume, on /vicepa, that can be looked
 * at; what would change it is refused. `service` must outlive it.
 */
void fsd_vol_service(struct fsd_service *service, struct AFSVol_service *vol);

#endif
