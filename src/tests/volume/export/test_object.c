/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of object.c and image.c: FIDs, versions, images, restarts, rights. */
#include "tests/fileserver/fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "afs/dir.h"
#include "volume/export/object.h"
#include "tests/main.h"

static struct world world;
static struct export_object object;

static void setup(void)
{
	char *root = tree_make();

	tree_text(root, "hello.txt", "hello, world\n");
	tree_dir(root, "sub", 0755);
	tree_text(root, "sub/inner", "inner");
	tree_dir(root, "sub/deep", 0755);
	tree_link(root, "link", "sub/inner");
	tree_tick();
	world_open(&world, root, false, 0);
}

static int get(const char *path)
{
	struct store_fid fid = world_find(&world, path);

	ck_assert_msg(fid.vnode, "no name %s", path);
	return export_get_object(world.export, &fid, NULL, &object);
}

static int get_fid(struct store_fid fid)
{
	return export_get_object(world.export, &fid, NULL, &object);
}

START_TEST(status_of_each_kind)
{
	setup();
	ck_assert_int_eq(get(""), 0);
	ck_assert_uint_eq(object.status.kind, STORE_DIR);
	ck_assert_uint_eq(object.status.length, 2048);
	ck_assert_uint_eq(object.status.links, 3);
	ck_assert_uint_eq(object.status.parent, 1);
	ck_assert_uint_eq(object.status.mode, 0755);
	ck_assert_uint_eq(object.status.rights, 41);
	ck_assert_uint_eq(object.status.anonymous, 41);

	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_eq(object.status.kind, STORE_FILE);
	ck_assert_uint_eq(object.status.length, 13);
	ck_assert_uint_eq(object.status.parent, 1);
	ck_assert_uint_eq(object.status.parent_unique, 1);
	ck_assert_uint_gt(object.status.version, 0);
	ck_assert_uint_eq(object.fid.vnode % 2, 0);

	ck_assert_int_eq(get("sub/deep"), 0);
	ck_assert_uint_eq(object.fid.vnode % 2, 1);
	ck_assert_uint_eq(object.status.parent, object.fid.vnode);
	ck_assert_uint_eq(object.status.parent_unique, object.fid.unique);
	ck_assert_str_eq(object.path, "sub/deep");

	ck_assert_int_eq(get("link"), 0);
	ck_assert_uint_eq(object.status.kind, STORE_SYMLINK);
	ck_assert_uint_eq(object.status.length, 9);
	ck_assert_uint_ne(object.status.mode & 0111, 0);
	world_close(&world);
}
END_TEST

START_TEST(unknown_fids)
{
	struct store_fid fid;

	setup();
	fid = world_find(&world, "hello.txt");
	ck_assert_int_eq(get_fid((struct store_fid){0, 1, 1}), -EINVAL);
	ck_assert_int_eq(get_fid((struct store_fid){fid.volume, 0, 1}), -EINVAL);
	ck_assert_int_eq(get_fid((struct store_fid){fid.volume + 1, 1, 1}), STORE_VNOVOL);
	ck_assert_int_eq(get_fid((struct store_fid){fid.volume, 4444, 1}), STORE_VNOVNODE);
	fid.unique++;
	ck_assert_int_eq(get_fid(fid), STORE_VNOVNODE);
	ck_assert_int_eq(get_fid((struct store_fid){fid.volume, 1, 2}), STORE_VNOVNODE);
	world_close(&world);
}
END_TEST

START_TEST(everything_survives_a_restart)
{
	struct store_fid before[4], after;
	uint64_t versions[4];
	static const char *const paths[4] = {"hello.txt", "sub", "sub/inner", "link"};
	uint32_t creation;
	struct export_image *image;
	uint8_t *copy;

	setup();
	creation = world.export->creation;
	for (int i = 0; i < 4; i++) {
		before[i] = world_find(&world, paths[i]);
		ck_assert_int_eq(get(paths[i]), 0);
		versions[i] = object.status.version;
	}
	ck_assert_int_eq(get(""), 0);
	ck_assert_int_eq(export_get_image(world.export, &object, NULL, &image), 0);
	copy = malloc(image->length);
	memcpy(copy, image->bytes, image->length);
	export_release_image(world.export, image);

	world_reopen(&world, false);
	ck_assert_uint_eq(world.export->creation, creation);
	for (int i = 0; i < 4; i++) {
		/* by FID first, as a client with a cached FID does */
		ck_assert_int_eq(get_fid(before[i]), 0);
		ck_assert_uint_eq(object.status.version, versions[i]);
		after = world_find(&world, paths[i]);
		ck_assert_mem_eq(&before[i], &after, sizeof(after));
	}
	ck_assert_int_eq(get(""), 0);
	ck_assert_int_eq(export_get_image(world.export, &object, NULL, &image), 0);
	ck_assert_mem_eq(copy, image->bytes, image->length);
	export_release_image(world.export, image);
	ck_assert_uint_eq(world.changes, 0);
	free(copy);
	world_close(&world);
}
END_TEST

START_TEST(changed_while_down)
{
	uint64_t version;
	struct store_fid fid;

	setup();
	fid = world_find(&world, "hello.txt");
	ck_assert_int_eq(get("hello.txt"), 0);
	version = object.status.version;
	tree_text(world.root, "hello.txt", "other bytes!\n"); /* of the same length */
	world_reopen(&world, false);
	ck_assert_int_eq(get_fid(fid), 0);
	ck_assert_uint_gt(object.status.version, version);
	world_close(&world);
}
END_TEST

/* FIDs that clients have cached never refer to other files. */
START_TEST(lost_state_repeats_no_fid)
{
	struct store_fid hello, inner, now;
	uint64_t root;

	setup();
	hello = world_find(&world, "hello.txt");
	inner = world_find(&world, "sub/inner");
	ck_assert_int_eq(get(""), 0);
	root = object.status.version;
	world_lose_state(&world);
	ck_assert_int_eq(get_fid(hello), STORE_VNOVNODE);
	ck_assert_int_eq(get(""), 0);
	ck_assert_uint_gt(object.status.version, root);
	now = world_find(&world, "hello.txt");
	ck_assert_uint_ne(now.unique, hello.unique);
	now = world_find(&world, "sub/inner");
	ck_assert_uint_ne(now.unique, inner.unique);
	ck_assert_int_eq(get_fid(inner), STORE_VNOVNODE);
	world_close(&world);
}
END_TEST

/* An old copy of the state is restored: objects numbered after the copy get other numbers. */
START_TEST(old_state_repeats_no_fid)
{
	char copy[4200], command[9000];
	uint64_t hello, lost;
	struct store_fid late;

	setup();
	ck_assert_int_eq(get("hello.txt"), 0);
	snprintf(copy, sizeof(copy), "%s.copy", world.state);
	snprintf(command, sizeof(command), "cp -a %s %s", world.state, copy);
	ck_assert_int_eq(system(command), 0);
	tree_tick();
	tree_text(world.root, "late", "late");
	tree_text(world.root, "hello.txt", "hello, World\n");
	late = world_find(&world, "late");
	ck_assert_int_eq(get_fid(late), 0);
	lost = object.status.version;
	ck_assert_int_eq(get("hello.txt"), 0);
	hello = object.status.version;

	tree_remove(world.state);
	world.state = strdup(copy);
	ck_assert_int_eq(unlink(tree_path(world.root, "late")), 0);
	tree_text(world.root, "other", "other");
	tree_text(world.root, "hello.txt", "hello, worlD\n");
	world_reopen(&world, false);
	if (get_fid(late) == 0)
		ck_assert_uint_gt(object.status.version, lost);
	ck_assert_int_eq(get("other"), 0);
	if (object.fid.vnode == late.vnode && object.fid.unique == late.unique)
		ck_assert_uint_gt(object.status.version, lost);
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_gt(object.status.version, hello);
	world_close(&world);
}
END_TEST

START_TEST(another_tree_is_another_content)
{
	uint32_t creation;
	struct store_fid fid;

	setup();
	fid = world_find(&world, "hello.txt");
	creation = world.export->creation;
	tree_remove(world.root);
	world.root = tree_make();
	tree_text(world.root, "hello.txt", "hello, world\n");
	world_reopen(&world, false);
	ck_assert_uint_gt(world.export->creation, creation);
	ck_assert_int_eq(get_fid(fid), STORE_VNOVNODE);
	struct store_fid now = world_find(&world, "hello.txt");
	ck_assert_uint_ne(now.unique, fid.unique);
	ck_assert_int_eq(get(""), 0);
	ck_assert_uint_gt(object.status.version, 1);
	world_close(&world);
}
END_TEST

START_TEST(changes_raise_the_version)
{
	struct timeval times[2] = {{1000000000, 0}, {1000000000, 0}};
	uint64_t version;

	setup();
	ck_assert_int_eq(get("hello.txt"), 0);
	version = object.status.version;
	tree_tick();
	tree_text(world.root, "hello.txt", "hello, World\n");
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_gt(object.status.version, version);
	version = object.status.version;
	ck_assert_uint_eq(world.changes, 1);
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_eq(object.status.version, version);

	/* even if the writer restores the old date */
	tree_tick();
	tree_text(world.root, "hello.txt", "hello, worlD\n");
	ck_assert_int_eq(utimes(tree_path(world.root, "hello.txt"), times), 0);
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_gt(object.status.version, version);
	version = object.status.version;
	ck_assert_uint_eq(object.status.client_mtime, 1000000000);

	world_close(&world);
}
END_TEST

/* Whether the name has another FID now, and the old one is gone. */
static void renumbered(const char *path, struct store_fid old, uint64_t version)
{
	struct store_fid now;

	ck_assert_int_eq(get_fid(old), STORE_VNOVNODE);
	now = world_find(&world, path);
	ck_assert_uint_ne(now.vnode, 0);
	ck_assert(now.vnode != old.vnode || now.unique != old.unique);
	ck_assert_int_eq(get_fid(now), 0);
	ck_assert_int_eq(get(""), 0);
	ck_assert_uint_gt(object.status.version, version);
}

/* A reader of the old file must not get the rest from the new one. */
START_TEST(replaced_by_rename)
{
	uint64_t version;
	struct store_fid fid;

	setup();
	for (int seen = 0; seen < 2; seen++) {
		/* noticed by looking up the directory first, or the file */
		fid = world_find(&world, "hello.txt");
		ck_assert_int_eq(get(""), 0);
		version = object.status.version;
		tree_tick();
		tree_text(world.root, "new", "hello, world\n");
		ck_assert_int_eq(
			rename(tree_path(world.root, "new"), tree_path(world.root, "hello.txt")),
			0);
		world.changes = 0;
		if (seen)
			ck_assert_int_eq(get(""), 0);
		renumbered("hello.txt", fid, version);
		ck_assert_uint_ge(world.changes, 2);
	}
	world_close(&world);
}
END_TEST

/* Clients treat links as immutable. */
START_TEST(retargeted_link)
{
	uint64_t version;
	struct store_fid fid;

	setup();
	for (int seen = 0; seen < 2; seen++) {
		fid = world_find(&world, "link");
		ck_assert_int_eq(get_fid(fid), 0);
		ck_assert_int_eq(get(""), 0);
		version = object.status.version;
		tree_tick();
		ck_assert_int_eq(unlink(tree_path(world.root, "link")), 0);
		tree_link(world.root, "link", seen ? "sub/first" : "sub/other");
		world.changes = 0;
		if (seen)
			ck_assert_int_eq(get(""), 0);
		renumbered("link", fid, version);
		ck_assert_uint_ge(world.changes, 2);
	}
	world_close(&world);
}
END_TEST

START_TEST(swapped_directories)
{
	uint64_t version;
	struct store_fid a, b, inner;

	setup();
	tree_dir(world.root, "twin", 0755);
	tree_text(world.root, "twin/inner", "twin");
	a = world_find(&world, "sub");
	b = world_find(&world, "twin");
	inner = world_find(&world, "sub/inner");
	ck_assert_int_eq(get("twin/inner"), 0);
	ck_assert_int_eq(get(""), 0);
	version = object.status.version;
	tree_tick();
	ck_assert_int_eq(rename(tree_path(world.root, "sub"), tree_path(world.root, "x")), 0);
	ck_assert_int_eq(rename(tree_path(world.root, "twin"), tree_path(world.root, "sub")), 0);
	ck_assert_int_eq(rename(tree_path(world.root, "x"), tree_path(world.root, "twin")), 0);
	/* never the file of the other directory */
	ck_assert_int_eq(get_fid(inner), 0);
	ck_assert_str_eq(object.path, "twin/inner");
	ck_assert_uint_eq(object.status.length, 5);
	ck_assert_int_eq(get("sub/inner"), 0);
	ck_assert_uint_eq(object.status.length, 4);
	ck_assert_int_eq(get("twin/inner"), 0);
	ck_assert_uint_eq(object.status.length, 5);
	ck_assert_int_eq(get(""), 0);
	ck_assert_uint_gt(object.status.version, version);
	ck_assert_uint_ne(world_find(&world, "sub").vnode, a.vnode);
	ck_assert_uint_ne(world_find(&world, "twin").vnode, b.vnode);
	world_close(&world);
}
END_TEST

START_TEST(hard_links)
{
	struct store_fid one, two, three, sub;
	struct export_image *image;

	setup();
	tree_text(world.root, "one", "text");
	ck_assert_int_eq(link(tree_path(world.root, "one"), tree_path(world.root, "two")), 0);
	ck_assert_int_eq(link(tree_path(world.root, "one"), tree_path(world.root, "sub/three")), 0);
	tree_tick();
	one = world_find(&world, "one");
	two = world_find(&world, "two");
	three = world_find(&world, "sub/three");
	sub = world_find(&world, "sub");
	ck_assert_mem_eq(&one, &two, sizeof(one));
	ck_assert_mem_eq(&one, &three, sizeof(one));
	ck_assert_int_eq(get_fid(one), 0);
	ck_assert_uint_eq(object.status.links, 3);
	/* also if no call reads the directory that lost the name */
	ck_assert_int_eq(unlink(tree_path(world.root, "sub/three")), 0);
	ck_assert_int_eq(unlink(tree_path(world.root, "one")), 0);
	ck_assert_int_eq(get_fid(one), 0);
	ck_assert_str_eq(object.path, "two");
	ck_assert_uint_eq(object.status.links, 1);
	ck_assert_uint_eq(world_find(&world, "one").vnode, 0);
	tree_tick();
	ck_assert_int_eq(rename(tree_path(world.root, "two"), tree_path(world.root, "sub/new")), 0);
	/* found at its new place before it is missed at the old one */
	ck_assert_int_eq(get_fid(sub), 0);
	three = world_find(&world, "sub/new");
	ck_assert_mem_eq(&one, &three, sizeof(one));
	world_reopen(&world, false);
	ck_assert_int_eq(get_fid(one), 0);
	ck_assert_str_eq(object.path, "sub/new");
	ck_assert_int_eq(get("sub"), 0);
	ck_assert_int_eq(export_get_image(world.export, &object, NULL, &image), 0);
	export_release_image(world.export, image);
	ck_assert_int_eq(unlink(tree_path(world.root, "sub/new")), 0);
	ck_assert_int_eq(get_fid(one), STORE_VNOVNODE);
	world_close(&world);
}
END_TEST

/* Accessible if any of its names is. */
START_TEST(hard_link_in_closed_directory)
{
	struct store_fid fid, closed;

	setup();
	tree_dir(world.root, "closed", 0755);
	tree_text(world.root, "closed/a", "text");
	ck_assert_int_eq(link(tree_path(world.root, "closed/a"), tree_path(world.root, "sub/b")),
			 0);
	tree_tick();
	fid = world_find(&world, "sub/b");
	closed = world_find(&world, "closed/a");
	ck_assert_mem_eq(&fid, &closed, sizeof(fid));
	ck_assert_int_eq(chmod(tree_path(world.root, "closed"), 0700), 0);
	ck_assert_int_eq(get_fid(fid), 0);
	ck_assert_str_eq(object.path, "sub/b");
	ck_assert_int_eq(chmod(tree_path(world.root, "sub"), 0700), 0);
	export_forget_access(world.export);
	ck_assert_int_eq(get_fid(fid), -EACCES);
	world_close(&world);
}
END_TEST

START_TEST(renamed_keeps_its_fid)
{
	struct store_fid file, inner, now;
	uint64_t version;

	setup();
	file = world_find(&world, "hello.txt");
	inner = world_find(&world, "sub/inner");
	ck_assert_int_eq(get("sub"), 0);
	version = object.status.version;
	tree_tick();
	ck_assert_int_eq(rename(tree_path(world.root, "hello.txt"), tree_path(world.root, "hi")),
			 0);
	tree_dir(world.root, "up", 0755);
	ck_assert_int_eq(rename(tree_path(world.root, "sub"), tree_path(world.root, "up/down")), 0);
	ck_assert_int_eq(get("up"), 0);
	now = world_find(&world, "hi");
	ck_assert_mem_eq(&file, &now, sizeof(now));
	now = world_find(&world, "up/down/inner");
	if (now.vnode == inner.vnode)
		ck_assert_uint_eq(now.unique, inner.unique);
	/* it has another parent, which is in its image */
	ck_assert_int_eq(get("up/down"), 0);
	ck_assert_uint_gt(object.status.version, version);
	world_close(&world);
}
END_TEST

/* -- directories that are too large -- */

static const struct export_layer_ops *under;
static struct export_layer_ops counting;
static _Atomic unsigned lists, in_list;
static _Atomic unsigned many_names; /* additional names that "big" seems to have */

static int counted_list(struct export_layer *layer, const char *path, export_list_fn fn, void *arg)
{
	int rc = 0;

	lists++;
	ck_assert_uint_eq(in_list++, 0);
	for (unsigned i = 0; !rc && i < many_names && !strcmp(path, "big"); i++) {
		char name[32];

		snprintf(name, sizeof(name), "%u", i);
		rc = fn(arg, name, strlen(name), STORE_FILE, i + 1000000);
	}
	if (many_names)
		usleep(50000);
	in_list--;
	return rc ? rc : under->list(layer, path, fn, arg);
}

static void count_lists(void)
{
	under = world.layer->ops;
	counting = *under;
	counting.list = counted_list;
	world.layer->ops = &counting;
	lists = 0;
}

static _Atomic unsigned too_large;

static void *ask_for_big(void *arg)
{
	struct export_object *mine = malloc(sizeof(*mine));

	for (int i = 0; i < 5; i++)
		too_large += export_get_object(world.export, arg, NULL, mine) == -EFBIG;
	free(mine);
	return NULL;
}

START_TEST(too_large_directory_cached)
{
	pthread_t threads[8];
	struct store_fid big, inner;

	setup();
	tree_dir(world.root, "big", 0755);
	tree_text(world.root, "big/inner", "x");
	tree_tick();
	inner = world_find(&world, "big/inner");
	big = world_find(&world, "big");
	ck_assert_int_eq(get(""), 0);
	count_lists();
	many_names = 70000;
	tree_text(world.root, "big/more", "x");
	world.changes = 0;
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_for_big, &big), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(too_large, 40);
	ck_assert_uint_eq(lists, 1);
	/* clients with a promise get a callback */
	ck_assert_uint_eq(world.changes, 1);
	/* known names in it are served without another listing, and its siblings too */
	ck_assert_int_eq(get_fid(inner), 0);
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_int_eq(get_fid(big), -EFBIG);
	ck_assert_uint_eq(lists, 1);
	/* also not at once after a change, and then once */
	many_names = 0;
	tree_tick();
	ck_assert_int_eq(unlink(tree_path(world.root, "big/more")), 0);
	ck_assert_int_eq(get_fid(big), -EFBIG);
	while (get_fid(big) == -EFBIG)
		usleep(50000);
	ck_assert_int_eq(get_fid(big), 0);
	ck_assert_uint_eq(lists, 2);
	inner = world_find(&world, "big/inner");
	ck_assert_uint_ne(inner.vnode, 0);
	world_close(&world);
}
END_TEST

static void *ask_for_image(void *arg)
{
	struct export_object *mine = malloc(sizeof(*mine));
	struct export_image *image;

	ck_assert_int_eq(export_get_object(world.export, arg, NULL, mine), 0);
	ck_assert_int_eq(export_get_image(world.export, mine, NULL, &image), 0);
	ck_assert_uint_eq(image->length, mine->status.length);
	export_release_image(world.export, image);
	free(mine);
	return NULL;
}

START_TEST(concurrent_calls_list_once)
{
	pthread_t threads[8];
	struct store_fid sub;

	setup();
	sub = world_find(&world, "sub");
	count_lists();
	many_names = 1; /* listing takes a while */
	tree_text(world.root, "sub/new", "x");
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_for_image, &sub), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(lists, 1);
	many_names = 0;
	world_close(&world);
}
END_TEST

/* -- slow disks -- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool at_gate;

static int gated_stat(struct export_layer *layer, const char *path, struct export_stat *st)
{
	if (!strncmp(path, "sub/slow", 8)) {
		at_gate = true;
		pthread_mutex_lock(&gate);
		pthread_mutex_unlock(&gate);
	}
	return under->stat_path(layer, path, st);
}

/* While new names of a directory are looked up, all other calls go on. */
START_TEST(slow_disk_delays_no_others)
{
	struct store_fid sub, root = {0x20000001, 1, 1};
	pthread_t thread;

	setup();
	sub = world_find(&world, "sub");
	ck_assert_int_eq(get_fid(root), 0);
	count_lists();
	counting.stat_path = gated_stat;
	tree_text(world.root, "sub/slow", "x");
	pthread_mutex_lock(&gate);
	ck_assert_int_eq(pthread_create(&thread, NULL, ask_for_image, &sub), 0);
	while (!at_gate)
		usleep(1000);
	tree_tick();
	tree_text(world.root, "hello.txt", "other");
	tree_text(world.root, "another", "new");
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_int_eq(get("another"), 0);
	pthread_mutex_unlock(&gate);
	pthread_join(thread, NULL);
	ck_assert_uint_ne(world_find(&world, "sub/slow").vnode, 0);
	world_close(&world);
}
END_TEST

START_TEST(names_come_and_go)
{
	uint64_t version;
	struct store_fid old, new;

	setup();
	ck_assert_int_eq(get(""), 0);
	version = object.status.version;
	old = world_find(&world, "hello.txt");

	tree_tick();
	ck_assert_int_eq(unlink(tree_path(world.root, "hello.txt")), 0);
	ck_assert_int_eq(get(""), 0);
	ck_assert_uint_gt(object.status.version, version);
	ck_assert_int_eq(get_fid(old), STORE_VNOVNODE);
	ck_assert_uint_eq(world_find(&world, "hello.txt").vnode, 0);

	tree_tick();
	tree_text(world.root, "hello.txt", "hello, world\n");
	new = world_find(&world, "hello.txt");
	ck_assert_uint_ne(new.vnode, 0);
	ck_assert_uint_ne(new.unique, old.unique);
	ck_assert_int_eq(get_fid(old), STORE_VNOVNODE);

	/* gone and back before any call read the directory, but after a call for the file */
	tree_tick();
	ck_assert_int_eq(unlink(tree_path(world.root, "hello.txt")), 0);
	ck_assert_int_eq(get_fid(new), STORE_VNOVNODE);
	tree_text(world.root, "hello.txt", "hello, world\n");
	ck_assert_int_eq(get_fid(new), STORE_VNOVNODE);
	ck_assert_uint_ne(world_find(&world, "hello.txt").unique, new.unique);
	world_close(&world);
}
END_TEST

START_TEST(another_kind_is_another_object)
{
	struct store_fid file;

	setup();
	file = world_find(&world, "hello.txt");
	tree_tick();
	ck_assert_int_eq(unlink(tree_path(world.root, "hello.txt")), 0);
	tree_dir(world.root, "hello.txt", 0755);
	ck_assert_int_eq(get_fid(file), STORE_VNOVNODE);
	ck_assert_uint_eq(world_find(&world, "hello.txt").vnode % 2, 1);
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_eq(object.status.kind, STORE_DIR);
	world_close(&world);
}
END_TEST

/* The records of a renamed directory and of everything below it stay valid. */
START_TEST(directory_is_renamed)
{
	struct store_fid inner, deep, now;

	setup();
	inner = world_find(&world, "sub/inner");
	deep = world_find(&world, "sub/deep");
	tree_tick();
	ck_assert_int_eq(rename(tree_path(world.root, "sub"), tree_path(world.root, "moved")), 0);
	ck_assert_int_eq(get_fid(inner), 0);
	ck_assert_str_eq(object.path, "moved/inner");
	ck_assert_int_eq(get_fid(deep), 0);
	now = world_find(&world, "moved/inner");
	ck_assert_mem_eq(&inner, &now, sizeof(now));
	ck_assert_int_eq(unlink(tree_path(world.root, "moved/inner")), 0);
	ck_assert_int_eq(get_fid(inner), STORE_VNOVNODE);
	world_close(&world);
}
END_TEST

START_TEST(subtree_vanishes)
{
	struct store_fid inner, deep;

	setup();
	inner = world_find(&world, "sub/inner");
	deep = world_find(&world, "sub/deep");
	tree_tick();
	ck_assert_int_eq(rename(tree_path(world.root, "sub"), tree_path(world.state, "away")), 0);
	ck_assert_int_eq(get_fid(inner), STORE_VNOVNODE);
	ck_assert_int_eq(get_fid(deep), STORE_VNOVNODE);
	world_close(&world);
}
END_TEST

START_TEST(directory_replaced_by_link)
{
	struct store_fid inner;

	setup();
	inner = world_find(&world, "sub/inner");
	tree_tick();
	ck_assert_int_eq(rename(tree_path(world.root, "sub"), tree_path(world.root, "aside")), 0);
	tree_link(world.root, "sub", "aside");
	/* not through the link */
	ck_assert_int_eq(get_fid(inner), 0);
	ck_assert_str_eq(object.path, "aside/inner");
	ck_assert_int_eq(rename(tree_path(world.root, "aside"), tree_path(world.state, "away")), 0);
	ck_assert_int_eq(get_fid(inner), STORE_VNOVNODE);
	world_close(&world);
}
END_TEST

START_TEST(five_thousand_names)
{
	struct store_fid fid;
	struct export_image *image;
	uint32_t cursor = 0, n = 0;
	struct afs_dir_entry entry;
	char name[64];

	setup();
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "sub/a-rather-long-name-%04d", i);
		tree_text(world.root, name, "");
	}
	ck_assert_int_eq(get("sub"), 0);
	ck_assert_int_eq(export_get_image(world.export, &object, NULL, &image), 0);
	ck_assert_uint_eq(image->length, object.status.length);
	while (afs_dir_next(image->bytes, image->length, &cursor, &entry) == 1)
		n++;
	ck_assert_uint_eq(n, 5000 + 4);
	export_release_image(world.export, image);
	fid = world_find(&world, "sub/a-rather-long-name-4999");
	ck_assert_int_eq(get_fid(fid), 0);
	world_close(&world);
}
END_TEST

START_TEST(odd_names)
{
	setup();
	tree_text(world.root, "\xc3\xa9 \xff space", "x");
	tree_text(world.root, "ends@sys", "x");
	tree_text(world.root, ".hidden", "x");
	ck_assert_int_eq(get("\xc3\xa9 \xff space"), 0);
	ck_assert_int_eq(get(".hidden"), 0);
	/* clients could never request this one */
	ck_assert_uint_eq(world_find(&world, "ends@sys").vnode, 0);
	ck_assert_int_eq(mkfifo(tree_path(world.root, "fifo"), 0666), 0);
	ck_assert_uint_eq(world_find(&world, "fifo").vnode, 0);
	world_close(&world);
}
END_TEST

START_TEST(only_files_readable_by_other)
{
	struct store_fid secret, behind;
	struct export_file *file;

	setup();
	tree_file(world.root, "secret", "s", 1, 0640);
	tree_dir(world.root, "closed", 0750);
	tree_text(world.root, "closed/open", "x");
	tree_dir(world.root, "nolist", 0711);
	tree_text(world.root, "nolist/known", "x");
	/* a server with full access records the names */
	world_reopen(&world, true);
	secret = world_find(&world, "secret");
	behind = world_find(&world, "closed/open");
	struct store_fid closed = world_find(&world, "closed"),
			 nolist = world_find(&world, "nolist");
	struct store_fid known = world_find(&world, "nolist/known");

	ck_assert_int_eq(get_fid(secret), 0);
	ck_assert_int_eq(get_fid(behind), 0);
	world_reopen(&world, false);
	/* the status is public, as that of any file */
	ck_assert_int_eq(get_fid(secret), 0);
	ck_assert(!object.may_read);
	ck_assert_uint_eq(object.status.rights, STORE_LOOKUP);
	ck_assert_uint_eq(object.status.anonymous, STORE_LOOKUP);
	ck_assert_int_eq(export_open_file(world.export, &secret, NULL, &object, &file), -EACCES);
	ck_assert_int_eq(get_fid(behind), -EACCES);
	ck_assert_int_eq(get_fid(closed), 0);
	ck_assert(!object.may_read);
	ck_assert_uint_eq(object.status.rights, 0);
	ck_assert_uint_eq(object.status.anonymous, 0);
	ck_assert_uint_eq(object.status.length, 2048);
	ck_assert_int_eq(get_fid(nolist), 0);
	ck_assert(!object.may_read);
	ck_assert_int_eq(get_fid(known), 0);
	world_close(&world);
}
END_TEST

START_TEST(permission_taken_away)
{
	struct store_fid inner;

	setup();
	inner = world_find(&world, "sub/inner");
	ck_assert_int_eq(get_fid(inner), 0);
	ck_assert_int_eq(chmod(tree_path(world.root, "sub/inner"), 0600), 0);
	world.changes = 0;
	ck_assert_int_eq(get_fid(inner), 0);
	ck_assert(!object.may_read);
	ck_assert_uint_eq(world.changes, 1);
	ck_assert_int_eq(chmod(tree_path(world.root, "sub/inner"), 0644), 0);
	ck_assert_int_eq(get_fid(inner), 0);
	ck_assert(object.may_read);
	ck_assert_int_eq(chmod(tree_path(world.root, "sub"), 0700), 0);
	export_forget_access(world.export);
	ck_assert_int_eq(get_fid(inner), -EACCES);
	world_close(&world);
}
END_TEST

/* A directory whose listing was forbidden for a while must not return with an old version. */
START_TEST(unlisted_changes_count)
{
	struct store_fid sub;
	uint64_t version;

	setup();
	sub = world_find(&world, "sub");
	ck_assert_int_eq(get_fid(sub), 0);
	version = object.status.version;
	tree_tick();
	ck_assert_int_eq(chmod(tree_path(world.root, "sub"), 0700), 0);
	tree_text(world.root, "sub/new", "x");
	ck_assert_int_eq(get_fid(sub), 0);
	ck_assert(!object.may_read);
	world_reopen(&world, true);
	ck_assert_int_eq(get_fid(sub), 0);
	ck_assert_uint_gt(object.status.version, version);
	world_close(&world);
}
END_TEST

START_TEST(chmod_of_a_directory_keeps_its_version)
{
	struct store_fid sub;
	uint64_t version;

	setup();
	sub = world_find(&world, "sub");
	ck_assert_int_eq(get_fid(sub), 0);
	version = object.status.version;
	tree_tick();
	world.changes = 0;
	ck_assert_int_eq(chmod(tree_path(world.root, "sub"), 0775), 0);
	ck_assert_int_eq(get_fid(sub), 0);
	ck_assert_uint_eq(object.status.version, version);
	ck_assert_uint_eq(object.status.mode, 0775);
	ck_assert_uint_eq(world.changes, 1);
	world_close(&world);
}
END_TEST

START_TEST(open_file_has_one_version)
{
	struct store_fid fid;
	struct export_file *file;
	struct export_stat st;

	setup();
	fid = world_find(&world, "hello.txt");
	/* just written: the time stamp could not show a second change */
	tree_text(world.root, "hello.txt", "hello again!\n");
	ck_assert_int_eq(export_open_file(world.export, &fid, NULL, &object, &file), 0);
	tree_text(world.root, "hello.txt", "hello once more\n");
	ck_assert_int_eq(world.layer->ops->stat_file(file, &st), 0);
	ck_assert(!export_stat_same(&st, &object.st));
	world.layer->ops->close(file);
	fid = world_find(&world, "sub");
	ck_assert_int_eq(export_open_file(world.export, &fid, NULL, &object, &file), -EISDIR);
	world_close(&world);
}
END_TEST

/* Whether a write through a mapping changes time stamps of files here. Not on a tmpfs. */
static bool mappings_show(uint8_t *map, size_t size, const char *path)
{
	struct stat before, after;
	int fd = open(path, O_RDONLY);

	map[0] = 1;
	ck_assert_int_eq(fdatasync(fd), 0);
	ck_assert_int_eq(fstat(fd, &before), 0);
	tree_tick();
	memset(map, 1, size);
	ck_assert_int_eq(fstat(fd, &after), 0);
	close(fd);
	return before.st_ctim.tv_sec != after.st_ctim.tv_sec ||
	       before.st_ctim.tv_nsec != after.st_ctim.tv_nsec;
}

/* Writes through a mapping while a file is read are detected. */
START_TEST(writes_through_a_mapping)
{
	static uint8_t zeros[3 << 16];
	struct export_file *file;
	struct export_stat st;
	uint64_t version;
	uint8_t *map;
	struct store_fid fid;
	int fd;

	setup();
	tree_file(world.root, "mapped", zeros, sizeof(zeros), 0644);
	fd = open(tree_path(world.root, "mapped"), O_RDWR);
	map = mmap(NULL, sizeof(zeros), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert(map != MAP_FAILED);
	if (!mappings_show(map, sizeof(zeros), tree_path(world.root, "mapped"))) {
		printf("SKIP: writes through mappings do not change time stamps here\n");
	} else {
		/* the pages are written already, but not to the disk */
		tree_tick();
		fid = world_find(&world, "mapped");
		for (int i = 0; i < 3; i++) {
			ck_assert_int_eq(export_open_file(world.export, &fid, NULL, &object, &file),
					 0);
			version = object.status.version;
			memset(map, i + 2, sizeof(zeros));
			ck_assert_int_eq(world.layer->ops->stat_file(file, &st), 0);
			ck_assert(!export_stat_same(&st, &object.st));
			world.layer->ops->close(file);
			ck_assert_int_eq(get_fid(fid), 0);
			ck_assert_uint_gt(object.status.version, version);
		}
	}
	munmap(map, sizeof(zeros));
	close(fd);
	world_close(&world);
}
END_TEST

static void *asker(void *arg)
{
	struct store_fid *fid = arg;
	struct export_object *mine = malloc(sizeof(*mine));
	uint64_t last = 0;

	for (int i = 0; i < 300; i++) {
		int rc = export_get_object(world.export, fid, NULL, mine);

		ck_assert(rc == 0 || rc == STORE_VBUSY);
		if (rc == 0) {
			ck_assert_uint_ge(mine->status.version, last);
			last = mine->status.version;
		}
	}
	free(mine);
	return NULL;
}

START_TEST(versions_grow_under_concurrency)
{
	pthread_t threads[4];
	struct store_fid fid, dir;

	setup();
	fid = world_find(&world, "sub/inner");
	dir = world_find(&world, "sub");
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, asker, i & 1 ? &dir : &fid), 0);
	for (int i = 0; i < 40; i++) {
		char name[32], text[32];

		snprintf(text, sizeof(text), "inner %d", i);
		tree_text(world.root, "sub/inner", text);
		snprintf(name, sizeof(name), "sub/n%d", i);
		tree_text(world.root, name, "");
		usleep(2000);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	world_close(&world);
}
END_TEST

TEST_MAIN_WITHIN(120, "volume", status_of_each_kind, unknown_fids, everything_survives_a_restart,
		 changed_while_down, lost_state_repeats_no_fid, old_state_repeats_no_fid,
		 another_tree_is_another_content, changes_raise_the_version, replaced_by_rename,
		 retargeted_link, swapped_directories, hard_links, hard_link_in_closed_directory,
		 renamed_keeps_its_fid, too_large_directory_cached, concurrent_calls_list_once,
		 slow_disk_delays_no_others, names_come_and_go, another_kind_is_another_object,
		 directory_is_renamed, subtree_vanishes, directory_replaced_by_link,
		 five_thousand_names, odd_names, only_files_readable_by_other,
		 permission_taken_away, unlisted_changes_count,
		 chmod_of_a_directory_keeps_its_version, open_file_has_one_version,
		 writes_through_a_mapping, versions_grow_under_concurrency)
