/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes that a caller of the protection service asks for: made if its rights permit them, which are judged in the same transaction.
 * The rules are those of AFS. An administrator may do all that follows. Another user may change groups that it owns, or whose owner is
 * a group in which it is; and may make as many groups as its quota permits. A group made by it is named after its owner, as in
 * "alice:friends".
 */
#ifndef PROTECTION_REQUEST_H
#define PROTECTION_REQUEST_H

#include "protection/protection.h"

/* Results beside those of enum prot_code. */
enum prot_request_code {
	PROT_REFUSED = -13, /* the caller has no right to do this */
	PROT_NO_MORE = -14  /* it has made as many groups as it may */
};

struct prot_actor {
	int32_t id;	    /* PROT_ANONYMOUS may change nothing */
	bool administrator; /* for other reasons than its groups */
};

/*
 * A user or a group. id 0: the next one; another one only for administrators. owner 0: the caller. Only administrators make users, and
 * names without an owner.
 */
int prot_request_new(struct prot *prot, const struct prot_actor *actor, const char *name,
		     bool group, int32_t id, int32_t owner, int32_t *given, char *message);
/* Also by members or by anyone, if the access flags of the group say so. */
int prot_request_member(struct prot *prot, const struct prot_actor *actor, int32_t group,
			int32_t member, bool add, char *message);
/* Only administrators remove users. The creator of a group may make another one. */
int prot_request_remove(struct prot *prot, const struct prot_actor *actor, int32_t id,
			char *message);
/* Only administrators rename users. */
int prot_request_rename(struct prot *prot, const struct prot_actor *actor, int32_t id,
			const char *name, char *message);
/* A name with an owner's name gets that of the new one. */
int prot_request_chown(struct prot *prot, const struct prot_actor *actor, int32_t group,
		       int32_t owner, char *message);
/* `access` and `quota` may be NULL: it stays. Users set the flags of their own entries. Only administrators set quotas. */
int prot_request_fields(struct prot *prot, const struct prot_actor *actor, int32_t id,
			const uint32_t *access, const int32_t *quota, char *message);
/* The last ids; only for administrators. PROT_BAD_ID: ids up to there would be given out again. */
int prot_request_last(struct prot *prot, const struct prot_actor *actor, int32_t id, bool group,
		      char *message);

#endif
