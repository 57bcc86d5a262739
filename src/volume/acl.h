/* SPDX-License-Identifier: BSD-2-Clause */
/* Rights, access control lists and callers (afs-fileserver 7.3). */
#ifndef VOLUME_ACL_H
#define VOLUME_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_ACL_MAX 20 /* entries of both signs */

#define STORE_READ   1u
#define STORE_WRITE  2u
#define STORE_INSERT 4u
#define STORE_LOOKUP 8u
#define STORE_DELETE 16u
#define STORE_LOCK   32u
#define STORE_ADMIN  64u
#define STORE_ALL    127u
/* The rights that allow changes. */
#define STORE_CHANGING	     (STORE_WRITE | STORE_INSERT | STORE_DELETE | STORE_LOCK | STORE_ADMIN)

#define STORE_ANONYMOUS	     32766
#define STORE_ANYUSER	     (-101)
#define STORE_AUTHUSER	     (-102)
#define STORE_ADMINISTRATORS (-204)

/* Positive entries first, each sign in ascending order of ids; an id once in each sign. */
struct store_acl {
	uint8_t positive, negative; /* numbers of entries */
	struct store_ace {
		int32_t id;
		uint32_t rights;
	} entry[STORE_ACL_MAX];
};

struct store_changes;
struct store_later;

/* The identity of a caller. Owned by the caller of a function, and constant while it runs. */
struct store_caller {
	int32_t id;	     /* STORE_ANONYMOUS without an identity */
	const int32_t *ids;  /* all ids that entries of an ACL are compared with, ascending */
	size_t id_count;
	/*
	 * The same of the machine that it calls from. Rights that the list gives to these ids are
	 * added. A negative entry takes rights from the caller or from the machine, whichever has
	 * its id.
	 */
	const int32_t *host_ids;
	size_t host_id_count;
	uint32_t
		withheld; /* rights that no list gives to callers without an identity, but to their machines */
	bool administrator;
	bool unrestricted; /* administers the store: has all rights, also off-line */
	const void *who; /* for the rules of an exported directory; may be NULL */
	/*
	 * An operation of this caller is committed, and others will see what it changed once this
	 * returns. Called by any thread, while that of the operation waits or after it got STORE_LATER;
	 * must not take long. NULL: no function is called. The arguments are those that the operation
	 * will return.
	 */
	void (*changed)(void *arg, const struct store_changes *changes);
	void *changed_arg;
	/* Operations may leave it to others to wait for their commit (interface.h). NULL: they wait. */
	struct store_later *later;
};

/* The rights that an ACL gives to a caller: positive entries less negative ones. */
uint32_t store_acl_rights(const struct store_acl *acl, const struct store_caller *caller);
/* The rights of every caller on the caller's machine. */
uint32_t store_acl_anonymous(const struct store_acl *acl, const struct store_caller *caller);
/* Add rights to an entry, which is made if it is missing. 0 or -E2BIG. */
int store_acl_add(struct store_acl *acl, bool negative, int32_t id, uint32_t rights);

#endif
