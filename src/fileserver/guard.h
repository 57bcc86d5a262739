/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may call, how protected calls must be, and who may see what of the export. */
#ifndef FILESERVER_GUARD_H
#define FILESERVER_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include <rxwire/rxwire.h>

#include "tools/common/auth.h"

enum fsd_service_kind { FSD_FS, FSD_VL, FSD_VOL, FSD_SERVICES };

/* What the command line says; see rxfsd(8). */
struct fsd_guard_options {
	const char *keytab;		/* keys of the service; NULL: nobody can say who he is */
	const char *cell, *realm;	/* whose keys of a keytab, and a realm whose "afs" is the service itself */
	bool single_des;
	const char *const *require;	/* "[fs:|vl:|vol:]none|auth|crypt" */
	size_t require_count;
	const char *const *allow;	/* "WHO PATTERN..." */
	size_t allow_count;
	const char *const *administrators; /* "user@REALM" */
	size_t administrator_count;
	const char *listen;		/* address; anonymous calls beyond loopback must be asked for */
};

/*
 * Constant but for its keys, which guard themselves, and the table of those that were seen. Any thread.
 */
struct fsd_guard;

/* 0, or -1 with one line in message[FSD_MESSAGE_MAX] that says what to do. */
int fsd_guard_open(const struct fsd_guard_options *options, struct fsd_guard **guard, char *message);
/* Behind the endpoints. */
void fsd_guard_close(struct fsd_guard *guard);

/* The classes that a service offers; they live as long as the guard. */
rxw_security *const *fsd_guard_classes(const struct fsd_guard *guard, enum fsd_service_kind service, size_t *count);

/* Offer the service that gives tokens of rxgk, where the keytab has its key. 0 or a result of the library. */
int fsd_guard_offer(const struct fsd_guard *guard, rxw_endpoint *endpoint);

/* Whether it matters who calls: there are keys or rules. */
bool fsd_guard_asks(const struct fsd_guard *guard);

/* Read the keys again; a log line says what came of it. */
void fsd_guard_reload(struct fsd_guard *guard);

/* Who calls; valid as long as the call. */
struct fsd_who {
	bool administrator; /* or the service itself: sees everything */
	bool authenticated;
	const char *name;   /* "user@REALM", NULL */
};

/* Find out who calls; the first call of somebody is a line in the log. */
void fsd_guard_enter(struct fsd_guard *guard, const rxw_call *call, struct fsd_who *who);

/*
 * Whether somebody may see a path of the export ("" is the root): without rules everybody may. A pattern gives what
 * it names, all below that, and the directories on the way.
 */
bool fsd_guard_may(const struct fsd_guard *guard, const struct fsd_who *who, const char *path);

#endif
