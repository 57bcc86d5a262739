/* SPDX-License-Identifier: BSD-2-Clause */
/* The store of volumes that the server serves with --store. */
#include "fileserver/storage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "fileserver/guard/guard.h"
#include "fileserver/base/base.h"
#include "volume/store/store.h"

_Static_assert(FSD_MESSAGE_MAX >= STORE_MESSAGE_MAX, "messages of the store fit");

void fsd_storage_log(void *arg, int level, const char *line)
{
	(void)arg;
	fsd_log((enum rxw_log_level)level, "%s", line);
}

int fsd_storage_check(const char *durability, char *message)
{
	if (!durability || strcmp(durability, "lazy") == 0 || strcmp(durability, "strict") == 0)
		return 0;
	return fail_with(-1, message, FSD_MESSAGE_MAX, "--durability %.100s: give strict or lazy",
			 durability);
}

int fsd_storage_open(const char *path, const char *durability, const char *copy, bool make,
		     struct store **store, char *message)
{
	const struct store_options options = {
		.path = path,
		.durability =
			durability && strcmp(durability, "strict") == 0 ? STORE_STRICT : STORE_LAZY,
		.copy = copy,
		.log = fsd_storage_log,
	};

	int rc = store_open(&options, store, message);

	if (rc == -ENOENT && make) {
		rc = store_make(&options, message);
		if (!rc)
			rc = store_open(&options, store, message);
	}
	switch (rc) {
	case 0:
		return 0;
	case -ENOENT:
	case -ENOTDIR:
	case -EPERM:
	case -EACCES:
	case -EPROTO:
	case -ENOTSUP:
		return FSD_STORAGE_UNFIT;
	default:
		return -1;
	}
}

int fsd_storage_set_member(struct store *store, bool member, bool leave, bool *joined,
			   char *message)
{
	bool was = false;
	int rc = store_is_member(store, &was);

	if (!rc && was && !member && !leave)
		return fail_with(
			FSD_STORAGE_UNFIT, message, FSD_MESSAGE_MAX,
			"--store: the volumes belong to a cell, which gives out their ids and names: "
			"give --cell-config DIR, or --leave-cell once to serve them without that cell");
	if (!rc && was != member)
		rc = store_set_member(store, member);
	if (rc)
		return fail_with(
			-1, message, FSD_MESSAGE_MAX,
			"--store: it cannot remember whether it belongs to a cell: result %d", rc);
	*joined = member && !was;
	if (was && !member)
		fsd_log(RXW_LOG_INFO, "the volumes of the store no longer belong to a cell");
	return 0;
}

size_t fsd_storage_volumes(void *arg, uint32_t after, uint32_t *ids, size_t max)
{
	struct store *store = arg;
	struct store_volume volume;
	size_t n = 0;

	while (n < max && store->ops->volume_next(store, after, &volume) == 0)
		after = ids[n++] = volume.id;
	return n;
}

/* The next read-write volume after *volume, with the ACL and the status of its root. False: there are no more. */
static bool next_root_acl(struct store *store, struct store_volume *volume, struct store_acl *acl,
			  struct store_status *status)
{
	static const int32_t ids[] = {STORE_ADMINISTRATORS};
	const struct store_caller all = {
		.id = STORE_ANONYMOUS, .ids = ids, .id_count = 1, .administrator = true};

	while (store->ops->volume_next(store, volume->id, volume) == 0) {
		const struct store_fid root = {volume->id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};

		if (volume->type == STORE_RW &&
		    store->ops->acl(store, &all, &root, acl, status) == 0)
			return true;
	}
	return false;
}

int fsd_storage_check_anonymous(struct store *store, char *message)
{
	struct store_volume volume = {0};
	struct store_status root;
	struct store_acl acl;

	while (next_root_acl(store, &volume, &acl, &root)) {
		if (!fsd_acl_lets_anyone_write(&acl))
			continue;
		return fail_with(
			-1, message, FSD_MESSAGE_MAX,
			"volume %.80s lets anonymous callers write, and --listen lets other "
			"machines call: take the rights w, i, d, k and a of system:anyuser away "
			"(rxvol acl), or give --allow-anonymous-writes",
			volume.name);
	}
	return 0;
}

/* A machine in a group; NULL: there is none. */
static const struct prot_entry *machine_in(const struct prot_view *view,
					   const struct prot_entry *group)
{
	uint32_t address;

	for (uint32_t i = 0; group && group->id < 0 && i < group->count; i++) {
		const struct prot_entry *member = prot_by_id(view, group->members[i]);

		if (member && prot_name_is_machine(member->name, &address))
			return member;
	}
	return NULL;
}

void fsd_storage_report_machines(struct store *store, struct prot *prot)
{
	const struct prot_view *view = prot_view_get(prot);
	struct store_volume volume = {0};
	struct store_status root;
	struct store_acl acl;

	while (next_root_acl(store, &volume, &acl, &root)) {
		const struct prot_entry *machine = NULL;
		unsigned i;

		for (i = 0; i < acl.positive && !machine; i++)
			if (fsd_acl_is_writing(acl.entry[i].rights))
				machine = machine_in(view, prot_by_id(view, acl.entry[i].id));
		if (machine)
			fsd_log(RXW_LOG_WARNING,
				"volume %s: callers on the machine %s may write without a token, "
				"because it is in the group %s",
				volume.name, machine->name,
				prot_by_id(view, acl.entry[i - 1].id)->name);
	}
	prot_view_put(view);
}

/*
 * An id far from those given out is not about to be. Anybody may write one to an ACL, and each start gives up so many ids at
 * most.
 */
#define NEAR 10000

struct strangers {
	const struct prot_view *view;
	int32_t max_user, max_group; /* of the database */
	int32_t user, group;	     /* the highest and lowest that are not to be given out */
	unsigned lines;
};

#define LINES_MOST 20

/* An id in a volume. */
static void look_at_id(struct strangers *strangers, const char *volume, int32_t id,
		       const char *where)
{
	if (!id || prot_by_id(strangers->view, id))
		return;
	if (id > strangers->user && id - strangers->max_user <= NEAR)
		strangers->user = id;
	if (id < strangers->group && (int64_t)strangers->max_group - id <= NEAR)
		strangers->group = id;
	if (strangers->lines++ < LINES_MOST)
		fsd_log(RXW_LOG_WARNING,
			"volume %s: no user or group has the id %d, which %s names", volume,
			(int)id, where);
}

static void look_at_ids(struct store *store, struct strangers *strangers)
{
	struct store_volume volume = {0};
	struct store_status root;
	struct store_acl acl;

	while (next_root_acl(store, &volume, &acl, &root)) {
		look_at_id(strangers, volume.name, root.owner, "its owner");
		for (unsigned i = 0; i < acl.positive + acl.negative; i++)
			look_at_id(strangers, volume.name, acl.entry[i].id, "the ACL of its root");
	}
	if (strangers->lines > LINES_MOST)
		fsd_log(RXW_LOG_WARNING, "%u more ids of volumes belong to nobody",
			strangers->lines - LINES_MOST);
}

static bool has_volumes(struct store *store)
{
	struct store_volume volume;

	return store->ops->volume_next(store, 0, &volume) == 0;
}

int fsd_storage_compare_ids(struct store *store, struct prot *prot, char *message)
{
	const struct prot_view *view = prot_view_get(prot);
	struct strangers strangers = {.view = view};
	char why[PROT_MESSAGE_MAX];
	bool raised = false;
	int rc = store_noted_ids(store, &strangers.user, &strangers.group);

	prot_max_ids(view, &strangers.max_user, &strangers.max_group);
	if (rc) {
		snprintf(message, FSD_MESSAGE_MAX,
			 "the last ids of users cannot be read from the store: %s", strerror(-rc));
	} else {
		look_at_ids(store, &strangers);
		rc = prot_keep_ids(prot, strangers.user, strangers.group, &raised, why);
		if (rc)
			snprintf(message, FSD_MESSAGE_MAX, "--protection: %.490s", why);
	}
	prot_view_put(view);
	if (raised)
		fsd_log(RXW_LOG_WARNING,
			"the database of users and groups has given out ids up to %d and down to %d, but the store has some up to %d "
			"and down to %d, which are not given out again; if it is new or an older copy, restore the latest backup, or look "
			"at the ACLs (rxvol acl): rights may belong to others than before",
			(int)strangers.max_user, (int)strangers.max_group,
			(int)(strangers.user > strangers.max_user ? strangers.user
								  : strangers.max_user),
			(int)(strangers.group < strangers.max_group ? strangers.group
								    : strangers.max_group));
	else if (!rc && prot_made(prot) && has_volumes(store))
		fsd_log(RXW_LOG_WARNING,
			"%s was made, but the store has volumes: if there was one, restore a backup of it",
			prot_made(prot));
	if (!rc)
		fsd_storage_note_ids(store, prot);
	return rc ? -1 : 0;
}

void fsd_storage_note_ids(struct store *store, struct prot *prot)
{
	char why[PROT_MESSAGE_MAX];
	int32_t user, group;
	int rc;

	if (prot_last_ids(prot, &user, &group, why)) {
		fsd_log(RXW_LOG_WARNING, "--protection: %s", why);
		return;
	}
	rc = store_note_ids(store, user, group);
	if (rc)
		fsd_log(RXW_LOG_WARNING, "the store cannot keep the last ids of users: result %d",
			rc);
}
