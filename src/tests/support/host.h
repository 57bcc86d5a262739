/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host of the protocol core in tests: memory, calls, and the output record. The structures
 * of a test begin with HOST, HOST_CONN and HOST_CALL, and its own members follow.
 */
#ifndef TESTS_SUPPORT_HOST_H
#define TESTS_SUPPORT_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rtt.h"
#include "proto/conn/conn.h"

#define HOST_CTLS 64u

struct host;
struct host_conn;
struct host_call;

struct host_ops {
	size_t call_size; /* of the test's structure for a call */
	/* A call was made; may be NULL. */
	void (*made)(struct host_conn *c, struct host_call *call);
	/* For host_settle(): a control packet leaves; events of a call. */
	void (*control)(struct host *h, const struct rxw_ctl *ctl);
	void (*events)(struct host *h, struct host_call *call, uint32_t events);
};

#define HOST                           \
	const struct host_ops *ops;    \
	struct rxw_params params;      \
	struct rxw_pstats stats;       \
	struct rxw_budget budget, wide; \
	struct rxw_pool *pool;         \
	struct rxw_peer_table *peers;  \
	struct rxw_out out;            \
	struct rxw_ctl ctl[HOST_CTLS]; \
	unsigned live_calls;           \
	bool refuse_calls, memory_short; \
	int32_t refusal

#define HOST_CONN           \
	struct rxw_pconn p; \
	struct host *host

#define HOST_CALL           \
	struct rxw_pcall p; \
	struct host *host;  \
	unsigned refs

struct host {
	HOST;
};

struct host_conn {
	HOST_CONN;
};

struct host_call {
	HOST_CALL;
};

/* A window of 255 packets, a path of Ethernet, the engine's times and bounds. */
struct rxw_params host_params(void);
/*
 * `h` is zeroed. Buffers come from a budget of `memory` bytes, in steps of `lease`; `keep` idle
 * ones are kept.
 */
void host_init(struct host *h, const struct host_ops *ops, const struct rxw_params *params,
	       size_t memory, size_t lease, unsigned keep);
/* Drops the calls that are still posted. */
void host_forget(struct host *h);
/* Connections are gone. Returns the bytes of buffers that were still in use. */
size_t host_free(struct host *h);

void host_conn_init(struct host *h, struct host_conn *c, const struct rxw_path *path,
		    uint32_t epoch, uint32_t cid, uint16_t service, struct rxw_security *security,
		    bool client);
/* With one reference. */
struct host_call *host_call_new(struct host_conn *c);
void host_hold(struct rxw_pcall *p);
void host_drop(struct rxw_pcall *p);

/* Hands all that the output record has to the test, until nothing is left in it. */
void host_settle(struct host *h);

#endif
