/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the client does by each code of a server (K-135), with several sites and addresses, and how
 * often it asks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/net/server.h"
#include "common/clock.h"
#include "tests/asserts.h"
#include "tests/client/net/fake.h"
#include "tests/main.h"

static const AFSFid directory = {FAKE_RW, 1, 1}, file = {FAKE_RW, 2, 9};
static const AFSStoreStatus nothing = {0};
static struct cl_made made;

static int create_one(void)
{
	return cl_net_create_file(fake_volume, &fake_caller, &directory, "name", &nothing, &made,
				  &fake_stamp, &fake_failure);
}

/* -- codes -- */

/* The end of a call that always gets a code. */
struct ending {
	int32_t code;
	int number;
	bool repeated;
};

static const struct ending endings[] = {
	{AFS_VBUSY, EBUSY, true},
	{RXW_RESTARTING, EBUSY, true},
	{AFS_VNOSERVICE, ETIMEDOUT, true},
	{AFS_VOFFLINE, EIO, true},
	{AFS_VSALVAGE, EIO, true},
	{AFS_VSALVAGING, EIO, true},
	{AFS_VNOVOL, ENODEV, true},
	{AFS_VMOVED, EIO, true},
	{AFS_VNOVNODE, ESTALE, false},
	{AFS_VIO, EIO, false},
	{RXW_RPC_OPCODE, ENOSYS, false},
	{RXW_PROTOCOL_ERROR, EIO, true},
	{RXW_RPC_SS_UNMARSHAL, EIO, true},
	{13, EACCES, false},
	{49733376 + 17, 0, false}, /* UAE: some errno */
	{77777777, EIO, false},
};

/*
 * Operations that end by the limit of their client, which is 60 pauses for volumes that are off line, else 70. This process may have no time
 * for the calls that a test counts until then. Then it shows nothing, and a client with a limit of twice the length does the same.
 */
#define PAUSE_MOST 640

struct pace {
	unsigned pause_ms;
	uint64_t began;
};

static void open_at_pace(struct pace *pace)
{
	pace->pause_ms = fake.pause_ms = 10;
	fake_open(1, 70 * pace->pause_ms);
}

static void begin_at_pace(struct pace *pace)
{
	pace->began = monotonic_ns();
}

/* The time of the operation was over. */
static bool is_limit_over(const struct pace *pace)
{
	return monotonic_ns() - pace->began >= (uint64_t)60 * pace->pause_ms * NS_PER_MS;
}

/* False: the limit is long enough. */
static bool slow_down(struct pace *pace)
{
	if (!is_limit_over(pace) || pace->pause_ms >= PAUSE_MOST)
		return false;
	fake_close_client();
	pace->pause_ms = fake.pause_ms *= 2;
	fake_answers(0, 0, 0);
	fake_open_client(70 * pace->pause_ms);
	return true;
}

/* A look while each call gets the code. */
static int look_at_code(struct pace *pace, const struct ending *ending)
{
	int rc;

	do {
		fake_answers(0, FAKE_REPEATS, 1, ending->code);
		begin_at_pace(pace);
		rc = fake_look(fake_volume);
	} while ((fake_calls(0) < (ending->repeated ? 2 : 1) || fake_failure.code == 0 ||
		  fake_failure.code == RXW_CALL_TIMEOUT) &&
		 slow_down(pace));
	return rc;
}

START_TEST(each_code_in_the_end)
{
	struct pace pace;

	open_at_pace(&pace);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		int rc = look_at_code(&pace, &endings[i]);

		ck_assert_uint_lt(monotonic_ns() - pace.began,
				  (19300 + (uint64_t)70 * pace.pause_ms) * NS_PER_MS);
		if (endings[i].number)
			ck_assert_msg(rc == -endings[i].number, "code %d: %d, not %d: %s",
				      endings[i].code, rc, -endings[i].number, fake_failure.text);
		else
			ck_assert_int_lt(rc, 0);
		ck_assert_int_eq(fake_failure.number, -rc);
		ck_assert_int_eq(fake_failure.code, endings[i].code);
		ck_assert_int_eq(fake_failure.origin, RXAFS_FROM_SERVER);
		ck_assert_msg((fake_calls(0) > 1) == endings[i].repeated, "code %d: %u calls",
			      endings[i].code, fake_calls(0));
		ck_assert_uint_lt(fake_calls(0), 200);
		ck_assert(!fake_failure.maybe_done);
		/* The volume is as good as before. */
		fake_answers(0, 0, 0);
		do {
			begin_at_pace(&pace);
			rc = fake_look(fake_volume);
		} while (rc < 0 && slow_down(&pace));
		ck_assert_msg(rc == 0, "after code %d: %s", endings[i].code, fake_failure.text);
	}
	fake_close();
}
END_TEST

START_TEST(codes_that_pass)
{
	static const int32_t passing[] = {AFS_VBUSY,	  RXW_RESTARTING,     AFS_VNOSERVICE,
					  AFS_VOFFLINE,	  AFS_VSALVAGE,	      AFS_VNOVOL,
					  AFS_VSALVAGING, RXW_PROTOCOL_ERROR, AFS_VMOVED};
	struct pace pace;
	int rc;

	open_at_pace(&pace);
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		do {
			fake_answers(0, 0, 2, passing[i], passing[i]);
			begin_at_pace(&pace);
			rc = fake_look(fake_volume);
		} while (rc < 0 && slow_down(&pace));
		ck_assert_msg(rc == 0, "code %d: %s", passing[i], fake_failure.text);
		ck_assert_uint_eq(fake_calls(0), 3);
	}
	fake_close();
}
END_TEST

START_TEST(another_site_answers)
{
	static const int32_t codes[] = {AFS_VBUSY,    RXW_RESTARTING, AFS_VNOSERVICE, AFS_VOFFLINE,
					AFS_VSALVAGE, AFS_VSALVAGING, AFS_VNOVOL,     AFS_VIO};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct cl_volume *ro;
		unsigned used;

		fake.has_ro = true;
		fake.ro_servers = 3;
		/* The pause is not over before the other one has answered. */
		fake.pause_ms = 5000;
		fake_open(2, 30000);
		ro = fake_find("vol.readonly", CL_WANT_EXACT);
		ck_assert_uint_eq(cl_volume_id(ro), FAKE_RO);
		looks(ro);
		/* Again if the other one has become the nearer one meanwhile. */
		do {
			used = fake_stamp.server - 1;
			fake_answers(1 - used, 0, 0);
			fake_answers(used, FAKE_REPEATS, 1, codes[i]);
			looks(ro);
		} while (fake_calls(used) == 0);
		ck_assert_uint_eq(fake_stamp.server - 1, 1 - used);
		ck_assert_uint_eq(fake_calls(used), 1);
		ck_assert_uint_eq(fake_calls(1 - used), 1);
		cl_volume_unref(ro);
		fake_close();
	}
}
END_TEST

START_TEST(a_moved_volume_is_followed)
{
	fake_open(2, 30000);
	looks(fake_volume);
	ck_assert_uint_eq(fake_stamp.server, 1);
	pthread_mutex_lock(&fake_lock);
	fake.rw_server = 1;
	pthread_mutex_unlock(&fake_lock);
	fake_answers(0, FAKE_REPEATS, 1, AFS_VMOVED);
	looks(fake_volume);
	ck_assert_uint_eq(fake_stamp.server, 2);
	ck_assert_uint_eq(fake_calls(0), 1);
	ck_assert_uint_eq(fake_asked(), 2);
	/* And by VNOVOL. */
	pthread_mutex_lock(&fake_lock);
	fake.rw_server = 0;
	pthread_mutex_unlock(&fake_lock);
	fake_answers(0, 0, 0);
	fake_answers(1, FAKE_REPEATS, 1, AFS_VNOVOL);
	looks(fake_volume);
	ck_assert_uint_eq(fake_stamp.server, 1);
	ck_assert_uint_eq(fake_asked(), 3);
	fake_close();
}
END_TEST

/* -- one refresh for all -- */

static void *look_once(void *arg)
{
	const AFSFid root = {FAKE_RW, 1, 1};
	AFSFetchStatus status;
	struct cl_stamp stamp;
	struct rxafs_failure failure;
	struct cl_caller caller = {0};
	int rc = cl_net_fetch_status(fake_volume, &caller, &root, &status, &stamp, &failure);

	ck_assert_msg(rc == 0, "%s", failure.text);
	return arg;
}

START_TEST(one_refresh_for_all)
{
	pthread_t threads[20];

	fake_open(2, 30000);
	looks(fake_volume);
	pthread_mutex_lock(&fake_lock);
	fake.rw_server = 1;
	pthread_mutex_unlock(&fake_lock);
	fake_answers(0, FAKE_REPEATS, 1, AFS_VMOVED);
	fake_hold(0, true);
	for (int i = 0; i < 20; i++)
		pthread_create(&threads[i], NULL, look_once, NULL);
	fake_await_held(0, 20);
	fake_hold(0, false);
	for (int i = 0; i < 20; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(fake_calls(0), 20);
	ck_assert_uint_eq(fake_calls(1), 20);
	ck_assert_uint_le(fake_asked(), 3);
	fake_close();
}
END_TEST

START_TEST(volumes_of_a_record)
{
	struct cl_volume *v, *w;
	uint32_t ids[MAXTYPES];

	fake.has_ro = true;
	fake.ro_servers = 1;
	fake_open(1, 30000);
	ck_assert_uint_eq(fake_asked(), 1);
	ck_assert_int_eq(cl_volume_type(fake_volume), AFS_VL_RW);
	v = fake_find("vol", CL_WANT_RO);
	ck_assert_uint_eq(cl_volume_id(v), FAKE_RO);
	w = fake_find("100", CL_WANT_RO);
	ck_assert_ptr_eq(v, w);
	cl_volume_unref(w);
	w = fake_find("101", CL_WANT_EXACT);
	ck_assert_ptr_eq(v, w);
	cl_volume_unref(w);
	cl_volume_unref(v);
	v = fake_find("100", CL_WANT_EXACT);
	ck_assert_ptr_eq(v, fake_volume);
	cl_volume_ids(v, ids);
	ck_assert_uint_eq(ids[AFS_VL_RO], FAKE_RO);
	ck_assert_uint_eq(ids[AFS_VL_BACKUP], 0);
	cl_volume_unref(v);
	/* All that from one record. */
	ck_assert_uint_eq(fake_asked(), 1);
	ck_assert_int_eq(fake_seek("vol.backup"), -ENODEV);
	/* A backup that is made later is found. */
	pthread_mutex_lock(&fake_lock);
	fake.has_backup = true;
	pthread_mutex_unlock(&fake_lock);
	cl_volume_forget_record(fake_volume);
	v = fake_find("vol.backup", CL_WANT_EXACT);
	ck_assert_uint_eq(cl_volume_id(v), FAKE_BACKUP);
	looks(v);
	cl_volume_unref(v);
	/* That there is no such volume is remembered for a while. */
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(fake_seek("none"), -ENODEV);
	ck_assert_uint_le(fake_asked(), 4);
	fake_close();
}
END_TEST

START_TEST(a_volume_is_renamed)
{
	struct cl_volume *v;

	fake_open(1, 30000);
	pthread_mutex_lock(&fake_lock);
	fake.name = "renamed";
	pthread_mutex_unlock(&fake_lock);
	cl_volume_forget_record(fake_volume);
	/* Whoever has it goes on. */
	looks(fake_volume);
	ck_assert_str_eq(cl_volume_name(fake_volume), "renamed");
	v = fake_find("renamed", CL_WANT_EXACT);
	ck_assert_ptr_eq(v, fake_volume);
	cl_volume_unref(v);
	ck_assert_int_eq(fake_seek("vol"), -ENODEV);
	fake_close();
}
END_TEST

START_TEST(a_volume_is_replaced)
{
	struct cl_volume *v;
	uint32_t standing;
	unsigned calls;

	fake.has_ro = true;
	fake.ro_servers = 1;
	fake_open(1, 30000);
	pthread_mutex_lock(&fake_lock);
	fake.shift = 10;
	pthread_mutex_unlock(&fake_lock);
	standing = cl_volume_standing(fake_volume);
	/* What is cached holds for an hour, unless a server says something. Then the end is not waited for. */
	fake_answers(0, FAKE_REPEATS, 1, AFS_VNOVOL);
	calls = fake_calls(0);
	ck_assert_int_eq(fake_look(fake_volume), -ENODEV);
	ck_assert_uint_eq(fake_calls(0), calls + 1);
	ck_assert_uint_ne(cl_volume_standing(fake_volume), standing);
	fake_answers(0, 0, 0);
	cl_volume_forget_record(fake_volume);
	ck_assert_int_eq(fake_look(fake_volume), -ENODEV);
	/* Its name leads to the new one. */
	v = fake_find("vol", CL_WANT_EXACT);
	ck_assert_uint_eq(cl_volume_id(v), FAKE_RW + 10);
	cl_volume_unref(v);
	v = fake_find("110", CL_WANT_EXACT);
	ck_assert_uint_eq(cl_volume_id(v), FAKE_RW + 10);
	looks(v);
	cl_volume_unref(v);
	v = fake_find("vol", CL_WANT_RO);
	ck_assert_uint_eq(cl_volume_id(v), FAKE_RO + 10);
	looks(v);
	cl_volume_unref(v);
	/* The old one comes back, as by a restored database. */
	pthread_mutex_lock(&fake_lock);
	fake.shift = 0;
	pthread_mutex_unlock(&fake_lock);
	v = fake_find("101", CL_WANT_EXACT);
	looks(v);
	cl_volume_unref(v);
	/* That its number is unknown is remembered for a few seconds. */
	while (fake_look(fake_volume) == -ENODEV)
		usleep(100000);
	looks(fake_volume);
	fake_close();
}
END_TEST

/* -- servers that are away -- */

static void *start_again(void *arg)
{
	while (cl_net_server_state(fake_net, 1) != CL_SERVER_DOWN)
		usleep(1000);
	fake_server_start(0);
	return arg;
}

START_TEST(a_dead_server_is_waited_for)
{
	struct cl_server_info info;
	pthread_t thread;

	fake.dead_ms = 1000;
	fake_open(1, 30000);
	looks(fake_volume);
	fake_server_stop(0);
	pthread_create(&thread, NULL, start_again, NULL);
	looks(fake_volume);
	pthread_join(thread, NULL);
	ck_assert(cl_net_server_info(fake_net, 1, &info));
	ck_assert_int_eq(info.state, CL_SERVER_UP);
	ck_assert_uint_ge(info.unanswered, 1);
	fake_close();
}
END_TEST

static _Atomic unsigned looked;
static _Atomic bool enough;

static void *look_until_enough(void *arg)
{
	do {
		look_once(NULL);
		looked++;
	} while (!enough);
	return arg;
}

START_TEST(many_threads_survive_restarts)
{
	pthread_t threads[30];

	fake.dead_ms = 1000;
	fake_open(1, 100000);
	for (int i = 0; i < 30; i++)
		pthread_create(&threads[i], NULL, look_until_enough, NULL);
	for (int round = 0; round < 3; round++) {
		unsigned before = looked;

		while (looked < before + 100)
			usleep(1000);
		fake_server_stop(0);
		/* In the second round all have given up waiting for answers. */
		while (round == 1 && cl_net_server_state(fake_net, 1) != CL_SERVER_DOWN)
			usleep(1000);
		fake_server_start(0);
	}
	enough = true;
	for (int i = 0; i < 30; i++)
		pthread_join(threads[i], NULL);
	fake_close();
}
END_TEST

START_TEST(the_wait_for_a_dead_server_has_a_limit)
{
	uint64_t began;

	fake.dead_ms = 1000;
	fake_open(1, 2500);
	looks(fake_volume);
	fake_server_stop(0);
	began = monotonic_ns();
	ck_assert_int_eq(fake_look(fake_volume), -ETIMEDOUT);
	ck_assert_int_eq(fake_failure.origin, RXAFS_FROM_NETWORK);
	ck_assert_uint_ge(monotonic_ns() - began, (uint64_t)2400 * NS_PER_MS);
	ck_assert_uint_lt(monotonic_ns() - began, (uint64_t)15 * NS_PER_S);
	while (cl_volume_state(fake_volume, NULL) != CL_SERVER_DOWN)
		usleep(1000);
	/* The caller's own limit is shorter. */
	began = monotonic_ns();
	fake_caller.deadline = cl_net_now() + (uint64_t)200 * NS_PER_MS;
	ck_assert_int_eq(fake_look(fake_volume), -ETIMEDOUT);
	ck_assert_uint_lt(monotonic_ns() - began, (uint64_t)2400 * NS_PER_MS);
	fake_close();
}
END_TEST

START_TEST(another_site_instead_of_a_dead_one)
{
	struct cl_volume *ro;
	unsigned used;

	fake.has_ro = true;
	fake.ro_servers = 3;
	fake.dead_ms = 1000;
	fake_open(2, 30000);
	ro = fake_find("vol.readonly", CL_WANT_EXACT);
	looks(ro);
	used = fake_stamp.server - 1;
	fake_server_stop(used);
	looks(ro);
	ck_assert_uint_eq(fake_stamp.server - 1, 1 - used);
	ck_assert_int_eq(cl_volume_state(ro, NULL), CL_SERVER_UP);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

/* The time of waits has no limit. The dead time counts. */
START_TEST(another_site_instead_of_one_that_ends_no_call)
{
	struct cl_volume *ro;
	unsigned used;

	fake.has_ro = true;
	fake.ro_servers = 3;
	fake.dead_ms = 1000;
	fake_open(2, UINT32_MAX);
	ro = fake_find("vol.readonly", CL_WANT_EXACT);
	looks(ro);
	used = fake_stamp.server - 1;
	fake_hold(used, true);
	looks(ro);
	ck_assert_uint_eq(fake_stamp.server - 1, 1 - used);
	ck_assert_int_ne(cl_volume_state(ro, NULL), CL_SERVER_DOWN);
	fake_hold(used, false);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

/* What a look at a volume shows, by a site that did not answer before with another release. */
static uint32_t release_of(struct cl_volume *ro)
{
	looks(ro);
	return fake_stamp.sync.spare1;
}

/* The next release comes to the site that is used. Its number. */
static unsigned release_to_used_site(uint32_t release)
{
	unsigned used = fake_stamp.server - 1;

	pthread_mutex_lock(&fake_lock);
	fake.servers[used].creation = release;
	fake.new_sites |= 1u << used;
	pthread_mutex_unlock(&fake_lock);
	return used;
}

/* While fewer than half of the sites have a new release the others serve, then only they do, and also after one of them has died. */
START_TEST(releases_by_their_sites)
{
	struct cl_volume *ro;
	unsigned first;

	fake.has_ro = true;
	fake.ro_servers = 7;
	for (unsigned i = 0; i < 3; i++)
		fake.servers[i].creation = 1000;
	fake.dead_ms = 1000;
	fake_open(3, 30000);
	ro = fake_find("vol.readonly", CL_WANT_EXACT);
	ck_assert_uint_eq(release_of(ro), 1000);
	first = release_to_used_site(2000);
	ck_assert_uint_eq(release_of(ro), 1000);
	ck_assert_uint_ne(fake_stamp.server - 1, first);
	fake_server_stop(first);
	ck_assert_uint_eq(release_of(ro), 1000);
	fake_server_start(first);
	release_to_used_site(2000);
	ck_assert_uint_eq(release_of(ro), 2000);
	fake_server_stop(fake_stamp.server - 1);
	ck_assert_uint_eq(release_of(ro), 2000);
	cl_volume_unref(ro);
	/* A client that has seen nothing. */
	ro = fake_find("vol.readonly", CL_WANT_EXACT);
	ck_assert_uint_eq(release_of(ro), 2000);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

static struct cl_volume *open_three_sites(uint32_t release)
{
	fake.has_ro = true;
	fake.ro_servers = 7;
	for (unsigned i = 0; i < 3; i++)
		fake.servers[i].creation = release;
	fake.dead_ms = 1000;
	fake_open(3, 30000);
	return fake_find("vol.readonly", CL_WANT_EXACT);
}

static void set_release(unsigned server, uint32_t release)
{
	pthread_mutex_lock(&fake_lock);
	fake.servers[server].creation = release;
	pthread_mutex_unlock(&fake_lock);
}

/* A release that came to an end after its first site: vos has marked the others as not to be used. */
START_TEST(a_release_that_stopped_hides_no_site)
{
	struct cl_volume *ro = open_three_sites(1000);
	unsigned first, second;

	ck_assert_uint_eq(release_of(ro), 1000);
	first = release_to_used_site(2000);
	pthread_mutex_lock(&fake_lock);
	fake.closed_sites = 7 & ~fake.new_sites;
	fake.rw_marked = true;
	pthread_mutex_unlock(&fake_lock);
	cl_volume_forget_record(ro);
	ck_assert_uint_eq(release_of(ro), 1000);
	second = fake_stamp.server - 1;
	ck_assert_uint_ne(second, first);
	fake_server_stop(second);
	ck_assert_uint_eq(release_of(ro), 1000);
	ck_assert_uint_ne(fake_stamp.server - 1, first);
	/* The last one. */
	fake_server_stop(fake_stamp.server - 1);
	ck_assert_uint_eq(release_of(ro), 2000);
	/* From then on nothing older. */
	fake_server_start(second);
	while (cl_net_server_state(fake_net, second + 1) != CL_SERVER_UP)
		usleep(1000);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(release_of(ro), 2000);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

/* Not even the first site is marked, but that of the read-write volume. */
START_TEST(a_release_that_reached_no_site_hides_none)
{
	struct cl_volume *ro;

	fake.rw_marked = true;
	fake.closed_sites = 7;
	ro = open_three_sites(1000);
	ck_assert_uint_eq(release_of(ro), 1000);
	/* A volume that was never released has none. */
	pthread_mutex_lock(&fake_lock);
	fake.rw_marked = false;
	pthread_mutex_unlock(&fake_lock);
	cl_volume_forget_record(ro);
	ck_assert_int_eq(fake_look(ro), -ENODEV);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

/* The location service could not be told. */
START_TEST(a_release_without_marks)
{
	struct cl_volume *ro = open_three_sites(1000);
	unsigned first, second, calls;

	ck_assert_uint_eq(release_of(ro), 1000);
	first = fake_stamp.server - 1;
	set_release(first, 2000);
	ck_assert_uint_eq(release_of(ro), 1000);
	second = fake_stamp.server - 1;
	/* It is not asked each time. */
	calls = fake_calls(first);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(release_of(ro), 1000);
	ck_assert_uint_eq(fake_calls(first), calls);
	fake_server_stop(first);
	ck_assert_uint_eq(release_of(ro), 1000);
	fake_server_start(first);
	/* The second of three sites, as soon as it is asked. */
	set_release(second, 2000);
	fake_answers(3 - first - second, FAKE_REPEATS, 1, AFS_VBUSY);
	while (release_of(ro) == 1000)
		usleep(1000);
	fake_answers(3 - first - second, 0, 0);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(release_of(ro), 2000);
	ck_assert_uint_eq(fake.older, 0);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

static uint32_t release_at(struct cl_volume *ro, unsigned server)
{
	uint32_t release;

	for (unsigned i = 0; i < 3; i++)
		fake_answers(i, FAKE_REPEATS, 1, i == server ? 0 : AFS_VBUSY);
	do
		release = release_of(ro);
	while (fake_stamp.server != server + 1);
	for (unsigned i = 0; i < 3; i++)
		fake_answers(i, 0, 0);
	return release;
}

struct taken {
	uint64_t bytes, end;
	unsigned begun; /* times that the first byte came */
	int result;
};

static int take_bytes(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct taken *taken = arg;

	if (offset == 0)
		taken->begun++;
	for (unsigned i = 0; i < count; i++) {
		taken->bytes += iov[i].iov_len;
		offset += iov[i].iov_len;
	}
	taken->end = offset;
	return taken->result;
}

/* Readers are not handed the bytes of a release that is not taken. */
START_TEST(bytes_of_another_release)
{
	const AFSFid page = {FAKE_RO, 2, 9};
	struct cl_volume *ro = open_three_sites(1000);
	struct taken taken = {0};
	uint64_t fetched = 0;

	ck_assert_uint_eq(release_of(ro), 1000);
	set_release(fake_stamp.server - 1, 2000);
	ck_assert_int_eq(cl_net_fetch_data(ro, &fake_caller, &page, 0, 0, 65536, take_bytes, &taken,
					   &fetched, &fake_status, &fake_stamp, &fake_failure),
			 0);
	ck_assert_uint_eq(fake_stamp.sync.spare1, 1000);
	ck_assert_uint_eq(fetched, 1000);
	ck_assert_uint_eq(taken.bytes, 1000);
	ck_assert_uint_eq(taken.begun, 1);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

/* The clock of the server that makes the releases was fast before. */
START_TEST(a_later_release_with_an_earlier_date)
{
	struct cl_volume *ro = open_three_sites(5000);
	uint32_t number;

	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(release_at(ro, i), 5000);
	number = fake_stamp.release;
	set_release(0, 2000);
	set_release(1, 2000);
	ck_assert_uint_eq(release_at(ro, 0), 2000);
	ck_assert_uint_gt(fake_stamp.release, number);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(release_of(ro), 2000);
	set_release(2, 2000);
	ck_assert_uint_eq(release_at(ro, 2), 2000);
	ck_assert_uint_eq(fake.older, 0);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

/* The same with a client whose limit may be too short for this process. */
static uint32_t release_in_time(struct cl_volume *ro)
{
	int rc;

	do
		rc = fake_look(ro);
	while (rc == -ETIMEDOUT);
	ck_assert_msg(rc == 0, "%d: %s", rc, fake_failure.text);
	return fake_stamp.sync.spare1;
}

/* The server lives, but its volume does not. */
START_TEST(an_older_release_while_the_newer_is_off_line)
{
	struct cl_volume *ro;
	unsigned used;
	int rc;

	fake.has_ro = true;
	fake.ro_servers = 3;
	fake.servers[0].creation = fake.servers[1].creation = 10;
	fake_open(2, 2500);
	ro = fake_find("vol.readonly", CL_WANT_EXACT);
	ck_assert_uint_eq(release_in_time(ro), 10);
	used = fake_stamp.server - 1;
	set_release(used, 20);
	fake_answers(1 - used, FAKE_REPEATS, 1, AFS_VBUSY);
	ck_assert_uint_eq(release_in_time(ro), 20);
	fake_answers(1 - used, 0, 0);
	fake_answers(used, FAKE_REPEATS, 1, AFS_VOFFLINE);
	do
		rc = fake_look(ro);
	while (rc == -ETIMEDOUT || rc == -EIO);
	ck_assert_int_eq(rc, 0);
	ck_assert_uint_eq(fake_stamp.sync.spare1, 10);
	ck_assert_uint_eq(fake.older, 1);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

/* The location service is asked again for as long as the operation waits. */
START_TEST(a_volume_that_moves_while_it_is_looked_for)
{
	pthread_t thread;

	fake_open(3, 30000);
	looks(fake_volume);
	fake_answers(0, FAKE_REPEATS, 1, AFS_VNOVOL);
	fake_answers(1, FAKE_REPEATS, 1, AFS_VNOVOL);
	pthread_mutex_lock(&fake_lock);
	fake.rw_server = 1;
	pthread_mutex_unlock(&fake_lock);
	ck_assert_int_eq(pthread_create(&thread, NULL, look_once, NULL), 0);
	while (fake_calls(1) == 0)
		usleep(1000);
	pthread_mutex_lock(&fake_lock);
	fake.rw_server = 2;
	pthread_mutex_unlock(&fake_lock);
	pthread_join(thread, NULL);
	ck_assert_uint_gt(fake_calls(2), 0);
	fake_close();
}
END_TEST

START_TEST(another_address_of_the_server)
{
	struct cl_server_info info;
	struct sockaddr_in sin;
	uint32_t first;

	fake.also = 2;
	fake.dead_ms = 1000;
	fake_open(2, 30000);
	looks(fake_volume);
	ck_assert(cl_net_server_info(fake_net, 1, &info));
	ck_assert_uint_gt(info.rtt_us, 0);
	memcpy(&sin, &info.address, sizeof(sin));
	first = ntohl(sin.sin_addr.s_addr) - 0x7f000001;
	ck_assert_uint_lt(first, 2);
	fake_server_stop(first);
	looks(fake_volume);
	/* The same server at another address. */
	ck_assert_uint_eq(fake_stamp.server, 1);
	ck_assert(cl_net_server_info(fake_net, 1, &info));
	memcpy(&sin, &info.address, sizeof(sin));
	ck_assert_uint_eq(ntohl(sin.sin_addr.s_addr) - 0x7f000001, 1 - first);
	fake_close();
}
END_TEST

/* -- changes whose answer is lost -- */

static void *create_in_thread(void *arg)
{
	*(int *)arg = create_one();
	return NULL;
}

START_TEST(a_change_without_answer_is_not_repeated)
{
	pthread_t thread;
	int rc = 0;

	fake.dead_ms = 1000;
	fake_open(1, 30000);
	fake_hold(0, true);
	pthread_create(&thread, NULL, create_in_thread, &rc);
	fake_await_held(0, 1);
	fake_server_stop(0);
	fake_server_start(0);
	pthread_join(thread, NULL);
	/* The handler may have answered before the end. */
	if (rc < 0) {
		ck_assert(fake_failure.maybe_done);
		ck_assert_int_eq(rc, -ETIMEDOUT);
	}
	ck_assert_uint_eq(fake_calls(0), 1);
	/* If it was answered, its connection is still used, and the server does not know it: then a call that may be repeated goes on. */
	looks(fake_volume);
	/* A refusal is an answer. */
	fake_answers(0, 0, 1, AFS_VBUSY);
	ck_assert_int_eq(create_one(), 0);
	ck_assert_uint_eq(fake_calls(0), 2);
	fake_answers(0, 0, 1, RXW_RESTARTING);
	ck_assert_int_eq(create_one(), -ETIMEDOUT);
	ck_assert(fake_failure.maybe_done);
	ck_assert_uint_eq(fake_calls(0), 1);
	fake_close();
}
END_TEST

static int give_zeros(void *arg, uint64_t offset, const struct iovec *iov, unsigned count)
{
	(void)offset;
	++*(unsigned *)arg;
	for (unsigned i = 0; i < count; i++)
		memset(iov[i].iov_base, 0, iov[i].iov_len);
	return 0;
}

static int refuse_to_give(void *arg, uint64_t offset, const struct iovec *iov, unsigned count)
{
	(void)arg, (void)offset, (void)iov, (void)count;
	return -ECANCELED;
}

static int store_bytes(uint64_t length, uint64_t known, cl_give_fn *give)
{
	unsigned given = 0;

	return cl_net_store_data(fake_volume, &fake_caller, &file, &nothing, 0, length, CL_NO_CUT,
				 known, give, &given, &fake_status, &fake_stamp, &fake_failure);
}

/* -- fetches -- */

static int fetch_bytes(uint64_t offset, uint64_t *fetched)
{
	struct taken taken = {0};
	int rc = cl_net_fetch_data(fake_volume, &fake_caller, &file, 0, offset, 65536, take_bytes,
				   &taken, fetched, &fake_status, &fake_stamp, &fake_failure);

	ck_assert(rc < 0 || taken.bytes == *fetched);
	return rc;
}

START_TEST(a_fetch_begins_again)
{
	struct taken taken = {0};
	uint64_t fetched;

	fake_open(1, 30000);
	/* The bytes come, and then a code instead of the status. */
	fake_answers(0, 0, 1, AFS_VBUSY);
	ck_assert_int_eq(cl_net_fetch_data(fake_volume, &fake_caller, &file, 0, 0, 65536, take_bytes,
					   &taken, &fetched, &fake_status, &fake_stamp,
					   &fake_failure),
			 0);
	ck_assert_uint_eq(fetched, 1000);
	ck_assert_uint_eq(taken.end, 1000);
	ck_assert_uint_le(taken.begun, 2);
	ck_assert_uint_eq(fake_calls(0), 2);
	/* Whoever takes the bytes wants no more. */
	taken.result = -ECANCELED;
	ck_assert_int_eq(cl_net_fetch_data(fake_volume, &fake_caller, &file, 0, 0, 65536, take_bytes,
					   &taken, &fetched, &fake_status, &fake_stamp,
					   &fake_failure),
			 -ECANCELED);
	looks(fake_volume);
	fake_close();
}
END_TEST

/* The bytes have come, the status never does. */
START_TEST(calls_that_never_end)
{
	uint64_t fetched;

	fake.dead_ms = 1000;
	fake_open(1, 3000);
	looks(fake_volume);
	fake_hold(0, true);
	ck_assert_int_eq(fake_look(fake_volume), -ETIMEDOUT);
	ck_assert_int_eq(fake_failure.code, RXW_CALL_TIMEOUT);
	ck_assert(!fake_failure.maybe_done);
	ck_assert_int_eq(fetch_bytes(0, &fetched), -ETIMEDOUT);
	ck_assert_int_ne(cl_volume_state(fake_volume, NULL), CL_SERVER_DOWN);
	fake_hold(0, false);
	looks(fake_volume);
	fake_close();
}
END_TEST

START_TEST(a_slow_fetch_is_no_end)
{
	uint64_t fetched;

	fake_open(1, 5000);
	looks(fake_volume);
	/* 1,000 bytes in 10 parts. */
	pthread_mutex_lock(&fake_lock);
	fake.servers[0].drip_ms = 600;
	pthread_mutex_unlock(&fake_lock);
	ck_assert_int_eq(fetch_bytes(0, &fetched), 0);
	ck_assert_uint_eq(fetched, 1000);
	ck_assert_uint_eq(fake_calls(0), 2);
	fake_close();
}
END_TEST

START_TEST(a_store_is_repeated)
{
	fake_open(1, 30000);
	fake_answers(0, 0, 1, RXW_RESTARTING);
	ck_assert_int_eq(store_bytes(300000, 0, give_zeros), 0);
	ck_assert_uint_eq(fake_calls(0), 2);
	/* It may have been carried out twice. */
	ck_assert(fake_stamp.repeated);
	ck_assert_int_eq(store_bytes(300000, 0, give_zeros), 0);
	ck_assert(!fake_stamp.repeated);
	ck_assert_int_eq(store_bytes(300000, 0, refuse_to_give), -ECANCELED);
	looks(fake_volume);
	fake_close();
}
END_TEST

/* -- servers that lack calls -- */

START_TEST(older_file_server)
{
	const AFSFid fids[] = {directory, file};
	AFSFetchStatus statuses[2];
	AFSCallBack callbacks[2];
	uint64_t fetched;

	fake.servers[0].missing = CL_MISSING_FETCH64 | CL_MISSING_INLINE_BULK | CL_MISSING_STORE64 |
				  CL_MISSING_STORE_ACL;
	fake.servers[0].promised = 100;
	fake_open(1, 30000);
	for (int i = 0; i < 2; i++) {
		fake_answers(0, 0, 0);
		ck_assert_int_eq(cl_net_fetch_statuses(fake_volume, &fake_caller, fids, 2, statuses,
						       callbacks, &fake_stamp, &fake_failure),
				 0);
		ck_assert_uint_eq(fake_calls(0), 2);
		ck_assert_uint_eq(statuses[1].FileType, AFS_TYPE_FILE);
		ck_assert_uint_eq(callbacks[1].ExpirationTime, 100);
		ck_assert_uint_ne(fake_stamp.server, 0);
		ck_assert_int_eq(cl_net_store_acl(fake_volume, &fake_caller, &directory, "0\n0\n",
						  &fake_status, &fake_stamp, &fake_failure),
				 0);
		ck_assert_int_eq(store_bytes(10, 50, give_zeros), 0);
		ck_assert_uint_eq(fake.servers[0].last_length, 50);
	}
	ck_assert_int_eq(fetch_bytes(0, &fetched), 0);
	ck_assert_uint_eq(fetched, 5);
	ck_assert_uint_eq(fake_stamp.callback.ExpirationTime, 100);
	/* Files of 2 GiB and more do not fit. */
	ck_assert_int_eq(fetch_bytes((uint64_t)3 << 30, &fetched), -EFBIG);
	ck_assert_int_eq(store_bytes(10, (uint64_t)3 << 30, give_zeros), -EFBIG);
	fake_close();
}
END_TEST

START_TEST(a_server_that_wants_a_length)
{
	fake.servers[0].missing = CL_MISSING_NO_CUT;
	fake_open(1, 30000);
	ck_assert_int_eq(store_bytes(100, 70, give_zeros), 0);
	ck_assert_uint_eq(fake.servers[0].last_length, 100);
	ck_assert_uint_eq(fake_calls(0), 2);
	ck_assert_int_eq(store_bytes(100, 300, give_zeros), 0);
	ck_assert_uint_eq(fake.servers[0].last_length, 300);
	ck_assert_uint_eq(fake_calls(0), 3);
	fake_close();
}
END_TEST

START_TEST(an_empty_access_list)
{
	char text[AFSOPAQUEMAX + 1] = "not empty";

	fake_open(1, 30000);
	ck_assert_int_eq(cl_net_fetch_acl(fake_volume, &fake_caller, &directory, text, &fake_status,
					  &fake_stamp, &fake_failure),
			 0);
	ck_assert_str_eq(text, "");
	fake_close();
}
END_TEST

TEST_MAIN_WITHIN(120, "net sites", each_code_in_the_end, codes_that_pass, another_site_answers,
		 a_moved_volume_is_followed, one_refresh_for_all, volumes_of_a_record,
		 a_volume_is_renamed, a_volume_is_replaced, a_dead_server_is_waited_for,
		 many_threads_survive_restarts, the_wait_for_a_dead_server_has_a_limit,
		 another_site_instead_of_a_dead_one, another_site_instead_of_one_that_ends_no_call,
		 releases_by_their_sites, a_release_that_stopped_hides_no_site,
		 a_release_that_reached_no_site_hides_none, a_release_without_marks,
		 bytes_of_another_release, a_later_release_with_an_earlier_date,
		 an_older_release_while_the_newer_is_off_line,
		 a_volume_that_moves_while_it_is_looked_for, calls_that_never_end,
		 a_slow_fetch_is_no_end, another_address_of_the_server,
		 a_change_without_answer_is_not_repeated, a_fetch_begins_again, a_store_is_repeated,
		 older_file_server, a_server_that_wants_a_length, an_empty_access_list)
