/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs with many endpoints on one engine. */
#ifndef TOOLS_ENDPOINTS_H
#define TOOLS_ENDPOINTS_H

#include <stdint.h>

#include <rxwire/config.h>

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

#endif
