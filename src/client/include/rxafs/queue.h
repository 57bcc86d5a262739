/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations that the caller does not wait for: a queue has those that have ended, and a descriptor for event loops. */
#ifndef RXAFS_QUEUE_H
#define RXAFS_QUEUE_H

#include <rxafs/admin.h>
#include <rxafs/file.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rxafs_queue rxafs_queue;
typedef struct rxafs_watch rxafs_watch;

/* The functions that an operation can be. Each uses the members named here. */
enum rxafs_opcode {
	RXAFS_OP_RUN = 1,      /* run(operation): any functions, with &operation->request */
	RXAFS_OP_LOOKUP,       /* object, name; found, attributes */
	RXAFS_OP_WALK,	       /* object, name: the path, flags: follow; found */
	RXAFS_OP_GETATTR,      /* object; attributes */
	RXAFS_OP_SETATTR,      /* object, changes; attributes */
	RXAFS_OP_ACCESS,       /* object, flags: the mask */
	RXAFS_OP_READLINK,     /* object; text */
	RXAFS_OP_MKDIR,	       /* object, name, mode; found, attributes */
	RXAFS_OP_SYMLINK,      /* object, name, new_name: the text; found, attributes */
	RXAFS_OP_LINK,	       /* object, new_directory, new_name; attributes */
	RXAFS_OP_UNLINK,       /* object, name */
	RXAFS_OP_RMDIR,	       /* object, name */
	RXAFS_OP_RENAME,       /* object, name, new_directory, new_name, flags: no_replace */
	RXAFS_OP_GETXATTR,     /* object, name; text, length */
	RXAFS_OP_SETXATTR,     /* object, name, buffer, length */
	RXAFS_OP_STATFS,       /* object; space */
	RXAFS_OP_OPEN,	       /* object, flags; opened */
	RXAFS_OP_CREATE,       /* object, name, mode, flags; found, attributes, opened */
	RXAFS_OP_READ,	       /* file, buffer, length, offset; result: the count */
	RXAFS_OP_WRITE,	       /* the same */
	RXAFS_OP_FLUSH,	       /* file, flags: durable */
	RXAFS_OP_TRUNCATE,     /* file, offset: the size */
	RXAFS_OP_SET_LOCK,     /* file, lock, flags: wait */
	RXAFS_OP_TEST_LOCK,    /* file, lock */
	RXAFS_OP_OPEN_LISTING, /* object; listing */
	RXAFS_OP_READ_LISTING  /* listing; entry, found, attributes; result: 1 or 0 */
};

/*
 * One operation. Zero the structure, set `size` and what the operation uses. From rxafs_submit() on until the queue
 * returns it, it belongs to the library with all that it names, and only rxafs_cancel_operation() may be called for
 * it. Members have the meaning of the parameters of that function.
 */
struct rxafs_operation {
	size_t size; /* of the structure */
	enum rxafs_opcode code;
	int flags;		      /* or a truth value: see the codes */
	void *arg;		      /* the caller's */
	struct rxafs_request request; /* user and deadline; afterwards the failure. No cancel, not quick */
	rxafs_object *object, *new_directory;
	rxafs_file *file;
	rxafs_listing *listing;
	const char *name, *new_name;
	void *buffer;
	size_t length;
	uint64_t offset;
	uint32_t mode;
	const struct rxafs_changes *changes;
	struct rxafs_lock *lock;
	int64_t (*run)(struct rxafs_operation *operation);

	int64_t result; /* that of the function, or -EINTR or -ETIMEDOUT before its turn */
	/* Set if the result is 0 or above. The caller gives them back. */
	rxafs_object *found;
	rxafs_file *opened;
	char *text; /* to be freed */
	struct rxafs_entry entry;
	struct rxafs_space space;
	struct rxafs_attributes attributes;
	void *inside; /* the library's */
};

/* What happened to something that is watched: see rxafs/watch.h. */
enum rxafs_event_kind {
	RXAFS_EVENT_OPERATION = 1, /* `operation` has ended */
	RXAFS_EVENT_POST,	   /* rxafs_post_event() */
	RXAFS_EVENT_ADDED,	   /* a name in a directory */
	RXAFS_EVENT_REMOVED,
	RXAFS_EVENT_CHANGED,  /* attributes, rights or contents; of the object itself if `name` is empty */
	RXAFS_EVENT_GONE,     /* the object itself was removed: there will be no more events */
	RXAFS_EVENT_FAILED,   /* `error`: what happens cannot be seen at present */
	RXAFS_EVENT_RECOVERED /* it can be seen again; changes of the meantime follow */
};

struct rxafs_event {
	enum rxafs_event_kind kind;
	int error; /* FAILED: a negative errno */
	void *arg; /* of the operation or the watch, or posted */
	struct rxafs_operation *operation;
	rxafs_watch *watch;
	struct rxafs_fid fid; /* of the name */
	char name[256];
};

/* A queue for operations and watches of one client. -ENOMEM, or that of eventfd(2). */
int rxafs_create_queue(rxafs_client *client, rxafs_queue **queue);
/*
 * Cancels what is in progress and waits for its end. Free watches before. No operation is returned any more; what those that have
 * ended gave (found, opened, text, listing) is released. NULL is allowed.
 */
void rxafs_free_queue(rxafs_queue *queue);
/* A descriptor that is readable while events are queued. Do not read, write or close it. */
int rxafs_queue_fd(const rxafs_queue *queue);

/*
 * Begin an operation. What can be done without a server is done at once, and queued as all others. RXAFS_OP_RUN is called on a
 * thread of the client, as one that waits for the servers of `object` (NULL: of none in particular). 0; -EINVAL; -ENOMEM.
 */
int rxafs_submit(rxafs_queue *queue, struct rxafs_operation *operation);
/*
 * End it soon, with -EINTR unless it has ended. Where it waits for its turn it ends at once. It is still returned
 * by the queue. Any thread, until it was returned.
 */
void rxafs_cancel_operation(struct rxafs_operation *operation);

/*
 * Take out up to `max` events, the oldest first. Their number; 0 if none came within timeout_ms milliseconds (0: do not
 * wait; -1: no limit). Several threads may wait; each event goes to one of them.
 */
int rxafs_next_events(rxafs_queue *queue, struct rxafs_event *events, unsigned max, int timeout_ms);
/* Queue an event with `arg`, for example to wake a thread that waits. -ENOMEM. */
int rxafs_post_event(rxafs_queue *queue, void *arg);

#ifdef __cplusplus
}
#endif

#endif
