/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that operations on names share. */
#include "volume/store/op/entry.h"

#include <assert.h>
#include <errno.h>

#include "volume/store/txn/space.h"

int entry_find(struct work *work, struct node *dir, const char *name, uint32_t *vnode,
	       uint32_t *unique)
{
	struct store_pages *pages;
	int result = work_pages(work, dir, &pages);

	return result ? result : store_pages_find(pages, name, vnode, unique);
}

int entry_rights(const struct change_op *op, const struct node *dir, uint32_t rights)
{
	return (rights_on(dir->now->acl, op->caller) & rights) == rights ? 0 : -EACCES;
}

void entry_touch(const struct change_op *op, struct work *work, struct node *dir,
		 const struct store_pages *pages)
{
	struct version *now = dir->now;
	uint64_t before = space_blocks(&now->v);

	assert(dir->now != dir->base && dir->now->v.kind == STORE_DIR);
	now->v.length = (uint64_t)store_pages_count(pages) * STORE_PAGE;
	dir->vol->rec.used_kib += space_blocks(&now->v) - before;
	work_new_version(work, now);
	now->v.client_mtime = now->v.server_mtime = work->now;
	now->v.author = op->caller->id;
	work_volume_changed(work, dir->vol);
}

int entry_prepare_unlink(struct work *work, struct node *node)
{
	return node->now->v.kind != STORE_DIR && node->now->v.links > 1 ? work_edit(work, node) : 0;
}

void entry_unlink(struct work *work, struct node *node, struct store_changes *changes)
{
	struct volrec *volume = &node->vol->rec;
	uint64_t blocks = space_blocks(&node->now->v);

	if (node->now->v.kind != STORE_DIR && node->now->v.links > 1) {
		assert(node->now != node->base);
		node->now->v.links--;
		node->now->v.server_mtime = work->now;
		change_note(changes, node, true, false);
		return;
	}
	change_note(changes, node, false, true);
	volume->used_kib -= blocks < volume->used_kib ? blocks : volume->used_kib;
	volume->files -= volume->files > 0;
	work_remove(work, node);
}
