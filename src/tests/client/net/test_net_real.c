/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's network with a real rxfsd: each kind of call, promises and breaks between two
 * clients, a restart.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "afs/dir.h"
#include "client/net/calls.h"
#include "common/clock.h"
#include "tests/asserts.h"
#include "tests/client/realserver.h"
#include "tests/main.h"

/* A client, and what servers told it; `lock` covers the latter. */
struct side {
	struct cl_net *net;
	struct cl_volume *volume;
	struct cl_caller caller;
	unsigned breaks, resets;
	struct rxafs_fid last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static struct realserver server;
static struct cl_cells *cells;
static struct side a, b;
static struct rxafs_failure failure;
static struct cl_stamp stamp;
static AFSFetchStatus status;
static const AFSStoreStatus mode = {.Mask = AFS_SETMODE, .UnixModeBits = 0644};

static void note_broken(void *arg, uint32_t number, const struct rxafs_fid *fids, uint32_t count)
{
	struct side *side = arg;

	(void)number;
	pthread_mutex_lock(&lock);
	/* A server that has started tells each client of whole volumes, once. */
	for (uint32_t i = 0; i < count; i++)
		if (fids[i].vnode) {
			side->breaks++;
			side->last = fids[i];
		}
	pthread_cond_broadcast(&told);
	pthread_mutex_unlock(&lock);
}

static void note_reset(void *arg, uint32_t number, uint32_t resets)
{
	(void)number, (void)resets;
	pthread_mutex_lock(&lock);
	((struct side *)arg)->resets++;
	pthread_cond_broadcast(&told);
	pthread_mutex_unlock(&lock);
}

static void open_side(struct side *side)
{
	static const struct cl_net_ops ops = {.broken = note_broken, .reset = note_reset};
	struct cl_net_options o = {
		.cells = cells, .ops = &ops, .arg = side, .dead_ms = 2000, .pause_ms = 50};
	char message[200] = "";
	int rc;

	memset(side, 0, sizeof(*side));
	ck_assert_msg(cl_net_create(&o, &side->net, message, sizeof(message)) == 0, "%s", message);
	rc = cl_volume_find(side->net, cl_cells_home(cells), "root.cell", CL_WANT_RO, &side->caller,
			    &side->volume, &failure);
	ck_assert_msg(rc == 0, "%s", failure.text);
}

static void close_side(struct side *side)
{
	cl_volume_unref(side->volume);
	cl_net_close(side->net, 1000);
}

static void setup(void)
{
	static const char *const volumes[] = {"root.cell", "other", NULL};
	static const char *const none[] = {"/nonexistent"};
	struct cl_cells_options o = {
		.home = "example.org", .given_count = 1, .folders = none, .folder_count = 1};
	const char *given[1];
	char message[200] = "";

	realserver_open(&server, volumes);
	given[0] = realserver_cell(&server, "example.org");
	o.given = given;
	ck_assert_msg(cl_cells_create(&o, &cells, message, sizeof(message)) == 0, "%s", message);
	open_side(&a);
	open_side(&b);
}

static void teardown(void)
{
	close_side(&a);
	close_side(&b);
	cl_cells_free(cells);
	realserver_close(&server);
}

#define ok(call) ck_assert_msg((call) == 0, "%s", failure.text)

/* The server promises nothing before it has asked who the client is. */
static void hold_promise(struct side *side, const AFSFid *fid)
{
	do {
		ok(cl_net_fetch_status(side->volume, &side->caller, fid, &status, &stamp,
				       &failure));
	} while (stamp.callback.ExpirationTime == 0);
}

static AFSFid root_fid(void)
{
	return (AFSFid){cl_volume_id(a.volume), AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};
}

/* -- data -- */

struct bytes {
	char data[200000];
	uint64_t offset;
	size_t length;
};

static int take_bytes(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct bytes *bytes = arg;
	size_t at = (size_t)(offset - bytes->offset);

	for (unsigned i = 0; i < count; at += iov[i++].iov_len) {
		ck_assert_uint_le(at + iov[i].iov_len, sizeof(bytes->data));
		memcpy(bytes->data + at, iov[i].iov_base, iov[i].iov_len);
	}
	bytes->length = at;
	return 0;
}

static int give_bytes(void *arg, uint64_t offset, const struct iovec *iov, unsigned count)
{
	struct bytes *bytes = arg;
	size_t at = (size_t)(offset - bytes->offset);

	for (unsigned i = 0; i < count; at += iov[i++].iov_len)
		memcpy(iov[i].iov_base, bytes->data + at, iov[i].iov_len);
	return 0;
}

static struct bytes out, in;

START_TEST(every_call)
{
	AFSFid root, file;
	AFSFetchStatus both[2], dir_status;
	AFSCallBack callbacks[2];
	struct cl_made made;
	struct cl_volume_status volume;
	char acl[AFSOPAQUEMAX + 1];
	uint64_t fetched;

	setup();
	root = root_fid();
	ck_assert_str_eq(cl_volume_name(a.volume), "root.cell");
	hold_promise(&a, &root);
	ck_assert_uint_eq(status.FileType, AFS_TYPE_DIR);
	ok(cl_net_create_file(a.volume, &a.caller, &root, "file", &mode, &made, &stamp, &failure));
	ck_assert_uint_gt(stamp.callback.ExpirationTime, 0);
	ck_assert_uint_eq(stamp.server, 1);
	file = made.fid;
	for (size_t i = 0; i < sizeof(out.data); i++)
		out.data[i] = (char)(i * 7 + i / 251);
	ok(cl_net_store_data(a.volume, &a.caller, &file, &mode, 0, sizeof(out.data), CL_NO_CUT, 0,
			     give_bytes, &out, &status, &stamp, &failure));
	ck_assert_uint_eq(afs_status_length(&status), sizeof(out.data));
	in.offset = 1000;
	ok(cl_net_fetch_data(b.volume, &b.caller, &file, 0, 1000, 1 << 20, take_bytes, &in, &fetched,
			     &status, &stamp, &failure));
	ck_assert_uint_eq(fetched, sizeof(out.data) - 1000);
	ck_assert_mem_eq(in.data, out.data + 1000, fetched);
	ok(cl_net_fetch_statuses(a.volume, &a.caller, (AFSFid[]){root, file}, 2, both, callbacks,
				 &stamp, &failure));
	ck_assert_uint_eq(both[1].FileType, AFS_TYPE_FILE);
	ck_assert_uint_gt(callbacks[1].ExpirationTime, 0);
	ok(cl_net_store_status(a.volume, &a.caller, &file,
			       &(AFSStoreStatus){.Mask = AFS_SETMODE, .UnixModeBits = 0600},
			       &status, &stamp, &failure));
	ck_assert_uint_eq(status.UnixModeBits, 0600);
	ok(cl_net_make_link(a.volume, &a.caller, &root, "link", &file, &made, &stamp, &failure));
	ck_assert_uint_eq(made.status.LinkCount, 2);
	ok(cl_net_make_symlink(a.volume, &a.caller, &root, "symlink", "file", &mode, &made, &stamp,
			       &failure));
	ok(cl_net_make_dir(a.volume, &a.caller, &root, "dir", &mode, &made, &stamp, &failure));
	ok(cl_net_rename(a.volume, &a.caller, &root, "symlink", &made.fid, "moved", &status,
			 &dir_status, &stamp, &failure));
	ok(cl_net_remove_file(a.volume, &a.caller, &made.fid, "moved", &dir_status, &stamp,
			      &failure));
	ok(cl_net_remove_dir(a.volume, &a.caller, &root, "dir", &dir_status, &stamp, &failure));
	ok(cl_net_fetch_acl(a.volume, &a.caller, &root, acl, &status, &stamp, &failure));
	ok(cl_net_lock(a.volume, &a.caller, &file, CL_LOCK_WRITE, &stamp, &failure));
	ck_assert_int_eq(cl_net_lock(b.volume, &b.caller, &file, CL_LOCK_READ, &stamp, &failure),
			 -EAGAIN);
	ok(cl_net_lock(a.volume, &a.caller, &file, CL_LOCK_EXTEND, &stamp, &failure));
	ok(cl_net_lock(a.volume, &a.caller, &file, CL_LOCK_RELEASE, &stamp, &failure));
	ok(cl_net_fetch_volume_status(a.volume, &a.caller, &volume, &failure));
	ck_assert_str_eq(volume.name, "root.cell");
	teardown();
}
END_TEST

START_TEST(failures_are_told)
{
	AFSFid root, none;
	struct cl_volume *volume;
	struct cl_made made;

	setup();
	root = root_fid();
	none = (AFSFid){root.Volume, 98, 1};
	ck_assert_int_eq(cl_net_fetch_status(a.volume, &a.caller, &none, &status, &stamp, &failure),
			 -ESTALE);
	ck_assert_int_eq(failure.number, ESTALE);
	ck_assert_int_eq(failure.code, AFS_VNOVNODE);
	ck_assert_int_eq(failure.origin, RXAFS_FROM_SERVER);
	ck_assert_ptr_nonnull(strstr(failure.text, "FetchStatus"));
	ok(cl_net_create_file(a.volume, &a.caller, &root, "x", &mode, &made, &stamp, &failure));
	ck_assert_int_eq(
		cl_net_create_file(a.volume, &a.caller, &root, "x", &mode, &made, &stamp, &failure),
		-EEXIST);
	ck_assert(!failure.maybe_done);
	ck_assert_int_eq(cl_volume_find(a.net, cl_cells_home(cells), "nothing", CL_WANT_EXACT,
					&a.caller, &volume, &failure),
			 -ENODEV);
	ck_assert_int_eq(failure.origin, RXAFS_FROM_LOCATION);
	ck_assert_int_eq(cl_volume_find(a.net, cl_cells_home(cells), "other.backup", CL_WANT_EXACT,
					&a.caller, &volume, &failure),
			 -ENODEV);
	teardown();
}
END_TEST

START_TEST(a_change_breaks_the_promise_of_the_other)
{
	AFSFid root;
	struct cl_made made;

	setup();
	root = root_fid();
	hold_promise(&b, &root);
	ok(cl_net_create_file(a.volume, &a.caller, &root, "new", &mode, &made, &stamp, &failure));
	/* The server waits for the answer before it answers the writer. */
	pthread_mutex_lock(&lock);
	ck_assert_uint_eq(b.breaks, 1);
	ck_assert_uint_eq(b.last.volume, root.Volume);
	ck_assert_uint_eq(b.last.vnode, 1);
	ck_assert_uint_eq(b.last.cell, cl_cell_number(cl_cells_home(cells)));
	ck_assert_uint_eq(a.breaks, 0);
	pthread_mutex_unlock(&lock);
	teardown();
}
END_TEST

static void *look_at_root(void *arg)
{
	AFSFid root = root_fid();

	(void)arg;
	ok(cl_net_fetch_status(b.volume, &b.caller, &root, &status, &stamp, &failure));
	return NULL;
}

static void *look_in_vain(void *arg)
{
	AFSFid root = root_fid();
	int rc = cl_net_fetch_status(b.volume, &b.caller, &root, &status, &stamp, &failure);

	ck_assert_int_eq(rc, -EINTR);
	return arg;
}

START_TEST(a_server_that_was_killed_is_waited_for)
{
	AFSFid root;
	struct cl_server_info info;
	pthread_t thread;

	setup();
	root = root_fid();
	hold_promise(&b, &root);
	realserver_end(&server, SIGKILL);
	pthread_create(&thread, NULL, look_at_root, NULL);
	while (cl_net_server_state(b.net, 1) != CL_SERVER_DOWN)
		usleep(1000);
	realserver_start(&server);
	pthread_join(thread, NULL);
	ck_assert(cl_net_server_info(b.net, 1, &info));
	ck_assert_int_eq(info.state, CL_SERVER_UP);
	/* It tells of the promises that it no longer keeps. */
	pthread_mutex_lock(&lock);
	ck_assert_uint_ge(b.resets + b.breaks, 1);
	pthread_mutex_unlock(&lock);
	teardown();
}
END_TEST

/* -- a server that is stopped, and one that is killed again and again -- */

START_TEST(a_stopped_server_does_not_hold_the_caller)
{
	AFSFid root;
	pthread_t thread;
	uint64_t began;
	int ended;

	setup();
	root = root_fid();
	hold_promise(&b, &root);
	ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(server.pid, &ended, WUNTRACED), server.pid);
	b.caller.cancel = cl_cancel_create();
	pthread_create(&thread, NULL, look_in_vain, NULL);
	while (cl_volume_state(b.volume, NULL) == CL_SERVER_UP)
		usleep(1000);
	cl_cancel_raise(b.caller.cancel);
	began = monotonic_ns();
	pthread_join(thread, NULL);
	ck_assert_uint_lt(monotonic_ns() - began, (uint64_t)2 * NS_PER_S);
	cl_cancel_free(b.caller.cancel);
	b.caller.cancel = NULL;
	/* It goes on, and so do calls that waited for it. */
	pthread_create(&thread, NULL, look_at_root, NULL);
	while (cl_net_server_state(b.net, 1) != CL_SERVER_DOWN)
		usleep(1000);
	ck_assert_int_eq(kill(server.pid, SIGCONT), 0);
	pthread_join(thread, NULL);
	teardown();
}
END_TEST

#define NAMES 4000

/* Result of each creation by the thread: 0, an errno value, or -1: it may have been made. */
static int results[NAMES];
static _Atomic unsigned created;
static _Atomic bool enough;

static void *create_names(void *arg)
{
	AFSFid root = root_fid();

	for (unsigned n = 0; n < NAMES && !atomic_load(&enough); n++) {
		struct rxafs_failure why;
		struct cl_stamp own;
		struct cl_made made;
		char name[16];
		int rc;

		snprintf(name, sizeof(name), "n%u", n);
		rc = cl_net_create_file(a.volume, &a.caller, &root, name, &mode, &made, &own, &why);
		results[n] = rc == 0 ? 0 : why.maybe_done ? -1 : -rc;
		atomic_store(&created, n + 1);
	}
	return arg;
}

static int name_exists(const char *name)
{
	AFSFid root = root_fid();
	struct cl_made made;
	int rc = cl_net_create_file(b.volume, &b.caller, &root, name, &mode, &made, &stamp,
				    &failure);

	if (rc == -EEXIST)
		return 1;
	ck_assert_msg(rc == 0, "%s", failure.text);
	return 0;
}

START_TEST(what_was_created_is_known)
{
	unsigned unknown = 0;
	pthread_t thread;

	setup();
	pthread_create(&thread, NULL, create_names, NULL);
	for (int round = 0; round < 6; round++) {
		unsigned now = atomic_load(&created);

		while (atomic_load(&created) < now + 20)
			usleep(500);
		realserver_end(&server, SIGKILL);
		realserver_start(&server);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	for (unsigned n = 0; n < atomic_load(&created); n++) {
		char name[16];
		int exists;

		snprintf(name, sizeof(name), "n%u", n);
		exists = name_exists(name);
		unknown += results[n] < 0;
		if (results[n] >= 0)
			ck_assert_msg(exists == (results[n] == 0), "%s: %d, exists %d", name,
				      results[n], exists);
	}
	/* Not each kill meets a call, and none meets two. */
	ck_assert_uint_le(unknown, 6);
	teardown();
}
END_TEST

static uint64_t big = 40 << 20;

static int give_pattern(void *arg, uint64_t offset, const struct iovec *iov, unsigned count)
{
	(void)arg;
	for (unsigned i = 0; i < count; offset += iov[i++].iov_len)
		for (size_t k = 0; k < iov[i].iov_len; k++)
			((uint8_t *)iov[i].iov_base)[k] = (uint8_t)((offset + k) * 167 >> 7);
	return 0;
}

static int check_pattern(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	(void)arg;
	for (unsigned i = 0; i < count; offset += iov[i++].iov_len)
		for (size_t k = 0; k < iov[i].iov_len; k++)
			if (((uint8_t *)iov[i].iov_base)[k] != (uint8_t)((offset + k) * 167 >> 7))
				return -EBADMSG;
	return 0;
}

static void *store_big(void *arg)
{
	static struct rxafs_failure why;
	static struct cl_stamp own;
	static AFSFetchStatus its;
	AFSFid *file = arg;
	int rc = cl_net_store_data(a.volume, &a.caller, file, &mode, 0, big, CL_NO_CUT, 0,
				   give_pattern, NULL, &its, &own, &why);

	ck_assert_msg(rc == 0, "%s", why.text);
	return NULL;
}

START_TEST(a_store_survives_kills)
{
	struct cl_server_info info;
	struct cl_made made;
	uint64_t fetched;
	pthread_t thread;
	AFSFid root;

	setup();
	root = root_fid();
	ok(cl_net_create_file(a.volume, &a.caller, &root, "big", &mode, &made, &stamp, &failure));
	pthread_create(&thread, NULL, store_big, &made.fid);
	/* In the middle of it, if the machine is not too quick. */
	do
		usleep(1000);
	while (cl_net_server_info(a.net, 1, &info) && info.calls == 0 && info.answered < 2);
	usleep(10000);
	realserver_end(&server, SIGKILL);
	realserver_start(&server);
	pthread_join(thread, NULL);
	for (uint64_t at = 0; at < big; at += fetched) {
		ok(cl_net_fetch_data(b.volume, &b.caller, &made.fid, 0, at, 1 << 20, check_pattern,
				     NULL, &fetched, &status, &stamp, &failure));
		ck_assert_uint_eq(fetched, 1 << 20);
	}
	ck_assert_uint_eq(afs_status_length(&status), big);
	teardown();
}
END_TEST

START_TEST(a_read_only_clone_is_preferred)
{
	struct cl_volume *ro;
	struct cl_made made;
	AFSFid root;

	setup();
	ck_assert_int_eq(cl_volume_type(a.volume), AFS_VL_RW);
	ck_assert_int_eq(realserver_rxvol(&server, "clone", "root.cell", NULL), 0);
	cl_volume_forget_record(a.volume);
	ok(cl_volume_find(a.net, cl_cells_home(cells), "root.cell", CL_WANT_RO, &a.caller, &ro,
			  &failure));
	ck_assert_int_eq(cl_volume_type(ro), AFS_VL_RO);
	root = (AFSFid){cl_volume_id(ro), 1, 1};
	ok(cl_net_fetch_status(ro, &a.caller, &root, &status, &stamp, &failure));
	ck_assert_uint_ne(stamp.sync.spare1, 0);
	ck_assert_int_eq(
		cl_net_create_file(ro, &a.caller, &root, "x", &mode, &made, &stamp, &failure),
		-EROFS);
	cl_volume_unref(ro);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "net with rxfsd", every_call, failures_are_told,
		 a_change_breaks_the_promise_of_the_other, a_server_that_was_killed_is_waited_for,
		 a_stopped_server_does_not_hold_the_caller, what_was_created_is_known,
		 a_store_survives_kills, a_read_only_clone_is_preferred)
