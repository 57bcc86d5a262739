/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/vl.xg with bytes recorded from servers of another make (afs-location 10). */
#include <string.h>

#include "tests/afs/known.h"

#include "afs/numbers.h"
#include "afs/uuid.h"
#include "afs/vl.h"

#define UUID                                                                                \
	"00093a3a 0000fc49 00001b00 ffffffbb ffffffda 00000001 00000000 0000004d 0000000a " \
	"ffffffaa 00000077 "
/* 65 words of a name */
#define ROOT_CELL                                                                           \
	"00000072 0000006f 0000006f 00000074 0000002e 00000063 00000065 0000006c 0000006c " \
	"00000000*56 "
/* Index of the words: 65 servers, 66 UUIDs, 209 unique, 222 partition, 235 flags, 248 ids. */
#define U_ENTRY                                                                     \
	ROOT_CELL "00000001 " UUID "00000000*132 00000001 00000000*12 00000000*13 " \
		  "00000014 00000000*12 20000001 00000000*3 00001000 00000000*9 "
#define N_ENTRY                                                                              \
	ROOT_CELL "00000001 0a4d0001 00000000*12 00000000*13 00000004 00000000*12 20000001 " \
		  "00000000*3 00001000 00000000*9 "
#define O_ENTRY                                                                                    \
	ROOT_CELL "00000000 00000001 0a4d0001 00000000*7 00000000*8 00000004 00000000*7 20000001 " \
		  "00000000*3 00001000 "

START_TEST(asks_u)
{
	struct rxw_uuid server, uuid;
	ListAddrByAttributes attr = {.Mask = AFS_VL_BY_UUID};
	int32_t unique, entries;
	bulkaddrs addrs;
	uvldbentry e;

	ck_assert(afs_uuid_from_text(&server, "00093a3a-fc49-1b00-bbda-01004d0aaa77"));
	known_answer(U_ENTRY);
	ck_assert_int_eq(VL_GetEntryByNameU(known_peer(), "root.cell", &e), 0);
	known_request("0000020f 00000009 'root.cell' 000000");
	ck_assert_str_eq(e.name, "root.cell");
	ck_assert_int_eq(e.nServers, 1);
	ck_assert(afs_uuid_same(&e.serverNumber[0], &server));
	ck_assert_int_eq(e.serverUnique[0], 1);
	ck_assert_int_eq(e.serverFlags[0], VLSF_UUID | VLSF_RWVOL);
	ck_assert_uint_eq(e.volumeId[AFS_VL_RW], 0x20000001);
	ck_assert_int_eq(e.flags, VLF_RWEXISTS);

	attr.uuid = server;
	known_answer(UUID "00000001 00000003 00000003 0a4d0001 0a4d0002 0a4d0003");
	ck_assert_int_eq(VL_GetAddrsU(known_peer(), &attr, &uuid, &unique, &entries, &addrs), 0);
	known_request("00000215 00000004 00000000 00000000 00000000 " UUID);
	ck_assert(afs_uuid_same(&uuid, &server));
	ck_assert_int_eq(entries, 3);
	ck_assert_uint_eq(addrs.len, 3);
	ck_assert_uint_eq(addrs.val[2], 0x0a4d0003);
	xdrfree_bulkaddrs(&addrs);
	known_answer(UUID "00000001 00000003 000001f5 00000000*501");
	ck_assert_int_eq(VL_GetAddrsU(known_peer(), &attr, &uuid, &unique, &entries, &addrs),
			 RXW_RPC_CC_UNMARSHAL);
}
END_TEST

START_TEST(asks_older)
{
	VldbListByAttributes attr = {0};
	VLCallBack spare;
	int32_t count, next;
	bulkaddrs addrs;
	nbulkentries es;
	nvldbentry n;
	vldbentry o;

	known_answer(N_ENTRY);
	ck_assert_int_eq(VL_GetEntryByNameN(known_peer(), "root.cell", &n), 0);
	known_request("00000207 00000009 'root.cell' 000000");
	ck_assert_int_eq(n.serverNumber[0], 0x0a4d0001);
	ck_assert_int_eq(n.serverFlags[0], VLSF_RWVOL);
	ck_assert_uint_eq(n.volumeId[AFS_VL_RW], 0x20000001);
	known_answer(O_ENTRY);
	ck_assert_int_eq(VL_GetEntryByNameO(known_peer(), "root.cell", &o), 0);
	known_request("000001f8 00000009 'root.cell' 000000");
	ck_assert_int_eq(o.nServers, 1);
	ck_assert_int_eq(o.serverNumber[0], 0x0a4d0001);
	ck_assert_int_eq(o.flags, VLF_RWEXISTS);

	known_answer("00000000*4 00000002 00000002 ff000001 ff000002");
	ck_assert_int_eq(VL_GetAddrs(known_peer(), 0, 0, &spare, &count, &addrs), 0);
	known_request("00000203 00000000 00000000");
	ck_assert_int_eq(count, 2);
	ck_assert_uint_eq(addrs.len, 2);
	ck_assert_uint_eq(addrs.val[1], 0xff000002);
	xdrfree_bulkaddrs(&addrs);

	known_answer("00000002 00000002 " N_ENTRY N_ENTRY "ffffffff");
	ck_assert_int_eq(VL_ListAttributesN2(known_peer(), &attr, ".*", 0, &count, &es, &next), 0);
	known_request("00000216 00000000*6 00000002 2e2a0000 00000000");
	ck_assert_uint_eq(es.len, 2);
	ck_assert_str_eq(es.val[1].name, "root.cell");
	ck_assert_int_eq(next, -1);
	xdrfree_nbulkentries(&es);
}
END_TEST

START_TEST(linked_lists)
{
	VldbListByAttributes attr = {0};
	int32_t count;
	vldb_list es;

	known_answer("00000002 00000001 " O_ENTRY "00000001 " O_ENTRY "00000000");
	ck_assert_int_eq(VL_LinkedList(known_peer(), &attr, &count, &es), 0);
	ck_assert_ptr_nonnull(es.node);
	ck_assert_str_eq(es.node->VldbEntry.name, "root.cell");
	ck_assert_ptr_nonnull(es.node->next_vldb);
	ck_assert_ptr_null(es.node->next_vldb->next_vldb);
	xdrfree_vldb_list(&es);
	ck_assert_ptr_null(es.node);
	/* It is truncated within the third. */
	known_answer("00000003 00000001 " O_ENTRY "00000001 " O_ENTRY "00000001 00000000*20");
	ck_assert_int_eq(VL_LinkedList(known_peer(), &attr, &count, &es), RXW_RPC_CC_UNMARSHAL);
	ck_assert_ptr_null(es.node);
}
END_TEST

static int32_t entry_by_name(void *context, rxw_call *call, const char *name, nvldbentry *e)
{
	(void)context;
	(void)call;
	if (strcmp(name, "root.cell") != 0)
		return AFS_VL_NOENT;
	strcpy(e->name, name);
	e->nServers = 1;
	e->serverNumber[0] = 0x0a4d0001;
	e->serverFlags[0] = VLSF_RWVOL;
	e->volumeId[AFS_VL_RW] = 0x20000001;
	e->flags = VLF_RWEXISTS;
	return 0;
}

static int32_t list_entries(void *context, rxw_call *call, const VldbListByAttributes *attr,
			    int32_t *n, nvldb_list *es)
{
	(void)context;
	(void)attr;
	*n = 2;
	for (int i = 0; i < 2; i++) {
		struct single_nvldbentry *e = calloc(1, sizeof(*e));

		entry_by_name(NULL, call, "root.cell", &e->VldbEntry);
		e->next_vldb = es->node;
		es->node = e;
	}
	return 0;
}

START_TEST(serves)
{
	static const struct VL_handlers handlers = {.GetEntryByNameN = entry_by_name,
						    .LinkedListN = list_entries};
	static struct VL_service service = {.handlers = &handlers};

	known_dispatcher(VL_ExecuteRequest, &service);
	known_exchange("00000207 00000009 'root.cell' 000000", N_ENTRY);
	known_exchange("0000020b 00000000*6",
		       "00000002 00000001 " N_ENTRY "00000001 " N_ENTRY "00000000");
	known_failure("00000207 00000004 'none'", AFS_VL_NOENT);
	known_failure("00000207 00000041 'x'*65 000000", AFS_VL_NOENT);
	known_failure("00000207 00000042 'x'*66 0000", RXW_RPC_SS_UNMARSHAL);
	known_failure("0000020f 00000009 'root.cell' 000000", RXW_RPC_OPCODE);
}
END_TEST

KNOWN_MAIN("vl", asks_u, asks_older, linked_lists, serves)
