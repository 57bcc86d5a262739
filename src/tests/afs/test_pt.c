/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/pt.xg with bytes recorded from servers of another make (afs-location 10). */
#include <string.h>

#include "tests/afs/known.h"

#include "afs/pt.h"

START_TEST(names_to_ids)
{
	prname names[2] = {"system:anyuser", "nosuch"};
	const namelist list = {2, names};
	int32_t over;
	idlist ids;
	prlist cps;

	known_answer("00000002 ffffff9b 00007ffe");
	ck_assert_int_eq(PR_NameToID(known_peer(), &list, &ids), 0);
	known_request("000001f8 00000002 00000073 00000079 00000073 00000074 00000065 0000006d "
		      "0000003a 00000061 0000006e 00000079 00000075 00000073 00000065 00000072 "
		      "00000000*50 0000006e 0000006f 00000073 00000075 00000063 00000068 "
		      "00000000*58");
	ck_assert_uint_eq(ids.len, 2);
	ck_assert_int_eq(ids.val[0], -101);
	ck_assert_int_eq(ids.val[1], 32766);
	xdrfree_idlist(&ids);

	known_answer("00000002 ffffff9b 00007ffe 00000000");
	ck_assert_int_eq(PR_GetCPS(known_peer(), 32766, &cps, &over), 0);
	known_request("000001fc 00007ffe");
	ck_assert_uint_eq(cps.len, 2);
	ck_assert_int_eq(cps.val[1], 32766);
	ck_assert_int_eq(over, 0);
	xdrfree_prlist(&cps);
}
END_TEST

KNOWN_MAIN("pt", names_to_ids)
