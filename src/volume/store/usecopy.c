/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy of the metadata in the place of the database. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* The folder may be lost with all that is in it. */
static int need_meta_folder(struct store_layer *layer, struct store_layer *copy)
{
	int result = store_replica_written(copy) ? layer->ops->mkdir(layer, "meta") : 0;

	return result == -EEXIST ? 0 : result;
}

/* Users lose changes if the copy lacks some: then an administrator has to name it. */
static int check_copy(struct store_layer *layer, struct store_layer *copy, bool named)
{
	enum store_relation relation;
	int result = layer->ops->lock(layer, "lock");

	if (!result)
		result = need_meta_folder(layer, copy);
	if (!result)
		result = store_replica_compare(copy, layer, &relation);
	if (!result && is_foreign_copy(layer, copy))
		result = -EXDEV;
	if (!result && relation == STORE_COPY_NONE)
		result = -ENOENT;
	return !result && relation == STORE_COPY_OLDER && !named ? -ESTALE : result;
}

int store_use_copy(const struct store_options *options, char *message)
{
	struct store_layer *layer = options->layer, *copy = options->copy_layer;
	struct report report;
	const char *name = options->copy ? options->copy : options->path;
	int result = options->layer ? 0 : store_layer_posix(options->path, &layer);
	char time[32] = "";

	message[0] = '\0';
	report_init(&report, options->log, options->arg);
	if (!result && options->copy)
		result = store_layer_posix(options->copy, &copy);
	if (!result) {
		report_time(time, store_replica_written(copy ? copy : layer));
		result = check_copy(layer, copy ? copy : layer, copy != NULL);
	}
	if (!result) {
		const struct remake_place place = {layer, &report, options->path};

		result = remake_from_copy(&place, copy ? copy : layer);
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
	if (layer && !options->layer)
		layer->ops->destroy(layer);
	report_fini(&report);
	return result > 0 ? -ENOSPC : result;
}
