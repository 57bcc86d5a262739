/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other databases for a store: one with checksums of pages and blocks for a store of the format before, and the copy.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "volume/store/db/upgrade.h"
#include "volume/store/disk/pageset.h"
#include "volume/store/disk/replica.h"
#include "volume/store/format.h"
#include "volume/store/upkeep.h"

#define DATABASE     "meta/db"
#define DATABASE_NEW "meta/db.new"
#define SPARE_BYTE   20 /* of the first page: how many bytes at the end of each are not SQLite's */

struct conversion {
	struct store_layer *layer;
	struct report report;
	uint8_t uuid[16];
};

/* The new database, with everything that the log of the old one has. */
static int write_new_database(struct conversion *conversion, struct store_vfs *vfs)
{
	const struct db_options options = {.path = DATABASE,
					   .vfs = store_vfs_name(vfs),
					   .full = true,
					   .cache_kib = 16384,
					   .vfs_errno = store_vfs_errno,
					   .report = &conversion->report};
	struct db *db = NULL;
	uint64_t opened;
	int result = db_open(&options, &db);

	/* A connection that has read nothing does not know that there is a log, which would hide the new pages. */
	if (!result)
		result = db_number_get(db, "opened", &opened);
	if (!result || result == -ENOENT)
		result = db_checkpoint_all(db);
	if (!result)
		result = db_copy_to(db, DATABASE_NEW);
	db_close(db);
	return result;
}

static int read_old_database(struct conversion *conversion)
{
	struct store_vfs *vfs;
	enum store_past past;
	int result = store_vfs_create(conversion->layer, NULL, NULL, &vfs);

	if (result)
		return result;
	store_vfs_plain(vfs);
	result = store_vfs_recover(vfs, &past);
	/* What a killed process left becomes durable. */
	if (!result)
		result = conversion->layer->ops->sync_all(conversion->layer);
	if (!result)
		result = store_vfs_begin(vfs, true);
	if (!result)
		result = write_new_database(conversion, vfs);
	if (!result)
		result = store_vfs_end(vfs);
	store_vfs_destroy(vfs);
	return result;
}

/* Whether the database was converted already, by a run that did not get further. */
static bool is_converted(struct store_layer *layer)
{
	struct store_pageset *set;
	uint8_t page[STORE_DB_PAGE];
	bool sound;

	if (store_pageset_open(layer, "meta", &set))
		return false;
	/* The log of a killed server may have the first page, which then is sound as well. */
	sound = store_pageset_pages(set) && !store_pageset_read(set, 1, page) &&
		page[SPARE_BYTE] == STORE_DB_SPARE;
	store_pageset_close(set);
	return sound;
}

static int upgrade_database(struct conversion *conversion)
{
	struct db_options options = {.path = DATABASE,
				     .full = true,
				     .cache_kib = 1024,
				     .vfs_errno = store_vfs_errno,
				     .report = &conversion->report};
	struct store_vfs *vfs;
	struct db *db = NULL;
	int result = store_vfs_create(conversion->layer, NULL, NULL, &vfs);

	if (result)
		return result;
	options.vfs = store_vfs_name(vfs);
	result = db_open(&options, &db);
	if (!result)
		result = db_upgrade_contents(db, conversion->layer);
	if (!result)
		result = db_identity_put(db, conversion->uuid);
	if (!result)
		result = db_checkpoint_all(db);
	db_close(db);
	store_vfs_destroy(vfs);
	return result;
}

/* May be interrupted at any point, and repeated. */
static int convert_store(struct conversion *conversion)
{
	const struct store_layer_ops *ops = conversion->layer->ops;
	int result = 0;

	if (!is_converted(conversion->layer)) {
		result = ops->unlink(conversion->layer, DATABASE_NEW);
		if (!result || result == -ENOENT)
			result = read_old_database(conversion);
		if (!result)
			result = store_vfs_seal(conversion->layer, DATABASE_NEW);
		if (!result)
			result = ops->rename(conversion->layer, DATABASE_NEW, DATABASE);
		if (!result)
			result = ops->sync_dir(conversion->layer, "meta");
	}
	if (!result)
		result = upgrade_database(conversion);
	return result ? result : format_write(conversion->layer, FORMAT_NAME, conversion->uuid);
}

int store_convert(const struct store_options *options, char *message)
{
	struct conversion conversion = {.layer = options->layer};
	int result = options->layer ? 0 : store_layer_posix(options->path, &conversion.layer);
	bool known = false;

	message[0] = '\0';
	report_init(&conversion.report, options->log, options->arg);
	if (!result)
		result = conversion.layer->ops->lock(conversion.layer, "lock");
	if (!result) {
		result = format_read(conversion.layer, FORMAT_NAME, conversion.uuid);
		known = result == 0;
		if (result == -ENOTSUP)
			result = convert_store(&conversion);
	}
	if (known)
		snprintf(message, STORE_MESSAGE_MAX, "%s: has the present format already",
			 options->path);
	else if (result)
		snprintf(message, STORE_MESSAGE_MAX, "%s: cannot be converted: %s", options->path,
			 result > 0		? "the disk is full"
			 : result == -EBUSY	? "another process uses it; stop it first"
			 : result == -EPROTO	? "it was made by a newer version"
			 : result == -EBADMSG	? "it is damaged, or has a format before the second"
						: strerror(-result));
	if (conversion.layer && !options->layer)
		conversion.layer->ops->destroy(conversion.layer);
	report_fini(&conversion.report);
	return result > 0 ? -ENOSPC : result;
}

/* -- the copy in the place of the database -- */

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
