/* SPDX-License-Identifier: BSD-2-Clause */
/* Volumes, servers and mount points for administrators. */
#include "rxafs/admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fs/operate.h"

static uint64_t count_volume_blocks(int64_t count)
{
	return count > 0 ? (uint64_t)count : 0;
}

int rxafs_examine(rxafs_object *object, struct rxafs_request *request, struct rxafs_volume *volume)
{
	struct cl_caller caller = fs_caller(object->client, request);
	struct cl_volume_status *answer;
	uint32_t ids[MAXTYPES] = {0};
	struct fs_vnode *v;
	int result = object->what == FS_ROOT || object->what == FS_ALIAS
			     ? -ENODEV
			     : fs_enter(object, request, &v);

	if (result)
		return result;
	if (request->quick)
		return RXAFS_WOULD_WAIT;
	answer = malloc(sizeof *answer);
	if (!answer)
		return -ENOMEM;
	result = cl_net_fetch_volume_status(v->volume, &caller, answer, &request->failure);
	cl_volume_ids(v->volume, ids);
	*volume = (struct rxafs_volume){.fid = v->fid,
					.id = cl_volume_id(v->volume),
					.read_write = ids[AFS_VL_RW],
					.read_only = ids[AFS_VL_RO],
					.backup = ids[AFS_VL_BACKUP],
					.writable = cl_volume_type(v->volume) == AFS_VL_RW};
	snprintf(volume->cell, sizeof volume->cell, "%s", cl_cell_name(cl_volume_cell(v->volume)));
	snprintf(volume->name, sizeof volume->name, "%s", cl_volume_name(v->volume));
	if (!result) {
		volume->online = answer->volume.Online;
		volume->quota = count_volume_blocks(answer->volume.MaxQuota);
		volume->used = count_volume_blocks(answer->volume.BlocksInUse);
		volume->free = count_volume_blocks(answer->volume.PartBlocksAvail);
		volume->total = count_volume_blocks(answer->volume.PartMaxBlocks);
		snprintf(volume->message, sizeof volume->message, "%.255s", answer->offline);
	}
	free(answer);
	return result;
}

int rxafs_set_quota(rxafs_object *object, struct rxafs_request *request, uint64_t quota)
{
	struct cl_caller caller = fs_caller(object->client, request);
	struct fs_vnode *v;
	int result = quota > INT32_MAX ? -EINVAL : fs_enter_to_change(object, request, &v);

	return result ? result
		      : cl_net_set_volume_status(v->volume, &caller, (int32_t)quota, NULL, NULL,
						 &request->failure);
}

bool rxafs_server_at(rxafs_client *client, uint32_t number, struct rxafs_server *server)
{
	struct cl_server_info info;
	struct cl_cell *cell;

	if (!cl_net_server_info(client->net, number, &info))
		return false;
	*server = (struct rxafs_server){
		.number = number,
		.address = info.address,
		.address_len = info.address_len,
		.state = (enum rxafs_server_state)info.state,
		.rtt_us = info.rtt_us,
	};
	cell = cl_cells_at(client->cells, info.cell);
	snprintf(server->cell, sizeof server->cell, "%s", cell ? cl_cell_name(cell) : "");
	return true;
}

int rxafs_where(rxafs_object *object, struct rxafs_request *request, struct rxafs_server *servers,
		unsigned max)
{
	uint32_t numbers[16];
	unsigned count, found = 0;
	struct fs_vnode *v;
	int result = object->what == FS_ROOT || object->what == FS_ALIAS
			     ? -ENODEV
			     : fs_enter(object, request, &v);

	if (result)
		return result;
	count = cl_volume_servers(v->volume, numbers, 16);
	for (unsigned i = 0; i < count && found < max; i++)
		found += rxafs_server_at(object->client, numbers[i], &servers[found]);
	return (int)found;
}

void rxafs_probe_servers(rxafs_client *client, struct rxafs_request *request)
{
	struct cl_caller caller = fs_caller(client, request);

	cl_net_probe_servers(client->net, 0, &caller);
}

const char *rxafs_cell_name(rxafs_client *client, uint32_t n)
{
	struct cl_cell *cell = cl_cells_at(client->cells, n);

	return cell ? cl_cell_name(cell) : NULL;
}

int rxafs_cell_address(rxafs_client *client, const char *name, struct sockaddr_storage *address,
		       socklen_t *length)
{
	struct cl_cell_server servers[CL_CELL_SERVERS];
	struct cl_cell *cell;
	int result = cl_cells_find(client->cells, name, 0, &cell);

	if (!result)
		result = cl_cell_servers(cell, 0, servers);
	if (result <= 0)
		return result ? result : -ENOENT;
	*address = servers[0].address;
	*length = servers[0].len;
	return 0;
}

int rxafs_forget(rxafs_object *object, struct rxafs_request *request)
{
	struct fs_vnode *v;
	int result = object->what == FS_ROOT || object->what == FS_ALIAS
			     ? 0
			     : fs_enter(object, request, &v);

	if (result || object->what == FS_ROOT || object->what == FS_ALIAS)
		return result;
	cl_object_doubt(v->object);
	pthread_mutex_lock(&v->lock);
	if (v->data)
		cl_data_forget(v->data);
	pthread_mutex_unlock(&v->lock);
	cl_volume_forget_record(v->volume);
	atomic_fetch_add(&v->contents, 1);
	fs_tell(v, RXAFS_CHANGED_STATUS | RXAFS_CHANGED_DATA | RXAFS_CHANGED_NAMES, NULL);
	return 0;
}

int rxafs_find_name(rxafs_object *directory, struct rxafs_request *request, const char *name,
		    rxafs_object **object)
{
	struct cl_status status;
	struct rxafs_fid fid;
	struct fs_vnode *v;
	uint64_t known_ns;
	int result;

	if (directory->what == FS_ROOT)
		return fs_dynamic_find(directory, request, name, object);
	if (!fs_is_directory(directory))
		return -ENOTDIR;
	result = fs_enter(directory, request, &v);
	if (!result)
		result = fs_need_rights(v, request, RXAFS_LIST);
	if (!result)
		result = fs_find(v, request, name, &fid, &known_ns);
	if (!result)
		result = fs_object_of(directory, request, name, &fid, object, &status);
	return result == -ESTALE ? -ENOENT : result;
}

int rxafs_mount_text(rxafs_object *object, char **text)
{
	if (object->what != FS_MOUNT && object->what != FS_CELL)
		return -EINVAL;
	*text = strdup(object->text);
	return *text ? 0 : -ENOMEM;
}

int rxafs_make_mount(rxafs_object *directory, struct rxafs_request *request, const char *name,
		     const char *text)
{
	const struct rxafs_changes set = {.mode = 0644};
	struct rxafs_attributes attributes;
	rxafs_object *object;
	int result;

	if (!fs_mount_text_valid(text))
		return -EINVAL;
	result = fs_make_link(directory, request, name, text, &set, &object, &attributes);
	if (!result)
		rxafs_release(object);
	return result;
}

int64_t rxafs_token_expires(rxafs_user *user, const char *name)
{
	struct cl_cell *cell;

	return cl_cells_find(user->client->cells, name, 0, &cell)
		       ? 0
		       : cl_identity_expires(user->identity, cell);
}
