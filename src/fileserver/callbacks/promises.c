/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of promises. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "fileserver/callbacks/private.h"

#define ROUND_S	      128  /* promises end at multiples of this */
#define KEEP_S	      180  /* an entry is kept this much longer than was promised */
#define BULK_WEIGHT   22   /* holders added for a promise of a bulk call, which makes it shorter */
#define VOLUME_S      7200 /* duration of a promise on a whole volume */
#define RECLAIM_TRIES 8

static uint64_t hash_numbers(uint32_t volume, uint32_t vnode, uint32_t unique,
			     const uint64_t secret[2])
{
	return rxw_hash_words((uint64_t)volume << 32 | vnode, unique, secret);
}

static uint64_t hash_object(const void *item, const uint64_t secret[2])
{
	const struct object *object = item;

	return hash_numbers(object->volume, object->vnode, object->unique, secret);
}

static uint64_t hash_pair(const struct object *object, const struct fsd_host *host)
{
	uint64_t h = ((uint64_t)(uintptr_t)object >> 4) * 0x9e3779b97f4a7c15ull;

	h ^= ((uint64_t)(uintptr_t)host >> 4) * 0xc2b2ae3d27d4eb4full;
	return h ^ h >> 29;
}

static uint64_t hash_promise(const void *item, const uint64_t secret[2])
{
	const struct promise *promise = item;

	(void)secret;
	return hash_pair(promise->object, promise->host);
}

bool fsd_promises_init(struct fsd_clients *clients, const uint64_t secret[2])
{
	size_t expected = clients->options.promises_max / 2;

	return htable_init(&clients->promises, offsetof(struct promise, chain), hash_promise,
			   secret, expected) &&
	       htable_init(&clients->objects, offsetof(struct object, chain), hash_object, secret,
			   expected);
}

static struct object *find_object(const struct fsd_clients *clients, const AFSFid *fid)
{
	struct object *object =
		htable_first(&clients->objects, hash_numbers(fid->Volume, fid->Vnode, fid->Unique,
							     clients->objects.key));

	while (object && (object->volume != fid->Volume || object->vnode != fid->Vnode ||
			  object->unique != fid->Unique))
		object = object->chain;
	return object;
}

static struct promise *find_promise(const struct fsd_clients *clients, const struct object *object,
				    const struct fsd_host *host)
{
	struct promise *promise = htable_first(&clients->promises, hash_pair(object, host));

	while (promise && (promise->object != object || promise->host != host))
		promise = promise->chain;
	return promise;
}

static void remove_object(struct fsd_clients *clients, struct object *object)
{
	htable_remove(&clients->objects, object);
	clients->stats.objects--;
	free(object);
}

/* And its object, if that was the last one. */
void fsd_promise_remove(struct fsd_clients *clients, struct promise *promise)
{
	struct object *object = promise->object;

	htable_remove(&clients->promises, promise);
	*promise->object_link = promise->object_next;
	if (promise->object_next)
		promise->object_next->object_link = promise->object_link;
	*promise->host_link = promise->host_next;
	if (promise->host_next)
		promise->host_next->host_link = promise->host_link;
	promise->host->promise_count--;
	clients->stats.promises--;
	free(promise);
	if (--object->holders == 0)
		remove_object(clients, object);
}

void fsd_host_forget_promises(struct fsd_clients *clients, struct fsd_host *host)
{
	while (host->promises)
		fsd_promise_remove(clients, host->promises);
	host->owed_count = 0;
	host->owed_all = false;
	host->taken_total = host->owed_total;
	fsd_host_told(host, host->owed_total);
}

void fsd_host_reset(struct fsd_clients *clients, struct fsd_host *host)
{
	fsd_host_forget_promises(clients, host);
	if (host->state == HOST_UP)
		clients->stats.hosts_up--;
	host->state = HOST_ASKED;
	host->asking = FSD_WORK_INIT;
	host->whole_after = 0;
	fsd_host_queue(clients, host);
}

/*
 * The table is full: the client with the oldest call loses its promises and is told to forget them.
 */
static bool reclaim(struct fsd_clients *clients, const struct fsd_host *not_this)
{
	struct fsd_host *host = clients->oldest;

	while (host && (host == not_this || host->promise_count == 0))
		host = host->newer;
	if (!host)
		return false;
	host->quiet = true;
	fsd_host_reset(clients, host);
	clients->stats.reclaimed++;
	return true;
}

static uint64_t duration(size_t holders)
{
	static const struct {
		size_t below;
		unsigned seconds;
	} table[] = {
		{8, 4 * 3600}, {16, 3600}, {24, 1800}, {40, 900}, {64, 600},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (holders < table[i].below)
			return table[i].seconds;
	return 420;
}

static struct object *add_object(struct fsd_clients *clients, const AFSFid *fid)
{
	struct object *object = calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	object->volume = fid->Volume;
	object->vnode = fid->Vnode;
	object->unique = fid->Unique;
	htable_add(&clients->objects, object);
	clients->stats.objects++;
	return object;
}

static struct promise *add_promise(struct fsd_clients *clients, struct object *object,
				   struct fsd_host *host)
{
	struct promise *promise = calloc(1, sizeof(*promise));

	if (!promise)
		return NULL;
	promise->object = object;
	promise->host = host;
	htable_add(&clients->promises, promise);
	promise->object_next = object->first;
	promise->object_link = &object->first;
	if (object->first)
		object->first->object_link = &promise->object_next;
	object->first = promise;
	promise->host_next = host->promises;
	promise->host_link = &host->promises;
	if (host->promises)
		host->promises->host_link = &promise->host_next;
	host->promises = promise;
	object->holders++;
	host->promise_count++;
	clients->stats.promises++;
	return promise;
}

/*
 * Find or make the promise of this host on this object; NULL: there is no room. The lock is held.
 */
static struct promise *obtain(struct fsd_clients *clients, struct fsd_host *host, const AFSFid *fid,
			      bool *wake)
{
	struct object *object = find_object(clients, fid);
	struct promise *promise = object ? find_promise(clients, object, host) : NULL;
	size_t max = clients->options.promises_max;

	if (promise)
		return promise;
	/* One client gets at most half of the table, unless the table is small. */
	if (max > 64 && host->promise_count >= max / 2)
		return NULL;
	for (int i = 0; clients->stats.promises >= max; i++) {
		if (i == RECLAIM_TRIES || !reclaim(clients, host))
			return NULL;
		*wake = true;
	}
	/* Making room may have removed the object. */
	object = find_object(clients, fid);
	if (!object)
		object = add_object(clients, fid);
	if (!object)
		return NULL;
	promise = add_promise(clients, object, host);
	if (!promise && object->holders == 0)
		remove_object(clients, object);
	return promise;
}

uint32_t fsd_promise_give(struct fsd_clients *clients, const struct fsd_caller *caller,
			  const AFSFid *fid, bool bulk, uint64_t now)
{
	struct fsd_host *host = caller->host;
	struct promise *promise = NULL;
	uint64_t expires = 0;
	bool wake = false;

	if (!host)
		return 0;
	pthread_mutex_lock(&clients->lock);
	if (host->state == HOST_UP)
		promise = obtain(clients, host, fid, &wake);
	if (promise) {
		size_t others = promise->object->holders - 1 + (bulk ? BULK_WEIGHT : 0);

		uint64_t seconds = fid->Vnode ? duration(others) : VOLUME_S;

		expires = (now + seconds + ROUND_S - 1) / ROUND_S * ROUND_S;
		promise->expires = expires;
		if (host->promised_until < expires)
			host->promised_until = expires;
		clients->stats.given++;
	} else {
		clients->stats.refused++;
	}
	pthread_mutex_unlock(&clients->lock);
	if (wake && clients->options.wake)
		clients->options.wake(clients->options.arg);
	return expires ? (uint32_t)(expires - now) : 0;
}

void fsd_promise_drop(struct fsd_clients *clients, const struct fsd_caller *caller,
		      const AFSFid *fid)
{
	struct object *object;
	struct promise *promise;

	if (!caller->host)
		return;
	pthread_mutex_lock(&clients->lock);
	object = find_object(clients, fid);
	promise = object ? find_promise(clients, object, caller->host) : NULL;
	if (promise) {
		fsd_promise_remove(clients, promise);
		clients->stats.dropped++;
	}
	pthread_mutex_unlock(&clients->lock);
}

void fsd_promise_drop_all(struct fsd_clients *clients, const struct fsd_caller *caller)
{
	if (!caller->host)
		return;
	pthread_mutex_lock(&clients->lock);
	fsd_host_forget_promises(clients, caller->host);
	if (caller->host->state == HOST_UP)
		caller->host->promised_until = 0;
	clients->stats.dropped_all++;
	pthread_mutex_unlock(&clients->lock);
}

/* The first holder of a promise other than `except`; NULL: there is none. */
static struct promise *holder(const struct object *object, const void *except)
{
	struct promise *promise = object ? object->first : NULL;

	while (promise && promise->host == except)
		promise = promise->object_next;
	return promise;
}

bool fsd_promise_take(struct fsd_clients *clients, const struct fsd_break *what, const void *except,
		      struct ticket *ticket)
{
	const void *left_out = what->for_all || what->gone ? NULL : except;
	bool found = false;
	struct promise *promise;

	/* The object is looked up each time, because it is freed with its last promise. */
	while ((promise = holder(find_object(clients, &what->fid), left_out))) {
		struct fsd_host *host = promise->host;

		found = true;
		fsd_promise_remove(clients, promise);
		if (what->gone)
			continue;
		fsd_break_wait(clients, host, ticket);
		fsd_break_queue(clients, host, &what->fid);
		clients->stats.broken++;
	}
	return found;
}

/* Remove the promises of one chain of objects that are in a volume, and mark their holders. */
static void take_chain(struct fsd_clients *clients, size_t chain, uint32_t volume,
		       const void *except)
{
	struct object *object = *htable_chain(&clients->objects, chain), *next;

	for (; object; object = next) {
		struct promise *promise = object->first, *following;

		next = object->chain;
		if (object->volume != volume)
			continue;
		for (; promise; promise = following) {
			following = promise->object_next;
			if (promise->host == except)
				continue;
			promise->host->marked = clients->marks;
			fsd_promise_remove(clients, promise); /* may free the object */
		}
	}
}

bool fsd_promise_take_volume(struct fsd_clients *clients, const struct fsd_break *what,
			     const void *except, struct ticket *ticket)
{
	const void *left_out = what->for_all ? NULL : except;
	bool found = false;

	clients->marks++;
	for (size_t i = 0; i < clients->objects.size && clients->stats.promises; i++)
		take_chain(clients, i, what->fid.Volume, left_out);
	for (struct fsd_host *host = clients->newest; host; host = host->older) {
		if (host->marked != clients->marks)
			continue;
		found = true;
		fsd_break_wait(clients, host, ticket);
		fsd_break_queue(clients, host, &(AFSFid){.Volume = what->fid.Volume});
		clients->stats.broken++;
	}
	return found;
}

bool fsd_promise_held(struct fsd_clients *clients, const AFSFid *fid)
{
	pthread_mutex_lock(&clients->lock);
	bool held = find_object(clients, fid) != NULL;
	pthread_mutex_unlock(&clients->lock);
	return held;
}

static size_t chain_length(const struct object *object)
{
	size_t n = 0;

	for (; object; object = object->chain)
		n++;
	return n;
}

size_t fsd_promise_sweep(struct fsd_clients *clients, size_t *cursor, AFSFid *fids, size_t max,
			 uint64_t now)
{
	size_t n = 0, steps = 0;

	pthread_mutex_lock(&clients->lock);
	while (n < max && steps < clients->objects.size && clients->stats.promises) {
		size_t chain = *cursor & (clients->objects.size - 1);
		struct object *object = *htable_chain(&clients->objects, chain), *next;

		/* Report whole chains: the cursor cannot resume within one. */
		if (n && n + chain_length(object) > max)
			break;
		for (; object && n < max; object = next) {
			struct promise *promise = object->first, *following;

			next = object->chain;
			fids[n++] = (AFSFid){object->volume, object->vnode, object->unique};
			for (; promise; promise = following) {
				bool last = promise->object_next == NULL;

				following = promise->object_next;
				if (promise->expires + KEEP_S < now) {
					clients->stats.expired++;
					fsd_promise_remove(clients,
							   promise); /* may free the object */
				}
				if (last)
					break;
			}
		}
		++*cursor;
		steps++;
	}
	pthread_mutex_unlock(&clients->lock);
	return n;
}
