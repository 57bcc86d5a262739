/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the module. */
#ifndef FILESERVER_MEMBERSHIP_H
#define FILESERVER_MEMBERSHIP_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "client/cell/cells.h"
#include "common/background.h"
#include "fileserver/member/member.h"

/* -- folder.c: the files of a folder of OpenAFS's -- */

#define MEMBER_NAMES	 256 /* superusers */
#define MEMBER_FILTERS	 64  /* lines of NetInfo or NetRestrict */
#define MEMBER_REALMS	 8
#define MEMBER_ADDRESSES 15 /* that are registered */

/* Constant; counted references. */
struct member_folder {
	_Atomic unsigned refs;
	char cell[CL_CELL_NAME], keys[PATH_MAX];
	struct cl_cell_server server[CL_CELL_SERVERS];
	unsigned servers;
	char *realm[MEMBER_REALMS];
	size_t realms;
	char *superuser[MEMBER_NAMES]; /* as names of users */
	size_t superusers;
	struct member_filter {
		uint32_t address;
		bool fake; /* registered although the machine does not have it */
	} info[MEMBER_FILTERS], restrict_[MEMBER_FILTERS];
	size_t infos, restricts;
};
int member_folder_read(const struct fsd_member_options *options, struct member_folder **folder,
		       char *message);
struct member_folder *member_folder_ref(struct member_folder *folder);
void member_folder_unref(struct member_folder *folder);
/* The name of the user of an identity. False: it can have none. */
bool member_name_of(const struct fsd_member_options *options, const struct member_folder *folder,
		    const struct rxw_identity *identity, char user[PROT_NAME_MAX + 1]);
/* Whether a superuser begins like this identity: for most callers, a name need not be made to know that they are none. */
bool member_may_be_superuser(const struct member_folder *folder,
			     const struct rxw_identity *identity);
/* Which of these addresses, and of those that are fake, are to be registered; their number. */
unsigned member_filter_addresses(const struct member_folder *folder, const uint32_t *have,
				 unsigned count, uint32_t address[MEMBER_ADDRESSES]);

/* -- databases.c: the servers of a database, of which one decides about changes -- */

struct member_database;

/* No server answers. Codes of AFS are positive, those of the library small. */
#define MEMBER_NOBODY (INT32_MIN)

struct member_database_options {
	rxw_endpoint *endpoint;
	uint16_t service, port; /* port 0: that of each server */
	const char *name;	/* for the log */
	/* A class with the present key of the cell, and a reference. NULL: anonymous. */
	rxw_security *(*security)(void *arg);
	void *arg;
	/* How long a server may send nothing, or no answer; 0: 4 s and 8 s. */
	unsigned dead_ms, answer_ms;
};
struct member_database *member_database_open(const struct member_database_options *options);
void member_database_close(struct member_database *database); /* NULL is allowed */
/* These are its servers from now on, all of them alive. False: no memory; the old ones stay. */
bool member_database_set(struct member_database *database, const struct cl_cell_server *servers,
			 unsigned count);
/*
 * Ask one server after the other, those that answered last first, until one answers, or makes a change, which only the one that is in charge
 * of the database does. `ask` ends nothing. The code of the answer, or MEMBER_NOBODY, also at once if no server was alive. Waits.
 */
int32_t member_database_ask(struct member_database *database,
			    int32_t (*ask)(rxw_call *call, void *arg), void *arg);
/* No server was alive when it was last looked at. Any thread, without a lock. */
bool member_database_dead(const struct member_database *database);
/* Ask dead servers whose time has come whether they are alive. Returns when it is to be called again, by monotonic_ns(). */
uint64_t member_database_probe(struct member_database *database,
			       int32_t (*ask)(rxw_call *call, void *arg), void *arg);
void member_database_count(struct member_database *database, unsigned *servers, unsigned *dead);
/* No further calls begin. */
void member_database_stop(struct member_database *database);

/* -- answers.c: what the protection service has said -- */

struct member_answers;

/* database NULL: none is asked yet. */
struct member_answers *member_answers_create(uint64_t fresh_s);
void member_answers_destroy(struct member_answers *answers);
void member_answers_start(struct member_answers *answers, struct member_database *database);
/* Wait for the questions in progress. No others begin. */
void member_answers_stop(struct member_answers *answers);
void member_answers_forget(struct member_answers *answers);
void member_answers_count(struct member_answers *answers, struct fsd_member_counts *counts);

/* As the functions of struct fsd_people_ops. `expires`: of the token. */
int member_find_user(struct member_answers *answers, const char *name, int64_t expires,
		     struct fsd_asker *asker, struct fsd_ids *ids);
int member_find_machine(struct member_answers *answers, uint32_t address, struct fsd_asker *asker,
			struct fsd_ids *ids);
int member_find_id(struct member_answers *answers, const char *name, struct fsd_asker *asker,
		   int32_t *id);
int member_find_name(struct member_answers *answers, int32_t id, struct fsd_asker *asker,
		     char name[FSD_PERSON_MAX + 1]);

/* -- questions.c: calls to a protection server -- */

enum member_kind {
	MEMBER_USER,	/* name: id and groups */
	MEMBER_MACHINE, /* address: groups */
	MEMBER_ID,	/* name: id */
	MEMBER_NAME	/* id: name */
};
struct member_answer {
	int32_t id;   /* 0: there is none */
	int32_t *ids; /* ascending; to be freed */
	size_t count;
	char name[PROT_NAME_MAX + 1];
};
#define MEMBER_IDS_MAX 65536u
/* `name`, or the number of an address or id. 0, or -EBUSY: no usable answer. Waits. */
int member_question(struct member_database *database, enum member_kind kind, const char *name,
		    uint32_t number, struct member_answer *answer);
/* For member_database_probe(). */
int32_t member_ask_anonymous(rxw_call *call, void *arg);

/* -- registration.c -- */

struct member_registration {
	bool known;
	unsigned count;
	uint32_t address[MEMBER_ADDRESSES];
	uint64_t next; /* monotonic ns */
	unsigned failures;
	_Atomic bool registered;
};
/* Register the addresses of this server, if they have changed, or it is time to. Returns when it is to be called again. Waits. */
uint64_t member_register(struct member_registration *registration, struct member_database *database,
			 const struct member_folder *folder,
			 const struct fsd_member_network *network);
int32_t member_ask_locations(rxw_call *call, void *arg);

/* -- ownids.c -- */

/* Ids of the store's own volumes, after the registration: the cell skips them, and a line tells of those that it has given to others. False: not now. */
bool member_compare_ids(const struct member_registration *registration,
			struct member_database *database, const struct fsd_member_network *network);

#endif
