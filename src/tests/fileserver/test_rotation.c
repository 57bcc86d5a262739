/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of the service, for rxkad and for sealing tokens of rxgk, change in the KeyFileExt of a
 * server under load. No call fails. Old tokens work until they expire, as long as the file has
 * their key; new ones use the new key. The test waits for time only where a token has to expire.
 */
#include "tests/fileserver/fixture.h"

#include <netinet/in.h>
#include <time.h>

#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>
#include <rxwire/rxwire.h>
#include <rxwire/token.h>

#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "fileserver/server.h"

#define ROUNDS	2
#define CALLS	8 /* of each load between two steps */
#define ENCTYPE 18

static struct fsd_server *server;
static char *root, *state, *folder, path[256];
static rxw_engine *engine;
static rxw_endpoint *client;

/* The file, then its contents as loaded by the server. */
static void put(rxw_keys *keys)
{
	char why[256];

	ck_assert_msg(rxw_keys_write(keys, path, 1, why, sizeof(why)) == 0, "%s", why);
	if (server)
		fsd_server_reload(server);
}

/* The keys of one version, or of that and the next. */
static void put_versions(rxw_keys *const *version, size_t count)
{
	rxw_keys *both;
	char why[256];

	ck_assert_int_eq(rxw_keys_create(&both), 0);
	for (size_t i = 0; i < count; i++) {
		char file[sizeof(path) + 32];

		snprintf(file, sizeof(file), "%s.version%zu", path, i);
		ck_assert_msg(!rxw_keys_write(version[i], file, 1, why, sizeof(why)), "%s", why);
		ck_assert_msg(!rxw_keys_load(both, file, NULL, why, sizeof(why)), "%s", why);
		unlink(file);
	}
	put(both);
	rxw_keys_unref(both);
}

static rxw_keys *make_version(int32_t kvno)
{
	rxw_keys *keys;

	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, kvno, ENCTYPE), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_RXGK, kvno, ENCTYPE), 0);
	return keys;
}

static rxw_token *make_token(rxw_keys *keys, uint8_t index, uint32_t lifetime_s)
{
	struct rxw_token_options o = {.size = sizeof(o),
				      .source = RXW_TOKEN_LOCAL,
				      .index = index,
				      .level = RXW_LEVEL_CRYPT,
				      .client = "alice@EXAMPLE.ORG",
				      .keys = keys,
				      .lifetime_s = lifetime_s};
	rxw_token *token;
	char why[256];

	ck_assert_msg(rxw_token_create(&o, &token, why, sizeof(why)) == 0, "%s", why);
	return token;
}

static rxw_connection *join(const rxw_token *token)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(fsd_server_fs_port(server)),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	rxw_connection *made;

	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&to, sizeof(to),
					       AFS_SERVICE_FS, rxw_token_security(token), &made),
			 0);
	return made;
}

static int32_t call(rxw_connection *connection)
{
	uint32_t seconds = 0, useconds = 0;

	return RXAFS_GetTime(connection, &seconds, &useconds);
}

/* A call on its own connection. */
static int32_t call_once(const rxw_token *token)
{
	rxw_connection *connection = join(token);
	int32_t code = call(connection);

	rxw_connection_release(connection);
	return code;
}

/* Continuous calls, on one connection or each on its own. */
struct load {
	pthread_t thread;
	bool fresh;
	pthread_mutex_t lock; /* of the following */
	pthread_cond_t moved;
	rxw_token *token; /* for connections made from now on */
	unsigned calls;
	int32_t failed; /* the first unexpected code */
	bool stop;
};

static void *work(void *arg)
{
	struct load *load = arg;
	rxw_connection *held = load->fresh ? NULL : join(load->token);
	bool stop;

	do {
		rxw_token *token;
		int32_t code;

		pthread_mutex_lock(&load->lock);
		token = rxw_token_ref(load->token);
		pthread_mutex_unlock(&load->lock);
		code = held ? call(held) : call_once(token);
		rxw_token_unref(token);
		pthread_mutex_lock(&load->lock);
		load->calls++;
		if (!load->failed)
			load->failed = code;
		stop = load->stop || load->failed;
		pthread_cond_broadcast(&load->moved);
		pthread_mutex_unlock(&load->lock);
	} while (!stop);
	rxw_connection_release(held);
	return NULL;
}

static void load_start(struct load *load, bool fresh, rxw_token *token)
{
	*load = (struct load){.fresh = fresh, .token = rxw_token_ref(token)};
	pthread_mutex_init(&load->lock, NULL);
	pthread_cond_init(&load->moved, NULL);
	ck_assert_int_eq(pthread_create(&load->thread, NULL, work, load), 0);
}

/* Waits until each load has made more calls. */
static void load_moves(struct load *load)
{
	unsigned until;

	pthread_mutex_lock(&load->lock);
	until = load->calls + CALLS;
	while (load->calls < until && !load->failed)
		pthread_cond_wait(&load->moved, &load->lock);
	ck_assert_msg(!load->failed, "%s load: code %d (%s)", load->fresh ? "fresh" : "held",
		      load->failed, rxw_code_text(load->failed));
	pthread_mutex_unlock(&load->lock);
}

static void load_use(struct load *load, rxw_token *token)
{
	pthread_mutex_lock(&load->lock);
	rxw_token_unref(load->token);
	load->token = rxw_token_ref(token);
	pthread_mutex_unlock(&load->lock);
}

static void load_stop(struct load *load)
{
	pthread_mutex_lock(&load->lock);
	load->stop = true;
	pthread_mutex_unlock(&load->lock);
	pthread_join(load->thread, NULL);
	ck_assert_int_eq(load->failed, 0);
	rxw_token_unref(load->token);
	pthread_cond_destroy(&load->moved);
	pthread_mutex_destroy(&load->lock);
}

static void setup(rxw_keys *first)
{
	struct fsd_settings settings = {.volume = "data",
					.listen = "127.0.0.1",
					.readers = 1,
					.read_ahead = 1 << 20,
					.watches = 10,
					.promises = 100,
					.drain_ms = 10000,
					.guard.keytab = path};
	struct rxw_endpoint_options options = {.size = sizeof(options)};
	char message[FSD_MESSAGE_MAX];
	struct rxw_config config;

	root = tree_make();
	state = test_folder();
	folder = test_folder();
	snprintf(path, sizeof(path), "%s/KeyFileExt", folder);
	put(first);
	settings.export = root;
	settings.state = state;
	rxw_config_init(&config, sizeof(config));
	ck_assert_msg(!fsd_server_start(&settings, &config, &server, message), "%s", message);
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &client), 0);
}

static void teardown(void)
{
	rxw_endpoint_stop(client, 1000);
	rxw_endpoint_destroy(client);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	tree_remove(root);
	tree_remove(state);
	tree_remove(folder);
}

/* From one version to the next: both, then the next alone. */
static void rotate(rxw_keys *const version[2], uint8_t index, rxw_token **token, struct load *fresh,
		   struct load *held)
{
	int32_t unknown = index == RXW_RXKAD_INDEX ? RXW_RXKAD_UNKNOWNKEY : RXW_RXGK_BADKEYNO;
	rxw_token *next = make_token(version[1], index, 0);

	/* No server has the key of such a token yet. */
	ck_assert_int_eq(call_once(next), unknown);
	put_versions(version, 2);
	load_moves(fresh);
	load_moves(held);
	ck_assert_int_eq(call_once(*token), 0);
	ck_assert_int_eq(call_once(next), 0);
	load_use(fresh, next);
	load_moves(fresh);
	put_versions(version + 1, 1);
	ck_assert_int_eq(call_once(*token), unknown);
	load_moves(fresh);
	/* An authenticated connection stays valid as long as its token. */
	load_moves(held);
	rxw_token_unref(*token);
	*token = next;
}

/* Both keys are loaded: a token under the old one is valid until it expires. */
static void ends_in_time(rxw_keys *const version[2], uint8_t index)
{
	int32_t expired = index == RXW_RXKAD_INDEX ? RXW_RXKAD_EXPIRED : RXW_RXGK_EXPIRED, code;
	const struct timespec pause = {.tv_nsec = 50000000};
	rxw_token *token = make_token(version[0], index, 2);
	struct rxw_token_details info = {.size = sizeof(info)};

	ck_assert_int_eq(rxw_token_info(token, &info), 0);
	put_versions(version, 2);
	while ((code = call_once(token)) == 0)
		nanosleep(&pause, NULL);
	ck_assert_int_eq(code, expired);
	ck_assert_int_ge(time(NULL), info.expires);
	rxw_token_unref(token);
}

static void rotation(uint8_t index)
{
	rxw_keys *version[ROUNDS + 1];
	struct load fresh, held;
	rxw_token *token;

	for (size_t i = 0; i <= ROUNDS; i++)
		version[i] = make_version((int32_t)i + 3);
	setup(version[0]);
	token = make_token(version[0], index, 0);
	load_start(&fresh, true, token);
	load_start(&held, false, token);
	load_moves(&fresh);
	load_moves(&held);
	for (size_t i = 0; i < ROUNDS; i++)
		rotate(version + i, index, &token, &fresh, &held);
	load_stop(&fresh);
	load_stop(&held);
	ends_in_time(version + ROUNDS - 1, index);
	rxw_token_unref(token);
	teardown();
	for (size_t i = 0; i <= ROUNDS; i++)
		rxw_keys_unref(version[i]);
}

START_TEST(rxkad)
{
	rotation(RXW_RXKAD_INDEX);
}
END_TEST

START_TEST(rxgk)
{
	rotation(RXW_RXGK_INDEX);
}
END_TEST

TEST_MAIN_WITHIN(60, "rotation", rxkad, rxgk)
