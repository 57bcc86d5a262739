/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of endpoints for Prometheus. See rxw_metrics(3). */
#ifndef RXWIRE_METRICS_H
#define RXWIRE_METRICS_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Format the statistics of `count` endpoints, the durations of their calls and the memory of
 * their engines as text for Prometheus (version 0.0.4). The address of the endpoint is a label.
 * Times are in seconds, sizes in bytes. Names and labels stay the same between releases.
 *
 * The caller frees *text with free(). Returns its length, -RXW_EINVAL (an argument is NULL;
 * `count` may be 0) or -RXW_ENOMEM. Any thread, while the endpoints exist. Traverses the
 * connection tables: call it every few seconds at most.
 */
RXW_MUST_USE int rxw_metrics_text(rxw_endpoint *const *endpoints, size_t count, char **text);

#ifdef __cplusplus
}
#endif
#endif
