/* SPDX-License-Identifier: BSD-2-Clause */
/* Versions of vnodes, in memory and as records. */
#include "volume/store/db/version.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/disk/bytes.h"
#include "volume/store/disk/crc.h"

#define FORMAT	     1
#define FORMAT_PARTS 2 /* the list of extents has rows of its own */

struct blob *blob_new(size_t length)
{
	struct blob *blob = malloc(sizeof(*blob) + length);

	assert(length <= UINT32_MAX);
	if (!blob)
		return NULL;
	atomic_init(&blob->refs, 1);
	blob->length = (uint32_t)length;
	return blob;
}

struct blob *blob_ref(struct blob *blob)
{
	if (blob)
		atomic_fetch_add_explicit(&blob->refs, 1, memory_order_relaxed);
	return blob;
}

void blob_unref(struct blob *blob)
{
	if (blob && atomic_fetch_sub_explicit(&blob->refs, 1, memory_order_acq_rel) == 1)
		free(blob);
}

struct version *version_new(void)
{
	struct version *version = calloc(1, sizeof(*version));

	if (version)
		atomic_init(&version->refs, 1);
	return version;
}

/* The parts of the version beside its record. 0 or -ENOMEM. */
static int copy_version_parts(struct version *to, const struct version *from)
{
	struct store_pages *pages = atomic_load(&from->pages);
	struct blob *blob = atomic_load(&from->blob);

	if (from->acl) {
		to->acl = malloc(sizeof(*to->acl));
		if (!to->acl)
			return -ENOMEM;
		*to->acl = *from->acl;
	}
	if (from->text) {
		to->text = strdup(from->text);
		if (!to->text)
			return -ENOMEM;
	}
	if (from->content.count && store_content_copy(&from->content, &to->content))
		return -ENOMEM;
	if (parts_copy(&from->parts, &to->parts))
		return -ENOMEM;
	to->content.tail_object = from->content.tail_object;
	to->content.tail = from->content.tail;
	if (pages)
		atomic_init(&to->pages, store_pages_ref(pages));
	if (blob)
		atomic_init(&to->blob, blob_ref(blob));
	return 0;
}

struct version *version_copy(const struct version *from)
{
	struct version *to = version_new();

	if (!to)
		return NULL;
	to->epoch = from->epoch;
	to->v = from->v;
	if (copy_version_parts(to, from)) {
		version_unref(to);
		return NULL;
	}
	return to;
}

struct version *version_ref(struct version *version)
{
	atomic_fetch_add_explicit(&version->refs, 1, memory_order_relaxed);
	return version;
}

void version_unref(struct version *version)
{
	struct store_pages *pages;

	if (!version || atomic_fetch_sub_explicit(&version->refs, 1, memory_order_acq_rel) != 1)
		return;
	pages = atomic_load(&version->pages);
	if (pages)
		store_pages_unref(pages);
	blob_unref(atomic_load(&version->blob));
	store_content_free(&version->content);
	parts_free(&version->parts);
	free(version->acl);
	free(version->text);
	free(version);
}

size_t version_memory(const struct version *version)
{
	struct store_pages *pages = atomic_load(&version->pages);
	struct blob *blob = atomic_load(&version->blob);
	size_t bytes = sizeof(*version);

	if (version->acl)
		bytes += sizeof(*version->acl);
	if (version->text)
		bytes += version->v.length + 1;
	bytes += version->content.count * sizeof(struct store_extent);
	bytes += version->parts.count * sizeof(struct part);
	if (pages)
		bytes += store_pages_memory(pages);
	if (blob)
		bytes += sizeof(*blob) + blob->length;
	return bytes;
}

struct store_pages *version_attach_pages(struct version *version, struct store_pages *pages)
{
	struct store_pages *there = NULL;

	if (atomic_compare_exchange_strong(&version->pages, &there, pages))
		return pages;
	store_pages_unref(pages);
	return there;
}

struct blob *version_attach_blob(struct version *version, struct blob *blob)
{
	struct blob *there = NULL;

	if (atomic_compare_exchange_strong(&version->blob, &there, blob))
		return blob;
	blob_unref(blob);
	return there;
}

/* -- records -- */

static uint32_t compute_vnode_crc(const struct vnode_key *key, const uint8_t *rest, size_t length)
{
	uint8_t bytes[12], *at = bytes;

	put_little(&at, key->group, 4);
	put_little(&at, key->vnode, 4);
	put_little(&at, key->epoch, 4);
	return store_crc(store_crc(0, bytes, sizeof(bytes)), rest, length);
}

static void encode_acl_entries(uint8_t **at, const struct store_acl *acl)
{
	assert(acl->positive + acl->negative <= STORE_ACL_MAX);
	put_little(at, acl->positive, 1);
	put_little(at, acl->negative, 1);
	for (unsigned i = 0; i < acl->positive + acl->negative; i++) {
		put_little(at, (uint32_t)acl->entry[i].id, 4);
		put_little(at, acl->entry[i].rights, 4);
	}
}

static void encode_content(uint8_t **at, const struct version *version)
{
	const struct store_content *content = &version->content;

	assert(version->parts.count || content->count <= PARTS_INLINE);
	if (version->parts.count) {
		put_little(at, version->parts.count, 4);
		put_little(at, content->count, 4);
	} else {
		put_little(at, content->count, 2);
		for (uint32_t i = 0; i < content->count; i++) {
			put_little(at, content->extent[i].start, 8);
			put_little(at, content->extent[i].end, 8);
			put_little(at, content->extent[i].object, 8);
		}
	}
	put_little(at, content->tail_object, 8);
	put_little(at, content->tail, 8);
}

static void encode_vnode(uint8_t **at, const struct vnode *v)
{
	put_little(at, v->mode, 2);
	put_little(at, v->links, 4);
	put_little(at, v->unique, 4);
	put_little(at, v->length, 8);
	put_little(at, v->version, 8);
	put_little(at, (uint32_t)v->author, 4);
	put_little(at, (uint32_t)v->owner, 4);
	put_little(at, v->group, 4);
	put_little(at, v->parent, 4);
	put_little(at, v->parent_unique, 4);
	put_little(at, v->client_mtime, 4);
	put_little(at, v->server_mtime, 4);
	put_little(at, v->incarnation, 4);
	put_little(at, v->small, 8);
}

size_t version_encode(const struct version *version, const struct vnode_key *key, uint8_t *record)
{
	uint8_t *at = record + 4, *crc = record;

	assert(version->v.kind != STORE_DIR || version->acl);
	put_little(&at, version->parts.count ? FORMAT_PARTS : FORMAT, 1);
	put_little(&at, version->v.kind, 1);
	put_little(&at, version->v.flags, 1);
	if (version->v.kind)
		encode_vnode(&at, &version->v);
	if (version->v.kind == STORE_DIR) {
		encode_acl_entries(&at, version->acl);
	} else if (version->v.kind == STORE_FILE) {
		encode_content(&at, version);
	} else if (version->v.kind == STORE_SYMLINK) {
		memcpy(at, version->text, version->v.length);
		at += version->v.length;
	}
	assert((size_t)(at - record) <= RECORD_MAX);
	put_little(&crc, compute_vnode_crc(key, record + 4, (size_t)(at - record) - 4), 4);
	return (size_t)(at - record);
}

static void decode_vnode(struct bytes *from, struct vnode *v)
{
	v->mode = (uint16_t)get_little(from, 2);
	v->links = (uint32_t)get_little(from, 4);
	v->unique = (uint32_t)get_little(from, 4);
	v->length = get_little(from, 8);
	v->version = get_little(from, 8);
	v->author = (int32_t)get_little(from, 4);
	v->owner = (int32_t)get_little(from, 4);
	v->group = (uint32_t)get_little(from, 4);
	v->parent = (uint32_t)get_little(from, 4);
	v->parent_unique = (uint32_t)get_little(from, 4);
	v->client_mtime = (uint32_t)get_little(from, 4);
	v->server_mtime = (uint32_t)get_little(from, 4);
	v->incarnation = (uint32_t)get_little(from, 4);
	v->small = get_little(from, 8);
}

static int decode_acl_entries(struct bytes *from, struct version *version)
{
	struct store_acl *acl = calloc(1, sizeof(*acl));

	if (!acl)
		return -ENOMEM;
	version->acl = acl;
	acl->positive = (uint8_t)get_little(from, 1);
	acl->negative = (uint8_t)get_little(from, 1);
	if (acl->positive + acl->negative > STORE_ACL_MAX)
		return -EBADMSG;
	for (unsigned i = 0; i < acl->positive + acl->negative; i++) {
		acl->entry[i].id = (int32_t)get_little(from, 4);
		acl->entry[i].rights = (uint32_t)get_little(from, 4);
	}
	return 0;
}

/* The list of a record. */
static int decode_extents(struct bytes *from, struct version *version)
{
	struct store_content *content = &version->content;
	uint32_t count = (uint32_t)get_little(from, 2);
	uint64_t before = 0;

	if (count > PARTS_INLINE || from->left < 24 * (size_t)count)
		return -EBADMSG;
	if (count) {
		content->extent = calloc(count, sizeof(*content->extent));
		if (!content->extent)
			return -ENOMEM;
	}
	content->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct store_extent *extent = &content->extent[i];

		extent->start = get_little(from, 8);
		extent->end = get_little(from, 8);
		extent->object = get_little(from, 8);
		if (extent->start < before || extent->end <= extent->start || !extent->object)
			return -EBADMSG;
		before = extent->end;
	}
	return before > version->v.length ? -EBADMSG : 0;
}

static int decode_part_counts(struct bytes *from, struct version *version)
{
	version->parts.count = (uint32_t)get_little(from, 4);
	version->parts.extents = (uint32_t)get_little(from, 4);
	return version->parts.count && version->parts.count <= PARTS_MAX ? 0 : -EBADMSG;
}

static int decode_content(struct bytes *from, struct version *version, unsigned format)
{
	int result = format == FORMAT_PARTS ? decode_part_counts(from, version)
					    : decode_extents(from, version);

	version->content.tail_object = get_little(from, 8);
	version->content.tail = get_little(from, 8);
	return result;
}

int version_add_parts(struct version *version, uint8_t (*row)[STORE_PAGE])
{
	struct store_content *content = &version->content;
	int result = parts_decode(row, &version->parts, content);

	assert(version->parts.count > 0);
	if (!result && content->count &&
	    content->extent[content->count - 1].end > version->v.length)
		result = -EBADMSG;
	return result;
}

static int decode_link_text(struct bytes *from, struct version *version)
{
	if (version->v.length != from->left || from->left > STORE_TEXT_MAX)
		return -EBADMSG;
	version->text = strndup((const char *)from->at, from->left);
	if (!version->text)
		return -ENOMEM;
	from->left = 0;
	return 0;
}

static int decode_kind_parts(struct bytes *from, struct version *version, unsigned format)
{
	int result = -EBADMSG;

	if (!version->v.kind)
		return from->left ? -EBADMSG : 0;
	decode_vnode(from, &version->v);
	if (version->v.kind == STORE_DIR)
		result = decode_acl_entries(from, version);
	else if (version->v.kind == STORE_FILE)
		result = decode_content(from, version, format);
	else if (version->v.kind == STORE_SYMLINK)
		result = decode_link_text(from, version);
	if (!result && (from->bad || from->left))
		result = -EBADMSG;
	return result;
}

int version_decode(const uint8_t *record, size_t length, const struct vnode_key *key,
		   struct version **version)
{
	struct bytes from = {.at = record, .left = length};
	unsigned format;
	int result;

	if (length < 7 || get_little(&from, 4) != compute_vnode_crc(key, record + 4, length - 4))
		return -EBADMSG;
	format = (unsigned)get_little(&from, 1);
	if (format != FORMAT && format != FORMAT_PARTS)
		return -EBADMSG;
	*version = version_new();
	if (!*version)
		return -ENOMEM;
	(*version)->epoch = key->epoch;
	(*version)->v.kind = (uint8_t)get_little(&from, 1);
	(*version)->v.flags = (uint8_t)get_little(&from, 1);
	result = decode_kind_parts(&from, *version, format);
	if (result) {
		version_unref(*version);
		*version = NULL;
	}
	return result;
}
