/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a move has begun, so that the next run knows what an unfinished one has left: a file for each volume, which exists from the
 * lock of the entry until everything is done. A run holds it locked.
 */
#ifndef VOLUMES_MOVELOG_H
#define VOLUMES_MOVELOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rxvol/move.h"

enum move_stage {
	MOVE_COPYING = 1, /* the source is what counts */
	MOVE_MAKING,	  /* the same; the volume at the target is part of the move */
	MOVE_SWITCHING	  /* the source is, or will be, out of service; the target comes on-line */
};

struct move_note {
	enum move_stage stage;
	uint32_t clone; /* the temporary clone at the source; 0: none */
	uint32_t
		stuck; /* one of an earlier run, which a transfer to a server that is gone still has; 0: none */
	struct move_place from, to;
};

struct movelog;

/*
 * `found`: an earlier run has left it, with this note. NULL with a message: another run has it, or it cannot be written.
 */
struct movelog *movelog_open(const char *state, uint32_t id, struct move_note *note, bool *found,
			     char *message, size_t size);
/* On stable storage afterwards. 0, or -1 with a message. */
int movelog_write(struct movelog *log, const struct move_note *note, char *message, size_t size);
/* Everything is done: there is no log any more. */
void movelog_remove(struct movelog *log);
void movelog_close(struct movelog *log);

/* The volumes whose moves are unfinished. *ids: to be freed. Their number; 0 also if there is no such folder. */
size_t movelog_list(const char *state, uint32_t **ids);
/* What the log of one has, without a lock. */
bool movelog_peek(const char *state, uint32_t id, struct move_note *note);

#endif
