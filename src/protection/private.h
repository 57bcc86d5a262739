/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the protection library. */
#ifndef PROTECTION_PRIVATE_H
#define PROTECTION_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <sqlite3.h>

#include "protection/protection.h"

/*
 * Members of a group that is in a group are members of that one, too, over so many steps in all. The list of ids whose rights a
 * caller has goes a step further, as with OpenAFS.
 */
#define PROT_DEPTH 5u
/* Groups in which a group may be, so that looking for all of them ends soon. */
#define PROT_SUPERS_MAX 100

/*
 * Lock order: `db_lock`, then `lock`. `db_lock` covers the connection and its statements, and is
 * held during transactions; it tells a thread that has it already. `lock` covers what readers
 * touch, and is held for a few instructions. Atomic members are written under it, and read without.
 */
struct prot {
	struct prot_options options;
	char *path; /* of the file: */
	bool made;  /* prot_open() has made it */
	dev_t device;
	ino_t inode;
	pthread_mutex_t db_lock;
	sqlite3 *db;	       /* db_lock */
	sqlite3_stmt *version; /* db_lock: PRAGMA data_version */
	int64_t seen;	       /* db_lock: its value when `view` was loaded */
	bool failing;	       /* db_lock: the last look failed; reported once */
	pthread_mutex_t lock;
	const struct prot_view *view; /* lock */
	_Atomic uint64_t next_look;   /* monotonic time in ns */
	atomic_bool machines;	      /* `view` has some */
	bool stale;		      /* lock: this process has changed the database, */
	pthread_t changer;	      /* lock: this thread, */
	bool several;		      /* lock: and others before */
};

/* Constant but for `references`. */
struct prot_view {
	_Atomic unsigned references;
	uint64_t generation;
	struct prot_entry *entries; /* as prot_at() has them */
	uint32_t *by_name;	    /* indices into entries */
	size_t count;
	struct prot_machine {
		uint32_t address;
		uint32_t index; /* into entries */
	} * machines;		/* those in groups, by address */
	size_t machine_count;
	int32_t *members; /* the lists of all entries */
	bool nested;	  /* there are groups in groups */
	int32_t max_user, max_group;
};

/* -- names.c -- */

/* Whether a group or user may have this name; if not, *why says what is wrong. */
bool prot_name_valid(const char *name, bool group, const char **why);
/* Whether a valid name shows all its characters. New names must; those that are there may be older than this rule. */
bool prot_name_visible(const char *name);
/* Make view->machines. False: no memory. */
bool prot_index_machines(struct prot_view *view);

/* -- database.c: the file -- */

/* Open, make or refuse the file of prot->path. 0, or a code and a line. */
int prot_database_open(struct prot *prot, char *message);
void prot_database_close(struct prot *prot);
/* In a transaction: programs that do not know groups in groups cannot use the file any more. 0, or a code and a line. */
int prot_raise_format(struct prot *prot, char *message);
/* Whether another file, or none, is where the open one was: true and a line. */
bool prot_database_replaced(const struct prot *prot, char *message);
/* The line for a failed call of SQLite, and the code for it. */
int prot_database_error(struct prot *prot, const char *doing, char *message);
int prot_damaged(const struct prot *prot, const char *what, char *message);
/* Run SQL without results; an SQLITE_… result. */
int prot_run(struct prot *prot, const char *sql);
/*
 * Run a statement. Its parameters are `count` integers, and after them `name` unless that is NULL.
 * *value gets the first integer of its result and stays if there is none; may be NULL.
 */
int prot_query(struct prot *prot, const char *sql, const int64_t *parameters, int count,
	       const char *name, int64_t *value);

/* -- ids.c -- */

/* Keep the last ids in the file beside the database, too. */
void prot_ids_write(struct prot *prot);
/* If that file has later ones than the database, these are not given out. 0, or a code and a line. */
int prot_ids_compare(struct prot *prot, char *message);

/* -- view.c -- */

/* Read everything in one transaction; the caller holds db_lock. 0, or a code and a line. */
int prot_load(struct prot *prot, struct prot_view **view, char *message);
void prot_view_free(struct prot_view *view);

#endif
