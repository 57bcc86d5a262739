/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of promises. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/held.h"
#include "fileserver/callbacks/memory.h"
#include "fileserver/callbacks/clients.h"

#define ROUND_S	      128  /* promises end at multiples of this */
#define BULK_WEIGHT   22   /* holders added for a promise of a bulk call, which makes it shorter */
#define VOLUME_S      7200 /* duration of a promise on a whole volume */
#define RECLAIM_TRIES 8
#define FEW_HOLDERS   4
#define STEP	      256   /* promises that a client gives up in a row, with the lock held */
#define PAUSE_NS      50000 /* between these */

static uint64_t hash_object(const void *item, const uint64_t secret[2])
{
	return fsd_hash_fid(&((const struct object *)item)->fid, secret);
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

static struct object *find_promised_object(const struct fsd_clients *clients, const AFSFid *fid)
{
	struct object *object =
		htable_first(&clients->objects, fsd_hash_fid(fid, clients->objects.key));

	while (object && !fsd_same_fid(&object->fid, fid))
		object = object->chain;
	return object;
}

/* Finds a promise that is in force. Most objects have few promises, so their list is faster than the table. */
static struct promise *find_promise(const struct fsd_clients *clients, const struct object *object,
				    const struct fsd_host *host)
{
	struct promise *promise = object->first;

	if (object->holders <= FEW_HOLDERS) {
		while (promise && (promise->host != host || promise->number))
			promise = promise->object_next;
		return promise;
	}
	promise = htable_first(&clients->promises, hash_pair(object, host));
	while (promise && (promise->object != object || promise->host != host))
		promise = promise->chain;
	return promise;
}

static void remove_object(struct fsd_clients *clients, struct object *object)
{
	assert(!object->first && !object->holders && !object->owed);
	assert(clients->stats.objects > 0);
	htable_remove(&clients->objects, object);
	clients->stats.objects--;
	free(object);
}

/* -- the hosts with promises: those without may be many, and need not be looked at -- */

static void link_holding(struct fsd_clients *clients, struct fsd_host *host)
{
	host->holding_newer = NULL;
	host->holding_older = clients->newest_holding;
	*(host->holding_older ? &host->holding_older->holding_newer : &clients->oldest_holding) =
		host;
	clients->newest_holding = host;
}

static void unlink_holding(struct fsd_clients *clients, struct fsd_host *host)
{
	struct fsd_host *newer = host->holding_newer, *older = host->holding_older;

	*(newer ? &newer->holding_older : &clients->newest_holding) = older;
	*(older ? &older->holding_newer : &clients->oldest_holding) = newer;
}

void fsd_host_called(struct fsd_clients *clients, struct fsd_host *host)
{
	if (!host->promise_count)
		return;
	unlink_holding(clients, host);
	link_holding(clients, host);
}

/* -- promises -- */

/* Removes a promise from the list of its host. */
static void unlink_host(struct promise *promise)
{
	struct fsd_host *host = promise->host;

	*promise->host_link = promise->host_next;
	if (promise->host_next)
		promise->host_next->host_link = promise->host_link;
	else if (host->last_owed == &promise->host_next)
		host->last_owed = promise->host_link;
}

/* The promise is no longer in force. */
static void end_force(struct fsd_clients *clients, struct promise *promise)
{
	assert(!promise->number);
	assert(clients->stats.promises > 0);
	htable_remove(&clients->promises, promise);
	clients->stats.promises--;
}

/* The object goes with its last promise. */
void fsd_promise_remove(struct fsd_clients *clients, struct promise *promise)
{
	struct object *object = promise->object;

	assert(object->holders > 0);
	assert(promise->host->promise_count > 0 && promise->host->share->promises > 0);
	if (promise->number) {
		assert(clients->owed > 0 && object->owed > 0);
		clients->owed--;
		object->owed--;
	} else {
		end_force(clients, promise);
	}
	*promise->object_link = promise->object_next;
	if (promise->object_next)
		promise->object_next->object_link = promise->object_link;
	unlink_host(promise);
	if (--promise->host->promise_count == 0)
		unlink_holding(clients, promise->host);
	promise->host->share->promises--;
	fsd_ledger_free(clients->ledger, promise->slot);
	free(promise);
	if (--object->holders == 0)
		remove_object(clients, object);
}

/*
 * The promise is void: its host will be told. It counts as held until the host has answered, or it
 * expires.
 */
static void fsd_promise_owe(struct fsd_clients *clients, struct promise *promise)
{
	struct fsd_host *host = promise->host;

	assert(!*host->last_owed);
	end_force(clients, promise);
	clients->owed++;
	promise->object->owed++;
	unlink_host(promise);
	promise->number = ++host->owed_total;
	promise->host_next = NULL;
	promise->host_link = host->last_owed;
	*host->last_owed = promise;
	host->last_owed = &promise->host_next;
}

void fsd_host_owe_all(struct fsd_clients *clients, struct fsd_host *host)
{
	while (host->promises)
		fsd_promise_owe(clients, host->promises);
}

void fsd_host_owe_again(struct fsd_host *host)
{
	struct promise *first = host->sent, *last = first;

	if (!first)
		return;
	while (last->host_next)
		last = last->host_next;
	last->host_next = host->owed;
	if (host->owed)
		host->owed->host_link = &last->host_next;
	else
		host->last_owed = &last->host_next;
	host->owed = first;
	first->host_link = &host->owed;
	host->sent = NULL;
}

void fsd_host_forget_promises(struct fsd_clients *clients, struct fsd_host *host)
{
	while (host->promises)
		fsd_promise_remove(clients, host->promises);
	while (host->owed)
		fsd_promise_remove(clients, host->owed);
	while (host->sent)
		fsd_promise_remove(clients, host->sent);
	assert(!host->promise_count);
	fsd_host_told(host, host->owed_total);
}

void fsd_host_reset(struct fsd_clients *clients, struct fsd_host *host)
{
	assert(mutex_is_held(&clients->lock));
	if (clients->options.strict)
		fsd_host_owe_all(clients, host);
	else
		fsd_host_forget_promises(clients, host);
	assert(host->state != HOST_UP || clients->stats.hosts_up > 0);
	if (host->state == HOST_UP)
		clients->stats.hosts_up--;
	host->state = HOST_ASKED;
	host->asking = FSD_WORK_INIT;
	host->whole_after = 0;
	fsd_host_queue(clients, host);
}

/*
 * The table is full: the client with the oldest call loses its promises and is told to forget them. It
 * gets none as long as one of these could be in force, because it cannot be told of each of them.
 */
static bool reclaim_promises(struct fsd_clients *clients, const struct fsd_host *not_this)
{
	struct fsd_host *host = clients->oldest_holding;

	if (host && host == not_this)
		host = host->holding_newer;
	if (!host)
		return false;
	if (clients->options.strict && host->unlisted_until < host->promised_until)
		host->unlisted_until = host->promised_until;
	fsd_host_forget_promises(clients, host);
	if (host->state == HOST_UP) {
		host->quiet = true;
		fsd_host_reset(clients, host);
	}
	clients->stats.reclaimed++;
	return true;
}

static uint64_t choose_promise_seconds(size_t holders)
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
	object->fid = *fid;
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
	promise->slot = FSD_NO_SLOT;
	promise->serial = ++clients->made;
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
	if (host->promise_count++ == 0)
		link_holding(clients, host);
	host->share->promises++;
	clients->stats.promises++;
	return promise;
}

/* The number of promises that are in force. */
static size_t holders_of(const struct object *object)
{
	assert(object->owed <= object->holders);
	return object->holders - object->owed;
}

static struct promise *make_promise(struct fsd_clients *clients, struct fsd_host *host,
				    const AFSFid *fid)
{
	struct object *object = find_promised_object(clients, fid);
	struct promise *promise;

	if (!object)
		object = add_object(clients, fid);
	if (!object)
		return NULL;
	promise = add_promise(clients, object, host);
	if (!promise && object->holders == 0)
		remove_object(clients, object);
	return promise;
}

/* Finds or makes the promise of this host on this object; NULL: there is no room. */
static struct promise *obtain_promise(struct fsd_clients *clients, struct fsd_host *host,
				      const AFSFid *fid, bool *wake)
{
	struct object *object = find_promised_object(clients, fid);
	struct promise *promise = object ? find_promise(clients, object, host) : NULL;
	size_t max = clients->options.promises_max;

	assert(mutex_is_held(&clients->lock));
	if (promise)
		return promise;
	/* The clients of one address get at most half of the table, unless the table is small. */
	if (max > 64 && host->share->promises >= max / 2)
		return NULL;
	for (int i = 0; clients->stats.promises + clients->owed >= max; i++) {
		if (i == RECLAIM_TRIES || !reclaim_promises(clients, host))
			return NULL;
		*wake = true;
	}
	/* Making room may have removed the object. */
	return make_promise(clients, host, fid);
}

/* The promise lasts at least until then. */
static void extend_promise(struct fsd_clients *clients, struct promise *promise, uint64_t expires)
{
	struct fsd_host *host = promise->host;

	if (promise->expires < expires) {
		promise->expires = expires;
		if (promise->slot == FSD_NO_SLOT)
			promise->slot = fsd_ledger_put(clients->ledger, promise);
		else
			fsd_ledger_renew(clients->ledger, promise->slot, expires);
	}
	if (host->promised_until < expires)
		host->promised_until = expires;
}

/*
 * Its address has to be kept before it has a promise. Without the lock: this may wait for the disk.
 */
static bool is_kept(struct fsd_clients *clients, struct fsd_host *host)
{
	const struct fsd_clients_options *options = &clients->options;
	struct sockaddr_storage local;
	int record;

	if (!options->keep || host->kept)
		return true;
	pthread_mutex_lock(&clients->lock);
	local = host->local;
	pthread_mutex_unlock(&clients->lock);
	record = options->keep(options->arg, &host->peer, &local);
	if (record < 0)
		return !options->strict;
	pthread_mutex_lock(&clients->lock);
	if (!host->kept) {
		host->record = record;
		host->kept = true;
		record = -1;
	}
	pthread_mutex_unlock(&clients->lock);
	if (record >= 0 && options->drop) /* another call was faster */
		options->drop(options->arg, record);
	return true;
}

bool fsd_promise_waits(struct fsd_clients *clients, const struct fsd_caller *caller)
{
	struct fsd_host *host = caller->host;
	bool waits;

	if (!host || !clients->options.keep || host->kept)
		return false;
	pthread_mutex_lock(&clients->lock);
	waits = host->state == HOST_UP;
	pthread_mutex_unlock(&clients->lock);
	return waits;
}

static bool may_hold(const struct fsd_host *host, uint64_t now)
{
	return host->state == HOST_UP && !host->dropping && now >= host->unlisted_until &&
	       now >= host->share->unlisted_until;
}

static void give_promise(struct fsd_clients *clients, struct fsd_host *host,
			 struct fsd_given *given, bool bulk, uint64_t now, bool *wake)
{
	struct promise *promise = NULL;
	uint64_t seconds, expires;
	size_t others;

	if (may_hold(host, now))
		promise = obtain_promise(clients, host, &given->fid, wake);
	if (!promise) {
		clients->stats.refused++;
		return;
	}
	assert(holders_of(promise->object) > 0);
	others = holders_of(promise->object) - 1 + (bulk ? BULK_WEIGHT : 0);
	seconds = given->fid.Vnode ? choose_promise_seconds(others) : VOLUME_S;
	expires = (now + seconds + ROUND_S - 1) / ROUND_S * ROUND_S;
	extend_promise(clients, promise, expires);
	promise->given += promise->given < UINT32_MAX;
	clients->stats.given++;
	given->seconds = (uint32_t)(expires - now);
	given->serial = promise->serial;
}

void fsd_promise_give_all(struct fsd_clients *clients, const struct fsd_caller *caller,
			  struct fsd_given *given, size_t count, bool bulk, uint64_t now)
{
	struct fsd_host *host = caller->host;
	bool wake = false, kept = true;

	for (size_t i = 0; i < count; i++)
		given[i].seconds = 0;
	if (!host)
		return;
	pthread_mutex_lock(&clients->lock);
	if (!host->kept && may_hold(host, now)) {
		pthread_mutex_unlock(&clients->lock);
		kept = is_kept(clients, host);
		pthread_mutex_lock(&clients->lock);
	}
	for (size_t i = 0; i < count; i++) {
		if (!given[i].fid.Volume)
			continue;
		if (kept)
			give_promise(clients, host, &given[i], bulk, now, &wake);
		else
			clients->stats.refused++;
	}
	pthread_mutex_unlock(&clients->lock);
	if (wake && clients->options.wake)
		clients->options.wake(clients->options.arg);
}

uint32_t fsd_promise_give(struct fsd_clients *clients, const struct fsd_caller *caller,
			  const AFSFid *fid, bool bulk, uint64_t now)
{
	struct fsd_given given = {.fid = *fid};

	fsd_promise_give_all(clients, caller, &given, 1, bulk, now);
	return given.seconds;
}

/* The promise of the caller on an object that is in force; NULL: there is none. The lock is held. */
static struct promise *own_promise(const struct fsd_clients *clients,
				   const struct fsd_caller *caller, const AFSFid *fid)
{
	struct object *object = find_promised_object(clients, fid);

	return object ? find_promise(clients, object, caller->host) : NULL;
}

void fsd_promise_drop(struct fsd_clients *clients, const struct fsd_caller *caller,
		      const AFSFid *fid)
{
	struct promise *promise;

	if (!caller->host)
		return;
	pthread_mutex_lock(&clients->lock);
	promise = own_promise(clients, caller, fid);
	if (promise) {
		fsd_promise_remove(clients, promise);
		clients->stats.dropped++;
	}
	pthread_mutex_unlock(&clients->lock);
}

void fsd_promise_undo(struct fsd_clients *clients, const struct fsd_caller *caller,
		      const struct fsd_given *given)
{
	struct promise *promise;

	if (!given->seconds)
		return;
	pthread_mutex_lock(&clients->lock);
	promise = own_promise(clients, caller, &given->fid);
	if (promise && promise->serial == given->serial && --promise->given == 0)
		fsd_promise_remove(clients, promise);
	pthread_mutex_unlock(&clients->lock);
}

static bool is_until(const struct promise *promise, uint64_t until)
{
	return promise && promise->number <= until;
}

/* Remove some, and none that was broken later. Returns whether there may be more. */
static bool drop_some(struct fsd_clients *clients, struct fsd_host *host, uint64_t until,
		      size_t *left)
{
	for (unsigned i = 0; i < STEP && *left; i++, --*left) {
		struct promise *promise = host->promises;

		if (!promise)
			promise = is_until(host->owed, until) ? host->owed : host->sent;
		if (!is_until(promise, until))
			return false;
		fsd_promise_remove(clients, promise);
	}
	return *left;
}

/*
 * A client may have very many, and others need the lock. Meanwhile it gets no new ones, and may be told about those that
 * were broken.
 */
void fsd_promise_drop_all(struct fsd_clients *clients, const struct fsd_caller *caller)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct fsd_host *host = caller->host;
	uint64_t until;
	size_t left;

	if (!host)
		return;
	pthread_mutex_lock(&clients->lock);
	until = host->owed_total;
	left = host->promise_count;
	host->dropping++;
	while (drop_some(clients, host, until, &left)) {
		pthread_mutex_unlock(&clients->lock);
		/* A thread that was woken for the lock would come too late. */
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&clients->lock);
	}
	assert(host->dropping > 0);
	host->dropping--;
	fsd_host_told(host, until);
	if (host->state == HOST_UP && !host->promise_count)
		host->promised_until = 0;
	clients->stats.dropped_all++;
	pthread_mutex_unlock(&clients->lock);
}

bool fsd_promise_restore(struct fsd_clients *clients, const struct sockaddr_storage *peer,
			 const AFSFid *fid, uint64_t expires, uint64_t now)
{
	struct promise *promise = NULL;
	struct fsd_host *host;

	pthread_mutex_lock(&clients->lock);
	host = fsd_host_find(clients, peer, true);
	if (host && clients->stats.promises + clients->owed < clients->options.promises_max)
		promise = make_promise(clients, host, fid);
	if (promise) {
		extend_promise(clients, promise, expires);
		fsd_promise_owe(clients, promise);
		fsd_host_recall(clients, host, now);
	}
	pthread_mutex_unlock(&clients->lock);
	return promise != NULL;
}

/* -- breaks -- */

/*
 * A promise on an object that has changed. True: wait for its host's answer. A host that was given up
 * is not waited for: it is told before its next call is served.
 */
static bool take_promise(struct fsd_clients *clients, struct promise *promise, struct ticket *ticket)
{
	struct fsd_host *host = promise->host;

	if (promise->number && host->given_up)
		return false;
	if (!promise->number) {
		fsd_promise_owe(clients, promise);
		clients->stats.broken++;
	}
	fsd_break_wait(clients, host, ticket);
	fsd_host_queue(clients, host);
	return true;
}

/* Removes the promises on one object, except that of `except`. */
static bool take_object(struct fsd_clients *clients, struct object *object, const void *except,
			bool gone, struct ticket *ticket)
{
	struct promise *promise = object ? object->first : NULL, *next;
	bool found = false;

	for (; promise; promise = next) {
		bool last = promise->object_next == NULL; /* the object goes with its last promise */

		next = promise->object_next;
		if (gone && !promise->number) {
			fsd_promise_remove(clients, promise);
			found = true;
		} else if (!gone && promise->host != except) {
			found |= take_promise(clients, promise, ticket);
		}
		if (last)
			break;
	}
	return found;
}

bool fsd_promise_take(struct fsd_clients *clients, const struct fsd_break *what, const void *except,
		      struct ticket *ticket)
{
	return take_object(clients, find_promised_object(clients, &what->fid),
			   what->for_all ? NULL : except, what->gone, ticket);
}

bool fsd_promise_take_volume(struct fsd_clients *clients, const struct fsd_break *what,
			     const void *except, struct ticket *ticket)
{
	const void *left_out = what->for_all ? NULL : except;
	bool found = false;

	for (size_t i = 0; i < clients->objects.size; i++) {
		struct object *object = *htable_chain(&clients->objects, i), *next;

		for (; object; object = next) {
			next = object->chain;
			if (object->fid.Volume == what->fid.Volume)
				found |= take_object(clients, object, left_out, false, ticket);
		}
	}
	return found;
}

bool fsd_promise_held(struct fsd_clients *clients, const AFSFid *fid)
{
	const struct object *object;
	bool held;

	pthread_mutex_lock(&clients->lock);
	object = find_promised_object(clients, fid);
	held = object && holders_of(object);
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

/* A change may wait until its host was told: unless that has been given up. */
static bool has_ended(const struct promise *promise, uint64_t now)
{
	return promise->expires + KEEP_S < now &&
	       (!promise->number || promise->host->given_up);
}

size_t fsd_promise_sweep(struct fsd_clients *clients, size_t *cursor, AFSFid *fids, size_t max,
			 uint64_t now)
{
	size_t n = 0, steps = 0;

	pthread_mutex_lock(&clients->lock);
	while (n < max && steps < clients->objects.size && clients->objects.count) {
		size_t chain = *cursor & (clients->objects.size - 1);
		struct object *object = *htable_chain(&clients->objects, chain), *next;

		/* Report whole chains: the cursor cannot resume within one. */
		if (n && n + chain_length(object) > max)
			break;
		for (; object && n < max; object = next) {
			struct promise *promise = object->first, *following;

			next = object->chain;
			fids[n++] = object->fid;
			for (; promise; promise = following) {
				bool last = promise->object_next == NULL;

				following = promise->object_next;
				if (has_ended(promise, now)) {
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
