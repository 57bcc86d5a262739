/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the store: a store in a temporary folder, and short forms of its operations. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <stdbool.h>

#include "volume/store/store.h"

/* The store that is open, its volume "v", and what the last operation gave. */
extern struct store *store;
extern uint32_t volume;
extern struct store_fid root;
extern struct store_status status, dir_status, old_status, new_status;
extern struct store_changes changes;
extern struct store_volume about;
extern struct store_stats stats;
extern char message[STORE_MESSAGE_MAX];
extern int lines;	     /* of the log */
extern char last_line[600];
extern bool faults_expected; /* when the test ends */

extern const struct store_caller admin, user, anonymous;
extern const struct store_set nothing;

void fixture_start(void);
/* The store must be sound. */
void fixture_end(void);
const char *fixture_path(void);
/* Write a file into the folder, which is made. */
void fixture_file(const char *name, const char *text);
void fixture_memory(size_t bytes); /* of the caches, before it is opened */
/* When all data are verified, and then as fast as possible; before it is opened. */
void fixture_scrub(unsigned wait_ms);
/* In place of the folder, before it is opened. To be closed by the test. */
void fixture_layer(struct store_layer *layer);
/* A file of the folder begins with a text. */
void fixture_expect(const char *name, const char *text);
/* Make and open a store with a volume. */
void fixture_open(enum store_durability durability);
void fixture_close(void);
void fixture_open_again(void);
void fixture_reopen(void);
/* With the database alone, while the store is closed; it is open again afterwards. */
void fixture_sql(const char *sql);
int fixture_rows(const char *sql); /* the number that it selects */
/* Faults of a full check; each is printed. */
int fixture_check(void);
/* Wait until nothing is left to be pruned; the store must be sound. */
void fixture_pruned(void);
/* Fill `about`. */
void fixture_volume(uint32_t id);
/* A file, link or directory has exactly these bytes. */
void fixture_same(const struct store_fid *fid, const void *bytes, size_t length);
/* A reader keeps its version when the file is written and removed. */
void fixture_keeps(const struct store_fid *fid);

/* -- operations, which must succeed -- */
struct store_fid make(const struct store_fid *dir, const char *name, enum store_kind kind);
struct store_fid make_as(const struct store_caller *caller, const struct store_fid *dir,
			 const char *name, enum store_kind kind);
struct store_fid make_link(const struct store_fid *dir, const char *name, const char *text);
int byte_at(const struct store_fid *fid, uint64_t offset);

/* -- operations; results of the store -- */
int try_status(const struct store_caller *caller, const struct store_fid *fid);
int try_acl(const struct store_caller *caller, const struct store_fid *fid);
int try_read(const struct store_caller *caller, const struct store_fid *fid);
int try_set(const struct store_caller *caller, const struct store_fid *fid, uint32_t mask,
	    uint32_t mode);
int try_create(const struct store_caller *caller, const struct store_fid *dir, const char *name,
	       enum store_kind kind);
int try_remove(const struct store_caller *caller, const struct store_fid *dir, const char *name,
	       enum store_kind kind);
int try_link(const struct store_caller *caller, const struct store_fid *dir, const char *name,
	     const struct store_fid *existing);
int try_rename(const struct store_caller *caller, const struct store_fid *from, const char *name,
	       const struct store_fid *to, const char *new_name);
int try_begin(const struct store_caller *caller, const struct store_fid *fid, uint64_t offset,
	      uint64_t length, uint64_t file_length, struct store_writer **writer);
int try_write(const struct store_caller *caller, const struct store_fid *fid, uint64_t offset,
	      const void *bytes, size_t length, uint64_t file_length);

#endif
