/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics, and the packets of rxdebug. Their structures are wire formats. Included by rx.h. */
#ifndef RXWIRE_CLASSIC_DEBUG_H
#define RXWIRE_CLASSIC_DEBUG_H

#include <rx/rx_clock.h>
#include <rx/rx_types.h>

struct rx_statistics;
struct rx_debugStats;
struct rx_debugConn;
struct rx_debugPeer;

#endif
