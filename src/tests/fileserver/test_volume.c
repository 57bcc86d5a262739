/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of fileserver/volume.c, image.c and access.c: FIDs, versions, images, restarts, rights. */
#include "fixture.h"

#include <fcntl.h>
#include <sys/time.h>

#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "tests/main.h"

static struct world world;
static struct fsd_object object;

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
	AFSFid fid = world_fid(&world, path);

	ck_assert_msg(fid.Vnode, "no name %s", path);
	return fsd_volume_get(world.service.volume, &fid, NULL, &object);
}

static int get_fid(AFSFid fid)
{
	return fsd_volume_get(world.service.volume, &fid, NULL, &object);
}

START_TEST(status_of_each_kind)
{
	setup();
	ck_assert_int_eq(get(""), 0);
	ck_assert_uint_eq(object.status.FileType, AFS_TYPE_DIR);
	ck_assert_uint_eq(afs_status_length(&object.status), 2048);
	ck_assert_uint_eq(object.status.LinkCount, 3);
	ck_assert_uint_eq(object.status.ParentVnode, 1);
	ck_assert_uint_eq(object.status.UnixModeBits, 0755);
	ck_assert_uint_eq(object.status.CallerAccess, 9);
	ck_assert_uint_eq(object.status.AnonymousAccess, 9);

	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_eq(object.status.FileType, AFS_TYPE_FILE);
	ck_assert_uint_eq(afs_status_length(&object.status), 13);
	ck_assert_uint_eq(object.status.ParentVnode, 1);
	ck_assert_uint_eq(object.status.ParentUnique, 1);
	ck_assert_uint_eq(afs_status_version(&object.status), 1);
	ck_assert_uint_eq(object.fid.Vnode % 2, 0);

	ck_assert_int_eq(get("sub/deep"), 0);
	ck_assert_uint_eq(object.fid.Vnode % 2, 1);
	ck_assert_uint_eq(object.status.ParentVnode, object.fid.Vnode);
	ck_assert_uint_eq(object.status.ParentUnique, object.fid.Unique);
	ck_assert_str_eq(object.path, "sub/deep");

	ck_assert_int_eq(get("link"), 0);
	ck_assert_uint_eq(object.status.FileType, AFS_TYPE_SYMLINK);
	ck_assert_uint_eq(afs_status_length(&object.status), 9);
	ck_assert_uint_ne(object.status.UnixModeBits & 0111, 0);
	world_close(&world);
}
END_TEST

START_TEST(unknown_fids)
{
	AFSFid fid;

	setup();
	fid = world_fid(&world, "hello.txt");
	ck_assert_int_eq(get_fid((AFSFid){0, 1, 1}), -EINVAL);
	ck_assert_int_eq(get_fid((AFSFid){fid.Volume, 0, 1}), -EINVAL);
	ck_assert_int_eq(get_fid((AFSFid){fid.Volume + 1, 1, 1}), AFS_VNOVOL);
	ck_assert_int_eq(get_fid((AFSFid){fid.Volume, 4444, 1}), AFS_VNOVNODE);
	fid.Unique++;
	ck_assert_int_eq(get_fid(fid), AFS_VNOVNODE);
	ck_assert_int_eq(get_fid((AFSFid){fid.Volume, 1, 2}), AFS_VNOVNODE);
	world_close(&world);
}
END_TEST

START_TEST(everything_survives_a_restart)
{
	AFSFid before[4], after;
	uint64_t versions[4];
	static const char *const paths[4] = {"hello.txt", "sub", "sub/inner", "link"};
	uint32_t creation;
	struct fsd_image *image;
	uint8_t *copy;

	setup();
	creation = fsd_volume_creation(world.service.volume);
	for (int i = 0; i < 4; i++) {
		before[i] = world_fid(&world, paths[i]);
		ck_assert_int_eq(get(paths[i]), 0);
		versions[i] = afs_status_version(&object.status);
	}
	ck_assert_int_eq(get(""), 0);
	ck_assert_int_eq(fsd_volume_image(world.service.volume, &object, NULL, &image), 0);
	copy = malloc(image->length);
	memcpy(copy, image->bytes, image->length);
	fsd_image_release(world.service.volume, image);

	world_reopen(&world, false);
	ck_assert_uint_eq(fsd_volume_creation(world.service.volume), creation);
	for (int i = 0; i < 4; i++) {
		/* by FID first, as a client does that remembers it */
		ck_assert_int_eq(get_fid(before[i]), 0);
		ck_assert_uint_eq(afs_status_version(&object.status), versions[i]);
		after = world_fid(&world, paths[i]);
		ck_assert_mem_eq(&before[i], &after, sizeof(after));
	}
	ck_assert_int_eq(get(""), 0);
	ck_assert_int_eq(fsd_volume_image(world.service.volume, &object, NULL, &image), 0);
	ck_assert_mem_eq(copy, image->bytes, image->length);
	fsd_image_release(world.service.volume, image);
	ck_assert_uint_eq(world.changes, 0);
	free(copy);
	world_close(&world);
}
END_TEST

START_TEST(changed_while_down)
{
	AFSFid fid;

	setup();
	fid = world_fid(&world, "hello.txt");
	ck_assert_int_eq(get("hello.txt"), 0);
	tree_text(world.root, "hello.txt", "other bytes!\n"); /* of the same length */
	world_reopen(&world, false);
	ck_assert_int_eq(get_fid(fid), 0);
	ck_assert_uint_eq(afs_status_version(&object.status), 2);
	world_close(&world);
}
END_TEST

START_TEST(another_tree_is_another_content)
{
	uint32_t creation;
	AFSFid fid;

	setup();
	fid = world_fid(&world, "hello.txt");
	creation = fsd_volume_creation(world.service.volume);
	tree_remove(world.root);
	world.root = tree_make();
	tree_text(world.root, "hello.txt", "hello, world\n");
	world_reopen(&world, false);
	ck_assert_uint_gt(fsd_volume_creation(world.service.volume), creation);
	ck_assert_int_eq(get_fid(fid), AFS_VNOVNODE);
	AFSFid now = world_fid(&world, "hello.txt");
	ck_assert_uint_ne(now.Unique, fid.Unique);
	ck_assert_int_eq(get(""), 0);
	ck_assert_uint_gt(afs_status_version(&object.status), 1);
	world_close(&world);
}
END_TEST

START_TEST(changes_raise_the_version)
{
	struct timeval times[2] = {{1000000000, 0}, {1000000000, 0}};
	uint64_t version;

	setup();
	ck_assert_int_eq(get("hello.txt"), 0);
	version = afs_status_version(&object.status);
	tree_tick();
	tree_text(world.root, "hello.txt", "hello, World\n");
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_eq(afs_status_version(&object.status), version + 1);
	ck_assert_uint_eq(world.changes, 1);
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_eq(afs_status_version(&object.status), version + 1);

	/* even when the writer puts the old date back */
	tree_tick();
	tree_text(world.root, "hello.txt", "hello, worlD\n");
	ck_assert_int_eq(utimes(tree_path(world.root, "hello.txt"), times), 0);
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_eq(afs_status_version(&object.status), version + 2);
	ck_assert_uint_eq(object.status.ClientModTime, 1000000000);

	/* a replacement by rename keeps the FID: it is the same name */
	AFSFid fid = object.fid;
	tree_text(world.root, "new", "hello, world\n");
	ck_assert_int_eq(rename(tree_path(world.root, "new"), tree_path(world.root, "hello.txt")),
			 0);
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_eq(afs_status_version(&object.status), version + 3);
	ck_assert_mem_eq(&object.fid, &fid, sizeof(fid));
	world_close(&world);
}
END_TEST

START_TEST(names_come_and_go)
{
	uint64_t version;
	AFSFid old, new;

	setup();
	ck_assert_int_eq(get(""), 0);
	version = afs_status_version(&object.status);
	old = world_fid(&world, "hello.txt");

	tree_tick();
	ck_assert_int_eq(unlink(tree_path(world.root, "hello.txt")), 0);
	ck_assert_int_eq(get(""), 0);
	ck_assert_uint_eq(afs_status_version(&object.status), version + 1);
	ck_assert_int_eq(get_fid(old), AFS_VNOVNODE);
	ck_assert_uint_eq(world_fid(&world, "hello.txt").Vnode, 0);

	tree_tick();
	tree_text(world.root, "hello.txt", "hello, world\n");
	new = world_fid(&world, "hello.txt");
	ck_assert_uint_ne(new.Vnode, 0);
	ck_assert_uint_ne(new.Unique, old.Unique);
	ck_assert_int_eq(get_fid(old), AFS_VNOVNODE);

	/*
	 * gone and back before anybody looked at the directory, but not before the file was asked
	 * for
	 */
	tree_tick();
	ck_assert_int_eq(unlink(tree_path(world.root, "hello.txt")), 0);
	ck_assert_int_eq(get_fid(new), AFS_VNOVNODE);
	tree_text(world.root, "hello.txt", "hello, world\n");
	ck_assert_int_eq(get_fid(new), AFS_VNOVNODE);
	ck_assert_uint_ne(world_fid(&world, "hello.txt").Unique, new.Unique);
	world_close(&world);
}
END_TEST

START_TEST(another_kind_is_another_object)
{
	AFSFid file;

	setup();
	file = world_fid(&world, "hello.txt");
	tree_tick();
	ck_assert_int_eq(unlink(tree_path(world.root, "hello.txt")), 0);
	tree_dir(world.root, "hello.txt", 0755);
	ck_assert_int_eq(get_fid(file), AFS_VNOVNODE);
	ck_assert_uint_eq(world_fid(&world, "hello.txt").Vnode % 2, 1);
	ck_assert_int_eq(get("hello.txt"), 0);
	ck_assert_uint_eq(object.status.FileType, AFS_TYPE_DIR);
	world_close(&world);
}
END_TEST

START_TEST(subtree_vanishes)
{
	AFSFid inner, deep;

	setup();
	inner = world_fid(&world, "sub/inner");
	deep = world_fid(&world, "sub/deep");
	tree_tick();
	ck_assert_int_eq(rename(tree_path(world.root, "sub"), tree_path(world.root, "moved")), 0);
	ck_assert_int_eq(get_fid(inner), AFS_VNOVNODE);
	ck_assert_int_eq(get_fid(deep), AFS_VNOVNODE);
	ck_assert_int_eq(get("moved/inner"), 0);
	world_close(&world);
}
END_TEST

START_TEST(directory_replaced_by_link)
{
	AFSFid inner;

	setup();
	inner = world_fid(&world, "sub/inner");
	ck_assert_int_eq(rename(tree_path(world.root, "sub"), tree_path(world.root, "aside")), 0);
	tree_link(world.root, "sub", "aside");
	ck_assert_int_eq(get_fid(inner), AFS_VNOVNODE);
	world_close(&world);
}
END_TEST

START_TEST(five_thousand_names)
{
	AFSFid fid;
	struct fsd_image *image;
	uint32_t cursor = 0, n = 0;
	struct afs_dir_entry entry;
	char name[64];

	setup();
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "sub/a-rather-long-name-%04d", i);
		tree_text(world.root, name, "");
	}
	ck_assert_int_eq(get("sub"), 0);
	ck_assert_int_eq(fsd_volume_image(world.service.volume, &object, NULL, &image), 0);
	ck_assert_uint_eq(image->length, afs_status_length(&object.status));
	while (afs_dir_next(image->bytes, image->length, &cursor, &entry) == 1)
		n++;
	ck_assert_uint_eq(n, 5000 + 4);
	fsd_image_release(world.service.volume, image);
	fid = world_fid(&world, "sub/a-rather-long-name-4999");
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
	/* clients could never ask for this one */
	ck_assert_uint_eq(world_fid(&world, "ends@sys").Vnode, 0);
	ck_assert_int_eq(mkfifo(tree_path(world.root, "fifo"), 0666), 0);
	ck_assert_uint_eq(world_fid(&world, "fifo").Vnode, 0);
	world_close(&world);
}
END_TEST

START_TEST(only_what_other_may_read)
{
	AFSFid secret, behind;

	setup();
	tree_file(world.root, "secret", "s", 1, 0640);
	tree_dir(world.root, "closed", 0750);
	tree_text(world.root, "closed/open", "x");
	tree_dir(world.root, "nolist", 0711);
	tree_text(world.root, "nolist/known", "x");
	/* the names are learnt by a server that may see all */
	world_reopen(&world, true);
	secret = world_fid(&world, "secret");
	behind = world_fid(&world, "closed/open");
	AFSFid closed = world_fid(&world, "closed"), nolist = world_fid(&world, "nolist");
	AFSFid known = world_fid(&world, "nolist/known");

	ck_assert_int_eq(get_fid(secret), 0);
	ck_assert_int_eq(get_fid(behind), 0);
	world_reopen(&world, false);
	ck_assert_int_eq(get_fid(secret), -EACCES);
	ck_assert_int_eq(get_fid(behind), -EACCES);
	ck_assert_int_eq(get_fid(closed), 0);
	ck_assert(!object.may_read);
	ck_assert_uint_eq(object.status.CallerAccess, 0);
	ck_assert_uint_eq(object.status.AnonymousAccess, 0);
	ck_assert_uint_eq(afs_status_length(&object.status), 2048);
	ck_assert_int_eq(get_fid(nolist), 0);
	ck_assert(!object.may_read);
	ck_assert_int_eq(get_fid(known), 0);
	world_close(&world);
}
END_TEST

START_TEST(permission_taken_away)
{
	AFSFid inner;

	setup();
	inner = world_fid(&world, "sub/inner");
	ck_assert_int_eq(get_fid(inner), 0);
	ck_assert_int_eq(chmod(tree_path(world.root, "sub/inner"), 0600), 0);
	ck_assert_int_eq(get_fid(inner), -EACCES);
	ck_assert_int_eq(chmod(tree_path(world.root, "sub/inner"), 0644), 0);
	ck_assert_int_eq(get_fid(inner), 0);
	ck_assert_int_eq(chmod(tree_path(world.root, "sub"), 0700), 0);
	fsd_volume_forget_access(world.service.volume);
	ck_assert_int_eq(get_fid(inner), -EACCES);
	world_close(&world);
}
END_TEST

/* A directory whose listing was forbidden for a while must not come back with an old version. */
START_TEST(unlisted_changes_count)
{
	AFSFid sub;
	uint64_t version;

	setup();
	sub = world_fid(&world, "sub");
	ck_assert_int_eq(get_fid(sub), 0);
	version = afs_status_version(&object.status);
	tree_tick();
	ck_assert_int_eq(chmod(tree_path(world.root, "sub"), 0700), 0);
	tree_text(world.root, "sub/new", "x");
	ck_assert_int_eq(get_fid(sub), 0);
	ck_assert(!object.may_read);
	world_reopen(&world, true);
	ck_assert_int_eq(get_fid(sub), 0);
	ck_assert_uint_eq(afs_status_version(&object.status), version + 1);
	world_close(&world);
}
END_TEST

START_TEST(chmod_of_a_directory_keeps_its_version)
{
	AFSFid sub;
	uint64_t version;

	setup();
	sub = world_fid(&world, "sub");
	ck_assert_int_eq(get_fid(sub), 0);
	version = afs_status_version(&object.status);
	tree_tick();
	world.changes = 0;
	ck_assert_int_eq(chmod(tree_path(world.root, "sub"), 0775), 0);
	ck_assert_int_eq(get_fid(sub), 0);
	ck_assert_uint_eq(afs_status_version(&object.status), version);
	ck_assert_uint_eq(object.status.UnixModeBits, 0775);
	ck_assert_uint_eq(world.changes, 1);
	world_close(&world);
}
END_TEST

START_TEST(open_file_is_of_one_version)
{
	AFSFid fid;
	struct fsd_file *file;
	struct fsd_stat st;

	setup();
	fid = world_fid(&world, "hello.txt");
	/* just written: the time stamp could not show a second change */
	tree_text(world.root, "hello.txt", "hello again!\n");
	ck_assert_int_eq(fsd_volume_open_file(world.service.volume, &fid, NULL, &object, &file), 0);
	tree_text(world.root, "hello.txt", "hello once more\n");
	ck_assert_int_eq(world.layer->ops->stat_file(file, &st), 0);
	ck_assert(!fsd_stat_same(&st, &object.st));
	world.layer->ops->close(file);
	fid = world_fid(&world, "sub");
	ck_assert_int_eq(fsd_volume_open_file(world.service.volume, &fid, NULL, &object, &file),
			 -EISDIR);
	world_close(&world);
}
END_TEST

static void *asker(void *arg)
{
	AFSFid *fid = arg;
	struct fsd_object *mine = malloc(sizeof(*mine));
	uint64_t last = 0;

	for (int i = 0; i < 300; i++) {
		int rc = fsd_volume_get(world.service.volume, fid, NULL, mine);

		ck_assert(rc == 0 || rc == AFS_VBUSY);
		if (rc == 0) {
			ck_assert_uint_ge(afs_status_version(&mine->status), last);
			last = afs_status_version(&mine->status);
		}
	}
	free(mine);
	return NULL;
}

START_TEST(versions_grow_under_concurrency)
{
	pthread_t threads[4];
	AFSFid fid, dir;

	setup();
	fid = world_fid(&world, "sub/inner");
	dir = world_fid(&world, "sub");
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

START_TEST(volume_status)
{
	AFSFetchVolumeStatus s;

	setup();
	ck_assert_int_eq(fsd_volume_space(world.service.volume, &s), 0);
	ck_assert_str_eq(fsd_volume_name(world.service.volume), "data");
	ck_assert_int_eq(s.Type, 0);
	ck_assert_int_eq(s.Online, 1);
	ck_assert_int_gt(s.PartMaxBlocks, 0);
	ck_assert_int_le(s.PartBlocksAvail, s.PartMaxBlocks);
	world_close(&world);
}
END_TEST

TEST_MAIN_WITHIN(120, "volume", status_of_each_kind, unknown_fids,
	  everything_survives_a_restart, changed_while_down, another_tree_is_another_content,
	  changes_raise_the_version, names_come_and_go, another_kind_is_another_object,
	  subtree_vanishes, directory_replaced_by_link, five_thousand_names, odd_names,
	  only_what_other_may_read, permission_taken_away, unlisted_changes_count,
	  chmod_of_a_directory_keeps_its_version, open_file_is_of_one_version,
	  versions_grow_under_concurrency, volume_status)
