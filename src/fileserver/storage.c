/* SPDX-License-Identifier: BSD-2-Clause */
/* The store of volumes that the server serves with --store. */
#include "fileserver/storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/volname.h"
#include "fileserver/guard/guard.h"
#include "fileserver/base/base.h"
#include "fileserver/service/service.h"
#include "volume/store/store.h"

_Static_assert(FSD_MESSAGE_MAX >= STORE_MESSAGE_MAX, "messages of the store fit");

#define VOLUMES_SHOWN 1000 /* read-write volumes with figures of their own */
#define VOLUME_STEPS  5000 /* volumes of all types that are looked at for that */

void fsd_storage_log(void *arg, int level, const char *line)
{
	(void)arg;
	fsd_log((enum rxw_log_level)level, "%s", line);
}

int fsd_storage_check(const char *durability, char *message)
{
	if (!durability || strcmp(durability, "lazy") == 0 || strcmp(durability, "strict") == 0)
		return 0;
	snprintf(message, FSD_MESSAGE_MAX, "--durability %.100s: give strict or lazy", durability);
	return -1;
}

int fsd_storage_open(const char *path, const char *durability, struct store **store, char *message)
{
	const struct store_options options = {
		.path = path,
		.durability =
			durability && strcmp(durability, "strict") == 0 ? STORE_STRICT : STORE_LAZY,
		.log = fsd_storage_log,
	};

	switch (store_open(&options, store, message)) {
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
		snprintf(message, FSD_MESSAGE_MAX,
			 "volume %.80s lets anonymous callers write, and --listen lets other "
			 "machines call: take the rights w, i, d, k and a of system:anyuser away "
			 "(rxvol acl), or give --allow-anonymous-writes",
			 volume.name);
		return -1;
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
			(int)strangers.max_user, (int)strangers.max_group, (int)strangers.user,
			(int)strangers.group);
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

static void put_store(FILE *f, struct store *store)
{
	struct store_stats s = {0};

	store_stats(store, &s);

	const struct fsd_metric metrics[] = {
		{"store_operations_total", "Operations that changed the store.",
		 .value = s.operations},
		{"store_commits_total", "Transactions; several operations share one.",
		 .value = s.commits},
		{"store_flushes_total", "Flushes to stable storage.", .value = s.flushes},
		{"store_status_hits_total", "Objects found in the cache.", .value = s.status_hits},
		{"store_status_misses_total", "Objects read from the database.",
		 .value = s.status_misses},
		{"store_written_bytes_total", "Bytes of files written.", .value = s.bytes_written},
		{"store_read_bytes_total", "Bytes of files read.", .value = s.bytes_read},
		{"store_damaged_total", "Records that failed verification.", .value = s.damaged},
		{"store_pruning", "Old versions that wait to be removed.", .value = s.pruning},
		{"store_merging", "Files whose extents wait to be merged.", .value = s.merging},
		{"store_merged_extents_total", "Extents that were merged with others.",
		 .value = s.merged_extents},
		{"store_merged_bytes_total", "Bytes that merging copied.", .value = s.merged_bytes},
		{"store_cache_bytes", "Memory of caches.", .value = s.memory},
	};

	fsd_metrics_put(f, metrics, sizeof(metrics) / sizeof(metrics[0]));
}

static void put_disk(FILE *f, struct store *store)
{
	struct store_space space = {0};

	if (store->ops->space(store, &space))
		return;

	const struct fsd_metric metrics[] = {
		{"store_disk_size_bytes", "Size of the file system of the store.",
		 .value = space.total_kib * 1024},
		{"store_disk_free_bytes", "Bytes of that file system that are free.",
		 .value = space.available_kib * 1024},
	};

	fsd_metrics_put(f, metrics, sizeof(metrics) / sizeof(metrics[0]));
}

/* The read-write volumes, at most `max`; *more: there are others. Names of volumes need no quotes. */
static size_t collect_volumes(struct store *store, struct store_volume *list, size_t max,
			      bool *more)
{
	struct store_volume volume = {0};
	size_t count = 0;

	*more = false;
	for (unsigned steps = 0; store->ops->volume_next(store, volume.id, &volume) == 0; steps++) {
		if (count == max || steps == VOLUME_STEPS) {
			*more = true;
			break;
		}
		if (volume.type == STORE_RW && afs_volume_name_valid(volume.name))
			list[count++] = volume;
	}
	return count;
}

static uint64_t used_bytes(const struct store_volume *volume)
{
	return volume->used_kib * 1024;
}

static uint64_t quota_bytes(const struct store_volume *volume)
{
	return volume->quota_kib * 1024;
}

static uint64_t count_files(const struct store_volume *volume)
{
	return volume->files;
}

static uint64_t is_volume_online(const struct store_volume *volume)
{
	return volume->online;
}

/* A series for each volume. One without a quota has none of that, so that no ratio to it exists. */
static void put_volumes(FILE *f, struct store *store)
{
	static const struct {
		const char *name, *help;
		uint64_t (*value)(const struct store_volume *volume);
	} figures[] = {
		{"store_volume_used_bytes", "Bytes in use of a volume.", used_bytes},
		{"store_volume_quota_bytes", "Quota of a volume that has one.", quota_bytes},
		{"store_volume_files", "Files, directories and links of a volume.", count_files},
		{"store_volume_online", "1 if the volume is online, else 0.", is_volume_online},
	};
	struct store_volume *list = malloc(VOLUMES_SHOWN * sizeof(*list));
	size_t count;
	bool more;

	if (!list)
		return;
	count = collect_volumes(store, list, VOLUMES_SHOWN, &more);
	for (unsigned k = 0; k < sizeof(figures) / sizeof(figures[0]); k++) {
		fsd_metrics_head(f, figures[k].name, figures[k].help);
		for (size_t i = 0; i < count; i++) {
			const struct fsd_metric metric = {figures[k].name, .label = "volume",
							  .of = list[i].name,
							  .value = figures[k].value(&list[i])};

			if (figures[k].value != quota_bytes || metric.value)
				fsd_metrics_put(f, &metric, 1);
		}
	}
	fsd_metrics_put(f,
			&(const struct fsd_metric){
				"store_volumes_left_out",
				"1 if there are more volumes than the figures of volumes show.",
				.value = more},
			1);
	free(list);
}

char *fsd_storage_metrics(struct store *store, char *text)
{
	char *all = NULL;
	size_t size;
	FILE *f = text ? open_memstream(&all, &size) : NULL;
	int bad;

	if (!f) {
		free(text);
		return NULL;
	}
	fputs(text, f);
	free(text);
	put_store(f, store);
	put_disk(f, store);
	put_volumes(f, store);
	bad = ferror(f);
	if (fclose(f) == 0 && !bad)
		return all;
	free(all);
	return NULL;
}
