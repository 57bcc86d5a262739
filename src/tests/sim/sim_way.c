/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Simulation: a direction of the path is that of the link emulator (tests/link/way.h), with its
 * queue, discipline, losses and jitter. An event fetches what has left it.
 */
#include <stdlib.h>

#include "sim.h"

#define IP_AND_UDP 28u

static void on_drop(void *arg, const struct link_packet *p)
{
	struct sim_link *link = arg;

	link->dropped++;
	sim_datagram_free(p->data);
}

/* Profiles with copies are not simulated. */
static void on_copy(void *arg, const struct link_packet *p)
{
	(void)arg;
	(void)p;
	abort();
}

void sim_way_start(struct sim *sim)
{
	struct sim_link *link[2] = {&sim->setup.up, &sim->setup.down};

	for (unsigned i = 0; i < 2; i++) {
		struct link_owner owner = {on_drop, on_copy, link[i]};

		if (link[i]->options == NULL)
			continue;
		link[i]->way = link_way_new(link[i]->options, sim->seed * 2 + i, &owner);
		link[i]->way_at = UINT64_MAX;
		if (link[i]->way == NULL)
			abort();
	}
}

void sim_way_free(struct sim *sim)
{
	link_way_free(sim->setup.up.way);
	link_way_free(sim->setup.down.way);
	sim->setup.up.way = sim->setup.down.way = NULL;
}

/* The next look at what has left. One that comes too early finds nothing. */
static void plan(struct sim *sim, struct sim_link *link)
{
	uint64_t next = link_way_next(link->way);

	if (next >= link->way_at)
		return;
	link->way_at = next;
	sim_at(sim, next, SIM_WAY, link, NULL);
}

void sim_way_enter(struct sim *sim, struct sim_link *link, struct sim_datagram *d)
{
	struct link_packet p = {.data = d, .length = d->length + IP_AND_UDP, .ect = d->ecn != 0};

	link->sent++;
	link_way_enter(link->way, &p, sim->now);
	plan(sim, link);
}

void sim_way_event(struct sim *sim, struct sim_link *link)
{
	struct link_packet p;

	if (sim->now >= link->way_at)
		link->way_at = UINT64_MAX;
	while (link_way_leave(link->way, &p, sim->now)) {
		struct sim_datagram *d = p.data;

		if (p.spoil != 0) {
			/* The UDP checksum is wrong. */
			link->corrupted++;
			on_drop(link, &p);
			continue;
		}
		if (p.ce) {
			d->ecn = RXW_ECN_CE;
			link->marked++;
		}
		link->delivered++;
		sim_at(sim, sim->now, SIM_ARRIVAL, d->to, d);
	}
	plan(sim, link);
}

void sim_way_change(struct sim *sim, struct sim_link *link, const struct link_options *options)
{
	link_way_change(link->way, options, sim->now);
	plan(sim, link);
}
