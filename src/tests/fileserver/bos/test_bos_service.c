/* SPDX-License-Identifier: BSD-2-Clause */
/* The overseer's calls: what they report, what is refused, and requests that are wrong. */
#include "tests/fileserver/anycall.h"
#include "tests/fileserver/fixture.h"

#include <netinet/in.h>
#include <rxwire/error.h>
#include <rxwire/rxwire.h>

#include "afs/bosint.h"
#include "afs/numbers.h"
#include "fileserver/bos/bos.h"

static struct fsd_bos *bos;
static rxw_engine *engine;
static rxw_endpoint *server, *client;
static rxw_connection *nobody;

static void setup_bos(bool vlserver, bool ptserver)
{
	struct sockaddr_storage sa = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;
	socklen_t length = sizeof(*in);
	struct rxw_endpoint_options here = {.size = sizeof(here),
					    .address = (const struct sockaddr *)&sa,
					    .address_len = length,
					    .server = 1};
	struct rxw_service_options options = {.size = sizeof(options),
					      .id = AFS_SERVICE_BOS,
					      .name = "bos",
					      .handler = fsd_bos_serve,
					      .flags = RXW_SERVICE_INLINE};

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bos = fsd_bos_create(vlserver, ptserver);
	ck_assert_ptr_nonnull(bos);
	options.context = bos;
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &here, &server), 0);
	ck_assert_int_eq(rxw_service_add(server, &options, NULL), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, NULL, &client), 0);
	length = sizeof(sa);
	ck_assert_int_eq(rxw_endpoint_address(server, &sa, &length), 0);
	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&sa, length,
					       AFS_SERVICE_BOS, NULL, &nobody),
			 0);
}

static void teardown_bos(void)
{
	rxw_connection_release(nobody);
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	fsd_bos_destroy(bos);
}

/* The names of all instances, each behind a space. */
static const char *all_instances(void)
{
	static char text[256];
	char *name = NULL;
	int32_t number, code;

	text[0] = 0;
	for (number = 0; (code = BOZO_EnumerateInstance(nobody, number, &name)) == 0; number++) {
		ck_assert_uint_lt(strlen(text) + 1 + strlen(name), sizeof(text));
		strcat(strcat(text, " "), name);
		free(name);
	}
	ck_assert_int_eq(code, AFS_BOS_DOMAIN);
	return text;
}

START_TEST(instances)
{
	static const struct {
		bool vlserver, ptserver;
		const char *want;
	} cases[] = {{true, true, " fs vlserver ptserver"},
		     {true, false, " fs vlserver"},
		     {false, false, " fs"}};
	char *name = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup_bos(cases[i].vlserver, cases[i].ptserver);
		ck_assert_str_eq(all_instances(), cases[i].want);
		ck_assert_int_eq(BOZO_EnumerateInstance(nobody, -1, &name), AFS_BOS_DOMAIN);
		ck_assert_int_eq(BOZO_EnumerateInstance(nobody, INT32_MIN, &name), AFS_BOS_DOMAIN);
		ck_assert_int_eq(BOZO_EnumerateInstance(nobody, INT32_MAX, &name), AFS_BOS_DOMAIN);
		teardown_bos();
	}
}
END_TEST

static void check_instance(const char *name, const char *want_type, const char *want_text,
			   int32_t want_state, int32_t want_goal)
{
	char *type = NULL, *text = NULL, *parm = NULL;
	bozo_status status;
	int32_t state = -1;

	ck_assert_int_eq(BOZO_GetInstanceInfo(nobody, name, &type, &status), 0);
	ck_assert_str_eq(type, want_type);
	ck_assert_int_eq(status.goal, want_goal);
	ck_assert_int_eq(status.fileGoal, BOZO_RUNNING);
	ck_assert_int_eq(status.procStarts, 1);
	ck_assert_int_eq(status.lastAnyExit, 0);
	ck_assert_int_eq(status.lastErrorExit, 0);
	ck_assert_int_eq(status.errorCode, 0);
	ck_assert_int_eq(status.errorSignal, 0);
	ck_assert_int_eq(status.flags, 0);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(status.spare[i], 0);
	ck_assert_int_eq(BOZO_GetStatus(nobody, name, &state, &text), 0);
	ck_assert_int_eq(state, want_state);
	ck_assert_str_eq(text, want_text);
	ck_assert_int_eq(BOZO_GetInstanceParm(nobody, name, 0, &parm), 0);
	ck_assert_str_eq(parm, "rxfsd");
	free(type);
	free(text);
	free(parm);
	ck_assert_int_eq(BOZO_GetInstanceParm(nobody, name, 1, &parm), AFS_BOS_DOMAIN);
	ck_assert_int_eq(BOZO_GetInstanceParm(nobody, name, -1, &parm), AFS_BOS_DOMAIN);
	ck_assert_int_eq(BOZO_GetInstanceParm(nobody, name, BOZO_NOTIFIER, &parm), AFS_BOS_NOENT);
}

static int32_t ask_strings(const char *name)
{
	char *text[4] = {NULL};
	int32_t code =
		BOZO_GetInstanceStrings(nobody, name, &text[0], &text[1], &text[2], &text[3]);

	for (int i = 0; i < 4 && !code; i++) {
		ck_assert_str_eq(text[i], "");
		free(text[i]);
	}
	return code;
}

static int32_t ask_start(void)
{
	bozo_status status;
	char *type = NULL;

	ck_assert_int_eq(BOZO_GetInstanceInfo(nobody, "fs", &type, &status), 0);
	free(type);
	return status.procStartTime;
}

START_TEST(states)
{
	int64_t before = time(NULL);

	setup_bos(true, true);
	check_instance("fs", "fs", "file server running", BOZO_RUNNING, BOZO_RUNNING);
	check_instance("vlserver", "simple", "", BOZO_RUNNING, BOZO_RUNNING);
	check_instance("ptserver", "simple", "", BOZO_RUNNING, BOZO_RUNNING);
	ck_assert_int_ge(ask_start(), before);
	ck_assert_int_le(ask_start(), time(NULL));
	ck_assert_int_eq(ask_strings("fs"), 0);
	fsd_bos_stop(bos);
	check_instance("fs", "fs", "file server shutting down", BOZO_STOPPING, BOZO_STOPPED);
	check_instance("vlserver", "simple", "", BOZO_STOPPING, BOZO_STOPPED);
	teardown_bos();
}
END_TEST

START_TEST(unknown_names)
{
	char longest[BOZO_TEXT_MAX + 1];
	const char *const names[] = {"ptserver", "FS", "f", "fsx", "", "*", "\xff", longest};
	char *type = NULL, *text = NULL;
	bozo_status status;
	int32_t state;

	memset(longest, 'f', BOZO_TEXT_MAX);
	longest[BOZO_TEXT_MAX] = 0;
	setup_bos(true, false);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ck_assert_int_eq(BOZO_GetInstanceInfo(nobody, names[i], &type, &status),
				 AFS_BOS_NOENT);
		ck_assert_int_eq(BOZO_GetStatus(nobody, names[i], &state, &text), AFS_BOS_NOENT);
		ck_assert_int_eq(BOZO_GetInstanceParm(nobody, names[i], 0, &text), AFS_BOS_NOENT);
		ck_assert_int_eq(ask_strings(names[i]), AFS_BOS_NOENT);
	}
	teardown_bos();
}
END_TEST

/* The code of a call that is an opcode and `length` further bytes. */
static int32_t call_opcode(int32_t opcode, size_t length)
{
	uint8_t request[4096] = {0};
	rxw_call *call;
	ssize_t n;

	ck_assert_uint_le(length + 4, sizeof(request));
	rxw_xdr_store32(request, (uint32_t)opcode);
	ck_assert_int_eq(rxw_call_begin(nobody, NULL, &call), 0);
	n = rxw_call_write(call, request, length + 4);
	ck_assert(n == (ssize_t)length + 4 || n == -RXW_ECALL);
	while (rxw_call_read(call, request, sizeof(request)) > 0)
		;
	return rxw_call_end(call, 0, NULL);
}

static bool is_answered(int32_t opcode)
{
	return (opcode >= BOZO_OP_GetStatus && opcode <= BOZO_OP_GetInstanceParm) ||
	       opcode == BOZO_OP_GetInstanceStrings;
}

/* Each other call of an overseer, with any arguments; what is no call of an overseer is unknown. */
START_TEST(refused_calls)
{
	setup_bos(true, true);
	for (int32_t opcode = BOZO_FIRST; opcode <= BOZO_LAST; opcode++) {
		if (is_answered(opcode))
			continue;
		ck_assert_int_eq(call_opcode(opcode, 0), AFS_BOS_ACCESS);
		ck_assert_int_eq(call_opcode(opcode, 4000), AFS_BOS_ACCESS);
	}
	ck_assert_int_eq(call_opcode(BOZO_FIRST - 1, 0), RXW_RPC_OPCODE);
	ck_assert_int_eq(call_opcode(BOZO_LAST + 1, 0), RXW_RPC_OPCODE);
	ck_assert_int_eq(call_opcode(-1, 0), RXW_RPC_OPCODE);
	ck_assert_str_eq(all_instances(), " fs vlserver ptserver");
	teardown_bos();
}
END_TEST

START_TEST(any_bos_calls)
{
	static const struct anycall_form forms[] = {
		{BOZO_OP_GetStatus, "s"},
		{BOZO_OP_EnumerateInstance, "w"},
		{BOZO_OP_GetInstanceInfo, "s"},
		{BOZO_OP_GetInstanceParm, "sw"},
		{BOZO_OP_GetInstanceStrings, "s"},
		{BOZO_FIRST, "ssssssss"},
		{105, "swww"},
		{112, "s"},
		{BOZO_LAST, "w"},
	};
	static const uint32_t ids[] = {0};
	static const char *const names[] = {"fs", "vlserver", "ptserver", "", "a\nb", "\xff"};
	static struct anycall any = {.forms = forms,
				     .form_count = sizeof(forms) / sizeof(forms[0]),
				     .ids = ids,
				     .id_count = 1,
				     .names = names,
				     .name_count = sizeof(names) / sizeof(names[0])};

	setup_bos(true, true);
	for (int i = 0; i < 4; i++)
		any.connection[i] = nobody;
	anycall_run(&any, 400);
	ck_assert_str_eq(all_instances(), " fs vlserver ptserver");
	teardown_bos();
}
END_TEST

TEST_MAIN_WITHIN(60, "bos service", instances, states, unknown_names, refused_calls, any_bos_calls)
