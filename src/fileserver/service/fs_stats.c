/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file service: the statistics that monitoring tools ask for. GetXStats has them by collection, in the layout that
 * OpenAFS's tools expect of a 64-bit server. Values that have no counterpart here stay 0.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rxwire/error.h>

#include "common/clock.h"
#include "common/counters.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define XSTATS_VERSION 2
#define ACTIVE_S       900 /* a client is active for this time after a call */
#define DISKS	       10
#define SYSNAME_AMD64_LINUX 2703

/* -- GetStatistics -- */

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
	stats->Disk[0].BlocksAvailable = fsd_clip(space.available_kib);
	stats->Disk[0].TotalBlocks = fsd_clip(space.total_kib);
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
	stats->FetchDataRate = fsd_clip(f.fetch_rate);
	stats->TotalStores = (uint32_t)f.stores;
	stats->StoreDatas = (uint32_t)f.store_datas;
	stats->StoredBytes = (uint32_t)f.stored_bytes;
	stats->StoreDataRate = fsd_clip(f.store_rate);
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

/* -- GetXStats -- */

/* Collection 1. */
enum {
	X_ASKED = 0,
	X_PACKETS = 17,
	X_BOGUS_PACKETS = 22,
	X_BOGUS_HOSTS = 23,
	X_READ_RECEIVE_CLASS = 28,
	X_READ_SEND_CLASS = 29,
	X_READ_SPECIAL_CLASS = 30,
	X_READ_DATA = 31,
	X_READ_ACKS = 32,
	X_READ_DUPLICATES = 33,
	X_READ_SPURIOUS = 34,
	X_SENT_RECEIVE_CLASS = 35,
	X_SENT_SEND_CLASS = 36,
	X_SENT_SPECIAL_CLASS = 37,
	X_SENT_ACKS = 38,
	X_SENT_ABORTS = 40,
	X_SENT_BUSIES = 41,
	X_SENT_DATA = 42,
	X_SENT_AGAIN = 43,
	X_SERVER_CONNECTIONS = 53,
	X_CLIENT_CONNECTIONS = 54,
	X_PEERS = 55,
	X_CALLS = 56,
	X_HOSTS = 58,
	X_HOSTS_KNOWN = 60,
	X_CLIENTS = 64,
	X_SYSNAME = 66,
	X_BUSIES = 67,
	X_FS_BUSIES = 68,
	X_FS_CAPABILITIES = 69,
	X_WORDS = 98,
};

/* Collection 2: the words of collection 1, a date, procedures, transfers. */
#define DETAIL_EPOCH	 X_WORDS
#define DETAIL_CALLS	 (DETAIL_EPOCH + TIME_WORDS)
#define DETAIL_TRANSFERS (DETAIL_CALLS + PROCEDURES * CALL_WORDS)
#define DETAIL_WORDS	 (DETAIL_TRANSFERS + 2 * TRANSFER_WORDS)
#define TIME_WORDS	 4
#define CALL_WORDS	 18
#define TRANSFER_WORDS	 30
#define PROCEDURES	 28

/* Collection 3. */
enum {
	C_DROPPED = 1,
	C_BROKEN = 2,
	C_GIVEN = 3,
	C_RECLAIMED = 4,
	C_DROPPED_ALL = 5,
	C_OBJECTS = 6,
	C_HELD = 7,
	C_EXPIRED = 9,
	C_WORDS = 16,
};

/* Minima if nothing was counted. */
#define NO_SECONDS 999999
#define NO_BYTES   999999999

/* The procedures of collection 2, each with its other form, or itself twice. */
static const uint8_t procedures[PROCEDURES][2] = {
	{RXAFS_FN_FetchData, RXAFS_FN_FetchData64},
	{RXAFS_FN_FetchACL, RXAFS_FN_FetchACL},
	{RXAFS_FN_FetchStatus, RXAFS_FN_FetchStatus},
	{RXAFS_FN_StoreData, RXAFS_FN_StoreData64},
	{RXAFS_FN_OldStoreACL, RXAFS_FN_StoreACL},
	{RXAFS_FN_StoreStatus, RXAFS_FN_StoreStatus},
	{RXAFS_FN_RemoveFile, RXAFS_FN_RemoveFile},
	{RXAFS_FN_CreateFile, RXAFS_FN_CreateFile},
	{RXAFS_FN_Rename, RXAFS_FN_Rename},
	{RXAFS_FN_Symlink, RXAFS_FN_Symlink},
	{RXAFS_FN_Link, RXAFS_FN_Link},
	{RXAFS_FN_MakeDir, RXAFS_FN_MakeDir},
	{RXAFS_FN_RemoveDir, RXAFS_FN_RemoveDir},
	{RXAFS_FN_SetLock, RXAFS_FN_OldSetLock},
	{RXAFS_FN_ExtendLock, RXAFS_FN_OldExtendLock},
	{RXAFS_FN_ReleaseLock, RXAFS_FN_OldReleaseLock},
	{RXAFS_FN_GetStatistics, RXAFS_FN_GetStatistics64},
	{RXAFS_FN_GiveUpCallBacks, RXAFS_FN_GiveUpAllCallBacks},
	{RXAFS_FN_GetVolumeInfo, RXAFS_FN_GetVolumeInfo},
	{RXAFS_FN_GetVolumeStatus, RXAFS_FN_GetVolumeStatus},
	{RXAFS_FN_SetVolumeStatus, RXAFS_FN_SetVolumeStatus},
	{RXAFS_FN_GetRootVolume, RXAFS_FN_GetRootVolume},
	{RXAFS_FN_CheckToken, RXAFS_FN_CheckToken},
	{RXAFS_FN_GetTime, RXAFS_FN_GetTime},
	{RXAFS_FN_NGetVolumeInfo, RXAFS_FN_NGetVolumeInfo},
	{RXAFS_FN_BulkStatus, RXAFS_FN_InlineBulkStatus},
	{RXAFS_FN_XStatsVersion, RXAFS_FN_XStatsVersion},
	{RXAFS_FN_GetXStats, RXAFS_FN_GetXStats},
};

/* -- counting -- */

/* Bytes of a reply besides the data: length, AFSFetchStatus, AFSCallBack, AFSVolSync. */
#define FETCH_FRAME(length_bytes) ((length_bytes) + 84 + 12 + 24)
/* Bytes of a request besides the data: opcode, AFSFid, AFSStoreStatus, three numbers. */
#define STORE_FRAME(length_bytes) (4 + 12 + 24 + 3 * (length_bytes))
/* Of StoreRange: opcode, StoreSession, two numbers. */
#define RANGE_FRAME (4 + 16 + 2 * 8)

/* Upper limits of the size classes; the last class has none. */
static const uint32_t size_limits[FSD_XSTATS_SIZES - 1] = {
	128, 1024, 8192, 16384, 32768, 131072, 524288, 1048576,
};

void fsd_xstats_init(struct fsd_xstats *xstats)
{
	memset(xstats, 0, sizeof(*xstats));
	pthread_mutex_init(&xstats->lock, NULL);
	xstats->fetched.least_bytes = xstats->fetched.least_ns = UINT64_MAX;
	xstats->stored = xstats->fetched;
}

void fsd_xstats_end(struct fsd_xstats *xstats)
{
	pthread_mutex_destroy(&xstats->lock);
}

static void lower_of(uint64_t *to, uint64_t value)
{
	if (value < *to)
		*to = value;
}

static void higher_of(uint64_t *to, uint64_t value)
{
	if (value > *to)
		*to = value;
}

/* `moved`: bytes of the reply or the request, of which `frame` are no data. */
static void count_transfer(struct fsd_transfers *t, const struct rxw_rpc_report *report,
			   uint64_t moved, unsigned frame)
{
	double seconds = (double)report->run_ns / 1e9;
	uint64_t bytes;
	unsigned size = 0;

	t->count++;
	if (report->code || moved < frame)
		return;
	bytes = moved - frame;
	t->good++;
	t->bytes += bytes;
	lower_of(&t->least_bytes, bytes);
	higher_of(&t->most_bytes, bytes);
	t->ns += report->run_ns;
	lower_of(&t->least_ns, report->run_ns);
	higher_of(&t->most_ns, report->run_ns);
	t->square += seconds * seconds;
	while (size < FSD_XSTATS_SIZES - 1 && bytes > size_limits[size])
		size++;
	t->size[size]++;
}

static void count_call(struct fsd_xstats *xstats, const struct rxw_rpc_report *report)
{
	unsigned word = 8;

	switch (report->function) {
	case RXAFS_FN_FetchData:
		word = 4; /* fallthrough */
	case RXAFS_FN_FetchData64:
		pthread_mutex_lock(&xstats->lock);
		count_transfer(&xstats->fetched, report, report->bytes_sent, FETCH_FRAME(word));
		break;
	case RXAFS_FN_StoreData:
		word = 4; /* fallthrough */
	case RXAFS_FN_StoreData64:
		pthread_mutex_lock(&xstats->lock);
		count_transfer(&xstats->stored, report, report->bytes_received, STORE_FRAME(word));
		break;
	case RXAFS_FN_StoreRange:
		/* An empty one asks for the session. */
		if (report->bytes_received <= RANGE_FRAME)
			return;
		pthread_mutex_lock(&xstats->lock);
		count_transfer(&xstats->stored, report, report->bytes_received, RANGE_FRAME);
		break;
	default:
		return;
	}
	pthread_mutex_unlock(&xstats->lock);
}

void fsd_xstats_report(void *arg, const struct rxw_rpc_report *report)
{
	struct fsd_xstats *xstats = arg;

	if (report->interface == &RXAFS_interface && !report->client)
		count_call(xstats, report);
	if (xstats->calls)
		rxw_rpcstats_report(xstats->calls, report);
}

/* -- encoding -- */

static void put_packets(int32_t *w, rxw_endpoint *endpoint)
{
	struct counters c;
	uint64_t data_read, data_sent;

	if (!endpoint || counters_read(&c, endpoint))
		return;
#define COUNT(name) counters_get(&c, name)
	data_read = COUNT("packets.received.data");
	data_sent = COUNT("packets.sent.data");
	w[X_PACKETS] = (int32_t)counters_sum(&c, "packets.sent.");
	w[X_BOGUS_PACKETS] =
		(int32_t)(COUNT("drops.short") + COUNT("drops.type") + COUNT("drops.truncated"));
	w[X_BOGUS_HOSTS] = (int32_t)COUNT("drops.address");
	/* OpenAFS counts data packets in one class, and all others in another. */
	w[X_READ_RECEIVE_CLASS] = w[X_READ_DATA] = (int32_t)data_read;
	w[X_READ_SEND_CLASS] = (int32_t)(counters_sum(&c, "packets.received.") - data_read);
	w[X_READ_ACKS] = (int32_t)COUNT("packets.received.ack");
	w[X_READ_DUPLICATES] = (int32_t)COUNT("duplicates");
	w[X_READ_SPURIOUS] = (int32_t)(COUNT("drops.call-number") + COUNT("drops.no-connection"));
	w[X_SENT_RECEIVE_CLASS] = w[X_SENT_DATA] = (int32_t)data_sent;
	w[X_SENT_SEND_CLASS] = (int32_t)(counters_sum(&c, "packets.sent.") - data_sent);
	w[X_SENT_ACKS] = (int32_t)COUNT("packets.sent.ack");
	w[X_SENT_ABORTS] = (int32_t)COUNT("packets.sent.abort");
	w[X_SENT_BUSIES] = w[X_BUSIES] = w[X_FS_BUSIES] = (int32_t)COUNT("packets.sent.busy");
	w[X_SENT_AGAIN] = (int32_t)COUNT("retransmitted");
	w[X_SERVER_CONNECTIONS] = (int32_t)COUNT("connections_server");
	w[X_CLIENT_CONNECTIONS] = (int32_t)COUNT("connections_client");
	w[X_PEERS] = (int32_t)COUNT("peers");
	w[X_CALLS] = (int32_t)COUNT("calls_active");
#undef COUNT
}

static void get_calls(const struct fsd_xstats *xstats, unsigned function,
		      struct rxw_rpcstats_counters *counters)
{
	*counters = (struct rxw_rpcstats_counters){.size = sizeof(*counters)};
	if (rxw_rpcstats_get(xstats->calls, &RXAFS_interface, function, false, counters))
		counters->run.least = UINT64_MAX; /* nothing is counted */
}

static void put_figures(struct fsd_service *service, int32_t *w)
{
	struct fsd_xstats *xstats = &service->xstats;
	struct rxw_rpcstats_counters counters;
	struct fsd_clients_stats clients;

	w[X_ASKED] = (int32_t)atomic_fetch_add(&xstats->asked, 1) + 1;
	put_packets(w, service->fs);
	get_calls(xstats, RXAFS_FN_GetCapabilities, &counters);
	w[X_FS_CAPABILITIES] = (int32_t)counters.calls;
	fsd_clients_stats(service->clients, &clients);
	w[X_HOSTS] = w[X_HOSTS_KNOWN] = w[X_CLIENTS] = (int32_t)clients.hosts;
#if defined(__x86_64__) && defined(__linux__)
	w[X_SYSNAME] = SYSNAME_AMD64_LINUX;
#endif
}

/* A pair of 64-bit numbers, the low word of each first. */
static int32_t *put_xstat_time(int32_t *w, uint64_t seconds, uint64_t microseconds)
{
	w[0] = (int32_t)(uint32_t)seconds;
	w[1] = (int32_t)(uint32_t)(seconds >> 32);
	w[2] = (int32_t)(uint32_t)microseconds;
	w[3] = (int32_t)(uint32_t)(microseconds >> 32);
	return w + TIME_WORDS;
}

static int32_t *put_xstat_ns(int32_t *w, uint64_t ns)
{
	return put_xstat_time(w, ns / 1000000000, ns % 1000000000 / 1000);
}

/* Sum, sum of squares, minimum, maximum. */
static int32_t *put_xstat_times(int32_t *w, uint64_t sum, double square, uint64_t min, uint64_t max)
{
	double whole = (double)(uint64_t)square;

	w = put_xstat_ns(w, sum);
	w = put_xstat_time(w, (uint64_t)whole, (uint64_t)((square - whole) * 1e6));
	w = min == UINT64_MAX ? put_xstat_time(w, NO_SECONDS, 0) : put_xstat_ns(w, min);
	return put_xstat_ns(w, max);
}

static int32_t *put_procedure(const struct fsd_xstats *xstats, int32_t *w,
			      const uint8_t functions[2])
{
	struct rxw_rpcstats_counters a, b = {.run.least = UINT64_MAX};

	get_calls(xstats, functions[0], &a);
	if (functions[1] != functions[0])
		get_calls(xstats, functions[1], &b);
	lower_of(&a.run.least, b.run.least);
	higher_of(&a.run.most, b.run.most);
	*w++ = (int32_t)(a.calls + b.calls);
	*w++ = (int32_t)(a.calls - a.failed + b.calls - b.failed);
	return put_xstat_times(w, a.run.sum + b.run.sum, a.run.square + b.run.square, a.run.least,
			       a.run.most);
}

static int32_t *put_transfers(int32_t *w, const struct fsd_transfers *t)
{
	*w++ = (int32_t)t->count;
	*w++ = (int32_t)t->good;
	w = put_xstat_times(w, t->ns, t->square, t->least_ns, t->most_ns);
	*w++ = (int32_t)(t->bytes / 1024);
	*w++ = t->least_bytes > NO_BYTES ? NO_BYTES : (int32_t)t->least_bytes;
	*w++ = t->most_bytes > INT32_MAX ? INT32_MAX : (int32_t)t->most_bytes;
	for (int i = 0; i < FSD_XSTATS_SIZES; i++)
		*w++ = (int32_t)t->size[i];
	return w;
}

static void put_details(struct fsd_service *service, int32_t *w)
{
	struct fsd_xstats *xstats = &service->xstats;
	struct fsd_transfers fetched, stored;

	put_figures(service, w);
	w = put_xstat_time(w + DETAIL_EPOCH, service->start_time, 0);
	for (int i = 0; i < PROCEDURES; i++)
		w = put_procedure(xstats, w, procedures[i]);
	pthread_mutex_lock(&xstats->lock);
	fetched = xstats->fetched;
	stored = xstats->stored;
	pthread_mutex_unlock(&xstats->lock);
	w = put_transfers(w, &fetched);
	put_transfers(w, &stored);
}

static void put_callbacks(struct fsd_service *service, int32_t *w)
{
	struct fsd_clients_stats clients;

	fsd_clients_stats(service->clients, &clients);
	w[C_DROPPED] = (int32_t)clients.dropped;
	w[C_BROKEN] = (int32_t)clients.broken;
	w[C_GIVEN] = (int32_t)clients.given;
	w[C_RECLAIMED] = (int32_t)clients.reclaimed;
	w[C_DROPPED_ALL] = (int32_t)clients.dropped_all;
	w[C_OBJECTS] = (int32_t)clients.objects;
	w[C_HELD] = (int32_t)clients.promises;
	w[C_EXPIRED] = (int32_t)clients.expired;
}

int32_t fsd_xstats(struct fsd_service *service, int32_t collection, AFS_CollData *data)
{
	static const struct {
		void (*put)(struct fsd_service *service, int32_t *w);
		uint32_t words;
	} collections[] = {
		{NULL, 0},
		{put_figures, X_WORDS},
		{put_details, DETAIL_WORDS},
		{put_callbacks, C_WORDS},
	};
	uint32_t words;

	if (collection < 0 || (size_t)collection >= sizeof(collections) / sizeof(collections[0]))
		return 1;
	words = collections[collection].words;
	*data = (AFS_CollData){0};
	if (words == 0)
		return 0;
	data->val = calloc(words, sizeof(data->val[0]));
	if (!data->val)
		return RXW_RPC_SS_MARSHAL;
	data->len = words;
	collections[collection].put(service, data->val);
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
