/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may call, how protected calls must be, and who may see what of the export. */
#ifndef FILESERVER_GUARD_H
#define FILESERVER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

#include "tools/common/auth.h"

enum fsd_service_kind {
	FSD_FS,
	FSD_VL,
	FSD_VOL,
	FSD_SERVICES
};

/* What the command line says; see rxfsd(8). */
struct fsd_guard_options {
	const char *keytab; /* keys of the service; NULL: nobody can say who he is */
	const char *cell,
		*realm; /* whose keys of a keytab, and a realm whose "afs" is the service itself */
	bool single_des;
	const char *const *require; /* "[fs:|vl:|vol:]none|clear|auth|crypt" */
	size_t require_count;
	const char *const *allow; /* "WHO PATTERN..." */
	size_t allow_count;
	const char *const *administrators; /* "user@REALM" */
	size_t administrator_count;
	const char *listen; /* address; anonymous calls beyond loopback must be asked for */
};

/*
 * Constant but for its keys, which guard themselves, and the table of those that were seen. Any thread.
 */
struct fsd_guard;

/* 0, or -1 with one line in message[FSD_MESSAGE_MAX] that says what to do. */
int fsd_guard_open(const struct fsd_guard_options *options, struct fsd_guard **guard,
		   char *message);
/* Behind the endpoints. */
void fsd_guard_close(struct fsd_guard *guard);

/*
 * The classes that a service offers: all, whatever is required. They live as long as the guard.
 */
rxw_security *const *fsd_guard_classes(const struct fsd_guard *guard, enum fsd_service_kind service,
				       size_t *count);

/* Offer the service that gives tokens of rxgk, where the keytab has its key. 0 or a result of the library. */
int fsd_guard_offer(const struct fsd_guard *guard, rxw_endpoint *endpoint);

/* Whether it matters who calls: there are keys or rules. */
bool fsd_guard_asks(const struct fsd_guard *guard);

/* Whether a service refuses anonymous callers. guard may be NULL: it does not. */
bool fsd_guard_protects(const struct fsd_guard *guard, enum fsd_service_kind service);

/* Read the keys again; a log line says what came of it. 0, or -1: the old ones stay. */
int fsd_guard_reload(struct fsd_guard *guard);

/* How calls of a service must be protected at least: "none", "clear", "auth", "crypt". */
const char *fsd_guard_level(const struct fsd_guard *guard, enum fsd_service_kind service);

/* Who calls; valid as long as the call. All zero: anonymous, where that is enough. */
struct fsd_who {
	bool refused;	    /* less protected than the service requires */
	int32_t weak;	    /* refused for the level alone: the code that says so; else 0 */
	bool administrator; /* or the service itself: sees everything */
	bool authenticated;
	const char *name; /* "user@REALM", NULL */
};

/*
 * Find out who calls the service, and whether that is enough for it; the first call of an identity is a
 * line in the log. Administrators may look at locations and volumes at any level, since OpenAFS's
 * -localauth is not protected more.
 */
void fsd_guard_enter(struct fsd_guard *guard, enum fsd_service_kind service, const rxw_call *call,
		     struct fsd_who *who);

/* What of a path somebody may see. */
enum fsd_sight {
	FSD_SIGHT_NONE, /* 0: nothing */
	FSD_SIGHT_WAY,	/* a directory on the way to what a pattern names, not all that is in it */
	FSD_SIGHT_ALL	/* the path and what is below it */
};

/*
 * What somebody may see of a path of the export ("" is the root). Without a guard or rules everybody
 * sees all, except those who are refused. A pattern gives what it names, all below that, and the
 * directories on the way.
 */
enum fsd_sight fsd_guard_may(const struct fsd_guard *guard, const struct fsd_who *who,
			     const char *path);

#endif
