/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service identifies callers, and records their calls. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/error.h>
#include <rxwire/rxkad.h>
#include <rxwire/security.h>

#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"

/* A client that must be told to forget its promises before it is served: a little over one try. */
#define READY_MS 4500

/* Calls that reveal nothing about files: every caller is served, as by OpenAFS. */
static bool is_for_all(int32_t opcode)
{
	switch (opcode) {
	case RXAFS_OP_GetTime:
	case RXAFS_OP_GetCapabilities:
	case RXAFS_OP_GetStatistics:
	case RXAFS_OP_GetStatistics64:
	case RXAFS_OP_XStatsVersion:
	case RXAFS_OP_GetXStats:
	case RXAFS_OP_GetVolumeStatus:
	case RXAFS_OP_GiveUpCallBacks:
	case RXAFS_OP_GiveUpAllCallBacks:
		return true;
	default:
		return false;
	}
}

/*
 * Whether the client may first have to forget its promises. A lock that it cannot release would stay for
 * minutes, and the reply to that tells nothing of a file.
 */
static bool must_be_told(int32_t opcode)
{
	return opcode != RXAFS_OP_ReleaseLock && opcode != RXAFS_OP_OldReleaseLock;
}

/* Whether the audit log has it in any case. */
static bool changes_something(int32_t opcode)
{
	switch (opcode) {
	case RXAFS_OP_StoreData:
	case RXAFS_OP_StoreData64:
	case RXAFS_OP_OldStoreACL:
	case RXAFS_OP_StoreACL:
	case RXAFS_OP_StoreStatus:
	case RXAFS_OP_RemoveFile:
	case RXAFS_OP_CreateFile:
	case RXAFS_OP_Rename:
	case RXAFS_OP_Symlink:
	case RXAFS_OP_Link:
	case RXAFS_OP_MakeDir:
	case RXAFS_OP_RemoveDir:
	case RXAFS_OP_SetVolumeStatus:
	case RXAFS_OP_BeginStore:
	case RXAFS_OP_EndStore:
	case RXAFS_OP_SetLock:
	case RXAFS_OP_ReleaseLock:
	case RXAFS_OP_OldSetLock:
	case RXAFS_OP_OldReleaseLock:
		return true;
	default:
		return false;
	}
}

/* -- the identity: users and groups -- */

/* An address of IPv4, also in the form that sockets of both families have it in. */
static bool get_ipv4_address(const struct sockaddr_storage *peer, uint32_t *address)
{
	const struct sockaddr_in6 *in6 = (const void *)peer;

	if (peer->ss_family == AF_INET) {
		*address = ntohl(((const struct sockaddr_in *)peer)->sin_addr.s_addr);
		return true;
	}
	if (peer->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return false;
	memcpy(address, in6->sin6_addr.s6_addr + 12, sizeof(*address));
	*address = ntohl(*address);
	return true;
}

/* More ids than there is room for in the call. Without all of them negative rights would not count. False: no memory. */
static bool make_room_for_ids(struct fsd_ids *ids, int32_t **more)
{
	int32_t *bytes = realloc(*more, ids->count * sizeof(**more));

	if (!bytes)
		return false;
	*more = ids->ids = bytes;
	ids->room = ids->count;
	return true;
}

/* The ids of an authenticated caller and of its groups. 0 or a result as in people.h; -ENOMEM. */
static int identify_user(struct fs_call *call, struct fsd_asker *asker)
{
	struct fsd_people *people = call->service->people;
	struct rxw_identity identity = {.size = sizeof(identity)};
	struct fsd_ids ids = {.ids = call->ids, .room = FS_IDS};
	int rc;

	if (!people || rxw_call_identity(call->rx, &identity) < 0)
		return -ENOENT;
	do
		rc = people->ops->user(people, &identity, asker, &ids);
	while (!rc && ids.count > ids.room &&
	       !(rc = make_room_for_ids(&ids, &call->more_ids) ? 0 : -ENOMEM));
	if (rc)
		return rc;
	call->self.id = ids.id;
	call->self.ids = ids.ids;
	call->self.id_count = ids.count;
	return 0;
}

/* The groups of the machine that calls. Its address has answered (RXW_SERVICE_REACH). */
static int identify_host(struct fs_call *call, struct fsd_asker *asker)
{
	struct fsd_people *people = call->service->people;
	struct fsd_ids ids = {.ids = call->host_ids, .room = FS_HOST_IDS};
	uint32_t address;
	int rc;

	if (!people || !get_ipv4_address(&call->running.peer, &address))
		return 0;
	do
		rc = people->ops->machine(people, address, asker, &ids);
	while (!rc && ids.count > ids.room &&
	       !(rc = make_room_for_ids(&ids, &call->more_host_ids) ? 0 : -ENOMEM));
	if (rc)
		return rc;
	call->self.host_ids = ids.ids;
	call->self.host_id_count = ids.count;
	return 0;
}

static bool has_id(const struct store_caller *self, int32_t id)
{
	for (size_t i = 0; i < self->id_count && self->ids[i] <= id; i++)
		if (self->ids[i] == id)
			return true;
	return false;
}

static void be_anonymous(struct fs_call *call)
{
	static const int32_t anonymous[] = {STORE_ANYUSER, STORE_ANONYMOUS};

	call->self.id = STORE_ANONYMOUS;
	call->self.ids = anonymous;
	call->self.id_count = 2;
}

int fs_identify(struct fs_call *call, struct fsd_asker *asker)
{
	struct fsd_who *who = &call->who;
	socklen_t length = sizeof(call->running.peer);
	int user = -ENOENT, host;

	*who = (struct fsd_who){0};
	rxw_call_peer(call->rx, &call->running.peer, &length);
	if (asker)
		fsd_share_of_address(&call->running.peer, &asker->caller);
	if (fsd_guard_asks(call->service->guard))
		fsd_guard_enter(call->service->guard, FSD_FS, call->rx, who);
	if (who->authenticated)
		user = identify_user(call, asker);
	host = identify_host(call, asker);
	if (user == -EAGAIN || host == -EAGAIN)
		return -EAGAIN;
	if (user)
		be_anonymous(call);
	call->unknown = user == -EBUSY && !who->administrator;
	if (has_id(&call->self, STORE_ADMINISTRATORS))
		who->administrator = true;
	/* Lists of directories that were changed while no server ran are not known at the start. */
	if (call->service->no_anonymous_writes)
		call->self.withheld = STORE_CHANGING;
	call->self.administrator = who->administrator;
	call->self.who = &call->viewer;
	call->self.changed = fs_announce;
	call->self.changed_arg = call;
	return user == -ENOMEM || host == -ENOMEM ? -ENOMEM : 0;
}

int fs_enter(struct fs_call *call, rxw_call *rx, int32_t opcode, int function)
{
	struct fsd_service *service = call->service;
	struct sockaddr_storage *peer = &call->running.peer;
	struct sockaddr_storage local = {0};
	socklen_t local_length = sizeof(local);
	struct fsd_who *who = &call->who;
	bool checked = function >= 0 && !is_for_all(opcode);

	rxw_call_local(rx, &local, &local_length);
	call->running.procedure = function >= 0 ? RXAFS_function_names[function] : "unknown";
	call->running.opcode = opcode;
	call->running.since = fsd_now();
	fsd_running_add(&service->running, &call->running);
	fsd_clients_enter(service->clients, peer, local_length ? &local : NULL, (uint32_t)opcode,
			  call->running.since, &call->caller);
	call->viewer.who = who;
	call->viewer.actor = call->caller.host;
	if (call->nameless)
		return call->nameless;
	/* As an anonymous caller it would be told that it lacks rights, and its work would fail. */
	if (call->unknown && checked)
		return AFS_VBUSY;
	/* InlineBulkStatus reports the refusal for each object. */
	if (who->refused && checked && opcode != RXAFS_OP_InlineBulkStatus)
		return who->weak ? who->weak : -EACCES;
	if (checked && must_be_told(opcode) &&
	    !fsd_clients_ready(service->clients, &call->caller, call->running.since, READY_MS))
		return AFS_VBUSY;
	/* A change that cannot be recorded must not happen. Clients wait and repeat the call. */
	if (changes_something(opcode)) {
		call->reserved = fsd_audit_reserve(service->audit);
		if (!call->reserved)
			return AFS_VBUSY;
	}
	return 0;
}

void fs_leave(struct fs_call *call)
{
	assert(!call->breaking);
	if (call->reserved)
		fsd_audit_unreserve(call->service->audit);
	fsd_change_end(call->service->clients, &call->announced);
	assert(!call->announced.count);
	fsd_clients_leave(call->service->clients, &call->caller);
	fsd_running_remove(&call->service->running, &call->running);
	free(call->more_ids);
	free(call->more_host_ids);
	free(call->acl_text);
}

void fs_count(struct fs_call *call, int32_t code)
{
	fsd_count(&call->service->counters.calls, 1);
	if (code)
		fsd_count(&call->service->counters.failed, 1);
}

/* -- the audit log -- */

/* A name does not outlive its handler. */
static bool keep_name(char kept[FSD_AUDIT_NAME], const char *name)
{
	size_t n = name ? strnlen(name, FSD_AUDIT_NAME - 1) : 0;

	if (name)
		memcpy(kept, name, n);
	kept[n] = '\0';
	return name != NULL;
}

void fs_note(struct fs_call *call, const AFSFid *fid, const char *name)
{
	if (!call->service->audit)
		return;
	call->noted.fid = *fid;
	call->noted.has_name = keep_name(call->noted.name, name);
}

void fs_note_other(struct fs_call *call, const AFSFid *fid, const char *name)
{
	if (!call->service->audit)
		return;
	call->noted.to = *fid;
	call->noted.has_to_name = keep_name(call->noted.to_name, name);
}

static bool is_refused_code(int32_t code)
{
	return code == EACCES || code == EPERM || code == rxw_code_from_errno(EACCES) ||
	       code == rxw_code_from_errno(EPERM);
}

/* The name of the procedure, without that of the interface. */
static const char *short_name(const char *procedure)
{
	static const char prefix[] = "RXAFS_";
	const size_t length = sizeof(prefix) - 1;

	return strncmp(procedure, prefix, length) == 0 ? procedure + length : procedure;
}

void fs_audit(struct fs_call *call, int32_t code)
{
	const struct fs_noted *noted = &call->noted;
	struct fsd_audit_record record;

	if (!call->service->audit || !call->running.procedure ||
	    (!changes_something(call->running.opcode) && !is_refused_code(code) &&
	     !(call->service->audit_reads && noted->fid.Volume)))
		return;
	record = (struct fsd_audit_record){
		.time_ns = wall_ns(),
		.peer = &call->running.peer,
		.who = call->who.authenticated ? call->who.name ? call->who.name : "(this service)"
					       : NULL,
		.id = call->self.id,
		.operation = short_name(call->running.procedure),
		.volume = noted->fid.Volume,
		.vnode = noted->fid.Vnode,
		.unique = noted->fid.Unique,
		.name = noted->has_name ? noted->name : NULL,
		.to_volume = noted->to.Volume,
		.to_vnode = noted->to.Vnode,
		.to_unique = noted->to.Unique,
		.to_name = noted->has_to_name ? noted->to_name : NULL,
		.code = code,
		.reserved = call->reserved,
	};
	call->reserved = false;
	fsd_audit_add(call->service->audit, &record);
}
