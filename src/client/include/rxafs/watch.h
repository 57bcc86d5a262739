/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of directories and files, as events of a queue. */
#ifndef RXAFS_WATCH_H
#define RXAFS_WATCH_H

#include <rxafs/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero the structure, set `size`. */
struct rxafs_watch_options {
	size_t size;
	rxafs_user *
		user; /* whose tokens are used, also later; NULL: an anonymous one. The watch has a reference */
	bool attributes;  /* of a directory: CHANGED for its entries, too */
	void *arg;	  /* in its events */
};

/*
 * Watch a file or a directory, beginning with its present state. The server promises to tell of changes, so nothing is
 * asked while nothing happens. Events come after the change: what came and went between two looks is not seen, and a
 * rename is REMOVED and ADDED with one FID. Own changes count as those of others, contents once they are stored. A slow reader loses nothing but
 * such intermediate states: while events of a watch are queued it looks no further. 0 or what the first look fails
 * with, for which the request is used. `options` may be NULL. The watch has a reference of its own to the object. Free it before the queue.
 * -EINVAL: `size` is not set.
 */
int rxafs_create_watch(rxafs_queue *queue, rxafs_object *object, struct rxafs_request *request,
		       const struct rxafs_watch_options *options, rxafs_watch **watch);
/* Its events that are queued are dropped. Waits for a look that is in progress, which ends early. NULL is allowed. */
void rxafs_free_watch(rxafs_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
