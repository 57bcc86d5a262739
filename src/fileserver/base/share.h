/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares of what callers have in common: entries of a table, places in a queue. A caller gets one more while it has fewer
 * than are free, so that none can take all, and each of the others still finds room.
 */
#ifndef FILESERVER_BASE_SHARE_H
#define FILESERVER_BASE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "common/htable.h"

/* A caller: a user, or an address. */
struct fsd_share_key {
	uint8_t bytes[20];
};
/* An IPv6 address counts up to its network (64 bits), and one of this machine with its port. */
void fsd_share_of_address(const struct sockaddr_storage *peer, struct fsd_share_key *key);
void fsd_share_of_user(int32_t id, struct fsd_share_key *key);
static inline bool fsd_same_share(const struct fsd_share_key *a, const struct fsd_share_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* What one caller has. The first member of the items of struct fsd_shares, of which the rest is for their user. */
struct fsd_share {
	void *chain;
	struct fsd_share_key key;
	size_t count;
};

/* The user locks. */
struct fsd_shares {
	struct htable table; /* with a key: callers choose their addresses */
	size_t item;	     /* bytes of one */
	size_t count;	     /* of all callers */
};
bool fsd_shares_init(struct fsd_shares *shares, size_t item, const uint64_t secret[2]);
void fsd_shares_fini(struct fsd_shares *shares);
/* One more of `max` for a caller. NULL: it has as many as are free, or there is no memory. */
struct fsd_share *fsd_share_take(struct fsd_shares *shares, const struct fsd_share_key *key,
				 size_t max);
void fsd_share_give(struct fsd_shares *shares, struct fsd_share *share);

#endif
