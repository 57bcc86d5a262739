/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of a call that cannot begin. */
#ifndef RXW_RPC_REFUSAL_H
#define RXW_RPC_REFUSAL_H

#include <rxwire/types.h>

/*
 * From the result of rxw_call_try_begin() and its code: that code if there is one, such as that of
 * an expired ticket; otherwise the code for a local error, such as ENOMEM.
 */
int32_t rxw_rpc_refusal(int result, int32_t code);

#endif
