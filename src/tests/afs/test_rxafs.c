/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/rxafs.xg with bytes recorded from other servers and clients (afs-fileserver 12). */
#include <string.h>

#include "tests/afs/known.h"

#include "afs/fetchstatus.h"
#include "afs/numbers.h"

/* A root directory; a new file; its directory afterwards; volume synchronisation. */
#define ROOT                                                                                \
	"00000001 00000002 00000003 00000800 00000006 00007ffe 00000000 0000007f 0000007f " \
	"000001ed 00000001 00000001 00000001 6b0102c7 6b0102c7 00000000*6 "
#define MADE                                                                                \
	"00000001 00000001 00000001 00000000 00000000 00007ffe 00007ffe 0000007f 0000007f " \
	"000001a4 00000001 00000001 00000001 3b9aca00 6b010a9d 00000000*6 "
#define STORED                                                                              \
	"00000001 00000001 00000001 00000005 00000001 00007ffe 00007ffe 0000007f 0000007f " \
	"000001a4 00000001 00000001 00000001 3b9aca01 6b010a9d 00000000*6 "
#define DIRECTORY                                                                           \
	"00000001 00000002 00000006 00000800 000000d7 00007ffe 00000000 0000007f 0000007f " \
	"000001ed 00000001 00000001 00000001 6b010a9d 6b010a9d 00000000*6 "
#define SYNC	 "6b00fcd6 00000000*5 "
#define FILE_FID "20000001 00001fa6 00001170 "

static const AFSFetchStatus root = {
	.InterfaceVersion = 1,
	.FileType = 2,
	.LinkCount = 3,
	.Length = 2048,
	.DataVersion = 6,
	.Author = 0x7ffe,
	.CallerAccess = 127,
	.AnonymousAccess = 127,
	.UnixModeBits = 0755,
	.ParentVnode = 1,
	.ParentUnique = 1,
	.ResidencyMask = 1,
	.ClientModTime = 0x6b0102c7,
	.ServerModTime = 0x6b0102c7,
};
static const AFSFetchStatus made = {
	.InterfaceVersion = 1,
	.FileType = 1,
	.LinkCount = 1,
	.Author = 0x7ffe,
	.Owner = 0x7ffe,
	.CallerAccess = 127,
	.AnonymousAccess = 127,
	.UnixModeBits = 0644,
	.ParentVnode = 1,
	.ParentUnique = 1,
	.ResidencyMask = 1,
	.ClientModTime = 1000000000,
	.ServerModTime = 0x6b010a9d,
};
static const AFSFid root_fid = {0x20000012, 1, 1};
static const AFSFid file_fid = {0x20000001, 0x1fa6, 0x1170};

static void same_status(const AFSFetchStatus *got, const AFSFetchStatus *want)
{
	/* 21 words without holes */
	ck_assert_uint_eq(sizeof(*got), 84);
	ck_assert_mem_eq(got, want, sizeof(*want));
}

/* -- clients ----------------------------------------------------------------------------------- */

START_TEST(asks_status)
{
	AFSFetchStatus st;
	AFSCallBack cb;
	AFSVolSync sync;

	known_answer(ROOT "| 00000001 00003885 00000002 | 6b0102c7 00000000*5");
	ck_assert_int_eq(RXAFS_FetchStatus(known_peer(), &root_fid, &st, &cb, &sync), 0);
	known_request("00000084 20000012 00000001 00000001");
	same_status(&st, &root);
	ck_assert(afs_status_usable(&st));
	ck_assert_uint_eq(cb.CallBackVersion, 1);
	ck_assert_uint_eq(cb.ExpirationTime, 14469);
	ck_assert_uint_eq(cb.CallBackType, CB_SHARED);
	ck_assert_uint_eq(sync.spare1, 0x6b0102c7);
	/* Aborts, and an answer that is one word short: the results stay empty. */
	known_refusal(AFS_VNOVOL);
	ck_assert_int_eq(RXAFS_FetchStatus(known_peer(), &root_fid, &st, &cb, &sync), AFS_VNOVOL);
	ck_assert_uint_eq(st.InterfaceVersion, 0);
	known_answer(ROOT "| 00000001 00003885 00000002 | 6b0102c7 00000000*4");
	ck_assert_int_eq(RXAFS_FetchStatus(known_peer(), &root_fid, &st, &cb, &sync),
			 RXW_RPC_CC_UNMARSHAL);
	ck_assert_uint_eq(st.InterfaceVersion, 0);
	ck_assert_uint_eq(cb.ExpirationTime, 0);
	/* Surplus bytes are ignored. */
	known_answer(ROOT "| 00000001 00003885 00000002 | 6b0102c7 00000000*9");
	ck_assert_int_eq(RXAFS_FetchStatus(known_peer(), &root_fid, &st, &cb, &sync), 0);
}
END_TEST

START_TEST(makes_file)
{
	const AFSFid dir = {0x20000001, 1, 1};
	const AFSStoreStatus ss = {.Mask = AFS_SETMODTIME | AFS_SETMODE,
				   .ClientModTime = 1000000000,
				   .UnixModeBits = 0644};
	AFSFetchStatus st, dir_st;
	AFSCallBack cb;
	AFSVolSync sync;
	AFSFid fid;

	known_answer(FILE_FID MADE DIRECTORY "00000001 000038af 00000002 " SYNC);
	ck_assert_int_eq(
		RXAFS_CreateFile(known_peer(), &dir, "vec365", &ss, &fid, &st, &dir_st, &cb, &sync),
		0);
	known_request("00000089 20000001 00000001 00000001 00000006 'vec365' 0000 00000009 "
		      "3b9aca00 00000000 00000000 000001a4 00000000");
	ck_assert_mem_eq(&fid, &file_fid, sizeof(fid));
	same_status(&st, &made);
	ck_assert_uint_eq(dir_st.DataVersion, 0xd7);
	ck_assert_uint_eq(dir_st.LinkCount, 6);
	ck_assert_uint_eq(sync.spare1, 0x6b00fcd6);
}
END_TEST

START_TEST(stores)
{
	const AFSStoreStatus ss = {.Mask = AFS_SETMODTIME, .ClientModTime = 1000000001};
	AFSFetchStatus st;
	AFSVolSync sync;
	rxw_call *call;

	known_answer(STORED SYNC);
	ck_assert_int_eq(rxw_rpc_begin(known_peer(), NULL, &call), 0);
	ck_assert_int_eq(StartRXAFS_StoreData64(call, &file_fid, &ss, 0, 5, 5), 0);
	ck_assert_int_eq(rxw_call_write(call, "abcde", 5), 5);
	ck_assert_int_eq(EndRXAFS_StoreData64(call, &st, &sync), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	known_request("00010002 " FILE_FID "00000001 3b9aca01 00000000*4 | 00000000 00000000 | "
		      "00000000 00000005 | 00000000 00000005 | 61626364 65");
	ck_assert_uint_eq(afs_status_length(&st), 5);
	ck_assert_uint_eq(afs_status_version(&st), 1);
}
END_TEST

START_TEST(fetches)
{
	AFSFetchStatus st;
	AFSCallBack cb;
	AFSVolSync sync;
	rxw_call *call;
	uint8_t head[8], data[5];

	/* The status follows the five bytes without padding. */
	known_answer("00000000 00000005 61626364 65" STORED "00000001 000038af 00000002 " SYNC);
	ck_assert_int_eq(rxw_rpc_begin(known_peer(), NULL, &call), 0);
	ck_assert_int_eq(StartRXAFS_FetchData64(call, &file_fid, 0, 131072), 0);
	ck_assert_int_eq(rxw_call_read(call, head, sizeof(head)), 8);
	ck_assert_uint_eq(head[7], 5);
	ck_assert_int_eq(rxw_call_read(call, data, sizeof(data)), 5);
	ck_assert_mem_eq(data, "abcde", 5);
	ck_assert_int_eq(EndRXAFS_FetchData64(call, &st, &cb, &sync), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	known_request("00010001 " FILE_FID "00000000 00000000 00000000 00020000");
	ck_assert_uint_eq(st.Length, 5);
	ck_assert_uint_eq(cb.ExpirationTime, 0x38af);
	ck_assert_uint_eq(sync.spare1, 0x6b00fcd6);
}
END_TEST

START_TEST(asks_acl)
{
	AFSFid dir = {0x20000001, 1, 1};
	AFSFetchStatus st;
	AFSOpaque acl;
	AFSVolSync sync;

	known_answer("00000032 320a300a 'system:administrators' 09 '127' 0a "
		     "'system:anyuser' 09 '127' 0a00 0000 " ROOT SYNC);
	ck_assert_int_eq(RXAFS_FetchACL(known_peer(), &dir, &acl, &st, &sync), 0);
	known_request("00000083 20000001 00000001 00000001");
	ck_assert_uint_eq(acl.len, 50);
	ck_assert_str_eq(acl.val, "2\n0\nsystem:administrators\t127\nsystem:anyuser\t127\n");
	same_status(&st, &root);
	xdrfree_AFSOpaque(&acl);
}
END_TEST

START_TEST(asks_many)
{
	AFSFid fids[2] = {file_fid, {0x20000001, 4444, 1}};
	AFSCBFids asked = {2, fids};
	AFSBulkStats sts;
	AFSCBs cbs;
	AFSVolSync sync;

	known_answer("00000002 " STORED "00000001 00000000*19 00000066 | 00000002 "
		     "00000001 0000072f 00000002 00000000*3 " SYNC);
	ck_assert_int_eq(RXAFS_InlineBulkStatus(known_peer(), &asked, &sts, &cbs, &sync), 0);
	known_request("00010000 00000002 " FILE_FID "20000001 0000115c 00000001");
	ck_assert_uint_eq(sts.len, 2);
	ck_assert_uint_eq(cbs.len, 2);
	ck_assert(afs_status_usable(&sts.val[0]));
	ck_assert(!afs_status_usable(&sts.val[1]));
	ck_assert_uint_eq(sts.val[1].errorCode, AFS_VNOVNODE);
	ck_assert_uint_eq(cbs.val[0].ExpirationTime, 0x72f);
	xdrfree_AFSBulkStats(&sts);
	xdrfree_AFSCBs(&cbs);
	/* More than fifty are not sent; more in an answer are refused. */
	asked.len = 51;
	asked.val = calloc(51, sizeof(*asked.val));
	ck_assert_int_eq(RXAFS_InlineBulkStatus(known_peer(), &asked, &sts, &cbs, &sync),
			 RXW_RPC_CC_MARSHAL);
	ck_assert_ptr_null(sts.val);
	free(asked.val);
	asked = (AFSCBFids){2, fids};
	known_answer("00000033 00000000*1071 00000000 " SYNC);
	ck_assert_int_eq(RXAFS_InlineBulkStatus(known_peer(), &asked, &sts, &cbs, &sync),
			 RXW_RPC_CC_UNMARSHAL);
	ck_assert_ptr_null(sts.val);
}
END_TEST

START_TEST(asks_volume)
{
	AFSFetchVolumeStatus vst;
	char *name, *offline, *motd;

	known_answer("20000001 20000001 00000001 00000001 00000001 00000000 00000001 00000000 "
		     "00000000 00001d5d 0465a5ab 05b13bd0 00000009 'root.cell' 000000 00000000 "
		     "00000000");
	ck_assert_int_eq(
		RXAFS_GetVolumeStatus(known_peer(), 0x20000001, &vst, &name, &offline, &motd), 0);
	known_request("00000095 20000001");
	ck_assert_str_eq(name, "root.cell");
	ck_assert_str_eq(offline, "");
	ck_assert_int_eq(vst.PartBlocksAvail, 0x0465a5ab);
	ck_assert_int_eq(vst.Online, 1);
	ck_assert_int_eq(vst.NeedsSalvage, 0);
	free(name);
	free(offline);
	free(motd);
}
END_TEST

START_TEST(locks)
{
	AFSVolSync sync;

	known_answer(SYNC);
	ck_assert_int_eq(RXAFS_SetLock(known_peer(), &file_fid, 0, &sync), 0);
	known_request("0000009c " FILE_FID "00000000");
	ck_assert_uint_eq(sync.spare1, 0x6b00fcd6);
	ck_assert_int_eq(RXAFS_ReleaseLock(known_peer(), &file_fid, &sync), 0);
	known_request("0000009e " FILE_FID);
}
END_TEST

/* -- servers ----------------------------------------------------------------------------------- */

static int32_t fetch_status(void *context, rxw_call *call, const AFSFid *fid, AFSFetchStatus *st,
			    AFSCallBack *cb, AFSVolSync *sync)
{
	(void)context;
	(void)call;
	if (fid->Volume != root_fid.Volume) {
		/* Results of a failed call are not sent. */
		*st = root;
		return AFS_VNOVOL;
	}
	*st = root;
	*cb = (AFSCallBack){CALLBACK_VERSION, 14469, CB_SHARED};
	sync->spare1 = 0x6b0102c7;
	return 0;
}

static int32_t create_file(void *context, rxw_call *call, const AFSFid *dir, const char *name,
			   const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
			   AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	(void)context;
	(void)call;
	if (dir->Vnode != 1 || strcmp(name, "vec365") != 0 || ss->ClientModTime != 1000000000)
		return 1;
	*fid = file_fid;
	*st = made;
	*dir_st = root;
	dir_st->LinkCount = 6;
	dir_st->DataVersion = 0xd7;
	dir_st->ClientModTime = dir_st->ServerModTime = 0x6b010a9d;
	*cb = (AFSCallBack){1, 0x38af, 2};
	sync->spare1 = 0x6b00fcd6;
	return 0;
}

static int32_t fetch_data(void *context, rxw_call *call, const AFSFid *fid, int64_t pos,
			  int64_t length, AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	static const uint8_t raw[] = {0, 0, 0, 0, 0, 0, 0, 5, 'a', 'b', 'c', 'd', 'e'};

	(void)context;
	if (fid->Vnode != file_fid.Vnode || pos != 0 || length != 131072)
		return 1;
	ck_assert_int_eq(rxw_call_write(call, raw, sizeof(raw)), sizeof(raw));
	*st = made;
	afs_status_set_length(st, 5);
	afs_status_set_version(st, 1);
	st->ClientModTime = 1000000001;
	*cb = (AFSCallBack){1, 0x38af, 2};
	sync->spare1 = 0x6b00fcd6;
	return 0;
}

static int32_t bulk_status(void *context, rxw_call *call, const AFSCBFids *fids, AFSBulkStats *sts,
			   AFSCBs *cbs, AFSVolSync *sync)
{
	(void)context;
	(void)call;
	sts->val = calloc(fids->len, sizeof(*sts->val));
	cbs->val = calloc(fids->len, sizeof(*cbs->val));
	sts->len = cbs->len = fids->len;
	for (uint32_t i = 0; i < fids->len; i++)
		afs_status_refuse(&sts->val[i], (int32_t)fids->val[i].Vnode);
	sync->spare1 = 0x6b00fcd6;
	return 0;
}

static int32_t volume_status(void *context, rxw_call *call, int32_t volume,
			     AFSFetchVolumeStatus *vst, char **name, char **offline, char **motd)
{
	(void)context;
	(void)call;
	*vst = (AFSFetchVolumeStatus){.Vid = volume, .Online = 1, .InService = -1};
	*name = strdup("root.cell");
	*offline = strdup("");
	*motd = volume == 1 ? NULL : strdup("");
	return 0;
}

static const struct RXAFS_handlers handlers = {
	.FetchStatus = fetch_status,
	.CreateFile = create_file,
	.FetchData64 = fetch_data,
	.InlineBulkStatus = bulk_status,
	.GetVolumeStatus = volume_status,
};
static struct RXAFS_service service = {.handlers = &handlers};

START_TEST(answers)
{
	known_dispatcher(RXAFS_ExecuteRequest, &service);
	known_exchange("00000084 20000012 00000001 00000001",
		       ROOT "| 00000001 00003885 00000002 | 6b0102c7 00000000*5");
	known_exchange("00000089 20000001 00000001 00000001 00000006 'vec365' 0000 00000009 "
		       "3b9aca00 00000000 00000000 000001a4 00000000",
		       FILE_FID MADE DIRECTORY "00000001 000038af 00000002 " SYNC);
	known_exchange("00010001 " FILE_FID "00000000 00000000 00000000 00020000",
		       "00000000 00000005 61626364 65" STORED "00000001 000038af 00000002 " SYNC);
	known_exchange("00010000 00000001 20000001 00000066 00000001",
		       "00000001 | 00000001 00000000*19 00000066 | 00000001 00000000*3 | " SYNC);
	known_exchange("00000095 20000001",
		       "20000001 00000000 00000001 ffffffff 00000000*8 00000009 'root.cell' 000000 "
		       "00000000 00000000");
	/* Bytes after the arguments are ignored. */
	known_exchange("00000095 20000001 00000000*300",
		       "20000001 00000000 00000001 ffffffff 00000000*8 00000009 'root.cell' 000000 "
		       "00000000 00000000");
}
END_TEST

START_TEST(refuses)
{
	known_dispatcher(RXAFS_ExecuteRequest, &service);
	known_failure("00000084 20000001 00000001 00000001", AFS_VNOVOL);
	known_failure("0000", RXW_RPC_DECODE);
	known_failure("", RXW_RPC_DECODE);
	known_failure("0000270f", RXW_RPC_OPCODE);
	known_failure("ffffffff", RXW_RPC_OPCODE);
	known_failure("00000085 20000001", RXW_RPC_OPCODE); /* has no handler */
	known_failure("00000084 20000001 00000001", RXW_RPC_SS_UNMARSHAL);
	/* Names: 256 bytes are decoded, 257 are not, nor is a NUL inside. */
	known_failure("00000089 20000001 00000001 00000001 00000100 'x'*256 00000000*6", 1);
	known_failure("00000089 20000001 00000001 00000001 00000101 'x'*257 000000 00000000*6",
		      RXW_RPC_SS_UNMARSHAL);
	known_failure("00000089 20000001 00000001 00000001 00000002 78007800 00000000*6",
		      RXW_RPC_SS_UNMARSHAL);
	known_failure("00000089 20000001 00000001 00000001 ffffffff 78007800 00000000*6",
		      RXW_RPC_SS_UNMARSHAL);
	/* Fifty-one FIDs; fewer than announced. */
	known_failure("00010000 00000033 00000000*153", RXW_RPC_SS_UNMARSHAL);
	known_failure("00010000 00000002 00000000*5", RXW_RPC_SS_UNMARSHAL);
	/* A result that cannot be encoded. */
	known_failure("00000095 00000001", RXW_RPC_SS_MARSHAL);
}
END_TEST

KNOWN_MAIN("rxafs", asks_status, makes_file, stores, fetches, asks_acl, asks_many, asks_volume,
	   locks, answers, refuses)
