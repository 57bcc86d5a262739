/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of procedure calls, as stubs count them and OpenAFS's service 409 reads them. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rx/rx.h>

#include "../classic.h"

static _Atomic(int (*)(struct rx_call *)) user_ok;
/* The table exists from the first use to the end of the process; NULL without memory. */
static rxw_rpcstats *table_of_process;

static void create_statistics_table(void)
{
	if (rxw_rpcstats_create(NULL, &table_of_process))
		classic_log("cannot count procedure calls: no memory");
}

static rxw_rpcstats *statistics_table(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, create_statistics_table);
	return table_of_process;
}

static bool is_kind_enabled(enum rxw_rpcstats_kind kind)
{
	return rxw_rpcstats_enabled(statistics_table(), kind);
}

void rx_RecordCallStatistics(struct rx_call *call, unsigned int interface_id, unsigned int function,
			     unsigned int functions, int is_server)
{
	struct sockaddr_in peer = {.sin_family = AF_INET};
	struct rxw_rpcstats_call of = {
		.size = sizeof(of),
		.interface = interface_id,
		.function = function,
		.functions = functions,
		.client = is_server != 0,
		.peer = (const struct sockaddr *)&peer,
		.peer_len = sizeof(peer),
	};
	struct classic_usage usage;

	if (!is_kind_enabled(RXW_RPCSTATS_PROCESS) && !is_kind_enabled(RXW_RPCSTATS_PEERS))
		return;
	classic_usage(call, &usage);
	peer.sin_addr.s_addr = usage.host;
	peer.sin_port = usage.port;
	of.bytes_sent = usage.sent;
	of.bytes_received = usage.received;
	of.queue_ns = usage.queue_ns;
	of.run_ns = usage.run_ns;
	/* A failure has no reader: the call is not counted then. */
	(void)rxw_rpcstats_record(statistics_table(), &of);
}

/* -- Reading -------------------------------------------------------------------------------------- */

static int retrieve_statistics(enum rxw_rpcstats_kind kind, afs_uint32 caller_version,
			       afs_uint32 *version, afs_uint32 *seconds, afs_uint32 *microseconds,
			       size_t *size, afs_uint32 *count, afs_uint32 **statistics)
{
	struct clock now;
	int functions = 0;

	clock_GetTime(&now);
	*seconds = (afs_uint32)now.sec;
	*microseconds = (afs_uint32)now.usec;
	*version = RX_STATS_RETRIEVAL_VERSION;
	*statistics = NULL;
	if (is_kind_enabled(kind) && caller_version >= RX_STATS_RETRIEVAL_FIRST_EDITION)
		functions = rxw_rpcstats_entries(statistics_table(), kind, statistics);
	*count = functions > 0 ? (afs_uint32)functions : 0;
	*size = *count * RXW_RPCSTATS_WORDS * sizeof(afs_uint32);
	return functions < 0 ? ENOMEM : 0;
}

int rx_RetrieveProcessRPCStats(afs_uint32 caller_version, afs_uint32 *version, afs_uint32 *seconds,
			       afs_uint32 *microseconds, size_t *size, afs_uint32 *count,
			       afs_uint32 **statistics)
{
	return retrieve_statistics(RXW_RPCSTATS_PROCESS, caller_version, version, seconds,
				   microseconds, size, count, statistics);
}

int rx_RetrievePeerRPCStats(afs_uint32 caller_version, afs_uint32 *version, afs_uint32 *seconds,
			    afs_uint32 *microseconds, size_t *size, afs_uint32 *count,
			    afs_uint32 **statistics)
{
	return retrieve_statistics(RXW_RPCSTATS_PEERS, caller_version, version, seconds,
				   microseconds, size, count, statistics);
}

void rx_FreeRPCStats(afs_uint32 *statistics, size_t size)
{
	(void)size;
	free(statistics);
}

/* The bits of both interfaces are the same ones. */
_Static_assert(RXW_RPCSTATS_CLEAR_BYTES_RECEIVED == AFS_RX_STATS_CLEAR_BYTES_RCVD, "bits");
_Static_assert(RXW_RPCSTATS_CLEAR_RUN_MAX == AFS_RX_STATS_CLEAR_EXEC_TIME_MAX, "bits");
_Static_assert(RXW_RPCSTATS_WORDS == sizeof(rx_function_entry_v1_t) / sizeof(afs_uint32), "layout");

/* -- Settings ------------------------------------------------------------------------------------- */

int rx_queryProcessRPCStats(void)
{
	return is_kind_enabled(RXW_RPCSTATS_PROCESS);
}

int rx_queryPeerRPCStats(void)
{
	return is_kind_enabled(RXW_RPCSTATS_PEERS);
}

static void enable_statistics(enum rxw_rpcstats_kind kind, bool on)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	/* The variable fits the table, also when several threads change it. */
	pthread_mutex_lock(&lock);
	(void)rxw_rpcstats_enable(statistics_table(), kind, on);
	rx_enable_stats =
		is_kind_enabled(RXW_RPCSTATS_PROCESS) || is_kind_enabled(RXW_RPCSTATS_PEERS);
	pthread_mutex_unlock(&lock);
}

void rx_enableProcessRPCStats(void)
{
	enable_statistics(RXW_RPCSTATS_PROCESS, true);
}

void rx_enablePeerRPCStats(void)
{
	enable_statistics(RXW_RPCSTATS_PEERS, true);
}

void rx_disableProcessRPCStats(void)
{
	enable_statistics(RXW_RPCSTATS_PROCESS, false);
}

void rx_disablePeerRPCStats(void)
{
	enable_statistics(RXW_RPCSTATS_PEERS, false);
}

void rx_clearProcessRPCStats(afs_uint32 what)
{
	(void)rxw_rpcstats_clear(statistics_table(), RXW_RPCSTATS_PROCESS, what);
}

void rx_clearPeerRPCStats(afs_uint32 what)
{
	(void)rxw_rpcstats_clear(statistics_table(), RXW_RPCSTATS_PEERS, what);
}

/* -- Permission ----------------------------------------------------------------------------------- */

void rx_SetRxStatUserOk(int (*allowed)(struct rx_call *call))
{
	user_ok = allowed;
}

int rx_RxStatUserOk(struct rx_call *call)
{
	int (*allowed)(struct rx_call *) = user_ok;

	return allowed ? allowed(call) : 0;
}
