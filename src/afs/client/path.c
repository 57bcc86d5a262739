/* SPDX-License-Identifier: BSD-2-Clause */
/* Status and contents of objects, and walking paths. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/client/private.h"
#include "afs/dir.h"

#define LINKS_MAX 16  /* symbolic links followed in one walk */
#define DEPTH_MAX 256 /* directories below the root */

int afs_fetch_status(struct afs_client *client, const AFSFid *fid, const char *what,
		     unsigned deadline_ms, AFSFetchStatus *status, struct afs_error *error)
{
	AFSCallBack callback;
	AFSVolSync sync;
	rxw_call *call;
	int32_t code;

	if (afs_begin(client, client->fs, what, deadline_ms, &call, error) < 0)
		return -1;
	code = StartRXAFS_FetchStatus(call, fid);
	if (code == 0)
		code = EndRXAFS_FetchStatus(call, status, &callback, &sync);
	if (afs_end(client, call, what, code, error) < 0)
		return -1;
	afs_server_promised(client, fid, &callback);
	return 0;
}

int afs_client_status(struct afs_client *client, const AFSFid *fid, const char *what,
		      AFSFetchStatus *status, struct afs_error *error)
{
	if (afs_fetch_status(client, fid, what, client->limit_ms, status, error) < 0)
		return -1;
	if (afs_status_usable(status))
		return 0;
	return afs_error_text(error, "%s: malformed status from the server", what);
}

static uint64_t positive(int32_t blocks)
{
	return blocks > 0 ? (uint64_t)blocks : 0;
}

int afs_client_space(struct afs_client *client, uint32_t volume, const char *what,
		     struct afs_space *space, struct afs_error *error)
{
	char *name = NULL, *message = NULL, *motd = NULL;
	AFSFetchVolumeStatus status;
	rxw_call *call;
	int32_t code;
	int rc;

	if (afs_begin(client, client->fs, what, client->limit_ms, &call, error) < 0)
		return -1;
	code = StartRXAFS_GetVolumeStatus(call, (int32_t)volume);
	if (code == 0)
		code = EndRXAFS_GetVolumeStatus(call, &status, &name, &message, &motd);
	rc = afs_end(client, call, what, code, error);
	if (rc == 0) {
		*space = (struct afs_space){.used = positive(status.BlocksInUse),
					    .quota = positive(status.MaxQuota),
					    .free = positive(status.PartBlocksAvail),
					    .total = positive(status.PartMaxBlocks),
					    .online = status.Online};
		snprintf(space->message, sizeof(space->message), "%s", message ? message : "");
	}
	free(name);
	free(message);
	free(motd);
	return rc;
}

/* For servers without InlineBulkStatus. */
static int one_by_one(struct afs_client *client, const AFSFid *fids, uint32_t count,
		      const char *what, AFSFetchStatus *statuses, struct afs_error *error)
{
	for (uint32_t i = 0; i < count; i++) {
		if (afs_client_status(client, &fids[i], what, &statuses[i], error) == 0)
			continue;
		if (error->origin != RXW_ORIGIN_PEER || error->remedy != AFS_REMEDY_NONE)
			return -1;
		afs_status_refuse(&statuses[i], error->code);
	}
	return 0;
}

int afs_client_bulk(struct afs_client *client, const AFSFid *fids, uint32_t count, const char *what,
		    AFSFetchStatus *statuses, struct afs_error *error)
{
	/* The stub only reads the array. */
	const AFSCBFids asked = {.len = count, .val = (AFSFid *)fids};
	AFSBulkStats got = {0};
	AFSCBs callbacks = {0};
	AFSVolSync sync;
	rxw_call *call;
	int32_t code;
	int rc;

	if (afs_begin(client, client->fs, what, client->limit_ms, &call, error) < 0)
		return -1;
	code = StartRXAFS_InlineBulkStatus(call, &asked);
	if (code == 0)
		code = EndRXAFS_InlineBulkStatus(call, &got, &callbacks, &sync);
	rc = afs_end(client, call, what, code, error);
	if (rc < 0 && error->code == RXW_RPC_OPCODE) {
		rc = one_by_one(client, fids, count, what, statuses, error);
	} else if (rc == 0 && got.len != count) {
		afs_error_text(error, "%s: malformed answer of the server", what);
		rc = -1;
	} else if (rc == 0) {
		memcpy(statuses, got.val, count * sizeof(*statuses));
		for (uint32_t i = 0; i < count && callbacks.len == count; i++)
			afs_server_promised(client, &fids[i], &callbacks.val[i]);
	}
	xdrfree_AFSBulkStats(&got);
	xdrfree_AFSCBs(&callbacks);
	return rc;
}

/* The contents of a directory or link, collected in memory. */
struct gathered {
	const struct afs_fetch *fetch;
	uint8_t *bytes;
	size_t used;
};

static int gather_contents(void *arg, struct iovec *iov, unsigned count, uint64_t offset)
{
	struct gathered *g = arg;

	(void)offset;
	if (!g->bytes)
		g->bytes = malloc(g->fetch->length); /* at most the requested length */
	if (!g->bytes)
		return -1;
	for (unsigned i = 0; i < count; i++) {
		memcpy(g->bytes + g->used, iov[i].iov_base, iov[i].iov_len);
		g->used += iov[i].iov_len;
	}
	return 0;
}

int afs_client_contents(struct afs_client *client, const AFSFid *fid, const char *what, size_t max,
			uint8_t **data, size_t *length, struct afs_error *error)
{
	struct afs_fetch fetch;
	struct gathered g = {.fetch = &fetch};
	int rc;

	afs_fetch_init(&fetch, fid, 0, max);
	rc = afs_client_read(client, &fetch, what, gather_contents, &g, error);
	if (rc > 0)
		afs_error_text(error, "%s: memory is exhausted", what);
	if (rc != 0) {
		free(g.bytes);
		return -1;
	}
	*data = g.bytes;
	*length = g.used;
	return 0;
}

int afs_client_readlink(struct afs_client *client, const AFSFid *fid, const char *what,
			char text[AFSPATHMAX + 1], struct afs_error *error)
{
	uint8_t *data;
	size_t length;

	if (afs_client_contents(client, fid, what, AFSPATHMAX, &data, &length, error) < 0)
		return -1;
	if (length)
		memcpy(text, data, length);
	text[length] = 0;
	free(data);
	if (length == 0 || strlen(text) != length)
		return afs_error_text(error, "%s: malformed symbolic link", what);
	return 0;
}

bool afs_is_mount_point(uint32_t mode, const char *text)
{
	size_t length = strlen(text);

	return (mode & 0111) == 0 && length > 2 && (text[0] == '#' || text[0] == '%') &&
	       text[length - 1] == '.';
}

/* A walk in progress. */
struct walk {
	struct afs_client *client;
	const struct afs_volume *volume;
	const char *path; /* as given by the user, for messages */
	struct afs_error *error;
	AFSFid stack[DEPTH_MAX]; /* directories from the root to the current one */
	unsigned depth;		 /* number of directories in stack, >= 1 */
	unsigned links;
	char rest[2 * (AFSPATHMAX + 1)]; /* the rest of the path */
};

static int walk_error(struct walk *w, const char *name, int number, const char *why)
{
	afs_error_text(w->error, "%s:%.100s: \"%.80s\": %s", w->volume->name, w->path, name, why);
	w->error->number = number;
	return -1;
}

/* The target of a mount point is another volume, perhaps in another cell, which is not followed. */
static int mount_point(struct walk *w, const char *name, char *text)
{
	char *volume = strchr(text, ':');

	text[strlen(text) - 1] = 0;
	if (volume) {
		*volume++ = 0;
		return afs_error_text(
			w->error,
			"%s:%.80s: \"%.60s\" is a mount point of the cell %.64s: name that "
			"cell's location server with -s, and %.64s:PATH",
			w->volume->name, w->path, name, text + 1, volume);
	}
	return afs_error_text(
		w->error,
		"%s:%.80s: \"%.60s\" is a mount point: name its volume instead, %.64s:PATH",
		w->volume->name, w->path, name, text + 1);
}

/* Insert the text of a link before the rest of the path. */
static int expand_link(struct walk *w, const struct afs_object *link, const char *name)
{
	char text[AFSPATHMAX + 1], rest[sizeof(w->rest)];
	char what[AFSNAMEMAX + 128];
	int n;

	snprintf(what, sizeof(what), "%s:%.60s: link %.60s", w->volume->name, w->path, name);
	if (++w->links > LINKS_MAX)
		return walk_error(w, name, ELOOP, "too many symbolic links");
	if (afs_client_readlink(w->client, &link->fid, what, text, w->error) < 0)
		return -1;
	if (afs_is_mount_point(link->status.UnixModeBits, text)) {
		return mount_point(w, name, text);
	}
	if (text[0] == '/')
		return walk_error(w, name, EXDEV, "a symbolic link that leads out of the volume");
	/* Do not add a slash at the end, because it would require a directory. */
	n = snprintf(rest, sizeof(rest), "%s%s%s", text, *w->rest ? "/" : "", w->rest);
	if (n < 0 || (size_t)n >= sizeof(rest))
		return walk_error(w, name, ENAMETOOLONG, "the path is too long");
	memcpy(w->rest, rest, (size_t)n + 1);
	return 0;
}

int afs_client_lookup(struct afs_client *client, const AFSFid *dir, const char *name,
		      const char *what, AFSFid *fid, struct afs_error *error)
{
	uint8_t *image;
	size_t length;
	int found;

	if (afs_client_contents(client, dir, what, (size_t)AFS_DIR_PAGES_MAX * AFS_DIR_PAGE, &image,
				&length, error) < 0)
		return -1;
	fid->Volume = dir->Volume;
	found = afs_dir_check(image, length);
	if (found == 0)
		found = afs_dir_lookup(image, length, name, &fid->Vnode, &fid->Unique);
	free(image);
	if (found < 0) {
		afs_error_text(error, "%s: \"%.80s\": its directory is malformed", what, name);
		error->number = EIO;
	}
	return found;
}

/* Look up `name` in the current directory. */
static int look_up_component(struct walk *w, const char *name, AFSFid *fid)
{
	char what[AFSNAMEMAX + 128];
	int found;

	snprintf(what, sizeof(what), "%s:%.120s", w->volume->name, w->path);
	found = afs_client_lookup(w->client, &w->stack[w->depth - 1], name, what, fid, w->error);
	if (found == 0)
		return walk_error(w, name, ENOENT, "no such file or directory");
	return found < 0 ? -1 : 0;
}

/* Take the next component off w->rest. 1, 0 at the end, -1 if it is too long. */
static int take_next_component(struct walk *w, char name[AFSNAMEMAX + 1])
{
	char *p = w->rest + strspn(w->rest, "/");
	size_t length = strcspn(p, "/");

	if (length == 0)
		return 0;
	if (length > AFSNAMEMAX)
		return walk_error(w, p, ENAMETOOLONG, "the name is too long");
	memcpy(name, p, length);
	name[length] = 0;
	memmove(w->rest, p + length, strlen(p + length) + 1);
	return 1;
}

/* Walk one component. 0: continue; 1: the end; -1 and an error. */
static int walk_component(struct walk *w, const char *name, bool follow, struct afs_object *object)
{
	bool last = w->rest[strspn(w->rest, "/")] == 0;
	char what[AFSNAMEMAX + 128];

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		if (w->depth == 1)
			return walk_error(w, name, EXDEV, "leads out of the volume");
		w->depth--;
		return 0;
	}
	if (look_up_component(w, name, &object->fid) < 0)
		return -1;
	snprintf(what, sizeof(what), "%s:%.120s: %.120s", w->volume->name, w->path, name);
	if (afs_client_status(w->client, &object->fid, what, &object->status, w->error) < 0)
		return -1;
	if (object->status.FileType == AFS_TYPE_SYMLINK && (!last || follow || *w->rest))
		return expand_link(w, object, name);
	if (object->status.FileType == AFS_TYPE_DIR) {
		if (w->depth == DEPTH_MAX)
			return walk_error(w, name, ENAMETOOLONG, "the path is too deep");
		w->stack[w->depth++] = object->fid;
		return 0;
	}
	if (!last || *w->rest)
		return walk_error(w, name, ENOTDIR, "is not a directory");
	return 1; /* a file, or a link that is not followed: the end */
}

int afs_client_walk(struct afs_client *client, const struct afs_volume *volume, const char *path,
		    bool follow, struct afs_object *object, struct afs_error *error)
{
	struct walk w = {.client = client, .volume = volume, .path = path, .error = error};
	char name[AFSNAMEMAX + 1], what[256];
	int rc;

	if (strlen(path) > AFSPATHMAX)
		return afs_error_text(error, "%s:%.60s...: the path is too long", volume->name,
				      path);
	strcpy(w.rest, path);
	w.stack[0] = (AFSFid){volume->id, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};
	w.depth = 1;
	while ((rc = take_next_component(&w, name)) > 0) {
		rc = walk_component(&w, name, follow, object);
		if (rc < 0)
			return -1;
		if (rc > 0)
			return 0;
	}
	if (rc < 0)
		return -1;
	/* The path ends at a directory. Its status may be old or missing, so fetch it. */
	object->fid = w.stack[w.depth - 1];
	snprintf(what, sizeof(what), "%s:%.120s", volume->name, path);
	return afs_client_status(client, &object->fid, what, &object->status, error);
}
