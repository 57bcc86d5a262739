/* SPDX-License-Identifier: BSD-2-Clause */
/* Access lists as text, as FetchACL gives them and StoreACL takes them. */
#ifndef AFS_ACL_H
#define AFS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "afs/rights.h"

#define AFS_ACL_ENTRIES 20  /* of both lists together */
#define AFS_ACL_NAME	128 /* bytes of a name, with its NUL */

struct afs_acl {
	struct afs_acl_entry {
		char name[AFS_ACL_NAME];
		uint32_t rights; /* enum afs_right, and 0x01000000… for the letters A to H */
		bool negative;	 /* takes these rights away */
	} entry[AFS_ACL_ENTRIES];
	unsigned count;
};

/* Reads the text of FetchACL. 0, or -1: it is malformed or has too many entries. */
int afs_acl_parse(const char *text, struct afs_acl *acl);
/* The text for StoreACL, positive entries first. 0, or -1: it would be longer than `size` - 1. */
int afs_acl_text(const struct afs_acl *acl, char *text, size_t size);

/*
 * Set the rights of a name in one of the two lists; 0 removes it. 0, or -1: the list is full, or the
 * name is empty, too long, or has control characters or blanks.
 */
int afs_acl_set(struct afs_acl *acl, const char *name, bool negative, uint32_t rights);

#endif
