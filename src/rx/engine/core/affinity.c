/* SPDX-License-Identifier: BSD-2-Clause */
/* Placement of shards on processors: one of its own for each, spread over the nodes of memory. */
#include <assert.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/affinity.h"
#include "engine/core/sys.h"

#define RARELY	   __attribute__((cold))
#define NODES_MOST 256u /* those with higher numbers count as node 0 */

/* The node of each processor. */
static RARELY void read_nodes(const char *sys, uint8_t node[CPU_SETSIZE])
{
	int cpus[CPU_SETSIZE];
	char text[1024];

	memset(node, 0, CPU_SETSIZE);
	for (unsigned n = 1; n < NODES_MOST; n++) {
		ssize_t length;
		int fd;

		snprintf(text, sizeof(text), "%s/devices/system/node/node%u/cpulist", sys, n);
		fd = open(text, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		length = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[length > 0 ? length : 0] = '\0';
		for (unsigned count = rxw_cpu_list(text, cpus); count > 0; count--)
			node[cpus[count - 1]] = (uint8_t)n;
	}
}

RARELY void rxw_place(const char *sys, const cpu_set_t *allowed, unsigned count, uint16_t *cpu)
{
	uint8_t node[CPU_SETSIZE], used[CPU_SETSIZE] = {0}, used_in[NODES_MOST] = {0};

	assert(CPU_COUNT(allowed) > 0);
	read_nodes(sys, node);
	for (unsigned i = 0; i < count; i++) {
		unsigned least = UINT32_MAX;

		for (unsigned c = 0; c < CPU_SETSIZE; c++) {
			unsigned uses = (unsigned)used[c] << 8 | used_in[node[c]];

			if (CPU_ISSET(c, allowed) && uses < least) {
				least = uses;
				cpu[i] = (uint16_t)c;
			}
		}
		used[cpu[i]]++;
		used_in[node[cpu[i]]]++;
	}
}

RARELY bool rxw_place_has_queues(const char *sys, unsigned count)
{
	char pattern[256];
	glob_t found = {0};
	bool any;

	/* Only cards have a device. */
	snprintf(pattern, sizeof(pattern), "%s/class/net/*/device/net/*/queues/rx-%u", sys,
		 count - 1);
	any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
	globfree(&found);
	return any;
}
