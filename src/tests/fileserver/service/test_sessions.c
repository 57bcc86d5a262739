/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores over several paths at the file service: ranges from several connections become one version, with one break; late, foreign,
 * repeated and malformed calls change nothing; sessions of a client that is gone end.
 */
#include "tests/fileserver/shop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <rxwire/error.h>

#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "fileserver/service/services.h"
#include "tests/main.h"

#define UAE(e) rxw_code_from_errno(e)
#define UNIT   65536u
#define LENGTH (8u * UNIT + 1000)

static struct shop shop;
static struct shop_client *a, *b;
static AFSFid root, fid;
static AFSFetchStatus st;
static AFSCallBack cb;
static AFSVolSync sync_;
static const AFSStoreStatus nothing = {0};
static uint8_t old[LENGTH], new[LENGTH], got[LENGTH + 1];

static void setup(void)
{
	root = shop_open(&shop, &a, &b);
	fid = shop_file(&shop, &root, "file");
	for (unsigned i = 0; i < LENGTH; i++) {
		old[i] = (uint8_t)(i * 7 / 5);
		new[i] = (uint8_t)(i * 11 / 3 + 1);
	}
	ck_assert_int_eq(shop_put(a, &fid, 0, LENGTH, LENGTH, old, LENGTH, &st), 0);
}

static void teardown(void)
{
	shop_close(&shop);
}

static StoreSession begin(struct shop_client *client, uint64_t length)
{
	StoreSession session;

	ck_assert_int_eq(RXAFS_BeginStore(client->fs, &fid, &nothing, length, &session), 0);
	return session;
}

static rxw_call *start_range(struct shop_client *client, const StoreSession *session, uint64_t pos,
			     uint64_t length)
{
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(client->fs, NULL, &call), 0);
	ck_assert_int_eq(StartRXAFS_StoreRange(call, session, pos, length), 0);
	return call;
}

static void write_range(rxw_call *call, uint64_t pos, uint64_t length)
{
	ck_assert_int_eq(rxw_call_write(call, new + pos, length), (ssize_t)length);
	ck_assert_int_eq(rxw_call_flush(call), 0);
}

static int32_t end_range(rxw_call *call, uint64_t *taken)
{
	rxw_code code;

	*taken = 0;
	code = EndRXAFS_StoreRange(call, taken);
	return rxw_rpc_end(call, code, &RXAFS_interface, RXAFS_FN_StoreRange);
}

static int32_t put_range(struct shop_client *client, const StoreSession *session, uint64_t pos,
			 uint64_t length, uint64_t *taken)
{
	rxw_call *call = start_range(client, session, pos, length);

	/* A server that refuses it may have said so already: the end tells. */
	if (pos < LENGTH && length <= LENGTH - pos)
		(void)!rxw_call_write(call, new + pos, length);
	return end_range(call, taken);
}

static void must_put(struct shop_client *client, const StoreSession *session, uint64_t pos,
		     uint64_t length)
{
	uint64_t taken;

	ck_assert_int_eq(put_range(client, session, pos, length, &taken), 0);
	ck_assert_uint_eq(taken, length);
}

static int32_t end(struct shop_client *client, const StoreSession *session, uint64_t bytes)
{
	return RXAFS_EndStore(client->fs, session, 1, bytes, &st, &sync_);
}

static uint64_t read_version(const uint8_t *bytes, uint64_t length)
{
	ck_assert_int_eq(shop_get(b, &fid, 0, sizeof(got), got, &st, &cb), (int64_t)length);
	ck_assert_mem_eq(got, bytes, length);
	return afs_status_version(&st);
}

START_TEST(one_version_and_one_break)
{
	StoreSession session;
	uint64_t version;
	rxw_call *first;
	uint64_t taken;

	setup();
	version = read_version(old, LENGTH);
	session = begin(a, LENGTH);
	first = start_range(a, &session, 0, 4 * UNIT);
	write_range(first, 0, UNIT + 5);
	must_put(b, &session, 4 * UNIT, LENGTH - 4 * UNIT);
	write_range(first, UNIT + 5, 3 * UNIT - 5);
	ck_assert_int_eq(end_range(first, &taken), 0);
	ck_assert_uint_eq(taken, 4 * UNIT);
	ck_assert_uint_eq(shop_broken(b, &fid), 0);
	ck_assert_uint_eq(read_version(old, LENGTH), version);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	ck_assert_uint_eq(afs_status_version(&st), version + 1);
	ck_assert_uint_eq(afs_status_length(&st), LENGTH);
	ck_assert_uint_eq(shop_broken(b, &fid), 1);
	ck_assert_uint_eq(read_version(new, LENGTH), version + 1);
	teardown();
}
END_TEST

/* The answer was lost: asked again, over another path, it is the same, and nothing happens twice. */
START_TEST(end_twice)
{
	StoreSession session;
	uint64_t version;

	setup();
	session = begin(a, LENGTH);
	must_put(a, &session, 0, LENGTH);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	version = afs_status_version(&st);
	/* another client's newer contents */
	ck_assert_int_eq(shop_put(b, &fid, 0, LENGTH, LENGTH, old, LENGTH, NULL), 0);
	ck_assert_int_eq(end(b, &session, LENGTH), 0);
	ck_assert_uint_eq(afs_status_version(&st), version);
	ck_assert_uint_eq(read_version(old, LENGTH), version + 1);
	teardown();
}
END_TEST

/*
 * The store of P-034: its data come late, after the client has reported success and somebody else has stored newer contents. With
 * StoreData64 the file has the older ones in the end; a session has ended.
 */
START_TEST(late_range)
{
	StoreSession session;
	uint64_t taken, version;
	rxw_call *late;

	setup();
	late = NULL;
	session = begin(a, LENGTH);
	late = start_range(a, &session, 0, 4 * UNIT);
	write_range(late, 0, 3 * UNIT);
	must_put(b, &session, 0, LENGTH);
	ck_assert_int_eq(end(b, &session, LENGTH), 0);
	version = read_version(new, LENGTH);
	ck_assert_int_eq(shop_put(b, &fid, 0, LENGTH, LENGTH, old, LENGTH, NULL), 0);
	write_range(late, 3 * UNIT, UNIT);
	ck_assert_int_eq(end_range(late, &taken), 0);
	ck_assert_uint_eq(taken, 0);
	ck_assert_uint_eq(read_version(old, LENGTH), version + 1);
	ck_assert_int_eq(put_range(a, &session, 0, UNIT, &taken), UAE(EBADF));
	ck_assert_uint_eq(read_version(old, LENGTH), version + 1);
	teardown();
}
END_TEST

START_TEST(dropped_session)
{
	StoreSession session;
	uint64_t taken;

	setup();
	session = begin(a, LENGTH);
	must_put(a, &session, 0, LENGTH);
	ck_assert_int_eq(RXAFS_EndStore(a->fs, &session, 0, 0, &st, &sync_), 0);
	ck_assert_int_eq(put_range(a, &session, 0, UNIT, &taken), UAE(EBADF));
	ck_assert_int_eq(end(a, &session, LENGTH), UAE(ECANCELED));
	read_version(old, LENGTH);
	teardown();
}
END_TEST

START_TEST(bytes_are_missing)
{
	StoreSession session;

	setup();
	session = begin(a, LENGTH);
	must_put(a, &session, UNIT, UNIT);
	ck_assert_int_eq(end(a, &session, LENGTH), UAE(EINVAL));
	ck_assert_int_eq(end(a, &session, UNIT), UAE(EINVAL));
	read_version(old, LENGTH);
	teardown();
}
END_TEST

START_TEST(malformed_calls)
{
	const StoreSession unknown = {1, 2};
	AFSFid none;
	StoreSession session, other;
	uint64_t taken;

	setup();
	ck_assert_int_eq(put_range(a, &unknown, 0, UNIT, &taken), UAE(EBADF));
	ck_assert_int_eq(put_range(a, &unknown, 0, 0, &taken), UAE(EBADF));
	ck_assert_int_eq(end(a, &unknown, 0), UAE(EBADF));
	ck_assert_int_eq(RXAFS_BeginStore(a->fs, &root, &nothing, LENGTH, &session), UAE(EISDIR));
	none = root;
	none.Vnode = 4444;
	ck_assert_int_eq(RXAFS_BeginStore(a->fs, &none, &nothing, LENGTH, &session), AFS_VNOVNODE);
	ck_assert_int_eq(RXAFS_BeginStore(a->fs, &fid, &nothing, 0, &session), UAE(EINVAL));
	ck_assert_int_eq(RXAFS_BeginStore(a->fs, &fid, &nothing, UINT64_MAX, &session), UAE(EFBIG));
	session = begin(a, LENGTH);
	other = session;
	other.low ^= 1;
	ck_assert_int_eq(put_range(a, &other, 0, UNIT, &taken), UAE(EBADF));
	ck_assert_int_eq(put_range(a, &session, 1, UNIT, &taken), UAE(EINVAL));
	ck_assert_int_eq(put_range(a, &session, 0, UNIT - 1, &taken), UAE(EINVAL));
	ck_assert_int_eq(put_range(a, &session, UNIT, LENGTH, &taken), UAE(EINVAL));
	ck_assert_int_eq(put_range(a, &session, UINT64_MAX - UNIT + 1, UNIT, &taken), UAE(EFBIG));
	ck_assert_int_eq(put_range(a, &session, 0, 0, &taken), 0);
	must_put(a, &session, 0, LENGTH);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	read_version(new, LENGTH);
	teardown();
}
END_TEST

/* The range ends early: its whole units count. */
START_TEST(range_that_ends_early)
{
	StoreSession session;
	uint64_t taken;
	rxw_call *call;

	setup();
	session = begin(a, LENGTH);
	call = start_range(a, &session, 0, 8 * UNIT);
	write_range(call, 0, 3 * UNIT + 77);
	ck_assert_int_eq(end_range(call, &taken), 0);
	ck_assert_uint_eq(taken, 3 * UNIT);
	must_put(a, &session, 3 * UNIT, LENGTH - 3 * UNIT);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	read_version(new, LENGTH);
	teardown();
}
END_TEST

/* An aborted range counts for nothing. */
START_TEST(aborted_range)
{
	StoreSession session;
	rxw_call *call;

	setup();
	session = begin(a, LENGTH);
	call = start_range(a, &session, 0, 8 * UNIT);
	write_range(call, 0, 3 * UNIT);
	rxw_rpc_end(call, RXW_USER_ABORT, &RXAFS_interface, RXAFS_FN_StoreRange);
	must_put(a, &session, 0, LENGTH);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	read_version(new, LENGTH);
	teardown();
}
END_TEST

/* A caller has a share of the sessions. Those that have ended make room, and those of a client that is gone end. */
START_TEST(many_sessions)
{
	StoreSession session, first = {0, 0};
	unsigned count = 0;
	int32_t code = 0;
	uint64_t taken;

	setup();
	while (count < FSD_SESSIONS_MAX && !code) {
		code = RXAFS_BeginStore(a->fs, &fid, &nothing, LENGTH, &session);
		if (!code && !count++)
			first = session;
	}
	ck_assert_int_eq(code, AFS_VBUSY);
	ck_assert_uint_eq(count, FSD_SESSIONS_MAX / 2);
	must_put(a, &first, 0, LENGTH);
	ck_assert_int_eq(end(a, &first, LENGTH), 0);
	session = begin(a, LENGTH);
	must_put(a, &session, 0, UNIT);
	/* its result is forgotten by then, and nothing happens twice */
	ck_assert_int_eq(end(a, &first, LENGTH), UAE(EBADF));
	ck_assert(fsd_sessions_look(&shop.service->sessions, fsd_now()));
	ck_assert_int_eq(put_range(a, &session, UNIT, UNIT, &taken), 0);
	ck_assert(!fsd_sessions_look(&shop.service->sessions, fsd_now() + FSD_SESSION_S + 2));
	ck_assert_int_eq(put_range(a, &session, 0, UNIT, &taken), UAE(EBADF));
	read_version(new, LENGTH);
	teardown();
}
END_TEST

/* While a call runs, its session stays. */
START_TEST(slow_range)
{
	StoreSession session;
	uint64_t taken;
	rxw_call *call;

	setup();
	session = begin(a, LENGTH);
	must_put(a, &session, 4 * UNIT, LENGTH - 4 * UNIT);
	call = start_range(a, &session, 0, 4 * UNIT);
	write_range(call, 0, UNIT);
	/* The server has the call: it answers another one on the connection that began later. */
	ck_assert_int_eq(put_range(a, &session, 0, 0, &taken), 0);
	while (!fsd_sessions_look(&shop.service->sessions, fsd_now()))
		;
	write_range(call, UNIT, 3 * UNIT);
	ck_assert_int_eq(end_range(call, &taken), 0);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	read_version(new, LENGTH);
	teardown();
}
END_TEST

/* Mode and time come with the contents. */
START_TEST(status_of_the_beginning)
{
	const AFSStoreStatus set = {.Mask = AFS_SETMODTIME | AFS_SETMODE,
				    .ClientModTime = 1000000000,
				    .UnixModeBits = 0440};
	StoreSession session;

	setup();
	ck_assert_int_eq(RXAFS_BeginStore(a->fs, &fid, &set, LENGTH, &session), 0);
	must_put(a, &session, 0, LENGTH);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	ck_assert_uint_eq(st.UnixModeBits, 0440);
	ck_assert_uint_eq(st.ClientModTime, 1000000000);
	teardown();
}
END_TEST

/* A volume has no room for the contents beside the quota. */
START_TEST(quota)
{
	const struct store_volume set = {.quota_kib = 600};
	const struct store_caller admin = {.administrator = true};
	StoreSession session;

	setup();
	ck_assert_int_eq(shop.store->ops->volume_set(shop.store, &admin, shop.volume, 1, &set), 0);
	ck_assert_int_eq(RXAFS_BeginStore(a->fs, &fid, &nothing, 4u << 20, &session),
			 STORE_VOVERQUOTA);
	session = begin(a, LENGTH);
	must_put(a, &session, 0, LENGTH);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	read_version(new, LENGTH);
	teardown();
}
END_TEST

/* The server stops while sessions are open. */
START_TEST(open_at_the_end)
{
	StoreSession session;

	setup();
	session = begin(a, LENGTH);
	must_put(a, &session, 0, UNIT);
	read_version(old, LENGTH);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "sessions", one_version_and_one_break, end_twice, late_range, dropped_session,
		 bytes_are_missing, malformed_calls, range_that_ends_early, aborted_range,
		 many_sessions, slow_range, status_of_the_beginning, quota, open_at_the_end)
