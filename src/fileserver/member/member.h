/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server as a member of a cell whose databases other servers have (doc/notes/cell.md): it registers its addresses with their location
 * service, and asks their protection service who callers are. It has what OpenAFS's servers have in a folder: ThisCell, CellServDB, keys,
 * UserList, NetInfo, NetRestrict, krb.conf.
 */
#ifndef FILESERVER_MEMBER_H
#define FILESERVER_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/coder.h>
#include <rxwire/rxwire.h>

#include "fileserver/guard/guard.h"
#include "fileserver/guard/people.h"

struct fsd_member;

#define FSD_MEMBER_FRESH 300 /* s, the default of `fresh_s` */

struct fsd_member_options {
	const char *folder;
	const char *realm;	   /* one more of this cell; NULL: none */
	bool dots;		   /* as in struct prot_options */
	uint16_t vl_port, pt_port; /* of the servers of the databases; 0: the usual ones */
	uint64_t
		fresh_s; /* after this time an answer about a user is asked for again; 0: the default */
};

/* Reads the folder. 0, or -1 with one line in message[FSD_MESSAGE_MAX]. */
int fsd_member_open(const struct fsd_member_options *options, struct fsd_member **member,
		    char *message);
/* Reads the folder again, and uses the present keys. 0, or -1 after a line of the log: what was read before stays. */
int fsd_member_reload(struct fsd_member *member);
void fsd_member_close(struct fsd_member *member); /* NULL is allowed, as below */

/* Constant: the name of the cell, and the file with its keys. */
const char *fsd_member_cell(const struct fsd_member *member);
const char *fsd_member_keys(const struct fsd_member *member);
/* Whether UserList has an authenticated identity: the function of struct fsd_guard_options. */
bool fsd_member_superuser(void *member, const struct rxw_identity *identity);
/* Those of the cell. Until the member is started, and from its stop on, nobody is known. */
struct fsd_people *fsd_member_people(struct fsd_member *member);

/* What its calls need. */
struct fsd_member_network {
	rxw_engine *engine;
	const struct rxw_config *config;
	struct fsd_guard *guard; /* for the cell's key */
	/* What is registered: */
	struct rxw_uuid uuid;
	const char *listen;	   /* the addresses of this machine, if it is that of all */
	const uint32_t *advertise; /* others */
	unsigned advertise_count;
	/* If the store has just become one of the cell: the ids of its volumes after one, ascending; their number. Else NULL. */
	size_t (*volumes)(void *arg, uint32_t after, uint32_t *ids, size_t max);
	void *volumes_arg;
};
/* 0, or -1 with one line in message[FSD_MESSAGE_MAX]. The strings and the array outlive it. */
int fsd_member_start(struct fsd_member *member, const struct fsd_member_network *network,
		     char *message);
/* Calls end, and nobody waits for an answer any more. */
void fsd_member_stop(struct fsd_member *member);

/* For metrics. */
struct fsd_member_counts {
	uint64_t known;			 /* answers that are kept */
	uint64_t asked, failed, refused; /* questions; without an answer; that were too many */
	unsigned servers, dead;		 /* of the protection service */
	bool registered;
};
void fsd_member_count(struct fsd_member *member, struct fsd_member_counts *counts);

#endif
