/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Volumes as a stream of bytes in AFS's dump format (doc/spec/afs-location.md, section 6), which OpenAFS's `vos restore` and
 * `vos dump` read and write.
 */
#ifndef DUMP_DUMP_H
#define DUMP_DUMP_H

#include "volume/store/transfer.h"

/* -- writing -- */

struct dump_output {
	/* All bytes. 0 or -errno, with which dump_write() ends. */
	int (*write)(void *arg, const void *bytes, size_t length);
	/* Called after some bytes; a nonzero result ends the dump with -EINTR. */
	bool (*progress)(void *arg, uint64_t bytes, uint64_t objects);
	void *arg;
};

/* -- damaged objects, which cannot be dumped -- */

struct dump_damage {
	struct dump_damaged {
		uint32_t vnode;
		bool below; /* it is in a damaged directory, and may be sound itself */
	} * item;	    /* ascending */
	size_t count, room;
};
/*
 * Find the objects whose records or contents cannot be read, and all that is in such directories. All contents are read; of
 * `output`, only progress() is called. 0 or a result; in any case *damage has what was found, and is to be forgotten.
 */
int dump_find_damage(struct store *store, struct store_snapshot *snapshot,
		     const struct dump_output *output, struct dump_damage *damage);
bool dump_is_damaged(const struct dump_damage *damage, uint32_t vnode); /* NULL is allowed */
void dump_forget_damage(struct dump_damage *damage);

struct dump_counts {
	uint64_t bytes;	  /* of the stream */
	uint64_t objects; /* in full */
	uint64_t unchanged;
};

/* What is not dumped in full. */
struct dump_base {
	/* The clone that the snapshot was told: vnodes that have not changed since are only named. */
	uint32_t date;	  /* 0: there is none */
	uint32_t updated; /* when its contents were changed last */
	/* These vnodes and their names are left out. NULL: none are. */
	const struct dump_damage *without;
	/*
	 * As a volume service dumps. Vnodes that changed at `date` or later are in full, by the clock of the server; and, unless `sparse`,
	 * all directories.
	 */
	bool dated, sparse;
	bool measured;	  /* nothing is read or written of contents: only counts->bytes counts */
	const char *note; /* the message of the volume; NULL: its own */
};

/*
 * 0, a result of the store, or of the output: *local says which.
 */
int dump_write(struct store *store, struct store_snapshot *snapshot, const struct dump_base *base,
	       const struct dump_output *output, struct dump_counts *counts, bool *local);

/* -- reading -- */

struct dump_input {
	/* Up to `length` bytes; 0: the end; -errno. */
	ssize_t (*read)(void *arg, void *bytes, size_t length);
	bool (*progress)(void *arg, uint64_t bytes, uint64_t objects);
	/* An incremental dump has to fit to what the volume has: else -EBADMSG. */
	bool fits;
	/* Whether a directory may have this list: 0, or a result with which the restore ends. May be NULL. */
	int (*permit)(void *arg, const struct store_acl *acl, uint32_t vnode);
	void *arg;
};

struct dump_info {
	uint32_t id;   /* of the volume that was dumped */
	uint32_t from; /* 0: everything is in it; else what changed since */
	uint32_t base; /* when the state before that was changed last; 0: not known */
	struct store_header header;
};

struct dump_reader;
/*
 * The headers. -EBADMSG: message[STORE_MESSAGE_MAX] says what is wrong, and where. Else 0, a result of the store or of the
 * input. The strings have no control characters.
 */
int dump_read_begin(struct store *store, const struct dump_input *input,
		    struct dump_reader **reader, struct dump_info *info, char *message);
/* All vnodes to the end of the stream. info->header: of the last header. Results as above. */
int dump_read_vnodes(struct dump_reader *reader, struct store_restore *restore,
		     struct dump_info *info, struct dump_counts *counts);
void dump_read_end(struct dump_reader *reader); /* NULL is allowed */

#endif
