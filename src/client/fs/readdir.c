/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories that are read: names from the cache, statuses ahead of the reader, by 50 and several times at once. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/fs/operate.h"
#include "client/fs/show.h"

#define AHEAD	    32
#define CALLS_FIRST 20u /* for statuses, at once: they take one round trip like one of them */
#define CALLS_MOST  20u

struct rxafs_listing {
	rxafs_object *directory; /* a reference */
	struct fs_vnode *vnode;	 /* NULL: the dynamic root */
	/* Names that are right for this scan only; else they are the cache's. */
	struct cl_names *once;
	struct cl_entry entries[AHEAD]; /* from `at` on */
	uint64_t at;
	unsigned count, used;
	char name[CL_CELL_NAME + 2];
	uint64_t next; /* of rxafs_read_listing() */
	unsigned calls; /* for statuses, that were made at once the last time */
};

int rxafs_open_listing(rxafs_object *directory, struct rxafs_request *request,
		       rxafs_listing **listing)
{
	rxafs_listing *l;
	struct fs_vnode *v = NULL;
	int result = 0;

	if (!fs_is_directory(directory))
		return -ENOTDIR;
	if (directory->what != FS_ROOT) {
		result = fs_enter(directory, request, &v);
		if (!result)
			result = fs_need_rights(v, request, RXAFS_LIST);
	}
	if (result)
		return result;
	l = calloc(1, sizeof *l);
	if (!l)
		return -ENOMEM;
	l->directory = rxafs_hold(directory);
	l->vnode = v;
	*listing = l;
	return 0;
}

void rxafs_close_listing(rxafs_listing *l)
{
	if (!l)
		return;
	if (l->once)
		cl_names_free(l->once);
	rxafs_release(l->directory);
	free(l);
}

/* A scan begins: with the present names. */
static int begin_scan(rxafs_listing *l, struct rxafs_request *request)
{
	struct cl_status status;
	int result;

	if (l->once)
		cl_names_free(l->once);
	l->once = NULL;
	l->count = l->used = 0;
	l->calls = 0;
	if (cl_dir_loaded(l->vnode->object, cl_net_now()))
		return 0;
	if (request->quick)
		return RXAFS_WOULD_WAIT;
	/* They may be current although their promise has ended. */
	if (cl_dir_next(l->vnode->object, 0, l->entries, 1, &l->count) != -ESTALE) {
		result = fs_status(l->vnode, request, &status);
		l->count = 0;
		if (result || cl_dir_loaded(l->vnode->object, cl_net_now()))
			return result;
	}
	return fs_load_names(l->vnode, request, &l->once);
}

static int fill_entries(rxafs_listing *l, struct rxafs_request *request, uint64_t offset)
{
	int result;

	l->at = offset;
	l->used = l->count = 0;
	if (l->once) {
		while (l->count < AHEAD && cl_names_next(l->once, offset, &l->entries[l->count]))
			offset = l->entries[l->count++].next;
		return 0;
	}
	result = cl_dir_next(l->vnode->object, offset, l->entries, AHEAD, &l->count);
	if (result != -ESTALE)
		return result;
	if (request->quick)
		return RXAFS_WOULD_WAIT;
	result = fs_load_names(l->vnode, request, &l->once);
	if (result)
		return result;
	return l->once ? fill_entries(l, request, offset)
		       : cl_dir_next(l->vnode->object, offset, l->entries, AHEAD, &l->count);
}

static unsigned known_type(rxafs_listing *l, const struct rxafs_fid *fid)
{
	struct cl_object *object;
	struct cl_status status = {0};

	if (fid->vnode & 1)
		return DT_DIR;
	object = cl_cache_find(l->directory->client->cache, fid);
	if (!object)
		return DT_UNKNOWN;
	cl_object_status(object, cl_net_now(), &status);
	cl_object_put(object);
	/* A link of mode 0644 may be a mount point. */
	return status.kind == RXAFS_FILE			     ? DT_REG
	       : status.kind == RXAFS_SYMLINK && status.mode != 0644 ? DT_LNK
								     : DT_UNKNOWN;
}

static void show_entry(rxafs_listing *l, const struct cl_entry *from, struct rxafs_entry *entry)
{
	rxafs_client *client = l->directory->client;
	struct rxafs_fid shown;

	entry->name = from->name;
	entry->fid = l->vnode->fid;
	entry->fid.vnode = from->vnode;
	entry->fid.unique = from->unique;
	entry->next = from->next;
	entry->error = 0;
	entry->type = known_type(l, &entry->fid);
	shown = entry->fid;
	if (!strcmp(from->name, ".")) {
		shown = l->directory->fid;
		entry->type = DT_DIR;
	} else if (!strcmp(from->name, "..")) {
		rxafs_object *parent = rxafs_parent(l->directory);

		shown = parent->fid;
		entry->type = DT_DIR;
		rxafs_release(parent);
	}
	entry->inode = fs_inode(client, &shown);
}

static int next_dynamic(rxafs_listing *l, uint64_t offset, struct rxafs_entry *entry)
{
	bool alias;

	*entry = (struct rxafs_entry){.name = l->name, .next = offset + 1, .type = DT_DIR};
	if (offset < 2) {
		entry->name = offset ? ".." : ".";
		entry->fid = l->directory->fid;
	} else {
		if (!fs_dynamic_name(l->directory->client, offset - 2, l->name, &entry->fid,
				     &alias))
			return 0;
		if (alias)
			entry->type = DT_LNK;
	}
	entry->inode = fs_inode(l->directory->client, &entry->fid);
	return 1;
}

int rxafs_next_entry(rxafs_listing *l, struct rxafs_request *request, uint64_t offset,
		     struct rxafs_entry *entry)
{
	int result = 0;

	if (!l->vnode)
		return next_dynamic(l, offset, entry);
	if (!offset && (!l->used || l->at))
		result = begin_scan(l, request);
	for (;;) {
		if (result)
			return result;
		/* The reader goes on where it was, mostly. */
		if (l->used < l->count &&
		    (l->used ? l->entries[l->used - 1].next : l->at) == offset) {
			struct cl_entry *from = &l->entries[l->used++];

			if (!fs_hides(l->directory->client, &l->vnode->fid, from->name)) {
				show_entry(l, from, entry);
				return 1;
			}
			offset = from->next;
			continue;
		}
		result = fill_entries(l, request, offset);
		if (!result && !l->count)
			return 0;
	}
}

/* Ask for those that follow, in several calls at once: a long list takes few round trips. */
static void ask_ahead(rxafs_listing *l, struct rxafs_request *request, const char *wanted)
{
	struct rxafs_fid *fids;
	unsigned most, count;

	l->calls = l->calls ? CALLS_MOST : CALLS_FIRST;
	most = l->calls * AFSCBMAX;
	fids = malloc(most * sizeof(*fids));
	if (!fids)
		return;
	count = cl_dir_neighbours(l->vnode->object, wanted, strlen(wanted), cl_net_now(), fids,
				  most);
	if (count)
		fs_ask_many(l->vnode, request, fids, count);
	free(fids);
}

int rxafs_entry_object(rxafs_listing *l, struct rxafs_request *request,
		       const struct rxafs_entry *entry, rxafs_object **object,
		       struct rxafs_attributes *attributes)
{
	struct rxafs_request now = *request;
	struct cl_status status;
	uint64_t known_ns = 0;
	int result;

	if (!l->vnode) {
		result = rxafs_lookup(l->directory, &now, entry->name, object, attributes);
		request->awaited = now.awaited;
		return result;
	}
	if (l->once)
		return -ENODATA;
	now.quick = true;
	result = fs_object_of(l->directory, &now, entry->name, &entry->fid, object, &status);
	if (result == RXAFS_WOULD_WAIT && !request->quick) {
		ask_ahead(l, request, entry->name);
		result =
			fs_object_of(l->directory, &now, entry->name, &entry->fid, object, &status);
		/* The text of what may be a mount point, or a status that was refused. */
		if (result == RXAFS_WOULD_WAIT)
			return -ENODATA;
	}
	if (result)
		return result == RXAFS_WOULD_WAIT ? result : -ENODATA;
	if (fs_entered(*object) && (*object)->what != FS_PLAIN) {
		if (fs_show_now(*object, &now, attributes)) {
			rxafs_release(*object);
			return -ENODATA;
		}
	} else {
		fs_show(*object, request, &status, attributes);
	}
	if (!cl_object_status(l->vnode->object, cl_net_now(), &status) &&
	    status.valid_until > cl_net_now())
		known_ns = status.valid_until - cl_net_now();
	attributes->name_valid_ns = known_ns;
	return 0;
}

/* The object of an entry by itself, where it does not come with others. *object is NULL: entry->error. */
static void look_up_entry(rxafs_listing *l, struct rxafs_request *request,
			  struct rxafs_entry *entry, rxafs_object **object,
			  struct rxafs_attributes *attributes)
{
	int result = rxafs_entry_object(l, request, entry, object, attributes);

	if (result == -ENODATA)
		result = rxafs_lookup(l->directory, request, entry->name, object, attributes);
	if (result)
		*object = NULL;
	entry->error = result;
}

int rxafs_read_listing(rxafs_listing *l, struct rxafs_request *request, struct rxafs_entry *entry,
		       rxafs_object **object, struct rxafs_attributes *attributes)
{
	int result;

	while ((result = rxafs_next_entry(l, request, l->next, entry)) == 1) {
		if (object && strcmp(entry->name, ".") && strcmp(entry->name, ".."))
			look_up_entry(l, request, entry, object, attributes);
		if (entry->error == RXAFS_WOULD_WAIT)
			return RXAFS_WOULD_WAIT;
		l->next = entry->next;
		/* It may have been removed since the names were fetched. */
		if (strcmp(entry->name, ".") && strcmp(entry->name, "..") &&
		    entry->error != -ENOENT)
			return 1;
	}
	return result;
}
