/* SPDX-License-Identifier: BSD-2-Clause */
/* mounts, unmount: the mount points of volumes. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin/locate.h"

#define CELL_MOST   255
#define TARGET_MOST (STORE_VOLNAME_MAX + 16)

/* The parts of the text of a mount point: "#CELL:NAME." */
struct target {
	char cell[CELL_MOST + 1]; /* or "" */
	char name[TARGET_MOST];	  /* or the number */
	bool rw;
};

/* Clients take a link for a mount point if it has no x bit and such a text. */
static bool parse_target(uint32_t mode, const char *text, struct target *target)
{
	size_t length = text ? strlen(text) : 0, name;
	const char *colon;

	if (mode & 0111 || length < 3 || (*text != '#' && *text != '%') || text[length - 1] != '.')
		return false;
	colon = strchr(text, ':');
	target->rw = *text == '%';
	target->cell[0] = 0;
	text++;
	length--;
	if (colon && (size_t)(colon - text) <= CELL_MOST) {
		memcpy(target->cell, text, (size_t)(colon - text));
		target->cell[colon - text] = 0;
		length -= (size_t)(colon + 1 - text);
		text = colon + 1;
	}
	/* A name that is too long is that of no volume. */
	name = length - 1 < TARGET_MOST ? length - 1 : TARGET_MOST - 1;
	memcpy(target->name, text, name);
	target->name[name] = 0;
	return true;
}

bool locate_is_mount(uint32_t mode, const char *text)
{
	struct target target;

	return parse_target(mode, text, &target);
}

/* The volume that a name or number leads to. */
static bool find_mounted_volume(struct store *store, const char *name, struct store_volume *volume)
{
	size_t digits = strspn(name, "0123456789");
	unsigned long long id = strtoull(name, NULL, 10);

	if (*name && !name[digits] && digits <= 10)
		return id <= UINT32_MAX && !store->ops->volume(store, (uint32_t)id, volume);
	return !store->ops->volume_by_name(store, name, volume);
}

/* -- mounts -- */

/* One thread. */
struct listing {
	struct admin_run *run;
	const char *wanted;	     /* mount points in this volume or to it; NULL: all */
	struct store_volume of;	     /* `wanted`; id 0: there is no such volume */
	struct store_volume in;	     /* the one that is looked at */
	struct locate_directory dir; /* of the last one that was found */
	uint64_t count, dangling;
	uint64_t skipped; /* volumes that cannot be read */
};

/* Whether the name is that of a volume or of a clone that it could have. */
static bool is_same_group(const char *target, const char *volume)
{
	size_t length = strlen(volume);

	return !strncmp(target, volume, length) &&
	       (!target[length] || !strcmp(target + length, ".readonly") ||
		!strcmp(target + length, ".backup"));
}

static bool is_wanted(const struct listing *l, const struct target *target,
		      const struct store_volume *led)
{
	assert(l->wanted || !l->of.id);
	if (!l->wanted || (l->of.id && l->of.id == l->in.id))
		return true;
	if (!l->of.id)
		return !strcmp(target->name, l->wanted) || is_same_group(target->name, l->wanted);
	if (l->of.type != STORE_RW)
		return led && led->id == l->of.id;
	return led ? led->rw == l->of.id : is_same_group(target->name, l->of.name);
}

/* "cell": a cell is named, whose volumes are not looked at; "dangling"; or "good". */
static const char *state_of(struct listing *l, const struct target *target,
			    const struct store_volume *led)
{
	if (*target->cell)
		return "cell";
	if (led)
		return "good";
	l->dangling++;
	return "dangling";
}

/* Show one path of it. 0 or -ENOMEM. */
static int tell_mount(struct listing *l, const char *name, const char *text,
		      const struct target *target, const struct store_volume *led)
{
	char *path = locate_join(&l->in, &l->dir, name);
	json_t *mount = path ? json_pack("{s:o, s:s, s:o, s:o, s:o, s:I, s:b, s:s}", "path",
					 admin_show(path), "volume", l->in.name, "text",
					 admin_show(text), "cell", admin_show(target->cell),
					 "target", admin_show(target->name), "target_id",
					 (json_int_t)(led ? led->id : 0), "rw", target->rw, "state",
					 state_of(l, target, led))
			     : NULL;

	free(path);
	if (!mount)
		return -ENOMEM;
	l->count++;
	admin_part(l->run, "mount", mount);
	return 0;
}

/* A link that is not found any more was removed. */
static int tell_link(struct listing *l, const struct store_object *object,
		     const struct target *target, const struct store_volume *led)
{
	const struct locate_name *name = NULL;
	int rc = 0;

	if (!memcmp(&l->dir.fid, &object->parent, sizeof(l->dir.fid)))
		name = locate_find(&l->dir, object->fid.vnode);
	if (!name) {
		rc = locate_directory(l->run->store, &object->parent, &l->dir);
		name = rc ? NULL : locate_find(&l->dir, object->fid.vnode);
	}
	for (const struct locate_name *end = l->dir.name + l->dir.count;
	     !rc && name && name < end && name->vnode == object->fid.vnode; name++)
		rc = tell_mount(l, name->name, object->text, target, led);
	return rc == -ENOMEM ? rc : 0;
}

static int look_at_link(void *arg, const struct store_object *object)
{
	struct listing *l = arg;
	struct store_volume volume;
	struct target target;
	bool led;

	if (!parse_target(object->mode, object->text, &target))
		return 0;
	led = find_mounted_volume(l->run->store, target.name, &volume);
	if (!is_wanted(l, &target, led ? &volume : NULL))
		return 0;
	return tell_link(l, object, &target, led ? &volume : NULL);
}

static bool is_listing_stopped(void *arg)
{
	const struct listing *l = arg;

	return admin_stopped(l->run);
}

/* The mount points in one volume. A volume that is gone meanwhile has none, a damaged or busy one is skipped. 0 or a result. */
static int list_mounts_in(struct listing *l, const struct store_volume *volume)
{
	const struct store_object_scan scan = {
		.kinds = 1u << STORE_SYMLINK,
		.each = look_at_link,
		.stopped = is_listing_stopped,
		.arg = l,
	};
	int rc;

	l->in = *volume;
	rc = store_objects(l->run->store, volume->id, &scan);
	locate_forget(&l->dir);
	if (!rc || rc == STORE_VNOVOL || rc == -ENOMEM || rc == -EINTR)
		return rc == STORE_VNOVOL ? 0 : rc;
	l->skipped++;
	admin_skipped(l->run, volume->name, admin_code_text(rc));
	return 0;
}

/*
 * Clones repeat what their volume has, or had: only one that was asked for is looked at. A damaged record does not say what
 * the volume is.
 */
static int list_all_mounts(struct listing *l)
{
	struct store_volume volume = {0};
	int rc = 0;

	while (!rc && l->run->store->ops->volume_next(l->run->store, volume.id, &volume) == 0)
		if (volume.type == STORE_RW || volume.id == l->of.id || !volume.rw)
			rc = list_mounts_in(l, &volume);
	return rc;
}

int admin_mounts(struct admin_run *run)
{
	struct listing l = {.run = run, .wanted = admin_get_text(run, "volume")};
	int rc;

	if (l.wanted && !find_mounted_volume(run->store, l.wanted, &l.of))
		l.of.id = 0;
	rc = list_all_mounts(&l);
	if (rc == -EINTR)
		return admin_fail(run, 1, "interrupted");
	if (rc)
		return admin_fail_code(run, rc, "volume %s", l.in.name);
	if (l.wanted && !l.of.id && !l.count && !l.skipped)
		return admin_fail_code(run, STORE_VNOVOL, "%.200s", l.wanted);
	return admin_done(run,
			  json_pack("{s:I, s:I, s:I}", "count", (json_int_t)l.count, "dangling",
				    (json_int_t)l.dangling, "skipped", (json_int_t)l.skipped),
			  false, l.skipped != 0);
}

/* -- unmount -- */

/* The text of the mount point, to be freed. 0, or 1 after an error. */
static int read_mount_point(struct admin_run *run, const struct admin_place *place,
			    const char *last, char **text)
{
	static const char *const kinds[] = {"", "a file", "a directory", "a symbolic link"};
	struct store_status status;
	struct target target;
	struct store_fid fid;
	int rc = admin_lookup(run->store, &place->fid, last, &fid);

	if (rc == -ENOENT)
		return admin_fail(run, 1,
				  "%s: does not exist; \"rxvol mounts %s\" shows the mount "
				  "points of the volume and those that lead to it",
				  place->name, place->volume.name);
	if (!rc)
		rc = admin_contents(run->store, &fid, text, NULL, &status);
	if (rc)
		return admin_fail_code(run, rc, "%s", place->name);
	if (status.kind == STORE_SYMLINK && parse_target(status.mode, *text, &target))
		return 0;
	free(*text);
	*text = NULL;
	return admin_fail(run, 1, "%s: is %s, not a mount point; only clients remove that",
			  place->name, kinds[status.kind]);
}

int admin_unmount(struct admin_run *run)
{
	struct store_changes changes = {0};
	struct admin_place place;
	struct store_status dir;
	char *text = NULL;
	const char *last;
	int rc = admin_find_parent(run, &place, &last);

	if (rc)
		return rc;
	if (!*last)
		rc = admin_fail(run, 2,
				"%s: is the root directory of a volume; give the path of a mount "
				"point: \"rxvol mounts %s\" shows those that lead there",
				place.name, place.volume.name);
	else
		rc = read_mount_point(run, &place, last, &text);
	if (rc)
		goto out;
	rc = run->store->ops->remove(run->store, &admin_caller, &place.fid, last, STORE_FILE, &dir,
				     &changes);
	if (rc) {
		rc = admin_fail_code(run, rc, "%s", place.name);
		goto out;
	}
	admin_changed(run, &changes);
	rc = admin_done(
		run,
		json_pack("{s:o, s:o}", "path", admin_show(place.name), "text", admin_show(text)),
		true, 0);
out:
	free(text);
	free(place.path);
	return rc;
}
