/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs include this header for clocks. The events of classic Rx are not offered. */
#ifndef RXWIRE_CLASSIC_EVENT_H
#define RXWIRE_CLASSIC_EVENT_H

#include <rx/rx_clock.h>

#endif
