/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users, machines, groups and memberships, in an SQLite database. Several processes may open one database and
 * change it at the same time. This library knows nothing of Rx.
 */
#ifndef PROTECTION_PROTECTION_H
#define PROTECTION_PROTECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ids of users are positive, those of groups negative. These exist in every database. */
enum prot_predefined {
	PROT_ANONYMOUS = 32766,
	PROT_ANYUSER = -101,
	PROT_AUTHUSER = -102,
	PROT_PTSVIEWERS = -203,
	PROT_ADMINISTRATORS = -204,
	PROT_BACKUP = -205
};

/*
 * Names are 1 to 63 bytes of UTF-8 and are compared exactly. They contain neither blanks nor
 * control characters, do not look like a number, and do not begin with '-'. Names of users have no
 * ':', and at most one '@', before the cell of a foreign user. Names of groups have at most one ':'.
 * A user whose name is an IPv4 address, without leading zeros, is a machine (afs-fileserver 7.3).
 */
#define PROT_NAME_MAX 63
/* *address: in the order of bytes of this machine. */
bool prot_name_is_machine(const char *name, uint32_t *address);

#define PROT_FILE	 "protection.db" /* the file in a directory */
#define PROT_MESSAGE_MAX 512

/* Results other than 0 of functions that have a message: one line that says what to do. */
enum prot_code {
	PROT_EXISTS = -1,     /* the name is taken */
	PROT_ID_EXISTS = -2,  /* the id is taken */
	PROT_NO_IDS = -3,     /* no id is left */
	PROT_NO_ENTRY = -4,   /* no such user or group */
	PROT_PREDEFINED = -5, /* the entry cannot be changed in this way */
	PROT_NOT_GROUP = -6,
	PROT_NOT_USER = -7,
	PROT_BAD_NAME = -8,
	PROT_BAD_ID = -9,
	PROT_MEMBERSHIP = -10, /* the user is a member already, or is none */
	PROT_UNUSABLE = -11,   /* not a database of this library, damaged, or of a newer version */
	PROT_ERROR = -12,      /* the file cannot be read or written, or memory is short */
	/* -13 and -14: protection/request.h */
	PROT_CIRCLE = -15,    /* a group would be a member of itself */
	PROT_TOO_NESTED = -16 /* it is in too many groups */
};

/* Access flags of an entry, as AFS sends them: they say which callers may see or change its parts. */
enum prot_access {
	PROT_STATUS_ANY = 0x80, /* anyone may see the entry itself */
	PROT_STATUS_MEM = 0x40, /* members may */
	PROT_OWNED_ANY = 0x20,	/* anyone may list what it owns */
	PROT_MEMBER_ANY = 0x10, /* anyone may list its members, or groups */
	PROT_MEMBER_MEM = 0x08, /* members may */
	PROT_ADD_ANY = 0x04,	/* anyone may add members */
	PROT_ADD_MEM = 0x02,
	PROT_REMOVE_MEM = 0x01
};
#define PROT_ACCESS_USER  PROT_STATUS_ANY /* of new entries */
#define PROT_ACCESS_GROUP (PROT_STATUS_ANY | PROT_MEMBER_ANY)
#define PROT_ACCESS_ALL	  0xffu

struct prot_options {
	const char *path; /* the file, or the directory that has or gets PROT_FILE */
	bool create;	  /* make the database if it does not exist */
	/* Identities of this cell. NULL or 0: none. The cell's name in capitals is a local realm, too. Strings must outlive the database. */
	const char *cell;
	const char *const *realms;
	size_t realm_count;
	/* Accept "john.doe", which cannot be told from "john/doe": identities with an instance are unknown. */
	bool dots;
	/* Gets a line if the file is unreadable, replaced or an older copy; any thread. May be NULL. */
	void (*warn)(void *arg, const char *line);
	void *arg;
};

/* An open database. All functions may be called by any thread. */
struct prot;

/*
 * Open, check and load a database. 0, or a code with a line in message[PROT_MESSAGE_MAX]. A new file belongs to the owner of its
 * directory if root makes it, and only its owner may read it.
 */
int prot_open(const struct prot_options *options, struct prot **prot, char *message);
/* The path of the file if prot_open() has made it, else NULL. Valid as long as the database. */
const char *prot_made(const struct prot *prot);
/* Write the state of one moment to a new file, and flush that. As prot_open(). */
int prot_copy(struct prot *prot, const char *path, char *message);
/* All views must have been put back. NULL is allowed. */
void prot_close(struct prot *prot);

/* -- reading: a view is the state of the database at one time, in memory, and never changes -- */

struct prot_view;

struct prot_entry {
	int32_t id;
	int32_t owner, creator; /* ids */
	uint32_t access;	/* enum prot_access */
	int32_t quota;		/* groups that a user may make, as AFS shows it */
	uint32_t count;		/* of `members` */
	uint32_t super_count;	/* of `supers` */
	/* The groups and users in a group, or the groups of a user, ascending; and the groups in which a group is. */
	const int32_t *members, *supers;
	char name[PROT_NAME_MAX + 1];
};

/*
 * The present state. A change is in every later view of the thread that made it, and from the first of these on in every view. The
 * database is looked at every 100 ms at most, or after ten times the time that reading it took, if that is longer: a change by
 * another process is in the views taken after that time. Otherwise it costs a mutex, and nobody waits for another thread. Never NULL: if the file cannot be read any more, the last state stays.
 */
const struct prot_view *prot_view_get(struct prot *prot);
void prot_view_put(const struct prot_view *view);

/* Different for views with different contents; it grows. For caches of what was found. */
uint64_t prot_generation(const struct prot_view *view);

/* Binary searches. Entries are valid as long as the view; NULL: there is none. */
const struct prot_entry *prot_by_name(const struct prot_view *view, const char *name);
const struct prot_entry *prot_by_id(const struct prot_view *view, int32_t id);

/* Users ascending, then groups ascending. prot_from(): the index of the first entry that does not come before `id`. */
size_t prot_count(const struct prot_view *view);
const struct prot_entry *prot_at(const struct prot_view *view, size_t index);
size_t prot_from(const struct prot_view *view, int32_t id);

/* Also by way of groups that are in groups, over a few steps. A group may be a member. */
bool prot_is_member(const struct prot_view *view, int32_t member, int32_t group);

/* The highest id that a user had and the lowest that a group had, also of removed ones; and in the file now. */
void prot_max_ids(const struct prot_view *view, int32_t *user, int32_t *group);
int prot_last_ids(struct prot *prot, int32_t *user, int32_t *group, char *message);

/*
 * Each of these stores at most `room` ids, ascending, and returns how many there are.
 * prot_owned(): the groups whose owner is `id`; looks at every group.
 * prot_cps(): the ids whose rights a caller has: its own, those of its groups, also by way of groups that are in groups,
 * PROT_ANYUSER, and unless it is anonymous PROT_AUTHUSER. 0: no such entry, or no memory.
 */
size_t prot_owned(const struct prot_view *view, int32_t id, int32_t *list, size_t room);
size_t prot_cps(const struct prot_view *view, int32_t id, int32_t *list, size_t room);
/*
 * The same: the groups of the machine with this address and of those whose name is the address with
 * the last one, two or three octets 0. Never PROT_ADMINISTRATORS, nor the machines, nor the groups of these groups.
 */
size_t prot_host_cps(const struct prot_view *view, uint32_t address, int32_t *list, size_t room);
/* Whether prot_host_cps() can find anything. Looks at the file as prot_view_get(), but takes no lock. */
bool prot_has_machines(struct prot *prot);

/*
 * The name of the user of an authenticated identity: that of rxkad (name, instance, cell; "" is absent) or a Kerberos principal
 * ("user@REALM", "name/instance@REALM"). Local identities, by cell, realms and dots of the options, are the users "name" or "name.instance",
 * foreign ones "name@cell" in lower case after the '@'. False: the identity could be mistaken for another one. Never a machine.
 */
bool prot_name_of_parts(const struct prot_options *options, const char *name, const char *instance,
			const char *cell, char user[PROT_NAME_MAX + 1]);
bool prot_name_of_principal(const struct prot_options *options, const char *principal,
			    char user[PROT_NAME_MAX + 1]);
/* The user with that name; PROT_ANONYMOUS: none, or a group. */
int32_t prot_user_of_parts(const struct prot *prot, const struct prot_view *view, const char *name,
			   const char *instance, const char *cell);
int32_t prot_user_of_principal(const struct prot *prot, const struct prot_view *view,
			       const char *principal);

/* -- changes: each is one durable transaction, or part of the one that prot_begin() begins -- */

/*
 * Until prot_commit() or prot_rollback() other changes, also of other processes, wait; the same
 * thread must call all of them. prot_commit() rolls back if it fails.
 */
int prot_begin(struct prot *prot, char *message);
int prot_commit(struct prot *prot, char *message);
void prot_rollback(struct prot *prot);

/*
 * id 0: the next one that was never used. owner 0: PROT_ADMINISTRATORS. *given is the id. Each
 * returns 0, or a code with a line in message[PROT_MESSAGE_MAX].
 */
int prot_add_user(struct prot *prot, const char *name, int32_t id, int32_t *given, char *message);
int prot_add_group(struct prot *prot, const char *name, int32_t id, int32_t owner, int32_t *given,
		   char *message);
/* Give out no id up to `user` and down to `group` any more. *raised: some would have been. */
int prot_keep_ids(struct prot *prot, int32_t user, int32_t group, bool *raised, char *message);
int prot_rename(struct prot *prot, int32_t id, const char *name, char *message);
/* Its memberships go as well. Its groups belong to PROT_ADMINISTRATORS then. */
int prot_remove(struct prot *prot, int32_t id, char *message);
int prot_chown(struct prot *prot, int32_t group, int32_t owner, char *message);
int prot_set_access(struct prot *prot, int32_t id, uint32_t access, char *message);
int prot_add_member(struct prot *prot, int32_t group, int32_t member, char *message);
int prot_remove_member(struct prot *prot, int32_t group, int32_t member, char *message);

#endif
