/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads over several paths to a server: a path that falls silent in the middle, and bytes whose version nobody has told. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/net/netpath.h"
#include "client/net/pathfetch.h"
#include "client/net/record.h"
#include "common/clock.h"
#include "tests/asserts.h"
#include "tests/client/net/fake.h"
#include "tests/main.h"

#define LONG_FILE (4u * CL_LONG_READ)

static const AFSFid file = {FAKE_RW, 2, 9};

/* A fetch on a thread of its own. */
struct reading {
	pthread_t thread;
	struct cl_volume *volume;
	uint64_t version, fetched;
	uint64_t length; /* 0: LONG_FILE */
	unsigned begun;	 /* how often the first byte came */
	uint64_t next;
	bool good; /* the bytes are those of the file, and in order */
	struct cl_wide wide;
	uint32_t released; /* when a release came while the path was silent; 0: there is none */
	int result;
};

static int take_long(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct reading *r = arg;

	if (offset == 0) {
		r->begun++;
		r->next = 0;
	}
	r->good = r->good && offset == r->next;
	for (unsigned i = 0; i < count; i++)
		for (size_t k = 0; k < iov[i].iov_len; k++)
			r->good = r->good &&
				  ((const uint8_t *)iov[i].iov_base)[k] == fake_byte(r->next++);
	return 0;
}

static void *read_long(void *arg)
{
	struct reading *r = arg;
	AFSFid fid = {cl_volume_id(r->volume), file.Vnode, file.Unique};

	r->result = cl_net_fetch_data(r->volume, &fake_caller, &fid, r->version, 0,
				      r->length ? r->length : LONG_FILE, take_long, r, &r->fetched,
				      &fake_status, &fake_stamp, &fake_failure);
	return NULL;
}

static void open_with_two_addresses(uint64_t length)
{
	fake.also = 2;
	fake.length = length;
	fake.servers[0].hold_data = fake.servers[1].hold_data = true;
	fake_open(2, 30000);
}

/* The servers get another release in the middle of the read, and the client hears of it. */
static void release_meanwhile(const struct reading *r)
{
	const AFSFid root = {cl_volume_id(r->volume), AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};
	struct rxafs_failure failure;
	AFSFetchStatus status;
	struct cl_stamp stamp;

	pthread_mutex_lock(&fake_lock);
	while (!fake.servers[0].data_waiting && !fake.servers[1].data_waiting)
		pthread_cond_wait(&fake_changed, &fake_lock);
	fake.servers[0].creation = fake.servers[1].creation = r->released;
	pthread_mutex_unlock(&fake_lock);
	ck_assert_int_eq(
		cl_net_fetch_status(r->volume, &fake_caller, &root, &status, &stamp, &failure), 0);
}

/* A long read whose path falls silent in the middle; the other path lives. */
static unsigned read_over_silent_path(struct reading *r)
{
	unsigned silent;

	r->good = true;
	ck_assert_int_eq(pthread_create(&r->thread, NULL, read_long, r), 0);
	if (r->released)
		release_meanwhile(r);
	silent = fake_silence_data(0, 1);
	fake_hold_data(1 - silent, false);
	pthread_join(r->thread, NULL);
	ck_assert_msg(r->result == 0, "%d: %s", r->result, fake_failure.text);
	ck_assert_uint_eq(r->fetched, fake.length);
	ck_assert_uint_eq(r->next, fake.length);
	ck_assert(r->good);
	return silent;
}

START_TEST(a_read_goes_on_over_another_path)
{
	struct reading r = {.version = 7};
	unsigned silent;

	open_with_two_addresses(LONG_FILE);
	r.volume = fake_volume;
	silent = read_over_silent_path(&r);
	ck_assert_uint_eq(r.begun, 1);
	ck_assert_uint_ge(fake.servers[1 - silent].data_from, LONG_FILE / 2);
	fake_close();
}
END_TEST

/* It has no choice as long as its path lives. */
START_TEST(a_short_read_goes_on_over_another_path)
{
	struct reading r = {.version = 7, .length = 2 * CL_BRIEF_READ};
	unsigned silent;

	open_with_two_addresses(r.length);
	r.volume = fake_volume;
	silent = read_over_silent_path(&r);
	ck_assert_uint_eq(r.begun, 1);
	ck_assert_uint_ge(fake.servers[1 - silent].data_from, r.length / 2);
	fake_close();
}
END_TEST

/*
 * A read of a file with a version, which begins again once. The living path is taken for silent, too, if this process has no time for it; then
 * the read begins once more, and shows nothing.
 */
static void read_again(struct reading *r, uint64_t version, uint32_t served)
{
	for (unsigned turns = 0; r->begun != 2; turns++) {
		ck_assert_uint_lt(turns, 20);
		*r = (struct reading){.version = version};
		open_with_two_addresses(LONG_FILE);
		r->volume = fake_volume;
		fake.servers[0].version = fake.servers[1].version = served;
		ck_assert_uint_lt(read_over_silent_path(r), 2);
		ck_assert_uint_ge(r->begun, 2);
		if (served)
			ck_assert_uint_eq(fake_status.DataVersion, served);
		fake_close();
	}
}

/* Bytes of another version are not mixed with those that had come. */
START_TEST(a_read_begins_again)
{
	struct reading unknown = {.begun = 0}, changed = {.begun = 0};

	read_again(&unknown, 0, 0);
	read_again(&changed, 7, 8);
}
END_TEST

/* Of a read-only volume the state of its server must be known, too. */
START_TEST(a_read_of_a_release)
{
	struct reading r = {.version = 7};

	fake.has_ro = true;
	fake.ro_servers = 1;
	fake.servers[0].creation = fake.servers[1].creation = 1000;
	open_with_two_addresses(LONG_FILE);
	r.volume = fake_find("vol.readonly", CL_WANT_EXACT);
	read_over_silent_path(&r);
	ck_assert_uint_eq(r.begun, 2);
	cl_volume_unref(r.volume);
	fake_close();
	memset(&r, 0, sizeof(r));
	r.version = 7;
	fake.has_ro = true;
	fake.ro_servers = 1;
	fake.servers[0].creation = fake.servers[1].creation = 1000;
	open_with_two_addresses(LONG_FILE);
	r.volume = fake_find("vol.readonly", CL_WANT_EXACT);
	ck_assert_int_eq(fake_look(r.volume), 0);
	read_over_silent_path(&r);
	ck_assert_uint_eq(r.begun, 1);
	cl_volume_unref(r.volume);
	fake_close();
}
END_TEST

/* Bytes of the release before are not kept: the other path brings all. */
START_TEST(a_release_comes_meanwhile)
{
	struct reading r = {.version = 7, .released = 2000};

	fake.has_ro = true;
	fake.ro_servers = 1;
	fake.servers[0].creation = fake.servers[1].creation = 1000;
	open_with_two_addresses(LONG_FILE);
	r.volume = fake_find("vol.readonly", CL_WANT_EXACT);
	ck_assert_int_eq(fake_look(r.volume), 0);
	read_over_silent_path(&r);
	ck_assert_uint_eq(r.begun, 2);
	ck_assert_uint_eq(fake_stamp.sync.spare1, 2000);
	cl_volume_unref(r.volume);
	fake_close();
}
END_TEST

/* Whether a path lives, and its server has told when it started. */
/* A reader that does something with the first bytes for longer than a read may stand still. */
struct lingering {
	bool began, ended; /* ended: its call was, meanwhile */
};

static int linger_with_bytes(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct lingering *l = arg;
	struct cl_server *server = cl_server_at(fake_net, 1);

	(void)offset, (void)iov, (void)count;
	if (l->began)
		return 0;
	l->began = true;
	nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 400 * (long)NS_PER_MS}, NULL);
	pthread_mutex_lock(&server->lock);
	for (const struct cl_sent *sent = server->sent; sent; sent = sent->next)
		l->ended = l->ended || atomic_load(&sent->lost);
	pthread_mutex_unlock(&server->lock);
	return 0;
}

/* The read does not stand still. A machine that is slow may find its path silent, but not each time. */
START_TEST(a_reader_takes_its_time)
{
	struct lingering l = {.ended = true};
	uint64_t fetched;

	fake.also = 2;
	fake.length = LONG_FILE;
	fake_open(2, 30000);
	for (unsigned i = 0; i < 10 && l.ended; i++) {
		l = (struct lingering){.began = false};
		ck_assert_int_eq(cl_net_fetch_data(fake_volume, &fake_caller, &file, 7, 0,
						   LONG_FILE, linger_with_bytes, &l, &fetched,
						   &fake_status, &fake_stamp, &fake_failure),
				 0);
		ck_assert(l.began);
	}
	ck_assert(!l.ended);
	fake_close();
}
END_TEST

static bool is_known(const struct cl_path *path)
{
	return path->state == CL_PATH_LIVE && path->load.started;
}

/* How many paths share long reads, once both servers have told when they started. */
static unsigned count_after_probes(uint32_t one, uint32_t other)
{
	struct reading r = {.version = 7, .good = true};
	struct cl_server *server;
	bool known = false;
	uint64_t share;
	unsigned count;

	fake.servers[0].started = one;
	fake.servers[1].started = other;
	fake.also = 2;
	fake.length = LONG_FILE;
	fake_open(2, 30000);
	r.volume = fake_volume;
	while (!known) {
		read_long(&r);
		ck_assert_int_eq(r.result, 0);
		server = cl_server_at(fake_net, 1);
		pthread_mutex_lock(&server->lock);
		known = server->path_count == 2 && is_known(server->paths[0]) &&
			is_known(server->paths[1]);
		pthread_mutex_unlock(&server->lock);
	}
	ck_assert(r.good);
	count = cl_net_paths(fake_volume, &share);
	fake_close();
	return count;
}

/* An address of the server that leads to another one, which has a file of this number. */
START_TEST(a_stranger_behind_an_address)
{
	ck_assert_uint_eq(count_after_probes(1000, 2000), 1);
	ck_assert_uint_eq(count_after_probes(1000, 1000), 2);
}
END_TEST

/* ---- fetches over all paths ---- */

static void *fetch_widely(void *arg)
{
	struct reading *r = arg;

	r->wide = (struct cl_wide){.fid = {cl_volume_id(r->volume), file.Vnode, file.Unique},
				   .version = 7,
				   .take = take_long,
				   .arg = r,
				   .missing = {{0, fake.length}},
				   .count = 1};
	r->result =
		cl_net_fetch_wide(r->volume, &fake_caller, &r->wide, &fake_stamp, &fake_failure);
	return NULL;
}

/* Until the second server was asked for bytes, or has had time for that. */
static void await_data_of_second(void)
{
	bool asked = false;

	for (unsigned i = 0; i < 100 && !asked; i++) {
		usleep(10000);
		pthread_mutex_lock(&fake_lock);
		asked = fake.servers[1].data_calls > 0;
		pthread_mutex_unlock(&fake_lock);
	}
}

/* What the second address of a server has brought of a file, if servers started at these times. */
static uint64_t count_bytes_of_second(uint32_t one, uint32_t other)
{
	struct reading r = {.good = true};
	uint64_t bytes = 0;

	fake.servers[0].started = one;
	fake.servers[1].started = other;
	fake.also = 2;
	fake.length = LONG_FILE;
	fake.servers[0].hold_data = true;
	fake_open(2, 30000);
	r.volume = fake_volume;
	ck_assert_int_eq(pthread_create(&r.thread, NULL, fetch_widely, &r), 0);
	await_data_of_second();
	fake_hold_data(0, false);
	pthread_join(r.thread, NULL);
	ck_assert_int_eq(r.result, 0);
	for (unsigned i = 0; i < r.wide.path_count; i++) {
		const struct sockaddr_in *sin = (const void *)&r.wide.paths[i].remote;

		if (ntohl(sin->sin_addr.s_addr) == 0x7f000002)
			bytes += r.wide.paths[i].bytes;
	}
	fake_close();
	return bytes;
}

START_TEST(a_stranger_brings_no_bytes_of_a_copy)
{
	/* The address in use is one of the two. */
	ck_assert_uint_eq(count_bytes_of_second(1000, 2000) % LONG_FILE, 0);
}
END_TEST

/* The server sends all bytes, but no status, and then only another one tells what the volume has: it may have another release. */
START_TEST(another_server_confirms_no_bytes)
{
	struct reading r = {.good = true};

	fake.has_ro = true;
	fake.ro_servers = 3;
	fake.also = 4;
	fake.length = 4096;
	for (unsigned i = 0; i < 3; i++)
		fake.servers[i].creation = 1000;
	fake.servers[0].hold_data = fake.servers[2].hold_data = true;
	/* Server 0 answers first. */
	fake.servers[1].mute_probes = true;
	fake_open(3, 30000);
	r.volume = fake_find("vol.readonly", CL_WANT_EXACT);
	ck_assert_int_eq(pthread_create(&r.thread, NULL, fetch_widely, &r), 0);
	fake_silence_data(0, 2);
	fake_answers(0, FAKE_REPEATS, 1, AFS_VBUSY);
	fake_answers(2, FAKE_REPEATS, 1, AFS_VBUSY);
	fake_hold(1, false);
	pthread_join(r.thread, NULL);
	ck_assert_uint_eq(r.next, 4096);
	ck_assert_uint_gt(fake_calls(1), 0);
	ck_assert_int_eq(r.result, -EAGAIN);
	cl_volume_unref(r.volume);
	fake_close();
}
END_TEST

/* ---- addresses that the location service lists ---- */

/* Of the first server, beside addresses that no server can have. Nothing is sent there. */
static unsigned list_addresses(bool far, struct cl_address list[CL_ADDRESSES])
{
	struct cl_server *server = cl_server_at(fake_net, 1);
	unsigned count = 0;
	int32_t generation;

	fake.odd = true;
	fake.far = far;
	ck_assert_int_eq(cl_location_addresses(fake_net, server->cell, &server->uuid, &fake_caller,
					       list, &count, &generation, &fake_failure),
			 0);
	return count;
}

static uint32_t number_of(const struct cl_address *address)
{
	return ntohl(((const struct sockaddr_in *)&address->sa)->sin_addr.s_addr);
}

START_TEST(addresses_that_are_no_paths)
{
	struct cl_address list[CL_ADDRESSES];

	fake_open(1, 30000);
	ck_assert_int_eq(fake_look(fake_volume), 0);
	ck_assert_uint_eq(list_addresses(false, list), 2);
	ck_assert_uint_eq(number_of(&list[0]), 0xa9fe0101);
	ck_assert_uint_eq(number_of(&list[1]), 0x7f000001);
	/* The others are for this machine, or this link, only. */
	ck_assert_uint_eq(list_addresses(true, list), 1);
	ck_assert_uint_eq(number_of(&list[0]), 0xc0000201);
	ck_assert(cl_location_may_be_server(0x80000001) && cl_location_may_be_server(0xdfffffff));
	ck_assert(!cl_location_may_be_server(0xefffffff) && !cl_location_may_be_server(0x00ffffff));
	fake_close();
}
END_TEST

TEST_MAIN_WITHIN(120, "net paths", a_read_goes_on_over_another_path,
		 a_short_read_goes_on_over_another_path, a_read_begins_again, a_read_of_a_release,
		 a_release_comes_meanwhile, a_reader_takes_its_time, a_stranger_behind_an_address,
		 a_stranger_brings_no_bytes_of_a_copy, another_server_confirms_no_bytes,
		 addresses_that_are_no_paths)
