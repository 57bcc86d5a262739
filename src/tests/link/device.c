/* SPDX-License-Identifier: BSD-2-Clause */
/* TUN devices in namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"

/* Linux 6.2 */
#ifndef TUN_F_USO4
#	define TUN_F_USO4 0x20
#	define TUN_F_USO6 0x40
#endif

#define QUEUE 20000 /* packets between namespace and emulator: a burst of a whole window */

static bool said(char *why, size_t size, const char *what)
{
	snprintf(why, size, "%s: %s", what, strerror(errno));
	return false;
}

static bool enter(const char *ns, char *why, size_t why_size)
{
	int fd = open(ns, O_RDONLY | O_CLOEXEC);
	int status = fd < 0 ? -1 : setns(fd, CLONE_NEWNET);

	if (status < 0)
		said(why, why_size, ns);
	if (fd >= 0)
		close(fd);
	return status == 0;
}

static bool make(struct device *d, bool offload, char *why, size_t why_size)
{
	struct ifreq r = {0};
	unsigned all = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_USO4 | TUN_F_USO6;

	d->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (d->fd < 0)
		return said(why, why_size, "/dev/net/tun");
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", d->name);
	r.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
	if (ioctl(d->fd, TUNSETIFF, &r) < 0)
		return said(why, why_size, "TUNSETIFF");
	/* Older kernels cut UDP themselves. */
	if (offload && ioctl(d->fd, TUNSETOFFLOAD, (unsigned long)all) < 0 &&
	    ioctl(d->fd, TUNSETOFFLOAD, (unsigned long)(TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)) < 0)
		return said(why, why_size, "TUNSETOFFLOAD");
	return true;
}

static bool set_up(const struct device *d, unsigned mtu, char *why, size_t why_size)
{
	struct ifreq r = {0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool good;

	if (s < 0)
		return said(why, why_size, "socket");
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", d->name);
	r.ifr_mtu = (int)mtu;
	good = ioctl(s, SIOCSIFMTU, &r) == 0;
	r.ifr_qlen = QUEUE;
	good = good && ioctl(s, SIOCSIFTXQLEN, &r) == 0 && ioctl(s, SIOCGIFFLAGS, &r) == 0;
	r.ifr_flags |= IFF_UP;
	good = good && ioctl(s, SIOCSIFFLAGS, &r) == 0;
	if (!good)
		said(why, why_size, d->name);
	close(s);
	return good;
}

bool device_open(struct device *d, const char *ns, const char *name, unsigned mtu, bool offload,
		 char *why, size_t why_size)
{
	*d = (struct device){-1, -1, ""};
	snprintf(d->name, sizeof(d->name), "%s", name);
	if (!enter(ns, why, why_size))
		return false;
	if (!make(d, offload, why, why_size) || !set_up(d, mtu, why, why_size)) {
		device_close(d);
		return false;
	}
	d->statistics = open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC);
	return true;
}

void device_close(struct device *d)
{
	if (d->fd >= 0)
		close(d->fd);
	if (d->statistics >= 0)
		close(d->statistics);
	d->fd = d->statistics = -1;
}

uint64_t device_dropped(const struct device *d)
{
	char text[8192], name[20];
	ssize_t n = d->statistics < 0 ? -1 : pread(d->statistics, text, sizeof(text) - 1, 0);
	unsigned long long dropped = 0;
	const char *line;

	if (n <= 0)
		return 0;
	text[n] = 0;
	snprintf(name, sizeof(name), "%s:", d->name);
	line = strstr(text, name);
	/* Eight figures of reception, then bytes, packets, errors and drops of transmission. */
	if (line == NULL ||
	    sscanf(line + strlen(name), "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu",
		   &dropped) != 1)
		return 0;
	return dropped;
}
