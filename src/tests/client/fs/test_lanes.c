/* SPDX-License-Identifier: BSD-2-Clause */
/* The work of threads that notify the kernel, divided among cells. */
#include "rxafs/lanes.h"

#include "tests/main.h"

#define MOST 256

static struct lanes lanes;

/* Work of a cell that is waiting; taken pieces are never done. */
static unsigned occupy(uint32_t cell, unsigned pieces)
{
	static struct lane_item items[64 * MOST];
	static unsigned used;
	unsigned taken = 0;

	for (unsigned i = 0; i < pieces; i++) {
		const struct rxafs_awaited server = {true, cell, i};

		ck_assert(lanes_add(&lanes, &server, &items[used++]));
	}
	while (lanes_take(&lanes, false))
		taken++;
	return taken;
}

/* However many cells keep their work: one whose work was over soon gets a thread. */
START_TEST(many_cells_that_keep_their_work)
{
	const struct rxafs_awaited good = {true, 1, 1};
	struct lane_item item;

	lanes.most = MOST;
	ck_assert(lanes_add(&lanes, &good, &item));
	ck_assert_ptr_eq(lanes_take(&lanes, false), &item);
	lanes_done(&lanes, item.lane, item.started);
	for (uint32_t cell = 2; cell < 2 + 200; cell++)
		ck_assert_uint_le(occupy(cell, 20), LANE_CELL_MOST);
	ck_assert_uint_le(lanes.running, MOST - MOST / LANE_RESERVE);
	ck_assert(!lanes_ready(&lanes));
	ck_assert(lanes_add(&lanes, &good, &item));
	ck_assert(lanes_ready(&lanes));
	ck_assert_ptr_eq(lanes_take(&lanes, false), &item);
	lanes_done(&lanes, item.lane, item.started);
}
END_TEST

TEST_MAIN("lanes", many_cells_that_keep_their_work)
