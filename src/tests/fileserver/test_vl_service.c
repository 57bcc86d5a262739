/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of fileserver/vl_service.c: look-ups, their rules, addresses. */
#include "fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rxwire/error.h>

#include "afs/opcodes.h"

static struct world world;
static struct memory_stream m;
static uint8_t request[4096];
static struct rxw_xdr rq, rp;
static uint32_t id;

static void setup(void)
{
	world_open(&world, tree_make(), false, 0);
	id = fsd_volume_id(world.service.volume);
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

static int32_t serve_at(const char *local)
{
	struct sockaddr_in6 *in6;
	int32_t code;

	memory_stream_free(&m);
	memory_stream_init(&m, request, rxw_xdr_used(&rq));
	if (strchr(local, ':')) {
		in6 = (struct sockaddr_in6 *)&m.stream.local;
		in6->sin6_family = AF_INET6;
		ck_assert_int_eq(inet_pton(AF_INET6, local, &in6->sin6_addr), 1);
	} else {
		inet_pton(AF_INET, local, &((struct sockaddr_in *)&m.stream.local)->sin_addr);
	}
	code = fsd_vl_serve(&world.service, &m.stream);
	rxw_xdr_reader(&rp, m.reply, m.reply_length);
	return code;
}

static int32_t serve(void)
{
	return serve_at("127.0.0.1");
}

static int32_t by_name(uint32_t opcode, const char *name)
{
	rxw_xdr_put_string(begin(opcode), name, UINT32_MAX);
	return serve();
}

START_TEST(names)
{
	static const struct {
		const char *name;
		int32_t code;
	} list[] = {
		{"data", 0},
		{"data.readonly", 0},
		{"data.backup", 0},
		{"root.cell", 0},
		{"root.afs", 0},
		{"root.cell.readonly", 0},
		{"other", AFS_VL_NOENT},
		{"", AFS_VL_NOENT},
		{"data.readonly.readonly", AFS_VL_BADNAME},
		{"with space", AFS_VL_BADNAME},
		{"a/b", AFS_VL_BADNAME},
		{"123", AFS_VL_NOENT},
		{"99999999999999999999", AFS_VL_NOENT},
	};
	struct afs_vl_entry entry;
	char text[70];

	setup();
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		ck_assert_msg(by_name(AFS_VL_GET_ENTRY_BY_NAME_U, list[i].name) == list[i].code,
			      "%s", list[i].name);
	snprintf(text, sizeof(text), "%u", (unsigned)id);
	ck_assert_int_eq(by_name(AFS_VL_GET_ENTRY_BY_NAME_U, text), 0);
	ck_assert_uint_eq(m.reply_length, 262 * 4);
	ck_assert(afs_vl_entry_u_get(&rp, &entry));
	ck_assert_str_eq(entry.name, "data");
	ck_assert_uint_eq(entry.sites, 1);
	ck_assert_uint_eq(entry.site[0].flags, 0x14);
	ck_assert_uint_eq(entry.id[0], id);
	ck_assert_uint_eq(entry.flags, 0x1000);
	ck_assert(afs_uuid_equal(&entry.site[0].uuid, &world.service.uuid));
	ck_assert_int_eq(by_name(AFS_VL_GET_ENTRY_BY_NAME_U, "root.cell"), 0);
	ck_assert(afs_vl_entry_u_get(&rp, &entry));
	ck_assert_str_eq(entry.name, "root.cell");
	ck_assert_uint_eq(entry.id[0], id);
	memset(text, 'x', 66);
	text[65] = 0;
	ck_assert_int_eq(by_name(AFS_VL_GET_ENTRY_BY_NAME_U, text), AFS_VL_BADNAME);
	text[65] = 'x', text[66] = 0;
	ck_assert_int_eq(by_name(AFS_VL_GET_ENTRY_BY_NAME_U, text), RXW_RPC_SS_UNMARSHAL);
	teardown();
}
END_TEST

START_TEST(forms_and_ids)
{
	struct afs_vl_entry entry;

	setup();
	ck_assert_int_eq(by_name(AFS_VL_GET_ENTRY_BY_NAME_N, "data"), 0);
	ck_assert_uint_eq(m.reply_length, 119 * 4);
	ck_assert(afs_vl_entry_n_get(&rp, &entry));
	ck_assert_uint_eq(entry.site[0].address, INADDR_LOOPBACK);
	ck_assert_int_eq(by_name(AFS_VL_GET_ENTRY_BY_NAME_O, "data"), 0);
	ck_assert_uint_eq(m.reply_length, 96 * 4);
	for (int type = -2; type < 5; type++) {
		int32_t want = type < -1 || type > 2 ? AFS_VL_BADVOLTYPE
			       : type > 0	     ? AFS_VL_NOENT
						     : 0;

		rxw_xdr_put_u32(begin(AFS_VL_GET_ENTRY_BY_ID_N), id);
		rxw_xdr_put_u32(&rq, (uint32_t)type);
		ck_assert_int_eq(serve(), want);
		rxw_xdr_put_u32(begin(AFS_VL_GET_ENTRY_BY_ID), id);
		rxw_xdr_put_u32(&rq, (uint32_t)type);
		ck_assert_int_eq(serve(), want);
	}
	rxw_xdr_put_u32(begin(AFS_VL_GET_ENTRY_BY_ID_N), id + 1);
	rxw_xdr_put_u32(&rq, (uint32_t)-1);
	ck_assert_int_eq(serve(), AFS_VL_NOENT);
	teardown();
}
END_TEST

static int32_t addrs(uint32_t mask, uint32_t address, uint32_t index, const struct afs_uuid *uuid,
		     const char *local)
{
	struct afs_vl_addr_query q = {.mask = mask, .address = address, .index = index};

	if (uuid)
		q.uuid = *uuid;
	afs_vl_addr_query_put(begin(AFS_VL_GET_ADDRS_U), &q);
	return serve_at(local);
}

START_TEST(addresses)
{
	struct afs_uuid strange = {.time_low = 1};
	struct afs_vl_addrs a;

	setup();
	ck_assert_int_eq(addrs(4, 0, 0, &world.service.uuid, "10.1.2.3"), 0);
	ck_assert(afs_vl_addrs_get(&rp, &a));
	ck_assert_uint_eq(a.count, 1);
	ck_assert_uint_eq(a.address[0], 0x0a010203);
	ck_assert_uint_eq(a.unique, 1);
	ck_assert_int_eq(addrs(2, 0, 1, NULL, "10.1.2.3"), 0);
	ck_assert_int_eq(addrs(2, 0, 0, NULL, "10.1.2.3"), AFS_VL_INDEXERANGE);
	ck_assert_int_eq(addrs(2, 0, 2, NULL, "10.1.2.3"), AFS_VL_NOENT);
	ck_assert_int_eq(addrs(1, 0x0a010203, 0, NULL, "10.1.2.3"), 0);
	ck_assert_int_eq(addrs(1, 0x0a010204, 0, NULL, "10.1.2.3"), AFS_VL_NOENT);
	ck_assert_int_eq(addrs(4, 0, 0, &strange, "10.1.2.3"), AFS_VL_NOENT);
	ck_assert_int_eq(addrs(0, 0, 0, NULL, "10.1.2.3"), AFS_VL_BADMASK);
	ck_assert_int_eq(addrs(3, 0, 1, NULL, "10.1.2.3"), AFS_VL_BADMASK);

	/* the address asked, then those that the administrator named; none twice */
	world.service.advertise[0] = 0xc0000201;
	world.service.advertise[1] = 0x0a010203;
	world.service.advertise_count = 2;
	ck_assert_int_eq(addrs(4, 0, 0, &world.service.uuid, "10.1.2.3"), 0);
	ck_assert(afs_vl_addrs_get(&rp, &a));
	ck_assert_uint_eq(a.count, 2);
	ck_assert_uint_eq(a.address[0], 0x0a010203);
	ck_assert_uint_eq(a.address[1], 0xc0000201);
	/* over IPv6 there is nothing else to tell */
	ck_assert_int_eq(addrs(4, 0, 0, &world.service.uuid, "2001:db8::1"), 0);
	ck_assert(afs_vl_addrs_get(&rp, &a));
	ck_assert_uint_eq(a.count, 2);
	ck_assert_uint_eq(a.address[0], 0xc0000201);
	ck_assert_int_eq(addrs(4, 0, 0, &world.service.uuid, "::ffff:10.9.9.9"), 0);
	ck_assert(afs_vl_addrs_get(&rp, &a));
	ck_assert_uint_eq(a.address[0], 0x0a090909);

	begin(AFS_VL_GET_ADDRS);
	rxw_xdr_put_u64(&rq, 0);
	ck_assert_int_eq(serve(), 0);
	static const uint8_t want[28] = {[19] = 1, [23] = 1, [24] = 0xff, [27] = 1};

	ck_assert_uint_eq(m.reply_length, sizeof(want));
	ck_assert_mem_eq(m.reply, want, sizeof(want));
	teardown();
}
END_TEST

static int32_t list(uint32_t opcode, uint32_t mask, uint32_t volume, const char *pattern,
		    uint32_t start)
{
	begin(opcode);
	rxw_xdr_put_u32(&rq, mask);
	for (int i = 0; i < 3; i++)
		rxw_xdr_put_u32(&rq, 0);
	rxw_xdr_put_u32(&rq, volume);
	rxw_xdr_put_u32(&rq, 0);
	if (pattern) {
		rxw_xdr_put_string(&rq, pattern, UINT32_MAX);
		rxw_xdr_put_u32(&rq, start);
	}
	return serve();
}

START_TEST(lists)
{
	static const struct {
		const char *pattern;
		int32_t code;
		uint32_t count;
	} patterns[] = {
		{"", 0, 1},
		{".*", 0, 1},
		{"data", 0, 1},
		{"^data$", 0, 1},
		{"dat", 0, 0},
		{"d.*", AFS_VL_PERM, 0},
		{"((((", AFS_VL_PERM, 0},
	};
	struct afs_vl_entry entry;
	uint32_t n, count, next;

	setup();
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		ck_assert_int_eq(list(AFS_VL_LIST_ATTRIBUTES_N2, 0, 0, patterns[i].pattern, 0),
				 patterns[i].code);
		if (patterns[i].code)
			continue;
		ck_assert(rxw_xdr_get_u32(&rp, &n) && rxw_xdr_get_u32(&rp, &count));
		ck_assert_uint_eq(n, patterns[i].count);
		ck_assert_uint_eq(count, n);
		if (n)
			ck_assert(afs_vl_entry_n_get(&rp, &entry) && entry.id[0] == id);
		ck_assert(rxw_xdr_get_u32(&rp, &next) && next == UINT32_MAX);
		ck_assert_uint_eq(rxw_xdr_left(&rp), 0);
	}
	ck_assert_int_eq(list(AFS_VL_LIST_ATTRIBUTES_N2, 8, id + 1, "", 0), 0);
	ck_assert(rxw_xdr_get_u32(&rp, &n) && n == 0);
	ck_assert_int_eq(list(AFS_VL_LIST_ATTRIBUTES_N, 8, id, NULL, 0), 0);
	ck_assert_uint_eq(m.reply_length, 8 + 119 * 4);
	ck_assert_int_eq(list(AFS_VL_LINKED_LIST_N, 0, 0, NULL, 0), 0);
	ck_assert_uint_eq(m.reply_length, 8 + 119 * 4 + 4);
	ck_assert_int_eq(list(AFS_VL_LIST_ATTRIBUTES, 0, 0, NULL, 0), 0);
	ck_assert_uint_eq(m.reply_length, 8 + 96 * 4);

	for (uint32_t previous = 0; previous < 3; previous++) {
		rxw_xdr_put_u32(begin(AFS_VL_LIST_ENTRY_N), previous);
		ck_assert_int_eq(serve(), 0);
		ck_assert_uint_eq(m.reply_length, 8 + 119 * 4);
		ck_assert(rxw_xdr_get_u32(&rp, &count) && rxw_xdr_get_u32(&rp, &next));
		ck_assert_uint_eq(next, previous == 0);
	}
	teardown();
}
END_TEST

START_TEST(refusals)
{
	static const uint32_t changing[] = {501, 502, 505, 506, 507, 508,
					    509, 516, 517, 520, 524, 532};
	static const uint32_t unknown[] = {0, 500, 525, 526, 528, 535, 64002, 65537, 0xffffffff};

	setup();
	for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++) {
		begin(changing[i]);
		ck_assert_int_eq(serve(), AFS_VL_PERM);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		begin(unknown[i]);
		ck_assert_int_eq(serve(), RXW_RPC_OPCODE);
	}
	rxw_xdr_writer(&rq, request, sizeof(request));
	ck_assert_int_eq(serve(), RXW_RPC_DECODE);
	begin(AFS_VL_PROBE_SERVER);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(m.reply_length, 0);
	begin(AFS_VL_GET_STATS);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(m.reply_length, 116 * 4);
	static const uint32_t with_arguments[] = {503, 504, 510, 511, 512, 515, 518,
						  519, 521, 522, 523, 527, 533, 534};

	for (size_t i = 0; i < sizeof(with_arguments) / sizeof(with_arguments[0]); i++) {
		begin(with_arguments[i]);
		ck_assert_int_eq(serve(), RXW_RPC_SS_UNMARSHAL);
	}
	teardown();
}
END_TEST

TEST_MAIN("location service", names, forms_and_ids, addresses, lists, refusals)
