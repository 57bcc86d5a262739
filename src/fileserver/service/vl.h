/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the location service: its entries, and the calls that change them. */
#ifndef FILESERVER_SERVICE_VL_H
#define FILESERVER_SERVICE_VL_H

#include "afs/vl.h"
#include "fileserver/service/services.h"

/* A read-write volume and its clones, or what of them is there. By enum afs_vl_type. */
struct fsd_vl_set {
	char name[STORE_VOLNAME_MAX + 16]; /* without suffix */
	uint32_t id[3];			   /* an id may be assigned although there is no volume */
	bool exists[3];
	bool recorded; /* the database of locations has it; then the members above say the same */
	struct fsd_location entry;
};

/* An entry, by one of its ids or its name without a suffix. */
bool fsd_vl_find_id(const struct fsd_service *service, uint32_t id, struct fsd_vl_set *set);
bool fsd_vl_find_name(const struct fsd_service *service, const char *name, struct fsd_vl_set *set);
/* As a client of `rx` gets it. */
void fsd_vl_fill_entry(const struct fsd_service *service, rxw_call *rx,
		       const struct fsd_vl_set *set, nvldbentry *e);
/* Whether an address is one of this server. */
bool fsd_vl_is_own(const struct fsd_service *service, rxw_call *rx, uint32_t address);

/* -- handlers of vl_change.c -- */

int32_t fsd_vl_register(void *context, rxw_call *rx, const struct rxw_uuid *uuid, int32_t spare,
			const bulkaddrs *addrs);
int32_t fsd_vl_change_addr(void *context, rxw_call *rx, uint32_t old_addr, uint32_t new_addr);
int32_t fsd_vl_new_id(void *context, rxw_call *rx, uint32_t bump, uint32_t *id);
int32_t fsd_vl_create_old(void *context, rxw_call *rx, const vldbentry *e);
int32_t fsd_vl_create(void *context, rxw_call *rx, const nvldbentry *e);
int32_t fsd_vl_delete(void *context, rxw_call *rx, uint32_t id, int32_t type);
int32_t fsd_vl_replace_old(void *context, rxw_call *rx, uint32_t id, int32_t type,
			   const vldbentry *e, int32_t release);
int32_t fsd_vl_replace(void *context, rxw_call *rx, uint32_t id, int32_t type, const nvldbentry *e,
		       int32_t release);
int32_t fsd_vl_update(void *context, rxw_call *rx, uint32_t id, int32_t type,
		      const VldbUpdateEntry *ue, int32_t release);
int32_t fsd_vl_update_name(void *context, rxw_call *rx, const char *name, const VldbUpdateEntry *ue,
			   int32_t release);
int32_t fsd_vl_lock(void *context, rxw_call *rx, uint32_t id, int32_t type, int32_t operation);
int32_t fsd_vl_unlock(void *context, rxw_call *rx, uint32_t id, int32_t type, int32_t release);

#endif
