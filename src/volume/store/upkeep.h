/* SPDX-License-Identifier: BSD-2-Clause */
/* Upkeep of a store by administrators: checks, conversions, the use of the copy of its metadata, rescues. */
#ifndef STORE_UPKEEP_H
#define STORE_UPKEEP_H

#include "volume/store/store.h"

/* -- of an open store -- */

struct store_checker {
	bool fast; /* the records of volumes and the structure of the database only */
	bool data; /* all data of large files are read as well, and compared with their checksums */
	/* Called with one line for each fault, by the thread of the check. May be NULL. */
	void (*each)(void *arg, const char *line);
	/*
	 * Called now and then by the thread of the check: how many objects were looked at, of those that
	 * all volumes and clones have. None at first, while the database is. May be NULL.
	 */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	/* Asked about twenty times a second, by another thread: true ends the check. May be NULL. */
	bool (*stopped)(void *arg);
	void *arg;
};
/*
 * Prove the store sound: structure of the database, records, directories, links, quotas, maps and
 * objects. Returns the number of faults, -EINTR if it was stopped, or -errno.
 */
int store_check(struct store *store, const struct store_checker *checker);

/* -- of a store that no process has open; `message` as in store_open() -- */

/* Convert a store of the format before, which store_open() refuses. 0, or -errno with a message; it may be repeated. */
int store_convert(const struct store_options *options, char *message);

/*
 * Go on with the copy of the metadata, although it may lack the last changes, since the metadata are damaged. The damaged ones
 * are kept in "meta". A damaged copy is refused, and nothing changes: -EBADMSG. If the copy may lack changes, options->copy has to name its directory: else -ESTALE, with a message
 * that has the command. 0 with a message that says which copy it is; or -errno with a message.
 */
int store_use_copy(const struct store_options *options, char *message);

/*
 * Make a new store of whatever can be read of a damaged one and of the copy of its metadata, without changing them. Volumes,
 * clones, FIDs, rights and names stay. Names of lost objects go, and objects whose names are lost get one in the directory
 * "lost+found" of their volume.
 */
struct store_rescue {
	const char *source, *target;
	const char
		*copy; /* the directory with the copy of the metadata; NULL: it is in the store */
	struct store_layer *
		layers[3]; /* in place of source, target and copy; for tests; owned by the caller */
	/* A line for each thing that is lost or was moved. May be NULL. */
	void (*line)(void *arg, const char *line);
	void *arg;

	/* What was found. */
	uint64_t pages, damaged_pages; /* of the database and its copy */
	uint64_t volumes, files;       /* files, directories and links of read-write volumes */
	uint64_t found;		       /* of them, those in "lost+found" */
	uint64_t lost;		       /* records and names */
	bool log_lost; /* the log is damaged or missing, so that changes before the last stop may be lost */
	uint64_t older;	 /* records that only a copy has which may lack later changes */
	bool copy_only;	 /* all of them are: the database has none */
	uint64_t unused; /* files of contents that no record has; they are not in the new store */
	uint64_t unread; /* objects with contents that are missing, or that cannot be read */
	uint64_t bytes;	 /* of the files */
};
/* 0: done, whatever is lost; or -errno with a message. */
int store_rescue(struct store_rescue *rescue, char *message);

#endif
