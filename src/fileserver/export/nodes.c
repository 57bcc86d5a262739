/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of a volume store: nodes by vnode and by inode, names by directory and text. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fileserver/export/fids_private.h"

static uint64_t node_hash(const void *item, const uint64_t key[2])
{
	(void)key;
	return fsd_mix(0, ((const struct node *)item)->vnode);
}

static uint64_t inode_hash(const void *item, const uint64_t key[2])
{
	(void)key;
	return fsd_mix(1, ((const struct node *)item)->inode);
}

/* The key is random, which makes it hard to choose names that collide. */
static uint64_t text_hash(const uint64_t key[2], uint32_t parent, const char *text)
{
	return fsd_hash(text, strlen(text), fsd_mix(key[0], parent));
}

static uint64_t name_hash(const void *item, const uint64_t key[2])
{
	const struct name *name = item;

	return text_hash(key, name->parent->vnode, name->text);
}

int fsd_nodes_init(struct fsd_store *store)
{
	uint64_t key[2];

	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return -EIO;
	if (!htable_init(&store->nodes, offsetof(struct node, by_vnode), node_hash, NULL, 0) ||
	    !htable_init(&store->inodes, offsetof(struct node, by_inode), inode_hash, NULL, 0) ||
	    !htable_init(&store->names, offsetof(struct name, chain), name_hash, key, 0))
		return -ENOMEM;
	return 0;
}

struct node *fsd_node_find(struct fsd_store *store, uint32_t vnode)
{
	struct node *node = htable_first(&store->nodes, fsd_mix(0, vnode));

	while (node && node->vnode != vnode)
		node = node->by_vnode;
	return node;
}

struct node *fsd_node_by_inode(struct fsd_store *store, uint64_t inode)
{
	return htable_first(&store->inodes, fsd_mix(1, inode));
}

static void set_inode(struct fsd_store *store, struct node *node, uint64_t inode)
{
	if (node->inode == inode)
		return;
	if (node->inode)
		htable_remove(&store->inodes, node);
	node->inode = inode;
	if (inode)
		htable_add(&store->inodes, node);
}

static struct node *make_node(struct fsd_store *store, const struct fsd_record *record)
{
	struct node *node = calloc(1, sizeof(*node));

	if (node && record->kind == FSD_DIR)
		node->dir = calloc(1, sizeof(*node->dir));
	if (!node || (record->kind == FSD_DIR && !node->dir)) {
		free(node);
		return NULL;
	}
	node->vnode = record->vnode;
	node->unique = record->unique;
	node->kind = (uint8_t)record->kind;
	htable_add(&store->nodes, node);
	return node;
}

struct node *fsd_node_put(struct fsd_store *store, const struct fsd_record *record)
{
	struct node *node = fsd_node_find(store, record->vnode);

	if (!node)
		node = make_node(store, record);
	if (!node)
		return NULL;
	node->version = record->version;
	node->birth = record->birth;
	node->seen = record->seen;
	node->clean = record->clean;
	set_inode(store, node, record->inode);
	if (node->dir) {
		node->dir->image_length = record->image_length;
		node->dir->image_hash = record->image_hash;
		node->dir->links = record->links;
		node->dir->refused = record->refused;
		node->dir->retry_ns = record->retry_ns;
	}
	return node;
}

struct name *fsd_name_find(struct fsd_store *store, const struct node *parent, const char *text)
{
	struct name *name =
		htable_first(&store->names, text_hash(store->names.key, parent->vnode, text));

	while (name && (name->parent != parent || strcmp(name->text, text) != 0))
		name = name->chain;
	return name;
}

int fsd_name_add(struct fsd_store *store, struct node *parent, const char *text, struct node *node)
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
	htable_add(&store->names, name);
	return 0;
}

void fsd_name_unhook(struct fsd_store *store, struct name *name)
{
	struct name **at = &name->node->names;

	while (*at != name)
		at = &(*at)->same;
	*at = name->same;
	assert(*name->place == name);
	*name->place = name->next;
	if (name->next)
		name->next->place = name->place;
	htable_remove(&store->names, name);
	free(name);
}

static void free_node(void *item)
{
	struct node *node = item;

	free(node->dir);
	free(node);
}

/* Remove a node from the tables, and add it to a list of nodes to be freed. */
static void unlink_node(struct fsd_store *store, struct node *node, struct node **removed)
{
	htable_remove(&store->nodes, node);
	set_inode(store, node, 0);
	node->by_vnode = *removed;
	*removed = node;
}

void fsd_node_drop(struct fsd_store *store, struct node *node, fsd_gone_fn gone, void *arg)
{
	struct node *removed = NULL;

	assert(!node->names);
	unlink_node(store, node, &removed);
	while ((node = removed)) {
		removed = node->by_vnode;
		if (gone)
			gone(arg, node->vnode, node->unique);
		while (node->dir && node->dir->children) {
			struct node *child = node->dir->children->node;

			assert(node->dir->children->parent == node);
			fsd_name_unhook(store, node->dir->children);
			if (!child->names)
				unlink_node(store, child, &removed);
		}
		free_node(node);
	}
}

bool fsd_node_below(const struct node *node, const struct node *above)
{
	for (int depth = 0; node != above; depth++) {
		if (!node->names || depth == FSD_DEPTH_MAX)
			return false;
		node = node->names->parent;
	}
	return true;
}

void fsd_node_record(const struct node *node, struct fsd_record *record)
{
	const struct node *parent = node->names ? node->names->parent : node;

	*record = (struct fsd_record){.vnode = node->vnode,
				      .unique = node->unique,
				      .parent = parent->vnode,
				      .parent_unique = parent->unique,
				      .kind = (enum fsd_kind)node->kind,
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

void fsd_store_forget_all(struct fsd_store *store)
{
	htable_fini(&store->names, free);
	htable_fini(&store->inodes, NULL);
	htable_fini(&store->nodes, free_node);
}
