/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of dumps and restores: dumps in memory, and a disk with volumes that they are made of. */
#ifndef TESTS_STORE_TRANSFER_FIXTURE_H
#define TESTS_STORE_TRANSFER_FIXTURE_H

#include "tests/volume/store/crashdisk.h"
#include "volume/dump/dump.h"
#include "volume/store/transfer.h"

struct memory {
	uint8_t *bytes;
	size_t length, room, at;
};

/* Of make_disk(): complete, incremental, complete with the later state. */
extern struct memory dumps[3];
void free_dumps(void);

int write_memory(void *arg, const void *bytes, size_t length);
/* `since`: a clone; 0: a complete dump. */
int dump_volume(struct store *store, uint32_t id, uint32_t since, struct memory *to);
/* `name`: of a new volume; NULL: onto `id`. */
int restore_memory(struct store *store, struct memory *from, const char *name, uint32_t id);
/* Of the last restore. */
extern char message[STORE_MESSAGE_MAX];
extern uint64_t nameless;

/* The disk that the tests begin with: "v" with its clones, "w" with what "v" had when the read-only one was made. */
extern uint32_t v, w, readonly, backup;
#define LARGE 20000 /* bytes of "a" */
struct crashdisk *make_disk(void);
struct store *open_disk(struct crashdisk *disk, struct store_layer **layer);

/* Where the vnodes begin: the root is the first. */
size_t find_vnodes(const struct memory *dump);
/* Where bytes begin, at an offset or behind it. */
size_t find_bytes(const struct memory *dump, size_t at, const void *bytes, size_t length);
/* The mark, number and uniquifier of a vnode. */
size_t find_vnode(const struct memory *dump, uint8_t vnode);
void put_word(struct memory *dump, size_t at, uint32_t value);
void expect_same_vnodes(const struct memory *a, const struct memory *b);

#endif
