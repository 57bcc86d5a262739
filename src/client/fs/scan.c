/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories that are read as a whole, for walks of large trees: no object of the cache is made for what is in them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/file.h>
#include <rxafs/stream.h>

#include "afs/fetchstatus.h"
#include "client/fs/operate.h"
#include "client/fs/show.h"

_Static_assert(RXAFS_BATCH == AFSCBMAX, "one InlineBulkStatus");

/* -- names -------------------------------------------------------------------------------- */

/* Names while their number is not known: `text` is an offset in `bytes` until the end. */
struct gathering {
	struct rxafs_names *names;
	size_t room;
	char *bytes;
	size_t used, size;
};

static int gather_name(struct gathering *g, const char *name, const struct rxafs_fid *fid)
{
	size_t length = strlen(name) + 1;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return 0;
	if (g->names->count == g->room) {
		size_t room = g->room ? 2 * g->room : 64;
		struct rxafs_name *list = realloc(g->names->list, room * sizeof *list);

		if (!list)
			return -ENOMEM;
		g->names->list = list;
		g->room = room;
	}
	if (g->size - g->used < length) {
		size_t size = 2 * g->size + length;
		char *bytes = realloc(g->bytes, size);

		if (!bytes)
			return -ENOMEM;
		g->bytes = bytes;
		g->size = size;
	}
	memcpy(g->bytes + g->used, name, length);
	g->names->list[g->names->count++] =
		(struct rxafs_name){.text = (const char *)g->used, .fid = *fid};
	g->used += length;
	return 0;
}

static int gather_entry(struct gathering *g, struct fs_vnode *v, const struct cl_entry *entry)
{
	struct rxafs_fid fid = v->fid;

	if (fs_hides(v->client, &v->fid, entry->name))
		return 0;
	fid.vnode = entry->vnode;
	fid.unique = entry->unique;
	return gather_name(g, entry->name, &fid);
}

static int gather_once(struct gathering *g, struct fs_vnode *v, const struct cl_names *once)
{
	struct cl_entry entry = {0};
	int result = 0;

	while (!result && cl_names_next(once, entry.next, &entry))
		result = gather_entry(g, v, &entry);
	return result;
}

/* From the cache. -ESTALE: they went meanwhile. */
static int gather_cached(struct gathering *g, struct fs_vnode *v)
{
	struct cl_entry entries[16];
	uint64_t offset = 0;
	unsigned count = 1;
	int result = 0;

	g->names->count = g->used = 0;
	while (!result && count) {
		result = cl_dir_next(v->object, offset, entries, 16, &count);
		for (unsigned i = 0; !result && i < count; i++) {
			result = gather_entry(g, v, &entries[i]);
			offset = entries[i].next;
		}
	}
	return result;
}

/* The server checks rights when it is asked; otherwise they are checked here. */
static int gather_names(struct gathering *g, struct fs_vnode *v, struct rxafs_request *request)
{
	struct cl_names *once = NULL;
	int result = -ESTALE;

	for (unsigned i = 0; result == -ESTALE && i < 3; i++) {
		if (cl_dir_loaded(v->object, cl_net_now()))
			result = fs_need_rights(v, request, RXAFS_LIST);
		else
			result = fs_load_names(v, request, &once);
		if (result)
			break;
		result = once ? gather_once(g, v, once) : gather_cached(g, v);
		cl_names_free(once);
		once = NULL;
	}
	/* One that was removed meanwhile does not come back. */
	return result == -ESTALE && !fs_is_gone(v)
		       ? fs_fail(request, -EAGAIN, "the directory changes all the time")
		       : result;
}

static int gather_dynamic(struct gathering *g, rxafs_object *directory,
			  struct rxafs_request *request)
{
	struct rxafs_entry entry = {0};
	rxafs_listing *listing;
	int result = rxafs_open_listing(directory, request, &listing);

	while (!result) {
		result = rxafs_next_entry(listing, request, entry.next, &entry);
		if (result <= 0)
			break;
		result = gather_name(g, entry.name, &entry.fid);
	}
	rxafs_close_listing(listing);
	return result;
}

int rxafs_list_names(rxafs_object *directory, struct rxafs_request *request,
		     struct rxafs_names *names)
{
	struct gathering g = {.names = names};
	struct fs_vnode *v;
	int result;

	*names = (struct rxafs_names){0};
	if (!fs_is_directory(directory))
		return -ENOTDIR;
	if (directory->what == FS_ROOT) {
		result = gather_dynamic(&g, directory, request);
	} else {
		result = fs_enter(directory, request, &v);
		if (!result)
			result = gather_names(&g, v, request);
	}
	names->storage = g.bytes;
	if (result) {
		rxafs_free_names(names);
		return result;
	}
	for (size_t i = 0; i < names->count; i++)
		names->list[i].text = g.bytes + (size_t)names->list[i].text;
	return 0;
}

void rxafs_free_names(struct rxafs_names *names)
{
	free(names->list);
	free(names->storage);
	*names = (struct rxafs_names){0};
}

/* -- attributes --------------------------------------------------------------------------- */

/* One after the other, through the cache: in the dynamic root, and of what may be a mount point. */
static int look_up_name(rxafs_object *directory, struct rxafs_request *request,
			const struct rxafs_name *name, struct rxafs_attributes *attributes)
{
	rxafs_object *object;
	int result;

	if (directory->what == FS_ROOT) {
		result = rxafs_lookup(directory, request, name->text, &object, attributes);
	} else {
		struct cl_status status;

		result = fs_object_of(directory, request, name->text, &name->fid, &object, &status);
		if (!result)
			fs_show(object, request, fs_entered(object) ? NULL : &status, attributes);
	}
	if (!result)
		rxafs_release(object);
	return result;
}

static int result_of_answer(const AFSFetchStatus *answer)
{
	int result = cl_net_result_of_code((int32_t)answer->errorCode);

	if (result)
		return result == -ESTALE ? -ENOENT : result;
	return afs_status_usable(answer) ? 0 : -EIO;
}

static void show_in_batch(rxafs_object *directory, struct rxafs_request *request,
			  const struct rxafs_name *name, const AFSFetchStatus *answer,
			  struct rxafs_attributes *attributes, int *result)
{
	*result = result_of_answer(answer);
	if (*result)
		return;
	if (answer->FileType == AFS_TYPE_SYMLINK && answer->UnixModeBits == 0644)
		*result = look_up_name(directory, request, name, attributes);
	else
		fs_show_status(directory->client, &name->fid, answer, attributes);
}

int rxafs_fetch_attributes(rxafs_object *directory, struct rxafs_request *request,
			   const struct rxafs_name *names, unsigned count,
			   struct rxafs_attributes *attributes, int *results)
{
	AFSFetchStatus answers[AFSCBMAX];
	AFSCallBack callbacks[AFSCBMAX];
	AFSFid asked[AFSCBMAX];
	struct fs_vnode *v;
	struct fs_call call;
	int result;

	if (!count || count > RXAFS_BATCH)
		return count ? -EINVAL : 0;
	if (directory->what == FS_ROOT) {
		for (unsigned i = 0; i < count; i++)
			results[i] = look_up_name(directory, request, &names[i], &attributes[i]);
		return 0;
	}
	result = fs_enter(directory, request, &v);
	if (result)
		return result;
	for (unsigned i = 0; i < count; i++)
		asked[i] = fs_afs_fid(&names[i].fid);
	fs_begin_call(&call, v->client, request);
	result = cl_net_fetch_statuses(v->volume, &call.caller, asked, count, answers, callbacks,
				       &call.stamp, &request->failure);
	for (unsigned i = 0; !result && i < count; i++)
		show_in_batch(directory, request, &names[i], &answers[i], &attributes[i],
			      &results[i]);
	return result;
}

int rxafs_take_object(rxafs_object *directory, struct rxafs_request *request,
		      const struct rxafs_name *name, const struct rxafs_attributes *attributes,
		      rxafs_object **object)
{
	struct fs_vnode *parent, *child;
	struct cl_status status;
	int result;

	if (directory->what == FS_ROOT) {
		struct rxafs_attributes shown;

		return rxafs_lookup(directory, request, name->text, object, &shown);
	}
	if (attributes->mount_point || !rxafs_fid_same(&attributes->fid, &name->fid))
		return fs_object_of(directory, request, name->text, &name->fid, object, &status);
	result = fs_enter(directory, request, &parent);
	if (result)
		return result;
	child = fs_get_vnode(directory->client, parent->volume, &name->fid);
	if (!child)
		return -ENOMEM;
	*object = fs_get_object(directory, child, attributes->kind, NULL);
	fs_put_vnode(child);
	return *object ? 0 : -ENOMEM;
}
