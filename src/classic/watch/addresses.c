/* SPDX-License-Identifier: BSD-2-Clause */
/* The IPv4 addresses of this host's interfaces. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rx/rx.h>

#define MTU_UNKNOWN 1500u

static bool take_ipv4_address(const struct ifaddrs *interface, afs_uint32 *address)
{
	if (!interface->ifa_addr || interface->ifa_addr->sa_family != AF_INET)
		return false;
	*address = ((const struct sockaddr_in *)interface->ifa_addr)->sin_addr.s_addr;
	return *address && !rx_IsLoopbackAddr(ntohl(*address));
}

static afs_uint32 mask_of(const struct ifaddrs *interface)
{
	if (!interface->ifa_netmask)
		return htonl(0xffffffff);
	return ((const struct sockaddr_in *)interface->ifa_netmask)->sin_addr.s_addr;
}

static afs_uint32 mtu_of(int socket, const struct ifaddrs *interface)
{
	struct ifreq request = {0};

	strncpy(request.ifr_name, interface->ifa_name, sizeof(request.ifr_name) - 1);
	/* An alias has its interface's name, a colon and a label. */
	request.ifr_name[strcspn(request.ifr_name, ":")] = '\0';
	if (socket < 0 || ioctl(socket, SIOCGIFMTU, &request) < 0)
		return htonl(MTU_UNKNOWN);
	return htonl((afs_uint32)request.ifr_mtu);
}

int rx_getAllAddr(afs_uint32 *addresses, int most)
{
	struct ifaddrs *all;
	int count = 0;

	if (getifaddrs(&all) < 0)
		return -1;
	for (const struct ifaddrs *i = all; i && count < most; i = i->ifa_next)
		if (take_ipv4_address(i, &addresses[count]))
			count++;
	freeifaddrs(all);
	return count;
}

int rx_getAllAddrMaskMtu(afs_uint32 addresses[], afs_uint32 masks[], afs_uint32 mtus[], int most)
{
	struct ifaddrs *all;
	int count = 0, fd;

	if (getifaddrs(&all) < 0)
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (const struct ifaddrs *i = all; i && count < most; i = i->ifa_next) {
		if (!take_ipv4_address(i, &addresses[count]))
			continue;
		masks[count] = mask_of(i);
		mtus[count++] = mtu_of(fd, i);
	}
	if (fd >= 0)
		close(fd);
	freeifaddrs(all);
	return count;
}
