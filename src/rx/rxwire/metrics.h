/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of endpoints as text that Prometheus reads. */
#ifndef RXWIRE_METRICS_H
#define RXWIRE_METRICS_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Everything that rxw_endpoint_stats() tells of these endpoints, how long their calls took, and the
 * memory of their engines, in the text format of Prometheus (version 0.0.4): each name once, with the
 * endpoint's address as a label. Units are seconds and bytes; names and labels stay as they are.
 *
 * *text is allocated, ends with a NUL and is the caller's to free(). Returns its length, or
 * -RXW_EINVAL (an argument is NULL, though `count` may be 0), -RXW_ENOMEM. Any thread, as long as the
 * endpoints live. It walks the tables of connections as rxw_endpoint_stats() does: every few seconds,
 * not in a loop.
 */
int rxw_metrics_text(rxw_endpoint *const *endpoints, size_t count, char **text);

#ifdef __cplusplus
}
#endif
#endif
