/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that change objects of a volume, and the text of access lists (afs-fileserver 1.8). */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/client/change.h"
#include "afs/client/private.h"

/* ---- access lists ---- */

/* A decimal number of at least `least` that ends with `end`. Moves *text behind it. 0 or -1. */
static int take_number(const char **text, long least, char end, long *value)
{
	char *rest;

	if (**text != '-' && (**text < '0' || **text > '9'))
		return -1;
	*value = strtol(*text, &rest, 10);
	if (*rest != end || *value < least || *value > UINT32_MAX)
		return -1;
	*text = rest + 1;
	return 0;
}

static int take_entry(const char **text, struct afs_acl_entry *entry)
{
	const char *tab = strchr(*text, '\t');
	size_t length = tab ? (size_t)(tab - *text) : 0;
	long rights;

	if (length == 0 || length >= sizeof(entry->name) || memchr(*text, '\n', length))
		return -1;
	memcpy(entry->name, *text, length);
	entry->name[length] = 0;
	*text = tab + 1;
	if (take_number(text, INT32_MIN, '\n', &rights) < 0)
		return -1;
	entry->rights = (uint32_t)rights;
	return 0;
}

int afs_acl_parse(const char *text, struct afs_acl *acl)
{
	long positive, negative;

	memset(acl, 0, sizeof(*acl));
	if (take_number(&text, 0, '\n', &positive) < 0 ||
	    take_number(&text, 0, '\n', &negative) < 0 || positive > AFS_ACL_ENTRIES ||
	    negative > AFS_ACL_ENTRIES - positive)
		return -1;
	for (; acl->count < (unsigned)(positive + negative); acl->count++) {
		struct afs_acl_entry *entry = &acl->entry[acl->count];

		entry->negative = acl->count >= (unsigned)positive;
		if (take_entry(&text, entry) < 0)
			return -1;
	}
	return 0;
}

/* Append to text; returns the new length, which is `size` or more if it did not fit. */
static size_t append_list(const struct afs_acl *acl, bool negative, char *text, size_t size,
			  size_t used)
{
	for (unsigned i = 0; i < acl->count && used < size; i++) {
		const struct afs_acl_entry *e = &acl->entry[i];

		if (e->negative == negative)
			used += (size_t)snprintf(text + used, size - used, "%s\t%d\n", e->name,
						 (int)e->rights);
	}
	return used;
}

int afs_acl_text(const struct afs_acl *acl, char *text, size_t size)
{
	unsigned negative = 0;
	size_t used;

	for (unsigned i = 0; i < acl->count; i++)
		negative += acl->entry[i].negative;
	used = (size_t)snprintf(text, size, "%u\n%u\n", acl->count - negative, negative);
	used = append_list(acl, false, text, size, used);
	used = append_list(acl, true, text, size, used);
	return used < size ? 0 : -1;
}

static bool good_name(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f)
			return false;
	return length > 0 && length < AFS_ACL_NAME;
}

int afs_acl_set(struct afs_acl *acl, const char *name, bool negative, uint32_t rights)
{
	unsigned at = 0;

	if (!good_name(name))
		return -1;
	while (at < acl->count &&
	       (acl->entry[at].negative != negative || strcmp(acl->entry[at].name, name) != 0))
		at++;
	if (rights == 0) {
		if (at < acl->count)
			memmove(&acl->entry[at], &acl->entry[at + 1],
				(--acl->count - at) * sizeof(acl->entry[0]));
		return 0;
	}
	if (at == AFS_ACL_ENTRIES)
		return -1;
	if (at == acl->count)
		acl->count++;
	strcpy(acl->entry[at].name, name);
	acl->entry[at].negative = negative;
	acl->entry[at].rights = rights;
	return 0;
}

/* ---- calls ---- */

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
	return afs_error_text(error, "%s: malformed answer of the server", what);
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
	return afs_error_text(error, "%s: malformed status from the server", what);
}
