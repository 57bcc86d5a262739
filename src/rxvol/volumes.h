/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside rxvol. One thread. */
#ifndef VOLUMES_VOLUMES_H
#define VOLUMES_VOLUMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "program/options.h"
#include "program/report.h"

/* One run of the program. */
struct rxvol {
	/* the command line; strings live as long as the process */
	const char *store;
	struct tools_list acl;
	const char *quota, *owner, *message;
	uint64_t id;
	const char *local;  /* the directory of import and export */
	const char *target; /* of rescue */
	const char *copy;   /* the directory of the copy of the metadata */
	const char *since, *file, *damaged;
	/* of move-in and balance */
	struct {
		const char *config, *cell, *keytab, *to, *state;
		struct tools_list location, only, exclude;
		uint64_t parallel, tolerance, most;
		int level; /* enum rxw_level */
		bool dry_run, take_over, perform, load;
	} move;
	bool backup, rw, set_id, negative, fast, data, replace, update, compare, remove, attributes, json,
		quiet;

	const char *command;
	json_t *request;     /* owned */
	int directory;	     /* of import and export, or the stream of dump and restore; -1 */
	bool stream;	     /* the command is dump or restore */
	bool made;	     /* the store was made on the way */
	bool made_directory; /* for export */

	/* the answer */
	struct progress progress;
	bool counts; /* the progress of a check, on a terminal */
	uint64_t skipped;
	json_t *faults; /* texts, or mount points, with --json; owned */
	json_t *result; /* owned; NULL: an error was printed */
	bool failed;	/* an error was printed */
	int status;
};

/*
 * request.c: rxvol->request of the command and its arguments. 0, or an exit status after a message.
 */
int rxvol_request(struct rxvol *rxvol, const struct tools_program *program, char **words,
		  size_t count);

/* movein.c, balance.c: of servers of a cell, not of a store. The exit status. */
int rxvol_move_in(struct rxvol *rxvol, char **words, size_t count);
int rxvol_balance(struct rxvol *rxvol, char **words, size_t count);

/* session.c: execute the request here, or let the server of the store do it: the exit status. */
int rxvol_session(struct rxvol *rxvol);
/* Become the owner of the store, if root runs this. 0, or -1 after a message. */
int rxvol_become_owner(const struct rxvol *rxvol);
/* Make a store. */
int rxvol_init(struct rxvol *rxvol);
/* rescue.c: a new store of what is left of one. */
int rxvol_rescue(struct rxvol *rxvol);
/* The same file: a store of the format before becomes one of the present; the copy of the metadata becomes the metadata. */
int rxvol_convert(struct rxvol *rxvol);
int rxvol_use_copy(struct rxvol *rxvol);
/* show.c: the result on stdout; the exit status. */
int rxvol_show(struct rxvol *rxvol);
/* owner.c: whether the directory of the owner has only files of the same, and this user may use them: 0, or -1 after a message. */
int rxvol_check_owner(const char *store, uid_t owner);
/* places.c: objects and mount points. A FID is VOLUME.VNODE[.UNIQUE], three numbers. */
bool rxvol_parse_fid(const char *text, uint64_t numbers[3]);
void rxvol_show_which(const struct rxvol *rxvol);
void rxvol_show_mount(const json_t *mount);

#endif
