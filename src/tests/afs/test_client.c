/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the AFS client with servers in the same process: good, faulty and hostile ones. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/coder.h>
#include <rxwire/rxwire.h>

#include "afs/client/client.h"
#include "afs/dir.h"
#include "afs/rxafscb.h"
#include "tests/asserts.h"

#define VOLUME 0x20000001u

/* Behaviour of the servers; set before calls are made. */
static struct {
	bool old_location; /* has no U calls */
	bool no_bulk, short_bulk;
	bool cut_status; /* truncates the reply within its last word */
	bool no_address;
	uvldbentry entry;
	enum {
		GOOD,
		TOO_LONG,
		TOO_SHORT,
		NO_HEAD,
		NO_TAIL,
		BAD_TAIL,
		ABORT_INSIDE,
		BAD_IMAGE
	} fetch;
} mood;

/* Objects, by vnode: directories 1 and 3, files 2 and 4, links from 6. */
static const struct object {
	uint32_t vnode;
	const char *text; /* of files and links */
	uint32_t mode;
} objects[] = {
	{2, "hello, world\n", 0644}, {4, "", 0644},	  {6, "file", 0777},
	{8, "loop", 0777},	     {10, "/etc", 0777},  {12, "#other.volume.", 0644},
	{14, "sub/..", 0777},	     {16, "../..", 0777},
};

static struct sockaddr_in inet(const struct sockaddr_storage *sa)
{
	struct sockaddr_in in;

	memcpy(&in, sa, sizeof(in));
	return in;
}

static rxw_engine *engine;
static rxw_endpoint *vl_endpoint, *fs_endpoint;
static struct afs_client *client;
static struct afs_error error;

static uint8_t *image_of(uint32_t vnode, size_t *length)
{
	struct afs_dir dir;

	ck_assert_int_eq(afs_dir_begin(&dir, vnode, 1, 1, 1), 0);
	if (vnode == 1) {
		static const char *const names[] = {"file", "empty", "link",   "loop",
						    "away", "mount", "around", "out"};

		for (uint32_t i = 0; i < 8; i++)
			afs_dir_add(&dir, names[i], strlen(names[i]), 2 * i + 2, 1);
		afs_dir_add(&dir, "sub", 3, 3, 1);
	} else {
		afs_dir_add(&dir, "inner", 5, 2, 1);
		afs_dir_add(&dir, "stale", 5, 98, 1);
	}
	return afs_dir_take(&dir, length);
}

/* Status of an object; false if there is none. */
static bool status_of(const AFSFid *fid, AFSFetchStatus *s, const struct object **object)
{
	*object = NULL;
	memset(s, 0, sizeof(*s));
	s->InterfaceVersion = 1;
	s->LinkCount = 1;
	s->DataVersion = 7;
	s->ParentVnode = s->ParentUnique = 1;
	if (fid->Volume != VOLUME || fid->Unique != 1)
		return false;
	if (fid->Vnode == 1 || fid->Vnode == 3) {
		s->FileType = AFS_TYPE_DIR;
		s->UnixModeBits = 0755;
		s->Length = AFS_DIR_PAGE;
		return true;
	}
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (objects[i].vnode == fid->Vnode) {
			*object = &objects[i];
			s->FileType = fid->Vnode >= 6 ? AFS_TYPE_SYMLINK : AFS_TYPE_FILE;
			s->UnixModeBits = objects[i].mode;
			s->Length = (uint32_t)strlen(objects[i].text);
			return true;
		}
	return false;
}

static void put_tail(struct rxw_xdr *x, const AFSFetchStatus *status)
{
	static const AFSCallBack callback = {.CallBackVersion = CALLBACK_VERSION};
	static const AFSVolSync sync = {.spare1 = 1};

	xdr_put_AFSFetchStatus(x, status);
	xdr_put_AFSCallBack(x, &callback);
	xdr_put_AFSVolSync(x, &sync);
}

/* Write a part of the reply: 0 or the code of the call. */
static int32_t sent(rxw_call *call, const void *data, size_t length)
{
	if (rxw_call_write(call, data, length) == (ssize_t)length)
		return 0;
	return rxw_call_error(call, NULL);
}

static int32_t fetch(rxw_call *call, struct rxw_xdr *in)
{
	int32_t code = 0;
	uint8_t raw[400], *image = NULL;
	const struct object *object;
	AFSFetchStatus status;
	const void *data;
	size_t size;
	uint64_t offset, length, count;
	AFSFid fid;
	struct rxw_xdr x;

	if (!xdr_get_AFSFid(in, &fid) || !rxw_xdr_get_u64(in, &offset) ||
	    !rxw_xdr_get_u64(in, &length))
		return RXW_RPC_SS_UNMARSHAL;
	if (!status_of(&fid, &status, &object))
		return AFS_VNOVNODE;
	if (object) {
		data = object->text;
		size = strlen(object->text);
	} else {
		data = image = image_of(fid.Vnode, &size);
	}
	if (image && mood.fetch == BAD_IMAGE)
		memset(image, 0x55, 64);
	count = offset >= size ? 0 : size - offset;
	count = count < length ? count : length;
	if (mood.fetch == NO_HEAD)
		goto done;
	rxw_xdr_writer(&x, raw, sizeof(raw));
	rxw_xdr_put_u64(&x, mood.fetch == TOO_LONG    ? length + 1
			    : mood.fetch == TOO_SHORT ? count + 100
						      : count);
	code = sent(call, raw, 8);
	if (!code && count > 0)
		code = sent(call, (const uint8_t *)data + offset, count);
	if (mood.fetch == ABORT_INSIDE)
		code = AFS_VIO;
	if (code || mood.fetch == NO_TAIL || mood.fetch == TOO_SHORT)
		goto done;
	rxw_xdr_writer(&x, raw, sizeof(raw));
	if (mood.fetch == BAD_TAIL)
		status.FileType = 77;
	put_tail(&x, &status);
	code = sent(call, raw, rxw_xdr_used(&x));
done:
	free(image);
	return code;
}

static int32_t bulk(rxw_call *call, struct rxw_xdr *in)
{
	uint8_t raw[AFSCBMAX * 100 + 100];
	AFSFetchStatus statuses[AFSCBMAX];
	AFSBulkStats reply = {.val = statuses};
	const AFSCBs callbacks = {0};
	const AFSVolSync sync = {.spare1 = 1};
	const struct object *object;
	AFSCBFids fids;
	struct rxw_xdr x;

	if (!xdr_get_AFSCBFids(in, &fids))
		return RXW_RPC_SS_UNMARSHAL;
	for (; reply.len < fids.len; reply.len++)
		if (!status_of(&fids.val[reply.len], &statuses[reply.len], &object))
			afs_status_refuse(&statuses[reply.len], AFS_VNOVNODE);
	xdrfree_AFSCBFids(&fids);
	if (mood.short_bulk)
		reply.len--;
	rxw_xdr_writer(&x, raw, sizeof(raw));
	xdr_put_AFSBulkStats(&x, &reply);
	xdr_put_AFSCBs(&x, &callbacks);
	xdr_put_AFSVolSync(&x, &sync);
	ck_assert(rxw_xdr_ok(&x));
	return sent(call, raw, rxw_xdr_used(&x));
}

static int32_t serve_fs(rxw_call *call, void *context)
{
	uint8_t request[1024], reply[200];
	ssize_t n = rxw_call_read(call, request, sizeof(request));
	const struct object *object;
	AFSFetchStatus status;
	AFSFid fid;
	struct rxw_xdr in, x;
	uint32_t operation = 0;

	(void)context;
	rxw_xdr_reader(&in, request, n > 0 ? (size_t)n : 0);
	rxw_xdr_get_u32(&in, &operation);
	switch (operation) {
	case RXAFS_OP_FetchStatus:
		if (!xdr_get_AFSFid(&in, &fid))
			return RXW_RPC_SS_UNMARSHAL;
		if (!status_of(&fid, &status, &object))
			return AFS_VNOVNODE;
		rxw_xdr_writer(&x, reply, sizeof(reply));
		put_tail(&x, &status);
		return sent(call, reply, rxw_xdr_used(&x) - mood.cut_status);
	case RXAFS_OP_FetchData64:
		return fetch(call, &in);
	case RXAFS_OP_InlineBulkStatus:
		return mood.no_bulk ? RXW_RPC_OPCODE : bulk(call, &in);
	default:
		return RXW_RPC_OPCODE;
	}
}

static void put_addresses(struct rxw_xdr *x)
{
	uint32_t two[] = {0x7f000063, 0x7f000001};
	const bulkaddrs addrs = {2, two};

	rxw_xdr_put_uuid(x, &mood.entry.serverNumber[0]);
	rxw_xdr_put_u32(x, 1);
	rxw_xdr_put_u32(x, 2);
	xdr_put_bulkaddrs(x, &addrs);
}

/* The same entry for clients of older servers: with the address instead of the UUID. */
static void put_older_entry(struct rxw_xdr *x)
{
	nvldbentry n = {.nServers = mood.entry.nServers, .flags = mood.entry.flags};

	memcpy(n.name, mood.entry.name, sizeof(n.name));
	memcpy(n.volumeId, mood.entry.volumeId, sizeof(n.volumeId));
	memcpy(n.serverFlags, mood.entry.serverFlags, sizeof(n.serverFlags));
	n.serverNumber[0] = 0x7f000001;
	xdr_put_nvldbentry(x, &n);
}

static int32_t serve_vl(rxw_call *call, void *context)
{
	uint8_t request[1024], reply[2048];
	ssize_t n = rxw_call_read(call, request, sizeof(request));
	struct rxw_xdr in, x;
	uint32_t operation = 0;
	char name[VL_MAXNAMELEN + 1];

	(void)context;
	rxw_xdr_reader(&in, request, n > 0 ? (size_t)n : 0);
	rxw_xdr_get_u32(&in, &operation);
	if (mood.old_location && operation >= VL_OP_GetEntryByNameU)
		return RXW_RPC_OPCODE;
	rxw_xdr_writer(&x, reply, sizeof(reply));
	if (operation == VL_OP_GetAddrsU) {
		if (mood.no_address)
			return AFS_VL_NOENT;
		put_addresses(&x);
	} else if (operation == VL_OP_GetEntryByNameU || operation == VL_OP_GetEntryByNameN) {
		if (!rxw_xdr_copy_string(&in, VL_MAXNAMELEN, name))
			return RXW_RPC_SS_UNMARSHAL;
		if (strncmp(name, "vol", 3) != 0 && strcmp(name, "536870913") != 0)
			return AFS_VL_NOENT;
		if (operation == VL_OP_GetEntryByNameU)
			xdr_put_uvldbentry(&x, &mood.entry);
		else
			put_older_entry(&x);
	} else {
		return RXW_RPC_OPCODE;
	}
	return sent(call, reply, rxw_xdr_used(&x));
}

static rxw_endpoint *serve(uint16_t id, rxw_handler_fn handler, struct sockaddr_storage *address)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .address = (struct sockaddr *)&loopback,
					  .address_len = sizeof(loopback),
					  .server = 1};
	struct rxw_service_options so = {
		.size = sizeof(so), .id = id, .name = "test", .handler = handler};
	socklen_t len = sizeof(*address);
	rxw_endpoint *endpoint;
	rxw_service *service;

	ck_assert_int_eq(rxw_endpoint_create(engine, &eo, &endpoint), 0);
	ck_assert_int_eq(rxw_service_add(endpoint, &so, &service), 0);
	ck_assert_int_eq(rxw_endpoint_address(endpoint, address, &len), 0);
	return endpoint;
}

static void setup(void)
{
	struct afs_client_options o = {0};
	struct sockaddr_storage vl, fs;
	struct rxw_config config;

	memset(&mood, 0, sizeof(mood));
	strcpy(mood.entry.name, "vol");
	mood.entry.nServers = 1;
	mood.entry.serverNumber[0].time_low = 0x1234;
	mood.entry.serverUnique[0] = 1;
	mood.entry.serverFlags[0] = VLSF_RWVOL | VLSF_UUID;
	mood.entry.volumeId[AFS_VL_RW] = VOLUME;
	mood.entry.flags = VLF_RWEXISTS;
	rxw_config_init(&config, sizeof(config));
	ck_assert_int_eq(rxw_engine_create(&config, &engine), 0);
	vl_endpoint = serve(AFS_SERVICE_VL, serve_vl, &vl);
	fs_endpoint = serve(AFS_SERVICE_FS, serve_fs, &fs);
	o.vl = &vl;
	o.vl_len = sizeof(struct sockaddr_in);
	o.fs_port = ntohs(inet(&fs).sin_port);
	ck_assert_int_eq(afs_client_open(engine, &o, &client, &error), 0);
}

static void teardown(void)
{
	afs_client_close(client);
	ck_assert_int_eq(rxw_endpoint_destroy(vl_endpoint), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(fs_endpoint), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}

static struct afs_volume volume;

static void find(const char *name)
{
	ck_assert_msg(afs_client_volume(client, name, &volume, &error) == 0, "%s: %s", name,
		      error.text);
}

/* Asserts an error message of one line that contains `part`. */
static void want_error(int rc, const char *part)
{
	ck_assert_int_eq(rc, -1);
	ck_assert_msg(strstr(error.text, part) && !strchr(error.text, '\n'), "\"%s\" is not in: %s",
		      part, error.text);
}

START_TEST(volumes)
{
	find("vol");
	ck_assert_uint_eq(volume.id, VOLUME);
	/* Two addresses: the client tries that of the location server first. */
	ck_assert_uint_eq(ntohl(inet(&volume.server).sin_addr.s_addr), 0x7f000001);
	find("536870913");
	ck_assert_uint_eq(volume.id, VOLUME);
	/* A server without UUIDs; a site without one, in an entry of the new kind. */
	mood.old_location = true;
	mood.entry.serverFlags[0] = VLSF_RWVOL;
	find("vol");
	mood.old_location = false;
	mood.entry.serverNumber[0].time_low = 0x7f000001;
	find("vol");
	mood.entry.serverNumber[0].time_low = 0x1234;
	/* Types: by suffix, then by existence. */
	mood.entry.serverFlags[0] = VLSF_RWVOL | VLSF_ROVOL | VLSF_UUID;
	mood.entry.volumeId[AFS_VL_RO] = VOLUME;
	mood.entry.volumeId[AFS_VL_RW] = VOLUME + 5;
	mood.entry.flags = VLF_ROEXISTS;
	find("vol");
	ck_assert_uint_eq(volume.id, VOLUME);
	mood.entry.flags = VLF_ROEXISTS | VLF_RWEXISTS;
	find("vol.readonly");
	ck_assert_uint_eq(volume.id, VOLUME);
	want_error(afs_client_volume(client, "vol.backup", &volume, &error), "type");
}
END_TEST

static int32_t restarting(rxw_call *call, void *context)
{
	(void)call, (void)context;
	return RXW_RESTARTING;
}

/* Of several location servers those that restart or do not answer are passed over. */
START_TEST(location_servers)
{
	struct sockaddr_storage first, others[2], fs;
	struct rxw_config config;
	struct afs_client_options o = {.vl = &first,
				       .vl_len = sizeof(struct sockaddr_in),
				       .vl_others = others,
				       .vl_other_count = 2,
				       .config = &config,
				       .limit_ms = 20000};
	rxw_endpoint *busy = serve(AFS_SERVICE_VL, restarting, &first), *dead;
	socklen_t len = sizeof(others[1]);
	struct afs_client *another;

	rxw_config_init(&config, sizeof(config));
	config.dead_ms = 1000;
	dead = serve(AFS_SERVICE_VL, restarting, &others[0]);
	ck_assert_int_eq(rxw_endpoint_destroy(dead), 0);
	ck_assert_int_eq(rxw_endpoint_address(vl_endpoint, &others[1], &len), 0);
	len = sizeof(fs);
	ck_assert_int_eq(rxw_endpoint_address(fs_endpoint, &fs, &len), 0);
	o.fs_port = ntohs(inet(&fs).sin_port);
	ck_assert_int_eq(afs_client_open(engine, &o, &another, &error), 0);
	ck_assert_msg(afs_client_volume(another, "vol", &volume, &error) == 0, "%s", error.text);
	ck_assert_uint_eq(volume.id, VOLUME);
	/* A name that one server does not know is not asked for at the others. */
	want_error(afs_client_volume(another, "nothere", &volume, &error), "nothere");
	ck_assert_int_eq(error.code, AFS_VL_NOENT);
	afs_client_close(another);
	/* None answers: the remedy is to wait. */
	o.vl_other_count = 1;
	ck_assert_int_eq(afs_client_open(engine, &o, &another, &error), 0);
	ck_assert_int_eq(afs_client_volume(another, "vol", &volume, &error), -1);
	ck_assert_int_eq(error.remedy, AFS_REMEDY_WAIT);
	afs_client_close(another);
	ck_assert_int_eq(rxw_endpoint_destroy(busy), 0);
}
END_TEST

START_TEST(no_volumes)
{
	want_error(afs_client_volume(client, "nothere", &volume, &error), "nothere");
	ck_assert_int_eq(error.code, AFS_VL_NOENT);
	ck_assert_int_eq(error.origin, RXW_ORIGIN_PEER);
	want_error(afs_client_volume(client, "", &volume, &error), "1 to 64");
	want_error(
		afs_client_volume(
			client,
			"a-name-that-is-far-too-long-for-a-volume-of-any-cell-in-the-whole-world",
			&volume, &error),
		"1 to 64");
	mood.entry.nServers = NMAXNSERVERS + 1;
	want_error(afs_client_volume(client, "vol", &volume, &error), "malformed");
	mood.entry.nServers = -1;
	want_error(afs_client_volume(client, "vol", &volume, &error), "malformed");
	mood.entry.nServers = 1;
	mood.no_address = true;
	want_error(afs_client_volume(client, "vol", &volume, &error), "no address");
	mood.no_address = false;
	mood.entry.serverFlags[0] |= VLSF_DONTUSE;
	want_error(afs_client_volume(client, "vol", &volume, &error), "no address");
	mood.entry.serverFlags[0] = VLSF_ROVOL | VLSF_UUID;
	want_error(afs_client_volume(client, "vol", &volume, &error), "no address");
	/* The file server does not have the volume: reported at once. */
	mood.entry.serverFlags[0] = VLSF_RWVOL | VLSF_UUID;
	mood.entry.volumeId[AFS_VL_RW] = VOLUME + 1;
	want_error(afs_client_volume(client, "vol", &volume, &error), "vol");
}
END_TEST

static void walk_to(const char *path, bool follow, uint32_t vnode)
{
	struct afs_object object;

	ck_assert_msg(afs_client_walk(client, &volume, path, follow, &object, &error) == 0,
		      "%s: %s", path, error.text);
	ck_assert_msg(object.fid.Vnode == vnode, "%s led to %u", path, object.fid.Vnode);
	ck_assert_uint_eq(object.status.DataVersion, 7);
}

static void walk_fails(const char *path, const char *part)
{
	struct afs_object object;

	want_error(afs_client_walk(client, &volume, path, true, &object, &error), part);
}

START_TEST(paths)
{
	char *path;

	find("vol");
	walk_to("", true, 1);
	walk_to("/", true, 1);
	walk_to("//./.", true, 1);
	walk_to("file", true, 2);
	walk_to("/sub//inner", true, 2);
	walk_to("sub", true, 3);
	walk_to("sub/", true, 3);
	walk_to("sub/..", true, 1);
	walk_to("link", true, 2);
	walk_to("link", false, 6);
	walk_to("around/file", false, 2);
	walk_to("around", true, 1);
	walk_to("loop", false, 8);
	walk_fails("none", "no such file");
	walk_fails("file/x", "not a directory");
	walk_fails("file/", "not a directory");
	walk_fails("link/x", "not a directory");
	walk_fails("..", "out of the volume");
	walk_fails("sub/../..", "out of the volume");
	walk_fails("out", "out of the volume");
	walk_fails("away", "out of the volume");
	walk_fails("loop", "too many");
	walk_fails("mount/x", "other.volume:PATH");
	walk_fails("sub/stale", "stale");
	ck_assert_int_eq(error.code, AFS_VNOVNODE);
	path = calloc(1, 2000);
	memset(path, 'x', 1500);
	walk_fails(path, "too long");
	path[300] = 0;
	walk_fails(path, "too long");
	free(path);
	mood.fetch = BAD_IMAGE;
	walk_fails("file", "malformed");
}
END_TEST

static int contents(uint32_t vnode, size_t max, uint8_t **data, size_t *length)
{
	AFSFid fid = {VOLUME, vnode, 1};

	return afs_client_contents(client, &fid, "the file", max, data, length, &error);
}

START_TEST(fetches)
{
	static const struct {
		int mood;
		const char *part;
	} bad[] = {
		{TOO_LONG, "more bytes"},  {TOO_SHORT, "ended before"}, {NO_HEAD, "ended before"},
		{NO_TAIL, "ended before"}, {BAD_TAIL, "malformed"},	{ABORT_INSIDE, "112"},
	};
	uint8_t *data;
	size_t length;

	find("vol");
	ck_assert_int_eq(contents(2, 100, &data, &length), 0);
	ck_assert_uint_eq(length, 13);
	ck_assert_mem_eq(data, "hello, world\n", 13);
	free(data);
	ck_assert_int_eq(contents(2, 5, &data, &length), 0);
	ck_assert_uint_eq(length, 5);
	free(data);
	ck_assert_int_eq(contents(4, 100, &data, &length), 0);
	ck_assert_uint_eq(length, 0);
	free(data);
	want_error(contents(96, 100, &data, &length), "the file");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		mood.fetch = bad[i].mood;
		want_error(contents(2, 1000, &data, &length), bad[i].part);
	}
	/* The connection can still be used. */
	mood.fetch = GOOD;
	ck_assert_int_eq(contents(2, 100, &data, &length), 0);
	free(data);
}
END_TEST

START_TEST(many_statuses)
{
	AFSFid fids[AFSCBMAX];
	AFSFetchStatus statuses[AFSCBMAX];

	find("vol");
	for (uint32_t i = 0; i < AFSCBMAX; i++)
		fids[i] = (AFSFid){VOLUME, i % 2 ? 2 : 98, 1};
	for (int pass = 0; pass < 2; pass++) {
		memset(statuses, 0xff, sizeof(statuses));
		mood.no_bulk = pass == 1;
		ck_assert_int_eq(afs_client_bulk(client, fids, AFSCBMAX, "many", statuses, &error),
				 0);
		for (uint32_t i = 0; i < AFSCBMAX; i++) {
			ck_assert_int_eq((int32_t)statuses[i].errorCode, i % 2 ? 0 : AFS_VNOVNODE);
			ck_assert_int_eq(afs_status_usable(&statuses[i]), i % 2);
		}
	}
	mood.no_bulk = false;
	mood.short_bulk = true;
	want_error(afs_client_bulk(client, fids, AFSCBMAX, "many", statuses, &error), "malformed");
}
END_TEST

START_TEST(truncated_answers)
{
	const AFSFid fid = {VOLUME, 2, 1};
	AFSFetchStatus status;

	find("vol");
	ck_assert_int_eq(afs_client_status(client, &fid, "the file", &status, &error), 0);
	mood.cut_status = true;
	want_error(afs_client_status(client, &fid, "the file", &status, &error), "malformed");
	ck_assert_int_eq(error.code, RXW_RPC_CC_UNMARSHAL);
	ck_assert_int_eq(error.origin, RXW_ORIGIN_LOCAL);
	ck_assert_uint_eq(status.InterfaceVersion, 0);
	mood.cut_status = false;
	ck_assert_int_eq(afs_client_status(client, &fid, "the file", &status, &error), 0);
}
END_TEST

/* A connection from the file server's endpoint to the client's own service. */
static rxw_connection *connect_back(void)
{
	struct sockaddr_storage bound;
	struct sockaddr_in sa;
	socklen_t len = sizeof(bound);
	rxw_connection *connection;

	ck_assert_int_eq(rxw_endpoint_address(afs_client_endpoint(client), &bound, &len), 0);
	sa = inet(&bound);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(rxw_connection_create(fs_endpoint, (struct sockaddr *)&sa, sizeof(sa),
					       AFS_SERVICE_CB, NULL, &connection),
			 0);
	return connection;
}

START_TEST(callbacks)
{
	rxw_connection *c = connect_back();
	AFSFid fids[1] = {{VOLUME, 2, 1}};
	const AFSCBFids list = {1, fids};
	const AFSCBs none = {0};
	interfaceAddr self, again;
	Capabilities caps;

	ck_assert_int_eq(RXAFSCB_TellMeAboutYourself(c, &self, &caps), 0);
	ck_assert_int_eq(self.numberOfInterfaces, 0);
	ck_assert_uint_eq(caps.len, 1);
	ck_assert_uint_eq(caps.val[0], CLIENT_CAPABILITY_ERRORTRANS);
	xdrfree_Capabilities(&caps);
	ck_assert_int_eq(RXAFSCB_WhoAreYou(c, &again), 0);
	ck_assert_mem_eq(&self.uuid, &again.uuid, sizeof(self.uuid));
	ck_assert_int_eq(RXAFSCB_InitCallBackState2(c, &again), 0);
	ck_assert_mem_eq(&self.uuid, &again.uuid, sizeof(self.uuid));
	ck_assert_int_eq(RXAFSCB_InitCallBackState(c), 0);
	ck_assert_int_eq(RXAFSCB_InitCallBackState3(c, &self.uuid), 0);
	ck_assert_int_eq(RXAFSCB_Probe(c), 0);
	ck_assert_int_eq(RXAFSCB_CallBack(c, &list, &none), 0);
	ck_assert_int_eq(RXAFSCB_ProbeUuid(c, &self.uuid), 0);
	again.uuid.time_low ^= 1;
	ck_assert_int_eq(RXAFSCB_ProbeUuid(c, &again.uuid), 1);
	rxw_connection_release(c);
}
END_TEST

/* Debugging tools get an answer that the client has no cache. */
START_TEST(no_debugging)
{
	rxw_connection *c = connect_back();
	AFSCB_CollData data;
	AFSDBCacheEntry ce;
	AFSDBLock debug_lock;
	int32_t version, when;
	char *cell;

	ck_assert_int_eq(RXAFSCB_GetLock(c, 0, &debug_lock), RXW_RPC_OPCODE);
	ck_assert_int_eq(RXAFSCB_GetCE(c, 0, &ce), RXW_RPC_OPCODE);
	ck_assert_int_eq(RXAFSCB_XStatsVersion(c, &version), RXW_RPC_OPCODE);
	ck_assert_int_eq(RXAFSCB_GetXStats(c, 2, 0, &version, &when, &data), RXW_RPC_OPCODE);
	ck_assert_int_eq(RXAFSCB_GetLocalCell(c, &cell), RXW_RPC_OPCODE);
	rxw_connection_release(c);
}
END_TEST

/* A long name of an object does not hide why a call failed, nor the object. */
START_TEST(long_names)
{
	struct afs_error e;
	char what[3000];
	size_t length;

	memset(what, 'x', sizeof(what) - 1);
	memcpy(what, "vol:/begin", 10);
	memcpy(what + sizeof(what) - 5, "/end", 5);
	afs_error_code(&e, what, 13, RXW_ORIGIN_PEER);
	length = strlen(e.text);
	ck_assert_uint_eq(length, sizeof(e.text) - 1);
	ck_assert_msg(strncmp(e.text, "vol:/begin", 10) == 0, "%s", e.text);
	ck_assert_msg(strstr(e.text, "x...x") != NULL, "%s", e.text);
	ck_assert_msg(strstr(e.text, "/end: Permission denied (code 13)") != NULL, "%s", e.text);
	/* The longest text that fits is complete. */
	what[sizeof(e.text) - 1] = 0;
	afs_error_text(&e, "%s", what);
	ck_assert_str_eq(e.text, what);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client");
	TCase *tcase = tcase_create("client");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, volumes);
	tcase_add_test(tcase, location_servers);
	tcase_add_test(tcase, no_volumes);
	tcase_add_test(tcase, paths);
	tcase_add_test(tcase, fetches);
	tcase_add_test(tcase, many_statuses);
	tcase_add_test(tcase, truncated_answers);
	tcase_add_test(tcase, callbacks);
	tcase_add_test(tcase, no_debugging);
	tcase_add_test(tcase, long_names);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
