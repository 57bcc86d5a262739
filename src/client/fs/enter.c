/* SPDX-License-Identifier: BSD-2-Clause */
/* Mount points: which volume is behind one, by the rules of K-013. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>

#include "afs/numbers.h"
#include "client/fs/operate.h"

#define VOLUME_NAME_MOST 74 /* with a suffix */

struct mount_text {
	bool regular; /* '#' */
	char cell[CL_CELL_NAME];
	char volume[VOLUME_NAME_MOST + 1];
};

static bool name_valid(const char *name, size_t length, size_t most)
{
	if (!length || length > most)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
			return false;
	return true;
}

/* "#[CELL:]VOLUME." */
static bool parse_mount_text(const char *text, struct mount_text *to)
{
	size_t length = strlen(text);
	const char *colon = strchr(text, ':'), *volume = colon ? colon + 1 : text + 1;
	size_t cell_length = colon ? (size_t)(colon - text) - 1 : 0;
	size_t volume_length;

	if (length < 3 || (text[0] != '#' && text[0] != '%') || text[length - 1] != '.')
		return false;
	volume_length = length - 1 - (size_t)(volume - text);
	if (colon && !name_valid(text + 1, cell_length, sizeof to->cell - 1))
		return false;
	if (!name_valid(volume, volume_length, VOLUME_NAME_MOST))
		return false;
	memcpy(to->cell, text + 1, cell_length);
	to->cell[cell_length] = '\0';
	memcpy(to->volume, volume, volume_length);
	to->volume[volume_length] = '\0';
	to->regular = text[0] == '#';
	return true;
}

bool fs_mount_text_valid(const char *text)
{
	struct mount_text parsed;

	return parse_mount_text(text, &parsed);
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);

	return length > tail && !strcmp(name + length - tail, suffix);
}

/* The read-only volume, unless the path is a read-write one in the same cell. */
static enum cl_wanted wanted_volume(const rxafs_object *object, const struct mount_text *text,
				    const struct cl_cell *cell)
{
	const struct fs_vnode *in = object->vnode;

	if (!text->regular)
		return CL_WANT_EXACT;
	if (in && cl_volume_type(in->volume) == AFS_VL_RW && cl_volume_cell(in->volume) == cell)
		return CL_WANT_EXACT;
	return object->client->read_write ? CL_WANT_EXACT : CL_WANT_RO;
}

static int look_for_mounted(rxafs_object *object, struct rxafs_request *request,
			    struct cl_volume **volume)
{
	rxafs_client *client = object->client;
	const struct fs_vnode *in = object->vnode;
	struct cl_caller caller = fs_caller(client, request);
	struct mount_text text;
	struct cl_cell *cell;
	int result;

	if (!parse_mount_text(object->text, &text))
		return -ENODEV;
	if (in && cl_volume_type(in->volume) == AFS_VL_BACKUP && ends_in(text.volume, ".backup"))
		return fs_fail(request, -ENODEV,
			       "a mount point in a backup volume leads to another one");
	if (in && !text.cell[0]) {
		cell = cl_volume_cell(in->volume);
	} else {
		result = cl_cells_find(client->cells, text.cell, request->deadline, &cell);
		if (result)
			return result == -ENOENT ? -ENODEV : result;
	}
	return cl_volume_find(client->net, cell, text.volume, wanted_volume(object, &text, cell),
			      &caller, volume, &request->failure);
}

int fs_root_of_volume(rxafs_client *client, struct cl_volume *volume, struct fs_vnode **vnode)
{
	struct rxafs_fid fid = {cl_cell_number(cl_volume_cell(volume)), cl_volume_id(volume),
				AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};
	int result = cl_cache_set_readonly(client->cache, fid.cell, fid.volume,
					   cl_volume_type(volume) != AFS_VL_RW);

	if (result)
		return result;
	*vnode = fs_get_vnode(client, volume, &fid);
	return *vnode ? 0 : -ENOMEM;
}

/* NULL: *result. */
static struct fs_target *make_target(rxafs_client *client, struct cl_volume *volume, int *result)
{
	struct fs_target *target = calloc(1, sizeof *target);

	*result = target ? fs_root_of_volume(client, volume, &target->vnode) : -ENOMEM;
	if (*result) {
		free(target);
		return NULL;
	}
	target->volume = cl_volume_ref(volume);
	atomic_init(&target->standing, cl_volume_standing(volume));
	return target;
}

/* The mount point leads to this volume from now on. Another one may have said so meanwhile. */
static int set_target(rxafs_object *object, struct fs_target *present, struct cl_volume *volume)
{
	rxafs_client *client = object->client;
	struct fs_target *target;
	int result;

	target = make_target(client, volume, &result);
	if (!target)
		return result;
	if (!fs_set_target(object, present, target)) {
		fs_free_target(target);
		return 0;
	}
	if (!present || present->vnode == target->vnode)
		return 0;
	fs_log(client, LOG_NOTICE, "volume %s has another number: %u, before %u",
	       cl_volume_name(volume), cl_volume_id(volume), cl_volume_id(present->volume));
	if (client->hooks.changed)
		client->hooks.changed(client->hooks.arg, object,
				      RXAFS_CHANGED_STATUS | RXAFS_CHANGED_DATA |
					      RXAFS_CHANGED_NAMES);
	return 0;
}

/* 0: none of the cells that are known. */
static uint32_t number_of_cell(rxafs_client *client, const char *name)
{
	struct cl_cell *cell;

	for (uint32_t i = 1; (cell = cl_cells_at(client->cells, i)); i++)
		if (!strcasecmp(cl_cell_name(cell), name))
			return i;
	return 0;
}

struct rxafs_awaited fs_awaited(rxafs_object *object)
{
	struct rxafs_awaited awaited = {.known = true};
	struct fs_vnode *v = fs_entered(object);
	struct mount_text text;

	if (v) {
		awaited.cell = v->fid.cell;
		awaited.server = fs_server_of(v);
	} else if (object->text && parse_mount_text(object->text, &text)) {
		if (text.cell[0])
			awaited.cell = number_of_cell(object->client, text.cell);
		else if (object->vnode)
			awaited.cell = object->vnode->fid.cell;
	}
	return awaited;
}

bool fs_must_move(rxafs_object *object, struct rxafs_request *request)
{
	struct rxafs_awaited awaited = fs_awaited(object);

	if (!request->moves || request->quick || awaited.cell == request->awaited.cell)
		return false;
	request->awaited = awaited;
	return true;
}

/* Whether another look at the mount point is due (K-011). */
static bool is_unsettled(struct fs_target *target)
{
	return atomic_load(&target->standing) != cl_volume_standing(target->volume);
}

int fs_enter(rxafs_object *object, struct rxafs_request *request, struct fs_vnode **vnode)
{
	struct fs_target *present = NULL;
	struct cl_volume *volume;
	uint32_t standing = 0;
	int result;

	*vnode = fs_entered(object);
	if (object->what != FS_PLAIN)
		present = atomic_load(&object->target);
	if (*vnode && (!present || !is_unsettled(present)))
		return 0;
	if (object->what == FS_ROOT || object->what == FS_ALIAS)
		return -EROFS;
	if (request->quick) {
		request->awaited = fs_awaited(object);
		return RXAFS_WOULD_WAIT;
	}
	if (present)
		standing = cl_volume_standing(present->volume);
	result = look_for_mounted(object, request, &volume);
	if (result)
		return result;
	if (present && present->volume == volume)
		atomic_store(&present->standing, standing);
	else
		result = set_target(object, present, volume);
	cl_volume_unref(volume);
	*vnode = fs_entered(object);
	return result;
}

int fs_enter_to_change(rxafs_object *object, struct rxafs_request *request, struct fs_vnode **vnode)
{
	int result = fs_enter(object, request, vnode);

	if (!result && cl_volume_type((*vnode)->volume) != AFS_VL_RW)
		result = fs_fail(request, -EROFS, "the volume is read-only");
	return result;
}
