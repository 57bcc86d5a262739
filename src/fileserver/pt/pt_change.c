/* SPDX-License-Identifier: BSD-2-Clause */
/* The protection service: calls that change the database. Their rights are judged by the database (protection/request.h). */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <rxwire/call.h>

#include "afs/numbers.h"
#include "common/clock.h"
#include "common/held.h"
#include "fileserver/base/base.h"
#include "fileserver/pt/calls.h"
#include "protection/request.h"

/*
 * Everybody may change something, and each change has the database read again. So a change by a user is followed by a pause of PART
 * times its duration, between SPACING and PAUSE. A call waits for its turn behind those of FSD_PT_WAITING - 1 other users at most.
 */
#define SPACING_NS (20ull * NS_PER_MS)
#define PAUSE_NS   (2000ull * NS_PER_MS)
#define PART	   10u

/* A change in work. */
struct pt_change {
	struct fsd_pt *pt;
	struct prot_actor actor;
	struct fsd_audit_change note;
	bool limited; /* it must have a turn */
	bool turn;    /* it has one */
	uint64_t begun;
	char name[PROT_NAME_MAX + 1], other[PROT_NAME_MAX + 1]; /* for `note` */
	char message[PROT_MESSAGE_MAX];
};

static int32_t pt_code(const struct pt_change *change, int rc, bool adding)
{
	switch (rc) {
	case 0:
		return 0;
	case PROT_EXISTS:
		return AFS_PT_EXIST;
	case PROT_ID_EXISTS:
		return AFS_PT_IDEXIST;
	case PROT_NO_IDS:
		return AFS_PT_NOIDS;
	case PROT_NO_ENTRY:
		return AFS_PT_NOENT;
	case PROT_PREDEFINED:
	case PROT_REFUSED:
		return AFS_PT_PERM;
	case PROT_NOT_GROUP:
		return AFS_PT_NOTGROUP;
	case PROT_NOT_USER:
		return AFS_PT_NOTUSER;
	case PROT_BAD_NAME:
		return AFS_PT_BADNAM;
	case PROT_BAD_ID:
		return AFS_PT_BADARG;
	case PROT_MEMBERSHIP:
		return adding ? AFS_PT_IDEXIST : AFS_PT_NOENT;
	case PROT_NO_MORE:
	case PROT_TOO_NESTED:
		return AFS_PT_NOMORE;
	case PROT_CIRCLE:
		return AFS_PT_INCONSISTENT;
	default:
		fsd_log(RXW_LOG_ERROR, "%s", change->message);
		return rc == PROT_UNUSABLE ? AFS_PT_DBBAD : AFS_PT_DBFAIL;
	}
}

/* -- turns: users in the order in which their calls came, each with one call in the line -- */

/* Lock held. False: too many users wait, or this one does. */
static bool join_pt_line(struct fsd_pt *pt, int32_t user)
{
	assert(mutex_is_held(&pt->lock));
	if (pt->stopping || pt->waiting_count == FSD_PT_WAITING)
		return false;
	for (unsigned i = 0; i < pt->waiting_count; i++)
		if (pt->waiting[i] == user)
			return false;
	pt->waiting[pt->waiting_count++] = user;
	return true;
}

static void leave_pt_line(struct fsd_pt *pt, int32_t user)
{
	unsigned at = 0;

	assert(mutex_is_held(&pt->lock));
	while (pt->waiting[at] != user)
		at++;
	assert(at < pt->waiting_count);
	pt->waiting_count--;
	memmove(&pt->waiting[at], &pt->waiting[at + 1],
		(pt->waiting_count - at) * sizeof(pt->waiting[0]));
	pthread_cond_broadcast(&pt->moved);
}

/* Wait for a turn. False: there is none for this call. */
static bool await_pt_turn(struct fsd_pt *pt, int32_t user)
{
	bool joined, turn;

	assert(user);
	pthread_mutex_lock(&pt->lock);
	joined = join_pt_line(pt, user);
	turn = joined;
	while (turn && (pt->busy || pt->waiting[0] != user || monotonic_ns() < pt->next)) {
		if (pt->busy || pt->waiting[0] != user)
			pthread_cond_wait(&pt->moved, &pt->lock);
		else
			monotonic_wait(&pt->moved, &pt->lock, pt->next);
		turn = !pt->stopping;
	}
	if (joined)
		leave_pt_line(pt, user);
	pt->busy |= turn;
	pthread_mutex_unlock(&pt->lock);
	return turn;
}

static void end_pt_turn(struct pt_change *change)
{
	struct fsd_pt *pt = change->pt;
	uint64_t now = monotonic_ns(), pause = (now - change->begun) * PART;

	if (pause < SPACING_NS)
		pause = SPACING_NS;
	if (pause > PAUSE_NS)
		pause = PAUSE_NS;
	pthread_mutex_lock(&pt->lock);
	assert(pt->busy);
	pt->busy = false;
	pt->next = now + pause;
	pthread_cond_broadcast(&pt->moved);
	pthread_mutex_unlock(&pt->lock);
	change->turn = false;
}

void fsd_pt_stop(struct fsd_pt *pt)
{
	pthread_mutex_lock(&pt->lock);
	pt->stopping = true;
	pthread_cond_broadcast(&pt->moved);
	pthread_mutex_unlock(&pt->lock);
}

/* -- a change -- */

static void copy_entry_name(char to[PROT_NAME_MAX + 1], const struct prot_view *view, int32_t id)
{
	const struct prot_entry *entry = prot_by_id(view, id);

	if (entry)
		snprintf(to, PROT_NAME_MAX + 1, "%s", entry->name);
	else
		snprintf(to, PROT_NAME_MAX + 1, "%d", (int)id);
}

/* Who calls; 0, or the code of a caller that is less protected than a change must be. */
static int32_t find_actor(struct pt_change *change, const rxw_call *call)
{
	struct fsd_pt *pt = change->pt;
	const struct prot_view *view = prot_view_get(pt->prot);
	struct fsd_who who = {0};
	bool service;
	int32_t code = 0;

	if (pt->guard && fsd_guard_asks(pt->guard))
		fsd_guard_enter(pt->guard, FSD_VL, call, &who);
	change->actor.id = fsd_pt_caller(pt->prot, view, call, &service);
	change->actor.administrator = service || who.administrator;
	/* The change itself looks at the membership again. */
	change->limited = !change->actor.administrator &&
			  !prot_is_member(view, change->actor.id, PROT_ADMINISTRATORS);
	change->note.id = change->actor.id;
	change->note.who = who.name ? who.name : service ? "(this service)" : NULL;
	if (who.refused || who.below)
		code = who.weak ? who.weak : AFS_PT_PERM;
	prot_view_put(view);
	return code;
}

/* Names of entries that do not change, for the record. 0: none. */
static void note_entries(struct pt_change *change, int32_t id, int32_t other)
{
	const struct prot_view *view;

	if (!change->pt->audit)
		return;
	view = prot_view_get(change->pt->prot);
	copy_entry_name(change->name, view, id);
	change->note.name = change->name;
	if (other) {
		copy_entry_name(change->other, view, other);
		change->note.to_name = change->other;
	}
	prot_view_put(view);
}

/* 0: the change may be tried. end_pt_change() follows in any case. */
static int32_t begin_pt_change(struct pt_change *change, void *context, const rxw_call *call,
			       const char *operation)
{
	struct asked *asked = context;
	int32_t code;

	*change = (struct pt_change){.pt = asked->pt};
	change->note = (struct fsd_audit_change){
		.audit = asked->pt->audit, .call = call, .operation = operation};
	code = find_actor(change, call);
	if (code)
		return code;
	if (!change->actor.administrator && change->actor.id == PROT_ANONYMOUS)
		return AFS_PT_PERM;
	code = fsd_audit_begin(&change->note);
	if (code || !change->limited)
		return code;
	change->turn = await_pt_turn(change->pt, change->actor.id);
	change->begun = monotonic_ns();
	return change->turn ? 0 : AFS_VBUSY;
}

/* Callers see the change from now on. */
static int32_t end_pt_change(struct pt_change *change, int32_t code)
{
	if (!code)
		prot_view_put(prot_view_get(change->pt->prot));
	if (change->turn)
		end_pt_turn(change);
	return fsd_audit_end(&change->note, code);
}

/* -- handlers -- */

static int32_t make_pt_entry(void *context, const rxw_call *call, const char *operation,
			     const char *name, bool group, int32_t id, int32_t owner,
			     int32_t *given)
{
	struct pt_change change;
	int32_t code = begin_pt_change(&change, context, call, operation);

	change.note.name = name;
	*given = 0;
	if (!code)
		code = pt_code(&change,
			       prot_request_new(change.pt->prot, &change.actor, name, group, id,
						owner, given, change.message),
			       false);
	return end_pt_change(&change, code);
}

int32_t fsd_pt_new_with_id(void *context, rxw_call *call, const char *name, int32_t id,
			   int32_t owner)
{
	int32_t given;

	return id ? make_pt_entry(context, call, "PT.INewEntry", name, id < 0, id, owner, &given)
		  : AFS_PT_BADARG;
}

int32_t fsd_pt_new(void *context, rxw_call *call, const char *name, int32_t kind, int32_t owner,
		   int32_t *id)
{
	return make_pt_entry(context, call, "PT.NewEntry", name, kind & PRGRP, 0, owner, id);
}

static int32_t change_membership(void *context, const rxw_call *call, int32_t user, int32_t group,
				 bool add)
{
	struct pt_change change;
	int32_t code = begin_pt_change(&change, context, call,
				       add ? "PT.AddToGroup" : "PT.RemoveFromGroup");

	note_entries(&change, user, group);
	if (!code)
		code = pt_code(&change,
			       prot_request_member(change.pt->prot, &change.actor, group, user, add,
						   change.message),
			       add);
	return end_pt_change(&change, code);
}

int32_t fsd_pt_add(void *context, rxw_call *call, int32_t user, int32_t group)
{
	return change_membership(context, call, user, group, true);
}

int32_t fsd_pt_remove(void *context, rxw_call *call, int32_t user, int32_t group)
{
	return change_membership(context, call, user, group, false);
}

int32_t fsd_pt_delete(void *context, rxw_call *call, int32_t id)
{
	struct pt_change change;
	int32_t code = begin_pt_change(&change, context, call, "PT.Delete");

	note_entries(&change, id, 0);
	if (!code)
		code = pt_code(
			&change,
			prot_request_remove(change.pt->prot, &change.actor, id, change.message),
			false);
	return end_pt_change(&change, code);
}

static bool is_pt_entry(const struct fsd_pt *pt, int32_t id)
{
	const struct prot_view *view = prot_view_get(pt->prot);
	bool found = prot_by_id(view, id) != NULL;

	prot_view_put(view);
	return found;
}

/* One of them: a name, or an owner. ACLs name ids, so an entry keeps its own. */
int32_t fsd_pt_change(void *context, rxw_call *call, int32_t id, const char *name, int32_t owner,
		      int32_t number)
{
	struct pt_change change;
	int32_t code = begin_pt_change(&change, context, call, "PT.ChangeEntry");
	int rc = 0;

	note_entries(&change, id, owner);
	if (name[0])
		change.note.to_name = name;
	if (!code && !name[0] && !owner && !is_pt_entry(change.pt, id))
		code = AFS_PT_NOENT;
	if (!code && (number || (name[0] && owner)))
		code = AFS_PT_PERM;
	if (!code && name[0])
		rc = prot_request_rename(change.pt->prot, &change.actor, id, name, change.message);
	else if (!code && owner)
		rc = prot_request_chown(change.pt->prot, &change.actor, id, owner, change.message);
	if (!code)
		code = pt_code(&change, rc, false);
	return end_pt_change(&change, code);
}

int32_t fsd_pt_set_fields(void *context, rxw_call *call, int32_t id, uint32_t mask, uint32_t flags,
			  int32_t ngroups, int32_t nusers, int32_t spare1, int32_t spare2)
{
	struct pt_change change;
	int32_t code = begin_pt_change(&change, context, call, "PT.SetFieldsEntry");

	/* Quotas of foreign users are not kept. */
	(void)nusers, (void)spare1, (void)spare2;
	note_entries(&change, id, 0);
	if (!code)
		code = pt_code(&change,
			       prot_request_fields(change.pt->prot, &change.actor, id,
						   mask & PR_SF_ALLBITS ? &flags : NULL,
						   mask & PR_SF_NGROUPS ? &ngroups : NULL,
						   change.message),
			       false);
	return end_pt_change(&change, code);
}

int32_t fsd_pt_set_max(void *context, rxw_call *call, int32_t id, int32_t group)
{
	struct pt_change change;
	int32_t code = begin_pt_change(&change, context, call, "PT.SetMax");

	note_entries(&change, id, 0);
	if (!code)
		code = pt_code(&change,
			       prot_request_last(change.pt->prot, &change.actor, id, group & PRGRP,
						 change.message),
			       false);
	return end_pt_change(&change, code);
}
