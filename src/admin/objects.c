/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands for one object: its access list, a mount point. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/private.h"
#include "afs/volname.h"

#define CELL_MAX 255

#define TRIES 1000 /* of a change, if others change the list as well */

/*
 * Change the access list of a directory, which *acl has. 0, or the status after an error; -EAGAIN: another request or a
 * client has changed it meanwhile.
 */
static int set_acl(struct admin_run *run, const struct admin_place *place, struct store_acl *acl)
{
	const struct store_acl old = *acl;
	struct store_status status;
	struct store_changes changes = {0};
	int rc;

	if (place->status.kind != STORE_DIR)
		return admin_fail(run, 1,
				  "%s: only a directory has an access list; change that of the "
				  "directory above",
				  place->name);
	rc = admin_acl_change(run, place->name, acl);
	if (rc)
		return rc;
	rc = admin_acl_permit(run, acl, place->name);
	if (rc)
		return rc;
	rc = run->store->ops->change_acl(run->store, &admin_caller, &place->fid, &old, acl, &status,
					 &changes);
	if (rc == -EAGAIN)
		return rc;
	if (rc)
		return admin_fail_code(run, rc, "%s", place->name);
	admin_changed(run, &changes);
	return 0;
}

/* The list of a directory, changed if `change`. 0, or the status after an error. */
static int look_at_acl(struct admin_run *run, struct admin_place *place, bool change,
		       struct store_acl *acl)
{
	int rc = -EAGAIN;

	for (unsigned i = 0; rc == -EAGAIN && i < TRIES; i++) {
		rc = run->store->ops->acl(run->store, &admin_caller, &place->fid, acl,
					  &place->status);
		if (rc)
			return admin_fail_code(run, rc, "%s", place->name);
		if (change)
			rc = set_acl(run, place, acl);
	}
	return rc == -EAGAIN ? admin_fail(run, 1, "%s: others change the list all the time; try again",
					  place->name)
			     : rc;
}

int admin_acl(struct admin_run *run)
{
	bool change = json_object_get(run->request, "acl");
	struct admin_names names;
	struct admin_place place;
	struct store_acl acl;
	json_t *result;
	int rc = admin_find_place(run, &place);

	if (rc)
		return rc;
	free(place.path);
	rc = look_at_acl(run, &place, change, &acl);
	if (rc || (rc = admin_names_open(run, &names)))
		return rc;
	result = json_pack("{s:o, s:o}", "path", admin_show(place.name), "acl",
			   admin_acl_json(&names, &acl));
	admin_names_close(&names);
	return admin_done(run, result, change, 0);
}

/* The name of a volume, also of a clone, or its number; maybe after "CELL:". */
static bool is_target(const char *text)
{
	static const char *const suffixes[] = {".readonly", ".backup"};
	const char *colon = strchr(text, ':');
	char name[STORE_VOLNAME_MAX + 16];
	size_t length;

	if (colon && (colon == text || colon - text > CELL_MAX ||
		      strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789.-_") != (size_t)(colon - text)))
		return false;
	text = colon ? colon + 1 : text;
	length = strlen(text);
	if (length && length <= 10 && strspn(text, "0123456789") == length)
		return true;
	if (length >= sizeof(name))
		return false;
	memcpy(name, text, length + 1);
	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(suffixes[i]);

		if (length > n && !strcmp(name + length - n, suffixes[i])) {
			name[length - n] = 0;
			break;
		}
	}
	return afs_volume_name_valid(name);
}

int admin_mount(struct admin_run *run)
{
	const char *target = admin_get_text(run, "target"), *last;
	struct store_set set = {.mask = STORE_SET_MODE, .mode = 0644};
	struct store_status status, dir;
	struct store_changes changes = {0};
	struct admin_place place;
	char text[STORE_TEXT_MAX + 1];
	int rc;

	if (!is_target(target))
		return admin_fail(run, 2, "%.100s: not the name or number of a volume", target);
	rc = admin_find_parent(run, &place, &last);
	if (rc)
		return rc;
	snprintf(text, sizeof(text), "%c%s.", admin_get_flag(run, "rw") ? '%' : '#', target);
	rc = *last ? run->store->ops->create(run->store, &admin_caller, &place.fid, last,
					     STORE_SYMLINK, text, &set, &status, &dir, &changes)
		   : -EEXIST;
	free(place.path);
	if (rc == -EEXIST)
		return admin_fail(run, 1, "%s: exists already; choose another name", place.name);
	if (rc)
		return admin_fail_code(run, rc, "%s", place.name);
	admin_changed(run, &changes);
	return admin_done(run,
			  json_pack("{s:o, s:s}", "path", admin_show(place.name), "text", text),
			  true, 0);
}
