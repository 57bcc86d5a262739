/* SPDX-License-Identifier: BSD-2-Clause */
/* A new store out of a damaged one: the rows of its database, then its files, then whole trees. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "volume/store/copyplace.h"
#include "volume/store/data/data.h"
#include "volume/store/format.h"
#include "volume/store/maint/rebuild.h"
#include "volume/store/make.h"
#include "volume/store/upkeep.h"

#define PATH_ROOM 160
#define CHUNK	  (256u << 10)
#define PIECE	  4096u

struct rescue {
	struct store_rescue *user;
	struct store_layer *target;
	struct report report; /* of the source: silent */
	struct rebuild rebuild;
	struct copyplace place; /* that the source remembers */
	uint8_t *chunk;
};

/* -- files of contents whose records are lost: nothing would ever remove them -- */

struct unused {
	struct rescue *rescue;
	struct store_data *data;
	struct db *db;
};

static int remove_unused_object(void *arg, const struct store_owner *owner, uint64_t number)
{
	struct unused *unused = arg;
	struct db_object object;
	int result = db_object_get(unused->db, number, &object);

	if (result != -ENOENT)
		return result;
	unused->rescue->user->unused++;
	return store_data_remove(unused->data, owner, number);
}

static int remove_unused_new(void *arg, uint64_t number)
{
	return remove_unused_object(arg, &(struct store_owner){0}, number);
}

static int remove_unused_objects(struct rescue *rescue, struct db *db)
{
	struct unused unused = {.rescue = rescue, .db = db};
	int result = store_data_open(rescue->target, 16, &unused.data);

	if (result)
		return result;
	result = store_data_list(unused.data, remove_unused_object, &unused);
	if (!result)
		result = store_data_list_new(unused.data, remove_unused_new, &unused);
	store_data_close(unused.data);
	if (rescue->user->unused)
		rebuild_tell(
			&rescue->rebuild,
			"files of contents that have no record, and are left out: %llu; they are still in %s",
			(unsigned long long)rescue->user->unused, rescue->user->source);
	return result;
}

/* -- the rows of the database -- */

static int fill_from_source(void *arg, struct db *db, uint8_t uuid[16])
{
	struct rescue *rescue = arg;
	int result = rebuild_database(&rescue->rebuild, db, uuid);

	return result ? result : remove_unused_objects(rescue, db);
}

/* -- the files of contents -- */

static bool is_all_zero_bytes(const uint8_t *bytes, size_t length)
{
	return !bytes[0] && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* A sector that cannot be read costs PIECE bytes, which are zeros in the copy, and not the rest of the object. */
static ssize_t read_object_piece(struct rescue *rescue, struct store_file *from, uint64_t at,
				 int *failed)
{
	const struct iovec whole = {rescue->chunk, CHUNK}, piece = {rescue->chunk, PIECE};
	ssize_t n = rescue->rebuild.source->ops->preadv(from, &whole, 1, at, false);

	if (n > 0)
		return n;
	n = rescue->rebuild.source->ops->preadv(from, &piece, 1, at, false);
	if (n > 0)
		return n;
	*failed = -EIO;
	memset(rescue->chunk, 0, PIECE);
	return PIECE;
}

/* Holes stay holes. What cannot be read is left out: -EIO. */
static int copy_object_bytes(struct rescue *rescue, struct store_file *from, struct store_file *to)
{
	uint64_t length, at = 0;
	int result = rescue->rebuild.source->ops->size(from, &length), failed = 0;

	while (!result && at < length) {
		ssize_t n = read_object_piece(rescue, from, at, &failed);

		assert(n > 0);
		if (!is_all_zero_bytes(rescue->chunk, (size_t)n)) {
			const struct iovec out = {rescue->chunk, (size_t)n};
			ssize_t done = rescue->target->ops->pwritev(to, &out, 1, at);

			result = done < 0 ? (int)done : 0;
		}
		at += (uint64_t)n;
	}
	if (!result)
		result = rescue->target->ops->truncate(to, length);
	return result ? result : failed;
}

static int copy_source_file(struct rescue *rescue, const char *path)
{
	struct store_file *from, *to;
	int result = rescue->rebuild.source->ops->open(rescue->rebuild.source, path, 0, &from);

	if (result) {
		rescue->user->unread++;
		rebuild_tell(&rescue->rebuild, "cannot be read: %s: %s", path, strerror(-result));
		return 0;
	}
	result = rescue->target->ops->open(rescue->target, path,
					   STORE_OPEN_WRITE | STORE_OPEN_CREATE, &to);
	if (!result) {
		result = copy_object_bytes(rescue, from, to);
		rescue->target->ops->close(to);
	}
	rescue->rebuild.source->ops->close(from);
	if (result != -EIO)
		return result;
	rescue->user->unread++;
	rebuild_tell(&rescue->rebuild, "cannot be read as a whole: %s", path);
	return 0;
}

struct folder {
	struct rescue *rescue;
	const char *path;
};

static int copy_source_folder(struct rescue *rescue, const char *path);

static int copy_entry(void *arg, const char *name, bool directory)
{
	const struct folder *folder = arg;
	char path[PATH_ROOM];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder->path, name) >= sizeof(path))
		return 0;
	if (directory)
		return copy_source_folder(folder->rescue, path);
	return copy_source_file(folder->rescue, path);
}

static int copy_source_folder(struct rescue *rescue, const char *path)
{
	struct folder folder = {rescue, path};
	int result = rescue->target->ops->mkdir(rescue->target, path);

	if (result && result != -EEXIST)
		return result;
	result = rescue->rebuild.source->ops->list(rescue->rebuild.source, path, copy_entry,
						   &folder);
	if (result == -ENOENT || result == -EIO || result == -ENOTDIR) {
		rebuild_tell(&rescue->rebuild, "cannot be read: %s: %s", path, strerror(-result));
		rescue->user->unread++;
		return 0;
	}
	return result;
}

/* The users and groups, and what the server keeps, are not the store's, but belong to it. */
static int copy_other_entry(void *arg, const char *name, bool directory)
{
	struct rescue *rescue = arg;

	if (directory)
		return strcmp(name, "server") ? 0 : copy_source_folder(rescue, name);
	return strncmp(name, "protection.db", strlen("protection.db")) ? 0
								       : copy_source_file(rescue, name);
}

static int copy_contents(struct rescue *rescue)
{
	int result = copy_source_folder(rescue, "files");

	if (!result)
		result = rescue->rebuild.source->ops->list(rescue->rebuild.source, ".",
							   copy_other_entry, rescue);
	return result ? result : rescue->target->ops->sync_all(rescue->target);
}

/* -- the whole -- */

static int read_identity(struct rescue *rescue)
{
	int result = format_read(rescue->rebuild.source, FORMAT_NAME, rescue->rebuild.uuid);

	if (result == -ENOTSUP || result == -EPROTO)
		return result;
	if (result && rescue->rebuild.copy)
		result = format_read(rescue->rebuild.copy, "copy/" FORMAT_NAME,
				     rescue->rebuild.uuid);
	rescue->rebuild.known = !result;
	return 0;
}

/* A disk that is mounted for reading only cannot be locked, and need not be. */
static int lock_source(struct rescue *rescue)
{
	int result = rescue->rebuild.source->ops->lock(rescue->rebuild.source, "lock");

	return result == -EROFS || result == -EIO ? 0 : result;
}

static int run_rescue(struct rescue *rescue)
{
	const struct store_filling filling = {
		.report = &rescue->report, .fill = fill_from_source, .arg = rescue};
	int result = lock_source(rescue);

	if (!result)
		result = read_identity(rescue);
	if (!result)
		result = rescue->target->ops->lock(rescue->target, "lock");
	if (!result)
		result = copy_contents(rescue);
	return result ? result : make_store_files(rescue->target, &filling);
}

static int open_rescue_layer(struct rescue *rescue, int which, const char *path, bool make,
			     struct store_layer **layer, char *message)
{
	int result;

	*layer = rescue->user->layers[which];
	if (*layer)
		return 0;
	if (make && mkdir(path, 0700) && errno != EEXIST)
		result = -errno;
	else
		result = store_layer_posix(path, layer);
	if (result)
		snprintf(message, STORE_MESSAGE_MAX, "%s: cannot be opened: %s%s", path,
			 strerror(-result),
			 result == -EPERM ? "; it must belong to this user, and to no other (chmod 700)"
					  : "");
	return result;
}

static int refuse_any_name(void *arg, const char *name, bool directory)
{
	(void)arg;
	return directory && !strcmp(name, "lost+found") ? 0 : -ENOTEMPTY;
}

/* The copy that is named, else the one that the source remembers. If that cannot be opened, the folder of the source may have one. */
static int open_rescue_copy(struct rescue *rescue, char *message)
{
	struct store_rescue *user = rescue->user;
	const struct store_options options = {.path = user->source, .layer = user->layers[0]};
	struct copyplace *place = &rescue->place;

	if (user->copy || user->layers[2])
		return open_rescue_layer(rescue, 2, user->copy, false, &rescue->rebuild.copy,
					 message);
	copyplace_open(place, &options, rescue->rebuild.source, false);
	if (place->own)
		user->copy = place->path; /* until close_rescue(), which closes it */
	else if (place->absent)
		rebuild_tell(&rescue->rebuild, "the copy of the metadata in %s cannot be opened: %s",
			     place->path, copyplace_reason(place));
	rescue->rebuild.copy = place->layer ? place->layer : rescue->rebuild.source;
	return 0;
}

static int open_rescue(struct rescue *rescue, char *message)
{
	struct store_rescue *user = rescue->user;
	int result =
		open_rescue_layer(rescue, 0, user->source, false, &rescue->rebuild.source, message);

	if (!result)
		result = open_rescue_layer(rescue, 1, user->target, true, &rescue->target, message);
	if (!result)
		result = open_rescue_copy(rescue, message);
	if (result)
		return result;
	rescue->rebuild.contents = rescue->target;
	result = rescue->target->ops->list(rescue->target, ".", refuse_any_name, NULL);
	if (result)
		snprintf(message, STORE_MESSAGE_MAX, "%s: is not empty; choose an empty directory",
			 user->target);
	return result;
}

static void close_rescue(struct rescue *rescue)
{
	struct store_rescue *user = rescue->user;

	if (user->copy == rescue->place.path)
		user->copy = NULL;
	if (rescue->rebuild.source && !user->layers[0])
		rescue->rebuild.source->ops->destroy(rescue->rebuild.source);
	if (rescue->target && !user->layers[1])
		rescue->target->ops->destroy(rescue->target);
	if (rescue->rebuild.copy && rescue->rebuild.copy != rescue->rebuild.source &&
	    !user->layers[2])
		rescue->rebuild.copy->ops->destroy(rescue->rebuild.copy);
	report_fini(&rescue->report);
	free(rescue->chunk);
}

/* What the new store lacks: contents whose files are gone. */
static int check_target(struct store_rescue *user, char *message)
{
	const struct store_options options = {.path = user->target, .layer = user->layers[1]};
	const struct store_checker checker = {.each = user->line, .arg = user->arg, .data = true};
	struct store *store;
	int result = store_open(&options, &store, message);

	if (result)
		return result;
	result = store_check(store, &checker);
	store->ops->close(store);
	if (result < 0)
		return result;
	user->unread += (uint64_t)result;
	return 0;
}

int store_rescue(struct store_rescue *user, char *message)
{
	struct rescue rescue = {.user = user, .rebuild = {.out = user}, .chunk = malloc(CHUNK)};
	int result;

	message[0] = '\0';
	report_init(&rescue.report, NULL, NULL);
	result = rescue.chunk ? open_rescue(&rescue, message) : -ENOMEM;
	if (!result)
		result = run_rescue(&rescue);
	close_rescue(&rescue);
	if (!result)
		result = check_target(user, message);
	if (result > 0)
		result = -ENOSPC;
	if (result && !message[0])
		snprintf(message, STORE_MESSAGE_MAX, "%s: cannot be rescued to %s: %s",
			 user->source, user->target,
			 result == -EBUSY ? "another process uses one of them; stop it first"
					  : strerror(-result));
	return result;
}
