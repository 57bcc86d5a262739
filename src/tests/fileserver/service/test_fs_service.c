/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the file service, call by call, with arguments encoded by hand, over loopback. */
#include "tests/fileserver/callbacks/answer.h"
#include "tests/fileserver/fixture.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>
#include <rxwire/error.h>

#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "fileserver/service/services.h"
#include "volume/export/object.h"
#include "tests/main.h"
#include "tests/support/counters.h"

static struct world world;
static struct wire w;
static uint8_t request[16384];
static struct rxw_xdr rq, rp;

static void setup(void)
{
	char *root = tree_make();

	tree_text(root, "hello.txt", "hello, world\n");
	tree_dir(root, "sub", 0755);
	tree_text(root, "sub/inner", "inner");
	tree_link(root, "link", "sub/inner");
	tree_file(root, "secret", "s", 1, 0600);
	tree_tick();
	world_open(&world, root, false, 0);
	ck_assert(wire_open(&w, AFS_SERVICE_FS, fsd_fs_serve, world.service, "127.0.0.1"));
}

static void teardown(void)
{
	wire_close(&w);
	world_close(&world);
}

/* An object whose status may not be read: a directory in its path was closed. */
static AFSFid closed_fid(void)
{
	AFSFid fid = world_fid(&world, "sub/inner");

	ck_assert_int_eq(chmod(tree_path(world.root, "sub"), 0700), 0);
	export_forget_access(world.export);
	return fid;
}

static struct rxw_xdr *begin(uint32_t opcode)
{
	rxw_xdr_writer(&rq, request, sizeof(request));
	rxw_xdr_put_u32(&rq, opcode);
	return &rq;
}

/* Sends the bytes of begin() and the following puts; the reply is in rp. */
static int32_t serve_from(unsigned client)
{
	int32_t code = wire_call(&w, client, request, rxw_xdr_used(&rq));

	rxw_xdr_reader(&rp, w.reply, w.reply_length);
	return code;
}

static int32_t serve(void)
{
	return serve_from(7001);
}

static struct rxw_xdr *put_fids(struct rxw_xdr *x, const AFSFid *fids, uint32_t count)
{
	rxw_xdr_put_u32(x, count);
	for (uint32_t i = 0; i < count; i++)
		xdr_put_AFSFid(x, &fids[i]);
	return x;
}

static AFSFid root_fid(void)
{
	return (AFSFid){world.export->id, 1, 1};
}

/* From now on this caller may have promises. */
static void bring_up(unsigned client)
{
	begin(RXAFS_OP_GetTime);
	ck_assert_int_eq(serve_from(client), 0);
	answer_all(world.clients);
}

START_TEST(missing_and_unknown_opcodes)
{
	/* including the obsolete ones of afs-fileserver 3.10 and those of residency */
	static const uint32_t unknown[] = {0,	1,     129,   151,   152,   165,
					   219, 65535, 65543, 65551, 65562, 0xffffffff};

	setup();
	rxw_xdr_writer(&rq, request, sizeof(request));
	for (int n = 0; n < 4; n++) {
		request[n] = 0;
		ck_assert_int_eq(wire_call(&w, 7001, request, (size_t)n), RXW_RPC_DECODE);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		begin(unknown[i]);
		ck_assert_msg(serve() == RXW_RPC_OPCODE, "opcode %u", unknown[i]);
	}
	teardown();
}
END_TEST

/* Each call with arguments refuses an empty and a truncated request, without output. */
START_TEST(truncated_arguments)
{
	static const struct {
		uint32_t opcode;
		unsigned bytes;
	} calls[] = {
		{130, 20}, {131, 12}, {132, 12}, {133, 48},   {134, 16},   {135, 36},	{136, 20},
		{137, 44}, {138, 40}, {139, 52}, {140, 32},   {141, 44},   {142, 20},	{147, 8},
		{148, 8},  {149, 4},  {150, 28}, {154, 8},    {155, 16},   {156, 16},	{157, 12},
		{158, 12}, {160, 8},  {164, 16}, {65536, 16}, {65537, 28}, {65538, 60}, {65542, 4},
		{161, 20}, {162, 20}, {163, 52}, {220, 1876}, {65541, 4},
	};

	setup();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		for (unsigned n = 0; n < calls[i].bytes; n += 4) {
			begin(calls[i].opcode);
			for (unsigned j = 0; j < n;
			     j += 4) /* ones: counts and lengths of one, FIDs of 1.1.1 */
				rxw_xdr_put_u32(&rq, 1);
			ck_assert_msg(serve() == RXW_RPC_SS_UNMARSHAL, "opcode %u with %u bytes",
				      calls[i].opcode, n);
			ck_assert_uint_eq(w.reply_length, 0);
		}
	}
	teardown();
}
END_TEST

START_TEST(bad_strings_and_counts)
{
	AFSFid fid;
	char name[300];

	setup();
	fid = root_fid();
	memset(name, 'n', sizeof(name));
	name[257] = 0;
	xdr_put_AFSFid(begin(RXAFS_OP_RemoveFile), &fid);
	rxw_xdr_put_string(&rq, name, UINT32_MAX);
	ck_assert_int_eq(serve(), RXW_RPC_SS_UNMARSHAL);
	xdr_put_AFSFid(begin(RXAFS_OP_RemoveFile), &fid);
	rxw_xdr_put_bytes(&rq, "a\0b", 3, UINT32_MAX);
	ck_assert_int_eq(serve(), RXW_RPC_SS_UNMARSHAL);
	rxw_xdr_put_u32(begin(RXAFS_OP_InlineBulkStatus), 51);
	for (int i = 0; i < 51; i++)
		xdr_put_AFSFid(&rq, &fid);
	ck_assert_int_eq(serve(), RXW_RPC_SS_UNMARSHAL);
	rxw_xdr_put_u32(begin(RXAFS_OP_GiveUpCallBacks), 1);
	xdr_put_AFSFid(&rq, &fid);
	rxw_xdr_put_u32(&rq, 2);
	for (int i = 0; i < 6; i++)
		rxw_xdr_put_u32(&rq, 0);
	ck_assert_int_eq(serve(), 49733397);
	teardown();
}
END_TEST

START_TEST(fetch_status)
{
	AFSFid fid;
	AFSFetchStatus s;
	AFSCallBack cb;
	AFSVolSync sync;

	setup();
	fid = world_fid(&world, "hello.txt");
	xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(w.reply_length, 30 * 4);
	ck_assert(xdr_get_AFSFetchStatus(&rp, &s) && xdr_get_AFSCallBack(&rp, &cb) &&
		  xdr_get_AFSVolSync(&rp, &sync));
	ck_assert(afs_status_usable(&s));
	ck_assert_uint_eq(afs_status_length(&s), 13);
	ck_assert_uint_eq(s.ResidencyMask, 1);
	ck_assert_uint_eq(s.AnonymousAccess, 41);
	ck_assert(cb.CallBackVersion == 0 && cb.ExpirationTime == 0 && cb.CallBackType == 0);
	ck_assert_uint_eq(sync.spare1, world.export->creation);
	for (int i = 25 * 4; i < 30 * 4; i++)
		ck_assert_uint_eq(w.reply[i], 0);

	bring_up(7001);
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid), serve()), 0);
	ck_assert(xdr_get_AFSFetchStatus(&rp, &s) && xdr_get_AFSCallBack(&rp, &cb));
	ck_assert(cb.CallBackVersion == 1 && cb.ExpirationTime >= 60 && cb.CallBackType == 2);
	ck_assert(fsd_promise_held(world.clients, &fid));
	/* surplus bytes are ignored */
	xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid);
	for (int i = 0; i < 3000; i++)
		rxw_xdr_put_u32(&rq, 0xabababab);
	ck_assert_int_eq(serve(), 0);
	teardown();
}
END_TEST

START_TEST(codes_fit_the_client)
{
	AFSFid fid, zero = {0, 1, 1}, elsewhere = {9, 1, 1};

	setup();
	fid = closed_fid();
	/* a client that never made a modern call gets raw numbers */
	xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid);
	ck_assert_int_eq(serve_from(1111), EACCES);
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &zero), serve_from(1111)),
			 EINVAL);
	begin(RXAFS_OP_GetCapabilities);
	ck_assert_int_eq(serve_from(2222), 0);
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid), serve_from(2222)),
			 49733388);
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &zero), serve_from(2222)),
			 49733397);
	/* volume codes are never translated */
	ck_assert_int_eq(
		(xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &elsewhere), serve_from(2222)), 103);
	fid.Unique = 77777;
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid), serve_from(2222)),
			 102);
	teardown();
}
END_TEST

START_TEST(no_promise_for_failed_calls)
{
	AFSFid fid;

	setup();
	fid = closed_fid();
	bring_up(7001);
	xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid);
	ck_assert_int_eq(serve(), 49733388);
	ck_assert(!fsd_promise_held(world.clients, &fid));
	teardown();
}
END_TEST

START_TEST(inline_bulk_status)
{
	AFSFid fids[3];
	AFSFetchStatus s;
	AFSCallBack cb[3];
	AFSVolSync sync;
	uint32_t n;

	setup();
	bring_up(7001);
	fids[0] = world_fid(&world, "hello.txt");
	fids[1] = (AFSFid){fids[0].Volume, 4444, 1};
	fids[2] = closed_fid();
	put_fids(begin(RXAFS_OP_InlineBulkStatus), fids, 3);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(w.reply_length, 4 * (1 + 3 * 21 + 1 + 3 * 3 + 6));
	ck_assert(rxw_xdr_get_u32(&rp, &n) && n == 3);
	ck_assert(xdr_get_AFSFetchStatus(&rp, &s) && afs_status_usable(&s) &&
		  afs_status_length(&s) == 13);
	/* as recorded: version 1, all zero, the code */
	ck_assert_uint_eq(w.reply[4 * 22 + 3], 1);
	for (int i = 4 * 23; i < 4 * 42; i++)
		ck_assert_uint_eq(w.reply[i], 0);
	ck_assert(xdr_get_AFSFetchStatus(&rp, &s) && s.errorCode == 102);
	ck_assert(xdr_get_AFSFetchStatus(&rp, &s) && s.errorCode == 49733388);
	ck_assert(rxw_xdr_get_u32(&rp, &n) && n == 3);
	for (int i = 0; i < 3; i++)
		ck_assert(xdr_get_AFSCallBack(&rp, &cb[i]));
	ck_assert_uint_eq(cb[0].CallBackType, CB_SHARED);
	ck_assert(cb[1].CallBackVersion == 0 && cb[1].ExpirationTime == 0 &&
		  cb[1].CallBackType == 0);
	ck_assert(xdr_get_AFSVolSync(&rp, &sync));
	ck_assert_uint_eq(rxw_xdr_left(&rp), 0);

	/* the older call fails completely */
	ck_assert_int_eq((put_fids(begin(RXAFS_OP_BulkStatus), fids, 2), serve()), 102);
	ck_assert_int_eq((put_fids(begin(RXAFS_OP_BulkStatus), fids, 1), serve()), 0);
	ck_assert_int_eq((put_fids(begin(RXAFS_OP_InlineBulkStatus), fids, 0), serve()), 49733397);

	AFSFid fifty[50];

	for (int i = 0; i < 50; i++)
		fifty[i] = fids[0];
	ck_assert_int_eq((put_fids(begin(RXAFS_OP_InlineBulkStatus), fifty, 50), serve()), 0);
	ck_assert_uint_eq(w.reply_length, 4832);
	teardown();
}
END_TEST

static int32_t fetch64(AFSFid fid, uint64_t offset, uint64_t length)
{
	xdr_put_AFSFid(begin(RXAFS_OP_FetchData64), &fid);
	rxw_xdr_put_u64(&rq, offset);
	rxw_xdr_put_u64(&rq, length);
	return serve();
}

static int32_t fetch32(AFSFid fid, uint32_t offset, uint32_t length)
{
	xdr_put_AFSFid(begin(RXAFS_OP_FetchData), &fid);
	rxw_xdr_put_u32(&rq, offset);
	rxw_xdr_put_u32(&rq, length);
	return serve();
}

START_TEST(fetch_pieces)
{
	static const struct {
		uint64_t offset, length, want;
	} cases[] = {
		{0, 131072, 13},      {0, 5, 5}, {7, 3, 3},	     {12, 100, 1}, {13, 100, 0},
		{1ull << 40, 100, 0}, {0, 0, 0}, {0, INT64_MAX, 13},
	};
	AFSFid fid;
	AFSFetchStatus s;

	setup();
	fid = world_fid(&world, "hello.txt");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t n;

		ck_assert_int_eq(fetch64(fid, cases[i].offset, cases[i].length), 0);
		ck_assert(rxw_xdr_get_u64(&rp, &n));
		ck_assert_uint_eq(n, cases[i].want);
		/* no padding between data and status */
		ck_assert_uint_eq(w.reply_length, 8 + n + 30 * 4);
		if (n)
			ck_assert_mem_eq(w.reply + 8, &"hello, world\n"[cases[i].offset], n);
		rxw_xdr_reader(&rp, w.reply + 8 + n, 30 * 4);
		ck_assert(xdr_get_AFSFetchStatus(&rp, &s) && afs_status_usable(&s));
	}
	ck_assert_int_eq(fetch64(fid, UINT64_MAX, 1), 49733402);
	ck_assert_int_eq(fetch64(fid, 0, UINT64_MAX), 49733402);
	ck_assert_int_eq(fetch64(fid, INT64_MAX, 1), 49733402);
	ck_assert_int_eq(fetch32(fid, 0, 131072), 0);
	ck_assert_uint_eq(w.reply_length, 4 + 13 + 30 * 4);
	ck_assert_uint_eq(w.reply[3], 13);
	ck_assert_int_eq(fetch32(fid, 0x80000000u, 1), 49733402);
	ck_assert_int_eq(fetch32(fid, 0, 0xffffffffu), 49733402);
	teardown();
}
END_TEST

/* The packets of a short reply are not sent one after the other, as they are written. */
START_TEST(fetch_in_one_message)
{
	static const uint8_t content[5000] = {1}; /* several packets */
	struct counters before, after;
	uint64_t packets, datagrams;
	AFSFid fid;

	setup();
	tree_file(world.root, "short", content, sizeof(content), 0644);
	fid = world_fid(&world, "short");
	/* On a slow machine the server may have acknowledged the request first, or repeated a packet. */
	do {
		before = counters_of(w.server);
		ck_assert_int_eq(fetch64(fid, 0, sizeof(content)), 0);
		ck_assert_uint_eq(w.reply_length, 8 + sizeof(content) + 30 * 4);
		do { /* the client may have the packets before the server has counted them */
			after = counters_of(w.server);
			packets = counter_in(&after, "packets.sent.data") -
				  counter_in(&before, "packets.sent.data");
			datagrams = counter_in(&after, "datagrams.sent") -
				    counter_in(&before, "datagrams.sent");
		} while (packets < 2 || datagrams < packets);
	} while (datagrams > packets);
	ck_assert_uint_eq(
		counter_in(&after, "syscalls.send") - counter_in(&before, "syscalls.send"), 1);
	teardown();
}
END_TEST

START_TEST(fetch_beyond_four_gigabytes)
{
	AFSFid fid;
	uint64_t n;
	int fd;

	setup();
	fd = creat(tree_path(world.root, "sparse"), 0644);
	ck_assert_int_eq(pwrite(fd, "far away", 8, (off_t)5 << 30), 8);
	fchmod(fd, 0644);
	close(fd);
	fid = world_fid(&world, "sparse");
	ck_assert_int_eq(fetch64(fid, 5ull << 30, 4096), 0);
	ck_assert(rxw_xdr_get_u64(&rp, &n));
	ck_assert_uint_eq(n, 8);
	ck_assert_mem_eq(w.reply + 8, "far away", 8);
	ck_assert_int_eq(fetch64(fid, (5ull << 30) - 100000, 200000), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 100008 + 120);
	AFSFetchStatus s;

	rxw_xdr_reader(&rp, w.reply + 8 + 100008, 120);
	ck_assert(xdr_get_AFSFetchStatus(&rp, &s));
	ck_assert_uint_eq(afs_status_length(&s), (5ull << 30) + 8);
	teardown();
}
END_TEST

START_TEST(fetch_directories_and_links)
{
	AFSFetchStatus s;
	AFSFid fid;
	uint32_t v, u;

	setup();
	ck_assert_int_eq(fetch64(root_fid(), 0, 4096), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 2048 + 120);
	ck_assert_int_eq(afs_dir_check(w.reply + 8, 2048), 0);
	ck_assert_int_eq(afs_dir_lookup(w.reply + 8, 2048, "secret", &v, &u), 1);
	ck_assert_int_eq(fetch64(root_fid(), 2000, 4096), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 48 + 120);
	fid = world_fid(&world, "link");
	ck_assert_int_eq(fetch64(fid, 0, 1024), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 9 + 120);
	ck_assert_mem_eq(w.reply + 8, "sub/inner", 9);
	/* an object that may not be read has a status, but no data */
	fid = world_fid(&world, "secret");
	xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid);
	ck_assert_int_eq(serve(), 0);
	ck_assert(xdr_get_AFSFetchStatus(&rp, &s) && afs_status_length(&s) == 1);
	ck_assert_uint_eq(s.CallerAccess, AFS_RIGHT_LOOKUP);
	ck_assert_int_eq(fetch64(fid, 0, 10), 49733388);
	ck_assert_uint_eq(w.reply_length, 0);
	teardown();
}
END_TEST

START_TEST(closed_directory_is_not_listed)
{
	AFSFid fid;

	setup();
	tree_dir(world.root, "closed", 0711);
	fid = world_fid(&world, "closed");
	xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid);
	ck_assert_int_eq(serve(), 0);
	ck_assert_int_eq(fetch64(fid, 0, 4096), 49733388);
	ck_assert_uint_eq(w.reply_length, 0);
	teardown();
}
END_TEST

START_TEST(writes_are_refused)
{
	AFSFid fid, other;
	struct {
		uint32_t opcode;
		const char *shape;
	} calls[] = {
		{RXAFS_OP_StoreStatus, "q"}, {RXAFS_OP_RemoveFile, "n"},
		{RXAFS_OP_CreateFile, "nq"}, {RXAFS_OP_Rename, "nfn"},
		{RXAFS_OP_Symlink, "nnq"},   {RXAFS_OP_Link, "nf"},
		{RXAFS_OP_MakeDir, "nq"},    {RXAFS_OP_RemoveDir, "n"},
		{RXAFS_OP_OldStoreACL, "n"}, {RXAFS_OP_StoreACL, "n"},
	};

	setup();
	fid = root_fid();
	other = (AFSFid){5, 1, 1};
	begin(RXAFS_OP_GetCapabilities);
	ck_assert_int_eq(serve(), 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		for (int known = 0; known < 2; known++) {
			xdr_put_AFSFid(begin(calls[i].opcode), known ? &fid : &other);
			for (const char *s = calls[i].shape; *s; s++) {
				if (*s == 'n')
					rxw_xdr_put_string(&rq, "name", UINT32_MAX);
				else if (*s == 'f')
					xdr_put_AFSFid(&rq, known ? &fid : &other);
				else
					for (int j = 0; j < 6; j++)
						rxw_xdr_put_u32(&rq, 1);
			}
			ck_assert_int_eq(serve(), known ? 49733405 : 103);
			ck_assert_uint_eq(w.reply_length, 0);
		}
	}
	/* of a store only the arguments are read, never the data */
	w.measure = true;
	xdr_put_AFSFid(begin(RXAFS_OP_StoreData64), &fid);
	for (int i = 0; i < 12 + 2000; i++)
		rxw_xdr_put_u32(&rq, 1);
	ck_assert_int_eq(serve(), 49733405);
	ck_assert_uint_eq(w.unread, 2000 * 4);
	xdr_put_AFSFid(begin(RXAFS_OP_StoreData), &fid);
	for (int i = 0; i < 9 + 2000; i++)
		rxw_xdr_put_u32(&rq, 1);
	ck_assert_int_eq(serve(), 49733405);
	ck_assert_uint_eq(w.unread, 2000 * 4);
	w.measure = false;
	rxw_xdr_put_u32(begin(RXAFS_OP_SetVolumeStatus), fid.Volume);
	for (int i = 0; i < 3 + 3; i++)
		rxw_xdr_put_u32(&rq, 0);
	ck_assert_int_eq(serve(), 49733405);
	ck_assert_uint_eq(world.service->counters.refused_writes, 13);
	teardown();
}
END_TEST

START_TEST(small_calls)
{
	AFSFetchVolumeStatus vs;
	AFSFid fid;
	uint32_t a, b;
	uint64_t now;
	const uint8_t *text;
	size_t length;

	setup();
	begin(RXAFS_OP_GetCapabilities);
	ck_assert_int_eq(serve(), 0);
	ck_assert(rxw_xdr_get_u32(&rp, &a) && rxw_xdr_get_u32(&rp, &b));
	ck_assert(a == 1 && b == 7 && rxw_xdr_left(&rp) == 0);

	begin(RXAFS_OP_GetTime);
	ck_assert_int_eq(serve(), 0);
	ck_assert(rxw_xdr_get_u32(&rp, &a) && rxw_xdr_get_u32(&rp, &b));
	ck_assert_int_lt(llabs((long long)a - (long long)time(NULL)), 5);
	ck_assert_uint_lt(b, 1000000);

	rxw_xdr_put_u32(begin(RXAFS_OP_GetVolumeStatus), root_fid().Volume);
	ck_assert_int_eq(serve(), 0);
	ck_assert(xdr_get_AFSFetchVolumeStatus(&rp, &vs));
	ck_assert_int_eq(vs.Type, 0);
	ck_assert_int_eq(vs.Vid, (int32_t)root_fid().Volume);
	ck_assert(rxw_xdr_lend_bytes(&rp, 256, &text, &length) && length == 13);
	ck_assert_mem_eq(text, "data.readonly", 13);
	/* two empty strings */
	ck_assert(rxw_xdr_get_u64(&rp, &now) && now == 0 && rxw_xdr_left(&rp) == 0);
	rxw_xdr_put_u32(begin(RXAFS_OP_GetVolumeStatus), 9);
	ck_assert_int_eq(serve(), 103);

	fid = world_fid(&world, "hello.txt");
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchACL), &fid), serve()), 0);
	ck_assert(rxw_xdr_lend_bytes(&rp, 1024, &text, &length));
	ck_assert_str_eq((const char *)text, "1\n0\nsystem:anyuser\t41\n");
	ck_assert_uint_eq(length, strlen((const char *)text) + 1);
	ck_assert_uint_eq(rxw_xdr_left(&rp), 27 * 4);

	for (uint32_t type = 0; type < 4; type++) {
		static const int32_t want[] = {0, 49733405, 49733397, 49733397};

		xdr_put_AFSFid(begin(RXAFS_OP_SetLock), &fid);
		rxw_xdr_put_u32(&rq, type);
		ck_assert_int_eq(serve(), want[type]);
	}
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_ExtendLock), &fid), serve()), 0);
	ck_assert_uint_eq(w.reply_length, 24);
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_ReleaseLock), &fid), serve()), 0);
	teardown();
}
END_TEST

/*
 * GetStatistics returns the counters of the server's endpoint, after seven calls. A packet is
 * counted after the system call that sent it, so its receiver may see it before it is counted.
 */
static void transport_figures(void)
{
	struct counters before, after;
	const uint64_t sent = 3 * (28 + 120) + (28 + 141) + (28 + 580) + (28 + 132) + (28 + 4);
	ViceStatistics stats;

	while (counters_read(&before, w.server) == 0 &&
	       (counter_in(&before, "bytes.sent") < sent ||
		counters_sum(&before, "packets.sent.") < 7 ||
		counter_in(&before, "bytes.received") < 7 * (28 + 4) ||
		counters_sum(&before, "packets.received.") < 7))
		usleep(1000);
	begin(RXAFS_OP_GetStatistics);
	ck_assert_int_eq(serve(), 0);
	ck_assert(xdr_get_ViceStatistics(&rp, &stats));
	after = counters_of(w.server);
	ck_assert_uint_ge(stats.TotalRPCBytesSent, counter_in(&before, "bytes.sent"));
	ck_assert_uint_le(stats.TotalRPCBytesSent, counter_in(&after, "bytes.sent"));
	ck_assert_uint_ge(stats.TotalRPCBytesReceived, counter_in(&before, "bytes.received"));
	ck_assert_uint_le(stats.TotalRPCBytesReceived, counter_in(&after, "bytes.received"));
	ck_assert_uint_ge(stats.TotalRPCPacketsSent, counters_sum(&before, "packets.sent."));
	ck_assert_uint_le(stats.TotalRPCPacketsSent, counters_sum(&after, "packets.sent."));
	ck_assert_uint_ge(stats.TotalRPCPacketsReceived, counters_sum(&before, "packets.received."));
	ck_assert_uint_le(stats.TotalRPCPacketsReceived, counters_sum(&after, "packets.received."));
}

START_TEST(statistics)
{
	ViceStatistics stats;
	uint64_t values[16];
	AFSFid fid;
	uint32_t n;

	setup();
	world.service->start_time = 1234567890;
	world.service->fs = w.server;
	fid = world_fid(&world, "hello.txt");
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid), serve()), 0);
	ck_assert_int_eq(fetch64(fid, 0, 100), 0);
	begin(RXAFS_OP_GetStatistics);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(w.reply_length, 145 * 4);
	ck_assert(xdr_get_ViceStatistics(&rp, &stats));
	ck_assert_int_lt(llabs((long long)stats.CurrentTime - (long long)time(NULL)), 5);
	ck_assert_uint_gt(stats.BootTime, 0);
	ck_assert_uint_lt(stats.BootTime, stats.CurrentTime);
	ck_assert_uint_eq(stats.StartTime, 1234567890);
	ck_assert_int_eq(stats.CurrentConnections, 1);
	ck_assert_uint_eq(stats.TotalViceCalls, 4);
	ck_assert_uint_eq(stats.TotalFetchs, 4);
	ck_assert_uint_eq(stats.FetchDatas, 1);
	ck_assert_uint_eq(stats.FetchedBytes, 13);
	ck_assert_uint_eq(stats.TotalStores, 0);
	ck_assert_int_gt(stats.ProcessSize, 100);
	ck_assert_int_eq(stats.WorkStations, 1);
	ck_assert_int_eq(stats.ActiveWorkStations, 1);
	ck_assert_str_eq(stats.Disk[0].Name, "/vicepa");
	ck_assert_int_gt(stats.Disk[0].TotalBlocks, 0);
	ck_assert_int_le(stats.Disk[0].BlocksAvailable, stats.Disk[0].TotalBlocks);
	for (int i = 1; i < 10; i++) {
		ck_assert_int_eq(stats.Disk[i].TotalBlocks, -1);
		ck_assert_int_eq(stats.Disk[i].Name[0], 0);
	}

	rxw_xdr_put_u32(begin(RXAFS_OP_GetStatistics64), 16);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(w.reply_length, 4 + 16 * 8);
	ck_assert(rxw_xdr_get_u32(&rp, &n) && n == 16);
	for (int i = 0; i < 16; i++)
		ck_assert(rxw_xdr_get_u64(&rp, &values[i]));
	ck_assert_int_lt(llabs((long long)values[0] - (long long)time(NULL)), 5);
	ck_assert_uint_eq(values[2], 1234567890);
	ck_assert_uint_eq(values[3], 1);
	ck_assert_uint_eq(values[4], 4);
	ck_assert_uint_eq(values[5], 1);
	ck_assert_uint_eq(values[6], 13);
	ck_assert_uint_eq(values[12], 5);
	ck_assert_uint_eq(values[13], 1);
	ck_assert_uint_eq(values[14], 1);
	rxw_xdr_put_u32(begin(RXAFS_OP_GetStatistics64), 1000000);
	ck_assert_int_eq(serve(), 49733397);

	transport_figures();
	teardown();
}
END_TEST

/* test_xstats.c tests the contents of the collections. */
START_TEST(extended_statistics)
{
	static const uint32_t none[] = {4, 99, 0xffffffff};
	uint32_t version, now, count;

	setup();
	begin(RXAFS_OP_XStatsVersion);
	ck_assert_int_eq(serve(), 0);
	ck_assert(rxw_xdr_get_u32(&rp, &version) && version == 2 && rxw_xdr_left(&rp) == 0);
	for (uint32_t collection = 0; collection < 4; collection += collection ? 2 : 1) {
		rxw_xdr_put_u32(begin(RXAFS_OP_GetXStats), 2);
		rxw_xdr_put_u32(&rq, collection);
		ck_assert_int_eq(serve(), 0);
		ck_assert(rxw_xdr_get_u32(&rp, &version) && version == 2);
		ck_assert(rxw_xdr_get_u32(&rp, &now) && rxw_xdr_get_u32(&rp, &count));
		ck_assert_int_lt(llabs((long long)now - (long long)time(NULL)), 5);
		ck_assert_uint_eq(count, collection == 0 ? 0 : collection == 1 ? 98 : 16);
		ck_assert_uint_eq(rxw_xdr_left(&rp), count * 4);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		rxw_xdr_put_u32(begin(RXAFS_OP_GetXStats), 2);
		rxw_xdr_put_u32(&rq, none[i]);
		ck_assert_int_eq(serve(), 1);
		ck_assert_uint_eq(w.reply_length, 0);
	}
	teardown();
}
END_TEST

/* Obsolete calls: known, complete, and answered with a code (afs-fileserver 3.10). */
START_TEST(obsolete_calls)
{
	static const struct {
		uint32_t opcode;
		const char *shape; /* n: a string, f: a FID, c: words of a command, 1, 6 */
		int32_t code;
	} calls[] = {
		{148, "n", 103},	 {154, "n", 103},	{161, "fn", 49733397},
		{163, "fnn6", 49733397}, {220, "fc", 49733397}, {162, "11111", 49733376},
		{65541, "1", 49733376},
	};

	setup();
	begin(RXAFS_OP_GetCapabilities);
	ck_assert_int_eq(serve(), 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		begin(calls[i].opcode);
		for (const char *s = calls[i].shape; *s; s++) {
			unsigned words = *s == 'c' ? 466 : *s == 'f' ? 3 : (unsigned)*s - '0';

			if (*s == 'n')
				rxw_xdr_put_string(&rq, "name", UINT32_MAX);
			else
				for (unsigned j = 0; j < words; j++)
					rxw_xdr_put_u32(&rq, 1);
		}
		ck_assert_msg(serve() == calls[i].code, "opcode %u", calls[i].opcode);
		ck_assert_uint_eq(w.reply_length, 0);
	}
	teardown();
}
END_TEST

/* root.afs contains only /afs/CELL and /afs/.CELL. */
START_TEST(mount_points)
{
	AFSFid fid = {FSD_ROOTAFS_ID, 1, 1}, link = fid;
	AFSFetchVolumeStatus vs;
	AFSFetchStatus s;
	AFSVolSync sync;
	AFSCallBack cb;

	setup();
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid), serve()), AFS_VNOVOL);
	world.service->rootafs = fsd_rootafs_create("test.cell", false, 1700000000);
	ck_assert_ptr_nonnull(world.service->rootafs);
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fid), serve()), 0);
	ck_assert(xdr_get_AFSFetchStatus(&rp, &s) && afs_status_usable(&s));
	ck_assert_uint_eq(s.FileType, AFS_TYPE_DIR);
	ck_assert_uint_eq(afs_status_length(&s), 2048);
	ck_assert(xdr_get_AFSCallBack(&rp, &cb) && cb.ExpirationTime >= 60);
	ck_assert(xdr_get_AFSVolSync(&rp, &sync) && sync.spare1 == 1700000000);
	ck_assert_int_eq(fetch64(fid, 0, 4096), 0);
	ck_assert_int_eq(afs_dir_check(w.reply + 8, 2048), 0);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? ".test.cell" : "test.cell";
		const char *text = "#root.cell.";

		ck_assert_int_eq(fetch64(fid, 0, 4096), 0);
		ck_assert_int_eq(afs_dir_lookup(w.reply + 8, 2048, name, &link.Vnode, &link.Unique),
				 1);
		ck_assert_int_eq((put_fids(begin(RXAFS_OP_InlineBulkStatus), &link, 1), serve()),
				 0);
		rp.at += 4;
		ck_assert(xdr_get_AFSFetchStatus(&rp, &s) && s.errorCode == 0);
		/* Clients recognise a mount point by this. */
		ck_assert_uint_eq(s.FileType, AFS_TYPE_SYMLINK);
		ck_assert_uint_eq(s.UnixModeBits, 0644);
		ck_assert_int_eq(fetch64(link, 0, 100), 0);
		ck_assert_uint_eq(w.reply_length, 8 + strlen(text) + 120);
		ck_assert_mem_eq(w.reply + 8, text, strlen(text));
	}
	link.Unique++;
	ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &link), serve()),
			 AFS_VNOVNODE);
	rxw_xdr_put_u32(begin(RXAFS_OP_GetVolumeStatus), FSD_ROOTAFS_ID);
	ck_assert_int_eq(serve(), 0);
	ck_assert(xdr_get_AFSFetchVolumeStatus(&rp, &vs) && vs.Vid == (int32_t)FSD_ROOTAFS_ID);
	xdr_put_AFSFid(begin(RXAFS_OP_RemoveFile), &fid);
	rxw_xdr_put_string(&rq, "test.cell", UINT32_MAX);
	ck_assert_int_eq(serve(), 49733405);
	teardown();
}
END_TEST

START_TEST(promises_given_up)
{
	AFSFid fids[2];

	setup();
	bring_up(7001);
	fids[0] = world_fid(&world, "hello.txt");
	fids[1] = world_fid(&world, "sub");
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq((xdr_put_AFSFid(begin(RXAFS_OP_FetchStatus), &fids[i]), serve()),
				 0);
	put_fids(begin(RXAFS_OP_GiveUpCallBacks), fids, 1);
	rxw_xdr_put_u32(&rq, 0);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(w.reply_length, 0);
	ck_assert(!fsd_promise_held(world.clients, &fids[0]));
	ck_assert(fsd_promise_held(world.clients, &fids[1]));
	begin(RXAFS_OP_GiveUpAllCallBacks);
	ck_assert_int_eq(serve(), 0);
	ck_assert(!fsd_promise_held(world.clients, &fids[1]));
	teardown();
}
END_TEST

/* A call whose handler has returned fails later. */
static void await_failures(unsigned count)
{
	uint64_t patience = monotonic_ns() + 30000000000ull;

	while (world.service->counters.failed < count) {
		ck_assert_msg(monotonic_ns() < patience, "%u calls should have failed", count);
		usleep(1000);
	}
}

/* The client has gone while its reply was in flight: the call fails, and promises nothing. */
START_TEST(lost_reply)
{
	unsigned rounds = 0;
	AFSFid fid;
	int fd;

	setup();
	/* more than fits in the queues between the two */
	fd = creat(tree_path(world.root, "large"), 0644);
	ck_assert_int_eq(ftruncate(fd, 64 << 20), 0);
	fchmod(fd, 0644);
	close(fd);
	fid = world_fid(&world, "large");
	bring_up(7001);
	for (size_t at = 1; at < 130; at += 9) {
		uint8_t some[130];
		rxw_call *call;

		xdr_put_AFSFid(begin(RXAFS_OP_FetchData64), &fid);
		rxw_xdr_put_u64(&rq, 0);
		rxw_xdr_put_u64(&rq, 64 << 20);
		ck_assert_int_eq(rxw_call_begin(wire_client(&w, 7001), NULL, &call), 0);
		ck_assert_int_gt(rxw_call_write(call, request, rxw_xdr_used(&rq)), 0);
		ck_assert_int_eq(rxw_call_read(call, some, at), (ssize_t)at);
		ck_assert(fsd_promise_held(world.clients, &fid));
		ck_assert_int_eq(rxw_call_end(call, RXW_USER_ABORT, NULL), RXW_USER_ABORT);
		await_failures(++rounds);
		ck_assert(!fsd_promise_held(world.clients, &fid));
		ck_assert_uint_eq(world.service->counters.failed, rounds);
	}
	teardown();
}
END_TEST

/* Refused calls are refused at once: neither the data of a store nor its end need have arrived. */
START_TEST(stores_are_refused_early)
{
	AFSFid fid;
	rxw_call *call;
	uint8_t byte;

	setup();
	fid = root_fid();
	xdr_put_AFSFid(begin(RXAFS_OP_StoreData64), &fid);
	for (int i = 0; i < 12; i++)
		rxw_xdr_put_u32(&rq, 0x10000);
	ck_assert_int_eq(rxw_call_begin(wire_client(&w, 7001), NULL, &call), 0);
	ck_assert_int_gt(rxw_call_write(call, request, rxw_xdr_used(&rq)), 0);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	ck_assert_int_eq(wire_served(&w, 1), 49733405);
	ck_assert_int_le(rxw_call_read(call, &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 49733405);
	teardown();
}
END_TEST

/* Random words after every known opcode: answered or refused, without further damage. */
START_TEST(random_arguments)
{
	static const uint32_t opcodes[] = {
		130, 131, 132, 133, 134, 135,	136,   137,   138,   139,   140,   141,	 142,
		146, 147, 148, 149, 150, 153,	154,   155,   156,   157,   158,   159,	 160,
		161, 162, 163, 164, 220, 65536, 65537, 65538, 65539, 65540, 65541, 65542};
	uint64_t state = 0x2545f4914f6cdd1dull;

	setup();
	for (int i = 0; i < 20000; i++) {
		unsigned words;

		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		words = (unsigned)(state >> 20) % 40;
		begin(opcodes[(state >> 8) % (sizeof(opcodes) / sizeof(opcodes[0]))]);
		for (unsigned j = 0; j < words; j++) {
			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			rxw_xdr_put_u32(&rq, state & 3 ? (uint32_t)(state >> 40) % 60
					     : j == 0  ? root_fid().Volume
						       : (uint32_t)state);
		}
		serve_from(1000 + (unsigned)i % 50);
	}
	teardown();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		missing_and_unknown_opcodes,
		truncated_arguments,
		bad_strings_and_counts,
		fetch_status,
		codes_fit_the_client,
		no_promise_for_failed_calls,
		inline_bulk_status,
		fetch_pieces,
		fetch_in_one_message,
		fetch_beyond_four_gigabytes,
		fetch_directories_and_links,
		closed_directory_is_not_listed,
		writes_are_refused,
		small_calls,
		statistics,
		extended_statistics,
		obsolete_calls,
		mount_points,
		promises_given_up,
		lost_reply,
		stores_are_refused_early,
		random_arguments,
	};

	/* Tens of thousands of calls, under sanitizers too. */
	return test_main("file service", 120, tests, sizeof(tests) / sizeof(tests[0]));
}
