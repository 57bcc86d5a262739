/* SPDX-License-Identifier: BSD-2-Clause */
/* A new store out of a damaged one: the rows of its database, then its files, then whole trees. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "volume/store/db/carve.h"
#include "volume/store/db/slots.h"
#include "volume/store/format.h"
#include "volume/store/maint/salvage.h"
#include "volume/store/make.h"
#include "volume/store/upkeep.h"

#define PATH_ROOM 160
#define CHUNK	  (256u << 10)
#define PIECE	  4096u

struct rescue {
	struct store_rescue *user;
	struct store_layer *source, *target, *copy; /* copy: NULL, there is none */
	struct report report; /* of the source: silent */
	bool formatted;	      /* `uuid` is that of the source */
	uint8_t uuid[16];
	uint64_t last_object;
	uint32_t incarnation;
	struct db *db;	  /* that of the target, while it is filled */
	uint64_t *object; /* numbers that versions refer to, small contents and maps as well */
	size_t count, room;
	struct rescued_map {
		uint64_t map;
		struct store_owner owner;
	} * map; /* that versions have */
	size_t map_count, map_room, map_at;
	uint8_t *chunk;
};

__attribute__((format(printf, 2, 3))) static void tell_rescue_user(struct rescue *rescue,
							    const char *format, ...)
{
	char line[600];
	va_list args;

	if (!rescue->user->line)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	rescue->user->line(rescue->user->arg, line);
}

/* -- the rows of the database -- */

static int carve_folder(struct rescue *rescue, struct store_layer *layer, const char *folder,
			bool *complete)
{
	struct store_pageset *set;
	struct carve_counts counts = {0};
	int result = store_pageset_open(layer, folder, &set);

	*complete = false;
	if (result)
		return result == -ENOMEM ? result : 0;
	result = db_carve(set, rescue->db, &counts);
	store_pageset_close(set);
	rescue->user->pages += counts.pages;
	rescue->user->damaged_pages += counts.damaged;
	*complete = counts.pages && !counts.damaged;
	return result;
}

/* What the database has not, its copy may have. */
static int carve_rows(struct rescue *rescue)
{
	uint64_t lost = 0;
	bool complete;
	int result = carve_folder(rescue, rescue->source, "meta", &complete);

	if (!result && !complete && rescue->copy)
		result = carve_folder(rescue, rescue->copy, "copy", &complete);
	if (!result)
		result = db_carve_losses(rescue->db, &lost);
	rescue->user->lost += lost;
	return result;
}

/* -- objects -- */

static int add_reference(struct rescue *rescue, uint64_t number)
{
	if (rescue->count == rescue->room) {
		size_t room = rescue->room ? 2 * rescue->room : 4096;
		uint64_t *more = realloc(rescue->object, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		rescue->object = more;
		rescue->room = room;
	}
	rescue->object[rescue->count++] = number;
	if (rescue->last_object < number)
		rescue->last_object = number;
	return 0;
}

static int compare_references(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* How many versions and rows refer to a number. */
static uint64_t count_references(const struct rescue *rescue, uint64_t number)
{
	size_t low = 0, high = rescue->count, first;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rescue->object[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	for (first = low; low < rescue->count && rescue->object[low] == number; low++)
		;
	return low - first;
}

/* An object that a slot has, in the table of objects. */
static int need_object(struct rescue *rescue, const struct store_owner *owner, uint64_t number)
{
	struct db_object object = {.id = number, .owner = *owner, .refs = 1};
	struct db_object there;
	int result = add_reference(rescue, number);

	if (!result)
		result = db_object_get(rescue->db, number, &there);
	return result == -ENOENT ? db_object_put(rescue->db, &object) : result;
}

static int need_slot_objects(struct rescue *rescue, const struct store_owner *owner,
			     const struct store_slot *slot)
{
	int result = 0;

	for (uint32_t i = 0; slot && i < slot->count && !result; i++) {
		uint64_t object = slot->block[i].object;
		bool seen = false;

		for (uint32_t k = 0; k < i && !seen; k++)
			seen = slot->block[k].object == object;
		if (object && !seen)
			result = need_object(rescue, owner, object);
	}
	return result;
}

/* Versions of a vnode may have several maps, and share them. */
static int note_map(struct rescue *rescue, const struct store_owner *owner, uint64_t map)
{
	for (size_t i = rescue->map_count; i-- && rescue->map[i].owner.vnode == owner->vnode;)
		if (rescue->map[i].map == map)
			return 0;
	if (rescue->map_count == rescue->map_room) {
		size_t room = rescue->map_room ? 2 * rescue->map_room : 256;
		struct rescued_map *more = realloc(rescue->map, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		rescue->map = more;
		rescue->map_room = room;
	}
	rescue->map[rescue->map_count++] = (struct rescued_map){map, *owner};
	return add_reference(rescue, map);
}

static int note_references(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct rescue *rescue = arg;
	int result = 0;

	if (!version)
		return 0;
	if (rescue->incarnation < version->v.incarnation)
		rescue->incarnation = version->v.incarnation;

	const struct store_owner owner = {key->group, key->vnode, version->v.unique};

	if (version->v.small)
		result = add_reference(rescue, version->v.small);
	if (!result && version->content.count)
		result = need_slot_objects(rescue, &owner, version->content.slot[0]);
	return result || !version->v.map ? result : note_map(rescue, &owner, version->v.map);
}

static int note_slot_references(void *arg, const struct db_slot_key *key,
				const struct store_slot *slot)
{
	struct rescue *rescue = arg;

	(void)key;
	return need_slot_objects(rescue, &rescue->map[rescue->map_at].owner, slot);
}

static int find_references(struct rescue *rescue)
{
	uint32_t group = 0;
	int result;

	while (!(result = db_group_next(rescue->db, &group))) {
		struct vnode_key from = {.group = group};

		result = db_group_rows(rescue->db, &from, note_references, rescue);
		if (result)
			return result;
	}
	result = result == -ENOENT ? 0 : result;
	for (; rescue->map_at < rescue->map_count && !result; rescue->map_at++)
		result = db_slots_each(rescue->db, rescue->map[rescue->map_at].map,
				       note_slot_references, rescue);
	if (rescue->count)
		qsort(rescue->object, rescue->count, sizeof(rescue->object[0]), compare_references);
	return result;
}

/* The server will remove what nothing refers to. */
static int count_object_references(void *arg, const struct db_object *object)
{
	struct rescue *rescue = arg;
	struct db_object now = *object;

	if (rescue->last_object < object->id)
		rescue->last_object = object->id;
	now.refs = count_references(rescue, object->id);
	return now.refs == object->refs ? 0 : db_object_put(rescue->db, &now);
}

static int drop_unused_small(void *arg, uint64_t id)
{
	struct rescue *rescue = arg;

	if (rescue->last_object < id)
		rescue->last_object = id;
	return count_references(rescue, id) ? 0 : db_small_delete(rescue->db, id);
}

static int ignore_slot(void *arg, const struct db_slot_key *key, const struct store_slot *slot)
{
	(void)arg, (void)key, (void)slot;
	return 0;
}

/* Maps whose versions are gone. */
static int drop_unused_maps(struct rescue *rescue)
{
	uint64_t map = 0;
	int result;

	while (!(result = db_map_next(rescue->db, &map))) {
		struct db_drop drop = {.map = map, .hidden.to = UINT32_MAX};
		bool more = !count_references(rescue, map);

		if (rescue->last_object < map)
			rescue->last_object = map;
		while (more && !result)
			result = db_slots_drop(rescue->db, &drop, 64, &more, ignore_slot, NULL);
		if (result)
			return result;
	}
	return result == -ENOENT ? 0 : result;
}

static int settle_objects(struct rescue *rescue)
{
	int result = find_references(rescue);

	if (!result)
		result = db_objects(rescue->db, false, count_object_references, rescue);
	if (!result)
		result = db_smalls(rescue->db, 0, drop_unused_small, rescue);
	return result ? result : drop_unused_maps(rescue);
}

/* -- numbers -- */

static int raise_number(struct db *db, const char *name, uint64_t least)
{
	uint64_t value = 0;
	int result = db_number_get(db, name, &value);

	if (result && result != -ENOENT)
		return result;
	return value >= least ? 0 : db_number_put(db, name, least);
}

/* Numbers of objects and versions are new from now on, whatever the lost records had. */
static int settle_numbers(struct rescue *rescue)
{
	uint64_t incarnation = 1;
	int result = db_number_get(rescue->db, "incarnation", &incarnation);

	if (result && result != -ENOENT)
		return result;
	if (rescue->incarnation < incarnation)
		rescue->incarnation = (uint32_t)incarnation;
	rescue->incarnation++;
	result = db_number_put(rescue->db, "incarnation", rescue->incarnation);
	return result ? result : raise_number(rescue->db, "opened", (rescue->last_object >> 32) + 1);
}

/* -- filling the new database -- */

static int fill_from_source(void *arg, struct db *db, uint8_t uuid[16])
{
	struct rescue *rescue = arg;
	struct salvage salvage = {.line = rescue->user->line, .arg = rescue->user->arg};
	int result;

	rescue->db = db;
	result = carve_rows(rescue);
	if (!result)
		result = settle_objects(rescue);
	if (!result)
		result = settle_numbers(rescue);
	if (!result)
		result = salvage_volumes(db, rescue->incarnation, &salvage);
	if (result)
		return result;
	if (rescue->formatted)
		memcpy(uuid, rescue->uuid, 16);
	else if (db_identity_get(db, rescue->uuid) == 0)
		memcpy(uuid, rescue->uuid, 16);
	rescue->user->volumes = salvage.volumes;
	rescue->user->files = salvage.kept;
	rescue->user->found = salvage.found;
	/* Most records have names. */
	if (rescue->user->lost < salvage.lost)
		rescue->user->lost = salvage.lost;
	return 0;
}

/* -- the files of contents -- */

static bool is_all_zero_bytes(const uint8_t *bytes, size_t length)
{
	return !bytes[0] && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* Holes stay holes. What cannot be read is left out: -EIO. */
/* A sector that cannot be read costs PIECE bytes, which are zeros in the copy, and not the rest of the object. */
static ssize_t read_object_piece(struct rescue *rescue, struct store_file *from, uint64_t at,
				 int *failed)
{
	const struct iovec whole = {rescue->chunk, CHUNK}, piece = {rescue->chunk, PIECE};
	ssize_t n = rescue->source->ops->preadv(from, &whole, 1, at, false);

	if (n > 0)
		return n;
	n = rescue->source->ops->preadv(from, &piece, 1, at, false);
	if (n > 0)
		return n;
	*failed = -EIO;
	memset(rescue->chunk, 0, PIECE);
	return PIECE;
}

static int copy_object_bytes(struct rescue *rescue, struct store_file *from, struct store_file *to)
{
	uint64_t length, at = 0;
	int result = rescue->source->ops->size(from, &length), failed = 0;

	while (!result && at < length) {
		ssize_t n = read_object_piece(rescue, from, at, &failed);

		assert(n > 0);
		if (!is_all_zero_bytes(rescue->chunk, (size_t)n)) {
			const struct iovec out = {rescue->chunk, (size_t)n};
			ssize_t done = rescue->target->ops->pwritev(to, &out, 1, at);

			result = done < 0 ? (int)done : 0;
		}
		at += (uint64_t)n;
		rescue->user->bytes += (uint64_t)n;
	}
	if (!result)
		result = rescue->target->ops->truncate(to, length);
	return result ? result : failed;
}

static int copy_source_file(struct rescue *rescue, const char *path)
{
	struct store_file *from, *to;
	int result = rescue->source->ops->open(rescue->source, path, 0, &from);

	if (result) {
		rescue->user->unread++;
		tell_rescue_user(rescue, "cannot be read: %s: %s", path, strerror(-result));
		return 0;
	}
	result = rescue->target->ops->open(rescue->target, path,
					   STORE_OPEN_WRITE | STORE_OPEN_CREATE, &to);
	if (!result) {
		result = copy_object_bytes(rescue, from, to);
		rescue->target->ops->close(to);
	}
	rescue->source->ops->close(from);
	if (result != -EIO)
		return result;
	rescue->user->unread++;
	tell_rescue_user(rescue, "cannot be read as a whole: %s", path);
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
	result = rescue->source->ops->list(rescue->source, path, copy_entry, &folder);
	if (result == -ENOENT || result == -EIO || result == -ENOTDIR) {
		tell_rescue_user(rescue, "cannot be read: %s: %s", path, strerror(-result));
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
		result = rescue->source->ops->list(rescue->source, ".", copy_other_entry, rescue);
	return result ? result : rescue->target->ops->sync_all(rescue->target);
}

/* -- the whole -- */

static int read_identity(struct rescue *rescue)
{
	int result = format_read(rescue->source, FORMAT_NAME, rescue->uuid);

	if (result == -ENOTSUP || result == -EPROTO)
		return result;
	if (result && rescue->copy)
		result = format_read(rescue->copy, "copy/" FORMAT_NAME, rescue->uuid);
	rescue->formatted = !result;
	return 0;
}

/* A disk that is mounted for reading only cannot be locked, and need not be. */
static int lock_source(struct rescue *rescue)
{
	int result = rescue->source->ops->lock(rescue->source, "lock");

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

static int open_rescue(struct rescue *rescue, char *message)
{
	struct store_rescue *user = rescue->user;
	int result =
		open_rescue_layer(rescue, 0, user->source, false, &rescue->source, message);

	if (!result)
		result = open_rescue_layer(rescue, 1, user->target, true, &rescue->target, message);
	if (!result && (user->copy || user->layers[2]))
		result = open_rescue_layer(rescue, 2, user->copy, false, &rescue->copy, message);
	else
		rescue->copy = rescue->source;
	if (result)
		return result;
	result = rescue->target->ops->list(rescue->target, ".", refuse_any_name, NULL);
	if (result)
		snprintf(message, STORE_MESSAGE_MAX, "%s: is not empty; choose an empty directory",
			 user->target);
	return result;
}

static void close_rescue(struct rescue *rescue)
{
	const struct store_rescue *user = rescue->user;

	if (rescue->source && !user->layers[0])
		rescue->source->ops->destroy(rescue->source);
	if (rescue->target && !user->layers[1])
		rescue->target->ops->destroy(rescue->target);
	if (rescue->copy && rescue->copy != rescue->source && !user->layers[2])
		rescue->copy->ops->destroy(rescue->copy);
	report_fini(&rescue->report);
	free(rescue->object);
	free(rescue->map);
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
	struct rescue rescue = {.user = user, .chunk = malloc(CHUNK)};
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
