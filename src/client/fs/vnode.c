/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables: vnodes, the objects that show them, and numbers of volumes for inodes. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/fs/operate.h"
#include "client/fs/listeners.h"
#include "common/held.h"

/* The number of a volume in st_ino. */
struct number {
	void *link;
	uint32_t cell, volume, number;
	uint64_t hash;
};

static uint64_t spread_bits(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

static uint64_t hash_place(const rxafs_object *passage, const struct rxafs_fid *fid)
{
	return spread_bits(((uint64_t)fid->volume << 32 | fid->vnode) + 31 * fid->unique +
			   131 * (uint64_t)(uintptr_t)passage + fid->cell);
}

static uint64_t hash_of_object(const void *item, const uint64_t key[2])
{
	const rxafs_object *o = item;

	(void)key;
	return hash_place(o->kind == RXAFS_DIRECTORY ? o->passage : NULL, &o->fid);
}

static uint64_t hash_user(const void *item, const uint64_t key[2])
{
	(void)key;
	return ((const rxafs_user *)item)->number;
}

static uint64_t hash_number(const void *item, const uint64_t key[2])
{
	(void)key;
	return ((const struct number *)item)->hash;
}

int fs_open_tables(rxafs_client *client)
{
	if (!htable_init(&client->objects, offsetof(rxafs_object, link), hash_of_object, NULL, 0) ||
	    !htable_init(&client->users, offsetof(rxafs_user, link), hash_user, NULL, 0) ||
	    !htable_init(&client->numbers, offsetof(struct number, link), hash_number, NULL, 0))
		return -ENOMEM;
	return 0;
}

/* -- vnodes ------------------------------------------------------------------------------- */

void fs_drop_vnode(void *arg)
{
	struct fs_vnode *v = arg;

	assert(!v->faces && !v->listeners);
	if (v->data)
		cl_data_file_free(v->data);
	if (v->locks)
		v->free_locks(v->locks);
	cl_volume_unref(v->volume);
	pthread_mutex_destroy(&v->lock);
	free(v->text);
	free(v);
}

static struct fs_vnode *make_vnode(rxafs_client *client, struct cl_volume *volume,
				   const struct rxafs_fid *fid, struct cl_object *object)
{
	struct fs_vnode *v = calloc(1, sizeof *v), *present;

	if (!v)
		return NULL;
	v->client = client;
	v->object = object;
	v->volume = cl_volume_ref(volume);
	v->fid = *fid;
	atomic_init(&v->contents, 1);
	pthread_mutex_init(&v->lock, NULL);
	present = cl_object_set_user(object, v);
	if (present != v)
		fs_drop_vnode(v);
	return present;
}

struct fs_vnode *fs_get_vnode(rxafs_client *client, struct cl_volume *volume,
			      const struct rxafs_fid *fid)
{
	struct cl_object *object = cl_cache_get(client->cache, fid);
	struct fs_vnode *v;

	if (!object)
		return NULL;
	v = cl_object_user(object);
	if (!v)
		v = make_vnode(client, volume, fid, object);
	if (!v)
		cl_object_put(object);
	return v;
}

void fs_put_vnode(struct fs_vnode *vnode)
{
	if (vnode)
		cl_object_put(vnode->object);
}

/* -- objects ------------------------------------------------------------------------------ */

static rxafs_object *find_face(rxafs_client *client, const rxafs_object *passage,
			       const struct rxafs_fid *fid)
{
	assert(mutex_is_held(&client->lock));
	for (rxafs_object *o = htable_first(&client->objects, hash_place(passage, fid)); o;
	     o = o->link)
		if (rxafs_fid_same(&o->fid, fid) &&
		    (o->kind == RXAFS_DIRECTORY ? o->passage : NULL) == passage)
			return o;
	return NULL;
}

static rxafs_object *make_face(rxafs_client *client, enum fs_what what, const struct rxafs_fid *fid,
			       enum rxafs_kind kind, const char *text)
{
	rxafs_object *o = calloc(1, sizeof *o);

	if (!o)
		return NULL;
	if (text && !(o->text = strdup(text))) {
		free(o);
		return NULL;
	}
	o->client = client;
	o->what = what;
	o->fid = *fid;
	o->kind = kind;
	atomic_init(&o->references, 1);
	return o;
}

static void add_face(struct fs_vnode *vnode, rxafs_object *o)
{
	o->next_face = vnode->faces;
	vnode->faces = o;
}

static void remove_face(struct fs_vnode *vnode, rxafs_object *o)
{
	rxafs_object **at = &vnode->faces;

	while (*at != o)
		at = &(*at)->next_face;
	*at = o->next_face;
}

/*
 * Looks for the object, or enters `fresh`. Either is returned with a reference. `fresh` is freed if it is not needed.
 * A directory that was found may have been moved here.
 */
static rxafs_object *settle_object(rxafs_client *client, rxafs_object *fresh, rxafs_object *parent)
{
	rxafs_object *passage = fresh->kind == RXAFS_DIRECTORY ? fresh->passage : NULL;
	rxafs_object *o, *old_parent = NULL;

	pthread_mutex_lock(&client->lock);
	o = find_face(client, passage, &fresh->fid);
	if (o) {
		atomic_fetch_add(&o->references, 1);
		if (o->kind == RXAFS_DIRECTORY && parent && o->parent != parent && parent != o) {
			old_parent = o->parent;
			o->parent = rxafs_hold(parent);
		}
	} else {
		o = fresh;
		htable_add(&client->objects, o);
		if (o->what == FS_PLAIN)
			add_face(o->vnode, o);
		if (o->kind == RXAFS_DIRECTORY && parent)
			o->parent = rxafs_hold(parent);
		if (passage)
			rxafs_hold(passage);
	}
	pthread_mutex_unlock(&client->lock);
	if (o != fresh) {
		fs_put_vnode(fresh->vnode);
		free(fresh->text);
		free(fresh);
	}
	if (old_parent)
		rxafs_release(old_parent);
	return o;
}

rxafs_object *fs_get_object(rxafs_object *parent, struct fs_vnode *vnode, enum rxafs_kind kind,
			    const char *text)
{
	rxafs_object *o = make_face(parent->client, text ? FS_MOUNT : FS_PLAIN, &vnode->fid,
				    text ? RXAFS_DIRECTORY : kind, text);

	if (!o)
		return NULL;
	o->vnode = vnode;
	cl_object_hold(vnode->object);
	if (o->kind == RXAFS_DIRECTORY)
		o->passage = parent->what == FS_PLAIN ? parent->passage : parent;
	return settle_object(parent->client, o, parent);
}

rxafs_object *fs_get_root_object(struct fs_vnode *vnode)
{
	rxafs_object *o = make_face(vnode->client, FS_PLAIN, &vnode->fid, RXAFS_DIRECTORY, NULL);

	if (!o)
		return NULL;
	o->vnode = vnode;
	cl_object_hold(vnode->object);
	return settle_object(vnode->client, o, NULL);
}

rxafs_object *fs_get_special(rxafs_client *client, rxafs_object *parent, enum fs_what what,
			     const struct rxafs_fid *fid, enum rxafs_kind kind, const char *text)
{
	rxafs_object *o = make_face(client, what, fid, kind, text);

	return o ? settle_object(client, o, parent) : NULL;
}

bool fs_set_target(rxafs_object *object, struct fs_target *present, struct fs_target *target)
{
	rxafs_client *client = object->client;
	bool set;

	pthread_mutex_lock(&client->lock);
	set = atomic_load(&object->target) == present;
	if (set) {
		if (present)
			remove_face(present->vnode, object);
		target->former = present;
		add_face(target->vnode, object);
		atomic_store(&object->target, target);
	}
	pthread_mutex_unlock(&client->lock);
	return set;
}

void fs_free_target(struct fs_target *target)
{
	fs_put_vnode(target->vnode);
	cl_volume_unref(target->volume);
	free(target);
}

rxafs_object *rxafs_hold(rxafs_object *object)
{
	atomic_fetch_add(&object->references, 1);
	return object;
}

bool rxafs_hold_if_used(rxafs_object *object)
{
	uint64_t now = atomic_load(&object->references);

	while (now)
		if (atomic_compare_exchange_weak(&object->references, &now, now + 1))
			return true;
	return false;
}

static void free_face(rxafs_object *o)
{
	void *data = atomic_load(&o->own_data);
	struct fs_target *target = atomic_load(&o->target);

	if (data)
		o->drop_own_data(data);
	while (target) {
		struct fs_target *former = target->former;

		fs_free_target(target);
		target = former;
	}
	fs_put_vnode(o->vnode);
	free(o->text);
	free(o);
}

/* The last reference goes under the lock of the table, where others may find the object. */
static bool drop_references(rxafs_object *o, uint64_t references)
{
	rxafs_client *client = o->client;
	struct fs_vnode *shown;
	bool last;

	pthread_mutex_lock(&client->lock);
	last = atomic_fetch_sub(&o->references, references) == references;
	if (last) {
		htable_remove(&client->objects, o);
		shown = fs_entered(o);
		if (shown)
			remove_face(shown, o);
	}
	pthread_mutex_unlock(&client->lock);
	return last;
}

void rxafs_release_many(rxafs_object *o, uint64_t references)
{
	while (o) {
		rxafs_object *parent, *passage;
		uint64_t now = atomic_load(&o->references);

		while (now > references)
			if (atomic_compare_exchange_weak(&o->references, &now, now - references))
				return;
		if (!drop_references(o, references))
			return;
		parent = o->parent;
		passage = o->kind == RXAFS_DIRECTORY ? o->passage : NULL;
		free_face(o);
		if (passage)
			rxafs_release(passage);
		/* A loop, not a recursion: paths can be long. */
		o = parent;
		references = 1;
	}
}

void rxafs_release(rxafs_object *object)
{
	rxafs_release_many(object, 1);
}

void *rxafs_own_data(const rxafs_object *object)
{
	return atomic_load(&object->own_data);
}

void *rxafs_set_own_data(rxafs_object *object, void *data, void (*drop)(void *data))
{
	void *present;

	pthread_mutex_lock(&object->client->lock);
	present = atomic_load(&object->own_data);
	if (!present) {
		object->drop_own_data = drop;
		atomic_store(&object->own_data, data);
	}
	pthread_mutex_unlock(&object->client->lock);
	if (!present)
		return data;
	drop(data);
	return present;
}

rxafs_object *rxafs_parent(rxafs_object *directory)
{
	rxafs_object *parent;

	pthread_mutex_lock(&directory->client->lock);
	parent = rxafs_hold(directory->parent ? directory->parent : directory);
	pthread_mutex_unlock(&directory->client->lock);
	return parent;
}

/* -- news ----------------------------------------------------------------------------------- */

#define FACES 16 /* further ones are told in another round */

void fs_tell(struct fs_vnode *vnode, unsigned what, const rxafs_object *except)
{
	rxafs_client *client = vnode->client;
	rxafs_object *faces[FACES];
	unsigned count, skip = 0;

	fs_note_change(vnode);
	if (!client->hooks.changed)
		return;
	do {
		unsigned at = 0;

		count = 0;
		pthread_mutex_lock(&client->lock);
		for (rxafs_object *o = vnode->faces; o && count < FACES; o = o->next_face)
			if (at++ >= skip && o != except)
				faces[count++] = rxafs_hold(o);
		pthread_mutex_unlock(&client->lock);
		skip = at;
		for (unsigned i = 0; i < count; i++) {
			client->hooks.changed(client->hooks.arg, faces[i], what);
			rxafs_release(faces[i]);
		}
	} while (count == FACES);
}

/* -- inodes -------------------------------------------------------------------------------- */

static bool number_taken(const rxafs_client *client, uint32_t number)
{
	for (size_t i = 0; i < client->numbers.size; i++)
		for (struct number *n = *htable_chain(&client->numbers, i); n; n = n->link)
			if (n->number == number)
				return true;
	return false;
}

/* From names and ids, so that it is the same at each mount; another one in the rare case of a collision. */
static struct number *make_number(rxafs_client *client, const struct rxafs_fid *fid, uint64_t hash)
{
	struct cl_cell *cell = cl_cells_at(client->cells, fid->cell);
	const char *name = cell ? cl_cell_name(cell) : "";
	struct number *n = malloc(sizeof *n);
	uint64_t seed = fid->volume;

	if (!n)
		return NULL;
	while (*name)
		seed = (seed ^ (uint8_t)*name++) * 1099511628211u;
	*n = (struct number){.cell = fid->cell, .volume = fid->volume, .hash = hash};
	for (n->number = (uint32_t)(spread_bits(seed) >> 33);
	     !n->number || number_taken(client, n->number);)
		n->number = (n->number + 1) & 0x7fffffff;
	htable_add(&client->numbers, n);
	return n;
}

uint64_t fs_inode(rxafs_client *client, const struct rxafs_fid *fid)
{
	uint64_t hash = spread_bits((uint64_t)fid->cell << 32 | fid->volume);
	struct number *n;
	uint64_t inode;

	if (!fid->cell)
		return fid->vnode;
	pthread_mutex_lock(&client->lock);
	for (n = htable_first(&client->numbers, hash); n; n = n->link)
		if (n->cell == fid->cell && n->volume == fid->volume)
			break;
	if (!n)
		n = make_number(client, fid, hash);
	inode = (uint64_t)(n ? n->number : 0) << 32 | fid->vnode;
	pthread_mutex_unlock(&client->lock);
	return inode;
}

/* The kernel tells no forgets at the end of a mount: what is still held goes now. */
void fs_close_tables(rxafs_client *client)
{
	struct htable *t = &client->objects;

	for (size_t i = 0; t->chains && i < t->size; i++)
		for (rxafs_object *o; (o = *htable_chain(t, i));) {
			struct fs_vnode *shown = fs_entered(o);

			htable_unlink(t, htable_chain(t, i));
			if (shown)
				remove_face(shown, o);
			free_face(o);
		}
	htable_fini(t, NULL);
	htable_fini(&client->numbers, free);
	htable_fini(&client->spaces, free);
	fs_free_users(client);
}
