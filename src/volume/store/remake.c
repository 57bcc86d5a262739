/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A new database in the place of another one, which no start can read, which is to be that of the copy, or which has the format
 * before: made in a folder of its own, then exchanged.
 */
#include "volume/store/remake.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "volume/store/disk/copystate.h"
#include "volume/store/format.h"
#include "volume/store/make.h"
#include "volume/store/maint/rebuild.h"

#define FOLDER	 "remade"
#define DATABASE FOLDER "/db"
#define COMPLETE FOLDER "/complete" /* the database, when all of it is there: it is to be used */

struct remaking {
	struct remake_place place;
	struct store_layer *copy; /* whose files are set aside as well; or NULL */
	char kept[160];		  /* names of files that were */
	struct rebuild rebuild;
	struct store_rescue out;
};

static void report_loss(void *arg, const char *line)
{
	const struct remaking *remaking = arg;

	report_line(remaking->place.report, REPORT_ERROR, "%s: %s", remaking->place.name, line);
}

/* -- making -- */

static int clear_folder(struct store_layer *layer)
{
	static const char *const names[] = {DATABASE, DATABASE "-wal", DATABASE "-journal",
					    FOLDER "/mark"};
	int result = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && (!result || result == -ENOENT);
	     i++)
		result = layer->ops->unlink(layer, names[i]);
	return result == -ENOENT ? 0 : result;
}

static int fill_remade_database(void *arg, struct db *db, uint8_t uuid[16])
{
	struct rebuild *rebuild = arg;
	int result = rebuild_database(rebuild, db, uuid);

	if (!result && rebuild->copy_only && (rebuild->out->damaged_pages || rebuild->out->lost))
		return -EBADMSG;
	return result || rebuild->before || rebuild->copy_only || rebuild->out->volumes ? result
											: -ENODATA;
}

/* What the new database refers to is on stable storage before it is used. */
static int fill_folder(struct remaking *remaking)
{
	struct store_layer *layer = remaking->place.layer;
	const struct store_filling filling = {.report = remaking->place.report,
					      .fill = fill_remade_database,
					      .arg = &remaking->rebuild};
	uint8_t uuid[16];
	int result = layer->ops->mkdir(layer, FOLDER);

	memcpy(uuid, remaking->rebuild.uuid, 16);
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

static int make_remade_database(struct remaking *remaking)
{
	struct rebuild *rebuild = &remaking->rebuild;
	int result;

	remaking->out = (struct store_rescue){.line = report_loss, .arg = remaking};
	rebuild->out = &remaking->out;
	rebuild->source = rebuild->contents = remaking->place.layer;
	rebuild->in_place = true;
	result = fill_folder(remaking);
	if (result) {
		clear_folder(remaking->place.layer);
		remaking->place.layer->ops->rmdir(remaking->place.layer, FOLDER);
	}
	return result;
}

/* -- exchanging: each step may be repeated -- */

/* The database comes last, since it is what a start looks for. */
static int keep_files(struct remaking *remaking, struct store_layer *layer, const char *folder,
		      const char *proof)
{
	const char *const names[] = {"db-wal", proof, "db"};
	char path[32];
	int result = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !result; i++) {
		size_t used = strlen(remaking->kept);

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		if (store_layer_has(layer, path))
			snprintf(remaking->kept + used, sizeof(remaking->kept) - used, "%s%s",
				 used ? ", " : "", path);
		result = store_file_keep(layer, path);
	}
	return result ? result : layer->ops->sync_dir(layer, folder);
}

static int exchange_database(struct remaking *remaking)
{
	struct store_layer *layer = remaking->place.layer;
	int result = 0;

	if (remaking->copy)
		result = keep_files(remaking, remaking->copy, STORE_COPY, "state");
	if (!result || result == -ENOENT)
		result = keep_files(remaking, layer, "meta", "mark");
	if (!result)
		result = layer->ops->unlink(layer, "meta/" STORE_DAMAGED);
	/* It has neither a log nor a mark, and lacks none. */
	if (!result || result == -ENOENT)
		result = store_copy_note_closed(layer, 0);
	if (!result)
		result = layer->ops->rename(layer, COMPLETE, "meta/db");
	if (!result)
		result = layer->ops->sync_dir(layer, "meta");
	if (!result)
		result = layer->ops->sync_dir(layer, FOLDER);
	if (!result)
		result = clear_folder(layer);
	if (*remaking->kept)
		report_line(
			remaking->place.report, REPORT_WARNING,
			"%s: the files of before are kept, with .damaged behind their names: %s; look "
			"at the disk",
			remaking->place.name, remaking->kept);
	return result ? result : layer->ops->rmdir(layer, FOLDER);
}

/* -- at a start -- */

static struct remaking begin_remaking(struct core *core)
{
	assert(!core->writer && !core->vfs);
	return (struct remaking){.place = {core->layer, &core->report, core->name},
				 .copy = core->copy_layer};
}

bool remake_is_complete(struct store_layer *layer)
{
	return store_layer_has(layer, COMPLETE);
}

int remake_finish(struct core *core)
{
	struct remaking remaking = begin_remaking(core);

	if (!remake_is_complete(core->layer))
		return 0;
	report_line(&core->report, REPORT_WARNING,
		    "%s: the metadata were made anew before the last stop", core->name);
	return exchange_database(&remaking);
}

int remake_metadata(struct core *core, struct store_layer *copy)
{
	struct remaking remaking = begin_remaking(core);
	const struct store_rescue *out = &remaking.out;
	int result;

	remaking.rebuild = (struct rebuild){.copy = copy, .known = !core->unformatted};
	memcpy(remaking.rebuild.uuid, core->uuid, 16);
	result = make_remade_database(&remaking);
	if (result)
		return result;
	report_line(
		&core->report, REPORT_ERROR,
		"%s: the metadata were damaged, and were made anew: damaged pages: %llu of %llu%s; volumes: %llu; files, "
		"directories and links: %llu; of them without a name, in lost+found: %llu; lost: %llu",
		core->name, (unsigned long long)out->damaged_pages, (unsigned long long)out->pages,
		out->log_lost ? ", and a part of the log" : "", (unsigned long long)out->volumes,
		(unsigned long long)out->files, (unsigned long long)out->found,
		(unsigned long long)out->lost);
	return exchange_database(&remaking);
}

int remake_from_copy(const struct remake_place *place, struct store_layer *copy,
		     struct store_rescue *out)
{
	struct remaking remaking = {.place = *place, .rebuild = {.copy = copy, .copy_only = true}};
	struct rebuild *rebuild = &remaking.rebuild;
	int result;

	rebuild->known = !format_read(place->layer, FORMAT_NAME, rebuild->uuid);
	result = make_remade_database(&remaking);
	*out = remaking.out;
	return result ? result : exchange_database(&remaking);
}

/* -- of a store of the format before -- */

/* From FORMAT on the new database counts: a start goes on. */
static int convert_store(struct remaking *remaking)
{
	static const char *const old[] = {"meta/db-wal", "meta/mark", "meta/db"};
	struct store_layer *layer = remaking->place.layer;
	int result = layer->ops->unlink(layer, COMPLETE);

	if (!result || result == -ENOENT)
		result = make_remade_database(remaking);
	if (!result)
		result = format_write(layer, FORMAT_NAME, remaking->rebuild.uuid);
	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]) && !result; i++) {
		result = layer->ops->unlink(layer, old[i]);
		result = result == -ENOENT ? 0 : result;
	}
	return result ? result : exchange_database(remaking);
}

int store_convert(const struct store_options *options, char *message)
{
	struct report report;
	struct remaking remaking = {.place = {options->layer, &report, options->path}};
	struct rebuild *rebuild = &remaking.rebuild;
	int result = options->layer ? 0 : store_layer_posix(options->path, &remaking.place.layer);

	message[0] = '\0';
	report_init(&report, options->log, options->arg);
	rebuild->before = rebuild->known = true;
	if (!result)
		result = remaking.place.layer->ops->lock(remaking.place.layer, "lock");
	if (!result)
		result = format_read(remaking.place.layer, FORMAT_NAME, rebuild->uuid);
	if (!result)
		snprintf(message, STORE_MESSAGE_MAX, "%s: has the present format already",
			 options->path);
	else if (result == -ENOTSUP)
		result = convert_store(&remaking);
	if (!result && (remaking.out.lost || remaking.out.found))
		snprintf(
			message, STORE_MESSAGE_MAX,
			"%s: converted, but it was damaged; records and names that are lost: %llu; files, directories "
			"and links without a name, in lost+found: %llu",
			options->path, (unsigned long long)remaking.out.lost,
			(unsigned long long)remaking.out.found);
	if (result)
		snprintf(message, STORE_MESSAGE_MAX, "%s: cannot be converted: %s", options->path,
			 result > 0	      ? "the disk is full"
			 : result == -EBUSY   ? "another process uses it; stop it first"
			 : result == -EPROTO  ? "it was made by a newer version"
			 : result == -EBADMSG ? "it is damaged, or has a format before the second"
					      : strerror(-result));
	if (remaking.place.layer && !options->layer)
		remaking.place.layer->ops->destroy(remaking.place.layer);
	report_fini(&report);
	return result > 0 ? -ENOSPC : result;
}
