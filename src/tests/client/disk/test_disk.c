/* SPDX-License-Identifier: BSD-2-Clause */
/* The disk cache: what it keeps, what it drops, how much of the disk it takes. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/disk/disk.h"
#include "client/disk/sum.h"
#include "tests/asserts.h"
#include "tests/main.h"

#define BLOCK (16u * 1024)

static char folder[64];
static struct cl_disk *disk;
static struct cl_disk_file *file;
static unsigned char bytes[BLOCK], got[BLOCK];
static char message[300];

static const struct cl_disk_version one = {1, 7}, two = {2, 7};

static int try_to_open(uint64_t most)
{
	struct cl_disk_options options = {
		.folder = folder, .bytes_most = most, .block = BLOCK, .fill_most = 100};

	return cl_disk_open(&options, &disk, message, sizeof(message));
}

static void open_disk(uint64_t most)
{
	if (try_to_open(most))
		ck_abort_msg("%s", message);
	file = cl_disk_get_file(disk, "example.org", 1, 2, 3);
	ck_assert_ptr_nonnull(file);
}

static void close_disk(void)
{
	cl_disk_put_file(file);
	cl_disk_close(disk);
}

static void set_up(uint64_t most)
{
	strcpy(folder, "/tmp/test-disk.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	open_disk(most);
	cl_disk_set_version(file, &one);
}

static const char *path_of(const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *path_of_whole(unsigned number)
{
	char name[32];

	snprintf(name, sizeof(name), "whole-%u", number);
	return path_of(name);
}

static void tear_down(void)
{
	close_disk();
	unlink(path_of("lock"));
	unlink(path_of("index"));
	unlink(path_of("blocks"));
	for (unsigned i = 1; i < 100; i++)
		unlink(path_of_whole(i));
	ck_assert_int_eq(rmdir(folder), 0);
}

static void fill(unsigned seed, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = (unsigned char)(i * 31 + seed * 17 + (i >> 8));
}

static int keep(const struct cl_disk_version *version, uint64_t number, unsigned seed,
		uint32_t length)
{
	fill(seed, length);
	return cl_disk_write_block(file, version, cl_disk_take_ticket(file), number, bytes, length);
}

static void check_kept(const struct cl_disk_version *version, uint64_t number, unsigned seed,
		       uint32_t length)
{
	fill(seed, length);
	ck_assert_int_eq(cl_disk_read_block(file, version, number, 0, got, BLOCK, false), length);
	ck_assert_int_eq(memcmp(got, bytes, length), 0);
}

static void check_missing(const struct cl_disk_version *version, uint64_t number)
{
	ck_assert_int_eq(cl_disk_read_block(file, version, number, 0, got, BLOCK, false), -ENOENT);
	ck_assert(!cl_disk_has_block(file, version, number));
}

static uint64_t used_bytes(void)
{
	static const char *const names[] = {"blocks", "index"};
	struct stat st;
	uint64_t sum = 0;

	for (unsigned i = 0; i < 2; i++)
		if (!stat(path_of(names[i]), &st))
			sum += (uint64_t)st.st_blocks * 512;
	return sum;
}

/* Blocks outlive the program, by FID, version and number; parts of them can be read. */
START_TEST(keeping)
{
	set_up(1 << 20);
	ck_assert_int_eq(keep(&one, 0, 1, BLOCK), 0);
	ck_assert_int_eq(keep(&one, 1ull << 40, 2, 100), 0);
	for (unsigned round = 0; round < 2; round++) {
		check_kept(&one, 0, 1, BLOCK);
		check_kept(&one, 1ull << 40, 2, 100);
		check_missing(&one, 1);
		check_missing(&two, 0);
		close_disk();
		open_disk(1 << 20);
		fill(1, BLOCK);
		ck_assert_int_eq(cl_disk_read_block(file, &one, 0, 5000, got, 77, false), 77);
		ck_assert_int_eq(memcmp(got, bytes + 5000, 77), 0);
		ck_assert_int_eq(cl_disk_read_block(file, &one, 1ull << 40, 90, got, 77, false),
				 10);
	}
	/* Other files. */
	cl_disk_put_file(file);
	file = cl_disk_get_file(disk, "example.org", 1, 2, 4);
	check_missing(&one, 0);
	cl_disk_put_file(file);
	file = cl_disk_get_file(disk, "example.com", 1, 2, 3);
	check_missing(&one, 0);
	tear_down();
}
END_TEST

/* Versions: own changes move it, others drop all; a late block is refused. */
START_TEST(versions)
{
	uint64_t ticket;

	set_up(1 << 20);
	ck_assert_int_eq(keep(&one, 0, 1, BLOCK), 0);
	ck_assert_int_eq(keep(&one, 1, 2, BLOCK), 0);
	ticket = cl_disk_take_ticket(file);
	cl_disk_drop_blocks(file, 1, 1);
	check_missing(&one, 1);
	ck_assert_int_eq(cl_disk_write_block(file, &one, ticket, 1, bytes, BLOCK), -EAGAIN);
	cl_disk_move_version(file, &one, &two);
	check_kept(&two, 0, 1, BLOCK);
	check_missing(&one, 0);
	ck_assert_int_eq(keep(&one, 3, 1, BLOCK), -EAGAIN);
	close_disk();
	open_disk(1 << 20);
	check_kept(&two, 0, 1, BLOCK);
	check_missing(&two, 1);
	cl_disk_set_version(file, &one);
	check_missing(&two, 0);
	check_missing(&one, 0);
	/* Moved from a version that was never here. */
	ck_assert_int_eq(keep(&one, 0, 1, BLOCK), 0);
	cl_disk_move_version(file, &two, &(struct cl_disk_version){3, 7});
	check_missing(&(struct cl_disk_version){3, 7}, 0);
	ck_assert_int_eq(keep(&(struct cl_disk_version){3, 7}, 0, 1, BLOCK), 0);
	check_missing(&(struct cl_disk_version){3, 8}, 0);
	/* Ranges. */
	for (unsigned i = 0; i < 9; i++)
		ck_assert_int_eq(keep(&(struct cl_disk_version){3, 7}, i, i, BLOCK), 0);
	cl_disk_drop_blocks(file, 5, UINT64_MAX);
	check_kept(&(struct cl_disk_version){3, 7}, 4, 4, BLOCK);
	check_missing(&(struct cl_disk_version){3, 7}, 5);
	check_missing(&(struct cl_disk_version){3, 7}, 8);
	tear_down();
}
END_TEST

/* A block whose bytes were changed on the disk is dropped, others stay. */
START_TEST(damaged_blocks)
{
	struct cl_disk_statistics statistics;
	int fd;

	set_up(1 << 20);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(keep(&one, i, i, BLOCK), 0);
	close_disk();
	fd = open(path_of("blocks"), O_RDWR);
	ck_assert_int_eq(pwrite(fd, "x", 1, BLOCK + 7000), 1);
	ck_assert_int_eq(ftruncate(fd, 3 * BLOCK + 100), 0);
	close(fd);
	open_disk(1 << 20);
	check_kept(&one, 0, 0, BLOCK);
	/* Also if only a part is read, in which nothing was changed. */
	ck_assert_int_eq(cl_disk_read_block(file, &one, 1, 0, got, 10, false), -ENOENT);
	check_missing(&one, 1);
	check_kept(&one, 2, 2, BLOCK);
	check_missing(&one, 3);
	cl_disk_read_statistics(disk, &statistics);
	ck_assert_uint_eq(statistics.blocks, 2);
	ck_assert_int_eq(keep(&one, 1, 9, BLOCK), 0);
	check_kept(&one, 1, 9, BLOCK);
	tear_down();
}
END_TEST

static size_t load(const char *name, unsigned char *to, size_t room)
{
	int fd = open(path_of(name), O_RDONLY);
	ssize_t length = read(fd, to, room);

	close(fd);
	ck_assert_int_gt(length, 0);
	return (size_t)length;
}

static void put(const char *name, const unsigned char *from, size_t length)
{
	int fd = open(path_of(name), O_WRONLY | O_TRUNC);

	ck_assert_int_eq(write(fd, from, length), (ssize_t)length);
	close(fd);
}

/* What is left is what was true at some time; `blocks` are of version one or, if moved, two. */
static void check_sound(void)
{
	for (unsigned i = 0; i < 4; i++)
		for (unsigned v = 1; v <= 2; v++) {
			struct cl_disk_version version = {v, 7};
			/* Block 2 was written again between the versions. */
			unsigned seed = i == 2 && v == 2 ? 12 : i;

			if (cl_disk_has_block(file, &version, i) &&
			    cl_disk_read_block(file, &version, i, 0, got, BLOCK, false) > 0) {
				fill(seed, BLOCK);
				ck_assert_int_eq(memcmp(got, bytes, BLOCK), 0);
			}
		}
}

/* An index that is cut, or has other bytes, at any place: never wrong bytes, and the cache works. */
START_TEST(damaged_index)
{
	static unsigned char index[8192], copy[8192];
	size_t length;

	set_up(1 << 20);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(keep(&one, i, i, BLOCK), 0);
	cl_disk_drop_blocks(file, 2, 1);
	cl_disk_move_version(file, &one, &two);
	ck_assert_int_eq(keep(&two, 2, 12, BLOCK), 0);
	close_disk();
	length = load("index", index, sizeof(index));
	for (size_t i = 0; i < 2 * length; i++) {
		memcpy(copy, index, length);
		if (i < length) {
			put("index", copy, i);
		} else {
			copy[i - length] ^= (unsigned char)(1 + i % 255);
			put("index", copy, length);
		}
		open_disk(1 << 20);
		check_sound();
		if (i % 50 == 0) {
			cl_disk_set_version(file, &two);
			ck_assert_int_eq(keep(&two, 3, 3, BLOCK), 0);
			check_kept(&two, 3, 3, BLOCK);
		}
		close_disk();
	}
	open_disk(1 << 20);
	tear_down();
}
END_TEST

/* The folder takes no more than it may, whatever the sizes of blocks; the newest are there. */
START_TEST(bounded)
{
	const uint64_t most = 512 * 1024;
	unsigned newest = 0;

	set_up(most);
	for (unsigned i = 0; i < 2000; i++) {
		uint32_t length = i % 400 < 200 ? BLOCK : 1 + i * 37 % 5000;

		ck_assert_int_eq(keep(&one, i, i, length), 0);
		check_kept(&one, i, i, length);
		ck_assert_uint_le(used_bytes(), most);
	}
	for (unsigned i = 1900; i < 2000; i++)
		newest += cl_disk_has_block(file, &one, i);
	ck_assert_uint_gt(newest, 20);
	/* A smaller limit at the next start. */
	close_disk();
	open_disk(most / 4);
	ck_assert_uint_le(used_bytes(), most / 4);
	ck_assert_int_eq(keep(&one, 1, 1, BLOCK), 0);
	check_kept(&one, 1, 1, BLOCK);
	tear_down();
}
END_TEST

/* One program at a time, in a folder of its own. */
START_TEST(folder_rules)
{
	struct cl_disk *first;

	set_up(1 << 20);
	first = disk;
	ck_assert_int_eq(try_to_open(1 << 20), -EBUSY);
	ck_assert_ptr_nonnull(strstr(message, folder));
	disk = first;
	close_disk();
	ck_assert_int_eq(chmod(folder, 0777), 0);
	ck_assert_int_eq(try_to_open(1 << 20), -EACCES);
	ck_assert_int_eq(chmod(folder, 0755), 0);
	open_disk(1 << 20);
	tear_down();
}
END_TEST

/* A full disk is nobody's error but the cache's. */
START_TEST(full_disk)
{
	struct cl_disk_statistics statistics;
	unsigned kept = 0;

	strcpy(folder, "/tmp/test-disk.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, "size=256k,mode=700")) {
		rmdir(folder);
		return; /* not permitted here */
	}
	open_disk(1 << 20);
	cl_disk_set_version(file, &one);
	for (unsigned i = 0; i < 100; i++)
		kept += keep(&one, i, i, BLOCK) == 0;
	ck_assert_uint_ge(kept, 8);
	for (unsigned i = 0; i < 100; i++)
		if (cl_disk_has_block(file, &one, i))
			check_kept(&one, i, i, BLOCK);
	cl_disk_read_statistics(disk, &statistics);
	ck_assert_uint_ge(statistics.blocks, 4);
	close_disk();
	open_disk(1 << 20);
	close_disk();
	umount(folder);
	rmdir(folder);
}
END_TEST

#define WHOLE (2 * BLOCK + 300) /* bytes of a file that is kept as a whole */

static int keep_part(const struct cl_disk_version *version, unsigned number, unsigned seed)
{
	return keep(version, number, seed + number, number == 2 ? 300 : BLOCK);
}

/* A descriptor of the whole; -ENOENT. */
static int lend(const struct cl_disk_version *version, struct cl_disk_whole **lent)
{
	return cl_disk_lend_whole(file, version, WHOLE, lent);
}

static void check_whole(int fd, unsigned seed)
{
	for (unsigned i = 0; i < 3; i++) {
		uint32_t length = i == 2 ? 300 : BLOCK;

		fill(seed + i, length);
		ck_assert_int_eq(pread(fd, got, BLOCK, i * (off_t)BLOCK), length);
		ck_assert_int_eq(memcmp(got, bytes, length), 0);
	}
}

/* A whole is lent once all of it is there, and stays as it is whatever becomes of the file. */
START_TEST(wholes)
{
	struct cl_disk_whole *first, *second, *ignored;
	int fd, other;

	set_up(1 << 20);
	cl_disk_keep_whole(file, WHOLE);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(lend(&one, &ignored), -ENOENT);
		ck_assert_int_eq(keep_part(&one, i, 1), 0);
		check_kept(&one, i, 1 + i, i == 2 ? 300 : BLOCK);
	}
	ck_assert_int_eq(keep_part(&one, 1, 1), 0);
	fd = lend(&one, &first);
	ck_assert_int_ge(fd, 0);
	check_whole(fd, 1);
	ck_assert_int_eq(lend(&two, &ignored), -ENOENT);
	cl_disk_set_version(file, &two);
	check_missing(&one, 0);
	check_missing(&two, 0);
	for (unsigned i = 3; i-- > 0;)
		ck_assert_int_eq(keep_part(&two, i, 5), 0);
	other = lend(&two, &second);
	ck_assert_int_ge(other, 0);
	check_whole(fd, 1);
	check_whole(other, 5);
	ck_assert_int_eq(access(path_of_whole(1), F_OK), 0);
	cl_disk_return_whole(first);
	ck_assert_int_ne(access(path_of_whole(1), F_OK), 0);
	/* A part that is dropped takes the rest with it. */
	cl_disk_drop_blocks(file, 1, 1);
	check_missing(&two, 0);
	check_whole(fd, 1);
	check_whole(other, 5);
	cl_disk_return_whole(second);
	ck_assert_int_ne(access(path_of_whole(2), F_OK), 0);
	close(fd);
	close(other);
	tear_down();
}
END_TEST

/* After a start a whole is lent once each block was read and is sound. */
START_TEST(wholes_later)
{
	struct cl_disk_whole *lent;
	int fd;

	set_up(1 << 20);
	cl_disk_keep_whole(file, WHOLE);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(keep_part(&one, i, 1), 0);
	for (unsigned round = 0; round < 2; round++) {
		close_disk();
		fd = open(path_of_whole(77), O_RDWR | O_CREAT, 0600);
		ck_assert_int_ge(fd, 0);
		close(fd);
		open_disk(1 << 20);
		ck_assert_int_ne(access(path_of_whole(77), F_OK), 0);
		for (unsigned i = 0; i < 3; i++) {
			ck_assert_int_eq(lend(&one, &lent), -ENOENT);
			check_kept(&one, i, 1 + i, i == 2 ? 300 : BLOCK);
		}
		fd = lend(&one, &lent);
		ck_assert_int_ge(fd, 0);
		check_whole(fd, 1);
		close(fd);
		cl_disk_return_whole(lent);
	}
	/* Damaged: all of it goes, and comes again. */
	close_disk();
	fd = open(path_of_whole(1), O_RDWR);
	ck_assert_int_eq(pwrite(fd, "x", 1, BLOCK + 7000), 1);
	close(fd);
	open_disk(1 << 20);
	cl_disk_keep_whole(file, WHOLE);
	check_kept(&one, 0, 1, BLOCK);
	ck_assert_int_eq(cl_disk_read_block(file, &one, 1, 0, got, 10, false), -ENOENT);
	check_missing(&one, 0);
	ck_assert_int_ne(access(path_of_whole(1), F_OK), 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(keep_part(&one, i, 1), 0);
	fd = lend(&one, &lent);
	check_whole(fd, 1);
	close(fd);
	cl_disk_return_whole(lent);
	/* Removed by somebody. */
	close_disk();
	ck_assert_int_eq(unlink(path_of_whole(2)), 0);
	open_disk(1 << 20);
	check_missing(&one, 0);
	tear_down();
}
END_TEST

/* A whole that could not be written has its file as long as it has a place, also when nobody else has it. */
START_TEST(empty_wholes)
{
	struct cl_disk_statistics statistics;

	set_up(1 << 20);
	cl_disk_keep_whole(file, WHOLE);
	ck_assert_int_eq(mkdir(path_of_whole(1), 0700), 0);
	ck_assert_int_lt(keep_part(&one, 0, 1), 0);
	cl_disk_put_file(file);
	cl_disk_read_statistics(disk, &statistics);
	ck_assert_uint_eq(statistics.files, 1);
	file = cl_disk_get_file(disk, "example.org", 1, 2, 3);
	check_missing(&one, 0);
	cl_disk_set_version(file, &two);
	ck_assert_int_eq(rmdir(path_of_whole(1)), 0);
	tear_down();
}
END_TEST

/* Wholes make room like blocks, but for what is lent. */
START_TEST(bounded_wholes)
{
	const uint64_t most = 512 * 1024;
	struct cl_disk_statistics statistics;
	struct cl_disk_whole *lent;
	struct cl_disk_file *own;
	int fd;

	set_up(most);
	cl_disk_keep_whole(file, WHOLE);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(keep_part(&one, i, 1), 0);
	fd = lend(&one, &lent);
	ck_assert_int_ge(fd, 0);
	for (unsigned n = 0; n < 200; n++) {
		own = file;
		file = cl_disk_get_file(disk, "example.org", 1, 100 + n, 3);
		cl_disk_set_version(file, &one);
		if (n % 3)
			cl_disk_keep_whole(file, WHOLE);
		for (unsigned i = 0; i < 3; i++) {
			ck_assert_int_eq(keep_part(&one, i, n), 0);
			check_kept(&one, i, n + i, i == 2 ? 300 : BLOCK);
		}
		cl_disk_put_file(file);
		file = own;
		cl_disk_read_statistics(disk, &statistics);
		ck_assert_uint_le(statistics.bytes, most);
	}
	check_whole(fd, 1);
	check_kept(&one, 1, 2, BLOCK);
	close(fd);
	cl_disk_return_whole(lent);
	own = file;
	file = cl_disk_get_file(disk, "example.org", 1, 99, 3);
	cl_disk_set_version(file, &one);
	for (unsigned i = 0; i < 200; i++)
		ck_assert_int_eq(keep(&one, i, i, BLOCK), 0);
	cl_disk_put_file(file);
	file = own;
	check_missing(&one, 0);
	ck_assert_int_ne(access(path_of_whole(1), F_OK), 0);
	/* Too large for a quarter of the cache: in blocks. */
	cl_disk_set_version(file, &two);
	cl_disk_keep_whole(file, most);
	ck_assert_int_eq(keep(&two, 0, 1, BLOCK), 0);
	check_kept(&two, 0, 1, BLOCK);
	close_disk();
	open_disk(most / 4);
	cl_disk_read_statistics(disk, &statistics);
	ck_assert_uint_le(statistics.bytes, most / 4);
	for (unsigned i = 100; i < 250; i++)
		unlink(path_of_whole(i));
	tear_down();
}
END_TEST

/* Every changed byte changes the sum, as do length and order. */
START_TEST(sums)
{
	uint64_t sum;

	fill(3, BLOCK);
	for (uint32_t length = 0; length < 300; length++) {
		sum = disk_sum(0, bytes, length);
		ck_assert_uint_ne(sum, disk_sum(0, bytes, length + 1));
		ck_assert_uint_ne(sum, disk_sum(1, bytes, length));
		for (uint32_t i = 0; i < length; i++) {
			bytes[i] ^= 1 << (i & 7);
			ck_assert_uint_ne(sum, disk_sum(0, bytes, length));
			bytes[i] ^= 1 << (i & 7);
		}
	}
	memset(bytes, 0, BLOCK);
	sum = disk_sum(0, bytes, BLOCK);
	ck_assert_uint_ne(sum, disk_sum(0, bytes, BLOCK - 64));
}
END_TEST

TEST_MAIN_WITHIN(60, "disk", keeping, versions, damaged_blocks, damaged_index, bounded,
		 folder_rules, full_disk, wholes, wholes_later, empty_wholes, bounded_wholes, sums)
