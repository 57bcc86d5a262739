/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of the interface of a store: names of objects, their status, volumes, bytes in memory. */
#ifndef VOLUME_VALUES_H
#define VOLUME_VALUES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#define STORE_NAME_MAX	  255 /* bytes of a name in a directory */
#define STORE_TEXT_MAX	  1024 /* bytes of the text of a symbolic link */
#define STORE_VOLNAME_MAX 64

struct store_fid {
	uint32_t volume, vnode, unique;
};
#define STORE_ROOT_VNODE  1
#define STORE_ROOT_UNIQUE 1

/* The same numbers as FileType on the wire. */
enum store_kind {
	STORE_FILE = 1,
	STORE_DIR = 2,
	STORE_SYMLINK = 3 /* mount points included */
};

/* -- status -- */

/* All members belong to one version. */
struct store_status {
	struct store_fid fid;
	enum store_kind kind;
	uint32_t links;
	uint64_t length;  /* bytes; directory: of its image */
	uint64_t version; /* data version */
	uint32_t pieces;  /* of a large file: parts of its map, which a reader keeps in memory */
	int32_t author, owner;
	uint32_t group, mode;	       /* mode: 12 bits */
	uint32_t parent, parent_unique; /* of a directory: its own numbers, as on the wire */
	uint32_t client_mtime, server_mtime; /* seconds since 1970 */
	uint32_t rights;		     /* of the caller (afs-fileserver 1.4, words 7 and 8) */
	uint32_t anonymous;		     /* of system:anyuser */
};

/* Members that a call sets; bits of `mask` as on the wire (afs-fileserver 1.5). */
#define STORE_SET_MTIME 1u
#define STORE_SET_OWNER 2u
#define STORE_SET_GROUP 4u
#define STORE_SET_MODE	8u
#define STORE_SET_SYNC	1024u /* on stable storage before the call returns */
struct store_set {
	uint32_t mask, mtime;
	int32_t owner;
	uint32_t group, mode;
};

/* -- volumes -- */

enum store_type {
	STORE_RO = 0,
	STORE_RW = 1,
	STORE_BACKUP = 2
};
#define STORE_TYPES 3

struct store_volume {
	uint32_t id;
	uint32_t rw, ro, backup; /* ids of the group; 0: there is none */
	enum store_type type;
	char name[STORE_VOLNAME_MAX + 16]; /* with ".readonly" or ".backup" */
	bool online;
	bool cell;	    /* made by the volume service of a cell, which knows where it is */
	uint64_t quota_kib; /* 0: no limit */
	int32_t minimum;    /* KiB, as clients set it; nothing is reserved */
	uint64_t used_kib;
	uint64_t files;				    /* vnodes in use, directories included */
	uint32_t created, copied, updated, cloned; /* seconds since 1970 */
	uint32_t sync; /* word 1 of AFSVolSync: changes only if the content is replaced as a whole */
	char offline_message[128];
};

/* All volumes, clones included. */
struct store_totals {
	uint32_t count;
	uint32_t plain; /* of them, those that no cell has */
	uint32_t of_type
		[STORE_TYPES]; /* by enum store_type; without those whose records are damaged */
	uint32_t last;	       /* the greatest id */
};

struct store_space {
	uint64_t total_kib, available_kib;
};

/* read() of a file whose bytes are in memory: what the buffers take from `offset` on. */
static inline ssize_t store_read_memory(const void *bytes, size_t length, const struct iovec *iov,
					int count, uint64_t offset)
{
	size_t total = 0;

	for (int i = 0; i < count && offset < length; i++) {
		size_t n = length - (size_t)offset;

		if (n > iov[i].iov_len)
			n = iov[i].iov_len;
		memcpy(iov[i].iov_base, (const char *)bytes + offset, n);
		offset += n;
		total += n;
	}
	return (ssize_t)total;
}

#endif
