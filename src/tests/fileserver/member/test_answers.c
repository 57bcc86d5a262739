/* SPDX-License-Identifier: BSD-2-Clause */
/* Users, machines and names of a cell: what its protection servers say, do not say, or say wrongly. */
#include "tests/fileserver/member/fakecell.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "afs/numbers.h"
#include "fileserver/member/membership.h"
#include "tests/main.h"

#define SERVERS	  2
#define PENDING	  4096 /* of answers.c */
#define DEAD_MS	  1000
#define ANSWER_MS 60000

static rxw_engine *engine;
static rxw_endpoint *client;
static struct fake_server server[SERVERS];
static struct member_database *database;
static struct member_answers *answers;
static unsigned answer_ms;

/* An asker that can be waited for. */
struct waiter {
	struct fsd_asker asker; /* first */
	unsigned ready;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void note_ready(struct fsd_asker *asker)
{
	struct waiter *waiter = (struct waiter *)asker;

	pthread_mutex_lock(&lock);
	waiter->ready++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static struct waiter waiter_of(unsigned address)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
	struct sockaddr_storage peer = {0};
	struct waiter waiter = {.asker.ready = note_ready};

	memcpy(&peer, &sa, sizeof(sa));
	fsd_share_of_address(&peer, &waiter.asker.caller);
	return waiter;
}

static void await(struct waiter *waiter)
{
	pthread_mutex_lock(&lock);
	while (!waiter->ready)
		pthread_cond_wait(&changed, &lock);
	ck_assert_uint_eq(waiter->ready, 1);
	waiter->ready = 0;
	pthread_mutex_unlock(&lock);
}

static void setup(unsigned servers, uint64_t fresh_s)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct rxw_endpoint_options here = {.size = sizeof(here),
						  .address = (const struct sockaddr *)&sa,
						  .address_len = sizeof(sa)};
	struct member_database_options options = {.service = AFS_SERVICE_PT,
						  .name = "protection",
						  .dead_ms = DEAD_MS,
						  .answer_ms = answer_ms ? answer_ms : ANSWER_MS};
	struct cl_cell_server where[SERVERS] = {0};

	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &here, &client), 0);
	for (unsigned i = 0; i < SERVERS; i++)
		fake_open(&server[i], engine, NULL);
	for (unsigned i = 0; i < servers; i++)
		where[i] = (struct cl_cell_server){.address = server[i].address,
						   .len = sizeof(struct sockaddr_in)};
	options.endpoint = client;
	database = member_database_open(&options);
	ck_assert_ptr_nonnull(database);
	ck_assert(member_database_set(database, where, servers));
	answers = member_answers_create(fresh_s);
	ck_assert_ptr_nonnull(answers);
	member_answers_start(answers, database);
}

static void teardown(void)
{
	for (unsigned i = 0; i < SERVERS; i++)
		FAKE_SET(&server[i], held, false);
	member_database_stop(database);
	rxw_endpoint_stop(client, 0);
	member_answers_stop(answers);
	member_answers_destroy(answers);
	member_database_close(database);
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	for (unsigned i = 0; i < SERVERS; i++)
		fake_close(&server[i]);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}

static int32_t room[64];
static struct fsd_ids ids;

/* One round. */
static int find(struct waiter *waiter, const char *name)
{
	int rc;

	ids = (struct fsd_ids){.ids = room, .room = 64};
	fsd_asker_begin(&waiter->asker);
	rc = member_find_user(answers, name, 1, &waiter->asker, &ids);
	if (rc == -EAGAIN)
		fsd_asker_end(&waiter->asker);
	return rc;
}

/* What is said about a user in the end. */
static int ask(const char *name)
{
	struct waiter waiter = waiter_of(1);
	int rc = find(&waiter, name);

	if (rc != -EAGAIN)
		return rc;
	await(&waiter);
	waiter.asker.final = true;
	return find(&waiter, name);
}

static int peek(const char *name)
{
	ids = (struct fsd_ids){.ids = room, .room = 64};
	return member_find_user(answers, name, 1, NULL, &ids);
}

START_TEST(users)
{
	static const int32_t groups[] = {-300, 7, -200, -300, -102};
	static const int32_t wanted[] = {-300, -200, -102, -101, 7};

	setup(1, 100);
	server[0].groups = groups;
	server[0].group_count = 5;
	ck_assert_int_eq(peek("u7"), -EAGAIN);
	ck_assert_uint_eq(fake_names(&server[0]), 0);
	ck_assert_int_eq(ask("u7"), 0);
	ck_assert_int_eq(ids.id, 7);
	ck_assert_uint_eq(ids.count, 5);
	ck_assert_mem_eq(ids.ids, wanted, sizeof(wanted));
	/* From now on nobody is asked. */
	ck_assert_int_eq(peek("u7"), 0);
	ck_assert_uint_eq(fake_names(&server[0]), 1);
	ck_assert_int_eq(ask("nobody"), -ENOENT);
	ck_assert_int_eq(peek("nobody"), -ENOENT);
	teardown();
}
END_TEST

/* A machine has groups, and is no administrator whatever the server says. */
START_TEST(machines)
{
	static const int32_t groups[] = {-204, -300};
	struct waiter waiter = waiter_of(1);

	setup(1, 100);
	server[0].groups = groups;
	server[0].group_count = 2;
	ids = (struct fsd_ids){.ids = room, .room = 64};
	fsd_asker_begin(&waiter.asker);
	ck_assert_int_eq(member_find_machine(answers, 0x7f000001, &waiter.asker, &ids), -EAGAIN);
	fsd_asker_end(&waiter.asker);
	await(&waiter);
	ck_assert_int_eq(member_find_machine(answers, 0x7f000001, NULL, &ids), 0);
	ck_assert_uint_eq(ids.count, 1);
	ck_assert_int_eq(ids.ids[0], -300);
	teardown();
}
END_TEST

/* Many callers of one user cause one question, and all of them are told. */
START_TEST(one_question)
{
	struct waiter waiters[40];

	setup(1, 100);
	server[0].held = true;
	for (unsigned i = 0; i < 40; i++) {
		waiters[i] = waiter_of(i);
		ck_assert_int_eq(find(&waiters[i], "u1"), -EAGAIN);
	}
	fake_await_names(&server[0], 1);
	FAKE_SET(&server[0], held, false);
	for (unsigned i = 0; i < 40; i++) {
		await(&waiters[i]);
		ck_assert_int_eq(find(&waiters[i], "u1"), 0);
	}
	ck_assert_uint_eq(fake_names(&server[0]), 1);
	teardown();
}
END_TEST

/* Two questions of a round: the asker is told once, and not before the end of the round. */
START_TEST(rounds)
{
	struct waiter waiter = waiter_of(1);

	setup(1, 100);
	ids = (struct fsd_ids){.ids = room, .room = 64};
	fsd_asker_begin(&waiter.asker);
	ck_assert_int_eq(member_find_user(answers, "u1", 1, &waiter.asker, &ids), -EAGAIN);
	while (peek("u1"))
		usleep(1000);
	ck_assert_uint_eq(waiter.ready, 0);
	ck_assert_int_eq(member_find_user(answers, "u2", 1, &waiter.asker, &ids), -EAGAIN);
	fsd_asker_end(&waiter.asker);
	await(&waiter);
	while (peek("u2"))
		usleep(1000);
	ck_assert_uint_eq(waiter.ready, 0);
	teardown();
}
END_TEST

/* Answers that no server gives. */
START_TEST(hostile)
{
	static const int32_t wrong[] = {-204, INT32_MIN};
	char name[FSD_PERSON_MAX + 1];
	struct waiter waiter;
	static const char *const names[] = {"a b", "a\nb", "", "12", "-204"};

	setup(1, 100);
	for (unsigned i = 0; i < 2; i++) {
		FAKE_SET(&server[0], id, wrong[i]);
		ck_assert_int_eq(ask(i ? "u1" : "u2"), -ENOENT);
	}
	FAKE_SET(&server[0], id, 0);
	FAKE_SET(&server[0], id_count, 2);
	ck_assert_int_eq(ask("u3"), -EBUSY);
	member_database_probe(database, member_ask_anonymous, NULL);
	teardown();

	setup(1, 100);
	FAKE_SET(&server[0], many, MEMBER_IDS_MAX + 1);
	ck_assert_int_eq(ask("u5"), -EBUSY);
	FAKE_SET(&server[0], many, 3);
	FAKE_SET(&server[0], over, 1);
	ck_assert_int_eq(ask("u6"), -EBUSY);
	FAKE_SET(&server[0], over, 0);
	FAKE_SET(&server[0], many, MEMBER_IDS_MAX);
	ck_assert_int_eq(ask("u7"), 0);
	ck_assert_uint_eq(ids.count, MEMBER_IDS_MAX + 3);
	for (int32_t i = 0; i < 5; i++) {
		FAKE_SET(&server[0], name, names[i]);
		waiter = waiter_of(1);
		fsd_asker_begin(&waiter.asker);
		ck_assert_int_eq(member_find_name(answers, 40 + i, &waiter.asker, name), -EAGAIN);
		fsd_asker_end(&waiter.asker);
		await(&waiter);
		ck_assert_int_eq(member_find_name(answers, 40 + i, NULL, name), -ENOENT);
	}
	teardown();
}
END_TEST

/* One caller with thousands of identities leaves questions to others. */
START_TEST(flood)
{
	struct waiter *many = calloc(2 * PENDING, sizeof(*many)), other = waiter_of(2);
	unsigned waiting = 0;
	char name[32];

	setup(1, 100);
	server[0].held = true;
	for (unsigned i = 0; i < 2 * PENDING; i++) {
		int rc;

		many[waiting] = waiter_of(1);
		snprintf(name, sizeof(name), "u%u", 1000 + i);
		rc = find(&many[waiting], name);
		waiting += rc == -EAGAIN;
		ck_assert(rc == -EAGAIN || rc == -EBUSY);
	}
	ck_assert_uint_ge(waiting, PENDING / 4);
	ck_assert_uint_le(waiting, PENDING / 2 + 1);
	ck_assert_int_eq(find(&other, "u2"), -EAGAIN);
	/* By turns of callers: only the questions that were on their way are before it. */
	FAKE_SET(&server[0], held, false);
	await(&other);
	ck_assert_int_eq(find(&other, "u2"), 0);
	ck_assert_uint_lt(fake_names(&server[0]), 1000);
	for (unsigned i = 0; i < waiting; i++)
		await(&many[i]);
	teardown();
	free(many);
}
END_TEST

/* A dead server costs one question its time; then the other one is asked, until it comes back. */
START_TEST(dead_servers)
{
	unsigned servers, dead;

	setup(2, 100);
	rxw_endpoint_stop(server[0].endpoint, 0);
	ck_assert_int_eq(ask("u1"), 0);
	member_database_count(database, &servers, &dead);
	ck_assert_uint_eq(servers, 2);
	ck_assert_uint_eq(dead, 1);
	ck_assert_int_eq(ask("u2"), 0);
	rxw_endpoint_stop(server[1].endpoint, 0);
	ck_assert_int_eq(ask("u3"), -EBUSY);
	ck_assert(member_database_dead(database));
	/* Now that is known at once; and who was known before still is. */
	ck_assert_int_eq(peek("u4"), -EBUSY);
	ck_assert_int_eq(peek("u1"), 0);
	teardown();
}
END_TEST

/* A server that is there, but says nothing useful: its answer is that of another one, and it is asked again later. */
START_TEST(silent_server)
{
	unsigned servers, dead;

	answer_ms = 1000;
	setup(2, 100);
	server[0].held = true;
	ck_assert_int_eq(ask("u1"), 0);
	member_database_count(database, &servers, &dead);
	ck_assert_uint_eq(dead, 1);
	ck_assert_uint_eq(fake_names(&server[0]), 1);
	ck_assert_int_eq(ask("u2"), 0);
	ck_assert_uint_eq(fake_names(&server[0]), 1);
	FAKE_SET(&server[0], held, false);
	do {
		member_database_probe(database, member_ask_anonymous, NULL);
		member_database_count(database, &servers, &dead);
		usleep(10000);
	} while (dead);
	/* No majority: others are asked, but it is not dead. */
	FAKE_SET(&server[0], code, 5376);
	ck_assert_int_eq(ask("u3"), 0);
	FAKE_SET(&server[1], code, 5376);
	ck_assert_int_eq(ask("u4"), -EBUSY);
	ck_assert(!member_database_dead(database));
	teardown();
	answer_ms = 0;
}
END_TEST

/* An answer gets old: it is used, and asked for again. One that is very old is waited for, unless nobody answers. */
START_TEST(old_answers)
{
	static const int32_t before[] = {-300}, after[] = {-400};
	struct waiter waiter = waiter_of(1);

	setup(1, 1);
	server[0].groups = before;
	server[0].group_count = 1;
	ck_assert_int_eq(ask("u1"), 0);
	FAKE_SET(&server[0], groups, after);
	/* At first the old answer, and then the new one, without an asker. */
	do {
		usleep(10000);
		ck_assert_int_eq(peek("u1"), 0);
	} while (ids.ids[0] != -400);
	member_answers_forget(answers);
	ck_assert_int_eq(peek("u1"), -EAGAIN);
	ck_assert_int_eq(ask("u1"), 0);
	/* Now it is twice as old as it may be. */
	usleep(2100000);
	ck_assert_int_eq(peek("u1"), -EAGAIN);
	rxw_endpoint_stop(server[0].endpoint, 0);
	ck_assert_int_eq(find(&waiter, "u1"), -EAGAIN);
	await(&waiter);
	ck_assert_int_eq(find(&waiter, "u1"), 0);
	ck_assert_int_eq(peek("u1"), 0);
	ck_assert_int_eq(peek("u2"), -EBUSY);
	teardown();
}
END_TEST

/* Who has a newer token has logged in again, perhaps because of a new group. */
START_TEST(newer_token)
{
	static const int32_t before[] = {-300}, after[] = {-400};
	struct waiter waiter = waiter_of(1);

	setup(1, 100);
	server[0].groups = before;
	server[0].group_count = 1;
	ck_assert_int_eq(ask("u1"), 0);
	FAKE_SET(&server[0], groups, after);
	while (member_find_user(answers, "u1", 2, NULL, &ids) == 0)
		usleep(10000);
	ck_assert_int_eq(peek("u1"), 0);
	ck_assert_int_eq(ids.ids[0], -300);
	fsd_asker_begin(&waiter.asker);
	ck_assert_int_eq(member_find_user(answers, "u1", 2, &waiter.asker, &ids), -EAGAIN);
	fsd_asker_end(&waiter.asker);
	await(&waiter);
	ck_assert_int_eq(member_find_user(answers, "u1", 2, NULL, &ids), 0);
	ck_assert_int_eq(ids.ids[0], -400);
	ck_assert_int_eq(peek("u1"), 0);
	teardown();
}
END_TEST

/* The end: nobody waits any more. */
START_TEST(stopped)
{
	struct waiter waiters[40];
	char name[32];

	setup(1, 100);
	server[0].held = true;
	for (unsigned i = 0; i < 40; i++) {
		waiters[i] = waiter_of(i);
		snprintf(name, sizeof(name), "u%u", 1 + i);
		ck_assert_int_eq(find(&waiters[i], name), -EAGAIN);
	}
	fake_await_names(&server[0], 1);
	member_database_stop(database);
	rxw_endpoint_stop(client, 0);
	member_answers_stop(answers);
	for (unsigned i = 0; i < 40; i++)
		await(&waiters[i]);
	ck_assert_int_eq(peek("u1"), -EBUSY);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(60, "answers of a cell", users, machines, one_question, rounds, hostile, flood,
		 dead_servers, silent_server, old_answers, newer_token, stopped)
