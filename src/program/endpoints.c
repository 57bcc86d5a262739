/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs with many endpoints on one engine. */
#include <sys/resource.h>

#include "common/cpus.h"
#include "program/endpoints.h"

/* Four buffers of 64 KiB that a socket waits with, a window, and some that wait to be read. */
#define EACH ((size_t)1 << 20)
#define FEW  4 /* endpoints for each CPU that have a thread of their own */

void tools_allow_endpoints(struct rxw_config *config, uint64_t endpoints)
{
	struct rxw_config defaults;
	struct rlimit l;

	rxw_config_init(&defaults, sizeof(defaults));
	if (config->memory == defaults.memory && endpoints > 1)
		config->memory += (endpoints - 1) * EACH;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

void tools_share_listeners(struct rxw_config *config, uint64_t endpoints)
{
	tools_allow_endpoints(config, endpoints);
	if (!config->listeners && endpoints > (uint64_t)FEW * cpus_allowed())
		config->listeners = RXW_LISTENERS_SHARED;
}
