/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the location service: its entries, and the calls that change them. */
#ifndef FILESERVER_LOCATION_ENTRIES_H
#define FILESERVER_LOCATION_ENTRIES_H

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
/* All of them, one by one; zeroed but for `service`. A walk goes on elsewhere with the same `at`. */
struct fsd_vl_walk {
	const struct fsd_service *service;
	uint32_t at; /* volumes before the next one */
};
/* False: there are no more. However many volumes there are, a step costs the same. */
bool fsd_vl_next(struct fsd_vl_walk *walk, struct fsd_vl_set *set);
/* The addresses of this server, for one client. */
struct fsd_vl_addresses {
	uint32_t address[FSD_ADDRS_MAX];
	unsigned count;
};
/*
 * The address that the client called comes first, because the client can reach it. IPv6 addresses
 * cannot be sent.
 */
void fsd_vl_addresses(const struct fsd_service *service, rxw_call *rx,
		      struct fsd_vl_addresses *list);
/* As a client of `rx` gets it. */
void fsd_vl_fill_entry(const struct fsd_service *service, rxw_call *rx,
		       const struct fsd_vl_set *set, nvldbentry *e);
void fsd_vl_old_form(const nvldbentry *e, vldbentry *old);
/* Equal for two addresses of one server. */
uint32_t fsd_vl_server_of(const struct fsd_service *service, rxw_call *rx, uint32_t address);
/* Whether an address is one of this server. */
bool fsd_vl_is_own(const struct fsd_service *service, rxw_call *rx, uint32_t address);

/* -- handlers of vl_list.c -- */

int32_t fsd_vl_list_entry(void *context, rxw_call *rx, int32_t previous, int32_t *count,
			  int32_t *next, vldbentry *e);
int32_t fsd_vl_list_entry_n(void *context, rxw_call *rx, int32_t previous, int32_t *count,
			    int32_t *next, nvldbentry *e);
int32_t fsd_vl_list_attributes(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			       int32_t *n, bulkentries *es);
int32_t fsd_vl_list_attributes_n(void *context, rxw_call *rx, const VldbListByAttributes *attr,
				 int32_t *n, nbulkentries *es);
int32_t fsd_vl_list_attributes_n2(void *context, rxw_call *rx, const VldbListByAttributes *attr,
				  const char *pattern, int32_t start, int32_t *n, nbulkentries *es,
				  int32_t *next);
int32_t fsd_vl_linked_list(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			   int32_t *n, vldb_list *es);
int32_t fsd_vl_linked_list_n(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			     int32_t *n, nvldb_list *es);

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
