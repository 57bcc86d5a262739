/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a volume store: a header, then entries, each with a checksum over its offset, the
 * random number of the file and its bytes. It is read once, when the store is opened; the rest from
 * the first incomplete entry on is dropped. When most of it is obsolete, the file is written again.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rxwire/xdr.h>

#include "afs/numbers.h"
#include "common/clock.h"
#include "common/held.h"
#include "fileserver/base/base.h"
#include "fileserver/export/fids_private.h"

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
	return (uint32_t)(fsd_hash(entry, length, fsd_mix(nonce, offset)) >> 32);
}

/* Room for one entry and its frame. Nothing else may be added before finish_entry(). */
static uint8_t *pending_room(struct fsd_store *store)
{
	size_t need = store->pending_length + FRAME_BYTES + ENTRY_MAX;

	if (store->lost)
		return NULL;
	if (need > store->pending_room) {
		size_t room = need > store->pending_room * 2 ? need : store->pending_room * 2;
		uint8_t *more = realloc(store->pending, room);

		if (!more) { /* the file would be inconsistent without this entry */
			store->lost = true;
			store->pending_length = 0;
			return NULL;
		}
		store->pending = more;
		store->pending_room = room;
	}
	return store->pending + store->pending_length;
}

static void finish_entry(struct fsd_store *store, uint8_t *frame, const struct rxw_xdr *x)
{
	/* Every entry fits ENTRY_MAX. */
	assert(rxw_xdr_ok(x));
	assert(frame == store->pending + store->pending_length);
	rxw_xdr_store32(frame, (uint32_t)rxw_xdr_used(x));
	store->pending_length += FRAME_BYTES + rxw_xdr_used(x);
}

static void put_meta(struct rxw_xdr *x, const struct fsd_meta *meta)
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

void fsd_journal_node(struct fsd_store *store, const struct node *node)
{
	uint8_t *frame = pending_room(store);
	struct rxw_xdr x;

	if (!frame)
		return;
	rxw_xdr_writer(&x, frame + FRAME_BYTES, ENTRY_MAX);
	put_node(&x, node);
	finish_entry(store, frame, &x);
}

static void add_name_entry(struct fsd_store *store, enum entry entry, const struct name *name)
{
	uint8_t *frame = pending_room(store);
	struct rxw_xdr x;

	if (!frame)
		return;
	rxw_xdr_writer(&x, frame + FRAME_BYTES, ENTRY_MAX);
	put_name_entry(&x, entry, name);
	finish_entry(store, frame, &x);
}

void fsd_journal_name(struct fsd_store *store, const struct name *name)
{
	add_name_entry(store, ENTRY_NAME, name);
}

void fsd_journal_unname(struct fsd_store *store, const struct name *name)
{
	add_name_entry(store, ENTRY_UNNAME, name);
}

/* -- reading -- */

static int apply_meta(struct fsd_store *store, struct rxw_xdr *x)
{
	struct fsd_meta *meta = &store->meta;

	rxw_xdr_get_u32(x, &meta->volume);
	rxw_xdr_get_u32(x, &meta->creation);
	rxw_xdr_get_u64(x, &meta->root_inode);
	rxw_xdr_copy_string(x, sizeof(meta->root) - 1, meta->root);
	store->has_meta = rxw_xdr_ok(x) && meta->volume;
	return store->has_meta ? 0 : -EBADMSG;
}

/* Every number is checked: a checksum may match by chance. */
static int apply_node(struct fsd_store *store, struct rxw_xdr *x)
{
	struct fsd_record r = {0};
	uint32_t kind = 0;
	struct node *old;

	rxw_xdr_get_u32(x, &r.vnode);
	rxw_xdr_get_u32(x, &r.unique);
	rxw_xdr_get_u32(x, &kind);
	rxw_xdr_get_u64(x, &r.version);
	rxw_xdr_get_u64(x, &r.inode);
	rxw_xdr_get_u32(x, &r.birth);
	rxw_xdr_get_u64(x, &r.seen);
	if (kind == FSD_DIR) {
		rxw_xdr_get_u64(x, &r.image_length);
		rxw_xdr_get_u64(x, &r.image_hash);
		rxw_xdr_get_u32(x, &r.links);
	}
	if (!rxw_xdr_ok(x) || kind < FSD_FILE || kind > FSD_SYMLINK || r.vnode == 0 ||
	    r.unique == 0 || (r.vnode & 1) != (kind == FSD_DIR))
		return -EBADMSG;
	r.kind = (enum fsd_kind)kind;
	old = fsd_node_find(store, r.vnode);
	if (old && old->unique != r.unique && !old->names && old->vnode != AFS_ROOT_VNODE) {
		fsd_node_drop(store, old, NULL, NULL); /* its vnode was reused */
		old = NULL;
	}
	/* Older than the tables that were written to this file: see write_node_tables(). */
	if (old && (old->unique != r.unique || old->kind != kind))
		return 0;
	if (!fsd_node_put(store, &r))
		return -ENOMEM;
	if (store->next_vnode[r.vnode & 1] <= r.vnode && r.vnode < 0xfffffffc)
		store->next_vnode[r.vnode & 1] = r.vnode + 2;
	return 0;
}

static int apply_name(struct fsd_store *store, struct rxw_xdr *x, enum entry entry)
{
	char text[FSD_NAME_MAX + 1] = "";
	uint32_t parent_number = 0, number = 0;
	struct node *parent, *node;
	struct name *name;

	rxw_xdr_get_u32(x, &parent_number);
	rxw_xdr_get_u32(x, &number);
	rxw_xdr_copy_string(x, FSD_NAME_MAX, text);
	if (!rxw_xdr_ok(x) || !*text || strchr(text, '/') || !strcmp(text, ".") ||
	    !strcmp(text, ".."))
		return -EBADMSG;
	parent = fsd_node_find(store, parent_number);
	node = fsd_node_find(store, number);
	name = parent && parent->dir ? fsd_name_find(store, parent, text) : NULL;
	if (entry == ENTRY_UNNAME) {
		if (name && name->node == node)
			fsd_name_unhook(store, name);
		return 0; /* the node may get another name; see drop_nameless() */
	}
	/* A name that does not fit is older than the tables that were written to this file. */
	if (!parent || !parent->dir || !node || name || node->vnode == AFS_ROOT_VNODE ||
	    (node->dir && fsd_node_below(parent, node)))
		return 0;
	return fsd_name_add(store, parent, text, node);
}

static int apply_entry(struct fsd_store *store, const uint8_t *entry, size_t length)
{
	struct rxw_xdr x;
	uint32_t type = 0;

	rxw_xdr_reader(&x, entry, length);
	rxw_xdr_get_u32(&x, &type);
	if (!store->has_meta)
		return type == ENTRY_META ? apply_meta(store, &x) : -EBADMSG;
	switch (type) {
	case ENTRY_NODE:
		return apply_node(store, &x);
	case ENTRY_NAME:
	case ENTRY_UNNAME:
		return apply_name(store, &x, (enum entry)type);
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
static int replay_entries(struct fsd_store *store, struct input *input)
{
	const uint8_t *frame, *entry;
	int rc = 0;

	while ((frame = take_input(input, FRAME_BYTES, &rc))) {
		uint32_t length = rxw_xdr_load32(frame), sum = rxw_xdr_load32(frame + 4);

		if (length == 0 || length > ENTRY_MAX)
			break;
		entry = take_input(input, length, &rc);
		if (!entry || check_sum(store->nonce, store->offset, entry, length) != sum)
			break;
		rc = apply_entry(store, entry, length);
		if (rc == -EBADMSG)
			rc = 0, entry = NULL;
		if (rc || !entry)
			break;
		store->offset += FRAME_BYTES + length;
	}
	return rc;
}

/* At the end: remove nodes without a name. */
static void drop_nameless(struct fsd_store *store)
{
	for (size_t i = 0; i < store->nodes.size; i++) {
		struct node *node = *htable_chain(&store->nodes, i);

		while (node) {
			if (node->names || node->vnode == AFS_ROOT_VNODE) {
				node = node->by_vnode;
				continue;
			}
			/* This may remove other nodes of the chain: start again. */
			fsd_node_drop(store, node, NULL, NULL);
			node = *htable_chain(&store->nodes, i);
		}
	}
}

static int read_journal(struct fsd_store *store, uint64_t size)
{
	struct input input = {.fd = store->fd, .buffer = malloc(BUFFER_BYTES)};
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
	store->nonce = rxw_xdr_load64(head + MAGIC_BYTES);
	store->offset = HEAD_BYTES;
	rc = replay_entries(store, &input);
	if (!rc && (!store->has_meta || !fsd_node_find(store, AFS_ROOT_VNODE)))
		rc = -EBADMSG;
out:
	free(input.buffer);
	if (rc)
		return rc;
	drop_nameless(store);
	if (store->offset < size) {
		fsd_log(RXW_LOG_WARNING,
			"%s: the last %llu of %llu bytes are damaged or incomplete and were "
			"dropped; clients fetch the files concerned again",
			store->path, (unsigned long long)(size - store->offset),
			(unsigned long long)size);
		/* If the rest cannot be removed, the whole file is written again. */
		if (ftruncate(store->fd, (off_t)store->offset) < 0)
			store->lost = true;
	}
	return 0;
}

int fsd_journal_open(struct fsd_store *store)
{
	struct stat st;

	store->fd = open(store->path, O_RDWR | O_CLOEXEC);
	if (store->fd < 0 && errno == ENOENT)
		store->fd = open(store->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (store->fd < 0 || fstat(store->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EILSEQ;
	return st.st_size == 0 ? 0 : read_journal(store, (uint64_t)st.st_size);
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
static void write_node_tables(struct fsd_store *store, struct output *out)
{
	const struct htable *tables[2] = {&store->nodes, &store->names};

	for (int pass = 0; pass < 2; pass++) {
		bool more = true;

		for (size_t i = 0; more && !out->rc;) {
			/* Leaves room for the rest of a chain of usual length. */
			size_t full = BUFFER_BYTES / 2;

			pthread_rwlock_rdlock(&store->lock);
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
			pthread_rwlock_unlock(&store->lock);
			output_flush(out);
		}
	}
}

static void write_new(struct fsd_store *store, struct output *out)
{
	struct rxw_xdr x;

	memcpy(out->buffer, MAGIC, MAGIC_BYTES);
	rxw_xdr_store64(out->buffer + MAGIC_BYTES, out->nonce);
	out->rc = write_journal_bytes(out->fd, out->buffer, HEAD_BYTES, 0);
	out->offset = HEAD_BYTES;
	output_begin(out, &x);
	put_meta(&x, &store->meta);
	output_end(out, &x);
	write_node_tables(store, out);
	if (!out->rc && fsync(out->fd) < 0)
		out->rc = -errno;
}

int fsd_journal_rewrite(struct fsd_store *store)
{
	struct output out = {.fd = -1, .buffer = malloc(BUFFER_BYTES)};
	size_t length = strlen(store->path) + 5;
	char *path = malloc(length);

	assert(mutex_is_held(&store->writing));
	if (!out.buffer || !path) {
		out.rc = -ENOMEM;
	} else if (getrandom(&out.nonce, sizeof(out.nonce), 0) != sizeof(out.nonce)) {
		out.rc = -EIO;
	} else {
		snprintf(path, length, "%s.new", store->path);
		out.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (out.fd < 0)
			out.rc = -errno;
		else
			write_new(store, &out);
		if (!out.rc && rename(path, store->path) < 0)
			out.rc = -errno;
		if (out.rc && out.fd >= 0)
			unlink(path);
	}
	if (out.rc) {
		if (out.fd >= 0)
			close(out.fd);
	} else {
		close(store->fd);
		store->fd = out.fd;
		store->nonce = out.nonce;
		store->offset = out.offset;
	}
	free(out.buffer);
	free(path);
	return out.rc;
}

/* Take the pending entries. */
static uint8_t *take_pending(struct fsd_store *store, size_t *length)
{
	uint8_t *bytes;

	pthread_rwlock_wrlock(&store->lock);
	bytes = store->pending;
	*length = store->pending_length;
	store->pending = NULL;
	store->pending_length = store->pending_room = 0;
	pthread_rwlock_unlock(&store->lock);
	return bytes;
}

static void set_lost(struct fsd_store *store, bool lost)
{
	pthread_rwlock_wrlock(&store->lock);
	store->lost = lost;
	if (lost)
		store->pending_length = 0;
	pthread_rwlock_unlock(&store->lock);
}

static void report_failed_write(struct fsd_store *store, int rc)
{
	if (!store->said)
		fsd_log(RXW_LOG_WARNING,
			"cannot write %s: %s; files are still served, but new FIDs "
			"change when the server is restarted",
			store->path, strerror(-rc));
	store->said = true;
	store->retry_ns = monotonic_ns() + RETRY_NS;
}

static void rewrite_journal(struct fsd_store *store)
{
	int rc;

	/* From now on changes are collected for the new file. */
	set_lost(store, false);
	rc = fsd_journal_rewrite(store);
	if (rc) {
		set_lost(store, true);
		report_failed_write(store, rc);
	} else if (store->said) {
		store->said = false;
		fsd_log(RXW_LOG_INFO, "%s has been written again", store->path);
	}
}

static void write_pending(struct fsd_store *store)
{
	size_t length;
	uint8_t *bytes = take_pending(store, &length);
	int rc;

	seal_entries(bytes, length, store->nonce, store->offset);
	rc = write_journal_bytes(store->fd, bytes, length, store->offset);
	free(bytes);
	if (!rc) {
		store->offset += length;
		return;
	}
	/* Remove what may have been written in part. */
	if (ftruncate(store->fd, (off_t)store->offset) < 0)
		rc = rc ? rc : -errno;
	set_lost(store, true);
	report_failed_write(store, rc);
}

static bool has_outgrown(struct fsd_store *store)
{
	uint64_t live;

	pthread_rwlock_rdlock(&store->lock);
	live = (uint64_t)store->nodes.count * NODE_BYTES * 2;
	pthread_rwlock_unlock(&store->lock);
	return store->offset > REWRITE_MIN && store->offset > 3 * live;
}

void fsd_journal_flush(struct fsd_store *store)
{
	/* The holder of `writing` checks again after releasing it. */
	while ((store->pending_length || (store->lost && monotonic_ns() >= store->retry_ns)) &&
	       pthread_mutex_trylock(&store->writing) == 0) {
		if (store->lost || has_outgrown(store))
			rewrite_journal(store);
		if (!store->lost && store->pending_length)
			write_pending(store);
		pthread_mutex_unlock(&store->writing);
	}
}

void fsd_journal_close(struct fsd_store *store)
{
	if (store->fd >= 0) {
		store->retry_ns = 0;
		fsd_journal_flush(store);
		fsync(store->fd);
		close(store->fd);
	}
	free(store->pending);
}
