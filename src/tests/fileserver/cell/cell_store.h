/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of one program each: a store in a temporary folder, and the cell that uses it. */
#ifndef TESTS_CELL_STORE_H
#define TESTS_CELL_STORE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fileserver/base/base.h"
#include "fileserver/cell/volumes.h"
#include "tests/main.h"

static char cell_folder[64];
static struct store *cell_store;
static struct fsd_cell *cell;

static inline void open_cell(const struct fsd_cell_options *given)
{
	struct fsd_cell_options options = *given;
	const struct store_options store = {.path = cell_folder, .no_copy = true};
	char message[FSD_MESSAGE_MAX];

	ck_assert_msg(!store_open(&store, &cell_store, message), "%s", message);
	options.store = cell_store;
	cell = fsd_cell_open(&options, message);
	ck_assert_msg(cell != NULL, "%s", message);
}

static inline void make_cell(const struct fsd_cell_options *options)
{
	struct store_options store = {.path = cell_folder, .no_copy = true};
	char message[FSD_MESSAGE_MAX];

	snprintf(cell_folder, sizeof(cell_folder), "/tmp/rxw-cell-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(cell_folder));
	ck_assert_msg(!store_make(&store, message), "%s", message);
	open_cell(options);
}

static inline void close_cell(void)
{
	fsd_cell_close(cell);
	cell_store->ops->close(cell_store);
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void remove_cell(void)
{
	close_cell();
	nftw(cell_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
