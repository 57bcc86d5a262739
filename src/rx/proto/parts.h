/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a call's protocol state: send queue, receive queue, acknowledgement state, timers. */
#ifndef RXW_PROTO_PARTS_H
#define RXW_PROTO_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* To be filled by the owner of floor 1. */
struct rxw_sendq { int unused; };
struct rxw_recvq { int unused; };
struct rxw_ackstate { int unused; };
struct rxw_calltimers { int unused; };

#endif
