/* SPDX-License-Identifier: BSD-2-Clause */
/* What the copy of the metadata is: its state on the disk, and how it is related to the database. For replica.c and mend.c. */
#ifndef STORE_COPYSTATE_H
#define STORE_COPYSTATE_H

#include "volume/store/disk/twin.h"
#include "volume/store/disk/wal.h"

#define COPY_DB	   STORE_COPY "/db"
#define COPY_LOG   STORE_COPY "/db-wal"
#define COPY_STATE STORE_COPY "/state"
#define META_DB	   "meta/db"
#define META_LOG   "meta/db-wal"

enum {
	COPY_PARTIAL = 1, /* it is being made */
	COPY_FOLLOWS,	  /* it has all generations of the log before its own */
	COPY_CLOSED,	  /* it is the database whose mark has the sequence `mark` */
};

enum {
	COPY_UNMOVED,
	COPY_MOVED,
	COPY_MOVING /* it is on stable storage, or moved if the log of the copy is empty */
};

/* The file "state" has two of these. */
struct store_copy_state {
	struct store_twin twin;
	uint64_t state;
	uint64_t
		mark; /* COPY_FOLLOWS: of the database before it was opened, of whose log the copy has nothing; or 0 */
	/* The last generation of the log that the copy has as a whole, also before it is in the copy. */
	uint64_t salt, end;
	uint64_t moved;	 /* COPY_MOVED: it is in the copy */
	int64_t written; /* CLOCK_REALTIME in seconds: the copy has all changes before that, with the following log */
	uint64_t log_salt, log_end; /* bytes of its log that were flushed; 0, 0: it needs none */
	int64_t base;		    /* as `written`, without the log; 0: not known */
	uint8_t uuid[16];
	uint64_t check;
};

/* The newest one; all zeros: there is none. 0 or -errno. */
int store_copy_state_read(struct store_layer *layer, struct store_copy_state *state);
/* Write the next one. `flush`: durably; else the place of the last flushed one stays as it is. 0 or -errno. */
int store_copy_state_write(struct store_layer *layer, struct store_copy_state *state, bool flush);
/* The store was closed together with a copy, whose state has that mark: STORE_CLOSED (mend.h). Durably; 0 or -errno. */
int store_copy_note_closed(struct store_layer *store, uint64_t mark);
bool store_copy_is_noted(struct store_layer *store, uint64_t mark);
/* What the log of the copy has, as a start of the copy would leave it. 0 or -errno. */
int store_copy_log_inspect(struct store_layer *layer, struct store_place *place);
/*
 * Whether the log of the copy has all that it had. If it was being moved and is empty, nobody knows whether it was removed before
 * the end: false.
 */
bool store_copy_has_log(const struct store_copy_state *state, const struct store_place *copy);
/* Whether the database's log and that of the copy, of the same generation, have the same first `end` bytes. */
bool store_copy_log_goes_on(struct store_layer *copy, struct store_layer *store, uint64_t end);
/* Whether a generation of the log follows another one. */
bool store_copy_salt_follows(uint64_t before, uint64_t salt);
/* Whether a page that the database's log does not have is the same in both. */
bool store_copy_is_same(const struct store_copy_state *state, const struct store_place *main,
			const struct store_place *copy);
/* Whether the copy has all that was in the database before the newest generation of its log, of which the end is lost. */
bool store_copy_has_base(const struct store_copy_state *state, const struct store_place *main,
			 const struct store_place *copy);

#endif
