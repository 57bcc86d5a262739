/* SPDX-License-Identifier: BSD-2-Clause */
/* Lengths of files as programs see them, whatever a server tells. */
#include "client/fs/operate.h"
#include "client/fs/show.h"
#include "tests/main.h"

START_TEST(lengths_are_shown)
{
	static const struct {
		uint64_t told;
		int64_t size, blocks;
	} known[] = {{0, 0, 0},
		     {1, 1, 1},
		     {512, 512, 1},
		     {513, 513, 2},
		     {INT64_MAX - 1, INT64_MAX - 1, INT64_MAX / 512 + 1},
		     {INT64_MAX, INT64_MAX, INT64_MAX / 512 + 1},
		     {(uint64_t)INT64_MAX + 1, INT64_MAX, INT64_MAX / 512 + 1},
		     {UINT64_MAX, INT64_MAX, INT64_MAX / 512 + 1}};
	rxafs_client client = {0};
	struct fs_vnode vnode = {.client = &client, .lock = PTHREAD_MUTEX_INITIALIZER};
	rxafs_object object = {.client = &client, .what = FS_PLAIN, .vnode = &vnode};
	struct rxafs_request request = {0};

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		const struct cl_status status = {.kind = RXAFS_DIRECTORY, .size = known[i].told};
		struct rxafs_attributes shown;

		fs_show(&object, &request, &status, &shown);
		ck_assert_int_eq(shown.stat.st_size, known[i].size);
		ck_assert_int_eq(shown.stat.st_blocks, known[i].blocks);
	}
}
END_TEST

TEST_MAIN("lengths", lengths_are_shown)
