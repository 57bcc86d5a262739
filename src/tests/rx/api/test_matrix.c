/* SPDX-License-Identifier: BSD-2-Clause */
/* Combinations of settings: a covering array of pairs. Each row transfers bulk data both ways. */
#include <stdio.h>
#include <string.h>

#include "harness.h"

/*
 * Any two values of two columns occur together in some row: the test covers_all_pairs checks that.
 */
static const struct {
	const char *tunables;
	bool ipv6, secure;
} rows[] = {
	{ "listeners=1 batch=32"
	  " gso=off gro=on steer=hash io=mmsg window=128 mtu=548", false, false },
	{ "listeners=2 batch=8"
	  " gso=off gro=off steer=cid io=msg window=32 mtu=9000", true, true },
	{ "listeners=4 batch=1"
	  " gso=on gro=off steer=wrong io=mmsg window=255 mtu=1444", false, true },
	{ "listeners=4 batch=1"
	  " gso=on gro=on steer=hash io=msg window=2 mtu=9000", true, false },
	{ "listeners=2 batch=8"
	  " gso=on gro=on steer=cid io=mmsg window=1 mtu=1444", false, false },
	{ "listeners=1 batch=32"
	  " gso=on gro=off steer=wrong io=msg window=16 mtu=548", true, true },
	{ "listeners=4 batch=8"
	  " gso=off gro=on steer=wrong io=mmsg window=16 mtu=9000", false, false },
	{ "listeners=1 batch=1"
	  " gso=off gro=off steer=hash io=msg window=1 mtu=1444", true, true },
	{ "listeners=4 batch=1"
	  " gso=on gro=on steer=cid io=msg window=128 mtu=548", true, true },
	{ "listeners=1 batch=32"
	  " gso=off gro=on steer=cid io=msg window=255 mtu=9000", true, false },
	{ "listeners=2 batch=8"
	  " gso=off gro=off steer=hash io=mmsg window=2 mtu=548", false, false },
	{ "listeners=2 batch=32"
	  " gso=on gro=on steer=wrong io=msg window=32 mtu=1444", false, false },
	{ "listeners=1 batch=32"
	  " gso=on gro=on steer=wrong io=mmsg window=2 mtu=1444", true, true },
	{ "listeners=2 batch=1"
	  " gso=off gro=on steer=cid io=msg window=16 mtu=1444", false, true },
	{ "listeners=4 batch=32"
	  " gso=on gro=on steer=wrong io=msg window=1 mtu=548", false, false },
	{ "listeners=2 batch=8"
	  " gso=on gro=off steer=wrong io=msg window=128 mtu=9000", true, true },
	{ "listeners=1 batch=1"
	  " gso=off gro=on steer=cid io=mmsg window=32 mtu=548", false, false },
	{ "listeners=2 batch=8"
	  " gso=on gro=off steer=hash io=msg window=255 mtu=548", false, false },
	{ "listeners=1 batch=8"
	  " gso=off gro=on steer=hash io=mmsg window=16 mtu=1444", false, true },
	{ "listeners=4 batch=8"
	  " gso=off gro=on steer=hash io=mmsg window=32 mtu=1444", false, true },
	{ "listeners=1 batch=8"
	  " gso=on gro=off steer=hash io=msg window=128 mtu=1444", true, true },
	{ "listeners=4 batch=8"
	  " gso=off gro=on steer=cid io=mmsg window=1 mtu=9000", true, false },
	{ "listeners=4 batch=32"
	  " gso=on gro=on steer=cid io=mmsg window=2 mtu=9000", true, false },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The values of a row by column: 8 settings and two flags. */
#define COLUMNS 10
static const struct {
	const char *name, *values[6];
} columns[COLUMNS] = {
	{ "listeners=", { "1", "2", "4" } },
	{ "batch=", { "1", "8", "32" } },
	{ "gso=", { "on", "off" } },
	{ "gro=", { "on", "off" } },
	{ "steer=", { "cid", "hash", "wrong" } },
	{ "io=", { "mmsg", "msg" } },
	{ "window=", { "1", "2", "16", "32", "128", "255" } },
	{ "mtu=", { "548", "1444", "9000" } },
	{ "ipv6", { "0", "1" } },
	{ "secure", { "0", "1" } },
};

static bool has(size_t row, unsigned column, const char *value)
{
	const char *name = columns[column].name, *at;

	if (column >= 8)
		return (column == 8 ? rows[row].ipv6 : rows[row].secure) == (*value == '1');
	at = strstr(rows[row].tunables, name) + strlen(name);
	return !strncmp(at, value, strlen(value)) && strchr(" ", at[strlen(value)]);
}

START_TEST(covers_all_pairs)
{
	for (unsigned a = 0; a < COLUMNS; a++)
		for (unsigned b = a + 1; b < COLUMNS; b++)
			for (unsigned i = 0; i < 6 && columns[a].values[i]; i++)
				for (unsigned k = 0; k < 6 && columns[b].values[k]; k++) {
					size_t row = 0;

					while (row < ROWS && !(has(row, a, columns[a].values[i]) &&
							       has(row, b, columns[b].values[k])))
						row++;
					ck_assert_msg(row < ROWS, "%s%s with %s%s is in no row",
						      columns[a].name, columns[a].values[i],
						      columns[b].name, columns[b].values[k]);
				}
}
END_TEST

/* Each row also uses a different way to read and write. */
static const unsigned hows[] = { H_PLAIN, H_INPLACE, H_FILE | H_SOME, H_INPLACE | H_SOME };

START_TEST(bulk_both_ways)
{
	struct h_options options = { .both = rows[_i].tunables, .secure = rows[_i].secure,
				     .ipv6 = rows[_i].ipv6 && h_have_ipv6() };
	struct h_ask ask = { .op = H_BOTH, .how = hows[_i % 4], .bytes = h_bulk_size(),
			     .seed = (uint32_t)_i };
	rxw_connection *connection;
	struct h_bed bed;

	h_open(&bed, &options);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &ask);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("matrix");
	TCase *tc = tcase_create("pairs");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, covers_all_pairs);
	tcase_add_loop_test(tc, bulk_both_ways, 0, ROWS);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
