/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking rows out of the pages of a database that SQLite may not be able to read. */
#ifndef STORE_CARVE_H
#define STORE_CARVE_H

#include "volume/store/db/db.h"
#include "volume/store/disk/pageset.h"

struct carve_counts {
	/* Called for each record of a vnode that was not there before. May be NULL. */
	void (*taken)(void *arg, uint32_t group, uint32_t vnode);
	void *arg;
	uint64_t pages;	  /* of the database */
	uint64_t damaged; /* of them */
	uint64_t rows;	  /* that were taken over */
	uint64_t cut;	  /* rows of sound pages that go on in a damaged one */
};

/*
 * Insert the rows of all sound pages to the tables of `db`, within a transaction. Rows that are there already stay. Rows
 * that a damaged page hides are found as well, since the kind of a row shows. What was deleted is not taken, unless the list
 * of unused pages is damaged. 0 or a result.
 */
int db_carve(struct store_pageset *set, struct db *db, struct carve_counts *counts);
/*
 * Afterwards: where the index of the database has a record of a vnode that was not found, the vnode is marked as removed, so
 * that an older record does not pass for the newest. *lost: how many.
 */
int db_carve_losses(struct db *db, uint64_t *lost);
/*
 * Then, once the records are complete: objects get the counts of the references that there are, and small contents and slots that no
 * record has go. `keep_files`: objects that only lost records had are forgotten, and their files stay; else they are to be removed.
 * *greatest is raised to the greatest number of all contents; *incarnation: the greatest one of a record.
 */
int db_settle_contents(struct db *db, bool keep_files, uint64_t *greatest, uint32_t *incarnation);
/* Whether damaged pages hide sound ones, so that SQLite cannot read those. 0 or -ENOMEM. */
int db_carve_hides(struct store_pageset *set, bool *hides);

#endif
