/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume location service: calls of superusers that change its database. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <rxwire/call.h>
#include <rxwire/security.h>

#include "afs/numbers.h"
#include "afs/uuid.h"
#include "fileserver/audit/audit.h"
#include "fileserver/location/entries.h"

#define BUMP_MAX 1000 /* ids of volumes at once */
/* What a release of a lock clears. */
#define RELEASE_OPERATION 2
#define RELEASE_ALL	  7
#define EXIST_FLAGS	  ((uint32_t)(VLF_RWEXISTS | VLF_ROEXISTS | VLF_BACKEXISTS))
#define SITE_FLAGS	  0x7f /* VLSF_… */

#define REMOVED		  0xffffffffu /* ChangeAddr: as the old address, the new one is removed */

/* A call that changes something, for the audit log. */
struct vl_change {
	const struct fsd_service *service;
	struct fsd_audit_change note;
	char name[VL_MAXNAMELEN]; /* of the entry, for `note` */
};

/* For the record: the id of the caller, if it is known. */
static int32_t calling_user(const struct fsd_service *service, const rxw_call *rx)
{
	struct rxw_identity identity = {.size = sizeof(identity)};
	struct fsd_ids ids = {.id = PROT_ANONYMOUS};

	if (rxw_call_identity(rx, &identity) < 0)
		return PROT_ANONYMOUS;
	if (identity.local)
		return PROT_ADMINISTRATORS;
	return identity.name && service->people &&
			       !service->people->ops->user(service->people, &identity, NULL, &ids)
		       ? ids.id
		       : PROT_ANONYMOUS;
}

/*
 * 0 if the caller may change the database. `volume` 0 and `name` NULL: what the record names is known later. end_vl_change() follows in
 * any case.
 */
static int32_t begin_vl_change(struct vl_change *change, void *context, const rxw_call *rx,
			       const char *operation, uint32_t volume, const char *name)
{
	const struct fsd_service *service = change->service = context;
	struct fsd_who who = {0};

	if (fsd_guard_asks(service->guard))
		fsd_guard_enter(service->guard, FSD_VL, rx, &who);
	snprintf(change->name, sizeof(change->name), "%s", name ? name : "");
	change->note = (struct fsd_audit_change){
		.audit = service->audit,
		.call = rx,
		.who = who.name		   ? who.name
		       : who.authenticated ? "(this service)"
					   : NULL,
		.id = service->audit ? calling_user(service, rx) : 0,
		.operation = operation,
		.volume = volume,
		.name = name ? change->name : NULL,
	};
	if (!who.administrator || who.below)
		return who.administrator && !service->cell ? EROFS : AFS_VL_PERM;
	/* An administrator shall not look for a fault of the key: rxvol changes what is served. */
	return service->cell ? fsd_audit_begin(&change->note) : EROFS;
}

static int32_t end_vl_change(struct vl_change *change, int32_t code)
{
	return fsd_audit_end(&change->note, code);
}

/* The name of an entry that the change concerns. */
static void note_entry_name(struct vl_change *change, const char *name)
{
	snprintf(change->name, sizeof(change->name), "%.*s", VL_MAXNAMELEN - 1, name);
	change->note.name = change->name;
}

/* -- servers -- */

/* An address of this server cannot be given to another one. */
static int32_t register_server(const struct fsd_service *service, rxw_call *rx,
			       const struct rxw_uuid *uuid, const bulkaddrs *addrs)
{
	struct fsd_cell_server server = {.uuid = *uuid, .count = addrs->len};

	if (addrs->len > FSD_SERVER_ADDRESSES)
		return AFS_VL_SIZEEXCEEDED;
	if (afs_uuid_same(uuid, &service->uuid))
		return AFS_VL_MULTIPADDR;
	for (uint32_t i = 0; i < addrs->len; i++) {
		server.address[i] = addrs->val[i];
		if (fsd_vl_is_own(service, rx, addrs->val[i]))
			return AFS_VL_MULTIPADDR;
	}
	return fsd_cell_register(service->cell, &server);
}

static void note_address(struct vl_change *change, uint32_t address)
{
	const struct in_addr in = {.s_addr = htonl(address)};

	inet_ntop(AF_INET, &in, change->name, sizeof(change->name));
	change->note.name = change->name;
}

int32_t fsd_vl_register(void *context, rxw_call *rx, const struct rxw_uuid *uuid, int32_t spare,
			const bulkaddrs *addrs)
{
	struct vl_change change;
	int32_t code = begin_vl_change(&change, context, rx, "VL.RegisterAddrs", 0, NULL);

	(void)spare;
	if (addrs->len)
		note_address(&change, addrs->val[0]);
	if (!code)
		code = register_server(context, rx, uuid, addrs);
	return end_vl_change(&change, code);
}

/*
 * As in OpenAFS: the addresses of a server that has registered are changed by RegisterAddrs only; but it can be removed, and other
 * addresses that entries name can be changed.
 */
static int32_t change_address(const struct fsd_service *service, rxw_call *rx, uint32_t old_addr,
			      uint32_t new_addr)
{
	struct fsd_cell_server server;

	if (old_addr == REMOVED)
		return new_addr == REMOVED ? AFS_VL_BADSERVER
		       : fsd_vl_is_own(service, rx, new_addr)
			       ? AFS_VL_IDEXIST
			       : fsd_cell_remove_server(service->cell, new_addr);
	if (new_addr == REMOVED)
		return AFS_VL_BADSERVER;
	if (fsd_vl_is_own(service, rx, old_addr) ||
	    fsd_cell_server_of(service->cell, old_addr, &server))
		return AFS_VL_NOENT;
	if (fsd_vl_is_own(service, rx, new_addr))
		return AFS_VL_MULTIPADDR;
	return fsd_cell_move_address(service->cell, old_addr, new_addr);
}

int32_t fsd_vl_change_addr(void *context, rxw_call *rx, uint32_t old_addr, uint32_t new_addr)
{
	struct vl_change change;
	int32_t code = begin_vl_change(&change, context, rx, "VL.ChangeAddr", 0, NULL);

	note_address(&change, old_addr == REMOVED ? new_addr : old_addr);
	if (!code)
		code = change_address(context, rx, old_addr, new_addr);
	return end_vl_change(&change, code);
}

int32_t fsd_vl_new_id(void *context, rxw_call *rx, uint32_t bump, uint32_t *id)
{
	struct vl_change change;
	int32_t code = begin_vl_change(&change, context, rx, "VL.GetNewVolumeId", 0, NULL);

	if (!code && bump > BUMP_MAX)
		code = AFS_VL_BADVOLIDBUMP;
	if (!code)
		code = cellvol_ids(change.service->store, bump, id) ? AFS_VL_IO : 0;
	change.note.volume = code ? 0 : *id;
	return end_vl_change(&change, code);
}

/* -- entries -- */

/* A site of a request. */
static int32_t take_site(const struct fsd_service *service, rxw_call *rx, uint32_t address,
			 int32_t partition, int32_t flags, struct fsd_site *site)
{
	if (partition < 0 || partition > UINT8_MAX)
		return AFS_VL_BADPARTITION;
	if (flags & ~SITE_FLAGS)
		return AFS_VL_BADSERVERFLAG;
	*site = (struct fsd_site){.address =
					  fsd_vl_is_own(service, rx, address) ? FSD_HERE : address,
				  .partition = (uint8_t)partition,
				  .flags = (uint8_t)flags};
	/* It stands for this server. */
	return address == FSD_HERE ? AFS_VL_BADSERVER : 0;
}

/* The entry of a request; locks are not a caller's. */
static int32_t take_requested_entry(const struct fsd_service *service, rxw_call *rx,
				    const nvldbentry *e, struct fsd_location *entry)
{
	int32_t code = 0;

	*entry = (struct fsd_location){.clone = e->cloneId,
				       .flags = (uint32_t)e->flags & EXIST_FLAGS,
				       .count = (unsigned)e->nServers};
	if (!memchr(e->name, 0, sizeof(e->name)))
		return AFS_VL_BADNAME;
	if (e->nServers < 1 || e->nServers > FSD_SITES)
		return AFS_VL_BADSERVER;
	memcpy(entry->name, e->name, sizeof(entry->name));
	memcpy(entry->id, e->volumeId, sizeof(entry->id));
	for (unsigned i = 0; i < entry->count && !code; i++)
		code = take_site(service, rx, (uint32_t)e->serverNumber[i], e->serverPartition[i],
				 e->serverFlags[i], &entry->site[i]);
	return code;
}

/* Volumes of the store that nobody has recorded may have the name or one of the ids. */
static int32_t check_unrecorded(const struct fsd_service *service, const struct fsd_location *entry,
				const struct fsd_vl_set *but)
{
	struct fsd_vl_set other;

	if (fsd_vl_find_name(service, entry->name, &other) && !other.recorded &&
	    !(but && !strcmp(other.name, but->name)))
		return AFS_VL_NAMEEXIST;
	for (int i = 0; i < 3; i++)
		if (entry->id[i] && fsd_vl_find_id(service, entry->id[i], &other) &&
		    !other.recorded && !(but && !strcmp(other.name, but->name)))
			return AFS_VL_IDEXIST;
	return 0;
}

int32_t fsd_vl_create(void *context, rxw_call *rx, const nvldbentry *e)
{
	struct fsd_location entry;
	struct vl_change change;
	int32_t code =
		begin_vl_change(&change, context, rx, "VL.CreateEntry", e->volumeId[0], NULL);

	note_entry_name(&change, e->name);
	if (!code)
		code = take_requested_entry(context, rx, e, &entry);
	if (!code)
		code = check_unrecorded(context, &entry, NULL);
	if (!code)
		code = fsd_location_put(change.service->cell, 0, &entry);
	return end_vl_change(&change, code);
}

static void new_form(const vldbentry *old, nvldbentry *e)
{
	memset(e, 0, sizeof(*e));
	memcpy(e->name, old->name, sizeof(e->name));
	e->nServers = old->nServers > OMAXNSERVERS ? -1 : old->nServers;
	memcpy(e->serverNumber, old->serverNumber, sizeof(old->serverNumber));
	memcpy(e->serverPartition, old->serverPartition, sizeof(old->serverPartition));
	memcpy(e->serverFlags, old->serverFlags, sizeof(old->serverFlags));
	memcpy(e->volumeId, old->volumeId, sizeof(e->volumeId));
	e->cloneId = old->cloneId;
	e->flags = old->flags;
}

int32_t fsd_vl_create_old(void *context, rxw_call *rx, const vldbentry *e)
{
	nvldbentry now;

	new_form(e, &now);
	return fsd_vl_create(context, rx, &now);
}

/* The set of a request, by one of its ids; it is in the database afterwards. */
static int32_t record_set(const struct fsd_service *service, rxw_call *rx, uint32_t id,
			  int32_t type, struct fsd_vl_set *set)
{
	struct fsd_location entry;
	nvldbentry e;
	int32_t code;

	if (type < -1 || type > AFS_VL_BACKUP)
		return AFS_VL_BADVOLTYPE;
	if (!fsd_vl_find_id(service, id, set) || (type >= 0 && id != set->id[type]))
		return AFS_VL_NOENT;
	if (set->recorded)
		return 0;
	if (id == FSD_ROOTAFS_ID || id == FSD_ROOTAFS_ID - 1)
		return EROFS;
	fsd_vl_fill_entry(service, rx, set, &e);
	code = take_requested_entry(service, rx, &e, &entry);
	if (!code)
		code = fsd_location_put(service->cell, 0, &entry);
	set->entry = entry;
	/* From now on only the record counts. */
	for (int i = 0; i < 3 && !code; i++) {
		const struct cellvol volume = {.id = set->id[i]};

		if (set->exists[i])
			cellvol_set(service->store, &volume, CELLVOL_OWNED, NULL, NULL);
	}
	return code;
}

int32_t fsd_vl_delete(void *context, rxw_call *rx, uint32_t id, int32_t type)
{
	struct vl_change change;
	struct fsd_vl_set set;
	int32_t code = begin_vl_change(&change, context, rx, "VL.DeleteEntry", id, NULL);

	if (!code)
		code = record_set(context, rx, id, type, &set);
	if (!code) {
		note_entry_name(&change, set.name);
		code = fsd_location_delete(change.service->cell, id);
	}
	return end_vl_change(&change, code);
}

/* `entry` is what the set becomes; it keeps its lock unless `release` ends that. */
static int32_t put_entry(const struct fsd_service *service, const struct fsd_vl_set *set,
			 uint32_t id, struct fsd_location *entry, int32_t release)
{
	int32_t code = check_unrecorded(service, entry, set);

	if (code)
		return code;
	entry->flags &= EXIST_FLAGS;
	if (!(release & RELEASE_OPERATION))
		entry->flags |= set->entry.flags & FSD_LOCKS;
	return fsd_location_put(service->cell, id, entry);
}

int32_t fsd_vl_replace(void *context, rxw_call *rx, uint32_t id, int32_t type, const nvldbentry *e,
		       int32_t release)
{
	struct fsd_location entry;
	struct vl_change change;
	struct fsd_vl_set set;
	int32_t code = begin_vl_change(&change, context, rx, "VL.ReplaceEntry", id, NULL);

	note_entry_name(&change, e->name);
	if (!code && release & ~RELEASE_ALL)
		code = AFS_VL_BADRELLOCKTYPE;
	if (!code)
		code = take_requested_entry(context, rx, e, &entry);
	if (!code)
		code = record_set(context, rx, id, type, &set);
	if (!code)
		code = put_entry(context, &set, id, &entry, release);
	return end_vl_change(&change, code);
}

int32_t fsd_vl_replace_old(void *context, rxw_call *rx, uint32_t id, int32_t type,
			   const vldbentry *e, int32_t release)
{
	nvldbentry now;

	new_form(e, &now);
	return fsd_vl_replace(context, rx, id, type, &now, release);
}

/* -- changes of parts of an entry -- */

/* The site of an entry on a server and partition; the number of sites if there is none. */
static unsigned find_entry_site(const struct fsd_service *service, rxw_call *rx,
				const struct fsd_location *entry, uint32_t address,
				int32_t partition)
{
	uint32_t server = fsd_vl_server_of(service, rx, address);
	unsigned i = 0;

	while (i < entry->count && (entry->site[i].partition != partition ||
				    (entry->site[i].address != FSD_HERE
					     ? fsd_vl_server_of(service, rx, entry->site[i].address)
					     : FSD_HERE) != server))
		i++;
	return i;
}

static int32_t add_entry_site(const struct fsd_service *service, rxw_call *rx,
			      const VldbUpdateEntry *ue, int n, struct fsd_location *entry)
{
	uint32_t address = (uint32_t)ue->RepsitesNewServer[n];
	int32_t partition = ue->RepsitesNewPart[n];

	if (find_entry_site(service, rx, entry, address, partition) < entry->count)
		return AFS_VL_DUPREPSERVER;
	if (entry->count == FSD_SITES)
		return AFS_VL_REPSFULL;
	return take_site(service, rx, address, partition, ue->RepsitesNewFlags[n],
			 &entry->site[entry->count++]);
}

/* One change of a site: delete it, add one, or another server, partition or flags for it. */
static int32_t update_site(const struct fsd_service *service, rxw_call *rx,
			   const VldbUpdateEntry *ue, int n, struct fsd_location *entry)
{
	uint32_t mask = ue->RepsitesMask[n];
	struct fsd_site site;
	unsigned i;
	int32_t code;

	if (mask & VLUPDATE_REPS_ADD)
		return add_entry_site(service, rx, ue, n, entry);
	i = find_entry_site(service, rx, entry, (uint32_t)ue->RepsitesTargetServer[n],
			    ue->RepsitesTargetPart[n]);
	if (i == entry->count)
		return AFS_VL_NOREPSERVER;
	if (mask & VLUPDATE_REPS_DELETE) {
		entry->count--;
		memmove(&entry->site[i], &entry->site[i + 1],
			(entry->count - i) * sizeof(entry->site[0]));
		return 0;
	}
	code = take_site(
		service, rx,
		(uint32_t)(mask & VLUPDATE_REPS_MODSERV ? ue->RepsitesNewServer[n]
							: ue->RepsitesTargetServer[n]),
		mask & VLUPDATE_REPS_MODPART ? ue->RepsitesNewPart[n] : entry->site[i].partition,
		mask & VLUPDATE_REPS_MODFLAG ? ue->RepsitesNewFlags[n] : entry->site[i].flags,
		&site);
	if (!code)
		entry->site[i] = site;
	return code;
}

static int32_t update_entry(const struct fsd_service *service, rxw_call *rx,
			    const VldbUpdateEntry *ue, struct fsd_location *entry)
{
	int32_t code = 0;

	if (ue->Mask & VLUPDATE_VOLUMENAME) {
		if (!memchr(ue->name, 0, sizeof(ue->name)))
			return AFS_VL_BADNAME;
		memcpy(entry->name, ue->name, sizeof(entry->name));
	}
	if (ue->Mask & VLUPDATE_FLAGS)
		entry->flags = (uint32_t)ue->flags;
	if (ue->Mask & VLUPDATE_RWID)
		entry->id[AFS_VL_RW] = (uint32_t)ue->spares3;
	if (ue->Mask & VLUPDATE_READONLYID)
		entry->id[AFS_VL_RO] = ue->ReadOnlyId;
	if (ue->Mask & VLUPDATE_BACKUPID)
		entry->id[AFS_VL_BACKUP] = ue->BackupId;
	if (ue->Mask & VLUPDATE_CLONEID)
		entry->clone = ue->cloneId;
	if (!(ue->Mask & VLUPDATE_REPSITES))
		return 0;
	if (ue->nModifiedRepsites < 0 || ue->nModifiedRepsites > OMAXNSERVERS)
		return AFS_VL_BADSERVER;
	for (int n = 0; n < ue->nModifiedRepsites && !code; n++)
		code = update_site(service, rx, ue, n, entry);
	return code;
}

/* The entry of `id` once the caller may change it. */
static int32_t update_set(struct vl_change *change, rxw_call *rx, uint32_t id, int32_t type,
			  const VldbUpdateEntry *ue, int32_t release)
{
	struct fsd_location entry;
	struct fsd_vl_set set;
	int32_t code = release & ~RELEASE_ALL ? AFS_VL_BADRELLOCKTYPE
					      : record_set(change->service, rx, id, type, &set);

	if (code)
		return code;
	note_entry_name(change, set.name);
	entry = set.entry;
	code = update_entry(change->service, rx, ue, &entry);
	return code ? code : put_entry(change->service, &set, id, &entry, release);
}

int32_t fsd_vl_update(void *context, rxw_call *rx, uint32_t id, int32_t type,
		      const VldbUpdateEntry *ue, int32_t release)
{
	struct vl_change change;
	int32_t code = begin_vl_change(&change, context, rx, "VL.UpdateEntry", id, NULL);

	if (!code)
		code = update_set(&change, rx, id, type, ue, release);
	return end_vl_change(&change, code);
}

int32_t fsd_vl_update_name(void *context, rxw_call *rx, const char *name, const VldbUpdateEntry *ue,
			   int32_t release)
{
	struct fsd_vl_set set = {0};
	struct vl_change change;
	int32_t code = begin_vl_change(&change, context, rx, "VL.UpdateEntryByName", 0, name);

	if (!code && !fsd_vl_find_name(context, name, &set))
		code = AFS_VL_NOENT;
	for (int i = 0; i < 3 && !change.note.volume; i++)
		change.note.volume = set.id[i];
	if (!code)
		code = update_set(&change, rx, change.note.volume, -1, ue, release);
	return end_vl_change(&change, code);
}

/* -- locks -- */

int32_t fsd_vl_lock(void *context, rxw_call *rx, uint32_t id, int32_t type, int32_t operation)
{
	uint32_t lock = (uint32_t)operation;
	struct vl_change change;
	struct fsd_vl_set set;
	int32_t code = begin_vl_change(&change, context, rx, "VL.SetLock", id, NULL);

	if (!code && (!lock || lock & ~FSD_LOCKS || lock & (lock - 1)))
		code = AFS_VL_BADVOLOPER;
	if (!code)
		code = record_set(context, rx, id, type, &set);
	if (!code)
		code = fsd_location_lock(change.service->cell, id, lock);
	return end_vl_change(&change, code);
}

int32_t fsd_vl_unlock(void *context, rxw_call *rx, uint32_t id, int32_t type, int32_t release)
{
	struct vl_change change;
	struct fsd_vl_set set;
	int32_t code = begin_vl_change(&change, context, rx, "VL.ReleaseLock", id, NULL);

	if (!code && release & ~RELEASE_ALL)
		code = AFS_VL_BADRELLOCKTYPE;
	if (!code)
		code = record_set(context, rx, id, type, &set);
	if (!code && release & RELEASE_OPERATION)
		code = fsd_location_lock(change.service->cell, id, 0);
	return end_vl_change(&change, code);
}
