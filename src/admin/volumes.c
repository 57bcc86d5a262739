/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands for volumes, and for one object: its access list, a mount point. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/private.h"
#include "afs/volname.h"
#include "volume/store/upkeep.h"

/* ---- volumes ---- */

#define QUOTA_MAX ((uint64_t)1 << 50) /* bytes */

static const char *const types[] = {"ro", "rw", "backup"};

static json_t *volume_json(const struct store_volume *v)
{
	return json_pack(
		"{s:I, s:o, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "id",
		(json_int_t)v->id, "name", admin_show(v->name), "type", types[v->type], "online",
		v->online, "rw", (json_int_t)v->rw, "ro", (json_int_t)v->ro, "backup",
		(json_int_t)v->backup, "quota_kib", (json_int_t)v->quota_kib, "used_kib",
		(json_int_t)v->used_kib, "files", (json_int_t)v->files, "created",
		(json_int_t)v->created, "copied", (json_int_t)v->copied, "updated",
		(json_int_t)v->updated, "cloned", (json_int_t)v->cloned, "offline_message",
		admin_show(v->offline_message));
}

/* The result that shows a volume as it is now. */
static int done_volume(struct admin_run *run, uint32_t id)
{
	struct store_volume volume;
	int rc = run->store->ops->volume(run->store, id, &volume);

	if (rc)
		return admin_fail_code(run, rc, "%u", id);
	return admin_done(run, json_pack("{s:o}", "volume", volume_json(&volume)), true, 0);
}

/* Quotas are given in bytes; 0: none. 0, or 2 after an error. */
static int get_quota(struct admin_run *run, uint64_t *kib)
{
	uint64_t bytes = admin_get_number(run, "quota", 0);

	*kib = bytes / 1024 + (bytes % 1024 != 0);
	if (bytes > QUOTA_MAX)
		return admin_fail(run, 2, "quota: at most 1024T");
	return 0;
}

int admin_check_name(struct admin_run *run, const char *name)
{
	if (afs_volume_name_has_room(name))
		return 0;
	return admin_fail(run, 2,
			  "%.100s: not a volume name; use up to %d letters, digits, '.', '_' and "
			  "'-', not only digits, without \".readonly\" or \".backup\" at the end",
			  name, AFS_VOLUME_NAME_LONGEST);
}

static int name_taken(struct admin_run *run, const char *name)
{
	return admin_fail(run, 1, "%s: a volume with this name exists already; choose another name",
			  name);
}

int admin_create(struct admin_run *run)
{
	struct store_acl acl = {0};
	struct store_new_volume volume = {.name = admin_get_text(run, "name"), .acl = &acl};
	uint64_t id = admin_get_number(run, "id", 0);
	uint32_t made;
	int rc = admin_check_name(run, volume.name);

	if (rc)
		return rc;
	/* Numbers are signed in some clients. */
	if (id > INT32_MAX)
		return admin_fail(run, 2, "id %" PRIu64 ": at most %d", id, INT32_MAX);
	volume.id = (uint32_t)id;
	store_acl_add(&acl, false, STORE_ADMINISTRATORS, STORE_ALL);
	if ((rc = get_quota(run, &volume.quota_kib)) || (rc = admin_owner(run, 0, &volume.owner)) ||
	    (rc = admin_acl_change(run, volume.name, &acl)) ||
	    (rc = admin_acl_permit(run, &acl, volume.name)))
		return rc;
	rc = store_volume_create(run->store, &volume, &made);
	if (rc == -EEXIST)
		return name_taken(run, volume.name);
	if (rc)
		return admin_fail_code(run, rc, "%s", volume.name);
	admin_changed_volume(run, made);
	return done_volume(run, made);
}

int admin_list(struct admin_run *run)
{
	struct store_volume volume;
	struct store_space space;
	json_t *list = json_array();
	uint32_t id = 0;
	int rc;

	while ((rc = run->store->ops->volume_next(run->store, id, &volume)) == 0) {
		json_array_append_new(list, volume_json(&volume));
		id = volume.id;
	}
	if (rc == STORE_VNOVOL)
		rc = run->store->ops->space(run->store, &space);
	if (rc) {
		json_decref(list);
		return admin_fail_code(run, rc, "the list of volumes");
	}
	return admin_done(run,
			  json_pack("{s:o, s:I, s:I}", "volumes", list, "total_kib",
				    (json_int_t)space.total_kib, "available_kib",
				    (json_int_t)space.available_kib),
			  false, 0);
}

int admin_examine(struct admin_run *run)
{
	struct store_volume volume;

	if (admin_find_volume(run, &volume))
		return 1;
	return admin_done(run, json_pack("{s:o}", "volume", volume_json(&volume)), false, 0);
}

/* Its entry would name a volume that is gone, or has another name. */
static int refuse_cell_volume(struct admin_run *run, const struct store_volume *volume,
			      const char *command)
{
	return admin_fail(
		run, 1,
		"%s: the location service has an entry of the volume, which must change with it: "
		"use \"%s\" of OpenAFS",
		volume->name, command);
}

int admin_remove(struct admin_run *run)
{
	struct store_volume volume;
	int rc;

	if (admin_find_volume(run, &volume))
		return 1;
	if (volume.cell)
		return refuse_cell_volume(run, &volume, "vos remove");
	rc = store_volume_remove(run->store, volume.id);
	if (rc == -ENOTEMPTY)
		return admin_fail(run, 1, "%s: the volume has clones; remove %s%s%s first",
				  volume.name, volume.ro ? ".readonly" : "",
				  volume.ro && volume.backup ? " and " : "",
				  volume.backup ? ".backup" : "");
	if (rc)
		return admin_fail_code(run, rc, "%s", volume.name);
	admin_changed_volume(run, volume.id);
	return admin_done(
		run, json_pack("{s:s, s:I}", "removed", volume.name, "id", (json_int_t)volume.id),
		true, 0);
}

int admin_rename(struct admin_run *run)
{
	const char *name = admin_get_text(run, "name");
	struct store_volume volume;
	int rc;

	if (admin_find_volume(run, &volume))
		return 1;
	rc = admin_check_name(run, name);
	if (rc)
		return rc;
	if (volume.type != STORE_RW)
		return admin_fail(run, 1, "%s: a clone is renamed with its read-write volume",
				  volume.name);
	if (volume.cell)
		return refuse_cell_volume(run, &volume, "vos rename");
	rc = store_volume_rename(run->store, volume.id, name);
	if (rc == -EEXIST)
		return name_taken(run, name);
	if (rc)
		return admin_fail_code(run, rc, "%s", volume.name);
	return done_volume(run, volume.id);
}

int admin_clone(struct admin_run *run)
{
	enum store_type type = admin_get_flag(run, "backup") ? STORE_BACKUP : STORE_RO;
	struct store_volume volume;
	uint32_t clone;
	int rc;

	if (admin_find_volume(run, &volume))
		return 1;
	if (volume.type != STORE_RW)
		return admin_fail(run, 1, "%s: only a read-write volume can be cloned",
				  volume.name);
	rc = store_volume_clone(run->store, volume.id, type, &clone);
	if (rc == -ENAMETOOLONG)
		return admin_fail(
			run, 1,
			"%s: the name is too long for a clone; rename the volume, to at most %d characters",
			volume.name, AFS_VOLUME_NAME_LONGEST);
	if (rc)
		return admin_fail_code(run, rc, "%s", volume.name);
	admin_changed_volume(run, clone);
	return done_volume(run, clone);
}

int admin_quota(struct admin_run *run)
{
	struct store_volume volume;
	int rc;

	if (admin_find_volume(run, &volume))
		return 1;
	if (!json_object_get(run->request, "quota"))
		return admin_done(run, json_pack("{s:o}", "volume", volume_json(&volume)), false,
				  0);
	rc = get_quota(run, &volume.quota_kib);
	if (rc)
		return rc;
	rc = run->store->ops->volume_set(run->store, &admin_caller, volume.id, 1, &volume);
	return rc ? admin_fail_code(run, rc, "%s", volume.name) : done_volume(run, volume.id);
}

/* Reports a change of the state. */
static int done_state(struct admin_run *run, const struct store_volume *volume, int rc)
{
	if (rc)
		return admin_fail_code(run, rc, "%s", volume->name);
	admin_changed_volume(run, volume->id);
	return done_volume(run, volume->id);
}

static bool permits_root_acl(void *arg, const struct store_acl *root)
{
	const struct admin_run *run = arg;

	return !run->options->forbids || !run->options->forbids(run->options->arg, root);
}

int admin_online(struct admin_run *run)
{
	struct store_volume volume;
	int rc;

	if (admin_find_volume(run, &volume))
		return 1;
	rc = store_volume_online(run->store, volume.id, permits_root_acl, run);
	if (rc == -EACCES)
		return admin_fail(
			run, 1,
			"%s: anonymous callers of other machines could write: take the rights w, i, d, "
			"k and a of system:anyuser away with \"rxvol acl\", or start rxfsd with "
			"--allow-anonymous-writes",
			volume.name);
	return done_state(run, &volume, rc);
}

int admin_offline(struct admin_run *run)
{
	const char *message = admin_get_text(run, "message");
	struct store_volume volume;

	if (message && strlen(message) >= sizeof(volume.offline_message))
		return admin_fail(run, 2, "message: at most %zu bytes",
				  sizeof(volume.offline_message) - 1);
	if (admin_find_volume(run, &volume))
		return 1;
	return done_state(run, &volume,
			  store_volume_offline(run->store, volume.id, message ? message : ""));
}

static void each_fault(void *arg, const char *line)
{
	admin_fault(arg, line);
}

static void count_check_progress(void *arg, uint64_t done, uint64_t total)
{
	admin_count(arg, done, total);
}

static bool is_stopped(void *arg)
{
	return admin_stopped(arg);
}

/*
 * Checks that run, one, or wait for their turn. They can take long, and each has one of the connections by which all other
 * requests come.
 */
#define CHECKS_MOST 8
static _Atomic unsigned checks;

static int run_store_check(struct admin_run *run)
{
	bool fast = admin_get_flag(run, "fast");
	const struct store_checker checker = {
		.fast = fast,
		.data = admin_get_flag(run, "data"),
		.each = each_fault,
		.progress = count_check_progress,
		.stopped = run->output->stopped ? is_stopped : NULL,
		.arg = run,
	};
	int faults = store_check(run->store, &checker);

	if (faults == -EINTR)
		return admin_fail(run, 1, "interrupted");
	if (faults < 0)
		return admin_fail_code(run, faults, "the check could not be completed");
	return admin_done(run, json_pack("{s:i, s:b}", "faults", faults, "fast", fast), false,
			  faults != 0);
}

int admin_check(struct admin_run *run)
{
	int rc;

	if (checks++ < CHECKS_MOST)
		rc = run_store_check(run);
	else
		rc = admin_fail(run, 1, "%d checks run or wait already; try again later",
				CHECKS_MOST);
	checks--;
	return rc;
}

/* ---- one object ---- */

#define CELL_MAX 255

#define TRIES	 1000 /* of a change, if others change the list as well */

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
	return rc == -EAGAIN
		       ? admin_fail(run, 1, "%s: others change the list all the time; try again",
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
