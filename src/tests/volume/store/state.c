/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the store: its whole state as a text, and operations on names. */
#include "tests/volume/store/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/dir.h"

static const int32_t admin_ids[] = {STORE_ADMINISTRATORS, STORE_AUTHUSER, STORE_ANYUSER, 1};
const struct store_caller state_admin = {
	.id = 1, .ids = admin_ids, .id_count = 4, .administrator = true};

/* -- contents -- */

/* The whole of a file, directory or link; to be freed. */
static int read_all(struct store *store, const struct store_fid *fid, struct store_status *status,
		    uint8_t **data)
{
	struct store_reader *reader;
	struct iovec iov;
	ssize_t n;
	int rc = store->ops->read_begin(store, &state_admin, fid, &reader, status);

	*data = NULL;
	if (rc)
		return rc;
	*data = malloc(status->length + 1);
	iov = (struct iovec){*data, status->length};
	n = *data ? store->ops->read(reader, &iov, 1, 0, 0) : -ENOMEM;
	rc = store->ops->read_end(reader);
	if (n < 0)
		rc = (int)n;
	else if (!rc && (uint64_t)n != status->length)
		rc = -ENODATA;
	if (rc) {
		free(*data);
		*data = NULL;
	}
	return rc;
}

static uint64_t hash(const uint8_t *data, uint64_t length)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (uint64_t i = 0; i < length; i++)
		h = (h ^ data[i]) * 0x100000001b3ull;
	return h;
}

void state_bytes(uint8_t *data, uint64_t offset, uint64_t length, uint32_t seed)
{
	for (uint64_t i = 0; i < length; i++)
		data[i] = (uint8_t)((offset + i) * 31 + ((offset + i) >> 8) * 7 + seed * 13 + 1);
}

/* -- the dump -- */

struct dump {
	struct store *store;
	FILE *out;
	char *why;
};

static int complain(struct dump *dump, const struct store_fid *fid, const char *what, int rc)
{
	snprintf(dump->why, STORE_MESSAGE_MAX, "%u.%u.%u: %s: %d", fid->volume, fid->vnode,
		 fid->unique, what, rc);
	return -1;
}

static int dump_object(struct dump *dump, const struct store_fid *fid, const char *path);

static int dump_names(struct dump *dump, const struct store_status *status, const uint8_t *image,
		      const char *path)
{
	struct afs_dir_entry entry;
	uint32_t cursor = 0;
	int rc;

	while ((rc = afs_dir_next(image, status->length, &cursor, &entry)) == 1) {
		struct store_fid fid = {status->fid.volume, entry.vnode, entry.unique};
		char below[4200];

		if (strcmp(entry.name, ".") == 0 || strcmp(entry.name, "..") == 0)
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, entry.name);
		if (dump_object(dump, &fid, below))
			return -1;
	}
	return rc ? complain(dump, &status->fid, "malformed directory", rc) : 0;
}

static int dump_acl(struct dump *dump, const struct store_fid *fid)
{
	struct store_status status;
	struct store_acl acl;
	int rc = dump->store->ops->acl(dump->store, &state_admin, fid, &acl, &status);

	if (rc)
		return complain(dump, fid, "acl", rc);
	for (int i = 0; i < acl.positive + acl.negative; i++)
		fprintf(dump->out, " %c%d:%u", i < acl.positive ? '+' : '-', acl.entry[i].id,
			acl.entry[i].rights);
	return 0;
}

static int dump_object(struct dump *dump, const struct store_fid *fid, const char *path)
{
	struct store_status st, again;
	uint8_t *data;
	int rc = dump->store->ops->status(dump->store, &state_admin, fid, &st);

	if (rc)
		return complain(dump, fid, "status", rc);
	rc = read_all(dump->store, fid, &again, &data);
	if (rc)
		return complain(dump, fid, "read", rc);
	fprintf(dump->out, "%s %u.%u kind %d links %u length %llu version %llu owner %d group %u "
			   "mode %o parent %u.%u mtime %u hash %llx",
		*path ? path : "/", fid->vnode, fid->unique, st.kind, st.links,
		(unsigned long long)st.length, (unsigned long long)st.version, st.owner, st.group,
		st.mode, st.parent, st.parent_unique,
		st.kind == STORE_DIR ? 0 : st.client_mtime,
		(unsigned long long)hash(data, again.length));
	rc = st.kind == STORE_DIR ? dump_acl(dump, fid) : 0;
	fputc('\n', dump->out);
	if (!rc && st.kind == STORE_DIR)
		rc = dump_names(dump, &again, data, path);
	free(data);
	return rc;
}

static int dump_volume(struct dump *dump, const struct store_volume *volume)
{
	const struct store_fid root = {volume->id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};

	fprintf(dump->out, "volume %u %s type %d group %u %u %u quota %llu used %llu files %llu\n",
		volume->id, volume->name, volume->type, volume->rw, volume->ro, volume->backup,
		(unsigned long long)volume->quota_kib, (unsigned long long)volume->used_kib,
		(unsigned long long)volume->files);
	return dump_object(dump, &root, "");
}

char *state_dump(struct store *store, char *why)
{
	struct dump dump = {.store = store, .why = why};
	struct store_volume volume = {0};
	char *text = NULL;
	size_t size;
	int rc = 0;

	dump.out = open_memstream(&text, &size);
	if (!dump.out)
		abort();
	while (!rc && store->ops->volume_next(store, volume.id, &volume) == 0)
		rc = dump_volume(&dump, &volume);
	fclose(dump.out);
	if (!rc)
		return text;
	free(text);
	return NULL;
}

/* -- operations -- */

static int look_up(struct store *store, const struct store_fid *dir, const char *name,
		   struct store_fid *fid)
{
	struct store_status status;
	uint8_t *image;
	int rc = read_all(store, dir, &status, &image);

	if (rc)
		return rc;
	fid->volume = dir->volume;
	rc = status.kind != STORE_DIR ? -ENOTDIR
	     : afs_dir_lookup(image, status.length, name, &fid->vnode, &fid->unique) == 1
		     ? 0
		     : -ENOENT;
	free(image);
	return rc;
}

int state_walk(struct store *store, uint32_t volume, const char *path, struct store_fid *fid)
{
	char name[STORE_NAME_MAX + 1];
	int rc = 0;

	*fid = (struct store_fid){volume, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	while (!rc && *path) {
		size_t n = strcspn(path, "/");
		struct store_fid dir = *fid;

		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		rc = look_up(store, &dir, name, fid);
		path += n + (path[n] == '/');
	}
	return rc;
}

int state_parent(struct store *store, uint32_t volume, const char *path, struct store_fid *dir,
		 const char **name)
{
	const char *slash = strrchr(path, '/');
	char parent[1024];

	*name = slash ? slash + 1 : path;
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path);
	return state_walk(store, volume, parent, dir);
}

static const struct store_set fixed = {STORE_SET_MTIME | STORE_SET_MODE, 1000000000, 0, 0, 0644};

int state_create(struct store *store, uint32_t volume, const char *path, enum store_kind kind,
		 const char *text)
{
	struct store_status status, dir_status;
	struct store_changes changes;
	struct store_fid dir;
	const char *name;
	int rc = state_parent(store, volume, path, &dir, &name);

	return rc ? rc
		  : store->ops->create(store, &state_admin, &dir, name, kind, text, &fixed, &status,
				       &dir_status, &changes);
}

int state_write(struct store *store, uint32_t volume, const char *path, uint64_t offset,
		uint64_t length, uint64_t file_length, uint32_t seed)
{
	struct store_changes changes;
	struct store_status status;
	struct store_writer *writer;
	struct store_fid fid;
	uint8_t data[4096];
	int rc = state_walk(store, volume, path, &fid);

	if (!rc)
		rc = store->ops->write_begin(store, &state_admin, &fid, &fixed, offset, length,
					     file_length, &writer);
	if (rc)
		return rc;
	for (uint64_t at = 0; !rc && at < length;) {
		uint64_t n = length - at < sizeof(data) ? length - at : sizeof(data);
		const struct iovec iov = {data, n};

		state_bytes(data, offset + at, n, seed);
		rc = store->ops->write(writer, &iov, 1);
		at += n;
	}
	if (!rc)
		return store->ops->write_commit(writer, &status, &changes);
	store->ops->write_abort(writer);
	return rc;
}

int state_remove(struct store *store, uint32_t volume, const char *path, enum store_kind kind)
{
	struct store_changes changes;
	struct store_status status;
	struct store_fid dir;
	const char *name;
	int rc = state_parent(store, volume, path, &dir, &name);

	return rc ? rc
		  : store->ops->remove(store, &state_admin, &dir, name, kind, &status, &changes);
}

int state_rename(struct store *store, uint32_t volume, const char *from, const char *to)
{
	struct store_status old_status, new_status;
	struct store_fid old_dir, new_dir;
	const char *old_name, *new_name;
	struct store_changes changes;
	int rc = state_parent(store, volume, from, &old_dir, &old_name);

	if (!rc)
		rc = state_parent(store, volume, to, &new_dir, &new_name);
	return rc ? rc
		  : store->ops->rename(store, &state_admin, &old_dir, old_name, &new_dir, new_name,
				       &old_status, &new_status, &changes);
}

int state_link(struct store *store, uint32_t volume, const char *path, const char *existing)
{
	struct store_status status, dir_status;
	struct store_changes changes;
	struct store_fid dir, fid;
	const char *name;
	int rc = state_parent(store, volume, path, &dir, &name);

	if (!rc)
		rc = state_walk(store, volume, existing, &fid);
	return rc ? rc
		  : store->ops->link(store, &state_admin, &dir, name, &fid, &status, &dir_status,
				     &changes);
}

int state_chmod(struct store *store, uint32_t volume, const char *path, uint32_t mode)
{
	const struct store_set set = {.mask = STORE_SET_MODE, .mode = mode};
	struct store_changes changes;
	struct store_status status;
	struct store_fid fid;
	int rc = state_walk(store, volume, path, &fid);

	return rc ? rc
		  : store->ops->set_status(store, &state_admin, &fid, &set, &status, &changes);
}

int state_acl(struct store *store, uint32_t volume, const char *path, int32_t id, uint32_t rights)
{
	struct store_acl acl = {.positive = 1, .entry = {{id, rights}}};
	struct store_changes changes;
	struct store_status status;
	struct store_fid fid;
	int rc = state_walk(store, volume, path, &fid);

	return rc ? rc : store->ops->set_acl(store, &state_admin, &fid, &acl, &status, &changes);
}
