/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects by paths of programs: "/afs/…", and "VOLUME:…" from the root of a volume that no mount point leads to. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/path.h>

#include "client/fs/operate.h"

static int choose_cell(rxafs_client *client, struct rxafs_request *request, const char *name,
		     struct cl_cell **cell)
{
	if (name)
		return cl_cells_find(client->cells, name, request->deadline, cell);
	*cell = cl_cells_home(client->cells);
	return *cell ? 0 : fs_fail(request, -EDESTADDRREQ, "no home cell is known");
}

int rxafs_open_volume(rxafs_client *client, struct rxafs_request *request, const char *cell_name,
		      const char *name, rxafs_object **root)
{
	struct cl_caller caller = fs_caller(client, request);
	struct cl_volume *volume;
	struct cl_cell *cell;
	struct fs_vnode *v;
	int result = choose_cell(client, request, cell_name, &cell);

	if (!result && request->quick)
		result = RXAFS_WOULD_WAIT;
	if (!result)
		result = cl_volume_find(client->net, cell, name, CL_WANT_EXACT, &caller, &volume,
					&request->failure);
	/* There may be only a read-only volume of that name. */
	if (result == -ENODEV)
		result = cl_volume_find(client->net, cell, name, CL_WANT_RO, &caller, &volume,
					&request->failure);
	if (result)
		return result;
	result = fs_root_of_volume(client, volume, &v);
	cl_volume_unref(volume);
	if (result)
		return result;
	*root = fs_get_root_object(v);
	fs_put_vnode(v);
	return *root ? 0 : -ENOMEM;
}

/* Where a path begins; *rest is what follows. */
static int find_start(rxafs_client *client, struct rxafs_request *request, const char *path,
		      rxafs_object **start, const char **rest)
{
	size_t head = strcspn(path, "/:");
	char *volume;
	int result;

	if (!strncmp(path, "/afs", 4) && (path[4] == '/' || !path[4])) {
		*start = rxafs_root(client);
		*rest = path + 4;
		return 0;
	}
	if (!head || path[head] != ':')
		return fs_fail(request, -EINVAL, "the path is neither /afs/CELL/... nor VOLUME:...");
	volume = strndup(path, head);
	if (!volume)
		return -ENOMEM;
	result = rxafs_open_volume(client, request, NULL, volume, start);
	free(volume);
	*rest = path + head + 1;
	return result;
}

/* A walk by a path that begins with a slash would leave the volume. */
static int walk_from(rxafs_object *start, struct rxafs_request *request, const char *rest,
		     bool follow, rxafs_object **object)
{
	rest += strspn(rest, "/");
	return rxafs_walk(start, request, rest, follow, object);
}

int rxafs_find_path(rxafs_client *client, struct rxafs_request *request, const char *path,
		    bool follow, rxafs_object **object)
{
	rxafs_object *start;
	const char *rest;
	int result = find_start(client, request, path, &start, &rest);

	if (result)
		return result;
	result = walk_from(start, request, rest, follow, object);
	rxafs_release(start);
	return result;
}

/* The last element, without slashes behind it; *head is the length of what is before it. */
static int cut_name(const char *path, size_t *head, char name[NAME_MAX + 1])
{
	size_t end = strlen(path), begin;

	while (end && path[end - 1] == '/')
		end--;
	for (begin = end; begin && path[begin - 1] != '/'; begin--)
		;
	if (end - begin > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, path + begin, end - begin);
	name[end - begin] = '\0';
	*head = begin;
	return name[0] && strcmp(name, ".") && strcmp(name, "..") ? 0 : -EINVAL;
}

int rxafs_find_parent(rxafs_client *client, struct rxafs_request *request, const char *path,
		      rxafs_object **directory, char name[256])
{
	rxafs_object *start;
	const char *rest;
	char *above;
	size_t head;
	int result = find_start(client, request, path, &start, &rest);

	if (result)
		return result;
	result = cut_name(rest, &head, name);
	if (!result) {
		above = strndup(rest, head);
		result = above ? walk_from(start, request, above, true, directory) : -ENOMEM;
		free(above);
	}
	rxafs_release(start);
	if (result || (*directory)->kind == RXAFS_DIRECTORY)
		return result;
	rxafs_release(*directory);
	return -ENOTDIR;
}
