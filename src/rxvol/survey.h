/* SPDX-License-Identifier: BSD-2-Clause */
/* What a server has, and what of it can move to another one. */
#ifndef VOLUMES_SURVEY_H
#define VOLUMES_SURVEY_H

#include "program/options.h"
#include "rxvol/move.h"

struct survey_volume {
	struct move_job job;
	uint32_t files, size_kib;
	bool begun;    /* by an earlier run */
	char why[200]; /* it does not move; "": it does */
};

/* Sorted so that a volume precedes its replica. */
struct survey {
	struct survey_volume *volume;
	size_t count, moving, backups;
	bool own_root; /* rxfsd's root.afs is there, which every such server makes itself */
	uint64_t moving_kib, free_kib; /* of those that move; at the target */
};

/* Patterns of names, and which of them a volume has met. */
struct survey_filter {
	const struct tools_list *only, *exclude;
	bool met[]; /* those of `only`, then those of `exclude` */
};
/* To be freed. NULL after a message. */
struct survey_filter *survey_filter_create(const struct tools_list *only,
					   const struct tools_list *exclude);
bool survey_wants(struct survey_filter *filter, const char *name);
/* 0, or -1 after a message: no volume has met a pattern. */
int survey_filter_check(const struct survey_filter *filter);

struct survey_options {
	struct move_place from, to; /* partition -1: all of them, or the only one */
	struct survey_filter *filter;
	const char *state;
	bool take_over;
};

/* Fills in what the places lack. 0, or -1 after a message. */
int survey_server(struct cellside *cell, struct survey_options *options, struct survey *survey);
void survey_free(struct survey *survey);

/* The only partition of a server, or a list of them. Their number, or -1 after a message. */
#define SURVEY_PARTITIONS 256
int survey_partitions(struct cellside *cell, uint32_t address, int32_t list[SURVEY_PARTITIONS]);
/* All volumes of one; for xdrfree_volEntries(). 0, or -1 after a message. */
int survey_list(struct cellside *cell, const struct move_place *place, volEntries *entries);
/* KiB. 0, or -1 after a message. */
int survey_space(struct cellside *cell, const struct move_place *place, uint64_t *free_kib,
		 uint64_t *size_kib);
/* The address of this machine at which a volume service answers, other than `but`. 0: there is none. */
uint32_t survey_own_address(struct cellside *cell, uint32_t but);
/* "rw" or "ro". */
const char *survey_type(const struct move_job *job);

#endif
