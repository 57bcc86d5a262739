/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of objects: "files/new/OBJECT", then "files/GROUP/BLOCK/VNODE.UNIQUE.OBJECT". */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/data/data_private.h"

#define NEW	    "files/new"
#define BLOCK_SHIFT 10
#define MOVE_TRIES  16

void data_path_new(uint64_t number, char path[DATA_PATH])
{
	snprintf(path, DATA_PATH, NEW "/%" PRIx64, number);
}

void data_path_block(const struct store_owner *owner, char path[DATA_PATH])
{
	snprintf(path, DATA_PATH, "files/%" PRIx32 "/%" PRIx32, owner->group,
		 owner->vnode >> BLOCK_SHIFT);
}

static void format_group_path(const struct store_owner *owner, char path[DATA_PATH])
{
	snprintf(path, DATA_PATH, "files/%" PRIx32, owner->group);
}

void data_path_named(const struct store_owner *owner, uint64_t number, char path[DATA_PATH])
{
	snprintf(path, DATA_PATH, "files/%" PRIx32 "/%" PRIx32 "/%" PRIx32 ".%" PRIx32 ".%" PRIx64,
		 owner->group, owner->vnode >> BLOCK_SHIFT, owner->vnode, owner->unique, number);
}

static bool is_file_present(struct store_layer *layer, const char *path)
{
	struct store_file *file;

	if (layer->ops->open(layer, path, 0, &file) < 0)
		return false;
	layer->ops->close(file);
	return true;
}

int data_make_directory(struct store_layer *layer, const char *path, const char *parent)
{
	int rc = layer->ops->mkdir(layer, path);

	if (rc == -EEXIST)
		return 0;
	return rc ? rc : layer->ops->sync_dir(layer, parent);
}

static int make_block_directory(struct store_layer *layer, const struct store_owner *owner)
{
	char group[DATA_PATH], block[DATA_PATH];
	int rc;

	format_group_path(owner, group);
	data_path_block(owner, block);
	rc = data_make_directory(layer, group, "files");
	return rc ? rc : data_make_directory(layer, block, group);
}

int data_move(struct store_layer *layer, const struct store_owner *owner, uint64_t number)
{
	char from[DATA_PATH], to[DATA_PATH];

	data_path_new(number, from);
	data_path_named(owner, number, to);
	/* A directory may vanish again while it is empty. */
	for (int tries = 0; tries < MOVE_TRIES; tries++) {
		int rc = layer->ops->rename(layer, from, to);

		if (rc != -ENOENT)
			return rc;
		if (is_file_present(layer, to))
			return 0;
		if (!is_file_present(layer, from))
			return is_file_present(layer, to) ? 0 : -ENOENT;
		rc = make_block_directory(layer, owner);
		if (rc && rc != -ENOENT)
			return rc;
	}
	return -ENOENT;
}

static int unlink_named_object(struct store_layer *layer, const struct store_owner *owner,
			       uint64_t number)
{
	char path[DATA_PATH];
	int rc;

	data_path_named(owner, number, path);
	rc = layer->ops->unlink(layer, path);
	if (rc)
		return rc;
	/* The last object of a directory takes it along: -ENOTEMPTY as a rule. */
	data_path_block(owner, path);
	if (layer->ops->rmdir(layer, path) == 0) {
		format_group_path(owner, path);
		layer->ops->rmdir(layer, path);
	}
	return 0;
}

int data_sync_block(struct store_layer *layer, const char *path)
{
	char above[DATA_PATH];
	int rc;

	snprintf(above, sizeof(above), "%s", path);
	while ((rc = layer->ops->sync_dir(layer, above)) == -ENOENT && strchr(above, '/'))
		*strrchr(above, '/') = '\0';
	return rc;
}

int data_unlink(struct store_layer *layer, const struct store_owner *owner, uint64_t number)
{
	char path[DATA_PATH];
	int rc = unlink_named_object(layer, owner, number);

	if (rc != -ENOENT)
		return rc;
	data_path_new(number, path);
	rc = layer->ops->unlink(layer, path);
	return rc == -ENOENT ? 0 : rc;
}

/* -- lists -- */

struct listing {
	struct store_layer *layer;
	int (*new)(void *arg, uint64_t object);
	int (*named)(void *arg, const struct store_owner *owner, uint64_t object);
	void *arg;
	char path[DATA_PATH];
	uint32_t group, block;
	int stopped; /* result of `named` */
};

/* A number in lower-case hexadecimal without leading zeros, up to `end`. */
static bool parse_hex_number(const char **text, char end, uint64_t max, uint64_t *value)
{
	size_t n = strspn(*text, "0123456789abcdef");

	if (n == 0 || n > 16 || (*text)[n] != end || (n > 1 && **text == '0'))
		return false;
	*value = strtoull(*text, NULL, 16);
	*text += n + (end != 0);
	return *value <= max;
}

static int list_new_entry(void *arg, const char *name, bool directory)
{
	const struct listing *listing = arg;
	uint64_t number;

	if (directory || !parse_hex_number(&name, 0, UINT64_MAX, &number))
		return 0;
	return listing->new (listing->arg, number);
}

static int list_named_entry(void *arg, const char *name, bool directory)
{
	struct listing *listing = arg;
	uint64_t vnode, unique, number;

	if (directory || !parse_hex_number(&name, '.', UINT32_MAX, &vnode) ||
	    !parse_hex_number(&name, '.', UINT32_MAX, &unique) ||
	    !parse_hex_number(&name, 0, UINT64_MAX, &number) ||
	    vnode >> BLOCK_SHIFT != listing->block)
		return 0;

	struct store_owner owner = {listing->group, (uint32_t)vnode, (uint32_t)unique};

	listing->stopped = listing->named(listing->arg, &owner, number);
	return listing->stopped;
}

/* A directory that vanishes meanwhile had nothing in it. */
static int list_inner_directory(struct listing *inner, store_list_fn fn)
{
	int rc = inner->layer->ops->list(inner->layer, inner->path, fn, inner);

	return rc == -ENOENT && !inner->stopped ? 0 : rc;
}

static int list_block_objects(void *arg, const char *name, bool directory)
{
	struct listing inner = *(const struct listing *)arg;
	uint64_t block;

	if (!directory || !parse_hex_number(&name, 0, UINT32_MAX >> BLOCK_SHIFT, &block))
		return 0;
	inner.block = (uint32_t)block;
	snprintf(inner.path, sizeof(inner.path), "files/%" PRIx32 "/%" PRIx32, inner.group,
		 inner.block);

	int rc = list_inner_directory(&inner, list_named_entry);

	((struct listing *)arg)->stopped = inner.stopped;
	return rc;
}

static int list_group_blocks(void *arg, const char *name, bool directory)
{
	struct listing inner = *(const struct listing *)arg;
	uint64_t group;

	if (!directory || !parse_hex_number(&name, 0, UINT32_MAX, &group))
		return 0;
	inner.group = (uint32_t)group;
	snprintf(inner.path, sizeof(inner.path), "files/%" PRIx32, inner.group);

	int rc = list_inner_directory(&inner, list_block_objects);

	((struct listing *)arg)->stopped = inner.stopped;
	return rc;
}

int store_data_list_new(struct store_data *data, int (*each)(void *arg, uint64_t object), void *arg)
{
	struct listing listing = {.layer = data->layer, .new = each, .arg = arg};

	return data->layer->ops->list(data->layer, NEW, list_new_entry, &listing);
}

int store_data_list(struct store_data *data,
		    int (*each)(void *arg, const struct store_owner *owner, uint64_t object),
		    void *arg)
{
	struct listing listing = {.layer = data->layer, .named = each, .arg = arg};

	return data->layer->ops->list(data->layer, "files", list_group_blocks, &listing);
}
