/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel was given of one object, for kernel.c, pages.c and flusher.c. */
#ifndef RXAFS_KNOWN_H
#define RXAFS_KNOWN_H

#include "common/htable.h"
#include "rxafs/kernel.h"

/* A name that the kernel may keep. */
struct given {
	void *link;
	uint64_t hash;
	bool directory;
	size_t length;
	char name[];
};

struct known {
	struct mount *mount;
	pthread_mutex_t lock; /* of the names, and of the pages */
	struct htable names;
	bool has_names;
	atomic_bool is_directory;
	uint64_t name_changes; /* that were told */
	uint64_t generation;
	/*
	 * Pages. They may be of contents (rxafs_file_contents()) from `oldest` on, and those that were filled since the last
	 * invalidation began, of contents from `fresh` on. UINT64_MAX: there are none.
	 */
	uint64_t oldest, fresh;
	unsigned invalidations; /* that have begun */
	rxafs_object *object;
	atomic_bool listed;	   /* it has pages: */
	struct known *next, **at;  /* under the list's lock */
	struct kernel_read *reads; /* that are not answered, since they wait for a server */
	atomic_uint waiting;	   /* changes that no thread has taken yet */
	_Atomic uint64_t changes;  /* that were told */
	atomic_bool expiring;	   /* a thread will expire the attributes */
	atomic_bool given;	   /* the kernel was given attributes since they were invalidated */
	_Atomic uint64_t given_at; /* when, last */
	_Atomic uint64_t expired;  /* of these, those after which the attributes were invalidated */
	atomic_uint unanswered;	   /* requests about it that wait for a server */
	atomic_uint turn;	  /* of its node, see through.c; under the lock, as the next ones */
	unsigned paged;		  /* descriptors that use the kernel's pages */
	struct through *throughs; /* descriptors that do not */
};

struct page_list {
	pthread_mutex_t lock;
	struct known *first;
};

/* Take it from the list of those with pages. With the list's lock. */
void known_unlist(struct known *known);
/* NULL: no memory; then the kernel keeps nothing of it. */
struct known *kernel_known(struct mount *mount, rxafs_object *object);

/* Parts of a file, in order. */
struct part {
	uint64_t begin, end; /* end UINT64_MAX: of the file */
};
#define PARTS_MOST 64u

/*
 * An invalidation of pages begins: the parts that have to be invalidated, at most PARTS_MOST. Left out are those that are being read: their pages
 * cannot be used before the answer, which is of the present contents. *number is for pages_end_invalidation().
 */
unsigned pages_begin_invalidation(struct known *known, struct part *parts, unsigned *number);
void pages_end_invalidation(struct known *known, unsigned number);

#endif
