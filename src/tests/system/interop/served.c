/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cell's servers in one program, for the group `served`: server stubs that OpenAFS's rxgen writes
 * from our interface files, on librxwire-classic, with handlers that use classic Rx as viced and
 * volserver do.
 *
 *   served ADDRESS FILE     until SIGTERM; then it prints what it has counted as JSON
 *
 * There is one volume, with FILE as its vnode 2. Vnode 4 has no end: its fetch is interrupted by
 * another thread. Vnode 6 is shorter than it says. Requests that no handler here serves are refused
 * (packages.bash generates that).
 */
#include "afsvol.h"
#include "rxafs.h" /* also with the package RXAFSCB_ */
#include "vl.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <rx/rxstat.h>

#define VOLUME	     536870912
#define VOLUME_NAME  "served"
#define FILE_VNODE   2
#define ENDLESS	     4
#define SHORT	     6
#define ENDLESS_SIZE ((afs_int64)1 << 40)
/* So much of it is sent before the call is interrupted. */
#define ENDLESS_SENT (1 << 20)
#define OFFLINE	     106
#define NO_VNODE     102
#define NO_VOLUME    103
#define VL_NO_ENTRY  363524
#define STORED_MAX   (1 << 30)
#define CALLBACKS    3 /* connections to each client, called at the same time */
#define THREADS	     16
#define PERF_WORDS   98

static afs_uint32 address; /* this host's, host byte order */
static int file;
static afsUUID uuid = {0x12345678, 0x9abc, 0x4def, (char)0x80, 1, {2, 3, 4, 5, 6, 7}};
static struct rx_securityClass *null_class;
static int client_key;

/* The counts that are printed at the end. */
static struct {
	atomic_uint clients_made, clients_destroyed, probes, breaks, connections_made,
		connections_destroyed, before, after, after_failed, interrupts, interrupted_writes,
		stores, fetches;
	atomic_ullong read_slices, written_slices;
} n;

/* -- Clients of the file service ------------------------------------------------------------------ */

/* The value of a connection: where its client takes callbacks. */
struct client {
	struct rx_connection *callbacks[CALLBACKS];
};

static void forget_client(void *value)
{
	struct client *client = value;

	for (int i = 0; i < CALLBACKS; i++)
		rx_DestroyConnection(client->callbacks[i]);
	free(client);
	n.clients_destroyed++;
}

static struct client *new_client(struct rx_connection *connection)
{
	struct rx_peer *peer = rx_PeerOf(connection);
	struct client *client = malloc(sizeof(*client));

	if (!client)
		errx(1, "no memory");
	for (int i = 0; i < CALLBACKS; i++)
		client->callbacks[i] = rx_NewConnection(rx_HostOf(peer), rx_PortOf(peer), 1,
							null_class, RX_SECIDX_NULL);
	n.clients_made++;
	return client;
}

/* The client of a call. One that is new is called back at first, as viced does. */
static struct client *client_of(struct rx_call *call)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct rx_connection *connection = rx_ConnectionOf(call);
	struct client *client;
	bool known;

	pthread_mutex_lock(&lock);
	client = rx_GetSpecific(connection, client_key);
	known = client != NULL;
	if (!known) {
		client = new_client(connection);
		rx_SetSpecific(connection, client_key, client);
	}
	pthread_mutex_unlock(&lock);
	if (known)
		return client;
	multi_Rx(client->callbacks, CALLBACKS)
	{
		multi_RXAFSCB_Probe();
		if (!multi_error)
			n.probes++;
	}
	multi_End;
	return client;
}

static void break_callbacks(struct client *client, AFSFid *fid)
{
	AFSCallBack dropped = {1, 0, CB_DROPPED};
	AFSCBFids fids = {1, fid};
	AFSCBs callbacks = {1, &dropped};

	multi_Rx(client->callbacks, CALLBACKS)
	{
		multi_RXAFSCB_CallBack(&fids, &callbacks);
		if (!multi_error)
			n.breaks++;
	}
	multi_End;
}

/* -- The file service ----------------------------------------------------------------------------- */

static afs_int32 look(const AFSFid *fid, AFSFetchStatus *status)
{
	struct stat s;
	afs_int64 size;

	if (fid->Volume != VOLUME)
		return NO_VOLUME;
	if (fid->Vnode != FILE_VNODE && fid->Vnode != ENDLESS && fid->Vnode != SHORT)
		return NO_VNODE;
	if (fstat(file, &s))
		return EIO;
	size = fid->Vnode == ENDLESS ? ENDLESS_SIZE : s.st_size + (fid->Vnode == SHORT ? 1000 : 0);
	status->InterfaceVersion = 1;
	status->FileType = 1;
	status->LinkCount = 1;
	status->Length = (afs_uint32)size;
	status->Length_hi = (afs_uint32)(size >> 32);
	status->DataVersion = n.stores + 1;
	status->CallerAccess = status->AnonymousAccess = 127;
	status->UnixModeBits = 0644;
	status->ClientModTime = status->ServerModTime = (afs_uint32)s.st_mtime;
	return 0;
}

static void promise(AFSCallBack *callback)
{
	*callback = (AFSCallBack){1, 3600, CB_SHARED};
}

afs_int32 SRXAFS_FetchStatus(struct rx_call *call, AFSFid *fid, AFSFetchStatus *status,
			     AFSCallBack *callback, AFSVolSync *sync)
{
	(void)sync;
	client_of(call);
	promise(callback);
	return look(fid, status);
}

/* The thread that takes a volume off-line while it is being read. */
static struct {
	pthread_mutex_t lock; /* of the rest */
	pthread_cond_t changed;
	struct rx_call *call; /* the call to interrupt */
} offline = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *interrupter(void *arg)
{
	pthread_mutex_lock(&offline.lock);
	for (;;) {
		while (!offline.call)
			pthread_cond_wait(&offline.changed, &offline.lock);
		rx_InterruptCall(offline.call, OFFLINE);
		n.interrupts++;
		offline.call = NULL;
		pthread_cond_broadcast(&offline.changed);
	}
	return arg;
}

/* The call must exist until it has been interrupted. */
static void go_offline(struct rx_call *call)
{
	pthread_mutex_lock(&offline.lock);
	while (offline.call)
		pthread_cond_wait(&offline.changed, &offline.lock);
	offline.call = call;
	pthread_cond_broadcast(&offline.changed);
	pthread_mutex_unlock(&offline.lock);
}

static void wait_offline(const struct rx_call *call)
{
	pthread_mutex_lock(&offline.lock);
	while (offline.call == call)
		pthread_cond_wait(&offline.changed, &offline.lock);
	pthread_mutex_unlock(&offline.lock);
}

/* The endless file has zeros. */
static ssize_t fill(const AFSFid *fid, struct iovec *iov, int count, afs_int64 at)
{
	ssize_t sum = 0;

	if (fid->Vnode != ENDLESS)
		return preadv(file, iov, count, at);
	for (int i = 0; i < count; i++) {
		memset(iov[i].iov_base, 0, iov[i].iov_len);
		sum += (ssize_t)iov[i].iov_len;
	}
	return sum;
}

/* As viced sends a file: room in the packets, which the file system fills. */
static afs_int32 send_file(struct rx_call *call, const AFSFid *fid, afs_int64 at, afs_int64 length)
{
	struct iovec iov[RX_MAXIOVECS];
	afs_int64 sent = 0;

	while (sent < length) {
		int part = length - sent > 1 << 20 ? 1 << 20 : (int)(length - sent), count = 0;
		int room = rx_WritevAlloc(call, iov, &count, RX_MAXIOVECS, part);

		if (room <= 0)
			return EIO;
		if (fill(fid, iov, count, at + sent) != room)
			return EIO; /* the room lapses */
		if (rx_Writev(call, iov, count, room) != room)
			return EIO;
		n.written_slices += (unsigned)count;
		if (fid->Vnode == ENDLESS && sent < ENDLESS_SENT && sent + room >= ENDLESS_SENT)
			go_offline(call);
		sent += room;
	}
	return 0;
}

/* The length precedes the data: one word, or two where `wide`. */
static bool send_length(struct rx_call *call, afs_int64 length, bool wide)
{
	afs_int32 high = (afs_int32)htonl((afs_uint32)(length >> 32));
	afs_int32 low = (afs_int32)htonl((afs_uint32)length);

	return (!wide || rx_Write32(call, &high) == 4) && rx_Write32(call, &low) == 4;
}

static afs_int32 fetch(struct rx_call *call, const AFSFid *fid, afs_int64 at, afs_int64 length,
		       bool wide, AFSFetchStatus *status, AFSCallBack *callback)
{
	afs_int32 code = look(fid, status);
	afs_int64 size = ((afs_int64)status->Length_hi << 32) + status->Length;

	client_of(call);
	if (code)
		return code;
	if (at < 0 || length < 0)
		return EINVAL;
	if (length > size - at)
		length = at < size ? size - at : 0;
	n.fetches++;
	if (!send_length(call, length, wide))
		return EIO;
	code = send_file(call, fid, at, length);
	if (fid->Vnode == ENDLESS) {
		wait_offline(call);
		if (code && rx_Error(call) == OFFLINE)
			n.interrupted_writes++;
	}
	promise(callback);
	return code;
}

afs_int32 SRXAFS_FetchData64(struct rx_call *call, AFSFid *fid, afs_int64 at, afs_int64 length,
			     AFSFetchStatus *status, AFSCallBack *callback, AFSVolSync *sync)
{
	(void)sync;
	return fetch(call, fid, at, length, true, status, callback);
}

afs_int32 SRXAFS_FetchData(struct rx_call *call, AFSFid *fid, afs_int32 at, afs_int32 length,
			   AFSFetchStatus *status, AFSCallBack *callback, AFSVolSync *sync)
{
	(void)sync;
	return fetch(call, fid, at, length, false, status, callback);
}

/* As viced stores a file: slices of what has arrived, written at once. */
static afs_int32 receive_file(struct rx_call *call, afs_int64 at, afs_int64 length)
{
	struct iovec iov[RX_MAXIOVECS];

	while (length > 0) {
		int part = length > 1 << 20 ? 1 << 20 : (int)length, count = 0;
		int got = rx_Readv(call, iov, &count, RX_MAXIOVECS, part);

		if (got <= 0)
			return EIO;
		if (pwritev(file, iov, count, at) != got)
			return ENOSPC;
		n.read_slices += (unsigned)count;
		at += got;
		length -= got;
	}
	return 0;
}

static afs_int32 store(struct rx_call *call, AFSFid *fid, afs_uint64 at, afs_uint64 length,
		       afs_uint64 file_length, AFSFetchStatus *status)
{
	struct client *client = client_of(call);
	afs_int32 code = look(fid, status);

	if (code)
		return code;
	if (fid->Vnode != FILE_VNODE || file_length > STORED_MAX || length > file_length ||
	    at > file_length - length)
		return EFBIG;
	rx_SetLocalStatus(call, 1);
	code = receive_file(call, (afs_int64)at, (afs_int64)length);
	if (!code && ftruncate(file, (off_t)file_length))
		code = EIO;
	if (code)
		return code;
	n.stores++;
	break_callbacks(client, fid);
	return look(fid, status);
}

afs_int32 SRXAFS_StoreData64(struct rx_call *call, AFSFid *fid, AFSStoreStatus *change,
			     afs_uint64 at, afs_uint64 length, afs_uint64 file_length,
			     AFSFetchStatus *status, AFSVolSync *sync)
{
	(void)change;
	(void)sync;
	return store(call, fid, at, length, file_length, status);
}

afs_int32 SRXAFS_StoreData(struct rx_call *call, AFSFid *fid, AFSStoreStatus *change, afs_uint32 at,
			   afs_uint32 length, afs_uint32 file_length, AFSFetchStatus *status,
			   AFSVolSync *sync)
{
	(void)change;
	(void)sync;
	return store(call, fid, at, length, file_length, status);
}

afs_int32 SRXAFS_GetTime(struct rx_call *call, afs_uint32 *seconds, afs_uint32 *microseconds)
{
	struct timespec now;

	(void)call;
	clock_gettime(CLOCK_REALTIME, &now);
	*seconds = (afs_uint32)now.tv_sec;
	*microseconds = (afs_uint32)(now.tv_nsec / 1000);
	return 0;
}

afs_int32 SRXAFS_GiveUpAllCallBacks(struct rx_call *call)
{
	(void)call;
	return 0;
}

afs_int32 SRXAFS_XStatsVersion(struct rx_call *call, afs_int32 *version)
{
	(void)call;
	*version = 2;
	return 0;
}

/* Collection 1: the counters of Rx at their places among the words. */
afs_int32 SRXAFS_GetXStats(struct rx_call *call, afs_int32 client_version, afs_int32 collection,
			   afs_int32 *version, afs_int32 *when, AFS_CollData *data)
{
	struct rx_statistics *rx;
	afs_int32 *words;

	(void)call;
	(void)client_version;
	if (collection != 1)
		return 1;
	words = calloc(PERF_WORDS, sizeof(*words));
	rx = rx_GetStatistics();
	if (!words || !rx)
		errx(1, "no memory");
	words[31] = rx->dataPacketsRead;
	words[36 + 6] = rx->dataPacketsSent;
	words[53] = rx->nServerConns;
	words[55] = rx->nPeerStructs;
	rx_FreeStatistics(&rx);
	data->AFS_CollData_val = words;
	data->AFS_CollData_len = PERF_WORDS;
	*version = 2;
	*when = (afs_int32)time(NULL);
	return 0;
}

/* -- The location service ------------------------------------------------------------------------- */

static void describe(nvldbentry *e)
{
	memset(e, 0, sizeof(*e));
	strcpy(e->name, VOLUME_NAME);
	e->nServers = 1;
	e->serverNumber[0] = (afs_int32)address;
	e->serverFlags[0] = VLSF_RWVOL;
	e->volumeId[0] = VOLUME;
	e->flags = VLF_RWEXISTS;
}

static bool is_volume(const char *name)
{
	return !strcmp(name, VOLUME_NAME) || strtoul(name, NULL, 10) == VOLUME;
}

afs_int32 SVL_ProbeServer(struct rx_call *call)
{
	(void)call;
	return 0;
}

afs_int32 SVL_GetEntryByNameN(struct rx_call *call, char *name, nvldbentry *e)
{
	(void)call;
	describe(e);
	return is_volume(name) ? 0 : VL_NO_ENTRY;
}

afs_int32 SVL_GetEntryByIDN(struct rx_call *call, afs_uint32 id, afs_int32 type, nvldbentry *e)
{
	(void)call;
	(void)type;
	describe(e);
	return id == VOLUME ? 0 : VL_NO_ENTRY;
}

afs_int32 SVL_GetEntryByNameU(struct rx_call *call, char *name, uvldbentry *e)
{
	(void)call;
	memset(e, 0, sizeof(*e));
	strcpy(e->name, VOLUME_NAME);
	e->nServers = 1;
	e->serverNumber[0] = uuid;
	e->serverUnique[0] = 1;
	e->serverFlags[0] = VLSF_RWVOL | VLSF_UUID;
	e->volumeId[0] = VOLUME;
	e->flags = VLF_RWEXISTS;
	return is_volume(name) ? 0 : VL_NO_ENTRY;
}

static void give_address(bulkaddrs *addresses, afs_int32 *count)
{
	addresses->bulkaddrs_val = xdr_alloc(sizeof(afs_uint32));
	addresses->bulkaddrs_len = 1;
	addresses->bulkaddrs_val[0] = address;
	*count = 1;
}

afs_int32 SVL_GetAddrsU(struct rx_call *call, ListAddrByAttributes *by, afsUUID *id,
			afs_int32 *unique, afs_int32 *count, bulkaddrs *addresses)
{
	(void)call;
	if (by->Mask == 4 && memcmp(&by->uuid, &uuid, sizeof(uuid)))
		return VL_NO_ENTRY;
	if ((by->Mask == 1 && by->ipaddr != address) || (by->Mask == 2 && by->index != 1))
		return VL_NO_ENTRY;
	*id = uuid;
	*unique = 1;
	give_address(addresses, count);
	return 0;
}

afs_int32 SVL_ListAttributesN2(struct rx_call *call, VldbListByAttributes *by, char *name,
			       afs_int32 start, afs_int32 *count, nbulkentries *entries,
			       afs_int32 *next)
{
	(void)call;
	(void)by;
	(void)name;
	(void)start;
	entries->nbulkentries_val = xdr_alloc(sizeof(nvldbentry));
	entries->nbulkentries_len = 1;
	describe(entries->nbulkentries_val);
	*count = 1;
	*next = -1;
	return 0;
}

/* -- The volume service --------------------------------------------------------------------------- */

afs_int32 SAFSVolXListPartitions(struct rx_call *call, partEntries *ids)
{
	(void)call;
	ids->partEntries_val = calloc(1, sizeof(afs_int32)); /* /vicepa */
	ids->partEntries_len = 1;
	return 0;
}

afs_int32 SAFSVolListOneVolume(struct rx_call *call, afs_int32 partition, afs_uint32 id,
			       volEntries *entries)
{
	volintInfo *info = calloc(1, sizeof(*info));
	struct stat s;

	(void)call;
	(void)partition;
	entries->volEntries_val = info;
	entries->volEntries_len = 1;
	if (id != VOLUME || !info || fstat(file, &s))
		return ENODEV;
	strcpy(info->name, VOLUME_NAME);
	info->volid = info->parentID = VOLUME;
	info->status = 2;
	info->inUse = 1;
	info->creationDate = info->copyDate = info->updateDate = (afs_int32)s.st_mtime;
	info->filecount = 1;
	info->maxquota = 5000;
	info->size = (int)(s.st_size / 1024);
	return 0;
}

afs_int32 SAFSVolListVolumes(struct rx_call *call, afs_int32 partition, afs_int32 flags,
			     volEntries *entries)
{
	(void)flags;
	return SAFSVolListOneVolume(call, partition, VOLUME, entries);
}

/* volserver sets its threads' names and counts in such functions. */
static void before(struct rx_call *call)
{
	(void)call;
	n.before++;
}

static void after(struct rx_call *call, afs_int32 code)
{
	(void)call;
	n.after++;
	if (code)
		n.after_failed++;
}

/* -- The program ---------------------------------------------------------------------------------- */

static void connection_made(struct rx_connection *connection)
{
	(void)connection;
	n.connections_made++;
}

static void connection_destroyed(struct rx_connection *connection)
{
	(void)connection;
	n.connections_destroyed++;
}

static struct rx_service *serve(u_short port, u_short id, const char *name,
				afs_int32 (*procedure)(struct rx_call *))
{
	static struct rx_securityClass *classes[1];
	struct rx_service *service;

	classes[0] = null_class;
	service = rx_NewService(htons(port), id, (char *)name, classes, 1, procedure);
	if (!service)
		errx(1, "cannot serve %s on port %d", name, port);
	rx_SetMinProcs(service, 2);
	rx_SetMaxProcs(service, THREADS);
	return service;
}

static void serve_all(void)
{
	struct rx_service *service;

	service = serve(7000, 1, "AFS", RXAFS_ExecuteRequest);
	rx_SetCheckReach(service, 1);
	rx_SetNewConnProc(service, connection_made);
	rx_SetDestroyConnProc(service, connection_destroyed);
	service = serve(7005, 4, "VOLSER", AFSVolExecuteRequest);
	rx_SetBeforeProc(service, before);
	rx_SetAfterProc(service, after);
	serve(7003, 52, "Vldb", VL_ExecuteRequest);
	serve(7000, RX_STATS_SERVICE_ID, "rpcstats", RXSTATS_ExecuteRequest);
	rx_enableProcessRPCStats();
	rx_StartServer(0);
}

static void print_counts(void)
{
	printf("{\"clients_made\": %u, \"clients_destroyed\": %u, \"probes\": %u, \"breaks\": %u, ",
	       n.clients_made, n.clients_destroyed, n.probes, n.breaks);
	printf("\"connections_made\": %u, \"connections_destroyed\": %u, ", n.connections_made,
	       n.connections_destroyed);
	printf("\"before\": %u, \"after\": %u, \"after_failed\": %u, ", n.before, n.after,
	       n.after_failed);
	printf("\"interrupts\": %u, \"interrupted_writes\": %u, \"stores\": %u, \"fetches\": %u, ",
	       n.interrupts, n.interrupted_writes, n.stores, n.fetches);
	printf("\"read_slices\": %llu, \"written_slices\": %llu}\n", n.read_slices,
	       n.written_slices);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	sigset_t set;
	int signal;

	if (argc != 3) {
		fprintf(stderr, "usage: served ADDRESS FILE\n");
		return 2;
	}
	address = ntohl(inet_addr(argv[1]));
	file = open(argv[2], O_RDWR | O_CREAT, 0644);
	if (file < 0)
		err(1, "%s", argv[2]);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (rx_Init(htons(7000)))
		errx(1, "cannot open port 7000");
	null_class = rxnull_NewServerSecurityObject();
	client_key = rx_KeyCreate(forget_client);
	pthread_create(&thread, NULL, interrupter, NULL);
	serve_all();
	sigwait(&set, &signal);
	rx_Finalize();
	print_counts();
	return 0;
}
