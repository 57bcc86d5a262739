/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of the file service, for the group `served`, on OpenAFS's library or on
 * librxwire-classic: one transfer by FetchData64 or StoreData64, while it serves callbacks on the
 * same port.
 *
 *   served_client ADDRESS fetch VNODE LENGTH > FILE
 *   served_client ADDRESS store VNODE LENGTH < FILE
 *
 * It prints JSON on standard error, and ends with 0 unless it cannot run: a code is a result.
 */
#include "rxafs.h" /* also with the package RXAFSCB_ */

#include <arpa/inet.h>
#include <err.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VOLUME 536870912
#define CHUNK  65536

static atomic_uint probes, breaks, broken_vnode;

afs_int32 SRXAFSCB_Probe(struct rx_call *call)
{
	(void)call;
	probes++;
	return 0;
}

afs_int32 SRXAFSCB_CallBack(struct rx_call *call, AFSCBFids *fids, AFSCBs *callbacks)
{
	(void)call;
	if (fids->AFSCBFids_len == 1 && callbacks->AFSCBs_len == 1 &&
	    callbacks->AFSCBs_val[0].CallBackType == CB_DROPPED) {
		broken_vnode = fids->AFSCBFids_val[0].Vnode;
		breaks++;
	}
	return 0;
}

static struct {
	afs_int32 code;
	afs_int64 announced, moved;
	int status_byte; /* of the server's packets before its reply */
	AFSFetchStatus status;
} result;

/* Until the end of the data or the first that is missing. */
static void fetch(struct rx_connection *connection, AFSFid *fid, afs_int64 length)
{
	struct rx_call *call = rx_NewCall(connection);
	AFSCallBack callback;
	AFSVolSync sync;
	static char data[CHUNK];
	afs_int32 words[2];

	result.code = StartRXAFS_FetchData64(call, fid, 0, length);
	if (!result.code && rx_Read(call, (char *)words, 8) == 8)
		result.announced = ((afs_int64)ntohl((afs_uint32)words[0]) << 32) +
				   ntohl((afs_uint32)words[1]);
	while (result.moved < result.announced) {
		afs_int64 left = result.announced - result.moved;
		int part = left < CHUNK ? (int)left : CHUNK;
		int got = rx_Read(call, data, part);

		fwrite(data, 1, (size_t)got, stdout);
		result.moved += got;
		if (got != part)
			break;
	}
	if (!result.code)
		result.code = EndRXAFS_FetchData64(call, &result.status, &callback, &sync);
	result.code = rx_EndCall(call, result.code);
}

static void store(struct rx_connection *connection, AFSFid *fid, afs_int64 length)
{
	struct rx_call *call = rx_NewCall(connection);
	AFSStoreStatus change = {0};
	AFSVolSync sync;
	static char data[CHUNK];
	afs_uint64 size = (afs_uint64)length;

	result.announced = length;
	result.code = StartRXAFS_StoreData64(call, fid, &change, 0, size, size);
	while (!result.code && result.moved < length) {
		afs_int64 left = length - result.moved;
		int part = left < CHUNK ? (int)left : CHUNK;

		if (fread(data, 1, (size_t)part, stdin) != (size_t)part)
			errx(1, "the input is too short");
		if (rx_Write(call, data, part) != part)
			break;
		result.moved += part;
	}
	if (!result.code)
		result.code = EndRXAFS_StoreData64(call, &result.status, &sync);
	result.status_byte = rx_GetRemoteStatus(call);
	result.code = rx_EndCall(call, result.code);
}

int main(int argc, char **argv)
{
	struct rx_securityClass *classes[1];
	struct rx_connection *connection;
	AFSFid fid = {VOLUME, 0, 1};

	if (argc != 5) {
		fprintf(stderr, "usage: served_client ADDRESS fetch|store VNODE LENGTH\n");
		return 2;
	}
	if (rx_Init(0))
		errx(1, "no port");
	classes[0] = rxnull_NewServerSecurityObject();
	if (!rx_NewService(0, 1, (char *)"callbacks", classes, 1, RXAFSCB_ExecuteRequest))
		errx(1, "no service");
	rx_StartServer(0);
	connection = rx_NewConnection(inet_addr(argv[1]), htons(7000), 1,
				      rxnull_NewClientSecurityObject(), 0);
	fid.Vnode = (afs_uint32)atoi(argv[3]);
	if (!strcmp(argv[2], "fetch"))
		fetch(connection, &fid, atoll(argv[4]));
	else
		store(connection, &fid, atoll(argv[4]));
	fprintf(stderr, "{\"code\": %d, \"announced\": %lld, \"moved\": %lld, ", result.code,
		(long long)result.announced, (long long)result.moved);
	fprintf(stderr, "\"length\": %u, \"status_byte\": %d, ", result.status.Length,
		result.status_byte);
	fprintf(stderr, "\"probes\": %u, \"breaks\": %u, \"broken_vnode\": %u}\n", probes, breaks,
		broken_vnode);
	return fflush(stdout) || ferror(stdout);
}
