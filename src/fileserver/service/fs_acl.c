/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: ACLs. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define QUIET_NS (60ull * NS_PER_S)
#define ROUNDS	 (STORE_ACL_MAX + 2) /* of questions: each name may need one */

/* -- names of users and groups -- */

/* Those of one look at an ACL. */
struct acl_names {
	struct fsd_people *people; /* NULL: only the predefined ones are known */
	struct fsd_asker *asker;   /* NULL: nobody is asked */
	int result; /* -EAGAIN: a name has to be asked; -EBUSY: one cannot be known now */
};

static bool note_name(struct acl_names *names, int result)
{
	if (result == -EAGAIN || (result == -EBUSY && names->result != -EAGAIN))
		names->result = result;
	return result == 0;
}

static bool find_person_id(void *arg, const char *name, int32_t *id)
{
	struct acl_names *names = arg;

	return note_name(names, names->people->ops->id_of(names->people, name, names->asker, id));
}

static bool find_person_name(void *arg, int32_t id, char name[FSD_PERSON_MAX + 1])
{
	struct acl_names *names = arg;

	return note_name(names, names->people->ops->name_of(names->people, id, names->asker, name));
}

static struct fsd_names names_of(struct acl_names *names)
{
	if (!names->people)
		return (struct fsd_names){0};
	return (struct fsd_names){
		.id_of = find_person_id, .name_of = find_person_name, .arg = names};
}

static struct fs_call *call_of_job(struct fsd_job *job)
{
	return (struct fs_call *)(void *)((char *)job - offsetof(struct fs_call, job));
}

static struct fs_call *call_of_asker(struct fsd_asker *asker)
{
	return (struct fs_call *)(void *)((char *)asker - offsetof(struct fs_call, asker));
}

/* Somebody has to be asked for names: `ready` is called when it is time to try again. RXW_RPC_DEFERRED, or a result. */
static int ask_for_names(struct fs_call *call, void (*ready)(struct fsd_asker *asker))
{
	if (!fs_defer(call))
		return AFS_VBUSY;
	call->asker = (struct fsd_asker){.ready = ready};
	fsd_share_of_address(&call->running.peer, &call->asker.caller);
	call->rounds = 0;
	ready(&call->asker);
	return RXW_RPC_DEFERRED;
}

/* The asker of the next round. */
static struct fsd_asker *ask_again(struct fs_call *call)
{
	call->asker.final = ++call->rounds >= ROUNDS;
	fsd_asker_begin(&call->asker);
	return &call->asker;
}

/* -- calls -- */

/* -EAGAIN: names have to be asked. */
static int print_fetched_acl(struct fs_call *call, const AFSFid *fid, struct fsd_asker *asker,
			     AFSOpaque *acl, AFSFetchStatus *st)
{
	struct acl_names all = {.people = call->service->people, .asker = asker};
	const struct fsd_names names = names_of(&all);
	char text[FSD_ACL_TEXT_MAX];
	struct store_status status;
	struct store_acl its;
	struct fs_place place;
	int rc = fs_find(call, fid, &place);

	if (!rc)
		rc = place.store->ops->acl(place.store, &call->self, &place.fid, &its, &status);
	if (!fs_settled(call, fid))
		rc = AFS_VBUSY;
	if (rc)
		return rc;
	rc = fsd_acl_print(&its, &names, text);
	if (all.result == -EAGAIN)
		return -EAGAIN;
	if (rc < 0)
		return rc;
	acl->val = malloc((size_t)rc);
	if (!acl->val)
		return AFS_VBUSY;
	memcpy(acl->val, text, (size_t)rc);
	acl->len = (uint32_t)rc;
	fs_fill(call, &status, st);
	return 0;
}

static void print_fetched_acl_again(struct fsd_job *job)
{
	struct fs_call *call = call_of_job(job);
	AFSOpaque acl = {0};
	AFSFetchStatus st = {0};
	AFSVolSync sync = {0};
	int rc = print_fetched_acl(call, &call->acl_fid, ask_again(call), &acl, &st);
	int32_t code;

	if (rc == -EAGAIN) {
		fsd_asker_end(&call->asker);
		return;
	}
	code = fs_code(call, rc);
	fs_sync(call, &sync);
	fs_audit(call, code);
	code = RXAFS_FetchACL_reply(call->rx, code, &acl, &st, &sync);
	free(acl.val);
	fs_end(call, code);
}

static void names_of_acl_ready(struct fsd_asker *asker)
{
	fs_run_asked(call_of_asker(asker), print_fetched_acl_again);
}

int32_t fs_fetch_acl(void *context, rxw_call *rx, const AFSFid *fid, AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	int rc;

	(void)rx;
	fs_note(call, fid, NULL);
	rc = print_fetched_acl(call, fid, NULL, acl, st);
	if (rc == -EAGAIN) {
		call->acl_fid = *fid;
		return ask_for_names(call, names_of_acl_ready);
	}
	if (!rc)
		fs_sync(call, sync);
	return rc;
}

/* Callers without any right can cause this line: one a minute. */
static void log_refused(struct fsd_service *service, const AFSFid *dir)
{
	uint64_t now = monotonic_ns(), told = atomic_load(&service->acl_told);

	if ((told && now < told + QUIET_NS) ||
	    !atomic_compare_exchange_strong(&service->acl_told, &told, now))
		return;
	fsd_log(RXW_LOG_WARNING,
		"an ACL for %u.%u.%u that lets anonymous callers write was refused, because other "
		"machines can call this server; --allow-anonymous-writes permits it",
		(unsigned)dir->Volume, (unsigned)dir->Vnode, (unsigned)dir->Unique);
}

/* An ACL must not let callers without an identity write, unless the server was told so. */
static int check_anonymous(const struct fs_call *call, const AFSFid *dir,
			   const struct store_acl *acl)
{
	if (!call->service->no_anonymous_writes || !fsd_acl_lets_anyone_write(acl))
		return 0;
	log_refused(call->service, dir);
	return -EACCES;
}

/* The text of a client may have numbers or short forms, whose names are longer. */
static int check_length(const struct store_acl *acl, const struct fsd_names *names)
{
	char text[FSD_ACL_TEXT_MAX];
	int length = fsd_acl_print(acl, names, text);

	return length < 0 ? length : 0;
}

/* -EAGAIN: names have to be asked, and nothing was done. */
static int replace_acl(struct fs_call *call, const AFSFid *dir, const AFSOpaque *acl,
		       struct fsd_asker *asker, AFSFetchStatus *st)
{
	struct acl_names all = {.people = call->service->people, .asker = asker};
	const struct fsd_names names = names_of(&all);
	struct store_changes changes = {0};
	struct store_status status;
	struct store_acl its;
	struct fs_place place;
	int rc = fs_find_to_write(call, dir, &place);

	if (rc)
		goto out;
	rc = fsd_acl_parse(acl->val, acl->len, &names, &its) ?: check_length(&its, &names);
	if (all.result == -EAGAIN)
		return -EAGAIN;
	/* Of a name that nobody can look up now it is not known whether it exists. */
	if (rc == -EINVAL && all.result == -EBUSY)
		rc = AFS_VBUSY;
	rc = rc ?: check_anonymous(call, dir, &its)
		?: place.store->ops->set_acl(place.store, &call->self, &place.fid, &its, &status,
					     &changes);
out:
	rc = fs_finish(call, rc, &changes);
	if (!rc)
		fs_fill(call, &status, st);
	return rc;
}

static void replace_acl_again(struct fsd_job *job)
{
	struct fs_call *call = call_of_job(job);
	const AFSOpaque acl = {.val = call->acl_text, .len = (uint32_t)strlen(call->acl_text) + 1};
	AFSFetchStatus st = {0};
	AFSVolSync sync = {0};
	int rc = replace_acl(call, &call->acl_fid, &acl, ask_again(call), &st);
	int32_t code;

	if (rc == -EAGAIN) {
		fsd_asker_end(&call->asker);
		return;
	}
	code = fs_code(call, rc);
	fs_sync(call, &sync);
	fs_audit(call, code);
	code = RXAFS_StoreACL_reply(call->rx, code, &st, &sync);
	fs_end(call, code);
}

static void ids_of_acl_ready(struct fsd_asker *asker)
{
	fs_run_asked(call_of_asker(asker), replace_acl_again);
}

int32_t fs_store_acl(void *context, rxw_call *rx, const AFSFid *dir, const AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	int rc;

	(void)rx;
	fs_note(call, dir, NULL);
	rc = replace_acl(call, dir, acl, NULL, st);
	if (rc == -EAGAIN) {
		/* It was parsed: it ends with a NUL. */
		call->acl_fid = *dir;
		call->acl_text = strdup(acl->val);
		return call->acl_text ? ask_for_names(call, ids_of_acl_ready) : -ENOMEM;
	}
	if (!rc)
		fs_sync(call, sync);
	return rc;
}
