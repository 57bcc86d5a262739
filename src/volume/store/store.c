/* SPDX-License-Identifier: BSD-2-Clause */
/* Making, opening and closing a store. */
#include "volume/store/copyplace.h"
#include "volume/store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "volume/store/data/data_lost.h"
#include "volume/store/format.h"
#include "volume/store/make.h"
#include "volume/store/maint/maint.h"
#include "volume/store/op/op.h"
#include "volume/ranges.h"
#include "volume/store/op/whole.h"
#include "volume/store/remake.h"
#include "volume/store/txn/core.h"
#include "volume/store/txn/lookup.h"
#include "volume/store/txn/space.h"

#define MEMORY_DEFAULT ((size_t)64 << 20)
#define FILES_DEFAULT  256
#define SMALL_DEFAULT  8192
#define SMALL_TOP      65536
#define WRITER_KIB     12288
#define READER_KIB     1536
#define READERS	       8

static const char *get_store_name(const struct store_options *options)
{
	return options->path ? options->path : "the store";
}

__attribute__((format(printf, 3, 4))) static int format_failure(char *message, int result,
								const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(message, STORE_MESSAGE_MAX, format, args);
	va_end(args);
	return result;
}

/* Whether there is a store in a directory that cannot be used, as far as this user may know. */
static bool may_contain_store(const char *directory)
{
	char path[4200];

	return (size_t)snprintf(path, sizeof(path), "%s/FORMAT", directory) >= sizeof(path) ||
	       access(path, F_OK) == 0 || errno != ENOENT;
}

static int report_no_store(const struct store_options *options, char *message)
{
	return format_failure(message, -ENOENT, "%s: has no store; make one with: rxvol -S %s init",
			      get_store_name(options), get_store_name(options));
}

/* `make`: the directory is to get a store, else it should have one. */
static int open_store_layer(const struct store_options *options, bool make,
			    struct store_layer **layer, bool *own, char *message)
{
	int result;

	*own = !options->layer;
	*layer = options->layer;
	if (options->layer)
		return 0;
	result = store_layer_posix(options->path, layer);
	if (!make && (result == -ENOENT || (result == -EPERM && !may_contain_store(options->path))))
		return report_no_store(options, message);
	if (result == -EPERM)
		format_failure(
			message, result,
			"%s: other users can use this directory, or it belongs to another user: chmod "
			"700 it, and run this as its owner, or give all of it to this user (chown -R)",
			options->path);
	else if (result)
		format_failure(message, result,
			       "%s: cannot be opened: %s; check the path and its permissions",
			       options->path, strerror(-result));
	return result;
}

static int lock_store(const struct store_options *options, struct store_layer *layer, char *message)
{
	int result = layer->ops->lock(layer, "lock");

	if (result == -EBUSY)
		return format_failure(
			message, result,
			"%s: another process has this store open, such as rxfsd or rxvol: stop it first",
			get_store_name(options));
	if (result)
		return format_failure(message, result, "%s: the file lock cannot be locked: %s%s",
				      get_store_name(options), strerror(-result),
				      result == -EROFS ? "; mount the disk for writing" : "");
	return 0;
}

/* -- making -- */

static int refuse_foreign_name(void *arg, const char *name, bool directory)
{
	(void)arg;
	if (directory)
		return strcmp(name, "lost+found") ? -ENOTEMPTY : 0;
	/* The users and groups may be there before the volumes. */
	return strncmp(name, "protection.db", strlen("protection.db")) ? -ENOTEMPTY : 0;
}

int store_make(const struct store_options *options, char *message)
{
	struct store_layer *layer;
	struct report report;
	bool own;
	int result;

	message[0] = '\0';
	if (!options->layer && mkdir(options->path, 0700) && errno != EEXIST)
		return format_failure(message, -errno, "%s: cannot be made: %s", options->path,
				      strerror(errno));
	result = open_store_layer(options, true, &layer, &own, message);
	if (result)
		return result;
	report_init(&report, options->log, options->arg);
	result = layer->ops->list(layer, ".", refuse_foreign_name, NULL);
	if (result == -ENOTEMPTY)
		format_failure(message, result, "%s: is not empty; choose an empty directory",
			       get_store_name(options));
	else if (!result)
		result = lock_store(options, layer, message);
	if (!result)
		result = make_store_files(layer, &(struct store_filling){.report = &report});
	if (result && !message[0])
		format_failure(message, result, "%s: the store cannot be made: %s",
			       get_store_name(options), strerror(-result));
	report_fini(&report);
	if (own)
		layer->ops->destroy(layer);
	return result;
}

/* -- opening -- */

static bool has_metadata(struct core *core)
{
	return store_layer_has(core->layer, "meta/db") ||
	       store_layer_has(core->layer, "meta/mark") || remake_is_complete(core->layer);
}

/* A directory with a database is a store, also without FORMAT. The copy has another one, and so has the database. */
static int find_lost_format(struct core *core)
{
	if (core->copy_layer &&
	    !format_read(core->copy_layer, STORE_COPY "/" FORMAT_NAME, core->uuid)) {
		report_line(&core->report, REPORT_WARNING,
			    "%s: FORMAT was lost or damaged, and was written again", core->name);
		return format_write(core->layer, FORMAT_NAME, core->uuid);
	}
	core->unformatted = true;
	return 0;
}

static int check_store_format(const struct store_options *options, struct core *core, char *message)
{
	int result = format_read(core->layer, FORMAT_NAME, core->uuid);

	if ((result == -ENOENT || result == -EBADMSG || result == -EIO) && has_metadata(core))
		result = find_lost_format(core);
	switch (result) {
	case 0:
		return 0;
	case -ENOENT:
		return report_no_store(options, message);
	case -EPROTO:
		return format_failure(
			message, result,
			"%s: was made by a newer version; use that version, or a newer one",
			get_store_name(options));
	case -ENOTSUP:
		return format_failure(
			message, result,
			"%s: has an older format; convert it once, while no server runs: rxvol -S %s convert",
			get_store_name(options), get_store_name(options));
	case -EBADMSG:
		return format_failure(
			message, result,
			"%s/FORMAT: is damaged; restore it from a backup of the store",
			get_store_name(options));
	default:
		return format_failure(message, result, "%s/FORMAT: cannot be read: %s",
				      get_store_name(options), strerror(-result));
	}
}

/*
 * A process that was killed has left files that are not flushed. If that fails, each object is asked for its error, which is told
 * once, and the rest of the disk is flushed again.
 */
static int flush_leftovers(struct core *core)
{
	int result = core->sync_each ? 0 : core->layer->ops->sync_all(core->layer);

	assert(core->sync_all);
	if (result || core->sync_each) {
		core->sync_each = true;
		result = store_data_sync_each(core->data);
		if (result && !store_data_any_lost(core->data))
			return result;
		core->sync_each = false;
		if (!result)
			result = core->layer->ops->sync_all(core->layer);
	}
	core->sync_all = result && !store_data_any_lost(core->data);
	return result;
}

static int flush_store_objects(void *arg)
{
	struct core *core = arg;
	struct store_lost lost;
	int result;

	if (core->sync_all) {
		result = flush_leftovers(core);
		if (result)
			return result;
	}
	result = store_data_sync(core->data);
	/* Record lost bytes before anything that refers to them is on stable storage. */
	if (!result && core->durability == STORE_LAZY && !core->recording &&
	    store_data_lost_next(core->data, &lost))
		result = -EIO;
	return result;
}

static uint64_t count_flush_failures(void *arg)
{
	const struct core *core = arg;

	return store_data_failures(core->data);
}

static int add_stored_volume(void *arg, const struct volrec *volume, bool damaged)
{
	return volumes_put(arg, volume, damaged);
}

/* Begin an incarnation of the store, with object numbers that no earlier one has used. */
static int begin_incarnation(struct core *core, bool crashed)
{
	struct db *db = core->writer;
	uint64_t opened = 0, incarnation = 1;
	int result = db_number_get(db, "opened", &opened);

	if (!result || result == -ENOENT)
		result = db_number_get(db, "incarnation", &incarnation);
	if (result && result != -ENOENT)
		return result;
	core->opened = (uint32_t)opened + 1;
	core->incarnation = (uint32_t)incarnation + crashed;
	core->numbers = (uint64_t)core->opened << 32;
	result = db_begin(db);
	if (!result)
		result = db_number_put(db, "opened", core->opened);
	if (!result)
		result = db_number_put(db, "incarnation", core->incarnation);
	if (!result)
		result = db_commit(db);
	else
		db_rollback(db);
	/* Clients must not see a version of the new incarnation before. */
	if (!result && crashed && core->durability == STORE_LAZY)
		result = store_vfs_mark(core->vfs);
	return result;
}

/* What the process or machine before left: flushed or cut. */
static int recover_database_log(struct core *core, enum store_past *past)
{
	int result = store_vfs_recover(core->vfs, past);

	if (!result && *past == STORE_PAST_KILLED) {
		core->sync_all = true;
		if (core->durability == STORE_STRICT)
			result = flush_store_objects(core);
		if (result && store_data_any_lost(core->data))
			result = 0; /* to be recorded */
	}
	return result;
}

/* The copy of the metadata is of use to the store, and not the other way round. */
static void open_store_replica(struct core *core)
{
	uint8_t uuid[16];
	int result = core->copy_layer && !core->unformatted
			     ? store_replica_open(core->copy_layer, core->layer, core->vfs,
						  core->uuid, &core->report, &core->replica)
			     : 0;

	if (result == -EEXIST)
		report_line(
			&core->report, REPORT_ERROR,
			"%s: the copy of the metadata is not made: its directory has that of another store",
			core->name);
	else if (result)
		report_line(&core->report, REPORT_ERROR,
			    "%s: the copy of the metadata is not made: %s", core->name,
			    strerror(-result));
	else if (core->replica && format_read(core->copy_layer, STORE_COPY "/" FORMAT_NAME, uuid))
		format_write(core->copy_layer, STORE_COPY "/" FORMAT_NAME, core->uuid);
}

/* A store whose FORMAT is lost has its identity in the database. */
static int settle_identity(struct core *core)
{
	int result;

	if (!core->unformatted)
		return 0;
	result = db_identity_get(core->writer, core->uuid);
	if (!result)
		result = format_write(core->layer, FORMAT_NAME, core->uuid);
	if (!result)
		report_line(&core->report, REPORT_WARNING,
			    "%s: FORMAT was lost or damaged, and was written again", core->name);
	return result;
}

/*
 * The connection that writes. If what every start reads is damaged, the copy is to repair it before anything is written:
 * afterwards nobody could say how the two are related.
 */
static int open_write_connection(struct core *core, const struct db_options *options)
{
	int result = db_open(options, &core->writer);

	if (!result)
		result = db_probe(core->writer);
	core->unreadable = result == -EIO;
	if (result != -EIO || !core->copy_layer)
		return result;
	db_leave(core->writer);
	core->writer = NULL;
	core->repaired = copying_repair(core);
	if (core->repaired)
		return -EIO;
	result = db_open(options, &core->writer);
	return result ? result : db_probe(core->writer);
}

static void count_fault(void *arg, const char *line)
{
	(void)line;
	(*(unsigned *)arg)++;
}

/*
 * Without the end of the log, the database may have a part of the pages of later transactions. Rows of two moments become sound
 * by making it anew, if nothing better can come. `blank`: it may as well be a new one.
 */
static int verify_torn_database(struct core *core, bool blank)
{
	struct store_layer *copy;
	unsigned faults = 0;
	uint32_t group = 0;
	int result = db_integrity(core->writer, false, count_fault, &faults);

	core->unreadable = result == -EIO || faults;
	if (core->unreadable && core->copy_layer)
		core->repaired = copying_repair(core);
	if (core->unreadable)
		return -EIO;
	if (result || blank || db_group_next(core->writer, &group))
		return result;
	return copying_may_remake(core, &copy) ? -EUCLEAN : 0;
}

/* The rest of a damaged table of volumes is served. */
static int load_volumes(struct core *core)
{
	int result = db_volumes(core->writer, add_stored_volume, &core->volumes);

	if (result != -EIO)
		return result;
	report_line(
		&core->report, REPORT_ERROR,
		"%s: the list of volumes is damaged: some are not served; rxvol rescue makes a new store "
		"that has them",
		core->name);
	return 0;
}

/* *crashed: what was not flushed is lost. */
static int open_found_database(struct core *core, struct db_options *options, bool *crashed)
{
	struct store_log_state log = {0};
	enum store_past past;
	int result = store_vfs_create(core->layer, flush_store_objects, core, &core->vfs);

	if (result)
		return result;
	options->vfs = store_vfs_name(core->vfs);
	result = copying_check(core, &log);
	if (!result)
		result = recover_database_log(core, &past);
	if (!result)
		result = open_write_connection(core, options);
	if (!result && log.torn)
		result = verify_torn_database(core, log.blank);
	*crashed = !result && (past == STORE_PAST_CRASHED || log.lost);
	return result;
}

/* What every start reads is damaged, also in the copy; or sound records cannot be reached. */
static int open_remade_database(struct core *core, struct db_options *options, bool *crashed)
{
	struct store_layer *copy;
	int result;

	if (!copying_may_remake(core, &copy))
		return -EIO;
	db_leave(core->writer);
	core->writer = NULL;
	store_vfs_destroy(core->vfs);
	core->vfs = NULL;
	result = remake_metadata(core, copy);
	if (result)
		return result == -ENODATA ? -EIO : result;
	core->unreadable = false;
	core->unrepaired = 0;
	return open_found_database(core, options, crashed);
}

/* Lines about damaged pages say what is still to be done, so this start has done what it can. */
static void report_start_damage(struct core *core)
{
	store_vfs_report(core->vfs, &core->report);
	if (core->unrepaired)
		report_line(
			&core->report, REPORT_ERROR,
			"%s: pages of the metadata are damaged in the copy, too: %u; what they hold cannot be read; "
			"rxvol rescue makes a new store of the rest",
			core->name, (unsigned)core->unrepaired);
}

static int open_store_database(struct core *core)
{
	struct db_options options = {.path = "meta/db",
				     .full = core->durability == STORE_STRICT,
				     .cache_kib = WRITER_KIB,
				     .vfs_errno = store_vfs_errno,
				     .report = &core->report};
	bool crashed;
	int result = open_found_database(core, &options, &crashed);

	core->unreadable |= result == -EUCLEAN;
	if (core->unreadable && (result == -EUCLEAN || result == -EIO))
		result = open_remade_database(core, &options, &crashed);
	if (!result) {
		report_start_damage(core);
		copying_make_room(core);
		open_store_replica(core);
		copying_begin(core);
	}
	if (!result)
		result = store_vfs_begin(core->vfs, core->durability == STORE_STRICT);
	if (!result)
		result = begin_incarnation(core, crashed);
	if (!result)
		result = lost_load(core, core->writer);
	if (!result)
		result = settle_identity(core);
	if (!result && core->durability == STORE_STRICT)
		result = lost_record_first(core, core->writer);
	options.cache_kib = READER_KIB;
	options.read_only = true;
	if (!result)
		result = readers_create(&options, READERS, &core->readers);
	return result ? result : load_volumes(core);
}

static int open_store_parts(struct core *core, const struct store_options *options)
{
	size_t memory = options->memory ? options->memory : MEMORY_DEFAULT;
	struct txn_options txn = {.strict = core->durability == STORE_STRICT,
				  .timed = options->timed,
				  .flush_objects = flush_store_objects,
				  .failures = count_flush_failures,
				  .flush_arg = core,
				  .admit = keeper_admit,
				  .full = keeper_full,
				  .committed = keeper_committed};
	int result = store_data_open(core->layer, options->files ? options->files : FILES_DEFAULT,
				     &core->data);

	if (!result)
		result = open_store_database(core);
	if (result)
		return result;
	core->cache = cache_create(memory);
	if (!core->cache)
		return -ENOMEM;
	result = keeper_create(core, &core->keeper);
	if (!result)
		result = scrub_create(core, options->scrub_kib, options->scrub_wait_ms,
				      &core->scrubber);
	if (result)
		return result;
	txn.arg = core->keeper;
	txn.base = (struct work_base){.db = core->writer,
				      .cache = core->cache,
				      .volumes = &core->volumes,
				      .report = &core->report,
				      .numbers = &core->numbers,
				      .incarnation = core->incarnation};
	result = txn_create(&txn, &core->txn);
	if (!result)
		result = copying_start(core);
	if (!result)
		result = keeper_start(core->keeper);
	if (!result && options->scrub_kib != STORE_SCRUB_NEVER)
		result = scrub_start(core->scrubber);
	return result ? result : whole_recover(core);
}

/* Everything but the layer and the lock of a caller's. */
static void free_core(struct core *core)
{
	restores_forget(core);
	txn_destroy(core->txn);
	copying_stop(core);
	keeper_destroy(core->keeper);
	scrub_destroy(core->scrubber);
	readers_destroy(core->readers);
	db_close(core->writer);
	store_replica_free(core->replica);
	if (core->vfs)
		store_vfs_destroy(core->vfs);
	cache_destroy(core->cache);
	if (core->data)
		store_data_close(core->data);
	volumes_fini(&core->volumes);
	lookup_fini(&core->loads);
	pthread_mutex_destroy(&core->checking);
	report_fini(&core->report);
	copyplace_close(core->copyplace);
	free(core->copyplace);
	if (core->own_layer)
		core->layer->ops->destroy(core->layer);
	free(core);
}

static void close_store(struct store *store)
{
	struct core *core = core_of(store);
	int result;

	scrub_stop(core->scrubber);
	result = keeper_stop(core->keeper);
	copying_stop(core);
	if (!result)
		result = db_checkpoint_all(core->writer);
	if (!result)
		result = flush_store_objects(core);
	if (!result)
		result = store_vfs_end(core->vfs);
	if (!result && core->replica)
		copying_end(core);
	if (!result)
		reserve_make(core);
	if (result)
		report_line(&core->report, REPORT_ERROR, "%s: could not be flushed: error %d",
			    core->name, result);
	free_core(core);
}

static const struct store_ranges_ops ranges_ops = {
	.begin = write_gather,
	.range = write_range,
	.end_range = write_range_end,
	.commit = write_gathered,
};

static const struct store_ops real_ops = {
	.close = close_store,
	.volume = admin_volume,
	.volume_by_name = admin_by_name,
	.volume_next = admin_next,
	.volume_at = admin_at,
	.totals = admin_totals,
	.volume_set = admin_set,
	.space = admin_space,
	.status = status_get,
	.statuses = status_get_all,
	.acl = status_acl,
	.read_begin = read_begin,
	.read = read_bytes,
	.read_ahead = read_ahead,
	.read_end = read_end,
	.set_status = status_set,
	.set_acl = status_set_acl,
	.change_acl = status_change_acl,
	.create = names_create,
	.link = names_link,
	.remove = names_remove,
	.rename = names_rename,
	.write_begin = write_begin,
	.write = write_bytes,
	.write_commit = write_commit,
	.write_abort = write_abort,
	.ranges = &ranges_ops,
};

static struct core *new_core(const struct store_options *options)
{
	struct core *core = calloc(1, sizeof(*core));

	if (!core)
		return NULL;
	core->store.ops = &real_ops;
	core->durability = options->durability;
	core->reserved = options->no_reserve;
	core->small_max = options->small ? options->small : SMALL_DEFAULT;
	if (core->small_max > SMALL_TOP)
		core->small_max = SMALL_TOP;
	snprintf(core->name, sizeof(core->name), "%s", get_store_name(options));
	core->copyplace = calloc(1, sizeof(*core->copyplace));
	report_init(&core->report, options->log, options->arg);
	if (!core->copyplace || volumes_init(&core->volumes)) {
		report_fini(&core->report);
		free(core->copyplace);
		free(core);
		return NULL;
	}
	lookup_init(&core->loads);
	pthread_mutex_init(&core->checking, NULL);
	return core;
}

/* Nothing is written to a directory that has no store. */
static bool has_store(struct core *core)
{
	return store_layer_has(core->layer, FORMAT_NAME) || has_metadata(core);
}

/* Without its directory the store is served, and has no copy meanwhile. */
static void open_copy_place(struct core *core, const struct store_options *options)
{
	struct copyplace *place = core->copyplace;

	copyplace_open(place, options, core->layer, true);
	core->copy_layer = place->layer;
	core->copy_absent = place->absent;
	core->copy_shares = place->shares;
	if (place->absent)
		report_line(
			&core->report, REPORT_ERROR,
			"%s: the copy of the metadata is not made: %s cannot be opened: %s; bring it back, "
			"or name another directory with --metadata-copy (rxfsd) or --copy (rxvol)",
			core->name, place->path, copyplace_reason(place));
}

/* Only one directory has the copy. What is left in another one is not used. */
static void settle_copy_place(struct core *core, const struct store_options *options)
{
	const struct copyplace *place = core->copyplace;
	int result;

	if (!core->replica)
		return;
	result = copyplace_remember(place, options, core->layer);
	if (result)
		report_line(&core->report, REPORT_WARNING,
			    "%s: the file COPY, with the directory of the copy of the metadata, "
			    "cannot be written: %s",
			    core->name, strerror(-result));
	if (!place->own)
		return;
	report_line(&core->report, REPORT_INFO, "%s: the copy of the metadata is in %s", core->name,
		    place->path);
	if (store_layer_has(core->layer, STORE_COPY "/db"))
		report_line(
			&core->report, REPORT_INFO,
			"%s: the folder copy has an older copy of the metadata, which nothing uses: remove it",
			core->name);
}

/* Each command names the directory of the copy, unless it is in the store. */
static int report_damaged_store(const struct core *core, char *message)
{
	const char *copy = core->copyplace->path[0] ? core->copyplace->path : NULL;
	const char *option = copy ? " --copy " : "";

	if (core->repaired == -ESTALE)
		return format_failure(
			message, -EBADMSG,
			"%s: the metadata are damaged, and their copy may lack changes; to go on with the "
			"copy: rxvol -S %s%s%s use-copy",
			core->name, core->name, option, copy ? copy : "");
	if (core->copy_absent)
		return format_failure(
			message, -EBADMSG,
			"%s: the metadata are damaged; bring back %s, which has their copy (%s), or make a new "
			"store of what is left: rxvol rescue %s NEW-DIRECTORY",
			core->name, copy, copyplace_reason(core->copyplace), core->name);
	return format_failure(
		message, -EBADMSG,
		"%s: the metadata are damaged%s make a new store of what is left: rxvol "
		"rescue %s NEW-DIRECTORY%s%s",
		core->name,
		copy ? ";"
		     : ", and no copy that repairs them is in the store; if rxfsd has metadata-copy, "
		       "name its directory with --copy; if not,",
		core->name, option, copy ? copy : "");
}

int store_open(const struct store_options *options, struct store **store, char *message)
{
	struct store_layer *layer;
	struct core *core;
	bool own;
	int result;

	message[0] = '\0';
	result = open_store_layer(options, false, &layer, &own, message);
	if (result)
		return result;
	core = new_core(options);
	if (!core) {
		if (own)
			layer->ops->destroy(layer);
		return format_failure(message, -ENOMEM, "%s: no memory", get_store_name(options));
	}
	core->layer = layer;
	core->own_layer = own;
	open_copy_place(core, options);
	result = has_store(core) ? lock_store(options, layer, message) : 0;
	if (!result)
		result = check_store_format(options, core, message);
	if (!result)
		result = remake_finish(core);
	if (!result) {
		reserve_begin(core);
		result = open_store_parts(core, options);
	}
	if (!result)
		settle_copy_place(core, options);
	if (result > 0)
		result = -ENOSPC;
	if (result == -EIO && !message[0] && core->unreadable)
		result = report_damaged_store(core, message);
	if (result && !message[0])
		format_failure(message, result, "%s: the store cannot be opened: %s", core->name,
			       strerror(-result));
	if (result) {
		scrub_stop(core->scrubber);
		keeper_stop(core->keeper);
		free_core(core);
		return result;
	}
	*store = &core->store;
	return 0;
}

/* -- maintenance -- */

void store_uuid(struct store *store, uint8_t uuid[16])
{
	memcpy(uuid, core_of(store)->uuid, 16);
}

int store_flush(struct store *store)
{
	return keeper_flush(core_of(store)->keeper);
}

void store_stats(struct store *store, struct store_stats *stats)
{
	struct core *core = core_of(store);
	struct scrub_state scrub;

	*stats = (struct store_stats){.bytes_written = core->bytes_written,
				      .bytes_read = core->bytes_read,
				      .bytes_copied = core->bytes_copied,
				      .directories = core->loads.count,
				      .damaged = core->report.damaged,
				      .copy_age_ms = copying_age_ms(core),
				      .memory = cache_memory(core->cache)};
	txn_counts(core->txn, &stats->operations, &stats->commits);
	cache_counts(core->cache, &stats->status_hits, &stats->status_misses);
	keeper_counts(core->keeper, &stats->flushes, &stats->pruning);
	scrub_get_state(core->scrubber, &scrub);
	stats->scrubbed_bytes = scrub.bytes;
	stats->scrub_damaged = scrub.damaged;
	stats->scrub_passes = scrub.passes;
	stats->scrub_last = scrub.last;
}

void store_commit_costs(struct store *store, struct store_commit_costs *costs)
{
	txn_costs(core_of(store)->txn, costs);
}
