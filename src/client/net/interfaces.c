/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of this machine: servers are told of them, and break promises at one of them. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "client/net/inside.h"

/* False: others do not reach this machine at this address. */
static bool take_own_address(const struct sockaddr *sa, struct in6_addr *address)
{
	struct sockaddr_in6 six;
	struct sockaddr_in sin;

	memset(address, 0, sizeof(*address));
	if (sa->sa_family == AF_INET6) {
		memcpy(&six, sa, sizeof(six));
		*address = six.sin6_addr;
		return !IN6_IS_ADDR_LOOPBACK(address) && !IN6_IS_ADDR_LINKLOCAL(address);
	}
	if (sa->sa_family != AF_INET)
		return false;
	memcpy(&sin, sa, sizeof(sin));
	memcpy(&address->s6_addr[12], &sin.sin_addr, sizeof(sin.sin_addr));
	return ntohl(sin.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
}

static bool take_interface(const struct ifaddrs *i, struct cl_interface *interface)
{
	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
	    !take_own_address(i->ifa_addr, &interface->address))
		return false;
	interface->running = i->ifa_flags & IFF_RUNNING;
	interface->tunnel = i->ifa_flags & IFF_POINTOPOINT;
	interface->index = if_nametoindex(i->ifa_name);
	snprintf(interface->device, sizeof(interface->device), "%s", i->ifa_name);
	return true;
}

void cl_interfaces_read(struct cl_interfaces *now)
{
	struct ifaddrs *list = NULL;

	memset(now, 0, sizeof(*now)); /* so that two of them can be compared as bytes */
	now->known = getifaddrs(&list) == 0;
	if (!now->known)
		return;
	for (const struct ifaddrs *i = list; i && now->count < CL_INTERFACES; i = i->ifa_next)
		now->count += take_interface(i, &now->list[now->count]);
	freeifaddrs(list);
}

/* The number of addresses of one that the other does not have. */
static unsigned count_missing(const struct cl_interfaces *one, const struct cl_interfaces *other)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < one->count; i++) {
		unsigned k = 0;

		while (k < other->count && memcmp(&one->list[i].address, &other->list[k].address,
						  sizeof(one->list[0].address)) != 0)
			k++;
		missing += k == other->count;
	}
	return missing;
}

enum cl_moved cl_interfaces_compare(const struct cl_interfaces *before,
				    const struct cl_interfaces *now)
{
	if (!before->known || !now->known)
		return CL_MOVED_NOT;
	if (count_missing(before, now))
		return CL_MOVED_AWAY;
	return count_missing(now, before) ? CL_MOVED_ADDED : CL_MOVED_NOT;
}

const struct cl_interface *cl_interface_of(const struct cl_interfaces *interfaces,
					   const struct sockaddr_storage *address)
{
	struct in6_addr bytes;

	if (!take_own_address((const struct sockaddr *)address, &bytes))
		return NULL;
	for (unsigned i = 0; i < interfaces->count; i++)
		if (!memcmp(&interfaces->list[i].address, &bytes, sizeof(bytes)))
			return &interfaces->list[i];
	return NULL;
}
