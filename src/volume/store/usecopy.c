/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy of the metadata in the place of the database. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "volume/store/db/db.h"
#include "volume/store/disk/pageset.h"
#include "volume/store/disk/replica.h"
#include "volume/store/format.h"
#include "volume/store/upkeep.h"

#define DATABASE "meta/db"

struct conversion {
	struct store_layer *layer;
	struct report report;
	uint8_t uuid[16];
};

static int note_greatest_object(void *arg, const struct store_owner *owner, uint64_t object)
{
	uint64_t *greatest = arg;

	(void)owner;
	if (*greatest < object)
		*greatest = object;
	return 0;
}

static int note_greatest_new(void *arg, uint64_t object)
{
	return note_greatest_object(arg, NULL, object);
}

/* The greatest number of an object, whether the copy knows of it or not. */
static int find_greatest_object(struct store_layer *layer, uint64_t *greatest)
{
	struct store_data *data;
	int result = store_data_open(layer, 16, &data);

	if (result)
		return result;
	result = store_data_list(data, note_greatest_object, greatest);
	if (!result)
		result = store_data_list_new(data, note_greatest_new, greatest);
	store_data_close(data);
	return result;
}

/* Clients may have seen versions and numbers that the copy does not know of. */
static int raise_numbers(struct db *db, uint64_t greatest)
{
	uint64_t opened = 0, incarnation = 1;
	int result = db_number_get(db, "opened", &opened);

	if (!result || result == -ENOENT)
		result = db_number_get(db, "incarnation", &incarnation);
	if (result && result != -ENOENT)
		return result;
	if (opened <= greatest >> 32)
		opened = (greatest >> 32) + 1;
	result = db_begin(db);
	if (!result)
		result = db_number_put(db, "opened", opened);
	if (!result)
		result = db_number_put(db, "incarnation", incarnation + 1);
	return result ? result : db_commit(db);
}

static int adopt_copy(struct conversion *conversion, struct store_layer *copy)
{
	struct db_options options = {.path = DATABASE,
				     .full = true,
				     .cache_kib = 1024,
				     .vfs_errno = store_vfs_errno,
				     .report = &conversion->report};
	struct store_vfs *vfs;
	struct db *db = NULL;
	uint64_t greatest = 0;
	int result = find_greatest_object(conversion->layer, &greatest);

	if (!result)
		result = store_replica_use(copy, conversion->layer);
	if (!result)
		result = store_vfs_create(conversion->layer, NULL, NULL, &vfs);
	if (result)
		return result;
	options.vfs = store_vfs_name(vfs);
	result = db_open(&options, &db);
	if (!result)
		result = raise_numbers(db, greatest);
	if (!result)
		result = db_checkpoint_all(db);
	db_close(db);
	store_vfs_destroy(vfs);
	return result;
}

/* Whether the copy is certainly that of another store. */
static bool is_foreign_copy(struct conversion *conversion, struct store_layer *copy)
{
	uint8_t uuid[16];

	return !format_read(conversion->layer, FORMAT_NAME, conversion->uuid) &&
	       !format_read(copy, STORE_COPY "/" FORMAT_NAME, uuid) &&
	       memcmp(uuid, conversion->uuid, sizeof(uuid)) != 0;
}

/* The folder may be lost with all that is in it. */
static int need_meta_folder(struct store_layer *layer, struct store_layer *copy)
{
	int result = store_replica_written(copy) ? layer->ops->mkdir(layer, "meta") : 0;

	return result == -EEXIST ? 0 : result;
}

/* Users lose changes if the copy lacks some: then an administrator has to name it. */
static int use_found_copy(struct conversion *conversion, struct store_layer *copy, bool named)
{
	enum store_relation relation;
	int result = conversion->layer->ops->lock(conversion->layer, "lock");

	if (!result)
		result = need_meta_folder(conversion->layer, copy);
	if (!result)
		result = store_replica_compare(copy, conversion->layer, &relation);
	if (!result && is_foreign_copy(conversion, copy))
		result = -EXDEV;
	if (!result && relation == STORE_COPY_NONE)
		result = -ENOENT;
	if (!result && relation == STORE_COPY_OLDER && !named)
		result = -ESTALE;
	return result ? result : adopt_copy(conversion, copy);
}

int store_use_copy(const struct store_options *options, char *message)
{
	struct conversion conversion = {.layer = options->layer};
	struct store_layer *copy = options->copy_layer;
	const char *name = options->copy ? options->copy : options->path;
	int result = options->layer ? 0 : store_layer_posix(options->path, &conversion.layer);
	char time[32] = "";

	message[0] = '\0';
	report_init(&conversion.report, options->log, options->arg);
	if (!result && options->copy)
		result = store_layer_posix(options->copy, &copy);
	if (!result) {
		report_time(time, store_replica_written(copy ? copy : conversion.layer));
		result = use_found_copy(&conversion, copy ? copy : conversion.layer, copy != NULL);
	}
	if (result == -ESTALE)
		snprintf(
			message, STORE_MESSAGE_MAX,
			"%s: the copy of the metadata in %s had all changes until %s, and may lack later ones; "
			"to go on with it all the same, name it: rxvol -S %s --copy %s use-copy",
			options->path, name, time, options->path, name);
	else if (!result)
		snprintf(
			message, STORE_MESSAGE_MAX,
			"%s: goes on with the copy of the metadata in %s, which had all changes until %s; run "
			"rxvol check",
			options->path, name, time);
	else
		snprintf(message, STORE_MESSAGE_MAX,
			 "%s: the copy of the metadata cannot be used: %s", options->path,
			 result > 0	     ? "the disk is full"
			 : result == -EBUSY  ? "another process uses the store; stop it first"
			 : result == -ENOENT ? "there is none that is complete"
			 : result == -EXDEV  ? "it is that of another store; look at --copy"
					     : strerror(-result));
	if (copy && options->copy)
		copy->ops->destroy(copy);
	if (conversion.layer && !options->layer)
		conversion.layer->ops->destroy(conversion.layer);
	report_fini(&conversion.report);
	return result > 0 ? -ENOSPC : result;
}
