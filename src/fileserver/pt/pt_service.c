/* SPDX-License-Identifier: BSD-2-Clause */
/* The protection service: look-ups of users and groups. Callers see what the entries permit them to see, as with OpenAFS's server. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/rxkad.h>
#include <rxwire/security.h>

#include "afs/numbers.h"
#include "common/clock.h"
#include "fileserver/pt/calls.h"

#define LIST_MAX    5000 /* ids in a list, and names that a call may ask for: a reply of 1.3 MB */
#define ENTRIES_MAX 1000 /* entries in one reply of ListEntries: 304 KB */

/* Opcodes of OpenAFS; those that are not here read or write the file of the database. */
enum {
	FIRST_OPCODE = 500, /* INewEntry */
	LAST_OPCODE = 521,  /* ListEntries */
};

/* -- the caller and its rights -- */

int32_t fsd_pt_caller(const struct prot *prot, const struct prot_view *view, const rxw_call *call,
		      bool *service)
{
	struct rxw_identity identity = {.size = sizeof(identity)};

	*service = false;
	if (rxw_call_identity(call, &identity) < 0)
		return PROT_ANONYMOUS;
	*service = identity.local;
	if (identity.local)
		return PROT_ADMINISTRATORS;
	if (identity.index == RXW_RXKAD_INDEX && identity.rxkad_primary)
		return prot_user_of_parts(prot, view, identity.rxkad_primary,
					  identity.rxkad_instance, identity.rxkad_cell);
	return identity.name ? prot_user_of_principal(prot, view, identity.name) : PROT_ANONYMOUS;
}

/* Each handler begins with this: it gets the state of the database, and identifies the caller. */
static const struct asked *look_at_view(void *context, const rxw_call *call)
{
	struct asked *asked = context;
	bool service;

	assert(!asked->view);
	asked->view = prot_view_get(asked->prot);
	asked->caller = fsd_pt_caller(asked->prot, asked->view, call, &service);
	asked->administrator = service ||
			       prot_is_member(asked->view, asked->caller, PROT_ADMINISTRATORS) ||
			       prot_is_member(asked->view, asked->caller, PROT_PTSVIEWERS);
	return asked;
}

/* Whether the bits of the entry permit this to the caller: `any` permits it to anyone, `mem` to members. */
static bool may_see(const struct asked *asked, const struct prot_entry *entry, uint32_t any,
		    uint32_t mem)
{
	if (asked->administrator || entry->access & any)
		return true;
	/* There is nothing to hide about anonymous and everyone. */
	if (asked->caller == PROT_ANONYMOUS)
		return entry->id == PROT_ANONYMOUS || entry->id == PROT_ANYUSER;
	return entry->id == asked->caller || entry->owner == asked->caller ||
	       prot_is_member(asked->view, asked->caller, entry->owner) ||
	       (entry->access & mem && prot_is_member(asked->view, asked->caller, entry->id));
}

static bool may_see_members(const struct asked *asked, const struct prot_entry *entry)
{
	return may_see(asked, entry, PROT_MEMBER_ANY, PROT_MEMBER_MEM);
}

/* -- names and ids -- */

static int32_t id_of_name(const struct prot_view *view, const prname *name)
{
	const struct prot_entry *entry =
		memchr(*name, 0, sizeof(*name)) ? prot_by_name(view, *name) : NULL;

	return entry ? entry->id : PROT_ANONYMOUS;
}

static int32_t name_to_id(void *context, rxw_call *call, const namelist *names, idlist *ids)
{
	const struct asked *asked = look_at_view(context, call);

	if (names->len > LIST_MAX)
		return AFS_PT_TOOMANY;
	ids->val = calloc(names->len ? names->len : 1, sizeof(*ids->val));
	if (!ids->val)
		return AFS_PT_NOMEM;
	ids->len = names->len;
	for (uint32_t i = 0; i < names->len; i++)
		ids->val[i] = id_of_name(asked->view, &names->val[i]);
	return 0;
}

static int32_t id_to_name(void *context, rxw_call *call, const idlist *ids, namelist *names)
{
	const struct asked *asked = look_at_view(context, call);

	if (ids->len > LIST_MAX)
		return AFS_PT_TOOMANY;
	names->val = calloc(ids->len ? ids->len : 1, sizeof(*names->val));
	if (!names->val)
		return AFS_PT_NOMEM;
	names->len = ids->len;
	for (uint32_t i = 0; i < ids->len; i++) {
		const struct prot_entry *entry = prot_by_id(asked->view, ids->val[i]);

		if (entry)
			memcpy(names->val[i], entry->name, strlen(entry->name));
		else
			snprintf(names->val[i], sizeof(names->val[i]), "%d", (int)ids->val[i]);
	}
	return 0;
}

/* -- lists of ids -- */

/* Room for a list. */
static int32_t make_list(prlist *list)
{
	list->val = calloc(LIST_MAX, sizeof(*list->val));
	return list->val ? 0 : AFS_PT_NOMEM;
}

/* `count` ids were found: all that fit are in the list. */
static int32_t end_list(prlist *list, size_t count, int32_t *over)
{
	list->len = count < LIST_MAX ? (uint32_t)count : LIST_MAX;
	*over = count > LIST_MAX;
	return 0;
}

static int32_t copy_list(const int32_t *from, size_t count, prlist *list, int32_t *over)
{
	int32_t code = make_list(list);

	if (code)
		return code;
	memcpy(list->val, from, (count < LIST_MAX ? count : LIST_MAX) * sizeof(*from));
	return end_list(list, count, over);
}

static int32_t get_cps(void *context, rxw_call *call, int32_t id, prlist *cps, int32_t *over)
{
	const struct asked *asked = look_at_view(context, call);
	const struct prot_entry *entry = prot_by_id(asked->view, id);

	if (!entry)
		return AFS_PT_NOENT;
	if (id != PROT_ANONYMOUS && !may_see_members(asked, entry))
		return AFS_PT_PERM;
	if (make_list(cps))
		return AFS_PT_NOMEM;
	return end_list(cps, prot_cps(asked->view, id, cps->val, LIST_MAX), over);
}

static int32_t get_host_cps(void *context, rxw_call *call, int32_t host, prlist *cps, int32_t *over)
{
	const struct asked *asked = look_at_view(context, call);

	if (make_list(cps))
		return AFS_PT_NOMEM;
	return end_list(cps, prot_host_cps(asked->view, (uint32_t)host, cps->val, LIST_MAX), over);
}

static int compare_ids(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

/* Ascending ids, each once; returns how many are left. */
static size_t sort_ids(int32_t *ids, size_t count)
{
	size_t kept = 0;

	qsort(ids, count, sizeof(*ids), compare_ids);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || ids[kept - 1] != ids[i])
			ids[kept++] = ids[i];
	return kept;
}

/* GetCPS, with the groups of a machine. */
static int32_t get_cps2(void *context, rxw_call *call, int32_t id, int32_t host, prlist *cps,
			int32_t *over)
{
	const struct asked *asked = context;
	int32_t code = get_cps(context, call, id, cps, over), *all;
	size_t more = code ? 0 : prot_host_cps(asked->view, (uint32_t)host, NULL, 0), count;
	bool incomplete = *over;

	if (more == 0)
		return code;
	all = calloc(cps->len + more, sizeof(*all));
	if (!all)
		return AFS_PT_NOMEM;
	memcpy(all, cps->val, cps->len * sizeof(*all));
	prot_host_cps(asked->view, (uint32_t)host, all + cps->len, more);
	count = sort_ids(all, cps->len + more);
	free(cps->val);
	cps->val = all;
	code = end_list(cps, count, over);
	*over |= incomplete;
	return code;
}

static int32_t is_a_member_of(void *context, rxw_call *call, int32_t user, int32_t group,
			      int32_t *flag)
{
	const struct asked *asked = look_at_view(context, call);
	const struct prot_entry *member = prot_by_id(asked->view, user),
				*entry = prot_by_id(asked->view, group);

	if (!member || !entry)
		return AFS_PT_NOENT;
	if (group > 0)
		return AFS_PT_BADARG;
	if (group != PROT_ANYUSER && group != PROT_AUTHUSER && !may_see_members(asked, member) &&
	    !may_see_members(asked, entry))
		return AFS_PT_PERM;
	*flag = group == PROT_ANYUSER || (group == PROT_AUTHUSER && user != PROT_ANONYMOUS) ||
		(group == PROT_ADMINISTRATORS && user == PROT_ADMINISTRATORS) ||
		prot_is_member(asked->view, user, group);
	return 0;
}

static int32_t list_elements(void *context, rxw_call *call, int32_t id, prlist *ids, int32_t *over)
{
	const struct asked *asked = look_at_view(context, call);
	const struct prot_entry *entry = prot_by_id(asked->view, id);

	if (!entry)
		return AFS_PT_NOENT;
	if (!may_see_members(asked, entry))
		return AFS_PT_PERM;
	return copy_list(entry->members, entry->count, ids, over);
}

/* Groups in which a group is. */
static int32_t list_super_groups(void *context, rxw_call *call, int32_t id, prlist *ids,
				 int32_t *over)
{
	const struct asked *asked = look_at_view(context, call);
	const struct prot_entry *entry = prot_by_id(asked->view, id);

	*over = 0;
	if (!entry)
		return AFS_PT_NOENT;
	if (!may_see_members(asked, entry))
		return AFS_PT_PERM;
	return copy_list(entry->supers, entry->super_count, ids, over);
}

/*
 * Groups that an entry owns; id 0: groups without an owner, of which there are none. *last: where
 * the list goes on, the last id of the reply before, and 0 at the beginning and the end.
 */
static int32_t list_owned(void *context, rxw_call *call, int32_t id, prlist *ids, int32_t *last)
{
	const struct asked *asked = look_at_view(context, call);
	const struct prot_entry *entry = id ? prot_by_id(asked->view, id) : NULL;
	size_t count, first = 0;
	int32_t *all;

	if (id && !entry)
		return AFS_PT_NOENT;
	if (entry ? !may_see(asked, entry, PROT_OWNED_ANY, 0) : !asked->administrator)
		return AFS_PT_PERM;
	count = prot_owned(asked->view, id, NULL, 0);
	all = calloc(count ? count : 1, sizeof(*all));
	if (!all)
		return AFS_PT_NOMEM;
	prot_owned(asked->view, id, all, count);
	while (*last && first < count && all[first] <= *last)
		first++;
	memmove(all, all + first, (count - first) * sizeof(*all));
	ids->val = all;
	ids->len = count - first < LIST_MAX ? (uint32_t)(count - first) : LIST_MAX;
	*last = count - first > LIST_MAX ? all[LIST_MAX - 1] : 0;
	return 0;
}

/* -- entries -- */

static void fill_check_entry(const struct prot_entry *from, prcheckentry *entry)
{
	*entry = (prcheckentry){
		.flags = (int32_t)from->access,
		.id = from->id,
		.owner = from->owner,
		.creator = from->creator,
		.ngroups = from->quota,
		.nusers = from->quota,
		.count = (int32_t)from->count,
	};
	memcpy(entry->name, from->name, strlen(from->name));
}

static int32_t list_pt_entry(void *context, rxw_call *call, int32_t id, prcheckentry *entry)
{
	const struct asked *asked = look_at_view(context, call);
	const struct prot_entry *found = prot_by_id(asked->view, id);

	if (!found)
		return AFS_PT_NOENT;
	if (!may_see(asked, found, PROT_STATUS_ANY, PROT_STATUS_MEM))
		return AFS_PT_PERM;
	fill_check_entry(found, entry);
	return 0;
}

/*
 * All entries of a kind, for administrators. An index is the id of the entry that comes next, so
 * that the list stays complete while entries come and go. No entry has the id 0 or -1.
 */
static int32_t list_entries(void *context, rxw_call *call, int32_t flags, int32_t start,
			    prentries *entries, int32_t *next)
{
	const struct asked *asked = look_at_view(context, call);
	size_t index = prot_from(asked->view, start), count = prot_count(asked->view);

	if (!asked->administrator)
		return AFS_PT_PERM;
	entries->val = calloc(ENTRIES_MAX, sizeof(*entries->val));
	if (!entries->val)
		return AFS_PT_NOMEM;
	if (!(flags & PRUSERS) && (uint32_t)start <= INT32_MAX)
		index = prot_from(asked->view, INT32_MIN);
	if (!(flags & PRGROUPS))
		count = prot_from(asked->view, INT32_MIN);
	while (index < count && entries->len < ENTRIES_MAX)
		fill_check_entry(prot_at(asked->view, index++), &entries->val[entries->len++]);
	*next = index < count ? prot_at(asked->view, index)->id : -1;
	return 0;
}

static int32_t list_max(void *context, rxw_call *call, int32_t *user, int32_t *group)
{
	const struct asked *asked = look_at_view(context, call);

	prot_max_ids(asked->view, user, group);
	return 0;
}

/* The place in the database: here, in the order of ListEntries. */
static int32_t where_is_it(void *context, rxw_call *call, int32_t id, int32_t *pos)
{
	const struct asked *asked = look_at_view(context, call);

	if (!prot_by_id(asked->view, id))
		return AFS_PT_NOENT;
	*pos = (int32_t)prot_from(asked->view, id);
	return 0;
}

static const struct PR_handlers handlers = {
	.NameToID = name_to_id,
	.IDToName = id_to_name,
	.GetCPS = get_cps,
	.GetCPS2 = get_cps2,
	.GetHostCPS = get_host_cps,
	.IsAMemberOf = is_a_member_of,
	.ListElements = list_elements,
	.ListEntries = list_entries,
	.ListEntry = list_pt_entry,
	.ListMax = list_max,
	.ListOwned = list_owned,
	.ListSuperGroups = list_super_groups,
	.WhereIsIt = where_is_it,
	.INewEntry = fsd_pt_new_with_id,
	.NewEntry = fsd_pt_new,
	.AddToGroup = fsd_pt_add,
	.RemoveFromGroup = fsd_pt_remove,
	.Delete = fsd_pt_delete,
	.ChangeEntry = fsd_pt_change,
	.SetFieldsEntry = fsd_pt_set_fields,
	.SetMax = fsd_pt_set_max,
};

static bool changes_database(int32_t opcode)
{
	static const int32_t changes[] = {PR_OP_INewEntry,	 PR_OP_AddToGroup,    PR_OP_Delete,
					  PR_OP_RemoveFromGroup, PR_OP_NewEntry,      PR_OP_SetMax,
					  PR_OP_ChangeEntry,	 PR_OP_SetFieldsEntry};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changes[i] == opcode)
			return true;
	return false;
}

/*
 * Other calls of OpenAFS are known, and refused to every caller. The arguments of a change are not even decoded for a caller without an
 * identity.
 */
static int32_t enter_pt_call(void *context, rxw_call *call, int32_t opcode, int function)
{
	struct rxw_identity identity = {.size = sizeof(identity)};

	(void)context;
	if (function < 0)
		return opcode >= FIRST_OPCODE && opcode <= LAST_OPCODE ? AFS_PT_PERM : 0;
	if (!changes_database(opcode))
		return 0;
	return rxw_call_identity(call, &identity) < 0 || (!identity.name && !identity.local)
		       ? AFS_PT_PERM
		       : 0;
}

struct fsd_pt *fsd_pt_create(struct prot *prot, struct fsd_guard *guard, struct fsd_audit *audit)
{
	struct fsd_pt *pt = calloc(1, sizeof(*pt));

	if (!pt)
		return NULL;
	pt->prot = prot;
	pt->guard = guard;
	pt->audit = audit;
	if (monotonic_cond_init(&pt->moved)) {
		free(pt);
		return NULL;
	}
	pthread_mutex_init(&pt->lock, NULL);
	return pt;
}

void fsd_pt_destroy(struct fsd_pt *pt)
{
	if (!pt)
		return;
	assert(!pt->waiting_count && !pt->busy);
	pthread_cond_destroy(&pt->moved);
	pthread_mutex_destroy(&pt->lock);
	free(pt);
}

int32_t fsd_pt_serve(rxw_call *call, void *pt)
{
	struct asked asked = {.pt = pt, .prot = ((struct fsd_pt *)pt)->prot};
	struct PR_service service = {.base = {.context = &asked, .enter = enter_pt_call},
				     .handlers = &handlers};
	int32_t code = PR_ExecuteRequest(call, &service);

	if (asked.view)
		prot_view_put(asked.view);
	return code;
}
