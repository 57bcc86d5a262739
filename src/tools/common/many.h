/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs with many endpoints on one engine. */
#ifndef TOOLS_MANY_H
#define TOOLS_MANY_H

#include <stdint.h>

#include <rxwire/config.h>

/*
 * Before an engine for so many endpoints is created: the process may open as many descriptors as
 * it is allowed at all, and unless config->memory was changed it grows by 1 MiB for each endpoint
 * but the first. The buffers that wait in an idle socket count against that memory, so without it
 * a thousand sockets leave nothing to send with.
 */
void tools_allow_endpoints(struct rxw_config *config, uint64_t endpoints);

#endif
