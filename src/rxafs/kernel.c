/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and attributes that the kernel is given, and for how long. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "rxafs/known.h"
#include "rxafs/through.h"

/* Of the kernel's protocol: names can be expired. */
#define EXPIRE_MINOR 38

static uint64_t hash_given(const void *item, const uint64_t key[2])
{
	(void)key;
	return ((const struct given *)item)->hash;
}

static uint64_t hash_given_name(const char *name, size_t length)
{
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)name[i]) * 1099511628211u;
	return hash ^ hash >> 32;
}

static struct given *find_given(struct known *known, uint64_t hash, const char *name, size_t length)
{
	for (struct given *g = htable_first(&known->names, hash); g; g = g->link)
		if (g->hash == hash && g->length == length && !memcmp(g->name, name, length))
			return g;
	return NULL;
}

/* With the lock. */
static bool add_given(struct known *known, const char *name, bool directory)
{
	size_t length = strlen(name);
	uint64_t hash = hash_given_name(name, length);
	struct given *g;

	if (!known->has_names)
		known->has_names = htable_init(&known->names, offsetof(struct given, link),
					       hash_given, NULL, 0);
	if (!known->has_names)
		return false;
	g = find_given(known, hash, name, length);
	if (g) {
		g->directory = directory;
		return true;
	}
	g = malloc(sizeof *g + length + 1);
	if (!g)
		return false;
	g->hash = hash;
	g->directory = directory;
	g->length = length;
	memcpy(g->name, name, length + 1);
	htable_add(&known->names, g);
	return true;
}

void kernel_note_name(struct mount *mount, rxafs_object *directory, const char *name,
		      bool is_directory)
{
	struct known *known = mount->keep_names ? kernel_known(mount, directory) : NULL;

	if (!known)
		return;
	pthread_mutex_lock(&known->lock);
	add_given(known, name, is_directory);
	pthread_mutex_unlock(&known->lock);
}

uint64_t kernel_begin_look(struct mount *mount, rxafs_object *directory)
{
	struct known *known = mount->keep_names ? kernel_known(mount, directory) : NULL;
	uint64_t changes = 0;

	if (!known)
		return 0;
	atomic_store(&known->is_directory, true);
	pthread_mutex_lock(&known->lock);
	changes = known->name_changes;
	pthread_mutex_unlock(&known->lock);
	return changes;
}

/* False: the names have changed since, or it cannot be noted; then the kernel must not keep it. */
static bool note_look(struct mount *mount, const struct kernel_look *look, bool directory)
{
	struct known *known = mount->keep_names ? kernel_known(mount, look->directory) : NULL;
	bool noted;

	if (!known)
		return false;
	pthread_mutex_lock(&known->lock);
	noted = known->name_changes == look->begun && add_given(known, look->name, directory);
	pthread_mutex_unlock(&known->lock);
	return noted;
}

static bool may_keep(struct mount *mount, const struct rxafs_attributes *attributes)
{
	return mount->keep_names && (!mount->many_users || attributes->for_all);
}

static double seconds_of(uint64_t ns)
{
	return ns > 3600 * (uint64_t)NS_PER_S ? 3600.0 : (double)ns / NS_PER_S;
}

double kernel_attribute_time(struct mount *mount, const struct rxafs_attributes *attributes)
{
	return may_keep(mount, attributes) ? seconds_of(attributes->valid_ns) : 0;
}

static double name_time(struct mount *mount, const struct kernel_look *look,
			const struct rxafs_attributes *attributes, bool directory)
{
	if (!may_keep(mount, attributes) || !attributes->name_valid_ns ||
	    !note_look(mount, look, directory))
		return 0;
	return seconds_of(attributes->name_valid_ns);
}

double kernel_missing_time(struct mount *mount, const struct kernel_look *look,
			   const struct rxafs_attributes *attributes)
{
	return name_time(mount, look, attributes, false);
}

/*
 * The kernel refuses access lists of POSIX, which cp -p and sed -i set, to all but the owner, and git trusts no
 * folder of another user. The numbers of owners in AFS belong to no user of this machine.
 */
void kernel_show_owner(const struct mount *mount, struct stat *stat)
{
	if (!mount->own_files)
		return;
	stat->st_uid = getuid();
	stat->st_gid = getgid();
}

static void note_given(struct known *known)
{
	atomic_store(&known->given_at, monotonic_ns());
	atomic_store(&known->given, true);
}

uint64_t kernel_begin_attributes(struct mount *mount, rxafs_object *object)
{
	struct known *known = kernel_known(mount, object);

	return known ? atomic_load(&known->changes) : 0;
}

bool kernel_end_attributes(struct mount *mount, rxafs_object *object, uint64_t changes)
{
	struct known *known = kernel_known(mount, object);
	bool same;

	if (!known)
		return true;
	pthread_mutex_lock(&known->lock);
	same = atomic_load(&known->changes) == changes;
	if (same)
		note_given(known);
	pthread_mutex_unlock(&known->lock);
	return same;
}

void kernel_fill_entry(struct mount *mount, const struct kernel_look *look, rxafs_object *object,
		       const struct rxafs_attributes *attributes, struct fuse_entry_param *entry)
{
	struct known *known = kernel_known(mount, object);

	if (known) {
		note_given(known);
		through_renew(mount, object);
	}
	*entry = (struct fuse_entry_param){
		.ino = object_node(mount, object),
		.generation = known ? known->generation : 0,
		.attr = attributes->stat,
		/* A change since the look was told to nobody, if the kernel did not have the object yet. */
		.attr_timeout = known && rxafs_attributes_hold(object, attributes)
					? kernel_attribute_time(mount, attributes)
					: 0,
	};
	kernel_show_owner(mount, &entry->attr);
	/*
	 * To unhash the name of a directory would take it out of the kernel's tree, and the working directories of
	 * processes with it. A kernel that cannot expire such names asks for them each time.
	 */
	if (known && !attributes->volatile_name &&
	    (mount->can_expire || !S_ISDIR(attributes->stat.st_mode)))
		entry->entry_timeout =
			name_time(mount, look, attributes, S_ISDIR(attributes->stat.st_mode));
}

void kernel_note_waiting(struct mount *mount, rxafs_object *object, bool waits)
{
	struct known *known = kernel_known(mount, object);

	if (known)
		atomic_fetch_add(&known->unanswered, waits ? 1u : -1u);
}

void kernel_begin(struct mount *mount, unsigned minor)
{
	mount->can_expire = minor >= EXPIRE_MINOR;
}
