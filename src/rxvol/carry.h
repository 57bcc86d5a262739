/* SPDX-License-Identifier: BSD-2-Clause */
/* Many moves at the same time, with a line for each. */
#ifndef VOLUMES_CARRY_H
#define VOLUMES_CARRY_H

#include <jansson.h>

#include "rxvol/move.h"
#include "rxvol/volumes.h"

struct carry_item {
	struct move_job job;
	uint64_t size_kib;
	/* afterwards */
	struct move_result result;
	bool begun, done; /* neither: the user stopped it before */
};

struct carry_totals {
	unsigned moved, failed, left;
	uint64_t bytes, ns;
};

/* Open the cell of the command line. NULL after a message. */
struct cellside *carry_open_cell(const struct rxvol *rxvol);
/*
 * Move all volumes; those with the same entry must follow each other, and are moved one after the other. A signal lets those that have
 * begun end. Lines on stdout, unless the result is JSON.
 */
void carry_volumes(const struct rxvol *rxvol, struct cellside *cell, struct carry_item *items,
		   size_t count, struct carry_totals *totals);
/* A move and its result. */
json_t *carry_json(const struct carry_item *item);
/* "s", unless it is one. */
const char *carry_plural(size_t count);
/* "1.5 GiB" of KiB. Returns text. */
#define CARRY_SIZE 32
char *carry_size_text(char text[CARRY_SIZE], uint64_t kib);

#endif
