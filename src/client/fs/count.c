/* SPDX-License-Identifier: BSD-2-Clause */
/* What a client has done and holds (K-207). */
#include <rxafs/admin.h>
#include <rxafs/daemon.h>

#include "client/fs/fs.h"

const char *rxafs_home_cell(rxafs_client *client)
{
	struct cl_cell *home = cl_cells_home(client->cells);

	return home ? cl_cell_name(home) : NULL;
}

rxw_endpoint *rxafs_endpoint(rxafs_client *client)
{
	return cl_net_endpoint(client->net);
}

void rxafs_count(rxafs_client *client, struct rxafs_counts *counts)
{
	struct cl_cache_counts cache;
	struct cl_server_info server;

	cl_cache_count(client->cache, &cache);
	*counts = (struct rxafs_counts){.hits = cache.hits,
					.misses = cache.misses,
					.breaks = cache.breaks,
					.conflicts = cache.conflicts,
					.evicted = cache.evicted,
					.objects = cache.objects,
					.name_bytes = cache.name_bytes};
	for (uint32_t n = 1; cl_net_server_info(client->net, n, &server); n++) {
		counts->answered += server.answered;
		counts->unanswered += server.unanswered;
	}
}
