/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics of a call. */
#ifndef API_FLOWS_H
#define API_FLOWS_H

#include <rxwire/call.h>
#include <rxwire/stats.h>

/* Connection's lock held: fill in the statistics, except `size`. */
void rxw_flow_read(const struct rxw_call *call, struct rxw_call_statistics *s);

#endif
