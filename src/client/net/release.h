/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the module of the network: which releases the sites of a read-only volume have, and which one callers are shown (K-052). No
 * I/O and no clock, so a model of releases tests it.
 *
 * A release is known by its date. That is of the clock of the server that made it, so a later release can have an earlier date. Dates
 * are compared only if nothing else tells the order.
 */
#ifndef CLIENT_NET_RELEASE_H
#define CLIENT_NET_RELEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "afs/vl.h"

#define CL_RELEASES_PAST 4u

/* Zeroed: nothing is known. */
struct cl_releases {
	uint32_t date[NMAXNSERVERS];  /* by site: what it has shown last; 0 = nothing yet */
	uint64_t asked[NMAXNSERVERS], heard[NMAXNSERVERS]; /* when the call was sent; when it was answered */
	uint32_t current;	     /* of the release that callers are shown; 0 = none yet */
	uint32_t past[CL_RELEASES_PAST]; /* those before it, the last one first */
	uint32_t coming; /* a site that had the current release shows this one now; 0 = none */
};

enum cl_age { CL_AGE_OLDER, CL_AGE_CURRENT, CL_AGE_NEWER };

/* The sites of a volume, as bits by their index. */
struct cl_release_sites {
	uint32_t all;
	uint32_t marked; /* have the new release, by the location service */
	uint32_t near;	 /* answer, or did so a short time ago */
	uint32_t open;	 /* can be asked now instead of the one that has answered */
	bool settled;	 /* the marks are of after the last answer with a newer release */
	uint64_t since;	 /* what an open site has shown before may be over */
};

struct cl_release_answer {
	unsigned site;
	uint32_t date;
	uint64_t asked, heard;
};

enum cl_release_verdict {
	CL_RELEASE_TAKE,
	CL_RELEASE_BACK,  /* take it; callers have seen a newer one, which no site gives any more */
	CL_RELEASE_MARKS, /* ask the location service, and then a site again */
	CL_RELEASE_ASIDE, /* too new: ask another site first */
	CL_RELEASE_OLD,	  /* ask another site, or wait for one */
	CL_RELEASE_LATE	  /* ask again: the site has shown a later state meanwhile */
};

/* Of a date, beside the current one. */
enum cl_age cl_release_age(const struct cl_releases *releases, uint32_t date);
/*
 * A site has answered. If the verdict is to take it, that is the current release from now on.
 *
 * - An older release is taken only if no site is near that may have the current one. One that had an older one is asked again before.
 * - A newer one is taken once half of the sites have it, by what they have shown or by their marks: if only one has it and dies, nobody
 *   could go on. Before that the others serve, as long as one of them can be asked.
 */
enum cl_release_verdict cl_release_judge(struct cl_releases *releases,
					 const struct cl_release_answer *answer,
					 const struct cl_release_sites *sites);
/* Site `to` of the new list is what site `from` of the old one was. */
void cl_release_keep(struct cl_releases *now, unsigned to, const struct cl_releases *before,
		     unsigned from);

#endif
