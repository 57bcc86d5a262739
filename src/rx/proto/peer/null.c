/* SPDX-License-Identifier: BSD-2-Clause */
/* rxnull: no protection, no exchange (rx-protocol 7.2). */
#include "proto/peer/auth.h"

struct rxw_security rxw_security_null_class = {
	.class = {.size = sizeof(struct rxw_security_class), .name = "null"},
};
