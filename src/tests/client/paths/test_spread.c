/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scheduler of several paths in a model of links and a server: rates, round trips, links that die, return, come late, become slow, or
 * share a bottleneck. Every byte is kept once, the sum of the rates is used, and no transfer stalls. RXW_SIM_SEEDS: how many
 * seeds (85) for each kind of weather; RXW_SIM_FIRST: the first (1). A failure names the seed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/paths/spread.h"
#include "common/clock.h"
#include "tests/main.h"

#define PATHS	  4u
#define DONE_MOST 256u
#define NEVER	  UINT64_MAX
#define PACKET	  1444u
#define LIMIT_MS  120000u

/* Times in milliseconds, rates in bytes a millisecond. */
struct link {
	uint64_t rate, rtt;
	uint64_t from, dies, returns,
		slows;	     /* up from `from` on; a tenth of the rate after `slows` */
	uint64_t probe, out; /* the next probe of a path that is out; since when it is */
	bool shared;	     /* one bottleneck with the others of this kind */
	uint64_t learnt;     /* the rate that earlier calls have reached */
};

/* A call at the server. */
struct fetch {
	bool used, ended; /* ended: aborted, which the server has not heard of yet */
	unsigned link;
	uint64_t starts, stops;	 /* its first bytes arrive; it sends no more */
	uint64_t left;		 /* that the server has still to send */
	uint64_t answer;	 /* when the call ends, behind its last bytes */
	uint64_t packets, round; /* slow start: for each round trip, which ends at `round` */
};

struct world {
	uint64_t seed, state;
	struct cl_spread spread;
	struct link links[PATHS];
	struct fetch fetches[CL_RANGES];
	unsigned range_of[CL_RANGES];
	unsigned link_count;
	bool wide;	 /* the server has large windows, and its calls a slow start */
	uint64_t naps;	 /* the client sleeps up to so many ms each half second */
	uint64_t latest; /* the status of a range comes up to so many ms behind its bytes */
	uint64_t ms, length, kept, shared_room;
	uint64_t moved, stall; /* the last bytes; the longest time without any */
	struct span {
		uint64_t at, end;
	} done[DONE_MOST];
	unsigned done_count;
};

static uint64_t draw(struct world *w, uint64_t most)
{
	w->state ^= w->state << 13;
	w->state ^= w->state >> 7;
	w->state ^= w->state << 17;
	return w->state % most;
}

static void fail_world(const struct world *w, const char *what)
{
	ck_abort_msg("seed %" PRIu64 ", %" PRIu64 " ms: %s", w->seed, w->ms, what);
}

static uint64_t now_of(const struct world *w)
{
	return (w->ms + 1) * NS_PER_MS;
}

static bool is_up(const struct world *w, const struct link *link)
{
	return w->ms >= link->from && (w->ms < link->dies || w->ms >= link->returns);
}

static uint64_t rate_of(const struct world *w, const struct link *link)
{
	return w->ms >= link->slows ? link->rate / 10 : link->rate;
}

/* Bytes are at their place, for the first time. */
static void note_bytes(struct world *w, uint64_t at, uint64_t bytes)
{
	unsigned i = 0;

	if (!bytes)
		return;
	if (w->ms - w->moved > w->stall)
		w->stall = w->ms - w->moved;
	w->moved = w->ms;
	w->kept += bytes;
	while (i < w->done_count && w->done[i].end < at)
		i++;
	if (i < w->done_count && w->done[i].at < at + bytes && w->done[i].end > at)
		fail_world(w, "a byte was kept twice");
	if (i < w->done_count && w->done[i].end == at) {
		w->done[i].end += bytes;
	} else if (i < w->done_count && w->done[i].at == at + bytes) {
		w->done[i].at = at;
	} else {
		ck_assert_uint_lt(w->done_count, DONE_MOST);
		memmove(&w->done[i + 1], &w->done[i], (w->done_count - i) * sizeof(w->done[0]));
		w->done[i] = (struct span){at, at + bytes};
		w->done_count++;
	}
	if (i + 1 < w->done_count && w->done[i].end >= w->done[i + 1].at) {
		if (w->done[i].end > w->done[i + 1].at)
			fail_world(w, "a byte was kept twice");
		w->done[i].end = w->done[i + 1].end;
		w->done_count--;
		memmove(&w->done[i + 1], &w->done[i + 2],
			(w->done_count - i - 1) * sizeof(w->done[0]));
	}
}

/* Slots of the model are those of the scheduler, and others for calls that were aborted. */
static struct fetch *find_slot(struct world *w)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (!w->fetches[i].used)
			return &w->fetches[i];
	return NULL;
}

static void begin_fetches(struct world *w)
{
	struct cl_spread_ask ask;
	struct fetch *fetch;

	while ((fetch = find_slot(w)) && cl_spread_next(&w->spread, now_of(w), &ask)) {
		uint64_t rtt = w->links[ask.path].rtt;

		*fetch = (struct fetch){.used = true,
					.link = ask.path,
					.starts = w->ms + rtt,
					.stops = NEVER,
					.left = ask.length,
					.packets = 10,
					.round = w->ms + 2 * rtt};
		w->range_of[fetch - w->fetches] = ask.range;
	}
}

static void abort_fetch(struct world *w, struct fetch *fetch)
{
	cl_spread_end(&w->spread, w->range_of[fetch - w->fetches]);
	fetch->ended = true;
	fetch->stops = w->ms + w->links[fetch->link].rtt;
}

/* Some bytes of a call arrive. */
static void deliver(struct world *w, struct fetch *fetch, uint64_t bytes)
{
	unsigned range = w->range_of[fetch - w->fetches];
	uint64_t at, kept;

	fetch->left -= bytes;
	if (fetch->ended) {
		w->spread.paths[fetch->link].repeated += bytes;
		return;
	}
	at = w->spread.ranges[range].at;
	kept = cl_spread_take(&w->spread, range, bytes, now_of(w));
	ck_assert_uint_le(kept, bytes);
	note_bytes(w, at, kept);
	if (fetch->left == 0) {
		fetch->answer = w->ms + (w->latest ? draw(w, w->latest) : 0);
		if (fetch->answer > w->ms)
			return;
		cl_spread_end(&w->spread, range);
		fetch->used = false;
	} else if (!cl_spread_wants(&w->spread, range)) {
		abort_fetch(w, fetch);
	}
}

/*
 * What a call may send in this millisecond. With large windows: ten packets in its first round trip, and three times as many in each further
 * one. A later call of a path begins its second round trip with half of what the path carries.
 */
static uint64_t limit_start(struct world *w, struct fetch *fetch)
{
	struct link *link = &w->links[fetch->link];
	uint64_t most;

	if (!w->wide)
		return UINT64_MAX;
	while (w->ms >= fetch->round && fetch->packets < 1u << 20) {
		fetch->packets *= 3;
		if (fetch->packets * PACKET < link->learnt / 2 * link->rtt)
			fetch->packets = link->learnt / 2 * link->rtt / PACKET;
		fetch->round += link->rtt;
	}
	most = fetch->packets * PACKET / link->rtt + 1;
	if (most >= link->rate)
		link->learnt = link->rate;
	return most;
}

static uint64_t wants_room(struct world *w, unsigned i, unsigned number, uint64_t sent)
{
	struct fetch *fetch = &w->fetches[i];
	uint64_t most;

	if (!fetch->used || fetch->link != number || w->ms < fetch->starts)
		return 0;
	most = limit_start(w, fetch);
	return (most < fetch->left ? most : fetch->left) - sent;
}

/* The room of a link in equal parts. Calls that send less leave the rest to the others. */
static void share_room(struct world *w, unsigned number, uint64_t room, uint64_t sent[CL_RANGES])
{
	uint64_t least = 1;

	while (least > 0 && room > 0) {
		unsigned hungry = 0;
		uint64_t part;

		least = 0;
		for (unsigned i = 0; i < CL_RANGES; i++)
			hungry += wants_room(w, i, number, sent[i]) > 0;
		part = hungry ? (room + hungry - 1) / hungry : 0;
		for (unsigned i = 0; i < CL_RANGES && hungry; i++) {
			uint64_t bytes = wants_room(w, i, number, sent[i]);

			if (bytes > part)
				bytes = part;
			if (bytes > room)
				bytes = room;
			sent[i] += bytes;
			room -= bytes;
			least += bytes;
		}
	}
}

/* The calls of a link share what it carries. */
static void run_link(struct world *w, unsigned number)
{
	struct link *link = &w->links[number];
	uint64_t room = rate_of(w, link), sent[CL_RANGES] = {0};

	if (!is_up(w, link))
		return;
	if (link->shared && room > w->shared_room)
		room = w->shared_room;
	share_room(w, number, room, sent);
	for (unsigned i = 0; i < CL_RANGES; i++) {
		if (link->shared)
			w->shared_room -= sent[i];
		if (sent[i])
			deliver(w, &w->fetches[i], sent[i]);
	}
}

/* Calls of dead paths end; those that were aborted stop. */
static void end_fetches(struct world *w)
{
	for (unsigned i = 0; i < CL_RANGES; i++) {
		struct fetch *fetch = &w->fetches[i];

		if (!fetch->used)
			continue;
		if (!fetch->ended && w->spread.paths[fetch->link].state == CL_PATH_OUT)
			abort_fetch(w, fetch);
		if (!fetch->ended && !fetch->left && w->ms >= fetch->answer) {
			cl_spread_end(&w->spread, w->range_of[i]);
			fetch->used = false;
		}
		if (fetch->ended && (w->ms >= fetch->stops || !fetch->left))
			fetch->used = false;
	}
}

/* A path that is out is asked for its life each 250 ms, after five seconds each 2 s. */
static void probe_links(struct world *w)
{
	for (unsigned i = 0; i < w->link_count; i++) {
		struct link *link = &w->links[i];

		if (w->spread.paths[i].state != CL_PATH_OUT) {
			link->probe = 0;
		} else if (link->probe == 0) {
			/* All are asked at the beginning; the first one was in use before. */
			link->probe = w->ms == 1 ? (i ? link->rtt : 1) : w->ms + 250;
			link->out = w->ms;
		}
		if (link->probe == 0)
			continue;
		if (w->ms >= link->probe && is_up(w, link)) {
			cl_spread_join(&w->spread, i, now_of(w), link->rtt * NS_PER_MS);
		} else if (w->ms >= link->probe) {
			link->probe = w->ms + (w->ms < link->out + 5000 ? 250 : 2000);
		}
	}
}

/* What comes meanwhile waits in a socket, and is lost if that is full: as if the links stood still. */
static void take_nap(struct world *w)
{
	uint64_t nap = w->naps && w->ms % 500 == 0 ? draw(w, w->naps) : 0;

	w->ms += nap;
	cl_spread_excuse(&w->spread, nap * NS_PER_MS, now_of(w));
}

/* All links carry bytes whenever the client is awake. */
static void check_for_doubt(const struct world *w)
{
	for (unsigned i = 0; i < w->link_count && w->naps; i++)
		if (w->spread.paths[i].state == CL_PATH_SUSPECT)
			fail_world(w, "a path is taken for silent");
}

static void run_world(struct world *w)
{
	uint64_t tick = 0;

	cl_spread_init(&w->spread);
	if (w->wide)
		cl_spread_widen(&w->spread);
	cl_spread_add(&w->spread, 0, w->length);
	while (!cl_spread_complete(&w->spread)) {
		if (++w->ms >= LIMIT_MS)
			fail_world(w, "it does not end");
		probe_links(w);
		begin_fetches(w);
		w->shared_room = w->links[0].rate;
		for (unsigned i = 0; i < w->link_count; i++)
			run_link(w, (i + (unsigned)w->ms) % w->link_count);
		take_nap(w);
		if (now_of(w) >= tick)
			tick = cl_spread_tick(&w->spread, now_of(w));
		check_for_doubt(w);
		end_fetches(w);
	}
	if (w->kept != w->length || w->done_count != 1)
		fail_world(w, "bytes are missing");
}

/* What the links can carry until `ms`. */
static uint64_t carried_until(struct world *w, uint64_t until)
{
	uint64_t bytes = 0, now = w->ms;

	for (w->ms = 0; w->ms < until; w->ms++) {
		uint64_t shared = 0;

		for (unsigned i = 0; i < w->link_count; i++) {
			if (!is_up(w, &w->links[i]))
				continue;
			if (w->links[i].shared)
				shared = w->links[0].rate;
			else
				bytes += rate_of(w, &w->links[i]);
		}
		bytes += shared;
	}
	w->ms = now;
	return bytes;
}

/* What slow starts cost: the first round trip, in which nothing arrives, and the next ones. No scheduler has that. */
static uint64_t lost_in_starts(const struct world *w)
{
	uint64_t lost = 0;

	for (unsigned i = 0; w->wide && i < w->link_count; i++) {
		const struct link *link = &w->links[i];
		uint64_t held = link->rate * link->rtt, once = held;

		for (uint64_t bytes = 10 * PACKET; bytes < held; bytes *= 3)
			once += held - bytes;
		lost += once * (link->returns == NEVER ? 1 : 2);
	}
	return lost;
}

static void start_world(struct world *w, uint64_t seed, unsigned links)
{
	memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->state = seed * 0x9e3779b97f4a7c15u + 1;
	w->link_count = links;
	for (unsigned i = 0; i < 8; i++)
		draw(w, 2);
	for (unsigned i = 0; i < links; i++)
		w->links[i] = (struct link){.rate = 2000 + draw(w, 120000),
					    .rtt = 1 + draw(w, 60),
					    .dies = NEVER,
					    .returns = NEVER,
					    .slows = NEVER};
}

static void set_seconds(struct world *w, uint64_t seconds)
{
	w->length = 0;
	for (unsigned i = 0; i < w->link_count; i++)
		w->length += w->links[i].rate * 1000 * seconds;
}

static uint64_t seeds(uint64_t *first)
{
	const char *count = getenv("RXW_SIM_SEEDS"), *from = getenv("RXW_SIM_FIRST");

	*first = from ? strtoull(from, NULL, 10) : 1;
	return count ? strtoull(count, NULL, 10) : 85;
}

static double share_repeated(const struct world *w)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < w->link_count; i++)
		bytes += w->spread.paths[i].repeated;
	return (double)bytes / (double)w->length;
}

static void check_use(struct world *w, double least)
{
	double share = (double)w->length / (double)(carried_until(w, w->ms) - lost_in_starts(w));
	char text[96];

	snprintf(text, sizeof(text), "%.3f of what the links carry", share);
	if (getenv("RXW_SIM_SHOW"))
		fprintf(stderr, "%" PRIu64 " use %.3f repeated %.4f stall %" PRIu64 "\n", w->seed,
			share, share_repeated(w), w->stall);
	if (share < least)
		fail_world(w, text);
}

/* A kind of weather, and what must hold in it. */
struct weather {
	unsigned least_links, kinds; /* links of a seed: at least; so many numbers of them */
	uint64_t seconds;	     /* of the file, at the sum of the rates */
	void (*change)(struct world *w);
	double use, repeated; /* at least, at most; 0: anything */
	uint64_t stall;	      /* ms at most; 0: anything */
};

static void run_seed(const struct weather *weather, uint64_t seed, bool wide)
{
	struct world w;

	start_world(&w, seed, weather->least_links + (unsigned)(seed % weather->kinds));
	set_seconds(&w, weather->seconds);
	w.wide = wide;
	if (weather->change)
		weather->change(&w);
	run_world(&w);
	check_use(&w, weather->use);
	if (weather->repeated > 0 && share_repeated(&w) > weather->repeated)
		fail_world(&w, "too many bytes came twice");
	if (weather->stall && w.stall > weather->stall)
		fail_world(&w, "a stall");
}

static void run_weather(const struct weather *weather)
{
	uint64_t first, count = seeds(&first);

	for (uint64_t seed = first; seed < first + count; seed++) {
		run_seed(weather, seed, false);
		run_seed(weather, seed, true);
	}
}

START_TEST(good_links_carry_their_sum)
{
	run_weather(&(struct weather){
		.least_links = 2, .kinds = 3, .seconds = 4, .use = 0.95, .repeated = 0.02});
}
END_TEST

/* After a third; it returns after two seconds. */
static void kill_link(struct world *w)
{
	struct link *link = &w->links[draw(w, w->link_count)];

	link->dies = 1300;
	link->returns = 3300;
}

START_TEST(a_link_dies_and_returns)
{
	run_weather(&(struct weather){.least_links = 2,
				      .kinds = 2,
				      .seconds = 4,
				      .change = kill_link,
				      .use = 0.93,
				      .repeated = 0.05,
				      .stall = 250});
}
END_TEST

static void slow_link(struct world *w)
{
	struct link *link = &w->links[draw(w, w->link_count)];

	link->slows = 500 + draw(w, 2500);
}

START_TEST(a_link_becomes_slow)
{
	run_weather(&(struct weather){.least_links = 2,
				      .kinds = 2,
				      .seconds = 4,
				      .change = slow_link,
				      .use = 0.95,
				      .stall = 250});
}
END_TEST

static void delay_link(struct world *w)
{
	w->links[1].from = 200 + draw(w, 1500);
}

START_TEST(a_link_comes_late)
{
	run_weather(&(struct weather){
		.least_links = 2, .kinds = 1, .seconds = 4, .change = delay_link, .use = 0.91});
}
END_TEST

/* Both links lead through one. */
static void share_links(struct world *w)
{
	w->links[0].shared = w->links[1].shared = true;
	w->links[1].rate = w->links[0].rate;
	w->length = w->links[0].rate * 4000;
}

START_TEST(a_shared_bottleneck_costs_nothing)
{
	run_weather(&(struct weather){.least_links = 2,
				      .kinds = 1,
				      .seconds = 4,
				      .change = share_links,
				      .use = 0.95,
				      .repeated = 0.02});
}
END_TEST

/* Everything at once, and links that die again and again. */
static void worsen_links(struct world *w)
{
	for (unsigned i = 1; i < w->link_count; i++) {
		struct link *link = &w->links[i];

		link->from = draw(w, 2) ? draw(w, 2000) : 0;
		link->dies = link->from + draw(w, 3000);
		link->returns = link->dies + 1 + draw(w, 3000);
		if (draw(w, 3) == 0)
			link->slows = draw(w, 4000);
	}
	if (draw(w, 2)) {
		w->links[0].dies = draw(w, 3000);
		w->links[0].returns = w->links[0].dies + 1 + draw(w, 3000);
	}
}

static void tire_client(struct world *w)
{
	w->naps = 900;
}

START_TEST(a_busy_client_takes_no_path_for_silent)
{
	run_weather(&(struct weather){
		.least_links = 2, .kinds = 3, .seconds = 4, .change = tire_client});
}
END_TEST

/* A path is silent for long before the status of its last range comes, and nothing more is heard of it then. */
static void delay_answers(struct world *w)
{
	w->latest = 400;
	if (draw(w, 2))
		w->links[1].from = NEVER;
}

START_TEST(an_answer_comes_late)
{
	run_weather(&(struct weather){
		.least_links = 2, .kinds = 2, .seconds = 2, .change = delay_answers});
}
END_TEST

START_TEST(no_byte_is_lost_in_bad_weather)
{
	run_weather(&(struct weather){
		.least_links = 1, .kinds = PATHS, .seconds = 2, .change = worsen_links});
}
END_TEST

/* The range that is asked for next. */
static unsigned ask_next(struct cl_spread *spread, uint64_t now, uint64_t offset, uint64_t length)
{
	struct cl_spread_ask ask;

	ck_assert(cl_spread_next(spread, now, &ask));
	ck_assert_uint_eq(ask.offset, offset);
	ck_assert_uint_eq(ask.length, length);
	return ask.range;
}

/*
 * Two other paths were asked for the parts of a range that has fallen silent. One of them leaves, the silent one brings its part and more,
 * and then the other one leaves: what comes now is not the beginning of that one's part.
 */
START_TEST(bytes_behind_those_that_were_dropped)
{
	const uint64_t half = 512 << 10;
	struct cl_spread spread;
	struct cl_spread_ask ask;
	unsigned silent, one, other;

	cl_spread_init(&spread);
	cl_spread_add(&spread, 0, 4 * half);
	cl_spread_join(&spread, 0, 1, NS_PER_MS);
	silent = ask_next(&spread, 1, 0, 2 * half);
	cl_spread_tick(&spread, 2 * (uint64_t)NS_PER_S);
	ck_assert_int_eq(spread.paths[0].state, CL_PATH_SUSPECT);
	cl_spread_join(&spread, 1, 2 * (uint64_t)NS_PER_S, NS_PER_MS);
	cl_spread_join(&spread, 2, 2 * (uint64_t)NS_PER_S, NS_PER_MS);
	one = ask_next(&spread, 2 * (uint64_t)NS_PER_S, 0, half);
	other = ask_next(&spread, 2 * (uint64_t)NS_PER_S, half, half);
	cl_spread_leave(&spread, spread.ranges[one].path);
	ck_assert_uint_eq(cl_spread_take(&spread, silent, half + 1, 3 * (uint64_t)NS_PER_S), half);
	cl_spread_leave(&spread, spread.ranges[other].path);
	ck_assert_uint_eq(cl_spread_take(&spread, silent, 1, 3 * (uint64_t)NS_PER_S), 0);
	ck_assert(!cl_spread_wants(&spread, silent));
	cl_spread_end(&spread, silent);
	cl_spread_end(&spread, one);
	cl_spread_end(&spread, other);
	ck_assert(cl_spread_next(&spread, 3 * (uint64_t)NS_PER_S, &ask));
	ck_assert_uint_eq(ask.offset, half);
}
END_TEST

/* One range on each of two paths of a server with large windows, which have the same rate. */
static void start_two_paths(struct cl_spread *spread, uint64_t bytes)
{
	cl_spread_init(spread);
	cl_spread_widen(spread);
	cl_spread_add(spread, 0, bytes);
	cl_spread_join(spread, 0, NS_PER_MS, NS_PER_MS);
	cl_spread_join(spread, 1, NS_PER_MS, NS_PER_MS);
}

/* Bytes of both ranges arrive each millisecond, but for those in `silent`, a mask. */
static uint64_t bring_bytes(struct cl_spread *spread, unsigned silent, uint64_t bytes,
			    uint64_t from, uint64_t until)
{
	for (; from < until; from += NS_PER_MS) {
		for (unsigned i = 0; i < CL_RANGES; i++)
			if (spread->ranges[i].used && !(silent & 1u << spread->ranges[i].path))
				cl_spread_take(spread, i, bytes, from);
		cl_spread_tick(spread, from);
	}
	return until;
}

/* Everything stood still, as on a machine that is busy: the calls go on, and nothing is asked for twice. */
START_TEST(calls_go_on_after_a_silence)
{
	const uint64_t half = (uint64_t)8 << 20;
	struct cl_spread spread;
	struct cl_spread_ask ask;
	uint64_t now = 2 * NS_PER_MS;
	unsigned one, other;

	start_two_paths(&spread, 2 * half);
	one = ask_next(&spread, NS_PER_MS, 0, half);
	other = ask_next(&spread, NS_PER_MS, half, half);
	now = bring_bytes(&spread, 0, 4096, now, now + 300 * NS_PER_MS);
	now += 500 * NS_PER_MS;
	cl_spread_tick(&spread, now);
	ck_assert_int_eq(spread.paths[0].state, CL_PATH_SUSPECT);
	ck_assert_int_eq(spread.paths[1].state, CL_PATH_SUSPECT);
	ck_assert_uint_eq(cl_spread_take(&spread, other, 4096, now), 4096);
	cl_spread_hear(&spread, 0, now);
	ck_assert(!cl_spread_next(&spread, now, &ask));
	ck_assert_uint_eq(spread.ranges[one].end, half);
	ck_assert_uint_eq(spread.ranges[other].end, 2 * half);
	ck_assert_uint_eq(spread.hole_count, 0);
	ck_assert(spread.paths[0].rate > 0);
}
END_TEST

/* A path that was out comes back slowly. It has raised the sum before, and does so again later. */
START_TEST(a_path_that_returns_is_used)
{
	const uint64_t half = (uint64_t)32 << 20;
	struct cl_spread spread;
	struct cl_spread_ask ask;
	uint64_t now = 2 * NS_PER_MS;

	start_two_paths(&spread, 2 * half);
	ask_next(&spread, NS_PER_MS, 0, half);
	ask_next(&spread, NS_PER_MS, half, half);
	now = bring_bytes(&spread, 0, 4096, now, now + 500 * NS_PER_MS);
	now = bring_bytes(&spread, 1, 4096, now, now + 2 * (uint64_t)NS_PER_S);
	ck_assert_int_eq(spread.paths[0].state, CL_PATH_OUT);
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (spread.ranges[i].used && spread.ranges[i].path == 0)
			cl_spread_end(&spread, i);
	cl_spread_join(&spread, 0, now, NS_PER_MS);
	ck_assert(cl_spread_next(&spread, now, &ask));
	ck_assert_uint_eq(ask.path, 0);
	bring_bytes(&spread, 0, 128, now, now + 2 * (uint64_t)NS_PER_S);
	ck_assert_int_eq(spread.paths[0].state, CL_PATH_LIVE);
	ck_assert_int_eq(spread.paths[1].state, CL_PATH_LIVE);
}
END_TEST

TEST_MAIN_WITHIN(60, "spread", good_links_carry_their_sum, a_link_dies_and_returns,
		 a_busy_client_takes_no_path_for_silent, a_link_becomes_slow, a_link_comes_late,
		 a_shared_bottleneck_costs_nothing, an_answer_comes_late,
		 bytes_behind_those_that_were_dropped, no_byte_is_lost_in_bad_weather,
		 calls_go_on_after_a_silence, a_path_that_returns_is_used)
