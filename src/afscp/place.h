/* SPDX-License-Identifier: BSD-2-Clause */
/* Places in AFS as the command line names them: VOLUME:PATH, or /afs/CELL/PATH. */
#ifndef COPY_PLACE_H
#define COPY_PLACE_H

#include <rxafs/object.h>

#include "afscp/session.h"

struct place {
	const char *text;   /* as given; names the object in messages */
	const char *volume; /* NULL: `path` begins with the name of a cell */
	const char *path;
	const char *
		shown; /* a match of a pattern: its name, or the text if directories matched too; else NULL */
};

/* False: it is neither, but a local path. The text must stay; *volume is allocated for the run. */
bool place_parse(struct run *run, const char *text, struct place *place);
/* The same with a message: only a place in AFS will do. 0 or -1. */
int place_require(struct run *run, const char *text, struct place *place);

/*
 * The object of a place, with its attributes (which may be NULL). Links and mount points on the way are
 * followed; `follow`: also that which the path ends in. After a message unless COPY_GOOD.
 */
enum copy_result place_open(struct run *run, const struct place *place, bool follow,
			    rxafs_object **object, struct rxafs_attributes *attributes);
/* For walks of trees: a link that the path ends in is not followed, a mount point is. */
enum copy_result place_open_tree(struct run *run, const struct place *place, rxafs_object **object,
				 struct rxafs_attributes *attributes);
/* Without messages; the failure is in *attempt. */
enum copy_result place_try(struct attempt *attempt, const struct place *place, bool follow,
			   rxafs_object **object, struct rxafs_attributes *attributes);

/* A name in a directory, and what has it. */
struct spot {
	const char *label;
	rxafs_object *
		directory; /* a reference; NULL with `name` "": a root, or a path that ends in "." */
	char name[256];
	rxafs_object *object; /* a reference; NULL: nothing has the name */
	struct rxafs_attributes attributes;
};
/* The last part of a path; a link or mount point there is not followed. After a message unless COPY_GOOD. */
enum copy_result spot_find(struct run *run, const struct place *place, struct spot *spot);
/* For rm -f: COPY_GOOD also if a directory above does not exist. */
enum copy_result spot_find_forced(struct run *run, const struct place *place, struct spot *spot);
/* The name `name` in a directory, which is held. */
enum copy_result spot_look(struct run *run, rxafs_object *directory, const char *name,
			   const char *label, struct spot *spot);
void spot_free(struct spot *spot);

/*
 * The places of the run with patterns replaced by the places that they match, in the order of names. A pattern
 * that matches nothing stays.
 */
enum copy_result place_expand(struct run *run);

/* Last part of a path without slashes at its end; its length in *length, 0 for a root. */
const char *find_path_base(const char *path, size_t *length);
/* Whether that part is a name: it is neither empty nor "." nor "..". */
bool is_path_name(const char *base, size_t length);
/* "LABEL/NAME"; free(). NULL after a message. */
char *place_join(const char *label, const char *name);
/* The last component of the path, or the name of the volume or cell for a root; free(). NULL: no memory. */
char *place_name(const struct place *place);

#endif
