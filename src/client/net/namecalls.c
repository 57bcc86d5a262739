/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that change the names of a directory. None is repeated after a lost answer (K-094). */
#include "client/net/tries.h"

/* The object that was made, and its directory. */
static void check_made(struct cl_tries *t, rxw_code code, const struct cl_made *made)
{
	if (code == 0 && (!made->fid.Vnode || !afs_status_usable(&made->status) ||
			  !afs_status_usable(&made->dir_status)))
		cl_tries_reject(t, "the status is malformed");
}

static void check_dir_answer(struct cl_tries *t, rxw_code code, const AFSFetchStatus *status)
{
	if (code == 0 && !afs_status_usable(status))
		cl_tries_reject(t, "the status of the directory is malformed");
}

int cl_net_create_file(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		       const char *name, const AFSStoreStatus *how, struct cl_made *made,
		       struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "CreateFile", dir, CL_ONCE, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code = StartRXAFS_CreateFile(t.sent.call, dir, name, how)
					?: EndRXAFS_CreateFile(t.sent.call, &made->fid,
							       &made->status, &made->dir_status,
							       &t.stamp->callback, &t.stamp->sync);

		check_made(&t, code, made);
		cl_tries_judge(&t, code, RXAFS_FN_CreateFile);
	}
	return cl_tries_result(&t);
}

int cl_net_make_dir(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		    const char *name, const AFSStoreStatus *how, struct cl_made *made,
		    struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "MakeDir", dir, CL_ONCE, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code = StartRXAFS_MakeDir(t.sent.call, dir, name, how)
					?: EndRXAFS_MakeDir(t.sent.call, &made->fid, &made->status,
							    &made->dir_status, &t.stamp->callback,
							    &t.stamp->sync);

		check_made(&t, code, made);
		cl_tries_judge(&t, code, RXAFS_FN_MakeDir);
	}
	return cl_tries_result(&t);
}

int cl_net_make_symlink(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
			const char *name, const char *text, const AFSStoreStatus *how,
			struct cl_made *made, struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "Symlink", dir, CL_ONCE, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code = StartRXAFS_Symlink(t.sent.call, dir, name, text, how)
					?: EndRXAFS_Symlink(t.sent.call, &made->fid, &made->status,
							    &made->dir_status, &t.stamp->sync);

		check_made(&t, code, made);
		cl_tries_judge(&t, code, RXAFS_FN_Symlink);
	}
	return cl_tries_result(&t);
}

int cl_net_make_link(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		     const char *name, const AFSFid *existing, struct cl_made *made,
		     struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct cl_tries t;

	made->fid = *existing;
	cl_tries_start(&t, volume, caller, "Link", dir, CL_ONCE, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code = StartRXAFS_Link(t.sent.call, dir, name, existing)
					?: EndRXAFS_Link(t.sent.call, &made->status,
							 &made->dir_status, &t.stamp->sync);

		check_made(&t, code, made);
		cl_tries_judge(&t, code, RXAFS_FN_Link);
	}
	return cl_tries_result(&t);
}

int cl_net_remove_file(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		       const char *name, AFSFetchStatus *dir_status, struct cl_stamp *stamp,
		       struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "RemoveFile", dir, CL_ONCE, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code =
			StartRXAFS_RemoveFile(t.sent.call, dir, name)
				?: EndRXAFS_RemoveFile(t.sent.call, dir_status, &t.stamp->sync);

		check_dir_answer(&t, code, dir_status);
		cl_tries_judge(&t, code, RXAFS_FN_RemoveFile);
	}
	return cl_tries_result(&t);
}

int cl_net_remove_dir(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		      const char *name, AFSFetchStatus *dir_status, struct cl_stamp *stamp,
		      struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "RemoveDir", dir, CL_ONCE, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code =
			StartRXAFS_RemoveDir(t.sent.call, dir, name)
				?: EndRXAFS_RemoveDir(t.sent.call, dir_status, &t.stamp->sync);

		check_dir_answer(&t, code, dir_status);
		cl_tries_judge(&t, code, RXAFS_FN_RemoveDir);
	}
	return cl_tries_result(&t);
}

int cl_net_rename(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *old_dir,
		  const char *old_name, const AFSFid *new_dir, const char *new_name,
		  AFSFetchStatus *old_status, AFSFetchStatus *new_status, struct cl_stamp *stamp,
		  struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "Rename", old_dir, CL_ONCE, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code = StartRXAFS_Rename(t.sent.call, old_dir, old_name, new_dir, new_name)
					?: EndRXAFS_Rename(t.sent.call, old_status, new_status,
							   &t.stamp->sync);

		check_dir_answer(&t, code, old_status);
		check_dir_answer(&t, code, new_status);
		cl_tries_judge(&t, code, RXAFS_FN_Rename);
	}
	return cl_tries_result(&t);
}
