/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: a store in a temporary folder, served on loopback, and clients with a callback service. */
#include "tests/fileserver/shop.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "afs/numbers.h"
#include "fileserver/callbacks/callbacks.h"
#include "fileserver/location/location.h"
#include "tests/support/counters.h"
#include "volume/store/upkeep.h"

/* -- the store -- */

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	printf("# store, level %d: %s\n", level, line);
}

void shop_make(struct shop *shop)
{
	struct store_options options = {.path = shop->path, .log = log_line};
	struct store_acl acl = {0};
	struct store_new_volume volume = {.name = "data", .owner = 100, .acl = &acl};
	char message[STORE_MESSAGE_MAX];

	memset(shop, 0, sizeof(*shop));
	shop->folder = test_folder();
	snprintf(shop->path, sizeof(shop->path), "%s/store", shop->folder);
	ck_assert_msg(store_make(&options, message) == 0, "%s", message);
	ck_assert_msg(store_open(&options, &shop->store, message) == 0, "%s", message);
	ck_assert_int_eq(store_acl_add(&acl, false, STORE_ANYUSER, STORE_ALL), 0);
	ck_assert_int_eq(store_volume_create(shop->store, &volume, &shop->volume), 0);
	pthread_mutex_init(&shop->lock, NULL);
	pthread_cond_init(&shop->changed, NULL);
}

void shop_open_on(struct shop *shop, struct store_layer *layer)
{
	struct store_options options = {.path = shop->path, .layer = layer, .log = log_line};
	char message[STORE_MESSAGE_MAX];

	shop->store->ops->close(shop->store);
	ck_assert_msg(store_open(&options, &shop->store, message) == 0, "%s", message);
}

static void fault(void *arg, const char *line)
{
	(void)arg;
	printf("# fault: %s\n", line);
	fflush(stdout);
}

/* -- the server -- */

static void wake(void *arg)
{
	struct shop *shop = arg;

	if (shop->callbacks)
		fsd_callbacks_wake(shop->callbacks);
	pthread_mutex_lock(&shop->lock);
	pthread_cond_broadcast(&shop->changed);
	pthread_mutex_unlock(&shop->lock);
}

static size_t volumes(void *arg, uint32_t after, uint32_t *ids, size_t max)
{
	struct shop *shop = arg;
	struct store_volume volume;
	size_t n = 0;

	while (n < max && shop->store->ops->volume_next(shop->store, after, &volume) == 0)
		after = ids[n++] = volume.id;
	return n;
}

static rxw_endpoint *open_endpoint(struct shop *shop, bool server)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .server = server,
					       .address = (void *)&sa,
					       .address_len = sizeof(sa)};
	rxw_endpoint *endpoint;

	ck_assert_int_eq(rxw_endpoint_create(shop->engine, &options, &endpoint), 0);
	return endpoint;
}

static rxw_endpoint *offer(struct shop *shop, uint16_t id, rxw_handler_fn handler,
			   enum fsd_service_kind kind)
{
	struct rxw_service_options options = {.size = sizeof(options),
					      .id = id,
					      .name = "test",
					      .handler = handler,
					      .context = shop->service};
	rxw_endpoint *endpoint = open_endpoint(shop, true);
	rxw_service *service;

	if (shop->guard)
		options.security = fsd_guard_classes(shop->guard, kind, &options.security_count);
	ck_assert_int_eq(rxw_service_add(endpoint, &options, &service), 0);
	return endpoint;
}

void shop_serve(struct shop *shop)
{
	struct fsd_clients_options clients = {.volumes = volumes,
					      .strict = true,
					      .hosts_max = 100,
					      .promises_max = 1000,
					      .wake = wake,
					      .arg = shop};
	struct fsd_service_options services = {.store = shop->store,
					       .audit = shop->audit,
					       .prot = shop->prot,
					       .guard = shop->guard,
					       .no_anonymous_writes = shop->no_anonymous_writes,
					       .cell = "test.cell"};
	char message[FSD_MESSAGE_MAX];
	struct rxw_config config;

	memset(&services.uuid, 0x42, sizeof(services.uuid));
	shop->clients = fsd_clients_create(&clients);
	shop->readers = fsd_readers_start(4, 8 << 20, NULL);
	services.clients = shop->clients;
	services.readers = shop->readers;
	shop->service = fsd_service_create(&services, message);
	ck_assert_ptr_nonnull(shop->service);
	rxw_config_init(&config, sizeof(config));
	config.listeners = 1;
	ck_assert_int_eq(rxw_engine_create(&config, &shop->engine), 0);
	shop->server = offer(shop, AFS_SERVICE_FS, fsd_fs_serve, FSD_FS);
	shop->vl = offer(shop, AFS_SERVICE_VL, fsd_vl_serve, FSD_VL);
	shop->vol = offer(shop, AFS_SERVICE_VOL, fsd_vol_serve, FSD_VOL);
	fsd_service_set_endpoint(shop->service, shop->server);
	shop->callbacks = fsd_callbacks_start(shop->server, shop->clients, &services.uuid);
	ck_assert_ptr_nonnull(shop->callbacks);
}

void shop_close(struct shop *shop)
{
	struct fsd_callbacks *callbacks = shop->callbacks;

	for (unsigned i = 0; i < SHOP_CLIENTS; i++) {
		if (!shop->client[i].endpoint)
			continue;
		shop_stick(&shop->client[i], false);
		rxw_connection_release(shop->client[i].fs);
	}
	rxw_endpoint_stop(shop->server, 0);
	fsd_service_settle(shop->service);
	fsd_callbacks_stop(callbacks);
	for (unsigned i = 0; i < SHOP_CLIENTS; i++)
		if (shop->client[i].endpoint)
			ck_assert_int_eq(rxw_endpoint_destroy(shop->client[i].endpoint), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(shop->server), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(shop->vl), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(shop->vol), 0);
	ck_assert_int_eq(rxw_engine_destroy(shop->engine), 0);
	fsd_service_destroy(shop->service);
	fsd_readers_stop(shop->readers);
	fsd_clients_destroy(shop->clients);
	ck_assert_int_eq(store_check(shop->store, &(struct store_checker){.each = fault}), 0);
	shop->store->ops->close(shop->store);
	tree_remove(shop->folder);
	pthread_cond_destroy(&shop->changed);
	pthread_mutex_destroy(&shop->lock);
}

/* -- callbacks of a client -- */

static int32_t count(struct shop_client *client, unsigned *counter)
{
	struct shop *shop = client->shop;

	pthread_mutex_lock(&shop->lock);
	while (client->stuck)
		pthread_cond_wait(&shop->changed, &shop->lock);
	++*counter;
	pthread_cond_broadcast(&shop->changed);
	pthread_mutex_unlock(&shop->lock);
	return 0;
}

static int32_t tell(void *context, rxw_call *call, interfaceAddr *addr, Capabilities *caps)
{
	struct shop_client *client = context;

	(void)call;
	addr->uuid = client->uuid;
	caps->val = calloc(1, sizeof(*caps->val));
	caps->val[0] = CLIENT_CAPABILITY_ERRORTRANS;
	caps->len = 1;
	return 0;
}

static int32_t init3(void *context, rxw_call *call, const struct rxw_uuid *uuid)
{
	struct shop_client *client = context;

	(void)call, (void)uuid;
	return count(client, &client->inits);
}

static int32_t broken(void *context, rxw_call *call, const AFSCBFids *fids, const AFSCBs *cbs)
{
	struct shop_client *client = context;
	struct shop *shop = client->shop;
	const unsigned room = sizeof(client->broken) / sizeof(client->broken[0]);

	(void)call, (void)cbs;
	pthread_mutex_lock(&shop->lock);
	while (client->stuck)
		pthread_cond_wait(&shop->changed, &shop->lock);
	for (uint32_t i = 0; client->up && i < fids->len; i++)
		client->broken[client->breaks++ % room] = fids->val[i];
	pthread_cond_broadcast(&shop->changed);
	pthread_mutex_unlock(&shop->lock);
	return 0;
}

static const struct RXAFSCB_handlers handlers = {
	.CallBack = broken,
	.InitCallBackState3 = init3,
	.TellMeAboutYourself = tell,
};

void shop_stick(struct shop_client *client, bool stuck)
{
	pthread_mutex_lock(&client->shop->lock);
	client->stuck = stuck;
	pthread_cond_broadcast(&client->shop->changed);
	pthread_mutex_unlock(&client->shop->lock);
}

unsigned shop_broken(struct shop_client *client, const AFSFid *fid)
{
	const unsigned room = sizeof(client->broken) / sizeof(client->broken[0]);
	unsigned n = 0;

	pthread_mutex_lock(&client->shop->lock);
	for (unsigned i = 0; i < client->breaks && i < room; i++)
		n += memcmp(&client->broken[i], fid, sizeof(*fid)) == 0;
	pthread_mutex_unlock(&client->shop->lock);
	return n;
}

void shop_reaches(struct shop *shop, const unsigned *counter, unsigned value)
{
	pthread_mutex_lock(&shop->lock);
	while (*counter < value)
		pthread_cond_wait(&shop->changed, &shop->lock);
	pthread_mutex_unlock(&shop->lock);
}

/* -- clients -- */

static rxw_connection *connect_to(struct shop_client *client, rxw_endpoint *server, uint16_t id)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);
	rxw_connection *connection;

	ck_assert_int_eq(rxw_endpoint_address(server, &sa, &length), 0);
	ck_assert_int_eq(rxw_connection_create(client->endpoint, (struct sockaddr *)&sa, length, id,
					       NULL, &connection),
			 0);
	return connection;
}

rxw_connection *shop_connect(struct shop *shop, unsigned i, uint16_t service)
{
	rxw_endpoint *to = service == AFS_SERVICE_FS   ? shop->server
			   : service == AFS_SERVICE_VL ? shop->vl
						       : shop->vol;

	return connect_to(shop_client(shop, i), to, service);
}

/* The first calls get no promise; wait until the client may have some. */
static void bring_up(struct shop_client *client)
{
	struct shop *shop = client->shop;
	struct fsd_clients_stats before, now;
	uint32_t s, us;

	fsd_clients_stats(shop->clients, &before);
	ck_assert_int_eq(RXAFS_GetTime(client->fs, &s, &us), 0);
	pthread_mutex_lock(&shop->lock);
	for (;;) {
		fsd_clients_stats(shop->clients, &now);
		if (now.hosts_up > before.hosts_up)
			break;
		pthread_cond_wait(&shop->changed, &shop->lock);
	}
	client->up = true;
	pthread_mutex_unlock(&shop->lock);
}

struct shop_client *shop_client(struct shop *shop, unsigned i)
{
	struct shop_client *client = &shop->client[i];
	struct rxw_service_options options = {.size = sizeof(options),
					      .id = AFS_SERVICE_CB,
					      .name = "cb",
					      .handler = RXAFSCB_ExecuteRequest,
					      .context = &client->service};
	rxw_service *service;

	if (client->endpoint)
		return client;
	client->shop = shop;
	memset(&client->uuid, (int)(1 + i), sizeof(client->uuid));
	client->service = (struct RXAFSCB_service){.base.context = client, .handlers = &handlers};
	client->endpoint = open_endpoint(shop, false);
	ck_assert_int_eq(rxw_service_add(client->endpoint, &options, &service), 0);
	client->fs = connect_to(client, shop->server, AFS_SERVICE_FS);
	bring_up(client);
	return client;
}

AFSFid shop_root(const struct shop *shop)
{
	return (AFSFid){shop->volume, 1, 1};
}

AFSFid shop_open(struct shop *shop, struct shop_client **a, struct shop_client **b)
{
	shop_make(shop);
	shop_serve(shop);
	*a = shop_client(shop, 0);
	*b = shop_client(shop, 1);
	return shop_root(shop);
}

void shop_await_idle(const struct shop *shop)
{
	while (counter_of(shop->server, "workers") != counter_of(shop->server, "workers_idle"))
		usleep(1000);
}

AFSFid shop_file(struct shop *shop, const AFSFid *dir, const char *name)
{
	const AFSStoreStatus set = {0};
	AFSFetchStatus st, dir_st;
	AFSCallBack cb;
	AFSVolSync sync;
	AFSFid fid;

	ck_assert_int_eq(RXAFS_CreateFile(shop_client(shop, 0)->fs, dir, name, &set, &fid, &st,
					  &dir_st, &cb, &sync),
			 0);
	return fid;
}

int32_t shop_put(struct shop_client *client, const AFSFid *fid, uint64_t pos, uint64_t length,
		 uint64_t file_length, const void *data, size_t sent, AFSFetchStatus *st)
{
	const AFSStoreStatus set = {.Mask = AFS_SETMODTIME, .ClientModTime = 1000000001};
	AFSFetchStatus status;
	AFSVolSync sync;
	rxw_call *call;
	int32_t code;

	ck_assert_int_eq(rxw_call_begin(client->fs, NULL, &call), 0);
	code = StartRXAFS_StoreData64(call, fid, &set, pos, length, file_length);
	if (!code && sent && rxw_call_write(call, data, sent) != (ssize_t)sent)
		code = RXW_RPC_CC_MARSHAL;
	if (!code)
		code = EndRXAFS_StoreData64(call, st ? st : &status, &sync);
	return rxw_call_end(call, code, NULL);
}

int64_t shop_get(struct shop_client *client, const AFSFid *fid, uint64_t pos, uint64_t length,
		 void *data, AFSFetchStatus *st, AFSCallBack *cb)
{
	AFSFetchStatus status;
	AFSCallBack promise;
	AFSVolSync sync;
	uint8_t head[8];
	rxw_call *call;
	uint64_t n = 0;
	int32_t code;

	ck_assert_int_eq(rxw_call_begin(client->fs, NULL, &call), 0);
	code = StartRXAFS_FetchData64(call, fid, (int64_t)pos, (int64_t)length);
	if (!code && rxw_call_read(call, head, 8) == 8) {
		for (int i = 0; i < 8; i++)
			n = n << 8 | head[i];
		ck_assert_uint_le(n, length);
		if (rxw_call_read(call, data, n) != (ssize_t)n)
			code = RXW_RPC_CC_UNMARSHAL;
	}
	if (!code)
		code = EndRXAFS_FetchData64(call, st ? st : &status, cb ? cb : &promise, &sync);
	code = rxw_call_end(call, code, NULL);
	return code ? -(int64_t)code : (int64_t)n;
}
