/* SPDX-License-Identifier: BSD-2-Clause */
/* What is refused: everything that writes, and calls that no client needs any more. */
#include <errno.h>
#include <rxwire/error.h>

#include "fileserver/fs_private.h"

/*
 * The rest of the arguments of a writing call: 'n' name, 't' text of a link, 'q' status, 'f' FID,
 * 'a' ACL, and so on.
 */
static const char *shape(uint32_t opcode)
{
	switch (opcode) {
	case AFS_FS_STORE_DATA:
		return "q3";
	case AFS_FS_STORE_DATA64:
		return "q33";
	case AFS_FS_OLD_STORE_ACL:
	case AFS_FS_STORE_ACL:
		return "a";
	case AFS_FS_STORE_STATUS:
		return "q";
	case AFS_FS_REMOVE_FILE:
	case AFS_FS_REMOVE_DIR:
		return "n";
	case AFS_FS_CREATE_FILE:
	case AFS_FS_MAKE_DIR:
		return "nq";
	case AFS_FS_RENAME:
		return "nfn";
	case AFS_FS_SYMLINK:
		return "ntq";
	case AFS_FS_LINK:
		return "nf";
	default:
		return "";
	}
}

static bool decode(struct rxw_xdr *x, const char *items)
{
	char name[AFS_NAME_MAX + 1], text[AFS_PATH_MAX + 1];
	const uint8_t *bytes;
	size_t length;

	for (; *items; items++) {
		switch (*items) {
		case 'n':
			rxw_xdr_copy_string(x, AFS_NAME_MAX, name);
			break;
		case 't':
			rxw_xdr_copy_string(x, AFS_PATH_MAX, text);
			break;
		case 'a':
			rxw_xdr_lend_bytes(x, AFS_OPAQUE_MAX, &bytes, &length);
			break;
		case 'q':
			rxw_xdr_skip(x, 24);
			break;
		case '3':
		case 'f':
			rxw_xdr_skip(x, 12);
			break;
		}
	}
	return rxw_xdr_ok(x);
}

static bool decode_volume_status(struct rxw_xdr *x)
{
	char name[AFS_NAME_MAX + 1], text[AFS_OPAQUE_MAX + 1];

	rxw_xdr_skip(x, 12);
	rxw_xdr_copy_string(x, AFS_NAME_MAX, name);
	rxw_xdr_copy_string(x, AFS_OPAQUE_MAX, text);
	return rxw_xdr_copy_string(x, AFS_OPAQUE_MAX, text);
}

/*
 * Read-only, before names and rights are looked at; but the volume must be ours and the arguments
 * sound.
 */
int fs_refuse_write(struct fs_call *call)
{
	struct afs_fid fid = {.vnode = 1};
	bool ok;

	if (call->opcode == AFS_FS_SET_VOLUME_STATUS) {
		rxw_xdr_get_u32(&call->in, &fid.volume);
		ok = decode_volume_status(&call->in);
	} else {
		afs_fid_get(&call->in, &fid);
		ok = decode(&call->in, shape(call->opcode));
	}
	if (!ok)
		return FS_UNDECODABLE;
	if (fid.volume == 0 || fid.vnode == 0)
		return -EINVAL;
	if (fid.volume != fsd_volume_id(call->service->volume))
		return AFS_VNOVOL;
	atomic_fetch_add_explicit(&call->service->counters.refused_writes, 1, memory_order_relaxed);
	return -EROFS;
}

int fs_refuse_volume(struct fs_call *call)
{
	char name[AFS_NAME_MAX + 1];

	return rxw_xdr_copy_string(&call->in, AFS_NAME_MAX, name) ? AFS_VNOVOL : FS_UNDECODABLE;
}

int fs_refuse_invalid(struct fs_call *call)
{
	(void)call;
	return -EINVAL;
}

int fs_refuse_permission(struct fs_call *call)
{
	(void)call;
	return -EPERM;
}
