/* SPDX-License-Identifier: BSD-2-Clause */
/* rxpt: its settings, and its commands. */
#ifndef TOOLS_PROTECTION_PT_H
#define TOOLS_PROTECTION_PT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protection/protection.h"

struct pt {
	const char *store, *id, *owner; /* options; NULL: not given */
	bool json, users, groups;
	struct prot *prot; /* NULL until it is open */
	/* The action of the command for each entry that it names. */
	int32_t other;	  /* the group of members, the owner of groups */
	const char *text; /* the new name */
	uint32_t access;
};

/* A command's function gets its arguments. It returns an exit status, after a message if not 0. */
typedef int (*pt_command_fn)(struct pt *pt, char **names, size_t count);

/* -- change.c -- */

int pt_add_user(struct pt *pt, char **names, size_t count);
int pt_add_group(struct pt *pt, char **names, size_t count);
int pt_rename(struct pt *pt, char **names, size_t count);
int pt_remove(struct pt *pt, char **names, size_t count);
int pt_member(struct pt *pt, char **names, size_t count);
int pt_chown(struct pt *pt, char **names, size_t count);
int pt_access(struct pt *pt, char **names, size_t count);

/* -- show.c -- */

/* The id of the entry with a name or an id; 0 after a message. */
int32_t pt_find_id(const struct pt *pt, const char *text);
/* A number with an optional '-', an id if it fits; false otherwise. */
bool pt_parse_id(const char *text, int32_t *id);

/* The flags, as letters: "S-M--". */
bool pt_parse_access(const char *text, uint32_t *access);

int pt_list(struct pt *pt, char **names, size_t count);
int pt_examine(struct pt *pt, char **names, size_t count);
int pt_members(struct pt *pt, char **names, size_t count);
int pt_copy(struct pt *pt, char **names, size_t count);
/* Report the entries with these ids, which were added. */
int pt_show_added(struct pt *pt, const int32_t *ids, size_t count);

#endif
