/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy of the metadata in the place of the database. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "volume/store/copyplace.h"
#include "volume/store/disk/mend.h"
#include "volume/store/disk/pageset.h"
#include "volume/store/format.h"
#include "volume/store/remake.h"
#include "volume/store/upkeep.h"

/* Whether the copy is certainly that of another store. */
static bool is_foreign_copy(struct store_layer *layer, struct store_layer *copy)
{
	uint8_t uuid[16], other[16];

	return !format_read(layer, FORMAT_NAME, uuid) &&
	       !format_read(copy, STORE_COPY "/" FORMAT_NAME, other) &&
	       memcmp(uuid, other, sizeof(uuid)) != 0;
}

/* It may be lost with all that is in it. */
static int make_meta_folder(struct store_layer *layer)
{
	int result = layer->ops->mkdir(layer, "meta");

	return result == -EEXIST ? 0 : result;
}

/* Users lose changes if the copy lacks some: then an administrator has to name it. */
static int check_copy(struct store_layer *layer, struct store_layer *copy, bool named)
{
	enum store_relation relation;
	int result = layer->ops->lock(layer, "lock");

	if (!result)
		result = store_replica_compare(copy, layer, &relation);
	if (!result && is_foreign_copy(layer, copy))
		result = -EXDEV;
	if (!result && relation == STORE_COPY_NONE)
		result = -ENOENT;
	if (!result && relation == STORE_COPY_OLDER && !named)
		result = -ESTALE;
	return result ? result : make_meta_folder(layer);
}

/* A long path is cut. */
__attribute__((format(printf, 2, 3))) static void compose_line(char *message, const char *format,
							       ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(message, STORE_MESSAGE_MAX, format, args);
	va_end(args);
}

static void compose_copy_message(const char *store, const struct copyplace *place, int result,
				 const struct store_rescue *found, char *message)
{
	const char *name = place->path[0] ? place->path : store;
	char copied[STORE_COPY_CLAUSE] = "";

	if (place->layer)
		store_replica_describe(place->layer, copied);
	if (place->absent)
		compose_line(message, "%s: the copy of the metadata is in %s, which cannot be opened: %s; bring it back, or "
			"name another directory with --copy",
			store, name, copyplace_reason(place));
	else if (result == -ESTALE)
		compose_line(message, "%s: the copy of the metadata in %s %s; it may lack later ones; "
			"to go on with it all the same, name it: rxvol -S %s --copy %s use-copy",
			store, name, copied, store, name);
	else if (result == -EBADMSG)
		compose_line(
			message,
			"%s: the copy of the metadata in %s is damaged (pages: %llu of %llu; lost records: %llu), and "
			"nothing was changed; make a new store of what is sound in it and in the metadata: rxvol "
			"rescue %s NEW-DIRECTORY%s%s",
			store, name, (unsigned long long)found->damaged_pages,
			(unsigned long long)found->pages, (unsigned long long)found->lost, store,
			place->path[0] ? " --copy " : "", place->path);
	else if (!result)
		compose_line(message, "%s: goes on with the copy of the metadata in %s, which %s; run rxvol check",
			store, name, copied);
	else
		compose_line(message, "%s: the copy of the metadata cannot be used: %s", store,
			 result > 0	     ? "the disk is full"
			 : result == -EBUSY  ? "another process uses the store; stop it first"
			 : result == -ENOENT ? "there is none that is complete"
			 : result == -EXDEV  ? "it is that of another store; look at --copy"
					     : strerror(-result));
}

int store_use_copy(const struct store_options *options, char *message)
{
	struct report report;
	struct remake_place store = {options->layer, &report, options->path};
	int result = options->layer ? 0 : store_layer_posix(options->path, &store.layer);
	struct store_rescue found = {0};
	struct copyplace place = {0};

	message[0] = '\0';
	report_init(&report, options->log, options->arg);
	if (!result)
		copyplace_open(&place, options, store.layer, true);
	if (!result && !place.layer && !place.absent)
		place.layer = store.layer;
	if (!result)
		result = place.absent ? place.result
				      : check_copy(store.layer, place.layer, place.named);
	if (!result)
		result = remake_from_copy(&store, place.layer, &found);
	compose_copy_message(options->path, &place, result, &found, message);
	copyplace_close(&place);
	if (store.layer && !options->layer)
		store.layer->ops->destroy(store.layer);
	report_fini(&report);
	return result > 0 ? -ENOSPC : result;
}
