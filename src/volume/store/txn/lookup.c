/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding versions for readers. */
#include "volume/store/txn/lookup.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/held.h"

#define TRIES 1000 /* against endless races, which only a fault could cause */

static int read_version_row(struct core *core, const struct cache_key *key,
			    struct version **version)
{
	struct vnode_key row = {.group = key->group, .vnode = key->vnode, .epoch = key->epoch};
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	result = db_vnode_get(db, &row, version);
	readers_put(core->readers, db);
	if (result == -ENOENT || (!result && !(*version)->v.kind)) {
		version_unref(*version);
		*version = NULL;
		result = STORE_VNOVNODE;
	}
	return result;
}

/* -EAGAIN: a newer one was published meanwhile. */
static int load_uncached_version(struct core *core, const struct cache_key *key,
				 struct version **version)
{
	uint64_t ticket;
	int result = cache_reserve(core->cache, key, &ticket);

	if (result)
		return result;
	*version = NULL;
	result = read_version_row(core, key, version);
	if (!cache_fill(core->cache, key, ticket, version)) {
		version_unref(*version);
		result = -EAGAIN;
	}
	return result;
}

/* A clone may have been replaced while its rows were read, some of which are gone then. */
static bool is_view_current(struct core *core, const struct view *view)
{
	struct view now;
	int result;

	if (view->epoch == CACHE_HEAD)
		return true;
	result = volumes_view(&core->volumes, view->volume, &now);
	return volumes_has_view(result) && now.epoch == view->epoch;
}

int lookup_version(struct core *core, const struct view *view, uint32_t vnode,
		   struct version **version)
{
	struct cache_key key = {.group = view->group, .epoch = view->epoch, .vnode = vnode};
	int result = -EAGAIN;

	for (unsigned i = 0; i < TRIES && result == -EAGAIN; i++) {
		*version = cache_find(core->cache, &key);
		if (*version)
			return 0;
		result = load_uncached_version(core, &key, version);
	}
	return result;
}

static int find_parent_directory(struct core *core, struct found *found)
{
	const struct vnode *v = &found->version->v;
	int result;

	if (v->kind == STORE_DIR)
		return 0;
	result = lookup_version(core, &found->view, v->parent, &found->directory);
	if (!result && (found->directory->v.kind != STORE_DIR ||
			found->directory->v.unique != v->parent_unique))
		result = STORE_VNOVNODE;
	return result;
}

int lookup_view(struct core *core, const struct store_caller *caller, uint32_t volume,
		struct view *view)
{
	int result = volumes_view(&core->volumes, volume, view);

	return volumes_has_view(result) && caller && caller->unrestricted ? 0 : result;
}

/* Whether the file that was found is still the newest version of its vnode. */
static bool is_version_current(struct core *core, const struct found *found)
{
	struct version *now = NULL;
	bool current = !lookup_version(core, &found->view, found->fid.vnode, &now) &&
		       now == found->version;

	version_unref(now);
	return current;
}

static int report_missing_directory(struct core *core, const struct store_fid *fid)
{
	report_damage(&core->report,
		      "%s: the directory of vnode %u of volume %u is missing: restore it",
		      core->name, fid->vnode, fid->volume);
	return -EIO;
}

/*
 * A file and its directory are two look-ups: it may be moved or removed between them, and the directory may be opened to others
 * once the file has left it. So the file has to be the same afterwards: then it was in the directory that was found.
 */
static int look_up_once(struct core *core, const struct store_caller *caller, struct found *found)
{
	const struct store_fid *fid = &found->fid;
	int result = lookup_view(core, caller, fid->volume, &found->view);

	if (!result)
		result = lookup_version(core, &found->view, fid->vnode, &found->version);
	if (result)
		return is_view_current(core, &found->view) ? result : -EAGAIN;
	if (found->version->v.unique != fid->unique)
		return is_view_current(core, &found->view) ? STORE_VNOVNODE : -EAGAIN;
	result = find_parent_directory(core, found);
	if (!is_view_current(core, &found->view))
		return -EAGAIN;
	if (result && result != STORE_VNOVNODE)
		return result;
	if (found->view.epoch == CACHE_HEAD && found->version->v.kind != STORE_DIR &&
	    !is_version_current(core, found))
		return -EAGAIN;
	return result ? report_missing_directory(core, fid) : 0;
}

int lookup(struct core *core, const struct store_caller *caller, const struct store_fid *fid,
	   struct found *found)
{
	int result = -EAGAIN;

	*found = (struct found){.fid = *fid};
	if (!fid->volume || !fid->vnode)
		return -EINVAL;
	for (unsigned i = 0; i < TRIES && result == -EAGAIN; i++) {
		lookup_end(found);
		found->view.epoch = CACHE_HEAD;
		result = look_up_once(core, caller, found);
	}
	if (result)
		lookup_end(found);
	return result;
}

void lookup_end(struct found *found)
{
	version_unref(found->version);
	version_unref(found->directory);
	found->version = found->directory = NULL;
}

struct subject lookup_subject(const struct found *found, const struct store_caller *caller)
{
	return (struct subject){.caller = caller,
				.acl = found->directory ? found->directory->acl
							: found->version->acl,
				.version = found->version,
				.volume_owner = found->view.owner};
}

static struct cache_key make_cache_key(const struct found *found)
{
	return (struct cache_key){
		.group = found->view.group, .epoch = found->view.epoch, .vnode = found->fid.vnode};
}

int lookup_blob(struct core *core, const struct found *found, struct blob **blob)
{
	struct db_small small = {.id = found->version->v.small,
				 .group = found->view.group,
				 .vnode = found->fid.vnode};
	struct cache_key key = make_cache_key(found);
	struct db *db;
	int result;

	assert(found->version->v.small);
	*blob = blob_ref(atomic_load(&found->version->blob));
	if (*blob)
		return 0;
	result = readers_get(core->readers, &db);
	if (result)
		return result;
	result = db_small_get(db, &small, blob);
	readers_put(core->readers, db);
	if (result)
		return result == -ENOENT ? -EAGAIN : result;
	if ((*blob)->length != found->version->v.length) {
		blob_unref(*blob);
		return -EIO;
	}
	/* A copy or a backup reads each file once, and would drive what others read out of the cache. */
	if (!atomic_exchange(&found->version->was_read, true))
		return 0;
	*blob = blob_ref(version_attach_blob(found->version, *blob));
	cache_charge(core->cache, &key, found->version);
	return 0;
}

/* All slots, in one view of the database with the record. */
static int read_whole_content(struct core *core, const struct found *found,
			      struct store_content *content)
{
	struct vnode_key key = {
		.group = found->view.group, .vnode = found->fid.vnode, .epoch = found->view.epoch};
	struct version *now;
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	result = db_vnode_get_whole(db, &key, &now);
	readers_put(core->readers, db);
	if (result)
		return result == -ENOENT ? -EAGAIN : result;
	if (now->v.unique != found->version->v.unique ||
	    now->v.version != found->version->v.version || now->partial) {
		result = -EAGAIN;
	} else {
		store_content_copy(&now->content, content);
		result = store_content_set(content, 0,
					   store_slot_ref(found->version->content.first));
	}
	version_unref(now);
	return result;
}

int lookup_content(struct core *core, const struct found *found,
		   const struct store_content **content)
{
	struct cache_key key = make_cache_key(found);
	struct store_content whole;
	int result;

	*content = version_content(found->version);
	if (*content)
		return 0;
	result = read_whole_content(core, found, &whole);
	if (result)
		return result;
	*content = version_attach_content(found->version, &whole);
	store_content_free(&whole);
	if (!*content)
		return -ENOMEM;
	cache_charge(core->cache, &key, found->version);
	return 0;
}

/* The pages, in one view of the database with the record. */
static int read_directory_pages(struct db *db, const struct found *found,
				struct store_pages **pages)
{
	struct vnode_key key = {
		.group = found->view.group, .vnode = found->fid.vnode, .epoch = found->view.epoch};
	struct version *now = NULL;
	int result = db_begin_read(db);

	if (result)
		return result;
	result = db_vnode_get(db, &key, &now);
	if (result == -ENOENT || (!result && (now->v.unique != found->fid.unique ||
					      now->v.version != found->version->v.version)))
		result = -EAGAIN;
	if (!result)
		result = db_directory_get(db, &key, now->v.length, pages);
	db_end_read(db);
	version_unref(now);
	return result;
}

static int load_directory_pages(struct core *core, const struct found *found,
				struct store_pages **pages)
{
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (!result) {
		result = read_directory_pages(db, found, pages);
		readers_put(core->readers, db);
	}
	if (result != -EBADMSG)
		return result;
	report_damage(&core->report, "%s: directory %u of volume %u is damaged: restore it",
		      core->name, found->fid.vnode, found->fid.volume);
	return -EIO;
}

/* -- one reader reads a version of a directory, others wait for it -- */

struct page_load {
	struct page_load *next;
	struct cache_key key;
	uint32_t unique;
	uint64_t version;
	unsigned users;
	bool done;
	int result;
	struct store_pages *pages; /* with result 0: a reference */
};

void lookup_init(struct page_loads *loads)
{
	pthread_mutex_init(&loads->lock, NULL);
	pthread_cond_init(&loads->done, NULL);
}

void lookup_fini(struct page_loads *loads)
{
	pthread_mutex_destroy(&loads->lock);
	pthread_cond_destroy(&loads->done);
}

static bool is_load_of(const struct page_load *load, const struct found *found,
		       const struct cache_key *key)
{
	return load->key.group == key->group && load->key.epoch == key->epoch &&
	       load->key.vnode == key->vnode && load->unique == found->version->v.unique &&
	       load->version == found->version->v.version;
}

/* Join the load of the version as one more user. *leads: it is new. NULL: no memory. */
static struct page_load *join_page_load(struct page_loads *loads, const struct found *found,
					bool *leads)
{
	struct cache_key key = make_cache_key(found);
	struct page_load *load = loads->first;

	assert(mutex_is_held(&loads->lock));
	while (load && !is_load_of(load, found, &key))
		load = load->next;
	*leads = !load;
	if (!load) {
		load = calloc(1, sizeof(*load));
		if (!load)
			return NULL;
		load->key = key;
		load->unique = found->version->v.unique;
		load->version = found->version->v.version;
		load->next = loads->first;
		loads->first = load;
	}
	load->users++;
	return load;
}

static void end_page_load(struct page_loads *loads, struct page_load *load)
{
	struct page_load **at = &loads->first;

	assert(mutex_is_held(&loads->lock) && load->users > 0 && !load->done);
	while (*at != load)
		at = &(*at)->next;
	*at = load->next;
	load->done = true;
	pthread_cond_broadcast(&loads->done);
}

/* Take the pages for one user and end its use of the load. */
static int take_loaded_pages(struct page_load *load, struct store_pages **pages)
{
	int result = load->result;

	assert(load->done && load->users > 0);
	if (!result)
		*pages = store_pages_ref(load->pages);
	if (--load->users)
		return result;
	store_pages_unref(load->pages);
	free(load);
	return result;
}

static int share_page_load(struct core *core, const struct found *found, struct store_pages **pages)
{
	struct page_loads *loads = &core->loads;
	struct store_pages *read = NULL;
	struct page_load *load;
	bool leads;
	int result;

	pthread_mutex_lock(&loads->lock);
	*pages = atomic_load(&found->version->pages);
	load = *pages ? NULL : join_page_load(loads, found, &leads);
	if (!load) {
		if (*pages)
			store_pages_ref(*pages);
		pthread_mutex_unlock(&loads->lock);
		return *pages ? 0 : -ENOMEM;
	}
	if (leads) {
		pthread_mutex_unlock(&loads->lock);
		loads->count++;
		result = load_directory_pages(core, found, &read);
		/* From then on others find them there. */
		if (!result)
			read = store_pages_ref(version_attach_pages(found->version, read));
		pthread_mutex_lock(&loads->lock);
		load->result = result;
		load->pages = result ? NULL : read;
		end_page_load(loads, load);
	}
	while (!load->done)
		pthread_cond_wait(&loads->done, &loads->lock);
	result = take_loaded_pages(load, pages);
	pthread_mutex_unlock(&loads->lock);
	return result;
}

int lookup_pages(struct core *core, const struct found *found, struct store_pages **pages)
{
	struct cache_key key = make_cache_key(found);
	int result;

	assert(found->version->v.kind == STORE_DIR);
	*pages = atomic_load(&found->version->pages);
	if (*pages) {
		store_pages_ref(*pages);
		return 0;
	}
	result = share_page_load(core, found, pages);
	if (result)
		return result;
	*pages = store_pages_ref(version_attach_pages(found->version, *pages));
	cache_charge(core->cache, &key, found->version);
	return 0;
}

/* -- naming what is damaged -- */

#define PATH_MAX_SHOWN 300
#define DEPTH_SHOWN    64

/* The name of a vnode in its directory. 0 or a result. */
static int find_name_in_directory(struct core *core, const struct store_fid *dir,
				  const struct store_fid *fid, char name[STORE_NAME_MAX + 1],
				  struct store_fid *above)
{
	struct found found;
	struct store_pages *pages;
	uint32_t cursor = 0, vnode, unique;
	const char *next;
	int result = lookup(core, NULL, dir, &found);

	if (result)
		return result;
	*above = (struct store_fid){dir->volume, found.version->v.parent,
				    found.version->v.parent_unique};
	result = found.version->v.kind == STORE_DIR ? lookup_pages(core, &found, &pages) : -ENOTDIR;
	lookup_end(&found);
	if (result)
		return result;
	result = -ENOENT;
	while (result && store_pages_next(pages, &cursor, &next, &vnode, &unique))
		if (vnode == fid->vnode && unique == fid->unique) {
			snprintf(name, STORE_NAME_MAX + 1, "%s", next);
			result = 0;
		}
	store_pages_unref(pages);
	return result;
}

/* In front of `path`, which has its end at path[PATH_MAX_SHOWN - 1]. Returns where it begins. */
static char *find_damaged_path(struct core *core, const struct store_fid *fid, char *path)
{
	char name[STORE_NAME_MAX + 1], *at = path + PATH_MAX_SHOWN - 1;
	struct store_fid here = *fid, dir, above;
	struct found found;

	*at = '\0';
	if (lookup(core, NULL, fid, &found))
		return at;
	dir = (struct store_fid){fid->volume, found.version->v.parent,
				 found.version->v.parent_unique};
	lookup_end(&found);
	for (int i = 0; i < DEPTH_SHOWN && here.vnode != STORE_ROOT_VNODE; i++) {
		size_t length;

		if (find_name_in_directory(core, &dir, &here, name, &above))
			break;
		length = strlen(name);
		if ((size_t)(at - path) < length + 1)
			break;
		at -= length;
		memcpy(at, name, length);
		*--at = '/';
		here = dir;
		dir = above;
	}
	return at;
}

void damage_report(struct core *core, const struct store_fid *fid, uint64_t offset)
{
	char path[PATH_MAX_SHOWN];
	struct view view;
	bool known = !lookup_view(core, NULL, fid->volume, &view);
	struct volrec volume = {.name = "?"};

	if (known)
		volumes_get(&core->volumes, fid->volume, &volume);
	report_damage(&core->report,
		      "%s: volume %s (%u): %s (vnode %u): the bytes at offset %llu are damaged: "
		      "restore the file, and look at the disk",
		      core->name, volume.name, fid->volume, find_damaged_path(core, fid, path),
		      fid->vnode, (unsigned long long)(offset - offset % STORE_BLOCK));
}
