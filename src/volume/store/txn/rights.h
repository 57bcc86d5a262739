/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of rights (afs-fileserver 7.3), and the status of a version. */
#ifndef STORE_RIGHTS_H
#define STORE_RIGHTS_H

#include <stdbool.h>

#include "volume/store/db/record.h"

/* Rights that a list gives: rights_on(), and store_acl_anonymous(). */
struct granted {
	uint32_t caller, anonymous;
};

/*
 * A caller and an object: `acl` is that of the object, if it is a directory, else that of its
 * directory. `granted`: the rights of both, if they are known already; else NULL.
 */
struct subject {
	const struct store_caller *caller;
	const struct store_acl *acl;
	const struct granted *granted;
	const struct version *version;
	int32_t volume_owner;
};

/* The rights that the list gives to the caller, with what administrators always have. */
uint32_t rights_on(const struct store_acl *acl, const struct store_caller *caller);

struct granted rights_granted(const struct store_acl *acl, const struct store_caller *caller);

/* 0 or -EACCES. */
int rights_status(const struct subject *subject);
int rights_acl(const struct subject *subject);
int rights_read(const struct subject *subject);
int rights_write(const struct subject *subject);
int rights_set_status(const struct subject *subject);
int rights_set_acl(const struct subject *subject);
/* Whether the caller may set these members. 0, -EPERM, -EACCES, -EINVAL. */
int rights_set(const struct subject *subject, const struct store_set *set);
/* Set them. `mtime` is not touched. */
void rights_apply(const struct subject *subject, const struct store_set *set, struct vnode *v);

void rights_fill_status(const struct subject *subject, const struct store_fid *fid,
			struct store_status *status);

#endif
