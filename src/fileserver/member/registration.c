/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of this server, and their registration with the location service of the cell. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/numbers.h"
#include "afs/vl.h"
#include "fileserver/member/membership.h"
#include "program/address.h"

#define LOOK_S	   30	/* between looks at the addresses of this machine */
#define REPEAT_S   3600 /* between registrations of the same addresses */
#define FIRST_S	   5	/* after one that failed, then twice as long each time */
#define LONGEST_S  300
#define NOBODY_S   10 /* the longest if no server was there: they may be starting */
#define INTERFACES 64
#define TEXT	   (MEMBER_ADDRESSES * 17)

struct vl_registration {
	const struct rxw_uuid *uuid;
	const struct member_registration *addresses;
};

static int32_t register_addresses(rxw_call *call, void *arg)
{
	const struct vl_registration *asked = arg;
	uint32_t copy[MEMBER_ADDRESSES];
	const bulkaddrs list = {.len = asked->addresses->count, .val = copy};
	int32_t code;

	memcpy(copy, asked->addresses->address, sizeof(copy));
	code = StartVL_RegisterAddrs(call, asked->uuid, 0, &list);
	return code ? code : EndVL_RegisterAddrs(call);
}

int32_t member_ask_locations(rxw_call *call, void *arg)
{
	int32_t code = StartVL_ProbeServer(call);

	(void)arg;
	return code ? code : EndVL_ProbeServer(call);
}

/* -- addresses -- */

static unsigned read_interfaces(uint32_t address[INTERFACES])
{
	struct ifaddrs *list, *one;
	unsigned n = 0;

	if (getifaddrs(&list))
		return 0;
	for (one = list; one && n < INTERFACES; one = one->ifa_next) {
		const struct sockaddr_in *sin = (const void *)one->ifa_addr;

		if (sin && sin->sin_family == AF_INET && one->ifa_flags & IFF_UP &&
		    !(one->ifa_flags & IFF_LOOPBACK))
			address[n++] = ntohl(sin->sin_addr.s_addr);
	}
	freeifaddrs(list);
	return n;
}

/* Of this machine, as far as the service can be called there. */
static unsigned read_own_addresses(const char *listen, uint32_t address[INTERFACES])
{
	struct tools_address own;
	const struct sockaddr_in *sin = (const void *)&own.sa;
	char why[256];

	if (tools_resolve(listen, 0, 1, &own, why, sizeof(why)) || own.sa.ss_family != AF_INET ||
	    sin->sin_addr.s_addr == htonl(INADDR_ANY))
		return read_interfaces(address);
	*address = ntohl(sin->sin_addr.s_addr);
	/* All machines have a loopback address. */
	return *address >> 24 != 127;
}

static unsigned choose_addresses(const struct member_folder *folder,
				 const struct fsd_member_network *network,
				 uint32_t address[MEMBER_ADDRESSES])
{
	uint32_t have[INTERFACES];
	unsigned n = read_own_addresses(network->listen, have), count, i;

	count = member_filter_addresses(folder, have, n, address);
	for (i = 0; i < network->advertise_count && count < MEMBER_ADDRESSES; i++)
		address[count++] = network->advertise[i];
	return count;
}

static const char *print_addresses(const struct member_registration *registration, char text[TEXT])
{
	size_t n = 0;

	*text = 0;
	for (unsigned i = 0; i < registration->count; i++) {
		struct in_addr in = {htonl(registration->address[i])};

		n += (size_t)snprintf(text + n, TEXT - n, "%s%s", n ? " " : "", inet_ntoa(in));
	}
	return text;
}

/* -- results -- */

static void note_registered(struct member_registration *registration, bool news)
{
	char text[TEXT];

	if (news || !registration->registered)
		fsd_log(RXW_LOG_INFO, "registered with the location service of the cell: %s",
			print_addresses(registration, text));
	registration->failures = 0;
	registration->registered = true;
	registration->next = monotonic_ns() + REPEAT_S * (uint64_t)NS_PER_S;
}

static void note_unregistered(struct member_registration *registration, int32_t code)
{
	unsigned wait = FIRST_S, longest = code == MEMBER_NOBODY ? NOBODY_S : LONGEST_S;
	char text[TEXT];

	if (registration->failures == 0)
		fsd_log(RXW_LOG_WARNING,
			"not registered with the location service of the cell as %s: %s%s; tried again until it succeeds",
			print_addresses(registration, text),
			code == MEMBER_NOBODY ? "no server takes it" : rxw_code_text(code),
			code == AFS_VL_PERM ? ", so the keys are not those of the cell"
			: code == AFS_VL_MULTIPADDR
				? ", other servers have these addresses: remove them with vos changeaddr"
				: "");
	for (unsigned i = 0; i < registration->failures && wait < longest; i++)
		wait *= 2;
	registration->failures++;
	registration->registered = false;
	registration->next =
		monotonic_ns() + (wait < longest ? wait : longest) * (uint64_t)NS_PER_S;
}

uint64_t member_register(struct member_registration *registration, struct member_database *database,
			 const struct member_folder *folder,
			 const struct fsd_member_network *network)
{
	const struct vl_registration asked = {&network->uuid, registration};
	uint64_t look = monotonic_ns() + LOOK_S * (uint64_t)NS_PER_S;
	uint32_t address[MEMBER_ADDRESSES] = {0};
	unsigned count = choose_addresses(folder, network, address);
	bool news = count != registration->count ||
		    memcmp(address, registration->address, sizeof(address)) != 0;
	int32_t code;

	if (!news && monotonic_ns() < registration->next)
		return look < registration->next ? look : registration->next;
	registration->count = count;
	memcpy(registration->address, address, sizeof(address));
	if (!count) {
		if (news || !registration->known)
			fsd_log(RXW_LOG_WARNING,
				"this machine has no address to register: see --listen, NetInfo and NetRestrict");
		registration->known = true;
		return look;
	}
	registration->known = true;
	code = member_database_ask(database, register_addresses, (void *)(uintptr_t)&asked);
	if (code)
		note_unregistered(registration, code);
	else
		note_registered(registration, news);
	return look < registration->next ? look : registration->next;
}
