/* SPDX-License-Identifier: BSD-2-Clause */
/* A protection database in a folder of its own. */
#ifndef RXW_TESTS_PROTECTION_DATABASE_H
#define RXW_TESTS_PROTECTION_DATABASE_H

#include "protection/protection.h"
#include "tests/tools/testing.h"

struct database {
	char *folder, *file;
	struct prot *prot;
	char message[PROT_MESSAGE_MAX]; /* of the last failure */
};

/* A new one, without users. `options` may be NULL; their path and `create` are set. */
void database_open(struct database *d, const struct prot_options *options);
/* For prot_options.warn: counts the lines. */
extern unsigned database_warnings;
void database_warn(void *arg, const char *line);
/* Close it, but keep the file. */
void database_shut(struct database *d);
/* Close it if it is open, and open the same file again. */
void database_reopen(struct database *d);
/* Close it and remove the folder. */
void database_close(struct database *d);

/* Add entries, which must succeed; the id. */
int32_t database_user(struct database *d, const char *name, int32_t id);
int32_t database_group(struct database *d, const char *name, int32_t id, int32_t owner);

/* The ids that prot_cps(), prot_host_cps(), prot_owned() or the members of an entry give, as "1 2 3". Static. */
const char *database_cps(struct database *d, int32_t id);
const char *database_host_cps(struct database *d, uint32_t address);
const char *database_owned(struct database *d, int32_t id);
const char *database_members(struct database *d, int32_t id);

#endif
