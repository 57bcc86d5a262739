/* SPDX-License-Identifier: BSD-2-Clause */
#include "client/paths/spread.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/clock.h"

#define UNIT	     65536u
#define PAGE	     4096u
#define RANGE_FIRST  ((uint64_t)1 << 20) /* while the rate is unknown (P-064) */
#define RANGE_MOST   ((uint64_t)64 << 20)
#define WIDE_MOST    ((uint64_t)1 << 30)
#define AHEAD_RTT    3u /* so many round trips before the end of a range the next one is asked for */
#define SAVED_RTT    2u /* round trips that a split saves the other path at least */
#define SHARE_LEAST  ((uint64_t)256 << 10) /* of what is left, near the end */
#define FLYING	     2u
#define FLYING_MOST  4u
#define MEASURE_NS   ((uint64_t)200 * NS_PER_MS) /* P-063 */
#define SUSPECT_NS   ((uint64_t)50 * NS_PER_MS)
#define DEAD_NS	     ((uint64_t)NS_PER_S)
#define COMPARE_NS   ((uint64_t)NS_PER_S)
#define GAIN	     1.1 /* of the sum, or the path is parked */
#define RISE	     1.1 /* of its rate, or it gets no further range in flight */
#define STARTING_RTT ((uint64_t)100 * NS_PER_MS)

/* ---- holes ---- */

static void remove_hole(struct cl_spread *s, unsigned i)
{
	assert(i < s->hole_count);
	s->hole_count--;
	memmove(&s->holes[i], &s->holes[i + 1], (s->hole_count - i) * sizeof(s->holes[0]));
}

/* With no room for one more, the hole before grows to it: bytes between them are fetched twice. */
static void add_hole(struct cl_spread *s, uint64_t at, uint64_t end)
{
	unsigned i = 0;

	if (at >= end)
		return;
	while (i < s->hole_count && s->holes[i].end < at)
		i++;
	if (i < s->hole_count && s->holes[i].at <= end) {
		struct cl_hole *hole = &s->holes[i];

		if (at < hole->at)
			hole->at = at;
		if (end > hole->end)
			hole->end = end;
	} else if (s->hole_count < CL_HOLES) {
		memmove(&s->holes[i + 1], &s->holes[i], (s->hole_count - i) * sizeof(s->holes[0]));
		s->holes[i] = (struct cl_hole){at, end};
		s->hole_count++;
	} else {
		i -= i > 0;
		s->holes[i].at = s->holes[i].at < at ? s->holes[i].at : at;
		s->holes[i].end = s->holes[i].end > end ? s->holes[i].end : end;
	}
	while (i + 1 < s->hole_count && s->holes[i + 1].at <= s->holes[i].end) {
		if (s->holes[i + 1].end > s->holes[i].end)
			s->holes[i].end = s->holes[i + 1].end;
		remove_hole(s, i + 1);
	}
}

/* Bytes from `at` on are no hole any more, as far as one reaches, but not behind `end`. Returns where they end. */
static uint64_t claim_bytes(struct cl_spread *s, uint64_t at, uint64_t end)
{
	for (unsigned i = 0; i < s->hole_count; i++) {
		struct cl_hole hole = s->holes[i];

		if (at < hole.at || at >= hole.end || (at > hole.at && s->hole_count == CL_HOLES))
			continue;
		remove_hole(s, i);
		add_hole(s, hole.at, at);
		add_hole(s, end, hole.end);
		return end < hole.end ? end : hole.end;
	}
	return at;
}

void cl_spread_init(struct cl_spread *spread)
{
	memset(spread, 0, sizeof(*spread));
}

void cl_spread_widen(struct cl_spread *spread)
{
	spread->wide = true;
}

void cl_spread_add(struct cl_spread *spread, uint64_t at, uint64_t end)
{
	add_hole(spread, at, end);
}

static bool is_flying(const struct cl_spread_range *range)
{
	return range->used && !range->loose && range->at < range->end;
}

static uint64_t count_unfetched(const struct cl_spread *s)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < s->hole_count; i++)
		bytes += s->holes[i].end - s->holes[i].at;
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (is_flying(&s->ranges[i]))
			bytes += s->ranges[i].end - s->ranges[i].at;
	return bytes;
}

bool cl_spread_complete(const struct cl_spread *s)
{
	return count_unfetched(s) == 0;
}

/* ---- rates ---- */

static uint64_t path_rtt(const struct cl_spread_path *path)
{
	return path->rtt ? path->rtt : STARTING_RTT;
}

/* Of a range, while others share the path. */
static double range_rate(const struct cl_spread_path *path)
{
	return path->rate / (path->flying ? path->flying : 1);
}

/* What a range has on its way. */
static double range_bdp(const struct cl_spread_path *path)
{
	return range_rate(path) * (double)path_rtt(path) / NS_PER_S;
}

static double sum_rates(const struct cl_spread *s, const struct cl_spread_path *without)
{
	double sum = 0;

	for (unsigned i = 0; i < CL_PATHS; i++)
		if (&s->paths[i] != without && s->paths[i].state == CL_PATH_LIVE)
			sum += s->paths[i].rate;
	return sum;
}

/* A path that joined a while ago, and whose rate the others have lost since. The slower one is parked. */
static void compare_sum(struct cl_spread *s, struct cl_spread_path *path, uint64_t now)
{
	double before = path->before, others;
	struct cl_spread_path *slow = path;

	if (before == 0 || now < path->joined + COMPARE_NS)
		return;
	path->before = 0;
	others = sum_rates(s, path);
	if (others >= before / GAIN || others + path->rate >= GAIN * before)
		return;
	for (unsigned i = 0; i < CL_PATHS; i++)
		if (s->paths[i].state == CL_PATH_LIVE && s->paths[i].rate < slow->rate)
			slow = &s->paths[i];
	slow->state = CL_PATH_PARKED;
}

static void measure_arrival(struct cl_spread *s, struct cl_spread_path *path, uint64_t bytes,
			    uint64_t now)
{
	uint64_t gap = now - path->heard, span = 4 * path_rtt(path);

	path->gap = path->gap ? path->gap - path->gap / 8 + gap / 8 : gap;
	path->heard = now;
	path->counted += bytes;
	if (span < MEASURE_NS)
		span = MEASURE_NS;
	if (path->worked + now - path->since < span)
		return;
	path->rate = (double)path->counted * NS_PER_S / (double)(path->worked + now - path->since);
	path->since = now;
	path->worked = path->counted = 0;
	if (!s->wide && path->flying == path->most && path->most < FLYING_MOST &&
	    path->rate > RISE * path->raised) {
		path->raised = path->rate;
		path->most++;
	}
	compare_sum(s, path, now);
}

/* ---- paths ---- */

/* It is as one whose rate nobody knows. */
static void start_path(struct cl_spread *s, struct cl_spread_path *path, uint64_t now)
{
	path->state = CL_PATH_LIVE;
	path->rate = path->raised = 0;
	path->most = FLYING;
	path->gap = 0;
	path->heard = path->since = path->joined = now;
	path->worked = path->counted = 0;
	path->first = RANGE_FIRST;
	/* One that comes back has raised the sum before. */
	path->before = path->bytes ? 0 : sum_rates(s, path);
}

void cl_spread_join(struct cl_spread *s, unsigned path, uint64_t now, uint64_t rtt)
{
	assert(path < CL_PATHS);
	s->paths[path].rtt = rtt;
	start_path(s, &s->paths[path], now);
}

/* Others may take what its ranges have not brought. */
static void loosen_ranges(struct cl_spread *s, unsigned path)
{
	for (unsigned i = 0; i < CL_RANGES; i++) {
		struct cl_spread_range *range = &s->ranges[i];

		if (range->path != path || !is_flying(range))
			continue;
		range->loose = true;
		add_hole(s, range->at, range->end);
	}
}

/* A silent path is heard. Its calls go on where nobody else was asked for their bytes. What was measured before the silence holds. */
static void resume_path(struct cl_spread *s, unsigned path, uint64_t now)
{
	struct cl_spread_path *state = &s->paths[path];

	if (state->state != CL_PATH_SUSPECT)
		return;
	state->state = CL_PATH_LIVE;
	state->heard = state->since = now;
	state->worked = state->counted = 0;
	for (unsigned i = 0; i < CL_RANGES; i++) {
		struct cl_spread_range *range = &s->ranges[i];
		uint64_t end;

		if (!range->used || range->path != path || !range->loose)
			continue;
		end = claim_bytes(s, range->at, range->end);
		if (end == range->at)
			continue;
		range->loose = false;
		range->end = end;
	}
}

static void unpark_paths(struct cl_spread *s)
{
	for (unsigned i = 0; i < CL_PATHS; i++)
		if (s->paths[i].state == CL_PATH_PARKED)
			s->paths[i].state = CL_PATH_LIVE;
}

void cl_spread_leave(struct cl_spread *s, unsigned path)
{
	assert(path < CL_PATHS);
	loosen_ranges(s, path);
	s->paths[path].state = CL_PATH_OUT;
	unpark_paths(s);
}

/* ---- ranges ---- */

/* Seconds until a path has brought what it is asked for. */
static double expect_work(const struct cl_spread *s, const struct cl_spread_path *path)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < CL_RANGES; i++)
		if (is_flying(&s->ranges[i]) && &s->paths[s->ranges[i].path] == path)
			bytes += s->ranges[i].end - s->ranges[i].at;
	return path->rate > 0 ? (double)bytes / path->rate : bytes ? HUGE_VAL : 0;
}

/*
 * What a path would carry of all that is left if all paths end together. If one of them was wrong, splits correct it. Each further call
 * costs a path some of its rate, since it begins with a small window.
 */
static uint64_t choose_wide_length(const struct cl_spread *s, const struct cl_spread_path *path)
{
	double share = (double)count_unfetched(s), sum = 0;
	unsigned paths = 0, known = 0;

	for (unsigned i = 0; i < CL_PATHS; i++) {
		if (s->paths[i].state != CL_PATH_LIVE)
			continue;
		paths++;
		known += s->paths[i].rate > 0;
		sum += s->paths[i].rate;
	}
	assert(paths > 0);
	share *= known == paths ? path->rate / sum : 1.0 / paths;
	if (share < SHARE_LEAST)
		return SHARE_LEAST;
	return share < WIDE_MOST ? (uint64_t)share / UNIT * UNIT : WIDE_MOST;
}

/* How much of a hole a path takes (P-064). */
static uint64_t choose_length(const struct cl_spread *s, const struct cl_spread_path *path)
{
	uint64_t span = 32 * path_rtt(path), length = path->first, share = SHARE_LEAST;
	unsigned paths = 0;

	if (s->wide)
		return choose_wide_length(s, path);
	if (span < NS_PER_S)
		span = NS_PER_S;
	if (path->rate > 0)
		length = (uint64_t)(path->rate * ((double)span / NS_PER_S));
	if (length < UNIT)
		length = UNIT;
	if (length > RANGE_MOST)
		length = RANGE_MOST;
	for (unsigned i = 0; i < CL_PATHS; i++)
		paths += s->paths[i].state == CL_PATH_LIVE;
	if (count_unfetched(s) / (2 * paths) > share)
		share = count_unfetched(s) / (2 * paths);
	if (length > share)
		length = share;
	return length / UNIT * UNIT;
}

/* Seconds until a range ends. */
static double expect_rest(const struct cl_spread *s, const struct cl_spread_range *range)
{
	double rate = range_rate(&s->paths[range->path]);

	return rate > 0 ? (double)(range->end - range->at) / rate : HUGE_VAL;
}

/* Of ranges with unknown ends the longer one. */
static bool is_later(const struct cl_spread *s, const struct cl_spread_range *range,
		     const struct cl_spread_range *than)
{
	double rest = expect_rest(s, range), other = expect_rest(s, than);

	return rest > other || (rest == other && range->end - range->at > than->end - than->at);
}

/* The range of another path that ends last, if enough of it is left to be worth an abort. */
static struct cl_spread_range *find_late(struct cl_spread *s, const struct cl_spread_path *path)
{
	struct cl_spread_range *late = NULL;
	const struct cl_spread_path *owner;

	for (unsigned i = 0; i < CL_RANGES; i++) {
		struct cl_spread_range *range = &s->ranges[i];

		if (is_flying(range) && &s->paths[range->path] != path &&
		    (s->wide || s->paths[range->path].rate > 0) &&
		    (!late || is_later(s, range, late)))
			late = range;
	}
	if (!late)
		return NULL;
	owner = &s->paths[late->path];
	return (double)(late->end - late->at) < 2 * range_bdp(owner) ? NULL : late;
}

/*
 * Where a path without work takes over from another one, so that both end at the same time (P-065): x ÷ own + start = (left − x) ÷ other.
 * A path with an unknown rate takes a half, or less if it shall begin with less. False: it would not be done much earlier.
 * With large windows that is more than the abort of the other call costs, and with small ones a quarter of the time. Long ranges are for
 * all paths: then no path takes more than its part of all that is left.
 */
static bool choose_split(const struct cl_spread *s, const struct cl_spread_path *path,
			 const struct cl_spread_range *late, uint64_t *at)
{
	double own = path->rate / (s->wide ? 1 : path->flying + 1), rest = expect_rest(s, late),
	       other = range_rate(&s->paths[late->path]), start = (double)path_rtt(path) / NS_PER_S;
	uint64_t left = late->end - late->at, share = left / 2;
	uint64_t fair = (uint64_t)((double)count_unfetched(s) * own / (sum_rates(s, NULL) + 1));

	if (s->wide && expect_work(s, path) > start)
		start = expect_work(s, path);
	if (rest <= start)
		return false;
	if (own > 0 && other > 0)
		share = (uint64_t)((rest - start) * own * other / (own + other));
	else if (!s->wide && share > path->first)
		share = path->first;
	if (s->wide && own > 0 && share > fair)
		share = fair;
	*at = (late->end - share + PAGE - 1) / PAGE * PAGE;
	if (*at >= late->end || *at <= late->at)
		return false;
	if (s->wide)
		return (double)(late->end - *at) > SAVED_RTT * range_bdp(&s->paths[late->path]);
	return own == 0 || (double)(late->end - *at) / own + start < 0.75 * rest;
}

static struct cl_spread_range *find_free_range(struct cl_spread *s)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (!s->ranges[i].used)
			return &s->ranges[i];
	return NULL;
}

/* Whether a path can be asked for more. */
static bool has_room(const struct cl_spread *s, const struct cl_spread_path *path)
{
	if (path->state != CL_PATH_LIVE || path->flying >= path->most)
		return false;
	return !s->wide || path->flying == 0 ||
	       expect_work(s, path) < AHEAD_RTT * (double)path_rtt(path) / NS_PER_S;
}

/* The live path with room that has the fewest ranges in flight; the faster one of two. */
static struct cl_spread_path *find_room(struct cl_spread *s, unsigned refused)
{
	struct cl_spread_path *best = NULL;

	for (unsigned i = 0; i < CL_PATHS; i++) {
		struct cl_spread_path *path = &s->paths[i];

		if (!has_room(s, path) || refused & 1u << i)
			continue;
		if (!best || path->flying < best->flying ||
		    (path->flying == best->flying && path->rate > best->rate))
			best = path;
	}
	return best;
}

/* Bytes for a path: the lowest hole, or a share of the range that ends last. */
static bool find_bytes(struct cl_spread *s, struct cl_spread_path *path,
		       struct cl_spread_range *range)
{
	struct cl_spread_range *late;
	uint64_t length, at;

	if (s->hole_count) {
		struct cl_hole *hole = &s->holes[0];

		length = choose_length(s, path);
		range->at = hole->at;
		range->end = hole->end - hole->at > length + (s->wide ? SHARE_LEAST : 0)
				     ? hole->at + length
				     : hole->end;
		hole->at = range->end;
		if (hole->at == hole->end)
			remove_hole(s, 0);
		return true;
	}
	late = find_late(s, path);
	if (!late || !choose_split(s, path, late, &at))
		return false;
	range->at = at;
	range->end = late->end;
	late->end = at;
	return true;
}

bool cl_spread_next(struct cl_spread *s, uint64_t now, struct cl_spread_ask *ask)
{
	struct cl_spread_range *range = find_free_range(s);
	struct cl_spread_path *path;
	unsigned refused = 0;

	if (!range)
		return false;
	while ((path = find_room(s, refused)) && !find_bytes(s, path, range))
		refused |= 1u << (path - s->paths);
	if (!path)
		return false;
	range->used = true;
	range->loose = false;
	range->path = (unsigned)(path - s->paths);
	if (path->flying++ == 0)
		path->heard = path->since = now;
	if (path->first < RANGE_MOST)
		path->first *= 4;
	*ask = (struct cl_spread_ask){.path = range->path,
				      .range = (unsigned)(range - s->ranges),
				      .offset = range->at,
				      .length = range->end - range->at};
	return true;
}

uint64_t cl_spread_take(struct cl_spread *s, unsigned number, uint64_t bytes, uint64_t now)
{
	struct cl_spread_range *range = &s->ranges[number];
	struct cl_spread_path *path = &s->paths[range->path];
	uint64_t kept = bytes;

	assert(range->used && number < CL_RANGES);
	resume_path(s, range->path, now);
	if (kept > range->end - range->at)
		kept = range->end - range->at;
	if (range->loose) {
		uint64_t loose = claim_bytes(s, range->at, range->at + kept) - range->at;

		/* What comes behind bytes that were not kept has another place than the next ones of the range. */
		if (loose < kept)
			range->end = range->at + loose;
		kept = loose;
	}
	range->at += kept;
	path->bytes += kept;
	path->repeated += bytes - kept;
	measure_arrival(s, path, bytes, now);
	return kept;
}

void cl_spread_hear(struct cl_spread *s, unsigned path, uint64_t now)
{
	assert(path < CL_PATHS);
	resume_path(s, path, now);
	s->paths[path].heard = now;
}

void cl_spread_excuse(struct cl_spread *s, uint64_t ns, uint64_t now)
{
	for (unsigned i = 0; i < CL_PATHS; i++) {
		struct cl_spread_path *path = &s->paths[i];

		path->heard = path->heard + ns < now ? path->heard + ns : now;
	}
}

bool cl_spread_wants(const struct cl_spread *s, unsigned range)
{
	assert(range < CL_RANGES && s->ranges[range].used);
	return s->ranges[range].at < s->ranges[range].end;
}

void cl_spread_end(struct cl_spread *s, unsigned number)
{
	struct cl_spread_range *range = &s->ranges[number];
	struct cl_spread_path *path = &s->paths[range->path];

	assert(range->used && path->flying > 0);
	if (!range->loose)
		add_hole(s, range->at, range->end);
	range->used = false;
	if (--path->flying > 0)
		return;
	if (path->heard > path->since)
		path->worked += path->heard - path->since;
	/* Nothing can be heard of it any more until it is asked again. */
	resume_path(s, range->path, path->heard);
}

/* ---- time ---- */

static uint64_t suspect_after(const struct cl_spread_path *path)
{
	/* The first bytes take a round trip, and the server's time. */
	uint64_t after = path->gap ? path_rtt(path) + path_rtt(path) / 2 : 3 * path_rtt(path);

	if (after < 3 * path->gap)
		after = 3 * path->gap;
	return after < SUSPECT_NS ? SUSPECT_NS : after;
}

static uint64_t dead_after(const struct cl_spread_path *path)
{
	return 8 * path_rtt(path) > DEAD_NS ? 8 * path_rtt(path) : DEAD_NS;
}

/* Whether another path has brought bytes since this one was heard. */
static bool is_other_heard(const struct cl_spread *s, const struct cl_spread_path *path)
{
	for (unsigned i = 0; i < CL_PATHS; i++)
		if (&s->paths[i] != path && s->paths[i].heard > path->heard &&
		    (s->paths[i].state == CL_PATH_LIVE || s->paths[i].state == CL_PATH_PARKED))
			return true;
	return false;
}

uint64_t cl_spread_tick(struct cl_spread *s, uint64_t now)
{
	uint64_t next = now + NS_PER_S;

	for (unsigned i = 0; i < CL_PATHS; i++) {
		struct cl_spread_path *path = &s->paths[i];
		uint64_t suspect = path->heard + suspect_after(path),
			 dead = path->heard + dead_after(path);

		if (path->state == CL_PATH_OUT || !path->flying)
			continue;
		if (path->state != CL_PATH_SUSPECT && now >= suspect) {
			path->state = CL_PATH_SUSPECT;
			loosen_ranges(s, i);
			unpark_paths(s);
		}
		if (now >= dead && is_other_heard(s, path))
			cl_spread_leave(s, i);
		if (path->state != CL_PATH_SUSPECT && suspect > now && suspect < next)
			next = suspect;
		if (path->state == CL_PATH_SUSPECT && dead > now && dead < next)
			next = dead;
	}
	return next;
}
