/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of procedure calls, as stubs count them and the service 409 of OpenAFS reads them. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rx/rx.h>

#include "rpctable.h"

/* Programs may assign it; 1 while a table counts. */
int rx_enable_stats;

static _Atomic(int (*)(struct rx_call *)) user_ok;

void rx_RecordCallStatistics(struct rx_call *call, unsigned int interface_id, unsigned int function,
			     unsigned int functions, int is_server)
{
	const struct rpctable_function of = {interface_id, function, functions, is_server != 0};
	struct classic_usage usage;

	if (!rpctable_counts(&rpctable_process) && !rpctable_counts(&rpctable_peers))
		return;
	classic_usage(call, &usage);
	rpctable_add(&rpctable_process, &of, &usage);
	rpctable_add(&rpctable_peers, &of, &usage);
}

/* -- Reading -------------------------------------------------------------------------------------- */

static int retrieve(struct rpctable *table, afs_uint32 caller_version, afs_uint32 *version,
		    struct clock *now, size_t *size, afs_uint32 *count, afs_uint32 **statistics)
{
	int functions = 0;

	clock_GetTime(now);
	*version = RX_STATS_RETRIEVAL_VERSION;
	*statistics = NULL;
	if (rpctable_counts(table) && caller_version >= RX_STATS_RETRIEVAL_FIRST_EDITION)
		functions = rpctable_list(table, statistics);
	*count = functions > 0 ? (afs_uint32)functions : 0;
	*size = *count * RPCTABLE_WORDS * sizeof(afs_uint32);
	return functions < 0 ? ENOMEM : 0;
}

int rx_RetrieveProcessRPCStats(afs_uint32 caller_version, afs_uint32 *version, afs_uint32 *seconds,
			       afs_uint32 *microseconds, size_t *size, afs_uint32 *count,
			       afs_uint32 **statistics)
{
	struct clock now;
	int rc =
		retrieve(&rpctable_process, caller_version, version, &now, size, count, statistics);

	*seconds = (afs_uint32)now.sec;
	*microseconds = (afs_uint32)now.usec;
	return rc;
}

int rx_RetrievePeerRPCStats(afs_uint32 caller_version, afs_uint32 *version, afs_uint32 *seconds,
			    afs_uint32 *microseconds, size_t *size, afs_uint32 *count,
			    afs_uint32 **statistics)
{
	struct clock now;
	int rc = retrieve(&rpctable_peers, caller_version, version, &now, size, count, statistics);

	*seconds = (afs_uint32)now.sec;
	*microseconds = (afs_uint32)now.usec;
	return rc;
}

void rx_FreeRPCStats(afs_uint32 *statistics, size_t size)
{
	(void)size;
	free(statistics);
}

/* -- Settings ------------------------------------------------------------------------------------- */

int rx_queryProcessRPCStats(void)
{
	return rpctable_counts(&rpctable_process);
}

int rx_queryPeerRPCStats(void)
{
	return rpctable_counts(&rpctable_peers);
}

static void enable(struct rpctable *table, bool on)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	/* The variable fits the tables, also when several threads change them. */
	pthread_mutex_lock(&lock);
	rpctable_count(table, on);
	rx_enable_stats = rpctable_counts(&rpctable_process) || rpctable_counts(&rpctable_peers);
	pthread_mutex_unlock(&lock);
}

void rx_enableProcessRPCStats(void)
{
	enable(&rpctable_process, true);
}

void rx_enablePeerRPCStats(void)
{
	enable(&rpctable_peers, true);
}

void rx_disableProcessRPCStats(void)
{
	enable(&rpctable_process, false);
}

void rx_disablePeerRPCStats(void)
{
	enable(&rpctable_peers, false);
}

void rx_clearProcessRPCStats(afs_uint32 what)
{
	rpctable_clear(&rpctable_process, what);
}

void rx_clearPeerRPCStats(afs_uint32 what)
{
	rpctable_clear(&rpctable_peers, what);
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
