/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round through OpenAFS's administration libraries, for the group `admin`: compiled with their
 * headers, linked with its library or with librxwire-classic. Both must print the same.
 *
 *   admin_afs ADDRESS VOLUME DUMP     VOLUME is on partition a; its dump goes to the file DUMP
 *
 * Everything that it makes it deletes again. Values that differ between two runs are not printed: numbers of
 * new volumes, dates.
 */
#include <afs/param.h>
#include <afs/stds.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rx/rx.h>
#include <rx/rxstat.h>

#include <afs/afs_Admin.h>
#include <afs/afs_bosAdmin.h>
#include <afs/afs_clientAdmin.h>
#include <afs/afs_ptsAdmin.h>
#include <afs/afs_utilAdmin.h>
#include <afs/afs_vosAdmin.h>

#define VOLUME_NEW	"adm.new"
#define VOLUME_RESTORED "adm.copy"
#define USER		"adm.user"
#define USER_ID		4242
#define GROUP		"adm.user:friends"
#define GROUP_ID	(-4242)
#define PROCESS		"adm.sleeper"
#define VOLUME_PORT	7005
#define ENTRIES_MAX	100000

static afs_status_t status;

/* DO(function, arguments...): one that returns 0 on failure, with the code in `status`. */
#define DO(function, ...) done(#function, function(__VA_ARGS__, &status))
static void done(const char *name, int ok)
{
	if (ok)
		return;
	printf("%s: code %d\n", name, (int)status);
	exit(1);
}

/* REFUSED(function, arguments...): one that must fail. */
#define REFUSED(function, ...)                               \
	(function(__VA_ARGS__, &status)                      \
		 ? (void)printf("%s succeeded\n", #function) \
		 : (void)printf("%s: refused, code %d\n", #function, (int)status))

static const char *date(unsigned long when)
{
	return when ? "set" : "none";
}

/* -- Volumes -------------------------------------------------------------------------------------- */

static void *cell;
static void *server;

static unsigned list_partitions(void)
{
	vos_partitionEntry_t entry;
	unsigned id;
	void *iteration;

	DO(vos_PartitionGetBegin, cell, server, NULL, &iteration);
	while (vos_PartitionGetNext(iteration, &entry, &status))
		printf("partition %s, room %s, free %s\n", entry.name,
		       entry.totalSpace > 0 ? "yes" : "no",
		       entry.totalFreeSpace > 0 ? "yes" : "no");
	printf("partitions end: %d\n", (int)status);
	DO(vos_PartitionGetDone, iteration);
	DO(vos_PartitionNameToId, "/vicepa", &id);
	printf("/vicepa is %u\n", id);
	return id;
}

/* One volume; its numbers relative to that of a new one. */
static void print_volume(const vos_volumeEntry_t *v, unsigned base)
{
	printf("volume %s: id +%u, type %d, state %d, disposition %d, files %d, quota %d, size %d, "
	       "created %s, backed up %s\n",
	       v->name, v->id - base, v->type, v->status, v->volumeDisposition, v->fileCount,
	       v->maxQuota, v->currentSize, date(v->creationDate), date(v->lastBackupDate));
}

static void list_volumes(unsigned partition, unsigned base)
{
	vos_volumeEntry_t v;
	void *iteration;

	DO(vos_VolumeGetBegin, cell, server, NULL, partition, &iteration);
	while (vos_VolumeGetNext(iteration, &v, &status))
		if (v.id >= base)
			print_volume(&v, base);
	printf("volumes end: %d\n", (int)status);
	DO(vos_VolumeGetDone, iteration);
}

static void print_location(const vos_vldbEntry_t *e, unsigned base)
{
	printf("location of %s: id +%u, flags %#x\n", e->name,
	       e->volumeId[VOS_READ_WRITE_VOLUME] - base, e->status);
	for (int i = 0; i < e->numServers && i < VOS_MAX_REPLICA_SITES; i++)
		printf("  server %#x, partition %d, flags %#x\n", e->volumeSites[i].serverAddress,
		       e->volumeSites[i].serverPartition, e->volumeSites[i].serverFlags);
}

static void list_locations(unsigned base)
{
	vos_vldbEntry_t e;
	void *iteration;
	int n = 0;

	DO(vos_VLDBGetBegin, cell, NULL, NULL, NULL, &iteration);
	for (; vos_VLDBGetNext(iteration, &e, &status); n++)
		if (e.volumeId[VOS_READ_WRITE_VOLUME] >= base)
			print_location(&e, base);
	printf("%d locations, end: %d\n", n, (int)status);
	DO(vos_VLDBGetDone, iteration);
}

static void list_file_servers(void)
{
	vos_fileServerEntry_t e;
	void *iteration;

	DO(vos_FileServerGetBegin, cell, NULL, &iteration);
	while (vos_FileServerGetNext(iteration, &e, &status))
		printf("file server %#x, %d address\n", e.serverAddress[0], e.count);
	printf("file servers end: %d\n", (int)status);
	DO(vos_FileServerGetDone, iteration);
}

static void volume_and_backup(unsigned partition)
{
	vos_volumeEntry_t v;
	vos_vldbEntry_t e;
	unsigned id = 0;

	DO(vos_VolumeCreate, cell, server, NULL, partition, VOLUME_NEW, 5000, &id);
	DO(vos_VolumeGet, cell, server, NULL, partition, id, &v);
	print_volume(&v, id);
	REFUSED(vos_VolumeCreate, cell, server, NULL, partition, VOLUME_NEW, 5000, &id);
	DO(vos_VLDBGet, cell, NULL, NULL, (char *)VOLUME_NEW, &e);
	id = e.volumeId[VOS_READ_WRITE_VOLUME];
	print_location(&e, id);
	DO(vos_VolumeQuotaChange, cell, server, NULL, partition, id, 7000);
	DO(vos_BackupVolumeCreate, cell, NULL, id);
	list_volumes(partition, id);
	list_locations(id);
	DO(vos_VolumeRename, cell, NULL, id, (char *)VOLUME_NEW ".2");
	DO(vos_VolumeGet, cell, server, NULL, partition, id, &v);
	print_volume(&v, id);
	DO(vos_VLDBGet, cell, NULL, &id, NULL, &e);
	print_location(&e, id);
	DO(vos_VolumeDelete, cell, server, NULL, partition, e.volumeId[VOS_BACKUP_VOLUME]);
	DO(vos_VolumeDelete, cell, server, NULL, partition, id);
	REFUSED(vos_VolumeGet, cell, server, NULL, partition, id, &v);
	list_volumes(partition, id);
	list_locations(id);
}

/* Much data in both directions. */
static void dump_and_restore(unsigned partition, const char *name, const char *dump)
{
	vos_volumeEntry_t v;
	vos_vldbEntry_t e;
	struct stat s;
	unsigned id;

	DO(vos_VLDBGet, cell, NULL, NULL, (char *)name, &e);
	DO(vos_VolumeDump, cell, server, NULL, &partition, e.volumeId[VOS_READ_WRITE_VOLUME], 0,
	   dump);
	if (stat(dump, &s))
		printf("%s: no dump\n", dump);
	else
		printf("a dump of %lld bytes\n", (long long)s.st_size);
	DO(vos_VolumeRestore, cell, server, NULL, partition, NULL, (char *)VOLUME_RESTORED, dump,
	   VOS_RESTORE_FULL);
	DO(vos_VLDBGet, cell, NULL, NULL, (char *)VOLUME_RESTORED, &e);
	id = e.volumeId[VOS_READ_WRITE_VOLUME];
	DO(vos_VolumeGet, cell, server, NULL, partition, id, &v);
	print_volume(&v, id);
	DO(vos_VolumeDelete, cell, server, NULL, partition, id);
}

static void volumes(const char *name, const char *volume, const char *dump)
{
	unsigned partition;

	DO(vos_ServerOpen, cell, name, &server);
	partition = list_partitions();
	list_file_servers();
	volume_and_backup(partition);
	dump_and_restore(partition, volume, dump);
	DO(vos_ServerClose, server);
}

/* -- Users and groups ----------------------------------------------------------------------------- */

static void print_members(const char *group)
{
	char name[PTS_MAX_NAME_LEN];
	void *iteration;

	DO(pts_GroupMemberListBegin, cell, group, &iteration);
	while (pts_GroupMemberListNext(iteration, name, &status))
		printf("member of %s: %s\n", group, name);
	printf("members end: %d\n", (int)status);
	DO(pts_GroupMemberListDone, iteration);
}

static void print_groups_of(const char *user)
{
	char name[PTS_MAX_NAME_LEN];
	void *iteration;

	DO(pts_UserMemberListBegin, cell, user, &iteration);
	while (pts_UserMemberListNext(iteration, name, &status))
		printf("group of %s: %s\n", user, name);
	printf("groups end: %d\n", (int)status);
	DO(pts_UserMemberListDone, iteration);
}

static void print_all_users(void)
{
	char name[PTS_MAX_NAME_LEN];
	void *iteration;

	DO(pts_UserListBegin, cell, &iteration);
	while (pts_UserListNext(iteration, name, &status))
		printf("user %s\n", name);
	printf("users end: %d\n", (int)status);
	DO(pts_UserListDone, iteration);
}

static void users(void)
{
	pts_UserEntry_t u;
	pts_GroupEntry_t g;
	int id = USER_ID;

	DO(pts_UserCreate, cell, (char *)USER, &id);
	REFUSED(pts_UserCreate, cell, (char *)USER, &id);
	id = GROUP_ID;
	DO(pts_GroupCreate, cell, (char *)GROUP, (char *)USER, &id);
	DO(pts_GroupMemberAdd, cell, USER, GROUP);
	DO(pts_UserGet, cell, USER, &u);
	printf("user %s: id %d, owner %s, creator %s, in %d groups, status %d\n", u.name, u.nameUid,
	       u.owner, u.creator, u.groupMembershipCount, u.listStatus);
	DO(pts_GroupGet, cell, GROUP, &g);
	printf("group %s: id %d, owner %s, creator %s, %d members, list %d, add %d\n", g.name,
	       g.nameUid, g.owner, g.creator, g.membershipCount, g.listMembership, g.listAdd);
	print_members(GROUP);
	print_groups_of(USER);
	print_all_users();
	DO(pts_GroupMemberRemove, cell, USER, GROUP);
	print_members(GROUP);
	DO(pts_GroupDelete, cell, GROUP);
	DO(pts_UserDelete, cell, USER);
	REFUSED(pts_UserGet, cell, USER, &u);
}

/* -- Processes of the overseer -------------------------------------------------------------------- */

static void print_processes(const void *bos)
{
	char name[BOS_MAX_NAME_LEN];
	void *iteration;

	DO(bos_ProcessNameGetBegin, bos, &iteration);
	while (bos_ProcessNameGetNext(iteration, name, &status))
		printf("process %s\n", name);
	printf("processes end: %d\n", (int)status);
	DO(bos_ProcessNameGetDone, iteration);
}

/*
 * Waits for up to 10 s. The overseer misses the end of a process that comes while it is not in its
 * select(); it then looks when it hears of another one. So it runs a command each second.
 */
static void wait_for_state(const void *bos, bos_ProcessExecutionState_t wanted)
{
	bos_ProcessExecutionState_t state = BOS_PROCESS_STARTING;
	char text[BOS_MAX_NAME_LEN] = "";

	for (int i = 0; i < 200; i++) {
		DO(bos_ProcessExecutionStateGet, bos, (char *)PROCESS, &state, text);
		if (state == wanted)
			break;
		if (i % 20 == 19)
			DO(bos_CommandExecute, bos, "/bin/true");
		usleep(50000);
	}
	printf("state %d, \"%s\"\n", state, text);
}

static void processes(const char *name)
{
	char parameter[BOS_MAX_NAME_LEN];
	bos_ProcessType_t type;
	bos_ProcessInfo_t info;
	void *bos, *iteration;

	DO(bos_ServerOpen, cell, name, &bos);
	DO(bos_ProcessCreate, bos, (char *)PROCESS, BOS_PROCESS_SIMPLE, (char *)"/bin/sleep 1000",
	   NULL, NULL);
	print_processes(bos);
	wait_for_state(bos, BOS_PROCESS_RUNNING);
	DO(bos_ProcessInfoGet, bos, (char *)PROCESS, &type, &info);
	printf("type %d, goal %d, started %s, %lu starts, exited %s, state %d\n", type,
	       info.processGoal, date(info.processStartTime), info.numberProcessStarts,
	       date(info.processExitTime), info.state);
	DO(bos_ProcessParameterGetBegin, bos, PROCESS, &iteration);
	while (bos_ProcessParameterGetNext(iteration, parameter, &status))
		printf("parameter %s\n", parameter);
	printf("parameters end: %d\n", (int)status);
	DO(bos_ProcessParameterGetDone, iteration);
	REFUSED(bos_ProcessDelete, bos, (char *)PROCESS);
	DO(bos_ProcessExecutionStateSet, bos, PROCESS, BOS_PROCESS_STOPPED);
	wait_for_state(bos, BOS_PROCESS_STOPPED);
	DO(bos_ProcessDelete, bos, (char *)PROCESS);
	print_processes(bos);
	DO(bos_ServerClose, bos);
}

/* -- Statistics and rxdebug ----------------------------------------------------------------------- */

static void statistics(const char *name)
{
	struct rx_connection *connection;
	afs_RPCStats_t s;
	void *iteration;
	int id, rows = 0, called = 0;

	DO(afsclient_RPCStatOpen, cell, name, AFS_PTSERVER, &connection);
	DO(util_RPCStatsStateEnable, connection, RXSTATS_EnableProcessRPCStats);
	DO(pts_UserMaxGet, cell, &id);
	DO(util_RPCStatsGetBegin, connection, RXSTATS_RetrieveProcessRPCStats, &iteration);
	for (; util_RPCStatsGetNext(iteration, &s, &status); rows++)
		called += s.s.stats_v1.invocations != 0;
	printf("statistics version %u: %d functions, called %s, end: %d\n", s.serverVersion, rows,
	       called ? "some" : "none", (int)status);
	DO(util_RPCStatsGetDone, iteration);
	DO(util_RPCStatsStateDisable, connection, RXSTATS_DisableProcessRPCStats);
	DO(afsclient_RPCStatClose, connection);
}

/* The server's connections and peers; ours are among them. */
static void rxdebug(const char *name)
{
	struct rx_debugStats basic;
	struct rx_statistics counters;
	struct rx_debugConn connection;
	struct rx_debugPeer peer;
	rxdebugVersion_t version;
	rxdebugHandle_p handle;
	afs_uint32 supported;
	void *iteration;
	int n = 0;

	DO(afsclient_RXDebugOpenPort, name, VOLUME_PORT, &handle);
	/* The library of 1.8 has them in the byte order of this machine. */
	handle->ipAddr = (int)inet_addr(name);
	handle->udpPort = htons(VOLUME_PORT);
	DO(util_RXDebugVersion, handle, version);
	DO(util_RXDebugSupportedStats, handle, &supported);
	printf("version %s, supports %#x\n", version, supported);
	DO(util_RXDebugBasicStats, handle, &basic);
	printf("layout %c\n", basic.version);
	DO(util_RXDebugConnectionsBegin, handle, 1, &iteration);
	while (n < ENTRIES_MAX &&
	       util_RXDebugConnectionsNext(iteration, &connection, &supported, &status))
		n++;
	printf("connections %s, end: %d\n", n ? "some" : "none", (int)status);
	DO(util_RXDebugConnectionsDone, iteration);
	n = 0;
	DO(util_RXDebugPeersBegin, handle, &iteration);
	while (n < ENTRIES_MAX && util_RXDebugPeersNext(iteration, &peer, &supported, &status))
		n++;
	printf("peers %s, end: %d\n", n ? "some" : "none", (int)status);
	DO(util_RXDebugPeersDone, iteration);
	/* Last: in 1.8 this call forgets what the server supports. */
	DO(util_RXDebugRxStats, handle, &counters, &supported);
	printf("data packets read %s\n", counters.packetsRead[0] ? "yes" : "no");
	DO(afsclient_RXDebugClose, handle);
}

int main(int argc, char **argv)
{
	char name[256];
	void *token;

	if (argc != 4) {
		fprintf(stderr, "usage: admin_afs ADDRESS VOLUME DUMP\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	done("afsclient_Init", afsclient_Init(&status));
	DO(afsclient_LocalCellGet, name);
	printf("cell %s\n", name);
	/* Without a principal: anonymous. */
	DO(afsclient_TokenGetNew, name, NULL, NULL, &token);
	DO(afsclient_CellOpen, name, token, &cell);
	volumes(argv[1], argv[2], argv[3]);
	users();
	processes(argv[1]);
	statistics(argv[1]);
	rxdebug(argv[1]);
	DO(afsclient_CellClose, cell);
	DO(afsclient_TokenClose, token);
	return 0;
}
