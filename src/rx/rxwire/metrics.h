/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of endpoints for Prometheus, and their calls. See rxw_metrics(3). */
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

/*
 * List the calls in progress of `count` endpoints, with their windows, rates, RTTs, losses and
 * controllers, as JSON; see rxw_metrics(3). If there are more than `most` (or 10,000), those with the
 * highest mean rates, and the number of the others as "left_out". The text has addresses of
 * peers and ids of connections: show it only to those who may see them.
 *
 * The caller frees *text with free(). Returns its length, -RXW_EINVAL (an argument is NULL;
 * `count` may be 0) or -RXW_ENOMEM. Any thread, while the endpoints exist. Takes the locks of
 * connection tables in steps, and of each connection: call it about once a second at most.
 */
RXW_MUST_USE int rxw_metrics_calls(rxw_endpoint *const *endpoints, size_t count, size_t most,
				   char **text);

#ifdef __cplusplus
}
#endif
#endif
