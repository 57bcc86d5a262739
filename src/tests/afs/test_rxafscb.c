/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/rxafscb.xg with bytes recorded from servers of another make (afs-fileserver 12). */
#include "tests/afs/known.h"

#include "afs/rxafscb.h"
#include "afs/uuid.h"

#define UUID                                                                                \
	"00093a3a 0000fc49 00001b00 ffffffbb ffffffda 00000001 00000000 0000004d 0000000a " \
	"ffffffaa 00000077 "

static struct rxw_uuid uuid(void)
{
	struct rxw_uuid u;

	ck_assert(afs_uuid_from_text(&u, "00093a3a-fc49-1b00-bbda-01004d0aaa77"));
	return u;
}

START_TEST(calls)
{
	AFSFid fids[1] = {{0x20000001, 0x1fa6, 0x1170}};
	const AFSCBFids list = {1, fids};
	const AFSCBs none = {0};
	const struct rxw_uuid server = uuid();
	interfaceAddr addr;
	Capabilities caps;

	known_answer("");
	ck_assert_int_eq(RXAFSCB_CallBack(known_peer(), &list, &none), 0);
	known_request("000000cc 00000001 20000001 00001fa6 00001170 00000000");
	fids[0] = (AFSFid){0x20000012, 0, 0}; /* the whole volume */
	ck_assert_int_eq(RXAFSCB_CallBack(known_peer(), &list, &none), 0);
	known_request("000000cc 00000001 20000012 00000000 00000000 00000000");
	ck_assert_int_eq(RXAFSCB_InitCallBackState3(known_peer(), &server), 0);
	known_request("000000d5 " UUID);
	ck_assert_int_eq(RXAFSCB_InitCallBackState(known_peer()), 0);
	known_request("000000cd");
	known_answer("00000000 " UUID "00000000*96 00000001 00000001");
	ck_assert_int_eq(RXAFSCB_TellMeAboutYourself(known_peer(), &addr, &caps), 0);
	known_request("00010002");
	ck_assert(afs_uuid_same(&addr.uuid, &server));
	ck_assert_uint_eq(caps.len, 1);
	ck_assert_uint_eq(caps.val[0], CLIENT_CAPABILITY_ERRORTRANS);
	xdrfree_Capabilities(&caps);
	/* No words are accepted; more than the maximum are not. */
	known_answer("00000000 " UUID "00000000*96 00000000");
	ck_assert_int_eq(RXAFSCB_TellMeAboutYourself(known_peer(), &addr, &caps), 0);
	ck_assert_uint_eq(caps.len, 0);
	known_answer("00000000 " UUID "00000000*96 000000c5 00000000*197");
	ck_assert_int_eq(RXAFSCB_TellMeAboutYourself(known_peer(), &addr, &caps),
			 RXW_RPC_CC_UNMARSHAL);
	ck_assert_ptr_null(caps.val);
}
END_TEST

static int32_t who(void *context, rxw_call *call, interfaceAddr *addr)
{
	(void)context;
	(void)call;
	addr->uuid = uuid();
	addr->numberOfInterfaces = 1;
	addr->addr_in[0] = 0x0a4d0001;
	addr->mtu[31] = -1;
	return 0;
}

static int32_t broken(void *context, rxw_call *call, const AFSCBFids *fids, const AFSCBs *cbs)
{
	(void)context;
	(void)call;
	return (int32_t)(fids->len * 100 + cbs->len);
}

START_TEST(serves)
{
	static const struct RXAFSCB_handlers handlers = {.WhoAreYou = who, .CallBack = broken};
	static struct RXAFSCB_service service = {.handlers = &handlers};

	known_dispatcher(RXAFSCB_ExecuteRequest, &service);
	known_exchange("000000d4", "00000001 " UUID "0a4d0001 00000000*94 ffffffff");
	known_failure("000000cc 00000001 20000001 00001fa6 00001170 00000000", 100);
	known_failure("000000cc 00000002 00000000*6 00000002 00000000*6", 202);
	known_failure("000000cc 00000001 20000001 00001fa6 00001170", RXW_RPC_SS_UNMARSHAL);
	known_failure("000000cc 00000000 00000033 00000000*153", RXW_RPC_SS_UNMARSHAL);
	known_failure("000000d5 " UUID, RXW_RPC_OPCODE);
}
END_TEST

KNOWN_MAIN("rxafscb", calls, serves)
