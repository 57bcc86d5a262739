/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: the statistics that monitoring tools ask for. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <rxwire/error.h>

#include "fileserver/fs_private.h"

#define STATISTICS_WORDS     145
#define STATISTICS64_VERSION 16
#define XSTATS_VERSION	     2

static uint64_t counter(const _Atomic uint64_t *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

static uint64_t resident_kib(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_maxrss;
}

/* Seconds since the machine started, as a date. */
static uint64_t boot_time(void)
{
	struct timespec real, boot;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (uint64_t)(real.tv_sec - boot.tv_sec);
}

/* Places in the list of 45 numbers; those that we have nothing for stay 0. */
enum {
	S_TIME = 2,
	S_BOOT = 3,
	S_START = 4,
	S_CALLS = 6,
	S_FETCHES = 7,
	S_FETCH_DATAS = 8,
	S_FETCHED = 9,
	S_PROCESS = 34,
	S_HOSTS = 35,
	S_ACTIVE_HOSTS = 36,
	S_SCALARS = 45,
	S_DISKS = 10,
};

int fs_statistics(struct fs_call *call)
{
	const struct fsd_counters *c = &call->service->counters;
	uint32_t words[S_SCALARS] = {0};
	uint8_t reply[STATISTICS_WORDS * 4];
	char disk[32] = "/vicepa";
	struct afs_volume_status space = {0};
	struct fsd_clients_stats clients;
	struct rxw_xdr x;

	fsd_clients_stats(call->service->clients, &clients);
	fsd_volume_space(call->service->volume, &space);
	words[S_TIME] = (uint32_t)time(NULL);
	words[S_BOOT] = (uint32_t)boot_time();
	words[S_START] = call->service->start_time;
	words[S_CALLS] = (uint32_t)counter(&c->calls);
	words[S_FETCHES] = (uint32_t)(counter(&c->fetches) + counter(&c->statuses));
	words[S_FETCH_DATAS] = (uint32_t)counter(&c->fetches);
	words[S_FETCHED] = (uint32_t)counter(&c->fetched_bytes);
	words[S_PROCESS] = (uint32_t)resident_kib();
	words[S_HOSTS] = (uint32_t)clients.hosts;
	words[S_ACTIVE_HOSTS] = (uint32_t)clients.hosts_up;
	rxw_xdr_writer(&x, reply, sizeof(reply));
	for (int i = 0; i < S_SCALARS; i++)
		rxw_xdr_put_u32(&x, words[i]);
	for (int i = 0; i < S_DISKS; i++) {
		rxw_xdr_put_u32(&x, i ? 0 : (uint32_t)space.blocks_available);
		rxw_xdr_put_u32(&x, i ? (uint32_t)-1 : (uint32_t)space.blocks_total);
		if (i)
			memset(disk, 0, sizeof(disk));
		rxw_xdr_put_opaque(&x, disk, sizeof(disk));
	}
	return fs_reply(call, &x);
}

int fs_statistics64(struct fs_call *call)
{
	const struct fsd_counters *c = &call->service->counters;
	uint8_t reply[4 + STATISTICS64_VERSION * 8];
	struct fsd_clients_stats clients;
	struct rxw_xdr x;
	uint32_t version;

	if (!rxw_xdr_get_u32(&call->in, &version))
		return FS_UNDECODABLE;
	if (version != STATISTICS64_VERSION)
		return -EINVAL;
	fsd_clients_stats(call->service->clients, &clients);

	const uint64_t values[STATISTICS64_VERSION] = {
		(uint64_t)time(NULL),
		boot_time(),
		call->service->start_time,
		clients.hosts,
		counter(&c->fetches) + counter(&c->statuses),
		counter(&c->fetches),
		counter(&c->fetched_bytes),
		0,
		0,
		0,
		0,
		0,
		counter(&c->calls),
		clients.hosts,
		clients.hosts_up,
		resident_kib(),
	};

	rxw_xdr_writer(&x, reply, sizeof(reply));
	rxw_xdr_put_u32(&x, STATISTICS64_VERSION);
	for (int i = 0; i < STATISTICS64_VERSION; i++)
		rxw_xdr_put_u64(&x, values[i]);
	return fs_reply(call, &x);
}

int fs_xstats_version(struct fs_call *call)
{
	uint8_t reply[4];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, reply, sizeof(reply));
	rxw_xdr_put_u32(&x, XSTATS_VERSION);
	return fs_reply(call, &x);
}

/* Collection 0 is the empty one; of the others we keep none. */
int fs_xstats(struct fs_call *call)
{
	uint32_t version, collection;
	uint8_t reply[12];
	struct rxw_xdr x;

	rxw_xdr_get_u32(&call->in, &version);
	if (!rxw_xdr_get_u32(&call->in, &collection))
		return FS_UNDECODABLE;
	if (collection != 0)
		return 1;
	rxw_xdr_writer(&x, reply, sizeof(reply));
	rxw_xdr_put_u32(&x, XSTATS_VERSION);
	rxw_xdr_put_u32(&x, (uint32_t)time(NULL));
	rxw_xdr_put_u32(&x, 0);
	return fs_reply(call, &x);
}
