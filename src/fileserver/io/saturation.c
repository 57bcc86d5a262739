/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows that wait for their turn while the server is saturated, and the thread that tells them when to go on. */
#include "fileserver/io/saturation.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hash.h"
#include "common/asleep.h"
#include "common/clock.h"
#include "common/held.h"
#include "common/siphash.h"

#define LOOK_NS NS_PER_MS /* while flows wait */
#define SELDOM_NS \
	(10 * NS_PER_MS) /* while none does; and a thread that has not slept for so long is busy */
#define SENDER_NS NS_PER_S /* a thread that has sent nothing for so long does not count */
#define CALLERS	  64	   /* that get their turn at a look, */
#define ADMITTED  256	   /* with so many flows together */
#define PART	  ((uint64_t)64 << 10) /* about what a flow sends in a turn */
#define FEW_FLOWS 16		       /* an address with no more than these never waits */
#define KEPT_SETS 512u
#define KEPT_WAYS 4u

/* The account of an address whose flows have ended: it begins others before long. */
struct fsd_kept_account {
	struct fsd_share_key key;
	struct fair_account account; /* `period` 0: none */
};

/* When this thread was last found to have slept, and how often it had by then. */
static _Thread_local struct {
	uint64_t since;
	long sleeps;
} own;

bool fsd_saturation_init(struct fsd_saturation *all)
{
	*all = (struct fsd_saturation){0};
	if (rxw_random(all->secret, sizeof(all->secret)))
		return false;
	all->last = &all->first;
	pthread_mutex_init(&all->lock, NULL);
	monotonic_cond_init(&all->changed);
	return true;
}

void fsd_saturation_fini(struct fsd_saturation *all)
{
	pthread_mutex_lock(&all->lock);
	assert(!all->first);
	all->stop = true;
	pthread_cond_signal(&all->changed);
	pthread_mutex_unlock(&all->lock);
	if (all->has_thread)
		pthread_join(all->thread, NULL);
	pthread_cond_destroy(&all->changed);
	pthread_mutex_destroy(&all->lock);
	free(all->kept);
}

/* -- accounts of addresses without flows: with the lock held -- */

static struct fsd_kept_account *kept_set(const struct fsd_saturation *all,
					 const struct fsd_share_key *key)
{
	return &all->kept[siphash(key, sizeof(*key), all->secret) % KEPT_SETS * KEPT_WAYS];
}

/* NULL: none. */
static struct fsd_kept_account *find_kept(const struct fsd_saturation *all,
					  const struct fsd_share_key *key)
{
	struct fsd_kept_account *set = all->kept ? kept_set(all, key) : NULL;

	for (unsigned i = 0; set && i < KEPT_WAYS; i++)
		if (set[i].account.period && fsd_same_share(&set[i].key, key))
			return &set[i];
	return NULL;
}

/* The place of an account that is kept already, else the one that was used least recently. */
static void keep_account(struct fsd_saturation *all, const struct fsd_share_key *key,
			 const struct fair_account *account)
{
	struct fsd_kept_account *set, *place;

	assert(mutex_is_held(&all->lock));
	if (!all->kept)
		all->kept = calloc((size_t)KEPT_SETS * KEPT_WAYS, sizeof(*all->kept));
	if (!all->kept || !account->period)
		return;
	place = find_kept(all, key);
	if (!place) {
		set = place = kept_set(all, key);
		for (unsigned i = 1; i < KEPT_WAYS; i++)
			if (!set[i].account.period || set[i].account.seen < place->account.seen)
				place = &set[i];
	}
	*place = (struct fsd_kept_account){*key, *account};
}

bool fsd_saturation_keeps(const struct fsd_saturation *all, const struct fsd_share_key *key)
{
	return find_kept(all, key) != NULL;
}

static void restore_account(struct fsd_saturation *all, const struct fsd_share_key *key,
			    struct fair_account *account)
{
	struct fsd_kept_account *kept = find_kept(all, key);

	assert(mutex_is_held(&all->lock));
	if (!kept)
		return;
	*account = kept->account;
	*kept = (struct fsd_kept_account){0};
}

/* -- flows that wait: with the lock held -- */

static void list_caller(struct fsd_saturation *all, struct fsd_crowd_caller *caller)
{
	assert(mutex_is_held(&all->lock));
	caller->next = NULL;
	caller->link = all->last;
	*all->last = caller;
	all->last = &caller->next;
}

static void unlist_caller(struct fsd_saturation *all, struct fsd_crowd_caller *caller)
{
	assert(*caller->link == caller);
	*caller->link = caller->next;
	if (caller->next)
		caller->next->link = caller->link;
	else
		all->last = caller->link;
	caller->link = NULL;
}

static void append_turn(struct fsd_saturation *all, struct fsd_turn *turn)
{
	struct fsd_crowd_caller *caller = turn->caller;

	if (!caller->link) {
		caller->first = NULL;
		caller->last = &caller->first;
		list_caller(all, caller);
	}
	turn->next = NULL;
	turn->link = caller->last;
	*caller->last = turn;
	caller->last = &turn->next;
	all->waits++;
}

static void remove_turn(struct fsd_saturation *all, struct fsd_turn *turn)
{
	struct fsd_crowd_caller *caller = turn->caller;

	assert(caller->link && *turn->link == turn);
	*turn->link = turn->next;
	if (turn->next)
		turn->next->link = turn->link;
	else
		caller->last = turn->link;
	turn->link = NULL;
	if (!caller->first)
		unlist_caller(all, caller);
}

/* Flows that go on; this thread runs them until it has told them. */
struct admitted {
	unsigned count;
	struct fsd_turn *turn[ADMITTED];
};

/* It has paid for the part that it sends next, before others look at the account. */
static void admit_turn(struct fsd_saturation *all, struct fsd_turn *turn, struct admitted *admitted)
{
	assert(!turn->paid && admitted->count < ADMITTED);
	fair_rate_charge(&all->rate, &turn->caller->account, PART);
	remove_turn(all, turn);
	turn->paid = PART;
	/* Otherwise the thread that runs it sees the visit, and the flow may be gone before long. */
	if (atomic_fetch_add(turn->visits, 1) == 0)
		admitted->turn[admitted->count++] = turn;
}

static bool may_send(struct fsd_saturation *all, struct fsd_crowd_caller *caller)
{
	assert(mutex_is_held(&all->lock));
	return caller->flows <= FEW_FLOWS || fair_rate_permits(&all->rate, &caller->account);
}

/* So many flows of the first caller as may send. It is the last one then, if it has more. */
static void admit_caller(struct fsd_saturation *all, struct admitted *admitted)
{
	struct fsd_crowd_caller *caller = all->first;

	unlist_caller(all, caller);
	list_caller(all, caller);
	while (caller->link && admitted->count < ADMITTED && may_send(all, caller))
		admit_turn(all, caller->first, admitted);
}

/* Releases the lock meanwhile. */
static void resume_admitted(struct fsd_saturation *all, const struct admitted *admitted)
{
	pthread_mutex_unlock(&all->lock);
	for (unsigned i = 0; i < admitted->count; i++)
		admitted->turn[i]->resume(admitted->turn[i]);
	pthread_mutex_lock(&all->lock);
}

static void admit_callers(struct fsd_saturation *all)
{
	struct admitted admitted = {0};

	for (unsigned i = 0; all->first && i < CALLERS; i++)
		admit_caller(all, &admitted);
	resume_admitted(all, &admitted);
}

static void admit_all(struct fsd_saturation *all)
{
	while (all->first) {
		struct admitted admitted = {0};

		while (all->first && admitted.count < ADMITTED)
			admit_turn(all, all->first->first, &admitted);
		resume_admitted(all, &admitted);
	}
}

/* -- the thread -- */

/* Whether all threads that send sleep. The lock is released meanwhile. */
static bool has_time_left(struct fsd_saturation *all, uint64_t now)
{
	pid_t tid[FSD_SENDERS];
	unsigned count = 0, at = 0;

	for (unsigned i = 0; i < FSD_SENDERS; i++)
		if (all->sender[i].tid && now < all->sender[i].seen + SENDER_NS)
			tid[count++] = all->sender[i].tid;
	pthread_mutex_unlock(&all->lock);
	while (at < count && thread_sleeps(tid[at]))
		at++;
	pthread_mutex_lock(&all->lock);
	return at == count;
}

static void look_around(struct fsd_saturation *all)
{
	uint64_t now = monotonic_ns();
	bool idle = has_time_left(all, now);

	if (!fair_rate_look(&all->rate, idle, all->first, now)) {
		atomic_store(&all->on, false);
		admit_all(all);
		return;
	}
	admit_callers(all);
}

static void *watch_saturation(void *arg)
{
	struct fsd_saturation *all = arg;

	pthread_setname_np(pthread_self(), "rxfsd-turns");
	pthread_mutex_lock(&all->lock);
	while (!all->stop) {
		if (!atomic_load(&all->on)) {
			pthread_cond_wait(&all->changed, &all->lock);
			continue;
		}
		monotonic_wait(&all->changed, &all->lock,
			       all->rate.now + (all->first ? LOOK_NS : SELDOM_NS));
		if (monotonic_ns() >= all->rate.now + LOOK_NS)
			look_around(all);
	}
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* -- threads that send -- */

/* The caller holds the lock. If there are too many, it replaces the one that has sent nothing for longest. */
static void note_sender(struct fsd_saturation *all, pid_t tid, uint64_t now)
{
	unsigned at = 0;

	for (unsigned i = 0; i < FSD_SENDERS && all->sender[at].tid != tid; i++)
		if (all->sender[i].tid == tid || all->sender[i].seen < all->sender[at].seen)
			at = i;
	all->sender[at].tid = tid;
	all->sender[at].seen = now;
}

/* The caller holds the lock. Without a thread nothing changes. */
static void begin_saturation(struct fsd_saturation *all, uint64_t now)
{
	if (!all->has_thread)
		all->has_thread = !pthread_create(&all->thread, NULL, watch_saturation, all);
	if (!all->has_thread)
		return;
	fair_rate_begin(&all->rate, now);
	atomic_store(&all->on, true);
	pthread_cond_signal(&all->changed);
}

static void notice_thread(struct fsd_saturation *all, bool busy, uint64_t now)
{
	pthread_mutex_lock(&all->lock);
	note_sender(all, gettid(), now);
	if (busy && !atomic_load(&all->on))
		begin_saturation(all, now);
	pthread_mutex_unlock(&all->lock);
}

void fsd_saturation_notice(struct fsd_saturation *all)
{
	uint64_t now = monotonic_ns();
	struct rusage usage;
	bool busy;

	if (now - own.since < SELDOM_NS || getrusage(RUSAGE_THREAD, &usage))
		return;
	busy = own.since && usage.ru_nvcsw == own.sleeps;
	own.since = now;
	own.sleeps = usage.ru_nvcsw;
	if (busy || atomic_load(&all->on))
		notice_thread(all, busy, now);
}

void fsd_saturation_begin(struct fsd_saturation *all, pid_t tid)
{
	uint64_t now = monotonic_ns();

	pthread_mutex_lock(&all->lock);
	note_sender(all, tid, now);
	begin_saturation(all, now);
	pthread_mutex_unlock(&all->lock);
}

/* -- flows -- */

void fsd_turn_begin(struct fsd_saturation *all, struct fsd_turn *turn,
		    const struct fsd_share_key *key)
{
	struct fsd_crowd_caller *caller = turn->caller;

	pthread_mutex_lock(&all->lock);
	if (caller->flows++ == 0 && atomic_load(&all->on))
		restore_account(all, key, &caller->account);
	pthread_mutex_unlock(&all->lock);
}

void fsd_turn_end(struct fsd_saturation *all, struct fsd_turn *turn,
		  const struct fsd_share_key *key)
{
	struct fsd_crowd_caller *caller = turn->caller;

	pthread_mutex_lock(&all->lock);
	assert(caller->flows > 0);
	if (turn->link)
		remove_turn(all, turn);
	if (--caller->flows == 0 && atomic_load(&all->on))
		keep_account(all, key, &caller->account);
	pthread_mutex_unlock(&all->lock);
}

bool fsd_turn_has(struct fsd_saturation *all, struct fsd_turn *turn)
{
	bool has;

	if (!atomic_load_explicit(&all->on, memory_order_relaxed))
		return true;
	pthread_mutex_lock(&all->lock);
	has = turn->paid || may_send(all, turn->caller) || !atomic_load(&all->on);
	if (has && turn->link)
		remove_turn(all, turn);
	pthread_mutex_unlock(&all->lock);
	return has;
}

bool fsd_turn_wait(struct fsd_saturation *all, struct fsd_turn *turn)
{
	bool waits, first;

	pthread_mutex_lock(&all->lock);
	waits = atomic_load(&all->on) && !turn->paid;
	first = waits && !all->first;
	if (waits && !turn->link)
		append_turn(all, turn);
	pthread_mutex_unlock(&all->lock);
	if (first)
		pthread_cond_signal(&all->changed);
	return waits;
}

void fsd_turn_charge(struct fsd_saturation *all, struct fsd_turn *turn, uint64_t bytes)
{
	uint64_t paid;

	if (!bytes || !atomic_load_explicit(&all->on, memory_order_relaxed))
		return;
	pthread_mutex_lock(&all->lock);
	paid = turn->paid < bytes ? turn->paid : bytes;
	turn->paid -= paid;
	fair_rate_count(&all->rate, &turn->caller->account, bytes);
	if (bytes > paid)
		fair_rate_charge(&all->rate, &turn->caller->account, bytes - paid);
	pthread_mutex_unlock(&all->lock);
}

uint64_t fsd_saturation_waits(struct fsd_saturation *all)
{
	uint64_t waits;

	pthread_mutex_lock(&all->lock);
	waits = all->waits;
	pthread_mutex_unlock(&all->lock);
	return waits;
}
