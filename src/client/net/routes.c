/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel says of routes: from which address its packets to a server would come, whether an interface has a route there, and when
 * any of that changes. Nothing is sent to a server.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "client/net/inside.h"

#define ANSWER_MS   500
#define EVENTS_MOST 1000u /* that are read at a time */
#ifndef RTM_F_FIB_MATCH
#	define RTM_F_FIB_MATCH 0x2000
#endif

/* A question for a route: header, route, destination, source, interface. */
struct route_question {
	struct nlmsghdr head;
	struct rtmsg route;
	uint8_t attributes[64];
};

static void add_attribute(struct route_question *q, unsigned short type, const void *data,
			  unsigned short size)
{
	struct rtattr *a = (struct rtattr *)((uint8_t *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(size);
	memcpy(RTA_DATA(a), data, size);
	q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static const void *address_bytes(const struct sockaddr_storage *sa, unsigned short *size)
{
	if (sa->ss_family == AF_INET6) {
		*size = sizeof(struct in6_addr);
		return &((const struct sockaddr_in6 *)sa)->sin6_addr;
	}
	*size = sizeof(struct in_addr);
	return &((const struct sockaddr_in *)sa)->sin_addr;
}

/*
 * The kernel is asked for the entry of its tables: without it, it would say of every interface of IPv4 that the destination is on its link.
 */
static void build_question(struct route_question *q, const struct sockaddr_storage *remote,
			   const struct sockaddr_storage *source, unsigned interface)
{
	unsigned short size;
	const void *to = address_bytes(remote, &size), *from = address_bytes(source, &size);
	uint32_t index = interface;

	*q = (struct route_question){.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(q->route)),
					      .nlmsg_type = RTM_GETROUTE,
					      .nlmsg_flags = NLM_F_REQUEST},
				     .route = {.rtm_family = (unsigned char)remote->ss_family,
					       .rtm_dst_len = (unsigned char)(size * 8),
					       .rtm_src_len = (unsigned char)(size * 8),
					       .rtm_flags = RTM_F_FIB_MATCH}};
	add_attribute(q, RTA_DST, to, size);
	add_attribute(q, RTA_SRC, from, size);
	add_attribute(q, RTA_OIF, &index, sizeof(index));
}

bool cl_route_exists(const struct sockaddr_storage *remote, const struct sockaddr_storage *source,
		     unsigned interface)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct timeval limit = {.tv_usec = ANSWER_MS * 1000};
	union {
		struct nlmsghdr head;
		uint8_t bytes[4096];
	} answer;
	struct route_question q;
	bool exists = false;
	ssize_t n;

	if (fd < 0)
		return false;
	build_question(&q, remote, source, interface);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (send(fd, &q, q.head.nlmsg_len, 0) == (ssize_t)q.head.nlmsg_len) {
		n = recv(fd, &answer, sizeof(answer), 0);
		exists =
			n >= (ssize_t)sizeof(answer.head) && answer.head.nlmsg_type == RTM_NEWROUTE;
	}
	close(fd);
	return exists;
}

bool cl_route_source(const struct sockaddr_storage *remote, socklen_t len, const char *device,
		     struct sockaddr_storage *source)
{
	int fd = socket(remote->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*source);
	bool found;

	memset(source, 0, sizeof(*source));
	if (fd < 0)
		return false;
	found = (!device || setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device,
				       (socklen_t)strlen(device)) == 0) &&
		connect(fd, (const struct sockaddr *)remote, len) == 0 &&
		getsockname(fd, (struct sockaddr *)source, &size) == 0;
	close(fd);
	if (!found)
		memset(source, 0, sizeof(*source));
	else if (source->ss_family == AF_INET6)
		((struct sockaddr_in6 *)source)->sin6_port = 0;
	else
		((struct sockaddr_in *)source)->sin_port = 0;
	return found;
}

int cl_routes_watch(void)
{
	struct sockaddr_nl groups = {.nl_family = AF_NETLINK,
				     .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
						  RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
						  RTMGRP_IPV6_ROUTE};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&groups, sizeof(groups)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool cl_routes_moved(int fd)
{
	uint8_t event[64];
	unsigned count = 0;

	/* That events were lost (ENOBUFS) is one, too. What they say is read where it is used. */
	while (count < EVENTS_MOST && (recv(fd, event, sizeof(event), 0) > 0 || errno == ENOBUFS))
		count++;
	return count > 0;
}
