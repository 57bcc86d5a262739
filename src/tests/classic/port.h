/* SPDX-License-Identifier: BSD-2-Clause */
/* A port of this process: programs cannot ask for the number of one that the system chose. */
#ifndef RXW_TESTS_CLASSIC_PORT_H
#define RXW_TESTS_CLASSIC_PORT_H

#include <unistd.h>

#include <rx/rx.h>

#include "tests/asserts.h"

/* rx_Init() on a port that no other process uses; in network order. */
static inline u_short port_start(void)
{
	int rc;

	for (int port = 20000 + getpid() % 10000; port < 60000; port++) {
		rc = rx_InitHost(htonl(INADDR_LOOPBACK), htons((u_short)port));
		if (!rc)
			return htons((u_short)port);
		ck_assert_int_eq(rc, RX_ADDRINUSE);
	}
	ck_abort_msg("no free port");
	return 0;
}

#endif
