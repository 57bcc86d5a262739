/* SPDX-License-Identifier: BSD-2-Clause */
/* The FIDs of objects: tables of nodes by vnode and by inode, and of names by directory and text. */
#include "volume/export/fids.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/held.h"

#define CHUNK 256 /* names that are processed under one lock */

/* -- the tables; the lock is held for writing -- */

static uint64_t hash_node(const void *item, const uint64_t key[2])
{
	(void)key;
	return mix_hash(0, ((const struct node *)item)->vnode);
}

static uint64_t ihash_node(const void *item, const uint64_t key[2])
{
	(void)key;
	return mix_hash(1, ((const struct node *)item)->inode);
}

/* The key is random, which makes it hard to choose names that collide. */
static uint64_t hash_text(const uint64_t key[2], uint32_t parent, const char *text)
{
	return hash_bytes(text, strlen(text), mix_hash(key[0], parent));
}

static uint64_t hash_name(const void *item, const uint64_t key[2])
{
	const struct name *name = item;

	return hash_text(key, name->parent->vnode, name->text);
}

static int init_tables(struct fids *fids)
{
	uint64_t key[2];

	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return -EIO;
	if (!htable_init(&fids->nodes, offsetof(struct node, by_vnode), hash_node, NULL, 0) ||
	    !htable_init(&fids->inodes, offsetof(struct node, by_inode), ihash_node, NULL, 0) ||
	    !htable_init(&fids->names, offsetof(struct name, chain), hash_name, key, 0))
		return -ENOMEM;
	return 0;
}

struct node *fids_find_node(struct fids *fids, uint32_t vnode)
{
	struct node *node = htable_first(&fids->nodes, mix_hash(0, vnode));

	while (node && node->vnode != vnode)
		node = node->by_vnode;
	return node;
}

/* The first of the nodes whose hash is that of the inode; the others follow by by_inode. */
static struct node *first_of_inode(struct fids *fids, uint64_t inode)
{
	return htable_first(&fids->inodes, mix_hash(1, inode));
}

static void set_inode(struct fids *fids, struct node *node, uint64_t inode)
{
	if (node->inode == inode)
		return;
	if (node->inode)
		htable_remove(&fids->inodes, node);
	node->inode = inode;
	if (inode)
		htable_add(&fids->inodes, node);
}

static struct node *make_node(struct fids *fids, const struct export_record *record)
{
	struct node *node = calloc(1, sizeof(*node));

	if (node && record->kind == STORE_DIR)
		node->dir = calloc(1, sizeof(*node->dir));
	if (!node || (record->kind == STORE_DIR && !node->dir)) {
		free(node);
		return NULL;
	}
	node->vnode = record->vnode;
	node->unique = record->unique;
	node->kind = (uint8_t)record->kind;
	htable_add(&fids->nodes, node);
	return node;
}

struct node *fids_put_node(struct fids *fids, const struct export_record *record)
{
	struct node *node = fids_find_node(fids, record->vnode);

	if (!node)
		node = make_node(fids, record);
	if (!node)
		return NULL;
	node->version = record->version;
	node->birth = record->birth;
	node->seen = record->seen;
	node->clean = record->clean;
	set_inode(fids, node, record->inode);
	if (node->dir) {
		node->dir->image_length = record->image_length;
		node->dir->image_hash = record->image_hash;
		node->dir->links = record->links;
		node->dir->refused = record->refused;
		node->dir->retry_ns = record->retry_ns;
	}
	return node;
}

struct name *fids_find_name(struct fids *fids, const struct node *parent, const char *text)
{
	struct name *name =
		htable_first(&fids->names, hash_text(fids->names.key, parent->vnode, text));

	while (name && (name->parent != parent || strcmp(name->text, text) != 0))
		name = name->chain;
	return name;
}

int fids_add_name(struct fids *fids, struct node *parent, const char *text, struct node *node)
{
	size_t length = strlen(text);
	struct name *name = calloc(1, sizeof(*name) + length + 1);

	if (!name)
		return -ENOMEM;
	memcpy(name->text, text, length);
	assert(parent->dir);
	name->node = node;
	name->parent = parent;
	name->same = node->names;
	node->names = name;
	name->next = parent->dir->children;
	name->place = &parent->dir->children;
	if (name->next)
		name->next->place = &name->next;
	parent->dir->children = name;
	htable_add(&fids->names, name);
	return 0;
}

void fids_unhook_name(struct fids *fids, struct name *name)
{
	struct name **at = &name->node->names;

	while (*at != name)
		at = &(*at)->same;
	*at = name->same;
	assert(*name->place == name);
	*name->place = name->next;
	if (name->next)
		name->next->place = name->place;
	htable_remove(&fids->names, name);
	free(name);
}

static void free_node(void *item)
{
	struct node *node = item;

	free(node->dir);
	free(node);
}

/* Remove a node from the tables, and add it to a list of nodes to be freed. */
static void unlink_node(struct fids *fids, struct node *node, struct node **removed)
{
	htable_remove(&fids->nodes, node);
	set_inode(fids, node, 0);
	node->by_vnode = *removed;
	*removed = node;
}

void fids_drop_node(struct fids *fids, struct node *node, fids_gone_fn gone, void *arg)
{
	struct node *removed = NULL;

	assert(!node->names);
	unlink_node(fids, node, &removed);
	while ((node = removed)) {
		removed = node->by_vnode;
		if (gone)
			gone(arg, node->vnode, node->unique);
		while (node->dir && node->dir->children) {
			struct node *child = node->dir->children->node;

			assert(node->dir->children->parent == node);
			fids_unhook_name(fids, node->dir->children);
			if (!child->names)
				unlink_node(fids, child, &removed);
		}
		free_node(node);
	}
}

bool fids_is_below(const struct node *node, const struct node *above)
{
	for (int depth = 0; node != above; depth++) {
		if (!node->names || depth == EXPORT_DEPTH_MAX)
			return false;
		node = node->names->parent;
	}
	return true;
}

static void fill_record(const struct node *node, struct export_record *record)
{
	const struct node *parent = node->names ? node->names->parent : node;

	*record = (struct export_record){.vnode = node->vnode,
					 .unique = node->unique,
					 .parent = parent->vnode,
					 .parent_unique = parent->unique,
					 .kind = (enum store_kind)node->kind,
					 .version = node->version,
					 .inode = node->inode,
					 .birth = node->birth,
					 .seen = node->seen,
					 .clean = node->clean};
	if (node->dir) {
		record->image_length = node->dir->image_length;
		record->image_hash = node->dir->image_hash;
		record->links = node->dir->links;
		record->refused = node->dir->refused;
		record->retry_ns = node->dir->retry_ns;
	}
}

static void free_all_nodes(struct fids *fids)
{
	htable_fini(&fids->names, free);
	htable_fini(&fids->inodes, NULL);
	htable_fini(&fids->nodes, free_node);
}

/* -- objects and names; the lock is held for writing -- */

static struct node *find_fid(struct fids *fids, uint32_t vnode, uint32_t unique)
{
	struct node *node = fids_find_node(fids, vnode);

	return node && node->unique == unique ? node : NULL;
}

static struct node *find_dir(struct fids *fids, uint32_t vnode, uint32_t unique)
{
	struct node *node = find_fid(fids, vnode, unique);

	return node && node->dir ? node : NULL;
}

/* Remove a name; if it was the last one, also the node and everything below it. */
static void drop_name(struct fids *fids, struct name *name, fids_gone_fn gone, void *arg)
{
	struct node *node = name->node;

	assert(rwlock_is_held(&fids->lock));
	journal_unname(fids, name);
	fids_unhook_name(fids, name);
	if (!node->names)
		fids_drop_node(fids, node, gone, arg);
	else if (gone)
		gone(arg, node->vnode, node->unique);
}

/* -- opening -- */

int fids_open(const char *path, const struct export_log *log, struct fids **out)
{
	struct fids *fids = calloc(1, sizeof(*fids));
	int rc;

	if (!fids)
		return -ENOMEM;
	pthread_rwlock_init(&fids->lock, NULL);
	pthread_mutex_init(&fids->writing, NULL);
	fids->log = *log;
	fids->fd = -1;
	fids->path = strdup(path);
	fids->next_vnode[0] = 2;
	fids->next_vnode[1] = 3;
	rc = -ENOMEM;
	if (!fids->path)
		goto fail;
	rc = -EIO;
	if (getrandom(&fids->next_unique, 4, 0) != 4)
		goto fail;
	rc = init_tables(fids);
	if (rc)
		goto fail;
	rc = journal_open(fids);
	if (rc)
		goto fail;
	*out = fids;
	return 0;
fail:
	fids_close(fids);
	return rc;
}

void fids_close(struct fids *fids)
{
	if (!fids)
		return;
	journal_close(fids);
	free_all_nodes(fids);
	pthread_mutex_destroy(&fids->writing);
	pthread_rwlock_destroy(&fids->lock);
	free(fids->path);
	free(fids);
}

int fids_get_meta(struct fids *fids, struct fids_meta *meta)
{
	if (!fids->has_meta)
		return -ENOENT;
	*meta = fids->meta;
	return 0;
}

int fids_start_anew(struct fids *fids, const struct fids_meta *meta,
		    const struct export_record *root)
{
	int rc;

	pthread_mutex_lock(&fids->writing);
	pthread_rwlock_wrlock(&fids->lock);
	free_all_nodes(fids);
	rc = init_tables(fids);
	fids->meta = *meta;
	fids->has_meta = true;
	fids->lost = false;
	fids->pending_length = 0;
	if (!rc && !fids_put_node(fids, root))
		rc = -ENOMEM;
	pthread_rwlock_unlock(&fids->lock);
	if (!rc)
		rc = journal_rewrite(fids);
	pthread_mutex_unlock(&fids->writing);
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

		if (depth == EXPORT_DEPTH_MAX || at < n + 1)
			return -ENAMETOOLONG;
		if (path[at])
			path[--at] = '/';
		at -= n;
		memcpy(path + at, name->text, n);
		if (name->parent->vnode == STORE_ROOT_VNODE)
			break;
		name = name->parent->names;
		if (!name)
			return -ENOENT;
	}
	memmove(path, path + at, size - at);
	return 0;
}

int fids_find(struct fids *fids, uint32_t vnode, uint32_t unique, unsigned nth,
	      struct export_record *record, char *path, size_t size)
{
	const struct name *name;
	struct node *node;
	int rc = -ENOENT;

	pthread_rwlock_rdlock(&fids->lock);
	node = find_fid(fids, vnode, unique);
	name = node ? node->names : NULL;
	for (unsigned i = 0; name && i < nth; i++)
		name = name->same;
	if (!node || (!name && (vnode != STORE_ROOT_VNODE || nth)))
		goto out;
	fill_record(node, record);
	if (name) {
		assert(name->node == node);
		record->parent = name->parent->vnode;
		record->parent_unique = name->parent->unique;
	}
	rc = path ? build_path(name, path, size) : 0;
out:
	pthread_rwlock_unlock(&fids->lock);
	return rc;
}

int fids_find_child(struct fids *fids, uint32_t parent, uint32_t parent_unique, const char *name,
		    uint32_t *vnode, uint32_t *unique)
{
	struct name *found = NULL;
	struct node *dir;

	pthread_rwlock_rdlock(&fids->lock);
	dir = find_dir(fids, parent, parent_unique);
	if (dir)
		found = fids_find_name(fids, dir, name);
	if (found) {
		*vnode = found->node->vnode;
		*unique = found->node->unique;
	}
	pthread_rwlock_unlock(&fids->lock);
	return found ? 0 : -ENOENT;
}

/* -- changing -- */

int fids_update(struct fids *fids, const struct export_record *old, const struct export_record *new)
{
	struct export_record now;
	struct node *node;
	bool lasting = false;
	int rc = 0;

	pthread_rwlock_wrlock(&fids->lock);
	node = find_fid(fids, old->vnode, old->unique);
	if (node)
		fill_record(node, &now);
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
		fids_put_node(fids, new);
		if (lasting)
			journal_node(fids, node);
	}
	pthread_rwlock_unlock(&fids->lock);
	if (lasting)
		journal_flush(fids);
	return rc;
}

void fids_unname(struct fids *fids, uint32_t parent, uint32_t parent_unique, const char *name,
		 uint32_t vnode, fids_gone_fn gone, void *arg)
{
	struct name *found = NULL;
	struct node *dir;

	pthread_rwlock_wrlock(&fids->lock);
	dir = find_dir(fids, parent, parent_unique);
	if (dir)
		found = fids_find_name(fids, dir, name);
	if (found && found->node->vnode == vnode) {
		dir->dir->image_length = 0;
		journal_node(fids, dir);
		drop_name(fids, found, gone, arg);
	}
	pthread_rwlock_unlock(&fids->lock);
	journal_flush(fids);
}

/* -- listings -- */

int fids_match(struct fids *fids, uint32_t parent, uint32_t parent_unique, struct fids_name *names,
	       size_t count)
{
	struct node *dir = NULL;

	for (size_t i = 0; i < count || !dir;) {
		pthread_rwlock_wrlock(&fids->lock);
		dir = find_dir(fids, parent, parent_unique);
		if (dir && i == 0)
			dir->dir->mark++;
		for (size_t end = i + CHUNK; dir && i < count && i < end; i++) {
			struct name *name = fids_find_name(fids, dir, names[i].name);

			if (!name)
				continue;
			name->mark = dir->dir->mark;
			/* A new link may have the inode of the old one. */
			if (name->node->kind != names[i].kind || names[i].kind == STORE_SYMLINK ||
			    (name->node->inode && name->node->inode != names[i].inode))
				continue;
			names[i].vnode = name->node->vnode;
			names[i].unique = name->node->unique;
			names[i].known = true;
		}
		pthread_rwlock_unlock(&fids->lock);
		if (!dir)
			return -ENOENT;
	}
	return 0;
}

/* Whether the name, with the status just read, refers to this object. */
static bool refers_to(const struct node *node, const struct fids_name *name)
{
	if (node->kind != name->kind)
		return false;
	if (!node->inode)
		return true;
	if (!name->now_seen) /* only the listing is known */
		return node->inode == name->inode;
	/* Links cannot change: if it differs, it is another link. */
	if (node->kind == STORE_SYMLINK && node->seen)
		return node->seen == name->now_seen;
	return node->inode == name->now_inode &&
	       (!node->birth || !name->now_birth || node->birth == name->now_birth);
}

/*
 * Find the object under another name: another hard link, or its name before a rename. Without the
 * time of creation only the time stamps show that an inode has been reused.
 */
static struct node *find_object(struct fids *fids, const struct node *dir,
				const struct fids_name *name)
{
	struct node *node = NULL;

	if (name->now_seen && name->now_inode)
		node = first_of_inode(fids, name->now_inode);
	for (; node; node = node->by_inode)
		if (node->inode == name->now_inode && refers_to(node, name) &&
		    ((node->birth && name->now_birth) || node->seen == name->now_seen) &&
		    !(node->dir && fids_is_below(dir, node)))
			return node;
	return NULL;
}

/* An unused number of the parity of the kind. Wraps after 2^31; uniquifiers distinguish FIDs. */
static uint32_t free_vnode(struct fids *fids, bool directory)
{
	uint32_t *next = &fids->next_vnode[directory], vnode;

	do {
		vnode = *next;
		*next = vnode > 0xfffffffcu ? 2 + (uint32_t)directory : vnode + 2;
	} while (fids_find_node(fids, vnode));
	return vnode;
}

static struct node *new_object(struct fids *fids, const struct fids_name *name, uint64_t version)
{
	struct export_record record = {.kind = name->kind,
				       .version = version,
				       .inode = name->now_seen ? name->now_inode : name->inode,
				       .birth = name->now_birth,
				       .seen = name->kind == STORE_DIR ? 0 : name->now_seen};

	record.vnode = free_vnode(fids, name->kind == STORE_DIR);
	do
		record.unique = ++fids->next_unique;
	while (record.unique <= STORE_ROOT_UNIQUE);
	return fids_put_node(fids, &record);
}

/* Pairs of vnode and uniquifier of objects that may have lost their last name. */
struct aside {
	uint32_t *fids;
	size_t count;
};

/* A directory has only one name, so it was moved. Its image contains its parent's FID. */
static void note_moved_directory(struct fids *fids, struct node *node, fids_gone_fn gone, void *arg)
{
	assert(node->dir && node->names);
	while (node->names->same)
		drop_name(fids, node->names->same, gone, arg);
	node->dir->image_length = 0;
	journal_node(fids, node);
}

/*
 * The name refers to another object now. The old object may appear under another name, for example
 * when two names are swapped, so it is dropped only after all names have been processed.
 */
static void put_aside(struct fids *fids, struct name *name, struct aside *aside, fids_gone_fn gone,
		      void *arg)
{
	struct node *node = name->node;
	uint32_t *more = NULL;

	if (!node->names->same)
		more = reallocarray(aside->fids, aside->count + 1, 2 * sizeof(*more));
	if (!more) {
		drop_name(fids, name, gone, arg);
		return;
	}
	aside->fids = more;
	more[2 * aside->count] = node->vnode;
	more[2 * aside->count++ + 1] = node->unique;
	journal_unname(fids, name);
	fids_unhook_name(fids, name);
}

static void drop_aside(struct fids *fids, struct aside *aside, fids_gone_fn gone, void *arg)
{
	for (size_t i = 0; i < aside->count; i++) {
		struct node *node = find_fid(fids, aside->fids[2 * i], aside->fids[2 * i + 1]);

		if (node && !node->names)
			fids_drop_node(fids, node, gone, arg);
	}
	free(aside->fids);
}

static int assign_object(struct fids *fids, struct node *dir, struct fids_name *name,
			 uint64_t version, struct aside *aside, fids_gone_fn gone, void *arg)
{
	struct name *old = fids_find_name(fids, dir, name->name);
	struct node *node = old && refers_to(old->node, name) ? old->node : NULL;
	bool made = false;

	assert(rwlock_is_held(&fids->lock));
	assert(dir->dir);
	if (old && !node)
		put_aside(fids, old, aside, gone, arg);
	if (!node) {
		node = find_object(fids, dir, name);
		made = !node;
		if (made)
			node = new_object(fids, name, version);
		if (!node)
			return -ENOMEM;
		if (fids_add_name(fids, dir, name->name, node)) {
			if (made)
				fids_drop_node(fids, node, NULL, NULL);
			return -ENOMEM;
		}
		if (made)
			journal_node(fids, node);
		journal_name(fids, node->names);
		node->names->mark = dir->dir->mark;
		if (!made && gone) /* its number of links has changed */
			gone(arg, node->vnode, node->unique);
		if (!made && node->dir)
			note_moved_directory(fids, node, gone, arg);
	}
	name->vnode = node->vnode;
	name->unique = node->unique;
	return 0;
}

static void drop_unlisted(struct fids *fids, struct node *dir, fids_gone_fn gone, void *arg)
{
	struct name *name = dir->dir->children, *next;

	for (; name; name = next) {
		next = name->next;
		if (name->mark != dir->dir->mark)
			drop_name(fids, name, gone, arg);
	}
}

int fids_assign(struct fids *fids, uint32_t parent, uint32_t parent_unique, struct fids_name *names,
		size_t count, uint64_t version, fids_gone_fn gone, void *arg)
{
	struct aside aside = {0};
	struct node *dir = NULL;
	int rc = 0;

	for (size_t i = 0; !rc && (i < count || !dir);) {
		pthread_rwlock_wrlock(&fids->lock);
		dir = find_dir(fids, parent, parent_unique);
		if (!dir)
			rc = -ENOENT;
		for (size_t end = i + CHUNK; !rc && i < count && i < end; i++)
			if (!names[i].known)
				rc = assign_object(fids, dir, &names[i], version, &aside, gone,
						   arg);
		if (!rc && i == count)
			drop_unlisted(fids, dir, gone, arg);
		if (rc || i == count)
			drop_aside(fids, &aside, gone, arg);
		pthread_rwlock_unlock(&fids->lock);
		journal_flush(fids);
	}
	return rc;
}
