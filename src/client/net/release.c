/* SPDX-License-Identifier: BSD-2-Clause */
/* Releases of read-only volumes: which one is shown. */
#include <assert.h>
#include <string.h>

#include "client/net/release.h"

static bool is_past(const struct cl_releases *r, uint32_t date)
{
	for (unsigned i = 0; i < CL_RELEASES_PAST; i++)
		if (r->past[i] == date)
			return true;
	return false;
}

enum cl_age cl_release_age(const struct cl_releases *r, uint32_t date)
{
	if (date == r->current)
		return CL_AGE_CURRENT;
	if (date == r->coming)
		return CL_AGE_NEWER;
	return is_past(r, date) || date < r->current ? CL_AGE_OLDER : CL_AGE_NEWER;
}

/*
 * Calls are served in another order than they are sent. A site never goes back by itself: if it has shown the current release, then
 * another one is newer, whatever its date.
 */
static void note_shown(struct cl_releases *r, const struct cl_release_answer *answer)
{
	uint32_t before = r->date[answer->site], date = answer->date;

	if (answer->asked < r->heard[answer->site])
		return;
	if (r->current && before == r->current && date != before && !is_past(r, date))
		r->coming = date;
	r->date[answer->site] = date;
	r->asked[answer->site] = answer->asked;
	r->heard[answer->site] = answer->heard;
}

static void step_forward(struct cl_releases *r, uint32_t date)
{
	assert(date && date != r->current);
	memmove(r->past + 1, r->past, sizeof(r->past) - sizeof(r->past[0]));
	r->past[0] = r->current;
	r->current = date;
	r->coming = 0;
}

/* Releases that came after this one are newer again. */
static void step_back(struct cl_releases *r, uint32_t date)
{
	bool listed = is_past(r, date), after = true;

	assert(date && date != r->current);
	for (unsigned i = 0; i < CL_RELEASES_PAST; i++) {
		bool here = r->past[i] == date;

		if (listed ? after : r->past[i] > date)
			r->past[i] = 0;
		after &= !here;
	}
	r->coming = r->current;
	r->current = date;
}

/* The sites that have shown something of this age. */
static uint32_t find_of_age(const struct cl_releases *r, uint32_t sites, enum cl_age age)
{
	uint32_t found = 0;

	for (unsigned i = 0; i < NMAXNSERVERS; i++)
		if (sites & 1u << i && r->date[i] && cl_release_age(r, r->date[i]) == age)
			found |= 1u << i;
	return found;
}

static bool is_half(uint32_t some, uint32_t all)
{
	return 2 * __builtin_popcount(some & all) >= __builtin_popcount(all);
}

static enum cl_release_verdict judge_newer(struct cl_releases *r,
					   const struct cl_release_answer *answer,
					   const struct cl_release_sites *sites)
{
	uint32_t site = 1u << answer->site;
	uint32_t newer = find_of_age(r, sites->all, CL_AGE_NEWER) | site;
	uint32_t older = find_of_age(r, sites->all, CL_AGE_OLDER);
	bool marked = sites->marked & site && answer->date > r->current;

	if (!is_half(newer, sites->all) && !(marked && is_half(sites->marked, sites->all))) {
		if (!sites->settled)
			return CL_RELEASE_MARKS;
		if (sites->open & ~newer & ~older)
			return CL_RELEASE_ASIDE;
	}
	step_forward(r, answer->date);
	return CL_RELEASE_TAKE;
}

static enum cl_release_verdict judge_older(struct cl_releases *r,
					   const struct cl_release_answer *answer,
					   const struct cl_release_sites *sites)
{
	uint32_t older;

	if (r->date[answer->site] != answer->date)
		return CL_RELEASE_LATE;
	/* One that has shown nothing may have the current release, too, or has got it since. */
	older = find_of_age(r, sites->all, CL_AGE_OLDER);
	for (unsigned i = 0; i < NMAXNSERVERS; i++)
		if (sites->open & 1u << i && r->asked[i] < sites->since)
			older &= ~(1u << i);
	if (sites->all & sites->near & ~older)
		return CL_RELEASE_OLD;
	step_back(r, answer->date);
	return CL_RELEASE_BACK;
}

enum cl_release_verdict cl_release_judge(struct cl_releases *r,
					 const struct cl_release_answer *answer,
					 const struct cl_release_sites *sites)
{
	assert(answer->site < NMAXNSERVERS && answer->date && sites->all & 1u << answer->site);
	note_shown(r, answer);
	if (!r->current) {
		r->current = answer->date;
		return CL_RELEASE_TAKE;
	}
	switch (cl_release_age(r, answer->date)) {
	case CL_AGE_NEWER:
		return judge_newer(r, answer, sites);
	case CL_AGE_OLDER:
		return judge_older(r, answer, sites);
	case CL_AGE_CURRENT:
		break;
	}
	return CL_RELEASE_TAKE;
}

void cl_release_keep(struct cl_releases *now, unsigned to, const struct cl_releases *before,
		     unsigned from)
{
	now->date[to] = before->date[from];
	now->asked[to] = before->asked[from];
	now->heard[to] = before->heard[from];
}
