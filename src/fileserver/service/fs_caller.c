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
	case RXAFS_OP_SetLock:
	case RXAFS_OP_ReleaseLock:
	case RXAFS_OP_OldSetLock:
	case RXAFS_OP_OldReleaseLock:
		return true;
	default:
		return false;
	}
}

/* -- the identity: users and groups, from the protection database -- */

static int32_t user_of(struct prot *prot, const struct prot_view *view, const rxw_call *rx)
{
	struct rxw_identity identity = {.size = sizeof(identity)};

	if (rxw_call_identity(rx, &identity) < 0)
		return PROT_ANONYMOUS;
	if (identity.index == RXW_RXKAD_INDEX && identity.rxkad_primary)
		return prot_user_of_parts(prot, view, identity.rxkad_primary,
					  identity.rxkad_instance, identity.rxkad_cell);
	return identity.name ? prot_user_of_principal(prot, view, identity.name) : PROT_ANONYMOUS;
}

/*
 * The user that makes a call: fills *id and at most `room` ids, ascending, that entries of ACLs are
 * compared with, and returns their number, which may be greater than `room`. 0: not a known user.
 */
static size_t find_user_ids(struct prot *prot, const rxw_call *rx, int32_t *id, int32_t *ids,
			    size_t room)
{
	const struct prot_view *view = prot_view_get(prot);
	size_t n = 0;

	*id = user_of(prot, view, rx);
	if (*id != PROT_ANONYMOUS)
		n = prot_cps(view, *id, ids, room);
	prot_view_put(view);
	return n;
}

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

/* The number and ids of the groups of the machine with this address. 0: it is in none. */
static size_t find_machine_ids(struct prot *prot, const struct sockaddr_storage *peer, int32_t *ids,
			       size_t room)
{
	const struct prot_view *view;
	uint32_t address;
	size_t n;

	if (!prot_has_machines(prot) || !get_ipv4_address(peer, &address))
		return 0;
	view = prot_view_get(prot);
	n = prot_host_cps(view, address, ids, room);
	prot_view_put(view);
	return n;
}

/* Finds the ids of an authenticated caller and of its groups. Their number; 0: an unknown user, -1: no memory. */
static int identify_user(struct fs_call *call, const rxw_call *rx)
{
	struct prot *prot = call->service->prot;
	size_t room = FS_IDS, n;

	if (!prot)
		return 0;
	call->self.ids = call->ids;
	n = find_user_ids(prot, rx, &call->self.id, call->ids, room);
	if (n > room) {
		call->more_ids = malloc(n * sizeof(*call->more_ids));
		if (call->more_ids) {
			room = n;
			call->self.ids = call->more_ids;
			n = find_user_ids(prot, rx, &call->self.id, call->more_ids, room);
		}
	}
	call->self.id_count = n < room ? n : room;
	/* If groups were missing, their negative rights would not count. */
	return n > room ? -1 : (int)n;
}

/* The groups of the machine that calls. Its address has answered (RXW_SERVICE_REACH). False: no memory. */
static bool find_host(struct fs_call *call)
{
	const struct sockaddr_storage *peer = &call->running.peer;
	struct prot *prot = call->service->prot;
	size_t room = FS_HOST_IDS, n;

	if (!prot)
		return true;
	call->self.host_ids = call->host_ids;
	n = find_machine_ids(prot, peer, call->host_ids, room);
	if (n > room) {
		call->more_host_ids = malloc(n * sizeof(*call->more_host_ids));
		if (call->more_host_ids) {
			room = n;
			call->self.host_ids = call->more_host_ids;
			n = find_machine_ids(prot, peer, call->more_host_ids, room);
		}
	}
	call->self.host_id_count = n < room ? n : room;
	return n <= room;
}

static bool has_id(const struct store_caller *self, int32_t id)
{
	for (size_t i = 0; i < self->id_count && self->ids[i] <= id; i++)
		if (self->ids[i] == id)
			return true;
	return false;
}

/* False: no memory. */
static bool find_self(struct fs_call *call, const rxw_call *rx)
{
	static const int32_t anonymous[] = {STORE_ANYUSER, STORE_ANONYMOUS};
	struct fsd_who *who = &call->who;
	int known = who->authenticated ? identify_user(call, rx) : 0;

	if (known < 0)
		return false;
	if (!known) {
		call->self.id = STORE_ANONYMOUS;
		call->self.ids = anonymous;
		call->self.id_count = 2;
	}
	if (has_id(&call->self, STORE_ADMINISTRATORS))
		who->administrator = true;
	/* Lists of directories that were changed while no server ran are not known at the start. */
	if (call->service->no_anonymous_writes)
		call->self.withheld = STORE_CHANGING;
	call->self.administrator = who->administrator;
	call->self.who = &call->viewer;
	call->self.changed = fs_announce;
	call->self.changed_arg = call;
	return true;
}

int fs_enter(struct fs_call *call, rxw_call *rx, int32_t opcode, int function)
{
	struct fsd_service *service = call->service;
	struct sockaddr_storage *peer = &call->running.peer;
	struct sockaddr_storage local = {0};
	socklen_t length = sizeof(*peer), local_length = sizeof(local);
	struct fsd_who *who = &call->who;
	bool checked = function >= 0 && !is_for_all(opcode);

	rxw_call_peer(rx, peer, &length);
	rxw_call_local(rx, &local, &local_length);
	call->running.procedure = function >= 0 ? RXAFS_function_names[function] : "unknown";
	call->running.opcode = opcode;
	call->running.since = fsd_now();
	fsd_running_add(&service->running, &call->running);
	fsd_clients_enter(service->clients, peer, local_length ? &local : NULL, (uint32_t)opcode,
			  call->running.since, &call->caller);
	call->viewer.who = who;
	call->viewer.actor = call->caller.host;
	if (fsd_guard_asks(service->guard))
		fsd_guard_enter(service->guard, FSD_FS, rx, who);
	if (!find_self(call, rx) || !find_host(call))
		return -ENOMEM;
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
