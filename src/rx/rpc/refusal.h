/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of a call that cannot begin. */
#ifndef RXW_RPC_REFUSAL_H
#define RXW_RPC_REFUSAL_H

#include <rxwire/types.h>

/*
 * From the result of rxw_call_begin(): of a connection that has failed, what it failed with, such as
 * the code of a ticket that expired; else RXW_CALL_DEAD.
 */
int32_t rxw_rpc_refusal(rxw_connection *connection, int result);

#endif
