/* SPDX-License-Identifier: BSD-2-Clause */
/* Status, contents and paths. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/client_internal.h"
#include "afs/dir.h"
#include "afs/opcodes.h"

#define LINKS_MAX 16  /* followed in one walk */
#define DEPTH_MAX 256 /* directories below the root */

int afs_client_status(struct afs_client *client, const struct afs_fid *fid, const char *what,
		      struct afs_status *status, struct afs_error *error)
{
	uint8_t request[4 + AFS_FID_BYTES];
	uint8_t reply[AFS_STATUS_BYTES + AFS_CALLBACK_BYTES + AFS_VOLSYNC_BYTES];
	size_t got = sizeof(reply);
	struct rxw_xdr x;

	rxw_xdr_writer(&x, request, sizeof(request));
	rxw_xdr_put_u32(&x, AFS_FS_FETCH_STATUS);
	afs_fid_put(&x, fid);
	if (afs_rpc(client->fs, what, &x, 0, reply, &got, error) < 0)
		return -1;
	rxw_xdr_reader(&x, reply, got);
	if (got == sizeof(reply) && afs_status_get(&x, status) && afs_status_valid(status))
		return 0;
	afs_error_text(error, "%s: the server's status of it makes no sense", what);
	return -1;
}

/* Without InlineBulkStatus. */
static int one_by_one(struct afs_client *client, const struct afs_fid *fids, uint32_t count,
		      struct afs_status *statuses, struct afs_error *error)
{
	for (uint32_t i = 0; i < count; i++) {
		if (afs_client_status(client, &fids[i], "status", &statuses[i], error) == 0)
			continue;
		if (error->origin != RXW_ORIGIN_PEER)
			return -1;
		afs_status_failed(&statuses[i], error->code);
	}
	return 0;
}

int afs_client_bulk(struct afs_client *client, const struct afs_fid *fids, uint32_t count,
		    struct afs_status *statuses, struct afs_error *error)
{
	uint8_t request[8 + AFS_BULK_MAX * AFS_FID_BYTES], reply[8192];
	size_t got = sizeof(reply);
	struct rxw_xdr x;
	uint32_t n;

	rxw_xdr_writer(&x, request, sizeof(request));
	rxw_xdr_put_u32(&x, AFS_FS_INLINE_BULK_STATUS);
	afs_fids_put(&x, fids, count);
	if (afs_rpc(client->fs, "status", &x, 0, reply, &got, error) < 0) {
		if (error->code == RXW_RPC_OPCODE)
			return one_by_one(client, fids, count, statuses, error);
		return -1;
	}
	rxw_xdr_reader(&x, reply, got);
	if (rxw_xdr_get_count(&x, AFS_BULK_MAX, AFS_STATUS_BYTES, &n) && n == count) {
		for (uint32_t i = 0; i < n; i++)
			afs_status_get(&x, &statuses[i]);
		if (rxw_xdr_ok(&x))
			return 0;
	}
	afs_error_text(error, "status: the server's answer makes no sense");
	return -1;
}

int afs_client_contents(struct afs_client *client, const struct afs_fid *fid, const char *what,
			size_t max, uint8_t **data, size_t *length, struct afs_error *error)
{
	struct rxw_call_options co = { .size = sizeof(co) };
	enum afs_fetch_result result;
	enum rxw_origin origin;
	struct afs_fetch fetch;
	rxw_call *call;
	uint8_t *bytes = NULL;
	size_t used = 0;
	int32_t code;

	if (afs_client_call(client, &co, &call, error) < 0)
		return -1;
	afs_fetch_init(&fetch, fid, 0, max);
	for (;;) {
		struct iovec iov[64];
		unsigned count = 64;

		result = afs_fetch_step(&fetch, call, iov, &count);
		if (result != AFS_FETCH_LENT)
			break;
		if (!bytes)
			bytes = malloc(fetch.length); /* <= max */
		if (!bytes) {
			fetch.why = "no memory";
			result = AFS_FETCH_ERROR;
			break;
		}
		for (unsigned i = 0; i < count; i++) {
			memcpy(bytes + used, iov[i].iov_base, iov[i].iov_len);
			used += iov[i].iov_len;
		}
	}
	code = rxw_call_end(call, result == AFS_FETCH_DONE ? 0 : RXW_USER_ABORT, &origin);
	if (fetch.why)
		afs_error_text(error, "%s: %s", what, fetch.why);
	else if (code != 0)
		afs_error_code(error, what, code, origin);
	if (fetch.why || code != 0 || result != AFS_FETCH_DONE) {
		free(bytes);
		return -1;
	}
	*data = bytes;
	*length = used;
	return 0;
}

int afs_client_readlink(struct afs_client *client, const struct afs_fid *fid, const char *what,
			char text[AFS_PATH_MAX + 1], struct afs_error *error)
{
	uint8_t *data;
	size_t length;

	if (afs_client_contents(client, fid, what, AFS_PATH_MAX, &data, &length, error) < 0)
		return -1;
	if (length)
		memcpy(text, data, length);
	text[length] = 0;
	free(data);
	if (length == 0 || strlen(text) != length) {
		afs_error_text(error, "%s: the text of this link makes no sense", what);
		return -1;
	}
	return 0;
}

bool afs_is_mount_point(uint32_t mode, const char *text)
{
	size_t length = strlen(text);

	return (mode & 0111) == 0 && length > 2 && (text[0] == '#' || text[0] == '%') &&
	       text[length - 1] == '.';
}

/* A walk under way. */
struct walk {
	struct afs_client *client;
	const struct afs_volume *volume;
	const char *path;               /* as the user gave it, for errors */
	struct afs_error *error;
	struct afs_fid stack[DEPTH_MAX];/* directories from the root to where the walk stands */
	unsigned depth;                 /* of them in use, >= 1 */
	unsigned links;
	char rest[2 * (AFS_PATH_MAX + 1)]; /* what is still to be walked */
};

static int walk_error(struct walk *w, const char *name, const char *why)
{
	afs_error_text(w->error, "%s:%.100s: \"%.80s\": %s", w->volume->name, w->path, name, why);
	return -1;
}

/* Put the text of a link before what is left to walk. */
static int expand_link(struct walk *w, const struct afs_object *link, const char *name)
{
	char text[AFS_PATH_MAX + 1], rest[sizeof(w->rest)];
	char what[AFS_NAME_MAX + 128];
	int n;

	snprintf(what, sizeof(what), "%s:%.60s: link %.60s", w->volume->name, w->path, name);
	if (++w->links > LINKS_MAX)
		return walk_error(w, name, "too many symbolic links");
	if (afs_client_readlink(w->client, &link->fid, what, text, w->error) < 0)
		return -1;
	if (afs_is_mount_point(link->status.mode, text)) {
		text[strlen(text) - 1] = 0;
		afs_error_text(
			w->error,
			"%s:%.80s: \"%.60s\" is a mount point: name its volume instead, %.64s:PATH",
			w->volume->name, w->path, name, text + 1);
		return -1;
	}
	if (text[0] == '/')
		return walk_error(w, name, "a symbolic link that leads out of the volume");
	/* No slash at the end of what had none: it would ask for a directory. */
	n = snprintf(rest, sizeof(rest), "%s%s%s", text, *w->rest ? "/" : "", w->rest);
	if (n < 0 || (size_t)n >= sizeof(rest))
		return walk_error(w, name, "the path is too long");
	memcpy(w->rest, rest, (size_t)n + 1);
	return 0;
}

/* Find `name` in the directory where the walk stands. */
static int look_up(struct walk *w, const char *name, struct afs_fid *fid)
{
	const struct afs_fid *dir = &w->stack[w->depth - 1];
	uint8_t *image;
	size_t length;
	char what[AFS_NAME_MAX + 128];
	int found;

	snprintf(what, sizeof(what), "%s:%.120s", w->volume->name, w->path);
	if (afs_client_contents(w->client, dir, what, (size_t)AFS_DIR_PAGES_MAX * AFS_DIR_PAGE,
				&image, &length, w->error) < 0)
		return -1;
	fid->volume = dir->volume;
	found = afs_dir_check(image, length);
	if (found == 0)
		found = afs_dir_lookup(image, length, name, &fid->vnode, &fid->unique);
	free(image);
	if (found < 0)
		return walk_error(w, name, "the directory that should hold it makes no sense");
	if (found == 0)
		return walk_error(w, name, "no such file or directory");
	return 0;
}

/* Cut the next component off w->rest into `name`. 1, 0 at the end, -1 if it is too long. */
static int next_name(struct walk *w, char name[AFS_NAME_MAX + 1])
{
	char *p = w->rest + strspn(w->rest, "/");
	size_t length = strcspn(p, "/");

	if (length == 0)
		return 0;
	if (length > AFS_NAME_MAX)
		return walk_error(w, p, "the name is too long");
	memcpy(name, p, length);
	name[length] = 0;
	memmove(w->rest, p + length, strlen(p + length) + 1);
	return 1;
}

/* One component. */
static int step(struct walk *w, const char *name, bool follow, struct afs_object *object)
{
	bool last = w->rest[strspn(w->rest, "/")] == 0;
	char what[AFS_NAME_MAX + 128];

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		if (w->depth == 1)
			return walk_error(w, name, "leads out of the volume");
		w->depth--;
		return 0;
	}
	if (look_up(w, name, &object->fid) < 0)
		return -1;
	snprintf(what, sizeof(what), "%s:%.120s: %.120s", w->volume->name, w->path, name);
	if (afs_client_status(w->client, &object->fid, what, &object->status, w->error) < 0)
		return -1;
	if (object->status.type == AFS_TYPE_SYMLINK && (!last || follow || *w->rest))
		return expand_link(w, object, name);
	if (object->status.type == AFS_TYPE_DIR) {
		if (w->depth == DEPTH_MAX)
			return walk_error(w, name, "too many directories deep");
		w->stack[w->depth++] = object->fid;
		return 0;
	}
	if (!last || *w->rest)
		return walk_error(w, name, "is not a directory");
	return 1; /* a file, or a link that is not followed: the end */
}

int afs_client_walk(struct afs_client *client, const struct afs_volume *volume, const char *path,
		    bool follow, struct afs_object *object, struct afs_error *error)
{
	struct walk w = { .client = client, .volume = volume, .path = path, .error = error };
	char name[AFS_NAME_MAX + 1], what[256];
	int rc;

	if (strlen(path) > AFS_PATH_MAX) {
		afs_error_text(error, "%s:%.60s...: the path is too long", volume->name, path);
		return -1;
	}
	strcpy(w.rest, path);
	w.stack[0] = (struct afs_fid){ volume->id, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE };
	w.depth = 1;
	while ((rc = next_name(&w, name)) > 0) {
		rc = step(&w, name, follow, object);
		if (rc < 0)
			return -1;
		if (rc > 0)
			return 0;
	}
	if (rc < 0)
		return -1;
	/* The path ended at a directory; its status may have been seen some links ago, so ask. */
	object->fid = w.stack[w.depth - 1];
	snprintf(what, sizeof(what), "%s:%.120s", volume->name, path);
	return afs_client_status(client, &object->fid, what, &object->status, error);
}
