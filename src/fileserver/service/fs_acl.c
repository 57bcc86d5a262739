/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: ACLs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define QUIET_NS (60ull * NS_PER_S)

/* -- names of users and groups -- */

static bool id_of(void *arg, const char *name, int32_t *id)
{
	const struct prot_view *view = prot_view_get(arg);
	const struct prot_entry *entry = prot_by_name(view, name);

	if (entry)
		*id = entry->id;
	prot_view_put(view);
	return entry != NULL;
}

static bool find_person_name(void *arg, int32_t id, char name[FSD_PERSON_MAX + 1])
{
	const struct prot_view *view = prot_view_get(arg);
	const struct prot_entry *entry = prot_by_id(view, id);

	if (entry)
		snprintf(name, FSD_PERSON_MAX + 1, "%s", entry->name);
	prot_view_put(view);
	return entry != NULL;
}

/* `prot` may be NULL. */
static struct fsd_names names_of(struct prot *prot)
{
	if (!prot)
		return (struct fsd_names){0};
	return (struct fsd_names){.id_of = id_of, .name_of = find_person_name, .arg = prot};
}

/* -- calls -- */

int32_t fs_fetch_acl(void *context, rxw_call *rx, const AFSFid *fid, AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	const struct fsd_names names = names_of(call->service->prot);
	char text[FSD_ACL_TEXT_MAX];
	struct store_status status;
	struct store_acl its;
	struct fs_place place;
	int rc = fs_find(call, fid, &place);

	(void)rx;
	fs_note(call, fid, NULL);
	if (!rc)
		rc = place.store->ops->acl(place.store, &call->self, &place.fid, &its, &status);
	if (!fs_settled(call, fid))
		rc = AFS_VBUSY;
	if (rc)
		return rc;
	rc = fsd_acl_print(&its, &names, text);
	if (rc < 0)
		return rc;
	acl->val = malloc((size_t)rc);
	if (!acl->val)
		return AFS_VBUSY;
	memcpy(acl->val, text, (size_t)rc);
	acl->len = (uint32_t)rc;
	fs_fill(call, &status, st);
	fs_sync(call, sync);
	return 0;
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

int32_t fs_store_acl(void *context, rxw_call *rx, const AFSFid *dir, const AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	const struct fsd_names names = names_of(call->service->prot);
	struct store_changes changes = {0};
	struct store_status status;
	struct store_acl its;
	struct fs_place place;
	int rc = fs_find_to_write(call, dir, &place);

	(void)rx;
	fs_note(call, dir, NULL);
	if (rc)
		goto out;
	rc = fsd_acl_parse(acl->val, acl->len, &names, &its)
		?: check_length(&its, &names)
		?: check_anonymous(call, dir, &its)
		?: place.store->ops->set_acl(place.store, &call->self, &place.fid, &its, &status,
					     &changes);
out:
	rc = fs_finish(call, rc, &changes);
	if (rc)
		return rc;
	fs_fill(call, &status, st);
	fs_sync(call, sync);
	return 0;
}
