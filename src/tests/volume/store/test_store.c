/* SPDX-License-Identifier: BSD-2-Clause */
/* The store by its interface: operations, checks, rights, data, quotas. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/main.h"
#include "tests/volume/store/crashdisk.h"
#include "tests/volume/store/store_fixture.h"

/* -- making and opening -- */

START_TEST(refusals)
{
	struct store_options options = {.path = fixture_path()};
	struct store *other;

	ck_assert_int_eq(store_open(&options, &other, message), -ENOENT);
	ck_assert_ptr_nonnull(strstr(message, options.path));
	fixture_file("FORMAT", "rxwire store 3\n");
	ck_assert_int_eq(store_open(&options, &other, message), -EBADMSG);
	fixture_file("FORMAT", "rxwire store 4\n00112233445566778899aabbccddeeff\n");
	ck_assert_int_eq(store_open(&options, &other, message), -EPROTO);
	fixture_file("FORMAT", "rxwire store 2\n00112233445566778899aabbccddeeff\n");
	ck_assert_int_eq(store_open(&options, &other, message), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(message, options.path));
	ck_assert_ptr_nonnull(strstr(message, " convert"));
	fixture_expect("FORMAT", "rxwire store 2\n");
	ck_assert_int_eq(store_make(&options, message), -ENOTEMPTY);
	ck_assert_ptr_nonnull(strstr(message, "empty"));
}
END_TEST

START_TEST(one_process)
{
	struct store_options options = {.path = fixture_path()};
	struct store *other;
	uint8_t uuid[16], again[16];

	fixture_open(STORE_LAZY);
	store_uuid(store, uuid);
	ck_assert_int_eq(store_open(&options, &other, message), -EBUSY);
	ck_assert_int_eq(store_make(&options, message), -ENOTEMPTY);
	fixture_reopen();
	store_uuid(store, again);
	ck_assert_mem_eq(uuid, again, 16);
}
END_TEST

/* -- objects -- */

START_TEST(new_objects)
{
	struct store_status dir, file, link;
	struct store_set set = {
		.mask = STORE_SET_MODE | STORE_SET_MTIME, .mode = 06640, .mtime = 77};

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store->ops->create(store, &admin, &root, "f", STORE_FILE, NULL, &set,
					    &file, &dir, &changes),
			 0);
	ck_assert_uint_eq(file.fid.vnode, 2);
	ck_assert_uint_eq(file.fid.unique, 2);
	ck_assert_uint_eq(file.version, 0);
	ck_assert_uint_eq(file.length, 0);
	ck_assert_uint_eq(file.links, 1);
	ck_assert_uint_eq(file.mode, 0640);
	ck_assert_uint_eq(file.client_mtime, 77);
	ck_assert_uint_ne(file.server_mtime, 77);
	ck_assert_int_eq(file.owner, 1);
	ck_assert_uint_eq(file.parent, 1);
	ck_assert_uint_eq(file.parent_unique, 1);
	ck_assert_uint_eq(file.rights, STORE_ALL); /* the owner has the bit of administration */
	ck_assert_uint_eq(changes.count, 1);
	ck_assert_uint_eq(changes.change[0].fid.vnode, 1);
	ck_assert_uint_eq(dir.version, 2);
	ck_assert_uint_eq(dir.links, 2);

	ck_assert_int_eq(store->ops->create(store, &admin, &root, "d", STORE_DIR, NULL, &nothing,
					    &file, &dir, &changes),
			 0);
	ck_assert_uint_eq(file.fid.vnode, 3);
	ck_assert_uint_eq(file.fid.unique, 3);
	ck_assert_uint_eq(file.length, 2048);
	ck_assert_uint_eq(file.links, 2);
	ck_assert_uint_eq(file.mode, 0777);
	ck_assert_uint_eq(file.parent, 3); /* its own numbers */
	ck_assert_uint_eq(dir.links, 3);

	ck_assert_int_eq(store->ops->create(store, &admin, &root, "l", STORE_SYMLINK, "to/there",
					    &nothing, &link, &dir, &changes),
			 0);
	ck_assert_uint_eq(link.length, 8);
	ck_assert_int_eq(link.kind, STORE_SYMLINK);
	fixture_same(&link.fid, "to/there", 8);
	fixture_volume(volume);
	ck_assert_uint_eq(about.files, 4);
	ck_assert_uint_eq(about.used_kib, 2 + 1 + 2 + 1);
}
END_TEST

START_TEST(names)
{
	char long_name[257];
	static const struct {
		const char *name;
		int create, remove;
	} table[] = {{"", -EINVAL, -ENOENT},	  {"a/b", -EINVAL, -ENOENT},
		     {"x@sys", -EINVAL, -ENOENT}, {".", -EEXIST, -EINVAL},
		     {"..", -EEXIST, -EINVAL},	  {"there", -EEXIST, 0}};

	fixture_open(STORE_LAZY);
	memset(long_name, 'n', 256);
	long_name[256] = '\0';
	ck_assert_int_eq(try_create(&admin, &root, long_name, STORE_FILE), -ENAMETOOLONG);
	long_name[255] = '\0';
	ck_assert_int_eq(try_create(&admin, &root, long_name, STORE_FILE), 0);
	ck_assert_int_eq(try_create(&admin, &root, "there", STORE_FILE), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_int_eq(try_create(&admin, &root, table[i].name, STORE_FILE),
				 table[i].create);
		ck_assert_int_eq(try_remove(&admin, &root, table[i].name, STORE_FILE),
				 table[i].remove);
	}
	ck_assert_int_eq(try_remove(&admin, &root, "there", STORE_FILE), -ENOENT);
	ck_assert_int_eq(try_create(&admin, &root, "utf-8 \xc3\xa9 \xff", STORE_DIR), 0);
}
END_TEST

/* Each call fails by the first thing that is wrong (afs-fileserver 3.1). */
START_TEST(order_of_checks)
{
	struct store_fid fid = {0, 1, 1}, file, clone = {0};
	struct store_acl acl = {0};

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_status(&user, &fid), -EINVAL);
	ck_assert_int_eq(try_create(&user, &fid, "", STORE_FILE), -EINVAL);
	fid.volume = 77;
	ck_assert_int_eq(try_status(&user, &fid), STORE_VNOVOL);
	ck_assert_int_eq(try_create(&user, &fid, "", STORE_FILE), STORE_VNOVOL);
	fid = (struct store_fid){volume, 1, 2};
	ck_assert_int_eq(try_create(&user, &fid, "", STORE_FILE), STORE_VNOVNODE);
	fid = (struct store_fid){volume, 0, 2};
	ck_assert_int_eq(try_create(&user, &fid, "", STORE_FILE), -EINVAL);
	ck_assert_int_eq(try_create(&user, &file, "", STORE_FILE), -ENOTDIR);
	ck_assert_int_eq(try_create(&user, &root, "a/b", STORE_FILE), -EINVAL);
	ck_assert_int_eq(try_create(&user, &root, "x@sys", STORE_FILE), -EINVAL);
	ck_assert_int_eq(try_create(&user, &root, "", STORE_FILE), -EACCES);
	ck_assert_int_eq(try_create(&user, &root, "..", STORE_FILE), -EACCES);
	ck_assert_int_eq(try_create(&user, &root, "f", STORE_FILE), -EACCES);
	ck_assert_int_eq(try_remove(&user, &root, "..", STORE_FILE), -EACCES);
	ck_assert_int_eq(try_remove(&user, &root, "x", STORE_FILE), -EACCES);

	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &clone.volume), 0);
	file.volume = clone.volume;
	ck_assert_int_eq(try_create(&user, &file, "", STORE_FILE), -ENOTDIR);
	clone.vnode = 1;
	clone.unique = 9;
	ck_assert_int_eq(try_create(&user, &clone, "", STORE_FILE), STORE_VNOVNODE);
	clone.unique = 1;
	ck_assert_int_eq(try_create(&user, &clone, "", STORE_FILE), -EROFS);
	ck_assert_int_eq(try_remove(&admin, &clone, "f", STORE_FILE), -EROFS);
	ck_assert_int_eq(try_write(&admin, &file, 0, "x", 1, 1), -EROFS);
	ck_assert_int_eq(try_write(&admin, &clone, 0, "x", 1, 1), -EISDIR);
	ck_assert_int_eq(try_set(&admin, &file, STORE_SET_MODE, 0600), -EROFS);
	ck_assert_int_eq(store->ops->set_acl(store, &admin, &clone, &acl, &status, &changes),
			 -EROFS);
	ck_assert_int_eq(try_rename(&admin, &clone, "f", &clone, "g"), -EROFS);
	ck_assert_int_eq(try_link(&admin, &clone, "g", &file), -EROFS);

	ck_assert_int_eq(store_volume_offline(store, volume, "moving house"), 0);
	ck_assert_int_eq(try_status(&admin, &root), STORE_VOFFLINE);
	ck_assert_int_eq(try_create(&admin, &root, "g", STORE_FILE), STORE_VOFFLINE);
	fixture_volume(volume);
	ck_assert(!about.online);
	ck_assert_str_eq(about.offline_message, "moving house");
	ck_assert_int_eq(try_status(&admin, &clone), 0);
	ck_assert_int_eq(store_volume_online(store, volume, NULL, NULL), 0);
	ck_assert_int_eq(try_status(&admin, &root), 0);
}
END_TEST

/* -- rights -- */

/* Give `rights` to the user alone. */
static void grant(const struct store_fid *dir, uint32_t rights)
{
	struct store_acl acl = {0};

	ck_assert_int_eq(store_acl_add(&acl, false, STORE_ADMINISTRATORS, STORE_ALL), 0);
	if (rights)
		ck_assert_int_eq(store_acl_add(&acl, false, user.id, rights), 0);
	ck_assert_int_eq(store->ops->set_acl(store, &admin, dir, &acl, &status, &changes), 0);
	ck_assert_uint_eq(changes.count, 1);
}

START_TEST(rights_of_readers)
{
	struct store_fid dir, file, own, link;

	fixture_open(STORE_LAZY);
	dir = make(&root, "d", STORE_DIR);
	file = make(&dir, "f", STORE_FILE);
	link = make_link(&dir, "l", "text");
	grant(&dir, STORE_INSERT);
	own = make_as(&user, &dir, "own", STORE_FILE);
	for (uint32_t rights = 0; rights < 128; rights++) {
		grant(&dir, rights);
		ck_assert_int_eq(try_status(&user, &dir), 0);
		ck_assert_uint_eq(status.rights, rights);
		ck_assert_int_eq(try_status(&user, &file), rights & STORE_READ ? 0 : -EACCES);
		ck_assert_int_eq(try_status(&user, &own),
				 rights & (STORE_READ | STORE_INSERT) ? 0 : -EACCES);
		ck_assert_int_eq(try_status(&user, &link), rights & STORE_LOOKUP ? 0 : -EACCES);
		ck_assert_int_eq(try_read(&user, &dir), rights & STORE_LOOKUP ? 0 : -EACCES);
		ck_assert_int_eq(try_read(&user, &file), rights & STORE_READ ? 0 : -EACCES);
		ck_assert_int_eq(try_read(&user, &own),
				 rights & (STORE_READ | STORE_INSERT) ? 0 : -EACCES);
		ck_assert_int_eq(try_acl(&user, &dir), rights & STORE_LOOKUP ? 0 : -EACCES);
		ck_assert_int_eq(try_acl(&user, &file), rights & STORE_READ ? 0 : -EACCES);
	}
	/* The mode keeps those out who do not own the file. */
	grant(&dir, STORE_READ);
	ck_assert_int_eq(try_set(&admin, &file, STORE_SET_MODE, 0022), 0);
	ck_assert_int_eq(try_read(&user, &file), -EACCES);
	ck_assert_int_eq(try_status(&user, &file), 0);
	ck_assert_uint_eq(status.rights, STORE_READ);
	ck_assert_int_eq(try_status(&user, &own), 0);
	ck_assert_uint_eq(status.rights, STORE_READ | STORE_ADMIN);
}
END_TEST

START_TEST(rights_of_writers)
{
	struct store_fid dir, file, own;

	fixture_open(STORE_LAZY);
	dir = make(&root, "d", STORE_DIR);
	file = make(&dir, "f", STORE_FILE);
	grant(&dir, STORE_INSERT);
	own = make_as(&user, &dir, "own", STORE_FILE);
	for (uint32_t rights = 0; rights < 128; rights++) {
		bool insert = rights & STORE_INSERT, remove = rights & STORE_DELETE;

		grant(&dir, rights);
		ck_assert_int_eq(try_write(&user, &file, 0, "x", 1, 1),
				 rights & STORE_WRITE ? 0 : -EACCES);
		ck_assert_int_eq(try_write(&user, &own, 0, "x", 1, 1),
				 rights & (STORE_WRITE | STORE_INSERT) ? 0 : -EACCES);
		ck_assert_int_eq(try_set(&user, &file, STORE_SET_MTIME, 0),
				 rights & STORE_WRITE ? 0 : -EACCES);
		ck_assert_int_eq(try_set(&user, &dir, STORE_SET_MTIME, 0),
				 insert || remove ? 0 : -EACCES);
		ck_assert_int_eq(try_create(&user, &dir, "new", STORE_FILE), insert ? 0 : -EACCES);
		ck_assert_int_eq(try_rename(&user, &dir, "f", &dir, "f2"),
				 insert && remove ? 0 : -EACCES);
		if (insert && remove)
			ck_assert_int_eq(try_rename(&user, &dir, "f2", &dir, "f"), 0);
		ck_assert_int_eq(try_remove(&user, &dir, "new", STORE_FILE), !remove  ? -EACCES
									     : insert ? 0
										      : -ENOENT);
		if (!remove && insert)
			ck_assert_int_eq(try_remove(&admin, &dir, "new", STORE_FILE), 0);
		ck_assert_int_eq(store->ops->create(
					 store, &user, &dir, "m", STORE_SYMLINK, "#v.",
					 &(struct store_set){.mask = STORE_SET_MODE, .mode = 0644},
					 &status, &dir_status, &changes),
				 insert && rights & STORE_ADMIN ? 0 : -EACCES);
		if (insert && rights & STORE_ADMIN)
			ck_assert_int_eq(try_remove(&admin, &dir, "m", STORE_FILE), 0);
	}
	/* A file that nobody may write, but for its owner. */
	grant(&dir, STORE_WRITE | STORE_INSERT);
	ck_assert_int_eq(try_set(&admin, &file, STORE_SET_MODE, 0444), 0);
	ck_assert_int_eq(try_write(&user, &file, 0, "x", 1, 1), -EACCES);
	ck_assert_int_eq(try_set(&admin, &own, STORE_SET_MODE, 0444), 0);
	ck_assert_int_eq(try_write(&user, &own, 0, "x", 1, 1), 0);
}
END_TEST

/* Rights of a machine's groups are added; an entry against a user does not take them away. */
static void rights_of_machines(void)
{
	const int32_t groups[] = {-400, -300};
	struct store_caller caller = user;
	struct store_acl acl = {0};

	store_acl_add(&acl, false, -300, STORE_INSERT | STORE_WRITE | STORE_READ);
	store_acl_add(&acl, false, user.id, STORE_LOOKUP | STORE_READ);
	store_acl_add(&acl, true, user.id, STORE_WRITE | STORE_LOOKUP);
	ck_assert_uint_eq(store_acl_rights(&acl, &caller), STORE_READ);
	ck_assert_uint_eq(store_acl_anonymous(&acl, &caller), 0);
	caller.host_ids = groups;
	caller.host_id_count = 1;
	ck_assert_uint_eq(store_acl_rights(&acl, &caller), STORE_READ);
	caller.host_id_count = 2;
	ck_assert_uint_eq(store_acl_rights(&acl, &caller), STORE_READ | STORE_WRITE | STORE_INSERT);
	ck_assert_uint_eq(store_acl_anonymous(&acl, &caller),
			  STORE_READ | STORE_WRITE | STORE_INSERT);
	store_acl_add(&acl, true, -400, STORE_READ | STORE_INSERT);
	ck_assert_uint_eq(store_acl_rights(&acl, &caller), STORE_READ | STORE_WRITE);
	ck_assert_uint_eq(store_acl_anonymous(&acl, &caller), STORE_WRITE);
}

START_TEST(access_lists)
{
	struct store_acl acl = {0}, back;
	struct store_fid dir, below;

	fixture_open(STORE_LAZY);
	dir = make(&root, "d", STORE_DIR);
	for (int i = 10; i > 0; i--) {
		ck_assert_int_eq(store_acl_add(&acl, false, i, STORE_READ | STORE_INSERT), 0);
		ck_assert_int_eq(store_acl_add(&acl, true, -i, STORE_LOOKUP), 0);
	}
	ck_assert_int_eq(store_acl_add(&acl, false, 11, STORE_READ), -E2BIG);
	ck_assert_int_eq(store_acl_add(&acl, false, 10, STORE_WRITE), 0);
	ck_assert_int_eq(store->ops->set_acl(store, &admin, &dir, &acl, &status, &changes), 0);
	ck_assert_uint_eq(status.version, 0); /* the data are the same */
	ck_assert_int_eq(store->ops->set_acl(store, &user, &dir, &acl, &status, &changes), -EACCES);
	below = make(&dir, "below", STORE_DIR);
	fixture_reopen();
	ck_assert_int_eq(store->ops->acl(store, &admin, &below, &back, &status), 0);
	ck_assert_uint_eq(back.positive, 10);
	ck_assert_uint_eq(back.negative, 10);
	ck_assert_mem_eq(back.entry, acl.entry, sizeof(acl.entry));
	ck_assert_int_eq(back.entry[0].id, 1);
	ck_assert_int_eq(back.entry[10].id, -10);
	ck_assert_uint_eq(back.entry[9].rights, STORE_READ | STORE_INSERT | STORE_WRITE);
	/* Negative entries win. */
	acl = (struct store_acl){0};
	store_acl_add(&acl, false, STORE_ANYUSER, STORE_READ | STORE_LOOKUP);
	store_acl_add(&acl, true, user.id, STORE_READ);
	ck_assert_uint_eq(store_acl_rights(&acl, &user), STORE_LOOKUP);
	ck_assert_uint_eq(store_acl_rights(&acl, &anonymous), STORE_READ | STORE_LOOKUP);
	rights_of_machines();
	ck_assert_int_eq(store->ops->set_acl(store, &admin, &dir, &acl, &status, &changes), 0);
	ck_assert_uint_eq(status.anonymous, STORE_READ | STORE_LOOKUP);
	ck_assert_uint_eq(status.rights, STORE_READ | STORE_LOOKUP);
	ck_assert_int_eq(store->ops->set_acl(store, &admin, &(struct store_fid){volume, 2, 2}, &acl,
					     &status, &changes),
			 STORE_VNOVNODE);
}
END_TEST

START_TEST(setting_status)
{
	struct store_fid file, link;
	struct store_set set = {.mask = STORE_SET_OWNER | STORE_SET_GROUP, .owner = 10, .group = 5};

	fixture_open(STORE_LAZY);
	grant(&root, STORE_INSERT | STORE_WRITE | STORE_READ);
	file = make_as(&user, &root, "f", STORE_FILE);
	link = make_link(&root, "l", "x");
	ck_assert_int_eq(try_set(&user, &file, STORE_SET_MODE, 01751), 0);
	ck_assert_uint_eq(status.mode, 0751);
	ck_assert_uint_eq(status.version, 0);
	ck_assert_int_eq(try_set(&user, &file, STORE_SET_MODE, 04751), 0); /* dropped in silence */
	ck_assert_uint_eq(status.mode, 0751);
	ck_assert_int_eq(try_set(&admin, &file, STORE_SET_MODE, 06751), 0);
	ck_assert_uint_eq(status.mode, 06751);
	ck_assert_int_eq(try_set(&user, &link, STORE_SET_MODE, 0600), -EINVAL);
	ck_assert_int_eq(try_set(&user, &root, STORE_SET_MODE, 04755), -EACCES);
	/* The group would change, then only the same owner is set, which clears the bits. */
	ck_assert_int_eq(store->ops->set_status(store, &user, &file, &set, &status, &changes),
			 -EPERM);
	set.mask = STORE_SET_OWNER;
	ck_assert_int_eq(store->ops->set_status(store, &user, &file, &set, &status, &changes), 0);
	ck_assert_uint_eq(status.mode, 0751);
	set.owner = 11;
	ck_assert_int_eq(store->ops->set_status(store, &user, &file, &set, &status, &changes),
			 -EPERM);
	ck_assert_int_eq(store->ops->set_status(store, &admin, &file, &set, &status, &changes), 0);
	ck_assert_int_eq(status.owner, 11);
	/* Bits of others go when the file is written. */
	ck_assert_int_eq(try_set(&admin, &file, STORE_SET_MODE, 06777), 0);
	ck_assert_int_eq(try_write(&user, &file, 0, "x", 1, 1), 0);
	ck_assert_uint_eq(status.mode, 0777);
	ck_assert_int_eq(status.author, user.id);
	/* The owner of the root is the volume's, and may see and set access lists. */
	set.owner = user.id;
	grant(&root, 0);
	ck_assert_int_eq(try_acl(&user, &root), -EACCES);
	ck_assert_int_eq(store->ops->set_status(store, &admin, &root, &set, &status, &changes), 0);
	ck_assert_int_eq(try_acl(&user, &root), 0);
	fixture_reopen();
	ck_assert_int_eq(try_acl(&user, &root), 0);
	ck_assert_int_eq(try_status(&user, &link), 0);
}
END_TEST

/* -- data -- */

#define LONGEST	  ((uint64_t)1 << 40) /* a file */
#define MODEL_MAX 300000

/* A file as it should be. */
struct model {
	struct store_fid fid;
	uint8_t *bytes;
	uint64_t length, version;
};

static uint64_t chosen(uint64_t *random, uint64_t below)
{
	return crashdisk_random(random) % below;
}

static void write_at_random(struct model *model, uint64_t *random, uint64_t most)
{
	uint64_t offset = chosen(random, 3) ? chosen(random, most) : 0;
	uint64_t length = chosen(random, 4) ? chosen(random, most) : 0;
	uint64_t file_length = chosen(random, 2) ? model->length : chosen(random, 2 * most);
	uint64_t kept = model->length < file_length ? model->length : file_length;
	static uint8_t data[MODEL_MAX];

	for (uint64_t i = 0; i < length; i++)
		data[i] = (uint8_t)crashdisk_random(random);
	ck_assert_int_eq(try_write(&admin, &model->fid, offset, data, length, file_length), 0);
	memset(model->bytes + kept, 0, MODEL_MAX - kept);
	memcpy(model->bytes + offset, data, length);
	model->length = kept > offset + length ? kept : offset + length;
	ck_assert_uint_eq(status.length, model->length);
	ck_assert_uint_eq(status.version, ++model->version);
}

START_TEST(random_writes)
{
	static const uint64_t most[] = {10, 3000, 5000, 9000, 140000};
	struct model model[5] = {0};
	uint64_t random = 7;
	char name[16];

	fixture_open(_i ? STORE_STRICT : STORE_LAZY);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		model[i].fid = make(&root, name, STORE_FILE);
		model[i].bytes = calloc(1, MODEL_MAX);
	}
	for (int round = 0; round < (_i ? 20 : 150); round++) {
		for (int i = 0; i < 5; i++) {
			write_at_random(&model[i], &random, most[i]);
			fixture_same(&model[i].fid, model[i].bytes, model[i].length);
		}
		if (round % 50 == 49)
			fixture_reopen();
	}
	for (int i = 0; i < 5; i++) {
		fixture_same(&model[i].fid, model[i].bytes, model[i].length);
		free(model[i].bytes);
	}
}
END_TEST

/* A clone of each state is read after all later changes. */
START_TEST(random_clones)
{
	struct model model = {.bytes = calloc(1, MODEL_MAX)}, old = {.bytes = calloc(1, MODEL_MAX)};
	uint64_t random = 11;
	uint32_t clone;

	fixture_open(STORE_LAZY);
	model.fid = make(&root, "f", STORE_FILE);
	for (int round = 0; round < 60; round++) {
		ck_assert_int_eq(store_volume_clone(store, volume,
						    round & 1 ? STORE_RO : STORE_BACKUP, &clone),
				 0);
		memcpy(old.bytes, model.bytes, MODEL_MAX);
		old.length = model.length;
		old.fid = model.fid;
		old.fid.volume = clone;
		for (int i = 0; i < 4; i++)
			write_at_random(&model, &random, round % 3 ? 3000 : 100000);
		fixture_same(&old.fid, old.bytes, old.length);
		fixture_same(&model.fid, model.bytes, model.length);
		if (round % 20 == 19)
			fixture_reopen();
	}
	ck_assert_int_eq(store_volume_remove(store, clone), 0);
	fixture_pruned();
	fixture_same(&model.fid, model.bytes, model.length);
	free(model.bytes);
	free(old.bytes);
}
END_TEST

/* Small writes everywhere. */
START_TEST(many_places)
{
	static uint8_t bytes[600 * 3000], spot[100];
	struct store_fid file;

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	memset(bytes, 1, sizeof(bytes));
	ck_assert_int_eq(try_write(&admin, &file, 0, bytes, sizeof(bytes), 0), 0);
	for (unsigned i = 600; i--;) {
		memset(spot, (int)(i & 255), sizeof(spot));
		ck_assert_int_eq(
			try_write(&admin, &file, i * 3000, spot, sizeof(spot), sizeof(bytes)), 0);
		memcpy(bytes + i * 3000, spot, sizeof(spot));
	}
	fixture_same(&file, bytes, sizeof(bytes));
	/* Islands in a sea of nothing: the file is far longer than the disk may be. */
	file = make(&root, "sparse", STORE_FILE);
	for (uint64_t i = 0; i < 300; i++)
		ck_assert_int_eq(try_write(&admin, &file, (i * 7 % 300) << 20, "x", 1, UINT64_MAX),
				 0);
	ck_assert_uint_eq(status.length, (299ull << 20) + 1);
	for (uint64_t i = 0; i < 300; i++)
		ck_assert_int_eq(byte_at(&file, i << 20), 'x');
	ck_assert_int_eq(byte_at(&file, 12345), 0);
}
END_TEST

START_TEST(writers)
{
	struct store_writer *one, *two;
	struct store_fid file;
	struct iovec iov = {.iov_base = "0123456789", .iov_len = 10};
	struct store_set set = {.mask = STORE_SET_SYNC | STORE_SET_MTIME, .mtime = 5};
	static uint8_t large[10000];

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 10, 0, &one), 0);
	ck_assert_int_eq(store->ops->write(one, &iov, 1), 0);
	ck_assert_int_eq(store->ops->write(one, &iov, 1), -EINVAL);
	/* Another one is faster, and the first one's file is not small any more. */
	ck_assert_int_eq(try_write(&admin, &file, 5, large, sizeof(large), 0), 0);
	ck_assert_int_eq(store->ops->write_commit(one, &status, &changes), 0);
	ck_assert_uint_eq(status.length, 10);
	ck_assert_uint_eq(status.version, 2);
	fixture_same(&file, "0123456789", 10);
	/* Too few bytes change nothing. */
	ck_assert_int_eq(try_begin(&admin, &file, 3, 20, 10, &one), 0);
	ck_assert_int_eq(store->ops->write(one, &iov, 1), 0);
	ck_assert_int_eq(store->ops->write_commit(one, &status, &changes), -EINVAL);
	ck_assert_int_eq(try_begin(&admin, &file, 3, 10000, 10, &two), 0);
	store->ops->write_abort(two);
	store->ops->write_abort(NULL);
	fixture_same(&file, "0123456789", 10);
	ck_assert_int_eq(try_begin(&admin, &file, LONGEST, 1, 10, &one), -EFBIG);
	ck_assert_int_eq(try_begin(&admin, &file, LONGEST - 9, 10, 10, &one), -EFBIG);
	ck_assert_int_eq(try_begin(&admin, &file, LONGEST + 1, 0, 10, &one), -EFBIG);
	ck_assert_int_eq(try_begin(&admin, &file, 10, LONGEST, 10, &one), -EFBIG);
	ck_assert_int_eq(try_begin(&admin, &file, LONGEST - 10, 10, 10, &one), 0);
	store->ops->write_abort(one);
	ck_assert_int_eq(try_begin(&admin, &file, (uint64_t)INT64_MAX, 1, 10, &one), -EFBIG);
	ck_assert_int_eq(try_begin(&admin, &file, UINT64_MAX, 1, 10, &one), -EFBIG);
	/* Removed meanwhile. */
	ck_assert_int_eq(try_begin(&admin, &file, 0, 10, 10, &one), 0);
	ck_assert_int_eq(store->ops->write(one, &iov, 1), 0);
	ck_assert_int_eq(try_remove(&admin, &root, "f", STORE_FILE), 0);
	ck_assert_int_eq(store->ops->write_commit(one, &status, &changes), STORE_VNOVNODE);
	/* With a flush. */
	file = make(&root, "g", STORE_FILE);
	ck_assert_int_eq(store->ops->write_begin(store, &admin, &file, &set, 0, 10, 10, &one), 0);
	ck_assert_int_eq(store->ops->write(one, &iov, 1), 0);
	ck_assert_int_eq(store->ops->write_commit(one, &status, &changes), 0);
	ck_assert_uint_eq(status.client_mtime, 5);
	store_stats(store, &stats);
	ck_assert_uint_gt(stats.flushes, 0);
	/* Readers keep their version. */
	fixture_keeps(&file);
}
END_TEST

/* -- operations whose caller does not wait -- */

#define LATER 40

static struct pending {
	struct store_later later; /* first member */
	struct store_caller caller;
	struct store_status status, dir_status;
	struct store_changes changes;
	char name[16];
	bool waits; /* leave() refuses */
	bool announced, ended;
} pending[LATER];

static pthread_mutex_t later_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t later_ended = PTHREAD_COND_INITIALIZER;
static int ended; /* later_lock */

static bool leave(struct store_later *later)
{
	return !((struct pending *)later)->waits;
}

/* On the thread that commits: the version of the folder that others see is not the new one yet. */
static void announced(void *arg, const struct store_changes *told)
{
	struct pending *p = arg;
	struct store_status seen;

	ck_assert(!p->announced && !p->ended);
	ck_assert_ptr_eq(told, &p->changes);
	ck_assert_uint_ge(told->count, 1);
	ck_assert_int_eq(store->ops->status(store, &admin, &told->change[0].fid, &seen), 0);
	ck_assert_uint_lt(seen.version, told->change[0].fid.vnode == root.vnode
						? p->dir_status.version
						: p->status.version);
	p->announced = true;
}

/* Exactly what succeeded was announced. */
static void done(struct store_later *list)
{
	pthread_mutex_lock(&later_lock);
	for (; list; list = list->next) {
		struct pending *p = (struct pending *)list;

		ck_assert_int_eq(p->announced, !list->result);
		p->ended = true;
		ended++;
	}
	pthread_cond_signal(&later_ended);
	pthread_mutex_unlock(&later_lock);
}

static void await_ended(int count)
{
	pthread_mutex_lock(&later_lock);
	while (ended < count)
		pthread_cond_wait(&later_ended, &later_lock);
	pthread_mutex_unlock(&later_lock);
}

static int create_later(struct pending *p, int number)
{
	p->later = (struct store_later){.leave = leave, .done = done};
	p->caller = admin;
	p->caller.later = &p->later;
	p->caller.changed = announced;
	p->caller.changed_arg = p;
	p->announced = p->ended = false;
	snprintf(p->name, sizeof(p->name), "n%d", number);
	return store->ops->create(store, &p->caller, &root, p->name, STORE_FILE, NULL, &nothing,
				  &p->status, &p->dir_status, &p->changes);
}

static int remove_later(struct pending *p)
{
	p->announced = p->ended = false;
	return store->ops->remove(store, &p->caller, &root, p->name, STORE_FILE, &p->dir_status,
				  &p->changes);
}

static void created_later(void)
{
	for (int i = 0; i < LATER; i++)
		ck_assert_int_eq(create_later(&pending[i], i), STORE_LATER);
	await_ended(LATER);
	for (int i = 0; i < LATER; i++) {
		ck_assert_int_eq(pending[i].later.result, 0);
		ck_assert_uint_eq(pending[i].changes.count, 1);
		ck_assert_int_eq(try_status(&admin, &pending[i].status.fid), 0);
	}
	/* Refused by the transaction; and by leave(). */
	ck_assert_int_eq(create_later(&pending[0], 1), STORE_LATER);
	await_ended(LATER + 1);
	ck_assert_int_eq(pending[0].later.result, -EEXIST);
	pending[0].waits = true;
	ck_assert_int_eq(create_later(&pending[0], LATER), 0);
	ck_assert_int_eq(remove_later(&pending[0]), 0);
	pending[0].waits = false;
}

static struct store_writer *begin_later(struct pending *p, const struct store_fid *file,
					uint64_t length)
{
	struct iovec iov = {.iov_base = "0123456789", .iov_len = 10};
	struct store_writer *writer;

	ck_assert_int_eq(
		store->ops->write_begin(store, &p->caller, file, &nothing, 0, 10, length, &writer),
		0);
	ck_assert_int_eq(store->ops->write(writer, &iov, 1), 0);
	return writer;
}

static int commit_pending(struct pending *p, struct store_writer *writer)
{
	p->announced = p->ended = false;
	return store->ops->write_commit(writer, &p->status, &p->changes);
}

static void later(enum store_durability durability)
{
	static uint8_t large[10000];
	struct pending *p = &pending[0];
	struct store_writer *writer;
	struct store_fid file;

	ended = 0;
	fixture_open(durability);
	created_later();
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(commit_pending(p, begin_later(p, &file, 10)), STORE_LATER);
	await_ended(LATER + 2);
	ck_assert_int_eq(p->later.result, 0);
	fixture_same(&file, "0123456789", 10);
	/* The file has become large meanwhile: the rest of the work takes a thread that may wait. */
	writer = begin_later(p, &file, sizeof(large));
	memset(large, 'x', sizeof(large));
	ck_assert_int_eq(try_write(&admin, &file, 0, large, sizeof(large), sizeof(large)), 0);
	ck_assert_int_eq(commit_pending(p, writer), STORE_LATER);
	await_ended(LATER + 3);
	ck_assert_int_eq(p->later.result, STORE_AGAIN);
	ck_assert_int_eq(commit_pending(p, writer), 0);
	memcpy(large, "0123456789", 10);
	fixture_same(&file, large, sizeof(large));
	for (int i = 1; i < LATER; i++)
		ck_assert_int_eq(remove_later(&pending[i]), STORE_LATER);
	await_ended(2 * LATER + 2);
	for (int i = 1; i < LATER; i++)
		ck_assert_int_eq(try_status(&admin, &pending[i].status.fid), STORE_VNOVNODE);
}

START_TEST(later_lazy)
{
	later(STORE_LAZY);
}
END_TEST

START_TEST(later_strict)
{
	later(STORE_STRICT);
}
END_TEST

START_TEST(quotas)
{
	struct store_fid file, dir;
	static uint8_t bytes[2 << 20];
	struct store_volume values = {.quota_kib = 100, .offline_message = "soon"};
	struct store_writer *one, *two;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store->ops->volume_set(store, &user, volume, 1, &values), -EACCES);
	ck_assert_int_eq(store->ops->volume_set(store, &admin, volume, 3, &values), 0);
	fixture_volume(volume);
	ck_assert_uint_eq(about.quota_kib, 100);
	ck_assert_str_eq(about.offline_message, "soon");
	values.minimum = -7;
	ck_assert_int_eq(store->ops->volume_set(store, &admin, volume, 4, &values), 0);
	fixture_reopen();
	fixture_volume(volume);
	ck_assert_int_eq(about.minimum, -7);
	ck_assert_uint_eq(about.quota_kib, 100);
	ck_assert_str_eq(about.offline_message, "soon");
	values.minimum = 0;
	ck_assert_int_eq(store->ops->volume_set(store, &admin, volume, 4, &values), 0);
	file = make(&root, "f", STORE_FILE);
	/* StoreData may exceed the quota by a MiB, once. */
	ck_assert_int_eq(try_write(&admin, &file, 0, bytes, 1121 << 10, 0), 0);
	fixture_volume(volume);
	ck_assert_uint_eq(about.used_kib, 1123);
	ck_assert_int_eq(try_create(&admin, &root, "g", STORE_FILE), STORE_VOVERQUOTA);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 2200 << 10, 0, &one), STORE_VOVERQUOTA);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 1130 << 10, 0, &one), STORE_VOVERQUOTA);
	ck_assert_int_eq(try_write(&admin, &file, 0, bytes, 1000, 0), 0);
	fixture_volume(volume);
	ck_assert_uint_eq(about.used_kib, 3);
	/* Space that was promised to one writer is not given to another. */
	values.quota_kib = 60;
	ck_assert_int_eq(store->ops->volume_set(store, &admin, volume, 1, &values), 0);
	dir = make(&root, "d", STORE_DIR);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 1070 << 10, 0, &one), 0);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 1070 << 10, 0, &two), STORE_VOVERQUOTA);
	ck_assert_int_eq(try_create(&admin, &root, "e", STORE_FILE), STORE_VOVERQUOTA);
	store->ops->write_abort(one);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 1070 << 10, 0, &two), 0);
	store->ops->write_abort(two);
	ck_assert_int_eq(try_remove(&admin, &root, "d", STORE_DIR), 0);
	ck_assert_int_eq(try_status(&admin, &dir), STORE_VNOVNODE);
	fixture_volume(volume);
	ck_assert_uint_eq(about.used_kib, 3);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 1ull << 60, 0, &one), -EFBIG);
}
END_TEST

/* -- names of objects -- */

START_TEST(links)
{
	struct store_fid file, dir, link, elsewhere;

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	dir = make(&root, "d", STORE_DIR);
	link = make_link(&root, "l", "x");
	ck_assert_int_eq(try_link(&admin, &root, "g", &dir), -EISDIR);
	ck_assert_int_eq(try_link(&admin, &root, "g", &link), -EISDIR);
	ck_assert_int_eq(try_link(&admin, &dir, "g", &file), -EXDEV);
	ck_assert_int_eq(try_link(&admin, &root, "l", &file), -EEXIST);
	ck_assert_int_eq(try_link(&admin, &root, "..", &file), -EEXIST);
	ck_assert_int_eq(try_link(&user, &root, "g", &file), -EACCES);
	ck_assert_int_eq(try_link(&admin, &root, "g", &(struct store_fid){volume, 2, 99}),
			 STORE_VNOVNODE);
	ck_assert_int_eq(try_link(&admin, &root, "g", &(struct store_fid){volume + 1, 2, 2}),
			 -EXDEV);
	ck_assert_int_eq(try_link(&admin, &root, "g", &file), 0);
	ck_assert_uint_eq(status.links, 2);
	ck_assert_uint_eq(status.version, 0);
	ck_assert_uint_eq(changes.count, 2);
	ck_assert(!changes.change[1].for_all);
	ck_assert_int_eq(try_rename(&admin, &root, "f", &dir, "f"), -EXDEV);
	/* Of two volumes: the new name's spelling comes first, all else later. */
	elsewhere = dir;
	elsewhere.volume++;
	ck_assert_int_eq(try_rename(&admin, &root, "f", &elsewhere, "a/b"), -EINVAL);
	ck_assert_int_eq(try_rename(&admin, &root, "..", &elsewhere, "."), -EXDEV);
	ck_assert_int_eq(try_rename(&admin, &root, "f", &root, "g"), -EINVAL);
	ck_assert_int_eq(try_remove(&admin, &root, "f", STORE_FILE), 0);
	ck_assert_uint_eq(changes.count, 2);
	ck_assert(changes.change[1].for_all && !changes.change[1].gone);
	ck_assert_int_eq(try_status(&admin, &file), 0);
	ck_assert_uint_eq(status.links, 1);
	ck_assert_int_eq(try_remove(&admin, &root, "g", STORE_DIR), -ENOTDIR);
	ck_assert_int_eq(try_remove(&admin, &root, "d", STORE_FILE), -EISDIR);
	ck_assert_int_eq(try_remove(&admin, &root, "g", STORE_FILE), 0);
	ck_assert(changes.change[1].gone && !changes.change[1].for_all);
	ck_assert_int_eq(try_status(&admin, &file), STORE_VNOVNODE);
	make(&dir, "x", STORE_FILE);
	ck_assert_int_eq(try_remove(&admin, &root, "d", STORE_DIR), -EEXIST);
	ck_assert_int_eq(try_remove(&admin, &dir, "x", STORE_FILE), 0);
	ck_assert_int_eq(try_remove(&admin, &root, "d", STORE_DIR), 0);
	ck_assert_uint_eq(dir_status.links, 2);
}
END_TEST

START_TEST(renames)
{
	struct store_fid a, b, sub, file, other, moved;

	fixture_open(STORE_LAZY);
	a = make(&root, "a", STORE_DIR);
	b = make(&root, "b", STORE_DIR);
	sub = make(&a, "sub", STORE_DIR);
	file = make(&a, "f", STORE_FILE);
	other = make(&b, "f", STORE_FILE);
	ck_assert_int_eq(try_rename(&admin, &a, "none", &b, "x"), -ENOENT);
	ck_assert_int_eq(try_rename(&admin, &a, "f", &a, "f"), -EINVAL);
	ck_assert_int_eq(try_rename(&admin, &a, ".", &b, "x"), -EINVAL);
	ck_assert_int_eq(try_rename(&admin, &a, "f", &b, ".."), -EINVAL);
	ck_assert_int_eq(try_rename(&admin, &a, "f", &b, "x/y"), -EINVAL);
	ck_assert_int_eq(try_rename(&admin, &a, "f", &file, "x"), -ENOTDIR);
	ck_assert_int_eq(try_rename(&admin, &a, "f", &(struct store_fid){volume + 9, 1, 1}, "x"),
			 -EXDEV);
	ck_assert_int_eq(try_rename(&admin, &root, "a", &a, "x"), -EINVAL);
	ck_assert_int_eq(try_rename(&admin, &root, "a", &sub, "x"), -EINVAL);
	ck_assert_int_eq(try_rename(&admin, &a, "f", &a, "sub"), -EISDIR);
	ck_assert_int_eq(try_rename(&admin, &a, "sub", &b, "f"), -ENOTDIR);
	ck_assert_int_eq(try_rename(&admin, &a, "f", &root, "b"), -EISDIR);

	/* Over a file of another directory. */
	ck_assert_int_eq(try_rename(&admin, &a, "f", &b, "f"), 0);
	ck_assert_uint_eq(changes.count, 3);
	ck_assert_uint_eq(changes.change[2].fid.vnode, other.vnode);
	ck_assert(changes.change[2].gone);
	ck_assert_int_eq(try_status(&admin, &other), STORE_VNOVNODE);
	ck_assert_int_eq(try_status(&admin, &file), 0);
	ck_assert_uint_eq(status.parent, b.vnode);
	ck_assert_uint_eq(status.version, 0);

	/* A directory: its "..", and the links of both parents. */
	ck_assert_int_eq(try_rename(&admin, &a, "sub", &b, "sub2"), 0);
	ck_assert_uint_eq(old_status.links, 2);
	ck_assert_uint_eq(new_status.links, 3);
	ck_assert_uint_eq(changes.count, 3);
	ck_assert(changes.change[2].for_all);
	ck_assert_int_eq(try_status(&admin, &sub), 0);
	ck_assert_uint_eq(status.version, 1);

	/* Over an empty directory, in the same one. */
	moved = make(&b, "empty", STORE_DIR);
	make(&sub, "x", STORE_FILE);
	ck_assert_int_eq(try_rename(&admin, &b, "empty", &b, "sub2"), -EEXIST);
	ck_assert_int_eq(try_rename(&admin, &b, "sub2", &b, "empty"), 0);
	ck_assert_uint_eq(new_status.links, 3);
	ck_assert_uint_eq(old_status.version, new_status.version);
	ck_assert_int_eq(try_status(&admin, &moved), STORE_VNOVNODE);
	/* Rights on both sides, and to delete the target. */
	grant(&a, STORE_INSERT);
	ck_assert_int_eq(try_rename(&user, &b, "f", &a, "f"), -EACCES);
	grant(&b, STORE_DELETE);
	ck_assert_int_eq(try_rename(&user, &b, "f", &a, "f"), 0);
	make(&b, "f", STORE_FILE);
	ck_assert_int_eq(try_rename(&user, &b, "f", &a, "f"), -EACCES);
	grant(&a, STORE_INSERT | STORE_DELETE);
	ck_assert_int_eq(try_rename(&user, &b, "f", &a, "f"), 0);
}
END_TEST

#define NAMES 64000

/* A name that is as long as its successor makes room for that; one transaction, or nothing. */
static void rename_in_full(const struct store_fid *dir)
{
	const char *longer = "a name of two slots";
	struct store_fid file = make(&root, "file", STORE_FILE);
	uint64_t version, length;

	ck_assert_int_eq(try_status(&admin, dir), 0);
	version = status.version;
	length = status.length;
	ck_assert_int_eq(try_rename(&admin, dir, "name5", dir, "other"), 0);
	ck_assert_uint_eq(new_status.version, version + 1);
	ck_assert_uint_eq(new_status.length, length);
	ck_assert_uint_eq(changes.count, 1);
	ck_assert_int_eq(try_remove(&admin, dir, "name5", STORE_FILE), -ENOENT);
	/* Over another name. */
	ck_assert_int_eq(try_rename(&admin, dir, "other", dir, "name6"), 0);
	ck_assert_int_eq(try_create(&admin, dir, "name5", STORE_FILE), 0);
	/* There is no room after that either. */
	ck_assert_int_eq(try_rename(&admin, dir, "name5", dir, longer), -EFBIG);
	ck_assert_int_eq(try_rename(&admin, &root, "file", dir, "file"), -EFBIG);
	ck_assert_int_eq(try_status(&admin, dir), 0);
	ck_assert_uint_eq(status.version, version + 3);
	ck_assert_int_eq(try_status(&admin, &file), 0);
	ck_assert_uint_eq(status.parent, STORE_ROOT_VNODE);
	ck_assert_int_eq(try_create(&admin, dir, "name5", STORE_FILE), -EEXIST);
}

START_TEST(large_directory)
{
	struct store_fid dir;
	char name[16];
	uint32_t clone;

	fixture_open(STORE_LAZY);
	dir = make(&root, "d", STORE_DIR);
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		make(&dir, name, STORE_FILE);
	}
	ck_assert_int_eq(try_status(&admin, &dir), 0);
	ck_assert_uint_eq(status.version, NAMES);
	ck_assert_uint_le(status.length, 2 << 20);
	fixture_reopen();
	for (int i = NAMES; i < 64500 + 100; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		if (try_create(&admin, &dir, name, STORE_FILE)) {
			ck_assert_int_eq(try_create(&admin, &dir, name, STORE_FILE), -EFBIG);
			break;
		}
	}
	ck_assert_int_eq(try_create(&admin, &dir, "name64700", STORE_FILE), -EFBIG);
	rename_in_full(&dir);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_BACKUP, &clone), 0);
	for (int i = 0; i < NAMES; i += 640) {
		snprintf(name, sizeof(name), "name%d", i);
		ck_assert_int_eq(try_remove(&admin, &dir, name, STORE_FILE), 0);
	}
	ck_assert_int_eq(store_volume_remove(store, clone), 0);
	fixture_pruned();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		refusals,	   one_process,	      new_objects,  names,	    order_of_checks,
		rights_of_readers, rights_of_writers, access_lists, setting_status, random_clones,
		many_places,	   writers,	      quotas,	    links,	    renames,
		large_directory,   later_lazy,	      later_strict};
	Suite *suite = suite_create("store");
	TCase *tcase = tcase_create("store");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 240);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, random_writes, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
