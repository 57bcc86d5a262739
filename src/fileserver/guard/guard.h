/* SPDX-License-Identifier: BSD-2-Clause */
/* Access control: the protection that calls need, the caller's identity, what it may see, and texts of access lists. */
#ifndef FILESERVER_GUARD_H
#define FILESERVER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

#include "program/auth.h"
#include "volume/interface.h"

enum fsd_service_kind {
	FSD_FS,
	FSD_VL,
	FSD_VOL,
	FSD_SERVICES
};

/* Options of the command line; see rxfsd(8). */
struct fsd_guard_options {
	const char *keytab; /* keys of the service; NULL: every caller is anonymous */
	const char *cell;   /* keys of this cell in a keytab are used */
	const char *realm;  /* "afs" in this realm is the service itself */
	bool single_des;
	const char *const *require; /* "[fs:|vl:|vol:]none|clear|auth|crypt" */
	size_t require_count;
	const char *const *allow; /* "WHO PATTERN..." */
	size_t allow_count;
	const char *const *administrators; /* "user@REALM" */
	size_t administrator_count;
	/* Further ones: whether an authenticated identity is one. May be NULL. */
	bool (*superuser)(void *arg, const struct rxw_identity *identity);
	void *superuser_arg;
	/* Address. Anonymous calls from other machines need an explicit --require. */
	const char *listen;
};

/*
 * Constant, except for the keys, which have their own lock, and the table of logged identities. Any
 * thread.
 */
struct fsd_guard;

/* 0, or -1 with one line in message[FSD_MESSAGE_MAX] that names the remedy. */
int fsd_guard_open(const struct fsd_guard_options *options, struct fsd_guard **guard,
		   char *message);
/* The endpoints must have been destroyed. NULL is allowed. */
void fsd_guard_close(struct fsd_guard *guard);

/*
 * The classes that a service offers: all of them, whatever is required. They live as long as the
 * guard.
 */
rxw_security *const *fsd_guard_classes(const struct fsd_guard *guard, enum fsd_service_kind service,
				       size_t *count);

/*
 * Offer the negotiation service of rxgk, if the keytab has its key. 0 or a result of the library.
 */
int fsd_guard_offer(const struct fsd_guard *guard, rxw_endpoint *endpoint);

/*
 * A class for calls to other servers of the cell, which know this one as the service itself by the newest key; the caller has a
 * reference. NULL: there is no key for rxkad. Any thread.
 */
rxw_security *fsd_guard_as_service(const struct fsd_guard *guard, uint8_t level);

/* Whether callers must be identified: there are keys or rules. */
bool fsd_guard_asks(const struct fsd_guard *guard);

/* Whether a service refuses anonymous callers; false if guard is NULL. */
bool fsd_guard_protects(const struct fsd_guard *guard, enum fsd_service_kind service);

/* Whether only this machine can call: `listen` is a loopback address. */
bool fsd_guard_near(const struct fsd_guard *guard);

/* Log the versions and types of the keys that are loaded; nothing without a key file. */
void fsd_guard_log_keys(const struct fsd_guard *guard);

/* Tickets that named a key that was not loaded. 0 if guard is NULL. */
uint64_t fsd_guard_tickets_refused(const struct fsd_guard *guard);

/* Read the keys again and log the result. 0, or -1: the old ones stay in use. */
int fsd_guard_reload(struct fsd_guard *guard);

/* The minimal protection of calls of a service: "none", "clear", "auth" or "crypt". */
const char *fsd_guard_level(const struct fsd_guard *guard, enum fsd_service_kind service);

/* The caller; valid as long as the call. All zeros: anonymous, and not refused. */
struct fsd_who {
	bool refused;	    /* less protected than the service requires */
	int32_t weak;	    /* the code for the client if only the level is too low; else 0 */
	bool administrator; /* or the service itself: sees everything */
	bool below; /* less protected than the service requires of others; an administrator may only ask */
	bool authenticated;
	const char *name; /* "user@REALM", NULL */
};

/*
 * Identify the caller and check the protection of the call. The first call of an identity is
 * logged. Administrators may read locations and volumes at any level, because OpenAFS's -localauth
 * uses level clear.
 */
void fsd_guard_enter(struct fsd_guard *guard, enum fsd_service_kind service, const rxw_call *call,
		     struct fsd_who *who);

/* The part of a path that a caller may see. */
enum fsd_sight {
	FSD_SIGHT_NONE, /* 0: nothing */
	FSD_SIGHT_WAY,	/* a directory on the way to what a pattern names, not all that is in it */
	FSD_SIGHT_ALL	/* the path and what is below it */
};

/*
 * What a caller may see of a path of the export ("" is the root). Without a guard or rules every
 * caller that is not refused sees everything. A pattern grants what it names, everything below
 * that, and the directories on the way.
 */
enum fsd_sight fsd_guard_may(const struct fsd_guard *guard, const struct fsd_who *who,
			     const char *path);

/* -- acl.c: the text of access lists as clients send and get it. No state, any thread. -- */

#define FSD_ACL_TEXT_MAX 1024 /* bytes of a text, its NUL included */
#define FSD_PERSON_MAX	 63   /* bytes of the name of a user or group */

/* Names of users and groups. Both functions may be NULL: then only the predefined ones are known. */
struct fsd_names {
	bool (*id_of)(void *arg, const char *name, int32_t *id);
	bool (*name_of)(void *arg, int32_t id, char name[FSD_PERSON_MAX + 1]);
	void *arg;
};

/*
 * Parse "P\nN\n" and P + N lines "NAME TAB RIGHTS\n", the last byte of `length` being a NUL. A name
 * may also be an id. Text behind the last counted line is ignored. Entries with one id are joined.
 * 0 or -EINVAL: syntax, more than STORE_ACL_MAX lines, a name that is unknown or "anonymous".
 */
int fsd_acl_parse(const char *text, size_t length, const struct fsd_names *names,
		  struct store_acl *acl);

/*
 * The text of an ACL. Ids without a name are printed as numbers. Returns its bytes with the NUL, or
 * -E2BIG.
 */
int fsd_acl_print(const struct store_acl *acl, const struct fsd_names *names,
		  char text[FSD_ACL_TEXT_MAX]);

/* Whether these rights allow to change something. */
bool fsd_acl_is_writing(uint32_t rights);
/* Whether it lets callers without an identity change something, wherever they are. */
bool fsd_acl_lets_anyone_write(const struct store_acl *acl);

#endif
