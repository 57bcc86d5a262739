/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The callback service of a client without a cache. It identifies the client, so that servers serve
 * it without delay, and acknowledges broken promises. Calls of debugging tools about caches and
 * cells are refused as unknown (afs-fileserver 4.3, 4.6).
 */
#include <errno.h>

#include "afs/client/private.h"
#include "afs/uuid.h"

static int32_t who_are_you(void *context, rxw_call *call, interfaceAddr *addr)
{
	const struct afs_client *client = context;

	(void)call;
	*addr = client->self;
	return 0;
}

static int32_t tell_me_about_yourself(void *context, rxw_call *call, interfaceAddr *addr,
				      Capabilities *caps)
{
	caps->val = malloc(sizeof(*caps->val));
	if (!caps->val)
		return rxw_code_from_errno(ENOMEM);
	caps->val[0] = CLIENT_CAPABILITY_ERRORTRANS;
	caps->len = 1;
	return who_are_you(context, call, addr);
}

static int32_t probe_uuid(void *context, rxw_call *call, const struct rxw_uuid *uuid)
{
	const struct afs_client *client = context;

	(void)call;
	return afs_uuid_same(uuid, &client->self.uuid) ? 0 : 1;
}

static int32_t nothing_to_do(void *context, rxw_call *call)
{
	(void)context;
	(void)call;
	return 0;
}

static int32_t nothing_to_forget(void *context, rxw_call *call, const struct rxw_uuid *server)
{
	(void)server;
	return nothing_to_do(context, call);
}

static int32_t nothing_to_break(void *context, rxw_call *call, const AFSCBFids *fids,
				const AFSCBs *cbs)
{
	(void)fids;
	(void)cbs;
	return nothing_to_do(context, call);
}

int afs_client_callbacks(struct afs_client *client)
{
	static const struct RXAFSCB_handlers handlers = {
		.CallBack = nothing_to_break,
		.InitCallBackState = nothing_to_do,
		.InitCallBackState2 = who_are_you,
		.InitCallBackState3 = nothing_to_forget,
		.Probe = nothing_to_do,
		.ProbeUuid = probe_uuid,
		.TellMeAboutYourself = tell_me_about_yourself,
		.WhoAreYou = who_are_you,
	};
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = AFS_SERVICE_CB,
					 .name = "callback",
					 .handler = RXAFSCB_ExecuteRequest,
					 .context = &client->callbacks};
	rxw_service *service;

	client->callbacks.base.context = client;
	client->callbacks.handlers = &handlers;
	return rxw_service_add(client->endpoint, &so, &service);
}
