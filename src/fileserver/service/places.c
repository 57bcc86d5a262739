/* SPDX-License-Identifier: BSD-2-Clause */
/* The bounds of the calls that run: places, which calls wait for, and permits; and a list of those calls. */
#include "fileserver/service/places.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/call.h>

#include "afs/numbers.h"
#include "base/hash.h"
#include "common/clock.h"
#include "common/held.h"
#include "fileserver/service/services.h"
#include "program/address.h"

#define PERIOD_NS (FSD_PLACE_PERIOD * (uint64_t)NS_PER_MS)
#define LOOKS	  64 /* places that a newcomer is compared with */
#define LOOK_NS	    NS_PER_S
#define LOGGED_MOST 16u

bool fsd_places_init(struct fsd_places *all, unsigned max)
{
	uint64_t secret[2] = {0};

	*all = (struct fsd_places){.max = max};
	all->last = &all->first;
	all->place = calloc(max + 1, sizeof(struct fsd_place *));
	if (!all->place || rxw_random(secret, sizeof(secret)) ||
	    !fsd_shares_init(&all->addresses, sizeof(struct fsd_share), secret) ||
	    !fsd_shares_init(&all->clients, sizeof(struct fsd_share), secret) ||
	    !fsd_shares_init(&all->waiters, sizeof(struct fsd_share), secret)) {
		fsd_shares_fini(&all->addresses);
		fsd_shares_fini(&all->clients);
		free(all->place);
		all->place = NULL; /* fsd_places_fini() may follow */
		return false;
	}
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->unpinned, NULL);
	return true;
}

void fsd_places_fini(struct fsd_places *all)
{
	if (!all->place)
		return;
	fsd_shares_fini(&all->addresses);
	fsd_shares_fini(&all->clients);
	fsd_shares_fini(&all->waiters);
	pthread_mutex_destroy(&all->lock);
	pthread_cond_destroy(&all->unpinned);
	free(all->place);
}

/* -- clients -- */

static struct fsd_place_keys keys_of(const struct sockaddr_storage *peer)
{
	struct fsd_place_keys keys;
	uint16_t port = 0;

	fsd_share_of_address(peer, &keys.address);
	if (peer->ss_family == AF_INET6)
		port = ((const struct sockaddr_in6 *)peer)->sin6_port;
	else if (peer->ss_family == AF_INET)
		port = ((const struct sockaddr_in *)peer)->sin_port;
	keys.client = keys.address;
	memcpy(&keys.client.bytes[16], &port, 2);
	return keys;
}

/* -- progress -- */

void fsd_place_wait(struct fsd_place *place, uint64_t now)
{
	pthread_mutex_lock(&place->lock);
	place->begun = place->begun ? place->begun : now;
	pthread_mutex_unlock(&place->lock);
}

void fsd_place_got(struct fsd_place *place, uint64_t bytes, uint64_t now)
{
	pthread_mutex_lock(&place->lock);
	/* Another thread may have looked at the clock before the wait began. */
	place->now.waited_ns += place->begun && now > place->begun ? now - place->begun : 0;
	place->now.bytes += bytes;
	place->begun = 0;
	if (place->now.waited_ns >= PERIOD_NS) {
		place->last = place->now;
		place->now = (struct fsd_pace){0};
	}
	pthread_mutex_unlock(&place->lock);
}

/* Bytes a second, while the server waits. FSD_PLACE_RATE: it does not, or has not for long enough. */
static uint64_t measure_rate(struct fsd_place *place, uint64_t now)
{
	uint64_t rate = FSD_PLACE_RATE, wait, waited;

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

/* -- places: with the lock held -- */

/* False: the caller has its share, or there is no memory. `force`: it may have more. */
static bool occupy_place(struct fsd_places *all, struct fsd_place *place, bool force)
{
	place->address =
		fsd_share_take(&all->addresses, &place->keys.address, force ? SIZE_MAX : all->max);
	if (!place->address)
		return false;
	place->client = fsd_share_take(&all->clients, &place->keys.client, SIZE_MAX);
	if (!place->client) {
		fsd_share_give(&all->addresses, place->address);
		return false;
	}
	assert(mutex_is_held(&all->lock));
	assert(all->count <= all->max); /* for a moment there may be one more */
	place->index = all->count;
	all->place[all->count++] = place;
	return true;
}

static void drop_place(struct fsd_places *all, const struct fsd_place *place)
{
	assert(mutex_is_held(&all->lock));
	assert(place->index < all->count && all->place[place->index] == place);
	fsd_share_give(&all->addresses, place->address);
	fsd_share_give(&all->clients, place->client);
	all->count--;
	all->place[place->index] = all->place[all->count];
	all->place[place->index]->index = place->index;
}

/* The number of places that the newcomer has. */
struct newcomer {
	const struct fsd_place_keys *keys;
	size_t address, client;
};

/* Whether a newcomer may have the place of another one if that is slow. */
static bool may_take_from(const struct fsd_places *all, const struct newcomer *newcomer,
			  const struct fsd_place *of)
{
	if (fsd_same_share(&of->address->key, &newcomer->keys->address))
		return of->client->count > newcomer->client;
	return all->count == all->max && of->address->count > newcomer->address;
}

/* The slowest one of the next ones whose place may be taken, or NULL. */
static struct fsd_place *find_slow(struct fsd_places *all, const struct newcomer *newcomer,
				   uint64_t now)
{
	unsigned looks = all->count < LOOKS ? all->count : LOOKS;
	struct fsd_place *slowest = NULL;
	uint64_t least = FSD_PLACE_RATE;

	for (unsigned i = 0; i < looks; i++) {
		struct fsd_place *of = all->place[all->next % all->count];
		uint64_t rate = least;

		all->next = (all->next + 1) % all->count;
		if (of->open && may_take_from(all, newcomer, of))
			rate = measure_rate(of, now);
		if (rate < least) {
			least = rate;
			slowest = of;
		}
	}
	return slowest;
}

/* The newcomer, which has its share, gets the place of a slow call, which is returned. NULL: there is none. */
static struct fsd_place *take_from_slow(struct fsd_places *all, struct fsd_place *place,
					struct fsd_place_pin *pin, uint64_t now)
{
	const struct fsd_place_keys *keys = &place->keys;
	struct newcomer newcomer = {keys, fsd_share_count(&all->addresses, &keys->address),
				    fsd_share_count(&all->clients, &keys->client)};
	struct fsd_place *slow = find_slow(all, &newcomer, now);

	if (!slow || !occupy_place(all, place, true))
		return NULL;
	drop_place(all, slow);
	slow->lost = true;
	slow->pin = pin;
	return slow;
}

/* -- calls that wait: with the lock held -- */

static void push_waiter(struct fsd_places *all, struct fsd_place *place)
{
	place->next = NULL;
	place->link = all->last;
	*all->last = place;
	all->last = &place->next;
}

static void unlink_waiter(struct fsd_places *all, struct fsd_place *place)
{
	assert(place->waiter && *place->link == place);
	*place->link = place->next;
	if (place->next)
		place->next->link = place->link;
	else
		all->last = place->link;
}

/* False: as many of its address wait as others may, or there is no memory. */
static bool begin_waiting(struct fsd_places *all, struct fsd_place *place, uint64_t now)
{
	place->waiter = fsd_share_take(&all->waiters, &place->keys.address, FSD_WAITERS_MAX);
	place->since = now;
	if (place->waiter)
		push_waiter(all, place);
	return place->waiter != NULL;
}

static void remove_waiter(struct fsd_places *all, struct fsd_place *place)
{
	unlink_waiter(all, place);
	fsd_share_give(&all->waiters, place->waiter);
	place->waiter = NULL;
}

static void put_waiter_last(struct fsd_places *all, struct fsd_place *place)
{
	unlink_waiter(all, place);
	push_waiter(all, place);
}

/* The first one whose share permits it has got a place, and does not wait any more. Others wait behind the rest. */
static struct fsd_place *admit_waiter(struct fsd_places *all)
{
	size_t looks = all->waiters.count < LOOKS ? all->waiters.count : LOOKS;

	while (looks-- && all->count < all->max) {
		struct fsd_place *place = all->first;

		if (occupy_place(all, place, false)) {
			remove_waiter(all, place);
			return place;
		}
		put_waiter_last(all, place);
	}
	return NULL;
}

/* -- places -- */

/*
 * A call that has lost its place fails. That may wake its handler; or the call ends in this thread, and the place
 * is gone.
 */
static void end_slow(struct fsd_places *all, struct fsd_place *place, struct fsd_place_pin *pin)
{
	rxw_call_abort(place->rx, AFS_VBUSY);
	pthread_mutex_lock(&all->lock);
	if (!pin->left) {
		place->pin = NULL;
		pthread_cond_broadcast(&all->unpinned);
	}
	pthread_mutex_unlock(&all->lock);
}

/* Calls that have got a place while another one was left: these two are to be started without the lock. */
#define ADMITTED 2

/* The caller holds the lock. One place was left, and with fewer in use a share may be larger. */
static void admit_waiters(struct fsd_places *all, struct fsd_place *admitted[ADMITTED])
{
	for (unsigned i = 0; i < ADMITTED; i++)
		admitted[i] = admit_waiter(all);
}

static void start_waiters(struct fsd_place *admitted[ADMITTED])
{
	for (unsigned i = 0; i < ADMITTED; i++)
		if (admitted[i])
			admitted[i]->start(admitted[i], true);
}

enum fsd_entry fsd_place_await(struct fsd_places *all, struct fsd_place *place, rxw_call *rx,
			       const struct sockaddr_storage *peer, uint64_t now,
			       void (*start)(struct fsd_place *place, bool got))
{
	const struct fsd_place_keys keys = keys_of(peer);
	struct fsd_place_pin pin = {.thread = pthread_self()};
	enum fsd_entry entry = FSD_ENTRY_REFUSED;
	struct fsd_place *slow = NULL;

	pthread_mutex_lock(&all->lock);
	*place = (struct fsd_place){.rx = rx,
				    .keys = keys,
				    .open = true,
				    .start = start,
				    .withdrawn = place->withdrawn};
	pthread_mutex_init(&place->lock, NULL);
	if (place->withdrawn)
		entry = FSD_ENTRY_REFUSED;
	else if (occupy_place(all, place, false))
		entry = FSD_ENTRY_FREE;
	else if ((slow = take_from_slow(all, place, &pin, now)))
		entry = FSD_ENTRY_TAKEN;
	else if (start && begin_waiting(all, place, now))
		entry = FSD_ENTRY_WAITS;
	pthread_mutex_unlock(&all->lock);
	if (slow)
		end_slow(all, slow, &pin);
	if (entry == FSD_ENTRY_REFUSED)
		pthread_mutex_destroy(&place->lock);
	return entry;
}

enum fsd_entry fsd_place_enter(struct fsd_places *all, struct fsd_place *place, rxw_call *rx,
			       const struct sockaddr_storage *peer, uint64_t now)
{
	return fsd_place_await(all, place, rx, peer, now, NULL);
}

void fsd_place_withdraw(struct fsd_places *all, struct fsd_place *place)
{
	bool waited;

	pthread_mutex_lock(&all->lock);
	waited = place->waiter != NULL;
	place->withdrawn = true;
	if (waited)
		remove_waiter(all, place);
	pthread_mutex_unlock(&all->lock);
	if (!waited)
		return;
	pthread_mutex_destroy(&place->lock);
	place->start(place, false);
}

static bool has_waited_long(const struct fsd_place *place, uint64_t now)
{
	return now >= place->since && now - place->since >= FSD_WAIT_MS * (uint64_t)NS_PER_MS;
}

/* The next call that waits, if it does not wait any more. *slow: the call whose place it has. The caller holds the lock. */
static struct fsd_place *look_at_waiter(struct fsd_places *all, uint64_t now,
					struct fsd_place_pin *pin, struct fsd_place **slow,
					bool *got)
{
	struct fsd_place *place = all->first;

	assert(place && place->waiter && place->start);
	*got = occupy_place(all, place, false);
	*slow = *got ? NULL : take_from_slow(all, place, pin, now);
	*got |= *slow != NULL;
	if (!*got && !has_waited_long(place, now)) {
		put_waiter_last(all, place);
		return NULL;
	}
	remove_waiter(all, place);
	return place;
}

bool fsd_places_look(struct fsd_places *all, uint64_t now, unsigned *taken)
{
	size_t looks;
	bool waits;

	*taken = 0;
	pthread_mutex_lock(&all->lock);
	for (looks = all->waiters.count; looks && all->first; looks--) {
		struct fsd_place_pin pin = {.thread = pthread_self()};
		bool got;
		struct fsd_place *slow, *place = look_at_waiter(all, now, &pin, &slow, &got);

		pthread_mutex_unlock(&all->lock);
		if (slow)
			end_slow(all, slow, &pin);
		*taken += slow != NULL;
		if (place && !got)
			pthread_mutex_destroy(&place->lock);
		if (place)
			place->start(place, got);
		pthread_mutex_lock(&all->lock);
	}
	waits = all->first != NULL;
	pthread_mutex_unlock(&all->lock);
	return waits;
}

/* The caller holds the lock: no other thread uses the call from now on. */
static void await_unpinned(struct fsd_places *all, struct fsd_place *place)
{
	place->open = false;
	while (place->pin && !pthread_equal(place->pin->thread, pthread_self()))
		pthread_cond_wait(&all->unpinned, &all->lock);
}

bool fsd_place_settle(struct fsd_places *all, struct fsd_place *place)
{
	bool lost;

	pthread_mutex_lock(&all->lock);
	await_unpinned(all, place);
	lost = place->lost;
	pthread_mutex_unlock(&all->lock);
	return !lost;
}

void fsd_place_leave(struct fsd_places *all, struct fsd_place *place)
{
	struct fsd_place *admitted[ADMITTED];

	pthread_mutex_lock(&all->lock);
	assert(!place->waiter);
	await_unpinned(all, place);
	if (place->pin)
		place->pin->left = true;
	if (!place->lost)
		drop_place(all, place);
	admit_waiters(all, admitted);
	pthread_mutex_unlock(&all->lock);
	pthread_mutex_destroy(&place->lock);
	start_waiters(admitted);
}

/* -- the thread that looks after the calls which wait for places -- */

void fsd_waiting_init(struct fsd_waiting *waiting)
{
	*waiting = (struct fsd_waiting){0};
	pthread_mutex_init(&waiting->starting, NULL);
}

void fsd_waiting_fini(struct fsd_waiting *waiting)
{
	if (waiting->begun)
		stop_background(&waiting->background);
	pthread_mutex_destroy(&waiting->starting);
}

bool fsd_waiting_look(struct fsd_service *service)
{
	struct fsd_counters *counters = &service->counters;
	unsigned fetches, stores;
	bool fetches_wait, stores_wait;

	fetches_wait = fsd_places_look(&service->sending, monotonic_ns(), &fetches);
	stores_wait = fsd_places_look(&service->storing, monotonic_ns(), &stores);
	fsd_count(&counters->fetches_given_up, fetches);
	fsd_count(&counters->stores_given_up, stores);
	return fsd_sessions_look(&service->sessions, fsd_now()) || fetches_wait || stores_wait;
}

/* Waits until some call may have waited for a second. False: the thread ends. The caller holds the lock. */
static bool await_waiters(struct fsd_waiting *waiting, uint64_t *due)
{
	struct background *background = &waiting->background;

	while (!waiting->wanted && !background->stop) {
		sleep_in_background(background, UINT64_MAX);
		*due = monotonic_ns() + LOOK_NS;
	}
	while (monotonic_ns() < *due && !background->stop)
		sleep_in_background(background, *due);
	return !background->stop;
}

static void *look_after_waiters(void *arg)
{
	struct fsd_service *service = arg;
	struct fsd_waiting *waiting = &service->waiting;
	uint64_t due = monotonic_ns() + LOOK_NS;
	bool wanted;

	pthread_setname_np(pthread_self(), "rxfsd-waiting");
	pthread_mutex_lock(&waiting->background.lock);
	while (await_waiters(waiting, &due)) {
		waiting->wanted = false;
		pthread_mutex_unlock(&waiting->background.lock);
		wanted = fsd_waiting_look(service);
		pthread_mutex_lock(&waiting->background.lock);
		waiting->wanted |= wanted;
		due = monotonic_ns() + LOOK_NS;
	}
	pthread_mutex_unlock(&waiting->background.lock);
	return NULL;
}

static bool start_looking(struct fsd_service *service)
{
	struct fsd_waiting *waiting = &service->waiting;
	bool begun;

	pthread_mutex_lock(&waiting->starting);
	if (!waiting->begun)
		waiting->begun =
			start_background(&waiting->background, look_after_waiters, service) == 0;
	begun = waiting->begun;
	pthread_mutex_unlock(&waiting->starting);
	return begun;
}

static void note_waiter(struct fsd_waiting *waiting)
{
	pthread_mutex_lock(&waiting->background.lock);
	if (!waiting->wanted)
		wake_background(&waiting->background);
	waiting->wanted = true;
	pthread_mutex_unlock(&waiting->background.lock);
}

enum fsd_entry fsd_wait_for_place(struct fsd_service *service, struct fsd_places *all,
				  struct fsd_place *place, rxw_call *rx,
				  const struct sockaddr_storage *peer,
				  void (*start)(struct fsd_place *place, bool got))
{
	enum fsd_entry entry;

	if (!start_looking(service))
		return fsd_place_enter(all, place, rx, peer, monotonic_ns());
	entry = fsd_place_await(all, place, rx, peer, monotonic_ns(), start);
	if (entry == FSD_ENTRY_WAITS)
		note_waiter(&service->waiting);
	return entry;
}

void fsd_waiting_for_session(struct fsd_service *service)
{
	if (start_looking(service))
		note_waiter(&service->waiting);
}

/* -- permits -- */

void fsd_permits_init(struct fsd_permits *permits, unsigned max)
{
	assert(max <= FSD_PERMITS_MAX);
	permits->max = max;
	pthread_mutex_init(&permits->lock, NULL);
}

void fsd_permits_fini(struct fsd_permits *permits)
{
	pthread_mutex_destroy(&permits->lock);
}

bool fsd_permit_take(struct fsd_permits *permits, const void *call,
		     const struct sockaddr_storage *peer)
{
	struct fsd_share_key key;
	unsigned count, mine = 0;
	bool may;

	fsd_share_of_address(peer, &key);
	pthread_mutex_lock(&permits->lock);
	count = atomic_load(&permits->count);
	assert(count <= permits->max);
	for (unsigned i = 0; i < count; i++)
		mine += fsd_same_share(&permits->holder[i].address, &key);
	may = mine < permits->max - count;
	if (may) {
		permits->holder[count].call = call;
		permits->holder[count].address = key;
		atomic_store(&permits->count, count + 1);
	}
	pthread_mutex_unlock(&permits->lock);
	return may;
}

void fsd_permit_return(struct fsd_permits *permits, const void *call)
{
	unsigned count, i = 0;

	/* The permit of this call, if it has one, was counted before this thread got the call. */
	if (!atomic_load(&permits->count))
		return;
	pthread_mutex_lock(&permits->lock);
	count = atomic_load(&permits->count);
	while (i < count && permits->holder[i].call != call)
		i++;
	if (i < count) {
		permits->holder[i] = permits->holder[count - 1];
		atomic_store(&permits->count, count - 1);
	}
	pthread_mutex_unlock(&permits->lock);
}

/* -- the calls of the file service that have not been answered -- */

void fsd_running_add(struct fsd_running *running, struct fsd_running_call *call)
{
	assert(!call->link);
	pthread_mutex_lock(&running->lock);
	call->next = running->first;
	call->link = &running->first;
	if (call->next)
		call->next->link = &call->next;
	running->first = call;
	pthread_mutex_unlock(&running->lock);
}

void fsd_running_remove(struct fsd_running *running, struct fsd_running_call *call)
{
	pthread_mutex_lock(&running->lock);
	if (call->link) {
		assert(*call->link == call);
		*call->link = call->next;
		if (call->next)
			call->next->link = call->link;
		call->link = NULL;
	}
	pthread_mutex_unlock(&running->lock);
}

void fsd_service_log_running(struct fsd_service *service)
{
	struct fsd_running *running = &service->running;
	uint64_t now = fsd_now();
	unsigned count = 0;

	pthread_mutex_lock(&running->lock);
	for (const struct fsd_running_call *call = running->first; call; call = call->next) {
		char peer[TOOLS_ADDRESS_TEXT];

		if (++count > LOGGED_MOST)
			continue;
		tools_address_text(&call->peer, peer, sizeof(peer));
		fsd_log(RXW_LOG_ERROR, "still running: %s from %s, for %llu s", call->procedure,
			peer, (unsigned long long)(now - call->since));
	}
	pthread_mutex_unlock(&running->lock);
	if (count > LOGGED_MOST)
		fsd_log(RXW_LOG_ERROR, "still running: %u more calls", count - LOGGED_MOST);
	if (!count)
		fsd_log(RXW_LOG_ERROR, "no call is still running; another thread is blocked");
}
