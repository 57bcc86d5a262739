/* SPDX-License-Identifier: BSD-2-Clause */
/* A new database in the place of one that no start can read: made in a folder of its own, then exchanged. */
#include "volume/store/remake.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "volume/store/make.h"
#include "volume/store/maint/rebuild.h"

#define FOLDER	 "remade"
#define DATABASE FOLDER "/db"
#define COMPLETE FOLDER "/complete" /* the database, when all of it is there: it is to be used */

static void report_loss(void *arg, const char *line)
{
	struct core *core = arg;

	report_line(&core->report, REPORT_ERROR, "%s: %s", core->name, line);
}

static bool is_there(struct store_layer *layer, const char *path)
{
	struct store_file *file;

	if (layer->ops->open(layer, path, 0, &file))
		return false;
	layer->ops->close(file);
	return true;
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

static int fill_remade_database(void *arg, struct db *db, uint8_t uuid[16])
{
	struct rebuild *rebuild = arg;
	int result = rebuild_database(rebuild, db, uuid);

	return result || rebuild->out->volumes ? result : -ENODATA;
}

/* What the new database refers to is on stable storage before it is used. */
static int make_remade_database(struct core *core, struct rebuild *rebuild)
{
	struct store_layer *layer = core->layer;
	const struct store_filling filling = {
		.report = &core->report, .fill = fill_remade_database, .arg = rebuild};
	uint8_t uuid[16];
	int result = layer->ops->mkdir(layer, FOLDER);

	memcpy(uuid, core->uuid, 16);
	if (!result || result == -EEXIST)
		result = clear_folder(layer);
	if (!result)
		result = make_meta_files(layer, FOLDER, &filling, uuid);
	if (!result)
		result = layer->ops->sync_all(layer);
	if (!result)
		result = layer->ops->sync_dir(layer, ".");
	if (!result)
		result = layer->ops->rename(layer, DATABASE, COMPLETE);
	return result ? result : layer->ops->sync_dir(layer, FOLDER);
}

/* -- exchanging: each step may be repeated -- */

/* The names of files that are kept. */
struct kept_files {
	char names[160];
};

/* The database comes last, since it is what a start looks for. */
static int keep_files(struct store_layer *layer, const char *folder, const char *proof,
		      struct kept_files *kept)
{
	const char *const names[] = {"db-wal", proof, "db"};
	char path[32];
	int result = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !result; i++) {
		size_t used = strlen(kept->names);

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		if (is_there(layer, path))
			snprintf(kept->names + used, sizeof(kept->names) - used, "%s%s",
				 used ? ", " : "", path);
		result = store_file_keep(layer, path);
	}
	return result ? result : layer->ops->sync_dir(layer, folder);
}

static int exchange_database(struct core *core, struct kept_files *kept)
{
	struct store_layer *layer = core->layer;
	int result = 0;

	if (core->copy_layer)
		result = keep_files(core->copy_layer, STORE_COPY, "state", kept);
	if (!result || result == -ENOENT)
		result = keep_files(layer, "meta", "mark", kept);
	if (!result)
		result = layer->ops->unlink(layer, "meta/" STORE_DAMAGED);
	if (!result || result == -ENOENT)
		result = layer->ops->rename(layer, COMPLETE, "meta/db");
	if (!result)
		result = layer->ops->sync_dir(layer, "meta");
	if (!result)
		result = layer->ops->sync_dir(layer, FOLDER);
	if (!result)
		result = clear_folder(layer);
	return result ? result : layer->ops->rmdir(layer, FOLDER);
}

static void report_kept_files(struct core *core, const struct kept_files *kept)
{
	if (*kept->names)
		report_line(
			&core->report, REPORT_WARNING,
			"%s: the files of before are kept, with .damaged behind their names: %s; look "
			"at the disk",
			core->name, kept->names);
}

int remake_finish(struct core *core)
{
	struct kept_files kept = {""};
	int result;

	if (!is_there(core->layer, COMPLETE))
		return 0;
	assert(!core->writer && !core->vfs);
	report_line(&core->report, REPORT_WARNING,
		    "%s: the metadata were made anew before the last stop", core->name);
	result = exchange_database(core, &kept);
	report_kept_files(core, &kept);
	return result;
}

int remake_metadata(struct core *core, struct store_layer *copy)
{
	struct store_layer *layer = core->layer;
	struct store_rescue out = {.line = report_loss, .arg = core};
	struct rebuild rebuild = {.out = &out,
				  .source = layer,
				  .copy = copy,
				  .contents = layer,
				  .in_place = true,
				  .known = !core->unformatted};
	struct kept_files kept = {""};
	int result;

	assert(!core->writer && !core->vfs);
	memcpy(rebuild.uuid, core->uuid, 16);
	result = make_remade_database(core, &rebuild);
	if (result) {
		clear_folder(layer);
		layer->ops->rmdir(layer, FOLDER);
		return result;
	}
	report_line(
		&core->report, REPORT_ERROR,
		"%s: the metadata were damaged (%llu of %llu pages), and were made anew: %llu volumes "
		"with %llu files, directories and links, %llu of them in lost+found; %llu are lost",
		core->name, (unsigned long long)out.damaged_pages, (unsigned long long)out.pages,
		(unsigned long long)out.volumes, (unsigned long long)out.files,
		(unsigned long long)out.found, (unsigned long long)out.lost);
	result = exchange_database(core, &kept);
	report_kept_files(core, &kept);
	return result;
}
