/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of calls that wait for clients, which have to answer a break first, with a store over loopback. */
#include "tests/fileserver/shop.h"

#include <stdatomic.h>
#include <unistd.h>
#include <rxwire/error.h>
#include <rxwire/stats.h>

#include "afs/numbers.h"
#include "common/clock.h"
#include "fileserver/audit/audit.h"
#include "fileserver/service/services.h"
#include "tests/main.h"

#define UAE(e) rxw_code_from_errno(e)

static struct shop shop;
static struct shop_client *a, *b;
static AFSFid root;
static AFSFetchStatus st;
static AFSCallBack cb;
static AFSVolSync sync_;
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

/* A call on a thread of its own. */
struct other {
	struct shop_client *client;
	enum {
		OTHER_CREATE,
		OTHER_REMOVE,
		OTHER_STATUS,
		OTHER_BULK,
		OTHER_FETCH,
		OTHER_ACL,
		OTHER_KINDS,
		OTHER_MAKE /* as OTHER_CREATE, but with `name` */
	} kind;
	char name[16];
	int32_t code;
	bool ended; /* lock of the shop */
	pthread_t thread;
};

static int32_t other_call(struct other *o)
{
	AFSCBFids fids = {1, &root};
	AFSBulkStats sts = {0};
	AFSOpaque acl = {0};
	AFSCBs cbs = {0};
	AFSFetchStatus its, dir_its;
	AFSCallBack promise;
	AFSVolSync sync;
	AFSFid made;
	char page[4096];
	int32_t code;

	switch (o->kind) {
	case OTHER_CREATE:
		return RXAFS_CreateFile(o->client->fs, &root, "same", &nothing, &made, &its,
					&dir_its, &promise, &sync);
	case OTHER_MAKE:
		return RXAFS_CreateFile(o->client->fs, &root, o->name, &nothing, &made, &its,
					&dir_its, &promise, &sync);
	case OTHER_REMOVE:
		return RXAFS_RemoveFile(o->client->fs, &root, "none", &its, &sync);
	case OTHER_BULK:
		code = RXAFS_InlineBulkStatus(o->client->fs, &fids, &sts, &cbs, &sync);
		xdrfree_AFSBulkStats(&sts);
		xdrfree_AFSCBs(&cbs);
		return code;
	case OTHER_FETCH:
		return shop_get(o->client, &root, 0, sizeof(page), page, &its, &promise) > 0 ? 0
											     : -1;
	case OTHER_ACL:
		code = RXAFS_FetchACL(o->client->fs, &root, &acl, &its, &sync);
		xdrfree_AFSOpaque(&acl);
		return code;
	default:
		return RXAFS_FetchStatus(o->client->fs, &root, &its, &promise, &sync);
	}
}

static void *other_main(void *arg)
{
	struct other *o = arg;
	int32_t code = other_call(o);

	pthread_mutex_lock(&shop.lock);
	o->code = code;
	o->ended = true;
	pthread_cond_broadcast(&shop.changed);
	pthread_mutex_unlock(&shop.lock);
	return NULL;
}

static void other_begins(struct other *o)
{
	ck_assert_int_eq(pthread_create(&o->thread, NULL, other_main, o), 0);
}

/* So many calls wait for the change of another one. */
static void await_settling(unsigned count)
{
	struct fsd_clients_stats stats;

	do {
		fsd_clients_stats(shop.clients, &stats);
	} while (stats.settling != count && usleep(1000) == 0);
}

/*
 * While a client that holds a promise on a directory has not answered its break, nobody learns of the
 * new contents: neither that client, whose cache would not fit the answer, nor others.
 */
START_TEST(replies_wait_for_breaks)
{
	struct other maker = {.kind = OTHER_CREATE}, others[OTHER_KINDS + 1];
	struct shop_client *readers[2]; /* a connection takes four calls */
	unsigned before;

	setup();
	readers[0] = shop_client(&shop, 2);
	readers[1] = shop_client(&shop, 3);
	maker.client = a;
	ck_assert_int_eq(status_of(b, &root), 0);
	before = shop_broken(b, &root);
	shop_stick(b, true);
	other_begins(&maker);
	while (fsd_promise_held(shop.clients, &root))
		usleep(1000);
	for (unsigned i = 0; i <= OTHER_KINDS; i++) {
		others[i] = (struct other){.client = i == OTHER_KINDS ? b : readers[i % 2],
					   .kind = i % OTHER_KINDS};
		other_begins(&others[i]);
	}
	await_settling(OTHER_KINDS + 1);
	pthread_mutex_lock(&shop.lock);
	ck_assert(!maker.ended);
	for (unsigned i = 0; i <= OTHER_KINDS; i++)
		ck_assert(!others[i].ended);
	ck_assert_uint_eq(b->breaks, before);
	pthread_mutex_unlock(&shop.lock);
	shop_stick(b, false);
	pthread_join(maker.thread, NULL);
	ck_assert_int_eq(maker.code, 0);
	ck_assert_uint_eq(shop_broken(b, &root), before + 1);
	for (unsigned i = 0; i <= OTHER_KINDS; i++) {
		pthread_join(others[i].thread, NULL);
		ck_assert_int_eq(others[i].code, others[i].kind == OTHER_CREATE	  ? UAE(EEXIST)
						 : others[i].kind == OTHER_REMOVE ? UAE(ENOENT)
										  : 0);
	}
	teardown();
}
END_TEST

#define MAKERS 8

/* Creations in `root`, on whose promise `b` is stuck: as many as two connections take. */
static void makers_begin(struct other makers[MAKERS])
{
	struct shop_client *c = shop_client(&shop, 2);
	struct fsd_clients_stats stats;

	ck_assert_int_eq(status_of(b, &root), 0);
	shop_stick(b, true);
	for (unsigned i = 0; i < MAKERS; i++) {
		makers[i] = (struct other){.client = i % 2 ? a : c, .kind = OTHER_MAKE};
		snprintf(makers[i].name, sizeof(makers[i].name), "made%u", i);
		other_begins(&makers[i]);
	}
	do
		fsd_clients_stats(shop.clients, &stats);
	while (stats.waits < MAKERS && usleep(1000) == 0);
	ck_assert(fsd_change_open(shop.clients, &root, 1));
}

/*
 * Changes whose handlers have returned: none is answered before the client that held a promise knows of
 * it, and all have ended after that.
 */
START_TEST(deferred_replies_wait_for_breaks)
{
	struct other makers[MAKERS];

	setup();
	makers_begin(makers);
	pthread_mutex_lock(&shop.lock);
	for (unsigned i = 0; i < MAKERS; i++)
		ck_assert(!makers[i].ended);
	pthread_mutex_unlock(&shop.lock);
	shop_stick(b, false);
	for (unsigned i = 0; i < MAKERS; i++) {
		pthread_join(makers[i].thread, NULL);
		ck_assert_int_eq(makers[i].code, 0);
	}
	ck_assert_uint_ge(shop_broken(b, &root), 1);
	ck_assert(!fsd_change_open(shop.clients, &root, 1));
	teardown();
}
END_TEST

/*
 * The audit log is closed after the service, as when a server stops. A thread that answered for others
 * has given up its ring by then, or the thread and address sanitizers see that it was freed before.
 */
START_TEST(deferred_replies_are_in_the_log)
{
	char message[FSD_MESSAGE_MAX], path[4200];
	struct other makers[MAKERS];
	struct fsd_audit_stats stats;

	shop_make(&shop);
	snprintf(path, sizeof(path), "%s/audit", shop.folder);
	shop.audit = fsd_audit_open(path, true, message);
	ck_assert_ptr_nonnull(shop.audit);
	shop_serve(&shop);
	a = shop_client(&shop, 0);
	b = shop_client(&shop, 1);
	root = shop_root(&shop);
	makers_begin(makers);
	shop_stick(b, false);
	for (unsigned i = 0; i < MAKERS; i++) {
		pthread_join(makers[i].thread, NULL);
		ck_assert_int_eq(makers[i].code, 0);
	}
	do
		fsd_audit_stats(shop.audit, &stats);
	while (stats.written < MAKERS && usleep(1000) == 0);
	ck_assert_uint_eq(stats.lost, 0);
	teardown();
	fsd_audit_close(shop.audit);
}
END_TEST

/* The calls are aborted meanwhile, and the server stops: the changes end all the same. */
START_TEST(deferred_changes_end)
{
	struct other makers[MAKERS];

	setup();
	makers_begin(makers);
	rxw_endpoint_stop(shop.server, 0);
	fsd_service_settle(shop.service);
	ck_assert(!fsd_change_open(shop.clients, &root, 1));
	for (unsigned i = 0; i < MAKERS; i++) {
		pthread_join(makers[i].thread, NULL);
		/* The call to `b` ends as well: from then on the others succeed. */
		ck_assert_int_le(makers[i].code, 0);
	}
	teardown();
}
END_TEST

/*
 * The client never answers: a call of another one waits no longer than the change. One that would tell
 * of the change meanwhile is to come again.
 */
START_TEST(replies_do_not_wait_for_ever)
{
	struct other maker = {.kind = OTHER_CREATE}, other = {.kind = OTHER_STATUS};
	uint64_t begun;

	setup();
	maker.client = a;
	other.client = shop_client(&shop, 2);
	ck_assert_int_eq(status_of(b, &root), 0);
	shop_stick(b, true);
	begun = monotonic_ns();
	other_begins(&maker);
	while (fsd_promise_held(shop.clients, &root))
		usleep(1000);
	other_begins(&other);
	pthread_join(other.thread, NULL);
	pthread_join(maker.thread, NULL);
	ck_assert_uint_lt(monotonic_ns() - begun, 30 * (uint64_t)NS_PER_S);
	ck_assert_int_eq(maker.code, 0);
	ck_assert(other.code == 0 || other.code == AFS_VBUSY);
	ck_assert_int_eq(status_of(other.client, &root), 0);
	shop_stick(b, false);
	teardown();
}
END_TEST

static void *stat_main(void *arg)
{
	*(int32_t *)arg = status_of(b, &root);
	return NULL;
}

/*
 * A client that does not answer: the writer goes on within seconds, others are served meanwhile, and
 * that client is told to forget everything before its next call is served.
 */
START_TEST(stuck_client)
{
	struct shop_client *c;
	AFSFid file;
	unsigned inits;
	uint64_t begun;
	pthread_t thread;
	int32_t code = -1;

	setup();
	c = shop_client(&shop, 2);
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(status_of(b, &file), 0);
	shop_stick(b, true);
	inits = b->inits;
	begun = monotonic_ns();
	ck_assert_int_eq(shop_put(a, &file, 0, 3, 3, "abc", 3, &st), 0);
	ck_assert_uint_lt(monotonic_ns() - begun, 20 * (uint64_t)NS_PER_S);
	begun = monotonic_ns();
	ck_assert_int_eq(shop_put(a, &file, 0, 3, 3, "abc", 3, &st), 0);
	ck_assert_int_eq(status_of(c, &file), 0);
	ck_assert_uint_lt(monotonic_ns() - begun, 2 * (uint64_t)NS_PER_S);
	ck_assert_int_eq(pthread_create(&thread, NULL, stat_main, &code), 0);
	shop_stick(b, false);
	pthread_join(thread, NULL);
	/* It was told, or is to come again. */
	while (code == AFS_VBUSY)
		code = status_of(b, &root);
	ck_assert_int_eq(code, 0);
	ck_assert_uint_gt(b->inits, inits);
	teardown();
}
END_TEST

/* A client that was given up releases its lock, although it cannot be told to forget its promises. */
START_TEST(lock_of_stuck_client)
{
	struct fsd_clients_stats stats;
	uint64_t turned_away;
	AFSFid file;

	setup();
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(RXAFS_SetLock(b->fs, &file, 1, &sync_), 0);
	ck_assert_int_eq(status_of(b, &file), 0);
	shop_stick(b, true);
	ck_assert_int_eq(shop_put(a, &file, 0, 3, 3, "abc", 3, &st), 0);
	fsd_clients_stats(shop.clients, &stats);
	ck_assert_uint_eq(stats.given_up, 1);
	turned_away = stats.turned_away;
	ck_assert_int_eq(RXAFS_ReleaseLock(b->fs, &file, &sync_), 0);
	ck_assert_int_eq(RXAFS_SetLock(a->fs, &file, 1, &sync_), 0);
	ck_assert_int_eq(status_of(b, &file), AFS_VBUSY);
	fsd_clients_stats(shop.clients, &stats);
	ck_assert_uint_eq(stats.turned_away, turned_away + 1);
	shop_stick(b, false);
	teardown();
}
END_TEST

#define BLOCKED 16

static AFSFid blocked_file[BLOCKED];

static void *blocked_main(void *arg)
{
	const AFSFid *file = arg;

	ck_assert_int_eq(shop_put(a, file, 0, 3, 3, "abc", 3, &(AFSFetchStatus){0}), 0);
	return NULL;
}

/* Writers that wait for a client which does not answer hold up no other call, and occupy no worker. */
START_TEST(blocked_writers)
{
	struct shop_client *c;
	struct fsd_clients_stats stats;
	pthread_t threads[BLOCKED];
	uint64_t begun;
	char name[16];
	AFSFid other;

	setup();
	c = shop_client(&shop, 2);
	other = shop_file(&shop, &root, "other");
	for (int i = 0; i < BLOCKED; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		blocked_file[i] = shop_file(&shop, &root, name);
		ck_assert_int_eq(status_of(b, &blocked_file[i]), 0);
	}
	shop_stick(b, true);
	begun = monotonic_ns();
	for (int i = 0; i < BLOCKED; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, blocked_main, &blocked_file[i]),
				 0);
	do
		fsd_clients_stats(shop.clients, &stats);
	while (stats.waits < 4); /* those of one connection */
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(status_of(c, &other), 0);
		ck_assert_int_eq(shop_put(c, &other, 0, 3, 3, "abc", 3, &st), 0);
	}
	shop_await_idle(&shop); /* those of calls that were answered become idle */
	fsd_clients_stats(shop.clients, &stats);
	ck_assert_uint_eq(stats.given_up, 0); /* they still wait */
	for (int i = 0; i < BLOCKED; i++)
		pthread_join(threads[i], NULL);
	/* together, not one after the other */
	ck_assert_uint_lt(monotonic_ns() - begun, 20 * (uint64_t)NS_PER_S);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "calls that wait", replies_wait_for_breaks, deferred_replies_wait_for_breaks,
		 deferred_replies_are_in_the_log, deferred_changes_end,
		 replies_do_not_wait_for_ever, stuck_client, lock_of_stuck_client, blocked_writers)
