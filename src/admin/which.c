/* SPDX-License-Identifier: BSD-2-Clause */
/* which: the number of a path, and the paths of a number, such as one of the log. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "admin/locate.h"

/* An object that is looked for. One thread. */
struct search {
	struct admin_run *run;
	struct store_volume volume;
	struct store_object object;
	bool mount; /* it is a mount point */
	int result; /* of looking up its record: 0, STORE_VNOVNODE or -EIO */
	json_t *paths;
};

static const char *kind_of(const struct search *s)
{
	switch (s->result ? 0 : (int)s->object.kind) {
	case STORE_FILE:
		return "file";
	case STORE_DIR:
		return "directory";
	case STORE_SYMLINK:
		return s->mount ? "mount point" : "link";
	default:
		return "unknown";
	}
}

/* The function takes the text. 0 or -ENOMEM. */
static int append_path(struct search *s, char *text)
{
	int rc = text && json_array_append_new(s->paths, admin_show(text)) == 0 ? 0 : -ENOMEM;

	free(text);
	return rc;
}

/* All names that the object has in a directory. 0 or a result. */
static int append_names(struct search *s, const struct locate_directory *dir)
{
	const struct locate_name *name = locate_find(dir, s->object.fid.vnode), *end;
	int rc = 0;

	for (end = dir->name + dir->count;
	     !rc && name && name < end && name->vnode == s->object.fid.vnode; name++)
		rc = append_path(s, locate_join(&s->volume, dir, name->name));
	return rc;
}

/* Searches the directory that the object's record names. */
static int follow_record(struct search *s)
{
	struct locate_directory dir = {.image = NULL};
	int rc;

	assert(!s->result);
	if (s->object.fid.vnode == STORE_ROOT_VNODE)
		return append_path(s, locate_join(&s->volume, NULL, ""));
	rc = locate_directory(s->run->store, &s->object.parent, &dir);
	if (!rc)
		rc = append_names(s, &dir);
	locate_forget(&dir);
	return rc;
}

/* A damaged directory has no names to offer. */
static int look_into_directory(void *arg, const struct store_object *object)
{
	struct search *s = arg;
	struct locate_directory dir = {.image = NULL};
	int rc = locate_directory(s->run->store, &object->fid, &dir);

	if (!rc)
		rc = append_names(s, &dir);
	else if (rc != -ENOMEM)
		rc = 0;
	locate_forget(&dir);
	return rc;
}

static bool is_search_stopped(void *arg)
{
	const struct search *s = arg;

	return admin_stopped(s->run);
}

/* In all directories of the volume. */
static int search_directories(struct search *s)
{
	const struct store_object_scan scan = {
		.kinds = 1u << STORE_DIR,
		.each = look_into_directory,
		.stopped = is_search_stopped,
		.arg = s,
	};

	return store_objects(s->run->store, s->volume.id, &scan);
}

/* "536870912.2.5", or without its last number if that is not known. */
static json_t *fid_text(const struct search *s)
{
	return s->object.fid.unique ? json_sprintf("%u.%u.%u", s->volume.id, s->object.fid.vnode,
						   s->object.fid.unique)
				    : json_sprintf("%u.%u", s->volume.id, s->object.fid.vnode);
}

static json_t *search_result(const struct search *s)
{
	return json_pack("{s:o, s:s, s:I, s:I, s:I, s:s, s:b, s:O}", "fid", fid_text(s), "volume",
			 s->volume.name, "id", (json_int_t)s->volume.id, "vnode",
			 (json_int_t)s->object.fid.vnode, "unique",
			 (json_int_t)s->object.fid.unique, "kind", kind_of(s), "damaged",
			 s->result != 0, "paths", s->paths);
}

/* The names of the number. 0, or 1 after an error. */
static int find_paths(struct search *s)
{
	int rc = s->result;

	if (!rc)
		rc = follow_record(s);
	/* If the record is damaged, only a search finds the names that lead to the object. */
	if (rc == -EIO || rc == STORE_VNOVNODE || rc == -EAGAIN)
		rc = search_directories(s);
	if (rc == -EINTR)
		return admin_fail(s->run, 1, "interrupted");
	if (rc)
		return admin_fail_code(s->run, rc, "vnode %u of volume %s", s->object.fid.vnode,
				       s->volume.name);
	if (json_array_size(s->paths) || s->result == -EIO)
		return 0;
	return admin_fail(
		s->run, 1,
		"vnode %u of volume %s: no object has this number now, and no name leads to it; it may "
		"have been removed, or be in a clone only (\"rxvol examine %s\" names the clones)",
		s->object.fid.vnode, s->volume.name, s->volume.name);
}

/* The object of a number has another third number than the one that is looked for. 1 */
static int report_successor(struct search *s, uint64_t unique)
{
	assert(!s->result && json_array_size(s->paths));
	return admin_fail(s->run, 1,
			  "%u.%u.%llu: this object was removed; the number belongs to %s now, as "
			  "%u.%u.%u",
			  s->volume.id, s->object.fid.vnode, (unsigned long long)unique,
			  json_string_value(json_array_get(s->paths, 0)), s->volume.id,
			  s->object.fid.vnode, s->object.fid.unique);
}

static int search_number(struct search *s)
{
	uint64_t vnode = admin_get_number(s->run, "vnode", 0),
		 unique = admin_get_number(s->run, "unique", 0);

	if (json_object_get(s->run->request, "path"))
		return admin_fail(s->run, 2, "request: give a path or a vnode");
	if (!vnode || vnode > UINT32_MAX || unique > UINT32_MAX)
		return admin_fail(s->run, 2, "numbers of an object are between 1 and 4294967295");
	if (admin_find_volume(s->run, &s->volume))
		return 1;
	s->result = store_object(s->run->store, s->volume.id, (uint32_t)vnode, &s->object);
	if (s->result) {
		s->object = (struct store_object){.fid = {.volume = s->volume.id}};
		s->object.fid.vnode = (uint32_t)vnode;
		s->object.fid.unique = (uint32_t)unique;
	}
	if (s->result && s->result != STORE_VNOVNODE && s->result != -EIO)
		return admin_fail_code(s->run, s->result, "volume %s", s->volume.name);
	if (find_paths(s))
		return 1;
	return unique && unique != s->object.fid.unique ? report_successor(s, unique) : 0;
}

static int search_path(struct search *s)
{
	struct admin_place place;
	int rc = admin_find_place(s->run, &place);

	if (rc)
		return rc;
	free(place.path);
	s->volume = place.volume;
	s->object.fid = place.fid;
	s->object.kind = place.status.kind;
	return json_array_append_new(s->paths, admin_show(place.name))
		       ? admin_fail(s->run, 1, "no memory")
		       : 0;
}

/* A link whose text cannot be read is one like others. */
static void look_at_text(struct search *s)
{
	struct store_status status;
	char *text = NULL;

	if (!s->result && s->object.kind == STORE_SYMLINK &&
	    !admin_contents(s->run->store, &s->object.fid, &text, NULL, &status))
		s->mount = locate_is_mount(status.mode, text);
	free(text);
}

int admin_which(struct admin_run *run)
{
	struct search s = {.run = run, .paths = json_array()};
	int rc = json_object_get(run->request, "vnode") ? search_number(&s) : search_path(&s);

	if (!rc)
		look_at_text(&s);
	if (!rc)
		rc = admin_done(run, search_result(&s), false, s.result != 0);
	json_decref(s.paths);
	return rc;
}
