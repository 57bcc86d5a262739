/* SPDX-License-Identifier: BSD-2-Clause */
/* Names to objects, with @sys, and whole paths. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "client/fs/operate.h"
#include "client/fs/show.h"

#define LINKS_MOST 40

/* Of the root of another volume, perhaps that of another cell, which then must answer for it. */
static int show_behind(rxafs_object *object, struct rxafs_request *request,
		       struct rxafs_attributes *attributes)
{
	struct rxafs_request known = *request;
	int result;

	if (request->quick || !request->moves)
		return fs_show_now(object, request, attributes);
	known.quick = true;
	result = fs_show_now(object, &known, attributes);
	if (result != RXAFS_WOULD_WAIT) {
		request->failure = known.failure;
		return result;
	}
	return fs_must_move(object, request) ? result : fs_show_now(object, request, attributes);
}

static int look_dynamic(rxafs_object *directory, struct rxafs_request *request, const char *name,
			rxafs_object **object, struct rxafs_attributes *attributes)
{
	int result = fs_dynamic_find(directory, request, name, object);

	if (result)
		return result;
	result = show_behind(*object, request, attributes);
	if (result && result != RXAFS_WOULD_WAIT) {
		/* A cell whose servers are away is still a name. */
		*attributes = (struct rxafs_attributes){.fid = (*object)->fid, .mount_point = true};
		attributes->stat.st_mode = S_IFDIR | 0755;
		attributes->stat.st_nlink = 2;
		attributes->stat.st_ino = fs_inode(directory->client, &(*object)->fid);
		result = 0;
	}
	/* Cells are never removed. */
	attributes->name_valid_ns = UINT64_C(3600000000000);
	if (result)
		rxafs_release(*object);
	return result;
}

static int look_plain(rxafs_object *directory, struct rxafs_request *request, const char *name,
		      rxafs_object **object, struct rxafs_attributes *attributes)
{
	struct cl_status status;
	struct rxafs_fid fid;
	struct fs_vnode *v;
	uint64_t known_ns = 0;
	int result = fs_enter(directory, request, &v);

	if (result)
		return result;
	if (fs_hides(directory->client, &v->fid, name))
		return -ENOENT;
	/* The object may go between the look at its name and that at its status: then look again. */
	for (unsigned i = 0;; i++) {
		result = fs_find(v, request, name, &fid, &known_ns);
		attributes->name_valid_ns = known_ns;
		attributes->for_all = false;
		if (result)
			return result;
		result = fs_object_of(directory, request, name, &fid, object, &status);
		if (result != -ESTALE || i == 3)
			break;
		cl_object_doubt(v->object);
	}
	if (result)
		return result == -ESTALE ? -ENOENT : result;
	if ((*object)->what == FS_PLAIN)
		fs_show(*object, request, &status, attributes);
	else if (fs_entered(*object))
		result = show_behind(*object, request, attributes);
	else
		fs_show(*object, request, &status, attributes);
	attributes->name_valid_ns = known_ns;
	if (result)
		rxafs_release(*object);
	return result;
}

/* "@sys" or "NAME.@sys" stands for the first of the list that exists. */
static int look_sysname(rxafs_object *directory, struct rxafs_request *request, const char *name,
			rxafs_object **object, struct rxafs_attributes *attributes)
{
	rxafs_client *client = directory->client;
	size_t stem = strlen(name) - 4;
	char real[NAME_MAX + 1];
	int result = -ENOENT;

	for (size_t i = 0; result == -ENOENT && i < client->sysname_count; i++) {
		if (stem + strlen(client->sysnames[i]) > NAME_MAX)
			continue;
		memcpy(real, name, stem);
		strcpy(real + stem, client->sysnames[i]);
		result = look_plain(directory, request, real, object, attributes);
	}
	attributes->name_valid_ns = 0;
	attributes->volatile_name = true;
	return result;
}

static bool is_sysname(const char *name)
{
	size_t length = strlen(name);

	return length >= 4 && !strcmp(name + length - 4, "@sys") &&
	       (length == 4 || name[length - 5] == '.');
}

int rxafs_lookup(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 rxafs_object **object, struct rxafs_attributes *attributes)
{
	*attributes = (struct rxafs_attributes){0};
	if (!fs_is_directory(directory))
		return -ENOTDIR;
	if (directory->what == FS_ROOT)
		return look_dynamic(directory, request, name, object, attributes);
	if (is_sysname(name))
		return look_sysname(directory, request, name, object, attributes);
	return look_plain(directory, request, name, object, attributes);
}

/* -- paths ----------------------------------------------------------------------------------- */

struct walk {
	rxafs_object *at; /* a reference */
	struct rxafs_request *request;
	unsigned links;
	char *rest; /* of the path, to be freed */
};

/* Puts the text of a link in front of what is left of the path. */
static int splice_link(struct walk *w, const char *text, const char *left)
{
	rxafs_client *client = w->at->client;
	char *joined;

	if (++w->links > LINKS_MOST)
		return -ELOOP;
	if (text[0] == '/') {
		/* Absolute links stay inside if they lead to AFS. */
		if (strncmp(text, "/afs/", 5) && strcmp(text, "/afs"))
			return -EXDEV;
		text += 4;
		rxafs_release(w->at);
		w->at = rxafs_root(client);
	}
	joined = malloc(strlen(text) + strlen(left) + 2);
	if (!joined)
		return -ENOMEM;
	strcpy(joined, text);
	strcat(joined, "/");
	strcat(joined, left);
	free(w->rest);
	w->rest = joined;
	return 0;
}

static int walk_name(struct walk *w, const char *name, const char *left, bool follow)
{
	struct rxafs_attributes attributes;
	rxafs_object *next;
	char *text;
	int result;

	if (!strcmp(name, "..")) {
		next = rxafs_parent(w->at);
		/* A volume that was opened by its name is in no directory. */
		if (next == w->at && next != next->client->root) {
			rxafs_release(next);
			return -EXDEV;
		}
	} else if ((result = rxafs_lookup(w->at, w->request, name, &next, &attributes)))
		return result;
	if (next->kind == RXAFS_SYMLINK && follow) {
		result = rxafs_readlink(next, w->request, &text);
		rxafs_release(next);
		if (result)
			return result;
		result = splice_link(w, text, left);
		free(text);
		return result ? result : 1;
	}
	rxafs_release(w->at);
	w->at = next;
	return 0;
}

/* One element; 1: a link has changed the rest. */
static int walk_step(struct walk *w, bool follow)
{
	char name[NAME_MAX + 1], *left;
	size_t length;
	int result;

	left = w->rest;
	left += strspn(left, "/");
	length = strcspn(left, "/");
	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, left, length);
	name[length] = '\0';
	left += length;
	left += strspn(left, "/");
	result = !length || !strcmp(name, ".") ? 0 : walk_name(w, name, left, follow || *left);
	if (result)
		return result;
	memmove(w->rest, left, strlen(left) + 1);
	return 0;
}

int rxafs_walk(rxafs_object *directory, struct rxafs_request *request, const char *path,
	       bool follow, rxafs_object **object)
{
	struct walk w = {.request = request, .rest = strdup(path)};
	size_t length = strlen(path);
	bool directories = length && path[length - 1] == '/';
	int result = 0;

	if (!w.rest)
		return -ENOMEM;
	w.at = path[0] == '/' ? rxafs_root(directory->client) : rxafs_hold(directory);
	while (result >= 0 && *w.rest)
		result = walk_step(&w, follow || directories);
	free(w.rest);
	if (result >= 0 && directories && w.at->kind != RXAFS_DIRECTORY)
		result = -ENOTDIR;
	if (result < 0)
		rxafs_release(w.at);
	else
		*object = w.at;
	return result < 0 ? result : 0;
}
