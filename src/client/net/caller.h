/* SPDX-License-Identifier: BSD-2-Clause */
/* For whom an operation is done, and until when. */
#ifndef CLIENT_NET_CALLER_H
#define CLIENT_NET_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include <rxafs/types.h>

/*
 * Ends the waits of an operation. It belongs to the caller, and is in use by one operation at a
 * time, which may make several calls. A call to a server that changes something goes on in the
 * background; others are aborted.
 */
struct cl_cancel;

struct cl_cancel *cl_cancel_create(void);
void cl_cancel_free(struct cl_cancel *cancel);
/* The operation returns -EINTR soon. Any thread, any number of times. Never waits. */
void cl_cancel_raise(struct cl_cancel *cancel);
bool cl_cancel_raised(const struct cl_cancel *cancel);
/* For the next operation. */
void cl_cancel_reset(struct cl_cancel *cancel);

/* An identity: one user, with his tokens for each cell. Counted references; NULL is anonymous. */
struct cl_identity;

/*
 * Functions of this module return 0 or a negative errno value (K-113), and fill in *failure, which
 * may be NULL. After -EINTR and -ETIMEDOUT by `deadline` a change may have been made: `maybe_done`.
 */
struct cl_caller {
	struct cl_identity *identity; /* NULL = anonymous */
	/*
	 * A time of cl_net_now(). 0: the limit of the instance for servers that are away or busy
	 * (60 s), and none for one that works
	 */
	uint64_t deadline;
	struct cl_cancel *cancel; /* NULL = none */
};

#endif
