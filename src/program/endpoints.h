/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of programs: many on one engine, and the choice of an address that answers. */
#ifndef TOOLS_ENDPOINTS_H
#define TOOLS_ENDPOINTS_H

#include <stdint.h>

#include <rxwire/config.h>

#include "program/address.h"

/*
 * Prepare for an engine with this many endpoints: raise the limit of open descriptors to its
 * maximum and, unless config->memory was changed, add 1 MiB for each endpoint after the first. The
 * receive buffers of idle sockets count against that memory; without the increase a thousand
 * sockets would leave none for sending.
 */
void tools_allow_endpoints(struct rxw_config *config, uint64_t endpoints);
/*
 * The same for a program that is called back: with more than a few endpoints for each CPU they
 * share listeners, unless config->listeners was changed.
 */
void tools_share_listeners(struct rxw_config *config, uint64_t endpoints);

struct rxw_config;

/*
 * The index of the first address where a server answers a call of an Rx service. Each has half a
 * second, and in a second round three, so that an address that leads nowhere costs little. 0 if
 * none answers, or if there is only one, which is not asked. Blocks.
 */
size_t tools_find_reachable(const struct rxw_config *config, const struct tools_address *list,
			    size_t count, uint16_t service);

#endif
