/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that fetch small parts of files and acknowledge nothing keep no threads. */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "afs/numbers.h"
#include "tests/main.h"

#define CALLS  200
#define LENGTH (24u << 10)
#define MEMORY (8u << 20) /* of packets: half of it is used before all calls have come */

static struct world world;
static rxw_engine *engine;
static rxw_endpoint *server;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned returned, failed; /* handlers; lock */

static int32_t serve(rxw_call *call, void *service)
{
	int32_t code = fsd_fs_serve(call, service);

	pthread_mutex_lock(&lock);
	returned++;
	failed += code && code != RXW_RPC_DEFERRED;
	pthread_mutex_unlock(&lock);
	return code;
}

static void setup(void)
{
	static uint8_t content[LENGTH];
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .server = 1,
					       .address = (struct sockaddr *)&sa,
					       .address_len = sizeof(sa)};
	struct rxw_service_options offer = {.size = sizeof(offer),
					    .id = AFS_SERVICE_FS,
					    .name = "test",
					    .handler = serve,
					    .deferred_max = FSD_DEFERRED_MAX};
	struct rxw_config config;
	rxw_service *added;
	char *root = tree_make();

	tree_file(root, "file", content, LENGTH, 0644);
	tree_tick();
	world_open(&world, root, false, 0);
	offer.context = world.service;
	rxw_config_init(&config, sizeof(config));
	config.listeners = 1;
	config.memory = MEMORY;
	config.workers_max = CALLS;
	ck_assert_int_eq(rxw_engine_create(&config, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &server), 0);
	fsd_service_set_engine(world.service, engine, MEMORY);
	ck_assert_int_eq(rxw_service_add(server, &offer, &added), 0);
}

static void teardown(void)
{
	rxw_endpoint_stop(server, 0);
	fsd_service_settle(world.service);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	world_close(&world);
}

/* The first and last packet of a call of the null class, each on a connection of its own. */
static void request(int fd, uint32_t connection, const AFSFid *fid)
{
	const uint32_t words[] = {/* header: DATA of the client, and the last one */
				  0x80000001, connection << 2, 1, 1, 1, 0x01050000, AFS_SERVICE_FS,
				  /* FetchData64 */
				  65537, fid->Volume, fid->Vnode, fid->Unique, 0, 0, 0, LENGTH};
	uint32_t packet[sizeof(words) / sizeof(words[0])];

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		packet[i] = htonl(words[i]);
	ck_assert_int_eq(send(fd, packet, sizeof(packet), 0), sizeof(packet));
}

static int open_client(void)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(rxw_endpoint_address(server, &sa, &length), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, length), 0);
	return fd;
}

static bool have_returned(unsigned count)
{
	bool all;

	pthread_mutex_lock(&lock);
	all = returned >= count;
	ck_assert_msg(!failed, "fetch %u has waited for its client", count);
	pthread_mutex_unlock(&lock);
	return all;
}

START_TEST(silent_clients)
{
	int fd[CALLS];
	AFSFid fid;

	setup();
	fid = world_fid(&world, "file");
	for (uint32_t i = 0; i < CALLS; i++) {
		fd[i] = open_client();
		/* The server may drop requests, too, when it has no memory. */
		for (unsigned waited = 0; !have_returned(1 + i); waited++) {
			if (waited % 1000 == 0)
				request(fd[i], 1 + i, &fid);
			usleep(100);
		}
	}
	/* Otherwise this shows nothing. */
	ck_assert_uint_gt(rxw_engine_memory(engine, NULL), MEMORY / 2);
	for (unsigned i = 0; i < CALLS; i++)
		close(fd[i]);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "small fetches", silent_clients)
