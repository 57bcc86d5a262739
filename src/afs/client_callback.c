/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The callback service of a client that caches nothing: it says who it is, so that servers serve it
 * without delay, and takes every broken promise for granted.
 */
#include <rxwire/service.h>

#include "afs/client_internal.h"
#include "afs/opcodes.h"

/* 0, or the code of the ABORT. */
static int32_t describe(rxw_call *call, const struct afs_client *client, bool capabilities)
{
	uint8_t reply[AFS_INTERFACES_BYTES + 16];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, reply, sizeof(reply));
	afs_interfaces_put(&x, &client->self);
	if (capabilities)
		afs_caps_put(&x, AFS_CLIENT_CAP_ERRORTRANS);
	if (!rxw_xdr_ok(&x))
		return RXW_RPC_SS_MARSHAL;
	return rxw_call_write(call, reply, rxw_xdr_used(&x)) < 0 ? RXW_USER_ABORT : 0;
}

static int32_t same_uuid(rxw_call *call, const struct afs_client *client)
{
	uint8_t raw[AFS_UUID_BYTES];
	struct rxw_xdr x;
	struct afs_uuid asked;

	if (rxw_call_read(call, raw, sizeof(raw)) != sizeof(raw))
		return RXW_RPC_SS_UNMARSHAL;
	rxw_xdr_reader(&x, raw, sizeof(raw));
	if (!afs_uuid_get(&x, &asked))
		return RXW_RPC_SS_UNMARSHAL;
	return afs_uuid_equal(&asked, &client->self.uuid) ? 0 : 1;
}

static int32_t serve(rxw_call *call, void *context)
{
	const struct afs_client *client = context;
	uint8_t word[4];
	struct rxw_xdr x;
	uint32_t operation = 0;

	if (rxw_call_read(call, word, sizeof(word)) != sizeof(word))
		return RXW_RPC_DECODE;
	rxw_xdr_reader(&x, word, sizeof(word));
	rxw_xdr_get_u32(&x, &operation);
	switch (operation) {
	case AFS_CB_TELL_ME_ABOUT_YOURSELF:
		return describe(call, client, true);
	case AFS_CB_WHO_ARE_YOU:
		return describe(call, client, false);
	case AFS_CB_PROBE_UUID:
		return same_uuid(call, client);
	case AFS_CB_CALLBACK:
	case AFS_CB_INIT_STATE:
	case AFS_CB_INIT_STATE3:
	case AFS_CB_PROBE:
		return 0;
	default:
		return RXW_RPC_OPCODE;
	}
}

int afs_client_callbacks(struct afs_client *client)
{
	struct rxw_service_options so = { .size = sizeof(so), .id = AFS_SERVICE_CB,
					  .name = "callback", .handler = serve, .context = client };
	rxw_service *service;

	return rxw_service_add(client->endpoint, &so, &service);
}
