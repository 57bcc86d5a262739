/* SPDX-License-Identifier: BSD-2-Clause */
/* The file server in this process, and a client that requests all of its files. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "afs/bare.h"
#include "afs/dir.h"
#include "afs/fetch.h"
#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "afs/vl.h"
#include "fileserver/base/base.h"
#include "fileserver/server.h"
#include "scenario.h"
#include "tests/fileserver/fixture.h"

#define SIZE	300000u
#define FILES	6u
#define ABOVE	(1u << 20) /* longer than any text here */
#define LIMIT_MS 60000

static struct {
	char *root, *state;
	struct fsd_server *server;
	rxw_engine *engine;
	struct bare_client *client;
	uint32_t volume;
} bed;

static const char *const paths[FILES] = {"big", "text", "link", "sub", "sub/inner", ""};

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + i / 251 + i / 65537);
}

static void prepare(void)
{
	static uint8_t data[SIZE];

	memset(&bed, 0, sizeof(bed));
	fsd_log_level(RXW_LOG_ERROR);
	/* Hundreds of stores are made: syncing to disk is not tested here. */
	if (!access("/dev/shm", W_OK))
		setenv("TMPDIR", "/dev/shm", 0);
	bed.root = tree_make();
	bed.state = test_folder();
	for (size_t i = 0; i < SIZE; i++)
		data[i] = byte_at(i);
	tree_file(bed.root, "big", data, SIZE, 0644);
	tree_text(bed.root, "text", "hello, world\n");
	tree_link(bed.root, "link", "sub/inner");
	tree_dir(bed.root, "sub", 0755);
	tree_text(bed.root, "sub/inner", "inner");
}

/* 0, or -1 with a text. */
static int serve(void)
{
	const struct fsd_settings settings = {
		.export = bed.root,
		.volume = "data",
		.listen = "127.0.0.1",
		.state = bed.state,
		.readers = 2,
		.read_ahead = 2 << 20,
		.watches = 10,
		.promises = 100,
		/*
		 * A limit, also for a busy machine: calls of a client that is gone end after
		 * dead_ms.
		 */
		.drain_ms = 30000,
	};
	char message[FSD_MESSAGE_MAX] = "";
	struct rxw_config config;
	int r;

	rxw_config_init(&config, sizeof(config));
	config.listeners = 1;
	config.dead_ms = 1000;
	r = fsd_server_start(&settings, &config, &bed.server, message);
	expect(!r || *message, "the server does not start and gives no reason");
	if (r)
		bed.server = NULL;
	return r;
}

/* A call fails with a code that has a text. 0, or -1. */
static int end_call(rxw_call *call, int32_t code, const char *what)
{
	enum rxw_origin origin;

	code = rxw_call_end(call, code, &origin);
	expect(!code || *rxw_code_text_from(code, origin), "%s fails and gives no reason", what);
	return code ? -1 : 0;
}

static rxw_call *begin_call(void)
{
	const struct rxw_call_options co = {.size = sizeof(co), .deadline_ms = LIMIT_MS};
	rxw_call *call;
	int r = bare_begin(bed.client, &co, &call);

	scenario_sane("a call", r);
	return r ? NULL : call;
}

static struct sockaddr_storage loopback(uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_storage address = {0};

	memcpy(&address, &in, sizeof(in));
	return address;
}

/* Asks the location service for the number of the volume. 0, or -1. */
static int find_volume(void)
{
	const struct rxw_call_options co = {.size = sizeof(co), .deadline_ms = LIMIT_MS};
	struct sockaddr_storage vl = loopback(fsd_server_vl_port(bed.server));
	rxw_connection *connection;
	uvldbentry entry = {0};
	rxw_call *call;
	int r = rxw_connection_create(bare_endpoint(bed.client), (struct sockaddr *)&vl,
				      sizeof(struct sockaddr_in), AFS_SERVICE_VL, NULL,
				      &connection);

	scenario_sane("a connection", r);
	if (r)
		return r;
	r = rxw_call_begin(connection, &co, &call);
	scenario_sane("a call", r);
	if (!r)
		r = end_call(call,
			     StartVL_GetEntryByNameU(call, "data")
				     ?: EndVL_GetEntryByNameU(call, &entry),
			     "looking up");
	rxw_connection_release(connection);
	bed.volume = entry.volumeId[entry.flags & VLF_RWEXISTS ? AFS_VL_RW : AFS_VL_RO];
	expect(r || bed.volume, "the volume has no number");
	return r;
}

static int ask_for(void)
{
	const struct sockaddr_storage fs = loopback(fsd_server_fs_port(bed.server));
	const struct bare_options options = {.server = &fs,
					     .server_len = sizeof(struct sockaddr_in)};
	int r = bare_open(bed.engine, &options, &bed.client);

	scenario_sane("the client", r);
	if (r)
		bed.client = NULL;
	return r ? r : find_volume();
}

static bool up(void)
{
	return !serve() && !scenario_engine(&bed.engine) && !ask_for();
}

/* All bytes of an object, of at most ABOVE; free() them. 0, or -1. */
static int fetch(const AFSFid *fid, uint8_t **bytes, size_t *length)
{
	rxw_call *call = begin_call();
	enum afs_fetch_result result;
	struct afs_fetch f;
	uint8_t *data = calloc(1, ABOVE + 1);

	*length = 0;
	afs_fetch_init(&f, fid, 0, ABOVE);
	do {
		struct iovec iov[16];
		unsigned count = 16;

		result = data && call ? afs_fetch_step(&f, call, iov, &count) : AFS_FETCH_ERROR;
		for (unsigned i = 0; result == AFS_FETCH_LENT && i < count; i++) {
			memcpy(data + *length, iov[i].iov_base, iov[i].iov_len);
			*length += iov[i].iov_len;
		}
	} while (result == AFS_FETCH_LENT);
	if (call && end_call(call, result == AFS_FETCH_DONE ? 0 : RXW_USER_ABORT, "FetchData64"))
		result = AFS_FETCH_ERROR;
	*bytes = data;
	if (result == AFS_FETCH_DONE)
		return 0;
	free(data);
	return -1;
}

/* The type of an object, or -1. */
static int ask_type(const AFSFid *fid)
{
	rxw_call *call = begin_call();
	AFSFetchStatus status = {0};
	AFSCallBack callback;
	AFSVolSync sync;
	int32_t code;

	if (!call)
		return -1;
	code = StartRXAFS_FetchStatus(call, fid)
		       ?: EndRXAFS_FetchStatus(call, &status, &callback, &sync);
	if (end_call(call, code, "FetchStatus"))
		return -1;
	expect(afs_status_usable(&status), "the status of %u makes no sense", fid->Vnode);
	return (int)status.FileType;
}

/* One name of a path. 0, or -1. */
static int look_up(AFSFid *fid, const char *name)
{
	uint8_t *image;
	size_t length;
	int found;

	if (fetch(fid, &image, &length))
		return -1;
	found = afs_dir_lookup(image, length, name, &fid->Vnode, &fid->Unique);
	free(image);
	expect(found == 1, "%s is not there", name);
	return 0;
}

/* The bytes of what is at a path, behind links; free() them. 0, or -1. */
static int read_path(const char *path, uint8_t **bytes, size_t *length)
{
	AFSFid fid = {bed.volume, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};
	char *text = strdup(path), *rest = NULL;
	uint8_t *target;
	int type, r = text ? 0 : -1;

	for (char *name = text ? strtok_r(text, "/", &rest) : NULL; name && !r;
	     name = strtok_r(NULL, "/", &rest))
		r = look_up(&fid, name);
	free(text);
	type = r ? -1 : ask_type(&fid);
	if (type != AFS_TYPE_SYMLINK)
		return type < 0 ? -1 : fetch(&fid, bytes, length);
	if (fetch(&fid, &target, length))
		return -1;
	r = read_path((const char *)target, bytes, length);
	free(target);
	return r;
}

/* Reads one object by its path, status and bytes. 0, or -1. */
static int look_at(const char *path)
{
	uint8_t *data;
	size_t length;

	if (read_path(path, &data, &length))
		return -1;
	if (!strcmp(path, "big")) {
		expect(length == SIZE, "%zu bytes of %s", length, path);
		for (size_t i = 0; i < SIZE; i++)
			expect(data[i] == byte_at(i), "byte %zu of %s", i, path);
	} else if (!strcmp(path, "link") || strstr(path, "inner")) {
		expect(length == 5 && !memcmp(data, "inner", 5), "the text of %s", path);
	}
	free(data);
	return 0;
}

/* Changes files as other programs do; not through the fixture, whose assertions need memory. */
static void change(const char *name)
{
	int fd = open(tree_path(bed.root, name), O_WRONLY | O_CREAT, 0644);

	if (fd < 0)
		return;
	if (write(fd, "again", 5) < 0)
		expect(shim_refused(), "%s cannot be written", name);
	close(fd);
}

static void work(void)
{
	for (unsigned i = 0; i < FILES; i++)
		look_at(paths[i]);
	/* The client was promised a callback for this. */
	change("sub/new");
	change("text");
	for (unsigned i = 0; i < FILES; i++)
		look_at(paths[i]);
	fsd_server_report(bed.server);
}

/*
 * A server that has started serves a new client; one that has not started does so at the next
 * attempt.
 */
static void lives_on(bool whole)
{
	(void)whole;
	if (!bed.server)
		expect(!serve(), "the server does not start afterwards");
	if (!bed.engine)
		expect(!scenario_engine(&bed.engine), "no engine afterwards");
	bare_close(bed.client);
	expect(!ask_for(), "the server does not answer afterwards");
	for (unsigned i = 0; i < FILES; i++)
		expect(!look_at(paths[i]), "%s cannot be read afterwards", paths[i]);
}

static void down(void)
{
	bare_close(bed.client);
	scenario_destroy(NULL, bed.engine);
	expect(!fsd_server_stop(bed.server), "calls are left");
	tree_remove(bed.root);
	tree_remove(bed.state);
}

const struct scenario scenario_files = {
	.prepare = prepare, .up = up, .work = work, .lives_on = lives_on, .down = down};
