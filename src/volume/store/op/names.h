/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of names: create, link, remove, rename. */
#ifndef STORE_NAMES_H
#define STORE_NAMES_H

#include "volume/interface.h"

/* As in struct store_ops. */
int names_create(struct store *store, const struct store_caller *caller,
		 const struct store_fid *dir, const char *name, enum store_kind kind,
		 const char *text, const struct store_set *set, struct store_status *status,
		 struct store_status *dir_status, struct store_changes *changes);
int names_link(struct store *store, const struct store_caller *caller, const struct store_fid *dir,
	       const char *name, const struct store_fid *existing, struct store_status *status,
	       struct store_status *dir_status, struct store_changes *changes);
int names_remove(struct store *store, const struct store_caller *caller,
		 const struct store_fid *dir, const char *name, enum store_kind kind,
		 struct store_status *dir_status, struct store_changes *changes);
int names_rename(struct store *store, const struct store_caller *caller,
		 const struct store_fid *old_dir, const char *old_name,
		 const struct store_fid *new_dir, const char *new_name,
		 struct store_status *old_status, struct store_status *new_status,
		 struct store_changes *changes);

#endif
