/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a new store: its folders, the database, FORMAT. */
#include "volume/store/make.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "volume/store/disk/vfs.h"
#include "volume/store/format.h"

static int fill_database(const struct store_filling *filling, struct db *db, uint8_t uuid[16])
{
	int result = db_begin(db);

	if (result)
		return result;
	if (filling->fill)
		result = filling->fill(filling->arg, db, uuid);
	if (!result)
		result = db_identity_put(db, uuid);
	if (!result)
		return db_commit(db);
	db_rollback(db);
	return result;
}

static int make_database(struct store_vfs *vfs, const char *path,
			 const struct store_filling *filling, uint8_t uuid[16])
{
	const struct db_options options = {.path = path,
					   .vfs = store_vfs_name(vfs),
					   .create = true,
					   .full = true,
					   .cache_kib = 16384,
					   .vfs_errno = store_vfs_errno,
					   .report = filling->report};
	struct db *db = NULL;
	int result = db_open(&options, &db);

	if (!result)
		result = db_make(db);
	if (!result)
		result = fill_database(filling, db, uuid);
	if (!result)
		result = db_checkpoint_all(db);
	db_close(db);
	return result;
}

int make_meta_files(struct store_layer *layer, const char *folder,
		    const struct store_filling *filling, uint8_t uuid[16])
{
	struct store_vfs *vfs = NULL;
	enum store_past past;
	char path[32];
	int result = store_vfs_create_in(layer, folder, NULL, NULL, &vfs);

	snprintf(path, sizeof(path), "%s/db", folder);
	if (!result)
		result = store_vfs_recover(vfs, &past);
	if (!result)
		result = store_vfs_begin(vfs, true);
	if (!result)
		result = make_database(vfs, path, filling, uuid);
	if (!result)
		result = store_vfs_end(vfs);
	store_vfs_destroy(vfs);
	return result ? result : layer->ops->sync_dir(layer, folder);
}

int make_store_files(struct store_layer *layer, const struct store_filling *filling)
{
	static const char *const folder[] = {"meta", "files", "files/new"};
	uint8_t uuid[16];
	int result = format_new_uuid(uuid);

	assert(filling->report);
	for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]) && !result; i++) {
		result = layer->ops->mkdir(layer, folder[i]);
		if (result == -EEXIST)
			result = 0;
	}
	if (!result)
		result = layer->ops->sync_dir(layer, "files");
	if (!result)
		result = make_meta_files(layer, "meta", filling, uuid);
	if (!result)
		result = format_write(layer, FORMAT_NAME, uuid);
	return result > 0 ? -ENOSPC : result;
}
