/* SPDX-License-Identifier: BSD-2-Clause */
/* The dynamic root: a directory of cells, made here. CELL is a regular mount point of root.cell, .CELL a read-write one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/fs/operate.h"

/*
 * Vnodes: 1 is the root, 2 and 4 the links @cell and .@cell, then two for each cell, odd ones as of
 * directories.
 */
#define FIRST_CELL_VNODE 5u

static struct rxafs_fid cell_fid(uint32_t number, bool read_write)
{
	return (struct rxafs_fid){0, 0, FIRST_CELL_VNODE + 4 * (number - 1) + 2 * read_write, 1};
}

static int make_cell(rxafs_object *root, struct cl_cell *cell, bool read_write,
		     rxafs_object **object)
{
	struct rxafs_fid fid = cell_fid(cl_cell_number(cell), read_write);
	char text[CL_CELL_NAME + 16];

	snprintf(text, sizeof text, "%c%s:root.cell.", read_write ? '%' : '#', cl_cell_name(cell));
	*object = fs_get_special(root->client, root, FS_CELL, &fid, RXAFS_DIRECTORY, text);
	return *object ? 0 : -ENOMEM;
}

static int make_alias(rxafs_object *root, bool read_write, rxafs_object **object)
{
	struct cl_cell *home = cl_cells_home(root->client->cells);
	struct rxafs_fid fid = {0, 0, 2 + 2 * read_write, 1};
	char text[CL_CELL_NAME + 1];

	if (!home)
		return -ENOENT;
	snprintf(text, sizeof text, "%s%s", read_write ? "." : "", cl_cell_name(home));
	*object = fs_get_special(root->client, root, FS_ALIAS, &fid, RXAFS_SYMLINK, text);
	return *object ? 0 : -ENOMEM;
}

static bool is_known(rxafs_client *client, const char *name)
{
	struct cl_cell *cell;

	for (uint32_t i = 1; (cell = cl_cells_at(client->cells, i)); i++)
		if (!strcasecmp(cl_cell_name(cell), name))
			return true;
	return false;
}

static int refuse_cell(struct rxafs_request *request, int result, const char *name)
{
	char text[sizeof request->failure.text];

	snprintf(
		text, sizeof text,
		result == -ETIMEDOUT ? "no answer from DNS about cell %.100s"
		: !strchr(name, '.')
			? "%.100s is no cell of CellServDB, and without a dot no name that DNS is asked for"
			: "cell %.100s is not known: neither CellServDB nor DNS has it",
		name);
	return fs_fail(request, result, text);
}

int fs_dynamic_find(rxafs_object *root, struct rxafs_request *request, const char *name,
		    rxafs_object **object)
{
	bool read_write = name[0] == '.';
	const char *plain = name + read_write;
	struct cl_cell *cell;
	int result;

	if (!strcmp(plain, "@cell"))
		return make_alias(root, read_write, object);
	if (!plain[0] || plain[0] == '.')
		return -ENOENT;
	/* Shells and tools look for names that are no cells, all the time. */
	if (!is_known(root->client, plain)) {
		if (!strchr(plain, '.'))
			return refuse_cell(request, -ENOENT, plain);
		if (request->quick) {
			request->awaited = (struct rxafs_awaited){.known = true};
			return RXAFS_WOULD_WAIT;
		}
	}
	result = cl_cells_find(root->client->cells, plain, request->deadline, &cell);
	if (result)
		return refuse_cell(request, result == -EINVAL ? -ENOENT : result, plain);
	return make_cell(root, cell, read_write, object);
}

bool fs_dynamic_name(rxafs_client *client, uint64_t n, char name[CL_CELL_NAME + 2],
		     struct rxafs_fid *fid, bool *alias)
{
	bool home = cl_cells_home(client->cells) != NULL;
	struct cl_cell *cell;

	*alias = home && n < 2;
	if (*alias) {
		snprintf(name, CL_CELL_NAME + 2, "%s@cell", n ? "." : "");
		*fid = (struct rxafs_fid){0, 0, 2 + 2 * (uint32_t)n, 1};
		return true;
	}
	n -= home ? 2 : 0;
	cell = cl_cells_at(client->cells, (uint32_t)(n / 2) + 1);
	if (!cell)
		return false;
	*fid = cell_fid((uint32_t)(n / 2) + 1, n & 1);
	snprintf(name, CL_CELL_NAME + 2, "%s%s", n & 1 ? "." : "", cl_cell_name(cell));
	return true;
}
