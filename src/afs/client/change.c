/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that change objects of a volume, one function for each. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afs/client/change.h"
#include "afs/client/private.h"

bool afs_error_unknown(const struct afs_error *error)
{
	/* The call never began, or an answer was read and refused. */
	if (error->result != 0 || error->code == 0)
		return false;
	if (error->origin != RXW_ORIGIN_PEER)
		return true;
	/* A server that starts or stops also refuses the rest of calls that the one before it has served. */
	return error->code < 0 && error->code >= RXW_RESTARTING;
}

/* Begins a call to the file server in use. NULL and *error if that cannot be. */
static rxw_call *begin_file_server_call(struct afs_client *client, const char *what,
					struct afs_error *error)
{
	rxw_call *call;

	if (afs_begin(client, client->fs, what, client->limit_ms, &call, error) < 0)
		return NULL;
	return call;
}

/* Ends a call that made an object, and checks the status that came with it. 0, or -1 and *error. */
static int end_creation(struct afs_client *client, rxw_call *call, const char *what, int32_t code,
			const AFSCallBack *callback, const struct afs_object *made,
			struct afs_error *error)
{
	if (afs_end(client, call, what, code, error) < 0)
		return -1;
	if (callback)
		afs_server_promised(client, &made->fid, callback);
	if (made->fid.Vnode && afs_status_usable(&made->status))
		return 0;
	afs_error_text(error, "%s: malformed answer of the server", what);
	return -1;
}

int afs_client_create(struct afs_client *client, const AFSFid *dir, const char *name,
		      const AFSStoreStatus *how, const char *what, struct afs_object *made,
		      struct afs_error *error)
{
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSFetchStatus dir_status;
	AFSCallBack callback;
	AFSVolSync sync;
	int32_t code;

	if (!call)
		return -1;
	code = StartRXAFS_CreateFile(call, dir, name, how)
		       ?: EndRXAFS_CreateFile(call, &made->fid, &made->status, &dir_status,
					      &callback, &sync);
	return end_creation(client, call, what, code, &callback, made, error);
}

int afs_client_mkdir(struct afs_client *client, const AFSFid *dir, const char *name,
		     const AFSStoreStatus *how, const char *what, struct afs_object *made,
		     struct afs_error *error)
{
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSFetchStatus dir_status;
	AFSCallBack callback;
	AFSVolSync sync;
	int32_t code;

	if (!call)
		return -1;
	code = StartRXAFS_MakeDir(call, dir, name, how)
		       ?: EndRXAFS_MakeDir(call, &made->fid, &made->status, &dir_status, &callback,
					   &sync);
	return end_creation(client, call, what, code, &callback, made, error);
}

int afs_client_symlink(struct afs_client *client, const AFSFid *dir, const char *name,
		       const char *text, const AFSStoreStatus *how, const char *what,
		       struct afs_object *made, struct afs_error *error)
{
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSFetchStatus dir_status;
	AFSVolSync sync;
	int32_t code;

	if (!call)
		return -1;
	code = StartRXAFS_Symlink(call, dir, name, text, how)
		       ?: EndRXAFS_Symlink(call, &made->fid, &made->status, &dir_status, &sync);
	return end_creation(client, call, what, code, NULL, made, error);
}

int afs_client_link(struct afs_client *client, const AFSFid *dir, const char *name,
		    const AFSFid *existing, const char *what, struct afs_error *error)
{
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSFetchStatus status, dir_status;
	AFSVolSync sync;

	if (!call)
		return -1;
	return afs_end(client, call, what,
		       StartRXAFS_Link(call, dir, name, existing)
			       ?: EndRXAFS_Link(call, &status, &dir_status, &sync),
		       error);
}

int afs_client_remove(struct afs_client *client, const AFSFid *dir, const char *name,
		      bool directory, const char *what, struct afs_error *error)
{
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSFetchStatus dir_status;
	AFSVolSync sync;
	int32_t code;

	if (!call)
		return -1;
	if (directory)
		code = StartRXAFS_RemoveDir(call, dir, name)
			       ?: EndRXAFS_RemoveDir(call, &dir_status, &sync);
	else
		code = StartRXAFS_RemoveFile(call, dir, name)
			       ?: EndRXAFS_RemoveFile(call, &dir_status, &sync);
	return afs_end(client, call, what, code, error);
}

int afs_client_rename(struct afs_client *client, const AFSFid *old_dir, const char *old_name,
		      const AFSFid *new_dir, const char *new_name, const char *what,
		      struct afs_error *error)
{
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSFetchStatus old_status, new_status;
	AFSVolSync sync;

	if (!call)
		return -1;
	return afs_end(client, call, what,
		       StartRXAFS_Rename(call, old_dir, old_name, new_dir, new_name)
			       ?: EndRXAFS_Rename(call, &old_status, &new_status, &sync),
		       error);
}

int afs_client_set_status(struct afs_client *client, const AFSFid *fid, const AFSStoreStatus *how,
			  const char *what, AFSFetchStatus *status, struct afs_error *error)
{
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSVolSync sync;
	int32_t code;

	if (!call)
		return -1;
	code = StartRXAFS_StoreStatus(call, fid, how) ?: EndRXAFS_StoreStatus(call, status, &sync);
	if (afs_end(client, call, what, code, error) < 0)
		return -1;
	if (afs_status_usable(status))
		return 0;
	afs_error_text(error, "%s: malformed status from the server", what);
	return -1;
}

int afs_client_get_acl(struct afs_client *client, const AFSFid *fid, const char *what,
		       char text[AFSOPAQUEMAX + 1], struct afs_error *error)
{
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSOpaque acl = {0};
	AFSFetchStatus status;
	AFSVolSync sync;
	int rc;

	if (!call)
		return -1;
	rc = afs_end(client, call, what,
		     StartRXAFS_FetchACL(call, fid)
			     ?: EndRXAFS_FetchACL(call, &acl, &status, &sync),
		     error);
	if (rc == 0) {
		/* The decoder has checked the length. */
		assert(acl.len <= AFSOPAQUEMAX);
		if (acl.len)
			memcpy(text, acl.val, acl.len);
		text[acl.len] = 0;
	}
	xdrfree_AFSOpaque(&acl);
	return rc;
}

int afs_client_set_acl(struct afs_client *client, const AFSFid *fid, const char *what,
		       const char *text, struct afs_error *error)
{
	/* The stub only reads it. The NUL belongs to the text. */
	const AFSOpaque acl = {.len = (uint32_t)strlen(text) + 1, .val = (void *)text};
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSFetchStatus status;
	AFSVolSync sync;

	if (!call)
		return -1;
	/* The old number of the call, which all servers know. */
	return afs_end(client, call, what,
		       StartRXAFS_OldStoreACL(call, fid, &acl)
			       ?: EndRXAFS_OldStoreACL(call, &status, &sync),
		       error);
}

int afs_client_lock(struct afs_client *client, const AFSFid *fid, enum afs_lock kind,
		    const char *what, struct afs_error *error)
{
	rxw_call *call = begin_file_server_call(client, what, error);
	AFSVolSync sync;
	int32_t code;

	if (!call)
		return -1;
	switch (kind) {
	case AFS_LOCK_EXTEND:
		code = StartRXAFS_ExtendLock(call, fid) ?: EndRXAFS_ExtendLock(call, &sync);
		break;
	case AFS_LOCK_RELEASE:
		code = StartRXAFS_ReleaseLock(call, fid) ?: EndRXAFS_ReleaseLock(call, &sync);
		break;
	default:
		code = StartRXAFS_SetLock(call, fid, (ViceLockType)kind)
			       ?: EndRXAFS_SetLock(call, &sync);
	}
	return afs_end(client, call, what, code, error);
}
