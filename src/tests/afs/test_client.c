/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the client side against servers in the same process: good ones, odd ones, hostile
 * ones. */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/rxwire.h>

#include "afs/client.h"
#include "afs/dir.h"
#include "afs/opcodes.h"

#define VOLUME 0x20000001u

/* How the servers behave; written before calls are made. */
static struct {
	bool old_location;      /* knows no U calls */
	bool no_bulk;
	bool no_address;
	struct afs_vl_entry entry;
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
	{ 2, "hello, world\n", 0644 }, { 4, "", 0644 },	     { 6, "file", 0777 },
	{ 8, "loop", 0777 },	       { 10, "/etc", 0777 }, { 12, "#other.volume.", 0644 },
	{ 14, "sub/..", 0777 },	       { 16, "../..", 0777 },
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
		static const char *const names[] = { "file", "empty", "link",	"loop",
						     "away", "mount", "around", "out" };

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
static bool status_of(const struct afs_fid *fid, struct afs_status *s, const struct object **object)
{
	*object = NULL;
	memset(s, 0, sizeof(*s));
	s->interface_version = 1;
	s->links = 1;
	s->data_version = 7;
	s->parent_vnode = s->parent_unique = 1;
	if (fid->volume != VOLUME || fid->unique != 1)
		return false;
	if (fid->vnode == 1 || fid->vnode == 3) {
		s->type = AFS_TYPE_DIR;
		s->mode = 0755;
		s->length = AFS_DIR_PAGE;
		return true;
	}
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (objects[i].vnode == fid->vnode) {
			*object = &objects[i];
			s->type = fid->vnode >= 6 ? AFS_TYPE_SYMLINK : AFS_TYPE_FILE;
			s->mode = objects[i].mode;
			s->length = strlen(objects[i].text);
			return true;
		}
	return false;
}

static void put_tail(struct rxw_xdr *x, const struct afs_status *status)
{
	static const struct afs_callback callback = { .version = 1 };
	static const struct afs_volsync sync = { .creation = 1 };

	afs_status_put(x, status);
	afs_callback_put(x, &callback);
	afs_volsync_put(x, &sync);
}

static int32_t fetch(rxw_call *call, struct rxw_xdr *in)
{
	uint8_t raw[400], *image = NULL;
	const struct object *object;
	struct afs_status status;
	const void *data;
	size_t size;
	uint64_t offset, length, count;
	struct afs_fid fid;
	struct rxw_xdr x;

	if (!afs_fid_get(in, &fid) || !rxw_xdr_get_u64(in, &offset) ||
	    !rxw_xdr_get_u64(in, &length))
		return RXW_RPC_SS_UNMARSHAL;
	if (!status_of(&fid, &status, &object))
		return AFS_VNOVNODE;
	if (object) {
		data = object->text;
		size = strlen(object->text);
	} else {
		data = image = image_of(fid.vnode, &size);
	}
	if (image && mood.fetch == BAD_IMAGE)
		memset(image, 0x55, 64);
	count = offset >= size ? 0 : size - offset;
	count = count < length ? count : length;
	if (mood.fetch == NO_HEAD)
		goto done;
	rxw_xdr_writer(&x, raw, sizeof(raw));
	rxw_xdr_put_u64(&x, mood.fetch == TOO_LONG  ? length + 1 :
			    mood.fetch == TOO_SHORT ? count + 100 :
						      count);
	rxw_call_write(call, raw, 8);
	rxw_call_write(call, (const uint8_t *)data + offset, count);
	if (mood.fetch == ABORT_INSIDE) {
		free(image);
		return AFS_VIO;
	}
	if (mood.fetch == NO_TAIL || mood.fetch == TOO_SHORT)
		goto done;
	rxw_xdr_writer(&x, raw, sizeof(raw));
	if (mood.fetch == BAD_TAIL)
		status.type = 77;
	put_tail(&x, &status);
	rxw_call_write(call, raw, rxw_xdr_used(&x));
done:
	free(image);
	return 0;
}

static int32_t bulk(rxw_call *call, struct rxw_xdr *in)
{
	uint8_t raw[AFS_BULK_MAX * 100 + 100];
	struct afs_fid fids[AFS_BULK_MAX];
	const struct object *object;
	struct afs_status status;
	struct rxw_xdr x;
	uint32_t count;

	if (!afs_fids_get(in, fids, &count))
		return RXW_RPC_SS_UNMARSHAL;
	rxw_xdr_writer(&x, raw, sizeof(raw));
	rxw_xdr_put_u32(&x, count);
	for (uint32_t i = 0; i < count; i++) {
		if (!status_of(&fids[i], &status, &object))
			afs_status_failed(&status, AFS_VNOVNODE);
		afs_status_put(&x, &status);
	}
	ck_assert(rxw_xdr_ok(&x));
	rxw_call_write(call, raw, rxw_xdr_used(&x));
	return 0;
}

static int32_t serve_fs(rxw_call *call, void *context)
{
	uint8_t request[1024], reply[200];
	ssize_t n = rxw_call_read(call, request, sizeof(request));
	const struct object *object;
	struct afs_status status;
	struct afs_fid fid;
	struct rxw_xdr in, x;
	uint32_t operation = 0;

	(void)context;
	rxw_xdr_reader(&in, request, n > 0 ? (size_t)n : 0);
	rxw_xdr_get_u32(&in, &operation);
	switch (operation) {
	case AFS_FS_FETCH_STATUS:
		if (!afs_fid_get(&in, &fid))
			return RXW_RPC_SS_UNMARSHAL;
		if (!status_of(&fid, &status, &object))
			return AFS_VNOVNODE;
		rxw_xdr_writer(&x, reply, sizeof(reply));
		put_tail(&x, &status);
		rxw_call_write(call, reply, rxw_xdr_used(&x));
		return 0;
	case AFS_FS_FETCH_DATA64:
		return fetch(call, &in);
	case AFS_FS_INLINE_BULK_STATUS:
		return mood.no_bulk ? RXW_RPC_OPCODE : bulk(call, &in);
	default:
		return RXW_RPC_OPCODE;
	}
}

static int32_t serve_vl(rxw_call *call, void *context)
{
	uint8_t request[1024], reply[2048];
	ssize_t n = rxw_call_read(call, request, sizeof(request));
	struct afs_vl_addrs addrs = {.unique = 1, .count = 2, .address = {0x7f000063, 0x7f000001}};
	struct rxw_xdr in, x;
	uint32_t operation = 0;
	char name[AFS_VL_NAME];

	(void)context;
	rxw_xdr_reader(&in, request, n > 0 ? (size_t)n : 0);
	rxw_xdr_get_u32(&in, &operation);
	if (mood.old_location && operation >= AFS_VL_GET_ENTRY_BY_NAME_U)
		return RXW_RPC_OPCODE;
	rxw_xdr_writer(&x, reply, sizeof(reply));
	if (operation == AFS_VL_GET_ADDRS_U) {
		if (mood.no_address)
			return AFS_VL_NOENT;
		addrs.uuid = mood.entry.site[0].uuid;
		afs_vl_addrs_put(&x, &addrs);
	} else if (operation == AFS_VL_GET_ENTRY_BY_NAME_U ||
		   operation == AFS_VL_GET_ENTRY_BY_NAME_N) {
		if (!rxw_xdr_copy_string(&in, AFS_VL_NAME - 1, name))
			return RXW_RPC_SS_UNMARSHAL;
		if (strncmp(name, "vol", 3) != 0 && strcmp(name, "536870913") != 0)
			return AFS_VL_NOENT;
		if (operation == AFS_VL_GET_ENTRY_BY_NAME_U)
			afs_vl_entry_u_put(&x, &mood.entry);
		else
			afs_vl_entry_n_put(&x, &mood.entry);
	} else {
		return RXW_RPC_OPCODE;
	}
	rxw_call_write(call, reply, rxw_xdr_used(&x));
	return 0;
}

static rxw_endpoint *serve(uint16_t id, rxw_handler_fn handler, struct sockaddr_storage *address)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rxw_endpoint_options eo = { .size = sizeof(eo),
					   .address = (struct sockaddr *)&loopback,
					   .address_len = sizeof(loopback), .server = 1 };
	struct rxw_service_options so = { .size = sizeof(so), .id = id, .name = "test",
					  .handler = handler };
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
	struct afs_client_options o = { 0 };
	struct sockaddr_storage vl, fs;
	struct rxw_config config;

	memset(&mood, 0, sizeof(mood));
	strcpy(mood.entry.name, "vol");
	mood.entry.sites = 1;
	mood.entry.site[0].uuid.time_low = 0x1234;
	mood.entry.site[0].unique = 1;
	mood.entry.site[0].address = 0x7f000001;
	mood.entry.site[0].flags = AFS_VL_SITE_RW | AFS_VL_SITE_UUID;
	mood.entry.id[AFS_VL_RW] = VOLUME;
	mood.entry.flags = AFS_VL_RW_EXISTS;
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

/* An error whose one line has `part` in it. */
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
	/* Two addresses: that of the location server is the one to try first. */
	ck_assert_uint_eq(ntohl(inet(&volume.server).sin_addr.s_addr), 0x7f000001);
	find("536870913");
	ck_assert_uint_eq(volume.id, VOLUME);
	mood.old_location = true;
	mood.entry.site[0].flags = AFS_VL_SITE_RW;
	find("vol");
	mood.old_location = false;
	/* Types: by suffix, by what exists. */
	mood.entry.site[0].flags = AFS_VL_SITE_RW | AFS_VL_SITE_RO | AFS_VL_SITE_UUID;
	mood.entry.id[AFS_VL_RO] = VOLUME;
	mood.entry.id[AFS_VL_RW] = VOLUME + 5;
	mood.entry.flags = AFS_VL_RO_EXISTS;
	find("vol");
	ck_assert_uint_eq(volume.id, VOLUME);
	mood.entry.flags = AFS_VL_RO_EXISTS | AFS_VL_RW_EXISTS;
	find("vol.readonly");
	ck_assert_uint_eq(volume.id, VOLUME);
	want_error(afs_client_volume(client, "vol.backup", &volume, &error), "type");
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
	mood.no_address = true;
	want_error(afs_client_volume(client, "vol", &volume, &error), "no address");
	mood.no_address = false;
	mood.entry.site[0].flags |= AFS_VL_SITE_UNUSED;
	want_error(afs_client_volume(client, "vol", &volume, &error), "no address");
	mood.entry.site[0].flags = AFS_VL_SITE_RO | AFS_VL_SITE_UUID;
	want_error(afs_client_volume(client, "vol", &volume, &error), "no address");
	/* The file server does not know it: said, not found out later. */
	mood.entry.site[0].flags = AFS_VL_SITE_RW | AFS_VL_SITE_UUID;
	mood.entry.id[AFS_VL_RW] = VOLUME + 1;
	want_error(afs_client_volume(client, "vol", &volume, &error), "vol");
}
END_TEST

static void walk_to(const char *path, bool follow, uint32_t vnode)
{
	struct afs_object object;

	ck_assert_msg(afs_client_walk(client, &volume, path, follow, &object, &error) == 0,
		      "%s: %s", path, error.text);
	ck_assert_msg(object.fid.vnode == vnode, "%s led to %u", path, object.fid.vnode);
	ck_assert_uint_eq(object.status.data_version, 7);
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
	walk_fails("file", "makes no sense");
}
END_TEST

static int contents(uint32_t vnode, size_t max, uint8_t **data, size_t *length)
{
	struct afs_fid fid = { VOLUME, vnode, 1 };

	return afs_client_contents(client, &fid, "the file", max, data, length, &error);
}

START_TEST(fetches)
{
	static const struct {
		int mood;
		const char *part;
	} bad[] = {
		{TOO_LONG, "more bytes"},  {TOO_SHORT, "ended before"}, {NO_HEAD, "ended before"},
		{NO_TAIL, "ended before"}, {BAD_TAIL, "no sense"},	{ABORT_INSIDE, "112"},
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
	/* And the connection still serves. */
	mood.fetch = GOOD;
	ck_assert_int_eq(contents(2, 100, &data, &length), 0);
	free(data);
}
END_TEST

START_TEST(many_statuses)
{
	struct afs_fid fids[AFS_BULK_MAX];
	struct afs_status statuses[AFS_BULK_MAX];

	find("vol");
	for (uint32_t i = 0; i < AFS_BULK_MAX; i++)
		fids[i] = (struct afs_fid){ VOLUME, i % 2 ? 2 : 98, 1 };
	for (int pass = 0; pass < 2; pass++) {
		memset(statuses, 0xff, sizeof(statuses));
		mood.no_bulk = pass == 1;
		ck_assert_int_eq(afs_client_bulk(client, fids, AFS_BULK_MAX, statuses, &error), 0);
		for (uint32_t i = 0; i < AFS_BULK_MAX; i++) {
			ck_assert_int_eq(statuses[i].error, i % 2 ? 0 : AFS_VNOVNODE);
			ck_assert_int_eq(afs_status_valid(&statuses[i]), i % 2);
		}
	}
}
END_TEST

/*
 * A call from the file server's endpoint to the client's own service. Returns the code, and the
 * reply.
 */
static int32_t call_back(const void *request, size_t size, uint8_t *reply, ssize_t *got)
{
	struct sockaddr_storage bound;
	struct sockaddr_in sa;
	socklen_t len = sizeof(bound);
	rxw_connection *connection;
	rxw_call *call;
	int32_t code;

	ck_assert_int_eq(rxw_endpoint_address(afs_client_endpoint(client), &bound, &len), 0);
	sa = inet(&bound);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(rxw_connection_create(fs_endpoint, (struct sockaddr *)&sa, sizeof(sa),
					       AFS_SERVICE_CB, NULL, &connection),
			 0);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, request, size), (ssize_t)size);
	*got = rxw_call_read(call, reply, 1024);
	code = rxw_call_end(call, 0, NULL);
	rxw_connection_release(connection);
	return code;
}

static int32_t call_back_word(uint32_t operation, uint8_t *reply, ssize_t *got)
{
	uint8_t word[4];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, word, sizeof(word));
	rxw_xdr_put_u32(&x, operation);
	return call_back(word, sizeof(word), reply, got);
}

START_TEST(callbacks)
{
	static const uint32_t empty[] = { AFS_CB_INIT_STATE, AFS_CB_PROBE, AFS_CB_CALLBACK,
					  AFS_CB_INIT_STATE3 };
	uint8_t reply[1024], request[4 + AFS_UUID_BYTES];
	struct afs_interfaces self;
	struct rxw_xdr x;
	uint32_t caps;
	ssize_t got;

	ck_assert_int_eq(call_back_word(AFS_CB_TELL_ME_ABOUT_YOURSELF, reply, &got), 0);
	ck_assert_int_eq(got, AFS_INTERFACES_BYTES + 8);
	rxw_xdr_reader(&x, reply, (size_t)got);
	ck_assert(afs_interfaces_get(&x, &self));
	ck_assert(afs_caps_get(&x, &caps));
	ck_assert_uint_eq(caps, AFS_CLIENT_CAP_ERRORTRANS);
	ck_assert_int_eq(call_back_word(AFS_CB_WHO_ARE_YOU, reply, &got), 0);
	ck_assert_int_eq(got, AFS_INTERFACES_BYTES);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		ck_assert_int_eq(call_back_word(empty[i], reply, &got), 0);
		ck_assert_int_eq(got, 0);
	}
	ck_assert_int_eq(call_back_word(9999, reply, &got), RXW_RPC_OPCODE);
	ck_assert_int_eq(call_back_word(AFS_CB_PROBE_UUID, reply, &got), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(call_back(reply, 2, reply, &got), RXW_RPC_DECODE);
	for (int wrong = 0; wrong < 2; wrong++) {
		self.uuid.time_low ^= (uint32_t)wrong;
		rxw_xdr_writer(&x, request, sizeof(request));
		rxw_xdr_put_u32(&x, AFS_CB_PROBE_UUID);
		afs_uuid_put(&x, &self.uuid);
		ck_assert_int_eq(call_back(request, sizeof(request), reply, &got), wrong);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client");
	TCase *tcase = tcase_create("client");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, volumes);
	tcase_add_test(tcase, no_volumes);
	tcase_add_test(tcase, paths);
	tcase_add_test(tcase, fetches);
	tcase_add_test(tcase, many_statuses);
	tcase_add_test(tcase, callbacks);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
