/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports for servers that a test starts again, or that have one port at several addresses. */
#ifndef TESTS_SUPPORT_PORTS_H
#define TESTS_SUPPORT_PORTS_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/asserts.h"

/*
 * A UDP port that is free at all addresses. It is none of those that the kernel gives to sockets which ask for any, so no other test
 * gets it while its server is down.
 */
static inline uint16_t choose_port(void)
{
	static unsigned chosen;
	struct sockaddr_in sin = {.sin_family = AF_INET};
	bool free = false;

	for (unsigned tries = 0; !free && tries < 1000; tries++) {
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		sin.sin_port = htons((uint16_t)(10240 + ((unsigned)getpid() * 16 + chosen++) % 20000));
		free = bind(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0;
		close(fd);
	}
	ck_assert(free);
	return ntohs(sin.sin_port);
}

#endif
