/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of the store, its disk and its volumes, for Prometheus. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/volname.h"
#include "fileserver/member/member.h"
#include "fileserver/service/service.h"
#include "fileserver/storage.h"
#include "volume/store/store.h"

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
		{"store_scrubbed_bytes_total", "Bytes that were verified in the background.",
		 .value = s.scrubbed_bytes},
		{"store_scrub_damaged_total", "Damaged blocks that were found so.",
		 .value = s.scrub_damaged},
		{"store_scrub_passes_total", "Times that all data were verified.",
		 .value = s.scrub_passes},
		{"store_scrub_timestamp_seconds", "When the last time was complete; 0: never.",
		 .value = s.scrub_last},
		{"store_cache_bytes", "Memory of caches.", .value = s.memory},
	};

	fsd_metrics_put(f, metrics, sizeof(metrics) / sizeof(metrics[0]));
	if (s.copy_age_ms != UINT64_MAX)
		fsd_metrics_put(
			f,
			&(const struct fsd_metric){
				"store_copy_age_seconds",
				"Since the copy of the metadata was the same as the metadata.",
				.value = s.copy_age_ms / 1000},
			1);
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

/* ---- volumes: of very many, those that an administrator has to look at first have figures of their own ---- */

#define VOLUMES_MOST 131072 /* that are looked at */
#define NEARLY_FULL  80	    /* per cent of the quota */

/* A read-write volume. The highest rank comes first. */
struct ranked_volume {
	uint32_t id;
	uint64_t rank;
};

/* Sums over all volumes. */
struct volume_sums {
	uint64_t offline, of_type[STORE_TYPES];
	uint32_t oldest_clone; /* when it was made; 0: there is none */
};

/* Off-line volumes come first, then nearly full ones, each from the largest on. */
static uint64_t rank_volume(const struct store_volume *volume)
{
	uint64_t used = volume->used_kib < 1ull << 50 ? volume->used_kib : 1ull << 50;

	if (!volume->online)
		return 1ull << 62 | used;
	if (volume->quota_kib && used * 100 >= volume->quota_kib * NEARLY_FULL)
		return 1ull << 61 | used;
	return used;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct ranked_volume *x = a, *y = b;

	return x->rank != y->rank ? (x->rank < y->rank ? 1 : -1)
	       : x->id < y->id	  ? -1
				  : x->id > y->id;
}

static int compare_volume_ids(const void *a, const void *b)
{
	const struct ranked_volume *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static void add_to_sums(struct volume_sums *sums, const struct store_volume *volume)
{
	/* A damaged record does not say what the volume is. */
	sums->of_type[volume->type] += volume->rw != 0;
	sums->offline += !volume->online;
	if (volume->type != STORE_RW && volume->created &&
	    (!sums->oldest_clone || volume->created < sums->oldest_clone))
		sums->oldest_clone = volume->created;
}

/* All read-write volumes, ranked; to be freed. NULL: no memory. */
static struct ranked_volume *rank_volumes(struct store *store, struct volume_sums *sums,
					  size_t *count)
{
	struct ranked_volume *list = NULL;
	struct store_volume volume = {0};
	size_t room = 0;

	*sums = (struct volume_sums){0};
	*count = 0;
	for (unsigned i = 0; store->ops->volume_next(store, volume.id, &volume) == 0; i++) {
		if (i == VOLUMES_MOST)
			break;
		if (*count == room) {
			struct ranked_volume *more =
				realloc(list, (room = room ? 2 * room : 256) * sizeof(*more));

			if (!more) {
				free(list);
				*count = 0;
				return NULL;
			}
			list = more;
		}
		add_to_sums(sums, &volume);
		if (volume.type == STORE_RW)
			list[(*count)++] = (struct ranked_volume){volume.id, rank_volume(&volume)};
	}
	return list;
}

static void put_sums(FILE *f, const struct volume_sums *sums)
{
	const struct fsd_metric metrics[] = {
		{"store_volumes", "Volumes of the store.", .label = "type", .of = "rw",
		 .value = sums->of_type[STORE_RW]},
		{"store_volumes", NULL, .label = "type", .of = "ro",
		 .value = sums->of_type[STORE_RO]},
		{"store_volumes", NULL, .label = "type", .of = "backup",
		 .value = sums->of_type[STORE_BACKUP]},
		{"store_volumes_offline", "Volumes of all types that are offline.",
		 .value = sums->offline},
		{"store_oldest_clone_time_seconds",
		 "Time when the oldest clone was made, in seconds since 1970.",
		 .value = sums->oldest_clone},
	};

	fsd_metrics_put(f, metrics, sizeof(metrics) / sizeof(metrics[0]) - !sums->oldest_clone);
}

/* -- figures of one volume; calls to its clones count for it -- */

enum {
	QUOTA = 1, /* the place of the quota below */
	FIGURES = 8
};

struct shown_volume {
	struct store_volume volume;
	uint64_t figure[FIGURES]; /* in the order of put_series() */
};

/* A series for each. A volume without a quota has none of that, so that no ratio to it exists. */
static void put_series(FILE *f, const struct shown_volume *list, size_t count)
{
	static const char *const figures[FIGURES][2] = {
		{"store_volume_used_bytes", "Bytes in use of a volume."},
		{"store_volume_quota_bytes", "Quota of a volume that has one."},
		{"store_volume_files", "Files, directories and links of a volume."},
		{"store_volume_online", "1 if the volume is online, else 0."},
		{"store_volume_fetches_total", "Data fetches from a volume and its clones."},
		{"store_volume_fetched_bytes_total", "Bytes sent by them."},
		{"store_volume_changes_total", "Calls that changed something in a volume."},
		{"store_volume_stored_bytes_total", "Bytes received by stores to a volume."},
	};

	for (unsigned k = 0; k < FIGURES; k++) {
		fsd_metrics_head(f, figures[k][0], figures[k][1]);
		for (size_t i = 0; i < count; i++) {
			const struct fsd_metric metric = {figures[k][0], .label = "volume",
							  .of = list[i].volume.name,
							  .value = list[i].figure[k]};

			if (k != QUOTA || metric.value)
				fsd_metrics_put(f, &metric, 1);
		}
	}
}

/* All figures of a volume that has been looked up. */
static void fill_figures(const struct fsd_service *service, struct shown_volume *shown)
{
	const struct store_volume *volume = &shown->volume;
	struct fsd_volume_calls calls = {0};

	fsd_service_add_volume_calls(service, volume->id, &calls);
	fsd_service_add_volume_calls(service, volume->ro, &calls);
	fsd_service_add_volume_calls(service, volume->backup, &calls);
	const uint64_t figure[FIGURES] = {
		volume->used_kib * 1024, volume->quota_kib * 1024,
		volume->files,		 volume->online,
		calls.fetches,		 calls.fetched_bytes,
		calls.changes,		 calls.stored_bytes,
	};
	memcpy(shown->figure, figure, sizeof(figure));
}

/* The first of the ranked ones, in the order of ids. Names of volumes need no quotes. */
static void put_first_volumes(FILE *f, const struct fsd_service *service, struct store *store,
			      struct ranked_volume *ranked, size_t count)
{
	struct shown_volume *list = calloc(count + 1, sizeof(*list));
	size_t shown = 0;

	if (!list)
		return;
	qsort(ranked, count, sizeof(*ranked), compare_volume_ids);
	for (size_t i = 0; i < count; i++) {
		struct shown_volume *next = &list[shown];

		if (store->ops->volume(store, ranked[i].id, &next->volume) ||
		    !afs_volume_name_valid(next->volume.name))
			continue;
		fill_figures(service, next);
		shown++;
	}
	put_series(f, list, shown);
	free(list);
}

static void put_volumes(FILE *f, const struct fsd_service *service, struct store *store,
			size_t most)
{
	struct volume_sums sums;
	size_t count, shown;
	struct ranked_volume *ranked = rank_volumes(store, &sums, &count);

	if (count)
		qsort(ranked, count, sizeof(*ranked), compare_ranks);
	shown = count < most ? count : most;
	put_sums(f, &sums);
	put_first_volumes(f, service, store, ranked, shown);
	fsd_metrics_put(
		f,
		&(const struct fsd_metric){"store_volumes_left_out",
					   "Read-write volumes that have no figures of their own.",
					   .value = count - shown},
		1);
	free(ranked);
}

static void put_member(FILE *f, struct fsd_member *member)
{
	struct fsd_member_counts counts;

	fsd_member_count(member, &counts);

	const struct fsd_metric metrics[] = {
		{"cell_registered", "Whether the location service of the cell has the addresses.",
		 .value = counts.registered},
		{"cell_protection_servers", "Protection servers of the cell.",
		 .value = counts.servers},
		{"cell_protection_servers_dead", "Those that do not answer.", .value = counts.dead},
		{"cell_answers", "Users, machines and names of the cell in memory.",
		 .value = counts.known},
		{"cell_questions_total", "Questions about users, machines and names.",
		 .value = counts.asked},
		{"cell_questions_failed_total", "Those without an answer.", .value = counts.failed},
		{"cell_questions_refused_total", "Those that would have been too many.",
		 .value = counts.refused},
	};

	fsd_metrics_put(f, metrics, sizeof(metrics) / sizeof(metrics[0]));
}

char *fsd_storage_metrics(const struct fsd_service *service, struct store *store,
			  struct fsd_member *member, size_t volumes, char *text)
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
	put_volumes(f, service, store, volumes);
	if (member)
		put_member(f, member);
	bad = ferror(f);
	if (fclose(f) == 0 && !bad)
		return all;
	free(all);
	return NULL;
}
