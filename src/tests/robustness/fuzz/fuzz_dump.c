/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: a volume as a dump, which comes from a file or from the administrator of another cell. The store that takes it
 * in is one that only looks at what it is given.
 */

#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "afs/dir.h"
#include "volume/dump/dump.h"

const char fuzz_name[] = "dump";
const size_t fuzz_max = 8192;
const unsigned fuzz_cost = 20;

#define SMALL 4096u

struct source {
	const uint8_t *at;
	size_t left, most; /* most: bytes of a read */
};

/* Where the contents of large files go. */
static uint64_t written;

static ssize_t read_source(void *arg, void *bytes, size_t length)
{
	struct source *source = arg;
	size_t n = length < source->most ? length : source->most;

	n = n < source->left ? n : source->left;
	if (n)
		memcpy(bytes, source->at, n);
	source->at += n;
	source->left -= n;
	return (ssize_t)n;
}

static bool note_progress(void *arg, uint64_t bytes, uint64_t objects)
{
	(void)arg;
	(void)bytes;
	(void)objects;
	return false;
}

static int permit_all(void *arg, const struct store_acl *acl, uint32_t vnode)
{
	(void)arg;
	(void)vnode;
	FUZZ_CHECK((unsigned)acl->positive + acl->negative <= STORE_ACL_MAX);
	return 0;
}

/* -- the store -- */

static void check_vnode(const struct store_vnode *v)
{
	FUZZ_CHECK(v->kind == STORE_FILE || v->kind == STORE_DIR || v->kind == STORE_SYMLINK);
	FUZZ_CHECK(v->vnode > 0 && v->vnode < STORE_RESTORE_VNODE_MAX);
	FUZZ_CHECK((v->kind == STORE_DIR) == (v->vnode % 2 == 1));
}

size_t store_restore_small(const struct store_restore *restore)
{
	(void)restore;
	return SMALL;
}

/* All bytes of what is put are read, so that a sanitizer sees each that is missing. */
int store_restore_put(struct store_restore *restore, const struct store_vnode *v, const void *bytes)
{
	uint8_t sum = 0;

	(void)restore;
	check_vnode(v);
	FUZZ_CHECK(bytes || v->kind == STORE_FILE);
	for (uint64_t i = 0; bytes && i < v->length; i++)
		sum ^= ((const uint8_t *)bytes)[i];
	if (v->kind == STORE_DIR && afs_dir_check(bytes, (size_t)v->length))
		return -EBADMSG;
	return v->unique % 16 == 15 || sum == 255 ? -EEXIST : 0;
}

int store_restore_write(struct store_restore *restore, const struct store_vnode *v,
			struct store_writer **writer)
{
	(void)restore;
	check_vnode(v);
	written = 0;
	*writer = (struct store_writer *)&written;
	return 0;
}

int store_restore_stamp(struct store_restore *restore, const struct store_vnode *v)
{
	(void)restore;
	check_vnode(v);
	FUZZ_CHECK(v->length == written);
	return 0;
}

int store_restore_look(const struct store_restore *restore, uint32_t vnode, struct store_vnode *now)
{
	(void)restore;
	FUZZ_CHECK(vnode > 0 && vnode < STORE_RESTORE_VNODE_MAX);
	*now = (struct store_vnode){.vnode = vnode, .unique = 1, .version = vnode};
	return vnode % 16 == 7 ? STORE_VNOVNODE : 0;
}

int store_restore_keep(struct store_restore *restore, uint32_t vnode, uint32_t unique)
{
	(void)restore;
	FUZZ_CHECK(vnode > 0 && vnode < STORE_RESTORE_VNODE_MAX);
	return unique % 16 == 15 ? -ENOENT : 0;
}

static int write_bytes_of_file(struct store_writer *writer, const struct iovec *iov, int count)
{
	(void)writer;
	for (int i = 0; i < count; i++)
		written += iov[i].iov_len;
	return 0;
}

static int commit_file(struct store_writer *writer, struct store_status *status,
		       struct store_changes *changes)
{
	(void)writer;
	(void)status;
	(void)changes;
	return 0;
}

static void abort_file(struct store_writer *writer)
{
	(void)writer;
}

static const struct store_ops ops = {
	.write = write_bytes_of_file,
	.write_commit = commit_file,
	.write_abort = abort_file,
};

static void read_dump(const uint8_t *data, size_t size, size_t most)
{
	struct source source = {data, size, most};
	const struct dump_input input = {.read = read_source,
					 .progress = note_progress,
					 .permit = permit_all,
					 .fits = size % 2,
					 .arg = &source};
	struct store store = {.ops = &ops};
	char message[STORE_MESSAGE_MAX] = "";
	struct dump_reader *reader = NULL;
	struct dump_counts counts = {0};
	struct dump_info info = {0};
	int rc = dump_read_begin(&store, &input, &reader, &info, message);

	if (!rc) {
		FUZZ_CHECK(reader);
		rc = dump_read_vnodes(reader, NULL, &info, &counts);
		FUZZ_CHECK(counts.bytes <= size);
	}
	FUZZ_CHECK(rc != -EBADMSG || message[0]);
	FUZZ_CHECK(rc != -ENOMEM);
	for (const char *p = info.header.volume.name; *p; p++)
		FUZZ_CHECK((unsigned char)*p >= ' ');
	dump_read_end(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size)
		read_dump(data + 1, size - 1, data[0] ? data[0] : SIZE_MAX);
	return 0;
}
