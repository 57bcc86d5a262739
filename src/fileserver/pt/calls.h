/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the protection service. */
#ifndef FILESERVER_PT_CALLS_H
#define FILESERVER_PT_CALLS_H

#include <pthread.h>

#include "afs/pt.h"
#include "fileserver/audit/audit.h"
#include "fileserver/pt/pt.h"
#include "fileserver/guard/guard.h"

#define FSD_PT_WAITING 8 /* changes by users that wait for their turn, one for each user */

struct fsd_pt {
	struct prot *prot;
	struct fsd_guard *guard;
	struct fsd_audit *audit;
	/* Changes by others than administrators: see await_pt_turn(). All of this: lock. */
	pthread_mutex_t lock;
	pthread_cond_t moved; /* something of the following is different */
	bool stopping, busy;  /* busy: a change is being made */
	uint64_t next;	      /* when the next one may begin; monotonic ns */
	unsigned waiting_count;
	int32_t waiting[FSD_PT_WAITING]; /* users, the first one is next */
};

/* One call. Its handler takes the view, so that a slow request holds none. */
struct asked {
	struct fsd_pt *pt;
	struct prot *prot;
	const struct prot_view *view; /* NULL before */
	int32_t caller;		      /* PROT_ANONYMOUS: without an identity */
	bool administrator;	      /* sees everything, or may look at everything */
};

/* -- handlers of pt_change.c; the context is a struct asked -- */

int32_t fsd_pt_new_with_id(void *context, rxw_call *call, const char *name, int32_t id,
			   int32_t owner);
int32_t fsd_pt_new(void *context, rxw_call *call, const char *name, int32_t kind, int32_t owner,
		   int32_t *id);
int32_t fsd_pt_add(void *context, rxw_call *call, int32_t user, int32_t group);
int32_t fsd_pt_remove(void *context, rxw_call *call, int32_t user, int32_t group);
int32_t fsd_pt_delete(void *context, rxw_call *call, int32_t id);
int32_t fsd_pt_change(void *context, rxw_call *call, int32_t id, const char *name, int32_t owner,
		      int32_t number);
int32_t fsd_pt_set_fields(void *context, rxw_call *call, int32_t id, uint32_t mask, uint32_t flags,
			  int32_t ngroups, int32_t nusers, int32_t spare1, int32_t spare2);
int32_t fsd_pt_set_max(void *context, rxw_call *call, int32_t id, int32_t group);

#endif
