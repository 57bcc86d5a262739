/* SPDX-License-Identifier: BSD-2-Clause */
/* The version and the length of a file's contents. */
#include <assert.h>

#include "client/data/filesteps.h"
#include "common/held.h"

uint64_t file_length(struct cl_data_file *file)
{
	uint64_t length = file_known_end(file);

	assert(mutex_is_held(&file->lock));
	if (length < file->grow)
		length = file->grow;
	for (size_t i = file->count; i-- > 0;) {
		const struct block *block = file->blocks[i];
		const struct extent *dirty = extents_all(&block->dirty);
		uint64_t base = block->number << file->data->block_shift;

		if (base + block_size(file->data) <= length)
			break;
		if (!block->dirty.count)
			continue;
		if (length < base + dirty[block->dirty.count - 1].end)
			length = base + dirty[block->dirty.count - 1].end;
		break;
	}
	return length;
}

/* Whether a status was taken before the one that is known. A server that was restored goes back to lower versions (K-052). */
static bool is_late_status(const struct cl_data_version *known,
			   const struct cl_data_version *version)
{
	if (version->order != known->order)
		return version->order < known->order;
	return version->incarnation == known->incarnation && version->version < known->version;
}

bool file_take_version(struct cl_data_file *file, const struct cl_data_version *version,
		       uint64_t keep, uint64_t keep_end)
{
	struct cl_data_version old = file->version;
	bool same = file->known && version->incarnation == old.incarnation;
	struct cl_disk_version now;
	bool dropped;

	assert(mutex_is_held(&file->lock));
	if (file->known && is_late_status(&old, version))
		return false;
	file->version.order = version->order;
	if (same && version->version == old.version && version->length == old.length)
		return false;
	dropped = file->known &&
		  !(same && version->clean_from <= old.version && old.version <= version->version);
	if (dropped)
		file_drop_clean(file, keep, keep_end);
	file->version = *version;
	if (!dropped && file->known && old.clean_from < version->clean_from)
		file->version.clean_from = old.clean_from;
	file->known = true;
	if (file->grow <= file_known_end(file))
		file->grow = 0;
	if (!file->disk)
		return dropped;
	now = file_disk_version(file);
	if (!dropped && same)
		cl_disk_move_version(file->disk,
				     &(struct cl_disk_version){old.version, old.incarnation}, &now);
	else
		cl_disk_set_version(file->disk, &now);
	if (file->keep_whole)
		cl_disk_keep_whole(file->disk, version->length);
	return dropped;
}

void cl_data_update(struct cl_data_file *file, const struct cl_data_version *version)
{
	pthread_mutex_lock(&file->lock);
	file_take_version(file, version, 0, 0);
	file_wake(file, false);
	pthread_mutex_unlock(&file->lock);
}

void cl_data_forget(struct cl_data_file *file)
{
	pthread_mutex_lock(&file->lock);
	file_drop_clean(file, 0, 0);
	if (file->disk)
		cl_disk_drop_blocks(file->disk, 0, UINT64_MAX);
	pthread_mutex_unlock(&file->lock);
}

uint64_t cl_data_length(struct cl_data_file *file)
{
	uint64_t length;

	pthread_mutex_lock(&file->lock);
	length = file_length(file);
	pthread_mutex_unlock(&file->lock);
	return length;
}
