/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds of calls: the work of short requests, and changes that cannot be recorded. */
#include "tests/fileserver/shop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "afs/numbers.h"
#include "afs/vl.h"
#include "fileserver/audit/audit.h"
#include "fileserver/service/services.h"
#include "tests/main.h"

static struct shop shop;
static const struct store_ops *working_ops;
static unsigned looks; /* at volumes */

static int counted_volume(struct store *store, uint32_t id, struct store_volume *volume)
{
	looks++;
	return working_ops->volume(store, id, volume);
}

static int counted_next(struct store *store, uint32_t id, struct store_volume *volume)
{
	looks++;
	return working_ops->volume_next(store, id, volume);
}

static int counted_at(struct store *store, uint32_t at, struct store_volume *volume)
{
	looks++;
	return working_ops->volume_at(store, at, volume);
}

static int32_t create(struct shop_client *client, const AFSFid *root, const char *name)
{
	static const AFSStoreStatus nothing;
	AFSFetchStatus st, dir_st;
	AFSCallBack cb;
	AFSVolSync sync;
	AFSFid fid;

	return RXAFS_CreateFile(client->fs, root, name, &nothing, &fid, &st, &dir_st, &cb, &sync);
}

/* With `strict`, what cannot be recorded does not happen, and nobody waits for it. */
START_TEST(unrecorded_changes)
{
	char message[FSD_MESSAGE_MAX], name[16];
	struct fsd_audit_stats stats;
	struct shop_client *a;
	AFSFetchStatus st;
	AFSCallBack cb;
	AFSVolSync sync;
	unsigned made = 0;
	AFSFid root;
	int32_t code;

	shop_make(&shop);
	shop.audit = fsd_audit_open("/dev/full", true, message);
	ck_assert_ptr_nonnull(shop.audit);
	shop_serve(&shop);
	a = shop_client(&shop, 0);
	root = shop_root(&shop);
	do {
		snprintf(name, sizeof(name), "f%u", made++);
		code = create(a, &root, name);
	} while (!code);
	ck_assert_int_eq(code, AFS_VBUSY);
	ck_assert_int_eq(create(a, &root, name), AFS_VBUSY);
	ck_assert_int_eq(RXAFS_FetchStatus(a->fs, &root, &st, &cb, &sync), 0);
	fsd_audit_stats(shop.audit, &stats);
	ck_assert_uint_ge(stats.refused, 2);
	fsd_audit_release(shop.audit);
	shop_close(&shop);
	fsd_audit_close(shop.audit);
	shop.audit = NULL;
}
END_TEST

/* Short requests of the location service cost the same however many volumes there are. */
START_TEST(listed_volumes)
{
	VldbListByAttributes attr = {.Mask = 8};
	struct store_new_volume new = {0};
	int32_t count, next, cursor = 0;
	rxw_connection *vl;
	vital_vlheader header;
	nvldbentry entry;
	nbulkentries entries = {0};
	vldstats stats;
	char name[16];
	uint32_t id, seen = 0;

	shop_make(&shop);
	shop_serve(&shop);
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "v%d", i);
		new.name = name;
		ck_assert_int_eq(store_volume_create(shop.store, &new, &id), 0);
	}
	ck_assert_int_eq(store_volume_clone(shop.store, id, STORE_RO, &attr.volumeid), 0);
	working_ops = shop.store->ops;
	struct store_ops counting = *working_ops;

	counting.volume = counted_volume;
	counting.volume_next = counted_next;
	counting.volume_at = counted_at;
	shop.store->ops = &counting;
	vl = shop_connect(&shop, 0, AFS_SERVICE_VL);
	for (;; cursor = next) {
		looks = 0;
		ck_assert_int_eq(VL_ListEntryN(vl, cursor, &count, &next, &entry), 0);
		ck_assert_uint_le(looks, 12);
		if (!next)
			break;
		ck_assert_int_gt(next, cursor);
		seen++;
	}
	ck_assert_uint_eq(seen, 62); /* with root.afs */
	looks = 0;
	ck_assert_int_eq(VL_GetStats(vl, &stats, &header), 0);
	ck_assert_int_eq(header.totalEntries[AFS_VL_RW], 61);
	ck_assert_int_eq(header.totalEntries[AFS_VL_RO], 2); /* with root.afs */
	ck_assert_uint_eq(header.MaxVolumeId, attr.volumeid);
	ck_assert_int_eq(VL_ListAttributesN2(vl, &attr, "", 0, &count, &entries, &next), 0);
	ck_assert_int_eq(count, 1);
	ck_assert_uint_le(looks, 12);
	xdrfree_nbulkentries(&entries);
	shop.store->ops = working_ops;
	rxw_connection_release(vl);
	shop_close(&shop);
}
END_TEST

static int fragmented_begin(struct store *store, const struct store_caller *caller,
			    const struct store_fid *object, struct store_reader **reader,
			    struct store_status *status)
{
	int rc = working_ops->read_begin(store, caller, object, reader, status);

	status->pieces = 1025;
	return rc;
}

/* Slow readers cannot make the server hold the lists of pieces of any number of files. */
START_TEST(reads_of_fragmented_files_need_permits)
{
	struct sockaddr_storage peer = {.ss_family = AF_INET};
	static uint8_t piece[20000], back[2 * sizeof(piece)];
	struct shop_client *a;
	AFSFetchStatus st;
	struct fsd_permits *permits;
	AFSFid file, root;

	shop_make(&shop);
	shop_serve(&shop);
	a = shop_client(&shop, 0);
	root = shop_root(&shop);
	permits = &shop.service->fragmented;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(shop_put(a, &file, sizeof(piece), sizeof(piece), 2 * sizeof(piece), piece,
				  sizeof(piece), &st),
			 0);
	working_ops = shop.store->ops;
	struct store_ops fragmented = *working_ops;

	fragmented.read_begin = fragmented_begin;
	shop.store->ops = &fragmented;
	for (unsigned i = 0; i < FSD_FRAGMENTED_MAX; i++) {
		((struct sockaddr_in *)&peer)->sin_addr.s_addr = htonl(0x0a000001 + i);
		ck_assert(fsd_permit_take(permits, &permits->holder[i], &peer));
	}
	ck_assert_int_eq(shop_get(a, &file, 0, sizeof(back), back, &st, NULL), -AFS_VBUSY);
	ck_assert_int_eq(shop_get(a, &file, 0, 1000, back, &st, NULL), 1000);
	fsd_permit_return(permits, &permits->holder[7]);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(shop_get(a, &file, 0, sizeof(back), back, &st, NULL),
				 (int64_t)sizeof(back));
		/* The permit is returned before the reply ends. */
		ck_assert_uint_eq(atomic_load(&permits->count), FSD_FRAGMENTED_MAX - 1);
	}
	shop.store->ops = working_ops;
	shop_close(&shop);
}
END_TEST

TEST_MAIN_WITHIN(120, "bounds", listed_volumes, reads_of_fragmented_files_need_permits,
		 unrecorded_changes)
