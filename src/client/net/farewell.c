/* SPDX-License-Identifier: BSD-2-Clause */
/* Promises are given back, so that servers need not break them into the void (K-051). */
#include <assert.h>
#include <stdlib.h>

#include "client/net/calls.h"
#include "client/net/server.h"

/* GiveUpAllCallBacks to a server. NULL: it is not told. */
static rxw_call *begin_farewell(struct cl_server *server, unsigned limit_ms)
{
	const struct rxw_call_options co = {
		.size = sizeof(co), .flags = RXW_CALL_TRY, .deadline_ms = limit_ms};
	rxw_connection *connection = NULL;
	rxw_call *call = NULL;
	struct cl_address to;

	if (!atomic_load(&server->promised) || atomic_load(&server->down))
		return NULL;
	pthread_mutex_lock(&server->lock);
	to = server->addresses[server->current];
	pthread_mutex_unlock(&server->lock);
	if (rxw_connection_create(server->net->endpoint, (const struct sockaddr *)&to.sa, to.len,
				  AFS_SERVICE_FS, NULL, &connection) == 0 &&
	    rxw_call_begin(connection, &co, &call) < 0)
		call = NULL;
	rxw_connection_release(connection);
	if (call && (StartRXAFS_GiveUpAllCallBacks(call) != 0 || rxw_call_send_end(call) < 0)) {
		rxw_call_end(call, RXW_USER_ABORT, NULL);
		call = NULL;
	}
	return call;
}

void cl_net_farewell(struct cl_net *net, unsigned limit_ms)
{
	rxw_call **calls = calloc(net->server_count + 1, sizeof(rxw_call *));

	if (!calls)
		return;
	/* All have the same time: together they take no longer than one. */
	for (size_t i = 0; i < net->server_count; i++)
		calls[i] = begin_farewell(net->servers[i], limit_ms);
	for (size_t i = 0; i < net->server_count; i++)
		if (calls[i])
			rxw_call_end(calls[i], EndRXAFS_GiveUpAllCallBacks(calls[i]), NULL);
	free(calls);
}

void cl_net_give_up(struct cl_net *net, uint32_t number, const AFSFid *fids, uint32_t count)
{
	struct cl_server *server = cl_server_at(net, number);
	AFSCallBack dropped[AFSCBMAX];
	uint32_t n;

	for (uint32_t i = 0; i < AFSCBMAX; i++)
		dropped[i] = (AFSCallBack){.CallBackVersion = 1, .CallBackType = CB_DROPPED};
	for (uint32_t at = 0; server && at < count; at += n) {
		struct cl_sent sent;
		enum rxw_origin origin;
		rxw_code code;

		n = count - at < AFSCBMAX ? count - at : AFSCBMAX;
		if (cl_server_state(server) != CL_SERVER_UP ||
		    cl_server_begin(server, NULL, 1000, &sent) < 0)
			return;
		code = StartRXAFS_GiveUpCallBacks(
			       sent.call, &(AFSCBFids){.len = n, .val = (AFSFid *)fids + at},
			       &(AFSCBs){.len = n, .val = dropped})
			       ?: EndRXAFS_GiveUpCallBacks(sent.call);
		if (cl_server_end(&sent, code, RXAFS_FN_GiveUpCallBacks, &origin) != 0)
			return;
	}
}
