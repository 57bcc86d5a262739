/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of a call that cannot begin. */
#ifndef RXW_RPC_REFUSAL_H
#define RXW_RPC_REFUSAL_H

#include <rxwire/types.h>

/*
 * From the result of rxw_call_try_begin(), and its code: that code, such as that of a ticket which
 * expired, or of this side's own trouble: ENOMEM, say, as a code.
 */
int32_t rxw_rpc_refusal(int result, int32_t code);

#endif
