/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves of volumes between the servers of a cell, in the steps of `vos move` (doc/moving.md). A move that was killed, or whose servers
 * were, is gone on with by the next one: it either ends it or puts the volume back and begins again. Each function: any thread.
 */
#ifndef VOLUMES_MOVE_H
#define VOLUMES_MOVE_H

#include "rxvol/cellside.h"

struct move_place {
	uint32_t address;
	int32_t partition;
};

struct move_job {
	uint32_t id, rw; /* of the volume, and by which its entry is found */
	bool replica;	 /* a read-only copy; else the read-write volume */
	char name[33];
	struct move_place from, to;
};

struct move_settings {
	struct cellside *cell;
	const char *state; /* the folder of the logs */
	bool take_over;	   /* what another program has left unfinished is ended, too */
	/* A line about what a move waits for. */
	void (*say)(void *arg, const struct move_job *job, const char *text);
	void *arg;
};

#define MOVE_TEXT 512
struct move_result {
	bool resumed;		 /* an earlier run had begun it */
	bool dropped;		 /* of a replica: the target has one, so it only went */
	bool backup;		 /* the backup volume went with it */
	uint64_t bytes;		 /* of the whole volume as a dump, the same at both servers */
	uint32_t files;		 /* at the target */
	uint32_t used_kib;	 /* the same */
	uint64_t away_ns;	 /* how long callers could not use the volume */
	char message[MOVE_TEXT]; /* of a failure */
};

/* 0, or -1 with the message. */
int move_volume(const struct move_settings *settings, const struct move_job *job,
		struct move_result *result);

#endif
