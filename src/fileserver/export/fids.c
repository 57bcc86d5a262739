/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume store: looking up and changing objects and their names. */
#include "fileserver/export/fids.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "afs/numbers.h"
#include "common/held.h"
#include "fileserver/export/fids_private.h"

#define CHUNK 256 /* names that are processed under one lock */

/* -- objects and names; the lock is held for writing -- */

static struct node *find_fid(struct fsd_store *store, uint32_t vnode, uint32_t unique)
{
	struct node *node = fsd_node_find(store, vnode);

	return node && node->unique == unique ? node : NULL;
}

static struct node *find_dir(struct fsd_store *store, uint32_t vnode, uint32_t unique)
{
	struct node *node = find_fid(store, vnode, unique);

	return node && node->dir ? node : NULL;
}

/* Remove a name; if it was the last one, also the node and everything below it. */
static void drop_name(struct fsd_store *store, struct name *name, fsd_gone_fn gone, void *arg)
{
	struct node *node = name->node;

	assert(rwlock_is_held(&store->lock));
	fsd_journal_unname(store, name);
	fsd_name_unhook(store, name);
	if (!node->names)
		fsd_node_drop(store, node, gone, arg);
	else if (gone)
		gone(arg, node->vnode, node->unique);
}

/* -- opening -- */

int fsd_store_open(const char *path, struct fsd_store **out)
{
	struct fsd_store *store = calloc(1, sizeof(*store));
	int rc;

	if (!store)
		return -ENOMEM;
	pthread_rwlock_init(&store->lock, NULL);
	pthread_mutex_init(&store->writing, NULL);
	store->fd = -1;
	store->path = strdup(path);
	store->next_vnode[0] = 2;
	store->next_vnode[1] = 3;
	rc = -ENOMEM;
	if (!store->path)
		goto fail;
	rc = -EIO;
	if (getrandom(&store->next_unique, 4, 0) != 4)
		goto fail;
	rc = fsd_nodes_init(store);
	if (rc)
		goto fail;
	rc = fsd_journal_open(store);
	if (rc)
		goto fail;
	*out = store;
	return 0;
fail:
	fsd_store_close(store);
	return rc;
}

void fsd_store_close(struct fsd_store *store)
{
	if (!store)
		return;
	fsd_journal_close(store);
	fsd_store_forget_all(store);
	pthread_mutex_destroy(&store->writing);
	pthread_rwlock_destroy(&store->lock);
	free(store->path);
	free(store);
}

int fsd_store_meta(struct fsd_store *store, struct fsd_meta *meta)
{
	if (!store->has_meta)
		return -ENOENT;
	*meta = store->meta;
	return 0;
}

int fsd_store_start(struct fsd_store *store, const struct fsd_meta *meta,
		    const struct fsd_record *root)
{
	int rc;

	pthread_mutex_lock(&store->writing);
	pthread_rwlock_wrlock(&store->lock);
	fsd_store_forget_all(store);
	rc = fsd_nodes_init(store);
	store->meta = *meta;
	store->has_meta = true;
	store->lost = false;
	store->pending_length = 0;
	if (!rc && !fsd_node_put(store, root))
		rc = -ENOMEM;
	pthread_rwlock_unlock(&store->lock);
	if (!rc)
		rc = fsd_journal_rewrite(store);
	pthread_mutex_unlock(&store->writing);
	return rc;
}

/* -- looking -- */

/* Built from its end to its start. */
static int build_path(const struct name *name, char *path, size_t size)
{
	size_t at = size;

	path[--at] = 0;
	for (int depth = 0; name; depth++) {
		size_t n = strlen(name->text);

		if (depth == FSD_DEPTH_MAX || at < n + 1)
			return -ENAMETOOLONG;
		if (path[at])
			path[--at] = '/';
		at -= n;
		memcpy(path + at, name->text, n);
		if (name->parent->vnode == AFS_ROOT_VNODE)
			break;
		name = name->parent->names;
		if (!name)
			return -ENOENT;
	}
	memmove(path, path + at, size - at);
	return 0;
}

int fsd_store_find(struct fsd_store *store, uint32_t vnode, uint32_t unique, unsigned nth,
		   struct fsd_record *record, char *path, size_t size)
{
	const struct name *name;
	struct node *node;
	int rc = -ENOENT;

	pthread_rwlock_rdlock(&store->lock);
	node = find_fid(store, vnode, unique);
	name = node ? node->names : NULL;
	for (unsigned i = 0; name && i < nth; i++)
		name = name->same;
	if (!node || (!name && (vnode != AFS_ROOT_VNODE || nth)))
		goto out;
	fsd_node_record(node, record);
	if (name) {
		assert(name->node == node);
		record->parent = name->parent->vnode;
		record->parent_unique = name->parent->unique;
	}
	rc = path ? build_path(name, path, size) : 0;
out:
	pthread_rwlock_unlock(&store->lock);
	return rc;
}

int fsd_store_child(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		    const char *name, uint32_t *vnode, uint32_t *unique)
{
	struct name *found = NULL;
	struct node *dir;

	pthread_rwlock_rdlock(&store->lock);
	dir = find_dir(store, parent, parent_unique);
	if (dir)
		found = fsd_name_find(store, dir, name);
	if (found) {
		*vnode = found->node->vnode;
		*unique = found->node->unique;
	}
	pthread_rwlock_unlock(&store->lock);
	return found ? 0 : -ENOENT;
}

/* -- changing -- */

int fsd_store_update(struct fsd_store *store, const struct fsd_record *old,
		     const struct fsd_record *new)
{
	struct fsd_record now;
	struct node *node;
	bool lasting = false;
	int rc = 0;

	pthread_rwlock_wrlock(&store->lock);
	node = find_fid(store, old->vnode, old->unique);
	if (node)
		fsd_node_record(node, &now);
	if (!node) {
		rc = -ENOENT;
	} else if (now.version != old->version || now.seen != old->seen ||
		   now.image_hash != old->image_hash || now.image_length != old->image_length) {
		rc = -EAGAIN;
	} else {
		lasting = now.version != new->version || now.seen != new->seen ||
			  now.inode != new->inode || now.birth != new->birth ||
			  now.image_hash != new->image_hash ||
			  now.image_length != new->image_length || now.links != new->links;
		fsd_node_put(store, new);
		if (lasting)
			fsd_journal_node(store, node);
	}
	pthread_rwlock_unlock(&store->lock);
	if (lasting)
		fsd_journal_flush(store);
	return rc;
}

void fsd_store_unname(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		      const char *name, uint32_t vnode, fsd_gone_fn gone, void *arg)
{
	struct name *found = NULL;
	struct node *dir;

	pthread_rwlock_wrlock(&store->lock);
	dir = find_dir(store, parent, parent_unique);
	if (dir)
		found = fsd_name_find(store, dir, name);
	if (found && found->node->vnode == vnode) {
		dir->dir->image_length = 0;
		fsd_journal_node(store, dir);
		drop_name(store, found, gone, arg);
	}
	pthread_rwlock_unlock(&store->lock);
	fsd_journal_flush(store);
}

/* -- listings -- */

int fsd_store_match(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		    struct fsd_name *names, size_t count)
{
	struct node *dir = NULL;

	for (size_t i = 0; i < count || !dir;) {
		pthread_rwlock_wrlock(&store->lock);
		dir = find_dir(store, parent, parent_unique);
		if (dir && i == 0)
			dir->dir->mark++;
		for (size_t end = i + CHUNK; dir && i < count && i < end; i++) {
			struct name *name = fsd_name_find(store, dir, names[i].name);

			if (!name)
				continue;
			name->mark = dir->dir->mark;
			/* A new link may have the inode of the old one. */
			if (name->node->kind != names[i].kind || names[i].kind == FSD_SYMLINK ||
			    (name->node->inode && name->node->inode != names[i].inode))
				continue;
			names[i].vnode = name->node->vnode;
			names[i].unique = name->node->unique;
			names[i].known = true;
		}
		pthread_rwlock_unlock(&store->lock);
		if (!dir)
			return -ENOENT;
	}
	return 0;
}

/* Whether the name, with the status just read, refers to this object. */
static bool refers_to(const struct node *node, const struct fsd_name *name)
{
	if (node->kind != name->kind)
		return false;
	if (!node->inode)
		return true;
	if (!name->now_seen) /* only the listing is known */
		return node->inode == name->inode;
	/* Links cannot change: if it differs, it is another link. */
	if (node->kind == FSD_SYMLINK && node->seen)
		return node->seen == name->now_seen;
	return node->inode == name->now_inode &&
	       (!node->birth || !name->now_birth || node->birth == name->now_birth);
}

/*
 * Find the object under another name: another hard link, or its name before a rename. Without the
 * time of creation only the time stamps show that an inode has been reused.
 */
static struct node *find_object(struct fsd_store *store, const struct node *dir,
				const struct fsd_name *name)
{
	struct node *node = NULL;

	if (name->now_seen && name->now_inode)
		node = fsd_node_by_inode(store, name->now_inode);
	for (; node; node = node->by_inode)
		if (node->inode == name->now_inode && refers_to(node, name) &&
		    ((node->birth && name->now_birth) || node->seen == name->now_seen) &&
		    !(node->dir && fsd_node_below(dir, node)))
			return node;
	return NULL;
}

/* An unused number of the parity of the kind. Wraps after 2^31; uniquifiers distinguish FIDs. */
static uint32_t free_vnode(struct fsd_store *store, bool directory)
{
	uint32_t *next = &store->next_vnode[directory], vnode;

	do {
		vnode = *next;
		*next = vnode > 0xfffffffcu ? 2 + (uint32_t)directory : vnode + 2;
	} while (fsd_node_find(store, vnode));
	return vnode;
}

static struct node *new_object(struct fsd_store *store, const struct fsd_name *name,
			       uint64_t version)
{
	struct fsd_record record = {.kind = name->kind,
				    .version = version,
				    .inode = name->now_seen ? name->now_inode : name->inode,
				    .birth = name->now_birth,
				    .seen = name->kind == FSD_DIR ? 0 : name->now_seen};

	record.vnode = free_vnode(store, name->kind == FSD_DIR);
	do
		record.unique = ++store->next_unique;
	while (record.unique <= AFS_ROOT_UNIQUE);
	return fsd_node_put(store, &record);
}

/* Pairs of vnode and uniquifier of objects that may have lost their last name. */
struct aside {
	uint32_t *fids;
	size_t count;
};

/* A directory has only one name, so it was moved. Its image contains its parent's FID. */
static void note_moved_directory(struct fsd_store *store, struct node *node, fsd_gone_fn gone,
				 void *arg)
{
	assert(node->dir && node->names);
	while (node->names->same)
		drop_name(store, node->names->same, gone, arg);
	node->dir->image_length = 0;
	fsd_journal_node(store, node);
}

/*
 * The name refers to another object now. The old object may appear under another name, for example
 * when two names are swapped, so it is dropped only after all names have been processed.
 */
static void put_aside(struct fsd_store *store, struct name *name, struct aside *aside,
		      fsd_gone_fn gone, void *arg)
{
	struct node *node = name->node;
	uint32_t *more = NULL;

	if (!node->names->same)
		more = reallocarray(aside->fids, aside->count + 1, 2 * sizeof(*more));
	if (!more) {
		drop_name(store, name, gone, arg);
		return;
	}
	aside->fids = more;
	more[2 * aside->count] = node->vnode;
	more[2 * aside->count++ + 1] = node->unique;
	fsd_journal_unname(store, name);
	fsd_name_unhook(store, name);
}

static void drop_aside(struct fsd_store *store, struct aside *aside, fsd_gone_fn gone, void *arg)
{
	for (size_t i = 0; i < aside->count; i++) {
		struct node *node = find_fid(store, aside->fids[2 * i], aside->fids[2 * i + 1]);

		if (node && !node->names)
			fsd_node_drop(store, node, gone, arg);
	}
	free(aside->fids);
}

static int assign_object(struct fsd_store *store, struct node *dir, struct fsd_name *name,
			 uint64_t version, struct aside *aside, fsd_gone_fn gone, void *arg)
{
	struct name *old = fsd_name_find(store, dir, name->name);
	struct node *node = old && refers_to(old->node, name) ? old->node : NULL;
	bool made = false;

	assert(rwlock_is_held(&store->lock));
	assert(dir->dir);
	if (old && !node)
		put_aside(store, old, aside, gone, arg);
	if (!node) {
		node = find_object(store, dir, name);
		made = !node;
		if (made)
			node = new_object(store, name, version);
		if (!node)
			return -ENOMEM;
		if (fsd_name_add(store, dir, name->name, node)) {
			if (made)
				fsd_node_drop(store, node, NULL, NULL);
			return -ENOMEM;
		}
		if (made)
			fsd_journal_node(store, node);
		fsd_journal_name(store, node->names);
		node->names->mark = dir->dir->mark;
		if (!made && gone) /* its number of links has changed */
			gone(arg, node->vnode, node->unique);
		if (!made && node->dir)
			note_moved_directory(store, node, gone, arg);
	}
	name->vnode = node->vnode;
	name->unique = node->unique;
	return 0;
}

static void drop_unlisted(struct fsd_store *store, struct node *dir, fsd_gone_fn gone, void *arg)
{
	struct name *name = dir->dir->children, *next;

	for (; name; name = next) {
		next = name->next;
		if (name->mark != dir->dir->mark)
			drop_name(store, name, gone, arg);
	}
}

int fsd_store_assign(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		     struct fsd_name *names, size_t count, uint64_t version, fsd_gone_fn gone,
		     void *arg)
{
	struct aside aside = {0};
	struct node *dir = NULL;
	int rc = 0;

	for (size_t i = 0; !rc && (i < count || !dir);) {
		pthread_rwlock_wrlock(&store->lock);
		dir = find_dir(store, parent, parent_unique);
		if (!dir)
			rc = -ENOENT;
		for (size_t end = i + CHUNK; !rc && i < count && i < end; i++)
			if (!names[i].known)
				rc = assign_object(store, dir, &names[i], version, &aside, gone,
						   arg);
		if (!rc && i == count)
			drop_unlisted(store, dir, gone, arg);
		if (rc || i == count)
			drop_aside(store, &aside, gone, arg);
		pthread_rwlock_unlock(&store->lock);
		fsd_journal_flush(store);
	}
	return rc;
}
