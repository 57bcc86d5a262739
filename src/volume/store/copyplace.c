/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory with the copy of the metadata, and the file that remembers it. */
#include "volume/store/copyplace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "volume/store/disk/crc.h"
#include "volume/store/disk/vfs.h"

#define NAME	 "COPY"
#define NAME_NEW NAME ".new"
#define LOCK	 STORE_COPY "/lock"
#define ROOM	 (PATH_MAX + 64)

/* Only a directory that a user has named has an inode: a layer of a test is none. */
static unsigned long long get_store_inode(const struct store_options *options)
{
	struct stat st;

	return options->layer || stat(options->path, &st) ? 0 : (unsigned long long)st.st_ino;
}

static int compose_place_text(char text[ROOM], unsigned long long inode, const char *path)
{
	int length = snprintf(text, ROOM, "%llu %s\n", inode, path);

	return length + snprintf(text + length, (size_t)(ROOM - length), "%08x\n",
				 (unsigned)store_crc(0, text, (size_t)length));
}

/* The path that is remembered: "" if there is none, or the file is damaged or that of another store. */
static void recall_place(struct store_layer *store, unsigned long long inode, char path[PATH_MAX])
{
	char text[ROOM] = "", again[ROOM];
	const struct iovec iov = {text, sizeof(text) - 1};
	struct store_file *file;
	const char *at, *end;

	path[0] = '\0';
	if (!inode || store->ops->open(store, NAME, 0, &file))
		return;
	if (store->ops->preadv(file, &iov, 1, 0, false) < 0)
		text[0] = '\0';
	store->ops->close(file);
	at = strchr(text, ' ');
	end = strchr(text, '\n');
	if (!at || !end || end < at || end - at > PATH_MAX)
		return;
	snprintf(path, PATH_MAX, "%.*s", (int)(end - at - 1), at + 1);
	compose_place_text(again, inode, path);
	if (strcmp(text, again) != 0)
		path[0] = '\0';
}

static bool is_same_directory(const char *a, const char *b)
{
	struct stat first, second;

	return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

static bool is_same_disk(const char *a, const char *b)
{
	struct stat first, second;

	return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev;
}

static int lock_place(struct store_layer *layer)
{
	int result;

	layer->ops->mkdir(layer, STORE_COPY);
	result = layer->ops->lock(layer, LOCK);
	return result == -EBUSY ? result : 0;
}

static void open_other_place(struct copyplace *place, bool lock)
{
	place->result = store_layer_posix(place->path, &place->layer);
	place->own = !place->result;
	if (place->own && lock)
		place->result = lock_place(place->layer);
	place->absent = place->result != 0;
	if (!place->absent || !place->own)
		return;
	place->layer->ops->destroy(place->layer);
	place->layer = NULL;
	place->own = false;
}

void copyplace_open(struct copyplace *place, const struct store_options *options,
		    struct store_layer *store, bool lock)
{
	memset(place, 0, sizeof(*place));
	place->named = options->copy || options->copy_layer;
	if (options->copy_layer) {
		place->layer = options->copy_layer;
		place->shares = place->layer == store;
		return;
	}
	if (!options->copy && (options->layer || options->no_copy))
		return;
	if (!options->copy)
		recall_place(store, get_store_inode(options), place->path);
	else if (!realpath(options->copy, place->path))
		snprintf(place->path, sizeof(place->path), "%s", options->copy);
	if (!place->path[0] ||
	    (!options->layer && is_same_directory(place->path, options->path)))
		place->layer = store;
	else
		open_other_place(place, lock);
	place->shares = place->layer == store ||
			(place->own && !options->layer && is_same_disk(place->path, options->path));
}

int copyplace_remember(const struct copyplace *place, const struct store_options *options,
		       struct store_layer *store)
{
	unsigned long long inode = get_store_inode(options);
	char text[ROOM], path[PATH_MAX];
	struct iovec iov = {text, 0};
	struct store_file *file;
	ssize_t n = 0;
	int result;

	if (!place->named || !inode || strchr(place->path, '\n'))
		return 0;
	recall_place(store, inode, path);
	if (place->own ? !strcmp(path, place->path) : !path[0])
		return 0;
	if (!place->own) {
		result = store->ops->unlink(store, NAME);
		return result ? result : store->ops->sync_dir(store, ".");
	}
	iov.iov_len = (size_t)compose_place_text(text, inode, place->path);
	result = store->ops->open(store, NAME_NEW, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file);
	if (result)
		return result;
	result = store->ops->truncate(file, 0);
	if (!result)
		n = store->ops->pwritev(file, &iov, 1, 0);
	if (!result)
		result = n < 0 ? (int)n : store->ops->sync(file);
	store->ops->close(file);
	if (!result)
		result = store->ops->rename(store, NAME_NEW, NAME);
	return result ? result : store->ops->sync_dir(store, ".");
}

void copyplace_close(struct copyplace *place)
{
	if (place->own)
		place->layer->ops->destroy(place->layer);
	place->layer = NULL;
	place->own = false;
}

const char *copyplace_reason(const struct copyplace *place)
{
	return place->result == -EBUSY	 ? "another process uses it"
	       : place->result == -EPERM ? "it must belong to this user, and to no other"
					 : strerror(-place->result);
}
