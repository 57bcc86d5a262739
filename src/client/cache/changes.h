/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Own changes. Each object that a call changes is told before and after: for CreateFile that is the directory, for StoreData the file, for
 * a rename the directory or both. The new object of CreateFile, MakeDir and Symlink is not: cl_cache_apply() takes its status.
 *
 * Changes of one object may overlap. Their replies have data versions of their own, which bring them into order (K-050).
 */
#ifndef CLIENT_CACHE_CHANGES_H
#define CLIENT_CACHE_CHANGES_H

#include "client/cache/cache.h"

/*
 * The object stays referenced until the end of the change. cl_change_begin_quiet() is for changes that do not raise the data version
 * (StoreStatus, StoreACL, Link of a file): they cannot explain a higher one.
 */
void cl_change_begin(struct cl_object *object);
void cl_change_begin_quiet(struct cl_object *object);

enum cl_outcome {
	CL_DONE,
	CL_NOT_DONE, /* the server refused it: nothing has changed */
	CL_UNKNOWN,  /* no answer: it may have been carried out, now or later */
};

/* A change of the names of a directory: first a name goes, then one comes, in the place of a present one of that name. */
struct cl_edit {
	const char *removed, *added; /* NULL: none */
	size_t removed_length, added_length;
	uint32_t vnode, unique; /* of the added name */
};

struct cl_effect {
	enum cl_outcome outcome;
	const struct cl_reply *reply; /* CL_DONE: as for cl_cache_apply() */
	const AFSFetchStatus *
		status; /* CL_DONE: of this object in the reply; NULL: it has none, so the next use asks */
	unsigned raised;	    /* by how much the change raises the data version: 0 or 1 */
	uint64_t now;		    /* CL_UNKNOWN: the time */
	bool acl;		    /* the access list was changed */
	/*
	 * Of a directory; NULL: its names stay. CL_UNKNOWN: what the call asks for, if the server refuses it once the name is so; NULL: the
	 * directory does not show whether it was carried out.
	 */
	const struct cl_edit *edit;
};

/*
 * *known as in cl_cache_apply(). CL_KEEP: nobody else changed the object meanwhile, so contents that are held and the stored bytes are
 * the contents of the new version. Edits are made if the names were complete and nobody else changed them, else the names are dropped
 * (K-090).
 */
enum cl_verdict cl_change_end(struct cl_object *object, const struct cl_effect *effect,
			      struct cl_status *known);

/* An own rename moved the object to another directory: its rights come from there now. For a directory ".." changes as well. */
void cl_object_moved(struct cl_object *object, uint32_t vnode, uint32_t unique);

#endif
