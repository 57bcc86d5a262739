/* SPDX-License-Identifier: BSD-2-Clause */
/* Resources that callers share: entries and places, and threads whose jobs take turns among callers. */
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "common/asleep.h"
#include "common/clock.h"
#include "common/held.h"
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

/* -- the pool of threads -- */

#define LATE_NS NS_PER_MS /* a job has waited for long: the threads may wait for the disk */

struct member {
	struct fsd_pool *pool; /* constant, as `thread` */
	pthread_t thread;
	/* The lock of the pool covers: */
	pid_t tid;  /* constant once it has a job */
	bool works; /* it has one */
};

struct fsd_pool {
	unsigned most, few;   /* constant; `few` threads suffice while they run */
	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t work;  /* a job was queued, or `stop` */
	struct fsd_shares callers;
	struct fsd_pool_caller *head, **tail; /* have jobs that are queued, one a turn */
	unsigned threads, idle;		      /* idle: they have no job */
	unsigned watchers;		      /* idle ones that wait until the next job is late */
	bool few_ran;			      /* of those with a job, when they were looked at */
	uint64_t looked_at;		      /* when that was so once, or not so; monotonic ns */
	unsigned borrowed;		      /* threads of others that do jobs */
	bool stop;
	struct member member[]; /* `threads` of them */
};

static void *run_jobs(void *arg);

/* The lock is held, as for all functions until run_jobs(). False: there is no thread at all. */
static bool add_thread(struct fsd_pool *pool)
{
	struct member *member = &pool->member[pool->threads];

	assert(mutex_is_held(&pool->lock));
	assert(pool->threads <= pool->most);
	if (pool->threads == pool->most)
		return true;
	member->pool = pool;
	if (!pthread_create(&member->thread, NULL, run_jobs, member)) {
		pool->threads++;
		pool->idle++;
	}
	return pool->threads > 0;
}

static void append_caller(struct fsd_pool *pool, struct fsd_pool_caller *caller)
{
	caller->next = NULL;
	*pool->tail = caller;
	pool->tail = &caller->next;
}

static void prepend_caller(struct fsd_pool *pool, struct fsd_pool_caller *caller)
{
	caller->next = pool->head;
	pool->head = caller;
	if (!caller->next)
		pool->tail = &caller->next;
}

static struct fsd_jobs *next_jobs(struct fsd_pool_caller *caller)
{
	return caller->urgent.first ? &caller->urgent : &caller->others;
}

static void push_job(struct fsd_pool *pool, struct fsd_job *job)
{
	struct fsd_pool_caller *caller = job->caller;
	struct fsd_jobs *jobs = job->urgent ? &caller->urgent : &caller->others;

	if (!next_jobs(caller)->first) {
		if (job->urgent)
			prepend_caller(pool, caller);
		else
			append_caller(pool, caller);
	}
	job->next = NULL;
	*(jobs->first ? jobs->last : &jobs->first) = job;
	jobs->last = &job->next;
}

/* The first one of the caller whose turn it is, which is the last one then. */
static struct fsd_job *pop_job(struct fsd_pool *pool)
{
	struct fsd_pool_caller *caller = pool->head;
	struct fsd_jobs *jobs = next_jobs(caller);
	struct fsd_job *job = jobs->first;

	assert(job && job->caller == caller);
	pool->head = caller->next;
	if (!pool->head)
		pool->tail = &pool->head;
	jobs->first = job->next;
	if (next_jobs(caller)->first)
		append_caller(pool, caller);
	return job;
}

/* While some are queued: when the next one has waited for long, since the others were last looked at. */
static uint64_t late_at(const struct fsd_pool *pool)
{
	uint64_t since = next_jobs(pool->head)->first->since;

	return (since > pool->looked_at ? since : pool->looked_at) + LATE_NS;
}

static bool has_few(const struct fsd_pool *pool)
{
	return pool->threads - pool->idle < pool->few;
}

/*
 * Releases the lock meanwhile. Do fewer than `few` of the threads that have a job run, twice in a row? If some do, the
 * others may wait for a lock of theirs: there is time.
 */
static bool do_few_run(struct fsd_pool *pool)
{
	unsigned looked = 0, running, working = pool->threads - pool->idle;
	uint64_t now = monotonic_ns(), since = next_jobs(pool->head)->first->since;
	pid_t tid[LOOKS_MOST];
	bool before;

	for (unsigned i = 0; i < pool->threads && looked < LOOKS_MOST; i++)
		if (pool->member[i].works)
			tid[looked++] = pool->member[i].tid;
	pthread_mutex_unlock(&pool->lock);
	running = estimate_running(tid, looked, working);
	pthread_mutex_lock(&pool->lock);
	before = pool->few_ran;
	pool->few_ran = !running || (running < pool->few && now >= since + 10 * LATE_NS);
	if (before && pool->few_ran)
		return true;
	pool->looked_at = now;
	return false;
}

/* Further threads than `few` take what has waited for long, unless those that have a job run. */
static bool may_take_job(struct fsd_pool *pool)
{
	if (!pool->head || has_few(pool) || pool->stop)
		return pool->head;
	return monotonic_ns() >= late_at(pool) && (do_few_run(pool) || has_few(pool)) && pool->head;
}

/* Waits until a job is queued, or the next one is late. */
static void sleep_idle(struct fsd_pool *pool)
{
	if (!pool->head) {
		pthread_cond_wait(&pool->work, &pool->lock);
		return;
	}
	pool->watchers++;
	monotonic_wait(&pool->work, &pool->lock, late_at(pool));
	assert(pool->watchers > 0);
	pool->watchers--;
}

/*
 * After a job was queued, or taken: all threads that have jobs may be about to wait, and nothing else may be queued. So
 * another one takes the next job, or sees when that is late.
 */
static void find_thread(struct fsd_pool *pool)
{
	if (!pool->head || pool->stop)
		return;
	if (!pool->idle)
		add_thread(pool);
	else if (has_few(pool) || !pool->watchers)
		pthread_cond_signal(&pool->work);
}

/* NULL: the thread ends. */
static struct fsd_job *await_job(struct fsd_pool *pool, struct member *self)
{
	struct fsd_job *job;

	while (!may_take_job(pool)) {
		if (!pool->head && pool->stop)
			return NULL;
		sleep_idle(pool);
	}
	assert(pool->idle > 0 && !self->works);
	pool->idle--;
	self->works = true;
	job = pop_job(pool);
	find_thread(pool);
	return job;
}

static void *run_jobs(void *arg)
{
	struct member *self = arg;
	struct fsd_pool *pool = self->pool;
	struct fsd_job *job;

	pthread_setname_np(pthread_self(), "rxfsd-pool");
	pthread_mutex_lock(&pool->lock);
	self->tid = gettid();
	while ((job = await_job(pool, self)) != NULL) {
		pthread_mutex_unlock(&pool->lock);
		job->run(job);
		pthread_mutex_lock(&pool->lock);
		pool->idle++;
		self->works = false;
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

struct fsd_pool *fsd_pool_create(unsigned most, unsigned few, size_t caller)
{
	struct fsd_pool *pool = calloc(1, sizeof(*pool) + most * sizeof(struct member));
	uint64_t secret[2] = {0};

	assert(most > 0 && caller >= sizeof(struct fsd_pool_caller));
	if (!pool)
		return NULL;
	if (rxw_random(secret, sizeof(secret)) ||
	    !fsd_shares_init(&pool->callers, caller, secret)) {
		free(pool);
		return NULL;
	}
	pool->most = most;
	pool->few = few;
	pool->tail = &pool->head;
	pthread_mutex_init(&pool->lock, NULL);
	monotonic_cond_init(&pool->work);
	return pool;
}

void fsd_pool_destroy(struct fsd_pool *pool)
{
	unsigned threads;

	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	threads = pool->threads;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	assert(pool->borrowed == 0);
	while (threads)
		pthread_join(pool->member[--threads].thread, NULL);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	assert(!pool->head);
	fsd_shares_fini(&pool->callers);
	free(pool);
}

unsigned fsd_pool_threads(struct fsd_pool *pool, bool *rests)
{
	unsigned threads;

	pthread_mutex_lock(&pool->lock);
	threads = pool->threads;
	if (rests)
		*rests = !pool->head && pool->idle == threads;
	pthread_mutex_unlock(&pool->lock);
	return threads;
}

struct fsd_pool_caller *fsd_pool_enter(struct fsd_pool *pool, const struct fsd_share_key *key)
{
	struct fsd_share *share = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool->threads || add_thread(pool))
		share = fsd_share_take(&pool->callers, key, SIZE_MAX);
	pthread_mutex_unlock(&pool->lock);
	return (struct fsd_pool_caller *)share;
}

void fsd_pool_leave(struct fsd_pool *pool, struct fsd_pool_caller *caller)
{
	pthread_mutex_lock(&pool->lock);
	fsd_share_give(&pool->callers, &caller->share);
	pthread_mutex_unlock(&pool->lock);
}

void fsd_pool_post(struct fsd_pool *pool, struct fsd_job *job)
{
	pthread_mutex_lock(&pool->lock);
	assert(pool->threads > 0);
	job->since = monotonic_ns();
	push_job(pool, job);
	find_thread(pool);
	pthread_mutex_unlock(&pool->lock);
}

bool fsd_pool_borrow(struct fsd_pool *pool)
{
	bool may;

	pthread_mutex_lock(&pool->lock);
	may = pool->borrowed < pool->most / 2;
	pool->borrowed += may;
	pthread_mutex_unlock(&pool->lock);
	return may;
}

void fsd_pool_return(struct fsd_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	assert(pool->borrowed > 0);
	pool->borrowed--;
	pthread_mutex_unlock(&pool->lock);
}
