/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that change objects of a volume: names, status, access lists, locks; and access lists as text. */
#ifndef AFS_CLIENT_CHANGE_H
#define AFS_CLIENT_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "afs/client/client.h"
#include "afs/rights.h"

/*
 * Each function is one blocking call to the file server, within the client's time limit. `what`
 * names the object in errors. 0, or -1 and *error. None of them repeats a call; after an error that
 * afs_error_unknown() accepts the server may have made the change.
 *
 * Names have 1 to AFSNAMEMAX bytes and no '/'. `how` has the mode and the time of a new object.
 */

/* Whether the server may have carried out a call that failed so: its answer is missing. */
bool afs_error_unknown(const struct afs_error *error);

/* CreateFile: an empty file; -1 with EEXIST if the name exists. */
int afs_client_create(struct afs_client *client, const AFSFid *dir, const char *name,
		      const AFSStoreStatus *how, const char *what, struct afs_object *made,
		      struct afs_error *error);
/* MakeDir: an empty directory, with the access list of its parent. */
int afs_client_mkdir(struct afs_client *client, const AFSFid *dir, const char *name,
		     const AFSStoreStatus *how, const char *what, struct afs_object *made,
		     struct afs_error *error);
/* Symlink: `text` has 1 to AFSPATHMAX bytes. A mode without x bits makes it a mount point. */
int afs_client_symlink(struct afs_client *client, const AFSFid *dir, const char *name,
		       const char *text, const AFSStoreStatus *how, const char *what,
		       struct afs_object *made, struct afs_error *error);
/* RemoveDir of an empty directory, or RemoveFile of a file or a symbolic link. */
int afs_client_remove(struct afs_client *client, const AFSFid *dir, const char *name,
		      bool directory, const char *what, struct afs_error *error);
/* Rename within a volume; replaces an existing object of the same kind. */
int afs_client_rename(struct afs_client *client, const AFSFid *old_dir, const char *old_name,
		      const AFSFid *new_dir, const char *new_name, const char *what,
		      struct afs_error *error);
/* StoreStatus: the members of `how` that its Mask selects. */
int afs_client_set_status(struct afs_client *client, const AFSFid *fid, const AFSStoreStatus *how,
			  const char *what, AFSFetchStatus *status, struct afs_error *error);

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
