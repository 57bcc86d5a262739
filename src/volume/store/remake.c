/* SPDX-License-Identifier: BSD-2-Clause */
/* A new database in the place of one that no start can read: made in a folder of its own, then exchanged. */
#include "volume/store/remake.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "volume/store/make.h"
#include "volume/store/maint/rebuild.h"

#define FOLDER	 "remade"
#define DATABASE FOLDER "/db"
#define COMPLETE FOLDER "/complete" /* the database, when all of it is there: it is to be used */

struct remaking {
	struct core *core;
	struct rebuild rebuild;
};

static void report_loss(void *arg, const char *line)
{
	struct core *core = arg;

	report_line(&core->report, REPORT_ERROR, "%s: %s", core->name, line);
}

/* -- making -- */

static int clear_folder(struct store_layer *layer)
{
	static const char *const names[] = {DATABASE, DATABASE "-wal", DATABASE "-journal",
					    FOLDER "/mark"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int result = layer->ops->unlink(layer, names[i]);

		if (result && result != -ENOENT)
			return result;
	}
	return 0;
}

static int note_object_number(void *arg, const struct store_owner *owner, uint64_t object)
{
	struct remaking *remaking = arg;

	(void)owner;
	if (remaking->rebuild.greatest < object)
		remaking->rebuild.greatest = object;
	return 0;
}

static int note_new_object_number(void *arg, uint64_t object)
{
	return note_object_number(arg, NULL, object);
}

static int fill_remade_database(void *arg, struct db *db, uint8_t uuid[16])
{
	struct remaking *remaking = arg;
	int result = rebuild_database(&remaking->rebuild, db, uuid);

	return result || remaking->rebuild.volumes ? result : -ENODATA;
}

/* What the new database refers to is on stable storage before it is used. */
static int make_remade_database(struct remaking *remaking)
{
	struct core *core = remaking->core;
	struct store_layer *layer = core->layer;
	const struct store_filling filling = {
		.report = &core->report, .fill = fill_remade_database, .arg = remaking};
	uint8_t uuid[16];
	int result = layer->ops->mkdir(layer, FOLDER);

	memcpy(uuid, core->uuid, 16);
	if (!result || result == -EEXIST)
		result = clear_folder(layer);
	if (!result)
		result = store_data_list(core->data, note_object_number, remaking);
	if (!result)
		result = store_data_list_new(core->data, note_new_object_number, remaking);
	if (!result)
		result = make_meta_files(layer, FOLDER, &filling, uuid);
	return result ? result : layer->ops->sync_all(layer);
}

/* -- exchanging -- */

static int keep_copy_files(struct store_layer *layer)
{
	int result = store_file_keep(layer, STORE_COPY "/db-wal");

	if (!result)
		result = store_file_keep(layer, STORE_COPY "/state");
	if (!result)
		result = store_file_keep(layer, STORE_COPY "/db");
	if (!result)
		result = layer->ops->sync_dir(layer, STORE_COPY);
	return result == -ENOENT ? 0 : result;
}

static int keep_database_files(struct store_layer *layer)
{
	int result = store_file_keep(layer, "meta/db-wal");

	if (!result)
		result = store_file_keep(layer, "meta/mark");
	if (!result)
		result = store_file_keep(layer, "meta/db");
	if (!result)
		result = layer->ops->unlink(layer, "meta/" STORE_DAMAGED);
	return !result || result == -ENOENT ? layer->ops->sync_dir(layer, "meta") : result;
}

/* Each step may be repeated. */
static int exchange_database(struct core *core)
{
	struct store_layer *layer = core->layer;
	int result = core->copy_layer ? keep_copy_files(core->copy_layer) : 0;

	if (!result)
		result = keep_database_files(layer);
	if (!result)
		result = layer->ops->rename(layer, COMPLETE, "meta/db");
	if (!result)
		result = layer->ops->sync_dir(layer, "meta");
	if (!result)
		result = layer->ops->sync_dir(layer, FOLDER);
	if (!result)
		result = clear_folder(layer);
	return result ? result : layer->ops->rmdir(layer, FOLDER);
}

int remake_finish(struct core *core)
{
	struct store_file *file;
	int result = core->layer->ops->open(core->layer, COMPLETE, 0, &file);

	if (result)
		return result == -ENOENT ? 0 : result;
	assert(!core->writer && !core->vfs);
	core->layer->ops->close(file);
	report_line(&core->report, REPORT_WARNING,
		    "%s: the metadata were made anew before the last stop", core->name);
	return exchange_database(core);
}

static void report_remaking(struct core *core, const struct rebuild *rebuild)
{
	report_line(
		&core->report, REPORT_ERROR,
		"%s: the metadata were damaged (%llu of %llu pages), and were made anew: %llu volumes "
		"with %llu files, directories and links, %llu of them in lost+found; %llu are lost; the "
		"damaged files are meta/db.damaged and copy/db.damaged: look at the disk",
		core->name, (unsigned long long)rebuild->damaged_pages,
		(unsigned long long)rebuild->pages, (unsigned long long)rebuild->volumes,
		(unsigned long long)rebuild->files, (unsigned long long)rebuild->found,
		(unsigned long long)rebuild->lost);
}

int remake_metadata(struct core *core, struct store_layer *copy)
{
	struct store_layer *layer = core->layer;
	struct remaking remaking = {.core = core,
				    .rebuild = {.source = layer,
						.copy = copy,
						.contents = layer,
						.in_place = true,
						.known = !core->unformatted,
						.line = report_loss,
						.arg = core}};
	int result;

	assert(!core->writer && !core->vfs);
	memcpy(remaking.rebuild.uuid, core->uuid, 16);
	result = make_remade_database(&remaking);
	if (!result)
		result = layer->ops->sync_dir(layer, ".");
	if (!result)
		result = layer->ops->rename(layer, DATABASE, COMPLETE);
	if (!result)
		result = layer->ops->sync_dir(layer, FOLDER);
	if (result) {
		clear_folder(layer);
		layer->ops->rmdir(layer, FOLDER);
		return result;
	}
	report_remaking(core, &remaking.rebuild);
	return exchange_database(core);
}
