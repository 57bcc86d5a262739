/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the module of the network: the tries of one call on a volume, by the table of K-135. */
#ifndef CLIENT_NET_TRIES_H
#define CLIENT_NET_TRIES_H

#include "client/net/many.h"
#include "client/net/record.h"

#define CL_READS \
	1u /* changes nothing: a cancel aborts it, and without a valid token it is made as anonymous */
#define CL_ONCE 2u /* not repeated if it may have been carried out */
#define CL_NOW	4u /* asks about the volume, also while that is off-line or busy */

/*
 * A call as
 *	cl_tries_start(&t, …);
 *	while (cl_tries_next(&t))
 *		cl_tries_judge(&t, StartRXAFS_X(t.sent.call, …) ?: EndRXAFS_X(t.sent.call, …), RXAFS_FN_X);
 *	return cl_tries_result(&t);
 */
struct cl_tries {
	struct cl_volume *volume;
	const struct cl_caller *caller;
	const char *operation; /* its name, for failures */
	AFSFid fid;
	unsigned flags;
	struct cl_stamp *stamp;
	struct rxafs_failure *failure; /* may be NULL */
	uint64_t bytes; /* that the answer may have: a long one takes the path that brings it soonest */
	uint32_t
		alternative; /* enum cl_missing: there is another call for servers that lack this one */

	struct cl_sent sent; /* valid after cl_tries_next() */
	struct cl_credential *credential;

	int site;	  /* index in the record */
	uint32_t tried;	  /* by index: not again in this round */
	uint32_t aside;	  /* of these: their release is too new, as long as others can be asked */
	uint32_t version; /* of the record that `site` and `tried` belong to */
	uint64_t began, lost; /* lost: when the first server did not answer; 0 = none */
	unsigned hops, restarts, detours; /* detours: by another path, since one was silent */
	bool spared; /* a try was ended after the dead time, since another site has the same */
	bool release_known; /* the location service was asked for the sites of a newer release */
	bool refreshed, renewed, anonymous, repeated, over;
	int reason; /* errno value for the user if the time ends now */
	int result;
	rxw_code code; /* of the last try that failed */
	const char *why; /* of RXW_PROTOCOL_ERROR, or NULL */
	enum rxw_origin origin;
	struct cl_stamp own; /* for callers without one */
};

void cl_tries_start(struct cl_tries *t, struct cl_volume *volume, const struct cl_caller *caller,
		    const char *operation, const AFSFid *fid, unsigned flags,
		    struct cl_stamp *stamp, struct rxafs_failure *failure);
/* Finds a site and begins a call there. False: it is over. */
bool cl_tries_next(struct cl_tries *t);
/* After a success: one more call at the same server. False: cl_tries_next() finds another, or it is over. */
bool cl_tries_same(struct cl_tries *t);
/*
 * Begin a call at the site of another one, which is in progress, if that needs no wait. No cancel ends it until
 * cl_tries_attach(), which is false if one was raised.
 */
bool cl_tries_ahead(struct cl_tries *t, const struct cl_tries *first);
bool cl_tries_attach(struct cl_tries *t);
/*
 * The call has ended with `code`, that of the stubs; `function` is its index. stamp->sync and
 * ->callback are filled in.
 */
void cl_tries_judge(struct cl_tries *t, rxw_code code, unsigned function);
/* The call ends without a further try: result < 0, or what a function of the caller returned. */
void cl_tries_stop(struct cl_tries *t, int result);
/* The answer cannot be right. */
void cl_tries_reject(struct cl_tries *t, const char *why);
int cl_tries_result(struct cl_tries *t);
/* Whether another site of the volume can have what this one cannot give; this one is not tried again. */
bool cl_tries_elsewhere(struct cl_tries *t);
/* When the state of the volume was made that the server of this try had last; 0: unknown. */
uint32_t cl_tries_creation(const struct cl_tries *t);
/* Whether the volume has more than one site. */
bool cl_tries_choose(struct cl_tries *t);
/* Whether the server of this try lacks a call. */
bool cl_tries_lacks(const struct cl_tries *t, enum cl_missing call);

/* ---- flights.c: calls on one volume that are in progress at the same time ---- */

/* What the calls do. `i` is the number of the call, from 0. */
struct cl_flight {
	unsigned function;	 /* its index */
	enum cl_missing missing; /* a server that lacks this call gets none of them; 0: no server does */
	/* Send the request to its end, without a wait for the reply. A failure shows in receive(). */
	void (*send)(void *arg, unsigned i, rxw_call *call);
	/* The reply. The code for cl_tries_judge(). */
	rxw_code (*receive)(void *arg, unsigned i, struct cl_tries *t);
	/* The others go on meanwhile. -EAGAIN: it was not made, or needs another try, by a call of its own. */
	void (*ended)(void *arg, unsigned i, int result);
	void *arg;
};
/* All tries were started on one volume for one caller. At most CL_MANY. */
void cl_tries_together(struct cl_tries *tries, unsigned count, const struct cl_flight *flight);

/* ---- verdict.c ---- */

enum cl_verdict {
	CL_VERDICT_FINAL,     /* the user sees `number` */
	CL_VERDICT_SILENT,    /* no answer */
	CL_VERDICT_ELSEWHERE, /* another site, or the same again */
	CL_VERDICT_BUSY,
	CL_VERDICT_OFFLINE,
	CL_VERDICT_GONE,  /* this server does not have the volume */
	CL_VERDICT_MOVED, /* another one has it */
	CL_VERDICT_DAMAGED,
	CL_VERDICT_EXPIRED, /* the token */
	CL_VERDICT_GARBLED,
	CL_VERDICT_MISSING /* the server does not know this call */
};
/* What a code means, and the errno value if nothing else helps. */
enum cl_verdict cl_verdict_of(rxw_code code, enum rxw_origin origin, int *number);
/* Whether a call that failed so may have been carried out. */
bool cl_verdict_unknown(rxw_code code, enum rxw_origin origin);

#endif
