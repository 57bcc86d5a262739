/* SPDX-License-Identifier: BSD-2-Clause */
/* Files and blocks of the disk cache, in memory. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "client/disk/folder.h"
#include "common/held.h"

static uint64_t hash_file(const void *item, const uint64_t key[2])
{
	const struct cl_disk_file *file = item;
	uint64_t half = rxw_hash_words(file->cell->number, file->volume, key);

	return rxw_hash_words(half, (uint64_t)file->vnode << 32 | file->unique, key);
}

static uint64_t hash_kept(const void *item, const uint64_t key[2])
{
	const struct kept *kept = item;

	return rxw_hash_words((uintptr_t)kept->file, kept->number, key);
}

int table_init(struct cl_disk *disk)
{
	if (!htable_init(&disk->files, offsetof(struct cl_disk_file, link), hash_file, disk->key,
			 0))
		return -ENOMEM;
	if (htable_init(&disk->blocks, offsetof(struct kept, link), hash_kept, disk->key, 0))
		return 0;
	htable_fini(&disk->files, NULL);
	return -ENOMEM;
}

static void free_file(void *item)
{
	struct cl_disk_file *file = item;

	free(file->whole);
	free(file);
}

void table_fini(struct cl_disk *disk)
{
	htable_fini(&disk->blocks, free);
	htable_fini(&disk->files, free_file);
	for (struct cell *cell = disk->cells, *next; cell; cell = next) {
		next = cell->next;
		free(cell);
	}
	disk->cells = NULL;
}

struct cell *table_get_cell(struct cl_disk *disk, const char *name)
{
	struct cell *cell = disk->cells;

	while (cell && strcmp(cell->name, name) != 0)
		cell = cell->next;
	if (cell || strlen(name) > CELL_MOST)
		return cell;
	cell = calloc(1, sizeof(*cell));
	if (!cell)
		return NULL;
	strcpy(cell->name, name);
	cell->number = ++disk->next_cell;
	cell->next = disk->cells;
	disk->cells = cell;
	return cell;
}

struct cl_disk_file *table_get_file(struct cl_disk *disk, struct cell *cell, uint32_t volume,
				    uint32_t vnode, uint32_t unique)
{
	struct cl_disk_file sought = {
		.cell = cell, .volume = volume, .vnode = vnode, .unique = unique};
	struct cl_disk_file *file = htable_first(&disk->files, hash_file(&sought, disk->key));

	for (; file; file = file->link)
		if (file->cell == cell && file->volume == volume && file->vnode == vnode &&
		    file->unique == unique)
			return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	*file = sought;
	file->disk = disk;
	htable_add(&disk->files, file);
	disk->statistics.files++;
	return file;
}

struct kept *table_find(struct cl_disk_file *file, uint64_t number)
{
	struct kept sought = {.file = file, .number = number};
	struct htable *blocks = &file->disk->blocks;
	struct kept *kept = htable_first(blocks, hash_kept(&sought, blocks->key));

	while (kept && (kept->file != file || kept->number != number))
		kept = kept->link;
	return kept;
}

struct kept *table_add(struct cl_disk_file *file, uint64_t number, uint32_t length, uint64_t sum)
{
	struct kept *kept = calloc(1, sizeof(*kept));

	assert(!table_find(file, number));
	if (!kept)
		return NULL;
	kept->file = file;
	kept->number = number;
	kept->length = length;
	kept->sum = sum;
	kept->birth = ++file->disk->births;
	kept->next = file->blocks;
	if (kept->next)
		kept->next->previous = kept;
	file->blocks = kept;
	file->count++;
	htable_add(&file->disk->blocks, kept);
	file->disk->statistics.blocks++;
	return kept;
}

void table_set_verified(struct kept *kept)
{
	kept->file->verified += !kept->verified;
	kept->verified = true;
}

void table_remove(struct kept *kept)
{
	struct cl_disk_file *file = kept->file;

	if (kept->previous)
		kept->previous->next = kept->next;
	else
		file->blocks = kept->next;
	if (kept->next)
		kept->next->previous = kept->previous;
	htable_remove(&file->disk->blocks, kept);
	file->disk->statistics.blocks--;
	file->count--;
	file->verified -= kept->verified;
	free(kept);
	table_drop_file(file);
}

struct cl_disk_whole *table_add_whole(struct cl_disk_file *file, uint32_t number)
{
	struct cl_disk_whole *whole = calloc(1, sizeof(*whole));

	assert(!file->whole && !file->count);
	if (!whole)
		return NULL;
	*whole = (struct cl_disk_whole){.disk = file->disk,
					.file = file,
					.number = number,
					.place = NO_PLACE,
					.references = 1,
					.used = true};
	if (file->disk->last_whole < number)
		file->disk->last_whole = number;
	file->whole = whole;
	return whole;
}

void table_put_whole(struct cl_disk_whole *whole)
{
	struct cl_disk *disk = whole->disk;

	assert(mutex_is_held(&disk->lock));
	assert(whole->references);
	if (--whole->references)
		return;
	assert(!whole->file);
	whole->next = disk->dead;
	disk->dead = whole;
}

void table_forget_whole(struct cl_disk_whole *whole)
{
	struct cl_disk_file *file = whole->file;

	assert(whole->place == NO_PLACE);
	/* It must not go with its last block. */
	file->references++;
	while (file->blocks)
		table_remove(file->blocks);
	file->whole = NULL;
	whole->file = NULL;
	table_put_whole(whole);
	file->references--;
	table_drop_file(file);
}

void table_drop_file(struct cl_disk_file *file)
{
	/* A whole may have no block yet, or none that the index names. */
	if (file->references || file->count || file->whole)
		return;
	htable_remove(&file->disk->files, file);
	file->disk->statistics.files--;
	free(file);
}
