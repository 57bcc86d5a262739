/* SPDX-License-Identifier: BSD-2-Clause */
/* Places for the calls that receive the data of a store. */
#include "fileserver/service/storing.h"

#include <netinet/in.h>
#include <string.h>
#include <rxwire/call.h>

#include "afs/numbers.h"
#include "common/clock.h"

#define PERIOD_NS (FSD_STORES_PERIOD * (uint64_t)NS_PER_MS)

void fsd_storing_init(struct fsd_storing *all)
{
	all->max = FSD_STORES_MAX;
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->unpinned, NULL);
}

void fsd_storing_end(struct fsd_storing *all)
{
	pthread_mutex_destroy(&all->lock);
	pthread_cond_destroy(&all->unpinned);
}

/* -- clients -- */

static void set_client(struct fsd_place *place, const struct sockaddr_storage *peer)
{
	fsd_share_of_address(peer, &place->address);
	if (peer->ss_family == AF_INET6)
		place->port = ((const struct sockaddr_in6 *)peer)->sin6_port;
	else if (peer->ss_family == AF_INET)
		place->port = ((const struct sockaddr_in *)peer)->sin_port;
}

static bool same_address(const struct fsd_place *a, const struct fsd_place *b)
{
	return fsd_same_share(&a->address, &b->address);
}

static bool same_client(const struct fsd_place *a, const struct fsd_place *b)
{
	return same_address(a, b) && a->port == b->port;
}

/* With the lock held. */
static unsigned count_of(const struct fsd_storing *all, const struct fsd_place *place,
			 bool (*same)(const struct fsd_place *a, const struct fsd_place *b))
{
	unsigned count = 0;

	for (unsigned i = 0; i < all->count; i++)
		count += same(all->place[i], place);
	return count;
}

/* -- progress -- */

void fsd_storing_wait(struct fsd_place *place, uint64_t now)
{
	pthread_mutex_lock(&place->lock);
	place->begun = now;
	pthread_mutex_unlock(&place->lock);
}

void fsd_storing_got(struct fsd_place *place, uint64_t bytes, uint64_t now)
{
	pthread_mutex_lock(&place->lock);
	place->now.waited_ns += now - place->begun;
	place->now.bytes += bytes;
	place->begun = 0;
	if (place->now.waited_ns >= PERIOD_NS) {
		place->last = place->now;
		place->now = (struct fsd_pace){0};
	}
	pthread_mutex_unlock(&place->lock);
}

/* Bytes a second, while the server waits. FSD_STORES_RATE: it does not, or has not for long enough. */
static uint64_t rate_of(struct fsd_place *place, uint64_t now)
{
	uint64_t rate = FSD_STORES_RATE, wait, waited;

	pthread_mutex_lock(&place->lock);
	wait = place->begun && now > place->begun ? now - place->begun : 0;
	waited = wait + place->now.waited_ns + place->last.waited_ns;
	if (wait >= PERIOD_NS)
		rate = 0; /* nothing came, however much before */
	else if (wait && waited >= PERIOD_NS)
		rate = (place->now.bytes + place->last.bytes) * 1000 / (waited / NS_PER_MS);
	pthread_mutex_unlock(&place->lock);
	return rate;
}

/* -- places -- */

/* With the lock held: whether a newcomer may have the place of another one if that is slow. */
static bool may_take(const struct fsd_storing *all, const struct fsd_place *place,
		     const struct fsd_place *of)
{
	if (same_address(place, of))
		return count_of(all, of, same_client) > count_of(all, place, same_client);
	return all->count == all->max &&
	       count_of(all, of, same_address) > count_of(all, place, same_address);
}

/* With the lock held: the slowest one whose place may be taken, or NULL. */
static struct fsd_place *find_slow(const struct fsd_storing *all, const struct fsd_place *place,
				   uint64_t now)
{
	struct fsd_place *slowest = NULL;
	uint64_t least = FSD_STORES_RATE;

	for (unsigned i = 0; i < all->count; i++) {
		struct fsd_place *of = all->place[i];
		uint64_t rate = of->receiving ? rate_of(of, now) : least;

		if (rate < least && may_take(all, place, of)) {
			least = rate;
			slowest = of;
		}
	}
	return slowest;
}

/* With the lock held. */
static void drop(struct fsd_storing *all, const struct fsd_place *place)
{
	unsigned i = 0;

	while (all->place[i] != place)
		i++;
	all->place[i] = all->place[--all->count];
}

/* A call that has lost its place fails, which wakes its handler. */
static void end(struct fsd_storing *all, struct fsd_place *place)
{
	rxw_call_abort(place->rx, AFS_VBUSY);
	pthread_mutex_lock(&all->lock);
	place->pinned = false;
	pthread_cond_broadcast(&all->unpinned);
	pthread_mutex_unlock(&all->lock);
}

enum fsd_entry fsd_storing_enter(struct fsd_storing *all, struct fsd_place *place, rxw_call *rx,
				 const struct sockaddr_storage *peer, uint64_t now)
{
	struct fsd_place *slow = NULL;
	bool may;

	*place = (struct fsd_place){.rx = rx, .receiving = true};
	pthread_mutex_init(&place->lock, NULL);
	set_client(place, peer);
	pthread_mutex_lock(&all->lock);
	may = count_of(all, place, same_address) < all->max - all->count;
	if (!may)
		slow = find_slow(all, place, now);
	if (slow) {
		drop(all, slow);
		slow->lost = slow->pinned = true;
	}
	if (may || slow)
		all->place[all->count++] = place;
	pthread_mutex_unlock(&all->lock);
	if (slow)
		end(all, slow);
	if (!may && !slow)
		pthread_mutex_destroy(&place->lock);
	return may ? FSD_ENTRY_FREE : slow ? FSD_ENTRY_TAKEN : FSD_ENTRY_REFUSED;
}

/* With the lock held. */
static void await_unpinned(struct fsd_storing *all, const struct fsd_place *place)
{
	while (place->pinned)
		pthread_cond_wait(&all->unpinned, &all->lock);
}

bool fsd_storing_received(struct fsd_storing *all, struct fsd_place *place)
{
	bool lost;

	pthread_mutex_lock(&all->lock);
	await_unpinned(all, place);
	place->receiving = false;
	lost = place->lost;
	pthread_mutex_unlock(&all->lock);
	return !lost;
}

void fsd_storing_leave(struct fsd_storing *all, struct fsd_place *place)
{
	pthread_mutex_lock(&all->lock);
	await_unpinned(all, place);
	if (!place->lost)
		drop(all, place);
	pthread_mutex_unlock(&all->lock);
	pthread_mutex_destroy(&place->lock);
}
