/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of the file server, for Prometheus and for the log. */
#include "fileserver/service/services.h"

#include <stdio.h>
#include <stdlib.h>

#include "fileserver/base/base.h"

static unsigned long long read_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void put_service_head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP rxfsd_%s %s\n# TYPE rxfsd_%s %s\n", name, help, name, type);
}

static void put_service_metric(FILE *f, const char *name, const char *type, const char *help,
			       unsigned long long value)
{
	put_service_head(f, name, type, help);
	fprintf(f, "rxfsd_%s %llu\n", name, value);
}

static void put_calls(FILE *f, const struct fsd_counters *c)
{
	put_service_metric(f, "calls_total", "counter", "Calls of the file service.",
			   read_counter(&c->calls));
	put_service_metric(f, "calls_failed_total", "counter",
			   "Calls of the file service that failed.", read_counter(&c->failed));
	put_service_metric(f, "writes_refused_total", "counter",
			   "Calls that would have modified something.",
			   read_counter(&c->refused_writes));
	put_service_metric(f, "location_calls_total", "counter",
			   "Calls of the volume location service.", read_counter(&c->vl_calls));
	put_service_metric(f, "statuses_total", "counter",
			   "Status records of files and directories sent.",
			   read_counter(&c->statuses));
	put_service_metric(f, "fetches_total", "counter", "Data fetches.",
			   read_counter(&c->fetches));
	put_service_metric(f, "fetched_bytes_total", "counter", "Bytes sent by fetches.",
			   read_counter(&c->fetched_bytes));
	put_service_metric(f, "fetches_aborted_total", "counter", "Incomplete fetches.",
			   read_counter(&c->fetch_aborts));
	put_service_head(f, "fetch_seconds_total", "counter", "Total duration of fetches.");
	fprintf(f, "rxfsd_fetch_seconds_total %.6f\n", (double)read_counter(&c->fetch_ns) / 1e9);
}

static void put_failures(FILE *f, const struct fsd_failures *failures)
{
	put_service_head(
		f, "failures_total", "counter",
		"Calls that failed for a reason on the server's side: no space, a read-only file system, "
		"input and output errors, too many open files, no memory.");
	for (unsigned i = 0; i < FSD_FAILURES; i++)
		fprintf(f, "rxfsd_failures_total{cause=\"%s\"} %llu\n", fsd_failure_name(i),
			read_counter(&failures->count[i]));
}

static void put_changes(FILE *f, const struct fsd_service *service)
{
	const struct fsd_counters *c = &service->counters;
	struct fsd_audit_stats audit;

	fsd_audit_stats(service->audit, &audit);
	put_service_metric(f, "changes_total", "counter", "Calls that changed something.",
			   read_counter(&c->changes));
	put_service_metric(f, "stores_total", "counter", "Data stores.", read_counter(&c->stores));
	put_service_metric(f, "stored_bytes_total", "counter", "Bytes received by stores.",
			   read_counter(&c->stored_bytes));
	put_service_metric(f, "stores_aborted_total", "counter", "Incomplete stores.",
			   read_counter(&c->store_aborts));
	put_service_metric(f, "stores_given_up_total", "counter",
			   "Slow stores that were ended because others needed their places.",
			   read_counter(&c->stores_given_up));
	put_service_metric(f, "fetches_given_up_total", "counter",
			   "Slow fetches that were ended because others needed their places.",
			   read_counter(&c->fetches_given_up));
	put_service_metric(f, "stores_held_total", "counter",
			   "Stores that waited until others had given up their places.",
			   read_counter(&c->stores_held));
	put_service_metric(f, "fetches_held_total", "counter",
			   "Fetches that waited until others had given up their places.",
			   read_counter(&c->fetches_held));
	put_service_head(f, "store_seconds_total", "counter", "Total duration of stores.");
	fprintf(f, "rxfsd_store_seconds_total %.6f\n", (double)read_counter(&c->store_ns) / 1e9);
	put_service_metric(f, "locks", "gauge", "Files with a lock.",
			   fsd_locks_held(service->locks));
	put_service_metric(f, "locks_set_total", "counter", "Locks set.", read_counter(&c->locks));
	put_service_metric(f, "audit_records_total", "counter", "Lines of the audit log.",
			   audit.written);
	put_service_metric(f, "audit_lost_total", "counter", "Calls missing in the audit log.",
			   audit.lost);
	put_service_metric(f, "audit_waits_total", "counter",
			   "Calls that waited for the audit log.", audit.waits);
	put_service_metric(f, "audit_refused_total", "counter",
			   "Changes refused because they could not be recorded in the audit log.",
			   audit.refused);
}

static void put_readers(FILE *f, struct fsd_readers *readers)
{
	struct fsd_reader_stats s = {0};

	fsd_readers_stats(readers, &s);
	put_service_head(
		f, "read_bytes_total", "counter",
		"Bytes of files read from the page cache, by read-ahead threads, or from the disk "
		"while the call waited.");
	fprintf(f, "rxfsd_read_bytes_total{from=\"cache\"} %llu\n",
		(unsigned long long)s.bytes_cached);
	fprintf(f, "rxfsd_read_bytes_total{from=\"ahead\"} %llu\n",
		(unsigned long long)s.bytes_ahead);
	fprintf(f, "rxfsd_read_bytes_total{from=\"direct\"} %llu\n",
		(unsigned long long)s.bytes_direct);
	put_service_metric(f, "reads_ahead_total", "counter", "Reads by read-ahead threads.",
			   s.reads_ahead);
	put_service_metric(f, "reader_waits_total", "counter",
			   "Calls that had to wait for a read-ahead.", s.waits);
	put_service_metric(f, "reader_threads", "gauge", "Read-ahead threads.", s.threads);
}

static void put_clients(FILE *f, struct fsd_clients *clients, uint64_t limit)
{
	struct fsd_clients_stats s = {0};

	fsd_clients_stats(clients, &s);
	put_service_metric(f, "hosts", "gauge", "Clients in memory.", s.hosts);
	put_service_metric(f, "hosts_up", "gauge",
			   "Clients that answer callbacks and may hold promises.", s.hosts_up);
	put_service_metric(f, "hosts_reclaimed_total", "counter",
			   "Clients told to discard their cache to make room for promises.",
			   s.reclaimed);
	put_service_metric(f, "promises", "gauge", "Callback promises in force.", s.promises);
	put_service_metric(f, "promises_limit", "gauge", "Limit of callback promises (--promises).",
			   limit);
	put_service_metric(f, "promised_objects", "gauge",
			   "Files and directories covered by promises.", s.objects);
	put_service_metric(f, "promises_given_total", "counter", "Callback promises given.",
			   s.given);
	put_service_metric(f, "promises_broken_total", "counter",
			   "Callback promises broken by a change.", s.broken);
	put_service_metric(f, "promises_refused_total", "counter", "Callback promises refused.",
			   s.refused);
	put_service_metric(f, "promises_expired_total", "counter", "Callback promises expired.",
			   s.expired);
	put_service_metric(f, "promises_returned_total", "counter",
			   "Callback promises returned individually by clients.", s.dropped);
	put_service_metric(f, "callbacks_failed_total", "counter",
			   "Failed calls to clients that had answered before.", s.failed);
	put_service_metric(f, "change_waits_total", "counter", "Changes that waited for clients.",
			   s.waits);
	put_service_metric(f, "clients_given_up_total", "counter",
			   "Clients that did not answer in time when a change waited for them.",
			   s.given_up);
	put_service_metric(f, "calls_held_total", "counter",
			   "Calls that waited until their client was told to discard its cache.",
			   s.held);
	put_service_metric(
		f, "calls_turned_away_total", "counter",
		"Calls not served because their client could not be told to discard its cache.",
		s.turned_away);
}

static void put_keys(FILE *f, const struct fsd_key_loads *keys, const struct fsd_guard *guard)
{
	put_service_metric(f, "tickets_refused_total", "counter",
			   "Tickets of rxkad that name a key which is not loaded.",
			   fsd_guard_tickets_refused(guard));
	put_service_head(f, "key_loads_total", "counter", "Loads of the service keys.");
	fprintf(f, "rxfsd_key_loads_total{result=\"success\"} %llu\n", read_counter(&keys->good));
	fprintf(f, "rxfsd_key_loads_total{result=\"failure\"} %llu\n", read_counter(&keys->bad));
	put_service_head(
		f, "keys_loaded_time_seconds", "gauge",
		"Time of the last successful load of the service keys, in seconds since 1970.");
	fprintf(f, "rxfsd_keys_loaded_time_seconds %lld\n",
		(long long)atomic_load_explicit(&keys->time, memory_order_relaxed));
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
	put_service_metric(f, "watched_directories", "gauge", "Directories watched with inotify.",
			   service->exported ? export_count_watches(service->store) : 0);
	put_keys(f, keys, service->guard);
	bad = ferror(f);
	if (fclose(f) == 0 && !bad)
		return text;
	free(text);
	return NULL;
}

void fsd_service_log(const struct fsd_service *service)
{
	const struct fsd_counters *c = &service->counters;
	struct fsd_clients_stats clients;
	struct fsd_reader_stats readers;

	fsd_log(RXW_LOG_INFO, "calls %llu, failed %llu, writes refused %llu, location calls %llu",
		read_counter(&c->calls), read_counter(&c->failed), read_counter(&c->refused_writes),
		read_counter(&c->vl_calls));
	fsd_log(RXW_LOG_INFO, "fetches %llu, bytes %llu, aborted %llu; statuses %llu",
		read_counter(&c->fetches), read_counter(&c->fetched_bytes),
		read_counter(&c->fetch_aborts), read_counter(&c->statuses));
	if (!service->exported)
		fsd_log(RXW_LOG_INFO, "changes %llu; stores %llu, bytes %llu, aborted %llu",
			read_counter(&c->changes), read_counter(&c->stores),
			read_counter(&c->stored_bytes), read_counter(&c->store_aborts));
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
