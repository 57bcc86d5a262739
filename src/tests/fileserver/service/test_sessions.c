/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores over several paths at the file service: ranges from several connections become one version, with one break; late, foreign,
 * repeated and malformed calls change nothing; sessions of a client that is gone end.
 */
#include "tests/fileserver/shop.h"

#include <dirent.h>
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
	ck_assert_int_eq(RXAFS_EndStore(b->fs, &session, 0, 0, &st, &sync_), 0);
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
	StoreSession session, other, first = {0, 0};
	unsigned count = 0;
	int32_t code = 0;
	uint64_t taken;

	setup();
	while (count < FSD_SESSIONS_MAX && !code) {
		code = RXAFS_BeginStore(a->fs, &fid, &nothing, LENGTH, &session);
		if (!code && !count++)
			first = session;
	}
	/* The client stores the file in another way then. All callers without a name have them together. */
	ck_assert_int_eq(code, UAE(EUSERS));
	ck_assert_uint_eq(count, FSD_SESSIONS_OPEN_NAMELESS);
	ck_assert_int_eq(RXAFS_BeginStore(b->fs, &fid, &nothing, LENGTH, &session), UAE(EUSERS));
	must_put(a, &first, 0, LENGTH);
	ck_assert_int_eq(end(a, &first, LENGTH), 0);
	session = begin(a, LENGTH);
	must_put(a, &session, 0, UNIT);
	/* the first one has its result still */
	ck_assert_int_eq(end(a, &first, LENGTH), 0);
	ck_assert_int_eq(RXAFS_BeginStore(b->fs, &fid, &nothing, LENGTH, &other), UAE(EUSERS));
	ck_assert(fsd_sessions_look(&shop.service->sessions, fsd_now()));
	ck_assert_int_eq(put_range(a, &session, UNIT, UNIT, &taken), 0);
	ck_assert(!fsd_sessions_look(&shop.service->sessions, fsd_now() + FSD_SESSION_S + 2));
	ck_assert_int_eq(put_range(a, &session, 0, UNIT, &taken), UAE(EBADF));
	read_version(new, LENGTH);
	teardown();
}
END_TEST

static void give_rights(uint32_t rights)
{
	const struct store_caller admin = {.administrator = true};
	const struct store_fid at = {root.Volume, root.Vnode, root.Unique};
	struct store_changes changes = {0};
	struct store_acl acl = {0};
	struct store_status status;

	ck_assert_int_eq(store_acl_add(&acl, false, STORE_ANYUSER, rights), 0);
	ck_assert_int_eq(shop.store->ops->set_acl(shop.store, &admin, &at, &acl, &status, &changes),
			 0);
}

/* Objects of sessions, which no version has. */
static unsigned count_objects(void)
{
	char path[4300];
	struct dirent *entry;
	unsigned count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/files/new", shop.path);
	folder = opendir(path);
	ck_assert_ptr_nonnull(folder);
	while ((entry = readdir(folder)) != NULL)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

/* Rights that are taken back end the session, with what it holds. They come too late when they come back. */
START_TEST(rights_that_are_taken_back)
{
	const uint32_t reader = STORE_READ | STORE_LOOKUP, all = STORE_ALL;
	StoreSession first, second;
	unsigned before;
	uint64_t taken;

	setup();
	before = count_objects();
	first = begin(a, LENGTH);
	must_put(a, &first, 0, UNIT);
	second = begin(b, LENGTH);
	must_put(b, &second, 0, LENGTH);
	give_rights(reader);
	ck_assert_int_eq(put_range(a, &first, UNIT, UNIT, &taken), UAE(EACCES));
	ck_assert_int_eq(end(b, &second, LENGTH), UAE(EACCES));
	ck_assert_uint_le(count_objects(), before);
	give_rights(all);
	ck_assert_int_eq(put_range(a, &first, UNIT, UNIT, &taken), UAE(EBADF));
	ck_assert_int_eq(end(a, &first, UNIT), UAE(EACCES));
	ck_assert_int_eq(end(b, &second, LENGTH), UAE(EACCES));
	read_version(old, LENGTH);
	teardown();
}
END_TEST

/* The file is removed, then the volume; the volume is off-line for a while. */
START_TEST(things_that_go)
{
	StoreSession first, second;
	unsigned before;
	uint64_t taken;

	setup();
	first = begin(a, LENGTH);
	must_put(a, &first, 0, UNIT);
	ck_assert_int_eq(store_volume_offline(shop.store, shop.volume, ""), 0);
	ck_assert_int_eq(put_range(a, &first, UNIT, UNIT, &taken), AFS_VOFFLINE);
	ck_assert_int_eq(end(a, &first, LENGTH), AFS_VOFFLINE);
	ck_assert_int_eq(store_volume_online(shop.store, shop.volume, NULL, NULL), 0);
	must_put(a, &first, UNIT, LENGTH - UNIT);
	ck_assert_int_eq(end(a, &first, LENGTH), 0);
	first = begin(a, LENGTH);
	must_put(a, &first, 0, LENGTH);
	second = begin(a, LENGTH);
	must_put(a, &second, 0, UNIT);
	read_version(new, LENGTH);
	before = count_objects();
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &root, "file", &st, &sync_), 0);
	ck_assert_int_eq(put_range(a, &second, UNIT, UNIT, &taken), AFS_VNOVNODE);
	ck_assert_int_eq(end(a, &second, UNIT), AFS_VNOVNODE);
	ck_assert_int_eq(end(a, &first, LENGTH), AFS_VNOVNODE);
	ck_assert_uint_lt(count_objects(), before);
	fid = shop_file(&shop, &root, "file");
	first = begin(a, LENGTH);
	must_put(a, &first, 0, LENGTH);
	second = begin(a, LENGTH);
	must_put(a, &second, 0, UNIT);
	before = count_objects();
	ck_assert_int_eq(store_volume_remove(shop.store, shop.volume), 0);
	ck_assert_int_eq(put_range(a, &second, UNIT, UNIT, &taken), AFS_VNOVOL);
	ck_assert_int_eq(end(a, &first, LENGTH), AFS_VNOVOL);
	ck_assert_uint_lt(count_objects(), before);
	teardown();
}
END_TEST

/* -- the table alone -- */

static unsigned aborts;

static void count_abort(struct store_writer *writer)
{
	aborts += writer != NULL;
}

static const struct store_ops fake_ops = {.write_abort = count_abort};

static int add(struct fsd_sessions *all, int32_t user, uint64_t length, StoreSession *id)
{
	const struct fsd_session like = {.user = user,
					 .length = length,
					 .ops = &fake_ops,
					 .writer = (struct store_writer *)(uintptr_t)64};

	return fsd_session_add(all, &like, id);
}

/* The bytes of the open sessions of a user, and of all callers without a name, are bounded. */
START_TEST(bytes_of_callers)
{
	const uint64_t most = FSD_SESSION_BYTES_NAMELESS;
	struct fsd_sessions all = {0};
	struct fsd_session *session;
	StoreSession id, none;
	int result;

	aborts = 0;
	ck_assert(fsd_sessions_init(&all));
	ck_assert_int_eq(add(&all, STORE_ANONYMOUS, most + 1, &none), -EUSERS);
	ck_assert_int_eq(add(&all, STORE_ANONYMOUS, UINT64_MAX, &none), -EUSERS);
	ck_assert_uint_eq(aborts, 2);
	ck_assert_int_eq(add(&all, STORE_ANONYMOUS, most / 2, &id), 0);
	ck_assert_int_eq(add(&all, STORE_ANONYMOUS, most / 2 + 1, &none), -EUSERS);
	ck_assert_int_eq(add(&all, STORE_ANONYMOUS, most / 2, &id), 0);
	ck_assert_int_eq(add(&all, STORE_ANONYMOUS, 1, &none), -EUSERS);
	session = fsd_session_find(&all, &id, STORE_ANONYMOUS);
	ck_assert_ptr_nonnull(session);
	ck_assert(fsd_session_begin_end(&all, session, &result));
	fsd_session_drop(&all, session, -ECANCELED);
	fsd_session_leave(&all, session, 0);
	ck_assert_int_eq(add(&all, STORE_ANONYMOUS, 1, &id), 0);
	for (unsigned i = 0; i < FSD_SESSIONS_OPEN; i++)
		ck_assert_int_eq(add(&all, 7, FSD_SESSION_BYTES / FSD_SESSIONS_OPEN, &id), 0);
	ck_assert_int_eq(add(&all, 7, 1, &none), -EUSERS);
	ck_assert_int_eq(add(&all, 8, FSD_SESSION_BYTES, &id), 0);
	fsd_sessions_fini(&all);
	ck_assert_uint_eq(aborts, 4 + 3 + FSD_SESSIONS_OPEN + 1 + 1);
}
END_TEST

/* Only bytes keep a session; and nothing keeps it for ever, not even a call that runs. */
START_TEST(slow_sessions)
{
	const uint64_t length = 100 * (uint64_t)FSD_SESSION_LEAST_RATE;
	struct fsd_sessions all = {0};
	struct fsd_session *session;
	StoreSession id;
	uint64_t now;
	int result = 0;

	aborts = 0;
	ck_assert(fsd_sessions_init(&all));
	ck_assert_int_eq(add(&all, 7, length, &id), 0);
	session = fsd_session_find(&all, &id, 7);
	ck_assert_ptr_nonnull(session);
	session->used -= 1000;
	fsd_session_leave(&all, session, 0);
	ck_assert(!fsd_sessions_look(&all, fsd_now()));
	ck_assert_uint_eq(aborts, 1);

	ck_assert_int_eq(add(&all, 7, length, &id), 0);
	session = fsd_session_find(&all, &id, 7);
	session->used -= 1000;
	now = fsd_now();
	fsd_session_leave(&all, session, 1);
	ck_assert(fsd_sessions_look(&all, now + FSD_SESSION_S));
	session = fsd_session_find(&all, &id, 7);
	ck_assert(fsd_sessions_look(&all, session->until));
	ck_assert_uint_eq(aborts, 1);
	ck_assert_uint_eq(session->until - now, FSD_SESSION_WHOLE_S + 100);
	ck_assert(fsd_sessions_look(&all, session->until + 1));
	ck_assert_uint_eq(aborts, 2);
	ck_assert(!fsd_session_begin_end(&all, session, &result));
	ck_assert_int_eq(result, -ETIMEDOUT);
	fsd_session_leave(&all, session, 0);
	fsd_sessions_fini(&all);
	ck_assert_uint_eq(aborts, 2);
}
END_TEST

/* A store in ranges is one store; its bytes are those of its ranges. */
START_TEST(counters)
{
	struct fsd_counters *c;
	uint64_t stores, bytes, aborts_before;
	StoreSession session;

	setup();
	c = &shop.service->counters;
	stores = fsd_counted(&c->stores);
	bytes = fsd_counted(&c->stored_bytes);
	aborts_before = fsd_counted(&c->store_aborts);
	session = begin(a, LENGTH);
	must_put(a, &session, 0, 4 * UNIT);
	must_put(a, &session, 4 * UNIT, LENGTH - 4 * UNIT);
	ck_assert_uint_eq(fsd_counted(&c->stores), stores);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	ck_assert_int_eq(end(a, &session, LENGTH), 0);
	ck_assert_uint_eq(fsd_counted(&c->stores), stores + 1);
	ck_assert_uint_eq(fsd_counted(&c->stored_bytes), bytes + LENGTH);
	session = begin(a, LENGTH);
	ck_assert_int_eq(RXAFS_EndStore(a->fs, &session, 0, 0, &st, &sync_), 0);
	ck_assert_uint_eq(fsd_counted(&c->stores), stores + 1);
	ck_assert_uint_eq(fsd_counted(&c->store_aborts), aborts_before + 1);
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
		 many_sessions, rights_that_are_taken_back, things_that_go, bytes_of_callers,
		 slow_sessions, counters, slow_range, status_of_the_beginning, quota,
		 open_at_the_end)
