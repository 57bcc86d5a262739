/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the calls that write, and of callbacks and locks, with a store in a folder over loopback. */
#include "tests/fileserver/shop.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <rxwire/error.h>

#include "afs/afsvol.h"
#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "afs/vl.h"
#include "fileserver/service/services.h"
#include "tests/main.h"

#define UAE(e) rxw_code_from_errno(e)

static struct shop shop;
static struct shop_client *a, *b;
static AFSFid root;
static AFSFetchStatus st, dir_st, new_st;
static AFSCallBack cb;
static AFSVolSync sync_;
static AFSFid fid;
static const AFSStoreStatus nothing = {0};

static void setup(void)
{
	root = shop_open(&shop, &a, &b);
}

static void teardown(void)
{
	shop_close(&shop);
}

static int32_t status_of(struct shop_client *client, const AFSFid *f)
{
	return RXAFS_FetchStatus(client->fs, f, &st, &cb, &sync_);
}

static int32_t create(struct shop_client *client, const char *name)
{
	return RXAFS_CreateFile(client->fs, &root, name, &nothing, &fid, &st, &dir_st, &cb, &sync_);
}

/* FetchData of a directory, and the look-up of a name. */
static bool lookup(const AFSFid *dir, const char *name, AFSFid *found)
{
	static uint8_t image[1 << 21];
	int64_t n = shop_get(a, dir, 0, sizeof(image), image, NULL, NULL);

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(afs_dir_check(image, (size_t)n), 0);
	found->Volume = dir->Volume;
	return afs_dir_lookup(image, (size_t)n, name, &found->Vnode, &found->Unique) == 1;
}

/* The bytes of a reply; the arguments have been written. */
static size_t reply_bytes(rxw_call *call)
{
	uint8_t bytes[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = rxw_call_read(call, bytes, sizeof(bytes))) > 0)
		total += (size_t)n;
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	return total;
}

static rxw_call *begin(void)
{
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(a->fs, NULL, &call), 0);
	return call;
}

START_TEST(words_of_replies)
{
	AFSFid file, dir;
	rxw_call *call;

	setup();
	call = begin();
	ck_assert_int_eq(StartRXAFS_CreateFile(call, &root, "file", &nothing), 0);
	ck_assert_uint_eq(reply_bytes(call), 54 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_MakeDir(call, &root, "dir", &nothing), 0);
	ck_assert_uint_eq(reply_bytes(call), 54 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_Symlink(call, &root, "link", "text", &nothing), 0);
	ck_assert_uint_eq(reply_bytes(call), 51 * 4);
	ck_assert(lookup(&root, "file", &file) && lookup(&root, "dir", &dir));
	call = begin();
	ck_assert_int_eq(StartRXAFS_Link(call, &root, "second", &file), 0);
	ck_assert_uint_eq(reply_bytes(call), 48 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_Rename(call, &root, "second", &root, "third"), 0);
	ck_assert_uint_eq(reply_bytes(call), 48 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_StoreStatus(call, &file, &nothing), 0);
	ck_assert_uint_eq(reply_bytes(call), 27 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_StoreData64(call, &file, &nothing, 0, 5, 5), 0);
	ck_assert_int_eq(rxw_call_write(call, "abcde", 5), 5);
	ck_assert_uint_eq(reply_bytes(call), 27 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_StoreData(call, &file, &nothing, 0, 5, 5), 0);
	ck_assert_int_eq(rxw_call_write(call, "abcde", 5), 5);
	ck_assert_uint_eq(reply_bytes(call), 27 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_SetLock(call, &file, 0), 0);
	ck_assert_uint_eq(reply_bytes(call), 6 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_ExtendLock(call, &file), 0);
	ck_assert_uint_eq(reply_bytes(call), 6 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_ReleaseLock(call, &file), 0);
	ck_assert_uint_eq(reply_bytes(call), 6 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_RemoveFile(call, &root, "third"), 0);
	ck_assert_uint_eq(reply_bytes(call), 27 * 4);
	call = begin();
	ck_assert_int_eq(StartRXAFS_RemoveDir(call, &root, "dir"), 0);
	ck_assert_uint_eq(reply_bytes(call), 27 * 4);
	teardown();
}
END_TEST

START_TEST(create_and_status)
{
	const AFSStoreStatus set = {.Mask = AFS_SETMODTIME | AFS_SETMODE,
				    .ClientModTime = 1000000000,
				    .UnixModeBits = 0644};
	AFSFid file, found;
	uint64_t version;

	setup();
	ck_assert_int_eq(status_of(a, &root), 0);
	ck_assert(afs_status_usable(&st) && st.FileType == AFS_TYPE_DIR && st.LinkCount == 2);
	ck_assert_uint_eq(st.CallerAccess, 127);
	ck_assert_uint_eq(st.AnonymousAccess, 127);
	ck_assert(st.ParentVnode == 1 && st.ParentUnique == 1);
	version = afs_status_version(&st);
	ck_assert_int_eq(
		RXAFS_CreateFile(a->fs, &root, "vec365", &set, &file, &st, &dir_st, &cb, &sync_),
		0);
	ck_assert(file.Volume == shop.volume && file.Vnode % 2 == 0 && file.Unique > 1);
	ck_assert(st.FileType == AFS_TYPE_FILE && st.LinkCount == 1);
	ck_assert_uint_eq(afs_status_length(&st), 0);
	ck_assert_uint_eq(afs_status_version(&st), 0);
	ck_assert_uint_eq(st.UnixModeBits, 0644);
	ck_assert_uint_eq(st.ClientModTime, 1000000000);
	ck_assert(st.Owner == 32766 && st.Author == 32766);
	ck_assert(st.ParentVnode == 1 && st.ParentUnique == 1);
	ck_assert_uint_eq(afs_status_version(&dir_st), version + 1);
	ck_assert(cb.CallBackVersion == 1 && cb.ExpirationTime >= 60 && cb.CallBackType == 2);
	ck_assert(fsd_promise_held(shop.clients, &file));
	ck_assert(lookup(&root, "vec365", &found));
	ck_assert_mem_eq(&found, &file, sizeof(found));
	/* the promise of its maker is not broken by the creation itself */
	ck_assert_uint_eq(shop_broken(a, &file), 0);
	ck_assert_uint_eq(shop_broken(a, &root), 0);
	ck_assert_int_eq(create(a, "vec365"), UAE(EEXIST));

	ck_assert_int_eq(RXAFS_MakeDir(a->fs, &root, "sub", &set, &fid, &st, &dir_st, &cb, &sync_),
			 0);
	ck_assert(fid.Vnode % 2 == 1 && st.FileType == AFS_TYPE_DIR && st.LinkCount == 2);
	ck_assert_uint_eq(afs_status_length(&st), 2048);
	ck_assert(st.ParentVnode == fid.Vnode && st.ParentUnique == fid.Unique);
	ck_assert_uint_eq(dir_st.LinkCount, 3);
	ck_assert_uint_eq(afs_status_version(&dir_st), version + 2);
	ck_assert_uint_ge(cb.ExpirationTime, 60);
	ck_assert_int_eq(
		RXAFS_Symlink(a->fs, &root, "link", "sub/x", &nothing, &fid, &st, &dir_st, &sync_),
		0);
	ck_assert(st.FileType == AFS_TYPE_SYMLINK && afs_status_length(&st) == 5);
	ck_assert_int_eq(
		RXAFS_StoreStatus(a->fs, &file,
				  &(AFSStoreStatus){.Mask = AFS_SETMODE, .UnixModeBits = 0600}, &st,
				  &sync_),
		0);
	ck_assert_uint_eq(st.UnixModeBits, 0600);
	ck_assert_uint_eq(afs_status_version(&st), 0);
	ck_assert_int_eq(RXAFS_StoreStatus(a->fs, &file,
					   &(AFSStoreStatus){.Mask = AFS_SETOWNER, .Owner = 7}, &st,
					   &sync_),
			 UAE(EPERM));
	ck_assert_int_eq(status_of(a, &file), 0);
	ck_assert_uint_gt(sync_.spare1, 1600000000);
	teardown();
}
END_TEST

START_TEST(names_and_errors)
{
	static const struct {
		const char *name;
		int error;
	} names[] = {{"", EINVAL},     {"a/b", EINVAL}, {"x@sys", EINVAL},
		     {"@sys", EINVAL}, {".", EEXIST},	{"..", EEXIST},
		     {"\xff\x80", 0},  {"a\nb", 0},	{"sys@", 0}};
	char longest[258];
	AFSFid file, other = {9, 1, 1};

	setup();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_msg(create(a, names[i].name) ==
				      (names[i].error ? UAE(names[i].error) : 0),
			      "%zu", i);
	memset(longest, 'n', sizeof(longest));
	longest[255] = 0;
	ck_assert_int_eq(create(a, longest), 0);
	longest[255] = 'n', longest[256] = 0;
	ck_assert_int_eq(create(a, longest), UAE(ENAMETOOLONG));
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &root, ".", &st, &sync_), UAE(EINVAL));
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &root, "none", &st, &sync_), UAE(ENOENT));
	ck_assert_int_eq(RXAFS_RemoveDir(a->fs, &root, "file", &st, &sync_), UAE(ENOTDIR));
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &file, "x", &st, &sync_), UAE(ENOTDIR));
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &other, "x", &st, &sync_), AFS_VNOVOL);
	other = (AFSFid){0, 1, 1};
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &other, "x", &st, &sync_), UAE(EINVAL));
	other = (AFSFid){shop.volume, 0, 1};
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &other, "x", &st, &sync_), UAE(EINVAL));
	other = (AFSFid){shop.volume, 4444, 1};
	ck_assert_int_eq(status_of(a, &other), AFS_VNOVNODE);
	ck_assert_int_eq(RXAFS_Symlink(a->fs, &root, "l", "", &nothing, &fid, &st, &dir_st, &sync_),
			 UAE(EINVAL));
	ck_assert_int_eq(RXAFS_Link(a->fs, &root, "l", &root, &st, &dir_st, &sync_), UAE(EISDIR));
	other = (AFSFid){FSD_ROOTAFS_ID, 1, 1};
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &other, "test.cell", &st, &sync_), UAE(EROFS));
	ck_assert_int_eq(RXAFS_Link(a->fs, &root, "l", &other, &st, &dir_st, &sync_), UAE(EXDEV));
	ck_assert_int_eq(RXAFS_Rename(a->fs, &root, "file", &other, "x", &st, &dir_st, &sync_),
			 UAE(EXDEV));
	other = (AFSFid){shop.volume, 0, 0};
	ck_assert_int_eq(RXAFS_Rename(a->fs, &root, "file", &other, "x", &st, &dir_st, &sync_),
			 UAE(EINVAL));
	teardown();
}
END_TEST

START_TEST(links_and_renames)
{
	AFSFid file, dir, found;
	uint64_t version;

	setup();
	file = shop_file(&shop, &root, "one");
	ck_assert_int_eq(RXAFS_Link(a->fs, &root, "two", &file, &st, &dir_st, &sync_), 0);
	ck_assert_uint_eq(st.LinkCount, 2);
	version = afs_status_version(&dir_st);
	/* promises of the caller on a file that keeps a name are broken, too */
	ck_assert_int_eq(status_of(a, &file), 0);
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &root, "one", &dir_st, &sync_), 0);
	ck_assert_uint_eq(shop_broken(a, &file), 1);
	ck_assert_uint_eq(afs_status_version(&dir_st), version + 1);
	ck_assert_int_eq(status_of(a, &file), 0);
	ck_assert_uint_eq(st.LinkCount, 1);

	ck_assert_int_eq(
		RXAFS_MakeDir(a->fs, &root, "dir", &nothing, &dir, &st, &dir_st, &cb, &sync_), 0);
	ck_assert_int_eq(RXAFS_Rename(a->fs, &root, "two", &dir, "three", &st, &dir_st, &sync_), 0);
	ck_assert(!lookup(&root, "two", &found) && lookup(&dir, "three", &found));
	ck_assert_mem_eq(&found, &file, sizeof(file));
	ck_assert_int_eq(RXAFS_RemoveDir(a->fs, &root, "dir", &st, &sync_), UAE(EEXIST));
	ck_assert_int_eq(RXAFS_Rename(a->fs, &root, "dir", &dir, "x", &st, &dir_st, &sync_),
			 UAE(EINVAL));
	shop_file(&shop, &dir, "four");
	ck_assert_int_eq(RXAFS_Rename(a->fs, &dir, "three", &dir, "four", &st, &dir_st, &sync_), 0);
	ck_assert_mem_eq(&st, &dir_st, sizeof(st));
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &dir, "four", &st, &sync_), 0);
	ck_assert_int_eq(status_of(a, &file), AFS_VNOVNODE);
	ck_assert_int_eq(RXAFS_RemoveDir(a->fs, &root, "dir", &st, &sync_), 0);
	ck_assert_uint_eq(st.LinkCount, 2);
	teardown();
}
END_TEST

START_TEST(stores_and_fetches)
{
	const size_t large = 3000001;
	uint8_t *data = malloc(large), *back = malloc(large + 100);
	uint64_t version = 0;
	AFSFid file;

	setup();
	for (size_t i = 0; i < large; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(shop_put(a, &file, 0, 5, 5, "hello", 5, &st), 0);
	ck_assert_uint_eq(afs_status_version(&st), ++version);
	ck_assert_uint_eq(afs_status_length(&st), 5);
	ck_assert_uint_eq(st.ClientModTime, 1000000001);
	ck_assert_int_eq(shop_get(b, &file, 0, 100, back, &st, &cb), 5);
	ck_assert_mem_eq(back, "hello", 5);
	ck_assert_uint_ge(cb.ExpirationTime, 60);
	/* a hole, then an overwrite of a part */
	ck_assert_int_eq(shop_put(a, &file, 10, 3, 13, "abc", 3, &st), 0);
	ck_assert_int_eq(shop_put(a, &file, 1, 2, 13, "EL", 2, &st), 0);
	ck_assert_int_eq(shop_get(b, &file, 0, 100, back, &st, NULL), 13);
	ck_assert_mem_eq(back, "hELlo\0\0\0\0\0abc", 13);
	version += 2;
	ck_assert_uint_eq(afs_status_version(&st), version);
	/* large, in one call, and pieces of it */
	ck_assert_int_eq(shop_put(a, &file, 0, large, large, data, large, &st), 0);
	ck_assert_uint_eq(afs_status_version(&st), ++version);
	ck_assert_int_eq(shop_get(b, &file, 0, large + 100, back, &st, NULL), (int64_t)large);
	ck_assert_mem_eq(back, data, large);
	ck_assert_int_eq(shop_get(b, &file, 2999999, 100, back, &st, NULL), 2);
	ck_assert_int_eq(shop_get(b, &file, large, 100, back, &st, NULL), 0);
	ck_assert_int_eq(shop_put(a, &file, 1000001, 300000, large, data, 300000, &st), 0);
	memcpy(data + 1000001, data, 300000);
	ck_assert_int_eq(shop_get(a, &file, 0, large, back, &st, NULL), (int64_t)large);
	ck_assert_mem_eq(back, data, large);
	/* truncation, and its limits */
	ck_assert_int_eq(shop_put(a, &file, 7, 0, 7, NULL, 0, &st), 0);
	ck_assert_uint_eq(afs_status_length(&st), 7);
	ck_assert_int_eq(shop_put(a, &file, 1000, 0, 1000, NULL, 0, &st), 0);
	ck_assert_uint_eq(afs_status_length(&st), 1000);
	ck_assert_int_eq(shop_put(a, &file, INT64_MAX, 1, 1, "x", 1, &st), UAE(EFBIG));
	ck_assert_int_eq(shop_put(a, &file, 1ull << 40, 1, 1, "x", 1, &st), UAE(EFBIG));
	ck_assert_int_eq(shop_put(a, &file, 1, UINT64_MAX, 1, "x", 1, &st), UAE(EFBIG));
	ck_assert_int_eq(shop_put(a, &file, 0, 1, UINT64_MAX, "x", 1, &st), UAE(EFBIG));
	ck_assert_int_eq(shop_put(a, &root, 0, 1, 1, "x", 1, &st), UAE(EISDIR));
	/* fewer data than announced, or none: nothing has changed, and the client is to send them again */
	ck_assert_int_eq(status_of(a, &file), 0);
	version = afs_status_version(&st);
	ck_assert_int_eq(shop_put(a, &file, 0, 1000000, 1000000, data, 500000, &st), UAE(EAGAIN));
	ck_assert_int_eq(shop_put(a, &file, 0, 10, 10, data, 9, &st), UAE(EAGAIN));
	ck_assert_int_eq(shop_put(a, &file, 0, 10, 10, data, 0, &st), UAE(EAGAIN));
	ck_assert_int_eq(status_of(a, &file), 0);
	ck_assert_uint_eq(afs_status_version(&st), version);
	ck_assert_uint_eq(afs_status_length(&st), 1000);
	/* surplus is ignored */
	ck_assert_int_eq(shop_put(a, &file, 0, 3, 3, "abcdef", 6, &st), 0);
	ck_assert_uint_eq(afs_status_length(&st), 3);
	teardown();
	free(data);
	free(back);
}
END_TEST

/* The 32-bit form: signed numbers, of which negative ones are too large. */
START_TEST(stores_of_32_bits)
{
	static const uint32_t bad[][3] = {
		{0x80000000u, 1, 1}, {0, 0x80000000u, 1}, {0, 1, 0x80000000u}};
	AFSFid file;
	rxw_call *call;

	setup();
	file = shop_file(&shop, &root, "file");
	for (int i = 0; i < 4; i++) {
		int32_t code;

		call = begin();
		code = i < 3 ? StartRXAFS_StoreData(call, &file, &nothing, bad[i][0], bad[i][1],
						    bad[i][2])
			     : StartRXAFS_StoreData(call, &file, &nothing, 0, 1, 1);
		ck_assert_int_eq(code, 0);
		ck_assert_int_eq(rxw_call_write(call, "x", 1), 1);
		code = EndRXAFS_StoreData(call, &st, &sync_);
		ck_assert_int_eq(rxw_call_end(call, code, NULL), i < 3 ? UAE(EFBIG) : 0);
	}
	teardown();
}
END_TEST

/* Another client is told of each change before the client that made it gets its reply. */
START_TEST(callbacks_before_replies)
{
	AFSFid file;

	setup();
	file = shop_file(&shop, &root, "file");
#define BROKEN_BY(what, object)                                         \
	do {                                                            \
		ck_assert_int_eq(status_of(b, object), 0);              \
		unsigned before_ = shop_broken(b, object);              \
		ck_assert_int_eq(what, 0);                              \
		ck_assert_uint_eq(shop_broken(b, object), before_ + 1); \
	} while (0)
	BROKEN_BY(shop_put(a, &file, 0, 3, 3, "abc", 3, &st), &file);
	BROKEN_BY(RXAFS_StoreStatus(a->fs, &file,
				    &(AFSStoreStatus){.Mask = AFS_SETMODE, .UnixModeBits = 0600},
				    &st, &sync_),
		  &file);
	BROKEN_BY(create(a, "x"), &root);
	BROKEN_BY(RXAFS_Link(a->fs, &root, "y", &file, &st, &dir_st, &sync_), &file);
	BROKEN_BY(RXAFS_Link(a->fs, &root, "z", &file, &st, &dir_st, &sync_), &root);
	BROKEN_BY(RXAFS_RemoveFile(a->fs, &root, "y", &st, &sync_), &file);
	BROKEN_BY(RXAFS_RemoveFile(a->fs, &root, "z", &st, &sync_), &root);
	BROKEN_BY(RXAFS_Rename(a->fs, &root, "x", &root, "w", &st, &dir_st, &sync_), &root);
	BROKEN_BY(RXAFS_MakeDir(a->fs, &root, "d", &nothing, &fid, &st, &dir_st, &cb, &sync_),
		  &root);
	BROKEN_BY(RXAFS_Symlink(a->fs, &root, "s", "t", &nothing, &fid, &st, &dir_st, &sync_),
		  &root);
	BROKEN_BY(RXAFS_RemoveDir(a->fs, &root, "d", &st, &sync_), &root);
	/* a file that is gone: its promises are dropped without a message */
	ck_assert_int_eq(status_of(b, &file), 0);
	unsigned before = shop_broken(b, &file);

	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &root, "file", &st, &sync_), 0);
	ck_assert_uint_eq(shop_broken(b, &file), before);
	ck_assert(!fsd_promise_held(shop.clients, &file));
	/* nobody told the client that made the changes, but for the file that kept a name */
	ck_assert_uint_eq(shop_broken(a, &root), 0);
	teardown();
}
END_TEST

START_TEST(locks)
{
	AFSFid file;

	setup();
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(RXAFS_ExtendLock(a->fs, &file, &sync_), UAE(EINVAL));
	ck_assert_int_eq(RXAFS_ReleaseLock(a->fs, &file, &sync_), 0);
	ck_assert_int_eq(RXAFS_SetLock(a->fs, &file, 2, &sync_), UAE(EINVAL));
	ck_assert_int_eq(RXAFS_SetLock(a->fs, &file, 0, &sync_), 0);
	ck_assert_int_eq(RXAFS_SetLock(b->fs, &file, 0, &sync_), 0);
	ck_assert_int_eq(status_of(b, &file), 0);
	ck_assert_uint_eq(st.lockCount, 2);
	ck_assert_int_eq(RXAFS_SetLock(b->fs, &file, 1, &sync_), UAE(EAGAIN));
	ck_assert_int_eq(RXAFS_ExtendLock(b->fs, &file, &sync_), 0);
	ck_assert_int_eq(RXAFS_ReleaseLock(b->fs, &file, &sync_), 0);
	ck_assert_uint_eq(shop_broken(b, &file), 0);
	ck_assert_int_eq(RXAFS_ReleaseLock(a->fs, &file, &sync_), 0);
	shop_reaches(&shop, &b->breaks, 1); /* so that it tries again */
	ck_assert_uint_eq(shop_broken(b, &file), 1);
	ck_assert_int_eq(RXAFS_SetLock(b->fs, &file, 1, &sync_), 0);
	ck_assert_int_eq(status_of(a, &file), 0);
	ck_assert_uint_eq(st.lockCount, UINT32_MAX);
	ck_assert_int_eq(RXAFS_SetLock(a->fs, &file, 0, &sync_), UAE(EAGAIN));
	/* The old calls are about the same locks. */
	ck_assert_int_eq(RXAFS_OldSetLock(a->fs, &file, 0, &sync_), UAE(EAGAIN));
	ck_assert_int_eq(RXAFS_OldExtendLock(b->fs, &file, &sync_), 0);
	ck_assert_int_eq(RXAFS_OldReleaseLock(b->fs, &file, &sync_), 0);
	ck_assert_int_eq(RXAFS_OldSetLock(a->fs, &file, 2, &sync_), UAE(EINVAL));
	ck_assert_int_eq(RXAFS_OldSetLock(a->fs, &file, 1, &sync_), 0);
	ck_assert_int_eq(status_of(a, &file), 0);
	ck_assert_uint_eq(st.lockCount, UINT32_MAX);
	ck_assert_int_eq(RXAFS_SetLock(b->fs, &file, 0, &sync_), UAE(EAGAIN));
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &root, "file", &st, &sync_), 0);
	ck_assert_int_eq(RXAFS_ReleaseLock(b->fs, &file, &sync_), AFS_VNOVNODE);
	teardown();
}
END_TEST

static int32_t set_acl(const AFSFid *dir, const char *text, bool old)
{
	AFSOpaque acl = {(uint32_t)strlen(text) + 1, (char *)(uintptr_t)text};

	return old ? RXAFS_OldStoreACL(a->fs, dir, &acl, &st, &sync_)
		   : RXAFS_StoreACL(a->fs, dir, &acl, &st, &sync_);
}

START_TEST(acls_and_rights)
{
	AFSFid file, dir, inside;
	AFSOpaque acl = {0};

	setup();
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(RXAFS_FetchACL(a->fs, &file, &acl, &st, &sync_), 0);
	ck_assert_str_eq(acl.val, "1\n0\nsystem:anyuser\t127\n");
	ck_assert_uint_eq(acl.len, strlen(acl.val) + 1);
	xdrfree_AFSOpaque(&acl);
	ck_assert_int_eq(
		RXAFS_MakeDir(a->fs, &root, "dir", &nothing, &dir, &st, &dir_st, &cb, &sync_), 0);
	inside = shop_file(&shop, &dir, "inside");
	ck_assert_int_eq(shop_put(a, &inside, 0, 1, 1, "x", 1, NULL), 0);
	ck_assert_int_eq(set_acl(&file, "0\n0\n", false), UAE(ENOTDIR));
	ck_assert_int_eq(set_acl(&dir, "1\n0\nnobody\t1\n", false), UAE(EINVAL));
	ck_assert_int_eq(set_acl(&dir, "1\n0\nsystem:anyuser\t1", true), 0);
	/* read only, without look-up */
	ck_assert_int_eq(status_of(a, &inside), 0);
	ck_assert_uint_eq(st.CallerAccess, 1 | 64); /* the right to administer: its owner */
	ck_assert_int_eq(status_of(a, &dir), 0);
	ck_assert_int_eq(-shop_get(a, &dir, 0, 4096, &(char[4096]){0}, NULL, NULL), UAE(EACCES));
	ck_assert_int_eq(shop_get(a, &inside, 0, 10, &(char[10]){0}, NULL, NULL), 1);
	ck_assert_int_eq(shop_put(a, &inside, 0, 1, 1, "x", 1, NULL), UAE(EACCES));
	ck_assert_int_eq(RXAFS_SetLock(a->fs, &inside, 0, &sync_), UAE(EACCES));
	ck_assert_int_eq(RXAFS_FetchACL(a->fs, &dir, &acl, &st, &sync_), UAE(EACCES));
	ck_assert_int_eq(set_acl(&dir, "1\n0\nsystem:anyuser\t127\n", false), UAE(EACCES));
	ck_assert_int_eq(
		RXAFS_CreateFile(a->fs, &dir, "x", &nothing, &fid, &st, &dir_st, &cb, &sync_),
		UAE(EACCES));
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &dir, "inside", &st, &sync_), UAE(EACCES));
	ck_assert_int_eq(RXAFS_Rename(a->fs, &root, "file", &dir, "x", &st, &dir_st, &sync_),
			 UAE(EACCES));
	ck_assert_int_eq(RXAFS_SetVolumeStatus(a->fs, (int32_t)shop.volume,
					       &(AFSStoreVolumeStatus){.Mask = 2, .MaxQuota = 1},
					       "", "", ""),
			 UAE(EACCES));
	ck_assert_int_eq(RXAFS_FlushCPS(a->fs, &(ViceIds){0}, &(IPAddrs){0}, 0, &(int32_t){0},
					&(int32_t){0}),
			 UAE(EPERM));
	teardown();
}
END_TEST

/* Lines of standard error that hold a text. It was sent to the file `path`. */
static unsigned lines_with(const char *path, const char *text)
{
	char line[2048];
	unsigned n = 0;
	FILE *f = fopen(path, "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

/* Standard error goes to a file. */
struct rerouted {
	char path[4300];
	int saved, file;
};

static void log_begin(struct rerouted *log)
{
	snprintf(log->path, sizeof(log->path), "%s/log", shop.folder);
	log->file = open(log->path, O_CREAT | O_WRONLY | O_APPEND, 0600);
	log->saved = dup(2);
	ck_assert(log->file >= 0 && log->saved >= 0 && dup2(log->file, 2) == 2);
}

/* Back again; the file can be read until log_remove(). */
static void log_end(struct rerouted *log)
{
	ck_assert_int_eq(dup2(log->saved, 2), 2);
	close(log->saved);
	close(log->file);
}

static void log_remove(struct rerouted *log)
{
	ck_assert_int_eq(unlink(log->path), 0);
}

static const struct store_caller all = {.id = 1, .administrator = true};

/*
 * A list may let anonymous callers write, because it was set while no server ran. It gives them nothing but rights to
 * read, says so, and they cannot change it.
 */
START_TEST(anonymous_writes_are_refused)
{
	static const struct store_caller self = {.id = 1, .unrestricted = true};
	static const struct store_set empty;
	struct store_changes changes;
	struct store_status file, dir;
	struct store_fid top;
	AFSFid its;

	shop_make(&shop);
	top = (struct store_fid){shop.volume, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	ck_assert_int_eq(shop.store->ops->create(shop.store, &self, &top, "file", STORE_FILE, NULL,
						 &empty, &file, &dir, &changes),
			 0);
	shop.no_anonymous_writes = true;
	shop_serve(&shop);
	a = shop_client(&shop, 0);
	root = shop_root(&shop);
	its = (AFSFid){file.fid.volume, file.fid.vnode, file.fid.unique};
	ck_assert_int_eq(set_acl(&root, "1\n0\nsystem:anyuser\t9\n", false), UAE(EACCES));
	ck_assert_int_eq(shop_put(a, &its, 0, 3, 3, "abc", 3, NULL), UAE(EACCES));
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &root, "file", &st, &sync_), UAE(EACCES));
	ck_assert_int_eq(RXAFS_SetLock(a->fs, &its, 0, &sync_), UAE(EACCES));
	ck_assert_int_eq(status_of(a, &root), 0);
	ck_assert_uint_eq(st.AnonymousAccess, STORE_READ | STORE_LOOKUP);
	ck_assert_uint_eq(st.CallerAccess, STORE_READ | STORE_LOOKUP);
	shop_close(&shop);
}
END_TEST

/* Nor can anybody make such a list. */
START_TEST(anonymous_lists_are_refused)
{
	struct rerouted log;

	shop_make(&shop);
	shop.no_anonymous_writes = true;
	shop_serve(&shop);
	a = shop_client(&shop, 0);
	root = shop_root(&shop);
	log_begin(&log);
	ck_assert_int_eq(set_acl(&root, "1\n0\nsystem:anyuser\t127\n", false), UAE(EACCES));
	ck_assert_int_eq(set_acl(&root, "1\n0\nsystem:anyuser\t13\n", false), UAE(EACCES));
	/* Strangers cannot fill the log. */
	log_end(&log);
	ck_assert_uint_eq(lines_with(log.path, "was refused"), 1);
	log_remove(&log);
	shop_close(&shop);
}
END_TEST

START_TEST(quotas)
{
	const size_t size = 3 << 20;
	struct store_volume set = {.quota_kib = 2048};
	AFSFetchVolumeStatus vs;
	char *name, *message, *motd;
	void *data = calloc(1, size);
	AFSFid file;

	setup();
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(shop.store->ops->volume_set(shop.store, &all, shop.volume, 1, &set), 0);
	ck_assert_int_eq(
		RXAFS_GetVolumeStatus(a->fs, (int32_t)shop.volume, &vs, &name, &message, &motd), 0);
	ck_assert(vs.Vid == (int32_t)shop.volume && vs.ParentId == vs.Vid && vs.Type == 1);
	ck_assert_int_eq(vs.MaxQuota, 2048);
	ck_assert(vs.BlocksInUse > 0 && vs.BlocksInUse < 100);
	ck_assert(vs.PartMaxBlocks >= vs.PartBlocksAvail && vs.PartBlocksAvail > 0);
	ck_assert_str_eq(name, "data");
	free(name), free(message), free(motd);
	ck_assert_int_eq(shop_put(a, &file, 0, 4 * size, 4 * size, data, 0, NULL), 109);
	ck_assert_int_eq(shop_put(a, &file, 0, 1 << 20, 1 << 20, data, 1 << 20, NULL), 0);
	ck_assert_int_eq(status_of(a, &file), 0);
	ck_assert_uint_eq(afs_status_length(&st), 1 << 20);
	free(data);
	teardown();
}
END_TEST

/* A read-only volume: one promise for all of it, no writes, read locks without state. */
START_TEST(clones)
{
	const AFSFid whole = {0};
	AFSFid file, copy, dir;
	AFSCBFids fids = {2, (AFSFid[2]){{0}}};
	AFSBulkStats stats = {0};
	AFSCBs cbs = {0};
	char bytes[10];
	uint32_t clone, backup;

	setup();
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(shop_put(a, &file, 0, 3, 3, "old", 3, NULL), 0);
	ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_RO, &clone), 0);
	ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_BACKUP, &backup), 0);
	ck_assert_int_eq(shop_put(a, &file, 0, 5, 5, "newer", 5, NULL), 0);
	copy = (AFSFid){clone, file.Vnode, file.Unique};
	dir = (AFSFid){clone, 1, 1};
	ck_assert_int_eq(shop_get(b, &copy, 0, 10, bytes, &st, &cb), 3);
	ck_assert_mem_eq(bytes, "old", 3);
	ck_assert(cb.ExpirationTime > 7000 && cb.ExpirationTime < 7400);
	ck_assert(!fsd_promise_held(shop.clients, &copy));
	ck_assert(fsd_promise_held(shop.clients, &(AFSFid){clone, 0, 0}));
	ck_assert_int_eq(shop_put(b, &copy, 0, 1, 1, "x", 1, NULL), UAE(EROFS));
	ck_assert_int_eq(
		RXAFS_CreateFile(b->fs, &dir, "x", &nothing, &fid, &st, &dir_st, &cb, &sync_),
		UAE(EROFS));
	ck_assert_int_eq(RXAFS_SetLock(b->fs, &copy, 0, &sync_), 0);
	ck_assert_int_eq(RXAFS_SetLock(b->fs, &copy, 1, &sync_), UAE(EROFS));
	ck_assert_int_eq(RXAFS_ExtendLock(b->fs, &copy, &sync_), 0);
	ck_assert_int_eq(RXAFS_ReleaseLock(b->fs, &copy, &sync_), 0);
	ck_assert_int_eq(RXAFS_SetVolumeStatus(b->fs, (int32_t)clone, &(AFSStoreVolumeStatus){0},
					       "", "", ""),
			 UAE(EROFS));
	/* returning the promise on one of its files does not drop that on the others */
	fids.val[0] = copy;
	fids.len = 1;
	ck_assert_int_eq(RXAFS_GiveUpCallBacks(b->fs, &fids, &cbs), 0);
	ck_assert(fsd_promise_held(shop.clients, &(AFSFid){clone, 0, 0}));
	/* objects of several volumes in one call */
	fids.val[1] = file;
	fids.len = 2;
	ck_assert_int_eq(RXAFS_InlineBulkStatus(b->fs, &fids, &stats, &cbs, &sync_), 0);
	ck_assert(stats.len == 2 && cbs.len == 2);
	ck_assert_uint_eq(afs_status_length(&stats.val[0]), 3);
	ck_assert_uint_eq(afs_status_length(&stats.val[1]), 5);
	ck_assert_uint_gt(cbs.val[1].ExpirationTime, 0);
	xdrfree_AFSBulkStats(&stats);
	xdrfree_AFSCBs(&cbs);
	(void)whole;
	teardown();
}
END_TEST

START_TEST(locations_and_volumes)
{
	struct store_new_volume second = {.name = "root.cell"};
	rxw_connection *vl, *vol;
	uint32_t clone, backup, id;
	volEntries list = {0};
	nvldbentry e;
	uvldbentry u;

	setup();
	ck_assert_int_eq(store_volume_create(shop.store, &second, &id), 0);
	ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_RO, &clone), 0);
	ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_BACKUP, &backup), 0);
	vl = shop_connect(&shop, 0, AFS_SERVICE_VL);
	vol = shop_connect(&shop, 0, AFS_SERVICE_VOL);
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = {"data", "data.readonly", "data.backup", NULL};
		char number[16];

		snprintf(number, sizeof(number), "%u", clone);
		ck_assert_int_eq(VL_GetEntryByNameN(vl, names[i] ? names[i] : number, &e), 0);
		ck_assert_str_eq(e.name, "data");
		ck_assert_uint_eq(e.volumeId[0], shop.volume);
		ck_assert_uint_eq(e.volumeId[1], clone);
		ck_assert_uint_eq(e.volumeId[2], backup);
		ck_assert_int_eq(e.flags, VLF_RWEXISTS | VLF_ROEXISTS | VLF_BACKEXISTS);
		ck_assert_int_eq(e.nServers, 2);
		ck_assert(e.serverFlags[0] == VLSF_RWVOL && e.serverFlags[1] == VLSF_ROVOL);
	}
	ck_assert_int_eq(VL_GetEntryByNameU(vl, "root.cell", &u), 0);
	ck_assert(u.nServers == 1 && u.serverFlags[0] == (VLSF_RWVOL | VLSF_UUID));
	ck_assert_uint_eq(u.volumeId[0], id);
	ck_assert_int_eq(VL_GetEntryByIDN(vl, clone, AFS_VL_RO, &e), 0);
	ck_assert_int_eq(VL_GetEntryByIDN(vl, clone, AFS_VL_RW, &e), AFS_VL_NOENT);
	ck_assert_int_eq(VL_GetEntryByNameN(vl, "root.afs", &e), 0);
	ck_assert_uint_eq(e.volumeId[1], FSD_ROOTAFS_ID);
	for (int i = 0; i < 2; i++) {
		const AFSFid top = {FSD_ROOTAFS_ID, 1, 1};
		char text[32];
		AFSFid mount;

		ck_assert(lookup(&top, i ? ".test.cell" : "test.cell", &mount));
		ck_assert_int_eq(shop_get(a, &mount, 0, sizeof(text), text, NULL, NULL), 11);
		ck_assert_mem_eq(text, i ? "%root.cell." : "#root.cell.", 11);
	}
	ck_assert_int_eq(VL_GetEntryByNameN(vl, "other", &e), AFS_VL_NOENT);

	nbulkentries es = {0};
	int32_t n, next;

	ck_assert_int_eq(VL_ListAttributesN2(vl, &(VldbListByAttributes){0}, "", 0, &n, &es, &next),
			 0);
	ck_assert(n == 3 && es.len == 3 && next == -1);
	xdrfree_nbulkentries(&es);

	ck_assert_int_eq(AFSVolListVolumes(vol, 0, 1, &list), 0);
	ck_assert_uint_eq(list.len, 5); /* three of data, root.cell, root.afs */
	for (uint32_t i = 0; i < list.len; i++) {
		const volintInfo *v = &list.val[i];

		if (v->volid == shop.volume) {
			ck_assert_str_eq(v->name, "data");
			ck_assert_int_eq(v->type, 0);
			ck_assert(v->parentID == v->volid && v->cloneID == clone);
			ck_assert_uint_eq(v->backupID, backup);
		} else if (v->volid == clone) {
			ck_assert_str_eq(v->name, "data.readonly");
			ck_assert_int_eq(v->type, 1);
			ck_assert_uint_eq(v->parentID, shop.volume);
		} else if (v->volid == backup) {
			ck_assert_str_eq(v->name, "data.backup");
			ck_assert_int_eq(v->type, 2);
		}
		ck_assert(v->status == 2 && v->inUse == 1);
	}
	xdrfree_volEntries(&list);
	ck_assert_int_eq(AFSVolListOneVolume(vol, 0, clone, &list), 0);
	ck_assert(list.len == 1 && list.val[0].volid == clone);
	xdrfree_volEntries(&list);
	rxw_connection_release(vl);
	rxw_connection_release(vol);
	teardown();
}
END_TEST

#define MANY 515 /* volumes: more than one page of a list */

/* Others, of which each has another address, take the places of lists that cannot be continued. */
static void long_lists_have_places(rxw_connection *vl, uint32_t id)
{
	const VldbListByAttributes any = {0}, one = {.Mask = 8, .volumeid = id};
	struct fsd_permits *lists = &shop.service->lists;
	rxw_connection *vol = shop_connect(&shop, 0, AFS_SERVICE_VOL);
	struct sockaddr_storage peer = {.ss_family = AF_INET};
	volEntries volumes = {0};
	nbulkentries es = {0};
	int32_t n, next;

	/* The reply of the last one has left. */
	while (atomic_load(&lists->count))
		usleep(1000);
	for (unsigned i = 0; i < FSD_LISTS_MAX; i++) {
		((struct sockaddr_in *)&peer)->sin_addr.s_addr = htonl(0x0a000001 + i);
		ck_assert(fsd_permit_take(lists, &lists->holder[i], &peer));
	}
	ck_assert_int_eq(VL_ListAttributesN(vl, &any, &n, &es), AFS_VBUSY);
	ck_assert_int_eq(AFSVolListVolumes(vol, 0, 1, &volumes), AFS_VBUSY);
	ck_assert_int_eq(VL_ListAttributesN(vl, &one, &n, &es), 0);
	xdrfree_nbulkentries(&es);
	ck_assert_int_eq(VL_ListAttributesN2(vl, &any, "", 0, &n, &es, &next), 0);
	xdrfree_nbulkentries(&es);
	fsd_permit_return(lists, &lists->holder[0]);
	ck_assert_int_eq(AFSVolListVolumes(vol, 0, 1, &volumes), 0);
	ck_assert_uint_eq(volumes.len, MANY + 1);
	xdrfree_volEntries(&volumes);
	rxw_connection_release(vol);
}

/* Lists are continued; a new client is told to forget each volume. */
START_TEST(many_volumes)
{
	const VldbListByAttributes any = {0};
	struct shop_client *c;
	rxw_connection *vl;
	nbulkentries es = {0};
	int32_t n, next;
	uint32_t id;
	char name[32];

	setup();
	for (int i = 1; i < MANY; i++) {
		struct store_new_volume volume = {.name = name};

		snprintf(name, sizeof(name), "v%d", i);
		ck_assert_int_eq(store_volume_create(shop.store, &volume, &id), 0);
	}
	vl = shop_connect(&shop, 0, AFS_SERVICE_VL);
	ck_assert_int_eq(VL_ListAttributesN2(vl, &any, "", 0, &n, &es, &next), 0);
	ck_assert(n == 512 && es.len == 512 && next == 512);
	xdrfree_nbulkentries(&es);
	ck_assert_int_eq(VL_ListAttributesN2(vl, &any, "", next, &n, &es, &next), 0);
	ck_assert(n == MANY + 1 - 512 && next == -1); /* and root.afs */
	ck_assert_str_eq(es.val[n - 1].name, "root.afs");
	xdrfree_nbulkentries(&es);
	ck_assert_int_eq(VL_ListAttributesN2(vl, &any, "v514", 0, &n, &es, &next), 0);
	ck_assert(n == 1 && next == -1 && es.val[0].volumeId[0] == id);
	xdrfree_nbulkentries(&es);
	ck_assert_int_eq(VL_ListAttributesN(vl, &any, &n, &es), 0);
	ck_assert_int_eq(n, MANY + 1);
	xdrfree_nbulkentries(&es);
	long_lists_have_places(vl, id);
	rxw_connection_release(vl);
	c = shop_client(&shop, 2);
	ck_assert_int_eq(status_of(c, &root), 0);
	ck_assert_uint_gt(cb.ExpirationTime, 0);
	teardown();
}
END_TEST

/* A volume is replaced: each client that holds a promise in it is told once. */
START_TEST(volume_changed)
{
	AFSFid whole, dir;
	uint32_t clone;

	setup();
	ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_RO, &clone), 0);
	whole = (AFSFid){clone, 0, 0};
	dir = (AFSFid){clone, 1, 1};
	ck_assert_int_eq(status_of(a, &root), 0);
	ck_assert_int_eq(status_of(b, &dir), 0);
	create(b, "new");
	ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_RO, &clone), 0);
	fsd_service_volume_changed(shop.service, clone);
	ck_assert_uint_eq(shop_broken(b, &whole), 1);
	ck_assert_uint_eq(shop_broken(a, &whole), 0);
	ck_assert_int_eq(status_of(b, &dir), 0);
	ck_assert_uint_gt(cb.ExpirationTime, 7000);
	teardown();
}
END_TEST

/* What GetVolumeStatus tells of the volume: its message. */
static void expect_offline_message(int32_t online, const char *expected)
{
	char *name = NULL, *message = NULL, *motd = NULL;
	AFSFetchVolumeStatus status;

	ck_assert_int_eq(
		RXAFS_GetVolumeStatus(a->fs, (int32_t)shop.volume, &status, &name, &message, &motd),
		0);
	ck_assert_int_eq(status.Online, online);
	ck_assert_int_eq(status.InService, online);
	ck_assert_str_eq(message, expected);
	free(name);
	free(message);
	free(motd);
}

START_TEST(offline_volumes)
{
	setup();
	expect_offline_message(1, "");
	ck_assert_int_eq(store_volume_offline(shop.store, shop.volume, "moved"), 0);
	ck_assert_int_eq(status_of(a, &root), AFS_VOFFLINE);
	ck_assert_int_eq(create(a, "x"), AFS_VOFFLINE);
	/* The reason is for those who may not use the volume now. */
	expect_offline_message(0, "moved");
	ck_assert_int_eq(store_volume_online(shop.store, shop.volume, NULL, NULL), 0);
	expect_offline_message(1, "");
	ck_assert_int_eq(status_of(a, &root), 0);
	teardown();
}
END_TEST

START_TEST(statistics_of_stores)
{
	ViceStatistics64 stats = {0};
	AFSFid file;

	setup();
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(shop_put(a, &file, 0, 5, 5, "hello", 5, NULL), 0);
	ck_assert_int_eq(shop_put(a, &file, 0, 7, 7, "hello, ", 7, NULL), 0);
	ck_assert_int_eq(RXAFS_GetStatistics64(a->fs, 16, &stats), 0);
	ck_assert_uint_eq(stats.val[8], 3);
	ck_assert_uint_eq(stats.val[9], 2);
	ck_assert_uint_eq(stats.val[10], 12);
	xdrfree_ViceStatistics64(&stats);
	teardown();
}
END_TEST

/* -- failures of the machine -- */

static const char piece[20000];
static int result_of_all; /* of the operations below */

static int failing_create(struct store *store, const struct store_caller *caller,
			  const struct store_fid *dir, const char *name, enum store_kind kind,
			  const char *text, const struct store_set *set,
			  struct store_status *status, struct store_status *dir_status,
			  struct store_changes *changes)
{
	(void)store, (void)caller, (void)dir, (void)name, (void)kind, (void)text, (void)set;
	(void)status, (void)dir_status, (void)changes;
	return result_of_all;
}

static int failing_status(struct store *store, const struct store_caller *caller,
			  const struct store_fid *object, struct store_status *status)
{
	(void)store, (void)caller, (void)object, (void)status;
	return -EIO;
}

/* Each object counts once, and the line names the one that failed. */
START_TEST(failures_of_bulk_calls)
{
	const struct fsd_key_loads keys = {0};
	AFSFid fids[2];
	AFSCBFids list = {.len = 2, .val = fids};
	AFSBulkStats stats = {0};
	AFSCBs cbs = {0};
	struct rerouted log;
	char line[64], *metrics;

	setup();
	fids[0] = shop_file(&shop, &root, "first");
	fids[1] = shop_file(&shop, &root, "second");
	const struct store_ops *ops = shop.store->ops;
	struct store_ops failing = *ops;

	failing.status = failing_status;
	failing.statuses = NULL;
	shop.store->ops = &failing;
	log_begin(&log);
	ck_assert_int_eq(RXAFS_InlineBulkStatus(a->fs, &list, &stats, &cbs, &sync_), 0);
	log_end(&log);
	shop.store->ops = ops;
	ck_assert_uint_eq(stats.len, 2);
	snprintf(line, sizeof(line), "object %u.%u.%u failed", fids[0].Volume, fids[0].Vnode,
		 fids[0].Unique);
	ck_assert_uint_eq(lines_with(log.path, line), 1);
	ck_assert_uint_eq(lines_with(log.path, "failed"), 1);
	metrics = fsd_service_metrics(shop.service, &keys, 0);
	ck_assert_ptr_nonnull(strstr(metrics, "{cause=\"io\"} 2\n"));
	free(metrics);
	xdrfree_AFSBulkStats(&stats);
	xdrfree_AFSCBs(&cbs);
	log_remove(&log);
	teardown();
}
END_TEST

static const struct store_ops *working_ops;

static int unflushed_commit(struct store_writer *writer, struct store_status *status,
			    struct store_changes *changes)
{
	int rc = working_ops->write_commit(writer, status, changes);

	return rc ? rc : -EIO;
}

/* A store that was made, but not flushed as the client wanted: it fails, and the others learn of it. */
START_TEST(failed_flush)
{
	AFSFid file;
	unsigned before;

	setup();
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(status_of(b, &file), 0);
	before = shop_broken(b, &file);
	working_ops = shop.store->ops;
	struct store_ops failing = *working_ops;

	failing.write_commit = unflushed_commit;
	shop.store->ops = &failing;
	/* More than a small file: its handler waits for the commit. */
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(piece), sizeof(piece), piece, sizeof(piece), &st),
		UAE(EIO));
	shop.store->ops = working_ops;
	ck_assert_uint_eq(shop_broken(b, &file), before + 1);
	ck_assert_int_eq(status_of(b, &file), 0);
	ck_assert_uint_eq(afs_status_length(&st), sizeof(piece));
	teardown();
}
END_TEST

START_TEST(failures_of_the_machine)
{
	const struct {
		int result;
		int32_t code;
		const char *line, *metric;
	} cases[] = {
		{STORE_VDISKFULL, STORE_VDISKFULL, "the disk is full", "{cause=\"space\"} 3\n"},
		{-EROFS, UAE(EROFS), "the file system is read-only", "{cause=\"read-only\"} 3\n"},
		{-EIO, UAE(EIO), "input or output error", "{cause=\"io\"} 3\n"},
		{-EMFILE, AFS_VBUSY, "too many open files", "{cause=\"files\"} 3\n"},
		{-ENOMEM, AFS_VBUSY, "no memory", "{cause=\"memory\"} 3\n"},
	};
	const struct fsd_key_loads keys = {0};
	struct rerouted log;
	char *metrics;

	setup();
	const struct store_ops *ops = shop.store->ops;
	struct store_ops failing = *ops;

	failing.create = failing_create;
	shop.store->ops = &failing;
	log_begin(&log);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		result_of_all = cases[i].result;
		for (int n = 0; n < 3; n++)
			ck_assert_int_eq(create(a, "file"), cases[i].code);
	}
	log_end(&log);
	shop.store->ops = ops;
	metrics = fsd_service_metrics(shop.service, &keys, 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(lines_with(log.path, cases[i].line) == 1, "%s: %u lines",
			      cases[i].line, lines_with(log.path, cases[i].line));
		ck_assert_msg(strstr(metrics, cases[i].metric) != NULL, "%s", cases[i].metric);
	}
	free(metrics);
	ck_assert_int_eq(create(a, "file"), 0);
	log_remove(&log);
	teardown();
}
END_TEST

/* -- many at a time -- */

#define WRITERS 8
#define ROUNDS	30

static void *writer_main(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;
	struct shop_client *client = number & 1 ? b : a;
	char name[32], data[9000], back[9000];

	memset(data, (int)number, sizeof(data));
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t size = 1 + (size_t)(number * 1237 + i * 7919) % sizeof(data);
		AFSFetchStatus s, d;
		AFSCallBack c;
		AFSVolSync v;
		AFSFid f;

		snprintf(name, sizeof(name), "w%u.%u", number, i);
		ck_assert_int_eq(
			RXAFS_CreateFile(client->fs, &root, name, &nothing, &f, &s, &d, &c, &v), 0);
		ck_assert_int_eq(shop_put(client, &f, 0, size, size, data, size, &s), 0);
		ck_assert_uint_eq(afs_status_version(&s), 1);
		ck_assert_int_eq(shop_get(client, &f, 0, sizeof(back), back, &s, NULL),
				 (int64_t)size);
		ck_assert_mem_eq(back, data, size);
		if (i % 3)
			ck_assert_int_eq(RXAFS_RemoveFile(client->fs, &root, name, &s, &v), 0);
	}
	return NULL;
}

START_TEST(concurrent_writers)
{
	pthread_t threads[WRITERS];
	unsigned kept = 0;
	AFSFid found;
	char name[32];

	setup();
	ck_assert_int_eq(status_of(a, &root), 0);
	uint64_t version = afs_status_version(&st);

	for (uintptr_t i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, writer_main, (void *)i), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned w = 0; w < WRITERS; w++)
		for (unsigned i = 0; i < ROUNDS; i++) {
			snprintf(name, sizeof(name), "w%u.%u", w, i);
			ck_assert(lookup(&root, name, &found) == (i % 3 == 0));
			kept += i % 3 == 0;
		}
	ck_assert_int_eq(status_of(a, &root), 0);
	ck_assert_uint_eq(afs_status_version(&st) - version, 2 * WRITERS * ROUNDS - kept);
	teardown();
}
END_TEST

/* Random words after every opcode: answered or refused, and the store stays sound. */
START_TEST(random_arguments)
{
	static const uint32_t opcodes[] = {130, 131, 132, 133, 134, 135,   136,	  137,	 138,
					   139, 140, 141, 142, 147, 149,   150,	  155,	 156,
					   157, 158, 162, 164, 220, 65536, 65537, 65538, 65539};
	uint64_t state = 0x2545f4914f6cdd1dull;

	setup();
	for (int i = 0; i < 3000; i++) {
		uint8_t request[4 * 48];
		struct rxw_xdr x;
		rxw_call *call;
		unsigned words;
		uint8_t reply[512];

		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		words = (unsigned)(state >> 20) % 40;
		rxw_xdr_writer(&x, request, sizeof(request));
		rxw_xdr_put_u32(&x, opcodes[(state >> 8) % (sizeof(opcodes) / sizeof(opcodes[0]))]);
		for (unsigned j = 0; j < words; j++) {
			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			rxw_xdr_put_u32(&x, j == 0	? shop.volume
					    : j < 3	? 1
					    : state & 3 ? (uint32_t)(state >> 40) % 20
					    : state & 4 ? 0x61626364
							: (uint32_t)state);
		}
		call = begin();
		ck_assert_int_gt(rxw_call_write(call, request, rxw_xdr_used(&x)), 0);
		rxw_call_send_end(call);
		while (rxw_call_read(call, reply, sizeof(reply)) > 0)
			;
		rxw_call_end(call, 0, NULL);
	}
	(void)new_st;
	teardown();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		words_of_replies,
		create_and_status,
		names_and_errors,
		links_and_renames,
		stores_and_fetches,
		stores_of_32_bits,
		callbacks_before_replies,
		locks,
		acls_and_rights,
		anonymous_writes_are_refused,
		anonymous_lists_are_refused,
		quotas,
		clones,
		locations_and_volumes,
		many_volumes,
		volume_changed,
		offline_volumes,
		statistics_of_stores,
		failures_of_the_machine,
		failed_flush,
		failures_of_bulk_calls,
		concurrent_writers,
		random_arguments,
	};

	return test_main("store service", 120, tests, sizeof(tests) / sizeof(tests[0]));
}
