/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While the threads that send have no time left, an address with many flows gets no more than about an equal rate: a flow
 * whose address has had its part waits, although there is room in its stream. Addresses with few flows never wait: they
 * cannot take much from others, and a rate that is estimated too low would cost them.
 */
#ifndef FILESERVER_IO_SATURATION_H
#define FILESERVER_IO_SATURATION_H

#include <pthread.h>
#include <stdatomic.h>

#include "fileserver/base/base.h"
#include "fileserver/io/fairrate.h"

#define FSD_SENDERS 8 /* threads that are looked at */

struct fsd_kept_account;

/* A flow. The lock covers what is below `resume`. */
struct fsd_turn {
	struct fsd_crowd_caller *caller;
	/* Called by a thread that may wait; the flow may be gone as soon as it was told. */
	void (*resume)(struct fsd_turn *turn);
	/* The thread that raises it from 0 runs the flow. Since that thread last began. */
	_Atomic unsigned *visits;
	struct fsd_turn *next, **link; /* waits with others of its caller; NULL: it does not */
	uint64_t paid; /* bytes of the next ones that were charged already: they do not wait */
};

/* An address that has flows. The lock covers it. */
struct fsd_crowd_caller {
	unsigned flows;
	struct fair_account account;
	struct fsd_turn *first, **last;	       /* wait, in this order */
	struct fsd_crowd_caller *next, **link; /* some wait; NULL: none does */
};

struct fsd_saturation {
	_Atomic bool on;      /* changes with the lock */
	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t changed;
	bool has_thread, stop;
	pthread_t thread;
	struct fair_rate rate;
	struct fsd_crowd_caller *first, **last; /* have flows that wait, one a turn */
	uint64_t waits;				/* that ever began */
	struct {
		pid_t tid; /* 0: none */
		uint64_t seen;
	} sender[FSD_SENDERS];
	uint64_t secret[2];
	struct fsd_kept_account
		*kept; /* of addresses that have no flow now; NULL: none was kept yet */
};

/* False: no random bytes. */
bool fsd_saturation_init(struct fsd_saturation *all);
/* No flow is left. */
void fsd_saturation_fini(struct fsd_saturation *all);

/* A flow of a caller begins, and ends: it does not wait any more. */
void fsd_turn_begin(struct fsd_saturation *all, struct fsd_turn *turn,
		    const struct fsd_share_key *key);
void fsd_turn_end(struct fsd_saturation *all, struct fsd_turn *turn,
		  const struct fsd_share_key *key);
/* A thread of the library that sends was given time: is it always busy? It does not wait. */
void fsd_saturation_notice(struct fsd_saturation *all);
/* Whether the flow may send its next part. */
bool fsd_turn_has(struct fsd_saturation *all, struct fsd_turn *turn);
/* It waits, unless it may send now: true. */
bool fsd_turn_wait(struct fsd_saturation *all, struct fsd_turn *turn);
void fsd_turn_charge(struct fsd_saturation *all, struct fsd_turn *turn, uint64_t bytes);
/* The number of waits of all flows. */
uint64_t fsd_saturation_waits(struct fsd_saturation *all);
/* Whether an address without flows has an account. The caller has the lock. */
bool fsd_saturation_keeps(const struct fsd_saturation *all, const struct fsd_share_key *key);
/* For tests: saturated from now on, as far as these threads tell. */
void fsd_saturation_begin(struct fsd_saturation *all, pid_t tid);

#endif
