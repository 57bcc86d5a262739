/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program rxfsd with a store is killed while clients hold promises, and starts again: each of them
 * is told of each promise, before it is served and before a change of others is acknowledged.
 */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rxwire/coder.h>
#include <rxwire/error.h>

#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "afs/rxafscb.h"
#include "tests/main.h"
#include "volume/store/store.h"

#define CLIENTS 2
#define FILES	60
#define TOLD	1024

/* A scripted client; `lock` covers what its callbacks write. */
static struct client {
	rxw_endpoint *endpoint;
	struct RXAFSCB_service service;
	rxw_connection *fs;
	bool stuck; /* callbacks wait */
	unsigned inits, told_count;
	AFSFid told[TOLD];
} client[CLIENTS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char *folder;
static char store_path[4200];
static uint32_t volume;
static unsigned port; /* 0: any */
static pid_t server;
static rxw_engine *engine;
static AFSFid root, file[FILES];
static AFSFetchStatus st;

/* -- callbacks of a client -- */

static void await_turn(struct client *c)
{
	while (c->stuck)
		pthread_cond_wait(&changed, &lock);
}

static int32_t init3(void *context, rxw_call *call, const struct rxw_uuid *uuid)
{
	struct client *c = context;

	(void)call, (void)uuid;
	pthread_mutex_lock(&lock);
	await_turn(c);
	c->inits++;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int32_t tell(void *context, rxw_call *call, interfaceAddr *addr, Capabilities *caps)
{
	(void)call;
	memset(&addr->uuid, 1 + (int)((struct client *)context - client), sizeof(addr->uuid));
	caps->val = calloc(1, sizeof(*caps->val));
	caps->len = 1;
	return 0;
}

static int32_t broken(void *context, rxw_call *call, const AFSCBFids *fids, const AFSCBs *cbs)
{
	struct client *c = context;

	(void)call, (void)cbs;
	pthread_mutex_lock(&lock);
	await_turn(c);
	for (uint32_t i = 0; i < fids->len; i++)
		if (fids->val[i].Vnode)
			c->told[c->told_count++ % TOLD] = fids->val[i];
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return 0;
}

static const struct RXAFSCB_handlers handlers = {
	.CallBack = broken,
	.InitCallBackState3 = init3,
	.TellMeAboutYourself = tell,
};

static unsigned times_told(struct client *c, const AFSFid *fid)
{
	unsigned n = 0;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < c->told_count && i < TOLD; i++)
		n += memcmp(&c->told[i], fid, sizeof(*fid)) == 0;
	pthread_mutex_unlock(&lock);
	return n;
}

static void stick(struct client *c, bool stuck)
{
	pthread_mutex_lock(&lock);
	c->stuck = stuck;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* -- the server -- */

static void start_server(void)
{
	const char *top = getenv("top_builddir");
	char program[512], text[16], line[512] = "";
	int out[2];
	FILE *f;

	snprintf(program, sizeof(program), "%s/src/fileserver/rxfsd", top ? top : ".");
	snprintf(text, sizeof(text), "%u", port);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	server = fork();
	if (server == 0) { /* asserts nothing: see asserts.h */
		dup2(out[1], 1);
		execl(program, program, "--store", store_path, "--listen", "127.0.0.1", "--port", text,
		      "--vl-port", "0", "--vol-port", "0", NULL);
		_exit(127);
	}
	ck_assert_int_gt(server, 0);
	close(out[1]);
	f = fdopen(out[0], "r");
	ck_assert(f && fgets(line, sizeof(line), f));
	ck_assert_msg(sscanf(line, "listening fs 127.0.0.1:%u", &port) == 1, "%s", line);
	fclose(f);
}

static void end_server(int number)
{
	int status;

	ck_assert_int_eq(kill(server, number), 0);
	ck_assert_int_eq(waitpid(server, &status, 0), server);
	ck_assert(number == SIGKILL ? WIFSIGNALED(status) : WIFEXITED(status));
}

/* -- clients -- */

static void open_client(struct client *c)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&sa, .address_len = sizeof(sa)};
	struct rxw_service_options service = {.size = sizeof(service),
					      .id = AFS_SERVICE_CB,
					      .name = "cb",
					      .handler = RXAFSCB_ExecuteRequest,
					      .context = &c->service};
	rxw_service *added;

	memset(c, 0, sizeof(*c));
	c->service = (struct RXAFSCB_service){.base.context = c, .handlers = &handlers};
	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &c->endpoint), 0);
	ck_assert_int_eq(rxw_service_add(c->endpoint, &service, &added), 0);
}

/* To the server that runs now. */
static void connect_client(struct client *c)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	if (c->fs)
		rxw_connection_release(c->fs);
	ck_assert_int_eq(rxw_connection_create(c->endpoint, (struct sockaddr *)&sa, sizeof(sa),
					       AFS_SERVICE_FS, NULL, &c->fs),
			 0);
}

/* Returns the duration of the promise. */
static uint32_t status_of(struct client *c, const AFSFid *fid)
{
	AFSFetchStatus its;
	AFSCallBack cb;
	AFSVolSync sync;
	int32_t code;

	do {
		code = RXAFS_FetchStatus(c->fs, fid, &its, &cb, &sync);
	} while (code == AFS_VBUSY);
	ck_assert_int_eq(code, 0);
	return cb.ExpirationTime;
}

static int32_t set_mode(struct client *c, const AFSFid *fid)
{
	const AFSStoreStatus set = {.Mask = AFS_SETMODE, .UnixModeBits = 0640};
	AFSVolSync sync;
	int32_t code;

	do {
		code = RXAFS_StoreStatus(c->fs, fid, &set, &st, &sync);
	} while (code == AFS_VBUSY);
	return code;
}

static void bring_up(struct client *c)
{
	connect_client(c);
	while (status_of(c, &root) == 0)
		usleep(1000);
}

static void setup(void)
{
	const struct store_acl acl = {.positive = 1, .entry = {{STORE_ANYUSER, STORE_ALL}}};
	const struct store_new_volume new = {.name = "data", .owner = 900, .acl = &acl};
	const AFSStoreStatus nothing = {0};
	struct store_options options = {.path = store_path};
	char why[STORE_MESSAGE_MAX], name[16];
	struct store *store;
	AFSFetchStatus dir_st;
	AFSCallBack cb;
	AFSVolSync sync;

	folder = test_folder();
	snprintf(store_path, sizeof(store_path), "%s/store", folder);
	ck_assert_msg(store_make(&options, why) == 0, "%s", why);
	ck_assert_msg(store_open(&options, &store, why) == 0, "%s", why);
	ck_assert_int_eq(store_volume_create(store, &new, &volume), 0);
	store->ops->close(store);
	root = (AFSFid){volume, 1, 1};
	port = 0;
	start_server();
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	for (unsigned i = 0; i < CLIENTS; i++) {
		open_client(&client[i]);
		bring_up(&client[i]);
	}
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		ck_assert_int_eq(RXAFS_CreateFile(client[0].fs, &root, name, &nothing, &file[i], &st,
						  &dir_st, &cb, &sync),
				 0);
		ck_assert_uint_gt(status_of(&client[1], &file[i]), 0);
	}
	ck_assert_uint_gt(status_of(&client[1], &root), 0);
	/* not what was told of when the directory changed */
	pthread_mutex_lock(&lock);
	client[0].told_count = client[1].told_count = 0;
	pthread_mutex_unlock(&lock);
}

static void teardown(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		rxw_connection_release(client[i].fs);
	end_server(SIGTERM);
	for (unsigned i = 0; i < CLIENTS; i++)
		ck_assert_int_eq(rxw_endpoint_destroy(client[i].endpoint), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	tree_remove(folder);
}

/* One status call, which 6.12 takes for a sign that all its promises are good: all have been told. */
START_TEST(told_before_served)
{
	setup();
	end_server(SIGKILL);
	start_server();
	connect_client(&client[1]);
	status_of(&client[1], &file[3]);
	for (unsigned i = 0; i < FILES; i++)
		ck_assert_uint_eq(times_told(&client[1], &file[i]), 1);
	ck_assert_uint_eq(times_told(&client[1], &root), 1);
	/* new promises: told again of the one that another client changes */
	while (status_of(&client[1], &file[5]) == 0)
		usleep(1000);
	connect_client(&client[0]);
	ck_assert_int_eq(set_mode(&client[0], &file[5]), 0);
	ck_assert_uint_eq(times_told(&client[1], &file[5]), 2);
	ck_assert_uint_eq(times_told(&client[1], &file[6]), 1);
	/* nothing is left for the next one */
	end_server(SIGTERM);
	start_server();
	connect_client(&client[1]);
	status_of(&client[1], &file[3]);
	ck_assert_uint_eq(times_told(&client[1], &file[6]), 1);
	teardown();
}
END_TEST

static void *change_main(void *arg)
{
	int32_t code = set_mode(&client[0], &file[7]);

	pthread_mutex_lock(&lock);
	*(int32_t *)arg = code;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* A client that does not call: a change of what it holds is not acknowledged before it was told. */
START_TEST(told_before_change)
{
	pthread_t thread;
	int32_t code = -1;

	setup();
	end_server(SIGKILL);
	stick(&client[1], true);
	/* also if that server is killed before it could tell anybody */
	start_server();
	end_server(SIGKILL);
	start_server();
	connect_client(&client[0]);
	ck_assert_int_eq(pthread_create(&thread, NULL, change_main, &code), 0);
	/* the maker has been told of all, and is about to be served */
	while (times_told(&client[0], &file[FILES - 1]) == 0)
		usleep(1000);
	usleep(200000);
	pthread_mutex_lock(&lock);
	ck_assert_int_eq(code, -1);
	ck_assert_uint_eq(client[1].told_count, 0);
	pthread_mutex_unlock(&lock);
	stick(&client[1], false);
	pthread_join(thread, NULL);
	ck_assert_int_eq(code, 0);
	ck_assert_uint_eq(times_told(&client[1], &file[7]), 1);
	teardown();
}
END_TEST

/* A damaged file, and one that was removed: no promises for now, for clients that had some. */
START_TEST(no_promises_in_doubt)
{
	char path[4300];

	setup();
	end_server(SIGKILL);
	snprintf(path, sizeof(path), "%s/server/promises", store_path);
	for (int i = 0; i < 2; i++) {
		if (i)
			ck_assert_int_eq(unlink(path), 0);
		else
			tree_text(store_path, "server/promises", "something else");
		start_server();
		connect_client(&client[1]);
		/* told to forget all, which is not enough for some */
		ck_assert_uint_eq(status_of(&client[1], &file[3]), 0);
		ck_assert_uint_eq(status_of(&client[1], &file[3]), 0);
		pthread_mutex_lock(&lock);
		ck_assert_uint_ge(client[1].inits, 1);
		pthread_mutex_unlock(&lock);
		end_server(SIGKILL);
	}
	start_server();
	connect_client(&client[0]);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "killed server", told_before_served, told_before_change,
		 no_promises_in_doubt)
