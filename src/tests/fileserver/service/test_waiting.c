/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of calls that wait for clients, which have to answer a break first, with a store over loopback. */
#include "tests/fileserver/shop.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
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
	shop_make(&shop);
	shop_serve(&shop);
	a = shop_client(&shop, 0);
	b = shop_client(&shop, 1);
	root = shop_root(&shop);
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
		ck_assert_int_eq(others[i].code, others[i].kind == OTHER_CREATE	? UAE(EEXIST)
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

/* Threads of the library that serve calls. */
static uint64_t busy_workers(void)
{
	struct counters now;

	ck_assert_int_eq(counters_read(&now, shop.server), 0);
	return counters_get(&now, "workers") - counters_get(&now, "workers_idle");
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
	while (busy_workers()) /* those of calls that were answered become idle */
		;
	fsd_clients_stats(shop.clients, &stats);
	ck_assert_uint_eq(stats.given_up, 0); /* they still wait */
	for (int i = 0; i < BLOCKED; i++)
		pthread_join(threads[i], NULL);
	/* together, not one after the other */
	ck_assert_uint_lt(monotonic_ns() - begun, 20 * (uint64_t)NS_PER_S);
	teardown();
}
END_TEST

static unsigned storing(void)
{
	struct fsd_places *all = &shop.service->storing;
	unsigned count;

	pthread_mutex_lock(&all->lock);
	count = all->count;
	pthread_mutex_unlock(&all->lock);
	return count;
}

/* A store whose data comes, or not. */
struct slow {
	rxw_connection *connection;
	rxw_call *call;
};

static void slow_begin(struct slow *slow, unsigned client, const AFSFid *file, uint64_t length)
{
	slow->connection = shop_connect(&shop, client, AFS_SERVICE_FS);
	ck_assert_int_eq(rxw_call_begin(slow->connection, NULL, &slow->call), 0);
	ck_assert_int_eq(StartRXAFS_StoreData64(slow->call, file, &nothing, 0, length, length), 0);
	ck_assert_int_eq(rxw_call_flush(slow->call), 0);
}

static void slow_feed(struct slow *slow, const char *data, size_t length)
{
	ck_assert_int_eq(rxw_call_write(slow->call, data, length), (ssize_t)length);
	ck_assert_int_eq(rxw_call_flush(slow->call), 0);
}

static void slow_drop(struct slow *slow)
{
	rxw_call_end(slow->call, RXW_USER_ABORT, NULL);
	rxw_connection_release(slow->connection);
}

/* With all its bytes: the code. */
static int32_t slow_end(struct slow *slow)
{
	int32_t code = EndRXAFS_StoreData64(slow->call, &st, &sync_);

	code = rxw_call_end(slow->call, code, NULL);
	rxw_connection_release(slow->connection);
	return code;
}

static void await_storing(unsigned count)
{
	while (storing() != count)
		usleep(1000);
}

/* The server waits for the client of the store that began first, or does not. */
static void await_first(bool waiting)
{
	struct fsd_place *place;
	bool waits;

	await_storing(1);
	do {
		usleep(1000);
		pthread_mutex_lock(&shop.service->storing.lock);
		place = shop.service->storing.place[0];
		pthread_mutex_lock(&place->lock);
		waits = place->begun != 0;
		pthread_mutex_unlock(&place->lock);
		pthread_mutex_unlock(&shop.service->storing.lock);
	} while (waits != waiting);
}

static void await_first_waiting(void)
{
	await_first(true);
}

#define SLOW_EACH 60
#define PLACES	  96

static void await_stores_held(uint64_t count)
{
	while (fsd_counted(&shop.service->counters.stores_held) != count)
		usleep(1000);
}

/*
 * Three clients send the data of many stores slowly. They share the places, their other stores wait without a thread, and
 * other clients can store.
 */
START_TEST(slow_stores)
{
	static struct slow slow[3][SLOW_EACH];
	static const unsigned share[] = {PLACES / 2, PLACES / 4, PLACES / 8};
	unsigned total = 0, held = 0;
	struct shop_client *c;
	AFSFid file, other;

	setup();
	shop.service->storing.max = PLACES;
	c = shop_client(&shop, 3);
	file = shop_file(&shop, &root, "file");
	other = shop_file(&shop, &root, "other");
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < SLOW_EACH; i++)
			slow_begin(&slow[k][i], k, &file, 5);
		held += SLOW_EACH - share[k];
		await_stores_held(held);
		total += share[k];
		await_storing(total);
	}
	while (busy_workers())
		usleep(1000);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(shop_put(c, &other, 0, 3, 3, "abc", 3, &st), 0);
	await_storing(total);
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < SLOW_EACH; i++)
			slow_drop(&slow[k][i]);
	await_storing(0);
	teardown();
}
END_TEST

#define PATIENT 40 /* of each client */

/* Stores whose clients pause occupy no thread. They go on when the rest comes. */
START_TEST(stores_without_threads)
{
	static struct slow slow[3][PATIENT];
	AFSFid file[3];
	char name[2] = "a";

	setup();
	for (unsigned k = 0; k < 3; k++, name[0]++)
		file[k] = shop_file(&shop, &root, name);
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < PATIENT; i++) {
			slow_begin(&slow[k][i], k, &file[k], 5);
			slow_feed(&slow[k][i], "he", 2);
		}
	await_storing(3 * PATIENT);
	while (busy_workers())
		;
	for (unsigned i = 0; i < PATIENT; i++)
		for (unsigned k = 0; k < 3; k++) {
			slow_feed(&slow[k][i], "llo", 3);
			ck_assert_int_eq(slow_end(&slow[k][i]), 0);
			ck_assert_uint_eq(st.Length, 5);
		}
	await_storing(0);
	teardown();
}
END_TEST

static struct {
	_Atomic unsigned running;
	sem_t go;
} disk;

static void wait_for_disk(struct fsd_job *job)
{
	(void)job;
	atomic_fetch_add(&disk.running, 1);
	sem_wait(&disk.go);
}

/* A client that has sent its data is not slow because all threads wait for the disk. */
START_TEST(stores_and_a_slow_disk)
{
	static struct fsd_job jobs[FSD_STORERS_MAX];
	const struct fsd_share_key key = {{1}};
	struct fsd_pool_caller *caller;
	struct slow slow;
	AFSFid file;

	setup();
	file = shop_file(&shop, &root, "file");
	slow_begin(&slow, 1, &file, 5);
	await_first_waiting();
	sem_init(&disk.go, 0, 0);
	caller = fsd_pool_enter(shop.service->storers, &key);
	for (unsigned i = 0; i < FSD_STORERS_MAX; i++) {
		jobs[i] = (struct fsd_job){.run = wait_for_disk, .caller = caller};
		fsd_pool_post(shop.service->storers, &jobs[i]);
	}
	while (atomic_load(&disk.running) < FSD_STORERS_MAX)
		usleep(1000);
	slow_feed(&slow, "hello", 5);
	await_first(false);
	for (unsigned i = 0; i < FSD_STORERS_MAX; i++)
		sem_post(&disk.go);
	ck_assert_int_eq(slow_end(&slow), 0);
	fsd_pool_leave(shop.service->storers, caller);
	teardown();
	sem_destroy(&disk.go);
}
END_TEST

/* A server that stops does not wait for the clients of stores. */
START_TEST(stores_at_a_stop)
{
	struct slow slow;
	AFSFid file;

	setup();
	file = shop_file(&shop, &root, "file");
	slow_begin(&slow, 1, &file, 5);
	slow_feed(&slow, "he", 2);
	await_first_waiting();
	rxw_endpoint_stop(shop.server, 0);
	fsd_service_settle(shop.service);
	ck_assert_uint_eq(storing(), 0);
	ck_assert_uint_eq(shop.service->counters.store_aborts, 1);
	slow_drop(&slow);
	teardown();
}
END_TEST

/* A store on a thread of its own. */
struct putter {
	const AFSFid *file;
	int32_t code;
	pthread_t thread;
	_Atomic bool ended;
};

static void *put_main(void *arg)
{
	struct putter *p = arg;

	p->code = shop_put(shop_client(&shop, 3), p->file, 0, 3, 3, "abc", 3, &(AFSFetchStatus){0});
	p->ended = true;
	return NULL;
}

static void put_begins(struct putter *p, const AFSFid *file)
{
	shop_client(&shop, 3);
	p->file = file;
	p->ended = false;
	ck_assert_int_eq(pthread_create(&p->thread, NULL, put_main, p), 0);
}

static size_t waiting(struct fsd_places *all)
{
	size_t count;

	pthread_mutex_lock(&all->lock);
	count = all->waiters.count;
	pthread_mutex_unlock(&all->lock);
	return count;
}

/* A store that finds no place waits without a thread, and is done when another one has left its place. */
START_TEST(stores_wait)
{
	AFSFid file, other;
	struct putter putter;
	struct slow slow;
	char got[3];

	setup();
	shop.service->storing.max = 1;
	file = shop_file(&shop, &root, "file");
	other = shop_file(&shop, &root, "other");
	slow_begin(&slow, 0, &file, 5);
	await_storing(1);
	put_begins(&putter, &other);
	await_stores_held(1);
	while (busy_workers())
		usleep(1000);
	ck_assert(!putter.ended);
	slow_feed(&slow, "hello", 5);
	ck_assert_int_eq(slow_end(&slow), 0);
	pthread_join(putter.thread, NULL);
	ck_assert_int_eq(putter.code, 0);
	ck_assert_int_eq(shop_get(b, &other, 0, sizeof(got), got, &st, &cb), sizeof(got));
	ck_assert_mem_eq(got, "abc", sizeof(got));
	await_storing(0);
	teardown();
}
END_TEST

/* The object was removed, the client is gone, or the server stops: nothing is held back. */
START_TEST(stores_that_wait_end)
{
	struct slow first, second;
	AFSFid file, other;

	setup();
	shop.service->storing.max = 1;
	file = shop_file(&shop, &root, "file");
	other = shop_file(&shop, &root, "other");
	slow_begin(&first, 0, &file, 5);
	await_storing(1);
	slow_begin(&second, 1, &other, 5);
	await_stores_held(1);
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &root, "other", &st, &sync_), 0);
	slow_drop(&first);
	while (rxw_call_error(second.call, NULL) != AFS_VNOVNODE)
		usleep(1000);
	slow_drop(&second);
	await_storing(0);

	slow_begin(&first, 0, &file, 5);
	await_storing(1);
	slow_begin(&second, 1, &file, 5);
	await_stores_held(2);
	slow_drop(&second);
	while (waiting(&shop.service->storing))
		usleep(1000);
	slow_feed(&first, "hello", 5);
	ck_assert_int_eq(slow_end(&first), 0);
	await_storing(0);

	slow_begin(&first, 0, &file, 5);
	await_storing(1);
	slow_begin(&second, 1, &file, 5);
	await_stores_held(3);
	rxw_endpoint_stop(shop.server, 0);
	fsd_service_settle(shop.service);
	ck_assert_uint_eq(storing(), 0);
	slow_drop(&second);
	slow_drop(&first);
	teardown();
}
END_TEST

#define PART 65536
#define LATE (FSD_PLACE_PERIOD * (uint64_t)NS_PER_MS / 2)

/*
 * All places are taken. A client that has none gets that of the slowest store. One that sends enough stays, and so do
 * slow ones as long as places are free. False: the machine was too slow to tell.
 */
static bool take_place(const AFSFid *file, const AFSFid *other)
{
	static char data[PART];
	struct slow fast, modem[2], dead;
	uint64_t begun = monotonic_ns(), now;
	struct putter putter;
	bool late = false;

	/* It waits for longest, and is the slowest as soon as any is slow. */
	slow_begin(&dead, 1, &file[2], 5);
	await_first_waiting();
	slow_begin(&fast, 0, &file[0], 4096 * (uint64_t)PART);
	await_storing(2);
	slow_begin(&modem[0], 0, &file[1], PART);
	await_storing(3);
	slow_begin(&modem[1], 2, &file[3], PART);
	await_storing(4);
	put_begins(&putter, other);
	do {
		slow_feed(&fast, data, PART);
		slow_feed(&modem[0], "x", 1);
		slow_feed(&modem[1], "x", 1);
		now = monotonic_ns();
		late |= now - begun > LATE;
		begun = now;
		usleep(20000);
		fsd_waiting_look(shop.service);
	} while (!putter.ended);
	pthread_join(putter.thread, NULL);
	ck_assert_int_eq(putter.code, 0);
	if (!late) {
		ck_assert_int_eq(rxw_call_error(fast.call, NULL), 0);
		ck_assert_int_eq(rxw_call_error(modem[0].call, NULL), 0);
		ck_assert_int_eq(rxw_call_error(modem[1].call, NULL), 0);
		ck_assert_int_eq(slow_end(&dead), AFS_VBUSY);
	} else {
		slow_drop(&dead);
	}
	slow_drop(&fast);
	slow_drop(&modem[0]);
	slow_drop(&modem[1]);
	await_storing(0);
	return !late;
}

START_TEST(slowest_store)
{
	AFSFid file[4], other;
	char name[2] = "a";

	setup();
	shop.service->storing.max = 4;
	for (unsigned i = 0; i < 4; i++, name[0]++)
		file[i] = shop_file(&shop, &root, name);
	other = shop_file(&shop, &root, "other");
	while (!take_place(file, &other))
		;
	ck_assert_uint_ge(shop.service->counters.stores_given_up, 1);
	teardown();
}
END_TEST

static unsigned sending(void)
{
	struct fsd_places *all = &shop.service->sending;
	unsigned count;

	pthread_mutex_lock(&all->lock);
	count = all->count;
	pthread_mutex_unlock(&all->lock);
	return count;
}

/* A fetch of which only the first bytes are read. */
static void slow_fetch(struct slow *slow, unsigned client, const AFSFid *file, uint64_t length)
{
	uint8_t head[8];

	slow->connection = shop_connect(&shop, client, AFS_SERVICE_FS);
	ck_assert_int_eq(rxw_call_begin(slow->connection, NULL, &slow->call), 0);
	ck_assert_int_eq(StartRXAFS_FetchData64(slow->call, file, 0, (int64_t)length), 0);
	ck_assert_int_eq(rxw_call_read(slow->call, head, sizeof(head)), sizeof(head));
}

/* A fetch on a thread of its own. */
struct fetcher {
	const AFSFid *file;
	char got[3 << 20];
	int64_t n; /* bytes, or the code, negative */
	AFSVolSync sync;
	pthread_t thread;
	_Atomic bool ended;
};

static void *fetch_main(void *arg)
{
	struct fetcher *f = arg;
	uint8_t head[8] = {0};
	AFSFetchStatus its;
	AFSCallBack promise;
	uint64_t n = 0;
	rxw_call *call;
	int32_t code;

	ck_assert_int_eq(rxw_call_begin(shop_client(&shop, 3)->fs, NULL, &call), 0);
	code = StartRXAFS_FetchData64(call, f->file, 0, sizeof(f->got));
	if (!code && rxw_call_read(call, head, 8) == 8) {
		for (int i = 0; i < 8; i++)
			n = n << 8 | head[i];
		ck_assert_uint_le(n, sizeof(f->got));
		if (rxw_call_read(call, f->got, n) != (ssize_t)n)
			code = RXW_RPC_CC_UNMARSHAL;
	}
	if (!code)
		code = EndRXAFS_FetchData64(call, &its, &promise, &f->sync);
	code = rxw_call_end(call, code, NULL);
	f->n = code ? -(int64_t)code : (int64_t)n;
	f->ended = true;
	return NULL;
}

static void fetch_begins(struct fetcher *f, const AFSFid *file)
{
	shop_client(&shop, 3);
	f->file = file;
	f->ended = false;
	memset(f->got, 0, sizeof(f->got));
	ck_assert_int_eq(pthread_create(&f->thread, NULL, fetch_main, f), 0);
}

static void await_held(uint64_t count)
{
	while (fsd_counted(&shop.service->counters.fetches_held) != count)
		usleep(1000);
}

/*
 * Unread fetches hold all places and no thread. Another client waits until one of them is slow, and
 * then gets its place. One that reads keeps its own.
 */
START_TEST(slowest_fetch)
{
	static char large[3 << 20], got[sizeof(large)];
	static struct fetcher fetcher;
	struct slow slow[2], reader;
	AFSFid file;

	setup();
	shop.service->sending.max = 3;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	for (unsigned i = 0; i < 2; i++)
		slow_fetch(&slow[i], i, &file, sizeof(large));
	slow_fetch(&reader, 2, &file, sizeof(large));
	ck_assert_uint_eq(sending(), 3);
	fetch_begins(&fetcher, &file);
	while (!fetcher.ended) {
		ck_assert_int_eq(rxw_call_read(reader.call, got, 16384), 16384);
		usleep(20000);
		fsd_waiting_look(shop.service);
	}
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_eq(fetcher.n, sizeof(fetcher.got));
	ck_assert_uint_eq(shop.service->counters.fetches_given_up, 1);
	ck_assert_int_eq(rxw_call_error(reader.call, NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		slow_drop(&slow[i]);
	slow_drop(&reader);
	while (sending())
		usleep(1000);
	/* All three were incomplete, whoever ended them. */
	ck_assert_uint_eq(fsd_counted(&shop.service->counters.fetch_aborts), 3);
	teardown();
}
END_TEST

/*
 * While the server drains, no thread of its own calls it every second. A fetch that waits gets the place of a slow one all
 * the same.
 */
START_TEST(fetches_wait_during_a_drain)
{
	static char large[3 << 20];
	static struct fetcher fetcher;
	struct slow slow;
	AFSFid file;

	setup();
	shop.service->sending.max = 1;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	slow_fetch(&slow, 0, &file, sizeof(large));
	fetch_begins(&fetcher, &file);
	await_held(1);
	ck_assert_int_eq(rxw_endpoint_stop(shop.server, 60000), 0);
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_eq(fetcher.n, sizeof(fetcher.got));
	ck_assert_uint_eq(shop.service->counters.fetches_given_up, 1);
	slow_drop(&slow);
	teardown();
}
END_TEST

/*
 * A fetch that finds no place waits, without a thread and with nothing open. It goes on with the file as it is then, or
 * fails if that has another length, since the client has got the length before.
 */
START_TEST(fetches_wait)
{
	static char large[3 << 20];
	static struct fetcher fetcher;
	struct slow slow;
	AFSFid file;

	setup();
	shop.service->sending.max = 1;
	file = shop_file(&shop, &root, "file");
	for (unsigned round = 0; round < 3; round++) {
		uint64_t length = sizeof(large) - (round == 2);

		memset(large, 'a', sizeof(large));
		ck_assert_int_eq(shop_put(a, &file, 0, sizeof(large), sizeof(large), large,
					  sizeof(large), &st),
				 0);
		slow_fetch(&slow, 0, &file, sizeof(large));
		fetch_begins(&fetcher, &file);
		await_held(round + 1);
		while (busy_workers())
			usleep(1000);
		memset(large, round ? 'b' : 'a', sizeof(large));
		if (round)
			ck_assert_int_eq(shop_put(a, &file, 0, length, length, large, length, &st),
					 0);
		slow_drop(&slow);
		pthread_join(fetcher.thread, NULL);
		ck_assert_int_eq(fetcher.n, round == 2 ? -AFS_VBUSY : (int64_t)sizeof(large));
		ck_assert(round == 2 || memcmp(fetcher.got, large, sizeof(large)) == 0);
		while (sending())
			usleep(1000);
	}
	teardown();
}
END_TEST

static struct store_volume volume_of(uint32_t id)
{
	struct store_volume volume;

	ck_assert_int_eq(shop.store->ops->volume(shop.store, id, &volume), 0);
	return volume;
}

/* The volume is released meanwhile: the reply has the date of the new release. */
START_TEST(fetches_wait_for_a_release)
{
	static char large[3 << 20];
	static struct fetcher fetcher;
	uint32_t clone, before;
	struct slow slow;
	AFSFid file, copy;

	setup();
	shop.service->sending.max = 1;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_RO, &clone), 0);
	before = volume_of(clone).sync;
	copy = (AFSFid){clone, file.Vnode, file.Unique};
	slow_fetch(&slow, 0, &file, sizeof(large));
	fetch_begins(&fetcher, &copy);
	await_held(1);
	while (volume_of(clone).sync == before) {
		usleep(100000);
		ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_RO, &clone), 0);
	}
	slow_drop(&slow);
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_eq(fetcher.n, sizeof(large));
	ck_assert_uint_eq(fetcher.sync.spare1, volume_of(clone).sync);
	while (sending())
		usleep(1000);
	teardown();
}
END_TEST

/*
 * A client that gave up meanwhile has no share of those that wait any more. Neither it nor one that waits when the server
 * stops holds anything back.
 */
START_TEST(fetches_that_wait_end)
{
	static char large[3 << 20];
	static struct fetcher fetcher;
	struct slow first, gone;
	AFSFid file;

	setup();
	shop.service->sending.max = 1;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	slow_fetch(&first, 0, &file, sizeof(large));
	gone.connection = shop_connect(&shop, 2, AFS_SERVICE_FS);
	ck_assert_int_eq(rxw_call_begin(gone.connection, NULL, &gone.call), 0);
	ck_assert_int_eq(StartRXAFS_FetchData64(gone.call, &file, 0, sizeof(large)), 0);
	ck_assert_int_eq(rxw_call_flush(gone.call), 0);
	await_held(1);
	slow_drop(&gone);
	while (waiting(&shop.service->sending))
		usleep(1000);
	while (fsd_counted(&shop.service->counters.fetches) != 1)
		usleep(1000);
	/* It was not refused at the end of its time. */
	ck_assert_uint_eq(fsd_counted(&shop.service->counters.fetch_aborts), 1);
	fetch_begins(&fetcher, &file);
	await_held(2);
	slow_drop(&first);
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_eq(fetcher.n, sizeof(large));
	while (sending())
		usleep(1000);
	slow_fetch(&first, 0, &file, sizeof(large));
	fetch_begins(&fetcher, &file);
	await_held(3);
	rxw_endpoint_stop(shop.server, 0);
	fsd_service_settle(shop.service);
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_ne(fetcher.n, sizeof(large));
	slow_drop(&first);
	teardown();
}
END_TEST

/* Each fetch has a file open, and other calls need descriptors, too. */
START_TEST(places_and_descriptors)
{
	struct rlimit before, few;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 256;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	setup();
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_uint_eq(shop.service->sending.max, 128);
	teardown();
}
END_TEST

/*
 * With reads in the audit log, a thread that may wait ends the call. It is held up here, and the client aborts the
 * call meanwhile: the flow is gone, and is not visited any more, or the address sanitizer sees that.
 */
START_TEST(fetch_ends_on_another_thread)
{
	static char large[1 << 20], got[sizeof(large)];
	struct fsd_places *all;
	struct slow slow;
	rxw_call *rx;
	AFSFid file;

	setup();
	all = &shop.service->sending;
	shop.service->audit_reads = true;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	slow_fetch(&slow, 0, &file, sizeof(large));
	pthread_mutex_lock(&all->lock);
	ck_assert_uint_eq(all->count, 1);
	rx = all->place[0]->rx;
	/* A part of a buffer of packets leaves with the end of the reply. */
	ck_assert_int_eq(rxw_call_read(slow.call, got, sizeof(got) - 131072), sizeof(got) - 131072);
	while (!fsd_counted(&shop.service->counters.fetches))
		usleep(1000);
	slow_drop(&slow);
	while (!rxw_call_error(rx, NULL))
		usleep(1000);
	/* The thread that received the abort has gone on. */
	ck_assert_int_eq(status_of(b, &root), 0);
	pthread_mutex_unlock(&all->lock);
	while (sending())
		usleep(1000);
	teardown();
}
END_TEST

/* While places are free, a store may take as long as it likes. */
START_TEST(slow_but_alone)
{
	char data[8] = "", got[8];
	AFSFid file, other;
	struct slow slow;
	uint64_t begun;

	setup();
	file = shop_file(&shop, &root, "file");
	other = shop_file(&shop, &root, "other");
	slow_begin(&slow, 0, &file, sizeof(data));
	for (unsigned i = 0; i < sizeof(data); i++) {
		data[i] = (char)('a' + i);
		slow_feed(&slow, &data[i], 1);
		begun = monotonic_ns();
		do
			ck_assert_int_eq(shop_put(b, &other, 0, 3, 3, "abc", 3, &st), 0);
		while (monotonic_ns() - begun < LATE);
	}
	ck_assert_int_eq(slow_end(&slow), 0);
	ck_assert_int_eq(shop_get(b, &file, 0, sizeof(got), got, &st, &cb), sizeof(got));
	ck_assert_mem_eq(got, data, sizeof(got));
	ck_assert_uint_eq(shop.service->counters.stores_given_up, 0);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "calls that wait", replies_wait_for_breaks, deferred_replies_wait_for_breaks,
		 deferred_replies_are_in_the_log, deferred_changes_end,
		 replies_do_not_wait_for_ever, stuck_client, lock_of_stuck_client, blocked_writers,
		 slow_stores, stores_without_threads, stores_and_a_slow_disk, stores_at_a_stop,
		 stores_wait, stores_that_wait_end, slowest_fetch, fetches_wait_during_a_drain,
		 fetches_wait, fetches_wait_for_a_release, fetches_that_wait_end,
		 places_and_descriptors, slowest_store, fetch_ends_on_another_thread,
		 slow_but_alone)
