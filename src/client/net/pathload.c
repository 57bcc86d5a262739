/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>

#include "afs/address.h"
#include "client/net/netpath.h"

#define GUESS	    12.5e6			/* bytes in a second, while nothing was measured */
#define MEASURE_NS  ((uint64_t)200 * NS_PER_MS) /* P-063 */
#define LEARNED	    3u				/* such measurements tell the rate */
#define SILENT_NS   ((uint64_t)50 * NS_PER_MS)	/* P-066 and P-067 */
#define ANSWER_NS   ((uint64_t)20 * NS_PER_MS)
#define DEAD_NS	    ((uint64_t)NS_PER_S)
#define LOOK_NS	    ((uint64_t)CL_LOAD_MS * NS_PER_MS)
#define STILL_NS    ((uint64_t)NS_PER_S)
#define BESIDE_NS   ((uint64_t)250 * NS_PER_MS) /* while another path brings bytes */
#define LATE_S	    1.0				/* another path must save so much at least */
#define PROBE_NS    ((uint64_t)250 * NS_PER_MS)
#define SELDOM_NS   ((uint64_t)2 * NS_PER_S) /* after: */
#define FAILURES    20u			     /* probes in a row */
#define PROBES_MOST 16u			     /* of a path, in progress */
#define WANTED_NS   ((uint64_t)NS_PER_S)
#define BACK_NS	    ((uint64_t)60 * NS_PER_S)
#define SHARE_NS    ((uint64_t)125 * NS_PER_MS) /* one read of several takes so long, or */
#define SHARE_RTTS  4u

/* ---- choosing ---- */

static double find_best_rate(const struct cl_server *server)
{
	double best = 0;

	for (unsigned i = 0; i < server->path_count; i++)
		if (server->paths[i]->rate > best)
			best = server->paths[i]->rate;
	return best > 0 ? best : GUESS;
}

/*
 * When a path would have brought so many bytes more, in seconds. One whose rate is not known yet is taken for a good one, but gets one read
 * at a time.
 */
static double expect_bytes(const struct cl_path *path, uint64_t bytes, double best)
{
	double rate = path->load.measured < LEARNED ? best : path->rate;

	if (path->load.measured < LEARNED && path->load.flying && path->rate < best)
		rate = path->rate > 0 ? path->rate : best / 10;
	return (double)path->rtt_ns / NS_PER_S + (double)(path->load.missing + bytes) / rate;
}

/* A private address may lead to another server, which has a file of this number with the same version. */
static bool is_stranger(const struct cl_server *server, const struct cl_path *path)
{
	const struct sockaddr_storage *used = &server->addresses[server->current].sa;

	for (unsigned i = 0; path->load.started && i < server->path_count; i++) {
		const struct cl_path *first = server->paths[i];

		if (!first->way.local_len && afs_same_address(&first->way.sa, used))
			return first->load.started && first->load.started != path->load.started;
	}
	return false;
}

static bool carries_reads(const struct cl_server *server, const struct cl_path *path)
{
	return path->state == CL_PATH_LIVE && !path->gone && !is_stranger(server, path);
}

/* Of those that live; `but` is none of them. */
static struct cl_path *find_soonest(struct cl_server *server, uint64_t bytes,
				    const struct cl_path *but)
{
	struct cl_path *soonest = NULL;
	double best = find_best_rate(server);

	assert(mutex_is_held(&server->lock));
	for (unsigned i = 0; i < server->path_count; i++) {
		struct cl_path *path = server->paths[i];

		if (carries_reads(server, path) && path != but &&
		    (!soonest ||
		     expect_bytes(path, bytes, best) < expect_bytes(soonest, bytes, best)))
			soonest = path;
	}
	return soonest;
}

static bool has_long_reads(const struct cl_server *server)
{
	for (unsigned i = 0; i < server->path_count; i++)
		if (server->paths[i]->load.flying || server->paths[i]->load.brief)
			return true;
	return false;
}

/* One more read begins over a path. */
static void add_read(struct cl_path *path, const struct cl_long_read *read)
{
	struct cl_path_load *load = &path->load;

	assert(mutex_is_held(&path->server->lock));
	path->refs++;
	load->missing += read->missing;
	if (load->flying + load->brief == 0)
		load->heard = read->heard;
	if (read->brief)
		load->brief++;
	else if (load->flying++ == 0)
		load->since = read->heard;
}

bool cl_load_choose(struct cl_server *server, uint64_t bytes, struct cl_long_read *read)
{
	struct cl_path *list[CL_PATHS], *path = NULL;
	unsigned count = cl_paths_take(server, list);
	bool brief = bytes < CL_LONG_READ, first;

	pthread_mutex_lock(&server->lock);
	*read = (struct cl_long_read){
		.brief = brief, .missing = brief ? 0 : bytes, .heard = cl_net_now()};
	first = !has_long_reads(server);
	if (count > 1 && !(brief && carries_reads(server, list[0])))
		path = find_soonest(server, bytes, NULL);
	if (count > 1) {
		read->path = path ? path : list[0];
		add_read(read->path, read);
	}
	pthread_mutex_unlock(&server->lock);
	for (unsigned i = 0; i < count; i++)
		cl_path_put(list[i]);
	return read->path && first;
}

/* Before the first long read: paths that were never asked whether they live are asked. True: there are some. */
static bool want_new_paths(struct cl_server *server)
{
	bool found = false;

	assert(mutex_is_held(&server->lock));
	for (unsigned i = 0; server->path_count > 1 && i < server->path_count; i++) {
		struct cl_path *path = server->paths[i];

		if (path->probed || path->load.asked)
			continue;
		path->load.wanted = cl_net_now();
		found = true;
	}
	return found;
}

/* A path that fell silent a short time ago may come back: until then reads are as short as if it were there. */
static bool may_come_back(const struct cl_path *path, uint64_t now)
{
	return path->bytes && !path->gone && now < path->measured_at + BACK_NS;
}

unsigned cl_load_paths(struct cl_server *server, uint64_t *share)
{
	struct cl_path *list[CL_PATHS];
	unsigned count = cl_paths_take(server, list), known;
	double bytes;
	bool new;

	for (unsigned i = 0; i < count; i++)
		cl_path_put(list[i]);
	count = known = 0;
	*share = CL_LONG_READ;
	pthread_mutex_lock(&server->lock);
	new = want_new_paths(server);
	for (unsigned i = 0; i < server->path_count; i++) {
		const struct cl_path *path = server->paths[i];
		uint64_t time = SHARE_RTTS * path->rtt_ns;

		known += carries_reads(server, path) || may_come_back(path, cl_net_now());
		if (!carries_reads(server, path))
			continue;
		count++;
		bytes = path->rate * (double)(time > SHARE_NS ? time : SHARE_NS) / NS_PER_S;
		if (bytes > (double)*share)
			*share = (uint64_t)bytes;
	}
	pthread_mutex_unlock(&server->lock);
	if (new)
		rxw_queue_post(server->net->probing, NULL);
	if (known < 2)
		*share = 0;
	return count ? count : 1;
}

/* ---- bytes ---- */

static void measure_load(struct cl_path *path, uint64_t now)
{
	struct cl_path_load *load = &path->load;
	uint64_t time = load->worked + now - load->since, span = 4 * path->rtt_ns;
	double rate;

	if (time < (span > MEASURE_NS ? span : MEASURE_NS))
		return;
	rate = (double)load->counted * NS_PER_S / (double)time;
	/* The first ones are of a server that begins slowly. */
	if (load->measured++ >= LEARNED)
		path->rate = (path->rate + rate) / 2;
	else if (rate > path->rate)
		path->rate = rate;
	path->measured_at = now;
	load->since = now;
	load->worked = load->counted = 0;
}

void cl_load_moved(struct cl_sent *sent, uint64_t bytes)
{
	struct cl_path *path = sent->read.path;
	uint64_t now, gap;

	if (!path)
		return;
	now = cl_net_now();
	pthread_mutex_lock(&sent->server->lock);
	path->bytes += bytes;
	gap = now > path->load.heard ? now - path->load.heard : 0;
	path->load.gap = path->load.gap - path->load.gap / 8 + gap / 8;
	path->load.heard = path->load.came = sent->read.heard = now;
	if (!sent->read.brief) {
		assert(bytes <= sent->read.missing && bytes <= path->load.missing);
		sent->read.missing -= bytes;
		path->load.missing -= bytes;
		path->load.counted += bytes;
		measure_load(path, now);
	}
	pthread_mutex_unlock(&sent->server->lock);
}

void cl_load_restart(struct cl_sent *sent, uint64_t bytes)
{
	struct cl_path *path = sent->read.path;

	if (!path || sent->read.brief)
		return;
	pthread_mutex_lock(&sent->server->lock);
	assert(bytes >= sent->read.missing && path->load.missing >= sent->read.missing);
	path->load.missing += bytes - sent->read.missing;
	sent->read.missing = bytes;
	pthread_mutex_unlock(&sent->server->lock);
}

void cl_load_end(struct cl_long_read *read)
{
	struct cl_path *path = read->path;

	if (!path)
		return;
	pthread_mutex_lock(&path->server->lock);
	assert(read->brief ? path->load.brief > 0
			   : path->load.flying > 0 && path->load.missing >= read->missing);
	path->load.missing -= read->missing;
	if (read->brief)
		path->load.brief--;
	else if (--path->load.flying == 0)
		path->load.worked += cl_net_now() - path->load.since;
	pthread_mutex_unlock(&path->server->lock);
	read->path = NULL;
	cl_path_put(path);
}

/* ---- silence ---- */

/* The first bytes take a round trip, and the server's time. */
static uint64_t silence_of(const struct cl_path *path)
{
	const struct cl_path_load *load = &path->load;
	uint64_t after =
		load->heard > load->came ? 2 * path->rtt_ns : path->rtt_ns + path->rtt_ns / 2;

	if (after < 3 * load->gap)
		after = 3 * load->gap;
	return after < SILENT_NS ? SILENT_NS : after;
}

/* Packets behind a lost one bring no bytes until that one is repeated, but show that the path lives. */
static void hear_reads(const struct cl_server *server, uint64_t now)
{
	for (struct cl_sent *sent = server->sent; sent; sent = sent->next) {
		struct rxw_call_statistics stats = {.size = sizeof(stats)};
		struct cl_long_read *read = &sent->read;

		if (!read->path || atomic_load(&sent->lost) ||
		    rxw_call_stats(sent->call, &stats) < 0 ||
		    stats.packets_received <= read->packets)
			continue;
		read->packets = stats.packets_received;
		read->heard = read->path->load.heard = now;
	}
}

/* While the prober did not run, others may have had no time to receive either: that is no silence of the paths. */
static void excuse_late_look(struct cl_server *server, uint64_t now)
{
	uint64_t late = server->looked_at ? now - server->looked_at : 0;

	server->looked_at = now;
	if (late <= 2 * LOOK_NS)
		return;
	for (unsigned i = 0; i < server->path_count; i++) {
		struct cl_path_load *load = &server->paths[i]->load;

		load->heard = load->heard + late < now ? load->heard + late : now;
	}
}

/* Whether a caller waits for bytes of a path, and nothing comes. */
static bool is_silent(const struct cl_server *server, const struct cl_path *path, uint64_t now)
{
	for (const struct cl_sent *sent = server->sent; sent; sent = sent->next) {
		uint64_t since = atomic_load(&sent->waits_since);

		if (sent->read.path != path || atomic_load(&sent->lost) || !since)
			continue;
		if (since < path->load.heard)
			since = path->load.heard;
		if (now > since + silence_of(path))
			return true;
	}
	return false;
}

/* Another path that has brought bytes since, or an answer since the silent one was asked, while that one could have answered. */
static struct cl_path *find_heard(const struct cl_server *server, const struct cl_path *silent,
				  uint64_t now)
{
	uint64_t heard = silent->load.heard, asked = silent->load.asked;
	bool unanswered = asked > heard && now >= asked + 2 * silent->rtt_ns + ANSWER_NS;

	for (unsigned i = 0; i < server->path_count; i++) {
		struct cl_path *path = server->paths[i];

		if (path != silent && carries_reads(server, path) &&
		    (path->load.came > heard || (unanswered && path->load.heard > asked)))
			return path;
	}
	return NULL;
}

/* Whether a call goes over a path: one without a choice goes to the same address. */
static bool goes_over(const struct cl_sent *sent, const struct cl_path *path)
{
	return sent->read.path == path || (!sent->read.path && !path->way.local_len &&
					   afs_same_address(&sent->sa, &path->way.sa));
}

/* What reads over the path goes on elsewhere, and new calls do not take it until it answers a probe. */
static void leave_path(struct cl_server *server, struct cl_path *path, const struct cl_path *other)
{
	assert(mutex_is_held(&server->lock));
	if (path->state == CL_PATH_LIVE)
		path->state = CL_PATH_SUSPECT;
	path->load.probes_failed = path->load.measured = 0;
	for (struct cl_sent *sent = server->sent; sent; sent = sent->next)
		if (sent->reads && !atomic_load(&sent->lost) && goes_over(sent, path)) {
			atomic_store(&sent->lost, true);
			rxw_call_abort(sent->call, RXW_USER_ABORT);
		}
	for (unsigned i = 0; i < server->address_count; i++)
		if (!path->way.local_len &&
		    afs_same_address(&server->addresses[server->current].sa, &path->way.sa) &&
		    afs_same_address(&server->addresses[i].sa, &other->way.sa))
			server->current = i;
}

/* Whether the rate of a path has fallen so far, or was taken for so much more, that another one would bring a read in half the time. */
static bool is_read_late(const struct cl_long_read *read, const struct cl_path *other)
{
	const struct cl_path *path = read->path;
	double rest = (double)path->load.missing / (path->rate + 1);

	return path->load.measured >= LEARNED && other->load.measured >= LEARNED &&
	       rest > LATE_S + 2 * expect_bytes(other, read->missing, other->rate);
}

/* Whether a read whose caller waits for bytes gets none. If another path brings some, that is not the server's doing. */
static bool is_read_still(const struct cl_sent *sent, const struct cl_path *other, uint64_t now)
{
	uint64_t since = atomic_load(&sent->waits_since), rtt = sent->read.path->rtt_ns;

	if (!since)
		return false;
	if (since < sent->read.heard)
		since = sent->read.heard;
	if (other->load.came > since + BESIDE_NS / 2)
		return now >= since + BESIDE_NS + 2 * rtt;
	return now >= since + STILL_NS + 8 * rtt;
}

/*
 * Reads that another path would bring sooner end (P-069), and those that stand still although their path lives, as after an outage. What has
 * come is kept.
 */
static void leave_slow_paths(struct cl_server *server, uint64_t now)
{
	assert(mutex_is_held(&server->lock));
	for (struct cl_sent *sent = server->sent; sent; sent = sent->next) {
		const struct cl_long_read *read = &sent->read;
		struct cl_path *other;

		if (!read->path || atomic_load(&sent->lost))
			continue;
		other = find_soonest(server, read->missing, read->path);
		if (!other || (!is_read_still(sent, other, now) && !is_read_late(read, other)))
			continue;
		atomic_store(&sent->lost, true);
		rxw_call_abort(sent->call, RXW_USER_ABORT);
		return;
	}
}

/* ---- the prober ---- */

/* Silent paths are left if others are not silent. Returns whether some are silent. */
static bool leave_silent_paths(struct cl_server *server, uint64_t now)
{
	bool doubt = false;

	for (unsigned i = 0; i < server->path_count; i++) {
		struct cl_path *path = server->paths[i], *other;

		if (!is_silent(server, path, now))
			continue;
		doubt = true;
		other = find_heard(server, path, now);
		if (other)
			leave_path(server, path, other);
	}
	return doubt;
}

/* Paths that were left, and have not answered for so long, each with a reference. */
static unsigned list_dead_paths(struct cl_server *server, uint64_t now,
				struct cl_path *dead[CL_PATHS])
{
	unsigned count = 0;

	for (unsigned i = 0; i < server->path_count; i++) {
		struct cl_path *path = server->paths[i];
		uint64_t after = 8 * path->rtt_ns > DEAD_NS ? 8 * path->rtt_ns : DEAD_NS;

		if (path->state != CL_PATH_SUSPECT || now < path->load.heard + after)
			continue;
		path->refs++;
		dead[count++] = path;
	}
	return count;
}

static bool is_probe_wanted(const struct cl_path *path, uint64_t now)
{
	return path->load.wanted && now < path->load.wanted + WANTED_NS;
}

/* Whether a path is to be asked now, while some are silent (`doubt`), or one may be a stranger or not. */
static bool is_probe_due(const struct cl_path *path, uint64_t now, bool busy, bool doubt,
			 bool strange)
{
	const struct cl_path_load *load = &path->load;

	if (load->probing >= PROBES_MOST || path->gone)
		return false;
	/* The last answer is older than the silence. */
	if (doubt && load->asked <= load->heard && now > load->heard + SILENT_NS)
		return true;
	return load->next_probe <= now && (doubt || strange || is_probe_wanted(path, now) ||
					   (path->state != CL_PATH_LIVE && busy));
}

/* Those that are out or wanted; all if some are silent, and now and then if there is a stranger: perhaps the server was started again. */
static unsigned list_probes(struct cl_server *server, uint64_t now, bool busy, bool doubt,
			    struct cl_path *list[CL_PATHS])
{
	unsigned count = 0;
	bool strange = false;

	for (unsigned i = 0; busy && i < server->path_count; i++)
		strange = strange || is_stranger(server, server->paths[i]);
	for (unsigned i = 0; i < server->path_count; i++) {
		struct cl_path *path = server->paths[i];
		struct cl_path_load *load = &path->load;

		if (!is_probe_due(path, now, busy, doubt, strange))
			continue;
		load->probing++;
		load->asked = now;
		load->next_probe =
			now + (strange || load->probes_failed >= FAILURES ? SELDOM_NS : PROBE_NS);
		path->refs++;
		list[count++] = path;
	}
	return count;
}

unsigned cl_load_look(struct cl_server *server, struct cl_path *list[CL_PATHS], bool *busy)
{
	struct cl_path *dead[CL_PATHS];
	unsigned count, dead_count = 0;
	bool doubt = false, reads;
	uint64_t now;

	pthread_mutex_lock(&server->lock);
	now = cl_net_now();
	reads = has_long_reads(server);
	if (reads) {
		hear_reads(server, now);
		excuse_late_look(server, now);
		doubt = leave_silent_paths(server, now);
		leave_slow_paths(server, now);
		dead_count = list_dead_paths(server, now, dead);
	} else {
		server->looked_at = 0;
	}
	count = list_probes(server, now, reads, doubt, list);
	*busy = reads;
	for (unsigned i = 0; i < server->path_count; i++)
		*busy = *busy || is_probe_wanted(server->paths[i], now);
	pthread_mutex_unlock(&server->lock);
	for (unsigned i = 0; i < dead_count; i++) {
		cl_path_dies(dead[i]);
		cl_path_put(dead[i]);
	}
	return count;
}

void cl_load_probed(struct cl_path *path, uint64_t asked, uint64_t rtt_ns, uint32_t started)
{
	struct cl_path_load *load = &path->load;

	pthread_mutex_lock(&path->server->lock);
	assert(load->probing > 0);
	load->probing--;
	load->probes_failed = rtt_ns ? 0 : load->probes_failed + 1;
	if (rtt_ns) {
		load->heard = cl_net_now();
		load->started = started;
		load->wanted = 0;
		if (asked > load->answered)
			load->answered = asked;
	}
	pthread_mutex_unlock(&path->server->lock);
	if (rtt_ns)
		cl_path_lives(path, rtt_ns);
	cl_path_put(path);
}

void cl_load_want(struct cl_path *path)
{
	uint64_t now = cl_net_now();
	bool first;

	pthread_mutex_lock(&path->server->lock);
	first = !is_probe_wanted(path, now);
	path->load.wanted = now;
	/* Only what does not answer is asked seldom. */
	if (first && !path->load.probing && !path->load.probes_failed)
		path->load.next_probe = now;
	pthread_mutex_unlock(&path->server->lock);
	if (first)
		rxw_queue_post(path->server->net->probing, NULL);
}

uint64_t cl_load_answered(struct cl_path *path)
{
	uint64_t answered;

	pthread_mutex_lock(&path->server->lock);
	answered = path->load.answered;
	pthread_mutex_unlock(&path->server->lock);
	return answered;
}

bool cl_load_is_strange(struct cl_path *path)
{
	bool strange;

	pthread_mutex_lock(&path->server->lock);
	strange = is_stranger(path->server, path);
	pthread_mutex_unlock(&path->server->lock);
	return strange;
}
