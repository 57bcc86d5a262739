/* SPDX-License-Identifier: BSD-2-Clause */
/* Promises are given back, so that servers need not break them into the void (K-051). */
#include <assert.h>
#include <stdlib.h>

#include "client/net/calls.h"
#include "client/net/server.h"
#include "common/grow.h"

#define GIVEN_MOST 16384u /* objects of a server that are remembered */

void cl_server_promised(struct cl_server *server, const AFSFid *fids, const AFSCallBack *callbacks,
			uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!callbacks[i].ExpirationTime)
			continue;
		atomic_store(&server->promised, true);
		if (!server->net->one_round)
			continue;
		pthread_mutex_lock(&server->lock);
		if (server->given_count < GIVEN_MOST &&
		    grow_array(&server->given, &server->given_room, server->given_count,
			       sizeof(AFSFid)))
			server->given[server->given_count++] = fids[i];
		pthread_mutex_unlock(&server->lock);
	}
}

/* GiveUpAllCallBacks to a server. False: it is not told. */
static bool begin_farewell(struct cl_server *server, unsigned limit_ms, struct cl_sent *sent)
{
	struct cl_credential *credential;
	enum rxw_origin origin;
	int rc;

	if (!atomic_load(&server->promised) || cl_server_state(server) != CL_SERVER_UP)
		return false;
	credential = cl_server_credential(server);
	rc = cl_server_begin(server, credential, limit_ms, 0, false, NULL, sent);
	cl_credential_unref(credential);
	if (rc < 0)
		return false;
	if (StartRXAFS_GiveUpAllCallBacks(sent->call) == 0 && rxw_call_send_end(sent->call) == 0)
		return true;
	cl_server_end(sent, RXW_USER_ABORT, RXAFS_FN_GiveUpAllCallBacks, &origin);
	return false;
}

void cl_net_farewell(struct cl_net *net, unsigned limit_ms)
{
	struct cl_sent *sent = calloc(net->server_count + 1, sizeof(*sent));
	enum rxw_origin origin;

	if (!sent)
		return;
	/* All have the same time: together they take no longer than one. */
	for (size_t i = 0; i < net->server_count; i++)
		if (!begin_farewell(net->servers[i], limit_ms, &sent[i]))
			sent[i].call = NULL;
	for (size_t i = 0; i < net->server_count; i++) {
		struct cl_server *server = net->servers[i];

		if (!sent[i].call)
			continue;
		/* An old server wants to hear of each object, which takes little time for few of them. */
		if (cl_server_end(&sent[i], EndRXAFS_GiveUpAllCallBacks(sent[i].call),
				  RXAFS_FN_GiveUpAllCallBacks, &origin) == RXW_RPC_OPCODE)
			cl_net_give_up(net, server->number, server->given,
				       (uint32_t)server->given_count);
	}
	free(sent);
}

bool cl_net_give_up(struct cl_net *net, uint32_t number, const AFSFid *fids, uint32_t count)
{
	struct cl_server *server = cl_server_at(net, number);
	AFSCallBack dropped[AFSCBMAX];
	uint32_t n;

	for (uint32_t i = 0; i < AFSCBMAX; i++)
		dropped[i] = (AFSCallBack){.CallBackVersion = 1, .CallBackType = CB_DROPPED};
	for (uint32_t at = 0; server && at < count; at += n) {
		struct cl_credential *credential;
		struct cl_sent sent;
		enum rxw_origin origin;
		rxw_code code;
		int rc;

		n = count - at < AFSCBMAX ? count - at : AFSCBMAX;
		if (cl_server_state(server) != CL_SERVER_UP)
			return false;
		credential = cl_server_credential(server);
		rc = cl_server_begin(server, credential, 1000, 0, false, NULL, &sent);
		cl_credential_unref(credential);
		if (rc < 0)
			return false;
		code = StartRXAFS_GiveUpCallBacks(
			       sent.call, &(AFSCBFids){.len = n, .val = (AFSFid *)fids + at},
			       &(AFSCBs){.len = n, .val = dropped})
			       ?: EndRXAFS_GiveUpCallBacks(sent.call);
		if (cl_server_end(&sent, code, RXAFS_FN_GiveUpCallBacks, &origin) != 0)
			return false;
	}
	return server != NULL;
}
