/* SPDX-License-Identifier: BSD-2-Clause */
/* The client of librxafs that a run has: its cells and tokens, and operations that are repeated and reported. */
#ifndef COPY_SESSION_H
#define COPY_SESSION_H

#include <rxafs/client.h>

#include "afscp/change.h"
#include "afscp/run.h"

/* Open the client of the run, and get its token. 0, or -1 after a message. */
int session_open(struct run *run);
/* Whether the name of a cell stands for one of which only the servers are known. */
bool session_is_unnamed(const char *cell);
/* No thread uses it any more. `limit_ms`: for giving promises back. */
void session_close(struct run *run, unsigned limit_ms);
/* Operations in progress and later ones end as interrupted. With the lock of the run. */
void session_cancel(struct run *run);

/* For calls that begin from now on, as tools_renewal_use; arg: the run. */
bool session_use_token(void *arg, rxw_token *token);

/*
 * A request for one operation of this thread, with the run's user. Before: the token is renewed if it ends
 * soon.
 */
struct rxafs_request session_request(struct run *run);

/*
 * One operation with its tries:
 *	struct attempt t = attempt_begin(run, CHANGE_MKDIR, label);
 *	while (attempt_again(&t, rxafs_mkdir(directory, &t.request, …)))
 *		;
 *	return attempt_result(&t);
 */
struct attempt {
	struct run *run;
	enum change_op op;   /* CHANGE_NONE: it reads */
	const char *label;   /* names the object in messages */
	rxafs_object *about; /* of its volume, or NULL: to tell why that is off line */
	bool silent;	     /* it is not repeated, and a failure not reported */
	bool later;	     /* a failure is reported by attempt_complain() */
	struct rxafs_request request;
	struct outage outage;
	uint64_t began;		/* of monotonic_ns() */
	bool unknown;		/* an earlier try may have made the change */
	int64_t value;		/* what the operation returned at last: a negative errno, or not */
	struct afs_error error; /* after a failure */
};
struct attempt attempt_begin(struct run *run, enum change_op op, const char *label);
/*
 * Whether the operation, which returned `value`, is to be repeated: it failed for a reason that may go within
 * the time of --retry. Waits before that. A failure is reported at the end, but not if `expected`, a negative
 * errno, is its value.
 */
bool attempt_again(struct attempt *attempt, int64_t value);
bool attempt_again_unless(struct attempt *attempt, int64_t value, int expected);
/* Report a failure that was kept back. */
void attempt_complain(struct attempt *attempt);
/* The same, of an object with another label. */
void attempt_complain_of(struct attempt *attempt, const char *label);
/* Report an errno value that an object has. */
void session_complain(struct run *run, const char *label, int number);
/* COPY_GOOD, COPY_FAILED, or COPY_STOP: the rest would fail, too. */
enum copy_result attempt_result(const struct attempt *attempt);

#endif
