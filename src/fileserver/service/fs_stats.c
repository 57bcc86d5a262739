/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: the statistics that monitoring tools ask for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/counters.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define XSTATS_VERSION 2
#define ACTIVE_S       900 /* a client is active for this time after a call */
#define DISKS	       10

/* The values of both forms of the statistics. */
struct figures {
	uint32_t now, boot, start; /* dates */
	uint64_t connections;
	uint64_t fetches, fetch_datas, fetched_bytes, fetch_rate; /* bytes a second */
	uint64_t stores, store_datas, stored_bytes, store_rate;
	uint64_t calls;
	uint64_t hosts, hosts_active;
	uint64_t process_kib;
	struct counters rx;
};

/* Resident memory of the process. */
static uint64_t process_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size = 0, resident = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	fclose(file);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* CPU times of the machine since it booted, in ticks. */
static void processor_times(ViceStatistics *stats)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long user = 0, nice = 0, system = 0, idle = 0;

	if (!file)
		return;
	if (fscanf(file, "cpu %lu %lu %lu %lu", &user, &nice, &system, &idle) == 4) {
		stats->UserCPU = (int32_t)user;
		stats->NiceCPU = (int32_t)nice;
		stats->SystemCPU = (int32_t)system;
		stats->IdleCPU = (int32_t)idle;
	}
	fclose(file);
}

/* When the machine booted, seconds since 1970. */
static uint32_t boot_time(void)
{
	return (uint32_t)(wall_ns() / NS_PER_S - read_clock_ns(CLOCK_BOOTTIME) / NS_PER_S);
}

static void collect_figures(struct fsd_service *service, struct figures *f)
{
	const struct fsd_counters *c = &service->counters;
	struct fsd_clients_stats clients;
	uint64_t ms = fsd_counted(&c->fetch_ns) / 1000000;
	uint64_t store_ms = fsd_counted(&c->store_ns) / 1000000;

	fsd_clients_stats(service->clients, &clients);
	*f = (struct figures){0};
	if (service->fs)
		counters_read(&f->rx, service->fs);
	f->now = (uint32_t)time(NULL);
	f->boot = boot_time();
	f->start = service->start_time;
	f->connections = counters_get(&f->rx, "connections_server");
	f->fetch_datas = fsd_counted(&c->fetches);
	f->fetches = f->fetch_datas + fsd_counted(&c->statuses);
	f->fetched_bytes = fsd_counted(&c->fetched_bytes);
	f->fetch_rate = ms ? f->fetched_bytes * 1000 / ms : 0;
	f->store_datas = fsd_counted(&c->stores);
	f->stores = fsd_counted(&c->changes);
	f->stored_bytes = fsd_counted(&c->stored_bytes);
	f->store_rate = store_ms ? f->stored_bytes * 1000 / store_ms : 0;
	f->calls = fsd_counted(&c->calls);
	f->hosts = clients.hosts;
	f->hosts_active = fsd_clients_active(service->clients, fsd_now(), ACTIVE_S);
	f->process_kib = process_kib();
}

static int32_t clip(uint64_t value)
{
	return value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static void fill_transport(const struct counters *rx, ViceStatistics *stats)
{
	stats->TotalRPCBytesSent = (uint32_t)counters_get(rx, "bytes.sent");
	stats->TotalRPCBytesReceived = (uint32_t)counters_get(rx, "bytes.received");
	stats->TotalRPCPacketsSent = (uint32_t)counters_sum(rx, "packets.sent.");
	stats->TotalRPCPacketsReceived = (uint32_t)counters_sum(rx, "packets.received.");
	stats->TotalRPCPacketsLost = (uint32_t)counters_get(rx, "retransmitted");
	stats->TotalRPCBogusPackets = (uint32_t)counters_sum(rx, "drops.");
}

/* One partition; the other entries are marked unused. */
static void fill_disks(struct fsd_service *service, ViceStatistics *stats)
{
	struct store_space space;

	for (int i = 0; i < DISKS; i++)
		stats->Disk[i].TotalBlocks = -1;
	if (service->store->ops->space(service->store, &space))
		return;
	stats->Disk[0].BlocksAvailable = clip(space.available_kib);
	stats->Disk[0].TotalBlocks = clip(space.total_kib);
	memcpy(stats->Disk[0].Name, "/vicepa", sizeof("/vicepa"));
}

/* Most counters of the machine stay 0. */
int32_t fs_statistics(void *context, rxw_call *rx, ViceStatistics *stats)
{
	struct fs_call *call = context;
	struct figures f;

	(void)rx;
	collect_figures(call->service, &f);
	stats->CurrentTime = f.now;
	stats->BootTime = f.boot;
	stats->StartTime = f.start;
	stats->CurrentConnections = (int32_t)f.connections;
	stats->TotalViceCalls = (uint32_t)f.calls;
	stats->TotalFetchs = (uint32_t)f.fetches;
	stats->FetchDatas = (uint32_t)f.fetch_datas;
	stats->FetchedBytes = (uint32_t)f.fetched_bytes;
	stats->FetchDataRate = clip(f.fetch_rate);
	stats->TotalStores = (uint32_t)f.stores;
	stats->StoreDatas = (uint32_t)f.store_datas;
	stats->StoredBytes = (uint32_t)f.stored_bytes;
	stats->StoreDataRate = clip(f.store_rate);
	stats->ProcessSize = (int32_t)f.process_kib;
	stats->WorkStations = (int32_t)f.hosts;
	stats->ActiveWorkStations = (int32_t)f.hosts_active;
	fill_transport(&f.rx, stats);
	processor_times(stats);
	fill_disks(call->service, stats);
	return 0;
}

int32_t fs_statistics64(void *context, rxw_call *rx, int32_t version, ViceStatistics64 *stats)
{
	struct fs_call *call = context;
	struct figures f;

	(void)rx;
	/*
	 * The client sends the number of its counters. Only the number that is defined is accepted.
	 */
	if (version != STATS64_VERSION)
		return -EINVAL;
	collect_figures(call->service, &f);

	const uint64_t values[STATS64_VERSION] = {
		f.now,	   f.boot,	  f.start,	   f.connections,
		f.fetches, f.fetch_datas, f.fetched_bytes, f.fetch_rate,
		f.stores,  f.store_datas, f.stored_bytes,  f.store_rate,
		f.calls,   f.hosts,	  f.hosts_active,  f.process_kib,
	};

	stats->val = malloc(sizeof(values));
	if (!stats->val)
		return AFS_VBUSY;
	memcpy(stats->val, values, sizeof(values));
	stats->len = STATS64_VERSION;
	return 0;
}

int32_t fs_xstats_version(void *context, rxw_call *rx, int32_t *version)
{
	(void)context, (void)rx;
	*version = XSTATS_VERSION;
	return 0;
}

int32_t fs_xstats(void *context, rxw_call *rx, int32_t client_version, int32_t collection,
		  int32_t *server_version, int32_t *now, AFS_CollData *data)
{
	struct fs_call *call = context;

	(void)rx, (void)client_version;
	*server_version = XSTATS_VERSION;
	*now = (int32_t)time(NULL);
	return fsd_xstats(call->service, collection, data);
}
