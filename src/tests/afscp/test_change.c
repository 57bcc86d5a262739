/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of changes with a file server in the same process that makes a change and then reports a
 * failure, as if its answer had been lost; and of tokens that expire by the clock of the servers.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "afs/client/data.h"
#include "afs/dir.h"
#include "tests/tools/testing.h"
#include "program/message.h"
#include "afscp/change.h"
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
	AFSStoreStatus how; /* of the last StoreData64 */
	uint64_t offset, length, end;
	uint64_t sum;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The servers' class and clock. */
static struct {
	struct tools_keys keys;
	rxw_security *class;	 /* NULL: the null class */
	_Atomic int64_t ahead_s; /* of the clock of this machine */
	char dir[32], path[64];	 /* of the keys */
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

/* After it: the code of the call. */
static int32_t finish(int32_t code)
{
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

	(void)context, (void)call, (void)dir, (void)dir_st, (void)cb, (void)sync;
	if (code == 0 && find(name))
		code = EEXIST;
	if (code == 0)
		*st = *make(name, AFS_TYPE_FILE, how, fid);
	return finish(code);
}

static int32_t on_mkdir(void *context, rxw_call *call, const AFSFid *dir, const char *name,
			const AFSStoreStatus *how, AFSFid *fid, AFSFetchStatus *st,
			AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	int32_t code = begin();

	(void)context, (void)call, (void)dir, (void)dir_st, (void)cb, (void)sync;
	if (code == 0 && find(name))
		code = EEXIST;
	if (code == 0)
		*st = *make(name, AFS_TYPE_DIR, how, fid);
	return finish(code);
}

static int32_t on_symlink(void *context, rxw_call *call, const AFSFid *dir, const char *name,
			  const char *text, const AFSStoreStatus *how, AFSFid *fid,
			  AFSFetchStatus *st, AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	int32_t code = begin();

	(void)context, (void)call, (void)dir, (void)dir_st, (void)sync;
	if (code == 0 && find(name))
		code = EEXIST;
	if (code == 0) {
		snprintf(server.text, sizeof(server.text), "%s", text);
		*st = *make(name, AFS_TYPE_SYMLINK, how, fid);
	}
	return finish(code);
}

static int32_t on_remove(void *context, rxw_call *call, const AFSFid *dir, const char *name,
			 AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	int32_t code = begin();

	(void)context, (void)call, (void)dir, (void)dir_st, (void)sync;
	if (code == 0 && !find(name))
		code = ENOENT;
	if (code == 0)
		forget(find(name));
	return finish(code);
}

static int32_t on_rename(void *context, rxw_call *call, const AFSFid *old_dir, const char *old_name,
			 const AFSFid *new_dir, const char *new_name, AFSFetchStatus *old_st,
			 AFSFetchStatus *new_st, AFSVolSync *sync)
{
	int32_t code = begin();

	(void)context, (void)call, (void)old_dir, (void)new_dir, (void)old_st, (void)new_st;
	(void)sync;
	if (code == 0 && !find(old_name))
		code = ENOENT;
	if (code == 0) {
		if (find(new_name))
			forget(find(new_name));
		snprintf(find(old_name)->name, 64, "%s", new_name);
	}
	return finish(code);
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

static int32_t on_store(void *context, rxw_call *call, const AFSFid *fid, const AFSStoreStatus *how,
			uint64_t pos, uint64_t length, uint64_t end, AFSFetchStatus *st,
			AFSVolSync *sync)
{
	uint8_t buffer[4096];
	uint64_t got = 0;
	ssize_t n;

	(void)context, (void)sync;
	pthread_mutex_lock(&server.lock);
	server.how = *how;
	server.offset = pos;
	server.length = length;
	server.end = end;
	server.sum = 0;
	pthread_mutex_unlock(&server.lock);
	while (got < length &&
	       (n = rxw_call_read_some(call, buffer,
				       length - got < sizeof(buffer) ? (size_t)(length - got)
								     : sizeof(buffer))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			server.sum += buffer[i] * ((got + (uint64_t)i) % 251 + 1);
		got += (uint64_t)n;
	}
	if (got < length)
		return EIO;
	*st = server.status[fid->Vnode & 63];
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
	.Rename = on_rename,
	.FetchStatus = on_status,
	.FetchData64 = on_fetch,
	.StoreData64 = on_store,
};
static const struct VL_handlers vl_handlers = {.GetEntryByNameU = locate};
static struct RXAFS_service fs_service = {.handlers = &fs_handlers};
static struct VL_service vl_service = {.handlers = &vl_handlers};

static struct run run;
static struct copy copy;
static rxw_endpoint *fs, *vl;
static const AFSFid root = {VOLUME, 1, 1};

static rxw_endpoint *serve(uint16_t id, rxw_handler_fn handler, void *context,
			   struct sockaddr_storage *address)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .address = (struct sockaddr *)&loopback,
					  .address_len = sizeof(loopback),
					  .server = 1};
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = id,
					 .name = "test",
					 .handler = handler,
					 .context = context,
					 .security = guard.class ? &guard.class : NULL,
					 .security_count = guard.class != NULL};
	socklen_t len = sizeof(*address);
	rxw_endpoint *endpoint;
	rxw_service *service;

	ck_assert_int_eq(rxw_endpoint_create(run.engine, &eo, &endpoint), 0);
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

static bool use(void *arg, rxw_token *token)
{
	(void)arg, (void)token;
	return true;
}

/* The servers want a token, and the run has one that expires soon. The next one, of the file of keys, lasts longer. */
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
	ck_assert_int_eq(
		tools_renewal_open(&run.renewal, &auth, &run.vl, use, NULL, why, sizeof(why)), 0);
	rxw_token_unref(run.renewal.token);
	ck_assert_msg(rxw_token_create(&o, &run.renewal.token, why, sizeof(why)) == 0, "%s", why);
}

/* Servers and a client of the volume, which has one file, "old". */
static void setup_as(int class)
{
	const AFSStoreStatus how = change_status(5, 0644);
	struct sockaddr_storage address;
	struct sockaddr_in in;
	AFSFid fid;

	memset(&run, 0, sizeof(run));
	run.set = (struct copy_settings){.timeout_ms = 20000, .retry_ms = 20000, .quiet = true};
	rxw_config_init(&run.config, sizeof(run.config));
	pthread_mutex_init(&run.lock, NULL);
	pthread_mutex_init(&run.token_lock, NULL);
	pthread_mutex_init(&run.progress_lock, NULL);
	pthread_cond_init(&run.wake, NULL);
	ck_assert_int_eq(rxw_engine_create(&run.config, &run.engine), 0);
	if (class != TOOLS_NULL)
		protect(class);
	fs = serve(AFS_SERVICE_FS, RXAFS_ExecuteRequest, &fs_service, &address);
	memcpy(&in, &address, sizeof(in));
	run.fs_port = ntohs(in.sin_port);
	vl = serve(AFS_SERVICE_VL, VL_ExecuteRequest, &vl_service, &run.vl.sa);
	run.vl.len = sizeof(in);
	server.count = 0;
	server.next = 4;
	server.status[1] = (AFSFetchStatus){.InterfaceVersion = 1,
					    .FileType = AFS_TYPE_DIR,
					    .CallerAccess = 127,
					    .AnonymousAccess = 127,
					    .ParentVnode = 1,
					    .ParentUnique = 1};
	make("old", AFS_TYPE_FILE, &how, &fid);
	ck_assert_int_eq(copy_open(&run, &copy), 0);
	ck_assert_int_eq(copy_locate(&copy, "vol", ""), 0);
	server.calls = 0;
}

static void setup(void)
{
	setup_as(TOOLS_NULL);
}

static void end(void)
{
	copy_close(&copy);
	tools_renewal_close(&run.renewal);
	free(run.clients);
	ck_assert_int_eq(rxw_endpoint_destroy(fs), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(vl), 0);
	ck_assert_int_eq(rxw_engine_destroy(run.engine), 0);
}

static struct change change_of(enum change_op op, const char *name)
{
	return (struct change){.op = op,
			       .label = "vol:x",
			       .dir = root,
			       .name = name,
			       .new_dir = root,
			       .new_name = "new",
			       .fid = {VOLUME, 4, 1},
			       .text = "target",
			       .how = change_status(77, 0640)};
}

/* Calls of one change whose first answer is lost. */
static void want_once(enum change_op op, const char *name)
{
	struct change c = change_of(op, name);
	struct afs_error error = {0};
	enum copy_result rc;

	server.calls = 0;
	server.lose = 1;
	rc = change_try(&copy, &c, &error);
	ck_assert_msg(rc == COPY_GOOD, "change %d: %s", op, error.text);
	ck_assert_uint_eq(server.calls, 2);
	ck_assert_uint_eq(server.lose, 0);
}

START_TEST(lost_answers)
{
	setup();
	want_once(CHANGE_CREATE, "a");
	want_once(CHANGE_MKDIR, "b");
	want_once(CHANGE_SYMLINK, "c");
	ck_assert_uint_eq(server.count, 4);
	want_once(CHANGE_RENAME, "old");
	ck_assert_uint_eq(find("new")->vnode, 4);
	want_once(CHANGE_REMOVE, "a");
	want_once(CHANGE_RMDIR, "b");
	ck_assert_uint_eq(server.count, 2);
	end();
}
END_TEST

/* Nobody asks to remove what was never there, so no repeated request can be taken for the reason that it is not. */
START_TEST(never_there)
{
	char text[TOOLS_ADDRESS_TEXT + 8], host[TOOLS_ADDRESS_TEXT];
	const char *items[] = {text};
	struct place place = {.text = "vol:nothing", .volume = "vol", .path = "nothing"};

	setup();
	snprintf(text, sizeof(text), "%s:%u", tools_address_text(&run.vl.sa, host, sizeof(host)),
		 run.fs_port);
	run.set.servers = (struct tools_list){.count = 1, .items = items};
	run.places = &place;
	run.place_count = 1;
	ck_assert_int_eq(session_open(&run), 0);
	ck_assert_int_eq(run_rm(&run), TOOLS_EXIT_FAILURE);
	run.set.recursive = true;
	ck_assert_int_eq(run_rm(&run), TOOLS_EXIT_FAILURE);
	ck_assert_uint_eq(server.calls, 0);
	place.path = "old";
	ck_assert_int_eq(run_rm(&run), 0);
	ck_assert_uint_eq(server.calls, 1);
	ck_assert_int_eq(run_rm(&run), TOOLS_EXIT_FAILURE);
	ck_assert_uint_eq(server.calls, 1);
	session_close(&run, 1000);
	end();
}
END_TEST

/* An object that another client has made under the name is not taken for ours. */
START_TEST(others)
{
	static const enum change_op ops[] = {CHANGE_CREATE, CHANGE_MKDIR, CHANGE_SYMLINK};
	struct afs_error error;

	setup();
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct change c = change_of(ops[i], "old");

		c.unknown = true; /* an earlier try was lost */
		ck_assert_int_eq(change_try(&copy, &c, &error), COPY_FAILED);
		ck_assert_int_eq(error.number, EEXIST);
	}
	for (int unknown = 0; unknown < 2; unknown++) {
		struct change c = change_of(CHANGE_RENAME, "nothing");

		c.unknown = unknown;
		ck_assert_int_eq(change_try(&copy, &c, &error), COPY_FAILED);
		ck_assert_int_eq(error.number, ENOENT);
	}
	end();
}
END_TEST

/* A volume that is busy was not changed: the call is repeated, and its answer counts. */
START_TEST(busy)
{
	struct change c = change_of(CHANGE_CREATE, "a");
	struct afs_error error;

	setup();
	server.busy = 2;
	ck_assert_int_eq(change_try(&copy, &c, &error), COPY_GOOD);
	ck_assert_uint_eq(server.calls, 3);
	ck_assert(!c.unknown);
	c = change_of(CHANGE_CREATE, "a");
	server.busy = 1;
	ck_assert_int_eq(change_try(&copy, &c, &error), COPY_FAILED);
	ck_assert_int_eq(error.number, EEXIST);
	/* Without retries the first answer counts. */
	run.set.retry_ms = 0;
	server.busy = 1;
	server.calls = 0;
	c = change_of(CHANGE_CREATE, "b");
	ck_assert_int_eq(change_try(&copy, &c, &error), COPY_STOP);
	ck_assert_uint_eq(server.calls, 1);
	ck_assert_int_eq(error.code, AFS_VBUSY);
	end();
}
END_TEST

static uint64_t last_sent;

static void on_sent(void *arg, uint64_t bytes)
{
	(void)arg;
	ck_assert_uint_gt(bytes, last_sent);
	last_sent = bytes;
}

START_TEST(stores)
{
	enum {
		SIZE = 1000003
	};
	uint8_t *data = malloc(SIZE);
	struct afs_store s = {.fid = {VOLUME, 4, 1},
			      .how = change_status(99, 0600),
			      .offset = 5,
			      .length = SIZE,
			      .data = data,
			      .sent = on_sent};
	uint64_t sum = 0;
	struct afs_error error;
	FILE *file = tmpfile();

	setup();
	for (size_t i = 0; i < SIZE; i++) {
		data[i] = (uint8_t)(i * 31 + (i >> 9));
		sum += data[i] * (i % 251 + 1);
	}
	ck_assert_msg(afs_client_store(copy.client, &s, "it", &error) == 0, "%s", error.text);
	ck_assert_uint_eq(server.sum, sum);
	ck_assert_uint_eq(server.offset, 5);
	ck_assert_uint_eq(server.end, SIZE + 5);
	ck_assert_uint_eq(server.how.ClientModTime, 99);
	ck_assert_uint_eq(server.how.UnixModeBits, 0600);
	ck_assert_uint_eq(last_sent, SIZE);
	/* From a file; then more than it has. */
	ck_assert_uint_eq(fwrite("12345", 1, 5, file) + fwrite(data, 1, SIZE, file), SIZE + 5);
	ck_assert_int_eq(fflush(file), 0);
	s.data = NULL;
	s.fd = fileno(file);
	last_sent = 0;
	ck_assert_msg(afs_client_store(copy.client, &s, "it", &error) == 0, "%s", error.text);
	ck_assert_uint_eq(server.sum, sum);
	s.length++;
	last_sent = 0;
	ck_assert_int_eq(afs_client_store(copy.client, &s, "it", &error), 1);
	ck_assert_int_eq(errno, 0);
	s.fd = open("/", O_RDONLY);
	ck_assert_int_eq(afs_client_store(copy.client, &s, "it", &error), 1);
	ck_assert_int_eq(errno, EISDIR);
	close(s.fd);
	fclose(file);
	free(data);
	end();
}
END_TEST

static void end_protected(void)
{
	end();
	unlink(guard.path);
	rmdir(guard.dir);
	rxw_security_unref(guard.class);
	tools_keys_close(&guard.keys);
	guard.class = NULL;
	guard.ahead_s = 0;
}

/* The second client of a run begins when the token has expired: the location server refuses its first call. */
static void first_call(int class)
{
	struct copy other;

	setup_as(class);
	guard.ahead_s = 2 * LIFETIME;
	ck_assert_int_eq(copy_open(&run, &other), 0);
	ck_assert_int_eq(copy_locate(&other, "vol", ""), 0);
	ck_assert_uint_eq(run.renewal.count, 1);
	ck_assert_uint_eq(other.tokens, 1);
	copy_close(&other);
	end_protected();
}

/* A call that both servers refuse, if it has to look the volume up. */
static void later_call(int class, bool moves)
{
	struct change c = change_of(CHANGE_CREATE, "a");
	struct afs_error error = {0};
	enum copy_result rc;

	setup_as(class);
	server.moves = moves;
	guard.ahead_s = moves ? 0 : 2 * LIFETIME;
	rc = change_try(&copy, &c, &error);
	ck_assert_msg(rc == COPY_GOOD, "%s", error.text);
	ck_assert_uint_eq(server.calls, moves ? 2 : 1);
	ck_assert_uint_eq(run.renewal.count, 1);
	ck_assert_uint_eq(copy.tokens, 1);
	end_protected();
}

/* There is no other token. */
static void no_other(int class)
{
	struct change c = change_of(CHANGE_CREATE, "a");
	struct afs_error error = {0};

	setup_as(class);
	unlink(guard.path);
	guard.ahead_s = 2 * LIFETIME;
	ck_assert_int_eq(change_try(&copy, &c, &error), COPY_STOP);
	ck_assert_msg(tools_renewal_expired(error.code, error.origin), "%s", error.text);
	ck_assert_int_eq(copy_locate(&copy, "other", ""), -1);
	ck_assert_uint_eq(server.calls, 0);
	ck_assert_uint_eq(run.renewal.count, 0);
	end_protected();
}

/* Every call that is refused because its token has expired is repeated with the next token. */
START_TEST(tokens_expire)
{
	for (int class = TOOLS_RXKAD; class <= TOOLS_RXGK; class ++) {
		first_call(class);
		later_call(class, false);
		later_call(class, true);
	}
}
END_TEST

START_TEST(last_token_expires)
{
	for (int class = TOOLS_RXKAD; class <= TOOLS_RXGK; class ++)
		no_other(class);
}
END_TEST

TEST_MAIN_WITHIN(60, "change", tokens_expire, last_token_expires, lost_answers, never_there, others,
		 busy, stores)
