/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The complete server over loopback: the volume service, statistics on all ports, GetXStats, and
 * the log lines about callers of each service.
 */
#include "tests/fileserver/fixture.h"

#include <netinet/in.h>
#include <pthread.h>

#include <rxwire/afs.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>
#include <rxwire/rxwire.h>
#include <rxwire/token.h>

#include "afs/bosint.h"
#include "afs/numbers.h"
#include "afs/rxstats.h"
#include "afs/vl.h"
#include "afs/afsvol.h"
#include "fileserver/server.h"

#define WORDS RXSTATS_ENTRY_WORDS

static struct fsd_server *server;
static char *root, *state;
static rxw_engine *engine;
static rxw_endpoint *client;

static void setup_with(const char *keytab, bool rpc_stats, bool bos)
{
	struct fsd_settings settings = {.volume = "data",
					.listen = "127.0.0.1",
					.readers = 1,
					.read_ahead = 1 << 20,
					.watches = 10,
					.promises = 100,
					.drain_ms = 60000,
					.rpc_stats = rpc_stats,
					.bos = bos,
					.guard.keytab = keytab};
	struct rxw_endpoint_options options = {.size = sizeof(options)};
	char message[FSD_MESSAGE_MAX];
	struct rxw_config config;

	root = tree_make();
	state = test_folder();
	settings.export = root;
	settings.state = state;
	rxw_config_init(&config, sizeof(config));
	if (fsd_server_start(&settings, &config, &server, message))
		ck_abort_msg("%s", message);
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &client), 0);
}

static void setup(bool rpc_stats)
{
	setup_with(NULL, rpc_stats, false);
}

static void teardown(void)
{
	rxw_endpoint_stop(client, 1000);
	rxw_endpoint_destroy(client);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	tree_remove(root);
	tree_remove(state);
}

static rxw_connection *connect_as(uint16_t port, uint16_t service, rxw_security *security)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	rxw_connection *made;

	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&to, sizeof(to), service,
					       security, &made),
			 0);
	return made;
}

static rxw_connection *connect_to(uint16_t port, uint16_t service)
{
	return connect_as(port, service, NULL);
}

/* The number of calls of a function according to the server on this port; -1: no statistics. */
static int64_t calls_counted(uint16_t port, uint32_t interface, uint32_t function)
{
	rxw_connection *connection = connect_to(port, RXW_RPCSTATS_SERVICE);
	uint32_t version = 0, sec = 0, usec = 0, count = 0;
	rpcStats list = {0};
	int32_t code = RXSTATS_RetrieveProcessRPCStats(connection, 1, &version, &sec, &usec, &count,
						       &list);
	int64_t calls = 0;

	rxw_connection_release(connection);
	if (code)
		return -1;
	for (uint32_t i = 0; i < list.len; i += WORDS)
		if (list.val[i + 3] == interface && list.val[i + 5] == function &&
		    list.val[i + 2] == 0)
			calls += list.val[i + 7];
	xdrfree_rpcStats(&list);
	return calls;
}

static void call_each(void)
{
	rxw_connection *fs = connect_to(fsd_server_fs_port(server), AFS_SERVICE_FS),
		       *vl = connect_to(fsd_server_vl_port(server), AFS_SERVICE_VL),
		       *vol = connect_to(fsd_server_vol_port(server), AFS_SERVICE_VOL);
	uint32_t seconds = 0, useconds = 0;
	volEntries list = {0};

	ck_assert_int_eq(RXAFS_GetTime(fs, &seconds, &useconds), 0);
	ck_assert_int_eq(VL_ProbeServer(vl), 0);
	ck_assert_int_eq(AFSVolListVolumes(vol, 0, 1, &list), 0);
	ck_assert_uint_eq(list.len, 1);
	ck_assert_str_eq(list.val[0].name, "data.readonly");
	ck_assert_uint_eq(list.val[0].volid, fsd_server_volume_id(server));
	xdrfree_volEntries(&list);
	rxw_connection_release(fs);
	rxw_connection_release(vl);
	rxw_connection_release(vol);
}

/* Each port has the statistics of all three. */
START_TEST(counted)
{
	uint16_t port[3];

	setup(true);
	port[0] = fsd_server_fs_port(server);
	port[1] = fsd_server_vl_port(server);
	port[2] = fsd_server_vol_port(server);
	call_each();
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(calls_counted(port[i], 7, 23), 1);  /* GetTime */
		ck_assert_int_eq(calls_counted(port[i], 15, 0), 1);  /* ProbeServer */
		ck_assert_int_eq(calls_counted(port[i], 16, 16), 1); /* ListVolumes */
	}
	call_each();
	ck_assert_int_eq(calls_counted(port[0], 16, 16), 2);
	ck_assert_int_eq(calls_counted(port[0], 9, 0), 10); /* our earlier statistics calls */
	teardown();
}
END_TEST

START_TEST(statistics_disabled)
{
	setup(false);
	call_each();
	ck_assert_int_eq(calls_counted(fsd_server_fs_port(server), 7, 23), -1);
	ck_assert_int_eq(calls_counted(fsd_server_vl_port(server), 7, 23), -1);
	ck_assert_int_eq(calls_counted(fsd_server_vol_port(server), 7, 23), -1);
	teardown();
}
END_TEST

/* The times of procedures are available without an option. */
START_TEST(collection)
{
	rxw_connection *fs;
	int32_t version = 0, when = 0;
	AFS_CollData data = {0};

	setup(false);
	fs = connect_to(fsd_server_fs_port(server), AFS_SERVICE_FS);
	call_each();
	ck_assert_int_eq(RXAFS_GetXStats(fs, 2, 2, &version, &when, &data), 0);
	ck_assert_int_eq(version, 2);
	ck_assert_int_gt(when, 1700000000);
	ck_assert_uint_eq(data.len, 666);
	ck_assert_int_eq(data.val[0], 1);
	ck_assert_int_ge(data.val[31], 2);	      /* DATA packets received */
	ck_assert_int_ge(data.val[42], 1);	      /* and sent */
	ck_assert_int_ge(data.val[53], 1);	      /* connections of clients */
	ck_assert_int_eq(data.val[102 + 18 * 23], 1); /* GetTime */
	ck_assert_int_eq(data.val[102 + 18 * 23 + 1], 1);
	ck_assert_int_eq(data.val[102 + 18 * 2], 0);
	xdrfree_AFS_CollData(&data);
	ck_assert_int_eq(RXAFS_GetXStats(fs, 2, 4, &version, &when, &data), 1);
	ck_assert_ptr_null(data.val);
	rxw_connection_release(fs);
	teardown();
}
END_TEST

START_TEST(listening_line)
{
	char text[256], want[64];

	setup(false);
	fsd_server_where(server, text, sizeof(text));
	ck_assert_int_eq(strncmp(text, "listening fs 127.0.0.1:", 23), 0);
	snprintf(want, sizeof(want), " vl 127.0.0.1:%u vol 127.0.0.1:%u",
		 fsd_server_vl_port(server), fsd_server_vol_port(server));
	ck_assert_str_eq(strstr(text, " vl "), want);
	teardown();
}
END_TEST

/* The port of the overseer exists only if it is wanted, and has the statistics of all ports, too. */
START_TEST(bos_port)
{
	char text[320], want[64], *name = NULL;
	rxw_connection *bos;

	setup(false);
	ck_assert_uint_eq(fsd_server_bos_port(server), 0);
	fsd_server_where(server, text, sizeof(text));
	ck_assert_ptr_null(strstr(text, " bos "));
	teardown();
	setup_with(NULL, true, true);
	fsd_server_where(server, text, sizeof(text));
	snprintf(want, sizeof(want), " bos 127.0.0.1:%u", fsd_server_bos_port(server));
	ck_assert_str_eq(strstr(text, " bos "), want);
	bos = connect_to(fsd_server_bos_port(server), AFS_SERVICE_BOS);
	ck_assert_int_eq(BOZO_EnumerateInstance(bos, 1, &name), 0);
	ck_assert_str_eq(name, "vlserver");
	free(name);
	/* Users and groups are not here. */
	ck_assert_int_eq(BOZO_EnumerateInstance(bos, 2, &name), AFS_BOS_DOMAIN);
	ck_assert_int_eq(calls_counted(fsd_server_fs_port(server), 1, BOZO_FN_EnumerateInstance),
			 2);
	rxw_connection_release(bos);
	teardown();
}
END_TEST

static void ask_fs(rxw_connection *connection)
{
	uint32_t seconds = 0, useconds = 0;

	ck_assert_int_eq(RXAFS_GetTime(connection, &seconds, &useconds), 0);
}

static void *drain_server(void *result)
{
	*(int *)result = fsd_server_drain(server);
	return NULL;
}

static int32_t ask_state(rxw_connection *bos)
{
	int32_t number = -1;
	char *text = NULL;

	ck_assert_int_eq(BOZO_GetStatus(bos, "fs", &number, &text), 0);
	free(text);
	return number;
}

/* A call that has not ended keeps the server from stopping, and the overseer's port says so meanwhile. */
START_TEST(bos_while_stopping)
{
	rxw_connection *bos, *fs;
	pthread_t thread;
	int aborted = -1;
	rxw_call *call;

	setup_with(NULL, false, true);
	bos = connect_to(fsd_server_bos_port(server), AFS_SERVICE_BOS);
	fs = connect_to(fsd_server_fs_port(server), AFS_SERVICE_FS);
	ck_assert_int_eq(ask_state(bos), BOZO_RUNNING);
	/* The request stops within its opcode. The call after it arrives behind it. */
	ask_fs(fs);
	ck_assert_int_eq(rxw_call_begin(fs, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, "", 1), 1);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	ask_fs(fs);
	ck_assert_int_eq(pthread_create(&thread, NULL, drain_server, &aborted), 0);
	while (ask_state(bos) == BOZO_RUNNING)
		;
	ck_assert_int_eq(ask_state(bos), BOZO_STOPPING);
	rxw_call_abort(call, 1);
	rxw_call_end(call, 0, NULL);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(aborted, 0);
	rxw_connection_release(fs);
	rxw_connection_release(bos);
	teardown();
}
END_TEST

static void ask_vl(rxw_connection *connection)
{
	ck_assert_int_eq(VL_ProbeServer(connection), 0);
}

static void ask_vol(rxw_connection *connection)
{
	volEntries list = {0};

	ck_assert_int_eq(AFSVolListVolumes(connection, 0, 1, &list), 0);
	xdrfree_volEntries(&list);
}

/* Each service with a caller that uses no other. */
START_TEST(callers)
{
	static const struct {
		void (*ask)(rxw_connection *connection);
		uint16_t (*port)(const struct fsd_server *server);
		uint16_t service;
		uint8_t index;
		const char *name, *class;
	} cases[] = {
		{ask_fs, fsd_server_fs_port, AFS_SERVICE_FS, RXW_RXKAD_INDEX, "ann@R", "rxkad"},
		{ask_vl, fsd_server_vl_port, AFS_SERVICE_VL, RXW_RXKAD_INDEX, "bob@R", "rxkad"},
		{ask_vol, fsd_server_vol_port, AFS_SERVICE_VOL, RXW_RXKAD_INDEX, "cid@R", "rxkad"},
		{ask_fs, fsd_server_fs_port, AFS_SERVICE_FS, RXW_RXGK_INDEX, "dan@R", "rxgk"},
		{ask_vl, fsd_server_vl_port, AFS_SERVICE_VL, RXW_RXGK_INDEX, "eve@R", "rxgk"},
		{ask_vol, fsd_server_vol_port, AFS_SERVICE_VOL, RXW_RXGK_INDEX, "fay@R", "rxgk"},
	};
	char *folder = test_folder(), *text, why[256], want[64];
	char keytab[256];
	struct test_capture capture;
	rxw_keys *keys;

	snprintf(keytab, sizeof(keytab), "%s/keys", folder);
	ck_assert_msg(tools_make_keys(keytab, why, sizeof(why)) == 0, "%s", why);
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_msg(rxw_keys_load(keys, keytab, NULL, why, sizeof(why)) == 0, "%s", why);
	setup_with(keytab, false, false);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rxw_token_options o = {.size = sizeof(o),
					      .source = RXW_TOKEN_LOCAL,
					      .index = cases[i].index,
					      .level = RXW_LEVEL_CRYPT,
					      .client = cases[i].name,
					      .keys = keys};
		rxw_connection *connection;
		rxw_token *token;

		ck_assert_msg(rxw_token_create(&o, &token, why, sizeof(why)) == 0, "%s", why);
		connection = connect_as(cases[i].port(server), cases[i].service,
					rxw_token_security(token));
		test_capture(&capture, 2);
		cases[i].ask(connection);
		cases[i].ask(connection);
		text = test_captured(&capture);
		test_one_line(text);
		snprintf(want, sizeof(want), " is %s (%s, crypt)\n", cases[i].name, cases[i].class);
		ck_assert_msg(strstr(text, want) != NULL, "service %u: %s", cases[i].service, text);
		free(text);
		rxw_connection_release(connection);
		rxw_token_unref(token);
	}
	/* A caller that sends no identity is not logged. */
	test_capture(&capture, 2);
	call_each();
	text = test_captured(&capture);
	ck_assert_str_eq(text, "");
	free(text);
	rxw_keys_unref(keys);
	teardown();
	tree_remove(folder);
}
END_TEST

TEST_MAIN("services_net", counted, statistics_disabled, collection, listening_line, bos_port,
	  bos_while_stopping, callers)
