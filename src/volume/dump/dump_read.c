/* SPDX-License-Identifier: BSD-2-Clause */
/* A dump becomes a volume. Its bytes come from anywhere: everything is checked before it is used. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/dir.h"
#include "volume/dump/dump.h"
#include "volume/dump/dump_format.h"

#define BUFFER	   ((size_t)256 << 10)
#define DIR_BYTES  ((uint64_t)AFS_DIR_PAGE * AFS_DIR_PAGES_MAX)
#define UNIQUE_TOP 0xff000000u /* so that others can follow */
#define FILE_TOP   ((uint64_t)INT64_MAX)

struct dump_reader {
	struct store *store;
	struct dump_input input;
	char *message;
	uint8_t *buffer;
	size_t used, filled;
	uint64_t before;   /* bytes of the stream that were in the buffer earlier */
	int failed;	   /* the result of the input */
	uint8_t *contents; /* of a directory, link or small file: at most DIR_BYTES */
	int tag;	   /* that was read, and is not done; -1: none */
	bool required;	   /* it must be known */
	uint32_t from;	   /* of the header: 0: a complete dump */
	uint32_t state,
		wanted; /* of the vnodes that are only named, in the volume and by the dump */
	bool stated;	/* the dump has it */
	struct dump_counts *counts;
};

/* -- bytes -- */

static uint64_t offset_of(const struct dump_reader *reader)
{
	assert(reader->used <= reader->filled && reader->filled <= BUFFER);
	return reader->before + reader->used;
}

__attribute__((format(printf, 2, 3))) static int refuse_dump(struct dump_reader *reader,
							     const char *format, ...)
{
	char text[STORE_MESSAGE_MAX - 100];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(reader->message, STORE_MESSAGE_MAX, "at byte %" PRIu64 ": %s", offset_of(reader),
		 text);
	return -EBADMSG;
}

static int fill_buffer(struct dump_reader *reader)
{
	ssize_t n;

	assert(reader->used == reader->filled);
	reader->before += reader->filled;
	reader->used = reader->filled = 0;
	n = reader->input.read(reader->input.arg, reader->buffer, BUFFER);
	if (n > 0) {
		reader->filled = (size_t)n;
		return 0;
	}
	reader->failed = (int)n;
	return n < 0 ? (int)n
		     : refuse_dump(reader,
				   "the dump ends here, before its end mark; it was cut off: use "
				   "another copy, or dump the volume again");
}

static int get_dump_bytes(struct dump_reader *reader, void *bytes, size_t length)
{
	int result = 0;

	while (length && !result) {
		size_t part = reader->filled - reader->used;

		part = part < length ? part : length;
		if (bytes) {
			memcpy(bytes, reader->buffer + reader->used, part);
			bytes = (uint8_t *)bytes + part;
		}
		reader->used += part;
		length -= part;
		if (length)
			result = fill_buffer(reader);
	}
	return result;
}

/* A number of up to 8 bytes. */
static int get_dump_number(struct dump_reader *reader, unsigned size, uint64_t *value)
{
	uint8_t bytes[8];
	int result;

	assert(size > 0 && size <= sizeof(bytes));
	result = get_dump_bytes(reader, bytes, size);
	*value = 0;
	for (unsigned i = 0; i < size && !result; i++)
		*value = *value << 8 | bytes[i];
	return result;
}

static int get_dump_word(struct dump_reader *reader, uint32_t *value)
{
	uint64_t number;
	int result = get_dump_number(reader, 4, &number);

	*value = (uint32_t)number;
	return result;
}

/* A text that ends with a NUL, with `size` bytes with that. */
static int get_dump_text(struct dump_reader *reader, char *text, size_t size, const char *what)
{
	for (size_t at = 0; at < size; at++) {
		int result = get_dump_bytes(reader, &text[at], 1);

		if (result || !text[at])
			return result;
		if ((unsigned char)text[at] < ' ' || text[at] == 0x7f)
			text[at] = '?';
	}
	return refuse_dump(reader, "%s is longer than %zu bytes", what, size - 1);
}

static int skip_bytes(struct dump_reader *reader, uint64_t length)
{
	int result = 0;

	while (length && !result) {
		size_t part = length < BUFFER ? (size_t)length : BUFFER;

		result = get_dump_bytes(reader, NULL, part);
		length -= part;
	}
	return result;
}

/* -- tags -- */

static int next_tag(struct dump_reader *reader)
{
	uint8_t tag;
	int result = get_dump_bytes(reader, &tag, 1);

	reader->required = false;
	while (!result && tag == 0x7e) {
		reader->required = true;
		result = get_dump_bytes(reader, &tag, 1);
	}
	reader->tag = tag;
	return result;
}

/* A member with its length before it. */
static int skip_counted(struct dump_reader *reader)
{
	uint64_t length;
	int result = get_dump_number(reader, 1, &length);

	if (!result && length > 0x80 && length <= 0x88)
		result = get_dump_number(reader, (unsigned)length - 0x80, &length);
	else if (!result && length >= 0x80)
		return refuse_dump(reader, "member 0x%02x has a length of an unknown form",
				   (unsigned)reader->tag);
	return result ? result : skip_bytes(reader, length);
}

/* A member that this version does not know. */
static int skip_unknown(struct dump_reader *reader)
{
	unsigned tag = (unsigned)reader->tag;

	if (reader->required)
		return refuse_dump(reader,
				   "member 0x%02x is unknown, and says that it must not be: use a "
				   "newer version",
				   tag);
	if (tag > DUMP_MARKS && tag <= 0x60)
		return skip_counted(reader);
	if (tag >= 0x61 && tag <= 0x7a)
		return skip_bytes(reader, 4);
	if (tag >= 0x7b && tag <= 0x7f)
		return 0;
	return refuse_dump(reader, "0x%02x is no member of a dump: it is damaged, or not a dump",
			   tag);
}

/* -- headers -- */

static int read_dump_dates(struct dump_reader *reader, struct dump_info *info)
{
	uint64_t count;
	uint32_t to;
	int result = get_dump_number(reader, 2, &count);

	if (!result && count < 2)
		return refuse_dump(reader, "the dump has no dates");
	if (!result)
		result = get_dump_word(reader, &info->from);
	if (!result)
		result = get_dump_word(reader, &to);
	return result ? result : skip_bytes(reader, 4 * (count - 2));
}

static int read_dump_header(struct dump_reader *reader, struct dump_info *info)
{
	char name[256];
	uint32_t version;
	bool dated = false;
	uint32_t magic;
	int result = next_tag(reader);

	if (!result)
		result = get_dump_word(reader, &magic);
	if (result == -EBADMSG ||
	    (!result && (reader->tag != DUMP_HEADER || magic != DUMP_BEGIN_MAGIC)))
		return refuse_dump(reader,
				   "this is not a dump of a volume; give what \"rxvol dump\" "
				   "or \"vos dump\" wrote, decompressed");
	if (!result)
		result = get_dump_word(reader, &version);
	while (!result && !(result = next_tag(reader)) && reader->tag > DUMP_MARKS) {
		if (reader->tag == 'v')
			result = get_dump_word(reader, &info->id);
		else if (reader->tag == 'n')
			result = get_dump_text(reader, name, sizeof(name), "the volume's name");
		else if (reader->tag == 't')
			result = read_dump_dates(reader, info);
		else if (reader->tag == DUMP_BASE)
			result = get_dump_word(reader, &info->base);
		else
			result = skip_unknown(reader);
		dated |= reader->tag == 't';
	}
	if (!result && (!info->id || !dated))
		return refuse_dump(reader, "the header has no %s",
				   dated ? "number of a volume" : "dates");
	return result;
}

/* The size of a member of the volume header that is a number, or 0. */
static unsigned volume_member_size(int tag)
{
	if (strchr("sbt", tag))
		return 1;
	return strchr("ivupcqmdfaoCAUEBDZV", tag) ? 4 : 0;
}

static int read_week(struct dump_reader *reader)
{
	uint64_t count;
	int result = get_dump_number(reader, 2, &count);

	return result ? result : skip_bytes(reader, 4 * count);
}

static void take_volume_number(struct store_header *header, int tag, uint32_t value)
{
	struct store_volume *volume = &header->volume;

	switch (tag) {
	case 'i':
		volume->id = value;
		break;
	case 's':
		volume->online = value != 0;
		break;
	case 'u':
		header->next_unique = value < UNIQUE_TOP ? value : UNIQUE_TOP;
		break;
	case 't':
		volume->type = value == DUMP_RW	  ? STORE_RW
			       : value == DUMP_RO ? STORE_RO
						  : STORE_BACKUP;
		break;
	case 'p':
		volume->rw = value;
		break;
	case 'q':
		volume->quota_kib = value > INT32_MAX ? 0 : value;
		break;
	case 'm':
		volume->minimum = (int32_t)value;
		break;
	case 'o':
		header->owner = (int32_t)value;
		break;
	case 'C':
		volume->created = value;
		break;
	case 'U':
		volume->updated = value;
		break;
	case 'B':
		volume->cloned = value;
		break;
	default:
		break;
	}
}

/* Reads from behind its mark to the next one, which reader->tag is then. */
static int read_volume_header(struct dump_reader *reader, struct dump_info *info)
{
	struct store_header *header = &info->header;
	char text[256];
	int result = 0;

	assert(reader->tag == DUMP_VOLUME);
	*header = (struct store_header){.volume.online = true};
	while (!result && !(result = next_tag(reader)) && reader->tag > DUMP_MARKS) {
		unsigned size = volume_member_size(reader->tag);
		uint64_t value;

		if (reader->tag == 'n') {
			result = get_dump_text(reader, header->volume.name,
					       sizeof(header->volume.name), "the volume's name");
		} else if (reader->tag == 'O' || reader->tag == 'M') {
			result = get_dump_text(reader, text, sizeof(text), "a message");
		} else if (reader->tag == 'W') {
			result = read_week(reader);
		} else if (reader->tag == DUMP_STATE) {
			result = get_dump_word(reader, &reader->wanted);
			reader->stated = true;
		} else if (size) {
			result = get_dump_number(reader, size, &value);
			take_volume_number(header, reader->tag, (uint32_t)value);
		} else {
			result = skip_unknown(reader);
		}
	}
	return result;
}

/* -- vnodes -- */

/* A vnode that is being read. */
struct incoming {
	struct store_vnode vnode;
	bool any, parented, data,
		large; /* has members; its directory; its data; they were written */
	bool listed;   /* it has an access list */
};

static int read_acl(struct dump_reader *reader, struct incoming *in)
{
	struct store_acl *acl = &in->vnode.acl;
	uint32_t word[DUMP_ACL / 4];
	uint32_t total, positive, negative;
	int result = 0;

	for (unsigned i = 0; i < DUMP_ACL / 4 && !result; i++)
		result = get_dump_word(reader, &word[i]);
	if (result)
		return result;
	total = word[2];
	positive = word[3];
	negative = word[4];
	if (word[1] != 1 || total > DUMP_ACL_MOST || positive > total ||
	    negative > total - positive || positive + negative > STORE_ACL_MAX)
		return refuse_dump(reader, "the access list of directory %u is damaged",
				   in->vnode.vnode);
	*acl = (struct store_acl){0};
	for (uint32_t i = 0; i < positive + negative && !result; i++) {
		/* Negative entries are the last ones of all, in descending order. */
		uint32_t at = i < positive ? i : total - 1 - (i - positive);

		result = store_acl_add(acl, i >= positive, (int32_t)word[5 + 2 * at],
				       word[6 + 2 * at]);
	}
	in->listed = true;
	return result ? refuse_dump(reader, "the access list of directory %u has too many entries",
				    in->vnode.vnode)
		      : 0;
}

static int check_kind(struct dump_reader *reader, struct incoming *in)
{
	uint32_t kind = in->vnode.kind;

	if (kind != STORE_FILE && kind != STORE_DIR && kind != STORE_SYMLINK)
		return refuse_dump(reader, "vnode %u has the unknown type %u", in->vnode.vnode,
				   kind);
	if ((kind == STORE_DIR) != (in->vnode.vnode & 1))
		return refuse_dump(reader, "vnode %u is %s, which needs an %s number",
				   in->vnode.vnode,
				   kind == STORE_DIR ? "a directory" : "no directory",
				   kind == STORE_DIR ? "odd" : "even");
	return 0;
}

static int check_dump_length(struct dump_reader *reader, const struct incoming *in)
{
	const struct store_vnode *v = &in->vnode;

	if (v->kind == STORE_DIR &&
	    (!v->length || v->length % AFS_DIR_PAGE || v->length > DIR_BYTES))
		return refuse_dump(reader,
				   "directory %u has %" PRIu64
				   " bytes; it must have 1 to %d pages of "
				   "%d",
				   v->vnode, v->length, AFS_DIR_PAGES_MAX, AFS_DIR_PAGE);
	if (v->kind == STORE_SYMLINK && (!v->length || v->length > STORE_TEXT_MAX))
		return refuse_dump(reader, "link %u has %" PRIu64 " bytes; it must have 1 to %d",
				   v->vnode, v->length, STORE_TEXT_MAX);
	if (v->length > FILE_TOP)
		return refuse_dump(reader, "file %u has %" PRIu64 " bytes, which is too many",
				   v->vnode, v->length);
	return 0;
}

static int report_read_progress(struct dump_reader *reader)
{
	const struct dump_input *input = &reader->input;

	reader->counts->bytes = offset_of(reader);
	return input->progress && input->progress(input->arg, reader->counts->bytes,
						  reader->counts->objects)
		       ? -EINTR
		       : 0;
}

/* Store the bytes of the file as they come. */
static int pass_contents(struct dump_reader *reader, struct store_writer *writer, uint64_t length)
{
	int result = 0;

	while (length && !result) {
		size_t part = reader->filled - reader->used;
		struct iovec iov = {reader->buffer + reader->used,
				    part < length ? part : (size_t)length};

		if (!part) {
			result = fill_buffer(reader);
			continue;
		}
		result = reader->store->ops->write(writer, &iov, 1);
		reader->used += iov.iov_len;
		length -= iov.iov_len;
		if (!result)
			result = report_read_progress(reader);
	}
	return result;
}

/* -- whether an incremental dump fits to the volume -- */

/* A vnode that comes in full is not older than the one that is there. */
static int check_age(struct dump_reader *reader, struct store_restore *restore,
		     const struct store_vnode *v)
{
	struct store_vnode now;
	int result = reader->from && reader->input.fits
			     ? store_restore_look(restore, v->vnode, &now)
			     : STORE_VNOVNODE;

	if (result)
		return result == STORE_VNOVNODE || result == -EIO ? 0 : result;
	if (now.unique != v->unique || (int32_t)((uint32_t)now.version - (uint32_t)v->version) <= 0)
		return 0;
	return refuse_dump(reader,
			   "vnode %u is newer in the volume, with the data version %" PRIu64
			   " and not %" PRIu64
			   "; restore dumps in the order in which they were made, or have this one "
			   "replace what there is with --replace",
			   v->vnode, now.version, v->version);
}

/* Add a vnode that stays as it is to the state of the volume. */
static int note_kept_vnode(struct dump_reader *reader, struct store_restore *restore,
			   const struct store_vnode *v)
{
	struct store_vnode now;
	int result =
		reader->input.fits ? store_restore_look(restore, v->vnode, &now) : STORE_VNOVNODE;

	if (!result)
		reader->state = dump_add_state(reader->state, &now);
	return result == STORE_VNOVNODE ? 0 : result;
}

static int check_state(struct dump_reader *reader)
{
	if (!reader->stated || !reader->input.fits || reader->state == reader->wanted)
		return 0;
	return refuse_dump(
		reader,
		"the volume has another state than the one in which the dump begins; restore "
		"the dump before this one first, or have it replace what there is with "
		"--replace");
}

/* A result of store_restore_put() and the like for a vnode. */
static int refuse_vnode(struct dump_reader *reader, const struct store_vnode *v, int result)
{
	switch (result) {
	case -EEXIST:
		return refuse_dump(reader, "vnode %u comes a second time", v->vnode);
	case -ENOENT:
		return refuse_dump(reader, "vnode %u is in directory %u, which did not come",
				   v->vnode, v->parent);
	case -EBADMSG:
		return refuse_dump(reader, "%s %u is damaged",
				   v->kind == STORE_DIR ? "directory" : "link", v->vnode);
	default:
		return result;
	}
}

static int store_large(struct dump_reader *reader, struct store_restore *restore,
		       struct incoming *in)
{
	struct store_changes changes = {0};
	struct store_status status;
	struct store_writer *writer;
	int result = check_age(reader, restore, &in->vnode);

	if (result)
		return result;
	result = store_restore_put(restore, &in->vnode, NULL);
	assert(in->vnode.kind == STORE_FILE && in->parented && !in->large);
	if (result)
		return refuse_vnode(reader, &in->vnode, result);
	result = store_restore_write(restore, &in->vnode, &writer);
	if (result)
		return result;
	result = pass_contents(reader, writer, in->vnode.length);
	if (result) {
		reader->store->ops->write_abort(writer);
		return result;
	}
	in->large = true;
	return reader->store->ops->write_commit(writer, &status, &changes);
}

/* `size`: bytes of the length. */
static int read_contents(struct dump_reader *reader, struct store_restore *restore,
			 struct incoming *in, unsigned size)
{
	struct store_vnode *v = &in->vnode;
	uint64_t length;
	int result = get_dump_number(reader, size, &length);

	if (result)
		return result;
	/* Only the first data count. */
	if (in->data)
		return skip_bytes(reader, length);
	v->length = length;
	if (!v->kind)
		return refuse_dump(reader, "vnode %u has data before its type", v->vnode);
	result = check_dump_length(reader, in);
	if (result)
		return result;
	in->data = true;
	assert(v->kind == STORE_FILE || length <= DIR_BYTES);
	if (v->kind != STORE_FILE || length <= store_restore_small(restore))
		return get_dump_bytes(reader, reader->contents, (size_t)length);
	if (!in->parented)
		return refuse_dump(reader, "file %u has data before the number of its directory",
				   v->vnode);
	return store_large(reader, restore, in);
}

/* The size of a member that is a number, or 0. */
static unsigned vnode_member_size(int tag)
{
	switch (tag) {
	case 't':
		return 1;
	case 'l':
	case 'b':
		return 2;
	default:
		return tag && strchr("vmaogpsu", tag) ? 4 : 0;
	}
}

static void take_vnode_number(struct incoming *in, int tag, uint32_t value)
{
	struct store_vnode *v = &in->vnode;

	switch (tag) {
	case 't':
		v->kind = (enum store_kind)value;
		break;
	case 'l':
		v->links = value;
		break;
	case 'v':
		v->version = value;
		break;
	case 'm':
		v->client_mtime = value;
		break;
	case 'a':
		v->author = (int32_t)value;
		break;
	case 'o':
		v->owner = (int32_t)value;
		break;
	case 'g':
		v->group = value;
		break;
	case 'b':
		v->mode = value & 07777;
		break;
	case 'p':
		/* The parent of the root is 0. */
		if (v->vnode != STORE_ROOT_VNODE)
			v->parent = value;
		in->parented = true;
		break;
	case 's':
		v->server_mtime = value;
		break;
	default:
		break;
	}
}

static int read_vnode_member(struct dump_reader *reader, struct store_restore *restore,
			     struct incoming *in)
{
	unsigned size = vnode_member_size(reader->tag);
	uint64_t value;
	int result;

	in->any = true;
	if (reader->tag == 'f' || reader->tag == 'h')
		return read_contents(reader, restore, in, reader->tag == 'f' ? 4 : 8);
	if (reader->tag == 'A')
		return read_acl(reader, in);
	if (!size)
		return skip_unknown(reader);
	result = get_dump_number(reader, size, &value);
	if (result)
		return result;
	/* The transaction of its data has used these members. */
	if (in->data && (reader->tag == 't' || reader->tag == 'p'))
		return refuse_dump(reader, "vnode %u: member '%c' comes after its data",
				   in->vnode.vnode, reader->tag);
	take_vnode_number(in, reader->tag, (uint32_t)value);
	return reader->tag == 't' ? check_kind(reader, in) : 0;
}

/*
 * The names of an image that this store would lay out in another way, in an image of its own: *length bytes of reader->contents.
 */
static int rebuild_directory(struct dump_reader *reader, const struct store_vnode *v,
			     uint64_t *length)
{
	struct afs_dir_entry entry, up = {0};
	struct afs_dir dir;
	uint32_t cursor = 0;
	uint8_t *image;
	size_t size;
	int more = 0, result = 0;

	if (afs_dir_check(reader->contents, v->length))
		return -EBADMSG;
	while (afs_dir_next(reader->contents, v->length, &cursor, &entry) == 1)
		if (!strcmp(entry.name, ".."))
			up = entry;
	if (afs_dir_begin(&dir, v->vnode, v->unique, up.vnode, up.unique))
		return -ENOMEM;
	cursor = 0;
	while (!result && (more = afs_dir_next(reader->contents, v->length, &cursor, &entry)) == 1)
		if (strcmp(entry.name, ".") && strcmp(entry.name, ".."))
			result = afs_dir_add(&dir, entry.name, entry.length, entry.vnode,
					     entry.unique);
	image = !result && !more ? afs_dir_take(&dir, &size) : NULL;
	if (!image) {
		afs_dir_destroy(&dir);
		return -EBADMSG;
	}
	assert(size <= DIR_BYTES);
	memcpy(reader->contents, image, size);
	free(image);
	*length = size;
	return 0;
}

static int put_incoming(struct dump_reader *reader, struct store_restore *restore,
			struct incoming *in)
{
	struct store_vnode *v = &in->vnode;
	int result = check_age(reader, restore, v);

	assert(!in->large);
	if (result)
		return result;
	result = store_restore_put(restore, v, reader->contents);
	if (result != -EBADMSG || v->kind != STORE_DIR)
		return result;
	result = rebuild_directory(reader, v, &v->length);
	return result ? result : store_restore_put(restore, v, reader->contents);
}

static int finish_vnode(struct dump_reader *reader, struct store_restore *restore,
			struct incoming *in)
{
	struct store_vnode *v = &in->vnode;
	int result;

	assert(!in->large || in->data);
	if (!in->any) {
		reader->counts->unchanged++;
		result = note_kept_vnode(reader, restore, v);
		if (!result)
			result = store_restore_keep(restore, v->vnode, v->unique);
		return result == -ENOENT
			       ? refuse_dump(
					 reader,
					 "the dump says that vnode %u.%u has not changed, but the "
					 "volume does not have it: restore the dump before this "
					 "one first",
					 v->vnode, v->unique)
			       : refuse_vnode(reader, v, result);
	}
	if (!v->kind)
		return refuse_dump(reader, "vnode %u has no type", v->vnode);
	result = in->data ? 0 : check_dump_length(reader, in);
	if (!result && v->kind == STORE_DIR && !in->listed)
		return refuse_dump(reader, "directory %u has no access list", v->vnode);
	if (!result && v->kind == STORE_DIR && reader->input.permit)
		result = reader->input.permit(reader->input.arg, &v->acl, v->vnode);
	if (result)
		return result;
	reader->counts->objects++;
	result = in->large ? store_restore_stamp(restore, v) : put_incoming(reader, restore, in);
	return result ? refuse_vnode(reader, v, result) : report_read_progress(reader);
}

static int read_vnode(struct dump_reader *reader, struct store_restore *restore)
{
	struct incoming in = {0};
	struct store_vnode *v = &in.vnode;
	int result = get_dump_word(reader, &v->vnode);

	assert(reader->tag == DUMP_VNODE);
	if (!result)
		result = get_dump_word(reader, &v->unique);
	if (result)
		return result;
	if (!v->vnode || v->vnode >= STORE_RESTORE_VNODE_MAX)
		return refuse_dump(reader, "the number of vnode %u must be 1 to %u", v->vnode,
				   STORE_RESTORE_VNODE_MAX - 1);
	if (!v->unique || v->unique >= UNIQUE_TOP)
		return refuse_dump(reader, "vnode %u has the uniquifier %u, which must be 1 to %u",
				   v->vnode, v->unique, UNIQUE_TOP - 1);
	v->links = 1;
	v->parent = v->vnode == STORE_ROOT_VNODE ? STORE_ROOT_VNODE : 0;
	while (!result && !(result = next_tag(reader)) && reader->tag > DUMP_MARKS)
		result = read_vnode_member(reader, restore, &in);
	return result ? result : finish_vnode(reader, restore, &in);
}

/* -- the whole -- */

static int read_end_mark(struct dump_reader *reader)
{
	uint32_t magic;
	uint8_t byte;
	ssize_t n;
	int result = get_dump_word(reader, &magic);

	assert(reader->tag == DUMP_END);
	if (result)
		return result;
	if (magic != DUMP_END_MAGIC)
		return refuse_dump(reader, "the end mark is damaged");
	if (reader->used == reader->filled) {
		n = reader->input.read(reader->input.arg, &byte, 1);
		if (n <= 0)
			return (int)n;
	}
	return refuse_dump(reader,
			   "something follows the end of the dump; give one dump at a time");
}

int dump_read_vnodes(struct dump_reader *reader, struct store_restore *restore,
		     struct dump_info *info, struct dump_counts *counts)
{
	int result = 0;

	*counts = (struct dump_counts){0};
	reader->counts = counts;
	while (!result && reader->tag != DUMP_END) {
		if (reader->tag == DUMP_VNODE)
			result = read_vnode(reader, restore);
		else if (reader->tag == DUMP_VOLUME)
			result = read_volume_header(reader, info);
		else
			result = refuse_dump(reader, "0x%02x begins no part of a dump",
					     (unsigned)reader->tag);
	}
	if (!result)
		result = read_end_mark(reader);
	if (!result)
		result = check_state(reader);
	counts->bytes = offset_of(reader);
	return result;
}

int dump_read_begin(struct store *store, const struct dump_input *input, struct dump_reader **out,
		    struct dump_info *info, char *message)
{
	struct dump_reader *reader = calloc(1, sizeof(*reader));
	int result = -ENOMEM;

	message[0] = '\0';
	*info = (struct dump_info){0};
	*out = reader;
	if (!reader)
		return -ENOMEM;
	reader->store = store;
	reader->input = *input;
	reader->message = message;
	reader->buffer = malloc(BUFFER);
	reader->contents = malloc(DIR_BYTES);
	if (reader->buffer && reader->contents)
		result = read_dump_header(reader, info);
	reader->from = info->from;
	if (!result && reader->tag != DUMP_VOLUME)
		result = refuse_dump(reader, "the dump has no header of the volume");
	if (!result)
		result = read_volume_header(reader, info);
	if (result) {
		dump_read_end(reader);
		*out = NULL;
	}
	return result;
}

void dump_read_end(struct dump_reader *reader)
{
	if (!reader)
		return;
	free(reader->buffer);
	free(reader->contents);
	free(reader);
}
