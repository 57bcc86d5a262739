/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of vl_service.c: look-ups, their rules, addresses, over loopback. */
#include "tests/fileserver/fixture.h"

#include <netinet/in.h>
#include <rxwire/coder.h>
#include <rxwire/error.h>

#include "afs/numbers.h"
#include "afs/uuid.h"
#include "afs/vl.h"
#include "volume/export/object.h"
#include "fileserver/location/entries.h"
#include "fileserver/location/location.h"

static struct world world;
static struct wire w;
static uint8_t request[8192];
static struct rxw_xdr rq, rp;
static uint32_t id;

static void setup(void)
{
	world_open(&world, tree_make(), false, 0);
	id = world.export->id;
	ck_assert(wire_open(&w, AFS_SERVICE_VL, fsd_vl_serve, world.service, "0.0.0.0"));
}

static void teardown(void)
{
	wire_close(&w);
	world_close(&world);
}

static struct rxw_xdr *begin(uint32_t opcode)
{
	rxw_xdr_writer(&rq, request, sizeof(request));
	rxw_xdr_put_u32(&rq, opcode);
	return &rq;
}

/* Calls the server at one of its addresses; each has its own client, by its last number. */
static int32_t serve_at(const char *local)
{
	unsigned client = 1 + (uint8_t)local[strlen(local) - 1];
	int32_t code;

	w.to = local;
	code = wire_call(&w, client, request, rxw_xdr_used(&rq));
	rxw_xdr_reader(&rp, w.reply, w.reply_length);
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
	uvldbentry entry;
	char text[70];

	setup();
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		ck_assert_msg(by_name(VL_OP_GetEntryByNameU, list[i].name) == list[i].code, "%s",
			      list[i].name);
	snprintf(text, sizeof(text), "%u", (unsigned)id);
	ck_assert_int_eq(by_name(VL_OP_GetEntryByNameU, text), 0);
	ck_assert_uint_eq(w.reply_length, 262 * 4);
	ck_assert(xdr_get_uvldbentry(&rp, &entry));
	ck_assert_str_eq(entry.name, "data");
	ck_assert_uint_eq(entry.nServers, 1);
	ck_assert_uint_eq(entry.serverFlags[0], 0x12);
	/* A read-only volume whose read-write one has a number and no site. */
	ck_assert_uint_eq(entry.volumeId[0], id - 1);
	ck_assert_uint_eq(entry.volumeId[1], id);
	ck_assert_uint_eq(entry.volumeId[2], 0);
	ck_assert_uint_eq(entry.flags, 0x2000);
	ck_assert(afs_uuid_same(&entry.serverNumber[0], &world.service->uuid));
	ck_assert_int_eq(by_name(VL_OP_GetEntryByNameU, "root.cell"), 0);
	ck_assert(xdr_get_uvldbentry(&rp, &entry));
	ck_assert_str_eq(entry.name, "root.cell");
	ck_assert_uint_eq(entry.volumeId[1], id);
	memset(text, 'x', 66);
	text[65] = 0;
	ck_assert_int_eq(by_name(VL_OP_GetEntryByNameU, text), AFS_VL_BADNAME);
	text[65] = 'x', text[66] = 0;
	ck_assert_int_eq(by_name(VL_OP_GetEntryByNameU, text), RXW_RPC_SS_UNMARSHAL);
	teardown();
}
END_TEST

START_TEST(forms_and_ids)
{
	nvldbentry entry;

	setup();
	ck_assert_int_eq(by_name(VL_OP_GetEntryByNameN, "data"), 0);
	ck_assert_uint_eq(w.reply_length, 119 * 4);
	ck_assert(xdr_get_nvldbentry(&rp, &entry));
	ck_assert_uint_eq((uint32_t)entry.serverNumber[0], INADDR_LOOPBACK);
	ck_assert_int_eq(by_name(VL_OP_GetEntryByNameO, "data"), 0);
	ck_assert_uint_eq(w.reply_length, 96 * 4);
	for (int type = -2; type < 5; type++) {
		int32_t want = type < -1 || type > 2	? AFS_VL_BADVOLTYPE
			       : type == 0 || type == 2 ? AFS_VL_NOENT
							: 0;

		rxw_xdr_put_u32(begin(VL_OP_GetEntryByIDN), id);
		rxw_xdr_put_u32(&rq, (uint32_t)type);
		ck_assert_int_eq(serve(), want);
		rxw_xdr_put_u32(begin(VL_OP_GetEntryByIDN), id - 1);
		rxw_xdr_put_u32(&rq, (uint32_t)type);
		ck_assert_int_eq(serve(), type == 0 ? 0 : type == 1 ? AFS_VL_NOENT : want);
		rxw_xdr_put_u32(begin(VL_OP_GetEntryByID), id);
		rxw_xdr_put_u32(&rq, (uint32_t)type);
		ck_assert_int_eq(serve(), want);
	}
	rxw_xdr_put_u32(begin(VL_OP_GetEntryByIDN), id + 1);
	rxw_xdr_put_u32(&rq, (uint32_t)-1);
	ck_assert_int_eq(serve(), AFS_VL_NOENT);
	teardown();
}
END_TEST

static int32_t addrs(uint32_t mask, uint32_t address, uint32_t index, const struct rxw_uuid *uuid,
		     const char *local)
{
	ListAddrByAttributes q = {
		.Mask = (int32_t)mask, .ipaddr = address, .index = (int32_t)index};

	if (uuid)
		q.uuid = *uuid;
	xdr_put_ListAddrByAttributes(begin(VL_OP_GetAddrsU), &q);
	return serve_at(local);
}

/* Properties of a good reply. */
static uint32_t returned_addresses(unsigned count, uint32_t address[])
{
	int32_t unique = 0, n = 0;
	struct rxw_uuid uuid;
	bulkaddrs addrs = {0};

	ck_assert(rxw_xdr_get_uuid(&rp, &uuid) && rxw_xdr_get_i32(&rp, &unique) &&
		  rxw_xdr_get_i32(&rp, &n) && xdr_get_bulkaddrs(&rp, &addrs));
	ck_assert_uint_eq(rxw_xdr_left(&rp), 0);
	ck_assert(afs_uuid_same(&uuid, &world.service->uuid));
	ck_assert_int_eq(unique, 1);
	ck_assert_int_eq(n, (int32_t)addrs.len);
	ck_assert_uint_eq(addrs.len, count);
	memcpy(address, addrs.val, count * sizeof(*address));
	xdrfree_bulkaddrs(&addrs);
	return address[0];
}

START_TEST(addresses)
{
	struct rxw_uuid strange = {.time_low = 1};
	const struct rxw_uuid *ours;
	uint32_t a[2];

	setup();
	ours = &world.service->uuid;
	ck_assert_int_eq(addrs(4, 0, 0, ours, "127.1.2.3"), 0);
	ck_assert_uint_eq(returned_addresses(1, a), 0x7f010203);
	ck_assert_int_eq(addrs(2, 0, 1, NULL, "127.1.2.3"), 0);
	ck_assert_int_eq(addrs(2, 0, 0, NULL, "127.1.2.3"), AFS_VL_INDEXERANGE);
	ck_assert_int_eq(addrs(2, 0, 2, NULL, "127.1.2.3"), AFS_VL_NOENT);
	ck_assert_int_eq(addrs(1, 0x7f010203, 0, NULL, "127.1.2.3"), 0);
	ck_assert_int_eq(addrs(1, 0x7f010204, 0, NULL, "127.1.2.3"), AFS_VL_NOENT);
	ck_assert_int_eq(addrs(4, 0, 0, &strange, "127.1.2.3"), AFS_VL_NOENT);
	ck_assert_int_eq(addrs(0, 0, 0, NULL, "127.1.2.3"), AFS_VL_BADMASK);
	ck_assert_int_eq(addrs(3, 0, 1, NULL, "127.1.2.3"), AFS_VL_BADMASK);

	/* the address that was called, then the configured ones, without duplicates */
	world.service->advertise[0] = 0xc0000201;
	world.service->advertise[1] = 0x7f010203;
	world.service->advertise_count = 2;
	ck_assert_int_eq(addrs(4, 0, 0, ours, "127.1.2.3"), 0);
	ck_assert_uint_eq(returned_addresses(2, a), 0x7f010203);
	ck_assert_uint_eq(a[1], 0xc0000201);

	begin(VL_OP_GetAddrs);
	rxw_xdr_put_u64(&rq, 0);
	ck_assert_int_eq(serve(), 0);
	static const uint8_t want[28] = {[19] = 1, [23] = 1, [24] = 0xff, [27] = 1};

	ck_assert_uint_eq(w.reply_length, sizeof(want));
	ck_assert_mem_eq(w.reply, want, sizeof(want));
	teardown();
}
END_TEST

START_TEST(addresses_over_ipv6)
{
	const struct rxw_uuid *ours;
	uint32_t a[2];

	world_open(&world, tree_make(), false, 0);
	if (!wire_open(&w, AFS_SERVICE_VL, fsd_vl_serve, world.service, "::")) {
		printf("no IPv6 on this machine\n");
		world_close(&world);
		return;
	}
	world.service->advertise[0] = 0xc0000201;
	world.service->advertise[1] = 0x0a010203;
	world.service->advertise_count = 2;
	/* it has no other address to return */
	ours = &world.service->uuid;
	ck_assert_int_eq(addrs(4, 0, 0, ours, "::1"), 0);
	ck_assert_uint_eq(returned_addresses(2, a), 0xc0000201);
	ck_assert_uint_eq(a[1], 0x0a010203);
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
	nvldbentry entry;
	uint32_t n, count, next;

	setup();
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		ck_assert_int_eq(list(VL_OP_ListAttributesN2, 0, 0, patterns[i].pattern, 0),
				 patterns[i].code);
		if (patterns[i].code)
			continue;
		ck_assert(rxw_xdr_get_u32(&rp, &n) && rxw_xdr_get_u32(&rp, &count));
		ck_assert_uint_eq(n, patterns[i].count);
		ck_assert_uint_eq(count, n);
		if (n)
			ck_assert(xdr_get_nvldbentry(&rp, &entry) && entry.volumeId[1] == id);
		ck_assert(rxw_xdr_get_u32(&rp, &next) && next == UINT32_MAX);
		ck_assert_uint_eq(rxw_xdr_left(&rp), 0);
	}
	ck_assert_int_eq(list(VL_OP_ListAttributesN2, 8, id + 1, "", 0), AFS_VL_NOENT);
	ck_assert_int_eq(list(VL_OP_ListAttributesN, 8, id, NULL, 0), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 119 * 4);
	ck_assert_int_eq(list(VL_OP_LinkedListN, 0, 0, NULL, 0), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 119 * 4 + 4);
	ck_assert_int_eq(list(VL_OP_ListAttributes, 0, 0, NULL, 0), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 96 * 4);

	for (uint32_t previous = 0; previous < 3; previous++) {
		rxw_xdr_put_u32(begin(VL_OP_ListEntryN), previous);
		ck_assert_int_eq(serve(), 0);
		ck_assert_uint_eq(w.reply_length, 8 + 119 * 4);
		ck_assert(rxw_xdr_get_u32(&rp, &count) && rxw_xdr_get_u32(&rp, &next));
		ck_assert_uint_eq(next, previous == 0);
	}
	teardown();
}
END_TEST

/* With a cell name, root.afs is a separate volume. */
START_TEST(two_volumes)
{
	nvldbentry entry;
	uint32_t n, count, next = 0;

	setup();
	ck_assert_int_eq(by_name(VL_OP_GetEntryByNameN, "root.afs"), 0);
	ck_assert(xdr_get_nvldbentry(&rp, &entry) && entry.volumeId[1] == id);
	world.service->rootafs = fsd_rootafs_create("test.cell", false, 1700000000);
	ck_assert_ptr_nonnull(world.service->rootafs);
	ck_assert_int_eq(by_name(VL_OP_GetEntryByNameN, "root.afs.readonly"), 0);
	ck_assert(xdr_get_nvldbentry(&rp, &entry) && entry.volumeId[1] == FSD_ROOTAFS_ID);
	ck_assert_str_eq(entry.name, "root.afs");
	ck_assert_int_eq(by_name(VL_OP_GetEntryByNameN, "root.cell"), 0);
	ck_assert(xdr_get_nvldbentry(&rp, &entry) && entry.volumeId[1] == id);
	rxw_xdr_put_u32(begin(VL_OP_GetEntryByIDN), FSD_ROOTAFS_ID);
	rxw_xdr_put_u32(&rq, 1);
	ck_assert_int_eq(serve(), 0);
	for (uint32_t i = 0; i < 3; i++) {
		rxw_xdr_put_u32(begin(VL_OP_ListEntryN), next);
		ck_assert_int_eq(serve(), 0);
		ck_assert(rxw_xdr_get_u32(&rp, &count) && rxw_xdr_get_u32(&rp, &next));
		ck_assert_uint_eq(count, i == 0);
		ck_assert_uint_eq(next, i < 2 ? i + 1 : 0);
	}
	ck_assert_int_eq(list(VL_OP_ListAttributesN2, 0, 0, "", 0), 0);
	ck_assert(rxw_xdr_get_u32(&rp, &n) && n == 2);
	ck_assert_int_eq(list(VL_OP_ListAttributesN2, 0, 0, "root.afs", 0), 0);
	ck_assert(rxw_xdr_get_u32(&rp, &n) && n == 1);
	ck_assert_int_eq(list(VL_OP_LinkedListN, 0, 0, NULL, 0), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 2 * (119 * 4 + 4));
	ck_assert_int_eq(list(VL_OP_LinkedList, 8, FSD_ROOTAFS_ID, NULL, 0), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 96 * 4 + 4);
	ck_assert_int_eq(list(VL_OP_ListAttributes, 0, 0, NULL, 0), 0);
	ck_assert_uint_eq(w.reply_length, 8 + 2 * 96 * 4);
	teardown();
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		uint32_t opcode;
		unsigned words;
	} changing[] = {
		{501, 96}, {502, 2}, {505, 1},	 {506, 99},  {507, 123}, {508, 3},
		{509, 3},  {516, 2}, {517, 119}, {520, 122}, {524, 123}, {532, 14},
	};
	static const uint32_t unknown[] = {0, 500, 525, 526, 528, 535, 64002, 65537, 0xffffffff};

	setup();
	for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++) {
		for (unsigned words = 0; words <= changing[i].words; words++) {
			bool whole = words == changing[i].words;

			/* ones, and a name of one letter where a name is expected */

			begin(changing[i].opcode);
			for (unsigned j = 0; j < words; j++)
				rxw_xdr_put_u32(&rq, j == 1 ? 0x61000000 : 1);
			ck_assert_msg(serve() == (whole ? AFS_VL_PERM : RXW_RPC_SS_UNMARSHAL),
				      "opcode %u with %u words", changing[i].opcode, words);
			ck_assert_uint_eq(w.reply_length, 0);
		}
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		begin(unknown[i]);
		ck_assert_int_eq(serve(), RXW_RPC_OPCODE);
	}
	rxw_xdr_writer(&rq, request, sizeof(request));
	ck_assert_int_eq(serve(), RXW_RPC_DECODE);
	begin(VL_OP_ProbeServer);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(w.reply_length, 0);
	begin(VL_OP_GetStats);
	ck_assert_int_eq(serve(), 0);
	ck_assert_uint_eq(w.reply_length, 116 * 4);
	static const uint32_t with_arguments[] = {503, 504, 510, 511, 512, 515, 518,
						  519, 521, 522, 523, 527, 533, 534};

	for (size_t i = 0; i < sizeof(with_arguments) / sizeof(with_arguments[0]); i++) {
		begin(with_arguments[i]);
		ck_assert_int_eq(serve(), RXW_RPC_SS_UNMARSHAL);
	}
	teardown();
}
END_TEST

TEST_MAIN("location service", names, forms_and_ids, addresses, addresses_over_ipv6, lists,
	  two_volumes, refusals)
