/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the permits in places.c: shares of calls that list very many volumes. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "fileserver/service/places.h"
#include "tests/main.h"

#define MAX  16u
#define HALF (MAX / 2)

static struct fsd_permits permits;

/* Call number `n`, from an address in 10/8. */
static bool begin(uintptr_t n, uint32_t address)
{
	struct sockaddr_storage peer = {.ss_family = AF_INET};
	struct sockaddr_in *in = (struct sockaddr_in *)&peer;

	in->sin_addr.s_addr = htonl(0x0a000000u + address);
	in->sin_port = htons((uint16_t)(7000 + n));
	return fsd_permit_take(&permits, (const void *)n, &peer);
}

static void end(uintptr_t n)
{
	fsd_permit_return(&permits, (const void *)n);
}

START_TEST(one_address_gets_half)
{
	fsd_permits_init(&permits, MAX);
	for (uintptr_t n = 1; n <= HALF; n++)
		ck_assert(begin(n, 1));
	ck_assert(!begin(100, 1));
	for (uintptr_t n = 101; n <= 100 + HALF / 2; n++)
		ck_assert(begin(n, 2));
	ck_assert(!begin(200, 2));
	ck_assert(begin(201, 3));
	/* Calls without a place end, too. */
	end(100);
	end(300);
	ck_assert(!begin(100, 1));
	for (uintptr_t n = 1; n <= HALF; n++)
		end(n);
	ck_assert(begin(1, 1));
	end(1);
	for (uintptr_t n = 101; n <= 100 + HALF / 2; n++)
		end(n);
	end(201);
	ck_assert_uint_eq(permits.count, 0);
	fsd_permits_fini(&permits);
}
END_TEST

TEST_MAIN("permits", one_address_gets_half)
