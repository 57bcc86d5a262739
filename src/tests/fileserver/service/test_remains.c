/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of what calls leave in the server: promises, locks, access lists. With a store in a folder over loopback. */
#include "tests/fileserver/shop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rxwire/error.h>

#include "afs/numbers.h"
#include "fileserver/base/base.h"
#include "fileserver/service/services.h"
#include "tests/main.h"

#define UAE(e) rxw_code_from_errno(e)

static struct shop shop;
static struct shop_client *a, *b;
static AFSFid root;
static AFSFetchStatus st;
static AFSVolSync sync_;

static void setup(void)
{
	shop_serve(&shop);
	a = shop_client(&shop, 0);
	b = shop_client(&shop, 1);
	root = shop_root(&shop);
}

/* If a BulkStatus fails, its client has no promise for any of the objects. */
START_TEST(promises_of_bulk_calls)
{
	AFSFid fids[2];
	AFSCBFids list = {.len = 2, .val = fids};
	struct fsd_clients_stats before, now;
	AFSBulkStats stats = {0};
	AFSCBs cbs = {0};

	shop_make(&shop);
	setup();
	fids[0] = shop_file(&shop, &root, "good");
	fids[1] = (AFSFid){shop.volume, 4444, 1};
	fsd_clients_stats(shop.clients, &before);
	ck_assert_int_eq(RXAFS_BulkStatus(b->fs, &list, &stats, &cbs, &sync_), AFS_VNOVNODE);
	fsd_clients_stats(shop.clients, &now);
	ck_assert_uint_eq(now.promises, before.promises);
	ck_assert_int_eq(RXAFS_InlineBulkStatus(b->fs, &list, &stats, &cbs, &sync_), 0);
	fsd_clients_stats(shop.clients, &now);
	ck_assert_uint_eq(now.promises, before.promises + 1);
	xdrfree_AFSBulkStats(&stats);
	xdrfree_AFSCBs(&cbs);
	/* That of another call stays. */
	ck_assert_int_eq(RXAFS_BulkStatus(b->fs, &list, &stats, &cbs, &sync_), AFS_VNOVNODE);
	fsd_clients_stats(shop.clients, &now);
	ck_assert_uint_eq(now.promises, before.promises + 1);
	shop_close(&shop);
}
END_TEST

/* Locks in a removed volume end, those in one that is only off-line stay. */
START_TEST(locks_of_volumes)
{
	const struct store_new_volume new = {.name = "short.lived"};
	struct fsd_locks *locks;
	AFSFid file;
	uint32_t id;

	shop_make(&shop);
	setup();
	locks = shop.service->locks;
	ck_assert_int_eq(store_volume_create(shop.store, &new, &id), 0);
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(RXAFS_SetLock(a->fs, &file, 0, &sync_), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &(struct store_fid){id, 1, 1},
				      &(struct fsd_share_key){{1}}, false, fsd_now()),
			 0);
	ck_assert_uint_eq(fsd_locks_held(locks), 2);
	ck_assert_int_eq(store_volume_offline(shop.store, shop.volume, ""), 0);
	fsd_service_volume_changed(shop.service, shop.volume);
	ck_assert_int_eq(store_volume_online(shop.store, shop.volume, NULL, NULL), 0);
	ck_assert_uint_eq(fsd_locks_held(locks), 2);
	ck_assert_int_eq(store_volume_remove(shop.store, id), 0);
	fsd_service_volume_changed(shop.service, id);
	ck_assert_uint_eq(fsd_locks_held(locks), 1);
	ck_assert_int_eq(RXAFS_ReleaseLock(a->fs, &file, &sync_), 0);
	shop_close(&shop);
}
END_TEST

/* A list with numbers in place of long names could be stored, but not be fetched again. */
START_TEST(list_of_long_names)
{
	char message[PROT_MESSAGE_MAX], name[64], text[1024];
	struct prot_options options = {.create = true};
	AFSOpaque list;
	struct prot *prot;
	int32_t id;
	int n;

	shop_make(&shop);
	options.path = shop.folder;
	ck_assert_msg(prot_open(&options, &prot, message) == 0, "%s", message);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%060d", i);
		name[0] = 'u';
		ck_assert_int_eq(prot_add_user(prot, name, 1000 + i, &id, message), 0);
	}
	shop.prot = prot;
	setup();
	for (int count = 20; count >= 15; count -= 5) {
		n = snprintf(text, sizeof(text), "%d\n0\n", count);
		for (int i = 0; i < count; i++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%d\t63\n", 1000 + i);
		list = (AFSOpaque){(uint32_t)n + 1, text};
		ck_assert_int_eq(RXAFS_StoreACL(a->fs, &root, &list, &st, &sync_),
				 count == 20 ? UAE(E2BIG) : 0);
	}
	shop_close(&shop);
	prot_close(prot);
}
END_TEST

TEST_MAIN_WITHIN(120, "what calls leave", promises_of_bulk_calls, locks_of_volumes,
		 list_of_long_names)
