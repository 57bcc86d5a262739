/* SPDX-License-Identifier: BSD-2-Clause */
/* A cell with a client, and what tests do with paths: the library as programs use it. */
#ifndef TESTS_CLIENT_FS_PROGRAM_H
#define TESTS_CLIENT_FS_PROGRAM_H

#include <rxafs/rxafs.h>

#include "tests/client/realserver.h"

extern struct realserver server;
extern rxafs_client *client;
extern struct rxafs_request request; /* of the functions below */

/* example.org, with the volumes root.cell and music. */
void open_program_cell(void);
void close_program_cell(void);
/* Another client of it. */
rxafs_client *open_program_client(void);

/* A reference. */
rxafs_object *object_at(const char *path);
int result_at(const char *path);
void make_directory(const char *path);
/* Into a new file. */
void write_text(const char *path, const char *text);
void expect_text(const char *path, const char *text);

#endif
