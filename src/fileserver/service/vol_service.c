/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume service of one partition (afs-location 5). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rxwire/call.h>
#include <rxwire/rpc.h>

#include "afs/afsvol.h"
#include "afs/numbers.h"
#include "fileserver/service/vol.h"

#define OMIT_DIRS 1 /* of the flags of a dump */

/* -- calls that change something, in the audit log -- */

static const char *name_operation(int32_t opcode)
{
	switch (opcode) {
	case AFSVol_OP_TransCreate:
		return "VOL.TransCreate";
	case AFSVol_OP_EndTrans:
		return "VOL.EndTrans";
	case AFSVol_OP_CreateVolume:
		return "VOL.CreateVolume";
	case AFSVol_OP_DeleteVolume:
		return "VOL.DeleteVolume";
	case AFSVol_OP_NukeVolume:
		return "VOL.NukeVolume";
	case AFSVol_OP_Dump:
		return "VOL.Dump";
	case AFSVol_OP_DumpV2:
		return "VOL.DumpV2";
	case AFSVol_OP_Restore:
		return "VOL.Restore";
	case AFSVol_OP_Forward:
		return "VOL.Forward";
	case AFSVol_OP_ForwardMultiple:
		return "VOL.ForwardMultiple";
	case AFSVol_OP_Clone:
		return "VOL.Clone";
	case AFSVol_OP_ReClone:
		return "VOL.ReClone";
	case AFSVol_OP_SetFlags:
		return "VOL.SetFlags";
	case AFSVol_OP_SetForwarding:
		return "VOL.SetForwarding";
	case AFSVol_OP_SetIdsTypes:
		return "VOL.SetIdsTypes";
	case AFSVol_OP_SetDate:
		return "VOL.SetDate";
	case AFSVol_OP_SetInfo:
		return "VOL.SetInfo";
	case AFSVol_OP_ConvertROtoRWvolume:
		return "VOL.ConvertROtoRWvolume";
	default:
		return NULL;
	}
}

/* Before it is done, or refused. 0 or a code: it cannot be recorded now. */
static int32_t begin_vol_record(struct vol_call *vol, const rxw_call *call, int32_t opcode,
				const struct fsd_who *who)
{
	vol->operation = name_operation(opcode);
	vol->known = who->authenticated;
	snprintf(vol->who, sizeof(vol->who), "%s", who->name ? who->name : "(this service)");
	vol->change = (struct fsd_audit_change){
		.audit = vol->service->audit, .call = call, .operation = vol->operation};
	return vol->operation ? fsd_audit_begin(&vol->change) : 0;
}

/* Before its caller is answered with this code, which is returned. */
static int32_t end_vol_record(struct vol_call *vol, int32_t code)
{
	if (!vol->operation)
		return code;
	vol->change.who = vol->known ? vol->who : NULL;
	vol->change.volume = vol->volume;
	vol->change.name = *vol->name ? vol->name : NULL;
	vol->change.to_name = *vol->to_name ? vol->to_name : NULL;
	return fsd_audit_end(&vol->change, code);
}

static void note_vol_name(char to[STORE_VOLNAME_MAX + 16], const char *name)
{
	snprintf(to, STORE_VOLNAME_MAX + 16, "%s", name);
}

/* -- transactions -- */

/* One whose volume is still there. ENOENT. */
static int32_t enter_transaction(const struct fsd_service *service, int32_t id, const char *name,
				 struct fsd_transaction *transaction)
{
	int32_t code = service->cell ? fsd_transaction_enter(service->cell, id, name, transaction)
				     : ENOENT;

	if (code || !transaction->deleted)
		return code;
	fsd_transaction_leave(service->cell, transaction);
	return ENOENT;
}

/* The same, for a call that is recorded. */
static int32_t enter_recorded(struct vol_call *vol, int32_t id, const char *name,
			      struct fsd_transaction *transaction)
{
	int32_t code = enter_transaction(vol->service, id, name, transaction);

	if (!code)
		vol->volume = transaction->volume;
	return code;
}

/* The same, with what its volume is. */
static int32_t enter_volume(struct vol_call *vol, int32_t id, const char *name,
			    struct fsd_transaction *transaction, struct cellvol *volume)
{
	const struct fsd_service *service = vol->service;
	int32_t code = enter_recorded(vol, id, name, transaction);
	int result = code ? 0 : cellvol_get(service->store, transaction->volume, volume);

	if (result)
		fsd_transaction_leave(service->cell, transaction);
	return result ? fsd_volume_code(result) : code;
}

/* The end of a call in a transaction. */
static int32_t leave_transaction(const struct fsd_service *service,
				 const struct fsd_transaction *transaction, int result)
{
	fsd_transaction_leave(service->cell, transaction);
	return fsd_volume_code(result);
}

static int32_t create_transaction(void *context, rxw_call *call, uint32_t id, int32_t part,
				  int32_t mode, int32_t *tid)
{
	const struct fsd_service *service = service_of(context);

	(void)call;
	((struct vol_call *)context)->volume = id;
	if (part != VOL_PARTITION ||
	    !(mode & (FSD_CREATE | FSD_BUSY | FSD_READ_ONLY | FSD_OFFLINE)))
		return EINVAL;
	return fsd_transaction_begin(service->cell, id, mode, tid);
}

/* Letters, digits, '.', '_' and '-', as in the database of locations. */
static bool is_volume_name(const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= CELLVOL_NAME)
		return false;
	return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
	       length;
}

static enum store_type type_in(int32_t type)
{
	return type == AFS_VL_RW ? STORE_RW : type == AFS_VL_RO ? STORE_RO : STORE_BACKUP;
}

static int32_t create_volume(void *context, rxw_call *call, int32_t part, const char *name,
			     int32_t type, uint32_t parent, uint32_t *id, int32_t *tid)
{
	const struct fsd_service *service = service_of(context);
	struct cellvol volume = {.id = *id, .parent = parent ? parent : *id, .quota_kib = 5000};

	(void)call;
	if (!is_volume_name(name))
		return AFS_VOL_BADNAME;
	if (part != VOL_PARTITION || type < AFS_VL_RW || type > AFS_VL_BACKUP)
		return EINVAL;
	if (!*id)
		return E2BIG;
	volume.type = type_in(type);
	strcpy(volume.name, name);
	((struct vol_call *)context)->volume = *id;
	note_vol_name(((struct vol_call *)context)->name, name);
	/* One that gets the contents of another has no root directory of its own. */
	return fsd_transaction_create(service->cell, &volume, type != AFS_VL_RW || parent != *id,
				      tid);
}

static int32_t delete_volume(void *context, rxw_call *call, int32_t tid)
{
	const struct fsd_service *service = service_of(context);
	struct fsd_transaction transaction;
	int32_t code = enter_recorded(context, tid, "DeleteVolume", &transaction);
	int result;

	(void)call;
	if (code)
		return code;
	result = cellvol_delete(service->store, transaction.volume);
	transaction.deleted = transaction.changed = !result;
	return leave_transaction(service, &transaction, result);
}

/* -- work of threads that may wait -- */

struct vol_job {
	const struct fsd_service *service;
	struct vol_call vol; /* before it is given to a thread: `from` */
	struct vol_call *from;
	rxw_call *call; /* deferred */
	int32_t opcode;
	int32_t seized; /* a transaction in which a call runs, and that is to end */
	struct fsd_transaction transaction;
	struct fsd_dump dump;
	struct cellvol cookie;
	uint8_t level; /* of the caller */
	struct fsd_forward to[FSD_FORWARDS];
	unsigned count;
};

/* One result for each of several servers; that of one is the result. */
static void run_forwarding(struct vol_job *job)
{
	int32_t codes[FSD_FORWARDS];
	const manyResults results = {.len = job->count, .val = codes};
	int32_t code = fsd_dump_forward(job->service->cell, &job->transaction, &job->dump,
					&job->cookie, job->level, job->to, job->count, job->call);

	fsd_transaction_leave(job->service->cell, &job->transaction);
	for (unsigned i = 0; i < job->count; i++)
		codes[i] = job->to[i].code;
	if (job->opcode == AFSVol_OP_ForwardMultiple)
		AFSVolForwardMultiple_reply(job->call, end_vol_record(&job->vol, code), &results);
	else
		AFSVolForward_reply(job->call, end_vol_record(&job->vol, code ? code : codes[0]));
}

static int32_t seize_transaction(struct vol_job *job)
{
	int32_t code = fsd_transaction_seize(job->service->cell, job->seized, "EndTrans",
					     &job->transaction);

	if (!code)
		job->vol.volume = job->transaction.volume;
	return code;
}

static void run_vol_job(void *arg)
{
	struct vol_job *job = arg;
	struct fsd_cell *cell = job->service->cell;
	volintSize size = {0};
	int32_t code;

	switch (job->opcode) {
	case AFSVol_OP_EndTrans:
		code = job->seized ? seize_transaction(job) : 0;
		if (!code)
			fsd_transaction_end(cell, &job->transaction);
		AFSVolEndTrans_reply(job->call, end_vol_record(&job->vol, code), 0);
		break;
	case AFSVol_OP_NukeVolume:
		fsd_transaction_end(cell, &job->transaction);
		AFSVolNukeVolume_reply(job->call, end_vol_record(&job->vol, 0));
		break;
	case AFSVol_OP_Forward:
	case AFSVol_OP_ForwardMultiple:
		run_forwarding(job);
		break;
	case AFSVol_OP_Clone:
		code = fsd_volume_copy(cell, &job->transaction, &job->cookie, job->call);
		fsd_transaction_leave(cell, &job->transaction);
		AFSVolClone_reply(job->call, end_vol_record(&job->vol, code), job->cookie.id);
		break;
	case AFSVol_OP_ConvertROtoRWvolume:
		code = fsd_volume_convert(cell, job->cookie.id);
		AFSVolConvertROtoRWvolume_reply(job->call, end_vol_record(&job->vol, code));
		break;
	case AFSVol_OP_Restore:
		code = fsd_dump_receive(cell, &job->transaction, &job->cookie, job->call);
		fsd_transaction_leave(cell, &job->transaction);
		AFSVolRestore_reply(job->call, end_vol_record(&job->vol, code));
		break;
	case AFSVol_OP_GetSize:
		code = fsd_dump_size(cell, &job->transaction, &job->dump, job->call,
				     &size.dump_size);
		fsd_transaction_leave(cell, &job->transaction);
		AFSVolGetSize_reply(job->call, code, &size);
		break;
	default:
		code = fsd_dump_send(cell, &job->transaction, &job->dump, job->call);
		fsd_transaction_leave(cell, &job->transaction);
		AFSVolDump_reply(job->call, end_vol_record(&job->vol, code));
	}
	free(job);
}

/* Whether it waits for clients that hold promises, but not for its caller or a disk. */
static bool is_short_job(const struct vol_job *job)
{
	return (job->opcode == AFSVol_OP_EndTrans && !job->seized) ||
	       job->opcode == AFSVol_OP_NukeVolume;
}

/* That of a conversion, or of an end that waits, is in no transaction. */
static void leave_job(const struct vol_job *job)
{
	if (job->transaction.id)
		fsd_transaction_leave(job->service->cell, &job->transaction);
}

/* RXW_RPC_DEFERRED: a thread answers the call and leaves the transaction. Else the code. */
static int32_t give_to_thread(const struct vol_job *from)
{
	struct fsd_cell *cell = from->service->cell;
	struct vol_job *job = malloc(sizeof(*job));

	if (!job || rxw_call_defer(from->call)) {
		free(job);
		leave_job(from);
		return AFS_VOL_VOLBUSY;
	}
	*job = *from;
	job->vol = *from->from;
	from->from->operation = NULL; /* the thread records it */
	if (fsd_cell_run(cell, is_short_job(job) ? NULL : job->call, run_vol_job, job))
		return RXW_RPC_DEFERRED;
	end_vol_record(&job->vol, AFS_VOL_VOLBUSY);
	free(job);
	leave_job(from);
	rxw_call_end(from->call, AFS_VOL_VOLBUSY, NULL);
	return RXW_RPC_DEFERRED;
}

/* Clients are told of changes before the call returns. */
static int32_t end_transaction(void *context, rxw_call *call, int32_t tid, int32_t *ended)
{
	const struct fsd_service *service = service_of(context);
	struct vol_job job = {
		.service = service, .from = context, .call = call, .opcode = AFSVol_OP_EndTrans};
	int32_t code = fsd_transaction_enter(service->cell, tid, "EndTrans", &job.transaction);

	if (code == AFS_VOL_VOLBUSY) {
		job.seized = tid;
		return give_to_thread(&job);
	}
	if (code)
		return code;
	job.from->volume = job.transaction.volume;
	if (job.transaction.changed || job.transaction.recloned)
		return give_to_thread(&job);
	fsd_transaction_end(service->cell, &job.transaction);
	*ended = 0;
	return 0;
}

static int32_t send_dump(struct vol_call *vol, rxw_call *call, int32_t tid,
			 const struct fsd_dump *dump)
{
	const struct fsd_service *service = vol->service;
	struct vol_job job = {.service = service,
			      .from = vol,
			      .call = call,
			      .opcode = AFSVol_OP_Dump,
			      .dump = *dump};
	int32_t code = enter_recorded(vol, tid, "Dump", &job.transaction);

	if (code)
		return code;
	code = fsd_transaction_freeze(service->cell, &job.transaction);
	if (!code)
		return give_to_thread(&job);
	fsd_transaction_leave(service->cell, &job.transaction);
	return code;
}

static int32_t dump_volume(void *context, rxw_call *call, int32_t tid, int32_t from)
{
	return send_dump(context, call, tid, &(struct fsd_dump){.from = (uint32_t)from});
}

static int32_t dump_volume2(void *context, rxw_call *call, int32_t tid, int32_t from, int32_t flags)
{
	return send_dump(context, call, tid,
			 &(struct fsd_dump){.from = (uint32_t)from, .sparse = flags & OMIT_DIRS});
}

/* All records of the volume are read. */
static int32_t size_dump(void *context, rxw_call *call, int32_t tid, int32_t from, volintSize *size)
{
	struct vol_job job = {.service = service_of(context),
			      .from = context,
			      .call = call,
			      .opcode = AFSVol_OP_GetSize,
			      .dump.from = (uint32_t)from};
	int32_t code = enter_recorded(context, tid, "GetSize", &job.transaction);

	(void)size;
	return code ? code : give_to_thread(&job);
}

/* 0 or a code. */
static int32_t take_cookie(const restoreCookie *cookie, struct cellvol *volume)
{
	if (!memchr(cookie->name, 0, sizeof(cookie->name)) || !is_volume_name(cookie->name))
		return AFS_VOL_BADNAME;
	if (cookie->type < AFS_VL_RW || cookie->type > AFS_VL_BACKUP)
		return EINVAL;
	*volume = (struct cellvol){
		.type = type_in(cookie->type), .clone = cookie->clone, .parent = cookie->parent};
	strcpy(volume->name, cookie->name);
	return 0;
}

/* At least as protected as the call that asks for it. */
static uint8_t choose_forward_level(const rxw_call *call)
{
	struct rxw_identity identity = {.size = sizeof(identity)};

	return rxw_call_identity(call, &identity) < 0 || identity.level < RXW_LEVEL_AUTH
		       ? RXW_LEVEL_AUTH
		       : identity.level;
}

static int32_t begin_forward(struct vol_job *job, int32_t tid, int32_t from,
			     const restoreCookie *cookie)
{
	const struct fsd_service *service = job->service;
	int32_t code = take_cookie(cookie, &job->cookie);

	if (!code)
		code = enter_recorded(job->from, tid, job->count > 1 ? "ForwardMulti" : "Forward",
				      &job->transaction);
	if (code)
		return code;
	job->level = choose_forward_level(job->call);
	job->dump = (struct fsd_dump){.from = (uint32_t)from, .sparse = true};
	code = fsd_transaction_freeze(service->cell, &job->transaction);
	if (code) {
		fsd_transaction_leave(service->cell, &job->transaction);
		return code;
	}
	return give_to_thread(job);
}

static int32_t forward_volume(void *context, rxw_call *call, int32_t tid, int32_t from,
			      const destServer *server, int32_t other, const restoreCookie *cookie)
{
	struct vol_job job = {.service = service_of(context),
			      .from = context,
			      .call = call,
			      .opcode = AFSVol_OP_Forward,
			      .count = 1,
			      .to[0] = {.host = (uint32_t)server->destHost,
					.port = (uint16_t)server->destPort,
					.transaction = other}};

	return begin_forward(&job, tid, from, cookie);
}

static int32_t forward_volumes(void *context, rxw_call *call, int32_t tid, int32_t from,
			       const manyDests *servers, int32_t spare, const restoreCookie *cookie,
			       manyResults *results)
{
	struct vol_job job = {.service = service_of(context),
			      .from = context,
			      .call = call,
			      .opcode = AFSVol_OP_ForwardMultiple,
			      .count = servers->len};

	(void)spare, (void)results;
	if (!job.count || job.count > FSD_FORWARDS)
		return EINVAL;
	for (unsigned i = 0; i < job.count; i++)
		job.to[i] = (struct fsd_forward){.host = (uint32_t)servers->val[i].server.destHost,
						 .port = (uint16_t)servers->val[i].server.destPort,
						 .transaction = servers->val[i].trans};
	return begin_forward(&job, tid, from, cookie);
}

static int32_t restore_volume(void *context, rxw_call *call, int32_t tid, int32_t flags,
			      const restoreCookie *cookie)
{
	const struct fsd_service *service = service_of(context);
	struct vol_job job = {
		.service = service, .from = context, .call = call, .opcode = AFSVol_OP_Restore};
	int32_t code;

	(void)flags;
	code = take_cookie(cookie, &job.cookie);
	note_vol_name(job.from->name, job.cookie.name);
	if (!code)
		code = enter_recorded(context, tid, "Restore", &job.transaction);
	if (code)
		return code;
	/* Nobody may use the volume meanwhile: it is new, or off-line. */
	if (job.transaction.mode & (FSD_BUSY | FSD_READ_ONLY))
		return leave_transaction(service, &job.transaction, -EINVAL);
	return give_to_thread(&job);
}

/* -- clones -- */

static int32_t clone_volume(void *context, rxw_call *call, int32_t tid, uint32_t purge,
			    int32_t type, const char *name, uint32_t *id)
{
	const struct fsd_service *service = service_of(context);
	struct cellvol source, clone = {.id = *id};
	struct fsd_transaction transaction;
	int32_t code;
	int result;

	if (!is_volume_name(name))
		return AFS_VOL_BADNAME;
	if (!*id || type < AFS_VL_RW || type > AFS_VL_BACKUP || (purge && purge != *id))
		return EINVAL;
	clone.type = type_in(type);
	strcpy(clone.name, name);
	note_vol_name(((struct vol_call *)context)->to_name, name);
	code = enter_volume(context, tid, "Clone", &transaction, &source);
	if (code)
		return code;
	/* One that is only out of service can be cloned: a move that was interrupted can be repeated. */
	if (source.temporary)
		return leave_transaction(service, &transaction, STORE_VOFFLINE);
	if (fsd_transaction_of(service->cell, *id, NULL))
		return leave_transaction(service, &transaction, AFS_VOL_VOLBUSY);
	if (clone.type == STORE_RW) {
		/* It has contents of its own, which takes time. */
		struct vol_job job = {.service = service,
				      .from = context,
				      .call = call,
				      .opcode = AFSVol_OP_Clone,
				      .transaction = transaction,
				      .cookie = clone};

		return purge ? leave_transaction(service, &transaction, -EINVAL)
			     : give_to_thread(&job);
	}
	result = purge ? cellvol_reclone(service->store, source.id, *id)
		       : cellvol_clone(service->store, source.id, &clone);
	if (!result && purge)
		transaction.recloned = *id;
	else if (!result)
		fsd_transaction_made(service->cell, *id);
	return leave_transaction(service, &transaction, result);
}

static int32_t convert_volume(void *context, rxw_call *call, int32_t part, uint32_t id)
{
	struct vol_job job = {.service = service_of(context),
			      .from = context,
			      .call = call,
			      .opcode = AFSVol_OP_ConvertROtoRWvolume,
			      .cookie.id = id};

	job.from->volume = id;
	return part == VOL_PARTITION ? give_to_thread(&job) : AFS_VOL_ILLEGAL_PARTITION;
}

static int32_t split_volume(void *context, rxw_call *call, uint32_t id, uint32_t new_id,
			    uint32_t where, int32_t verbose)
{
	(void)context, (void)call, (void)id, (void)new_id, (void)where, (void)verbose;
	return AFS_VOL_BADOP;
}

static int32_t reclone_volume(void *context, rxw_call *call, int32_t tid, uint32_t id)
{
	const struct fsd_service *service = service_of(context);
	struct fsd_transaction transaction;
	struct cellvol source;
	int32_t code = enter_volume(context, tid, "ReClone", &transaction, &source);
	int result;

	(void)call;
	if (code)
		return code;
	if (source.temporary)
		return leave_transaction(service, &transaction, STORE_VOFFLINE);
	if (fsd_transaction_of(service->cell, id, NULL) ||
	    (transaction.recloned && transaction.recloned != id))
		return leave_transaction(service, &transaction, AFS_VOL_VOLBUSY);
	result = cellvol_reclone(service->store, source.id, id);
	transaction.recloned = result ? transaction.recloned : id;
	return leave_transaction(service, &transaction, result);
}

/* -- what a volume is -- */

static bool permits_root(void *arg, const struct store_acl *root)
{
	const struct fsd_service *service = arg;

	return !service->no_anonymous_writes || !fsd_acl_lets_anyone_write(root);
}

static int32_t set_flags(void *context, rxw_call *call, int32_t tid, int32_t flags)
{
	struct fsd_service *service = service_of(context);
	struct fsd_transaction transaction;
	struct cellvol volume;
	int32_t code = enter_volume(context, tid, "SetFlags", &transaction, &volume);
	int result;

	(void)call;
	if (code)
		return code;
	volume.temporary = flags & 1;
	volume.out = flags & 2;
	result = cellvol_set(service->store, &volume, CELLVOL_STATE, permits_root, service);
	/* The volume is about to move: callers try again, and then find it elsewhere. */
	if (!result && volume.out && transaction.mode & FSD_BUSY)
		result = cellvol_hold(service->store, transaction.volume, STORE_VBUSY, STORE_VBUSY);
	if (!result) {
		transaction.flags = flags;
		transaction.changed |= (flags & 3) != 0;
	}
	return leave_transaction(service, &transaction, result);
}

/*
 * Calls that all may make: one of an administrator is a call in the transaction; those of others neither keep a transaction from its
 * end nor hinder the calls in it.
 */
static int32_t look_at_transaction(const struct fsd_service *service, const rxw_call *call,
				   int32_t id, const char *name,
				   struct fsd_transaction *transaction)
{
	int32_t code = ENOENT;

	if (fsd_is_superuser(service, FSD_VOL, call)) {
		code = enter_transaction(service, id, name, transaction);
		if (!code)
			fsd_transaction_leave(service->cell, transaction);
		return code;
	}
	if (service->cell)
		code = fsd_transaction_look(service->cell, id, transaction);
	return !code && transaction->deleted ? ENOENT : code;
}

/* The same, with what its volume is. */
static int32_t look_at_volume(const struct fsd_service *service, const rxw_call *call, int32_t id,
			      const char *name, struct cellvol *volume)
{
	struct fsd_transaction transaction;
	int32_t code = look_at_transaction(service, call, id, name, &transaction);

	return code ? code
		    : fsd_volume_code(cellvol_get(service->store, transaction.volume, volume));
}

static int32_t get_flags(void *context, rxw_call *call, int32_t tid, int32_t *flags)
{
	struct fsd_transaction transaction;
	int32_t code =
		look_at_transaction(service_of(context), call, tid, "GetFlags", &transaction);

	if (!code)
		*flags = transaction.flags;
	return code;
}

static int32_t get_name(void *context, rxw_call *call, int32_t tid, char **name)
{
	struct cellvol volume;
	int32_t code = look_at_volume(service_of(context), call, tid, "GetName", &volume);

	if (code)
		return code;
	*name = strdup(volume.name);
	return *name ? 0 : AFS_VOL_NO_MEMORY;
}

static int32_t type_out(enum store_type type)
{
	return type == STORE_RW ? AFS_VL_RW : type == STORE_RO ? AFS_VL_RO : AFS_VL_BACKUP;
}

static int32_t get_status(void *context, rxw_call *call, int32_t tid, volser_status *status)
{
	struct cellvol volume;
	int32_t code = look_at_volume(service_of(context), call, tid, "GetStatus", &volume);

	if (code)
		return code;
	*status = (volser_status){.volID = volume.id,
				  .nextUnique = (int32_t)volume.next_unique,
				  .type = type_out(volume.type),
				  .parentID = volume.parent,
				  .cloneID = volume.type == STORE_RO ? volume.id : volume.clone,
				  .backupID = volume.backup,
				  .restoredFromID = volume.restored,
				  .maxQuota = fsd_clip(volume.quota_kib),
				  .minQuota = volume.minimum,
				  .owner = volume.owner,
				  .creationDate = (int32_t)volume.creation,
				  .accessDate = (int32_t)volume.updated,
				  .updateDate = (int32_t)volume.updated,
				  .backupDate = (int32_t)volume.backed_up,
				  .copyDate = (int32_t)volume.copied};
	return 0;
}

/* A change of some members; `volume` has them, and is of the transaction. */
static int32_t set_members(const struct fsd_service *service,
			   const struct fsd_transaction *transaction, const struct cellvol *volume,
			   unsigned members)
{
	return leave_transaction(service, transaction,
				 cellvol_set(service->store, volume, members, NULL, NULL));
}

static int32_t set_ids_types(void *context, rxw_call *call, int32_t tid, const char *name,
			     int32_t type, uint32_t parent, uint32_t clone, uint32_t backup)
{
	struct fsd_transaction transaction;
	struct cellvol volume;
	int32_t code;

	(void)call;
	if (!is_volume_name(name))
		return AFS_VOL_BADNAME;
	if (type < AFS_VL_RW || type > AFS_VL_BACKUP)
		return EINVAL;
	code = enter_volume(context, tid, "SetIdsTypes", &transaction, &volume);
	if (code)
		return code;
	note_vol_name(((struct vol_call *)context)->name, volume.name);
	note_vol_name(((struct vol_call *)context)->to_name, name);
	strcpy(volume.name, name);
	volume.type = type_in(type);
	volume.parent = parent;
	volume.clone = clone;
	volume.backup = backup;
	return set_members(service_of(context), &transaction, &volume,
			   CELLVOL_NAMED | CELLVOL_TYPE | CELLVOL_IDS);
}

static int32_t set_date(void *context, rxw_call *call, int32_t tid, int32_t date)
{
	struct fsd_transaction transaction;
	struct cellvol volume;
	int32_t code = enter_volume(context, tid, "SetDate", &transaction, &volume);

	(void)call;
	if (code)
		return code;
	volume.creation = (uint32_t)date;
	return set_members(service_of(context), &transaction, &volume, CELLVOL_CREATION);
}

/* -1 leaves a member as it is. */
static int32_t set_info(void *context, rxw_call *call, int32_t tid, const volintInfo *info)
{
	struct fsd_transaction transaction;
	struct cellvol volume;
	unsigned members = 0;
	int32_t code = enter_volume(context, tid, "SetInfo", &transaction, &volume);

	(void)call;
	if (code)
		return code;
	if (info->maxquota >= 0) {
		volume.quota_kib = (uint64_t)info->maxquota;
		members |= CELLVOL_QUOTA;
	}
	if (info->creationDate != -1) {
		volume.creation = (uint32_t)info->creationDate;
		members |= CELLVOL_CREATION;
	}
	if (info->updateDate != -1) {
		volume.updated = (uint32_t)info->updateDate;
		members |= CELLVOL_UPDATED;
	}
	return set_members(service_of(context), &transaction, &volume, members);
}

/* The address is not used: clients ask the location service. */
static int32_t set_forwarding(void *context, rxw_call *call, int32_t tid, int32_t site)
{
	const struct fsd_service *service = service_of(context);
	struct fsd_transaction transaction;
	int32_t code = enter_recorded(context, tid, "SetForwarding", &transaction);
	int result;

	(void)call, (void)site;
	if (code)
		return code;
	result = cellvol_hold(service->store, transaction.volume, STORE_VMOVED, STORE_VMOVED);
	transaction.moved = transaction.changed = !result;
	return leave_transaction(service, &transaction, result);
}

static int32_t signal_restore(void *context, rxw_call *call, const char *name, int32_t type,
			      uint32_t parent, uint32_t clone)
{
	(void)context, (void)call, (void)name, (void)type, (void)parent, (void)clone;
	return 0;
}

static int32_t get_nth_volume(void *context, rxw_call *call, int32_t index, uint32_t *id,
			      int32_t *part)
{
	(void)context, (void)call, (void)index, (void)id, (void)part;
	return AFS_VOL_NO_OP;
}

/* A transaction of one call. */
static int32_t nuke_volume(void *context, rxw_call *call, int32_t part, uint32_t id)
{
	struct vol_job job = {.service = service_of(context),
			      .from = context,
			      .call = call,
			      .opcode = AFSVol_OP_NukeVolume};
	struct fsd_cell *cell = job.service->cell;
	int32_t tid, code;
	int result;

	job.from->volume = id;
	if (part != VOL_PARTITION)
		return AFS_VOL_NOVOL;
	code = fsd_transaction_begin(cell, id, FSD_OFFLINE, &tid);
	if (!code)
		code = fsd_transaction_enter(cell, tid, "Nuke", &job.transaction);
	if (code)
		return code == AFS_VNOVOL ? -1 : code;
	result = cellvol_delete(job.service->store, id);
	if (result) {
		fsd_transaction_end(cell, &job.transaction);
		return fsd_volume_code(result);
	}
	job.transaction.deleted = job.transaction.changed = true;
	return give_to_thread(&job);
}

static const struct AFSVol_handlers handlers = {
	.XListPartitions = fsd_vol_list_partition_ids,
	.ListPartitions = fsd_vol_list_partitions,
	.PartitionInfo = fsd_vol_partition_info,
	.PartitionInfo64 = fsd_vol_partition_info64,
	.ListVolumes = fsd_vol_list_all_volumes,
	.ListOneVolume = fsd_vol_list_one_volume,
	.XListVolumes = fsd_vol_xlist_volumes,
	.XListOneVolume = fsd_vol_xlist_one_volume,
	.Monitor = fsd_vol_list_transactions,
	.TransCreate = create_transaction,
	.EndTrans = end_transaction,
	.CreateVolume = create_volume,
	.DeleteVolume = delete_volume,
	.NukeVolume = nuke_volume,
	.Dump = dump_volume,
	.DumpV2 = dump_volume2,
	.GetSize = size_dump,
	.Restore = restore_volume,
	.Forward = forward_volume,
	.ForwardMultiple = forward_volumes,
	.Clone = clone_volume,
	.ReClone = reclone_volume,
	.ConvertROtoRWvolume = convert_volume,
	.SplitVolume = split_volume,
	.SetFlags = set_flags,
	.SetForwarding = set_forwarding,
	.SetIdsTypes = set_ids_types,
	.SetDate = set_date,
	.SetInfo = set_info,
	.SignalRestore = signal_restore,
	.GetFlags = get_flags,
	.GetName = get_name,
	.GetStatus = get_status,
	.GetNthVolume = get_nth_volume,
};

/*
 * Everything else changes something, or gives all data of a volume away. It is refused before its arguments are read, so that a
 * restore does not send its dump in vain.
 */
static int32_t enter_vol_call(void *context, rxw_call *call, int32_t opcode, int function)
{
	const struct fsd_service *service = service_of(context);
	struct fsd_who who = {0};
	int32_t code;

	if (fsd_guard_asks(service->guard))
		fsd_guard_enter(service->guard, FSD_VOL, call, &who);
	code = begin_vol_record(context, call, opcode, &who);
	if (code)
		return code;
	if (who.refused && function >= 0)
		return who.weak ? who.weak : AFS_VOL_BAD_ACCESS;
	switch (opcode) {
	case AFSVol_OP_XListPartitions:
	case AFSVol_OP_ListPartitions:
	case AFSVol_OP_PartitionInfo:
	case AFSVol_OP_PartitionInfo64:
	case AFSVol_OP_ListVolumes:
	case AFSVol_OP_ListOneVolume:
	case AFSVol_OP_XListVolumes:
	case AFSVol_OP_XListOneVolume:
	case AFSVol_OP_Monitor:
	case AFSVol_OP_GetFlags:
	case AFSVol_OP_GetName:
	case AFSVol_OP_GetStatus:
	case AFSVol_OP_GetNthVolume:
		return 0;
	default:
		if (function < 0 || (service->cell && who.administrator && !who.below))
			return 0;
		if (service->cell)
			return AFS_VOL_BAD_ACCESS;
		/* An administrator shall not look for a fault of the key. */
		return who.administrator ? EROFS : AFS_VOL_BAD_ACCESS;
	}
}

int32_t fsd_vol_serve(rxw_call *call, void *service)
{
	struct fsd_service *ours = service;
	struct vol_call vol = {.service = ours};
	struct AFSVol_service served = {.base = {.context = &vol, .enter = enter_vol_call},
					.handlers = &handlers};
	int32_t code = AFSVolExecuteRequest(call, &served);

	fsd_permit_return(&ours->lists, call);
	return end_vol_record(&vol, code);
}
