/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that the kernel reads by itself. It wants all descriptors of a node to be of one file, and none of them to use pages. So a node is opened
 * so if no descriptor is open otherwise. When the version has changed meanwhile, the object gets its next node: the last one is of the
 * version before, for those who have it open. Their open() fails with ESTALE, and the kernel looks the name up again.
 */
#include "rxafs/through.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/held.h"
#include "rxafs/known.h"

/* Of the kernel's interface since Linux 6.9. */
struct backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define BACKING_OPEN  _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

struct through {
	struct through *next; /* of the object */
	unsigned turn;	      /* of the node */
	unsigned opens;
	uint32_t number; /* of the kernel's */
	uint64_t contents;
	rxafs_whole *whole;
	struct rxafs_attributes attributes;
};

uint32_t through_number(const struct through *through)
{
	return through->number;
}

/* With the lock. */
static struct through *find_through(struct known *known, unsigned turn)
{
	struct through *through = known->throughs;

	assert(mutex_is_held(&known->lock));
	while (through && through->turn != turn)
		through = through->next;
	return through;
}

/* With the lock: the object gets its next node, if the present one is open for the kernel with other contents. */
static void turn_node(struct known *known, rxafs_object *object)
{
	const struct through *through = find_through(known, known->turn);

	if (!through || through->contents == rxafs_contents(object))
		return;
	assert(known->turn < NODE_TURNS - 1 && !known->paged);
	known->turn++;
}

static void free_through(struct mount *mount, struct through *through)
{
	atomic_fetch_sub(&mount->kernel_files, 1);
	ioctl(mount->device, BACKING_CLOSE, &through->number);
	rxafs_return_whole(through->whole);
	free(through);
}

/* Gives the kernel the file of the cache. NULL: there is none, or the kernel does not take it. */
static struct through *make_through(struct mount *mount, struct handle *handle,
				    rxafs_object *object, rxafs_user *user)
{
	struct rxafs_request request = {.user = user, .quick = true};
	struct through *through = calloc(1, sizeof *through);
	struct backing_map map = {.fd = -1};
	uint64_t version;
	int number = -1;

	if (!through)
		return NULL;
	through->opens = 1;
	through->contents = rxafs_contents(object);
	if (!rxafs_getattr(object, &request, &through->attributes))
		map.fd = rxafs_lend_whole(handle->file, &version, &through->whole);
	if (map.fd >= 0 && version == through->attributes.version) {
		number = ioctl(mount->device, BACKING_OPEN, &map);
		/* Not root of the machine, an older kernel, or one that was built without. */
		if (number < 0 && errno != ENOMEM && errno != ENOSPC)
			atomic_store(&mount->may_go_through, false);
	}
	if (map.fd >= 0)
		close(map.fd);
	if (number > 0) {
		through->number = (uint32_t)number;
		atomic_fetch_add(&mount->kernel_files, 1);
		return through;
	}
	if (map.fd >= 0)
		rxafs_return_whole(through->whole);
	free(through);
	return NULL;
}

/* With the lock: by what is there. THROUGH_PAGES: nothing is. */
static enum through_way join_through(struct known *known, struct handle *handle,
				     rxafs_object *object, unsigned turn, int flags)
{
	struct through *through;

	turn_node(known, object);
	if (turn != known->turn)
		return THROUGH_AGAIN;
	through = find_through(known, turn);
	if (!through)
		return THROUGH_PAGES;
	through->opens++;
	handle->through = through;
	return flags & O_DIRECT || handle->direct ? THROUGH_DIRECT : THROUGH_FILE;
}

static bool may_go_through(const struct mount *mount, const struct known *known, int flags)
{
	return atomic_load(&mount->may_go_through) && (flags & O_ACCMODE) == O_RDONLY &&
	       !(flags & O_DIRECT) && !known->paged && known->turn < NODE_TURNS - 1;
}

enum through_way through_begin(struct handle *handle, rxafs_object *object, fuse_ino_t node,
			       int flags, rxafs_user *user)
{
	struct mount *mount = handle->mount;
	struct known *known = kernel_known(mount, object);
	struct through *made = NULL;
	enum through_way way;

	if (!known)
		return THROUGH_PAGES;
	pthread_mutex_lock(&known->lock);
	way = join_through(known, handle, object, node_turn(node), flags);
	if (way == THROUGH_PAGES && may_go_through(mount, known, flags)) {
		pthread_mutex_unlock(&known->lock);
		made = make_through(mount, handle, object, user);
		pthread_mutex_lock(&known->lock);
		way = join_through(known, handle, object, node_turn(node), flags);
	}
	if (way == THROUGH_PAGES && made && may_go_through(mount, known, flags) &&
	    made->contents == rxafs_contents(object)) {
		made->turn = known->turn;
		made->next = known->throughs;
		known->throughs = handle->through = made;
		made = NULL;
		way = THROUGH_FILE;
	}
	if (way == THROUGH_PAGES) {
		handle->paged = true;
		known->paged++;
	}
	pthread_mutex_unlock(&known->lock);
	if (made)
		free_through(mount, made);
	return way;
}

void through_end(struct handle *handle, rxafs_object *object)
{
	struct known *known = rxafs_own_data(object);
	struct through *through = handle->through, **at;

	if (!handle->paged && !through)
		return;
	pthread_mutex_lock(&known->lock);
	known->paged -= handle->paged;
	if (through && --through->opens)
		through = NULL;
	if (through) {
		for (at = &known->throughs; *at != through;)
			at = &(*at)->next;
		*at = through->next;
	}
	pthread_mutex_unlock(&known->lock);
	handle->paged = false;
	handle->through = NULL;
	if (through)
		free_through(handle->mount, through);
}

void through_show(struct mount *mount, rxafs_object *object, fuse_ino_t node,
		  struct rxafs_attributes *attributes)
{
	struct known *known = kernel_known(mount, object);
	const struct through *through;

	if (!known)
		return;
	pthread_mutex_lock(&known->lock);
	turn_node(known, object);
	through = find_through(known, node_turn(node));
	if (through && node_turn(node) != known->turn)
		attributes->stat = through->attributes.stat;
	pthread_mutex_unlock(&known->lock);
}

void through_renew(struct mount *mount, rxafs_object *object)
{
	struct known *known = kernel_known(mount, object);

	if (!known)
		return;
	pthread_mutex_lock(&known->lock);
	turn_node(known, object);
	pthread_mutex_unlock(&known->lock);
}
