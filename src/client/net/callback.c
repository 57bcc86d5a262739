/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The callback service: what file servers tell a client (K-043 to K-046). It runs on threads of the
 * endpoint, which serves nothing else, so it answers while all threads of the client wait for
 * servers.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "afs/uuid.h"
#include "client/net/record.h"

static uint32_t number_of(const struct sockaddr *sa)
{
	struct sockaddr_in sin;

	memcpy(&sin, sa, sizeof(sin));
	return ntohl(sin.sin_addr.s_addr);
}

/* Addresses of this machine that others can reach, as they are now. */
static void list_interfaces(interfaceAddr *addr)
{
	struct ifaddrs *list = NULL;
	int n = 0;

	if (getifaddrs(&list) < 0)
		return;
	for (const struct ifaddrs *i = list; i && n < AFS_MAX_INTERFACE_ADDR; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
		    (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP))
			continue;
		addr->addr_in[n] = (int32_t)number_of(i->ifa_addr);
		addr->subnetmask[n] = i->ifa_netmask ? (int32_t)number_of(i->ifa_netmask) : -1;
		addr->mtu[n] = 1500;
		n++;
	}
	addr->numberOfInterfaces = n;
	freeifaddrs(list);
}

static int32_t tell_who_we_are(void *context, rxw_call *call, interfaceAddr *addr)
{
	const struct cl_net *net = context;

	(void)call;
	memset(addr, 0, sizeof(*addr));
	addr->uuid = net->self;
	list_interfaces(addr);
	return 0;
}

static int32_t tell_about_us(void *context, rxw_call *call, interfaceAddr *addr, Capabilities *caps)
{
	caps->val = malloc(sizeof(*caps->val));
	if (!caps->val)
		return rxw_code_from_errno(ENOMEM);
	caps->val[0] = CLIENT_CAPABILITY_ERRORTRANS;
	caps->len = 1;
	return tell_who_we_are(context, call, addr);
}

static int32_t answer_probe(void *context, rxw_call *call)
{
	(void)context;
	(void)call;
	return 0;
}

static int32_t answer_probe_uuid(void *context, rxw_call *call, const struct rxw_uuid *uuid)
{
	const struct cl_net *net = context;

	(void)call;
	return afs_uuid_same(uuid, &net->self) ? 0 : 1;
}

static bool knows_sender_in_cell(struct cl_net *net, const struct sockaddr_storage *sa,
				 const struct cl_cell *cell)
{
	uint32_t last = 0;
	struct cl_server *server;

	while ((server = cl_server_from(net, sa, last))) {
		if (server->cell == cell)
			return true;
		last = server->number;
	}
	return false;
}

/*
 * All servers that the sender may be, and those with the UUID that it says, in the cells of which it is a
 * server: a stranger has no promises, and a server of one cell does not speak for those of another.
 */
static void reset_servers(struct cl_net *net, rxw_call *call, const struct rxw_uuid *uuid)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);
	struct cl_server *server;

	if (rxw_call_peer(call, &sa, &len) < 0)
		return;
	for (uint32_t n = 1; (server = cl_server_at(net, n)); n++)
		if (cl_server_has_address(server, &sa) ||
		    (uuid && server->by_uuid && afs_uuid_same(&server->uuid, uuid) &&
		     knows_sender_in_cell(net, &sa, server->cell)))
			cl_server_reset(server);
}

static int32_t forget_promises(void *context, rxw_call *call)
{
	reset_servers(context, call, NULL);
	return 0;
}

static int32_t forget_promises_2(void *context, rxw_call *call, interfaceAddr *addr)
{
	forget_promises(context, call);
	return tell_who_we_are(context, call, addr);
}

static int32_t forget_promises_3(void *context, rxw_call *call, const struct rxw_uuid *uuid)
{
	reset_servers(context, call, uuid);
	return 0;
}

/* The objects of a cell whose promises are broken. */
static void tell_of_breaks(struct cl_server *server, const AFSCBFids *fids)
{
	uint32_t cell = cl_cell_number(server->cell);
	struct cl_net *net = server->net;
	struct rxafs_fid broken[AFSCBMAX];

	assert(fids->len <= AFSCBMAX);
	for (uint32_t i = 0; i < fids->len; i++) {
		const AFSFid *f = &fids->val[i];

		broken[i] = (struct rxafs_fid){cell, f->Volume, f->Vnode, f->Unique};
		/* At the first contact a server may break what it never promised: that tells nothing of where the volume is. */
		if (f->Vnode == 0 && atomic_load(&server->promised))
			cl_record_doubt(net, cell, f->Volume);
	}
	if (net->ops.broken && fids->len)
		net->ops.broken(net->arg, server->number, broken, fids->len);
}

static int32_t break_promises(void *context, rxw_call *call, const AFSCBFids *fids,
			      const AFSCBs *cbs)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);
	struct cl_server *server = NULL;

	(void)cbs;
	if (rxw_call_peer(call, &sa, &len) < 0)
		return 0;
	while ((server = cl_server_from(context, &sa, server ? server->number : 0)))
		tell_of_breaks(server, fids);
	return 0;
}

int cl_callbacks_offer(struct cl_net *net)
{
	static const struct RXAFSCB_handlers handlers = {
		.CallBack = break_promises,
		.InitCallBackState = forget_promises,
		.InitCallBackState2 = forget_promises_2,
		.InitCallBackState3 = forget_promises_3,
		.Probe = answer_probe,
		.ProbeUuid = answer_probe_uuid,
		.TellMeAboutYourself = tell_about_us,
		.WhoAreYou = tell_who_we_are,
	};
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = AFS_SERVICE_CB,
					 .name = "callback",
					 .handler = RXAFSCB_ExecuteRequest,
					 .context = &net->callbacks};
	rxw_service *service;

	net->callbacks.base.context = net;
	net->callbacks.handlers = &handlers;
	return rxw_service_add(net->endpoint, &so, &service);
}
