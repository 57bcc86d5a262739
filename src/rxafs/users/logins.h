/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logins in progress, with bounds for one user and for all: what rxafsctl hands over for them, and those that make a token, which may
 * wait for a server that is silent.
 */
#ifndef RXAFS_LOGINS_H
#define RXAFS_LOGINS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LOGIN_SECRET_MOST (256u * 1024) /* bytes of tickets or keys */

struct logins;

/* NULL: no memory, or no thread. */
struct logins *logins_start(void);
/* When no request is in progress. NULL is allowed. */
void logins_stop(struct logins *logins);

/*
 * The next part of what a user hands over through `handle`, or with offset 0 the first. It is forgotten after half a minute, or for
 * newer ones of the user, or of others. -EINVAL: it is too long, or no part that was there precedes it; -ENOMEM.
 */
int logins_add(struct logins *logins, const void *handle, uid_t uid, size_t offset,
	       const void *data, size_t size);
void logins_forget(struct logins *logins, const void *handle);
/* Take it out; the caller frees it with free_secret(). NULL: there is none. */
uint8_t *logins_take(struct logins *logins, const void *handle, size_t *size);
/* Overwrites it, too. NULL is allowed. */
void free_secret(uint8_t *data, size_t size);

/* A login begins to make a token. -EUSERS: the user has as many in progress as he may have; -EBUSY: all users have. */
int logins_enter(struct logins *logins, uid_t uid);
void logins_leave(struct logins *logins, uid_t uid);

#endif
