/* SPDX-License-Identifier: BSD-2-Clause */
/* A writer: shared by piece.c, commit.c (the transaction), compact.c and write.c (the calls). */
#ifndef STORE_WRITER_H
#define STORE_WRITER_H

#include "volume/store/txn/change.h"
#include "volume/store/txn/lookup.h"

/* A run of bytes that waits for its commit. */
struct piece {
	struct store_run *run; /* NULL: there is none */
	uint64_t made;	       /* the object that was made for it; 0: none */
	struct store_content patch;
};

/* One thread at a time. */
struct store_writer {
	struct core *core;
	struct store_caller caller; /* a copy, with `ids` of its own */
	struct store_fid fid;
	struct store_owner owner;
	struct store_set set;
	uint64_t offset, length, file_length, taken;
	struct {
		uint64_t growth, disk;
	} need;		   /* KiB of the volume and of the disk that the whole store takes */
	uint64_t promised; /* KiB by which the volume may grow; of need.growth */
	uint64_t promise;  /* as volumes_take_back() wants it */
	uint64_t reserved; /* KiB of the disk that were promised so far; of need.disk */
	uint64_t room;	   /* of these, KiB that were not written yet */
	uint8_t *buffer;  /* of `length` bytes, if they may become a small file; else NULL */
	struct piece main;
	bool finished; /* main.patch is complete */
	/* The bytes of a small file that becomes a large one, for the version with `prefix_of`. */
	struct piece prefix;
	uint64_t prefix_of, prefix_length;
	/* The bytes of neighbouring extents, as one that takes their place if they are still there. */
	struct piece compact;
	struct store_content window; /* those extents */
	unsigned missing;	     /* times that an object of them could not be found */
	bool prefix_used, compact_used; /* by the transaction */
};

/* A new object for a piece. */
int writer_run(struct store_writer *writer, struct piece *piece,
	       const struct store_content *content, uint64_t offset);
int writer_put(struct store_run *run, const void *bytes, uint64_t length);
/* All bytes of the piece are written; strict: on stable storage. */
int writer_finish(struct store_writer *writer, struct piece *piece);
/* Add the bytes of an extent to a run, at which it has arrived. 0 or -errno. */
int writer_copy(struct store_view *view, const struct store_extent *extent, struct store_run *run);
/* `kept`: the commit refers to it. */
void piece_end(struct piece *piece, bool kept);

/* commit.c: results of the transaction. */
#define COMMIT_RUN     1001 /* the bytes must be in an object */
#define COMMIT_PREFIX  1002 /* so must be those of the small file */
#define COMMIT_COMPACT 1003 /* the content has too many extents */
#define COMMIT_MOVE    1004 /* the object that the run adds to is dead, which is final */
int commit_run(struct store_writer *writer, struct store_status *status,
	       struct store_changes *changes);
/* As commit_run(), or STORE_LATER; then end(writer, result) returns the result to report. */
int commit_later(struct store_writer *writer, struct store_status *status,
		 struct store_changes *changes,
		 int (*end)(struct store_writer *writer, int result));

/* compact.c: copy extents of the newest version, to have fewer. 0 or a result. */
int compact_content(struct store_writer *writer);

#endif
