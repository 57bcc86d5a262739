/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tries of a call: sites, addresses and times are tried until one answers, or the time is over
 * (K-135 to K-137).
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/net/netpath.h"
#include "client/net/tries.h"

#define HOPS_MOST     4u  /* of a volume that moves */
#define RESTARTS_MOST 2u  /* with a new connection */
#define BUSY_MOST     15u /* pauses */
#define DETOURS_MOST  8u
#define OFFLINE_STEP  5u
#define OFFLINE_MOST  60u
#define SETTLED_NS \
	((uint64_t)300 * NS_PER_S) /* a server that was down is good again after this time */
#define MEASURE_NS \
	((uint64_t)1500 * NS_PER_MS) /* the addresses of a server are compared so long at most */

static uint64_t pauses_ns(const struct cl_net *net, unsigned count)
{
	return (uint64_t)net->pause_ms * NS_PER_MS * count;
}

static struct cl_record *record_of(const struct cl_tries *t)
{
	return t->volume->record;
}

void cl_tries_start(struct cl_tries *t, struct cl_volume *volume, const struct cl_caller *caller,
		    const char *operation, const AFSFid *fid, unsigned flags,
		    struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	memset(t, 0, sizeof(*t));
	t->volume = volume;
	t->caller = caller;
	t->operation = operation;
	if (fid)
		t->fid = *fid;
	else
		t->fid.Volume = volume->id;
	t->flags = flags;
	t->stamp = stamp ? stamp : &t->own;
	memset(t->stamp, 0, sizeof(*t->stamp));
	t->failure = failure;
	t->began = cl_net_now();
	t->reason = ETIMEDOUT;
	t->site = -1;
	t->credential =
		cl_identity_credential(caller->identity, cl_cell_number(record_of(t)->cell));
	t->stamp->identity = t->credential ? t->credential->number : 0;
	if (failure)
		memset(failure, 0, sizeof(*failure));
}

static enum rxafs_origin origin_for_user(const struct cl_tries *t)
{
	if (t->origin == RXW_ORIGIN_PEER)
		return RXAFS_FROM_SERVER;
	return t->code == RXW_CALL_DEAD || t->reason == ETIMEDOUT ? RXAFS_FROM_NETWORK
								  : RXAFS_LOCALLY;
}

/* Ends it with an errno value, and says why. */
static void fail_tries(struct cl_tries *t, int number, const char *why)
{
	char where[96] = "";

	t->over = true;
	t->result = -number;
	if (!t->failure)
		return;
	if (t->sent.server)
		cl_server_text(t->sent.server, where, sizeof(where));
	cl_fail(t->failure, number, "%s of %u.%u.%u: %s%s%s", t->operation, t->fid.Volume,
		t->fid.Vnode, t->fid.Unique, where, *where ? ": " : "", why);
	t->failure->code = t->code;
	t->failure->maybe_done = t->repeated && !(t->flags & CL_READS);
	t->failure->origin = origin_for_user(t);
	t->failure->volume = t->fid.Volume;
	snprintf(t->failure->server, sizeof(t->failure->server), "%.*s",
		 (int)sizeof(t->failure->server) - 1, where);
}

/* The last try failed with a code. */
static void fail_by_code(struct cl_tries *t, int number)
{
	char why[128];

	if (t->why && t->code == RXW_PROTOCOL_ERROR && t->origin == RXW_ORIGIN_LOCAL)
		snprintf(why, sizeof(why), "%s", t->why);
	else
		snprintf(why, sizeof(why), "%s (code %d)", rxw_code_text_from(t->code, t->origin),
			 t->code);
	fail_tries(t, number, why);
}

/* The time is over, or the operation was cancelled. */
static void fail_waiting(struct cl_tries *t, int rc)
{
	if (rc == -EINTR)
		fail_tries(t, EINTR, "interrupted");
	else if (t->code)
		fail_by_code(t, t->reason);
	else
		fail_tries(t, t->reason, "no server of the volume answers");
}

/* ---- sites ---- */

/* A search for a site, under the record's lock. */
struct search {
	struct cl_tries *t;
	struct cl_server *server;
	int site;
	bool any;      /* a site of this type exists */
	bool down;     /* one that was not tried is down */
	uint64_t next; /* the earliest end of a pause; 0 = none */
};

/* The site of a volume at a server. -1: it is none any more. */
static int find_site_at(const struct cl_volume *volume, const struct cl_server *server)
{
	const struct cl_record *record = volume->record;

	for (unsigned i = 0; i < record->site_count; i++)
		if (record->sites[i].server == server &&
		    cl_site_serves(&record->sites[i], volume->type))
			return (int)i;
	return -1;
}

/* Ranks of sites that are for times when there is no other, above all round trips. */
#define RANK_UNSETTLED ((uint64_t)1 << 40) /* was down a short time ago */
#define RANK_BEHIND    ((uint64_t)1 << 41) /* by the marks of a release */
#define RANK_OTHER     ((uint64_t)1 << 42) /* has shown an older release, or one that is too new */
#define RANK_GONE      ((uint64_t)1 << 43) /* does not have the volume */

/*
 * How good a site is, less is better: the shorter round trip, but for the one in use only if the
 * difference is a fifth (K-136).
 */
static uint64_t rank_site(const struct cl_volume *volume, unsigned i)
{
	const struct cl_releases *releases = &volume->releases;
	const struct cl_site *site = &volume->record->sites[i];
	uint64_t up_since = atomic_load(&site->server->up_since), rank;

	pthread_mutex_lock(&site->server->lock);
	rank = site->server->addresses[site->server->current].rtt_us;
	pthread_mutex_unlock(&site->server->lock);
	rank = (rank ? rank : UINT32_MAX) * 10;
	if (volume->last == (int)i)
		rank = rank * 8 / 10;
	else if (up_since && cl_net_now() < up_since + SETTLED_NS)
		rank |= RANK_UNSETTLED;
	if (site->behind)
		rank |= RANK_BEHIND;
	if (releases->date[i] && releases->date[i] != releases->current)
		rank |= RANK_OTHER;
	if (volume->gone & 1u << i)
		rank |= RANK_GONE;
	return rank * 16 + (i + volume->record->net->spread) % NMAXNSERVERS;
}

/* A site can be asked now: it was not tried, is not known to be down, and nobody has to leave it in peace. */
static bool can_ask_site(const struct cl_tries *t, unsigned i)
{
	const struct cl_volume *volume = t->volume;

	return (volume->pause[i].until <= cl_net_now() || t->flags & CL_NOW) &&
	       !(t->tried & 1u << i) && !atomic_load(&volume->record->sites[i].server->down);
}

static void search_sites(struct search *s)
{
	struct cl_volume *volume = s->t->volume;
	struct cl_record *record = volume->record;
	uint64_t now = cl_net_now(), best = UINT64_MAX;

	assert(mutex_is_held(&record->lock));
	/* Indexes of sites mean others now. */
	if (s->t->version != record->version) {
		s->t->version = record->version;
		s->t->tried = s->t->aside = 0;
	}
	s->server = NULL;
	s->any = s->down = false;
	s->next = 0;
	for (unsigned i = 0; i < record->site_count; i++) {
		uint64_t rank;

		if (!cl_site_serves(&record->sites[i], volume->type))
			continue;
		s->any = true;
		if (volume->pause[i].until > now && !(s->t->flags & CL_NOW)) {
			if (!s->next || volume->pause[i].until < s->next)
				s->next = volume->pause[i].until;
			continue;
		}
		if (s->t->tried & 1u << i)
			continue;
		if (atomic_load(&record->sites[i].server->down)) {
			s->down = true;
			cl_probes_hurry(record->sites[i].server);
			continue;
		}
		rank = rank_site(volume, i);
		if (rank < best) {
			best = rank;
			s->server = record->sites[i].server;
			s->site = (int)i;
		}
	}
}

/* Sites with a release that is too new are asked again once there is no other. */
static bool find_site(void *arg)
{
	struct search *s = arg;
	struct cl_record *record = record_of(s->t);

	pthread_mutex_lock(&record->lock);
	search_sites(s);
	if (!s->server && s->t->aside) {
		s->t->tried &= ~s->t->aside;
		s->t->aside = 0;
		search_sites(s);
	}
	pthread_mutex_unlock(&record->lock);
	return s->server != NULL;
}

/* The time until which this operation waits for a site. 0 = without end. */
static uint64_t end_of_waits(const struct cl_tries *t)
{
	const struct cl_net *net = record_of(t)->net;
	uint64_t end =
		net->soft_ms == UINT32_MAX ? 0 : t->began + (uint64_t)net->soft_ms * NS_PER_MS;

	/* A volume that is off line, or not where it should be. */
	if (t->reason == EIO || t->reason == ENODEV) {
		uint64_t offline = t->began + pauses_ns(net, OFFLINE_MOST);

		end = !end || offline < end ? offline : end;
	}
	if (t->caller->deadline && (!end || t->caller->deadline < end))
		end = t->caller->deadline;
	return end;
}

/* Whether a server was silent for so long that the caller of one round hears of it before others are asked. */
static bool is_round_over(const struct cl_tries *t)
{
	const struct cl_net *net = record_of(t)->net;

	return net->one_round && t->lost && net->soft_ms != UINT32_MAX &&
	       cl_net_now() >= t->began + (uint64_t)net->soft_ms * NS_PER_MS;
}

/*
 * Ask the location service again, once in an operation. True: the sites are others now, or the volume exists no longer, and the
 * operation is over.
 */
static bool refresh_once(struct cl_tries *t)
{
	bool changed = false;

	if (t->refreshed || is_round_over(t) ||
	    (record_of(t)->net->one_round &&
	     cl_location_silent(record_of(t)->net, record_of(t)->cell)))
		return false;
	t->refreshed = true;
	/* A record that was fetched after this call was sent is new to it. */
	if (cl_record_refresh(t->volume, t->sent.at ? t->sent.at : t->began, t->caller, &changed,
			      NULL) != -ENODEV)
		return changed;
	fail_tries(t, ENODEV, "the volume does not exist any more");
	return true;
}

/*
 * No site can be asked now: wait until one can. A pause that ends, a server that answers again, and
 * other sites in the record end the wait. False: the operation is over.
 */
static bool wait_for_site(struct cl_tries *t, struct search *s)
{
	struct cl_net *net = record_of(t)->net;
	uint64_t end = end_of_waits(t), until;
	int rc;

	if (refresh_once(t))
		return true;
	if (!s->any) {
		fail_tries(t, ENODEV, "no server has it");
		return false;
	}
	if (net->one_round || (end && cl_net_now() >= end)) {
		fail_waiting(t, -ETIMEDOUT);
		return false;
	}
	/* Another round: what was tried may be tried again after a pause. */
	if (t->tried || (!s->next && !s->down)) {
		uint64_t next = cl_net_now() + pauses_ns(net, 1);

		if (!s->next || next < s->next)
			s->next = next;
	}
	until = s->next && (!end || s->next < end) ? s->next : end;
	rc = cl_wait(net, t->caller->cancel, until, find_site, s);
	t->tried = 0;
	if (rc == 0 || (rc == -ETIMEDOUT && (!end || cl_net_now() < end)))
		return true;
	fail_waiting(t, rc);
	return false;
}

/* ---- tokens ---- */

/*
 * The token is of no use any more (K-131): a newer one, anonymous for what only reads, or the end. Without a code the
 * clock tells that it is over.
 */
static void replace_credential(struct cl_tries *t, int number)
{
	struct cl_net *net = record_of(t)->net;
	uint32_t cell = cl_cell_number(record_of(t)->cell);

	cl_credential_unref(t->credential);
	t->credential = NULL;
	t->stamp->identity = 0;
	if (!t->renewed && net->ops.renew && net->ops.renew(net->arg, t->caller->identity, cell)) {
		t->renewed = true;
		t->credential = cl_identity_credential(t->caller->identity, cell);
		if (t->credential && !cl_credential_expired(t->credential)) {
			t->stamp->identity = t->credential->number;
			return;
		}
		cl_credential_unref(t->credential);
		t->credential = NULL;
	}
	/* Whoever repeats calls himself has to hear that his token is over. */
	if (t->flags & CL_READS && !net->one_round)
		t->anonymous = true;
	else if (t->code)
		fail_by_code(t, number);
	else
		fail_tries(t, number, "the token has expired");
}

/* ---- a try ---- */

/* The address that answers first is used: compare them before the first call. */
static bool is_measured(void *arg)
{
	return atomic_load(&((struct cl_server *)arg)->probed);
}

static int measure_addresses(struct cl_tries *t, struct cl_server *server)
{
	if (is_measured(server))
		return 0;
	cl_probes_hurry(server);
	return cl_wait(record_of(t)->net, t->caller->cancel, cl_net_now() + MEASURE_NS, is_measured,
		       server);
}

/* The sites of a volume that were never asked, under the record's lock. Their number. */
static unsigned list_new_sites(const struct cl_volume *volume,
			       struct cl_server *servers[NMAXNSERVERS], unsigned *known)
{
	const struct cl_record *record = volume->record;
	unsigned count = 0;

	*known = 0;
	for (unsigned i = 0; i < record->site_count; i++) {
		struct cl_server *server = record->sites[i].server;

		if (!cl_site_serves(&record->sites[i], volume->type))
			continue;
		if (atomic_load(&server->heard_at) || atomic_load(&server->down))
			++*known;
		else
			servers[count++] = server;
	}
	return count;
}

/* The first of several sites has answered. */
static bool has_known_site(void *arg)
{
	struct cl_volume *volume = arg;
	struct cl_server *servers[NMAXNSERVERS];
	unsigned known;

	pthread_mutex_lock(&volume->record->lock);
	list_new_sites(volume, servers, &known);
	pthread_mutex_unlock(&volume->record->lock);
	return known > 0;
}

/*
 * Before the first call on a volume with several sites: ask all of them, to use the nearest
 * (K-132).
 */
static void compare_sites(struct cl_tries *t)
{
	struct cl_record *record = record_of(t);
	struct cl_server *servers[NMAXNSERVERS];
	unsigned count = 0, known = 0;

	pthread_mutex_lock(&record->lock);
	if (t->volume->last < 0)
		count = list_new_sites(t->volume, servers, &known);
	pthread_mutex_unlock(&record->lock);
	if (count == 0 || count + known < 2)
		return;
	for (unsigned i = 0; i < count; i++) {
		atomic_store(&servers[i]->probed, false);
		cl_probes_hurry(servers[i]);
	}
	cl_wait(record->net, t->caller->cancel, cl_net_now() + MEASURE_NS, has_known_site,
		t->volume);
}

/* Whole milliseconds for the call; 0 = no limit. -1: the time is over. */
static int64_t remaining_call_ms(const struct cl_tries *t)
{
	uint64_t now = cl_net_now();

	if (!t->caller->deadline)
		return 0;
	if (now >= t->caller->deadline)
		return -1;
	return (int64_t)((t->caller->deadline - now) / NS_PER_MS) + 1;
}

static rxw_code end_try(struct cl_tries *t, rxw_code code, unsigned function)
{
	code = cl_server_end(&t->sent, code, function, &t->origin);
	cl_load_end(&t->sent.read);
	return code;
}

/* Over a path that the user has named, if he has. 0 or a negative result of the library; 1: there is no such path. */
static int begin_named(struct cl_tries *t, struct cl_server *server, unsigned ms, unsigned flags,
		       struct cl_long_read *read)
{
	int rc;

	if (!read->path && !cl_path_take_named(server, &read->named))
		return 1;
	rc = cl_server_begin(server, t->credential, ms, flags, t->flags & CL_READS, read, &t->sent);
	if (read->named)
		cl_path_put(read->named);
	read->named = NULL;
	return rc;
}

/* Whether another site has the same and is not known to be down. */
static bool has_spare_site(const struct cl_tries *t)
{
	struct cl_record *record = record_of(t);
	unsigned found = 0;

	if (!(t->flags & CL_READS) || t->volume->type != AFS_VL_RO)
		return false;
	pthread_mutex_lock(&record->lock);
	for (unsigned i = 0; i < record->site_count; i++)
		found += (int)i != t->site && cl_site_serves(&record->sites[i], AFS_VL_RO) &&
			 !(t->volume->gone & 1u << i) && !record->sites[i].behind &&
			 !atomic_load(&record->sites[i].server->down);
	pthread_mutex_unlock(&record->lock);
	return found > 0;
}

/*
 * A server that lives can keep a call for long: OpenAFS's does so while it waits for its own clients. Once in an operation another site
 * is asked instead, as if it were dead.
 */
static void limit_try(struct cl_tries *t)
{
	if (!t->spared && has_spare_site(t))
		atomic_store(&t->sent.spare, true);
}

/* Begin a call to a server. False: not now. */
static bool begin_try(struct cl_tries *t, struct cl_server *server)
{
	int64_t ms = remaining_call_ms(t);
	struct cl_long_read read = {0};
	int rc;

	if (ms < 0 || measure_addresses(t, server) == -EINTR) {
		fail_waiting(t, ms < 0 ? -ETIMEDOUT : -EINTR);
		return false;
	}
	if (t->bytes && t->detours < DETOURS_MOST && cl_load_choose(server, t->bytes, &read))
		rxw_queue_post(server->net->probing, NULL);
	rc = begin_named(t, server, (unsigned)ms, 0, &read);
	if (rc == 0) {
		/* cl_net_cancel_all() aborts the calls that it finds. */
		if (!atomic_load(&server->net->cancelled) &&
		    (!(t->flags & CL_READS) ||
		     cl_cancel_attach(t->caller->cancel, t->sent.call) == 0)) {
			limit_try(t);
			return true;
		}
		t->sent.server = server;
		end_try(t, RXW_USER_ABORT, 0);
		fail_waiting(t, -EINTR);
		return false;
	}
	cl_load_end(&read);
	if (rc == -RXW_ECALL && t->restarts++ < RESTARTS_MOST)
		return false;
	t->sent.server = server;
	if (rc == -RXW_ESTOPPED || atomic_load(&server->net->cancelled))
		fail_waiting(t, -EINTR);
	else if (rc > 0)
		fail_tries(t, EADDRNOTAVAIL, "none of the paths that may be used leads there");
	else if (rc == -RXW_ETIMEDOUT)
		fail_waiting(t, -ETIMEDOUT);
	else
		fail_tries(t, rc == -RXW_ENOMEM ? ENOMEM : EIO, rxw_strerror(rc));
	return false;
}

bool cl_tries_same(struct cl_tries *t)
{
	assert(t->over && !t->result && !t->sent.call);
	t->over = false;
	return begin_try(t, t->sent.server);
}

bool cl_tries_ahead(struct cl_tries *t, const struct cl_tries *first)
{
	int64_t ms = remaining_call_ms(t);

	assert(first->sent.call && t->flags == first->flags);
	t->site = first->site;
	t->version = first->version;
	return ms >= 0 && !(t->credential && cl_credential_expired(t->credential)) &&
	       begin_named(t, first->sent.server, (unsigned)ms, RXW_CALL_TRY,
			   &(struct cl_long_read){0}) == 0;
}

bool cl_tries_attach(struct cl_tries *t)
{
	return !atomic_load(&t->sent.server->net->cancelled) &&
	       (!(t->flags & CL_READS) || cl_cancel_attach(t->caller->cancel, t->sent.call) == 0);
}

/* Whether servers were dead for so long that the caller of one round hears of it before the others are asked. */
static bool is_search_over(const struct cl_tries *t)
{
	const struct cl_net *net = record_of(t)->net;

	return net->one_round && t->lost && net->soft_ms != UINT32_MAX &&
	       cl_net_now() > t->lost + (uint64_t)net->soft_ms * NS_PER_MS;
}

bool cl_tries_next(struct cl_tries *t)
{
	while (!t->over) {
		struct search s = {.t = t};
		int rc;

		if (cl_cancel_raised(t->caller->cancel) ||
		    atomic_load(&record_of(t)->net->cancelled)) {
			fail_waiting(t, -EINTR);
			break;
		}
		if (t->credential && cl_credential_expired(t->credential)) {
			replace_credential(t, EKEYEXPIRED);
			continue;
		}
		rc = cl_record_renew(t->volume, t->caller, t->failure);
		if (rc < 0) {
			t->over = true;
			t->result = rc;
			break;
		}
		compare_sites(t);
		if (!find_site(&s)) {
			wait_for_site(t, &s);
			continue;
		}
		if (is_search_over(t)) {
			fail_waiting(t, -ETIMEDOUT);
			break;
		}
		t->site = s.site;
		if (begin_try(t, s.server))
			return true;
	}
	return false;
}

/* ---- verdicts ---- */

/* A site has refused: for a while nobody asks it. All who wait for it wait for the same time. */
static void pause_site(struct cl_tries *t, unsigned least, unsigned most)
{
	struct cl_record *record = record_of(t);
	struct cl_pause *pause = &t->volume->pause[t->site];
	uint64_t now = cl_net_now(), wait;
	uint8_t jitter = 128;
	unsigned pauses;

	if (record->net->one_round) {
		t->tried |= 1u << t->site;
		return;
	}
	if (getrandom(&jitter, sizeof(jitter), GRND_NONBLOCK) < 0)
		jitter = 128;
	pthread_mutex_lock(&record->lock);
	if (t->version == record->version && pause->until <= now) {
		pauses = least << (pause->step < 4 ? pause->step : 4);
		pauses = pauses < most ? pauses : most;
		wait = pauses_ns(record->net, pauses);
		/* From 0.9 to 1.1 of it. */
		pause->until = now + wait * 9 / 10 + wait / 5 * jitter / 256;
		pause->step++;
	}
	pthread_mutex_unlock(&record->lock);
}

/*
 * The server does not have the volume, or says where it went. The location service is asked each time, since a volume may move again. If it
 * says nothing new, the pause comes first.
 */
static void follow_volume(struct cl_tries *t, enum cl_verdict verdict, int number)
{
	if (verdict == CL_VERDICT_MOVED && t->hops++ >= HOPS_MOST) {
		fail_by_code(t, number);
		return;
	}
	t->refreshed = false;
	if (refresh_once(t)) {
		t->tried = 0;
		return;
	}
	t->tried |= 1u << t->site;
	pause_site(t, OFFLINE_STEP, OFFLINE_STEP);
}

bool cl_tries_elsewhere(struct cl_tries *t)
{
	struct search s = {.t = t};

	t->tried |= 1u << t->site;
	return find_site(&s);
}

/* Once in each time off-line: users see that they wait, and the reason that the administrator gave. */
static void tell_offline(struct cl_tries *t)
{
	struct cl_volume *volume = t->volume;
	struct cl_volume_status *status;
	const char *reason = "";

	if (atomic_exchange(&volume->offline_told, true))
		return;
	status = malloc(sizeof *status);
	if (status && cl_net_fetch_volume_status(volume, t->caller, status, NULL) == 0)
		reason = status->offline;
	cl_net_note(record_of(t)->net, "volume %s of cell %s is off-line%s%.200s",
		    cl_record_name(record_of(t)), cl_cell_name(record_of(t)->cell),
		    *reason ? ": " : "", reason);
	free(status);
}

/* Once for each token. It may be over; or the clocks of server and KDC differ, which only this line tells. */
static void note_refusal(struct cl_tries *t)
{
	char where[96];

	if (atomic_exchange(&t->credential->refused, true))
		return;
	cl_net_note(record_of(t)->net, "server %s of cell %s refuses a token: %s",
		    cl_server_text(t->sent.server, where, sizeof(where)),
		    cl_cell_name(record_of(t)->cell), rxw_code_text_from(t->code, t->origin));
}

/* The site has given no answer. */
static void note_refused_site(struct cl_tries *t, enum cl_verdict verdict)
{
	struct cl_volume *volume = t->volume;
	int site;

	if (verdict == CL_VERDICT_FINAL || verdict == CL_VERDICT_MISSING ||
	    verdict == CL_VERDICT_EXPIRED)
		return;
	pthread_mutex_lock(&volume->record->lock);
	site = find_site_at(volume, t->sent.server);
	if (site >= 0 && !volume->refused[site])
		volume->refused[site] = cl_net_now();
	if (site >= 0 && verdict == CL_VERDICT_GONE)
		volume->gone |= 1u << site;
	pthread_mutex_unlock(&volume->record->lock);
}

/* After a failure: what is to be done. */
static void follow_verdict(struct cl_tries *t, enum cl_verdict verdict, int number)
{
	switch (verdict) {
	case CL_VERDICT_SILENT:
		t->lost = t->lost ? t->lost : cl_net_now();
		/* fall through */
	case CL_VERDICT_ELSEWHERE:
		t->reason = number;
		t->tried |= 1u << t->site;
		t->spared |= t->code == RXW_CALL_TIMEOUT && atomic_load(&t->sent.spare);
		/* It ends no call: for a while others are asked. */
		if (t->code == RXW_CALL_TIMEOUT && t->volume->type == AFS_VL_RO &&
		    cl_tries_elsewhere(t))
			pause_site(t, 1, BUSY_MOST);
		return;
	case CL_VERDICT_BUSY:
		if (t->flags & CL_NOW)
			break;
		t->reason = number;
		pause_site(t, 1, BUSY_MOST);
		return;
	case CL_VERDICT_OFFLINE:
		if (t->flags & CL_NOW)
			break;
		t->reason = number;
		pause_site(t, OFFLINE_STEP, OFFLINE_STEP);
		tell_offline(t);
		return;
	case CL_VERDICT_GONE:
	case CL_VERDICT_MOVED:
		t->reason = number;
		follow_volume(t, verdict, number);
		return;
	case CL_VERDICT_DAMAGED:
		if (t->volume->type == AFS_VL_RO && cl_tries_elsewhere(t))
			return;
		break;
	case CL_VERDICT_EXPIRED:
		if (!t->credential)
			break;
		note_refusal(t);
		cl_server_drop_lanes(t->sent.server, t->credential);
		replace_credential(t, number);
		return;
	case CL_VERDICT_GARBLED:
		if (t->restarts++ >= RESTARTS_MOST)
			break;
		cl_server_drop_lanes(t->sent.server, t->credential);
		return;
	case CL_VERDICT_MISSING:
		if (!t->alternative)
			break;
		atomic_fetch_or(&t->sent.server->missing, t->alternative);
		return;
	case CL_VERDICT_FINAL:
		break;
	}
	fail_by_code(t, number);
}

/* ---- releases ---- */

/* Whether a site answers for the volume, or has done so a short time ago. */
static bool is_site_near(const struct cl_volume *volume, unsigned i, uint64_t now)
{
	const struct cl_net *net = volume->record->net;
	const struct cl_server *server = volume->record->sites[i].server;
	uint64_t soft =
		net->soft_ms == UINT32_MAX ? UINT64_MAX / 2 : (uint64_t)net->soft_ms * NS_PER_MS;

	if (volume->gone & 1u << i || (volume->refused[i] && now >= volume->refused[i] + soft))
		return false;
	return !atomic_load(&server->down) || now < atomic_load(&server->down_since) + soft;
}

static void list_release_sites(const struct cl_tries *t, struct cl_release_sites *sites)
{
	const struct cl_volume *volume = t->volume;
	struct cl_record *record = volume->record;
	uint64_t now = cl_net_now();

	assert(mutex_is_held(&record->lock));
	*sites = (struct cl_release_sites){.settled = t->release_known || volume->type != AFS_VL_RO,
					   .since = t->began};
	for (unsigned i = 0; i < record->site_count; i++) {
		uint32_t bit = 1u << i;

		if (!cl_site_serves(&record->sites[i], volume->type))
			continue;
		sites->all |= bit;
		sites->marked |= cl_site_marked(&record->sites[i]) ? bit : 0;
		sites->near |= is_site_near(volume, i, now) ? bit : 0;
		sites->open |= can_ask_site(t, i) ? bit : 0;
	}
}

/* The release of an answer, beside those of other sites. */
static enum cl_release_verdict judge_release(struct cl_tries *t, int site, uint32_t date)
{
	struct cl_volume *volume = t->volume;
	uint32_t before = volume->releases.current;
	const struct cl_release_answer answer = {
		.site = (unsigned)site, .date = date, .asked = t->sent.at, .heard = cl_net_now()};
	struct cl_release_sites sites;
	enum cl_release_verdict verdict;

	/* Its server has no copy any more. */
	if (site < 0)
		return date == before ? CL_RELEASE_TAKE : CL_RELEASE_LATE;
	list_release_sites(t, &sites);
	verdict = cl_release_judge(&volume->releases, &answer, &sites);
	if (volume->releases.current != before)
		volume->release = 1 + atomic_fetch_add(&volume->record->net->releases, 1);
	return verdict;
}

/* The site has answered: it is used from now on, if it has the release that is shown. */
static enum cl_release_verdict accept_site(struct cl_tries *t)
{
	struct cl_volume *volume = t->volume;
	uint32_t date = t->stamp->sync.spare1;
	enum cl_release_verdict verdict = CL_RELEASE_TAKE;
	int site;

	pthread_mutex_lock(&volume->record->lock);
	site = find_site_at(volume, t->sent.server);
	if (site >= 0)
		volume->gone &= ~(1u << site);
	if (volume->type != AFS_VL_RW && date)
		verdict = judge_release(t, site, date);
	if (verdict == CL_RELEASE_TAKE || verdict == CL_RELEASE_BACK) {
		t->stamp->release = volume->type != AFS_VL_RW && date ? volume->release : 0;
		if (site >= 0) {
			volume->last = site;
			volume->refused[site] = 0;
		}
		if (site >= 0 && !(t->flags & CL_NOW)) {
			volume->pause[site] = (struct cl_pause){0};
			atomic_store(&volume->offline_told, false);
		}
	}
	pthread_mutex_unlock(&volume->record->lock);
	return verdict;
}

static void note_older_release(const struct cl_tries *t)
{
	char where[96];

	cl_net_note(
		record_of(t)->net,
		"volume %s of cell %s: no server with its last release answers, server %s has an older one",
		cl_record_name(record_of(t)), cl_cell_name(record_of(t)->cell),
		cl_server_text(t->sent.server, where, sizeof(where)));
}

/* A call has succeeded. */
static void note_success(struct cl_tries *t)
{
	struct cl_stamp *stamp = t->stamp;

	switch (accept_site(t)) {
	case CL_RELEASE_BACK:
		note_older_release(t);
		break;
	case CL_RELEASE_TAKE:
		break;
	case CL_RELEASE_MARKS:
		t->release_known = true;
		atomic_store(&record_of(t)->stale, true);
		return;
	case CL_RELEASE_ASIDE:
		t->tried |= 1u << t->site;
		t->aside |= 1u << t->site;
		return;
	case CL_RELEASE_OLD:
		t->reason = ETIMEDOUT;
		t->tried |= 1u << t->site;
		pause_site(t, 1, BUSY_MOST);
		return;
	case CL_RELEASE_LATE:
		return;
	}
	stamp->sent = t->sent.at;
	stamp->received = cl_net_now();
	stamp->server = t->sent.server->number;
	stamp->resets = t->sent.resets;
	stamp->repeated = t->repeated;
	cl_server_promised(t->sent.server, &t->fid, &stamp->callback, 1);
	t->over = true;
}

/*
 * A server that was killed after it had done a change, and started again, gets the request a second
 * time, since its client sends it again until there is an answer. The answer is then about the
 * result of the first.
 */
static bool is_second_answer(const struct cl_tries *t)
{
	return (t->flags & CL_ONCE) && t->sent.resent &&
	       (t->result == -EEXIST || t->result == -ENOENT || t->result == -EAGAIN);
}

void cl_tries_judge(struct cl_tries *t, rxw_code code, unsigned function)
{
	enum cl_verdict verdict;
	int number;

	if (code == 0 && !cl_answer_ended(t->sent.call)) {
		cl_tries_reject(t, "its answer is too long");
		code = RXW_USER_ABORT;
	}
	if (t->flags & CL_READS)
		cl_cancel_detach(t->caller->cancel);
	t->code = end_try(t, code, function);
	if (t->over)
		return;
	if (t->code == 0) {
		note_success(t);
		return;
	}
	if (t->origin != RXW_ORIGIN_PEER &&
	    (cl_cancel_raised(t->caller->cancel) || atomic_load(&t->sent.server->net->cancelled))) {
		fail_waiting(t, -EINTR);
	} else if (t->origin == RXW_ORIGIN_LOCAL && t->code == RXW_CALL_TIMEOUT &&
		   remaining_call_ms(t) < 2 && t->caller->deadline) {
		fail_by_code(t, ETIMEDOUT);
	} else if (t->sent.lost && t->origin == RXW_ORIGIN_LOCAL && t->detours++ < DETOURS_MOST) {
		return;
	} else {
		verdict = cl_verdict_of(t->code, t->origin, &number);
		if (cl_verdict_unknown(t->code, t->origin)) {
			t->repeated = true;
			if (t->flags & CL_ONCE) {
				fail_by_code(t, ETIMEDOUT);
				return;
			}
		}
		note_refused_site(t, verdict);
		follow_verdict(t, verdict, number);
		if (t->over && t->failure && is_second_answer(t))
			t->failure->maybe_done = true;
		return;
	}
	if (t->failure)
		t->failure->maybe_done = !(t->flags & CL_READS);
}

void cl_tries_stop(struct cl_tries *t, int result)
{
	t->over = true;
	t->result = result;
}

void cl_tries_reject(struct cl_tries *t, const char *why)
{
	fail_tries(t, EIO, why);
	if (t->failure)
		t->failure->maybe_done = !(t->flags & CL_READS);
}

int cl_tries_result(struct cl_tries *t)
{
	assert(t->over && !t->sent.call);
	cl_credential_unref(t->credential);
	return t->result;
}

uint32_t cl_tries_creation(const struct cl_tries *t)
{
	struct cl_record *record = record_of(t);
	uint32_t creation = 0;

	pthread_mutex_lock(&record->lock);
	if (t->version == record->version)
		creation = t->volume->releases.date[t->site];
	pthread_mutex_unlock(&record->lock);
	return creation;
}

bool cl_tries_choose(struct cl_tries *t)
{
	struct cl_record *record = record_of(t);
	struct cl_server *servers[NMAXNSERVERS];
	unsigned known, count;

	pthread_mutex_lock(&record->lock);
	count = list_new_sites(t->volume, servers, &known);
	pthread_mutex_unlock(&record->lock);
	return count + known > 1;
}

bool cl_tries_lacks(const struct cl_tries *t, enum cl_missing call)
{
	return atomic_load(&t->sent.server->missing) & call;
}
