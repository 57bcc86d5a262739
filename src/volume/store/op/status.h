/* SPDX-License-Identifier: BSD-2-Clause */
/* Statuses and access lists: reading and setting. */
#ifndef STORE_STATUS_H
#define STORE_STATUS_H

#include "volume/interface.h"

/* As in struct store_ops. */
int status_get(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_status *status);
void status_get_all(struct store *store, const struct store_caller *caller,
		    const struct store_fid *fids, size_t count, struct store_status *statuses,
		    int *results);
int status_acl(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_acl *acl, struct store_status *status);
int status_set(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       const struct store_set *set, struct store_status *status,
	       struct store_changes *changes);
int status_set_acl(struct store *store, const struct store_caller *caller,
		   const struct store_fid *dir, const struct store_acl *acl,
		   struct store_status *status, struct store_changes *changes);
int status_change_acl(struct store *store, const struct store_caller *caller,
		      const struct store_fid *dir, const struct store_acl *old,
		      const struct store_acl *acl, struct store_status *status,
		      struct store_changes *changes);

#endif
