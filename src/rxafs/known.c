/* SPDX-License-Identifier: BSD-2-Clause */
/* What is noted of objects that the kernel was given. */
#include "rxafs/known.h"

#include <assert.h>
#include <stdlib.h>

#include "common/held.h"

/* With the lock of the list. */
void known_unlist(struct known *known)
{
	if (!atomic_exchange(&known->listed, false))
		return;
	*known->at = known->next;
	if (known->next)
		known->next->at = known->at;
}

static void forget_pages(struct known *known)
{
	struct page_list *list = known->mount->pages;

	assert(!known->reads);
	pthread_mutex_lock(&list->lock);
	known_unlist(known);
	pthread_mutex_unlock(&list->lock);
}

static void drop_known(void *data)
{
	struct known *known = data;

	forget_pages(known);
	if (known->has_names)
		htable_fini(&known->names, free);
	pthread_mutex_destroy(&known->lock);
	free(known);
}

fuse_ino_t object_node(struct mount *mount, rxafs_object *object)
{
	struct known *known = rxafs_own_data(object);
	fuse_ino_t node = (fuse_ino_t)(uintptr_t)object;

	assert(node % NODE_TURNS == 0);
	if (object == mount->root)
		return FUSE_ROOT_ID;
	return node | (known ? atomic_load(&known->turn) : 0);
}

struct known *kernel_known(struct mount *mount, rxafs_object *object)
{
	struct known *known = rxafs_own_data(object);

	if (known)
		return known;
	known = calloc(1, sizeof *known);
	if (!known)
		return NULL;
	known->mount = mount;
	known->object = object;
	known->oldest = known->fresh = UINT64_MAX;
	known->generation = atomic_fetch_add(&mount->generation, 1) + 1;
	pthread_mutex_init(&known->lock, NULL);
	return rxafs_set_own_data(object, known, drop_known);
}
