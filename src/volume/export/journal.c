/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of the FIDs: a header, then entries, each with a checksum over its offset, the
 * random number of the file and its bytes. It is read once, when it is opened; the rest from
 * the first incomplete entry on is dropped. When most of it is obsolete, the file is written again.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rxwire/xdr.h>

#include "common/clock.h"
#include "common/held.h"
#include "volume/export/fids.h"

#define MAGIC	     "rxfsd\0\0\2" /* the last byte is the format */
#define MAGIC_BYTES  8
#define HEAD_BYTES   (MAGIC_BYTES + 8) /* ... and the file's number */
#define FRAME_BYTES  8		       /* length and check sum before each entry */
#define ENTRY_MAX    (64 + 4096)
#define BUFFER_BYTES ((size_t)256 << 10)
#define CHAINS_STEP  128 /* chains of a table that are written under one lock */
#define NODE_BYTES   64	 /* approximate size of an entry; an object has two */
#define REWRITE_MIN  ((uint64_t)4 << 20)
#define RETRY_NS     30000000000ull

enum entry {
	ENTRY_META = 1,
	ENTRY_NODE,
	ENTRY_NAME,
	ENTRY_UNNAME
};

/* -- entries -- */

static uint32_t check_sum(uint64_t nonce, uint64_t offset, const uint8_t *entry, size_t length)
{
	return (uint32_t)(hash_bytes(entry, length, mix_hash(nonce, offset)) >> 32);
}

/* Room for one entry and its frame. Nothing else may be added before finish_entry(). */
static uint8_t *pending_room(struct fids *fids)
{
	size_t need = fids->pending_length + FRAME_BYTES + ENTRY_MAX;

	if (fids->lost)
		return NULL;
	if (need > fids->pending_room) {
		size_t room = need > fids->pending_room * 2 ? need : fids->pending_room * 2;
		uint8_t *more = realloc(fids->pending, room);

		if (!more) { /* the file would be inconsistent without this entry */
			fids->lost = true;
			fids->pending_length = 0;
			return NULL;
		}
		fids->pending = more;
		fids->pending_room = room;
	}
	return fids->pending + fids->pending_length;
}

static void finish_entry(struct fids *fids, uint8_t *frame, const struct rxw_xdr *x)
{
	/* Every entry fits ENTRY_MAX. */
	assert(rxw_xdr_ok(x));
	assert(frame == fids->pending + fids->pending_length);
	rxw_xdr_store32(frame, (uint32_t)rxw_xdr_used(x));
	fids->pending_length += FRAME_BYTES + rxw_xdr_used(x);
}

static void put_meta(struct rxw_xdr *x, const struct fids_meta *meta)
{
	rxw_xdr_put_u32(x, ENTRY_META);
	rxw_xdr_put_u32(x, meta->volume);
	rxw_xdr_put_u32(x, meta->creation);
	rxw_xdr_put_u64(x, meta->root_inode);
	rxw_xdr_put_string(x, meta->root, UINT32_MAX);
}

static void put_node(struct rxw_xdr *x, const struct node *node)
{
	rxw_xdr_put_u32(x, ENTRY_NODE);
	rxw_xdr_put_u32(x, node->vnode);
	rxw_xdr_put_u32(x, node->unique);
	rxw_xdr_put_u32(x, node->kind);
	rxw_xdr_put_u64(x, node->version);
	rxw_xdr_put_u64(x, node->inode);
	rxw_xdr_put_u32(x, node->birth);
	rxw_xdr_put_u64(x, node->seen);
	if (node->dir) {
		rxw_xdr_put_u64(x, node->dir->image_length);
		rxw_xdr_put_u64(x, node->dir->image_hash);
		rxw_xdr_put_u32(x, node->dir->links);
	}
}

static void put_name_entry(struct rxw_xdr *x, enum entry entry, const struct name *name)
{
	rxw_xdr_put_u32(x, entry);
	rxw_xdr_put_u32(x, name->parent->vnode);
	rxw_xdr_put_u32(x, name->node->vnode);
	rxw_xdr_put_string(x, name->text, UINT32_MAX);
}

void journal_node(struct fids *fids, const struct node *node)
{
	uint8_t *frame = pending_room(fids);
	struct rxw_xdr x;

	if (!frame)
		return;
	rxw_xdr_writer(&x, frame + FRAME_BYTES, ENTRY_MAX);
	put_node(&x, node);
	finish_entry(fids, frame, &x);
}

static void add_name_entry(struct fids *fids, enum entry entry, const struct name *name)
{
	uint8_t *frame = pending_room(fids);
	struct rxw_xdr x;

	if (!frame)
		return;
	rxw_xdr_writer(&x, frame + FRAME_BYTES, ENTRY_MAX);
	put_name_entry(&x, entry, name);
	finish_entry(fids, frame, &x);
}

void journal_name(struct fids *fids, const struct name *name)
{
	add_name_entry(fids, ENTRY_NAME, name);
}

void journal_unname(struct fids *fids, const struct name *name)
{
	add_name_entry(fids, ENTRY_UNNAME, name);
}

/* -- reading -- */

static int apply_meta(struct fids *fids, struct rxw_xdr *x)
{
	struct fids_meta *meta = &fids->meta;

	rxw_xdr_get_u32(x, &meta->volume);
	rxw_xdr_get_u32(x, &meta->creation);
	rxw_xdr_get_u64(x, &meta->root_inode);
	rxw_xdr_copy_string(x, sizeof(meta->root) - 1, meta->root);
	fids->has_meta = rxw_xdr_ok(x) && meta->volume;
	return fids->has_meta ? 0 : -EBADMSG;
}

/* Every number is checked: a checksum may match by chance. */
static int apply_node(struct fids *fids, struct rxw_xdr *x)
{
	struct export_record r = {0};
	uint32_t kind = 0;
	struct node *old;

	rxw_xdr_get_u32(x, &r.vnode);
	rxw_xdr_get_u32(x, &r.unique);
	rxw_xdr_get_u32(x, &kind);
	rxw_xdr_get_u64(x, &r.version);
	rxw_xdr_get_u64(x, &r.inode);
	rxw_xdr_get_u32(x, &r.birth);
	rxw_xdr_get_u64(x, &r.seen);
	if (kind == STORE_DIR) {
		rxw_xdr_get_u64(x, &r.image_length);
		rxw_xdr_get_u64(x, &r.image_hash);
		rxw_xdr_get_u32(x, &r.links);
	}
	if (!rxw_xdr_ok(x) || kind < STORE_FILE || kind > STORE_SYMLINK || r.vnode == 0 ||
	    r.unique == 0 || (r.vnode & 1) != (kind == STORE_DIR))
		return -EBADMSG;
	r.kind = (enum store_kind)kind;
	old = fids_find_node(fids, r.vnode);
	if (old && old->unique != r.unique && !old->names && old->vnode != STORE_ROOT_VNODE) {
		fids_drop_node(fids, old, NULL, NULL); /* its vnode was reused */
		old = NULL;
	}
	/* Older than the tables that were written to this file: see write_node_tables(). */
	if (old && (old->unique != r.unique || old->kind != kind))
		return 0;
	if (!fids_put_node(fids, &r))
		return -ENOMEM;
	if (fids->next_vnode[r.vnode & 1] <= r.vnode && r.vnode < 0xfffffffc)
		fids->next_vnode[r.vnode & 1] = r.vnode + 2;
	return 0;
}

static int apply_name(struct fids *fids, struct rxw_xdr *x, enum entry entry)
{
	char text[STORE_NAME_MAX + 1] = "";
	uint32_t parent_number = 0, number = 0;
	struct node *parent, *node;
	struct name *name;

	rxw_xdr_get_u32(x, &parent_number);
	rxw_xdr_get_u32(x, &number);
	rxw_xdr_copy_string(x, STORE_NAME_MAX, text);
	if (!rxw_xdr_ok(x) || !*text || strchr(text, '/') || !strcmp(text, ".") ||
	    !strcmp(text, ".."))
		return -EBADMSG;
	parent = fids_find_node(fids, parent_number);
	node = fids_find_node(fids, number);
	name = parent && parent->dir ? fids_find_name(fids, parent, text) : NULL;
	if (entry == ENTRY_UNNAME) {
		if (name && name->node == node)
			fids_unhook_name(fids, name);
		return 0; /* the node may get another name; see drop_nameless() */
	}
	/* A name that does not fit is older than the tables that were written to this file. */
	if (!parent || !parent->dir || !node || name || node->vnode == STORE_ROOT_VNODE ||
	    (node->dir && fids_is_below(parent, node)))
		return 0;
	return fids_add_name(fids, parent, text, node);
}

static int apply_entry(struct fids *fids, const uint8_t *entry, size_t length)
{
	struct rxw_xdr x;
	uint32_t type = 0;

	rxw_xdr_reader(&x, entry, length);
	rxw_xdr_get_u32(&x, &type);
	if (!fids->has_meta)
		return type == ENTRY_META ? apply_meta(fids, &x) : -EBADMSG;
	switch (type) {
	case ENTRY_NODE:
		return apply_node(fids, &x);
	case ENTRY_NAME:
	case ENTRY_UNNAME:
		return apply_name(fids, &x, (enum entry)type);
	default:
		return -EBADMSG;
	}
}

/* The file through a buffer. */
struct input {
	int fd;
	uint8_t *buffer;
	size_t at, end;
};

/* The next `length` bytes; NULL: end of the file, or -errno in *rc. */
static const uint8_t *take_input(struct input *input, size_t length, int *rc)
{
	while (input->end - input->at < length) {
		memmove(input->buffer, input->buffer + input->at, input->end - input->at);
		input->end -= input->at;
		input->at = 0;

		ssize_t n = read(input->fd, input->buffer + input->end, BUFFER_BYTES - input->end);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			*rc = -errno;
		if (n <= 0)
			return NULL;
		input->end += (size_t)n;
	}
	input->at += length;
	return input->buffer + input->at - length;
}

/* Apply all complete entries. Returns 0 also if the rest is damaged. */
static int replay_entries(struct fids *fids, struct input *input)
{
	const uint8_t *frame, *entry;
	int rc = 0;

	while ((frame = take_input(input, FRAME_BYTES, &rc))) {
		uint32_t length = rxw_xdr_load32(frame), sum = rxw_xdr_load32(frame + 4);

		if (length == 0 || length > ENTRY_MAX)
			break;
		entry = take_input(input, length, &rc);
		if (!entry || check_sum(fids->nonce, fids->offset, entry, length) != sum)
			break;
		rc = apply_entry(fids, entry, length);
		if (rc == -EBADMSG)
			rc = 0, entry = NULL;
		if (rc || !entry)
			break;
		fids->offset += FRAME_BYTES + length;
	}
	return rc;
}

/* At the end: remove nodes without a name. */
static void drop_nameless(struct fids *fids)
{
	for (size_t i = 0; i < fids->nodes.size; i++) {
		struct node *node = *htable_chain(&fids->nodes, i);

		while (node) {
			if (node->names || node->vnode == STORE_ROOT_VNODE) {
				node = node->by_vnode;
				continue;
			}
			/* This may remove other nodes of the chain: start again. */
			fids_drop_node(fids, node, NULL, NULL);
			node = *htable_chain(&fids->nodes, i);
		}
	}
}

static int read_journal(struct fids *fids, uint64_t size)
{
	struct input input = {.fd = fids->fd, .buffer = malloc(BUFFER_BYTES)};
	const uint8_t *head;
	int rc = 0;

	if (!input.buffer)
		return -ENOMEM;
	head = take_input(&input, HEAD_BYTES, &rc);
	if (rc)
		goto out;
	rc = -EILSEQ;
	if (!head || memcmp(head, MAGIC, MAGIC_BYTES) != 0)
		goto out;
	fids->nonce = rxw_xdr_load64(head + MAGIC_BYTES);
	fids->offset = HEAD_BYTES;
	rc = replay_entries(fids, &input);
	if (!rc && (!fids->has_meta || !fids_find_node(fids, STORE_ROOT_VNODE)))
		rc = -EBADMSG;
out:
	free(input.buffer);
	if (rc)
		return rc;
	drop_nameless(fids);
	if (fids->offset < size) {
		export_log_line(
			&fids->log, EXPORT_WARNING,
			"%s: the last %llu of %llu bytes are damaged or incomplete and were "
			"dropped; clients fetch the files concerned again",
			fids->path, (unsigned long long)(size - fids->offset),
			(unsigned long long)size);
		/* If the rest cannot be removed, the whole file is written again. */
		if (ftruncate(fids->fd, (off_t)fids->offset) < 0)
			fids->lost = true;
	}
	return 0;
}

int journal_open(struct fids *fids)
{
	struct stat st;

	fids->fd = open(fids->path, O_RDWR | O_CLOEXEC);
	if (fids->fd < 0 && errno == ENOENT)
		fids->fd = open(fids->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fids->fd < 0 || fstat(fids->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EILSEQ;
	return st.st_size == 0 ? 0 : read_journal(fids, (uint64_t)st.st_size);
}

/* -- writing -- */

static int write_journal_bytes(int fd, const uint8_t *bytes, size_t length, uint64_t offset)
{
	while (length) {
		ssize_t n = pwrite(fd, bytes, length, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		offset += (uint64_t)n;
		length -= (size_t)n;
	}
	return 0;
}

/* Add the checksums to entries that will be written at `offset`. */
static void seal_entries(uint8_t *bytes, size_t length, uint64_t nonce, uint64_t offset)
{
	for (size_t at = 0; at < length;) {
		size_t n = rxw_xdr_load32(bytes + at);

		assert(n > 0 && n <= ENTRY_MAX && n <= length - at - FRAME_BYTES);
		rxw_xdr_store32(bytes + at + 4,
				check_sum(nonce, offset + at, bytes + at + FRAME_BYTES, n));
		at += FRAME_BYTES + n;
	}
}

/* A file that will replace the old one. */
struct output {
	int fd, rc;
	uint64_t nonce, offset;
	uint8_t *buffer;
	size_t length;
};

static void output_flush(struct output *out)
{
	seal_entries(out->buffer, out->length, out->nonce, out->offset);
	if (!out->rc)
		out->rc = write_journal_bytes(out->fd, out->buffer, out->length, out->offset);
	out->offset += out->length;
	out->length = 0;
}

static void output_begin(struct output *out, struct rxw_xdr *x)
{
	rxw_xdr_writer(x, out->buffer + out->length + FRAME_BYTES, ENTRY_MAX);
}

static void output_end(struct output *out, const struct rxw_xdr *x)
{
	assert(rxw_xdr_ok(x));
	rxw_xdr_store32(out->buffer + out->length, (uint32_t)rxw_xdr_used(x));
	out->length += FRAME_BYTES + rxw_xdr_used(x);
	assert(out->length <= BUFFER_BYTES);
}

/*
 * All objects, then all names. Other threads change the tables meanwhile; the entries of their
 * changes are appended afterwards, so an entry that is newer or older than its neighbours does no
 * harm.
 */
static void write_node_tables(struct fids *fids, struct output *out)
{
	const struct htable *tables[2] = {&fids->nodes, &fids->names};

	for (int pass = 0; pass < 2; pass++) {
		bool more = true;

		for (size_t i = 0; more && !out->rc;) {
			/* Leaves room for the rest of a chain of usual length. */
			size_t full = BUFFER_BYTES / 2;

			pthread_rwlock_rdlock(&fids->lock);
			for (size_t end = i + CHAINS_STEP;
			     i < end && i < tables[pass]->size && out->length < full; i++) {
				void *item = *htable_chain(tables[pass], i);

				for (; item; item = *htable_link(tables[pass], item)) {
					struct rxw_xdr x;

					if (out->length >= BUFFER_BYTES - FRAME_BYTES - ENTRY_MAX)
						output_flush(out);
					output_begin(out, &x);
					if (pass == 0)
						put_node(&x, item);
					else
						put_name_entry(&x, ENTRY_NAME, item);
					output_end(out, &x);
				}
			}
			more = i < tables[pass]->size;
			pthread_rwlock_unlock(&fids->lock);
			output_flush(out);
		}
	}
}

static void write_new(struct fids *fids, struct output *out)
{
	struct rxw_xdr x;

	memcpy(out->buffer, MAGIC, MAGIC_BYTES);
	rxw_xdr_store64(out->buffer + MAGIC_BYTES, out->nonce);
	out->rc = write_journal_bytes(out->fd, out->buffer, HEAD_BYTES, 0);
	out->offset = HEAD_BYTES;
	output_begin(out, &x);
	put_meta(&x, &fids->meta);
	output_end(out, &x);
	write_node_tables(fids, out);
	if (!out->rc && fsync(out->fd) < 0)
		out->rc = -errno;
}

int journal_rewrite(struct fids *fids)
{
	struct output out = {.fd = -1, .buffer = malloc(BUFFER_BYTES)};
	size_t length = strlen(fids->path) + 5;
	char *path = malloc(length);

	assert(mutex_is_held(&fids->writing));
	if (!out.buffer || !path) {
		out.rc = -ENOMEM;
	} else if (getrandom(&out.nonce, sizeof(out.nonce), 0) != sizeof(out.nonce)) {
		out.rc = -EIO;
	} else {
		snprintf(path, length, "%s.new", fids->path);
		out.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (out.fd < 0)
			out.rc = -errno;
		else
			write_new(fids, &out);
		if (!out.rc && rename(path, fids->path) < 0)
			out.rc = -errno;
		if (out.rc && out.fd >= 0)
			unlink(path);
	}
	if (out.rc) {
		if (out.fd >= 0)
			close(out.fd);
	} else {
		close(fids->fd);
		fids->fd = out.fd;
		fids->nonce = out.nonce;
		fids->offset = out.offset;
	}
	free(out.buffer);
	free(path);
	return out.rc;
}

/* Take the pending entries. */
static uint8_t *take_pending(struct fids *fids, size_t *length)
{
	uint8_t *bytes;

	pthread_rwlock_wrlock(&fids->lock);
	bytes = fids->pending;
	*length = fids->pending_length;
	fids->pending = NULL;
	fids->pending_length = fids->pending_room = 0;
	pthread_rwlock_unlock(&fids->lock);
	return bytes;
}

static void set_lost(struct fids *fids, bool lost)
{
	pthread_rwlock_wrlock(&fids->lock);
	fids->lost = lost;
	if (lost)
		fids->pending_length = 0;
	pthread_rwlock_unlock(&fids->lock);
}

static void report_failed_write(struct fids *fids, int rc)
{
	if (!fids->said)
		export_log_line(&fids->log, EXPORT_WARNING,
				"cannot write %s: %s; files are still served, but new FIDs "
				"change when the server is restarted",
				fids->path, strerror(-rc));
	fids->said = true;
	fids->retry_ns = monotonic_ns() + RETRY_NS;
}

static void rewrite_journal(struct fids *fids)
{
	int rc;

	/* From now on changes are collected for the new file. */
	set_lost(fids, false);
	rc = journal_rewrite(fids);
	if (rc) {
		set_lost(fids, true);
		report_failed_write(fids, rc);
	} else if (fids->said) {
		fids->said = false;
		export_log_line(&fids->log, EXPORT_INFO, "%s has been written again", fids->path);
	}
}

static void write_pending(struct fids *fids)
{
	size_t length;
	uint8_t *bytes = take_pending(fids, &length);
	int rc;

	seal_entries(bytes, length, fids->nonce, fids->offset);
	rc = write_journal_bytes(fids->fd, bytes, length, fids->offset);
	free(bytes);
	if (!rc) {
		fids->offset += length;
		return;
	}
	/* Remove what may have been written in part. */
	if (ftruncate(fids->fd, (off_t)fids->offset) < 0)
		rc = rc ? rc : -errno;
	set_lost(fids, true);
	report_failed_write(fids, rc);
}

static bool has_outgrown(struct fids *fids)
{
	uint64_t live;

	pthread_rwlock_rdlock(&fids->lock);
	live = (uint64_t)fids->nodes.count * NODE_BYTES * 2;
	pthread_rwlock_unlock(&fids->lock);
	return fids->offset > REWRITE_MIN && fids->offset > 3 * live;
}

void journal_flush(struct fids *fids)
{
	/* The holder of `writing` checks again after releasing it. */
	while ((fids->pending_length || (fids->lost && monotonic_ns() >= fids->retry_ns)) &&
	       pthread_mutex_trylock(&fids->writing) == 0) {
		if (fids->lost || has_outgrown(fids))
			rewrite_journal(fids);
		if (!fids->lost && fids->pending_length)
			write_pending(fids);
		pthread_mutex_unlock(&fids->writing);
	}
}

void journal_close(struct fids *fids)
{
	if (fids->fd >= 0) {
		fids->retry_ns = 0;
		journal_flush(fids);
		fsync(fids->fd);
		close(fids->fd);
	}
	free(fids->pending);
}

/* -- the log -- */

void export_log_line(const struct export_log *log, int level, const char *format, ...)
{
	char line[1024];
	va_list ap;

	if (!log->line)
		return;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	log->line(log->arg, level, line);
}
