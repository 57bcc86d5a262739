/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers have shares of common resources. */
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "common/siphash.h"
#include "fileserver/base/base.h"

/* -- callers -- */

/* IPv4 as it is mapped into IPv6. */
void fsd_share_of_address(const struct sockaddr_storage *peer, struct fsd_share_key *key)
{
	const struct sockaddr_in *v4 = (const void *)peer;
	const struct sockaddr_in6 *v6 = (const void *)peer;
	struct in6_addr address = {0};
	uint16_t port = 0;
	bool here;

	*key = (struct fsd_share_key){0};
	if (peer->ss_family == AF_INET6) {
		address = v6->sin6_addr;
		port = v6->sin6_port;
	} else if (peer->ss_family == AF_INET) {
		memset(&address.s6_addr[10], 0xff, 2);
		memcpy(&address.s6_addr[12], &v4->sin_addr, 4);
		port = v4->sin_port;
	}
	here = IN6_IS_ADDR_LOOPBACK(&address) ||
	       (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == IN_LOOPBACKNET);
	memcpy(key->bytes, &address, IN6_IS_ADDR_V4MAPPED(&address) || here ? 16 : 8);
	if (here)
		memcpy(&key->bytes[16], &port, 2);
}

void fsd_share_of_user(int32_t id, struct fsd_share_key *key)
{
	*key = (struct fsd_share_key){0};
	memcpy(key->bytes, &id, sizeof(id));
	key->bytes[19] = 1;
}

/* -- shares -- */

static uint64_t hash_share_key(const struct fsd_share_key *key, const uint64_t secret[2])
{
	return siphash(key, sizeof(*key), secret);
}

static uint64_t hash_share(const void *share, const uint64_t secret[2])
{
	return hash_share_key(&((const struct fsd_share *)share)->key, secret);
}

bool fsd_shares_init(struct fsd_shares *shares, size_t item, const uint64_t secret[2])
{
	*shares = (struct fsd_shares){.item = item};
	return htable_init(&shares->table, offsetof(struct fsd_share, chain), hash_share, secret,
			   0);
}

void fsd_shares_fini(struct fsd_shares *shares)
{
	htable_fini(&shares->table, free);
}

static struct fsd_share *find_share(const struct fsd_shares *shares, const struct fsd_share_key *key)
{
	struct fsd_share *share =
		htable_first(&shares->table, hash_share_key(key, shares->table.key));

	while (share && !fsd_same_share(&share->key, key))
		share = share->chain;
	return share;
}

size_t fsd_share_count(const struct fsd_shares *shares, const struct fsd_share_key *key)
{
	const struct fsd_share *share = find_share(shares, key);

	return share ? share->count : 0;
}

struct fsd_share *fsd_share_take(struct fsd_shares *shares, const struct fsd_share_key *key,
				 size_t max)
{
	struct fsd_share *share = find_share(shares, key);

	if (shares->count >= max || (share && share->count >= max - shares->count))
		return NULL;
	if (!share) {
		share = calloc(1, shares->item);
		if (!share)
			return NULL;
		share->key = *key;
		htable_add(&shares->table, share);
	}
	share->count++;
	shares->count++;
	return share;
}

void fsd_share_give(struct fsd_shares *shares, struct fsd_share *share)
{
	assert(share->count > 0 && shares->count >= share->count);
	shares->count--;
	if (--share->count)
		return;
	htable_remove(&shares->table, share);
	free(share);
}
