/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversion of a store of the format before: its database gets checksums of pages. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "volume/store/db/db.h"
#include "volume/store/disk/pageset.h"
#include "volume/store/format.h"
#include "volume/store/store.h"

#define DATABASE     "meta/db"
#define DATABASE_NEW "meta/db.new"

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
	int result = db_open(&options, &db);

	if (!result)
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
	sound = store_pageset_pages(set) && !store_pageset_read(set, 1, page);
	store_pageset_close(set);
	return sound;
}

static int put_identity(struct conversion *conversion)
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
		result = put_identity(conversion);
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
