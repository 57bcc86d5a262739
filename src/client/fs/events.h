/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of programs: their events, the operations in progress, and what their watches use of them. */
#ifndef CLIENT_FS_EVENTS_H
#define CLIENT_FS_EVENTS_H

#include <rxafs/watch.h>

#include "client/fs/fs.h"

struct fs_event {
	struct fs_event *next;
	struct rxafs_event event;
};

/* Counted: operations that have ended may still be in the list of the executor. */
struct rxafs_queue {
	rxafs_client *client;
	atomic_uint references;
	int fd;
	pthread_mutex_t lock; /* of what follows, of operations and of watches */
	pthread_cond_t some;  /* an event was queued */
	pthread_cond_t ended; /* an operation or a look has ended */
	struct fs_event *first, **last;
	struct fs_operation *operations; /* that have not been returned yet */
	unsigned running;
	struct rxafs_watch *watches;
	/* The thread that looks at times: of operations that wait for their turn, and of watches. */
	pthread_cond_t work;
	pthread_t keeper;
	bool kept; /* the thread was started */
	bool ending;
};

/* -- operation.c ------------------------------------------------------------------------------ */

/* Whether the library knows it, and all that it needs is there. */
bool fs_operation_valid(const struct rxafs_operation *op);
/* Whether it changes nothing at a server, so that it can be begun again. */
bool fs_operation_repeats(const struct rxafs_operation *op);
int64_t fs_do_operation(struct rxafs_operation *op);
/* Nobody wants what it gave. */
void fs_drop_results(struct rxafs_operation *op);

/* -- queue.c, with its lock held ----------------------------------------------------------------- */

void fs_queue_event(rxafs_queue *queue, struct fs_event *event);
/* Those of a watch. */
void fs_drop_events(rxafs_queue *queue, const rxafs_watch *watch);
/* The thread looks at times again; it is started if it is not there. -EAGAIN: there is no thread. */
int fs_wake_keeper(rxafs_queue *queue);
void fs_hold_queue(rxafs_queue *queue);
/* Without the lock. */
void fs_put_queue(rxafs_queue *queue);

/* -- watch.c, with the queue's lock held ------------------------------------------------------------ */

/* Begin looks whose time has come. The next time; UINT64_MAX: none. */
uint64_t fs_begin_looks(rxafs_queue *queue, uint64_t now);
/* An event of a watch was taken out. */
void fs_note_taken(rxafs_watch *watch);
#endif
