/* SPDX-License-Identifier: BSD-2-Clause */
/* The complete server as a member of a cell: its folder, registration, and calls that wait for the protection server. */
#include "tests/fileserver/member/fakecell.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rxwire/error.h>
#include <rxwire/rxkad.h>

#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "fileserver/server.h"
#include "tests/main.h"
#include "volume/store/store.h"

#define CALLERS 12
#define WORKERS 2

static char *folder;
static char store_path[4200], config_path[4200];
static char message[FSD_MESSAGE_MAX];
static struct fsd_server *server;
static struct fake_server fake;
static rxw_keys *keys;
static rxw_engine *engine;
static rxw_endpoint *endpoint[2];
static rxw_connection *open_connections[CALLERS + 8];
static unsigned open_count;
static uint32_t volume;
static uint64_t drain_ms = 60000;

static void write_file(const char *name, const char *text)
{
	char path[4400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", config_path, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void make_folder(void)
{
	char path[4400];

	folder = test_folder();
	snprintf(store_path, sizeof(store_path), "%s/store", folder);
	snprintf(config_path, sizeof(config_path), "%s/config", folder);
	ck_assert_int_eq(mkdir(config_path, 0700), 0);
	write_file("ThisCell", "test.example\n");
	write_file("CellServDB", ">test.example #a cell\n127.0.0.1 #here\n");
	write_file("UserList", "chief\nother/admin@TEST.EXAMPLE\n");
	write_file("NetInfo", "f 10.9.8.7\n");
	snprintf(path, sizeof(path), "%s/KeyFileExt", config_path);
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, 3, 18), 0);
	ck_assert_int_eq(rxw_keys_write(keys, path, 0, message, sizeof(message)), 0);
}

/* u1 may do everything in it, and everybody may look. */
static void make_store(void)
{
	const struct store_options options = {.path = store_path};
	struct store_acl acl = {0};
	const struct store_new_volume new = {.name = "data", .owner = 900, .acl = &acl};
	char why[STORE_MESSAGE_MAX];
	struct store *store;

	ck_assert_int_eq(store_acl_add(&acl, false, 1, STORE_ALL), 0);
	ck_assert_int_eq(store_acl_add(&acl, false, STORE_ANYUSER, STORE_LOOKUP | STORE_READ), 0);
	ck_assert_msg(store_make(&options, why) == 0, "%s", why);
	ck_assert_msg(store_open(&options, &store, why) == 0, "%s", why);
	ck_assert_int_eq(store_volume_create(store, &new, &volume), 0);
	store->ops->close(store);
}

static int start_with(bool member, bool leave)
{
	static const char *const require_none = "none";
	const uint16_t port =
		ntohs(((const struct sockaddr_in *)(const void *)&fake.address)->sin_port);
	const struct fsd_settings settings = {
		.store = store_path,
		.cell_config = member ? config_path : NULL,
		.leave_cell = leave,
		.vl_port = member ? port : 0,
		.pt_port = member ? port : 0,
		.listen = "127.0.0.1",
		.readers = 2,
		.read_ahead = 8 << 20,
		.promises = 1000,
		.drain_ms = drain_ms,
		.guard = {.require = &require_none, .require_count = 1},
	};
	struct rxw_config config;

	rxw_config_init(&config, sizeof(config));
	config.workers_max = WORKERS;
	return fsd_server_start(&settings, &config, &server, message);
}

static int start(void)
{
	return start_with(true, false);
}

static void setup(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&sa, .address_len = sizeof(sa)};

	make_folder();
	make_store();
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(rxw_endpoint_create(engine, &options, &endpoint[i]), 0);
	fake_open(&fake, engine, keys);
	ck_assert_msg(start() == 0, "%s", message);
}

static void teardown(void)
{
	while (open_count)
		rxw_connection_release(open_connections[--open_count]);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(rxw_endpoint_destroy(endpoint[i]), 0);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	fake_close(&fake);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	rxw_keys_unref(keys);
	tree_remove(folder);
}

/* From one of the two endpoints; `name` NULL: anonymous. */
static rxw_connection *as(const char *name, int from)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(fsd_server_fs_port(server)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	rxw_security *security = name ? token_for_rxkad(keys, name, RXW_LEVEL_CRYPT) : NULL;
	rxw_connection *connection;

	ck_assert_uint_lt(open_count, CALLERS + 8);
	ck_assert_int_eq(rxw_connection_create(endpoint[from], (struct sockaddr *)&sa, sizeof(sa),
					       AFS_SERVICE_FS, security, &connection),
			 0);
	if (security)
		rxw_security_unref(security);
	open_connections[open_count++] = connection;
	return connection;
}

static AFSFid root(void)
{
	return (AFSFid){volume, 1, 1};
}

static int32_t look(rxw_connection *connection, AFSFetchStatus *status)
{
	AFSFid fid = root();
	AFSVolSync sync;
	AFSCallBack cb;

	return RXAFS_FetchStatus(connection, &fid, status, &cb, &sync);
}

static int32_t make_file(rxw_connection *connection, const char *name)
{
	const AFSStoreStatus how = {.Mask = 8, .UnixModeBits = 0644};
	AFSFetchStatus st, dir_st;
	AFSFid dir = root(), fid;
	AFSVolSync sync;
	AFSCallBack cb;

	return RXAFS_CreateFile(connection, &dir, name, &how, &fid, &st, &dir_st, &cb, &sync);
}

START_TEST(registers)
{
	setup();
	pthread_mutex_lock(&fake.lock);
	while (!fake.registrations)
		pthread_cond_wait(&fake.changed, &fake.lock);
	ck_assert_uint_eq(fake.registered_count, 1);
	ck_assert_uint_eq(fake.registered[0], 0x0a090807);
	pthread_mutex_unlock(&fake.lock);
	/* What it has to read again is told to the location service. */
	write_file("NetInfo", "f 10.9.8.6\nf 10.9.9.1\n");
	write_file("NetRestrict", "10.9.8.255\n");
	ck_assert_int_eq(fsd_server_reload(server), 0);
	pthread_mutex_lock(&fake.lock);
	while (fake.registrations < 2)
		pthread_cond_wait(&fake.changed, &fake.lock);
	ck_assert_uint_eq(fake.registered_count, 2);
	pthread_mutex_unlock(&fake.lock);
	write_file("NetInfo", "10.9.8\n");
	ck_assert_int_eq(fsd_server_reload(server), -1);
	teardown();
}
END_TEST

static void *call_once(void *arg)
{
	AFSFetchStatus status;

	return (void *)(intptr_t)look(arg, &status);
}

/*
 * Callers whose identity has to be asked wait without a worker: others are served meanwhile, anonymous ones and those that are known,
 * however many wait.
 */
START_TEST(waits_without_worker)
{
	rxw_connection *known, *nobody;
	pthread_t thread[CALLERS];
	AFSFetchStatus status;
	void *code;

	setup();
	known = as("u1@TEST.EXAMPLE", 0);
	nobody = as(NULL, 0);
	ck_assert_int_eq(look(known, &status), 0);
	ck_assert_uint_eq(status.CallerAccess, STORE_ALL);
	ck_assert_int_eq(look(nobody, &status), 0);
	FAKE_SET(&fake, held, true);
	for (unsigned i = 0; i < CALLERS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "u%u@TEST.EXAMPLE", 10 + i);
		ck_assert_int_eq(pthread_create(&thread[i], NULL, call_once, as(name, 0)), 0);
	}
	fake_await_names(&fake, 1 + CALLERS);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(look(known, &status), 0);
		ck_assert_int_eq(look(nobody, &status), 0);
	}
	FAKE_SET(&fake, held, false);
	for (unsigned i = 0; i < CALLERS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], &code), 0);
		ck_assert_int_eq((int32_t)(intptr_t)code, 0);
	}
	teardown();
}
END_TEST

/* Calls of all kinds may be the first one of a caller. */
START_TEST(first_calls)
{
	static const char text[] = "a text";
	AFSFid dir, file;
	const AFSStoreStatus how = {0};
	AFSFetchStatus st, dir_st;
	uint8_t data[64], word[8];
	AFSVolSync sync;
	AFSCallBack cb;
	rxw_call *call;

	setup();
	dir = root();
	/* A change, whose reply comes from the thread that commits. */
	ck_assert_int_eq(make_file(as("u1@TEST.EXAMPLE", 0), "a"), 0);
	ck_assert_int_eq(make_file(as("u2@TEST.EXAMPLE", 0), "b"), EACCES);
	/* A store, and a fetch, after everything was forgotten. */
	ck_assert_int_eq(RXAFS_FlushCPS(as("chief@TEST.EXAMPLE", 0), &(const ViceIds){0},
					&(const IPAddrs){0}, 0, &(int32_t){0}, &(int32_t){0}),
			 0);
	ck_assert_int_eq(RXAFS_CreateFile(as("u1@TEST.EXAMPLE", 0), &dir, "c", &how, &file, &st,
					  &dir_st, &cb, &sync),
			 0);
	ck_assert_int_eq(RXAFS_FlushCPS(as("other/admin@TEST.EXAMPLE", 0), &(const ViceIds){0},
					&(const IPAddrs){0}, 0, &(int32_t){0}, &(int32_t){0}),
			 0);
	ck_assert_int_eq(rxw_call_begin(as("u1@TEST.EXAMPLE", 0), NULL, &call), 0);
	ck_assert_int_eq(StartRXAFS_StoreData64(call, &file, &how, 0, sizeof(text), sizeof(text)),
			 0);
	ck_assert_int_eq(rxw_call_write(call, text, sizeof(text)), sizeof(text));
	ck_assert_int_eq(EndRXAFS_StoreData64(call, &st, &sync), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	ck_assert_uint_eq(st.Length, sizeof(text));
	ck_assert_int_eq(rxw_call_begin(as("u3@TEST.EXAMPLE", 0), NULL, &call), 0);
	ck_assert_int_eq(StartRXAFS_FetchData64(call, &file, 0, sizeof(data)), 0);
	ck_assert_int_eq(rxw_call_read(call, word, sizeof(word)), sizeof(word));
	ck_assert_int_eq(rxw_call_read(call, data, sizeof(text)), sizeof(text));
	ck_assert_mem_eq(data, text, sizeof(text));
	ck_assert_int_eq(EndRXAFS_FetchData64(call, &st, &cb, &sync), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	teardown();
}
END_TEST

/* Names in ACLs. */
START_TEST(names)
{
	AFSOpaque acl = {0}, text = {.val = (char *)"2\n0\nu1\t127\nu8\t9\n", .len = 17};
	AFSFetchStatus st;
	rxw_connection *u1;
	AFSFid dir;
	AFSVolSync sync;

	setup();
	dir = root();
	u1 = as("u1@TEST.EXAMPLE", 0);
	FAKE_SET(&fake, name, "somebody");
	ck_assert_int_eq(RXAFS_FetchACL(u1, &dir, &acl, &st, &sync), 0);
	ck_assert_str_eq(acl.val, "2\n0\nsystem:anyuser\t9\nsomebody\t127\n");
	xdrfree_AFSOpaque(&acl);
	ck_assert_int_eq(RXAFS_StoreACL(u1, &dir, &text, &st, &sync), 0);
	acl = (AFSOpaque){0};
	ck_assert_int_eq(RXAFS_FetchACL(u1, &dir, &acl, &st, &sync), 0);
	ck_assert_str_eq(acl.val, "2\n0\nsomebody\t127\nsomebody\t9\n");
	xdrfree_AFSOpaque(&acl);
	text = (AFSOpaque){.val = (char *)"1\n0\nnobody\t127\n", .len = 16};
	ck_assert_int_ne(RXAFS_StoreACL(u1, &dir, &text, &st, &sync), 0);
	teardown();
}
END_TEST

/* The server ends although nobody answers. */
START_TEST(stops)
{
	rxw_connection *caller;
	pthread_t thread;
	void *code;

	drain_ms = 100;
	setup();
	FAKE_SET(&fake, held, true);
	caller = as("u1@TEST.EXAMPLE", 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_once, caller), 0);
	fake_await_names(&fake, 1);
	fsd_server_stop(server);
	ck_assert_int_eq(pthread_join(thread, &code), 0);
	ck_assert_msg(start() == 0, "%s", message);
	teardown();
}
END_TEST

/* Ids that the store has given out before are compared with those of the cell once, which gives none of them out again. */
START_TEST(own_ids)
{
	const struct store_options options = {.path = store_path};
	const struct store_new_volume far = {.name = "far", .id = 0x20000000 + 2500};
	char why[STORE_MESSAGE_MAX];
	struct store *store;
	uint32_t id;

	setup();
	ck_assert_int_eq(fsd_server_stop(server), 0);
	ck_assert_msg(start_with(false, true) == 0, "%s", message);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	ck_assert_msg(store_open(&options, &store, why) == 0, "%s", why);
	ck_assert_int_eq(store_volume_create(store, &far, &id), 0);
	store->ops->close(store);
	FAKE_SET(&fake, compared, 0);
	FAKE_SET(&fake, next, 0x20000000 + 7);
	FAKE_SET(&fake, elsewhere, volume);
	ck_assert_msg(start() == 0, "%s", message);
	pthread_mutex_lock(&fake.lock);
	while (fake.next <= id)
		pthread_cond_wait(&fake.changed, &fake.lock);
	ck_assert_uint_ge(fake.compared, 2);
	ck_assert_uint_eq(fake.next, id + 1);
	fake.compared = 0;
	pthread_mutex_unlock(&fake.lock);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	FAKE_SET(&fake, registrations, 0);
	ck_assert_msg(start() == 0, "%s", message);
	pthread_mutex_lock(&fake.lock);
	while (!fake.registrations)
		pthread_cond_wait(&fake.changed, &fake.lock);
	ck_assert_uint_eq(fake.compared, 0);
	pthread_mutex_unlock(&fake.lock);
	teardown();
}
END_TEST

/* The store knows that its ids are those of a cell, until it is told otherwise. */
START_TEST(remembers_the_cell)
{
	const struct store_options options = {.path = store_path};
	char why[STORE_MESSAGE_MAX];
	struct store *store;
	bool member = false;

	setup();
	ck_assert_int_eq(fsd_server_stop(server), 0);
	ck_assert_msg(store_open(&options, &store, why) == 0, "%s", why);
	ck_assert_int_eq(store_is_member(store, &member), 0);
	ck_assert(member);
	store->ops->close(store);
	ck_assert_int_eq(start_with(false, false), FSD_WRONG_SETTINGS);
	ck_assert_msg(strstr(message, "--leave-cell"), "%s", message);
	ck_assert_int_eq(start_with(true, true), FSD_WRONG_SETTINGS);
	ck_assert_msg(strstr(message, "--leave-cell"), "%s", message);
	ck_assert_msg(start_with(false, true) == 0, "%s", message);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	ck_assert_msg(start_with(false, false) == 0, "%s", message);
	teardown();
}
END_TEST

static void refused(const char *file, const char *text, const char *why)
{
	make_folder();
	write_file(file, text);
	fake.address.ss_family = AF_INET;
	ck_assert_int_eq(start(), FSD_WRONG_SETTINGS);
	ck_assert_msg(strstr(message, why), "%s", message);
	rxw_keys_unref(keys);
	tree_remove(folder);
}

/* What follows the first part of a long line is no line: else the end of a comment would be an administrator. */
static void refused_long(const char *file)
{
	char line[600];

	memset(line, 'x', sizeof(line));
	line[0] = '#';
	strcpy(line + 511, "10.9.8.7\n");
	refused(file, line, "a line has more than 510 bytes");
}

START_TEST(folders)
{
	refused("ThisCell", "", "ThisCell does not name the cell");
	refused("UserList", "ali ce\n", "\"ali ce\" cannot be used");
	refused("CellServDB", ">other.example\n10.0.0.1\n", "CellServDB has no servers");
	refused("NetInfo", "10.1.2.3\nhere\n", "\"here\" cannot be used");
	refused("NetRestrict", "10.1.2\n", "\"10.1.2\" cannot be used");
	refused_long("ThisCell");
	refused_long("UserList");
	refused_long("NetInfo");
	refused_long("NetRestrict");
	refused_long("krb.conf");
}
END_TEST

TEST_MAIN_WITHIN(60, "member of a cell", registers, waits_without_worker, first_calls, names, stops,
		 own_ids, remembers_the_cell, folders)
