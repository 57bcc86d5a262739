/* SPDX-License-Identifier: BSD-2-Clause */
/* Choosing one of several addresses of a server. */
#ifndef TOOLS_REACHABLE_H
#define TOOLS_REACHABLE_H

#include "program/address.h"

struct rxw_config;

/*
 * The index of the first address where a server answers a call of an Rx service. Each has half a
 * second, and in a second round three, so that an address that leads nowhere costs little. 0 if
 * none answers, or if there is only one, which is not asked. Blocks.
 */
size_t tools_find_reachable(const struct rxw_config *config, const struct tools_address *list,
			    size_t count, uint16_t service);

#endif
