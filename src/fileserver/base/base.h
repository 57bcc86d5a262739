/* SPDX-License-Identifier: BSD-2-Clause */
/* Common to all modules of the file server: the log, the clock, shares, threads. */
#ifndef FILESERVER_BASE_H
#define FILESERVER_BASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <rxwire/config.h>

#include "common/clock.h"
#include "common/htable.h"

/* Size of the buffer for the one line that explains why something could not be started. */
#define FSD_MESSAGE_MAX 512

/* -- the clock -- */

/* Seconds of the monotonic clock. */
static inline uint64_t fsd_now(void)
{
	return monotonic_ns() / NS_PER_S;
}

/* -- the log: "<N>text" for the journal, "rxfsd: text" elsewhere, always on stderr -- */

/* Detect whether stderr is the journal's stream ($JOURNAL_STREAM). Once, before other threads. */
void fsd_log_start(void);
/* Suppress lines less urgent than `level`; default RXW_LOG_INFO. Any thread. */
void fsd_log_level(enum rxw_log_level level);
/* Write one line with one write(). Any thread. */
void fsd_log(enum rxw_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A limit on the lines of a kind that clients cause. Zeroed at first. */
struct fsd_log_limit {
	_Atomic uint64_t minute;
	_Atomic unsigned lines, left_out;
};
/* Whether one of `most` in a minute is left at `now`, ns. *left_out: lines that were not written before it. Any thread. */
bool fsd_log_permits(struct fsd_log_limit *lines, uint64_t now, unsigned most, unsigned *left_out);
/*
 * Hold lines back (up to 4 KiB of them) until the outcome of the start is known: a server that
 * cannot start reports that in one line. Release with `print` false to discard the held lines.
 */
void fsd_log_hold(void);
void fsd_log_release(bool print);
/* For rxw_config.log. */
void fsd_log_library(void *arg, enum rxw_log_level level, const char *line);

/* -- the limit on stopping -- */

struct fsd_limit;
/*
 * Unless fsd_limit_end() is called within `ms`: call explain(arg) on a thread of its own, then end
 * the process with EXIT_FAILURE, whatever its other threads are blocked in. NULL without memory or
 * a thread: there is no limit.
 */
struct fsd_limit *fsd_limit_start(uint64_t ms, void (*explain)(void *arg), void *arg);
void fsd_limit_end(struct fsd_limit *limit); /* NULL is allowed */

/* -- memory that was freed -- */

/*
 * The C library keeps what was freed, which is most of the memory of the process after a peak. Zeroed at first; one
 * thread, now and then.
 */
struct fsd_trim {
	size_t most, peak; /* bytes in use: since the last time, and ever */
};
/*
 * Return it to the system, which takes some ms, if 64 MiB less are in use than at most since the last time. `used`: bytes
 * now; `peak`: at most ever, or 0. Returns whether it did.
 */
bool fsd_trim(struct fsd_trim *trim, size_t used, size_t peak);

/*
 * -- shares of what callers have in common: entries of a table, places in a queue. A caller gets one more while it has fewer
 * than are free, so that none can take all, and each of the others still finds room. --
 */

/* A caller: a user, or an address. */
struct fsd_share_key {
	uint8_t bytes[20];
};
/* An IPv6 address counts up to its network (64 bits), and one of this machine with its port. */
void fsd_share_of_address(const struct sockaddr_storage *peer, struct fsd_share_key *key);
void fsd_share_of_user(int32_t id, struct fsd_share_key *key);
static inline bool fsd_same_share(const struct fsd_share_key *a, const struct fsd_share_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The share of one caller. It is the first member of an item of struct fsd_shares; the rest is for the user of that. */
struct fsd_share {
	void *chain;
	struct fsd_share_key key;
	size_t count;
};

/* The user locks. */
struct fsd_shares {
	struct htable table; /* with a key: callers choose their addresses */
	size_t item;	     /* bytes of one */
	size_t count;	     /* of all callers */
};
bool fsd_shares_init(struct fsd_shares *shares, size_t item, const uint64_t secret[2]);
void fsd_shares_fini(struct fsd_shares *shares);
/* One more of `max` for a caller. NULL: it has as many as are free, or there is no memory. */
struct fsd_share *fsd_share_take(struct fsd_shares *shares, const struct fsd_share_key *key,
				 size_t max);
void fsd_share_give(struct fsd_shares *shares, struct fsd_share *share);
/* The number of those of a caller. */
size_t fsd_share_count(const struct fsd_shares *shares, const struct fsd_share_key *key);

/* -- threads for jobs that may wait for the disk, made on demand. Callers take turns, whatever the number of their jobs -- */

struct fsd_pool;

/* In memory of the caller, which may queue it again once `run` was called. */
struct fsd_job {
	struct fsd_pool_caller *caller; /* whose job it is */
	void (*run)(struct fsd_job *job);
	bool urgent; /* before others of its caller, which does not wait for its turn if it has none queued */
	/* The pool's: */
	struct fsd_job *next;
	uint64_t since; /* when it was queued; monotonic ns */
};
struct fsd_jobs {
	struct fsd_job *first, **last; /* none: `last` is void */
};

/* The lock of the pool covers it. It may begin an item of the user of the pool. */
struct fsd_pool_caller {
	struct fsd_share share; /* who entered */
	struct fsd_jobs urgent, others;
	struct fsd_pool_caller *next; /* has jobs that are queued, too */
};

/*
 * At most `most` threads; more than `few` work only if a job is queued for longer than 1 ms and fewer than `few` run. The
 * others sleep. `caller`: bytes of the item of a caller, zeroed when the first one enters. NULL: no memory.
 */
struct fsd_pool *fsd_pool_create(unsigned most, unsigned few, size_t caller);
/* No job is queued or running but those that are about to return. NULL is allowed. */
void fsd_pool_destroy(struct fsd_pool *pool);
/* The number of threads. *rests, unless NULL: no job is queued or running. */
unsigned fsd_pool_threads(struct fsd_pool *pool, bool *rests);
/* A caller that will have jobs; to be left. NULL: no memory, or no thread. */
struct fsd_pool_caller *fsd_pool_enter(struct fsd_pool *pool, const struct fsd_share_key *key);
/* No job of who entered is queued. */
void fsd_pool_leave(struct fsd_pool *pool, struct fsd_pool_caller *caller);
/* The jobs of a caller start in this order, urgent ones first. Any thread. */
void fsd_pool_post(struct fsd_pool *pool, struct fsd_job *job);
/* A thread that is needed for other calls as well may do a job itself, until fsd_pool_return(). False: enough do so. */
bool fsd_pool_borrow(struct fsd_pool *pool);
void fsd_pool_return(struct fsd_pool *pool);

/* -- counters of each volume. Any thread, without a lock -- */

enum fsd_volume_counter {
	FSD_VOLUME_FETCHES,
	FSD_VOLUME_FETCHED_BYTES,
	FSD_VOLUME_CHANGES,
	FSD_VOLUME_STORED_BYTES,
	FSD_VOLUME_COUNTERS
};

struct fsd_volume_counts;

struct fsd_volume_counts *fsd_volume_counts_create(void);	  /* NULL: no memory */
void fsd_volume_counts_destroy(struct fsd_volume_counts *counts); /* NULL is allowed */

/*
 * Volumes that were ever counted have a place until the server ends. About 60,000 have one; those that come later are
 * not counted. `counts` may be NULL.
 */
void fsd_volume_count(struct fsd_volume_counts *counts, uint32_t id,
		      enum fsd_volume_counter counter, uint64_t n);
uint64_t fsd_volume_counted(const struct fsd_volume_counts *counts, uint32_t id,
			    enum fsd_volume_counter counter);

#endif
