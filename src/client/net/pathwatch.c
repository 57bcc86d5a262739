/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells a watcher of a transfer over several paths about changes of their states, and from time to time about their bytes. */
#include "client/net/pathway.h"

#include "common/clock.h"

#define TELL_NS ((uint64_t)50 * NS_PER_MS)

static bool has_state_changed(const struct cl_pathways *ways)
{
	for (unsigned i = 0; i < ways->count; i++)
		if (ways->told_states[i] != ways->spread.paths[i].state)
			return true;
	return false;
}

void cl_ways_tell(struct cl_pathways *ways)
{
	struct cl_path_report reports[CL_PATHS];
	uint64_t now = cl_net_now();

	if (!ways->see || (now < ways->told + TELL_NS && !has_state_changed(ways)))
		return;
	ways->told = now;
	for (unsigned i = 0; i < ways->count; i++)
		ways->told_states[i] = ways->spread.paths[i].state;
	cl_ways_report(ways, reports);
	ways->see(ways->see_arg, reports, ways->count);
}
