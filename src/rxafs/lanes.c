/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of work for each server. */
#include "rxafs/lanes.h"

#include <assert.h>
#include <stdlib.h>

struct cell_work {
	struct cell_work *next;
	uint32_t number;
	unsigned running, lanes;
};

struct lane {
	struct lane *next;
	struct cell_work *cell;
	uint32_t server;
	unsigned running;
	struct lane_item *first, **last; /* that wait */
};

static struct cell_work *work_of_cell(struct lanes *lanes, uint32_t number)
{
	struct cell_work *cell = lanes->cells;

	while (cell && cell->number != number)
		cell = cell->next;
	if (cell)
		return cell;
	cell = calloc(1, sizeof *cell);
	if (!cell)
		return NULL;
	cell->number = number;
	cell->next = lanes->cells;
	lanes->cells = cell;
	return cell;
}

static void drop_cell_if_idle(struct lanes *lanes, struct cell_work *cell)
{
	struct cell_work **at = &lanes->cells;

	if (cell->lanes)
		return;
	assert(!cell->running);
	while (*at != cell)
		at = &(*at)->next;
	*at = cell->next;
	free(cell);
}

static struct lane *lane_of_server(struct lanes *lanes, const struct rxafs_awaited *server)
{
	struct lane **at = &lanes->first, *lane;
	struct cell_work *cell;

	for (; *at; at = &(*at)->next)
		if ((*at)->server == server->server && (*at)->cell->number == server->cell)
			return *at;
	cell = work_of_cell(lanes, server->cell);
	if (!cell)
		return NULL;
	lane = calloc(1, sizeof *lane);
	if (!lane) {
		drop_cell_if_idle(lanes, cell);
		return NULL;
	}
	lane->cell = cell;
	lane->server = server->server;
	lane->last = &lane->first;
	cell->lanes++;
	*at = lane;
	return lane;
}

bool lanes_add(struct lanes *lanes, const struct rxafs_awaited *server, struct lane_item *item)
{
	struct lane *lane = lane_of_server(lanes, server);

	if (!lane)
		return false;
	item->next = NULL;
	item->lane = lane;
	*lane->last = item;
	lane->last = &item->next;
	return true;
}

static bool lane_may_run(const struct lane *lane)
{
	return lane->first && lane->running < LANE_SERVER_MOST &&
	       lane->cell->running < LANE_CELL_MOST;
}

bool lanes_ready(const struct lanes *lanes)
{
	for (const struct lane *lane = lanes->first; lane; lane = lane->next)
		if (lane_may_run(lane))
			return true;
	return false;
}

/* Its next turn comes after all others. */
static void move_to_end(struct lane **at)
{
	struct lane *lane = *at;

	*at = lane->next;
	while (*at)
		at = &(*at)->next;
	*at = lane;
	lane->next = NULL;
}

struct lane_item *lanes_take(struct lanes *lanes, bool unbounded)
{
	struct lane **at = &lanes->first, *lane;
	struct lane_item *item;

	while (*at && !(unbounded ? (*at)->first != NULL : lane_may_run(*at)))
		at = &(*at)->next;
	lane = *at;
	if (!lane)
		return NULL;
	move_to_end(at);
	item = lane->first;
	lane->first = item->next;
	if (!lane->first)
		lane->last = &lane->first;
	lane->running++;
	lane->cell->running++;
	return item;
}

void lanes_done(struct lanes *lanes, struct lane *lane)
{
	struct cell_work *cell = lane->cell;
	struct lane **at = &lanes->first;

	assert(lane->running && cell->running);
	lane->running--;
	cell->running--;
	if (lane->running || lane->first)
		return;
	while (*at != lane)
		at = &(*at)->next;
	*at = lane->next;
	free(lane);
	cell->lanes--;
	drop_cell_if_idle(lanes, cell);
}
