/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside afscp sync: what its parts share. */
#ifndef COPY_SYNC_H
#define COPY_SYNC_H

#include "afscp/contents.h"
#include "afscp/filter.h"
#include "afscp/tree.h"

/* A run of sync. Members without a comment are constant once its threads run. */
struct sync {
	struct run *run;
	const struct copy_settings *set;
	const struct filters *filters;
	bool dry_run;
	struct pace pace;
	char *from_label, *to_label; /* of the roots */
	struct rxafs_fid target;     /* of the destination, which is not copied into itself */

	atomic_uint_fast64_t compared, made, linked, removed, adjusted;
	atomic_uint_fast64_t vanished;
	atomic_bool stopped;	   /* the rest would fail as well */
	pthread_mutex_t seen_lock; /* of what follows: directories in AFS */
	struct fid_set entered;	   /* of the source */
	struct fid_set emptied;	   /* of the destination, whose contents were removed */
	pthread_mutex_t list_lock; /* of standard output */
};

/* What is done with a name. */
enum sync_act {
	SYNC_COPY,
	SYNC_MAKE,
	SYNC_LINK,
	SYNC_REMOVE,
	SYNC_ADJUST /* mode or time */
};
/* Count it and name it, for -v, --dry-run and --json. */
void sync_note(struct sync *s, enum sync_act act, const char *path, bool folder, uint64_t bytes);

/* Make `to` what `from` is, with --jobs threads. Takes both folders. `old`: what `to` is; NULL: it is new. */
void sync_tree(struct sync *s, struct folder *from, struct folder *to, const struct item *source,
	       const struct item *old);
/* One object that is no directory, to the name `name`. The labels are those of the objects. */
void sync_one(struct sync *s, struct folder *from, struct folder *to, const struct item *source,
	      const char *name);
/* Keep the result of a part: COPY_FAILED is counted, COPY_STOP ends the run. */
enum copy_result sync_judge(struct sync *s, enum copy_result rc);

#endif
