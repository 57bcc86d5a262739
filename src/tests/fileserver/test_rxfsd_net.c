/* SPDX-License-Identifier: BSD-2-Clause */
/* The complete server over loopback, called by a client with a callback service. */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rxwire/coder.h>
#include <rxwire/rxwire.h>

#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "afs/rxafscb.h"
#include "afs/uuid.h"
#include "afs/vl.h"
#include "base/wire.h"
#include "fileserver/server.h"
#include "tests/main.h"
#include "tests/support/ports.h"

#define BIG ((size_t)24 << 20)

static struct fsd_server *server;
static _Atomic(uint32_t)
	exported; /* the volume; the same after a restart, of which a client can hear before this program */
static struct fsd_settings settings;
static char *root, *state;
static rxw_engine *engine;

/* A client: a port, connections to both services, and the callbacks that it got. */
struct client {
	rxw_endpoint *endpoint;
	rxw_connection *fs, *vl;
	pthread_mutex_t lock;
	pthread_cond_t told;
	struct RXAFSCB_service callbacks;
	int older; /* 1: lacks TellMeAboutYourself, 2: lacks WhoAreYou, too */
	unsigned identified, inits, old_inits, breaks, forgets;
	struct rxw_uuid server_uuid;
	AFSFid broken[256];
	int refuse; /* abort every callback */
};

static uint8_t pattern(size_t i)
{
	return (uint8_t)((i * 2654435761u) >> 11);
}

static uint16_t wanted_port; /* 0: any */

static void start_server(void)
{
	struct rxw_config config;
	char message[FSD_MESSAGE_MAX];

	rxw_config_init(&config, sizeof(config));
	config.workers_max = 64;
	if (fsd_server_start(&settings, &config, &server, message))
		ck_abort_msg("%s", message);
	exported = fsd_server_volume_id(server);
}

static void make_tree(void)
{
	uint8_t *big = malloc(BIG);

	root = tree_make();
	state = test_folder();
	for (size_t i = 0; i < BIG; i++)
		big[i] = pattern(i);
	tree_file(root, "big", big, BIG, 0644);
	free(big);
	tree_text(root, "hello.txt", "hello, world\n");
	tree_text(root, "empty", "");
	tree_dir(root, "sub", 0755);
	tree_text(root, "sub/inner", "inner");
	tree_link(root, "link", "sub/inner");
	tree_file(root, "secret", "s", 1, 0600);
	tree_tick();
}

static void setup(void)
{
	make_tree();
	settings = (struct fsd_settings){
		.export = root,
		.volume = "data",
		.listen = "127.0.0.1",
		.port = wanted_port,
		.state = state,
		.readers = 4,
		.read_ahead = 8 << 20,
		.watches = 100,
		.promises = 1000,
		.drain_ms = 60000,
	};
	start_server();
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	tree_remove(root);
	tree_remove(state);
}

/* -- the client's own service -- */

/* Counts a callback: the client answers normally, or aborts. */
static int32_t heard(struct client *client, unsigned *counter)
{
	int32_t code;

	pthread_mutex_lock(&client->lock);
	++*counter;
	code = client->refuse ? 1 : 0;
	pthread_cond_broadcast(&client->told);
	pthread_mutex_unlock(&client->lock);
	return code;
}

static int32_t tell_about(void *context, rxw_call *call, interfaceAddr *addr, Capabilities *caps)
{
	struct client *client = context;

	(void)call;
	if (client->older)
		return RXW_RPC_OPCODE;
	memset(&addr->uuid, 7, sizeof(addr->uuid));
	caps->val = calloc(1, sizeof(*caps->val));
	caps->val[0] = CLIENT_CAPABILITY_ERRORTRANS;
	caps->len = 1;
	return heard(client, &client->identified);
}

static int32_t who_are_you(void *context, rxw_call *call, interfaceAddr *addr)
{
	struct client *client = context;

	(void)call;
	if (client->older > 1)
		return RXW_RPC_OPCODE;
	memset(&addr->uuid, 7, sizeof(addr->uuid));
	return heard(client, &client->identified);
}

static int32_t init_state3(void *context, rxw_call *call, const struct rxw_uuid *server_uuid)
{
	struct client *client = context;

	(void)call;
	pthread_mutex_lock(&client->lock);
	client->server_uuid = *server_uuid;
	pthread_mutex_unlock(&client->lock);
	return heard(client, &client->inits);
}

static int32_t init_state(void *context, rxw_call *call)
{
	struct client *client = context;

	(void)call;
	return heard(client, &client->old_inits);
}

static int32_t broken(void *context, rxw_call *call, const AFSCBFids *fids, const AFSCBs *cbs)
{
	struct client *client = context;

	(void)call;
	ck_assert_uint_eq(cbs->len, 0);
	for (uint32_t i = 0; i < fids->len; i++) {
		if (fids->val[i].Vnode == 0) { /* the whole volume: part of the initial exchange */
			ck_assert_uint_eq(fids->val[i].Volume, exported);
			heard(client, &client->forgets);
			continue;
		}
		pthread_mutex_lock(&client->lock);
		ck_assert_uint_lt(client->breaks, 256);
		client->broken[client->breaks] = fids->val[i];
		pthread_mutex_unlock(&client->lock);
		heard(client, &client->breaks);
	}
	return client->refuse ? 1 : 0;
}

static const struct RXAFSCB_handlers client_handlers = {
	.CallBack = broken,
	.InitCallBackState = init_state,
	.InitCallBackState3 = init_state3,
	.WhoAreYou = who_are_you,
	.TellMeAboutYourself = tell_about,
};

static rxw_connection *connect_to(struct client *client, uint16_t port, uint16_t service)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	rxw_connection *connection;

	ck_assert_int_eq(rxw_connection_create(client->endpoint, (struct sockaddr *)&sa, sizeof(sa),
					       service, NULL, &connection),
			 0);
	return connection;
}

static void client_open_as(struct client *client, bool with_service, int older)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&sa, .address_len = sizeof(sa)};
	struct rxw_service_options service = {.size = sizeof(service),
					      .id = AFS_SERVICE_CB,
					      .name = "cb",
					      .handler = RXAFSCB_ExecuteRequest,
					      .context = &client->callbacks};
	rxw_service *added;

	memset(client, 0, sizeof(*client));
	client->older = older;
	client->callbacks.base.context = client;
	client->callbacks.handlers = &client_handlers;
	pthread_mutex_init(&client->lock, NULL);
	pthread_cond_init(&client->told, NULL);
	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &client->endpoint), 0);
	if (with_service)
		ck_assert_int_eq(rxw_service_add(client->endpoint, &service, &added), 0);
	client->fs = connect_to(client, fsd_server_fs_port(server), AFS_SERVICE_FS);
	client->vl = connect_to(client, fsd_server_vl_port(server), AFS_SERVICE_VL);
}

static void client_open(struct client *client, bool with_service)
{
	client_open_as(client, with_service, 0);
}

static void client_close(struct client *client)
{
	rxw_connection_release(client->fs);
	rxw_connection_release(client->vl);
	ck_assert_int_eq(rxw_endpoint_destroy(client->endpoint), 0);
}

/* Waits until `*counter` is at least `want`; the deadline only turns a hang into a failure. */
static bool wait_for(struct client *client, const unsigned *counter, unsigned want)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30;
	pthread_mutex_lock(&client->lock);
	while (*counter < want && rc == 0)
		rc = pthread_cond_timedwait(&client->told, &client->lock, &until);
	bool reached = *counter >= want;

	pthread_mutex_unlock(&client->lock);
	return reached;
}

/* -- calls -- */

struct request {
	uint8_t bytes[2048];
	struct rxw_xdr x;
};

static struct rxw_xdr *begin(struct request *r, uint32_t opcode)
{
	rxw_xdr_writer(&r->x, r->bytes, sizeof(r->bytes));
	rxw_xdr_put_u32(&r->x, opcode);
	return &r->x;
}

/*
 * Makes a call. The reply goes to `reply` (of *length bytes, which becomes the received length).
 * Returns the code.
 */
static int32_t rpc(rxw_connection *connection, struct request *r, void *reply, size_t *length)
{
	size_t got = 0, room = length ? *length : 0;
	rxw_call *call;
	ssize_t n;

	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, r->bytes, rxw_xdr_used(&r->x)),
			 (ssize_t)rxw_xdr_used(&r->x));
	rxw_call_send_end(call);
	while (got < room && (n = rxw_call_read(call, (uint8_t *)reply + got, room - got)) > 0)
		got += (size_t)n;
	if (length)
		*length = got;
	return rxw_call_end(call, 0, NULL);
}

static int32_t fetch_status(struct client *client, AFSFid fid, AFSFetchStatus *status,
			    AFSCallBack *cb)
{
	AFSVolSync sync;

	return RXAFS_FetchStatus(client->fs, &fid, status, cb, &sync);
}

/* Fetches into memory: the data, and the status after them. */
static int32_t fetch(struct client *client, AFSFid fid, uint64_t offset, uint64_t length,
		     uint8_t *data, size_t *got, AFSFetchStatus *status)
{
	uint8_t word[8], more;
	AFSVolSync sync;
	AFSCallBack cb;
	rxw_call *call;
	uint64_t count;
	int32_t code = RXW_RPC_CC_UNMARSHAL;

	ck_assert_int_eq(rxw_call_begin(client->fs, NULL, &call), 0);
	ck_assert_int_eq(StartRXAFS_FetchData64(call, &fid, (int64_t)offset, (int64_t)length), 0);
	if (rxw_call_read(call, word, 8) == 8) {
		count = rxw_xdr_load64(word);
		ck_assert_uint_le(count, length);
		if (rxw_call_read(call, data, (size_t)count) == (ssize_t)count) {
			*got = (size_t)count;
			code = EndRXAFS_FetchData64(call, status, &cb, &sync);
			if (!code)
				ck_assert_int_le(rxw_call_read(call, &more, 1), 0);
		}
	}
	return rxw_call_end(call, code, NULL);
}

static AFSFid fid_of(struct client *client, const char *path)
{
	AFSFid fid = {fsd_server_volume_id(server), 1, 1};
	char *copy = strdup(path), *save = NULL;

	for (char *name = strtok_r(copy, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		uint8_t *image = malloc(1 << 20);
		AFSFetchStatus status;
		size_t length;

		ck_assert_int_eq(fetch(client, fid, 0, 1 << 20, image, &length, &status), 0);
		ck_assert_uint_eq(length, afs_status_length(&status));
		ck_assert_int_eq(afs_dir_check(image, length), 0);
		ck_assert_int_eq(afs_dir_lookup(image, length, name, &fid.Vnode, &fid.Unique), 1);
		free(image);
	}
	free(copy);
	return fid;
}

/* -- the tests -- */

START_TEST(mount_sequence)
{
	ListAddrByAttributes query = {.Mask = AFS_VL_BY_UUID};
	int32_t unique, count;
	struct rxw_uuid uuid;
	struct client client;
	struct request r;
	uvldbentry entry;
	bulkaddrs addrs;
	Capabilities caps;
	AFSFetchStatus status;
	AFSCallBack cb;

	setup();
	client_open(&client, true);
	begin(&r, 65537); /* a location service's GetCapabilities */
	ck_assert_int_eq(rpc(client.vl, &r, NULL, NULL), RXW_RPC_OPCODE);
	ck_assert_int_eq(VL_GetEntryByNameU(client.vl, "root.cell", &entry), 0);
	ck_assert_int_eq(entry.nServers, 1);
	ck_assert_uint_eq(entry.volumeId[1], fsd_server_volume_id(server));

	query.uuid = entry.serverNumber[0];
	ck_assert_int_eq(VL_GetAddrsU(client.vl, &query, &uuid, &unique, &count, &addrs), 0);
	ck_assert_uint_eq(addrs.len, 1);
	ck_assert_uint_eq(addrs.val[0], INADDR_LOOPBACK);
	ck_assert_int_eq(unique, entry.serverUnique[0]);
	xdrfree_bulkaddrs(&addrs);

	ck_assert_int_eq(RXAFS_GetCapabilities(client.fs, &caps), 0);
	ck_assert_uint_eq(caps.len, 1);
	ck_assert_uint_eq(caps.val[0], 7);
	xdrfree_Capabilities(&caps);
	ck_assert(wait_for(&client, &client.inits, 1));
	ck_assert_uint_eq(client.identified, 1);
	ck_assert(afs_uuid_same(&client.server_uuid, &entry.serverNumber[0]));

	AFSFid rootfid = {entry.volumeId[1], 1, 1};

	ck_assert_int_eq(fetch_status(&client, rootfid, &status, &cb), 0);
	ck_assert_uint_eq(status.FileType, AFS_TYPE_DIR);
	client_close(&client);
	teardown();
}
END_TEST

/* Clients without the newer calls are reset by an older one. */
START_TEST(older_clients)
{
	AFSFetchStatus status;
	struct client client;
	AFSCallBack cb;

	setup();
	for (int older = 1; older <= 2; older++) {
		AFSFid rootfid = {fsd_server_volume_id(server), 1, 1};

		client_open_as(&client, true, older);
		do {
			ck_assert_int_eq(fetch_status(&client, rootfid, &status, &cb), 0);
		} while (cb.ExpirationTime == 0);
		ck_assert_uint_eq(client.identified, older == 1);
		ck_assert_uint_eq(client.inits, older == 1);
		ck_assert_uint_eq(client.old_inits, older == 2);
		client_close(&client);
	}
	teardown();
}
END_TEST

START_TEST(whole_file_intact)
{
	uint8_t *data = malloc(BIG + 200);
	struct client client;
	AFSFetchStatus status;
	AFSFid fid;
	size_t got;

	setup();
	client_open(&client, false);
	fid = fid_of(&client, "big");
	ck_assert_int_eq(fetch(&client, fid, 0, BIG + 100, data, &got, &status), 0);
	ck_assert_uint_eq(got, BIG);
	ck_assert_uint_eq(afs_status_length(&status), BIG);
	for (size_t i = 0; i < BIG; i++)
		if (data[i] != pattern(i))
			ck_abort_msg("byte %zu differs", i);
	/* pieces, also at and beyond the end */
	for (uint64_t offset = 1; offset < BIG + 1000000; offset = offset * 5 + 77777) {
		ck_assert_int_eq(fetch(&client, fid, offset, 131072, data, &got, &status), 0);
		ck_assert_uint_eq(got, offset >= BIG	       ? 0
				       : BIG - offset < 131072 ? BIG - offset
							       : 131072);
		for (size_t i = 0; i < got; i++)
			ck_assert_uint_eq(data[i], pattern((size_t)offset + i));
	}
	ck_assert_int_eq(fetch(&client, fid_of(&client, "empty"), 0, 100, data, &got, &status), 0);
	ck_assert_uint_eq(got, 0);
	ck_assert_int_eq(fetch(&client, fid_of(&client, "link"), 0, 100, data, &got, &status), 0);
	ck_assert_uint_eq(got, 9);
	ck_assert_mem_eq(data, "sub/inner", 9);
	client_close(&client);
	teardown();
	free(data);
}
END_TEST

START_TEST(change_breaks_promise)
{
	struct client client;
	AFSFetchStatus status;
	AFSCallBack cb;
	AFSFid fid;
	uint64_t version;

	setup();
	client_open(&client, true);
	fid = fid_of(&client, "hello.txt");
	ck_assert(wait_for(&client, &client.inits, 1));
	/* allowed once the server has processed our answer */
	do {
		ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), 0);
	} while (cb.ExpirationTime == 0);
	ck_assert_uint_ge(cb.ExpirationTime, 60);
	ck_assert_uint_eq(cb.CallBackType, CB_SHARED);
	version = afs_status_version(&status);
	tree_text(root, "hello.txt", "hello, other world\n");
	ck_assert(wait_for(&client, &client.breaks, 1));
	ck_assert_mem_eq(&client.broken[0], &fid, sizeof(fid));
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), 0);
	ck_assert_uint_gt(afs_status_version(&status), version);
	ck_assert_uint_gt(cb.ExpirationTime, 0);
	/* a promise that was given up causes no callback */
	ck_assert_int_eq(RXAFS_GiveUpAllCallBacks(client.fs), 0);
	tree_text(root, "hello.txt", "hello, third world\n");
	ck_assert_int_eq(fetch_status(&client, fid_of(&client, "sub"), &status, &cb), 0);
	tree_tick();
	tree_text(root, "sub/new", "");
	ck_assert(wait_for(&client, &client.breaks, 2));
	for (unsigned i = 1; i < client.breaks; i++)
		ck_assert_uint_ne(client.broken[i].Vnode, fid.Vnode);
	client_close(&client);
	teardown();
}
END_TEST

START_TEST(client_without_callbacks)
{
	struct client client;
	AFSFetchStatus status;
	AFSCallBack cb;

	setup();
	client_open(&client, false);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(fetch_status(&client, (AFSFid){fsd_server_volume_id(server), 1, 1},
					      &status, &cb),
				 0);
		ck_assert_uint_eq(cb.ExpirationTime, 0);
	}
	client_close(&client);
	teardown();
}
END_TEST

START_TEST(errors_on_the_wire)
{
	AFSFid fid = {0, 1, 1};
	struct client client;
	AFSFetchStatus status;
	AFSCallBack cb;
	struct request r;

	setup();
	client_open(&client, false);
	begin(&r, RXAFS_OP_GetCapabilities);
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), 0);
	begin(&r, 9999);
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), RXW_RPC_OPCODE);
	rxw_xdr_writer(&r.x, r.bytes, sizeof(r.bytes));
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), RXW_RPC_DECODE);
	begin(&r, RXAFS_OP_FetchStatus);
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), rxw_code_from_errno(EINVAL));
	fid.Volume = 77;
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), AFS_VNOVOL);
	fid.Volume = fsd_server_volume_id(server);
	fid.Vnode = 4444;
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), AFS_VNOVNODE);
	fid = fid_of(&client, "secret");
	ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), 0);
	ck_assert_uint_eq(status.CallerAccess, AFS_RIGHT_LOOKUP);
	ck_assert_uint_eq(afs_status_length(&status), 1);
	/* a store is refused before its data have arrived */
	xdr_put_AFSFid(begin(&r, RXAFS_OP_StoreData64), &fid);
	for (int i = 0; i < 6 + 6; i++)
		rxw_xdr_put_u32(&r.x, 0x10000);
	ck_assert_int_eq(rpc(client.fs, &r, NULL, NULL), rxw_code_from_errno(EROFS));
	client_close(&client);
	teardown();
}
END_TEST

/* One byte, without a change of the length. */
static void overwrite(const char *path, off_t offset)
{
	int fd = open(path, O_WRONLY);

	ck_assert_int_eq(pwrite(fd, "!", 1, offset), 1);
	close(fd);
}

/* The file is changed while it is sent: the call must fail, whatever has arrived. */
START_TEST(change_during_fetch_aborts)
{
	struct client client;
	uint8_t *piece = malloc(65536);
	struct request r;
	AFSFid fid;
	rxw_call *call;
	size_t got = 0;
	ssize_t n;

	setup();
	client_open(&client, false);
	fid = fid_of(&client, "big");
	for (int round = 0; round < 3; round++) {
		xdr_put_AFSFid(begin(&r, RXAFS_OP_FetchData64), &fid);
		rxw_xdr_put_u64(&r.x, 0);
		rxw_xdr_put_u64(&r.x, BIG);
		ck_assert_int_eq(rxw_call_begin(client.fs, NULL, &call), 0);
		ck_assert_int_gt(rxw_call_write(call, r.bytes, rxw_xdr_used(&r.x)), 0);
		rxw_call_send_end(call);
		got = 0;
		while (got < 65536 && (n = rxw_call_read(call, piece, 65536 - got)) > 0)
			got += (size_t)n;
		ck_assert_uint_eq(got, 65536);
		/*
		 * 12 MiB and more do not fit in the queues of both ends: the server is still
		 * reading
		 */
		if (round == 0)
			ck_assert_int_eq(truncate(tree_path(root, "big"), BIG / 2), 0);
		else if (round == 1)
			overwrite(tree_path(root, "big"), BIG / 2 - 1);
		else
			ck_assert_int_eq(unlink(tree_path(root, "big")), 0);
		while ((n = rxw_call_read(call, piece, 65536)) > 0)
			got += (size_t)n;
		ck_assert_int_ne(rxw_call_end(call, 0, NULL), 0);
	}
	client_close(&client);
	teardown();
	free(piece);
}
END_TEST

struct load {
	pthread_t thread;
	struct client *client;
	AFSFid fid;
	uint64_t offset;
	bool ok;
};

static void *load_main(void *arg)
{
	struct load *load = arg;
	uint8_t *data = malloc(2 << 20);
	AFSFetchStatus status;
	size_t got = 0;

	load->ok = true;
	for (int i = 0; i < 3 && load->ok; i++) {
		load->ok = fetch(load->client, load->fid, load->offset, 1 << 20, data, &got,
				 &status) == 0 &&
			   got == 1 << 20;
		for (size_t j = 0; load->ok && j < got; j++)
			load->ok = data[j] == pattern((size_t)load->offset + j);
	}
	free(data);
	return NULL;
}

START_TEST(many_at_once)
{
	struct client clients[6];
	struct load loads[24];
	AFSFid fid;

	setup();
	for (int i = 0; i < 6; i++)
		client_open(&clients[i], i & 1);
	fid = fid_of(&clients[0], "big");
	for (int i = 0; i < 24; i++) {
		loads[i] = (struct load){
			.client = &clients[i % 6], .fid = fid, .offset = (uint64_t)i * 950000};
		ck_assert_int_eq(pthread_create(&loads[i].thread, NULL, load_main, &loads[i]), 0);
	}
	for (int i = 0; i < 24; i++) {
		pthread_join(loads[i].thread, NULL);
		ck_assert_msg(loads[i].ok, "load %d", i);
	}
	for (int i = 0; i < 6; i++)
		client_close(&clients[i]);
	teardown();
}
END_TEST

START_TEST(restart_keeps_identity)
{
	struct client client;
	AFSFid before, after;
	uint32_t volume;
	struct rxw_uuid uuid;

	setup();
	client_open(&client, true);
	before = fid_of(&client, "sub/inner");
	volume = fsd_server_volume_id(server);
	ck_assert(wait_for(&client, &client.inits, 1));
	uuid = client.server_uuid;
	client_close(&client);
	ck_assert_int_eq(fsd_server_stop(server), 0);

	start_server();
	ck_assert_uint_eq(fsd_server_volume_id(server), volume);
	client_open(&client, true);
	after = fid_of(&client, "sub/inner");
	ck_assert_mem_eq(&before, &after, sizeof(after));
	ck_assert(wait_for(&client, &client.inits, 1));
	ck_assert(wait_for(&client, &client.forgets, 1));
	ck_assert(afs_uuid_same(&uuid, &client.server_uuid));
	client_close(&client);
	teardown();
}
END_TEST

/* The server reports its restart also to a client that makes no calls. */
START_TEST(restart_resets_clients)
{
	struct client client;
	AFSFetchStatus status;
	AFSCallBack cb;
	AFSVolSync before, after;
	AFSFid fid;

	wanted_port = choose_port();
	setup();
	client_open(&client, true);
	fid = fid_of(&client, "hello.txt");
	do {
		ck_assert_int_eq(fetch_status(&client, fid, &status, &cb), 0);
	} while (cb.ExpirationTime == 0);
	ck_assert(wait_for(&client, &client.forgets, 1));
	ck_assert_int_eq(RXAFS_FetchStatus(client.fs, &fid, &status, &cb, &before), 0);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	start_server();
	ck_assert(wait_for(&client, &client.inits, 2));
	ck_assert(wait_for(&client, &client.forgets, 2));
	/* Clients recognise a new release of a read-only volume, even within the same second. */
	ck_assert_int_eq(RXAFS_FetchStatus(client.fs, &fid, &status, &cb, &after), 0);
	ck_assert_uint_gt(after.spare1, before.spare1);
	client_close(&client);
	teardown();
}
END_TEST

static void *stop_main(void *arg)
{
	int *rc = arg;

	*rc = fsd_server_stop(server);
	return NULL;
}

/* A call in progress when the server stops is completed; new ones are refused. */
START_TEST(drain_completes_calls)
{
	struct client client;
	uint8_t *data = malloc(BIG + 200);
	struct request r, r2;
	AFSFid fid;
	pthread_t stopper;
	rxw_call *call;
	size_t got = 0;
	int rc = -1;
	int32_t code;
	ssize_t n;

	setup();
	client_open(&client, false);
	fid = fid_of(&client, "big");
	xdr_put_AFSFid(begin(&r, RXAFS_OP_FetchData64), &fid);
	rxw_xdr_put_u64(&r.x, 0);
	rxw_xdr_put_u64(&r.x, BIG);
	ck_assert_int_eq(rxw_call_begin(client.fs, NULL, &call), 0);
	ck_assert_int_gt(rxw_call_write(call, r.bytes, rxw_xdr_used(&r.x)), 0);
	rxw_call_send_end(call);
	while (got < 65536 && (n = rxw_call_read(call, data + got, 65536 - got)) > 0)
		got += (size_t)n;
	ck_assert_int_eq(pthread_create(&stopper, NULL, stop_main, &rc), 0);
	do {
		begin(&r2, RXAFS_OP_GetTime);
		code = rpc(client.fs, &r2, NULL, NULL);
		ck_assert(code == 0 || code == RXW_RESTARTING);
	} while (code == 0);
	while (got < BIG + 200 && (n = rxw_call_read(call, data + got, BIG + 200 - got)) > 0)
		got += (size_t)n;
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	ck_assert_uint_eq(got, 8 + BIG + 120);
	for (size_t i = 0; i < BIG; i++)
		if (data[8 + i] != pattern(i))
			ck_abort_msg("byte %zu differs", i);
	client_close(&client);
	pthread_join(stopper, NULL);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	tree_remove(root);
	tree_remove(state);
	free(data);
}
END_TEST

#define KINDS 45u /* opcodes of calls to the file service */

/* One packet from its own port, which then stays silent. */
static int ask_once(uint32_t opcode)
{
	/* epoch, cid, call, seq, serial; type, flags, status, index; service */
	const uint32_t words[] = {0x80000000u | opcode,
				  opcode << 2,
				  1,
				  1,
				  1,
				  (uint32_t)RXW_DATA << 24 |
					  (RXW_CLIENT_INITIATED | RXW_LAST_PACKET) << 16,
				  AFS_SERVICE_FS,
				  opcode};
	uint8_t packet[sizeof(words)];
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(fsd_server_fs_port(server)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		rxw_put32(packet + 4 * i, words[i]);
	ck_assert_int_eq(sendto(fd, packet, sizeof(packet), 0, (struct sockaddr *)&to, sizeof(to)),
			 sizeof(packet));
	return fd;
}

/*
 * The server calls its clients back, but only after they have answered a packet: one packet with
 * another host's address draws at most three times its bytes, calls to that host included.
 */
START_TEST(silent_addresses_are_not_called)
{
	const size_t sent = RXW_HEADER_SIZE + 4 + 28;
	struct rxw_config config;
	char message[FSD_MESSAGE_MAX];
	uint8_t packet[2048];
	size_t got[KINDS];
	int fd[KINDS];

	make_tree();
	settings = (struct fsd_settings){.export = root,
					 .volume = "data",
					 .listen = "127.0.0.1",
					 .state = state,
					 .drain_ms = 60000,
					 .promises = 1000};
	rxw_config_init(&config, sizeof(config));
	config.dead_ms = 1000;
	ck_assert_msg(!fsd_server_start(&settings, &config, &server, message), "%s", message);
	for (unsigned i = 0; i < KINDS; i++)
		fd[i] = ask_once(130 + i);
	for (unsigned i = 0; i < KINDS; i++)
		got[i] = (size_t)recv(fd[i], packet, sizeof(packet), 0) + 28;
	/* The calls time out, and with them all packets that could still be sent. */
	ck_assert_int_eq(fsd_server_stop(server), 0);
	for (unsigned i = 0; i < KINDS; i++) {
		ssize_t n;

		while ((n = recv(fd[i], packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
			got[i] += (size_t)n + 28;
			ck_assert_msg(!(packet[21] & RXW_CLIENT_INITIATED),
				      "procedure %u: the server called its caller", 130 + i);
		}
		ck_assert_msg(got[i] <= 3 * sent, "procedure %u: %zu bytes for %zu", 130 + i,
			      got[i], sent);
		close(fd[i]);
	}
	tree_remove(root);
	tree_remove(state);
}
END_TEST

START_TEST(bad_settings_reported)
{
	struct rxw_config config;
	char message[FSD_MESSAGE_MAX];
	struct fsd_settings bad;
	struct fsd_server *none;

	setup();
	rxw_config_init(&config, sizeof(config));
	/* the state directory is in use */
	ck_assert_int_eq(fsd_server_start(&settings, &config, &none, message), -1);
	ck_assert_ptr_nonnull(strstr(message, state));
	ck_assert_ptr_nonnull(strstr(message, "--state"));
	bad = settings;
	bad.state = tree_path(root, "inside");
	ck_assert_int_eq(fsd_server_start(&bad, &config, &none, message), FSD_WRONG_SETTINGS);
	ck_assert_ptr_nonnull(strstr(message, "inside the export"));
	bad = settings;
	bad.export = "/nonexistent/place";
	ck_assert_int_eq(fsd_server_start(&bad, &config, &none, message), FSD_WRONG_SETTINGS);
	ck_assert_ptr_nonnull(strstr(message, "/nonexistent/place"));
	bad = settings;
	bad.volume = "1234";
	ck_assert_int_eq(fsd_server_start(&bad, &config, &none, message), FSD_WRONG_SETTINGS);
	ck_assert_ptr_nonnull(strstr(message, "1234"));

	char *other = test_folder();

	bad = settings;
	bad.state = other;
	bad.port = fsd_server_fs_port(server);
	ck_assert_int_eq(fsd_server_start(&bad, &config, &none, message), -1);
	ck_assert_ptr_nonnull(strstr(message, "in use"));
	ck_assert_ptr_nonnull(strstr(message, "--port"));
	tree_remove(other);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "rxfsd", mount_sequence, older_clients, whole_file_intact,
		 change_breaks_promise, client_without_callbacks, errors_on_the_wire,
		 change_during_fetch_aborts, many_at_once, restart_keeps_identity,
		 restart_resets_clients, drain_completes_calls, silent_addresses_are_not_called,
		 bad_settings_reported)
