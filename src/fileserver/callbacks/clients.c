/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of clients, the queues of those to be called, and their work: to identify them, to probe them, to break promises. */
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/error.h>

#include "afs/address.h"
#include "afs/uuid.h"
#include "base/hash.h"
#include "common/held.h"
#include "fileserver/base/base.h"
#include "fileserver/callbacks/memory.h"
#include "fileserver/callbacks/clients.h"

#define SILENT_S     300  /* pause before a client that did not answer is asked again */
#define FAILED_S     30	  /* the same for one that was up and did not answer a break */
#define IDLE_S	     7200 /* a client is forgotten after this time without a call */
#define PROBE_S	     900  /* a client with promises is probed after this time */
#define ANOTHER	     1	  /* code of ProbeUuid from a client with another UUID */
#define PRESSED_S    60	  /* instead of PROBE_S while the table of promises is nearly full */
#define IDENTIFY_MAX 256  /* clients queued; further new ones are queued at a later call */
#define SLOW_S	     2	  /* an answer for which calls waited so long was slow */
#define SLOW_MOST_S  12	  /* after slow answers that took so long in all, in UNPROMISED_S, */
#define UNPROMISED_S 300  /* a client gets no promises for this time */
#define SLOW_SHARE_S 24	  /* the same of an address, which may have many clients */
/*
 * Calls in progress to idle clients. Most of these clients are gone and each takes seconds to time
 * out; active clients must not wait for them.
 */
#define BACKGROUND_MAX 32

/* -- the queues: of clients that calls wait for, of active ones, of idle ones -- */

/* The queue of a share in a list, and those queues in turn. */
static void append_share_queue(struct work_list *list, struct share_queue *queue)
{
	queue->next = NULL;
	queue->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = queue;
	list->last = queue;
}

static void detach_share_queue(struct work_list *list, struct share_queue *queue)
{
	assert(list->first && list->last);
	*(queue->previous ? &queue->previous->next : &list->first) = queue->next;
	*(queue->next ? &queue->next->previous : &list->last) = queue->previous;
}

static void put_host(struct work_list *list, struct share_queue *queue, struct fsd_host *host)
{
	host->next_work = NULL;
	host->previous_work = queue->last;
	*(queue->last ? &queue->last->next_work : &queue->first) = host;
	queue->last = host;
	list->count++;
	if (!queue->count++)
		append_share_queue(list, queue);
}

static void take_out(struct fsd_clients *clients, struct fsd_host *host)
{
	struct work_list *list = &clients->list[host->list];
	struct share_queue *queue = &host->share->queue[host->list];

	assert(host->queued && !host->busy);
	assert(list->count > 0 && queue->count > 0);
	*(host->previous_work ? &host->previous_work->next_work : &queue->first) = host->next_work;
	*(host->next_work ? &host->next_work->previous_work : &queue->last) = host->previous_work;
	host->queued = false;
	list->count--;
	if (!--queue->count)
		detach_share_queue(list, queue);
}

void fsd_host_queue(struct fsd_clients *clients, struct fsd_host *host)
{
	assert(mutex_is_held(&clients->lock));
	if (host->queued || host->busy)
		return;
	host->list = host->first_waiter || host->awaited ? WORK_URGENT
		     : host->quiet			 ? WORK_QUIET
							 : WORK_ACTIVE;
	host->queued = true;
	put_host(&clients->list[host->list], &host->share->queue[host->list], host);
}

/* Addresses that have to wait have calls in flight, so there are few. */
static struct fsd_host *fsd_host_dequeue(struct fsd_clients *clients, enum work_lists number,
					 unsigned most)
{
	struct work_list *list = &clients->list[number];
	struct share_queue *queue = list->first;
	struct fsd_host *host;

	while (queue && queue->of->busy && queue->of->busy >= most)
		queue = queue->next;
	if (!queue)
		return NULL;
	host = queue->first;
	take_out(clients, host);
	if (queue->count && list->last != queue) {
		detach_share_queue(list, queue);
		append_share_queue(list, queue);
	}
	return host;
}

void fsd_host_hurry(struct fsd_clients *clients, struct fsd_host *host)
{
	if (!host->queued || host->list == WORK_URGENT)
		return;
	take_out(clients, host);
	fsd_host_queue(clients, host);
}

/* -- the table -- */

static uint64_t hash_address(const struct sockaddr_storage *peer, const uint64_t secret[2])
{
	uint8_t bytes[18] = {0};

	if (peer->ss_family == AF_INET) {
		const struct sockaddr_in *sa = (const void *)peer;

		memcpy(bytes, &sa->sin_port, 2);
		memcpy(bytes + 2, &sa->sin_addr, 4);
	} else if (peer->ss_family == AF_INET6) {
		const struct sockaddr_in6 *sa = (const void *)peer;

		memcpy(bytes, &sa->sin6_port, 2);
		memcpy(bytes + 2, &sa->sin6_addr, 16);
	}
	return rxw_siphash(bytes, sizeof(bytes), secret);
}

static uint64_t hash_host(const void *host, const uint64_t secret[2])
{
	return hash_address(&((const struct fsd_host *)host)->peer, secret);
}

struct fsd_clients *fsd_clients_create(const struct fsd_clients_options *options)
{
	struct fsd_clients *clients = calloc(1, sizeof(*clients));
	uint64_t secret[2];

	if (!clients)
		return NULL;
	clients->options = *options;
	pthread_mutex_init(&clients->lock, NULL);
	monotonic_cond_init(&clients->settled);
	monotonic_cond_init(&clients->opened);
	if (rxw_random(secret, sizeof(secret)) ||
	    !htable_init(&clients->hosts, offsetof(struct fsd_host, chain), hash_host, secret,
			 options->hosts_max / 2) ||
	    !fsd_shares_init(&clients->shares, sizeof(struct host_share), secret) ||
	    !fsd_promises_init(clients, secret) || !fsd_changing_init(clients, secret)) {
		fsd_clients_destroy(clients);
		return NULL;
	}
	return clients;
}

static void unlink_host_age(struct fsd_clients *clients, struct fsd_host *host)
{
	*(host->newer ? &host->newer->older : &clients->newest) = host->older;
	*(host->older ? &host->older->newer : &clients->oldest) = host->newer;
}

static void link_newest_host(struct fsd_clients *clients, struct fsd_host *host)
{
	host->newer = NULL;
	host->older = clients->newest;
	*(clients->newest ? &clients->newest->newer : &clients->oldest) = host;
	clients->newest = host;
}

static void remove_host(struct fsd_clients *clients, struct fsd_host *host)
{
	assert(clients->stats.hosts > 0);
	assert(host->state != HOST_UP || clients->stats.hosts_up > 0);
	clients->stats.hosts_up -= host->state == HOST_UP;
	htable_remove(&clients->hosts, host);
	unlink_host_age(clients, host);
	fsd_host_forget_promises(clients, host);
	clients->stats.hosts--;
	if (host->kept && clients->options.drop)
		clients->options.drop(clients->options.arg, host->record);
	fsd_share_give(&clients->shares, &host->share->share);
	free(host);
}

void fsd_clients_destroy(struct fsd_clients *clients)
{
	if (!clients)
		return;
	/* Addresses and promises stay in their files. */
	fsd_ledger_close(clients->ledger);
	clients->ledger = NULL;
	clients->options.drop = NULL;
	while (clients->oldest)
		remove_host(clients, clients->oldest);
	pthread_cond_destroy(&clients->opened);
	pthread_cond_destroy(&clients->settled);
	pthread_mutex_destroy(&clients->lock);
	htable_fini(&clients->hosts, NULL);
	fsd_shares_fini(&clients->shares);
	htable_fini(&clients->promises, NULL);
	htable_fini(&clients->objects, NULL);
	htable_fini(&clients->changing, NULL);
	free(clients);
}

/* Whether it can be forgotten: no call uses it, and it may rely on no promise. */
static bool is_unused(const struct fsd_clients *clients, const struct fsd_host *host, uint64_t now)
{
	return !host->refs && !host->busy && !host->queued && !host->promise_count &&
	       !(clients->options.strict &&
		 (fsd_host_may_cache(host, now) || host->unlisted_until > now));
}

/*
 * Make room: forget the client with the oldest call that holds no promises. `of`: one of this address only; NULL: any.
 */
static bool forget_one(struct fsd_clients *clients, const struct fsd_share_key *of)
{
	struct fsd_host *host = clients->oldest;

	for (int i = 0; host && i < 64; i++, host = host->newer)
		if ((!of || fsd_same_share(&host->share->share.key, of)) &&
		    is_unused(clients, host, fsd_now())) {
			remove_host(clients, host);
			return true;
		}
	return false;
}

/*
 * An entry of the table for an address: it has fewer than are free, or another client is forgotten; if it has more, one of
 * its own.
 */
static struct host_share *take_share(struct fsd_clients *clients,
				     const struct sockaddr_storage *peer, bool known)
{
	size_t max = clients->options.hosts_max, limit = known ? SIZE_MAX : max;
	struct fsd_share *share = NULL;
	struct fsd_share_key key;

	fsd_share_of_address(peer, &key);
	if (clients->stats.hosts < max)
		share = fsd_share_take(&clients->shares, &key, limit);
	if (!share && forget_one(clients, &key))
		share = fsd_share_take(&clients->shares, &key, SIZE_MAX);
	if (!share && clients->stats.hosts >= max && forget_one(clients, NULL))
		share = fsd_share_take(&clients->shares, &key, limit);
	for (int i = 0; share && i < WORK_LISTS; i++)
		((struct host_share *)share)->queue[i].of = (struct host_share *)share;
	return (struct host_share *)share;
}

struct fsd_host *fsd_host_find(struct fsd_clients *clients, const struct sockaddr_storage *peer,
			       bool known)
{
	struct fsd_host *host =
		htable_first(&clients->hosts, hash_address(peer, clients->hosts.key));
	struct host_share *share;

	while (host && !afs_same_address(&host->peer, peer))
		host = host->chain;
	if (host)
		return host;
	share = take_share(clients, peer, known);
	host = share ? calloc(1, sizeof(*host)) : NULL;
	if (!host) {
		if (share)
			fsd_share_give(&clients->shares, &share->share);
		return NULL;
	}
	host->peer = *peer;
	host->share = share;
	host->last_owed = &host->owed;
	host->promised_until = host->unlisted_until = clients->doubt_until;
	htable_add(&clients->hosts, host);
	link_newest_host(clients, host);
	clients->stats.hosts++;
	return host;
}

/* Whether there is room in the queue for a new client: its address has fewer in it than are free. */
static bool may_identify(const struct fsd_clients *clients, const struct fsd_host *host)
{
	size_t waiting = clients->list[WORK_ACTIVE].count;

	return waiting < IDENTIFY_MAX &&
	       host->share->queue[WORK_ACTIVE].count < IDENTIFY_MAX - waiting;
}

/* Forget idle clients without promises, at most two per call of a client. */
static void forget_idle(struct fsd_clients *clients, uint64_t now)
{
	for (int i = 0; i < 2; i++) {
		struct fsd_host *host = clients->oldest;

		if (!host || host->last_call + IDLE_S > now || !is_unused(clients, host, now))
			return;
		remove_host(clients, host);
	}
}

void fsd_clients_enter(struct fsd_clients *clients, const struct sockaddr_storage *peer,
		       const struct sockaddr_storage *local, uint32_t opcode, uint64_t now,
		       struct fsd_caller *caller)
{
	bool modern = opcode >= 65536;
	bool wake = false;
	struct fsd_host *host;

	caller->host = NULL;
	caller->uae = modern;
	caller->untold = false;
	if (peer->ss_family != AF_INET && peer->ss_family != AF_INET6)
		return;
	pthread_mutex_lock(&clients->lock);
	host = fsd_host_find(clients, peer, false);
	if (host) {
		host->refs++;
		host->last_call = now;
		if (local)
			host->local = *local;
		host->quiet = false;
		host->modern |= modern;
		unlink_host_age(clients, host);
		link_newest_host(clients, host);
		fsd_host_called(clients, host);
		if ((host->state == HOST_NEW ||
		     (host->state == HOST_SILENT && now >= host->ask_after)) &&
		    may_identify(clients, host)) {
			host->state = HOST_ASKED;
			host->asking = FSD_WORK_IDENTIFY;
			fsd_host_queue(clients, host);
			wake = true;
		}
		caller->host = host;
		caller->untold = clients->options.strict && fsd_host_may_cache(host, now);
		caller->uae =
			host->caps_known ? host->caps & CLIENT_CAPABILITY_ERRORTRANS : host->modern;
	}
	forget_idle(clients, now);
	pthread_mutex_unlock(&clients->lock);
	if (wake && clients->options.wake)
		clients->options.wake(clients->options.arg);
}

void fsd_host_recall(struct fsd_clients *clients, struct fsd_host *host, uint64_t now)
{
	if (host->state != HOST_NEW)
		return;
	host->last_call = now;
	host->quiet = true;
	host->state = HOST_ASKED;
	host->asking = FSD_WORK_IDENTIFY;
	fsd_host_queue(clients, host);
}

void fsd_clients_recall(struct fsd_clients *clients, const struct sockaddr_storage *peer,
			const struct sockaddr_storage *local, int record, uint64_t now)
{
	struct fsd_host *host;

	pthread_mutex_lock(&clients->lock);
	host = clients->stats.hosts < clients->options.hosts_max
		       ? fsd_host_find(clients, peer, true)
		       : NULL;
	if (host) {
		host->kept = true;
		host->record = record;
		host->local = *local;
		fsd_host_recall(clients, host, now);
	}
	pthread_mutex_unlock(&clients->lock);
}

void fsd_clients_doubt(struct fsd_clients *clients, bool all, uint64_t now)
{
	uint64_t until = now + FSD_PROMISE_S;

	pthread_mutex_lock(&clients->lock);
	for (struct fsd_host *host = clients->newest; host; host = host->older)
		host->promised_until = host->unlisted_until = until;
	if (all)
		clients->doubt_until = until;
	pthread_mutex_unlock(&clients->lock);
}

void fsd_clients_leave(struct fsd_clients *clients, struct fsd_caller *caller)
{
	if (!caller->host)
		return;
	pthread_mutex_lock(&clients->lock);
	assert(caller->host->refs > 0);
	caller->host->refs--;
	pthread_mutex_unlock(&clients->lock);
	caller->host = NULL;
}

/* The oldest promises of which the host is to be told. */
static void fill_break(struct fsd_host *host, struct fsd_work *work)
{
	struct promise **end = &host->sent, *promise;

	assert(!host->sent);
	work->kind = FSD_WORK_BREAK;
	while ((promise = host->owed) && work->count < AFSCBMAX) {
		host->owed = promise->host_next;
		promise->host_next = NULL;
		promise->host_link = end;
		*end = promise;
		end = &promise->host_next;
		work->fids[work->count++] = promise->object->fid;
		work->until = promise->number;
	}
	if (host->owed)
		host->owed->host_link = &host->owed;
	else
		host->last_owed = &host->owed;
}

/* The next volumes that the host is to forget. Without the lock. */
static void fill_volumes(const struct fsd_clients_options *options, struct fsd_work *work)
{
	uint32_t ids[AFSCBMAX] = {options->volume};
	size_t n = options->volumes ? options->volumes(options->arg, work->after, ids, AFSCBMAX)
				    : options->volume > work->after;

	work->count = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		work->fids[i] = (AFSFid){ids[i], 0, 0};
}

static void fill_work(struct fsd_clients *clients, struct fsd_host *host, struct fsd_work *work,
		      uint64_t now)
{
	assert(!host->busy && !host->queued);
	memset(work, 0, sizeof(*work));
	host->busy = true;
	host->share->busy++;
	clients->busy++;
	work->begun = now;
	work->host = host;
	work->peer = host->peer;
	work->local = host->local;
	work->identified = host->identified;
	work->uuid = host->uuid;
	if (host->state == HOST_ASKED && host->asking != FSD_WORK_BREAK)
		work->kind = host->asking;
	else if (host->state == HOST_UP && host->probe && !host->owed)
		work->kind = FSD_WORK_PROBE;
	else
		fill_break(host, work);
	work->whole = work->kind == FSD_WORK_FORGET;
	work->after = host->whole_after;
	host->probe = false;
}

static unsigned free_of(unsigned max, unsigned used)
{
	return used < max ? max - used : 0;
}

/* An address has fewer calls in flight than are free, or one. */
static bool take_host_work(struct fsd_clients *clients, bool urgent, struct fsd_work *work,
			   uint64_t now)
{
	struct fsd_host *host;

	pthread_mutex_lock(&clients->lock);
	host = fsd_host_dequeue(clients, WORK_URGENT, free_of(URGENT_MAX, clients->busy));
	if (!host && !urgent)
		host = fsd_host_dequeue(clients, WORK_ACTIVE,
					free_of(IN_FLIGHT_MAX, clients->busy));
	if (!host && !urgent && clients->background < BACKGROUND_MAX) {
		host = fsd_host_dequeue(clients, WORK_QUIET,
					free_of(BACKGROUND_MAX, clients->background));
		if (host) {
			host->background = true;
			clients->background++;
		}
	}
	if (host)
		fill_work(clients, host, work, now);
	pthread_mutex_unlock(&clients->lock);
	if (host && work->whole)
		fill_volumes(&clients->options, work);
	return host != NULL;
}

bool fsd_work_take(struct fsd_clients *clients, struct fsd_work *work, uint64_t now)
{
	return take_host_work(clients, false, work, now);
}

bool fsd_work_take_urgent(struct fsd_clients *clients, struct fsd_work *work, uint64_t now)
{
	return take_host_work(clients, true, work, now);
}

static void set_up(struct fsd_clients *clients, struct fsd_host *host, bool up)
{
	if ((host->state == HOST_UP) == up)
		return;
	assert(up || clients->stats.hosts_up > 0);
	clients->stats.hosts_up += up ? 1 : (size_t)-1;
}

/* The client has identified itself, or does not know the procedure. False: neither. */
static bool note_introduction(struct fsd_host *host, enum fsd_work_kind kind,
			      const struct fsd_answer *answer)
{
	static const struct rxw_uuid none;

	if (answer->code == RXW_RPC_OPCODE) {
		host->identified = false;
		host->asking = kind == FSD_WORK_IDENTIFY ? FSD_WORK_WHO : FSD_WORK_INIT;
		return true;
	}
	if (answer->code)
		return false;
	if (kind == FSD_WORK_IDENTIFY) {
		host->caps_known = true;
		host->caps = answer->caps;
	}
	host->uuid = answer->uuid;
	host->identified = !afs_uuid_same(&answer->uuid, &none);
	host->asking = FSD_WORK_INIT;
	return true;
}

/* The host has forgotten these volumes. Whether there may be more. */
static bool more_volumes(struct fsd_host *host, const struct fsd_work *work)
{
	if (work->count)
		host->whole_after = work->fids[work->count - 1].Volume;
	return work->count == AFSCBMAX;
}

/* The host does not answer. It will be told what it holds before it is served, or gets new promises. */
static void lose_host(struct fsd_clients *clients, struct fsd_host *host, enum fsd_work_kind kind,
		      uint64_t now)
{
	bool asked = kind == FSD_WORK_IDENTIFY || kind == FSD_WORK_WHO;

	host->ask_after = now + (asked ? SILENT_S : FAILED_S);
	clients->stats.failed += !asked;
	if (clients->options.strict)
		fsd_host_owe_all(clients, host);
	else
		fsd_host_forget_promises(clients, host);
	host->given_up = true;
	fsd_host_told(host, host->owed_total);
	fsd_host_failed(host, kind, now);
}

/* The host was told to forget everything in general: now of each promise. Its next state. */
static enum host_state tell_each(struct fsd_host *host)
{
	host->asking = FSD_WORK_BREAK;
	if (host->owed)
		return HOST_ASKED;
	host->promised_until = 0;
	return HOST_UP;
}

/* The host takes the next step after an answer. */
static void advance_host(struct fsd_clients *clients, struct fsd_host *host,
			 const struct fsd_work *work, const struct fsd_answer *answer, uint64_t now)
{
	enum fsd_work_kind kind = work->kind;
	bool asked = kind == FSD_WORK_IDENTIFY || kind == FSD_WORK_WHO;
	enum host_state next = HOST_UP;

	assert(mutex_is_held(&clients->lock));
	if (asked && note_introduction(host, kind, answer)) {
		next = HOST_ASKED;
	} else if (kind == FSD_WORK_PROBE && answer->code == ANOTHER) {
		/* The promises were given to another client at this address. */
		fsd_host_forget_promises(clients, host);
		host->caps_known = false;
		host->asking = FSD_WORK_IDENTIFY;
		next = HOST_ASKED;
	} else if (kind == FSD_WORK_INIT && !answer->code) {
		/*
		 * After FSD_WORK_INIT, Linux 6.8 and later trusts its whole cache of a volume again
		 * as soon as it gets a promise in it. After a break of a read-only volume it does
		 * not. Of a read-write volume Linux 6.12 still does: only a break of each object
		 * helps there. It follows.
		 */
		host->asking = FSD_WORK_FORGET;
		host->whole_after = 0;
		next = HOST_ASKED;
	} else if (work->whole && !answer->code && more_volumes(host, work)) {
		next = HOST_ASKED;
	} else if (answer->code && !(kind == FSD_WORK_FORGET && answer->code == RXW_RPC_OPCODE)) {
		lose_host(clients, host, kind, now);
		next = HOST_SILENT;
	} else if (kind == FSD_WORK_FORGET ||
		   (kind == FSD_WORK_BREAK && host->state == HOST_ASKED)) {
		next = tell_each(host);
	}
	set_up(clients, host, next == HOST_UP);
	host->given_up &= next != HOST_UP;
	host->state = next;
	if (next == HOST_ASKED || (next == HOST_UP && host->owed))
		fsd_host_queue(clients, host);
}

/* The promises of a call that told the host of them. */
static void end_sent(struct fsd_clients *clients, const struct fsd_work *work, bool told)
{
	struct fsd_host *host = work->host;

	if (!told) {
		fsd_host_owe_again(host);
		return;
	}
	while (host->sent)
		fsd_promise_remove(clients, host->sent);
	fsd_host_told(host, work->until);
}

/* Hosts that answer at the same time let a call wait once. */
static void note_slow_address(struct host_share *share, uint64_t begun, uint64_t now)
{
	if (now > share->slow_since + UNPROMISED_S) {
		share->slow_since = now;
		share->slow = 0;
	}
	if (begun < share->slow_upto)
		begun = share->slow_upto;
	if (begun >= now)
		return;
	share->slow += now - begun;
	share->slow_upto = now;
	if (share->slow >= SLOW_SHARE_S)
		share->unlisted_until = now + UNPROMISED_S;
}

/*
 * Calls have waited for the answer. A host that lets them wait again and again gets no promises for a while, so that
 * nobody has to wait for it.
 */
static void note_slow(struct fsd_host *host, const struct fsd_work *work, uint64_t now)
{
	if (!host->first_waiter || now < work->begun + SLOW_S)
		return;
	note_slow_address(host->share, work->begun, now);
	if (now > host->slow_since + UNPROMISED_S) {
		host->slow_since = now;
		host->slow = 0;
	}
	host->slow += now - work->begun;
	if (host->slow >= SLOW_MOST_S && host->unlisted_until < now + UNPROMISED_S)
		host->unlisted_until = now + UNPROMISED_S;
}

void fsd_work_done(struct fsd_clients *clients, const struct fsd_work *work,
		   const struct fsd_answer *answer, uint64_t now)
{
	struct fsd_host *host = work->host;
	bool breaks = work->kind == FSD_WORK_BREAK;

	pthread_mutex_lock(&clients->lock);
	assert(host->busy && host->share->busy > 0 && clients->busy > 0);
	host->busy = false;
	host->share->busy--;
	clients->busy--;
	note_slow(host, work, now);
	if (host->background) {
		assert(clients->background > 0);
		host->background = false;
		clients->background--;
	}
	if (answer->code == 0)
		host->last_answer = now;
	if (breaks)
		end_sent(clients, work, answer->code == 0);
	/*
	 * Its promises may have been reclaimed meanwhile. Then it must be told so first.
	 */
	if (host->state == HOST_ASKED && ((breaks && host->asking != FSD_WORK_BREAK) ||
					  work->kind == FSD_WORK_PROBE))
		fsd_host_queue(clients, host);
	else
		advance_host(clients, host, work, answer, now);
	if (host->awaited && host->state != HOST_ASKED)
		pthread_cond_broadcast(&clients->settled);
	pthread_mutex_unlock(&clients->lock);
	if (clients->options.wake)
		clients->options.wake(clients->options.arg);
}

void fsd_clients_check(struct fsd_clients *clients, uint64_t now)
{
	struct fsd_host *host;
	bool wake = false;
	uint64_t probe;

	pthread_mutex_lock(&clients->lock);
	/* Probe more often while clients that are gone keep promises from others. */
	probe = clients->stats.promises > clients->options.promises_max / 4 * 3 ? PRESSED_S
										: PROBE_S;
	/* In the order of their last calls. */
	for (host = clients->oldest; host && host->last_call + probe <= now; host = host->newer) {
		if (host->state != HOST_UP || !host->promise_count || host->queued || host->busy)
			continue;
		if (host->last_call + IDLE_S <= now) {
			host->quiet = true;
			fsd_host_reset(clients, host);
			wake = true;
			continue;
		} else if (host->last_answer + probe <= now) {
			host->probe = true;
		} else {
			continue;
		}
		host->quiet = true;
		fsd_host_queue(clients, host);
		wake = true;
	}
	pthread_mutex_unlock(&clients->lock);
	if (wake && clients->options.wake)
		clients->options.wake(clients->options.arg);
}

void fsd_clients_stats(struct fsd_clients *clients, struct fsd_clients_stats *stats)
{
	pthread_mutex_lock(&clients->lock);
	*stats = clients->stats;
	stats->settling = clients->settling;
	pthread_mutex_unlock(&clients->lock);
}

/* All clients may be looked at, so that is done once a second. */
size_t fsd_clients_active(struct fsd_clients *clients, uint64_t now, uint64_t seconds)
{
	const struct fsd_host *host;
	size_t n = 0;

	pthread_mutex_lock(&clients->lock);
	if (clients->active.at == now && clients->active.seconds == seconds) {
		n = clients->active.count;
		pthread_mutex_unlock(&clients->lock);
		return n;
	}
	for (host = clients->newest; host && host->last_call + seconds > now; host = host->older)
		n++;
	clients->active.at = now;
	clients->active.seconds = seconds;
	clients->active.count = n;
	pthread_mutex_unlock(&clients->lock);
	return n;
}
