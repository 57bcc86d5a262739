/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of operations and their tries, with a file server in the same process that makes a change and then reports a
 * failure, as if its answer had been lost; and of tokens that expire by the clock of the servers.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

#include <rxafs/path.h>
#include <rxwire/rxwire.h>

#include "afs/dir.h"
#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "afs/vl.h"
#include "common/clock.h"
#include "tests/tools/testing.h"
#include "program/message.h"
#include "afscp/commands.h"

#define VOLUME	 0x20000001u
#define NAMES	 8
#define LIFETIME 600 /* seconds of a token that expires */

/* The root directory of the volume, and what the server does. */
static struct {
	pthread_mutex_t lock;
	unsigned lose; /* so many calls are carried out, and fail then */
	unsigned busy; /* so many calls are refused at first */
	bool moves;    /* the next call is told to look the volume up, and the tokens expire */
	unsigned calls;
	struct name {
		char name[64];
		uint32_t vnode;
	} names[NAMES];
	size_t count;
	AFSFetchStatus status[64]; /* by vnode */
	char text[64];		   /* of the last symbolic link */
	uint32_t next;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The servers' class and clock. */
static struct {
	struct tools_keys keys;
	rxw_security *class;	 /* NULL: the null class */
	_Atomic int64_t ahead_s; /* of the clock of this machine */
	char dir[32], path[64];	 /* of the keys */
	struct rxw_token_options options;
} guard;

static struct name *find(const char *name)
{
	for (size_t i = 0; i < server.count; i++)
		if (strcmp(server.names[i].name, name) == 0)
			return &server.names[i];
	return NULL;
}

static AFSFetchStatus *make(const char *name, uint32_t type, const AFSStoreStatus *how, AFSFid *fid)
{
	uint32_t vnode = server.next;
	AFSFetchStatus *s = &server.status[vnode];

	server.next += 2;
	if (type == AFS_TYPE_DIR)
		vnode--, s--;
	snprintf(server.names[server.count].name, 64, "%s", name);
	server.names[server.count++].vnode = vnode;
	*s = (AFSFetchStatus){.InterfaceVersion = 1,
			      .FileType = type,
			      .LinkCount = type == AFS_TYPE_DIR ? 2 : 1,
			      .ClientModTime = how->ClientModTime,
			      .UnixModeBits = how->UnixModeBits,
			      .ParentVnode = 1,
			      .ParentUnique = 1};
	*fid = (AFSFid){VOLUME, vnode, 1};
	return s;
}

static void forget(struct name *name)
{
	*name = server.names[--server.count];
}

/* Before a change: 0 or the code that refuses it. The lock is held from here to finish(). */
static int32_t begin(void)
{
	pthread_mutex_lock(&server.lock);
	server.calls++;
	if (server.moves) {
		server.moves = false;
		guard.ahead_s = 2 * LIFETIME;
		return AFS_VMOVED;
	}
	if (server.busy == 0)
		return 0;
	server.busy--;
	return AFS_VBUSY;
}

/* After it: the code of the call, and the status of the directory. */
static int32_t finish(int32_t code, AFSFetchStatus *dir_st)
{
	server.status[1].DataVersion += code == 0;
	*dir_st = server.status[1];
	if (code == 0 && server.lose) {
		server.lose--;
		code = RXW_CALL_TIMEOUT;
	}
	pthread_mutex_unlock(&server.lock);
	return code;
}

static int32_t on_create(void *context, rxw_call *call, const AFSFid *dir, const char *name,
			 const AFSStoreStatus *how, AFSFid *fid, AFSFetchStatus *st,
			 AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	int32_t code = begin();

	(void)context, (void)call, (void)dir, (void)cb, (void)sync;
	if (code == 0 && find(name))
		code = EEXIST;
	if (code == 0)
		*st = *make(name, AFS_TYPE_FILE, how, fid);
	return finish(code, dir_st);
}

static int32_t on_mkdir(void *context, rxw_call *call, const AFSFid *dir, const char *name,
			const AFSStoreStatus *how, AFSFid *fid, AFSFetchStatus *st,
			AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	int32_t code = begin();

	(void)context, (void)call, (void)dir, (void)cb, (void)sync;
	if (code == 0 && find(name))
		code = EEXIST;
	if (code == 0)
		*st = *make(name, AFS_TYPE_DIR, how, fid);
	return finish(code, dir_st);
}

static int32_t on_symlink(void *context, rxw_call *call, const AFSFid *dir, const char *name,
			  const char *text, const AFSStoreStatus *how, AFSFid *fid,
			  AFSFetchStatus *st, AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	int32_t code = begin();

	(void)context, (void)call, (void)dir, (void)sync;
	if (code == 0 && find(name))
		code = EEXIST;
	if (code == 0) {
		snprintf(server.text, sizeof(server.text), "%s", text);
		*st = *make(name, AFS_TYPE_SYMLINK, how, fid);
	}
	return finish(code, dir_st);
}

static int32_t on_remove(void *context, rxw_call *call, const AFSFid *dir, const char *name,
			 AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	int32_t code = begin();

	(void)context, (void)call, (void)dir, (void)sync;
	if (code == 0 && !find(name))
		code = ENOENT;
	if (code == 0)
		forget(find(name));
	return finish(code, dir_st);
}

static int32_t on_status(void *context, rxw_call *call, const AFSFid *fid, AFSFetchStatus *st,
			 AFSCallBack *cb, AFSVolSync *sync)
{
	(void)context, (void)call, (void)cb, (void)sync;
	pthread_mutex_lock(&server.lock);
	*st = server.status[fid->Vnode & 63];
	pthread_mutex_unlock(&server.lock);
	return st->InterfaceVersion ? 0 : AFS_VNOVNODE;
}

/* The image of the directory, or the text of the link. */
static int32_t on_fetch(void *context, rxw_call *call, const AFSFid *fid, int64_t pos,
			int64_t length, AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	uint8_t head[8], *image = NULL;
	const void *data = server.text;
	size_t size;
	struct afs_dir dir;
	struct rxw_xdr x;

	(void)context, (void)pos, (void)length, (void)cb, (void)sync;
	pthread_mutex_lock(&server.lock);
	size = strlen(server.text);
	*st = server.status[fid->Vnode & 63];
	if (fid->Vnode == 1) {
		ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 1, 1), 0);
		for (size_t i = 0; i < server.count; i++)
			afs_dir_add(&dir, server.names[i].name, strlen(server.names[i].name),
				    server.names[i].vnode, 1);
		data = image = afs_dir_take(&dir, &size);
		st->Length = (uint32_t)size;
	}
	pthread_mutex_unlock(&server.lock);
	rxw_xdr_writer(&x, head, sizeof(head));
	rxw_xdr_put_u64(&x, size);
	ck_assert_int_eq(rxw_call_write(call, head, sizeof(head)), sizeof(head));
	ck_assert_int_eq(rxw_call_write(call, data, size), (ssize_t)size);
	free(image);
	return 0;
}

static int32_t locate(void *context, rxw_call *call, const char *name, uvldbentry *e)
{
	(void)context, (void)call;
	memset(e, 0, sizeof(*e));
	snprintf(e->name, sizeof(e->name), "%s", name);
	e->nServers = 1;
	e->serverNumber[0].time_low = 0x7f000001;
	e->serverFlags[0] = VLSF_RWVOL;
	e->volumeId[AFS_VL_RW] = VOLUME;
	e->flags = VLF_RWEXISTS;
	return 0;
}

static const struct RXAFS_handlers fs_handlers = {
	.CreateFile = on_create,
	.MakeDir = on_mkdir,
	.Symlink = on_symlink,
	.RemoveFile = on_remove,
	.RemoveDir = on_remove,
	.FetchStatus = on_status,
	.FetchData64 = on_fetch,
};
static const struct VL_handlers vl_handlers = {.GetEntryByNameU = locate};
static struct RXAFS_service fs_service = {.handlers = &fs_handlers};
static struct VL_service vl_service = {.handlers = &vl_handlers};

static struct run run;
static rxw_engine *engine; /* of the servers */
static rxafs_object *top;  /* the root directory */
static char where[2 * TOOLS_ADDRESS_TEXT];
static rxw_endpoint *fs, *vl;

static rxw_endpoint *serve(uint16_t id, rxw_handler_fn handler, void *context,
			   struct sockaddr_storage *address)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .address = (struct sockaddr *)&loopback,
					  .address_len = sizeof(loopback),
					  .server = 1};
	/* Questions to location servers are anonymous. */
	bool guarded = guard.class && id == AFS_SERVICE_FS;
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = id,
					 .name = "test",
					 .handler = handler,
					 .context = context,
					 .security = guarded ? &guard.class : NULL,
					 .security_count = guarded};
	socklen_t len = sizeof(*address);
	rxw_endpoint *endpoint;
	rxw_service *service;

	ck_assert_int_eq(rxw_endpoint_create(engine, &eo, &endpoint), 0);
	ck_assert_int_eq(rxw_service_add(endpoint, &so, &service), 0);
	ck_assert_int_eq(rxw_endpoint_address(endpoint, address, &len), 0);
	return endpoint;
}

static int64_t seconds(void *unused)
{
	(void)unused;
	return time(NULL) + guard.ahead_s;
}

static int64_t ticks(void *unused)
{
	return seconds(unused) * RXW_RXGK_SECOND;
}

/* The file server wants a token. */
static void protect(int class)
{
	const struct tools_auth auth = {.class = class, .level = -1, .key_file = guard.path};
	struct rxw_rxkad_server_options kad = {.size = sizeof(kad), .time = seconds};
	struct rxw_rxgk_server_options gk = {.size = sizeof(gk), .time = ticks};
	struct rxw_token_options o = {.size = sizeof(o),
				      .source = RXW_TOKEN_LOCAL,
				      .index = class == TOOLS_RXKAD ? RXW_RXKAD_INDEX
								    : RXW_RXGK_INDEX,
				      .level = RXW_LEVEL_CRYPT,
				      .lifetime_s = LIFETIME};
	char why[TOOLS_AUTH_MESSAGE];

	snprintf(guard.dir, sizeof(guard.dir), "/tmp/rxw-change-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(guard.dir));
	snprintf(guard.path, sizeof(guard.path), "%s/keys", guard.dir);
	ck_assert_msg(tools_make_keys(guard.path, why, sizeof(why)) == 0, "%s", why);
	ck_assert_msg(tools_keys_open(&guard.keys, &auth, why, sizeof(why)) == 0, "%s", why);
	kad.keys = gk.keys = o.keys = guard.keys.keys;
	ck_assert_int_eq(class == TOOLS_RXKAD ? rxw_rxkad_server(&kad, &guard.class)
					      : rxw_rxgk_server(&gk, &guard.class),
			 0);
	run.set.auth = auth;
	guard.options = o;
}

/* The run's token expires soon; the next one, of the file of keys, lasts longer. */
static void shorten_token(void)
{
	char why[TOOLS_AUTH_MESSAGE];

	rxw_token_unref(run.renewal.token);
	ck_assert_msg(rxw_token_create(&guard.options, &run.renewal.token, why, sizeof(why)) == 0,
		      "%s", why);
	ck_assert(session_use_token(&run, run.renewal.token));
}

/* Servers and a session. The volume has one file, "old". */
static void setup_as(int class)
{
	static const char *items[] = {where};
	const AFSStoreStatus how = {.ClientModTime = 5, .UnixModeBits = 0644};
	struct attempt t;
	struct sockaddr_storage address, location;
	char host[TOOLS_ADDRESS_TEXT];
	struct rxw_config config;
	AFSFid fid;

	memset(&run, 0, sizeof(run));
	run.set = (struct copy_settings){.timeout_ms = 20000,
					 .retry_ms = 20000,
					 .quiet = true,
					 .auth = {.class = -1, .level = -1},
					 .servers = {.count = 1, .items = items}};
	rxw_config_init(&run.config, sizeof(run.config));
	rxw_config_init(&config, sizeof(config));
	pthread_mutex_init(&run.lock, NULL);
	pthread_mutex_init(&run.token_lock, NULL);
	pthread_mutex_init(&run.progress_lock, NULL);
	monotonic_cond_init(&run.wake);
	ck_assert_int_eq(rxw_engine_create(&config, &engine), 0);
	if (class != TOOLS_NULL)
		protect(class);
	fs = serve(AFS_SERVICE_FS, RXAFS_ExecuteRequest, &fs_service, &address);
	vl = serve(AFS_SERVICE_VL, VL_ExecuteRequest, &vl_service, &location);
	snprintf(where, sizeof(where), "%s:%u", tools_address_text(&location, host, sizeof(host)),
		 tools_address_port(&address));
	server.count = 0;
	server.next = 4;
	server.status[1] = (AFSFetchStatus){.InterfaceVersion = 1,
					    .FileType = AFS_TYPE_DIR,
					    .LinkCount = 2,
					    .CallerAccess = 127,
					    .AnonymousAccess = 127,
					    .ParentVnode = 1,
					    .ParentUnique = 1};
	make("old", AFS_TYPE_FILE, &how, &fid);
	ck_assert_int_eq(session_open(&run), 0);
	t = attempt_begin(&run, CHANGE_NONE, "vol:");
	while (attempt_again(&t, rxafs_open_volume(run.afs, &t.request, NULL, "vol", &top)))
		;
	ck_assert_int_eq(t.value, 0);
	server.calls = 0;
}

static void end(void)
{
	rxafs_release(top);
	session_close(&run, 1000);
	tools_renewal_close(&run.renewal);
	ck_assert_int_eq(rxw_endpoint_destroy(fs), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(vl), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	if (guard.class) {
		unlink(guard.path);
		rmdir(guard.dir);
		rxw_security_unref(guard.class);
		tools_keys_close(&guard.keys);
		guard.class = NULL;
		guard.ahead_s = 0;
	}
}

/* mkdir with its tries. */
static struct attempt make_one(const char *name)
{
	struct attempt t = attempt_begin(&run, CHANGE_MKDIR, name);
	struct rxafs_attributes a;
	rxafs_object *made;

	while (attempt_again(&t, rxafs_mkdir(top, &t.request, name, 0755, &made, &a)))
		;
	if (t.value >= 0)
		rxafs_release(made);
	return t;
}

static struct attempt remove_one(const char *name)
{
	struct attempt t = attempt_begin(&run, CHANGE_REMOVE, name);

	while (attempt_again(&t, rxafs_unlink(top, &t.request, name)))
		;
	return t;
}

/* The first answer is lost, though the change was made: it counts once, and succeeds. */
START_TEST(lost_answers)
{
	struct attempt t;

	setup_as(TOOLS_NULL);
	server.lose = 1;
	t = make_one("b");
	ck_assert_msg(t.value == 0 || (t.value == -EEXIST && t.unknown), "%s", t.error.text);
	ck_assert_uint_eq(server.count, 2);
	server.lose = 1;
	t = remove_one("old");
	ck_assert_msg(t.value == 0, "%s", t.error.text);
	ck_assert_uint_eq(server.count, 1);
	ck_assert_uint_eq(server.lose, 0);
	end();
}
END_TEST

/* A volume that is busy was not changed: the operation is repeated, and its answer counts. */
START_TEST(busy)
{
	struct attempt t;

	setup_as(TOOLS_NULL);
	server.busy = 2;
	t = make_one("a");
	ck_assert_msg(t.value == 0, "%s", t.error.text);
	ck_assert(!t.unknown);
	ck_assert_uint_eq(server.calls, 3);
	end();
}
END_TEST

/* Without --retry the first answer counts, and what follows would fail as well. */
START_TEST(busy_without_retry)
{
	struct attempt t;

	setup_as(TOOLS_NULL);
	run.set.retry_ms = 0;
	server.busy = 1;
	t = make_one("b");
	ck_assert_int_lt(t.value, 0);
	ck_assert_int_eq(t.error.code, AFS_VBUSY);
	ck_assert_int_eq(attempt_result(&t), COPY_STOP);
	ck_assert_uint_eq(server.calls, 1);
	end();
}
END_TEST

/* A call that is refused because its token has expired is repeated with the next token. */
static void expect_next_token(int class, bool moves)
{
	struct attempt t;

	setup_as(class);
	shorten_token();
	server.moves = moves;
	guard.ahead_s = moves ? 0 : 2 * LIFETIME;
	t = make_one("a");
	ck_assert_msg(t.value == 0, "%s", t.error.text);
	ck_assert_uint_eq(server.count, 2);
	ck_assert_uint_eq(run.renewal.count, 1);
	end();
}

START_TEST(rxkad_expires)
{
	expect_next_token(TOOLS_RXKAD, false);
}
END_TEST

START_TEST(rxgk_expires)
{
	expect_next_token(TOOLS_RXGK, false);
}
END_TEST

/* The server first says that the volume has moved, and then refuses the token. */
START_TEST(rxkad_expires_on_the_way)
{
	expect_next_token(TOOLS_RXKAD, true);
}
END_TEST

START_TEST(rxgk_expires_on_the_way)
{
	expect_next_token(TOOLS_RXGK, true);
}
END_TEST

/* There is no other token. */
static void expect_no_other_token(int class)
{
	struct attempt t;

	setup_as(class);
	shorten_token();
	unlink(guard.path);
	guard.ahead_s = 2 * LIFETIME;
	t = make_one("a");
	ck_assert_int_lt(t.value, 0);
	ck_assert_int_eq(attempt_result(&t), COPY_STOP);
	ck_assert_msg(tools_renewal_expired(t.error.code, t.error.origin), "%s", t.error.text);
	ck_assert_uint_eq(server.calls, 0);
	ck_assert_uint_eq(run.renewal.count, 0);
	end();
}

START_TEST(last_rxkad_expires)
{
	expect_no_other_token(TOOLS_RXKAD);
}
END_TEST

START_TEST(last_rxgk_expires)
{
	expect_no_other_token(TOOLS_RXGK);
}
END_TEST

TEST_MAIN_WITHIN(60, "session", rxkad_expires, rxgk_expires, rxkad_expires_on_the_way,
		 rxgk_expires_on_the_way, last_rxkad_expires, last_rxgk_expires, lost_answers, busy,
		 busy_without_retry)
