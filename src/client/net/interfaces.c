/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of this machine: servers are told of them, and break promises at one of them. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "client/net/inside.h"

/*
 * The address of an interface as 16 bytes. False: it is not one at which others reach this machine.
 */
static bool take_interface(const struct ifaddrs *i, struct in6_addr *address)
{
	struct sockaddr_in6 six;
	struct sockaddr_in sin;

	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
		return false;
	memset(address, 0, sizeof(*address));
	if (i->ifa_addr->sa_family == AF_INET6) {
		memcpy(&six, i->ifa_addr, sizeof(six));
		*address = six.sin6_addr;
		return !IN6_IS_ADDR_LOOPBACK(address) && !IN6_IS_ADDR_LINKLOCAL(address);
	}
	if (i->ifa_addr->sa_family != AF_INET)
		return false;
	memcpy(&sin, i->ifa_addr, sizeof(sin));
	memcpy(&address->s6_addr[12], &sin.sin_addr, sizeof(sin.sin_addr));
	return ntohl(sin.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
}

void cl_interfaces_read(struct cl_interfaces *now)
{
	struct ifaddrs *list = NULL;

	now->count = 0;
	now->known = getifaddrs(&list) == 0;
	if (!now->known)
		return;
	for (const struct ifaddrs *i = list; i && now->count < CL_INTERFACES; i = i->ifa_next)
		now->count += take_interface(i, &now->address[now->count]);
	freeifaddrs(list);
}

/* The number of addresses of one that the other does not have. */
static unsigned count_missing(const struct cl_interfaces *one, const struct cl_interfaces *other)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < one->count; i++) {
		unsigned k = 0;

		while (k < other->count &&
		       memcmp(&one->address[i], &other->address[k], sizeof(one->address[0])) != 0)
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
