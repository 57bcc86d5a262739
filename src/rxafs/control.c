/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's answers to rxafsctl. */
#include "rxafs/answer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/admin.h>
#include <rxafs/stream.h>

#include "afs/rights.h"
#include "program/address.h"

#define SERVERS_MOST 16
#define LOGIN_SHARE  UINT32_MAX /* the number of no cell */

int refuse_asked(struct asked *a, int result, const char *format, ...)
{
	char *text = a->task->request.failure.text;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof a->task->request.failure.text, format, args);
	va_end(args);
	return result;
}

/* Where no server said more. */
static int explain_refusal(struct asked *a, int result)
{
	if (!result || a->task->request.failure.text[0])
		return result;
	switch (-result) {
	case ENODEV:
		return refuse_asked(a, result, "no volume is there");
	case ENOENT:
		return refuse_asked(a, result, "there is no such name");
	case EROFS:
		return refuse_asked(a, result,
				    "the volume is read-only; use the read-write path, /afs/.CELL");
	default:
		return result;
	}
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

		if (*end || end == a->words[1] || quota > INT32_MAX)
			return refuse_asked(a, -EINVAL,
					    "%.40s is no quota; give KiB up to %d, or 0 for none",
					    a->words[1], INT32_MAX);
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

static void put_path(json_t *list, const struct rxafs_server *server,
		     const struct rxafs_path_use *path)
{
	static const char *const states[] = {"down", "up", "silent", "reserve", "not asked yet"};
	json_t *one = json_object();
	char text[TOOLS_ADDRESS_TEXT], local[TOOLS_ADDRESS_TEXT] = "";

	if (path->local.ss_family) {
		tools_address_text(&path->local, local, sizeof local);
		*strrchr(local, ':') = '\0'; /* without the port, which is 0 */
	}
	add_json_text(one, "server", tools_address_text(&path->server, text, sizeof text));
	add_json_text(one, "cell", server->cell);
	add_json_text(one, "local", local);
	add_json_text(one, "device", path->device);
	add_json_text(one, "state", states[path->state]);
	add_json_number(one, "roundTripMicroseconds", path->rtt_ns / 1000);
	add_json_number(one, "bytesPerSecond", path->rate);
	add_json_number(one, "bytes", path->bytes);
	add_json_number(one, "losses", path->losses);
	json_array_append_new(list, one);
}

static int answer_paths(struct asked *a)
{
	rxafs_client *client = a->task->mount->client;
	struct rxafs_path_use paths[RXAFS_PATHS];
	json_t *list = json_array();
	struct rxafs_server server;

	for (uint32_t n = 1; rxafs_server_at(client, n, &server); n++) {
		unsigned count = rxafs_paths_at(client, n, paths);

		for (unsigned i = 0; i < count; i++)
			put_path(list, &server, &paths[i]);
	}
	json_object_set_new(a->answer, "paths", list);
	return 0;
}

static int answer_cells(struct asked *a)
{
	const char *name, *home = rxafs_home_cell(a->task->mount->client);
	json_t *list = json_array();

	for (uint32_t n = 1; (name = rxafs_cell_name(a->task->mount->client, n)); n++)
		json_array_append_new(list, json_string(name));
	json_object_set_new(a->answer, "cells", list);
	add_json_text(a->answer, "home", home ? home : "");
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
	rxafs_object *object;
	int result = rxafs_find_name(a->object, &a->task->request, word_of(a, 1), &object);

	if (result)
		return result;
	result = rxafs_mount_text(object, text);
	rxafs_release(object);
	if (result == -EINVAL)
		return refuse_asked(a, result, "this is no mount point");
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

/* A change in the directory was not permitted: the rights that it needs and that are missing, if some are. */
static int name_missing_rights(struct asked *a, uint32_t needed)
{
	struct rxafs_request request = {.user = a->task->request.user,
					.deadline = a->task->request.deadline,
					.cancel = a->task->request.cancel};
	char all[AFS_ACL_RIGHTS], missing[AFS_ACL_RIGHTS];
	uint32_t own;

	if (rxafs_get_rights(a->object, &request, &own, NULL) || !(needed & ~own))
		return -EACCES;
	return refuse_asked(
		a, -EACCES,
		"not permitted; this needs the rights %s of the directory, and %s is missing",
		afs_rights_text(needed, all), afs_rights_text(needed & ~own, missing));
}

static int answer_mkmount(struct asked *a)
{
	int result = rxafs_make_mount(a->object, &a->task->request, word_of(a, 1), word_of(a, 2));

	if (result == -EINVAL)
		return refuse_asked(a, result, "%.100s does not name a volume", word_of(a, 2));
	if (result == -EEXIST)
		return refuse_asked(a, result, "the name exists already");
	return result == -EACCES ? name_missing_rights(a, RXAFS_INSERT | RXAFS_ADMINISTER) : result;
}

static int answer_rmmount(struct asked *a)
{
	char *text;
	int result = read_named_mount(a, &text);

	if (result)
		return result;
	free(text);
	result = rxafs_unlink(a->object, &a->task->request, word_of(a, 1));
	return result == -EACCES ? name_missing_rights(a, RXAFS_DELETE) : result;
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
	{"tickets", answer_tickets}, {"session", answer_session},
	{"paths", answer_paths},
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

/* "at NAME COMMAND…": about what the name in the directory is, also if it is a mount point of a volume that is away. */
static int look_at_named(struct asked *a)
{
	rxafs_object *object;
	int result;

	if (a->count < 3 || strcmp(a->words[0], "at"))
		return 0;
	result = rxafs_find_name(a->object, &a->task->request, a->words[1], &object);
	if (result)
		return result;
	a->object = a->named = object;
	a->count -= 2;
	memmove(a->words, a->words + 2, a->count * sizeof a->words[0]);
	return 0;
}

static int run_control(struct task *t)
{
	struct asked a = {.task = t, .object = t->object, .from = t->data};
	struct control *to;
	int result = -ENOTTY, named;

	split_words(&a, (struct control *)(uintptr_t)t->data);
	a.answer = json_object();
	to = calloc(1, sizeof *to);
	if (!to || !a.answer) {
		free(to);
		json_decref(a.answer);
		return -ENOMEM;
	}
	named = look_at_named(&a);
	for (size_t i = 0; !named && a.count && i < sizeof commands / sizeof commands[0]; i++)
		if (!strcmp(a.words[0], commands[i].name))
			result = commands[i].answer(&a);
	result = explain_refusal(&a, named ? named : result);
	if (a.named)
		rxafs_release(a.named);
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

	(void)arg, (void)flags;
	if (command != (unsigned)CONTROL_IOCTL || in_size != sizeof(struct control) ||
	    out_size != sizeof(struct control)) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	t.handle = handle_of(fi);
	/* Logins have threads of their own: they may wait for any server. */
	if (!strncmp(((const struct control *)in)->text, "login", sizeof "login"))
		t.request.awaited =
			(struct rxafs_awaited){.known = true,
					       .cell = LOGIN_SHARE,
					       .server = find_accountable(fuse_req_ctx(req)->uid)};
	t.data = in;
	t.size = in_size;
	task_start(&t);
}
