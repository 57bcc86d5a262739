/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of watch.c: changes in the tree break promises, with inotify and without. */
#include "tests/fileserver/callbacks/answer.h"
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "fileserver/callbacks/callbacks.h"
#include "volume/export/object.h"
#include "tests/main.h"

static struct world world;
static struct fsd_caller caller;
static struct export_object object;

static void setup(unsigned watches)
{
	char *root = tree_make();
	struct sockaddr_storage peer = {0};

	tree_text(root, "hello.txt", "hello\n");
	tree_dir(root, "sub", 0755);
	tree_text(root, "sub/inner", "inner");
	tree_tick();
	world_open(&world, root, false, 0);
	world.export->watch = export_watch_start(world.export, watches);
	ck_assert_ptr_nonnull(world.export->watch);
	((struct sockaddr_in *)&peer)->sin_family = AF_INET;
	((struct sockaddr_in *)&peer)->sin_port = htons(7001);
	fsd_clients_enter(world.clients, &peer, NULL, 132, fsd_now(), &caller);
	answer_all(world.clients);
}

static void teardown(void)
{
	fsd_clients_leave(world.clients, &caller);
	world_close(&world);
}

/* In the order of a call: promise, watch, read. */
static struct store_fid promise(const char *path)
{
	struct store_fid fid = world_find(&world, path);
	const AFSFid its = {fid.volume, fid.vnode, fid.unique};

	ck_assert_int_eq(export_find_path(world.export, &fid, object.path, &object.record), 0);
	ck_assert_uint_gt(fsd_promise_give(world.clients, &caller, &its, false, fsd_now()), 0);
	export_watch_add(world.export->watch, &object.record, object.path);
	ck_assert_int_eq(export_get_object(world.export, &fid, caller.host, &object), 0);
	return fid;
}

static bool is_promised(const struct store_fid *fid)
{
	const AFSFid its = {fid->volume, fid->vnode, fid->unique};

	return fsd_promise_held(world.clients, &its);
}

/* The time limit only turns a hang into a failure. */
static bool broken(const struct store_fid *fid)
{
	for (int i = 0; i < 3000; i++) {
		if (!is_promised(fid))
			return true;
		usleep(10000);
	}
	return false;
}

static void each_kind_of_change(void)
{
	struct store_fid fid = promise("hello.txt"), dir;

	tree_text(world.root, "hello.txt", "hello, world\n");
	ck_assert_msg(broken(&fid), "write");
	fid = promise("sub/inner");
	tree_text(world.root, "new", "replaced");
	ck_assert_int_eq(rename(tree_path(world.root, "new"), tree_path(world.root, "sub/inner")),
			 0);
	ck_assert_msg(broken(&fid), "replacement");
	tree_tick();
	dir = promise("sub");
	tree_text(world.root, "sub/another", "x");
	ck_assert_msg(broken(&dir), "new name");
	fid = promise("hello.txt");
	ck_assert_int_eq(chmod(tree_path(world.root, "hello.txt"), 0600), 0);
	ck_assert_msg(broken(&fid), "permission");
	fid = promise("sub/another");
	ck_assert_int_eq(unlink(tree_path(world.root, "sub/another")), 0);
	ck_assert_msg(broken(&fid), "removal");
}

/* A renamed directory and the objects below it stay valid at clients. */
START_TEST(renamed_with_all_below)
{
	struct store_fid root, sub, inner, now;

	setup(100);
	root = promise("");
	sub = promise("sub");
	inner = promise("sub/inner");
	tree_tick();
	ck_assert_int_eq(rename(tree_path(world.root, "sub"), tree_path(world.root, "moved")), 0);
	ck_assert_msg(broken(&root), "rename");
	now = world_find(&world, "moved");
	ck_assert_mem_eq(&sub, &now, sizeof(now));
	now = world_find(&world, "moved/inner");
	ck_assert_mem_eq(&inner, &now, sizeof(now));
	teardown();
}
END_TEST

START_TEST(with_inotify)
{
	setup(100);
	each_kind_of_change();
	ck_assert_uint_ge(export_watch_count(world.export->watch), 2);
	teardown();
}
END_TEST

START_TEST(by_the_sweep_alone)
{
	setup(0);
	each_kind_of_change();
	ck_assert_uint_eq(export_watch_count(world.export->watch), 0);
	teardown();
}
END_TEST

START_TEST(unchanged_keeps_promise)
{
	struct store_fid a, b;

	setup(100);
	a = promise("hello.txt");
	b = promise("sub/inner");
	tree_text(world.root, "hello.txt", "changed\n");
	ck_assert(broken(&a));
	ck_assert(is_promised(&b));
	teardown();
}
END_TEST

START_TEST(bounded)
{
	char name[32];

	setup(5);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		tree_dir(world.root, name, 0755);
	}
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		promise(name);
	}
	ck_assert_uint_eq(export_watch_count(world.export->watch), 5);
	/* deleted ones make room */
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		rmdir(tree_path(world.root, name));
	}
	for (int i = 0; i < 3000 && export_watch_count(world.export->watch); i++)
		usleep(10000);
	ck_assert_uint_eq(export_watch_count(world.export->watch), 0);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "watch", with_inotify, renamed_with_all_below, by_the_sweep_alone,
		 unchanged_keeps_promise, bounded)
