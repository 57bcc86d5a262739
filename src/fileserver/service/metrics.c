/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of the file server, for Prometheus and for the log. */
#include "fileserver/service/services.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fileserver/base/base.h"

#define LENGTH(metrics) (sizeof(metrics) / sizeof((metrics)[0]))

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Only names of counters end so, by convention. */
static const char *metric_type(const char *name)
{
	static const char end[] = "_total";
	size_t n = strlen(name), of_end = sizeof(end) - 1;

	return n > of_end && strcmp(name + n - of_end, end) == 0 ? "counter" : "gauge";
}

void fsd_metrics_head(FILE *f, const char *name, const char *help)
{
	fprintf(f, "# HELP rxfsd_%s %s\n# TYPE rxfsd_%s %s\n", name, help, name, metric_type(name));
}

void fsd_metrics_put(FILE *f, const struct fsd_metric *metrics, size_t count)
{
	for (const struct fsd_metric *m = metrics; m < metrics + count; m++) {
		if (m->help)
			fsd_metrics_head(f, m->name, m->help);
		fprintf(f, "rxfsd_%s", m->name);
		if (m->label)
			fprintf(f, "{%s=\"%s\"}", m->label, m->of);
		if (m->seconds)
			fprintf(f, " %.6f\n", (double)m->value / 1e9);
		else
			fprintf(f, " %llu\n", (unsigned long long)m->value);
	}
}

static void put_calls(FILE *f, const struct fsd_counters *c)
{
	const struct fsd_metric metrics[] = {
		{"calls_total", "Calls of the file service.", .value = read_counter(&c->calls)},
		{"calls_failed_total", "Calls of the file service that failed.",
		 .value = read_counter(&c->failed)},
		{"writes_refused_total", "Calls that would have modified something.",
		 .value = read_counter(&c->refused_writes)},
		{"location_calls_total", "Calls of the volume location service.",
		 .value = read_counter(&c->vl_calls)},
		{"statuses_total", "Status records of files and directories sent.",
		 .value = read_counter(&c->statuses)},
		{"fetches_total", "Data fetches.", .value = read_counter(&c->fetches)},
		{"fetched_bytes_total", "Bytes sent by fetches.",
		 .value = read_counter(&c->fetched_bytes)},
		{"fetches_aborted_total", "Incomplete fetches.",
		 .value = read_counter(&c->fetch_aborts)},
		{"fetch_seconds_total", "Total duration of fetches.",
		 .value = read_counter(&c->fetch_ns), .seconds = true},
	};

	fsd_metrics_put(f, metrics, LENGTH(metrics));
}

static void put_failures(FILE *f, const struct fsd_failures *failures)
{
	static const char help[] =
		"Calls that failed for a reason on the server's side: no space, a read-only file system, "
		"input and output errors, too many open files, no memory.";

	for (unsigned i = 0; i < FSD_FAILURES; i++) {
		const struct fsd_metric metric = {"failures_total", i ? NULL : help,
						  .label = "cause", .of = fsd_failure_name(i),
						  .value = read_counter(&failures->count[i])};

		fsd_metrics_put(f, &metric, 1);
	}
}

static void put_changes(FILE *f, const struct fsd_service *service)
{
	const struct fsd_counters *c = &service->counters;
	struct fsd_audit_stats audit;

	fsd_audit_stats(service->audit, &audit);

	const struct fsd_metric metrics[] = {
		{"changes_total", "Calls that changed something.",
		 .value = read_counter(&c->changes)},
		{"stores_total", "Data stores.", .value = read_counter(&c->stores)},
		{"stored_bytes_total", "Bytes received by stores.",
		 .value = read_counter(&c->stored_bytes)},
		{"stores_aborted_total", "Incomplete stores.",
		 .value = read_counter(&c->store_aborts)},
		{"stores_given_up_total",
		 "Slow stores that were ended because others needed their places.",
		 .value = read_counter(&c->stores_given_up)},
		{"fetches_given_up_total",
		 "Slow fetches that were ended because others needed their places.",
		 .value = read_counter(&c->fetches_given_up)},
		{"stores_held_total", "Stores that waited until others had given up their places.",
		 .value = read_counter(&c->stores_held)},
		{"fetches_held_total",
		 "Fetches that waited until others had given up their places.",
		 .value = read_counter(&c->fetches_held)},
		{"store_seconds_total", "Total duration of stores.",
		 .value = read_counter(&c->store_ns), .seconds = true},
		{"locks", "Files with a lock.", .value = fsd_locks_held(service->locks)},
		{"locks_set_total", "Locks set.", .value = read_counter(&c->locks)},
		{"audit_records_total", "Lines of the audit log.", .value = audit.written},
		{"audit_lost_total", "Calls missing in the audit log.", .value = audit.lost},
		{"audit_waits_total", "Calls that waited for the audit log.", .value = audit.waits},
		{"audit_refused_total",
		 "Changes refused because they could not be recorded in the audit log.",
		 .value = audit.refused},
	};

	fsd_metrics_put(f, metrics, LENGTH(metrics));
}

static void put_readers(FILE *f, struct fsd_readers *readers)
{
	struct fsd_reader_stats s = {0};

	fsd_readers_stats(readers, &s);

	const struct fsd_metric metrics[] = {
		{"read_bytes_total",
		 "Bytes of files read from the page cache, by read-ahead threads, or from the disk while the call waited.",
		 .label = "from", .of = "cache", .value = s.bytes_cached},
		{"read_bytes_total", NULL, .label = "from", .of = "ahead", .value = s.bytes_ahead},
		{"read_bytes_total", NULL, .label = "from", .of = "direct",
		 .value = s.bytes_direct},
		{"reads_ahead_total", "Reads by read-ahead threads.", .value = s.reads_ahead},
		{"reader_waits_total", "Calls that had to wait for a read-ahead.",
		 .value = s.waits},
		{"reader_threads", "Read-ahead threads.", .value = s.threads},
	};

	fsd_metrics_put(f, metrics, LENGTH(metrics));
}

static void put_clients(FILE *f, struct fsd_clients *clients, uint64_t limit)
{
	struct fsd_clients_stats s = {0};

	fsd_clients_stats(clients, &s);

	const struct fsd_metric metrics[] = {
		{"hosts", "Clients in memory.", .value = s.hosts},
		{"hosts_up", "Clients that answer callbacks and may hold promises.",
		 .value = s.hosts_up},
		{"hosts_reclaimed_total",
		 "Clients told to discard their cache to make room for promises.",
		 .value = s.reclaimed},
		{"promises", "Callback promises in force.", .value = s.promises},
		{"promises_limit", "Limit of callback promises (--promises).", .value = limit},
		{"promised_objects", "Files and directories covered by promises.",
		 .value = s.objects},
		{"promises_given_total", "Callback promises given.", .value = s.given},
		{"promises_broken_total", "Callback promises broken by a change.",
		 .value = s.broken},
		{"promises_refused_total", "Callback promises refused.", .value = s.refused},
		{"promises_expired_total", "Callback promises expired.", .value = s.expired},
		{"promises_returned_total", "Callback promises returned individually by clients.",
		 .value = s.dropped},
		{"callbacks_failed_total", "Failed calls to clients that had answered before.",
		 .value = s.failed},
		{"change_waits_total", "Changes that waited for clients.", .value = s.waits},
		{"clients_given_up_total",
		 "Clients that did not answer in time when a change waited for them.",
		 .value = s.given_up},
		{"calls_held_total",
		 "Calls that waited until their client was told to discard its cache.",
		 .value = s.held},
		{"calls_turned_away_total",
		 "Calls not served because their client could not be told to discard its cache.",
		 .value = s.turned_away},
	};

	fsd_metrics_put(f, metrics, LENGTH(metrics));
}

/* The directories that are watched, and the keys. */
static void put_rest(FILE *f, const struct fsd_service *service, const struct fsd_key_loads *keys)
{
	const struct fsd_metric metrics[] = {
		{"watched_directories", "Directories watched with inotify.",
		 .value = service->exported ? export_count_watches(service->store) : 0},
		{"tickets_refused_total", "Tickets of rxkad that name a key which is not loaded.",
		 .value = fsd_guard_tickets_refused(service->guard)},
		{"key_loads_total", "Loads of the service keys.", .label = "result",
		 .of = "success", .value = read_counter(&keys->good)},
		{"key_loads_total", NULL, .label = "result", .of = "failure",
		 .value = read_counter(&keys->bad)},
		{"keys_loaded_time_seconds",
		 "Time of the last successful load of the service keys, in seconds since 1970.",
		 .value = (uint64_t)atomic_load_explicit(&keys->time, memory_order_relaxed)},
	};

	fsd_metrics_put(f, metrics, LENGTH(metrics));
}

char *fsd_service_metrics(const struct fsd_service *service, const struct fsd_key_loads *keys,
			  uint64_t promises_limit)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int bad;

	if (!f)
		return NULL;
	put_calls(f, &service->counters);
	put_failures(f, &service->failures);
	put_changes(f, service);
	put_readers(f, service->readers);
	put_clients(f, service->clients, promises_limit);
	put_rest(f, service, keys);
	bad = ferror(f);
	if (fclose(f) == 0 && !bad)
		return text;
	free(text);
	return NULL;
}

void fsd_service_add_volume_calls(const struct fsd_service *service, uint32_t id,
				  struct fsd_volume_calls *calls)
{
	const struct fsd_volume_counts *counts = service->volume_counts;

	calls->fetches += fsd_volume_counted(counts, id, FSD_VOLUME_FETCHES);
	calls->fetched_bytes += fsd_volume_counted(counts, id, FSD_VOLUME_FETCHED_BYTES);
	calls->changes += fsd_volume_counted(counts, id, FSD_VOLUME_CHANGES);
	calls->stored_bytes += fsd_volume_counted(counts, id, FSD_VOLUME_STORED_BYTES);
}

void fsd_service_log(const struct fsd_service *service)
{
	const struct fsd_counters *c = &service->counters;
	struct fsd_clients_stats clients;
	struct fsd_reader_stats readers;

	fsd_log(RXW_LOG_INFO, "calls %llu, failed %llu, writes refused %llu, location calls %llu",
		(unsigned long long)read_counter(&c->calls),
		(unsigned long long)read_counter(&c->failed),
		(unsigned long long)read_counter(&c->refused_writes),
		(unsigned long long)read_counter(&c->vl_calls));
	fsd_log(RXW_LOG_INFO, "fetches %llu, bytes %llu, aborted %llu; statuses %llu",
		(unsigned long long)read_counter(&c->fetches),
		(unsigned long long)read_counter(&c->fetched_bytes),
		(unsigned long long)read_counter(&c->fetch_aborts),
		(unsigned long long)read_counter(&c->statuses));
	if (!service->exported)
		fsd_log(RXW_LOG_INFO, "changes %llu; stores %llu, bytes %llu, aborted %llu",
			(unsigned long long)read_counter(&c->changes),
			(unsigned long long)read_counter(&c->stores),
			(unsigned long long)read_counter(&c->stored_bytes),
			(unsigned long long)read_counter(&c->store_aborts));
	fsd_readers_stats(service->readers, &readers);
	fsd_log(RXW_LOG_INFO,
		"bytes from cache %llu, read ahead %llu in %llu reads by %u threads (%llu waits), "
		"read directly %llu",
		(unsigned long long)readers.bytes_cached, (unsigned long long)readers.bytes_ahead,
		(unsigned long long)readers.reads_ahead, readers.threads,
		(unsigned long long)readers.waits, (unsigned long long)readers.bytes_direct);
	fsd_clients_stats(service->clients, &clients);
	fsd_log(RXW_LOG_INFO,
		"clients %zu, with promises allowed %zu; promises %zu (given %llu, broken %llu, "
		"not given %llu, calls to clients failed %llu); directories watched %zu",
		clients.hosts, clients.hosts_up, clients.promises,
		(unsigned long long)clients.given, (unsigned long long)clients.broken,
		(unsigned long long)clients.refused, (unsigned long long)clients.failed,
		service->exported ? export_count_watches(service->store) : 0);
}
