/* SPDX-License-Identifier: BSD-2-Clause */
/* A store in a folder of its own, and requests to it. */
#ifndef RXW_TESTS_ADMIN_FIXTURE_H
#define RXW_TESTS_ADMIN_FIXTURE_H

#include "admin/admin.h"
#include "tests/main.h"
#include "volume/store/store.h"

#define CHANGES_KEPT 64

/* The zeroed structure is ready for fixture_open(). */
struct fixture {
	char folder[64]; /* has the store in "store", and may get other things */
	struct store *store;
	int directory;	     /* for import and export; -1 */
	unsigned stop_after; /* calls of stopped() until it is true; 0: never */
	bool killed;	     /* then it ends the process instead */
	unsigned asked;	     /* calls of stopped() */
	_Atomic bool *held;  /* stopped() waits as long as it is true; or NULL */
	const char *touched; /* a path whose file gets the present time in each call; NULL: none */
	bool guarded;	     /* no access list may let anonymous callers write */
	uint32_t watched;    /* a volume that must not be online when its list is judged */
	uint32_t disturbed;  /* a volume whose root gets another list when one is judged, once */
	struct store_change change[CHANGES_KEPT];
	unsigned changes; /* all that were told */

	/* of the last request */
	json_t *last; /* the answer that ended it */
	unsigned ends, skipped, progress, faults, mounts;
	char reason[128]; /* of the last skip */
};

void fixture_open(struct fixture *f);
void fixture_close(struct fixture *f);
/* Open the store, which was closed. */
void fixture_again(struct fixture *f);

/* Execute a request, given as text of JSON, which takes the arguments of printf: the status. */
int fixture_ask(struct fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
int fixture_ask_json(struct fixture *f, const json_t *request);
/* It must have the status 0; the result, until the next request. */
const json_t *fixture_do(struct fixture *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* It must fail with that status and a text that contains `part`. */
void fixture_refuses(struct fixture *f, int status, const char *part, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/*
 * Execute a request in a process that SIGKILL ends at the `after`th question whether it was stopped. False: the request
 * ended before. The store is closed and opened again.
 */
bool fixture_kill(struct fixture *f, unsigned after, const char *request);
/* Use a folder below f->folder, made if it is missing, for import and export. Returns its path. */
const char *fixture_directory(struct fixture *f, const char *name);
/* Run a shell command, which must succeed. */
void fixture_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
