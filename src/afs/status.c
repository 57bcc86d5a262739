/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoding of object and volume status. */
#include "afs/status.h"

#include <string.h>

bool afs_status_put(struct rxw_xdr *x, const struct afs_status *s)
{
	rxw_xdr_put_u32(x, s->interface_version);
	rxw_xdr_put_u32(x, s->type);
	rxw_xdr_put_u32(x, s->links);
	rxw_xdr_put_u32(x, (uint32_t)s->length);
	rxw_xdr_put_u32(x, (uint32_t)s->data_version);
	rxw_xdr_put_u32(x, s->author);
	rxw_xdr_put_u32(x, s->owner);
	rxw_xdr_put_u32(x, s->caller_access);
	rxw_xdr_put_u32(x, s->anonymous_access);
	rxw_xdr_put_u32(x, s->mode);
	rxw_xdr_put_u32(x, s->parent_vnode);
	rxw_xdr_put_u32(x, s->parent_unique);
	rxw_xdr_put_u32(x, s->residency);
	rxw_xdr_put_u32(x, s->client_mtime);
	rxw_xdr_put_u32(x, s->server_mtime);
	rxw_xdr_put_u32(x, s->group);
	rxw_xdr_put_u32(x, s->sync_counter);
	rxw_xdr_put_u32(x, (uint32_t)(s->data_version >> 32));
	rxw_xdr_put_u32(x, (uint32_t)s->lock_count);
	rxw_xdr_put_u32(x, (uint32_t)(s->length >> 32));
	return rxw_xdr_put_u32(x, (uint32_t)s->error);
}

bool afs_status_get(struct rxw_xdr *x, struct afs_status *s)
{
	uint32_t length = 0, length_hi = 0, version = 0, version_hi = 0;

	memset(s, 0, sizeof(*s));
	rxw_xdr_get_u32(x, &s->interface_version);
	rxw_xdr_get_u32(x, &s->type);
	rxw_xdr_get_u32(x, &s->links);
	rxw_xdr_get_u32(x, &length);
	rxw_xdr_get_u32(x, &version);
	rxw_xdr_get_u32(x, &s->author);
	rxw_xdr_get_u32(x, &s->owner);
	rxw_xdr_get_u32(x, &s->caller_access);
	rxw_xdr_get_u32(x, &s->anonymous_access);
	rxw_xdr_get_u32(x, &s->mode);
	rxw_xdr_get_u32(x, &s->parent_vnode);
	rxw_xdr_get_u32(x, &s->parent_unique);
	rxw_xdr_get_u32(x, &s->residency);
	rxw_xdr_get_u32(x, &s->client_mtime);
	rxw_xdr_get_u32(x, &s->server_mtime);
	rxw_xdr_get_u32(x, &s->group);
	rxw_xdr_get_u32(x, &s->sync_counter);
	rxw_xdr_get_u32(x, &version_hi);
	rxw_xdr_get_i32(x, &s->lock_count);
	rxw_xdr_get_u32(x, &length_hi);
	rxw_xdr_get_i32(x, &s->error);
	s->length = (uint64_t)length_hi << 32 | length;
	s->data_version = (uint64_t)version_hi << 32 | version;
	return rxw_xdr_ok(x);
}

bool afs_status_valid(const struct afs_status *s)
{
	return s->error == 0 && s->interface_version == 1 && s->type >= AFS_TYPE_FILE &&
	       s->type <= AFS_TYPE_SYMLINK;
}

void afs_status_failed(struct afs_status *s, int32_t code)
{
	memset(s, 0, sizeof(*s));
	s->interface_version = 1;
	s->error = code;
}

bool afs_volume_status_put(struct rxw_xdr *x, const struct afs_volume_status *s)
{
	rxw_xdr_put_u32(x, s->id);
	rxw_xdr_put_u32(x, s->parent_id);
	rxw_xdr_put_u32(x, s->online);
	rxw_xdr_put_u32(x, s->in_service);
	rxw_xdr_put_u32(x, s->blessed);
	rxw_xdr_put_u32(x, s->needs_salvage);
	rxw_xdr_put_u32(x, s->type);
	rxw_xdr_put_u32(x, (uint32_t)s->min_quota);
	rxw_xdr_put_u32(x, (uint32_t)s->max_quota);
	rxw_xdr_put_u32(x, (uint32_t)s->blocks_in_use);
	rxw_xdr_put_u32(x, (uint32_t)s->blocks_available);
	rxw_xdr_put_u32(x, (uint32_t)s->blocks_total);
	rxw_xdr_put_string(x, s->name, UINT32_MAX);
	rxw_xdr_put_u32(x, 0);
	return rxw_xdr_put_u32(x, 0);
}

bool afs_volume_status_get(struct rxw_xdr *x, struct afs_volume_status *s)
{
	const uint8_t *text;
	size_t length;

	memset(s, 0, sizeof(*s));
	rxw_xdr_get_u32(x, &s->id);
	rxw_xdr_get_u32(x, &s->parent_id);
	rxw_xdr_get_u32(x, &s->online);
	rxw_xdr_get_u32(x, &s->in_service);
	rxw_xdr_get_u32(x, &s->blessed);
	rxw_xdr_get_u32(x, &s->needs_salvage);
	rxw_xdr_get_u32(x, &s->type);
	rxw_xdr_get_i32(x, &s->min_quota);
	rxw_xdr_get_i32(x, &s->max_quota);
	rxw_xdr_get_i32(x, &s->blocks_in_use);
	rxw_xdr_get_i32(x, &s->blocks_available);
	rxw_xdr_get_i32(x, &s->blocks_total);
	rxw_xdr_copy_string(x, AFS_NAME_MAX, s->name);
	rxw_xdr_lend_bytes(x, AFS_OPAQUE_MAX, &text, &length);
	return rxw_xdr_lend_bytes(x, AFS_OPAQUE_MAX, &text, &length);
}
