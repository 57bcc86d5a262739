/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as text: shared by the files of librxwire-observe. */
#ifndef OBSERVE_OBSERVE_H
#define OBSERVE_OBSERVE_H

#include <rxwire/types.h>

#define RXW_ADDRESS_TEXT 72 /* bytes of "[IPv6%scope]:port" and the NUL */

/* "1.2.3.4:7000", "[::1]:7000": the address that an endpoint is bound to. Returns `text`. */
const char *rxw_bound_text(rxw_endpoint *endpoint, char text[RXW_ADDRESS_TEXT]);

#endif
