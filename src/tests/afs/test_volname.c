/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/values.c: names of volumes. */
#include "tests/tools/testing.h"

#include "afs/volname.h"

START_TEST(names)
{
	static const char *const good[] = {"root.cell", "a", "1a-_.", "12345x"};
	static const char *const bad[] = {
		"", "12345", "a b", "../x", "data.readonly", "data.backup",
	};
	char longest[VL_MAXNAMELEN + 1];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(afs_volume_name_valid(good[i]), "refused \"%s\"", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!afs_volume_name_valid(bad[i]), "took \"%s\"", bad[i]);
	memset(longest, 'v', sizeof(longest));
	longest[VL_MAXNAMELEN] = 0;
	ck_assert(!afs_volume_name_valid(longest));
	longest[VL_MAXNAMELEN - 1] = 0;
	ck_assert(afs_volume_name_valid(longest));
	ck_assert(!afs_volume_name_has_room(longest));
	longest[56] = 0;
	ck_assert(!afs_volume_name_has_room(longest));
	longest[55] = 0;
	ck_assert(afs_volume_name_has_room(longest));
	strcat(longest, ".readonly");
	ck_assert_uint_eq(strlen(longest), VL_MAXNAMELEN - 1);
}
END_TEST

TEST_MAIN("volname", names)
