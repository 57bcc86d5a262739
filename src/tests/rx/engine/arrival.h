/* SPDX-License-Identifier: BSD-2-Clause */
/* First packets of calls from addresses that no test can send from. */
#ifndef TESTS_ENGINE_ARRIVAL_H
#define TESTS_ENGINE_ARRIVAL_H

#include "engine/objects.h"
#include "tests/rx/api/harness.h"

#define ARRIVAL_LOCAL "203.0.113.99" /* an address of the server's host, unlike its peers */

/*
 * What rxw_find_connection() returns on the server's first shard for a request of connection `cid`
 * that comes from `host` to the address `local`. The caller drops the reference.
 */
struct rxw_connection *arrival_from(struct h_bed *bed, const char *host, const char *local,
				    uint32_t cid);

#endif
