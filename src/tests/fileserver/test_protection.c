/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The complete server with keys: the calls it refuses, and the codes for callers with too little
 * protection.
 */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>

#include "afs/afsvol.h"
#include "afs/dir.h"
#include "afs/numbers.h"
#include "afs/vl.h"
#include "fileserver/server.h"
#include "tests/main.h"

#define ALICE	   "alice@TEST.EXAMPLE"
#define UAE_EACCES 49733388

static struct fsd_server *server;
static char *root, *state, *key_file;
static rxw_keys *keys;
static rxw_engine *engine;
static rxw_endpoint *endpoint;
static rxw_connection *open_connections[16];
static unsigned open_count;

/* `what`: --require, `allow`: up to two --allow; NULL: none. keys: whether the server has any. */
static void setup(bool with_keys, const char *what, const char *allow, const char *allow_too)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&sa, .address_len = sizeof(sa)};
	const char *const rules[] = {allow, allow_too};
	struct fsd_settings settings = {
		.volume = "data",
		.listen = "127.0.0.1",
		.readers = 2,
		.read_ahead = 8 << 20,
		.watches = 100,
		.promises = 1000,
		.drain_ms = 60000,
		.guard = {.require = &what,
			  .require_count = what != NULL,
			  .allow = rules,
			  .allow_count = (size_t)(allow != NULL) + (allow_too != NULL)},
	};
	char message[FSD_MESSAGE_MAX];
	struct rxw_config config;

	root = tree_make();
	state = test_folder();
	key_file = strdup(tree_path(state, "keys"));
	tree_text(root, "hello", "hello");
	tree_dir(root, "doc", 0755);
	tree_text(root, "doc/a.txt", "a");
	tree_text(root, "doc/b.c", "b");
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, 3, 18), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_RXGK, 3, 18), 0);
	ck_assert_int_eq(rxw_keys_write(keys, key_file, 0, message, sizeof(message)), 0);
	settings.export = root;
	settings.state = tree_path(state, "state");
	settings.guard.keytab = with_keys ? key_file : NULL;
	rxw_config_init(&config, sizeof(config));
	ck_assert_msg(fsd_server_start(&settings, &config, &server, message) == 0, "%s", message);
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &endpoint), 0);
}

static void teardown(void)
{
	while (open_count)
		rxw_connection_release(open_connections[--open_count]);
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	rxw_keys_unref(keys);
	free(key_file);
	tree_remove(root);
	tree_remove(state);
}

static rxw_connection *connect_with(enum fsd_service_kind kind, rxw_security *security)
{
	static const uint16_t services[] = {AFS_SERVICE_FS, AFS_SERVICE_VL, AFS_SERVICE_VOL};
	const uint16_t ports[] = {fsd_server_fs_port(server), fsd_server_vl_port(server),
				  fsd_server_vol_port(server)};
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(ports[kind]),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	rxw_connection *connection;

	ck_assert_int_eq(rxw_connection_create(endpoint, (struct sockaddr *)&sa, sizeof(sa),
					       services[kind], security, &connection),
			 0);
	rxw_security_unref(security);
	ck_assert_uint_lt(open_count, 16);
	open_connections[open_count++] = connection;
	return connection;
}

static rxw_connection *anonymous(enum fsd_service_kind kind)
{
	return connect_with(kind, NULL);
}

/* With a ticket for `name`, or for the service itself (NULL). */
static rxw_connection *kad(enum fsd_service_kind kind, const char *name, uint8_t level)
{
	return connect_with(kind, token_for_rxkad(keys, name, level));
}

static AFSFid root_fid(void)
{
	return (AFSFid){fsd_server_volume_id(server), 1, 1};
}

static int32_t status_of(rxw_connection *connection, AFSFid fid, AFSFetchStatus *status)
{
	AFSVolSync sync;
	AFSCallBack cb;

	return RXAFS_FetchStatus(connection, &fid, status, &cb, &sync);
}

/* A bulk status of one object; returns the call's code, or that of its entry. */
static int32_t bulk_of(rxw_connection *connection, AFSFid fid, AFSFetchStatus *status)
{
	AFSCBFids fids = {1, &fid};
	AFSBulkStats stats = {0};
	AFSVolSync sync;
	AFSCBs cbs = {0};
	int32_t code = RXAFS_InlineBulkStatus(connection, &fids, &stats, &cbs, &sync);

	if (!code) {
		ck_assert_uint_eq(stats.len, 1);
		ck_assert_uint_eq(cbs.len, 1);
		*status = stats.val[0];
		code = (int32_t)status->errorCode;
		if (code)
			ck_assert_uint_eq(cbs.val[0].ExpirationTime, 0);
	}
	xdrfree_AFSBulkStats(&stats);
	xdrfree_AFSCBs(&cbs);
	return code;
}

/* The FID of a path, and its status, as seen on a connection. */
static AFSFid find(rxw_connection *connection, const char *path, AFSFetchStatus *status)
{
	char *copy = strdup(path), *save = NULL;
	AFSFid fid = root_fid();
	AFSVolSync sync;
	AFSCallBack cb;
	uint8_t image[4096], word[8];

	for (char *name = strtok_r(copy, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		rxw_call *call;

		ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
		ck_assert_int_eq(StartRXAFS_FetchData64(call, &fid, 0, sizeof(image)), 0);
		ck_assert_int_eq(rxw_call_read(call, word, 8), 8);
		ck_assert_int_eq(rxw_call_read(call, image, 2048), 2048);
		ck_assert_int_eq(EndRXAFS_FetchData64(call, status, &cb, &sync), 0);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
		ck_assert_int_eq(afs_dir_lookup(image, 2048, name, &fid.Vnode, &fid.Unique), 1);
	}
	free(copy);
	ck_assert_int_eq(status_of(connection, fid, status), 0);
	return fid;
}

/*
 * Without a token the server refuses calls, not the connection; -2 in answer to a bulk status makes
 * Linux panic.
 */
START_TEST(anonymous_calls)
{
	static const char *const demands[] = {"clear", "auth", "crypt"};

	for (int i = 0; i < 3; i++) {
		AFSFetchVolumeStatus volume_status;
		char *name, *offline, *motd;
		AFSFetchStatus status;
		uint32_t seconds, us;
		Capabilities caps = {0};
		rxw_connection *fs;

		setup(true, demands[i], NULL, NULL);
		fs = anonymous(FSD_FS);
		/* Before any other call that a new client makes. */
		ck_assert_int_eq(status_of(fs, root_fid(), &status), EACCES);
		ck_assert_int_eq(bulk_of(fs, root_fid(), &status), UAE_EACCES);
		ck_assert_int_eq(status_of(fs, root_fid(), &status), UAE_EACCES);
		ck_assert_int_eq(RXAFS_GetTime(fs, &seconds, &us), 0);
		ck_assert_int_eq(RXAFS_GetCapabilities(fs, &caps), 0);
		ck_assert_uint_eq(caps.len, 1);
		xdrfree_Capabilities(&caps);
		ck_assert_int_eq(RXAFS_GiveUpAllCallBacks(fs), 0);
		ck_assert_int_eq(RXAFS_GetVolumeStatus(fs, (int32_t)root_fid().Volume,
						       &volume_status, &name, &offline, &motd),
				 0);
		free(name), free(offline), free(motd);
		teardown();
	}
}
END_TEST

START_TEST(locations_and_volumes)
{
	rxw_connection *vl, *vol;
	volEntries volumes = {0};
	nvldbentry entry;
	partEntries parts = {0};

	setup(true, "crypt", NULL, NULL);
	vl = anonymous(FSD_VL);
	vol = anonymous(FSD_VOL);
	ck_assert_int_eq(VL_GetEntryByNameN(vl, "data", &entry), AFS_VL_PERM);
	ck_assert_int_eq(VL_ProbeServer(vl), 0);
	ck_assert_int_eq(AFSVolListVolumes(vol, 0, 1, &volumes), AFS_VOL_BAD_ACCESS);
	/* A user whose calls have less protection gets a message about it. */
	ck_assert_int_eq(VL_GetEntryByNameN(kad(FSD_VL, ALICE, RXW_LEVEL_AUTH), "data", &entry),
			 RXW_RXKAD_LEVELFAIL);
	ck_assert_int_eq(AFSVolXListPartitions(kad(FSD_VOL, ALICE, RXW_LEVEL_AUTH), &parts),
			 RXW_RXKAD_LEVELFAIL);
	ck_assert_int_eq(VL_GetEntryByNameN(kad(FSD_VL, ALICE, RXW_LEVEL_CRYPT), "data", &entry),
			 0);
	/* The calls of vos -localauth. */
	ck_assert_int_eq(VL_GetEntryByNameN(kad(FSD_VL, NULL, RXW_LEVEL_CLEAR), "data", &entry), 0);
	ck_assert_int_eq(AFSVolListVolumes(kad(FSD_VOL, NULL, RXW_LEVEL_CLEAR), 0, 1, &volumes), 0);
	xdrfree_volEntries(&volumes);
	/* The files stay protected. */
	ck_assert_int_eq(
		status_of(kad(FSD_FS, NULL, RXW_LEVEL_CLEAR), root_fid(), &(AFSFetchStatus){0}),
		RXW_RXKAD_LEVELFAIL);
	teardown();
}
END_TEST

/* The users of a client share its cache: an anonymous user's rights count. */
START_TEST(anonymous_access)
{
	AFSFetchStatus status, bulk;
	rxw_connection *alice;
	AFSOpaque acl = {0};
	AFSVolSync sync;
	AFSFid fid;

	setup(true, "auth", NULL, NULL);
	alice = kad(FSD_FS, ALICE, RXW_LEVEL_AUTH);
	fid = find(alice, "hello", &status);
	ck_assert_uint_eq(status.CallerAccess, AFS_RIGHT_READ | AFS_RIGHT_LOOKUP | AFS_RIGHT_LOCK);
	ck_assert_uint_eq(status.AnonymousAccess, 0);
	ck_assert_int_eq(bulk_of(alice, fid, &bulk), 0);
	ck_assert_uint_eq(bulk.CallerAccess, status.CallerAccess);
	ck_assert_uint_eq(bulk.AnonymousAccess, 0);
	fid = root_fid();
	ck_assert_int_eq(RXAFS_FetchACL(alice, &fid, &acl, &status, &sync), 0);
	ck_assert_uint_eq(status.AnonymousAccess, 0);
	ck_assert_str_eq(acl.val, "2\n0\nsystem:authuser\t41\nsystem:anyuser\t0\n");
	xdrfree_AFSOpaque(&acl);
	teardown();

	setup(true, "none", NULL, NULL);
	find(kad(FSD_FS, ALICE, RXW_LEVEL_AUTH), "hello", &status);
	ck_assert_uint_eq(status.AnonymousAccess, status.CallerAccess);
	find(anonymous(FSD_FS), "hello", &status);
	ck_assert_uint_eq(status.AnonymousAccess, status.CallerAccess);
	teardown();
}
END_TEST

START_TEST(rules_and_rights)
{
	rxw_connection *alice, *nobody;
	AFSFetchStatus status;
	AFSFid fid;

	setup(true, "none", "anonymous /doc/*.txt", ALICE " /");
	alice = kad(FSD_FS, ALICE, RXW_LEVEL_AUTH);
	nobody = anonymous(FSD_FS);
	find(alice, "doc/a.txt", &status);
	ck_assert_uint_eq(status.CallerAccess, 41);
	ck_assert_uint_eq(status.AnonymousAccess, 41);
	fid = find(alice, "doc/b.c", &status);
	ck_assert_uint_eq(status.CallerAccess, 41);
	ck_assert_uint_eq(status.AnonymousAccess, 0);
	ck_assert_int_eq(status_of(nobody, fid, &status), UAE_EACCES);
	/* Clients also judge a file by the rights on its directory. */
	find(alice, "doc", &status);
	ck_assert_uint_eq(status.CallerAccess, 41);
	ck_assert_uint_eq(status.AnonymousAccess, AFS_RIGHT_LOOKUP);
	find(nobody, "doc", &status);
	ck_assert_uint_eq(status.CallerAccess, AFS_RIGHT_LOOKUP);
	find(nobody, "doc/a.txt", &status);
	ck_assert_uint_eq(status.CallerAccess, 41);
	teardown();
}
END_TEST

/*
 * A server without keys answers clients with a token that it has no such key. It does not refuse
 * the class.
 */
START_TEST(tokens_without_keys)
{
	AFSFetchStatus status;

	setup(false, "none", NULL, NULL);
	ck_assert_int_eq(bulk_of(kad(FSD_FS, ALICE, RXW_LEVEL_CRYPT), root_fid(), &status),
			 RXW_RXKAD_UNKNOWNKEY);
	int32_t code =
		bulk_of(connect_with(FSD_FS, token_for_rxgk(keys, ALICE)), root_fid(), &status);

	ck_assert_msg(code >= RXW_RXGK_INCONSISTENCY && code <= RXW_RXGK_SEALED_INCON, "code %d",
		      code);
	ck_assert_int_eq(bulk_of(anonymous(FSD_FS), root_fid(), &status), 0);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(60, "protection", anonymous_calls, locations_and_volumes, anonymous_access,
		 rules_and_rights, tokens_without_keys)
