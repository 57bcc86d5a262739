/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the file service, call by call, on streams in memory. */
#include "fixture.h"

#include <fcntl.h>
#include <time.h>
#include <rxwire/error.h>

#include "afs/dir.h"
#include "afs/opcodes.h"
#include "fileserver/callbacks.h"

static struct world world;
static struct memory_stream m;
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
	memset(&m, 0, sizeof(m));
}

static void teardown(void)
{
	memory_stream_free(&m);
	world_close(&world);
}

static struct rxw_xdr *begin(uint32_t opcode)
{
	rxw_xdr_writer(&rq, request, sizeof(request));
	rxw_xdr_put_u32(&rq, opcode);
	return &rq;
}

/* Serve what begin() and the following puts made; the reply is in rp. */
static int32_t serve_from(uint16_t port)
{
	int32_t code;

	memory_stream_free(&m);
	memory_stream_init(&m, request, rxw_xdr_used(&rq));
	memory_stream_peer(&m, port);
	code = fsd_fs_serve(&world.service, &m.stream);
	rxw_xdr_reader(&rp, m.reply, m.reply_length);
	return code;
}

static int32_t serve(void)
{
	return serve_from(7001);
}

static struct afs_fid root_fid(void)
{
	return (struct afs_fid){fsd_volume_id(world.service.volume), 1, 1};
}

/* From now on this caller may have promises. */
static void bring_up(uint16_t port)
{
	struct fsd_work work;

	begin(AFS_FS_GET_TIME);
	ck_assert_int_eq(serve_from(port), 0);
	while (fsd_work_take(world.service.clients, &work))
		fsd_work_done(world.service.clients, &work, true, 1, fsd_now());
}

START_TEST(no_opcode_and_unknown_ones)
{
	static const uint32_t unknown[] = {0,	1,   129,   143,   144,	  145,	 152,
					   165, 219, 65535, 65543, 65551, 65562, 0xffffffff};

	setup();
	rxw_xdr_writer(&rq, request, sizeof(request));
	for (int n = 0; n < 4; n++) {
		request[n] = 0;
		memory_stream_free(&m);
		memory_stream_init(&m, request, (size_t)n);
		ck_assert_int_eq(fsd_fs_serve(&world.service, &m.stream), RXW_RPC_DECODE);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		begin(unknown[i]);
		ck_assert_msg(serve() == RXW_RPC_OPCODE, "opcode %u", unknown[i]);
	}
	teardown();
}
END_TEST

/* Every call that has arguments refuses an empty and a cut request, and answers nothing to it. */
START_TEST(cut_arguments)
{
	static const struct {
		uint32_t opcode;
		unsigned bytes;
	} calls[] = {
		{130, 20}, {131, 12}, {132, 12}, {133, 48},   {134, 16},   {135, 36},	{136, 20},
		{137, 44}, {138, 40}, {139, 52}, {140, 32},   {141, 44},   {142, 20},	{147, 8},
		{148, 8},  {149, 4},  {150, 28}, {154, 8},    {155, 16},   {156, 16},	{157, 12},
		{158, 12}, {160, 8},  {164, 16}, {65536, 16}, {65537, 28}, {65538, 60}, {65542, 4},
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
			ck_assert_uint_eq(m.reply_length, 0);
		}
	}
	teardown();
}
END_TEST

START_TEST(bad_strings_and_counts)
{
	struct afs_fid fid;
	char name[300];

	setup();
	fid = root_fid();
	memset(name, 'n', sizeof(name));
	name[257] = 0;
	afs_fid_put(begin(AFS_FS_REMOVE_FILE), &fid);
	rxw_xdr_put_string(&rq, name, UINT32_MAX);
	ck_assert_int_eq(serve(), RXW_RPC_SS_UNMARSHAL);
	afs_fid_put(begin(AFS_FS_REMOVE_FILE), &fid);
	rxw_xdr_put_bytes(&rq, "a\0b", 3, UINT32_MAX);
	ck_assert_int_eq(serve(), RXW_RPC_SS_UNMARSHAL);
	rxw_xdr_put_u32(begin(AFS_FS_INLINE_BULK_STATUS), 51);
	for (int i = 0; i < 51; i++)
		afs_fid_put(&rq, &fid);
	ck_assert_int_eq(serve(), RXW_RPC_SS_UNMARSHAL);
	rxw_xdr_put_u32(begin(AFS_FS_GIVE_UP_CALLBACKS), 1);
	afs_fid_put(&rq, &fid);
	rxw_xdr_put_u32(&rq, 2);
	for (int i = 0; i < 6; i++)
		rxw_xdr_put_u32(&rq, 0);
	ck_assert_int_eq(serve(), 49733397);
	teardown();
}
END_TEST

START_TEST(fetch_status)
{
	struct afs_fid fid;
	struct afs_status s;
	struct afs_callback cb;
	struct afs_volsync sync;

	setup();
	fid = world_fid(&world, "hello.txt");
	afs_fid_put(begin(AFS_FS_FETCH_STATUS), &fid);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(m.reply_length, 30 * 4);
	ck_assert(afs_status_get(&rp, &s) && afs_callback_get(&rp, &cb) &&
		  afs_volsync_get(&rp, &sync));
	ck_assert(afs_status_valid(&s));
	ck_assert_uint_eq(s.length, 13);
	ck_assert_uint_eq(s.residency, 1);
	ck_assert_uint_eq(s.anonymous_access, 9);
	ck_assert(cb.version == 0 && cb.expires == 0 && cb.type == 0);
	ck_assert_uint_eq(sync.creation, fsd_volume_creation(world.service.volume));
	for (int i = 25; i < 30; i++)
		ck_assert_uint_eq(m.reply[4 * i + 3], 0);

	bring_up(7001);
	ck_assert_int_eq((afs_fid_put(begin(AFS_FS_FETCH_STATUS), &fid), serve()), 0);
	ck_assert(afs_status_get(&rp, &s) && afs_callback_get(&rp, &cb));
	ck_assert(cb.version == 1 && cb.expires >= 60 && cb.type == 2);
	ck_assert(fsd_promise_held(world.service.clients, &fid));
	/* surplus bytes are ignored */
	afs_fid_put(begin(AFS_FS_FETCH_STATUS), &fid);
	for (int i = 0; i < 3000; i++)
		rxw_xdr_put_u32(&rq, 0xabababab);
	ck_assert_int_eq(serve(), 0);
	teardown();
}
END_TEST

START_TEST(codes_fit_the_client)
{
	struct afs_fid fid, zero = {0, 1, 1}, elsewhere = {9, 1, 1};

	setup();
	fid = world_fid(&world, "secret");
	/* one who never made a modern call gets raw numbers */
	afs_fid_put(begin(AFS_FS_FETCH_STATUS), &fid);
	ck_assert_int_eq(serve_from(1111), EACCES);
	ck_assert_int_eq((afs_fid_put(begin(AFS_FS_FETCH_STATUS), &zero), serve_from(1111)),
			 EINVAL);
	begin(AFS_FS_GET_CAPABILITIES);
	ck_assert_int_eq(serve_from(2222), 0);
	ck_assert_int_eq((afs_fid_put(begin(AFS_FS_FETCH_STATUS), &fid), serve_from(2222)),
			 49733388);
	ck_assert_int_eq((afs_fid_put(begin(AFS_FS_FETCH_STATUS), &zero), serve_from(2222)),
			 49733397);
	/* volume codes are never translated */
	ck_assert_int_eq((afs_fid_put(begin(AFS_FS_FETCH_STATUS), &elsewhere), serve_from(2222)),
			 103);
	fid.unique = 77777;
	ck_assert_int_eq((afs_fid_put(begin(AFS_FS_FETCH_STATUS), &fid), serve_from(2222)), 102);
	teardown();
}
END_TEST

START_TEST(no_promise_for_what_failed)
{
	struct afs_fid fid;

	setup();
	fid = world_fid(&world, "secret");
	bring_up(7001);
	afs_fid_put(begin(AFS_FS_FETCH_STATUS), &fid);
	ck_assert_int_eq(serve(), 49733388);
	ck_assert(!fsd_promise_held(world.service.clients, &fid));
	teardown();
}
END_TEST

START_TEST(inline_bulk_status)
{
	struct afs_fid fids[3];
	struct afs_status s;
	struct afs_callback cb[3];
	struct afs_volsync sync;
	uint32_t n;

	setup();
	bring_up(7001);
	fids[0] = world_fid(&world, "hello.txt");
	fids[1] = (struct afs_fid){fids[0].volume, 4444, 1};
	fids[2] = world_fid(&world, "secret");
	afs_fids_put(begin(AFS_FS_INLINE_BULK_STATUS), fids, 3);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(m.reply_length, 4 * (1 + 3 * 21 + 1 + 3 * 3 + 6));
	ck_assert(rxw_xdr_get_u32(&rp, &n) && n == 3);
	ck_assert(afs_status_get(&rp, &s) && afs_status_valid(&s) && s.length == 13);
	/* as recorded: version 1, all zero, the code */
	ck_assert_uint_eq(m.reply[4 * 22 + 3], 1);
	for (int i = 4 * 23; i < 4 * 42; i++)
		ck_assert_uint_eq(m.reply[i], 0);
	ck_assert(afs_status_get(&rp, &s) && s.error == 102);
	ck_assert(afs_status_get(&rp, &s) && s.error == 49733388);
	ck_assert(rxw_xdr_get_u32(&rp, &n) && n == 3);
	for (int i = 0; i < 3; i++)
		ck_assert(afs_callback_get(&rp, &cb[i]));
	ck_assert_uint_eq(cb[0].type, 2);
	ck_assert(cb[1].version == 0 && cb[1].expires == 0 && cb[1].type == 0);
	ck_assert(afs_volsync_get(&rp, &sync));
	ck_assert_uint_eq(rxw_xdr_left(&rp), 0);

	/* the older call fails as a whole */
	ck_assert_int_eq((afs_fids_put(begin(AFS_FS_BULK_STATUS), fids, 2), serve()), 102);
	ck_assert_int_eq((afs_fids_put(begin(AFS_FS_BULK_STATUS), fids, 1), serve()), 0);
	ck_assert_int_eq((afs_fids_put(begin(AFS_FS_INLINE_BULK_STATUS), fids, 0), serve()),
			 49733397);

	struct afs_fid fifty[50];

	for (int i = 0; i < 50; i++)
		fifty[i] = fids[0];
	ck_assert_int_eq((afs_fids_put(begin(AFS_FS_INLINE_BULK_STATUS), fifty, 50), serve()), 0);
	ck_assert_uint_eq(m.reply_length, 4832);
	teardown();
}
END_TEST

static int32_t fetch64(struct afs_fid fid, uint64_t offset, uint64_t length)
{
	afs_fid_put(begin(AFS_FS_FETCH_DATA64), &fid);
	rxw_xdr_put_u64(&rq, offset);
	rxw_xdr_put_u64(&rq, length);
	return serve();
}

static int32_t fetch32(struct afs_fid fid, uint32_t offset, uint32_t length)
{
	afs_fid_put(begin(AFS_FS_FETCH_DATA), &fid);
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
	struct afs_fid fid;
	struct afs_status s;

	setup();
	fid = world_fid(&world, "hello.txt");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t n;

		ck_assert_int_eq(fetch64(fid, cases[i].offset, cases[i].length), 0);
		ck_assert(rxw_xdr_get_u64(&rp, &n));
		ck_assert_uint_eq(n, cases[i].want);
		/* no padding between data and status */
		ck_assert_uint_eq(m.reply_length, 8 + n + 30 * 4);
		if (n)
			ck_assert_mem_eq(m.reply + 8, &"hello, world\n"[cases[i].offset], n);
		rxw_xdr_reader(&rp, m.reply + 8 + n, 30 * 4);
		ck_assert(afs_status_get(&rp, &s) && afs_status_valid(&s));
	}
	ck_assert_int_eq(fetch64(fid, UINT64_MAX, 1), 49733402);
	ck_assert_int_eq(fetch64(fid, 0, UINT64_MAX), 49733402);
	ck_assert_int_eq(fetch64(fid, INT64_MAX, 1), 49733402);
	ck_assert_int_eq(fetch32(fid, 0, 131072), 0);
	ck_assert_uint_eq(m.reply_length, 4 + 13 + 30 * 4);
	ck_assert_uint_eq(m.reply[3], 13);
	ck_assert_int_eq(fetch32(fid, 0x80000000u, 1), 49733402);
	ck_assert_int_eq(fetch32(fid, 0, 0xffffffffu), 49733402);
	teardown();
}
END_TEST

START_TEST(fetch_beyond_four_gigabytes)
{
	struct afs_fid fid;
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
	ck_assert_mem_eq(m.reply + 8, "far away", 8);
	ck_assert_int_eq(fetch64(fid, (5ull << 30) - 100000, 200000), 0);
	ck_assert_uint_eq(m.reply_length, 8 + 100008 + 120);
	struct afs_status s;

	rxw_xdr_reader(&rp, m.reply + 8 + 100008, 120);
	ck_assert(afs_status_get(&rp, &s));
	ck_assert_uint_eq(s.length, (5ull << 30) + 8);
	teardown();
}
END_TEST

START_TEST(fetch_directories_and_links)
{
	struct afs_fid fid;
	uint32_t v, u;

	setup();
	ck_assert_int_eq(fetch64(root_fid(), 0, 4096), 0);
	ck_assert_uint_eq(m.reply_length, 8 + 2048 + 120);
	ck_assert_int_eq(afs_dir_check(m.reply + 8, 2048), 0);
	ck_assert_int_eq(afs_dir_lookup(m.reply + 8, 2048, "secret", &v, &u), 1);
	ck_assert_int_eq(fetch64(root_fid(), 2000, 4096), 0);
	ck_assert_uint_eq(m.reply_length, 8 + 48 + 120);
	fid = world_fid(&world, "link");
	ck_assert_int_eq(fetch64(fid, 0, 1024), 0);
	ck_assert_uint_eq(m.reply_length, 8 + 9 + 120);
	ck_assert_mem_eq(m.reply + 8, "sub/inner", 9);
	ck_assert_int_eq(fetch64(world_fid(&world, "secret"), 0, 10), 49733388);
	ck_assert_uint_eq(m.reply_length, 0);
	teardown();
}
END_TEST

START_TEST(closed_directory_is_not_listed)
{
	struct afs_fid fid;

	setup();
	tree_dir(world.root, "closed", 0711);
	fid = world_fid(&world, "closed");
	afs_fid_put(begin(AFS_FS_FETCH_STATUS), &fid);
	ck_assert_int_eq(serve(), 0);
	ck_assert_int_eq(fetch64(fid, 0, 4096), 49733388);
	ck_assert_uint_eq(m.reply_length, 0);
	teardown();
}
END_TEST

START_TEST(writes_are_refused)
{
	struct afs_fid fid, other;
	struct {
		uint32_t opcode;
		const char *shape;
	} calls[] = {
		{AFS_FS_STORE_STATUS, "q"}, {AFS_FS_REMOVE_FILE, "n"}, {AFS_FS_CREATE_FILE, "nq"},
		{AFS_FS_RENAME, "nfn"},	    {AFS_FS_SYMLINK, "nnq"},   {AFS_FS_LINK, "nf"},
		{AFS_FS_MAKE_DIR, "nq"},    {AFS_FS_REMOVE_DIR, "n"},  {AFS_FS_OLD_STORE_ACL, "n"},
		{AFS_FS_STORE_ACL, "n"},
	};

	setup();
	fid = root_fid();
	other = (struct afs_fid){5, 1, 1};
	begin(AFS_FS_GET_CAPABILITIES);
	ck_assert_int_eq(serve(), 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		for (int known = 0; known < 2; known++) {
			afs_fid_put(begin(calls[i].opcode), known ? &fid : &other);
			for (const char *s = calls[i].shape; *s; s++) {
				if (*s == 'n')
					rxw_xdr_put_string(&rq, "name", UINT32_MAX);
				else
					for (int j = 0; j < (*s == 'q' ? 6 : 3); j++)
						rxw_xdr_put_u32(&rq, 1);
			}
			ck_assert_int_eq(serve(), known ? 49733405 : 103);
			ck_assert_uint_eq(m.reply_length, 0);
		}
	}
	/* of a store only the arguments are read, never the data */
	afs_fid_put(begin(AFS_FS_STORE_DATA64), &fid);
	for (int i = 0; i < 12 + 2000; i++)
		rxw_xdr_put_u32(&rq, 1);
	ck_assert_int_eq(serve(), 49733405);
	ck_assert_uint_eq(m.request_at, 4 + 60);
	afs_fid_put(begin(AFS_FS_STORE_DATA), &fid);
	for (int i = 0; i < 9 + 2000; i++)
		rxw_xdr_put_u32(&rq, 1);
	ck_assert_int_eq(serve(), 49733405);
	ck_assert_uint_eq(m.request_at, 4 + 48);
	rxw_xdr_put_u32(begin(AFS_FS_SET_VOLUME_STATUS), fid.volume);
	for (int i = 0; i < 3 + 3; i++)
		rxw_xdr_put_u32(&rq, 0);
	ck_assert_int_eq(serve(), 49733405);
	ck_assert_uint_eq(world.service.counters.refused_writes, 13);
	teardown();
}
END_TEST

START_TEST(small_calls)
{
	struct afs_volume_status vs;
	struct afs_fid fid;
	uint32_t a, b;
	uint64_t now;
	const uint8_t *text;
	size_t length;

	setup();
	begin(AFS_FS_GET_CAPABILITIES);
	ck_assert_int_eq(serve(), 0);
	ck_assert(rxw_xdr_get_u32(&rp, &a) && rxw_xdr_get_u32(&rp, &b));
	ck_assert(a == 1 && b == 7 && rxw_xdr_left(&rp) == 0);

	begin(AFS_FS_GET_TIME);
	ck_assert_int_eq(serve(), 0);
	ck_assert(rxw_xdr_get_u32(&rp, &a) && rxw_xdr_get_u32(&rp, &b));
	ck_assert_int_lt(llabs((long long)a - (long long)time(NULL)), 5);
	ck_assert_uint_lt(b, 1000000);

	rxw_xdr_put_u32(begin(AFS_FS_GET_VOLUME_STATUS), root_fid().volume);
	ck_assert_int_eq(serve(), 0);
	ck_assert(afs_volume_status_get(&rp, &vs));
	ck_assert_str_eq(vs.name, "data");
	ck_assert_uint_eq(vs.type, 0);
	rxw_xdr_put_u32(begin(AFS_FS_GET_VOLUME_STATUS), 9);
	ck_assert_int_eq(serve(), 103);

	begin(AFS_FS_GET_ROOT_VOLUME);
	ck_assert_int_eq(serve(), 0);
	ck_assert(rxw_xdr_lend_bytes(&rp, 256, &text, &length) && length == 8);
	ck_assert_mem_eq(text, "root.afs", 8);

	fid = world_fid(&world, "hello.txt");
	ck_assert_int_eq((afs_fid_put(begin(AFS_FS_FETCH_ACL), &fid), serve()), 0);
	ck_assert(rxw_xdr_lend_bytes(&rp, 1024, &text, &length));
	ck_assert_str_eq((const char *)text, "1\n0\nsystem:anyuser\t9\n");
	ck_assert_uint_eq(length, strlen((const char *)text) + 1);
	ck_assert_uint_eq(rxw_xdr_left(&rp), 27 * 4);

	for (uint32_t type = 0; type < 4; type++) {
		static const int32_t want[] = {0, 49733405, 49733397, 49733397};

		afs_fid_put(begin(AFS_FS_SET_LOCK), &fid);
		rxw_xdr_put_u32(&rq, type);
		ck_assert_int_eq(serve(), want[type]);
	}
	ck_assert_int_eq((afs_fid_put(begin(AFS_FS_EXTEND_LOCK), &fid), serve()), 0);
	ck_assert_uint_eq(m.reply_length, 24);
	ck_assert_int_eq((afs_fid_put(begin(AFS_FS_RELEASE_LOCK), &fid), serve()), 0);

	begin(AFS_FS_GET_STATISTICS);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(m.reply_length, 145 * 4);
	rxw_xdr_put_u32(begin(AFS_FS_GET_STATISTICS64), 16);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(m.reply_length, 4 + 16 * 8);
	ck_assert(rxw_xdr_get_u32(&rp, &a) && a == 16 && rxw_xdr_get_u64(&rp, &now));
	ck_assert_int_lt(llabs((long long)now - (long long)time(NULL)), 5);
	rxw_xdr_put_u32(begin(AFS_FS_GET_STATISTICS64), 1000000);
	ck_assert_int_eq(serve(), 49733397);
	begin(AFS_FS_XSTATS_VERSION);
	ck_assert_int_eq(serve(), 0);
	ck_assert(rxw_xdr_get_u32(&rp, &a) && a == 2);
	teardown();
}
END_TEST

START_TEST(promises_given_up)
{
	struct afs_fid fids[2];

	setup();
	bring_up(7001);
	fids[0] = world_fid(&world, "hello.txt");
	fids[1] = world_fid(&world, "sub");
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq((afs_fid_put(begin(AFS_FS_FETCH_STATUS), &fids[i]), serve()), 0);
	afs_fids_put(begin(AFS_FS_GIVE_UP_CALLBACKS), fids, 1);
	rxw_xdr_put_u32(&rq, 0);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(m.reply_length, 0);
	ck_assert(!fsd_promise_held(world.service.clients, &fids[0]));
	ck_assert(fsd_promise_held(world.service.clients, &fids[1]));
	begin(AFS_FS_GIVE_UP_ALL_CALLBACKS);
	ck_assert_int_eq(serve(), 0);
	ck_assert(!fsd_promise_held(world.service.clients, &fids[1]));
	teardown();
}
END_TEST

START_TEST(lost_reply)
{
	struct afs_fid fid;

	setup();
	fid = world_fid(&world, "hello.txt");
	afs_fid_put(begin(AFS_FS_FETCH_DATA64), &fid);
	rxw_xdr_put_u64(&rq, 0);
	rxw_xdr_put_u64(&rq, 100);
	for (size_t at = 1; at < 130; at += 9) {
		memory_stream_free(&m);
		memory_stream_init(&m, request, rxw_xdr_used(&rq));
		m.fail_at = at;
		ck_assert_int_ne(fsd_fs_serve(&world.service, &m.stream), 0);
	}
	teardown();
}
END_TEST

/* Requests of random words after every known operation number: answered or refused, never worse. */
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
					     : j == 0  ? root_fid().volume
						       : (uint32_t)state);
		}
		serve_from((uint16_t)(1000 + i % 50));
	}
	teardown();
}
END_TEST

TEST_MAIN("file service", no_opcode_and_unknown_ones, cut_arguments, bad_strings_and_counts,
	  fetch_status, codes_fit_the_client, no_promise_for_what_failed, inline_bulk_status,
	  fetch_pieces, fetch_beyond_four_gigabytes, fetch_directories_and_links,
	  closed_directory_is_not_listed, writes_are_refused, small_calls, promises_given_up,
	  lost_reply, random_arguments)
