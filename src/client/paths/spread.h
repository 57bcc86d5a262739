/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scheduler of a fetch over several paths to one server (several-paths 8). Paths pull: one that has room takes the lowest bytes that
 * nobody has asked for, as many as it carries in about a second. A silent path loses what it has not delivered to the
 * others, and near the end a path without work takes a share of the range that would end last.
 *
 * Pure: no I/O, no clock, and no memory beyond the structure. Times are nanoseconds of one clock, and never go back. One thread.
 */
#ifndef CLIENT_PATHS_SPREAD_H
#define CLIENT_PATHS_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#define CL_PATHS  8  /* of one fetch (P-057) */
#define CL_RANGES 16 /* in flight on all of them (P-006) */
#define CL_HOLES  64

enum cl_path_state {
	CL_PATH_OUT,	 /* not probed yet, or dead */
	CL_PATH_LIVE,	 /* takes ranges */
	CL_PATH_SUSPECT, /* silent: others may take what it has been asked for (P-066) */
	CL_PATH_PARKED	 /* alive, but does not raise the sum of the rates (P-068) */
};

struct cl_spread_path {
	enum cl_path_state state;
	uint64_t rtt;	   /* ns; 0: unknown */
	double rate;	   /* bytes in a second, while it has work; 0: unknown (P-063) */
	uint64_t bytes;	   /* that were kept */
	uint64_t repeated; /* bytes that came, and were there or not wanted any more */
	unsigned flying;   /* ranges in flight */
	unsigned most;	   /* of them */
	uint64_t heard;	   /* the last bytes; or when the first range after a pause was asked for */
	uint64_t gap;	   /* between arrivals, smoothed */
	uint64_t first;	   /* length of the next range while the rate is unknown: it doubles */
	/* the present measurement: work before, since when there is work now, bytes */
	uint64_t worked, since, counted;
	double raised; /* the rate when `most` grew */
	/* the sum of the rates of the others when it joined; 0: nothing to compare with */
	double before;
	uint64_t joined;
};

struct cl_spread_range {
	bool used;
	bool loose; /* its path is silent, and its bytes are holes again */
	unsigned path;
	uint64_t at, end; /* the next byte to come; the end of what it is to bring */
};

struct cl_spread {
	bool wide; /* see cl_spread_widen() */
	struct cl_spread_path paths[CL_PATHS];
	struct cl_spread_range ranges[CL_RANGES];
	struct cl_hole {
		uint64_t at, end;
	} holes[CL_HOLES]; /* nobody is asked for these bytes; in order, apart */
	unsigned hole_count;
};

void cl_spread_init(struct cl_spread *spread);
/* Bytes that are to be fetched. */
void cl_spread_add(struct cl_spread *spread, uint64_t at, uint64_t end);
/*
 * One call fills a path, and does not hinder others for as long as it lasts: a path has one range in flight, which may be long, and gets the
 * next one shortly before that ends. Calls that share a path would compete for its queue. Not so for small windows (P-082).
 */
void cl_spread_widen(struct cl_spread *spread);
/* Whether every byte has come. */
bool cl_spread_complete(const struct cl_spread *spread);

/* A path carries data from now on. `rtt`: of its probe, or 0. */
void cl_spread_join(struct cl_spread *spread, unsigned path, uint64_t now, uint64_t rtt);
/* It does not any more. Its ranges stay until cl_spread_end(), without bytes that are to come. */
void cl_spread_leave(struct cl_spread *spread, unsigned path);

struct cl_spread_ask {
	unsigned path, range;
	uint64_t offset, length;
};
/* What to ask for next. False: nothing now. */
bool cl_spread_next(struct cl_spread *spread, uint64_t now, struct cl_spread_ask *ask);
/*
 * The next bytes of a range have come. Returns how many of them, from the first one on, are to be kept. The call of a range that wants no
 * more can be aborted.
 */
uint64_t cl_spread_take(struct cl_spread *spread, unsigned range, uint64_t bytes, uint64_t now);
bool cl_spread_wants(const struct cl_spread *spread, unsigned range);
/* Packets have come on a path, although none of them brought the next bytes of a range. */
void cl_spread_hear(struct cl_spread *spread, unsigned path, uint64_t now);
/* For so long nobody could have heard a path: that was no silence. */
void cl_spread_excuse(struct cl_spread *spread, uint64_t ns, uint64_t now);
/* The call of a range is over. What it has not brought is asked for again. */
void cl_spread_end(struct cl_spread *spread, unsigned range);

/*
 * Look for silent paths. Returns when to do it again, at the latest. A path that is CL_PATH_OUT afterwards is dead: end the calls of its
 * ranges. The last path that lives is never given up.
 */
uint64_t cl_spread_tick(struct cl_spread *spread, uint64_t now);

#endif
