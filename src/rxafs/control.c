/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's answers to rxafsctl. */
#include "rxafs/control.h"

#include <errno.h>
#include <jansson.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rxafs/admin.h>
#include <rxwire/token.h>

#include "program/address.h"
#include "program/auth.h"
#include "rxafs/task.h"

#define WORDS_MOST   16
#define SERVERS_MOST 16

/* A request that is served. */
struct asked {
	struct task *task;
	rxafs_object *object;
	const char *words[WORDS_MOST];
	unsigned count;
	const struct control *from;
	json_t *answer;
};

static const char *word_of(const struct asked *a, unsigned n)
{
	return n < a->count ? a->words[n] : "";
}

static void add_json_text(json_t *to, const char *name, const char *text)
{
	json_t *value = json_string(text);

	/* Names from servers may be in other encodings. */
	json_object_set_new(to, name, value ? value : json_string("?"));
}

static void add_json_number(json_t *to, const char *name, uint64_t number)
{
	json_object_set_new(to, name, json_integer((json_int_t)number));
}

/* -- volumes ---------------------------------------------------------------------------------- */

static int answer_examine(struct asked *a)
{
	struct rxafs_volume volume;
	int result = rxafs_examine(a->object, &a->task->request, &volume);
	char fid[64];

	if (result)
		return result;
	snprintf(fid, sizeof fid, "%u.%u.%u", volume.fid.volume, volume.fid.vnode,
		 volume.fid.unique);
	add_json_text(a->answer, "fid", fid);
	add_json_text(a->answer, "cell", volume.cell);
	add_json_text(a->answer, "volume", volume.name);
	add_json_number(a->answer, "id", volume.id);
	add_json_number(a->answer, "readWrite", volume.read_write);
	add_json_number(a->answer, "readOnly", volume.read_only);
	add_json_number(a->answer, "backup", volume.backup);
	json_object_set_new(a->answer, "writable", json_boolean(volume.writable));
	json_object_set_new(a->answer, "online", json_boolean(volume.online));
	add_json_number(a->answer, "quota", volume.quota);
	add_json_number(a->answer, "used", volume.used);
	add_json_number(a->answer, "free", volume.free);
	add_json_number(a->answer, "total", volume.total);
	add_json_text(a->answer, "message", volume.message);
	return 0;
}

static int answer_quota(struct asked *a)
{
	struct rxafs_volume volume;
	int result;

	if (a->count > 1) {
		char *end;
		unsigned long long quota = strtoull(a->words[1], &end, 10);

		if (*end || end == a->words[1])
			return -EINVAL;
		result = rxafs_set_quota(a->object, &a->task->request, quota);
		if (result)
			return result;
	}
	result = rxafs_examine(a->object, &a->task->request, &volume);
	if (!result) {
		add_json_text(a->answer, "volume", volume.name);
		add_json_number(a->answer, "quota", volume.quota);
		add_json_number(a->answer, "used", volume.used);
	}
	return result;
}

static void put_server(json_t *list, const struct rxafs_server *server)
{
	static const char *const states[] = {"up", "in doubt", "down"};
	json_t *one = json_object();
	char text[TOOLS_ADDRESS_TEXT];

	add_json_text(one, "address", tools_address_text(&server->address, text, sizeof text));
	add_json_text(one, "cell", server->cell);
	add_json_text(one, "state", states[server->state]);
	add_json_number(one, "roundTripMicroseconds", server->rtt_us);
	json_array_append_new(list, one);
}

static int answer_whereis(struct asked *a)
{
	struct rxafs_server servers[SERVERS_MOST];
	json_t *list = json_array();
	int count = rxafs_where(a->object, &a->task->request, servers, SERVERS_MOST);

	for (int i = 0; i < count; i++)
		put_server(list, &servers[i]);
	json_object_set_new(a->answer, "servers", list);
	return count < 0 ? count : 0;
}

static int answer_checkservers(struct asked *a)
{
	rxafs_client *client = a->task->mount->client;
	json_t *list = json_array();
	struct rxafs_server server;

	rxafs_probe_servers(client, &a->task->request);
	for (uint32_t n = 1; rxafs_server_at(client, n, &server); n++)
		put_server(list, &server);
	json_object_set_new(a->answer, "servers", list);
	return 0;
}

static int answer_cells(struct asked *a)
{
	json_t *list = json_array();
	const char *name;

	for (uint32_t n = 1; (name = rxafs_cell_name(a->task->mount->client, n)); n++)
		json_array_append_new(list, json_string(name));
	json_object_set_new(a->answer, "cells", list);
	return 0;
}

static int answer_flush(struct asked *a)
{
	return rxafs_forget(a->object, &a->task->request);
}

/* -- mount points: the object is the directory that they are in ------------------------------ */

/* The text of the mount point that is named; free *text. An error if it is none. */
static int read_named_mount(struct asked *a, char **text)
{
	struct rxafs_attributes attributes;
	rxafs_object *object;
	int result =
		rxafs_lookup(a->object, &a->task->request, word_of(a, 1), &object, &attributes);

	if (result)
		return result;
	result = rxafs_mount_text(object, text);
	rxafs_release(object);
	return result;
}

static int answer_lsmount(struct asked *a)
{
	char *text;
	int result = read_named_mount(a, &text);

	if (result)
		return result;
	add_json_text(a->answer, "target", text);
	free(text);
	return 0;
}

static int answer_mkmount(struct asked *a)
{
	return rxafs_make_mount(a->object, &a->task->request, word_of(a, 1), word_of(a, 2));
}

static int answer_rmmount(struct asked *a)
{
	char *text;
	int result = read_named_mount(a, &text);

	if (result)
		return result;
	free(text);
	return rxafs_unlink(a->object, &a->task->request, word_of(a, 1));
}

/* -- tokens ------------------------------------------------------------------------------------- */

/* A file of this process with what the caller has read as himself: his tickets, or keys. */
static int file_of_caller(const struct asked *a, char path[40])
{
	int fd = memfd_create("rxafs-login", MFD_CLOEXEC);

	if (fd < 0 || a->from->size > CONTROL_DATA)
		return -1;
	if (write(fd, a->from->data, a->from->size) != (ssize_t)a->from->size) {
		close(fd);
		return -1;
	}
	snprintf(path, 40, "/proc/self/fd/%d", fd);
	return fd;
}

static int make_token_of_caller(struct asked *a, const char *cell, const char *path,
				rxw_token **token)
{
	int class = strcmp(word_of(a, 2), "rxkad") ? TOOLS_RXGK : TOOLS_RXKAD;
	struct tools_auth auth = {.class = class, .level = RXW_LEVEL_CRYPT, .cell = cell};
	struct rxw_token_options o = {.size = sizeof o,
				      .source = RXW_TOKEN_CACHE,
				      .index = class == TOOLS_RXKAD ? RXW_RXKAD_INDEX
								    : RXW_RXGK_INDEX,
				      .level = RXW_LEVEL_CRYPT,
				      .cell = cell};
	struct tools_renewal renewal = {0};
	struct tools_address server = {0};
	char message[TOOLS_AUTH_MESSAGE] = "", cache[64];
	int result;

	if (rxafs_cell_address(a->task->mount->client, cell, &server.sa, &server.len))
		return -ENOENT;
	if (!strcmp(word_of(a, 3), "keys")) {
		auth.key_file = path;
		auth.principal = a->count > 4 ? a->words[4] : NULL;
		result = tools_renewal_open(&renewal, &auth, &server, NULL, NULL, message,
					    sizeof message);
		if (!result)
			*token = rxw_token_ref(renewal.token);
		tools_renewal_close(&renewal);
	} else {
		snprintf(cache, sizeof cache, "FILE:%s", path);
		o.cache = cache;
		o.server = (const struct sockaddr *)&server.sa;
		o.server_len = server.len;
		result = rxw_token_create(&o, token, message, sizeof message);
	}
	if (result >= 0)
		return 0;
	snprintf(a->task->request.failure.text, sizeof a->task->request.failure.text, "%.199s",
		 message);
	return -EACCES;
}

static int answer_login(struct asked *a)
{
	const char *cell = word_of(a, 1);
	struct rxw_token_details details = {.size = sizeof details};
	rxw_token *token = NULL;
	char path[40];
	int fd, result;

	/* No cell is named. */
	if (!strcmp(cell, " "))
		cell = rxafs_cell_name(a->task->mount->client, 1);
	if (!cell || !a->task->request.user)
		return -EINVAL;
	fd = file_of_caller(a, path);
	if (fd < 0)
		return -ENOMEM;
	result = make_token_of_caller(a, cell, path, &token);
	close(fd);
	if (!result && rxw_token_info(token, &details) < 0)
		result = -EINVAL;
	if (!result)
		result = rxafs_set_token(a->task->request.user, cell, rxw_token_security(token),
					 details.expires);
	if (!result) {
		add_json_text(a->answer, "cell", cell);
		add_json_text(a->answer, "client",
			      details.client ? details.client : "the service itself");
		add_json_number(a->answer, "expires", (uint64_t)details.expires);
	}
	rxw_token_unref(token);
	return result;
}

static int answer_logout(struct asked *a)
{
	const char *cell;

	for (uint32_t n = 1; (cell = rxafs_cell_name(a->task->mount->client, n)); n++)
		if (a->task->request.user && (a->count < 2 || !strcmp(a->words[1], cell)))
			rxafs_set_token(a->task->request.user, cell, NULL, 0);
	return 0;
}

static int answer_tokens(struct asked *a)
{
	json_t *list = json_array();
	const char *cell;

	for (uint32_t n = 1; (cell = rxafs_cell_name(a->task->mount->client, n)); n++) {
		int64_t expires = a->task->request.user
					  ? rxafs_token_expires(a->task->request.user, cell)
					  : 0;
		json_t *one = expires ? json_object() : NULL;

		if (!one)
			continue;
		add_json_text(one, "cell", cell);
		add_json_number(one, "expires", (uint64_t)expires);
		json_array_append_new(list, one);
	}
	json_object_set_new(a->answer, "tokens", list);
	return 0;
}

/* -- requests --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*answer)(struct asked *a);
} commands[] = {
	{"examine", answer_examine}, {"quota", answer_quota},
	{"whereis", answer_whereis}, {"checkservers", answer_checkservers},
	{"cells", answer_cells},     {"flush", answer_flush},
	{"lsmount", answer_lsmount}, {"mkmount", answer_mkmount},
	{"rmmount", answer_rmmount}, {"login", answer_login},
	{"logout", answer_logout},   {"tokens", answer_tokens},
};

/* Whoever asks may have left out every NUL. The task has a copy of its own of what he gave. */
static void split_words(struct asked *a, struct control *from)
{
	const char *at = from->text, *end = from->text + CONTROL_TEXT - 1;

	from->text[CONTROL_TEXT - 1] = '\0';

	while (at < end && *at && a->count < WORDS_MOST) {
		a->words[a->count++] = at;
		at += strnlen(at, (size_t)(end - at)) + 1;
	}
}

static int run_control(struct task *t)
{
	struct asked a = {.task = t, .object = t->object, .from = t->data};
	struct control *to;
	int result = -ENOTTY;

	split_words(&a, (struct control *)(uintptr_t)t->data);
	a.answer = json_object();
	to = calloc(1, sizeof *to);
	if (!to || !a.answer) {
		free(to);
		json_decref(a.answer);
		return -ENOMEM;
	}
	for (size_t i = 0; a.count && i < sizeof commands / sizeof commands[0]; i++)
		if (!strcmp(a.words[0], commands[i].name))
			result = commands[i].answer(&a);
	if (result) {
		add_json_number(a.answer, "error", (uint64_t)-result);
		add_json_text(a.answer, "text",
			      t->request.failure.text[0] ? t->request.failure.text
							 : strerror(-result));
	}
	/* An answer that does not fit is cut, which the reader notices. */
	json_dumpb(a.answer, to->text, sizeof to->text - 1, JSON_COMPACT);
	json_decref(a.answer);
	t->bytes = (char *)to;
	return 0;
}

static void reply_control(struct task *t)
{
	fuse_reply_ioctl(t->req, 0, t->bytes, sizeof(struct control));
	free(t->bytes);
}

static void undo_control(struct task *t)
{
	free(t->bytes);
}

void serve_ioctl(fuse_req_t req, fuse_ino_t node, unsigned command, void *arg,
		 struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
		 size_t out_size)
{
	static const struct task_kind kind = {.run = run_control,
					      .reply = reply_control,
					      .undo = undo_control,
					      .never_quick = true,
					      .cancels = true};
	struct task t = task_of(req, &kind, node);

	(void)arg, (void)fi, (void)flags;
	if (command != (unsigned)CONTROL_IOCTL || in_size != sizeof(struct control) ||
	    out_size != sizeof(struct control)) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	t.data = in;
	t.size = in_size;
	task_start(&t);
}
