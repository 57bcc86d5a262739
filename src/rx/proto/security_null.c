/* SPDX-License-Identifier: BSD-2-Clause */
/* rxnull: no protection, no exchange (rx-protocol 7.2). */
#include "proto/security.h"

static const struct rxw_security_ops null_ops = {
	.name = "null",
	.index = 0,
};

struct rxw_security rxw_security_null_class = {.ops = &null_ops};
