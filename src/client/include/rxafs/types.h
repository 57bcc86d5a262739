/* SPDX-License-Identifier: BSD-2-Clause */
/* Types that all functions of the client library share. */
#ifndef RXAFS_TYPES_H
#define RXAFS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Which object: `cell` is the number that a client gave to the cell, from 1; 0 is the dynamic root.
 * The other members are AFS's numbers. A vnode's number is used again with another `unique`.
 */
struct rxafs_fid {
	uint32_t cell;
	uint32_t volume;
	uint32_t vnode;
	uint32_t unique;
};

static inline bool rxafs_fid_same(const struct rxafs_fid *a, const struct rxafs_fid *b)
{
	return a->volume == b->volume && a->vnode == b->vnode && a->unique == b->unique &&
	       a->cell == b->cell;
}

enum rxafs_kind {
	RXAFS_FILE = 1,
	RXAFS_DIRECTORY = 2,
	RXAFS_SYMLINK = 3
};

/* Rights of an access list. */
enum rxafs_right {
	RXAFS_READ = 1,
	RXAFS_WRITE = 2,
	RXAFS_INSERT = 4,
	RXAFS_LIST = 8,
	RXAFS_DELETE = 16,
	RXAFS_LOCK = 32,
	RXAFS_ADMINISTER = 64
};

/* Where a failure came from. */
enum rxafs_origin {
	RXAFS_LOCALLY,	    /* the client decided it */
	RXAFS_FROM_SERVER,  /* a server answered with `code` */
	RXAFS_FROM_NETWORK, /* no answer */
	RXAFS_FROM_LOCATION /* the location service answered with `code` */
};

/*
 * Details of a failed operation, for people and logs. Functions return 0 or a negative errno, which
 * `number` repeats without its sign.
 */
struct rxafs_failure {
	int number;
	enum rxafs_origin origin;
	int32_t code;	 /* of the call; 0 if there was none */
	uint32_t volume; /* 0 = none */
	bool maybe_done; /* the request was sent and no answer came: it may have been carried out */
	char server[64]; /* address; may be empty */
	char text[200];	 /* one line */
};

/* Of the mount daemon: the servers that an operation waits for. */
struct rxafs_awaited {
	bool known;
	uint32_t cell;	 /* its number; 0: a name that may be one of a cell */
	uint32_t server; /* a file server; 0: the location servers of the cell */
};

#ifdef __cplusplus
}
#endif

#endif
