/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of work for each server. */
#include "rxafs/lanes.h"

#include <assert.h>
#include <stdlib.h>

#include "common/clock.h"

#define PROMPT_NS NS_PER_S

struct cell_work {
	struct cell_work *next;
	uint32_t number;
	unsigned running;
	uint64_t ended; /* the beginning of the latest work that was over soon; 0 = none yet */
	bool prompt;
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
	if (!lane)
		return NULL;
	lane->cell = cell;
	lane->server = server->server;
	lane->last = &lane->first;
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

static bool lane_may_run(const struct lanes *lanes, const struct lane *lane)
{
	const struct cell_work *cell = lane->cell;
	unsigned left = lanes->most - lanes->running, reserve = lanes->most / LANE_RESERVE, part;

	assert(lanes->running <= lanes->most);
	if (!lane->first || lane->running >= LANE_SERVER_MOST || cell->running >= LANE_CELL_MOST)
		return false;
	if (!cell->prompt)
		left = left > reserve ? left - reserve : 0;
	part = left / LANE_CELL_PART;
	return cell->running ? cell->running < part : left > 0;
}

bool lanes_ready(const struct lanes *lanes)
{
	for (const struct lane *lane = lanes->first; lane; lane = lane->next)
		if (lane_may_run(lanes, lane))
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

	while (*at && !(unbounded ? (*at)->first != NULL : lane_may_run(lanes, *at)))
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
	lanes->running++;
	item->started = monotonic_ns();
	return item;
}

static void judge_cell_work(struct cell_work *cell, uint64_t started)
{
	if (monotonic_ns() - started < PROMPT_NS) {
		cell->ended = started;
		cell->prompt = true;
	} else if (cell->ended < started) {
		cell->prompt = false;
	}
}

void lanes_done(struct lanes *lanes, struct lane *lane, uint64_t started)
{
	struct lane **at = &lanes->first;

	assert(lane->running && lane->cell->running && lanes->running);
	judge_cell_work(lane->cell, started);
	lane->running--;
	lane->cell->running--;
	lanes->running--;
	if (lane->running || lane->first)
		return;
	while (*at != lane)
		at = &(*at)->next;
	*at = lane->next;
	free(lane);
}

void lanes_free(struct lanes *lanes)
{
	struct cell_work *cell;

	assert(!lanes->first && !lanes->running);
	while ((cell = lanes->cells)) {
		lanes->cells = cell->next;
		free(cell);
	}
}
