/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume store in LMDB: three tables, "vnodes", "names" and "meta". */
#include "fileserver/store.h"

#include <errno.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/xdr.h>

#define FORMAT	     1
#define RECORD_BYTES (128 + FSD_NAME_MAX)
#define META_BYTES   (64 + 4096)
/* Address space, not disk: the file grows as it is used. */
#define MAP_SIZE (sizeof(size_t) > 4 ? (size_t)16 << 30 : (size_t)512 << 20)

struct fsd_store {
	MDB_env *env;
	MDB_dbi vnodes, names, meta;
};

struct fsd_txn {
	struct fsd_store *store;
	MDB_txn *txn;
};

static int error_of(int rc)
{
	switch (rc) {
	case 0:
		return 0;
	case MDB_NOTFOUND:
		return -ENOENT;
	case MDB_MAP_FULL:
		return -ENOSPC;
	case MDB_READERS_FULL:
		return -EAGAIN;
	default:
		return rc > 0 ? -rc : -EIO;
	}
}

static int open_tables(struct fsd_store *store)
{
	MDB_txn *txn;
	int rc = mdb_txn_begin(store->env, NULL, 0, &txn);

	if (rc)
		return rc;
	rc = mdb_dbi_open(txn, "vnodes", MDB_CREATE, &store->vnodes);
	if (!rc)
		rc = mdb_dbi_open(txn, "names", MDB_CREATE, &store->names);
	if (!rc)
		rc = mdb_dbi_open(txn, "meta", MDB_CREATE, &store->meta);
	if (rc) {
		mdb_txn_abort(txn);
		return rc;
	}
	return mdb_txn_commit(txn);
}

int fsd_store_open(const char *path, struct fsd_store **out)
{
	struct fsd_store *store = calloc(1, sizeof(*store));
	int rc;

	if (!store)
		return -ENOMEM;
	rc = mdb_env_create(&store->env);
	if (rc) {
		free(store);
		return error_of(rc);
	}
	mdb_env_set_maxdbs(store->env, 3);
	mdb_env_set_maxreaders(store->env, 8192); /* one for each thread that reads */
	mdb_env_set_mapsize(store->env, MAP_SIZE);
	rc = mdb_env_open(store->env, path, MDB_NOSUBDIR | MDB_NORDAHEAD, 0600);
	if (!rc)
		rc = open_tables(store);
	if (rc) {
		fsd_store_close(store);
		return error_of(rc);
	}
	*out = store;
	return 0;
}

void fsd_store_close(struct fsd_store *store)
{
	if (!store)
		return;
	mdb_env_close(store->env);
	free(store);
}

int fsd_store_begin(struct fsd_store *store, bool write, struct fsd_txn **out)
{
	struct fsd_txn *txn = malloc(sizeof(*txn));
	int rc;

	if (!txn)
		return -ENOMEM;
	txn->store = store;
	rc = mdb_txn_begin(store->env, NULL, write ? 0 : MDB_RDONLY, &txn->txn);
	if (rc) {
		free(txn);
		return error_of(rc);
	}
	*out = txn;
	return 0;
}

int fsd_store_commit(struct fsd_txn *txn)
{
	int rc = mdb_txn_commit(txn->txn);

	free(txn);
	return error_of(rc);
}

void fsd_store_abort(struct fsd_txn *txn)
{
	mdb_txn_abort(txn->txn);
	free(txn);
}

static void put_be(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 24);
	at[1] = (uint8_t)(v >> 16);
	at[2] = (uint8_t)(v >> 8);
	at[3] = (uint8_t)v;
}

static uint32_t get_be(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Key in "names": the parent's number, then the name without NUL. */
struct name_key {
	uint8_t bytes[4 + FSD_NAME_MAX];
	MDB_val val;
};

static int make_name_key(struct name_key *key, uint32_t parent, const char *name)
{
	size_t n = strlen(name);

	if (n > FSD_NAME_MAX)
		return -ENAMETOOLONG;
	put_be(key->bytes, parent);
	memcpy(key->bytes + 4, name, n);
	key->val.mv_data = key->bytes;
	key->val.mv_size = 4 + n;
	return 0;
}

static size_t encode(const struct fsd_record *r, uint8_t bytes[RECORD_BYTES])
{
	struct rxw_xdr x;

	rxw_xdr_writer(&x, bytes, RECORD_BYTES);
	rxw_xdr_put_u32(&x, FORMAT);
	rxw_xdr_put_u32(&x, r->vnode);
	rxw_xdr_put_u32(&x, r->unique);
	rxw_xdr_put_u32(&x, r->parent);
	rxw_xdr_put_u32(&x, r->parent_unique);
	rxw_xdr_put_u32(&x, (uint32_t)r->kind);
	rxw_xdr_put_u64(&x, r->version);
	rxw_xdr_put_u64(&x, r->seen.device);
	rxw_xdr_put_u64(&x, r->seen.inode);
	rxw_xdr_put_u64(&x, r->seen.size);
	rxw_xdr_put_u64(&x, (uint64_t)r->seen.mtime_ns);
	rxw_xdr_put_u64(&x, (uint64_t)r->seen.ctime_ns);
	rxw_xdr_put_u64(&x, r->image_length);
	rxw_xdr_put_u64(&x, r->image_hash);
	rxw_xdr_put_u32(&x, r->links);
	rxw_xdr_put_string(&x, r->name, UINT32_MAX);
	return rxw_xdr_ok(&x) ? rxw_xdr_used(&x) : 0;
}

static int decode(const MDB_val *val, struct fsd_record *r)
{
	struct rxw_xdr x;
	uint32_t format = 0, kind = 0;
	uint64_t mtime = 0, ctime = 0;

	memset(r, 0, sizeof(*r));
	rxw_xdr_reader(&x, val->mv_data, val->mv_size);
	rxw_xdr_get_u32(&x, &format);
	rxw_xdr_get_u32(&x, &r->vnode);
	rxw_xdr_get_u32(&x, &r->unique);
	rxw_xdr_get_u32(&x, &r->parent);
	rxw_xdr_get_u32(&x, &r->parent_unique);
	rxw_xdr_get_u32(&x, &kind);
	rxw_xdr_get_u64(&x, &r->version);
	rxw_xdr_get_u64(&x, &r->seen.device);
	rxw_xdr_get_u64(&x, &r->seen.inode);
	rxw_xdr_get_u64(&x, &r->seen.size);
	rxw_xdr_get_u64(&x, &mtime);
	rxw_xdr_get_u64(&x, &ctime);
	rxw_xdr_get_u64(&x, &r->image_length);
	rxw_xdr_get_u64(&x, &r->image_hash);
	rxw_xdr_get_u32(&x, &r->links);
	rxw_xdr_copy_string(&x, FSD_NAME_MAX, r->name);
	r->kind = (enum fsd_kind)kind;
	r->seen.kind = r->kind;
	r->seen.mtime_ns = (int64_t)mtime;
	r->seen.ctime_ns = (int64_t)ctime;
	return rxw_xdr_ok(&x) && format == FORMAT ? 0 : -EIO;
}

int fsd_store_get(struct fsd_txn *txn, uint32_t vnode, struct fsd_record *record)
{
	uint8_t bytes[4];
	MDB_val key = {.mv_size = 4, .mv_data = bytes}, val;
	int rc;

	put_be(bytes, vnode);
	rc = mdb_get(txn->txn, txn->store->vnodes, &key, &val);
	if (rc)
		return error_of(rc);
	rc = decode(&val, record);
	return rc ? rc : record->vnode == vnode ? 0 : -EIO;
}

int fsd_store_put(struct fsd_txn *txn, const struct fsd_record *record)
{
	uint8_t number[4], bytes[RECORD_BYTES];
	MDB_val key = {.mv_size = 4, .mv_data = number}, val = {.mv_data = bytes};
	struct name_key name;
	int rc;

	put_be(number, record->vnode);
	val.mv_size = encode(record, bytes);
	if (val.mv_size == 0)
		return -EINVAL;
	rc = mdb_put(txn->txn, txn->store->vnodes, &key, &val, 0);
	if (rc || record->name[0] == 0)
		return error_of(rc);
	rc = make_name_key(&name, record->parent, record->name);
	if (rc)
		return rc;
	return error_of(mdb_put(txn->txn, txn->store->names, &name.val, &key, 0));
}

int fsd_store_child(struct fsd_txn *txn, uint32_t parent, const char *name, uint32_t *vnode)
{
	struct name_key key;
	MDB_val val;
	int rc = make_name_key(&key, parent, name);

	if (rc)
		return rc;
	rc = mdb_get(txn->txn, txn->store->names, &key.val, &val);
	if (rc)
		return error_of(rc);
	if (val.mv_size != 4)
		return -EIO;
	*vnode = get_be(val.mv_data);
	return 0;
}

int fsd_store_children(struct fsd_txn *txn, uint32_t parent,
		       int (*fn)(void *arg, const char *name, uint32_t vnode), void *arg)
{
	uint8_t prefix[4];
	MDB_val key = {.mv_size = 4, .mv_data = prefix}, val;
	MDB_cursor *cursor;
	int rc = mdb_cursor_open(txn->txn, txn->store->names, &cursor);

	if (rc)
		return error_of(rc);
	put_be(prefix, parent);
	for (rc = mdb_cursor_get(cursor, &key, &val, MDB_SET_RANGE); !rc;
	     rc = mdb_cursor_get(cursor, &key, &val, MDB_NEXT)) {
		char name[FSD_NAME_MAX + 1];
		size_t n = key.mv_size - 4;

		if (key.mv_size < 4 || memcmp(key.mv_data, prefix, 4) != 0)
			break;
		if (n > FSD_NAME_MAX || val.mv_size != 4) {
			mdb_cursor_close(cursor);
			return -EIO;
		}
		memcpy(name, (uint8_t *)key.mv_data + 4, n);
		name[n] = 0;
		int stop = fn(arg, name, get_be(val.mv_data));

		if (stop) {
			mdb_cursor_close(cursor);
			return stop;
		}
	}
	mdb_cursor_close(cursor);
	return rc == MDB_NOTFOUND ? 0 : error_of(rc);
}

/* Vnodes whose turn is still to come while a tree is removed. */
struct pile {
	uint32_t *items;
	size_t count, capacity;
};

static int pile_add(void *arg, const char *name, uint32_t vnode)
{
	struct pile *pile = arg;

	(void)name;
	if (pile->count == pile->capacity) {
		size_t capacity = pile->capacity ? pile->capacity * 2 : 256;
		uint32_t *items = realloc(pile->items, capacity * sizeof(*items));

		if (!items)
			return -ENOMEM;
		pile->items = items;
		pile->capacity = capacity;
	}
	pile->items[pile->count++] = vnode;
	return 0;
}

static int remove_one(struct fsd_txn *txn, const struct fsd_record *record)
{
	uint8_t number[4];
	MDB_val key = {.mv_size = 4, .mv_data = number};
	struct name_key name;
	uint32_t holder;
	int rc;

	put_be(number, record->vnode);
	rc = mdb_del(txn->txn, txn->store->vnodes, &key, NULL);
	if (rc && rc != MDB_NOTFOUND)
		return error_of(rc);
	/* The name may have gone to another vnode since. */
	if (fsd_store_child(txn, record->parent, record->name, &holder) || holder != record->vnode)
		return 0;
	rc = make_name_key(&name, record->parent, record->name);
	return rc ? rc : error_of(mdb_del(txn->txn, txn->store->names, &name.val, NULL));
}

int fsd_store_remove(struct fsd_txn *txn, const struct fsd_record *record)
{
	struct pile pile = {0};
	int rc = remove_one(txn, record);

	if (!rc && record->kind == FSD_DIR)
		rc = fsd_store_children(txn, record->vnode, pile_add, &pile);
	while (!rc && pile.count) {
		struct fsd_record child;

		rc = fsd_store_get(txn, pile.items[--pile.count], &child);
		if (rc == -ENOENT) {
			rc = 0;
			continue;
		}
		if (!rc)
			rc = remove_one(txn, &child);
		if (!rc && child.kind == FSD_DIR)
			rc = fsd_store_children(txn, child.vnode, pile_add, &pile);
	}
	free(pile.items);
	return rc;
}

int fsd_store_clear(struct fsd_txn *txn)
{
	int rc = mdb_drop(txn->txn, txn->store->vnodes, 0);

	return error_of(rc ? rc : mdb_drop(txn->txn, txn->store->names, 0));
}

static MDB_val meta_key(void)
{
	static char key[] = "volume";

	return (MDB_val){.mv_size = sizeof(key) - 1, .mv_data = key};
}

int fsd_store_get_meta(struct fsd_txn *txn, struct fsd_meta *meta)
{
	MDB_val key = meta_key(), val;
	struct rxw_xdr x;
	uint32_t format = 0;
	int rc = mdb_get(txn->txn, txn->store->meta, &key, &val);

	if (rc)
		return error_of(rc);
	memset(meta, 0, sizeof(*meta));
	rxw_xdr_reader(&x, val.mv_data, val.mv_size);
	rxw_xdr_get_u32(&x, &format);
	rxw_xdr_get_u32(&x, &meta->volume);
	rxw_xdr_get_u32(&x, &meta->creation);
	rxw_xdr_get_u32(&x, &meta->next_file);
	rxw_xdr_get_u32(&x, &meta->next_dir);
	rxw_xdr_get_u32(&x, &meta->next_unique);
	rxw_xdr_get_u64(&x, &meta->root_device);
	rxw_xdr_get_u64(&x, &meta->root_inode);
	rxw_xdr_copy_string(&x, sizeof(meta->root) - 1, meta->root);
	return rxw_xdr_ok(&x) && format == FORMAT ? 0 : -EIO;
}

int fsd_store_put_meta(struct fsd_txn *txn, const struct fsd_meta *meta)
{
	uint8_t bytes[META_BYTES];
	MDB_val key = meta_key(), val = {.mv_data = bytes};
	struct rxw_xdr x;

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	rxw_xdr_put_u32(&x, FORMAT);
	rxw_xdr_put_u32(&x, meta->volume);
	rxw_xdr_put_u32(&x, meta->creation);
	rxw_xdr_put_u32(&x, meta->next_file);
	rxw_xdr_put_u32(&x, meta->next_dir);
	rxw_xdr_put_u32(&x, meta->next_unique);
	rxw_xdr_put_u64(&x, meta->root_device);
	rxw_xdr_put_u64(&x, meta->root_inode);
	rxw_xdr_put_string(&x, meta->root, UINT32_MAX);
	if (!rxw_xdr_ok(&x))
		return -EINVAL;
	val.mv_size = rxw_xdr_used(&x);
	return error_of(mdb_put(txn->txn, txn->store->meta, &key, &val, 0));
}
