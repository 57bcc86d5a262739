/* SPDX-License-Identifier: BSD-2-Clause */
/* Instances, files and handles. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "client/data/filesteps.h"
#include "common/clock.h"
#include "common/failure.h"

#define MIB (1024u * 1024u)

/* -- instances ------------------------------------------------------------------------------ */

static void set_defaults(struct cl_data_options *options)
{
	static const struct cl_data_options defaults = {.memory_most = 64 * MIB,
							.dirty_file_most = 64 * MIB,
							.ahead_most = 16 * MIB,
							.block = MIB / 4,
							.store_after_s = 30,
							.threads_most = JOBS_LANES,
							.disk_most = 1024ull * MIB};

	if (!options->memory_most)
		options->memory_most = defaults.memory_most;
	if (!options->dirty_most)
		options->dirty_most = options->memory_most / 2;
	if (!options->dirty_file_most)
		options->dirty_file_most = defaults.dirty_file_most;
	if (!options->ahead_most)
		options->ahead_most = defaults.ahead_most;
	if (!options->block)
		options->block = defaults.block;
	if (!options->store_after_s)
		options->store_after_s = defaults.store_after_s;
	if (!options->threads_most)
		options->threads_most = defaults.threads_most;
	if (!options->disk_most)
		options->disk_most = defaults.disk_most;
}

int cl_data_create(const struct cl_data_options *options, const struct cl_data_ops *ops,
		   struct cl_data **made, char *message, size_t size)
{
	struct cl_data *data = calloc(1, sizeof(*data));
	int error;

	if (!data)
		return fail_with(-ENOMEM, message, size, "no memory");
	data->ops = *ops;
	data->options = options ? *options : (struct cl_data_options){0};
	set_defaults(&data->options);
	data->block_shift = (unsigned)__builtin_ctz(data->options.block);
	data->blocks = (struct link){&data->blocks, &data->blocks};
	data->dirties = (struct link){&data->dirties, &data->dirties};
	pthread_mutex_init(&data->lock, NULL);
	monotonic_cond_init(&data->room);
	if (data->options.folder) {
		struct cl_disk_options disk = {.folder = data->options.folder,
					       .bytes_most = data->options.disk_most,
					       .block = data->options.block};

		error = cl_disk_open(&disk, &data->disk, message, size);
		if (error)
			goto failed_disk;
	}
	error = jobs_start(&data->jobs, data->options.threads_most);
	if (error)
		goto failed;
	error = ticker_start(data);
	if (error)
		goto failed_jobs;
	*made = data;
	return 0;
failed_jobs:
	jobs_stop(&data->jobs);
failed:
	snprintf(message, size, "cannot start a thread");
	if (data->disk)
		cl_disk_close(data->disk);
failed_disk:
	pthread_mutex_destroy(&data->lock);
	pthread_cond_destroy(&data->room);
	free(data);
	return error;
}

void cl_data_stop(struct cl_data *data)
{
	if (data->stopped)
		return;
	data->stopped = true;
	ticker_stop(data);
	jobs_stop(&data->jobs);
}

void cl_data_free(struct cl_data *data)
{
	cl_data_stop(data);
	assert(data->dirties.next == &data->dirties);
	assert(data->blocks.next == &data->blocks);
	buffers_free_areas(data);
	if (data->disk)
		cl_disk_close(data->disk);
	pthread_mutex_destroy(&data->lock);
	pthread_cond_destroy(&data->room);
	free(data);
}

/* -- files and handles ---------------------------------------------------------------------- */

int cl_data_file_create(struct cl_data *data, const struct rxafs_fid *fid, const char *cell_name,
			void *owner, struct cl_data_file **made)
{
	struct cl_data_file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->data = data;
	file->fid = *fid;
	file->owner = owner;
	file->cut = file->next_cut = NO_CUT;
	pthread_mutex_init(&file->lock, NULL);
	if (data->disk)
		file->disk = cl_disk_get_file(data->disk, cell_name, fid->volume, fid->vnode,
					      fid->unique);
	*made = file;
	return 0;
}

void cl_data_keep_whole(struct cl_data_file *file)
{
	pthread_mutex_lock(&file->lock);
	assert(!file->known);
	file->keep_whole = file->disk != NULL;
	pthread_mutex_unlock(&file->lock);
}

void cl_data_file_free(struct cl_data_file *file)
{
	pthread_mutex_lock(&file->lock);
	assert(!file->handles && !file->fetches && !file->waiters);
	assert(!file->held && !file->queued);
	while (file->count)
		block_remove(file, file->blocks[file->count - 1]);
	pthread_mutex_unlock(&file->lock);
	if (file->disk)
		cl_disk_put_file(file->disk);
	free(file->blocks);
	pthread_mutex_destroy(&file->lock);
	free(file);
}

int cl_data_open(struct cl_data_file *file, void *who, struct cl_data_handle **made)
{
	struct cl_data_handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return -ENOMEM;
	file->data->ops.hold(file->owner);
	if (file->data->ops.hold_who)
		file->data->ops.hold_who(who);
	handle->file = file;
	handle->who = who;
	pthread_mutex_lock(&file->lock);
	handle->seen_errors = file->errors;
	handle->next = file->handles;
	file->handles = handle;
	file->give_up_at = 0;
	pthread_mutex_unlock(&file->lock);
	*made = handle;
	return 0;
}
