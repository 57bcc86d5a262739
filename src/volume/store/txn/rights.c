/* SPDX-License-Identifier: BSD-2-Clause */
/* Rights of callers, and statuses. */
#include "volume/store/txn/rights.h"

#include <assert.h>
#include <errno.h>

#define SET_ID 06000u

uint32_t rights_on(const struct store_acl *acl, const struct store_caller *caller)
{
	uint32_t rights = store_acl_rights(acl, caller);

	return caller->administrator ? rights | STORE_LOOKUP : rights;
}

struct granted rights_granted(const struct store_acl *acl, const struct store_caller *caller)
{
	return (struct granted){.caller = rights_on(acl, caller),
				.anonymous = store_acl_anonymous(acl, caller)};
}

static bool has_right(const struct subject *subject, uint32_t right)
{
	uint32_t rights = subject->granted ? subject->granted->caller
					   : rights_on(subject->acl, subject->caller);

	assert(subject->granted || subject->acl);
	return rights & right;
}

static bool owns_object(const struct subject *subject)
{
	return subject->version->v.owner == subject->caller->id;
}

/* The members of a group own its volumes. No caller owns a volume of system:anyuser. */
static bool owns_volume(const struct subject *subject)
{
	const struct store_caller *caller = subject->caller;
	int32_t owner = subject->volume_owner;

	if (owner >= 0 || owner == STORE_ANYUSER)
		return owner == caller->id && caller->id != STORE_ANONYMOUS;
	for (size_t i = 0; i < caller->id_count; i++)
		if (caller->ids[i] == owner)
			return true;
	return false;
}

static int deny_unless(bool allowed)
{
	return allowed ? 0 : -EACCES;
}

/* The rights with which a caller may read a file. */
static bool may_read_file(const struct subject *subject)
{
	return has_right(subject, STORE_READ) ||
	       (owns_object(subject) && has_right(subject, STORE_INSERT) &&
		subject->caller->id != STORE_ANONYMOUS);
}

int rights_status(const struct subject *subject)
{
	bool administrator = subject->caller->administrator;

	switch (subject->version->v.kind) {
	case STORE_DIR:
		return 0;
	case STORE_SYMLINK:
		return deny_unless(administrator || has_right(subject, STORE_LOOKUP) ||
				   owns_volume(subject));
	default:
		return deny_unless(administrator || may_read_file(subject));
	}
}

int rights_acl(const struct subject *subject)
{
	if (subject->version->v.kind != STORE_DIR)
		return rights_status(subject);
	return deny_unless(subject->caller->administrator || has_right(subject, STORE_LOOKUP) ||
			   owns_volume(subject));
}

int rights_read(const struct subject *subject)
{
	if (subject->version->v.kind != STORE_FILE)
		return deny_unless(has_right(subject, STORE_LOOKUP) || owns_volume(subject));
	return deny_unless(may_read_file(subject) &&
			   (owns_object(subject) || subject->caller->administrator ||
			    subject->version->v.mode & 0500));
}

int rights_write(const struct subject *subject)
{
	return deny_unless((owns_object(subject) && has_right(subject, STORE_INSERT)) ||
			   (has_right(subject, STORE_WRITE) &&
			    (subject->caller->administrator || subject->version->v.mode & 0200)));
}

int rights_set_status(const struct subject *subject)
{
	if (subject->caller->administrator)
		return 0;
	switch (subject->version->v.kind) {
	case STORE_DIR:
		return deny_unless(has_right(subject, STORE_DELETE | STORE_INSERT));
	case STORE_SYMLINK:
		return deny_unless(has_right(subject, STORE_WRITE));
	default:
		return deny_unless((owns_object(subject) && has_right(subject, STORE_INSERT)) ||
				   has_right(subject, STORE_WRITE));
	}
}

int rights_set_acl(const struct subject *subject)
{
	return deny_unless(subject->caller->administrator || has_right(subject, STORE_ADMIN) ||
			   owns_volume(subject));
}

/* The owner of a file may set set-ID bits, which are dropped; other callers are refused. */
static bool may_set_id_bits(const struct subject *subject)
{
	return subject->version->v.kind == STORE_FILE && owns_object(subject) &&
	       has_right(subject, STORE_INSERT);
}

int rights_set(const struct subject *subject, const struct store_set *set)
{
	const struct vnode *v = &subject->version->v;

	if (set->mask & STORE_SET_MODE && v->kind == STORE_SYMLINK)
		return -EINVAL;
	if (subject->caller->administrator)
		return 0;
	if ((set->mask & STORE_SET_OWNER && set->owner != v->owner) ||
	    (set->mask & STORE_SET_GROUP && set->group != v->group))
		return -EPERM;
	if (set->mask & STORE_SET_MODE && set->mode & SET_ID && !may_set_id_bits(subject))
		return -EACCES;
	return 0;
}

void rights_apply(const struct subject *subject, const struct store_set *set, struct vnode *v)
{
	bool administrator = subject->caller->administrator;

	if (set->mask & STORE_SET_OWNER) {
		v->owner = set->owner;
		if (!administrator)
			v->mode &= (uint16_t)~SET_ID;
	}
	if (set->mask & STORE_SET_GROUP)
		v->group = set->group;
	if (set->mask & STORE_SET_MODE)
		v->mode = (uint16_t)(set->mode & (administrator ? 07777u : 0777u));
}

void rights_fill_status(const struct subject *subject, const struct store_fid *fid,
			struct store_status *status)
{
	const struct vnode *v = &subject->version->v;
	struct granted granted = subject->granted ? *subject->granted
						  : rights_granted(subject->acl, subject->caller);

	*status = (struct store_status){.fid = *fid,
					.kind = (enum store_kind)v->kind,
					.links = v->links,
					.length = v->length,
					.version = v->version,
					.pieces = subject->version->v.slots,
					.author = v->author,
					.owner = v->owner,
					.group = v->group,
					.mode = v->mode,
					.parent = v->parent,
					.parent_unique = v->parent_unique,
					.client_mtime = v->client_mtime,
					.server_mtime = v->server_mtime,
					.rights = granted.caller,
					.anonymous = granted.anonymous};
	if (v->kind == STORE_DIR) {
		status->parent = fid->vnode;
		status->parent_unique = fid->unique;
		return;
	}
	status->rights &= ~STORE_ADMIN;
	status->anonymous &= ~STORE_ADMIN;
	if (owns_object(subject))
		status->rights |= STORE_ADMIN;
}
