/* SPDX-License-Identifier: BSD-2-Clause */
/* Versions of vnodes in memory, and the records in which the database has vnodes and volumes. */
#include "volume/store/db/record.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "volume/store/disk/crc.h"

#define VNODE_FORMAT	       3
#define VOLUME_FORMAT	      1
#define VOLUME_FORMAT_MINIMUM  2 /* has the minimum, which is 0 in others */
#define VOLUME_FORMAT_SNAPSHOT 3 /* has the minimum and a snapshot */
#define VOLUME_FORMAT_CELL     4 /* and what the volume service of a cell has set */

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
	const struct store_content *content;

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
	content = version_content(from);
	to->partial = !content;
	store_content_copy(content ? content : &from->content, &to->content);
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

static void free_whole_content(struct store_content *whole)
{
	if (whole)
		store_content_free(whole);
	free(whole);
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
	free_whole_content(atomic_load(&version->whole));
	free(version->acl);
	free(version->text);
	free(version);
}

size_t version_memory(const struct version *version)
{
	struct store_pages *pages = atomic_load(&version->pages);
	struct blob *blob = atomic_load(&version->blob);
	const struct store_content *whole = atomic_load(&version->whole);
	size_t bytes = sizeof(*version);

	if (version->acl)
		bytes += sizeof(*version->acl);
	if (version->text)
		bytes += version->v.length + 1;
	bytes += store_content_memory(&version->content);
	if (whole)
		bytes += sizeof(*whole) + store_content_memory(whole);
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

const struct store_content *version_attach_content(struct version *version,
						   const struct store_content *content)
{
	struct store_content *whole = calloc(1, sizeof(*whole)), *none = NULL;

	assert(version->partial);
	if (!whole)
		return NULL;
	store_content_copy(content, whole);
	if (atomic_compare_exchange_strong(&version->whole, &none, whole))
		return whole;
	free_whole_content(whole);
	return none;
}

const struct store_content *version_content(const struct version *version)
{
	return version->partial ? atomic_load(&version->whole) : &version->content;
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

	put_little(at, version->v.map, 8);
	put_little(at, version->v.slots, 4);
	put_little(at, version->v.rows, 4);
	assert(version->partial || version->v.slots == content->count);
	if (content->first)
		*at += store_slot_encode(content->first, *at);
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
	put_little(&at, VNODE_FORMAT, 1);
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

size_t version_seal(const struct vnode_key *key, uint8_t *record, size_t length)
{
	uint8_t *crc = record;

	assert(length > 4);
	record[4] = VNODE_FORMAT;
	put_little(&crc, compute_vnode_crc(key, record + 4, length - 4), 4);
	return length;
}

bool version_is_sealed(const struct vnode_key *key, const uint8_t *record, size_t length)
{
	struct bytes from = {.at = record, .left = length};

	return length > 4 && get_little(&from, 4) == compute_vnode_crc(key, record + 4, length - 4);
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

static int decode_content(struct bytes *from, struct version *version)
{
	int result = 0;

	version->v.map = get_little(from, 8);
	version->v.slots = (uint32_t)get_little(from, 4);
	version->v.rows = (uint32_t)get_little(from, 4);
	if (from->bad || version->v.rows >= version->v.slots + !version->v.slots ||
	    version->v.slots > STORE_SLOTS_MAX || (version->v.rows && !version->v.map))
		return -EBADMSG;
	if (from->left)
		result = store_slot_decode(from->at, from->left, &version->content.first);
	version->content.count = version->content.first != NULL;
	if (!result && version->v.slots < version->content.count)
		result = -EBADMSG;
	version->partial = version->v.slots > version->content.count;
	from->left = 0;
	return result;
}

static int decode_link_text(struct bytes *from, struct version *version)
{
	if (version->v.length != from->left || from->left > STORE_TEXT_MAX ||
	    memchr(from->at, '\0', from->left))
		return -EBADMSG;
	version->text = strndup((const char *)from->at, from->left);
	if (!version->text)
		return -ENOMEM;
	from->left = 0;
	return 0;
}

static int decode_kind_parts(struct bytes *from, struct version *version)
{
	int result = -EBADMSG;

	if (!version->v.kind)
		return from->left ? -EBADMSG : 0;
	decode_vnode(from, &version->v);
	if (version->v.kind == STORE_DIR)
		result = decode_acl_entries(from, version);
	else if (version->v.kind == STORE_FILE)
		result = decode_content(from, version);
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
	if (format != VNODE_FORMAT)
		return -EBADMSG;
	*version = version_new();
	if (!*version)
		return -ENOMEM;
	(*version)->epoch = key->epoch;
	(*version)->v.kind = (uint8_t)get_little(&from, 1);
	(*version)->v.flags = (uint8_t)get_little(&from, 1);
	result = decode_kind_parts(&from, *version);
	if (result) {
		version_unref(*version);
		*version = NULL;
	}
	return result;
}

/* Where encode_vnode() puts a member, behind checksum, format, kind and flags. */
#define AT_LINKS	 9
#define AT_UNIQUE	 13
#define AT_PARENT	 45
#define AT_PARENT_UNIQUE 49
#define AT_SERVER_MTIME	 57
#define VNODE_END	 73

static uint32_t get_word_at(const uint8_t *record, size_t at)
{
	return (uint32_t)record[at] | (uint32_t)record[at + 1] << 8 |
	       (uint32_t)record[at + 2] << 16 | (uint32_t)record[at + 3] << 24;
}

void version_outline(const uint8_t *record, size_t length, const struct vnode_key *key,
		     struct outline *outline)
{
	*outline = (struct outline){.vnode = key->vnode, .epoch = key->epoch};
	outline->damaged = length < 7 || !version_is_sealed(key, record, length) ||
			   record[4] != VNODE_FORMAT || (record[5] && length < VNODE_END);
	if (outline->damaged)
		return;
	outline->kind = record[5];
	if (!outline->kind)
		return;
	outline->links = get_word_at(record, AT_LINKS);
	outline->unique = get_word_at(record, AT_UNIQUE);
	outline->parent = get_word_at(record, AT_PARENT);
	outline->parent_unique = get_word_at(record, AT_PARENT_UNIQUE);
	outline->server_mtime = get_word_at(record, AT_SERVER_MTIME);
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

/* Clones beyond the first two; *count: the number of the places up to the last one. */
static bool has_more_clones(const struct volrec *volume, unsigned *count)
{
	*count = VOLREC_CLONES - 2;
	while (*count && !volume->clone_epoch[1 + *count])
		--*count;
	return *count > 0;
}

static uint8_t choose_volume_format(const struct volrec *volume)
{
	unsigned more;

	if (volume->cell || volume->as || volume->parent || volume->restored || volume->creation ||
	    volume->shown_clone || volume->shown_backup || has_more_clones(volume, &more))
		return VOLUME_FORMAT_CELL;
	return volume->snapshot	 ? VOLUME_FORMAT_SNAPSHOT
	       : volume->minimum ? VOLUME_FORMAT_MINIMUM
				 : VOLUME_FORMAT;
}

static void encode_cell_members(uint8_t **at, const struct volrec *volume)
{
	unsigned more;

	put_little(at, volume->cell, 1);
	put_little(at, volume->as, 1);
	put_little(at, volume->parent, 4);
	put_little(at, volume->restored, 4);
	put_little(at, volume->creation, 4);
	put_little(at, volume->shown_clone, 4);
	put_little(at, volume->shown_backup, 4);
	has_more_clones(volume, &more);
	put_little(at, more, 1);
	for (unsigned i = 2; i < 2 + more; i++) {
		put_little(at, volume->clone_id[i], 4);
		put_little(at, volume->clone_epoch[i], 4);
	}
}

static void decode_cell_members(struct bytes *from, struct volrec *volume)
{
	unsigned more;

	volume->cell = (uint8_t)get_little(from, 1);
	volume->as = (uint8_t)get_little(from, 1);
	volume->parent = (uint32_t)get_little(from, 4);
	volume->restored = (uint32_t)get_little(from, 4);
	volume->creation = (uint32_t)get_little(from, 4);
	volume->shown_clone = (uint32_t)get_little(from, 4);
	volume->shown_backup = (uint32_t)get_little(from, 4);
	more = (unsigned)get_little(from, 1);
	from->bad |= more > VOLREC_CLONES - 2 || volume->as > STORE_TYPES;
	for (unsigned i = 2; !from->bad && i < 2 + more; i++) {
		volume->clone_id[i] = (uint32_t)get_little(from, 4);
		volume->clone_epoch[i] = (uint32_t)get_little(from, 4);
	}
}

size_t volrec_encode(const struct volrec *volume, uint8_t *record)
{
	uint8_t format = choose_volume_format(volume);
	uint8_t *at = record + 4, *crc = record;

	put_little(&at, format, 1);
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
	if (format >= VOLUME_FORMAT_MINIMUM)
		put_little(&at, (uint32_t)volume->minimum, 4);
	if (format >= VOLUME_FORMAT_SNAPSHOT)
		put_little(&at, volume->snapshot, 4);
	if (format == VOLUME_FORMAT_CELL)
		encode_cell_members(&at, volume);
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
	if (format < VOLUME_FORMAT || format > VOLUME_FORMAT_CELL)
		return -EBADMSG;
	volume->id = id;
	decode_volume_numbers(&from, volume);
	if (format != VOLUME_FORMAT)
		volume->minimum = (int32_t)get_little(&from, 4);
	if (format >= VOLUME_FORMAT_SNAPSHOT)
		volume->snapshot = (uint32_t)get_little(&from, 4);
	if (format == VOLUME_FORMAT_CELL)
		decode_cell_members(&from, volume);
	decode_text(&from, volume->name, sizeof(volume->name));
	decode_text(&from, volume->message, sizeof(volume->message));
	if (from.bad || from.left || volume->type > STORE_BACKUP || !volume->group)
		return -EBADMSG;
	return 0;
}
