/* SPDX-License-Identifier: BSD-2-Clause */
/* The file server in this process, and a client that requests all of its files. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "afs/client/client.h"
#include "fileserver/base/base.h"
#include "fileserver/server.h"
#include "scenario.h"
#include "tests/fileserver/fixture.h"

#define SIZE	300000u
#define FILES	6u
#define ABOVE	(1u << 20) /* longer than any text here */

static struct {
	char *root, *state;
	struct fsd_server *server;
	rxw_engine *engine;
	struct afs_client *client;
	struct afs_volume volume;
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

static int check_error(int r, const char *what, const struct afs_error *error)
{
	expect(!r || error->text[0], "%s fails and gives no reason", what);
	return r;
}

static int ask_for(void)
{
	struct sockaddr_storage vl = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&vl;
	struct afs_client_options options = {.vl = &vl,
					     .vl_len = sizeof(*in),
					     .fs_port = fsd_server_fs_port(bed.server)};
	struct afs_error error = {0};
	int r;

	in->sin_family = AF_INET;
	in->sin_port = htons(fsd_server_vl_port(bed.server));
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r = check_error(afs_client_open(bed.engine, &options, &bed.client, &error), "the client",
			&error);
	if (r)
		bed.client = NULL;
	return r ? r : check_error(afs_client_volume(bed.client, "data", &bed.volume, &error),
			    "looking up", &error);
}

static bool up(void)
{
	return !serve() && !scenario_engine(&bed.engine) && !ask_for();
}

/* Reads one object by its path, status and bytes. 0, or -1. */
static int look_at(const char *path)
{
	struct afs_error error = {0};
	struct afs_object object;
	uint8_t *data;
	size_t length;

	if (check_error(afs_client_walk(bed.client, &bed.volume, path, true, &object, &error), path,
			&error) ||
	    check_error(afs_client_contents(bed.client, &object.fid, path, ABOVE, &data, &length,
					    &error),
			path, &error))
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
	if (bed.client)
		afs_client_close(bed.client);
	expect(!ask_for(), "the server does not answer afterwards");
	for (unsigned i = 0; i < FILES; i++)
		expect(!look_at(paths[i]), "%s cannot be read afterwards", paths[i]);
}

static void down(void)
{
	afs_client_close(bed.client);
	scenario_destroy(NULL, bed.engine);
	expect(!fsd_server_stop(bed.server), "calls are left");
	tree_remove(bed.root);
	tree_remove(bed.state);
}

const struct scenario scenario_files = {
	.prepare = prepare, .up = up, .work = work, .lives_on = lives_on, .down = down};
