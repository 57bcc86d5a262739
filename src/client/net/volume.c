/* SPDX-License-Identifier: BSD-2-Clause */
/* What others may know of a volume. */
#include "client/net/record.h"

uint32_t cl_volume_id(const struct cl_volume *volume)
{
	return volume->id;
}

enum afs_vl_type cl_volume_type(const struct cl_volume *volume)
{
	return volume->type;
}

struct cl_cell *cl_volume_cell(const struct cl_volume *volume)
{
	return volume->record->cell;
}

const char *cl_volume_name(const struct cl_volume *volume)
{
	return cl_record_name(volume->record);
}

void cl_volume_ids(struct cl_volume *volume, uint32_t ids[MAXTYPES])
{
	struct cl_net *net = volume->record->net;

	pthread_mutex_lock(&net->table_lock);
	for (unsigned i = 0; i < MAXTYPES; i++)
		ids[i] = volume->record->volumes[i].id;
	pthread_mutex_unlock(&net->table_lock);
}

unsigned cl_volume_servers(struct cl_volume *volume, uint32_t *servers, unsigned max)
{
	struct cl_record *record = volume->record;
	unsigned count = 0;

	pthread_mutex_lock(&record->lock);
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < record->site_count && count < max; i++)
			if (cl_site_serves(&record->sites[i], volume->type) &&
			    (volume->last == (int)i) == (pass == 0))
				servers[count++] = record->sites[i].server->number;
	pthread_mutex_unlock(&record->lock);
	return count;
}

enum cl_server_state cl_volume_state(struct cl_volume *volume, uint32_t *number)
{
	struct cl_record *record = volume->record;
	enum cl_server_state best = CL_SERVER_DOWN;
	struct cl_server *server = NULL;
	bool any = false;

	pthread_mutex_lock(&record->lock);
	for (unsigned i = 0; i < record->site_count; i++) {
		enum cl_server_state state;

		if (!cl_site_serves(&record->sites[i], volume->type))
			continue;
		any = true;
		state = cl_server_state(record->sites[i].server);
		if (!server || state < best || (state == best && volume->last == (int)i)) {
			best = state;
			server = record->sites[i].server;
		}
	}
	pthread_mutex_unlock(&record->lock);
	if (number)
		*number = server ? server->number : 0;
	return any ? best : CL_SERVER_UP;
}

uint32_t cl_volume_standing(const struct cl_volume *volume)
{
	return atomic_load(&volume->record->standing);
}

void cl_volume_forget_record(struct cl_volume *volume)
{
	atomic_store(&volume->record->stale, true);
	cl_record_unsettle(volume->record);
}
