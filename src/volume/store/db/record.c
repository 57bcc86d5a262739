/* SPDX-License-Identifier: BSD-2-Clause */
/* Versions of vnodes in memory, and the records in which the database has vnodes, lists of extents and volumes. */
#include "volume/store/db/record.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "volume/store/disk/crc.h"

#define VNODE_FORMAT	      1
#define VNODE_FORMAT_PARTS    2 /* the list of extents has rows of its own */
#define VOLUME_FORMAT	      1
#define VOLUME_FORMAT_MINIMUM 2	 /* has the minimum, which is 0 in others */
#define VOLUME_FORMAT_SNAPSHOT 3  /* has the minimum and a snapshot */
#define PARTS_SPARE	      16 /* parts that may be there beyond what the list needs */

/* -- lists of extents: which parts a change concerns -- */

void parts_free(struct parts *parts)
{
	free(parts->part);
	memset(parts, 0, sizeof(*parts));
}

int parts_copy(const struct parts *from, struct parts *to)
{
	size_t size = from->part ? from->count * sizeof(*from->part) : 0;
	struct part *part = size ? malloc(size) : NULL;

	if (size && !part)
		return -ENOMEM;
	if (size)
		memcpy(part, from->part, size);
	*to = *from;
	to->part = part;
	return 0;
}

static uint64_t take_lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t take_greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Extents with bytes in a range. *first: the index of the first one. */
static uint32_t count_extents_in(const struct store_content *content, uint64_t start, uint64_t end,
				 uint32_t *first)
{
	uint32_t last;

	*first = store_content_behind(content, start);
	last = end ? store_content_behind(content, end - 1) : 0;
	/* An extent that ends at or behind the end of the range may begin in it. */
	if (last < content->count && content->extent[last].start < end)
		last++;
	return last > *first ? last - *first : 0;
}

/* Whether two lists say the same about a range. */
static bool is_range_unchanged(const struct store_content *a, const struct store_content *b,
			       uint64_t start, uint64_t end)
{
	uint32_t at, other, count = count_extents_in(a, start, end, &at);

	if (count_extents_in(b, start, end, &other) != count)
		return false;
	for (; count; count--, at++, other++) {
		const struct store_extent *x = &a->extent[at], *y = &b->extent[other];

		if (x->object != y->object ||
		    take_greater(x->start, start) != take_greater(y->start, start) ||
		    take_lesser(x->end, end) != take_lesser(y->end, end))
			return false;
	}
	return true;
}

struct division {
	const struct store_content *content;
	uint32_t full, fill; /* extents that a part may have, and that a new one gets */
	struct part *part;
	uint32_t used;
	uint32_t *spare; /* slots without use */
	uint32_t spares, slots;
};

static void append_part(struct division *d, uint64_t start, uint32_t slot, bool changed)
{
	d->part[d->used++] = (struct part){.start = start, .slot = slot, .changed = changed};
}

/* A range that has changed: joined to the part before it, or one part, or several. */
static void append_changed_range(struct division *d, uint64_t start, uint64_t end, uint32_t slot)
{
	struct part *before = d->used ? &d->part[d->used - 1] : NULL;
	uint32_t first, count, pieces;

	if (before && count_extents_in(d->content, before->start, end, &first) <= d->fill) {
		before->changed = true;
		d->spare[d->spares++] = slot;
		return;
	}
	count = count_extents_in(d->content, start, end, &first);
	pieces = count > d->full ? (count + d->fill - 1) / d->fill : 1;
	append_part(d, start, slot, true);
	for (uint32_t i = 1; i < pieces; i++) {
		uint32_t at = first + (uint32_t)((uint64_t)count * i / pieces);

		append_part(d, d->content->extent[at].start,
			    d->spares ? d->spare[--d->spares] : d->slots++, true);
	}
}

static uint32_t count_used_parts(const struct parts *parts)
{
	uint32_t used = parts->count;

	while (used && parts->part[used - 1].start == PART_UNUSED)
		used--;
	return used;
}

/* So many slots are of no use that all parts are made anew. */
static bool has_many_unused_parts(const struct division *d, const struct parts *old, uint32_t used)
{
	return used > PARTS_SPARE + 3 * (d->content->count / d->fill) ||
	       old->count - used > used + PARTS_SPARE;
}

/* Ranges about which the list says something else than before are divided anew. */
static void divide_changed_ranges(struct division *d, const struct parts *old, uint32_t used,
				  const struct store_content *before)
{
	d->slots = old->count;
	for (uint32_t i = used; i < old->count; i++)
		d->spare[d->spares++] = old->part[i].slot;
	for (uint32_t i = 0; i < used; i++) {
		uint64_t start = old->part[i].start;
		uint64_t end = i + 1 < used ? old->part[i + 1].start : PART_UNUSED;

		if (is_range_unchanged(before, d->content, start, end))
			append_part(d, start, old->part[i].slot, false);
		else
			append_changed_range(d, start, end, old->part[i].slot);
	}
}

static bool was_unused_slot(const struct parts *old, uint32_t used, uint32_t slot)
{
	for (uint32_t i = used; i < old->count; i++)
		if (old->part[i].slot == slot)
			return true;
	return false;
}

int parts_divide(const struct parts *old, const struct store_content *before,
		 const struct store_content *now, uint32_t most, struct parts *parts)
{
	uint32_t used = count_used_parts(old);
	uint32_t full = (uint32_t)take_lesser(take_greater(most / 3, 2), PART_EXTENTS);
	struct division d = {.content = now, .full = full, .fill = 2 * full / 3};
	size_t room = 2 * (size_t)old->count + now->count / d.fill + 2;

	memset(parts, 0, sizeof(*parts));
	/* A list does not go back to the record as soon as it can. */
	if (now->count <= (old->count ? most / 2 : most))
		return 0;
	d.part = malloc(room * sizeof(*d.part));
	d.spare = malloc(room * sizeof(*d.spare));
	if (!d.part || !d.spare) {
		free(d.part);
		free(d.spare);
		return -ENOMEM;
	}
	if (!used || has_many_unused_parts(&d, old, used)) {
		used = 0;
		d.slots = 1;
		append_changed_range(&d, 0, PART_UNUSED, 0);
	} else {
		divide_changed_ranges(&d, old, used, before);
	}
	parts->count = d.used + d.spares;
	parts->extents = now->count;
	while (d.spares) {
		uint32_t slot = d.spare[--d.spares];

		append_part(&d, PART_UNUSED, slot, !used || !was_unused_slot(old, used, slot));
	}
	assert(parts->count <= room);
	parts->part = d.part;
	free(d.spare);
	return 0;
}

/* -- rows of such lists: the start, how many extents, and the extents -- */

void part_encode(const struct parts *parts, uint32_t at, const struct store_content *content,
		 uint8_t row[STORE_PAGE])
{
	const struct part *part = &parts->part[at];
	uint64_t end = at + 1 < parts->count ? part[1].start : PART_UNUSED;
	uint32_t first = 0, count = 0;
	uint8_t *to = row;

	assert(at < parts->count);
	memset(row, 0, STORE_PAGE);
	if (part->start != PART_UNUSED)
		count = count_extents_in(content, part->start, end, &first);
	assert(count <= PART_EXTENTS);
	put_little(&to, part->start, 8);
	put_little(&to, count, 2);
	for (uint32_t i = first; i < first + count; i++) {
		put_little(&to, take_greater(content->extent[i].start, part->start), 8);
		put_little(&to, take_lesser(content->extent[i].end, end), 8);
		put_little(&to, content->extent[i].object, 8);
	}
}

static int compare_part_starts(const void *a, const void *b)
{
	uint64_t x = ((const struct part *)a)->start, y = ((const struct part *)b)->start;

	return x < y ? -1 : x > y;
}

/* The parts in their order. *extents: of all of them. */
static int order_row_parts(uint8_t (*row)[STORE_PAGE], struct parts *parts, size_t *extents)
{
	*extents = 0;
	for (uint32_t i = 0; i < parts->count; i++) {
		struct bytes from = {.at = row[i], .left = STORE_PAGE};
		uint64_t start = get_little(&from, 8), count = get_little(&from, 2);

		if (count > PART_EXTENTS || (start == PART_UNUSED && count))
			return -EBADMSG;
		*extents += count;
		parts->part[i] = (struct part){.start = start, .slot = i};
	}
	qsort(parts->part, parts->count, sizeof(*parts->part), compare_part_starts);
	if (parts->part[0].start)
		return -EBADMSG;
	for (uint32_t i = 1; i < parts->count; i++)
		if (parts->part[i].start == parts->part[i - 1].start &&
		    parts->part[i].start != PART_UNUSED)
			return -EBADMSG;
	return 0;
}

/* Add the extents of a row, of the range up to `end`. Those that were cut are joined again. */
static int append_row_extents(const uint8_t row[STORE_PAGE], uint64_t end,
			      struct store_content *content)
{
	struct bytes from = {.at = row, .left = STORE_PAGE};
	uint64_t at = get_little(&from, 8), count = get_little(&from, 2);

	for (uint64_t i = 0; i < count; i++) {
		struct store_extent extent, *last;

		extent.start = get_little(&from, 8);
		extent.end = get_little(&from, 8);
		extent.object = get_little(&from, 8);
		if (extent.start < at || extent.end <= extent.start || extent.end > end ||
		    !extent.object)
			return -EBADMSG;
		at = extent.end;
		last = content->count ? &content->extent[content->count - 1] : NULL;
		if (last && last->end == extent.start && last->object == extent.object)
			last->end = extent.end;
		else
			content->extent[content->count++] = extent;
	}
	return 0;
}

int parts_decode(uint8_t (*row)[STORE_PAGE], struct parts *parts, struct store_content *content)
{
	size_t extents;
	int result;

	assert(parts->count > 0);
	parts->part = calloc(parts->count, sizeof(*parts->part));
	if (!parts->part)
		return -ENOMEM;
	result = order_row_parts(row, parts, &extents);
	if (result)
		return result;
	content->count = 0;
	content->extent = malloc((extents + 1) * sizeof(*content->extent));
	if (!content->extent)
		return -ENOMEM;
	for (uint32_t i = 0; i < parts->count && !result; i++)
		result = append_row_extents(
			row[parts->part[i].slot],
			i + 1 < parts->count ? parts->part[i + 1].start : PART_UNUSED, content);
	return !result && content->count != parts->extents ? -EBADMSG : result;
}

/* -- versions in memory -- */

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

/* -- records of vnodes -- */

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
	put_little(&at, version->parts.count ? VNODE_FORMAT_PARTS : VNODE_FORMAT, 1);
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
	int result = format == VNODE_FORMAT_PARTS ? decode_part_counts(from, version)
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
	if (format != VNODE_FORMAT && format != VNODE_FORMAT_PARTS)
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

/* -- records of volumes -- */

static uint32_t compute_volume_crc(uint32_t id, const uint8_t *rest, size_t length)
{
	uint8_t bytes[4], *at = bytes;

	put_little(&at, id, 4);
	return store_crc(store_crc(0, bytes, sizeof(bytes)), rest, length);
}

static void encode_text(uint8_t **at, const char *text)
{
	size_t length = strlen(text);

	assert(length <= UINT8_MAX);
	put_little(at, length, 1);
	memcpy(*at, text, length);
	*at += length;
}

static void decode_text(struct bytes *from, char *text, size_t size)
{
	size_t length = (size_t)get_little(from, 1);

	if (length >= size || length > from->left) {
		from->bad = true;
		return;
	}
	memcpy(text, from->at, length);
	text[length] = '\0';
	from->at += length;
	from->left -= length;
}

size_t volrec_encode(const struct volrec *volume, uint8_t *record)
{
	uint8_t *at = record + 4, *crc = record;

	put_little(&at,
		   volume->snapshot  ? VOLUME_FORMAT_SNAPSHOT
		   : volume->minimum ? VOLUME_FORMAT_MINIMUM
				     : VOLUME_FORMAT,
		   1);
	put_little(&at, volume->group, 4);
	put_little(&at, volume->type, 1);
	put_little(&at, volume->offline, 1);
	put_little(&at, volume->epoch, 4);
	for (int i = 0; i < 2; i++) {
		put_little(&at, volume->clone_id[i], 4);
		put_little(&at, volume->clone_epoch[i], 4);
		put_little(&at, volume->cursor[i], 4);
		put_little(&at, volume->fresh[i], 4);
	}
	put_little(&at, volume->quota_kib, 8);
	put_little(&at, volume->used_kib, 8);
	put_little(&at, volume->files, 8);
	put_little(&at, volume->created, 4);
	put_little(&at, volume->copied, 4);
	put_little(&at, volume->updated, 4);
	put_little(&at, volume->cloned, 4);
	put_little(&at, (uint32_t)volume->owner, 4);
	put_little(&at, volume->next_unique, 4);
	put_little(&at, volume->incarnation, 4);
	if (volume->minimum || volume->snapshot)
		put_little(&at, (uint32_t)volume->minimum, 4);
	if (volume->snapshot)
		put_little(&at, volume->snapshot, 4);
	encode_text(&at, volume->name);
	encode_text(&at, volume->message);
	assert((size_t)(at - record) <= VOLREC_MAX);
	put_little(&crc, compute_volume_crc(volume->id, record + 4, (size_t)(at - record) - 4), 4);
	return (size_t)(at - record);
}

static void decode_volume_numbers(struct bytes *from, struct volrec *volume)
{
	volume->group = (uint32_t)get_little(from, 4);
	volume->type = (uint8_t)get_little(from, 1);
	volume->offline = (uint8_t)get_little(from, 1);
	volume->epoch = (uint32_t)get_little(from, 4);
	for (int i = 0; i < 2; i++) {
		volume->clone_id[i] = (uint32_t)get_little(from, 4);
		volume->clone_epoch[i] = (uint32_t)get_little(from, 4);
		volume->cursor[i] = (uint32_t)get_little(from, 4);
		volume->fresh[i] = (uint32_t)get_little(from, 4);
	}
	volume->quota_kib = get_little(from, 8);
	volume->used_kib = get_little(from, 8);
	volume->files = get_little(from, 8);
	volume->created = (uint32_t)get_little(from, 4);
	volume->copied = (uint32_t)get_little(from, 4);
	volume->updated = (uint32_t)get_little(from, 4);
	volume->cloned = (uint32_t)get_little(from, 4);
	volume->owner = (int32_t)get_little(from, 4);
	volume->next_unique = (uint32_t)get_little(from, 4);
	volume->incarnation = (uint32_t)get_little(from, 4);
}

int volrec_decode(const uint8_t *record, size_t length, uint32_t id, struct volrec *volume)
{
	struct bytes from = {.at = record, .left = length};
	uint8_t format;

	memset(volume, 0, sizeof(*volume));
	if (length < 5 || get_little(&from, 4) != compute_volume_crc(id, record + 4, length - 4))
		return -EBADMSG;
	format = (uint8_t)get_little(&from, 1);
	if (format < VOLUME_FORMAT || format > VOLUME_FORMAT_SNAPSHOT)
		return -EBADMSG;
	volume->id = id;
	decode_volume_numbers(&from, volume);
	if (format != VOLUME_FORMAT)
		volume->minimum = (int32_t)get_little(&from, 4);
	if (format == VOLUME_FORMAT_SNAPSHOT)
		volume->snapshot = (uint32_t)get_little(&from, 4);
	decode_text(&from, volume->name, sizeof(volume->name));
	decode_text(&from, volume->message, sizeof(volume->message));
	if (from.bad || from.left || volume->type > STORE_BACKUP || !volume->group)
		return -EBADMSG;
	return 0;
}
