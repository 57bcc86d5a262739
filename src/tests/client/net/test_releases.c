/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which release of a read-only volume a client shows (K-052): each rule, and a model of releases that reach some sites, of sites that
 * die and return, and of answers that come in another order. RXW_SIM_SEEDS: how many seeds (200); RXW_SIM_FIRST: the first (1).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/net/release.h"
#include "tests/main.h"

#define ALL(sites) ((1u << (sites)) - 1)

static struct cl_releases r;
static uint64_t now;

static void begin_releases(void)
{
	memset(&r, 0, sizeof(r));
	now = 100;
}

/* A site answers at once, all sites being near and open. */
static enum cl_release_verdict answer_of(unsigned site, uint32_t date,
					 struct cl_release_sites sites)
{
	struct cl_release_answer answer = {.site = site, .date = date, .asked = now + 1};

	answer.heard = now += 2;
	return cl_release_judge(&r, &answer, &sites);
}

static struct cl_release_sites three(uint32_t marked, bool settled)
{
	return (struct cl_release_sites){
		.all = 7, .marked = marked, .near = 7, .open = 7, .settled = settled};
}

START_TEST(an_unmarked_release_is_taken_once_half_have_it)
{
	begin_releases();
	ck_assert_int_eq(answer_of(0, 10, three(0, false)), CL_RELEASE_TAKE);
	ck_assert_int_eq(answer_of(0, 20, three(0, false)), CL_RELEASE_MARKS);
	ck_assert_int_eq(answer_of(0, 20, three(0, true)), CL_RELEASE_ASIDE);
	ck_assert_int_eq(answer_of(1, 10, three(0, true)), CL_RELEASE_TAKE);
	ck_assert_uint_eq(r.current, 10);
	/* The second of three. Nobody need ask the location service. */
	ck_assert_int_eq(answer_of(1, 20, three(0, false)), CL_RELEASE_TAKE);
	ck_assert_uint_eq(r.current, 20);
	ck_assert_int_eq(answer_of(2, 10, three(0, true)), CL_RELEASE_OLD);
	ck_assert_int_eq(answer_of(2, 20, three(0, true)), CL_RELEASE_TAKE);
}
END_TEST

START_TEST(marks_of_half_of_the_sites_count)
{
	begin_releases();
	answer_of(0, 10, three(0, false));
	ck_assert_int_eq(answer_of(0, 20, three(1, true)), CL_RELEASE_ASIDE);
	ck_assert_int_eq(answer_of(0, 20, three(3, true)), CL_RELEASE_TAKE);
}
END_TEST

START_TEST(a_newer_release_is_better_than_none)
{
	struct cl_release_sites sites = three(0, true);

	begin_releases();
	answer_of(1, 10, sites);
	sites.open = 1;
	ck_assert_int_eq(answer_of(0, 20, sites), CL_RELEASE_TAKE);
	/* One that has an older release is no alternative. */
	begin_releases();
	answer_of(1, 10, three(0, true));
	answer_of(2, 5, three(0, true));
	sites.open = 1u << 2;
	ck_assert_int_eq(answer_of(0, 20, sites), CL_RELEASE_TAKE);
}
END_TEST

START_TEST(an_older_release_is_taken_if_no_other_is_near)
{
	struct cl_release_sites sites = three(0, true);

	begin_releases();
	answer_of(0, 20, sites);
	ck_assert_int_eq(answer_of(1, 10, sites), CL_RELEASE_OLD);
	ck_assert_int_eq(answer_of(2, 10, sites), CL_RELEASE_OLD);
	/* It is asked again before. */
	sites.near = 6;
	sites.since = now + 1;
	ck_assert_int_eq(answer_of(1, 10, sites), CL_RELEASE_OLD);
	ck_assert_int_eq(answer_of(2, 10, sites), CL_RELEASE_BACK);
	begin_releases();
	sites = three(0, true);
	answer_of(0, 20, sites);
	/* The third one has shown nothing, so it may have the newer release. */
	sites.near = 6;
	ck_assert_int_eq(answer_of(1, 10, sites), CL_RELEASE_OLD);
	sites.near = 2;
	ck_assert_int_eq(answer_of(1, 10, sites), CL_RELEASE_BACK);
	ck_assert_uint_eq(r.current, 10);
	/* The newer one is back. */
	sites = three(0, true);
	ck_assert_int_eq(answer_of(0, 20, sites), CL_RELEASE_ASIDE);
	ck_assert_int_eq(answer_of(2, 20, sites), CL_RELEASE_TAKE);
}
END_TEST

/* The clock of the server that makes the releases was fast, and is right again. */
START_TEST(a_later_release_has_an_earlier_date)
{
	struct cl_release_sites sites = three(0, true);

	begin_releases();
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(answer_of(i, 3600, sites), CL_RELEASE_TAKE);
	ck_assert_int_eq(answer_of(0, 30, sites), CL_RELEASE_ASIDE);
	ck_assert_int_eq(answer_of(1, 3600, sites), CL_RELEASE_TAKE);
	ck_assert_int_eq(answer_of(1, 30, sites), CL_RELEASE_TAKE);
	ck_assert_uint_eq(r.current, 30);
	ck_assert_int_eq(answer_of(2, 3600, sites), CL_RELEASE_OLD);
	ck_assert_int_eq(answer_of(2, 30, sites), CL_RELEASE_TAKE);
}
END_TEST

START_TEST(late_answers_are_no_releases)
{
	struct cl_release_answer late;

	begin_releases();
	late = (struct cl_release_answer){.site = 0, .date = 10, .asked = now};
	answer_of(0, 20, three(0, true));
	late.heard = ++now;
	ck_assert_int_eq(cl_release_judge(&r, &late, &(struct cl_release_sites){.all = 7}),
			 CL_RELEASE_LATE);
	ck_assert_uint_eq(r.current, 20);
	ck_assert_uint_eq(r.date[0], 20);
}
END_TEST

/* -- a model -- */

#define SITES_MOST 5u
#define FLIGHTS	   6u

struct model {
	uint64_t seed, state;
	unsigned sites;
	uint32_t last;		    /* release */
	uint32_t date[2000];	    /* by release */
	uint32_t has[SITES_MOST];   /* release */
	uint64_t got[SITES_MOST];   /* when */
	uint64_t dead[SITES_MOST];  /* since when; 0 = it lives */
	uint32_t marked;	    /* by the location service */
	uint32_t shown, seen_marks; /* release; what the client knows of the marks */
	struct model_flight {
		unsigned site;
		uint64_t sent;
		uint32_t release;
	} flights[FLIGHTS];
	unsigned flight_count;
	bool clocks; /* jump */
	unsigned taken, set_aside, back;
};

#define NEAR 50u /* how long a dead site is waited for */

static uint64_t draw(struct model *m, uint64_t most)
{
	m->state ^= m->state << 13;
	m->state ^= m->state >> 7;
	m->state ^= m->state << 17;
	return m->state % most;
}

/* The next release reaches some of the living sites, and the location service may hear of it or not. */
static void model_release(struct model *m)
{
	uint32_t jump = m->clocks ? (uint32_t)draw(m, 7200) : 0, reached = 0;

	m->last++;
	ck_assert_uint_lt(m->last, 2000);
	m->date[m->last] = 10000 + m->last * 10 + jump;
	for (unsigned i = 0; i < m->sites; i++)
		if (!m->dead[i] && draw(m, 4)) {
			m->has[i] = m->last;
			m->got[i] = now;
			reached |= 1u << i;
		}
	if (draw(m, 3))
		m->marked = reached == ALL(m->sites) ? 0 : reached;
}

static void model_fault(struct model *m)
{
	unsigned site = (unsigned)draw(m, m->sites);

	m->dead[site] = m->dead[site] ? 0 : now;
}

static void model_send(struct model *m)
{
	struct model_flight *flight = &m->flights[m->flight_count];

	if (m->flight_count == FLIGHTS)
		return;
	*flight = (struct model_flight){.site = (unsigned)draw(m, m->sites), .sent = now};
	if (m->dead[flight->site])
		return;
	flight->release = m->has[flight->site];
	m->flight_count++;
}

static struct cl_release_sites model_sites(const struct model *m)
{
	struct cl_release_sites sites = {
		.all = ALL(m->sites), .marked = m->seen_marks, .settled = true};

	for (unsigned i = 0; i < m->sites; i++) {
		sites.open |= m->dead[i] ? 0 : 1u << i;
		sites.near |= !m->dead[i] || now < m->dead[i] + NEAR ? 1u << i : 0;
	}
	return sites;
}

static void model_receive(struct model *m)
{
	unsigned at = (unsigned)draw(m, m->flight_count);
	struct model_flight flight = m->flights[at];
	struct cl_release_answer answer = {.site = flight.site,
					   .date = m->date[flight.release],
					   .asked = flight.sent,
					   .heard = now};
	struct cl_release_sites sites = model_sites(m);
	enum cl_release_verdict verdict;

	sites.since = flight.sent;

	m->flights[at] = m->flights[--m->flight_count];
	if (draw(m, 2))
		m->seen_marks = m->marked;
	verdict = cl_release_judge(&r, &answer, &sites);
	switch (verdict) {
	case CL_RELEASE_TAKE:
		/* Dates that jump can hide that a site which is asked for the first time is behind. */
		ck_assert_msg(m->clocks || flight.release >= m->shown,
			      "seed %" PRIu64 ": release %u after %u", m->seed, flight.release,
			      m->shown);
		m->shown = flight.release;
		m->taken++;
		break;
	case CL_RELEASE_BACK:
		for (unsigned i = 0; i < m->sites && !m->clocks; i++)
			ck_assert_msg(m->dead[i] || m->has[i] < m->shown ||
					      m->got[i] >= flight.sent,
				      "seed %" PRIu64 ": back from %u while site %u lives", m->seed,
				      m->shown, i);
		m->shown = flight.release;
		m->back++;
		break;
	case CL_RELEASE_ASIDE:
		ck_assert(sites.open & ~(1u << flight.site));
		m->set_aside++;
		break;
	case CL_RELEASE_OLD:
		ck_assert(sites.near);
		break;
	case CL_RELEASE_LATE:
		break;
	case CL_RELEASE_MARKS:
		ck_abort();
	}
	ck_assert_uint_eq(r.current, m->date[m->shown]);
}

/* All sites live and have the last release: whichever is asked, nobody waits any more. */
static void model_end(struct model *m)
{
	m->flight_count = 0;
	now += 1000;
	m->marked = m->seen_marks = 0;
	for (unsigned i = 0; i < m->sites; i++) {
		m->dead[i] = 0;
		m->has[i] = m->last;
	}
	for (unsigned i = 0; i < m->sites; i++)
		answer_of(i, m->date[m->last], model_sites(m));
	for (unsigned i = 0; i < m->sites; i++)
		ck_assert_msg(answer_of(i, m->date[m->last], model_sites(m)) == CL_RELEASE_TAKE,
			      "seed %" PRIu64 ": site %u is not taken in the end", m->seed, i);
}

static void model_run(uint64_t seed, bool clocks, struct model *m)
{
	memset(m, 0, sizeof(*m));
	m->seed = seed;
	m->state = seed * 0x9e3779b97f4a7c15u + clocks + 1;
	m->clocks = clocks;
	m->sites = 1 + (unsigned)draw(m, SITES_MOST);
	m->date[0] = 9000;
	begin_releases();
	for (unsigned step = 0; step < 3000; step++) {
		uint64_t what = draw(m, 100);

		now++;
		if (what < 2)
			model_release(m);
		else if (what < 4)
			model_fault(m);
		else if (what < 55)
			model_send(m);
		else if (m->flight_count)
			model_receive(m);
	}
	model_end(m);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(many_seeds)
{
	uint64_t first = number_of("RXW_SIM_FIRST", 1), count = number_of("RXW_SIM_SEEDS", 200);
	uint64_t taken = 0, set_aside = 0, back = 0;
	struct model m;

	for (uint64_t seed = first; seed < first + count; seed++)
		for (int clocks = 0; clocks < 2; clocks++) {
			model_run(seed, clocks, &m);
			taken += m.taken;
			set_aside += m.set_aside;
			back += m.back;
		}
	/* The model has met what it is for. */
	ck_assert_uint_gt(taken, count * 100);
	ck_assert_uint_gt(set_aside, count);
	ck_assert_uint_gt(back, count / 10);
}
END_TEST

TEST_MAIN_WITHIN(120, "releases", an_unmarked_release_is_taken_once_half_have_it,
		 marks_of_half_of_the_sites_count, a_newer_release_is_better_than_none,
		 an_older_release_is_taken_if_no_other_is_near, a_later_release_has_an_earlier_date,
		 late_answers_are_no_releases, many_seeds)
