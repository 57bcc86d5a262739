/* SPDX-License-Identifier: BSD-2-Clause */
/* Repairs of the database from its copy, while nobody has it open. */
#ifndef STORE_MEND_H
#define STORE_MEND_H

#include <stdbool.h>
#include <stdint.h>

#include "volume/store/disk/layer.h"

/* A file in the store: it was closed together with its copy, whose state has the same mark. Gone while the store is open. */
#define STORE_CLOSED "closed"

enum store_relation {
	STORE_COPY_NONE,  /* there is none that can be used */
	STORE_COPY_OLDER, /* it may lack the last changes */
	STORE_COPY_SAME,  /* of each page that the log does not have, it has the newest state */
};
/* How the copy in a layer is related to the database of the store. 0 or -errno. */
int store_replica_compare(struct store_layer *copy, struct store_layer *store,
			  enum store_relation *relation);
/* Whether the store was last closed together with its copy, and has lost its mark since: the copy has all metadata. */
bool store_replica_is_all(struct store_layer *copy, struct store_layer *store,
			  const uint8_t uuid[16]);
/* A clause for messages, "it ...": until when the copy had all changes, and what it has lost since. */
#define STORE_COPY_CLAUSE 192
void store_replica_describe(struct store_layer *copy, char clause[STORE_COPY_CLAUSE]);
/* The log of a database that was not closed. */
struct store_log_state {
	bool damaged; /* or shorter than it was, or gone */
	bool better;  /* that of the copy has more of it */
	bool lost;    /* acknowledged changes may be in neither */
	bool torn;    /* and the database may have some of them, page by page */
	bool bare; /* neither the log nor its mark is there, only a copy that follows: it may have what is lost */
	bool blank;   /* neither a mark nor a log is left: there may have been none */
	/*
	 * In place of such a database, that of the copy is one of a single moment, with its log, or `goes_on`: with that of the
	 * database.
	 */
	bool based, goes_on;
	int64_t until; /* all changes before are there: CLOCK_REALTIME in seconds; 0: that is not known */
};
/* Nothing is changed. `copy`: NULL, if there is none. 0 or -errno. */
int store_replica_judge_log(struct store_layer *copy, struct store_layer *store,
			    struct store_log_state *state);
/* The same; and take from the copy what its log has more. */
int store_replica_mend_log(struct store_layer *copy, struct store_layer *store,
			   struct store_log_state *state);
/*
 * Take pages that are damaged, or that the database lacks, from a copy that is the same. *repaired, *left: pages that were and
 * that could not be.
 */
int store_replica_repair(struct store_layer *copy, struct store_layer *store, uint32_t *repaired,
			 uint32_t *left);

#endif
