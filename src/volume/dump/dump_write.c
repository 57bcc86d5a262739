/* SPDX-License-Identifier: BSD-2-Clause */
/* A volume as a dump. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afs/dir.h"
#include "volume/dump/dump.h"
#include "volume/dump/dump_format.h"

#define BUFFER ((size_t)256 << 10)

struct dump_writer {
	struct store *store;
	struct store_snapshot *snapshot;
	const struct dump_output *output;
	const struct dump_base *base;
	struct dump_counts *counts;
	uint32_t state; /* of the vnodes that are only named */
	uint8_t *buffer;
	size_t used;
	int failed; /* the result of the output; nothing is written any more */
};

/* -- bytes -- */

static void flush_dump(struct dump_writer *writer)
{
	assert(writer->used <= BUFFER);
	if (writer->used && !writer->failed)
		writer->failed =
			writer->output->write(writer->output->arg, writer->buffer, writer->used);
	writer->counts->bytes += writer->used;
	writer->used = 0;
}

static void put_dump_bytes(struct dump_writer *writer, const void *bytes, size_t length)
{
	while (length) {
		size_t part = BUFFER - writer->used < length ? BUFFER - writer->used : length;

		memcpy(writer->buffer + writer->used, bytes, part);
		writer->used += part;
		bytes = (const uint8_t *)bytes + part;
		length -= part;
		if (writer->used == BUFFER)
			flush_dump(writer);
	}
	assert(writer->used < BUFFER);
}

/* A tag and a number of `size` bytes. */
static void put_dump_number(struct dump_writer *writer, int tag, uint32_t value, unsigned size)
{
	uint8_t bytes[5] = {(uint8_t)tag};

	assert(size < sizeof(bytes));
	for (unsigned i = 0; i < size; i++)
		bytes[1 + i] = (uint8_t)(value >> 8 * (size - 1 - i));
	put_dump_bytes(writer, bytes, 1 + size);
}

static void put_dump_word(struct dump_writer *writer, uint32_t value)
{
	const uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16),
				  (uint8_t)(value >> 8), (uint8_t)value};

	put_dump_bytes(writer, bytes, sizeof(bytes));
}

static void put_dump_text(struct dump_writer *writer, int tag, const char *text)
{
	put_dump_number(writer, tag, 0, 0);
	put_dump_bytes(writer, text, strlen(text) + 1);
}

/* Numbers are signed where they are read. */
static uint32_t clamp_count(uint64_t value)
{
	return value > INT32_MAX ? INT32_MAX : (uint32_t)value;
}

/* -- headers -- */

static uint32_t choose_dump_date(const struct store_volume *volume)
{
	if (volume->type == STORE_RW)
		return volume->updated;
	return volume->type == STORE_BACKUP && volume->cloned ? volume->cloned : volume->created;
}

static void put_dump_header(struct dump_writer *writer, const struct store_volume *volume)
{
	const struct dump_base *base = writer->base;

	put_dump_number(writer, DUMP_HEADER, DUMP_BEGIN_MAGIC, 4);
	put_dump_word(writer, DUMP_VERSION);
	put_dump_number(writer, 'v', volume->id, 4);
	put_dump_text(writer, 'n', volume->name);
	put_dump_number(writer, 't', 2, 2);
	put_dump_word(writer, base->date);
	put_dump_word(writer, choose_dump_date(volume));
	if (base->date && !base->dated)
		put_dump_number(writer, DUMP_BASE, base->updated, 4);
}

static void put_volume_header(struct dump_writer *writer, const struct store_header *header)
{
	const struct store_volume *volume = &header->volume;

	put_dump_number(writer, DUMP_VOLUME, 0, 0);
	put_dump_number(writer, 'i', volume->id, 4);
	put_dump_number(writer, 'v', 1, 4);
	put_dump_text(writer, 'n', volume->name);
	put_dump_number(writer, 's', volume->online || !writer->base->dated, 1);
	put_dump_number(writer, 'b', 1, 1);
	put_dump_number(writer, 'u', header->next_unique, 4);
	put_dump_number(writer, 't',
			volume->type == STORE_RW   ? DUMP_RW
			: volume->type == STORE_RO ? DUMP_RO
						   : DUMP_BACKUP,
			1);
	put_dump_number(writer, 'p', volume->rw, 4);
	put_dump_number(writer, 'c', volume->ro, 4);
	put_dump_number(writer, 'q', clamp_count(volume->quota_kib), 4);
	put_dump_number(writer, 'm', (uint32_t)volume->minimum, 4);
	put_dump_number(writer, 'd', clamp_count(volume->used_kib), 4);
	put_dump_number(writer, 'f', clamp_count(volume->files), 4);
	put_dump_number(writer, 'a', 0, 4);
	put_dump_number(writer, 'o', (uint32_t)header->owner, 4);
	put_dump_number(writer, 'C', volume->created, 4);
	put_dump_number(writer, 'A', volume->updated, 4);
	put_dump_number(writer, 'U', volume->updated, 4);
	put_dump_number(writer, 'E', 0, 4);
	put_dump_number(writer, 'B', volume->cloned, 4);
	put_dump_text(writer, 'O', writer->base->note ? writer->base->note : "");
	put_dump_text(writer, 'M', "");
	put_dump_number(writer, 'W', 7, 2);
	for (int day = 0; day < 7; day++)
		put_dump_word(writer, 0);
	put_dump_number(writer, 'D', 0, 4);
	put_dump_number(writer, 'Z', 0, 4);
}

/* -- vnodes -- */

/* Positive entries in ascending order, then negative ones in descending order. */
static void put_acl(struct dump_writer *writer, const struct store_acl *acl)
{
	unsigned count = acl->positive + acl->negative;
	static const uint8_t zeros[DUMP_ACL];

	assert(count <= DUMP_ACL_MOST);
	put_dump_number(writer, 'A', 20 + 8 * count, 4);
	put_dump_word(writer, 1);
	put_dump_word(writer, count);
	put_dump_word(writer, acl->positive);
	put_dump_word(writer, acl->negative);
	for (unsigned i = 0; i < count; i++) {
		unsigned at = i < acl->positive ? i : count - 1 - (i - acl->positive);

		put_dump_word(writer, (uint32_t)acl->entry[at].id);
		put_dump_word(writer, acl->entry[at].rights);
	}
	put_dump_bytes(writer, zeros, DUMP_ACL - 20 - 8 * (size_t)count);
}

static void put_vnode_members(struct dump_writer *writer, const struct store_vnode *vnode)
{
	put_dump_number(writer, 't', vnode->kind, 1);
	put_dump_number(writer, 'l', vnode->links > UINT16_MAX ? UINT16_MAX : vnode->links, 2);
	put_dump_number(writer, 'v', (uint32_t)vnode->version, 4);
	put_dump_number(writer, 'm', vnode->client_mtime, 4);
	put_dump_number(writer, 'a', (uint32_t)vnode->author, 4);
	put_dump_number(writer, 'o', (uint32_t)vnode->owner, 4);
	if (vnode->group)
		put_dump_number(writer, 'g', vnode->group, 4);
	put_dump_number(writer, 'b', vnode->mode, 2);
	put_dump_number(writer, 'p', vnode->vnode == STORE_ROOT_VNODE ? 0 : vnode->parent, 4);
	put_dump_number(writer, 's', vnode->server_mtime, 4);
	if (vnode->kind == STORE_DIR)
		put_acl(writer, &vnode->acl);
	if (vnode->length <= UINT32_MAX) {
		put_dump_number(writer, 'f', (uint32_t)vnode->length, 4);
	} else {
		put_dump_number(writer, 'h', (uint32_t)(vnode->length >> 32), 4);
		put_dump_word(writer, (uint32_t)vnode->length);
	}
}

static int report_dump_progress(struct dump_writer *writer)
{
	const struct dump_output *output = writer->output;

	return output->progress && output->progress(output->arg, writer->counts->bytes,
						    writer->counts->objects)
		       ? -EINTR
		       : writer->failed;
}

/* The snapshot keeps what has this length. */
static int put_contents(struct dump_writer *writer, uint64_t length)
{
	const struct store_ops *ops = writer->store->ops;
	struct store_reader *reader;
	uint64_t at = 0;
	int result;

	if (writer->base->measured)
		writer->counts->bytes += length;
	if (!length || writer->base->measured)
		return report_dump_progress(writer);
	result = store_snapshot_open(writer->snapshot, &reader);
	if (result)
		return result;
	while (!result && at < length) {
		size_t room = BUFFER - writer->used;
		struct iovec iov = {writer->buffer + writer->used,
				    room < length - at ? room : (size_t)(length - at)};
		ssize_t n = ops->read(reader, &iov, 1, at, 0);

		if (n <= 0) {
			result = n < 0 ? (int)n : -EIO;
			break;
		}
		writer->used += (size_t)n;
		at += (uint64_t)n;
		if (writer->used == BUFFER)
			flush_dump(writer);
		result = report_dump_progress(writer);
	}
	ops->read_end(reader);
	return result;
}

/* -- directories without the names of damaged objects -- */

static int read_directory_image(struct dump_writer *writer, const struct store_vnode *vnode,
				uint8_t **image)
{
	const struct store_ops *ops = writer->store->ops;
	struct store_reader *reader = NULL;
	uint64_t at = 0;
	int result = store_snapshot_open(writer->snapshot, &reader);

	*image = result ? NULL : malloc(vnode->length);
	if (!result && !*image)
		result = -ENOMEM;
	while (!result && at < vnode->length) {
		struct iovec iov = {*image + at, (size_t)(vnode->length - at)};
		ssize_t n = ops->read(reader, &iov, 1, at, 0);

		result = n < 0 ? (int)n : n == 0 ? -EIO : 0;
		at += n > 0 ? (uint64_t)n : 0;
	}
	if (reader)
		ops->read_end(reader);
	return result;
}

/* Copy the other names. *dropped: how many are missing; of them, *dirs are directories'. */
static int copy_sound_names(const struct dump_writer *writer, const uint8_t *image, size_t length,
			    struct afs_dir *dir, uint32_t *dropped, uint32_t *dirs)
{
	struct afs_dir_entry entry;
	uint32_t cursor = 0;
	int more, result = 0;

	while (!result && (more = afs_dir_next(image, length, &cursor, &entry)) == 1) {
		if (dump_is_damaged(writer->base->without, entry.vnode)) {
			++*dropped;
			*dirs += entry.vnode & 1;
		} else if (strcmp(entry.name, ".") && strcmp(entry.name, "..")) {
			result = afs_dir_add(dir, entry.name, entry.length, entry.vnode,
					     entry.unique);
		}
	}
	return result || more ? -EIO : 0;
}

/* *image: NULL if no name is to be left out; else to be freed, and the vnode is as it is without them. */
static int drop_damaged_names(struct dump_writer *writer, struct store_vnode *vnode,
			      uint8_t **image)
{
	uint32_t up = 0, up_unique = 0, dropped = 0, dirs = 0;
	struct afs_dir dir;
	uint8_t *old;
	size_t size;
	int result = read_directory_image(writer, vnode, &old);

	*image = NULL;
	if (!result && afs_dir_lookup(old, vnode->length, "..", &up, &up_unique) != 1)
		result = -EIO;
	if (!result && afs_dir_begin(&dir, vnode->vnode, vnode->unique, up, up_unique))
		result = -ENOMEM;
	if (result) {
		free(old);
		return result;
	}
	result = copy_sound_names(writer, old, vnode->length, &dir, &dropped, &dirs);
	free(old);
	if (!result && dropped)
		*image = afs_dir_take(&dir, &size);
	if (!*image) {
		afs_dir_destroy(&dir);
		return result;
	}
	vnode->length = size;
	vnode->links -= dirs < vnode->links ? dirs : 0;
	return 0;
}

static int put_vnode(struct dump_writer *writer, const struct store_vnode *given, bool full)
{
	struct store_vnode changed = *given;
	const struct store_vnode *vnode = &changed;
	uint8_t *image = NULL;
	int result = 0;

	if (vnode->kind == STORE_DIR && writer->base->without && writer->base->without->count)
		result = drop_damaged_names(writer, &changed, &image);
	if (result)
		return result;
	put_dump_number(writer, DUMP_VNODE, vnode->vnode, 4);
	put_dump_word(writer, vnode->unique);
	if (!full && !image) {
		writer->counts->unchanged++;
		if (!writer->base->dated)
			writer->state = dump_add_state(writer->state, vnode);
		return report_dump_progress(writer);
	}
	put_vnode_members(writer, vnode);
	writer->counts->objects++;
	if (!image)
		return put_contents(writer, vnode->length);
	put_dump_bytes(writer, image, (size_t)vnode->length);
	free(image);
	return report_dump_progress(writer);
}

static bool is_vnode_changed(const struct dump_base *base, const struct store_vnode *vnode)
{
	return base->dated ? vnode->server_mtime >= base->date : vnode->changed;
}

/* `all` are in full. The state of a volume needs all members of the others. */
static int find_next_vnode(struct dump_writer *writer, bool directories, bool all,
			   struct store_vnode *vnode)
{
	struct store_snapshot *snapshot = writer->snapshot;
	int result;

	if (all || !writer->base->dated)
		return store_snapshot_next(snapshot, directories, vnode->vnode, vnode);
	result = store_snapshot_outline(snapshot, directories, vnode->vnode, vnode);
	if (result || !is_vnode_changed(writer->base, vnode))
		return result;
	return store_snapshot_find(snapshot, vnode->vnode, vnode->unique, vnode);
}

static int put_vnodes(struct dump_writer *writer, bool directories)
{
	const struct dump_base *base = writer->base;
	bool all = !base->date || (directories && base->dated && !base->sparse);
	struct store_vnode vnode = {0};
	int result = 0;

	while (!result) {
		result = find_next_vnode(writer, directories, all, &vnode);
		if (result != -ENOENT && dump_is_damaged(writer->base->without, vnode.vnode))
			result = 0;
		else if (!result)
			result = put_vnode(writer, &vnode, all || is_vnode_changed(base, &vnode));
	}
	return result == -ENOENT ? 0 : result;
}

static int put_dump(struct dump_writer *writer)
{
	bool stated = writer->base->date && !writer->base->dated;
	struct store_header header;
	int result;

	store_snapshot_header(writer->snapshot, &header);
	put_dump_header(writer, &header.volume);
	put_volume_header(writer, &header);
	result = put_vnodes(writer, true);
	if (!result)
		result = put_vnodes(writer, false);
	if (result)
		return result;
	/* A second header counts in place of the first one. */
	if (stated) {
		put_volume_header(writer, &header);
		put_dump_number(writer, DUMP_STATE, writer->state, 4);
	}
	put_dump_number(writer, DUMP_END, DUMP_END_MAGIC, 4);
	flush_dump(writer);
	return writer->failed;
}

int dump_write(struct store *store, struct store_snapshot *snapshot, const struct dump_base *base,
	       const struct dump_output *output, struct dump_counts *counts, bool *local)
{
	struct dump_writer writer = {.store = store,
				     .snapshot = snapshot,
				     .output = output,
				     .base = base,
				     .counts = counts,
				     .buffer = malloc(BUFFER)};
	int result;

	*counts = (struct dump_counts){0};
	*local = false;
	if (!writer.buffer)
		return -ENOMEM;
	result = put_dump(&writer);
	assert(result || !writer.used);
	*local = writer.failed != 0;
	free(writer.buffer);
	return writer.failed ? writer.failed : result;
}
